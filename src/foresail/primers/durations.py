"""Lengths of time as users write them."""

from datetime import timedelta

from foresail.cron.duration import length_of


def warm_up_of(value: int | str) -> timedelta:
    """Return a warm-up as a length of time; a number counts minutes."""
    return timedelta(minutes=value) if isinstance(value, int) else duration(value)


def duration(text: str) -> timedelta:
    """Return a duration; raise ValueError if it is none."""
    length = length_of(text)
    if length is None:
        raise ValueError(f"{text!r} is no duration")
    return length


def minutes(length: timedelta) -> str:
    """Return a length of time as people write it."""
    whole = length // timedelta(minutes=1)
    hours, left = divmod(whole, 60)
    return "".join((f"{hours}h" if hours else "", f"{left}m" if left or not hours else ""))
