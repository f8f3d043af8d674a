"""Instants as Kubernetes writes them: UTC, to the second."""

from datetime import UTC, datetime


def stamp(instant: datetime) -> str:
    """Return an instant in the format of a Time field, without fractions of a second."""
    return f"{instant.astimezone(UTC).replace(microsecond=0, tzinfo=None).isoformat()}Z"


def instant(text: str) -> datetime | None:
    """Parse an instant; None if the text is invalid, because anyone may have written it."""
    try:
        return utc(datetime.fromisoformat(text))
    except ValueError:
        return None


def utc(moment: datetime) -> datetime:
    """Return a moment in UTC; raise ValueError if it has no zone, or is outside the years 1 to 9999."""
    if moment.tzinfo is None:
        raise ValueError(f"{moment.isoformat()} names no time zone")
    try:
        return moment.astimezone(UTC)
    except OverflowError:
        raise ValueError(f"{moment.isoformat()} is outside the years 1 to 9999") from None


def whole(moment: datetime) -> datetime:
    """Truncate a moment to whole seconds, as Kubernetes stores it."""
    return moment.replace(microsecond=0)
