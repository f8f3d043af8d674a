"""Whether a good backup of a namespace is late, by the objective of the SchedulePolicy or by the runs that were due.

It is the rule of coverage. Here it also counts before the first good backup, and after the last one has expired.
"""

from collections.abc import Iterator
from datetime import datetime, timedelta
from functools import lru_cache

import msgspec

from foresail.cron import Schedule
from foresail.protection.reasons import Reason
from foresail.protection.rows import BackupRow, ScheduleRow
from foresail.protection.view import NamespaceView
from foresail.reporting import Because
from foresail.slots.expression import Unusable, read_expression
from foresail.slots.policy_timing import PolicyRow, rpo_of

_MINUTE = timedelta(minutes=1)
_MISSED_AFTER = timedelta(hours=1)
"""How old a good backup is at least that misses runs: one of a dense Schedule takes longer than three fires."""


class Late(msgspec.Struct, frozen=True):
    """From when on a namespace without a newer good backup is not protected, and why."""

    at: datetime
    because: Because


def lateness(view: NamespaceView, good: BackupRow | None) -> Late | None:
    """Return from when on a good backup is late, given the newest there is; None if nothing tells."""
    objective = _objective(view, good)
    # As in coverage, an objective is all that counts. Without any good backup it may be long, and runs are missed.
    missed = _missed(view, good) if objective is None or good is None else None
    return min((late for late in (objective, missed) if late is not None), key=lambda late: late.at, default=None)


def _objective(view: NamespaceView, good: BackupRow | None) -> Late | None:
    running = [schedule for schedule in view.schedules if not schedule.paused] or view.schedules
    lengths = [length for schedule in running if (length := rpo_of(view.policies.get(schedule.name))) is not None]
    begun = [moment for schedule in running if (moment := _begun(view, schedule, good)) is not None]
    if not lengths or not begun:
        return None
    since = good.started if good is not None else max(begun)
    text = f"the newest good backup, {good.name}, is older than" if good is not None else "no backup is good within"
    rest = f"{text} the objective of its SchedulePolicy. See: foresail schedule explain {running[0].name}"
    return Late(since + min(lengths), Because(Reason.OBJECTIVE_MISSED, rest))


def _missed(view: NamespaceView, good: BackupRow | None) -> Late | None:
    moments = list(_third_fires(view, good))
    if not moments:
        return None
    text = f"the newest good backup, {good.name}, is older than" if good is not None else "no backup is good since"
    rest = (
        f"{text} the last three times at which a run was due. See: foresail schedule explain {view.schedules[0].name}"
    )
    return Late(min(moments), Because(Reason.RUNS_MISSED, rest))


def _third_fires(view: NamespaceView, good: BackupRow | None) -> Iterator[datetime]:
    """Yield when the runs of each Schedule count as missed; where windows leave runs out, nobody knows which."""
    for schedule in view.schedules:
        policy = view.policies.get(schedule.name)
        begun = _begun(view, schedule, good)
        if schedule.paused or begun is None or (policy is not None and policy.spec.windows is not None):
            continue
        cron = cron_of(schedule, zone_of(policy, view.zone))
        since = max(begun, good.started) if good is not None else begun
        third = _third_fire(cron, since) if cron is not None else None
        if third is not None:
            yield max(third + _MINUTE, since + _MISSED_AFTER)


def _begun(view: NamespaceView, schedule: ScheduleRow, good: BackupRow | None) -> datetime | None:
    """Return since when the runs of a Schedule count: when it took the namespace in, nobody has recorded.

    If a backup is good, from its first backup of the namespace on. If none is, or it has made none, from its last run.
    """
    runs = view.runs.get(schedule.name, ())
    own = [run.started for run in runs if run.has(view.row)]
    if good is not None and own:
        return min(own)
    known = (schedule.created, schedule.last_backup, *(run.started for run in runs))
    return max((moment for moment in known if moment is not None), default=None)


def zone_of(policy: PolicyRow | None, zone: str) -> str:
    """Return the zone of a Schedule under a policy; `zone` is that of Velero's clock."""
    return (policy.spec.time_zone if policy is not None else None) or zone


def cron_of(schedule: ScheduleRow, zone: str) -> Schedule | None:
    """Return the expression of a Schedule; None if it cannot be used."""
    cron = read_expression(schedule.text, zone, schedule.dialect)
    return None if isinstance(cron, Unusable) else cron


@lru_cache(20_000)  # the namespaces of a group share their runs
def _third_fire(cron: Schedule, after: datetime) -> datetime | None:
    at: datetime | None = after
    for _ in range(3):
        at = cron.next(at) if at is not None else None
    return at
