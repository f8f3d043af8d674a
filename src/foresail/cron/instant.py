"""Aware datetimes and whole seconds since 1970."""

from datetime import UTC, datetime, timedelta

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def unix_floor(instant: datetime) -> int:
    """Return the last whole second not after an instant; a naive datetime raises TypeError."""
    since = instant - EPOCH
    return since.days * 86400 + since.seconds


def unix_ceiling(instant: datetime) -> int:
    """Return the first whole second not before an instant; a naive datetime raises TypeError."""
    since = instant - EPOCH
    return since.days * 86400 + since.seconds + (since.microseconds > 0)


def from_unix(seconds: int) -> datetime | None:
    """Return the instant in UTC, None outside the years 1 to 9999."""
    try:
        return EPOCH + timedelta(0, seconds)
    except OverflowError:
        return None
