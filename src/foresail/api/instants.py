"""Instants as Kubernetes writes them: UTC, to the second."""

from datetime import UTC, datetime


def stamp(instant: datetime) -> str:
    """Return an instant as it is in a field of type Time; parts of a second are dropped."""
    return f"{instant.astimezone(UTC).replace(microsecond=0, tzinfo=None).isoformat()}Z"


def instant(text: str) -> datetime | None:
    """Return the instant that a text means; None if it is none, for anyone may have written it."""
    try:
        return utc(datetime.fromisoformat(text))
    except ValueError:
        return None


def utc(moment: datetime) -> datetime:
    """Return a moment in UTC; raise ValueError if it names no zone, or lies outside the years 1 to 9999 there."""
    if moment.tzinfo is None:
        raise ValueError(f"{moment.isoformat()} names no time zone")
    try:
        return moment.astimezone(UTC)
    except OverflowError:
        raise ValueError(f"{moment.isoformat()} is outside the years 1 to 9999") from None


def whole(moment: datetime) -> datetime:
    """Return the second that a moment lies in: what is left of it after it was written and read again."""
    return moment.replace(microsecond=0)
