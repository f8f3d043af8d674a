"""Asks before something is deleted."""

import sys
from collections.abc import Iterable

from foresail.cli.errors import CommandError


def confirm_deletion(what: str, names: Iterable[str]) -> None:
    """Ask whether objects are really to be deleted; where nobody can answer, they are not."""
    those = ", ".join(names)
    if not sys.stdin.isatty():
        raise CommandError(f"nobody confirms that {what} are deleted: {those}", "add --confirm")
    print(f"Delete {those}? [y/N] ", end="", file=sys.stderr, flush=True)
    if sys.stdin.readline().strip().lower() not in ("y", "yes"):
        raise CommandError(f"nothing was deleted; still there: {those}")
