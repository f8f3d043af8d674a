"""Every answer on the page "where is what" exists: the file, and the function in it."""

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "contributing" / "where-is-what.md").read_text()
ANSWERS = re.findall(r"^\| (\d+) \| .* \| `([\w/.]+)` \| `([\w.]+)` \|$", PAGE, re.MULTILINE)


def functions(path: Path) -> set[str]:
    """Return the functions of a module, and the methods of its classes as `Class.method`."""
    found = set()
    for node in ast.parse(path.read_text()).body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            found.add(node.name)
        elif isinstance(node, ast.ClassDef):
            found |= {f"{node.name}.{each.name}" for each in node.body if isinstance(each, ast.FunctionDef)}
    return found


@pytest.mark.parametrize(("number", "file", "function"), ANSWERS)
def test_the_answer_exists(number: str, file: str, function: str) -> None:
    path = ROOT / "src" / "foresail" / file
    assert path.exists(), f"row {number} of docs/contributing/where-is-what.md: {file} was moved"
    assert function in functions(path), f"row {number} of docs/contributing/where-is-what.md: {function} was moved"


def test_every_row_has_an_answer() -> None:
    rows = [int(number) for number in re.findall(r"^\| (\d+) \|", PAGE, re.MULTILINE)]
    assert rows == [int(number) for number, *_ in ANSWERS] == list(range(1, len(rows) + 1))
