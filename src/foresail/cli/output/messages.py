"""Messages on standard error, so that standard output holds the answer alone."""

import signal
import sys
from collections.abc import Callable, Iterable

from foresail.cli.errors import INTERRUPTED, CommandError, UsageError


class InterruptedPromptError(CommandError):
    """Ends the command with exit code 130: Ctrl-C was the answer."""

    code = INTERRUPTED


def hint(text: str) -> None:
    """Print advice that is no error."""
    print(f"hint: {text}", file=sys.stderr)


def confirm_deletion(names: Iterable[str]) -> None:
    """Ask whether to delete objects, each named with its kind; without a terminal, refuse."""
    those = ", ".join(names)
    if not sys.stdin.isatty():
        raise UsageError(f"refusing to delete without confirmation (no terminal): {those}", "add --confirm")
    if not confirmed(f"Delete {those}? [y/N] "):
        raise CommandError(f"nothing was deleted: {those}")


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
