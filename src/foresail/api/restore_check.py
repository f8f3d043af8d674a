"""RestoreCheck: which backups to restore into a sandbox, when, and the result."""

from datetime import datetime
from typing import Annotated, Literal

import msgspec

from foresail.api.policy import GROUP
from foresail.api.requests import Conditions
from foresail.api.specs import Duration, Names, Selector, Text, Wire
from foresail.plan import Kind

RESTORE_CHECK = Kind(GROUP, "v1alpha1", "restorechecks", "RestoreCheck")

MOST_NAMESPACES = 250
"""Of one backup: each takes a sandbox."""

MOST_EVIDENCE = 100

Result = Literal["Pass", "Fail"]


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
    """Of which backups the newest good one is checked: those of a Schedule, or by labels."""

    schedule: (
        Annotated[str, msgspec.Meta(min_length=1, max_length=253, description="A Schedule in Velero's namespace.")]
        | None
    ) = None
    selector: Annotated[Selector, _described("Velero Backups, by their labels.")] | None = None


class RestoreCheckSpec(Wire, frozen=True):
    """Which backups, when, and how."""

    backups: Annotated[
        CheckedBackups,
        msgspec.Meta(
            extra_json_schema={
                "x-kubernetes-validations": [
                    {
                        "rule": "has(self.schedule) != has(self.selector)",
                        "message": "name one Schedule in spec.backups.schedule, or select Backups by"
                        " spec.backups.selector: one of the two",
                    }
                ]
            }
        ),
    ]
    depth: Annotated[
        Literal["Objects"],
        _described("Objects: all objects but pods and volumes, without starting anything. Objects if absent."),
    ] = "Objects"
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
                "Custom resources to restore too, as plural.group. Their operators and webhooks act on the copies."
            ),
        ]
        | None
    ) = None
    deadline: Annotated[Duration, _length("A check that takes longer has failed; 1h if absent.", "1m", "24h")] = "1h"
    keep_failed: Annotated[
        Duration, _length("How long the sandbox of a failed check stays; 0s if absent.", "0s", "168h")
    ] = "0s"
    evidence: Annotated[
        int,
        msgspec.Meta(
            ge=1, le=MOST_EVIDENCE, description="Number of evidence ConfigMaps to keep, newest first; 10 if absent."
        ),
    ] = 10
    suspend: Annotated[bool, _described("If true, no check starts.")] = False


class CheckRun(Wire, frozen=True):
    """The check that is running."""

    id: str
    backup: str
    backup_uid: Annotated[str, _described("The UID of the Velero Backup.")]
    started: datetime


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
    evidence: Annotated[Text, _described("The ConfigMap with the record of this check.")] = ""
    kept_until: Annotated[datetime, _described("Until when its sandbox stays.")] | None = None


class RestoreCheckStatus(Wire, frozen=True):
    """The running check, the last result and the next run."""

    observed_generation: int = 0
    run: CheckRun | None = None
    last: CheckResult | None = None
    last_passed: datetime | None = None
    next_run: datetime | None = None
    handled_request: Annotated[str, _described("The last value of foresail.dev/check-now that was handled.")] = ""
    conditions: Conditions = ()


class RestoreCheck(Wire, frozen=True):
    """Restores backups into a fenced sandbox and reports whether this cluster takes every object."""

    spec: RestoreCheckSpec
    status: RestoreCheckStatus = RestoreCheckStatus()
