"""ProtectionClass and Protection: how precious namespaces are, and for each of them what protects it now.

A namespace names its class in the label `foresail.dev/protection`. The operator keeps Velero Schedules for each class,
every one of which takes a group of namespaces, and writes one Protection per namespace.
"""

from datetime import datetime
from typing import Annotated

import msgspec

from foresail.api.marks import EXEMPT
from foresail.api.metadata import Metadata, SpecMetadata
from foresail.api.policy import GROUP
from foresail.api.requests import Conditions
from foresail.api.specs import BackupSpec, Names, Text, Wire
from foresail.plan import Kind

PROTECTION_CLASS = Kind(GROUP, "v1alpha1", "protectionclasses", "ProtectionClass", namespaced=False)
PROTECTION = Kind(GROUP, "v1alpha1", "protections", "Protection")
PROTECTION_NAME = "protection"
"""The name of the one Protection of a namespace."""

LONGEST_CLASS = 50
"""Characters of the name of a class: with a number behind it, it is the name of a Schedule, and so a label's value."""

MOST_TOGETHER = 100
"""Namespaces in one backup: their UIDs are an annotation of it."""

MOST_POINTS = 7
NOT_IN_TEMPLATE = ("includedNamespaces", "excludedNamespaces", "metadata", "hooks")
"""Fields of a BackupSpec that a class has not: the operator writes namespaces, and hooks are annotations of pods."""

CLASS_RULES = (
    (
        f"self.metadata.name.size() <= {LONGEST_CLASS} && self.metadata.name != '{EXEMPT}'",
        f"a class has a name of at most {LONGEST_CLASS} characters, which is not {EXEMPT}",
    ),
)
"""What the API server refuses."""


def _described(text: str) -> msgspec.Meta:
    return msgspec.Meta(description=text)


class ClassRestores(Wire, frozen=True):
    """Who may restore from the backups of the class."""

    by_tenants: Annotated[
        bool,
        _described(
            "Whether a NonAdminRestore may name a backup of the class in spec.fromProtection. It restores its own"
            " namespace only, with the rights of its requester, and without pods."
        ),
    ] = False


class ProtectionClassSpec(Wire, frozen=True):
    """When and how the namespaces of the class are backed up."""

    schedule: Annotated[
        str,
        msgspec.Meta(min_length=1, max_length=256, description="When its backups run, as a cron expression."),
    ]
    template: Annotated[
        BackupSpec,
        msgspec.Meta(
            description="A BackupSpec without namespaces, which the operator writes, and without metadata and hooks.",
            extra_json_schema={
                "x-kubernetes-validations": [
                    {
                        "rule": " && ".join(f"!has(self.{field})" for field in NOT_IN_TEMPLATE),
                        "message": "leave out namespaces, which labels choose, metadata, and hooks, which pods"
                        " have as annotations",
                    }
                ]
            },
        ),
    ] = BackupSpec()
    schedule_policy: (
        Annotated[
            str,
            msgspec.Meta(
                min_length=1,
                max_length=63,
                description="The SchedulePolicy of its Schedules, whatever that selects; if absent, the one that"
                " selects them.",
            ),
        ]
        | None
    ) = None
    namespaces_per_backup: Annotated[
        int,
        msgspec.Meta(
            ge=1,
            le=MOST_TOGETHER,
            description="How many namespaces share a backup; 1: each has its own. A smaller number holds for new"
            " groups only.",
        ),
    ] = 20
    default: Annotated[
        bool,
        _described("Whether it is the class of namespaces that name none; of several, the first by name is."),
    ] = False
    restore: ClassRestores = ClassRestores()


class ProtectionClassStatus(Wire, frozen=True):
    """Who uses the class, and whether its backups run."""

    namespaces: Annotated[int, _described("Namespaces of the class; while there are any, it cannot be deleted.")] = 0
    schedules: Annotated[int, _described("Schedules that the operator keeps for it.")] = 0
    conditions: Conditions = ()


class ProtectionClass(Wire, frozen=True):
    """Says when and how namespaces are backed up that name it in a label."""

    metadata: SpecMetadata
    spec: ProtectionClassSpec
    status: ProtectionClassStatus = ProtectionClassStatus()


class PointInTime(Wire, frozen=True):
    """A backup of the namespace that can be restored."""

    backup: Annotated[Text, _described("The Velero Backup.")]
    started: Annotated[datetime, _described("When it was taken.")]
    good: Annotated[bool, _described("Whether it is complete and has not lost most of its objects.")] = True


class NotCovered(Wire, frozen=True):
    """Something that is not protected as asked, and why."""

    reason: Annotated[str, _described("A word for programs, such as UnknownClass.")]
    message: Annotated[str, _described("What is wrong, and what to do.")]


class ProtectionStatus(Wire, frozen=True):
    """What protects the namespace now."""

    protection_class: Annotated[str, _described("The ProtectionClass that protects it; empty if none does.")] = (
        msgspec.field(name="class", default="")
    )
    schedules: Annotated[
        Names, _described("The Velero Schedules that take it: while it changes its class, those of both.")
    ] = ()
    next_run: (
        Annotated[datetime, _described("When the next backup is due; in the past while one runs or is held.")] | None
    ) = None
    newest_good: Annotated[PointInTime, _described("The newest good backup.")] | None = None
    points: Annotated[
        tuple[PointInTime, ...],
        msgspec.Meta(max_length=MOST_POINTS, description="The last backups that can be restored, newest first."),
    ] = ()
    exempt_until: Annotated[datetime, _described("Until when it is exempt.")] | None = None
    not_covered: Annotated[tuple[NotCovered, ...], _described("What is not protected as asked; none if empty.")] = ()
    conditions: Conditions = ()


class Protection(Wire, frozen=True):
    """What protects a namespace: class, Schedule, next run, newest good backup, and gaps. The operator writes it."""

    metadata: Metadata
    status: ProtectionStatus = ProtectionStatus()
