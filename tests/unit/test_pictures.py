import importlib.util
import json
import re
from pathlib import Path
from types import ModuleType
from typing import get_args

import pytest

from foresail.api.requests import Phase
from foresail.selfservice.requests import create, decide, delete, update

PICTURE = re.compile(r"!\[[^\]]+\]\(([^)]+\.svg)\)")
DOCS = Path(__file__).parents[2] / "docs"


def script(name: str) -> ModuleType:
    specification = importlib.util.spec_from_file_location(name, DOCS / f"{name}.py")
    assert specification is not None
    assert specification.loader is not None
    found = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(found)
    return found


@pytest.mark.parametrize("name", sorted(file.stem for file in DOCS.glob("draw_*.py")))
def test_the_pictures_in_the_docs_are_what_their_scripts_draw(name: str) -> None:
    drawn: dict[str, str] = script(name).files()
    assert {path: (DOCS / path).read_text() for path in drawn} == drawn, "run `make docs`"


def test_every_picture_is_shown_on_a_page() -> None:
    pages = [*DOCS.rglob("*.md"), DOCS.parent / "README.md"]
    shown = {(page.parent / link).resolve() for page in pages for link in PICTURE.findall(page.read_text())}
    assert {file.resolve() for file in DOCS.rglob("*.svg")} == shown


def test_the_picture_of_a_request_has_every_phase() -> None:
    assert set(script("draw_phases").PHASES) == set(get_args(Phase))


def test_every_function_in_the_flowchart_of_self_service_is_one_and_none_is_missing() -> None:
    picture = (DOCS / "contributing" / "design" / "self-service.svg").read_text()
    named = set(re.findall(r'class="f"[^>]*>([^<]+)<', picture))
    found = {
        name
        for module in (create, decide, delete, update)
        for name, value in vars(module).items()
        if getattr(value, "__module__", "") == module.__name__ and not name.startswith("_")
    }
    assert named == found - {"decide"}  # the door


@pytest.mark.parametrize("picture", ["scale", "whole"])
def test_the_page_about_scale_has_the_figures_that_are_drawn(picture: str) -> None:
    drawing = script("draw_scale")
    page = (DOCS / "contributing" / "scale.md").read_text()
    for name, *_ in drawing.PICTURES[picture].panels:
        values = [row.get(name) for row in drawing.rows_of(picture)]
        assert " | ".join("not run" if value is None else f"{value:g}" for value in values) in page


def test_the_start_delays_that_are_quoted_are_those_that_are_drawn() -> None:
    measured = json.loads((DOCS / "start-delays.json").read_text())
    cold, *warm = (measured[f"{name}_p50_s"] for name in ("cold", "warm", "warm_cronjob", "warm_buffer"))
    quoted = f"{cold:g} s, **{warm[0]:g} s**, **{warm[1]:g} s** and **{warm[2]:g} s**"
    assert f"medians of {quoted}" in (DOCS / "contributing" / "benchmarks.md").read_text()
    assert f"{cold:g} s, and {max(warm):g} s with a Primer" in (DOCS.parent / "README.md").read_text()
    assert f"[{cold:g} s become {max(warm):g} s]" in (DOCS / "why-not.md").read_text()
