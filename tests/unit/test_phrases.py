"""What `python -m docs.phrases` finds in a text; `make lint` runs it over all of ours."""

from pathlib import Path

import pytest

from docs import phrases


@pytest.mark.parametrize(
    ("text", "line", "problem"),
    [
        ("one\nIts location is away.", 2, "'is away': write is unavailable, is unreachable"),
        ("# It stands\n# in the status.", 1, "'stands # in': write is in, appears in"),
        ("Look again later.", 1, "'Look again': write requeue, reconcile again"),
    ],
)
def test_a_phrase_is_found_with_its_line_and_what_to_write_instead(text: str, line: int, problem: str) -> None:
    assert list(phrases.problems(text)) == [(line, problem)]


def test_words_of_users_texts_are_looked_for_in_literals_and_pages_not_in_docstrings(tmp_path: Path) -> None:
    code, page = tmp_path / "code.py", tmp_path / "page.md"
    code.write_text('"""What is said."""\nSAID = "nothing tells it"\n')
    page.write_text("What is said.\n")
    assert list(phrases.file_problems(code)) == [(2, "'nothing tells': write is unknown")]
    assert list(phrases.file_problems(page)) == [(1, "'is said': write reported")]


@pytest.mark.parametrize("text", ["The world stands in for the API server.", "He is awaited.", "a look against it"])
def test_words_that_only_resemble_a_phrase_are_left_alone(text: str) -> None:
    assert list(phrases.problems(text)) == []
