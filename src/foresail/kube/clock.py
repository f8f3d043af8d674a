"""The one place where the wall clock is read."""

from datetime import UTC, datetime


def now() -> datetime:
    """Return the present instant."""
    return datetime.now(UTC)  # noqa: TID251 - this is the one file
