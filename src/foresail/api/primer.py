"""Primer: the CronJobs to warm nodes for, how long before each fire, and the result."""

from datetime import datetime
from typing import Annotated, Literal

import msgspec

from foresail.api.policy import GROUP
from foresail.api.requests import Conditions
from foresail.api.specs import Duration, Selector, Wire
from foresail.plan import Kind

PRIMER = Kind(GROUP, "v1alpha1", "primers", "Primer")

AUTO, PLACEHOLDER, BY_CRON_JOB, BY_BUFFER = "Auto", "Placeholder", "CronJob", "CapacityBuffer"
Method = Literal["Auto", "Placeholder", "CronJob", "CapacityBuffer"]

WARM_UP_PATTERN = "^([0-9]{1,3}h)?([0-9]{1,5}m)?$"
"""In whole minutes, because a CronJob fires at whole minutes."""

LONGEST_WARM_UP = 7 * 24 * 60
"""In minutes; an administrator may allow less."""


def _described(text: str) -> msgspec.Meta:
    return msgspec.Meta(description=text)


WarmUp = Annotated[
    int | str,
    msgspec.Meta(
        extra_json_schema={
            "x-kubernetes-int-or-string": True,
            "description": "Time before each fire at which nodes must be warm: a duration such as 10m, or minutes.",
            "x-kubernetes-validations": [
                {
                    "rule": f"type(self) == int ? self >= 1 && self <= {LONGEST_WARM_UP}"
                    f" : self.size() > 1 && self.matches('{WARM_UP_PATTERN}')"
                    f" && duration(self) >= duration('1m') && duration(self) <= duration('{LONGEST_WARM_UP}m')",
                    "message": "a warm-up is 1 minute to 7 days, in whole minutes: such as 10m, 1h30m, or 10",
                }
            ],
        }
    ),
]


Quantity = Annotated[int | str, msgspec.Meta(extra_json_schema={"x-kubernetes-int-or-string": True})]


class PlaceholderResources(Wire, frozen=True):
    """Requests of a placeholder, instead of those of the CronJob's pods."""

    requests: Annotated[dict[str, Quantity], _described("By resource, such as cpu: 500m.")]


class Template(Wire, frozen=True):
    """Capacity to hold, instead of what the CronJob's pods request."""

    resources: PlaceholderResources | None = None
    replicas: (
        Annotated[
            int,
            msgspec.Meta(ge=1, le=100, description="Number of pods that a run has at once; that of the Job if absent."),
        ]
        | None
    ) = None


class PrimerSpec(Wire, frozen=True):
    """The CronJobs, the warm-up and the method."""

    warm_up: WarmUp
    cron_job: (
        Annotated[
            str,
            msgspec.Meta(
                min_length=1,
                max_length=52,
                description="The name of a CronJob in this namespace; absent if there is a selector.",
            ),
        ]
        | None
    ) = None
    selector: Annotated[Selector, _described("CronJobs of this namespace, by their labels.")] | None = None
    method: Annotated[Method, _described("How capacity is held; Auto if absent.")] | None = None
    template: Template | None = None
    release_after: (
        Annotated[Duration, _described("Maximum time to hold capacity after the job is due; 5m if absent.")] | None
    ) = None
    suspend: Annotated[bool, _described("If true, no capacity is held; false if absent.")] | None = None
    allow_standing: (
        Annotated[bool, _described("If true, capacity may be held for more than half of the time; false if absent.")]
        | None
    ) = None


class Expression(Wire, frozen=True):
    """A schedule and its time zone."""

    schedule: str
    time_zone: str


class StartDelay(Wire, frozen=True):
    """The time from a fire until the first pod of the run was running."""

    fire: datetime
    seconds: int
    warm: Annotated[bool, _described("Whether the pod ran on the reserved capacity.")]
    note: Annotated[str, _described("Why the run was not warm although capacity was held.")] | None = None


class Warming(Wire, frozen=True):
    """The capacity that is held, or was held last."""

    fire: datetime
    made: Annotated[int, _described("Number of placeholders at once.")]
    attempt: Annotated[int, _described("Number of attempts; more than 1 if placeholders were lost.")] = 1
    nodes: Annotated[tuple[str, ...], _described("The nodes of the placeholders.")] = ()
    since: datetime | None = None
    provisioned: Annotated[int, _described("Seconds until all placeholders had a node.")] | None = None
    lost: (
        Annotated[str, _described("Why a placeholder was lost: Preempted, Disrupted, NeverScheduled or Taken.")] | None
    ) = None
    buffer: Annotated[str, _described("The CapacityBuffer that holds the capacity, if any.")] | None = None
    new_nodes: Annotated[bool, _described("Whether the autoscaler created nodes for that buffer.")] | None = None


class Primed(Wire, frozen=True):
    """The status of one CronJob."""

    name: str
    uid: str
    next_fire: datetime | None = None
    next_warm_up: datetime | None = None
    shifted: Annotated[tuple[Expression, ...], _described("The schedules of its primer CronJobs.")] = ()
    exact: Annotated[bool, _described("Whether each warm-up begins exactly one warm-up before a fire.")] = True
    inexact_because: str | None = None
    inexact_dates: Annotated[tuple[str, ...], _described("The first dates on which they are not exact.")] = ()
    duty_cycle_percent: Annotated[int, _described("Percentage of the time in which capacity is held.")] = 0
    reason: Annotated[str, _described("Why no capacity is held for its next fire.")] | None = None
    message: str | None = None
    method: Annotated[str, _described("The method in use, which Auto has chosen if set.")] | None = None
    method_because: Annotated[str, _described("Why Auto has not chosen CapacityBuffer.")] | None = None
    buffer_unanswered: (
        Annotated[datetime, _described("When a CapacityBuffer was last not answered in time.")] | None
    ) = None
    buffer_refused: (
        Annotated[datetime, _described("When the autoscaler or the API server refused its CapacityBuffer.")] | None
    ) = None
    early: (
        Annotated[str, _described("Why held capacity is released 2 s before the fire, not when the run starts.")] | None
    ) = None
    warming: Warming | None = None
    start_delays: Annotated[tuple[StartDelay, ...], _described("The last ten start delays.")] = ()


class PrimerStatus(Wire, frozen=True):
    """The status of a Primer."""

    observed_generation: int = 0
    matched: Annotated[int, _described("Number of primed CronJobs.")] = 0
    warm_up: Annotated[str, _described("The parsed warm-up, such as 10m.")] | None = None
    next_fire: datetime | None = None
    next_warm_up: datetime | None = None
    cron_jobs: tuple[Primed, ...] = ()
    conditions: Conditions | None = None


class PrimerMetadata(Wire, frozen=True):
    """The metadata of a Primer."""

    name: str
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""
    generation: int = 0
    creation_timestamp: datetime | None = None
    deletion_timestamp: datetime | None = None


class Primer(Wire, frozen=True):
    """Has nodes and images ready before the pods of CronJobs start."""

    metadata: PrimerMetadata
    spec: PrimerSpec
    status: PrimerStatus | None = None
