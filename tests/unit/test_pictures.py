import importlib.util
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[2] / "docs"
specification = importlib.util.spec_from_file_location("draw", DOCS / "draw_clock_changes.py")
assert specification is not None
assert specification.loader is not None
draw = importlib.util.module_from_spec(specification)
specification.loader.exec_module(draw)


@pytest.mark.parametrize("name", sorted(draw.PICTURES))
def test_the_pictures_in_the_docs_show_what_the_engine_says(name: str) -> None:
    start, title = draw.PICTURES[name]
    assert (DOCS / "concepts" / name).read_text() == draw.picture(start, title)
