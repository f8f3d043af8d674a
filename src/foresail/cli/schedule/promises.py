"""Which promises of a SchedulePolicy simulated runs do not keep: its objective, and its spread."""

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING

from foresail.cli.cron.words import wall_time
from foresail.cli.output.times import compact
from foresail.cli.output.words import counted
from foresail.cli.schedule.simulation import Fate
from foresail.cli.schedule.snapshot import EvaluatedSchedule
from foresail.schedules.policies import rpo_of
from foresail.schedules.slots import timing_of

if TYPE_CHECKING:
    from datetime import datetime

Fates = Sequence[tuple[Fate, EvaluatedSchedule]]

_NAMED = 3
_TOGETHER = 2


def broken_promises(fates: Fates, zone: str) -> list[str]:
    """Return a sentence for each Schedule that will miss its objective, and for the fullest lost spread."""
    missed = list(_missed_objectives(fates, zone))
    more = [f"{counted(len(missed) - _NAMED, 'more Schedule')} will miss the objective"] if len(missed) > _NAMED else []
    return [*missed[:_NAMED], *more, *_lost_spread(fates, zone)]


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


def _lost_spread(fates: Fates, zone: str) -> Iterator[str]:
    """Report where most runs that a policy should spread start together, because they waited for a window."""
    together: dict[tuple[str, datetime], set[str]] = {}
    for fate, each in fates:
        policy = each.view.policy
        if policy is not None and fate.at is not None and policy.spec.spread and _has_waited(fate, each):
            together.setdefault((policy.name, fate.at), set()).add(str(each.schedule.key))
    lost = {opening: names for opening, names in together.items() if len(names) >= _TOGETHER}
    if not lost:
        return
    (policy_name, at), names = max(lost.items(), key=lambda item: len(item[1]))
    rest = len({opening for _, opening in lost} - {at})
    more = f", and at {counted(rest, 'more opening')}" if rest else ""
    where = f"at {wall_time(at, zone)}, when a window opens{more}"
    yield (
        f"{len(names)} Schedules of SchedulePolicy {policy_name} start together {where}: spread does not move runs "
        "that wait for an opening. Set concurrency, or windows.outside: Skip"
    )


def _has_waited(fate: Fate, schedule: EvaluatedSchedule) -> bool:
    """Whether a run starts at the opening of a window, and not at its slot with the delay of the spread."""
    timing = timing_of(schedule.view)
    return timing is not None and fate.at == timing.starts(fate.slot) != fate.slot + timing.offset
