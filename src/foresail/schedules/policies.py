"""What a SchedulePolicy says beyond times, and what is wrong with one that cannot be used."""

from collections.abc import Iterable
from datetime import timedelta
from functools import lru_cache

import msgspec

from foresail.api.schedule_policy import Retention
from foresail.api.selectors import problem_of
from foresail.deletion import DEFAULT_GRACE, LONGEST_GRACE
from foresail.retention import Rules
from foresail.schedules.settings import Settings
from foresail.slots.policy_timing import PolicyRow, length_in_policy, rpo_of, timing_problem

MOST_BACKOFF = timedelta(hours=24)


def settings_under(policy: PolicyRow | None, settings: Settings) -> Settings:
    """Return the settings for a Schedule to which a policy applies: the zone of the policy, if it has one."""
    zone = policy.spec.time_zone if policy is not None else None
    if zone is None:
        return settings
    return msgspec.structs.replace(settings, zone=zone, zone_without_policy=settings.zone)


def group_of(policy: PolicyRow | None) -> str | None:
    """Return the group within which Backups are limited, in words that no other group has; None without a limit."""
    limit = policy.spec.concurrency if policy is not None else None
    if policy is None or limit is None:
        return None
    return f"group {limit.group}" if limit.group else f"SchedulePolicy {policy.name}"


def limit_in(group: str, policies: Iterable[PolicyRow]) -> tuple[int, str] | None:
    """Return the smallest max of the policies of a group, and which policy has it; None if no policy has the group."""
    limits = ((policy.spec.concurrency, policy.name) for policy in policies if group_of(policy) == group)
    return min(((limit.max, name) for limit, name in limits if limit is not None), default=None)


def problem_with(policy: PolicyRow) -> str | None:
    """Return what makes a policy unusable; None if nothing does."""
    spec = policy.spec
    problem = timing_problem(spec)
    if problem is not None:
        return problem
    problem = _retention_problem(spec.retention) if spec.retention is not None else None
    if problem is not None:
        return f"spec.retention{problem}"
    backoff = length_in_policy(spec.retry.backoff) if spec.retry is not None else timedelta()
    if spec.retry is not None and (backoff is None or not timedelta() <= backoff <= MOST_BACKOFF):
        return f"spec.retry.backoff {spec.retry.backoff!r} is not a duration of at most 24h, such as 5m"
    if spec.objective is not None and rpo_of(policy) is None:
        return f"spec.objective.rpo {spec.objective.rpo!r} is not a duration above zero, such as 25h"
    problem = problem_of(spec.selector)
    return f"spec.selector: {problem}" if problem else None


def _retention_problem(wire: Retention) -> str | None:
    if wire.keep_within and _within(wire) is None:
        return f".keepWithin {wire.keep_within!r} is not a duration above zero, such as 720h"
    if _grace(wire) is None:
        return f".gracePeriod {wire.grace_period!r} is not a duration of at most 720h, such as 24h"
    if _rules(wire, "UTC") is None:
        return " keeps nothing: set keepLast, hourly, daily, weekly, monthly, yearly or keepWithin"
    return None


def retention_rules(policy: PolicyRow | None, zone: str) -> Rules | None:
    """Return the rules by which Backups are kept; None if nothing is deleted."""
    wire = policy.spec.retention if policy is not None else None
    return _rules(wire, zone) if wire is not None else None


@lru_cache(1_000)
def _rules(wire: Retention, zone: str) -> Rules | None:
    rules = Rules(
        last=wire.keep_last or 0,
        hourly=wire.hourly or 0,
        daily=wire.daily or 0,
        weekly=wire.weekly or 0,
        monthly=wire.monthly or 0,
        yearly=wire.yearly or 0,
        within=_within(wire),
        good=wire.keep_good,
        time_zone=zone,
    )
    return None if rules.is_empty else rules


def grace_of(policy: PolicyRow | None) -> timedelta:
    """Return how long a Backup that no rule keeps stays before it is deleted."""
    wire = policy.spec.retention if policy is not None else None
    length = _grace(wire) if wire is not None else None
    return DEFAULT_GRACE if length is None else length


def _grace(wire: Retention) -> timedelta | None:
    length = length_in_policy(wire.grace_period)
    return length if length is not None and timedelta() <= length <= LONGEST_GRACE else None


def _within(wire: Retention) -> timedelta | None:
    length = length_in_policy(wire.keep_within) if wire.keep_within else None
    return length if length is not None and length > timedelta() else None
