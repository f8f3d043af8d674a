import importlib.util
import re
from pathlib import Path

import pytest

from foresail.selfservice import decide

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


def test_every_function_in_the_flowchart_of_self_service_is_one_and_none_is_missing() -> None:
    picture = (DOCS / "design" / "self-service.svg").read_text()
    named = set(re.findall(r'class="f"[^>]*>([^<]+)<', picture))
    found = {name for name, value in vars(decide).items() if getattr(value, "__module__", "") == decide.__name__}
    aside = {"decide", "promises", "creates"}  # the door, and what the controller asks about a Plan
    assert named == {name for name in found if not name.startswith("_")} - aside
