"""Messages on standard error, so that standard output holds the answer alone."""

import sys
from collections.abc import Callable, Iterable

from foresail.cli.errors import CommandError


def hint(text: str) -> None:
    """Print advice that is no error."""
    print(f"hint: {text}", file=sys.stderr)


def confirm_deletion(what: str, names: Iterable[str]) -> None:
    """Ask whether to delete objects; without a terminal, refuse."""
    those = ", ".join(names)
    if not sys.stdin.isatty():
        raise CommandError(f"nobody confirms that {what} are deleted: {those}", "add --confirm")
    print(f"Delete {those}? [y/N] ", end="", file=sys.stderr, flush=True)
    if sys.stdin.readline().strip().lower() not in ("y", "yes"):
        raise CommandError(f"nothing was deleted; still there: {those}")


def interruptible(work: Callable[[], int], said: str = "Nobody waits any more; what was asked for goes on.") -> int:
    """Return the exit code of the work; Ctrl-C ends it with a message about what continues."""
    try:
        return work()
    except KeyboardInterrupt:
        print(f"\n{said}", file=sys.stderr)
        return 130
