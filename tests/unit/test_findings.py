"""Everything that the page of findings names exists: tests, attacks and targets of make."""

import ast
import re
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "contributing" / "findings.md").read_text()
NAMES = sorted(set(re.findall(r"`([^`]+)`", "".join(re.findall(r"^\|.*\|(.*)\|$", PAGE, re.MULTILINE)))))


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
        assert re.search(rf"^{name.split()[1]}:", (ROOT / "Makefile").read_text(), re.MULTILINE)
    elif name.startswith("python -m "):
        assert (ROOT / f"{name.split()[2].replace('.', '/')}.py").exists()
    else:
        assert any(name in functions(file) for file in (ROOT / "tests" / "redteam").glob("*.py"))


def test_the_page_names_tests() -> None:
    assert len(NAMES) > 20
