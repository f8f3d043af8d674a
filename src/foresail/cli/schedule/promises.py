"""Which promises of a SchedulePolicy simulated runs do not keep: its objective."""

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING

from foresail.cli.cron.words import wall_time
from foresail.cli.output.times import compact
from foresail.cli.output.words import counted
from foresail.cli.schedule.simulation import Fate
from foresail.cli.schedule.snapshot import EvaluatedSchedule
from foresail.schedules.policies import rpo_of

if TYPE_CHECKING:
    from datetime import datetime

Fates = Sequence[tuple[Fate, EvaluatedSchedule]]

_NAMED = 3


def broken_promises(fates: Fates, zone: str) -> list[str]:
    """Return a sentence for each Schedule that will miss its objective; those beyond the first few are counted."""
    missed = list(_missed_objectives(fates, zone))
    more = [f"{counted(len(missed) - _NAMED, 'more Schedule')} will miss the objective"] if len(missed) > _NAMED else []
    return [*missed[:_NAMED], *more]


def _missed_objectives(fates: Fates, zone: str) -> Iterator[str]:
    starts: dict[str, list[datetime]] = {}
    schedules = {str(each.schedule.key): each for _, each in fates}
    for fate, each in fates:
        if fate.at is not None:
            starts.setdefault(str(each.schedule.key), []).append(fate.at)
    for name, times in sorted(starts.items()):
        policy = schedules[name].view.policy
        rpo = rpo_of(policy)
        ordered = sorted(times)
        pairs = list(pairwise(ordered))
        if policy is None or rpo is None or not pairs:
            continue
        start, end = max(pairs, key=lambda pair: pair[1] - pair[0])
        if end - start > rpo:
            between = f"{compact(end - start)} between the runs of {wall_time(start, zone)} and {wall_time(end, zone)}"
            yield (
                f"Schedule {name} will miss the objective of SchedulePolicy {policy.name}: {between}, "
                f"and objective.rpo is {compact(rpo)}"
            )
