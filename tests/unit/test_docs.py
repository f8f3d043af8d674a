"""The docs say what the code does: pages that are written from it are in step with it."""

from pathlib import Path

from docs.generate.__main__ import FOLDER, files, main


def test_the_generated_pages_are_what_the_code_would_write() -> None:
    assert {file.name: file.read_text() for file in FOLDER.iterdir()} == files(), "run `make docs`"


def test_writing_the_pages_takes_away_those_that_are_no_more(tmp_path: Path) -> None:
    (tmp_path / "gone.md").write_text("# Gone\n")
    main(tmp_path)
    assert {file.name: file.read_text() for file in tmp_path.iterdir()} == files()


def test_no_reason_is_without_its_meaning() -> None:
    rows = [line.split(" | ") for line in files()["reasons.md"].splitlines() if line.startswith("| `")]
    assert rows
    assert [row[0] for row in rows if not row[1].strip()] == []
