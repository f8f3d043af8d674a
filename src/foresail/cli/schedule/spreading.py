"""Other minutes for Schedules that start together: each keeps its hour and its days."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from foresail.plan import Key

_DESCRIPTORS = {
    "@hourly": "0 * * * *",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@weekly": "0 0 * * 0",
    "@monthly": "0 0 1 * *",
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
}
_FIELDS, _MINUTES = 5, 60


@dataclass(frozen=True, slots=True)
class Candidate:
    """A Schedule, its expression and the minutes in which it fires in the observed time."""

    key: Key
    text: str
    fires: frozenset[datetime]


@dataclass(frozen=True, slots=True)
class Move:
    """A Schedule with another minute, and the most Schedules that start with it before and after."""

    key: Key
    before: str
    after: str
    together_before: int
    together_after: int


def spread(candidates: Sequence[Candidate], most: int) -> list[Move]:
    """Return moves after which no more than `most` Schedules start in a minute, as far as other minutes help.

    The Schedule that fires most often keeps its minute; the others move as little as possible.
    """
    load = Counter(fire for candidate in candidates for fire in candidate.fires)
    moves = []
    for candidate in sorted(candidates, key=lambda one: (len(one.fires), one.key)):
        minute = minute_of(candidate.text)
        together = _together(candidate.fires, load)
        if minute is None or together <= most:
            continue
        load.subtract(candidate.fires)
        distance = _best_distance(candidate.fires, minute, load, most)
        load.update(_shifted(candidate.fires, distance))
        if distance:
            after = _together(_shifted(candidate.fires, distance), load)
            moves.append(
                Move(candidate.key, candidate.text, with_minute(candidate.text, minute + distance), together, after)
            )
    return sorted(moves, key=lambda move: move.key)


def minute_of(text: str) -> int | None:
    """Return the minute of an expression that has just one; None if it has several or none."""
    fields = _fields(text)
    return int(fields[0]) if fields and fields[0].isdecimal() and int(fields[0]) < _MINUTES else None


def with_minute(text: str, minute: int) -> str:
    """Return the expression with another minute; a time zone in front of it stays."""
    zone = [each for each in text.split() if _is_zone(each)]
    return " ".join([*zone, str(minute), *_fields(text)[1:]])


def _fields(text: str) -> list[str]:
    fields = [each for each in text.split() if not _is_zone(each)]
    if len(fields) == 1:
        fields = _DESCRIPTORS.get(fields[0].lower(), "").split()
    return fields if len(fields) == _FIELDS else []


def _is_zone(word: str) -> bool:
    return word.startswith(("TZ=", "CRON_TZ="))


def _best_distance(fires: Iterable[datetime], minute: int, load: Mapping[datetime, int], most: int) -> int:
    """Return by how many minutes to move: to the fewest starts, and no further than needed."""

    def cost(distance: int) -> tuple[int, int, int]:
        starts = _together(_shifted(fires, distance), load) + 1
        return max(starts, most), abs(distance), -distance

    return min(range(-minute, _MINUTES - minute), key=cost)


def _shifted(fires: Iterable[datetime], minutes: int) -> set[datetime]:
    return {fire + timedelta(minutes=minutes) for fire in fires}


def _together(fires: Iterable[datetime], load: Mapping[datetime, int]) -> int:
    return max((load[fire] for fire in fires), default=0)
