"""What others have written cannot drive the terminal on which a command prints it."""

import io
import os
import pty
import subprocess
import sys
from pathlib import Path

import pytest

from foresail.cli.output.messages import BOLD, GREEN, PALE, RED, YELLOW, Screen, painted, visible
from foresail.cli.output.progress import Bar, Status
from foresail.cli.tenant.logs import writer


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("Ünïcode ✓ █░ 日本\tand\nlines", "Ünïcode ✓ █░ 日本\tand\nlines"),
        ("\x1b[2J\x1b]0;title\x07", "?[2J?]0;title?"),
        ("good\rPROBLEM", "good?PROBLEM"),
        ("\x9b2J\x00\x08\x7f", "?2J???"),
        ("name\u202egnp.exe\u2066", "name?gnp.exe?"),
        ("\x1b[8mhidden\x1b[38;5;1m", "?[8mhidden?[38;5;1m"),
    ],
)
def test_what_would_drive_a_terminal_is_shown_as_a_question_mark(text: str, shown: str) -> None:
    assert visible(text) == shown


@pytest.mark.parametrize("colour", [GREEN, YELLOW, RED, BOLD, PALE, f"{BOLD};{RED}"])
def test_our_own_colours_pass(colour: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NO_COLOR", raising=False)
    text = painted("word", colour, Terminal())
    assert "\x1b" in text
    assert visible(text) == text


def test_a_bar_grows_in_place_through_a_screen() -> None:
    terminal = Terminal()
    bar = Bar(Screen(terminal))  # type: ignore[arg-type] # it has what a bar needs of a stream
    bar.show(Status("New"))
    bar.show(Status("Queued\r"))
    assert terminal.getvalue() == "\rNew\rQueued?"


def test_a_log_goes_into_a_file_as_it_is_and_onto_a_terminal_as_text(tmp_path: Path) -> None:
    log = "Größe \x1b[2J\n".encode()
    pieces = [log[:3], log[3:]]  # in the middle of a letter
    with (tmp_path / "log").open("w") as file:
        write = writer(file)
        for piece in pieces:
            write(piece)
    assert (tmp_path / "log").read_bytes() == log
    terminal = Terminal()
    write = writer(Screen(terminal))  # type: ignore[arg-type]
    for piece in pieces:
        write(piece)
    assert terminal.getvalue() == "Größe ?[2J\n"


def test_a_command_on_a_terminal_prints_what_it_was_given_without_its_control_characters() -> None:
    ours, theirs = pty.openpty()
    command = [sys.executable, "-m", "foresail", "cron", "diff-dialects", "-f", "\x1b[2Jnowhere"]
    subprocess.run(command, stdin=theirs, stdout=theirs, stderr=theirs, check=False)
    os.close(theirs)
    said = os.read(ours, 65536).decode()
    os.close(ours)
    assert "?[2Jnowhere" in said
    assert "\x1b" not in said
