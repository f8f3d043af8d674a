"""RestoreCheck: which backups to restore into a sandbox, when, and the result."""

import re
from collections.abc import Mapping
from datetime import datetime
from typing import Annotated, Literal

import msgspec

from foresail.api.marks import CHECK_LABEL
from foresail.api.metadata import SpecMetadata
from foresail.api.policy import GROUP
from foresail.api.requests import Conditions
from foresail.api.specs import Duration, LongText, Names, Selector, Text, Wire
from foresail.plan import Kind

RESTORE_CHECK = Kind(GROUP, "v1alpha1", "restorechecks", "RestoreCheck")

SANDBOX_PREFIX = "foresail-check-"
"""The names of sandboxes begin with it; the chart reserves it."""

SANDBOX_NAME = re.compile(rf"{SANDBOX_PREFIX}[0-9a-f]{{10}}-[0-9a-f]{{6}}")
"""The prefix, the run, and a digest of the namespace in the backup."""


def is_sandbox(name: str, labels: Mapping[str, str]) -> bool:
    """Whether a namespace is the sandbox of a RestoreCheck."""
    return CHECK_LABEL in labels and SANDBOX_NAME.fullmatch(name) is not None


MOST_NAMESPACES = 250
"""Of one backup: each takes a sandbox."""

MOST_OBJECTS = 20_000
"""Of one backup: all of them exist a second time while the check runs."""

MOST_DATA_NAMESPACES = 10
"""Of one backup with depth Data: in each sandbox pods run."""

MOST_EVIDENCE = 100

MOST_IN_STATUS = 20
"""Problems; the evidence has more."""

_NEEDS_DATA = (
    "!(has(self.spec.assertion) || has(self.spec.allowUnfenced) || has(self.spec.storage))"
    " || (has(self.spec.depth) && self.spec.depth == 'Data')"
)
RULES = ((_NEEDS_DATA, "spec.assertion, spec.allowUnfenced and spec.storage need spec.depth: Data"),)
"""What the API server refuses."""

Result = Literal["Pass", "Fail"]
Depth = Literal["Objects", "Data"]
Fence = Literal["Enforced", "NotEnforced"]
"""Whether the network of a sandbox is closed, as a canary pod found out."""


def _described(text: str) -> msgspec.Meta:
    return msgspec.Meta(description=text)


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


class CheckedBackups(Wire, frozen=True):
    """Of which backups the newest good one is checked; tenants choose from those of their own namespace."""

    schedule: (
        Annotated[
            str,
            msgspec.Meta(
                min_length=1,
                max_length=253,
                description="A Schedule in Velero's namespace; absent if another field is set.",
            ),
        ]
        | None
    ) = None
    selector: Annotated[Selector, _described("Velero Backups, by their labels.")] | None = None
    non_admin_schedule: (
        Annotated[
            str,
            msgspec.Meta(
                min_length=1,
                max_length=253,
                description="In a tenant's namespace: a NonAdminSchedule of it; absent if another field is set.",
            ),
        ]
        | None
    ) = None
    non_admin_backups: (
        Annotated[
            Selector,
            _described("In a tenant's namespace: NonAdminBackups of it, by their labels; all if it is empty."),
        ]
        | None
    ) = None


class Assertion(Wire, frozen=True):
    """A command that runs once in a sandbox, after all pods are ready."""

    image: Annotated[str, msgspec.Meta(min_length=1, max_length=1024, description="The image of its container.")]
    command: Annotated[
        tuple[LongText, ...],
        msgspec.Meta(min_length=1, max_length=64, description="The command. Exit code 0 is a pass, others are a fail."),
    ]
    run_as_user: (
        Annotated[
            int,
            msgspec.Meta(ge=1, le=2_147_483_647, description="The ID of the user to run as; the image's if absent."),
        ]
        | None
    ) = None
    namespace: (
        Annotated[
            str,
            msgspec.Meta(
                min_length=1,
                max_length=63,
                description="The namespace of the backup in whose sandbox it runs; required if the backup has several.",
            ),
        ]
        | None
    ) = None


class RestoreCheckSpec(Wire, frozen=True):
    """Which backups, when, and how."""

    backups: Annotated[
        CheckedBackups,
        msgspec.Meta(
            extra_json_schema={
                "x-kubernetes-validations": [
                    {
                        "rule": "[has(self.schedule), has(self.selector), has(self.nonAdminSchedule),"
                        " has(self.nonAdminBackups)].filter(each, each).size() == 1",
                        "message": "set one field of spec.backups: schedule or selector, or in a tenant's namespace"
                        " nonAdminSchedule or nonAdminBackups",
                    }
                ]
            }
        ),
    ]
    depth: Annotated[
        Depth,
        _described(
            "Objects: all objects but pods and volumes, without starting anything. Data: also volumes from file-system"
            " backups, and pods, which start behind a fence."
        ),
    ] = "Objects"
    assertion: Annotated[Assertion, _described("With depth Data: a command that checks the data.")] | None = None
    allow_unfenced: Annotated[
        bool,
        _described(
            "With depth Data: if true, pods of the backup start even if the cluster's network does not enforce"
            " NetworkPolicies. They can then reach whatever other pods can."
        ),
    ] = False
    storage: Annotated[
        str,
        msgspec.Meta(
            pattern="^[1-9][0-9]{0,5}(Mi|Gi|Ti)$",
            max_length=8,
            description="With depth Data: how much storage the claims of one sandbox may request.",
        ),
    ] = "100Gi"
    schedule: (
        Annotated[
            str,
            msgspec.Meta(
                min_length=1,
                max_length=1024,
                description="When to check, as a cron expression in UTC; CRON_TZ=ZONE before it names another zone."
                " If absent, after each backup.",
            ),
        ]
        | None
    ) = None
    namespaces: (
        Annotated[Names, _described("Only these namespaces of the backup; if absent, all that it has objects of.")]
        | None
    ) = None
    custom_resources: (
        Annotated[
            Names,
            _described(
                "Custom resources to restore too, as plural.group; none if absent. Their operators and webhooks act on"
                " the restored objects."
            ),
        ]
        | None
    ) = None
    deadline: Annotated[Duration, _length("A check that takes longer has failed.", "1m", "24h")] = "1h"
    keep_failed: Annotated[Duration, _length("How long the sandbox of a failed check stays.", "0s", "168h")] = "0s"
    evidence: Annotated[
        int,
        msgspec.Meta(ge=1, le=MOST_EVIDENCE, description="Number of evidence ConfigMaps to keep, newest first."),
    ] = 10
    suspend: Annotated[bool, _described("If true, no check starts.")] = False


class CheckRun(Wire, frozen=True):
    """The check that is running."""

    id: str
    backup: str
    backup_uid: Annotated[str, _described("The UID of the Velero Backup.")]
    started: datetime
    depth: Annotated[Depth, _described("The depth when it started.")] = "Objects"
    fence: Annotated[Fence, _described("With depth Data: whether the canary found the sandbox closed.")] | None = None
    reached: Annotated[Names, _described("What the canary reached from the sandbox.")] = ()
    ready_seconds: (
        Annotated[int, _described("With depth Data: from the start of the restore until all pods were ready.")] | None
    ) = None


class CheckProblem(Wire, frozen=True):
    """Something that a check has found."""

    reason: str
    message: str


class CheckResult(Wire, frozen=True):
    """The result of a check."""

    id: str
    backup: str
    backup_uid: str
    started: datetime
    completed: datetime
    result: Result
    reason: Annotated[str, _described("A word for programs, such as Complete or ItemsRefused.")]
    message: str
    namespaces: int = 0
    items_expected: Annotated[int, _described("Objects of the backup that the sandbox must take.")] = 0
    items_found: Annotated[int, _described("Those that were created in it.")] = 0
    items_not_checked: Annotated[
        int, _described("Objects left out: pods, volumes, cluster-scoped objects and unlisted custom resources.")
    ] = 0
    restore_seconds: Annotated[int, _described("How long Velero took for the restore.")] | None = None
    fence: Annotated[Fence, _described("With depth Data: whether the canary found the sandbox closed.")] | None = None
    reached: Annotated[Names, _described("What the canary reached from the sandbox.")] = ()
    pods_ready: Annotated[int, _described("With depth Data: pods that became ready in the sandboxes.")] | None = None
    ready_seconds: (
        Annotated[int, _described("With depth Data: from the start of the restore until all pods were ready.")] | None
    ) = None
    assertion_exit_code: Annotated[int, _described("The exit code of the assertion.")] | None = None
    evidence: Annotated[Text, _described("The ConfigMap with the record of this check.")] = ""
    kept_until: Annotated[datetime, _described("Until when its sandbox stays.")] | None = None
    problems: Annotated[
        tuple[CheckProblem, ...],
        msgspec.Meta(max_length=MOST_IN_STATUS, description="The first problems; the evidence has more."),
    ] = ()


class RestoreCheckStatus(Wire, frozen=True):
    """The running check, the last result and the next run."""

    observed_generation: int = 0
    run: CheckRun | None = None
    last: CheckResult | None = None
    last_passed: datetime | None = None
    waiting_since: (
        Annotated[
            datetime,
            _described("When the first backup since the last pass completed, for a check after each backup."),
        ]
        | None
    ) = None
    next_run: datetime | None = None
    handled_request: Annotated[str, _described("The last value of foresail.dev/check-now that was handled.")] = ""
    conditions: Conditions = ()


class RestoreCheck(Wire, frozen=True):
    """Restores backups into a fenced sandbox and reports whether this cluster takes every object."""

    metadata: SpecMetadata
    spec: RestoreCheckSpec
    status: RestoreCheckStatus = RestoreCheckStatus()
