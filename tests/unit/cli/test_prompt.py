"""The question before something is deleted, on a real terminal."""

import os
import pty
import select
import subprocess
import sys
from pathlib import Path

import pytest

ASKS = """
import asyncio, sys
from foresail.cli.output.messages import confirm_deletion, interruptible
from foresail.cli.errors import CommandError

async def work():
    confirm_deletion(["Schedule velero/daily"])
    print("deleted")
    return 0

try:
    code = interruptible(lambda: asyncio.run(work()))
except CommandError as error:
    print(error, file=sys.stderr)
    code = error.code
sys.exit(code)
"""


@pytest.mark.parametrize(
    ("typed", "code", "said"),
    [
        (b"y\n", 0, "deleted"),
        (b"n\n", 1, "error: nothing was deleted: Schedule velero/daily"),
        (b"\x03", 130, "error: nothing was deleted"),
        (b"\x04", 1, "error: nothing was deleted"),
    ],
)
def test_ctrl_c_at_the_prompt_ends_the_command_and_nothing_is_deleted(typed: bytes, code: int, said: str) -> None:
    ours, theirs = pty.openpty()
    script = f"import os, fcntl, termios; fcntl.ioctl(0, termios.TIOCSCTTY, 0)\n{ASKS}"
    with subprocess.Popen(
        [sys.executable, "-c", script], stdin=theirs, stdout=theirs, stderr=theirs, start_new_session=True
    ) as process:
        os.close(theirs)
        try:
            shown = _until(ours, "[y/N] ")
            os.write(ours, typed)
            shown += _until(ours, "", again=typed)
            assert process.wait(60) == code
        finally:
            process.kill()
            os.close(ours)
    assert said in shown
    assert "continues" not in shown


def _until(terminal: int, text: str, again: bytes = b"") -> str:
    """Return what the terminal shows until it has shown a text, or until its end.

    What is typed before Python waits for the line is lost now and then, if it is a signal: people type it again.
    """
    shown = ""
    while not text or text not in shown:
        ready, _, _ = select.select([terminal], [], [], 60)
        if not ready and again:
            os.write(terminal, again)
            ready, _, _ = select.select([terminal], [], [], 60)
        assert ready, shown
        try:
            piece = os.read(terminal, 4096)
        except OSError:  # the other side is closed
            break
        if not piece:
            break
        shown += piece.decode()
    return shown


def test_without_a_terminal_the_command_refuses(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", ASKS],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
        cwd=tmp_path,
    )
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.splitlines() == [
        "error: refusing to delete without confirmation (no terminal): Schedule velero/daily",
        "hint: add --confirm",
    ]
