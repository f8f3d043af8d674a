"""Everything that the pages of findings and frictions name exists: tests, attacks and targets of make."""

import ast
import re
from functools import cache
from pathlib import Path

import pytest

from bench.__main__ import TABLE

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "docs" / "contributing"
FRICTIONS = (FOLDER / "frictions.md").read_text()
PAGES = (FOLDER / "findings.md").read_text() + FRICTIONS
NAMES = sorted(set(re.findall(r"`([^`]+)`", "".join(re.findall(r"^\|.*\|(.*)\|$", PAGES, re.MULTILINE)))))


@cache
def functions(file: Path) -> set[str]:
    return {node.name for node in ast.walk(ast.parse(file.read_text())) if isinstance(node, ast.FunctionDef)}


@pytest.mark.parametrize("name", NAMES)
def test_what_pins_a_finding_exists(name: str) -> None:
    if name.startswith("tests/"):
        file, _, function = name.partition("::")
        assert (ROOT / file).exists()
        assert not function or function in functions(ROOT / file)
    elif name.startswith("make "):
        target = name.split()[1]
        assert target in TABLE or re.search(rf"^{target}:", (ROOT / "Makefile").read_text(), re.MULTILINE)
    elif name.startswith("python -m "):
        assert (ROOT / f"{name.split()[2].replace('.', '/')}.py").exists()
    else:
        assert any(name in functions(file) for file in (ROOT / "tests" / "redteam").glob("*.py"))


def test_the_pages_name_tests() -> None:
    assert len(NAMES) > 50


@pytest.mark.parametrize(("title", "rows"), [("Frictions", 25), ("Dead ends", 8), ("Wishes", 12)])
def test_each_friction_has_a_test_or_a_reason(title: str, rows: int) -> None:
    (part,) = re.findall(rf"^## {title}$(.*?)(?=^## |\Z)", FRICTIONS, re.MULTILINE | re.DOTALL)
    answers = re.findall(r"^\| (\d+) \|.*\| (.+) \|$", part, re.MULTILINE)
    assert [int(number) for number, _ in answers] == list(range(1, rows + 1))
    assert all("`tests/" in answer or "not yet" in answer for _, answer in answers)
