"""Which SchedulePolicy applies to a Schedule, and what it says about times: zone, spread, windows and a deadline."""

from collections.abc import Hashable, Iterable, Iterator, Mapping
from datetime import datetime, timedelta
from functools import lru_cache

from foresail.api.instants import stamp, whole
from foresail.api.marks import SCHEDULE_POLICY_LABEL
from foresail.api.schedule_policy import SchedulePolicy, SchedulePolicySpec, ScheduleWindow, ScheduleWindows
from foresail.api.selectors import precedence, selects
from foresail.cron import CalendarSchedule, Dialect
from foresail.cron.duration import length_of
from foresail.cron.zone_names import is_zone
from foresail.plan import Key, Keyed
from foresail.slots.expression import Unusable, read_expression
from foresail.slots.spread import stable_delay
from foresail.slots.starts import Timing
from foresail.slots.windows import AHEAD, MINUTE, Window, Windows

_WINDOW_DIALECT = Dialect.ROBFIG  # of windows, whichever Velero is installed
_LONGEST_SPREAD = timedelta(hours=24)
_LONGEST_WINDOW = timedelta(hours=744)
_LONGEST_DEADLINE = timedelta(hours=8760)


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
    """Return the policy that applies to a Schedule: the one that its label names, or of those that select it one."""
    matching = (policy for policy in policies if reaches(policy, name, labels))
    return min(matching, key=lambda policy: precedence(policy.spec.priority, policy.name), default=None)


def reaches(policy: PolicyRow, name: str, labels: Mapping[str, str]) -> bool:
    """Whether a policy may apply to a Schedule of this name and these labels."""
    named = labels.get(SCHEDULE_POLICY_LABEL)
    if named is not None:
        return named == policy.name
    selector = policy.spec.selector
    return (selector.names is None or name in selector.names) and selects(selector, labels)


def index_values(policy: PolicyRow) -> Iterator[Hashable]:
    """Yield the values under which an index has a policy; each Schedule to which it may apply has one of them.

    These are its own name in a label, and the names that it requires, or the values of one label, or else None.
    """
    selector = policy.spec.selector
    one_of = next((expression for expression in selector.match_expressions or () if expression.operator == "In"), None)
    yield SCHEDULE_POLICY_LABEL, policy.name
    if selector.names is not None:
        yield from selector.names
    elif selector.match_labels:
        yield next(iter(selector.match_labels.items()))
    elif one_of is not None:
        yield from ((one_of.key, value) for value in one_of.values or ())
    else:
        yield None


def lookup_values(name: str, labels: Mapping[str, str]) -> Iterator[Hashable]:
    """Yield the values under which an index has all policies that may apply to a Schedule."""
    yield name
    yield from labels.items()
    yield None


def timing_under(policy: PolicyRow | None, identity: str, zone: str) -> Timing | None:
    """Return what a policy says about the times of a Schedule; None if it says nothing, or cannot be used.

    The delay is derived from the identity alone.
    """
    spec = policy.spec if policy is not None else None
    if spec is None or (spec.spread is None and spec.windows is None and spec.starting_deadline is None):
        return None
    if timing_problem(spec) is not None:
        return None
    within = _positive(spec.spread.within) if spec.spread is not None else None
    windows = _windows(spec.windows, zone) if spec.windows is not None else None
    return Timing(
        offset=stable_delay(identity, within) if within is not None else timedelta(),
        windows=windows if isinstance(windows, Windows) else None,
        deadline=_positive(spec.starting_deadline) if spec.starting_deadline is not None else None,
    )


def closed_text(policy: PolicyRow | None, timing: Timing | None, now: datetime) -> str | None:
    """Return that runs may not start now, and when they may; None if they may."""
    if timing is None or policy is None:
        return None
    opening = timing.opens(whole(now))
    if opening == whole(now):
        return None
    when = f"the run starts at {stamp(opening)}" if opening is not None else "no opening follows; correct spec.windows"
    return f"it is outside the windows of SchedulePolicy {policy.name}; {when}."


def never_open_text(policy: PolicyRow | None, text: str) -> str:
    """Return that no slot of an expression is inside the windows."""
    name = policy.name if policy is not None else ""
    return f"no slot of {text!r} is inside the windows of SchedulePolicy {name} in the next {AHEAD.days} days."


def timing_problem(spec: SchedulePolicySpec) -> str | None:
    """Return what makes the zone, spread, windows or startingDeadline unusable."""
    if spec.time_zone is not None and not is_zone(spec.time_zone):
        return f"spec.timeZone {spec.time_zone!r} is not a time zone of the IANA database, such as Europe/Berlin"
    if spec.spread is not None:
        within = _positive(spec.spread.within)
        if within is None or within > _LONGEST_SPREAD:
            return f"spec.spread.within {spec.spread.within!r} is not a duration from 1s to 24h, such as 2h"
    deadline = spec.starting_deadline
    if deadline is not None and not MINUTE <= (_positive(deadline) or timedelta()) <= _LONGEST_DEADLINE:
        return f"spec.startingDeadline {deadline!r} is not a duration from 1m to 8760h, such as 4h"
    windows = _windows(spec.windows, spec.time_zone or "UTC") if spec.windows is not None else None
    return windows if isinstance(windows, str) else None


@lru_cache(1_000)
def _windows(wire: ScheduleWindows, zone: str) -> Windows | str:
    """Return the windows of a policy, or what is wrong with them."""
    if wire.allowed is None and wire.excluded is None:
        return "spec.windows has no window: set allowed or excluded, or leave windows out"
    parts: dict[str, tuple[Window, ...]] = {}
    for field, windows in (("allowed", wire.allowed or ()), ("excluded", wire.excluded or ())):
        parsed = []
        for number, written in enumerate(windows):
            window = _window(written, zone)
            if isinstance(window, str):
                return f"spec.windows.{field}[{number}]: {window}"
            parsed.append(window)
        parts[field] = tuple(parsed)
    return Windows(parts["allowed"], parts["excluded"], skips=wire.outside == "Skip")


def _window(wire: ScheduleWindow, zone: str) -> Window | str:
    length = _positive(wire.duration)
    zone = wire.time_zone or zone
    if length is None or length > _LONGEST_WINDOW:
        return f"duration {wire.duration!r} is not a duration from 1m to 744h, such as 8h"
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


def rpo_of(policy: PolicyRow | None) -> timedelta | None:
    """Return the age of the newest good Backup that is still acceptable; None without an objective."""
    wire = policy.spec.objective if policy is not None else None
    length = length_in_policy(wire.rpo) if wire is not None else None
    return length if length is not None and length > timedelta() else None


@lru_cache(1_000)
def length_in_policy(text: str) -> timedelta | None:
    """Return the length of a duration that administrators wrote; the texts of tenants are not worth remembering."""
    return length_of(text)


@lru_cache(1_000)
def _positive(text: str) -> timedelta | None:
    """Return the length of a duration of at least a second, in whole seconds."""
    length = length_of(text)
    seconds = length // timedelta(seconds=1) if length is not None else 0
    return timedelta(seconds=seconds) if seconds > 0 else None
