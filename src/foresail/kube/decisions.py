"""Logs each decision that users care about once: when it is made, and not at every reconcile while it holds."""

import logging
from collections.abc import Sequence

from foresail.plan import Action, Create, Delete, Key, Note

_log = logging.getLogger(__name__)
_VERBS: dict[type[object], str] = {Create: "Created", Delete: "Deleted"}


class DecisionLog:
    """Knows of each key what was logged last."""

    def __init__(self) -> None:
        self._notes: dict[Key, tuple[Note, ...]] = {}

    def note(self, key: Key, notes: Sequence[Note]) -> None:
        """Log the Notes of a Plan that the last Plan for the key did not have."""
        before = self._notes.pop(key, ())
        for note in notes:
            if note not in before:
                _write(note.reason, f"{note.kind.name} {note.key}", note.message)
        if notes:
            self._notes[key] = tuple(notes)

    def forget(self, key: Key) -> None:
        """Drop what is known of a key that no longer exists."""
        self._notes.pop(key, None)


def log_write(action: Action) -> None:
    """Log that an object was created or deleted; patches record what the log already says."""
    verb = _VERBS.get(type(action))
    if verb is not None:
        name = f"{action.kind.name} {action.key}"
        _write(verb, name, f"{verb.lower()} {name}")


def _write(decision: str, about: str, message: str) -> None:
    _log.info("%s", message, extra={"fields": {"decision": decision, "object": about}})
