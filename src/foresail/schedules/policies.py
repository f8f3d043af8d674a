"""Which SchedulePolicy applies to a Schedule, and what is wrong with one that cannot be used."""

from collections.abc import Iterable, Mapping
from datetime import timedelta
from functools import lru_cache

import msgspec

from foresail.api.schedule_policy import (
    Retention,
    SchedulePolicy,
    SchedulePolicySpec,
    ScheduleSelector,
    ScheduleWindow,
    ScheduleWindows,
)
from foresail.api.selectors import problem_of, selects
from foresail.cron import CalendarSchedule, Dialect
from foresail.cron.duration import length_of
from foresail.cron.tz.zone_name import is_zone
from foresail.plan import Key, Keyed
from foresail.retention import Rules
from foresail.schedules.settings import Settings
from foresail.slots.expression import Unusable, read_expression
from foresail.slots.interval import stable_delay
from foresail.slots.timing import Timing
from foresail.slots.windows import MINUTE, Window, Windows

_WINDOW_DIALECT = Dialect.ROBFIG  # of windows, whichever Velero is installed
_LONGEST_SPREAD = timedelta(hours=24)

MOST_BACKOFF = timedelta(hours=24)


class PolicyRow(Keyed, frozen=True):
    """A SchedulePolicy, as decisions see it."""

    spec: SchedulePolicySpec

    @property
    def name(self) -> str:
        """Its name; it has no namespace."""
        return self.key.name


def policy_row(wire: SchedulePolicy) -> PolicyRow:
    """Return what is kept of a policy."""
    return PolicyRow(Key("", wire.metadata.name), wire.spec)


def policy_for(name: str, labels: Mapping[str, str], policies: Iterable[PolicyRow]) -> PolicyRow | None:
    """Return the policy that applies to a Schedule: the highest priority, of equals the first by name."""
    matching = (each for each in policies if reaches(each.spec.selector, name, labels))
    return min(matching, key=lambda each: (-each.spec.priority, each.name), default=None)


def reaches(selector: ScheduleSelector, name: str, labels: Mapping[str, str]) -> bool:
    """Whether a selector selects a Schedule of this name and these labels."""
    return (selector.names is None or name in selector.names) and selects(selector, labels)


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
    limits = ((each.spec.concurrency, each.name) for each in policies if group_of(each) == group)
    return min(((limit.max, name) for limit, name in limits if limit is not None), default=None)


def rpo_of(policy: PolicyRow | None) -> timedelta | None:
    """Return the age of the newest good Backup that is still acceptable; None without an objective."""
    wire = policy.spec.objective if policy is not None else None
    length = length_of(wire.rpo) if wire is not None else None
    return length if length is not None and length > timedelta() else None


def problem_with(policy: PolicyRow) -> str | None:
    """Return what makes a policy unusable; None if nothing does."""
    spec = policy.spec
    if spec.time_zone is not None and not is_zone(spec.time_zone):
        return f"spec.timeZone {spec.time_zone!r} is not a time zone of the IANA database, such as Europe/Berlin"
    problem = _timing_problem(spec)
    if problem is not None:
        return problem
    if spec.retention is not None and spec.retention.keep_within and _within(spec.retention) is None:
        return f"spec.retention.keepWithin {spec.retention.keep_within!r} is not a duration above zero, such as 720h"
    backoff = length_of(spec.retry.backoff) if spec.retry is not None else timedelta()
    if spec.retry is not None and (backoff is None or not timedelta() <= backoff <= MOST_BACKOFF):
        return f"spec.retry.backoff {spec.retry.backoff!r} is not a duration of at most 24h, such as 5m"
    if spec.objective is not None and rpo_of(policy) is None:
        return f"spec.objective.rpo {spec.objective.rpo!r} is not a duration above zero, such as 25h"
    problem = problem_of(spec.selector)
    return f"spec.selector: {problem}" if problem else None


def timing_under(policy: PolicyRow | None, schedule: Key, zone: str) -> Timing | None:
    """Return what a policy says about the times of a Schedule; None if it says nothing, or cannot be used."""
    spec = policy.spec if policy is not None else None
    if spec is None or (spec.spread is None and spec.windows is None and spec.starting_deadline is None):
        return None
    if _timing_problem(spec) is not None:
        return None
    within = _positive(spec.spread.within) if spec.spread is not None else None
    windows = _windows(spec.windows, zone) if spec.windows is not None else None
    return Timing(
        offset=stable_delay(str(schedule), within) if within is not None else timedelta(),
        windows=windows if isinstance(windows, Windows) else None,
        deadline=_positive(spec.starting_deadline) if spec.starting_deadline is not None else None,
    )


def _timing_problem(spec: SchedulePolicySpec) -> str | None:
    """Return what makes spread, windows or startingDeadline unusable."""
    if spec.spread is not None:
        within = _positive(spec.spread.within)
        if within is None or within > _LONGEST_SPREAD:
            return f"spec.spread.within {spec.spread.within!r} is not a duration from 1s to 24h, such as 2h"
    deadline = spec.starting_deadline
    if deadline is not None and _positive(deadline) is None:
        return f"spec.startingDeadline {deadline!r} is not a duration above zero, such as 4h"
    windows = _windows(spec.windows, spec.time_zone or "UTC") if spec.windows is not None else None
    return windows if isinstance(windows, str) else None


@lru_cache(1_000)
def _windows(wire: ScheduleWindows, zone: str) -> Windows | str:
    """Return the windows of a policy, or what is wrong with them."""
    parts: dict[str, tuple[Window, ...]] = {}
    for field, windows in (("allowed", wire.allowed or ()), ("excluded", wire.excluded or ())):
        found = []
        for number, each in enumerate(windows):
            window = _window(each, zone)
            if isinstance(window, str):
                return f"spec.windows.{field}[{number}]: {window}"
            found.append(window)
        parts[field] = tuple(found)
    return Windows(parts["allowed"], parts["excluded"], skips=wire.outside == "Skip")


def _window(wire: ScheduleWindow, zone: str) -> Window | str:
    length, zone = _positive(wire.duration), wire.time_zone or zone
    if length is None:
        return f"duration {wire.duration!r} is not a duration above zero, such as 8h"
    if length % MINUTE:
        return f"duration {wire.duration!r} is not a whole number of minutes, such as 90m"
    if not is_zone(zone):
        return f"timeZone {zone!r} is not a time zone of the IANA database, such as Europe/Berlin"
    cron = read_expression(wire.schedule, zone, _WINDOW_DIALECT)
    if isinstance(cron, Unusable):
        return cron.message.rstrip(".").replace("spec.schedule", "schedule")
    if not isinstance(cron, CalendarSchedule):
        return f"schedule {wire.schedule!r} has no fixed times; use five fields, such as '0 22 * * *'"
    return Window(cron, length)


def _positive(text: str) -> timedelta | None:
    """Return the length of a duration of at least a second, in whole seconds."""
    length = length_of(text)
    seconds = length // timedelta(seconds=1) if length is not None else 0
    return timedelta(seconds=seconds) if seconds > 0 else None


def retention_rules(policy: PolicyRow | None, zone: str) -> Rules | None:
    """Return the rules by which Backups are kept; None if nothing is deleted."""
    wire = policy.spec.retention if policy is not None else None
    if wire is None:
        return None
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


def _within(wire: Retention) -> timedelta | None:
    length = length_of(wire.keep_within) if wire.keep_within else None
    return length if length is not None and length > timedelta() else None
