"""One JSON object per line; every line that is written while an object is worked on names that object."""

import logging
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from datetime import UTC, datetime
from typing import TextIO

import msgspec

from foresail.plan import Key

_about: ContextVar[tuple[str, Key] | None] = ContextVar("about", default=None)
_encoder = msgspec.json.Encoder()


@contextmanager
def about(who: str, key: Key) -> Iterator[None]:
    """Let every line of this task name the controller and the object, whoever writes it, until the block ends."""
    before = _about.set((who, key))
    try:
        yield
    finally:
        _about.reset(before)


class JsonLines(logging.Formatter):
    """Makes a record into one line: time, level, message, logger, and the object and traceback if there are any.

    The dict `fields` in `extra` adds fields of its own.
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
            line["controller"], line["key"] = subject[0], str(subject[1])
        line |= getattr(record, "fields", {})
        if record.exc_info:
            line["traceback"] = self.formatException(record.exc_info)
        return _encoder.encode(line).decode()


def log_as_json(level: int = logging.INFO, stream: TextIO | None = None) -> None:
    """Send everything from that level on to a stream, stderr by default, as JSON lines and nowhere else."""
    handler = logging.StreamHandler(stream or sys.stderr)
    handler.setFormatter(JsonLines())
    logging.basicConfig(level=level, handlers=[handler], force=True)
