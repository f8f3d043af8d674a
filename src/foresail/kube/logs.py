"""Logs one JSON object per line; each line during a reconcile names its object, and each decision is logged once."""

import logging
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from datetime import UTC, datetime
from typing import TextIO

import msgspec

from foresail.plan import Action, Create, Delete, DeleteLabelled, Key, Note

_about: ContextVar[tuple[str, Key] | None] = ContextVar("about", default=None)
_encoder = msgspec.json.Encoder()
_log = logging.getLogger("foresail.decisions")
_VERBS: dict[type[object], str] = {Create: "Created", Delete: "Deleted", DeleteLabelled: "Deleted"}


@contextmanager
def about(who: str, key: Key) -> Iterator[None]:
    """Name the controller and the object in every line that this task logs until the block ends."""
    before = _about.set((who, key))
    try:
        yield
    finally:
        _about.reset(before)


class JsonLines(logging.Formatter):
    """Formats a record as one line: time, level, message, logger, and the object and traceback if there are any.

    The dict `fields` in `extra` adds more fields.
    """

    def format(self, record: logging.LogRecord) -> str:
        """Return the line."""
        line = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "message": record.getMessage(),
            "logger": record.name,
        }
        subject = _about.get()
        if subject is not None:
            line["controller"] = subject[0]
            line["key"] = str(subject[1])
        line |= getattr(record, "fields", {})
        if record.exc_info:
            line["traceback"] = self.formatException(record.exc_info)
        return _encoder.encode(line).decode()


def log_as_json(level: int = logging.INFO, stream: TextIO | None = None) -> None:
    """Send all records from that level on to a stream, by default stderr, as JSON lines."""
    handler = logging.StreamHandler(stream or sys.stderr)
    handler.setFormatter(JsonLines())
    logging.basicConfig(level=level, handlers=[handler], force=True)


class DecisionLog:
    """Logs each Note of a Plan once: when it is new, not at every reconcile."""

    def __init__(self) -> None:
        self._notes: dict[Key, tuple[Note, ...]] = {}

    def note(self, key: Key, notes: Sequence[Note]) -> None:
        """Log the Notes of a Plan that the last Plan for the key did not have."""
        before = self._notes.pop(key, ())
        for note in notes:
            if note not in before:
                _log_decision(note.reason, f"{note.kind.name} {note.key}", note.message)
        if notes:
            self._notes[key] = tuple(notes)

    def forget(self, key: Key) -> None:
        """Drop the Notes of a key that no longer exists."""
        self._notes.pop(key, None)


def log_write(action: Action) -> None:
    """Log that an object was created or deleted; patches only record what is logged already."""
    verb = _VERBS.get(type(action))
    if verb is not None:
        name = f"{action.kind.name} {action.key}"
        _log_decision(verb, name, f"{verb.lower()} {name}")


def _log_decision(decision: str, about: str, message: str) -> None:
    _log.info("%s", message, extra={"fields": {"decision": decision, "object": about}})
