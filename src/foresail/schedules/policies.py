"""Which SchedulePolicy applies to a Schedule, and what is wrong with one that cannot be used."""

from collections.abc import Iterable, Mapping
from datetime import timedelta

import msgspec

from foresail.api.schedule_policy import Retention, SchedulePolicy, SchedulePolicySpec, ScheduleSelector
from foresail.api.selectors import problem_of, selects
from foresail.cron.duration import length_of
from foresail.cron.tz.zone_name import is_zone
from foresail.plan import Key, Keyed
from foresail.retention import Rules
from foresail.schedules.settings import Settings

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
    return settings if zone is None else msgspec.structs.replace(settings, zone=zone)


def problem_with(policy: PolicyRow) -> str | None:
    """Return what makes a policy unusable; None if nothing does."""
    spec = policy.spec
    if spec.time_zone is not None and not is_zone(spec.time_zone):
        return f"spec.timeZone {spec.time_zone!r} is not a time zone of the IANA database, such as Europe/Berlin"
    if spec.retention is not None and spec.retention.keep_within and _within(spec.retention) is None:
        return f"spec.retention.keepWithin {spec.retention.keep_within!r} is not a duration above zero, such as 720h"
    backoff = length_of(spec.retry.backoff) if spec.retry is not None else timedelta()
    if spec.retry is not None and (backoff is None or not timedelta() <= backoff <= MOST_BACKOFF):
        return f"spec.retry.backoff {spec.retry.backoff!r} is not a duration of at most 24h, such as 5m"
    problem = problem_of(spec.selector)
    return f"spec.selector: {problem}" if problem else None


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
