"""A real shell on a real terminal: what it shows after keys are typed."""

import os
import pty
import select
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager

TAB = "\t"
_PATIENCE = 60.0


class Terminal:
    """A terminal on which a shell runs."""

    def __init__(self, ours: int) -> None:
        self._ours = ours
        self._unread = ""

    def type(self, text: str) -> None:
        """Press keys."""
        os.write(self._ours, text.encode())

    def until(self, text: str) -> str:
        """Return what the terminal shows up to a text, which must come."""
        while text not in self._unread:
            ready, _, _ = select.select([self._ours], [], [], _PATIENCE)
            assert ready, f"{text!r} does not come after {self._unread!r}"
            self._unread += os.read(self._ours, 4096).decode(errors="replace")
        before, _, self._unread = self._unread.partition(text)
        return before + text


@contextmanager
def shell(command: Sequence[str], variables: Mapping[str, str]) -> Iterator[Terminal]:
    """Run a shell on a terminal until the block ends."""
    ours, theirs = pty.openpty()
    with subprocess.Popen(
        command, stdin=theirs, stdout=theirs, stderr=theirs, start_new_session=True, env={**os.environ, **variables}
    ) as process:
        os.close(theirs)
        try:
            yield Terminal(ours)
        finally:
            process.kill()
            os.close(ours)
