"""Primer: which CronJobs find their nodes warm, how long before each fire, and what came of it."""

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
"""Whole minutes, for a CronJob fires at whole minutes."""

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


class Asked(Wire, frozen=True):
    """What a placeholder asks for, instead of what the CronJob's pods ask for."""

    requests: Annotated[dict[str, Quantity], _described("By resource, such as cpu: 500m.")]


class Template(Wire, frozen=True):
    """What to hold if the CronJob's own pods do not request it."""

    resources: Asked | None = None
    replicas: Annotated[int, msgspec.Meta(ge=1, le=100, description="How many pods a run has at once.")] | None = None


class PrimerSpec(Wire, frozen=True):
    """For whom, how long before, and how."""

    warm_up: WarmUp
    cron_job: (
        Annotated[str, msgspec.Meta(min_length=1, max_length=52, description="The name of a CronJob here.")] | None
    ) = None
    selector: Annotated[Selector, _described("CronJobs of this namespace, by their labels.")] | None = None
    method: Annotated[Method, _described("How capacity is held; Auto if absent.")] | None = None
    template: Template | None = None
    release_after: (
        Annotated[Duration, _described("Maximum time to hold capacity after the job is due; 5m if absent.")] | None
    ) = None
    suspend: Annotated[bool, _described("If true, no capacity is held.")] | None = None
    allow_standing: (
        Annotated[bool, _described("If true, capacity may be held for more than half of the time.")] | None
    ) = None


class Expression(Wire, frozen=True):
    """A schedule, and the zone in which it is read."""

    schedule: str
    time_zone: str


class StartDelay(Wire, frozen=True):
    """How long a run waited from its fire until its first pod ran."""

    fire: datetime
    seconds: int
    warm: Annotated[bool, _described("Whether the pod ran where capacity was held for it.")]
    note: Annotated[str, _described("Why it was not warm, if something was held.")] | None = None


class Warming(Wire, frozen=True):
    """What is held, or was held last."""

    fire: datetime
    made: Annotated[int, _described("How many placeholders there were at once.")]
    attempt: Annotated[int, _described("How often they were made; more than 1 if some were lost.")] = 1
    nodes: Annotated[tuple[str, ...], _described("Where they were.")] = ()
    since: datetime | None = None
    provisioned: Annotated[int, _described("Seconds until all of them had a node.")] | None = None
    lost: Annotated[str, _described("Why one was lost: Preempted, Disrupted, NeverScheduled or Taken.")] | None = None
    buffer: Annotated[str, _described("The CapacityBuffer by which it is held, if by one.")] | None = None
    new_nodes: Annotated[bool, _described("Whether the autoscaler needed new nodes for that buffer.")] | None = None


class Primed(Wire, frozen=True):
    """One CronJob, as it stands."""

    name: str
    uid: str
    next_fire: datetime | None = None
    next_warm_up: datetime | None = None
    shifted: Annotated[tuple[Expression, ...], _described("When its primer CronJobs fire.")] = ()
    exact: Annotated[bool, _described("Whether each warm-up is at a fire minus the warm-up, and no other.")] = True
    inexact_because: str | None = None
    inexact_dates: Annotated[tuple[str, ...], _described("The first dates on which it is not exact.")] = ()
    duty_cycle_percent: Annotated[int, _described("Of the time in which capacity is held.")] = 0
    reason: Annotated[str, _described("Why no capacity is held for its next fire.")] | None = None
    message: str | None = None
    method: Annotated[str, _described("How capacity is held: what Auto has chosen.")] | None = None
    method_because: Annotated[str, _described("Why Auto has not chosen CapacityBuffer.")] | None = None
    buffer_unanswered: (
        Annotated[datetime, _described("When no autoscaler had answered a CapacityBuffer in time.")] | None
    ) = None
    buffer_refused: (
        Annotated[datetime, _described("When the autoscaler or the API server refused its CapacityBuffer.")] | None
    ) = None
    early: (
        Annotated[str, _described("Why held capacity is released 2 s before the fire, not when the run starts.")] | None
    ) = None
    warming: Warming | None = None
    start_delays: Annotated[tuple[StartDelay, ...], _described("The last ten.")] = ()


class PrimerStatus(Wire, frozen=True):
    """How things stand."""

    observed_generation: int = 0
    matched: Annotated[int, _described("How many CronJobs are primed.")] = 0
    warm_up: Annotated[str, _described("As it is understood, such as 10m.")] | None = None
    next_fire: datetime | None = None
    next_warm_up: datetime | None = None
    cron_jobs: tuple[Primed, ...] = ()
    conditions: Conditions | None = None


class PrimerMetadata(Wire, frozen=True):
    """Who a Primer is."""

    name: str
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""
    generation: int = 0
    creation_timestamp: datetime | None = None
    deletion_timestamp: datetime | None = None


class Primer(Wire, frozen=True):
    """A Primer."""

    metadata: PrimerMetadata
    spec: PrimerSpec
    status: PrimerStatus | None = None
