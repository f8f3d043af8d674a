"""Pages for users stay short enough to be read."""

from pathlib import Path

import pytest

from docs import words


def test_pages_for_users_and_the_readme_are_within_their_totals() -> None:
    assert sum(words.counted().values()) <= words.TOTAL
    assert words.words((words.DOCS.parent / "README.md").read_text()) <= words.README


def test_words_are_those_outside_of_blocks_and_without_the_bars_of_tables() -> None:
    assert words.words("One two.\n\n```console\n$ not counted\n```\n\n| a | b |\n|---|---|\n") == 4


def test_a_page_beyond_the_budget_of_its_kind_is_a_warning(tmp_path: Path) -> None:
    (tmp_path / "how-to").mkdir()
    (tmp_path / "contributing").mkdir()
    (tmp_path / "how-to" / "long.md").write_text("word " * 1001)
    (tmp_path / "contributing" / "longer.md").write_text("word " * 9000)
    assert list(words.beyond(words.counted(tmp_path))) == [
        "docs/how-to/long.md has 1001 words, its budget is 1000: shorten or split it"
    ]


def test_too_many_words_fail_the_target(monkeypatch: pytest.MonkeyPatch) -> None:
    assert words.main(is_quiet=True) == 0
    monkeypatch.setattr(words, "README", 10)
    assert words.main(is_quiet=True) == 1


def test_exceptions_from_the_budgets_are_pages() -> None:
    assert [name for name in words.LONGER if not (words.DOCS / name).exists()] == []
