"""SchedulePolicy: what an administrator wants of Velero's Schedules beyond what a Schedule can say.

Of the policies that select a Schedule, the one with the highest `priority` applies, of equals the first by name.
Policies are never merged. A Schedule that no policy selects behaves as if the kind did not exist.
"""

from typing import Annotated, Literal

import msgspec

from foresail.api.policy import GROUP, PolicyMetadata
from foresail.api.specs import Duration, LabelSelector, Names, Wire
from foresail.plan import Kind

SCHEDULE_POLICY = Kind(GROUP, "v1alpha1", "schedulepolicies", "SchedulePolicy", namespaced=False)

MOST_KEPT = 10_000
MOST_ATTEMPTS = 10
MOST_WINDOWS = 8
MOST_CONCURRENT = 1_000


def _described(text: str) -> msgspec.Meta:
    return msgspec.Meta(description=text)


def _count(text: str) -> msgspec.Meta:
    return msgspec.Meta(ge=0, le=MOST_KEPT, description=text)


_COUNTS = ("keepLast", "hourly", "daily", "weekly", "monthly", "yearly")


def _is_positive(field: str) -> str:
    return f"(has(self.{field}) && self.{field} > 0)"


def _length(text: str, least: str, most: str) -> msgspec.Meta:
    return msgspec.Meta(
        description=text,
        extra_json_schema={
            "x-kubernetes-validations": [
                {
                    "rule": f"duration(self) >= duration('{least}') && duration(self) <= duration('{most}')",
                    "message": f"must be from {least} to {most}",
                }
            ]
        },
    )


def _zone(text: str) -> msgspec.Meta:
    return msgspec.Meta(
        min_length=1,
        max_length=64,
        description=text,
        extra_json_schema={
            "x-kubernetes-validations": [
                {
                    "rule": "timestamp('2026-01-01T00:00:00Z').getHours(self) >= 0",
                    "message": "not a time zone of the IANA database, such as Europe/Berlin",
                }
            ]
        },
    )


class ScheduleSelector(LabelSelector, frozen=True):
    """Which Schedules, by labels and by name: all conditions together. An empty selector selects every Schedule."""

    names: Annotated[Names, _described("Names of Schedules; if absent, any name.")] | None = None


class Retention(Wire, frozen=True):
    """Which Backups of a Schedule to keep; a Backup that no rule keeps is deleted, with its data.

    The rules count Completed Backups that this cluster made. Days, weeks, months and years are those of timeZone.
    """

    keep_last: Annotated[int, _count("The newest Backups; not applied if absent.")] | None = None
    hourly: (
        Annotated[int, _count("The newest Backup of each of the last hours that have one; not applied if absent.")]
        | None
    ) = None
    daily: (
        Annotated[int, _count("The newest Backup of each of the last days that have one; not applied if absent.")]
        | None
    ) = None
    weekly: (
        Annotated[int, _count("The newest Backup of each of the last ISO weeks that have one; not applied if absent.")]
        | None
    ) = None
    monthly: (
        Annotated[int, _count("The newest Backup of each of the last months that have one; not applied if absent.")]
        | None
    ) = None
    yearly: (
        Annotated[int, _count("The newest Backup of each of the last years that have one; not applied if absent.")]
        | None
    ) = None
    keep_within: (
        Annotated[Duration, _described("All Backups this long before the newest one; not applied if absent.")] | None
    ) = None
    keep_good: Annotated[
        int,
        msgspec.Meta(ge=1, le=MOST_KEPT, description="The newest good Backups, whatever the other rules say."),
    ] = 1
    grace_period: Annotated[
        Duration,
        _length("How long a Backup that no rule keeps stays, marked, before it is deleted.", "0s", "720h"),
    ] = "24h"


class Retry(Wire, frozen=True):
    """How often a failed run is repeated for the same slot, before the next slot."""

    attempts: Annotated[int, msgspec.Meta(ge=1, le=MOST_ATTEMPTS, description="Further attempts after a failed run.")]
    backoff: Annotated[Duration, _described("The pause after the first failure.")] = "5m"
    backoff_type: Annotated[
        Literal["Exponential", "Fixed"],
        _described("Exponential doubles the pause after each attempt; Fixed keeps it."),
    ] = "Exponential"
    on: Annotated[
        tuple[Literal["Failed", "PartiallyFailed", "FailedValidation"], ...],
        msgspec.Meta(min_length=1, max_length=3, description="The phases of a Backup after which it is repeated."),
    ] = ("Failed", "PartiallyFailed")


class Spread(Wire, frozen=True):
    """A delay of each Schedule, derived from its namespace and name, so that no other Schedule moves it."""

    within: Annotated[Duration, _length("The longest delay of a Schedule.", "1s", "24h")]


class ScheduleWindow(Wire, frozen=True):
    """A recurring window: it opens at each fire of the expression, and closes after the duration."""

    schedule: Annotated[
        str, msgspec.Meta(min_length=1, max_length=256, description="When it opens, as a cron expression of 5 fields.")
    ]
    duration: Annotated[Duration, _length("For how long it is open.", "1m", "744h")]
    time_zone: Annotated[str, _zone("The zone of the expression; if absent, that of the policy.")] | None = None


_WINDOW_LIST = msgspec.Meta(
    min_length=1, max_length=MOST_WINDOWS, extra_json_schema={"x-kubernetes-list-type": "atomic"}
)


class ScheduleWindows(Wire, frozen=True):
    """When runs may start: inside an allowed window, if there is one, and outside every excluded one."""

    allowed: Annotated[tuple[ScheduleWindow, ...], _WINDOW_LIST] | None = None
    excluded: Annotated[tuple[ScheduleWindow, ...], _WINDOW_LIST] | None = None
    outside: Annotated[
        Literal["Delay", "Skip"],
        _described("What becomes of a slot outside: Delay moves it to the next opening, Skip drops it."),
    ] = "Delay"


class Concurrency(Wire, frozen=True):
    """How many Backups of a group may be unfinished at once; the others wait in the order of their slots."""

    max: Annotated[
        int,
        msgspec.Meta(
            ge=1,
            le=MOST_CONCURRENT,
            description="Unfinished Backups of the group; if several policies share it, the smallest max applies.",
        ),
    ]
    group: (
        Annotated[
            str,
            msgspec.Meta(
                min_length=1,
                max_length=63,
                description="A name that several policies may share; if absent, the Schedules of this policy.",
            ),
        ]
        | None
    ) = None


class Objective(Wire, frozen=True):
    """What the backups of a Schedule must achieve; it changes no run, and is reported."""

    rpo: Annotated[Duration, _described("The age of the newest Completed Backup that is still acceptable.")]


class SchedulePolicySpec(Wire, frozen=True):
    """Which Schedules, and what applies to them."""

    selector: ScheduleSelector
    priority: Annotated[
        int,
        msgspec.Meta(
            ge=-1_000_000,
            le=1_000_000,
            description="Of the policies that select a Schedule, the one with the highest priority applies.",
        ),
    ] = 0
    time_zone: (
        Annotated[
            str,
            _zone(
                "The zone in which expressions and retention are read, such as Europe/Berlin."
                " A zone in the expression itself comes first; UTC if absent."
            ),
        ]
        | None
    ) = None
    spread: Spread | None = None
    windows: (
        Annotated[
            ScheduleWindows,
            msgspec.Meta(
                extra_json_schema={
                    "x-kubernetes-validations": [
                        {
                            "rule": "has(self.allowed) || has(self.excluded)",
                            "message": "no window: set allowed or excluded, or leave windows out",
                        }
                    ]
                }
            ),
        ]
        | None
    ) = None
    starting_deadline: (
        Annotated[
            Duration,
            _length(
                "A run that has not started this long after it could have is recorded as missed, not run later. If"
                " absent, runs start however late.",
                "1m",
                "8760h",
            ),
        ]
        | None
    ) = None
    retention: (
        Annotated[
            Retention,
            msgspec.Meta(
                extra_json_schema={
                    "x-kubernetes-validations": [
                        {
                            "rule": " || ".join((*map(_is_positive, _COUNTS), "has(self.keepWithin)")),
                            "message": "no rule keeps anything: set keepLast, hourly, daily, weekly, monthly, yearly or"
                            " keepWithin, or leave retention out",
                        }
                    ]
                }
            ),
        ]
        | None
    ) = None
    concurrency: (
        Annotated[Concurrency, _described("How many Backups may run at once; if absent, as many as are due.")] | None
    ) = None
    objective: Annotated[Objective, _described("What is reported if it is not met.")] | None = None
    retry: Annotated[Retry, _described("How often a failed run is repeated; if absent, never.")] | None = None


class SchedulePolicy(Wire, frozen=True):
    """Sets for some Schedules when their runs start, how often they are repeated, and which backups stay."""

    metadata: PolicyMetadata
    spec: SchedulePolicySpec
