"""Every answer on the page "where is what" exists: the file, and the function in it."""

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "contributing" / "where-is-what.md").read_text()
ANSWERS = re.findall(r"^\| (\d+) \| .* \| `([\w/.]+)` \| `([\w.]+)` \| (yes|no: `[\w/.]+`) \|$", PAGE, re.MULTILINE)


def functions(path: Path) -> set[str]:
    """Return the functions of a module, and the methods of its classes as `Class.method`."""
    found = set()
    for node in ast.parse(path.read_text()).body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            found.add(node.name)
        elif isinstance(node, ast.ClassDef):
            found |= {f"{node.name}.{each.name}" for each in node.body if isinstance(each, ast.FunctionDef)}
    return found


@pytest.mark.parametrize(("number", "file", "function", "_"), ANSWERS)
def test_the_answer_exists(number: str, file: str, function: str, _: str) -> None:
    path = ROOT / "src" / "foresail" / file
    assert path.exists(), f"row {number} of docs/contributing/where-is-what.md: {file} was moved"
    assert function in functions(path), f"row {number} of docs/contributing/where-is-what.md: {function} was moved"


def test_there_are_thirty_questions_and_the_score_is_their_count() -> None:
    assert [int(number) for number, *_ in ANSWERS] == list(range(1, 31))
    right = sum(guess == "yes" for *_, guess in ANSWERS)
    assert f"\n{right} of 30 guesses were right." in PAGE
