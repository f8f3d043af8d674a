"""What SchedulePolicies that are written into a form would change: the next days without them and with them."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import islice
from time import monotonic

from foresail.cli.cron.load import Load
from foresail.cli.errors import CommandError
from foresail.cli.options.manifest_files import decoded
from foresail.cli.output.times import short
from foresail.cli.policy.reach_schedules import HEADER, Pair, Reach, both_fates, reach_of
from foresail.cli.schedule.simulation import Span, cron_of
from foresail.cli.schedule.snapshot import EvaluatedSchedule
from foresail.cli.schedule.under_policy import load_in, policies_of, under

MOST_SCHEDULES = 1000
"""Schedules that are simulated for a form."""

MOST_SLOTS = 20_000
"""Slots that are simulated for a form, without and with the policies together."""

_DAYS = 7
_LONGEST = timedelta(seconds=20)
_TOO_MANY = f"more would be over {MOST_SLOTS} slots, without and with the policies together"
_INSTEAD = "run foresail schedule simulate --policy FILE"


@dataclass(frozen=True, slots=True)
class Preview:
    """The calendars without and with the policies, and what changes for each Schedule."""

    reach: Reach
    without: Load
    with_them: Load
    days: int

    @property
    def columns(self) -> list[str]:
        """The header of what changes for each Schedule."""
        shown = {1: "a day", _DAYS: "a week"}.get(self.days, f"{self.days} days")
        return [each.lower().replace("a week", shown) for each in HEADER]

    @property
    def assumptions(self) -> str:
        """What the reader must know about the simulation."""
        text = "Each Backup is taken to need no time, so waiting for concurrency is not shown."
        if self.days == _DAYS:
            return text
        return f"{text} Only {self.days} of {_DAYS} days are simulated: {_TOO_MANY}. For all, {_INSTEAD}."


def preview(
    text: str, evaluated: Sequence[EvaluatedSchedule], zone: str, instant: datetime, longest: timedelta = _LONGEST
) -> Preview:
    """Return what the policies of a text would change in the next days."""
    if "&" in text and "*" in text:  # few bytes of YAML aliases become a document of any size
        raise CommandError("the text has & and *, as YAML aliases do", "write the policy without aliases")
    if len(evaluated) > MOST_SCHEDULES:
        problem = f"{len(evaluated)} Schedules are more than {MOST_SCHEDULES}, and are not simulated here"
        raise CommandError(problem, _INSTEAD)
    given = policies_of("the form", decoded("the form", text))
    deadline = _Deadline(longest)
    pairs = list[Pair]()
    for schedule in evaluated:
        deadline.check()
        pairs.append((schedule, under(schedule, given, instant)))
    days = _simulated_days((evaluated_schedule for pair in pairs for evaluated_schedule in pair), instant)
    span = Span(instant, instant + timedelta(days=days))
    fates = [both_fates(pair, instant, span, deadline.check) for pair in pairs]
    sides = [
        [(fate, pair[side]) for pair, both in zip(pairs, fates, strict=True) for fate in both[side]] for side in (0, 1)
    ]
    without, with_them = (load_in(each, span, zone, instant) for each in sides)
    by_key = {now.schedule.key: both for (now, _), both in zip(pairs, fates, strict=True)}
    reach = reach_of(pairs, given, lambda pair: by_key[pair[0].schedule.key])
    return Preview(reach, without, with_them, days)


class _Deadline:
    """The end of the time for a simulation: the thread of a page cannot be cancelled."""

    def __init__(self, longest: timedelta) -> None:
        self._longest, self._until = longest, monotonic() + longest.total_seconds()

    def check(self) -> None:
        """End the simulation if its time is over."""
        if monotonic() >= self._until:
            raise CommandError(f"the simulation takes longer than {short(self._longest)}", _INSTEAD)


def _simulated_days(evaluated: Iterable[EvaluatedSchedule], instant: datetime) -> int:
    """Return of how many days all slots can be simulated; the count ends at the first slot too many."""
    chains = [
        (cron, schedule.verdict.base) for schedule in evaluated if (cron := cron_of(schedule.view, instant)) is not None
    ]
    left = MOST_SLOTS
    for number in range(_DAYS):
        day = Span(instant + timedelta(days=number), instant + timedelta(days=number + 1))
        for cron, base in chains:
            left -= sum(1 for _ in islice(day.slots(cron, base), left + 1))
            if left < 0 and number == 0:
                raise CommandError(f"not even one day is simulated: {_TOO_MANY}", _INSTEAD)
            if left < 0:
                return number
    return _DAYS
