"""Messages on standard error, so that standard output holds the answer alone."""

import codecs
import io
import os
import re
import signal
import sys
from collections.abc import Callable, Iterable
from typing import TextIO, cast

from foresail.cli.errors import INTERRUPTED, CommandError, UsageError

_OURS = r"\x1b\[(?:0|1|2|3[1-3]|1;31)m"  # the colours below
_DRIVES = re.compile(rf"({_OURS})|[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069]")


_SPELLED = "foresail-ascii"
_ASCII = {"·": ".", "█": "#", "░": "-", "→": ">", "…": "...", "—": "-", "µ": "u"}
GREEN, YELLOW, RED, BOLD, PALE = "32", "33", "31", "1", "2"


def painted(text: str, colour: str, stream: TextIO) -> str:
    """Return the text in a colour if the stream is a terminal and NO_COLOR is not set."""
    if not text or not colour or os.environ.get("NO_COLOR") or not stream.isatty():
        return text
    return f"\033[{colour}m{text}\033[0m"


def _spell(error: UnicodeError) -> tuple[str, int]:
    """Return the replacement for characters that a stream cannot encode."""
    if not isinstance(error, UnicodeEncodeError):
        raise error
    return "".join(_ASCII.get(letter, "?") for letter in error.object[error.start : error.end]), error.end


def visible(text: str) -> str:
    """Return the text with `?` for each character that would move the cursor, change the terminal or turn the line."""
    return _DRIVES.sub(lambda drive: drive[1] or "?", text)


class Screen(io.TextIOBase):
    """A stream that drops foreign control characters: only line ends, tabs, our colours and a leading return pass."""

    def __init__(self, terminal: TextIO) -> None:
        self._terminal = terminal

    def write(self, text: str) -> int:
        """Write a piece of text; a bar that grows in place begins each of its pieces with a return."""
        first = text[:1] if text[:1] == "\r" else ""
        self._terminal.write(first + visible(text.removeprefix("\r")))
        return len(text)

    def flush(self) -> None:
        """Show what was written."""
        self._terminal.flush()

    def isatty(self) -> bool:
        """Report that it is one."""
        return True

    def fileno(self) -> int:
        """Return its number."""
        return self._terminal.fileno()


def guard_streams() -> None:
    """Let what this process prints on terminals go through screens, and what cannot be encoded be spelled in ASCII."""
    codecs.register_error(_SPELLED, _spell)
    for name in ("stdout", "stderr"):
        stream: TextIO | None = getattr(sys, name)
        if isinstance(stream, io.TextIOWrapper) and not stream.encoding.lower().startswith("utf"):
            stream.reconfigure(errors=_SPELLED)
        if stream is not None and stream.isatty() and not isinstance(stream, Screen):
            setattr(sys, name, cast("TextIO", Screen(stream)))


class InterruptedPromptError(CommandError):
    """Ends the command with exit code 130: Ctrl-C was the answer."""

    code = INTERRUPTED


def hint(text: str) -> None:
    """Print advice that is no error."""
    print(f"hint: {text}", file=sys.stderr)


def confirm_deletion(names: Iterable[str]) -> None:
    """Ask whether to delete objects, each named with its kind; without a terminal, refuse."""
    those = ", ".join(names)
    confirm(f"Delete {those}?", f"delete without confirmation (no terminal): {those}", f"nothing was deleted: {those}")


def confirm(question: str, refused: str, otherwise: str) -> None:
    """Ask; end the command unless the answer is yes, or if there is no terminal: it refuses then."""
    if not sys.stdin.isatty():
        raise UsageError(f"refusing to {refused}", "add --confirm")
    if not confirmed(f"{question} [y/N] ", otherwise):
        raise CommandError(otherwise)


def confirmed(question: str, otherwise: str = "nothing was deleted") -> bool:
    """Ask, and return whether the answer is yes; Ctrl-C ends the command and says what was not done."""
    return _answer(question, otherwise).strip().lower() in ("y", "yes")


def _answer(question: str, otherwise: str) -> str:
    """Ask, and return the line that was typed; Ctrl-C ends the command at once."""
    # In asyncio, Ctrl-C only cancels a task at its next await: it would be lost until the line is read.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        print(question, end="", file=sys.stderr, flush=True)
        return sys.stdin.readline()
    except KeyboardInterrupt:
        print(file=sys.stderr)
        raise InterruptedPromptError(otherwise) from None
    finally:
        signal.signal(signal.SIGINT, before)


def interruptible(
    work: Callable[[], int], text: str = "Stopped waiting. The operation continues in the cluster."
) -> int:
    """Return the exit code of the work; Ctrl-C ends it with a message about what continues."""
    try:
        return work()
    except KeyboardInterrupt:
        print(f"\n{text}", file=sys.stderr)
        return INTERRUPTED
