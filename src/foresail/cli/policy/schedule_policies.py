"""Which SchedulePolicy applies to which Schedules, as the rules of the operator evaluate them."""

from collections.abc import Iterable
from dataclasses import dataclass

import msgspec

from foresail.api.schedule_policy import SCHEDULE_POLICY, SchedulePolicy
from foresail.cli.access.cluster import Cluster
from foresail.cli.schedule.snapshot import EvaluatedSchedule

_policy = msgspec.json.Decoder(SchedulePolicy)


@dataclass(frozen=True, slots=True)
class AppliedSchedulePolicy:
    """A SchedulePolicy, and the Schedules to which it applies."""

    name: str
    priority: int | None  # None if it cannot be decoded
    schedules: tuple[str, ...]


async def read_schedule_policies(
    cluster: Cluster, evaluated: Iterable[EvaluatedSchedule]
) -> list[AppliedSchedulePolicy]:
    """Read all SchedulePolicies, the highest priority first."""
    return applied_schedule_policies(await cluster.listed_if_known(SCHEDULE_POLICY), evaluated)


def applied_schedule_policies(
    listed: Iterable[msgspec.Raw], evaluated: Iterable[EvaluatedSchedule]
) -> list[AppliedSchedulePolicy]:
    """Return each SchedulePolicy with its Schedules; one that cannot be decoded hides no other."""
    schedules: dict[str, list[str]] = {}
    for each in evaluated:
        if each.view.policy is not None:
            schedules.setdefault(each.view.policy.name, []).append(each.schedule.key.name)
    found: list[AppliedSchedulePolicy] = []
    for raw in listed:
        try:
            policy = _policy.decode(raw)
            name, priority = policy.metadata.name, policy.spec.priority
        except msgspec.ValidationError:
            name, priority = str(msgspec.json.decode(raw)["metadata"]["name"]), None
        found.append(AppliedSchedulePolicy(name, priority, tuple(sorted(schedules.get(name, ())))))
    return sorted(found, key=lambda each: (-(each.priority or 0), each.name))
