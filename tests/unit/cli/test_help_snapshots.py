"""The `--help` of every command against the snapshots in `help/`, which `make docs` writes.

A changed help text shows in the diff of a commit, where a reviewer reads it as users will.
"""

import pytest

from docs.generate.help_texts import FOLDER, texts

TEXTS = texts()


def test_there_is_one_snapshot_for_each_command_and_none_besides() -> None:
    assert {each.name for each in FOLDER.iterdir()} == set(TEXTS)
    assert len(TEXTS) > 50


@pytest.mark.parametrize("name", TEXTS)
def test_help_is_what_its_snapshot_shows(name: str) -> None:
    assert (FOLDER / name).read_text() == TEXTS[name], "run `make docs`, and read what changes"


@pytest.mark.parametrize("name", TEXTS)
def test_help_fits_80_columns(name: str) -> None:
    assert [line for line in TEXTS[name].splitlines() if len(line) > 80] == []
