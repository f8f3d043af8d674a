"""Judges shifts by the fires of the Go libraries themselves, in stretches where mistakes would show."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from random import Random
from typing import Final

from bench.shift_brute import fires_a_day, read
from bench.shift_cases import CHANGING_ZONES, Case
from bench.shift_check import SINCE
from foresail.cron.shift import AHEAD, Shifted, ZonedExpression
from foresail.cron.zones import offset_changes
from testbed.oracle import Answer, Oracle, Question

_FIRES: Final = 150
_MANY: Final = 100
_DAY: Final = 86_400
_JUDGED: Final = (SINCE, SINCE + AHEAD + timedelta(days=30))
_GIVES_UP: Final = 5 * 365 * 86_400  # both libraries look at least this far ahead before they give up
_LEAP: Final = tuple(int(datetime(year, 2, 20, tzinfo=UTC).timestamp()) for year in (2024, 2028))
_EIGHT_YEARS: Final = (
    int(datetime(2023, 1, 1, tzinfo=UTC).timestamp()),
    int(datetime(2030, 6, 1, tzinfo=UTC).timestamp()),
)


@dataclass(frozen=True, slots=True)
class _Stretch:
    """A time to compare, from a warm-up's view: after `start`, for so many fires, at most up to `end`."""

    start: int
    end: int
    count: int


def wrong_by_go(oracle: Oracle, judged: Sequence[tuple[Case, Shifted]], seed: int) -> tuple[list[str], int]:
    """Compare shifts with what Go fires; return what is wrong, and how many fires were compared."""
    rng = Random(seed)  # noqa: S311 - repeatable on purpose
    plans = [
        (case, shifted, stretch)
        for case, shifted in judged
        if not case.text.startswith("@")
        for stretch in _stretches(case, rng)
    ]
    answers = iter(oracle.ask(question for plan in plans for question in _questions(*plan)))
    wrong, compared = [], 0
    for case, shifted, stretch in plans:
        original = next(answers)
        others = [next(answers) for _ in shifted.schedules]
        problem, fires = _problem(case, shifted, stretch, original, others)
        compared += fires
        if problem:
            wrong.append(f"{case}: {problem}")
    return wrong, compared


def _stretches(case: Case, rng: Random) -> Iterator[_Stretch]:
    in_eight_years = int(fires_a_day(case.text, case.dialect) * 2922)
    if case.zone not in CHANGING_ZONES:
        for start in (rng.randrange(*_EIGHT_YEARS), *_LEAP) if in_eight_years else _LEAP[:1]:
            yield _Stretch(start, start + 10 * _GIVES_UP, min(_FIRES, in_eight_years + 1))
        return
    brute = read(case.text, case.dialect)
    a_day = len(brute.minutes) * len(brute.hours)
    around = offset_changes(case.zone, SINCE + timedelta(days=20), SINCE + AHEAD - timedelta(days=3))
    # The clock changes at a fire, or at a warm-up; and with hundreds of fires a day some changes are enough.
    for change in around if a_day < _MANY else rng.sample(around, 3):
        for middle in {int(change.at.timestamp()) - ahead for ahead in (0, 60 * case.lead)}:
            start = _quiet(middle - _DAY, case)
            days = (middle - start) // _DAY + 3
            yield _Stretch(start, middle + 2 * _DAY, min(in_eight_years + 1, a_day * days + 5))


def _quiet(start: int, case: Case) -> int:
    """Go back until no question starts on the day of a change, where Go's answer depends on the start."""
    changed = [int(change.at.timestamp()) for change in offset_changes(case.zone, *_JUDGED)]
    while any(-_DAY // 4 < at - change < 5 * _DAY // 4 for at in (start, start + 60 * case.lead) for change in changed):
        start -= _DAY // 2
    return start


def _questions(case: Case, shifted: Shifted, stretch: _Stretch) -> Iterator[Question]:
    start = stretch.start + 60 * case.lead
    yield Question(case.dialect, f"CRON_TZ={case.zone} {case.text}", "UTC", start, 0, stretch.count)
    for each in shifted.schedules:
        count = _share(case, each, stretch)
        yield Question(case.dialect, each.with_prefix, "UTC", stretch.start, 0, count)


def _share(case: Case, each: ZonedExpression, stretch: _Stretch) -> int:
    """Ask one expression for its share of the fires: Go is slow to find dates, and more are not needed."""
    whole, part = (fires_a_day(text, case.dialect) for text in (case.text, each.schedule))
    return min(stretch.count, int(1.2 * stretch.count * part / whole) + 6) if whole else 1


def _problem(
    case: Case, shifted: Shifted, stretch: _Stretch, original: Answer, others: list[Answer]
) -> tuple[str | None, int]:
    refused = [answer.refused for answer in (original, *others) if answer.fires is None]
    if refused:
        return f"Go refuses it: {refused}", 0
    wanted = [fire - 60 * case.lead for fire in original.fires or []]
    fired = [answer.fires or [] for answer in others]
    asked = [stretch.count, *(_share(case, each, stretch) for each in shifted.schedules)]
    covered = (_covered(*each, stretch) for each in zip((wanted, *fired), asked, strict=True))
    end = min(stretch.end, *covered)
    want = {fire for fire in wanted if fire <= end}
    all_fires = [fire for fires in fired for fire in fires if fire <= end]
    fire = set(all_fires)
    twice = {fire for fire, number in Counter(all_fires).items() if number > 1}
    if shifted.exact or case.zone in CHANGING_ZONES:
        lost, spurious = (_within(said, stretch.start, end) for said in (shifted.lost, shifted.spurious))
        too_much = fire - want | twice
        if want - fire != lost or too_much != spurious:
            return (
                f"lost {len(want - fire)}, not {len(lost)}; spurious {len(too_much)}, not {len(spurious)}",
                0,
            )
    elif want - fire or twice:
        return f"loses {len(want - fire)} fires, doubles {len(twice)}", 0
    return None, len(want)


def _covered(fires: list[int], asked: int, stretch: _Stretch) -> int:
    """Say until when an answer is complete: its last fire, or where the library gave up looking."""
    if len(fires) == asked:
        return fires[-1]
    return (fires[-1] if fires else stretch.start) + _GIVES_UP


def _within(said: tuple[datetime, ...], start: int, end: int) -> set[int]:
    return {at for at in (int(instant.timestamp()) for instant in said) if start < at <= end}
