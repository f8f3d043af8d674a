"""Rollback: a namespace back to the state of a backup, in place, and a way back from that."""

from datetime import datetime
from typing import Annotated, Literal

import msgspec

from foresail.api.metadata import SpecMetadata, Write
from foresail.api.policy import GROUP
from foresail.api.requests import Conditions
from foresail.api.specs import Duration, Text, Wire
from foresail.plan import Kind

ROLLBACK = Kind(GROUP, "v1alpha1", "rollbacks", "Rollback")

LONGEST_NAME = 40
"""Characters of the name of a Rollback: the names of its backup and its restores begin with it."""

MOST_NAMES = 50
"""Objects of each group that a status names; of others it has the number."""

MOST_STOPPED = 100
"""Objects that one Rollback suspends: all are in its status, so that all are resumed."""

MOST_VOLUMES = 64
"""Volumes that one Rollback replaces."""

MOST_PRUNED = 200
"""Objects that one Rollback deletes: all are in its status before the first is deleted."""

MOST_ACCOUNTS = 100
"""ServiceAccounts that one Rollback restores over: all are in its status before the restore."""

_NOT_ASKED = "!has(oldSelf.spec.undo) || !oldSelf.spec.undo"
_HAS_NOT_BEGUN = "(has(oldSelf.status) && has(oldSelf.status.phase) && oldSelf.status.phase == 'Completed')"
RULES = (
    (
        f"self.metadata.name.size() <= {LONGEST_NAME}",
        f"a Rollback has a name of at most {LONGEST_NAME} characters",
    ),
    (
        "!has(self.spec.dryRun) || !self.spec.dryRun || !has(self.spec.undo) || !self.spec.undo",
        "a dry run changes nothing, so there is nothing to undo: leave out spec.undo",
    ),
    (
        f"{_NOT_ASKED} || (has(self.spec.undo) && self.spec.undo) || {_HAS_NOT_BEGUN}",
        "an undo that has begun cannot be taken back: create another Rollback",
    ),
)
"""What the API server refuses of a new or changed Rollback."""

_UNCHANGED = ("to", "only", "volumes", "prune", "planDigest", "dryRun", "keepOldVolumes")
_SPEC_RULES = [
    {
        "rule": " && ".join(
            f"has(self.{field}) == has(oldSelf.{field}) && (!has(self.{field}) || self.{field} == oldSelf.{field})"
            if field != "to"
            else "self.to == oldSelf.to"
            for field in _UNCHANGED
        ),
        "message": "a Rollback cannot change, except for spec.undo: create another one",
    },
]

RollbackVolumes = Literal["None", "All", "Data"]
RollbackPhase = Literal[
    "New",
    "Planning",
    "Planned",
    "SafetyBackup",
    "Suspending",
    "Stopping",
    "Replacing",
    "Restoring",
    "Pruning",
    "Comparing",
    "Resuming",
    "Completed",
    "Undoing",
    "Undone",
    "Refused",
]
ENDED: frozenset[str] = frozenset({"Planned", "Completed", "Undone", "Refused"})
"""The phases in which nothing is changed any more; Completed is left if an undo is asked for."""


def _described(text: str) -> msgspec.Meta:
    return msgspec.Meta(description=text)


Resource = Annotated[str, msgspec.Meta(pattern="^[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?$", max_length=253)]


class RollbackSpec(Wire, frozen=True):
    """To which backup, what of it, and whether to undo it."""

    to: Annotated[
        str,
        msgspec.Meta(
            min_length=1,
            max_length=253,
            pattern="^[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?$",
            description="The NonAdminBackup of this namespace whose state comes back. It must be Completed.",
        ),
    ]
    only: (
        Annotated[
            tuple[Resource, ...],
            msgspec.Meta(
                min_length=1,
                max_length=64,
                description="Only these kinds, as plural.group such as deployments.apps, or the plural for the core"
                " group; if absent, all that the requester may restore.",
            ),
        ]
        | None
    ) = None
    volumes: Annotated[
        RollbackVolumes,
        _described(
            "Which volumes come back with their data. None: no claim, volume or data is changed. All: each claim whose"
            " moved snapshot the backup has gets a new volume; what uses it is stopped meanwhile, and the old volume is"
            " kept. Data: the same, and no other object is changed."
        ),
    ] = "None"
    prune: Annotated[
        bool,
        _described(
            "Whether objects that are not in the backup are deleted, of the kinds that a Rollback lists. The safety"
            " backup has them. Secrets, claims, and objects that other objects own always stay."
        ),
    ] = False
    plan_digest: (
        Annotated[
            str,
            msgspec.Meta(
                pattern="^[0-9a-f]{64}$",
                description="status.plan.digest of a dry run: if the plan is another one by now, nothing is changed.",
            ),
        ]
        | None
    ) = None
    dry_run: Annotated[bool, _described("If true, the plan is made and shown, and nothing is changed.")] = False
    keep_old_volumes: (
        Annotated[
            Duration,
            _described(
                "How long after its end the Rollback can be undone. If absent, or longer than the policy allows, what"
                " the policy allows."
            ),
        ]
        | None
    ) = None
    undo: Annotated[
        bool,
        _described("Undoes the Rollback: at once while it runs, and within the kept time after its end."),
    ] = False


class NamedGroup(Wire, frozen=True):
    """Objects that are treated alike: how many, and the first of them as plural.group/name."""

    count: Annotated[int, _described("How many there are.")] = 0
    names: Annotated[
        tuple[Text, ...], msgspec.Meta(max_length=MOST_NAMES, description="The first of them, by their names.")
    ] = ()


class RollbackPlan(Wire, frozen=True):
    """What the Rollback does, by the names of objects in the backup and in the namespace."""

    digest: Annotated[
        str, _described("SHA-256 of all that the plan has, also of the names that are not shown here.")
    ] = ""
    created: Annotated[NamedGroup, _described("In the backup, and not in the namespace.")] = NamedGroup()
    existing: Annotated[
        NamedGroup, _described("In both: Velero changes back those that differ. foresail plan shows their fields.")
    ] = NamedGroup()
    not_compared: Annotated[
        NamedGroup, _described("Kinds that come back and whose objects the operator does not list, such as secrets.")
    ] = NamedGroup()
    extra: Annotated[NamedGroup, _described("In the namespace, and not in the backup; deleted only with prune.")] = (
        NamedGroup()
    )
    left_out: Annotated[
        NamedGroup,
        _described("Kinds of the backup that no Rollback changes, such as pods and jobs, and those not in spec.only."),
    ] = NamedGroup()
    suspended: Annotated[NamedGroup, _described("What is suspended meanwhile, because it would change objects.")] = (
        NamedGroup()
    )
    replaced: Annotated[
        NamedGroup, _described("Claims whose volumes are replaced by those of the backup; the old ones are kept.")
    ] = NamedGroup()
    stopped: Annotated[NamedGroup, _described("What uses these claims, and is stopped meanwhile.")] = NamedGroup()
    in_the_way: Annotated[
        tuple[Text, ...],
        msgspec.Meta(max_length=MOST_NAMES, description="Why the Rollback cannot begin, and what to do; empty if not."),
    ] = ()


class RollbackStep(Wire, frozen=True):
    """One step of a Rollback."""

    name: Annotated[str, _described("Such as SafetyBackup or Restore.")]
    started: Annotated[datetime, _described("When it began.")]
    finished: Annotated[datetime, _described("When it ended; absent while it runs.")] | None = None
    message: Annotated[str, msgspec.Meta(max_length=1024, description="What it did, or what it waits for.")] = ""


class Stopped(Wire, frozen=True):
    """Something that the Rollback suspends; recorded before it is changed, so that it is always resumed."""

    kind: Annotated[Text, _described("As plural.group, such as kustomizations.kustomize.toolkit.fluxcd.io.")]
    name: Annotated[Text, _described("Its name, in this namespace.")]
    uid: Annotated[Text, _described("Its UID: another object of that name is left alone.")]
    former: Annotated[
        str, msgspec.Meta(max_length=256, description="The value of the changed field before; empty if it was absent.")
    ] = ""
    resumed: Annotated[bool, _described("Whether it is as it was before, or somebody else has changed it since.")] = (
        False
    )


class Pruned(Wire, frozen=True):
    """An object that the Rollback deletes; the safety backup has it."""

    kind: Annotated[Text, _described("As plural.group, such as configmaps.")]
    name: Annotated[Text, _described("Its name, in this namespace.")]
    uid: Annotated[Text, _described("Its UID: another object of that name is left alone.")]


class Account(Wire, frozen=True):
    """A ServiceAccount before the restore, by names and keys: Velero adds to it, and an undo takes that away."""

    name: Annotated[Text, _described("Its name.")]
    uid: Annotated[Text, _described("Its UID: another object of that name is left alone.")]
    pull_secrets: Annotated[tuple[str, ...], _described("The names in imagePullSecrets.")] = ()
    secrets: Annotated[tuple[str, ...], _described("The names in secrets.")] = ()
    labels: Annotated[tuple[str, ...], _described("The keys of its labels.")] = ()
    annotations: Annotated[tuple[str, ...], _described("The keys of its annotations.")] = ()


class KeptVolume(Wire, frozen=True):
    """An old volume that a Rollback keeps; recorded before its claim is deleted, and marked on the volume itself."""

    claim: Annotated[Text, _described("The claim that had it.")]
    volume: Annotated[Text, _described("The PersistentVolume.")]
    claim_uid: Annotated[Text, _described("The UID of the claim that had it.")] = ""
    volume_uid: Annotated[Text, _described("Its UID: another volume of that name is left alone.")] = ""
    reclaim_policy: Annotated[str, _described("Its former reclaim policy, which it gets back.")] = ""
    kept_until: Annotated[datetime, _described("When it is released.")] | None = None


class RollbackStatus(Wire, frozen=True):
    """What the Rollback has done, what it does now, and until when it can be undone."""

    phase: Annotated[RollbackPhase, _described("The step that runs, or how it ended.")] = "New"
    observed_generation: Annotated[int, _described("The generation of the spec that the status is about.")] = 0
    requester: Annotated[
        Text, _described("For whom each step is authorized: who created it, or asked for the undo.")
    ] = ""
    backup_uid: Annotated[Text, _described("The UID of the NonAdminBackup in spec.to.")] = ""
    plan: Annotated[RollbackPlan, _described("The plan, once it is made.")] | None = None
    steps: Annotated[
        tuple[RollbackStep, ...], msgspec.Meta(max_length=64, description="The steps, in the order of their start.")
    ] = ()
    safety_backup: Annotated[
        Text, _described("The NonAdminBackup of the namespace as it was before; an undo restores it.")
    ] = ""
    restore: Annotated[Text, _described("The NonAdminRestore of spec.to.")] = ""
    velero_restore: Annotated[Text, _described("Its Velero Restore, whose name the restored objects have.")] = ""
    claims_restore: Annotated[Text, _described("The NonAdminRestore of the claims in spec.to, with their data.")] = ""
    velero_claims_restore: Annotated[Text, _described("Its Velero Restore, whose name the restored claims have.")] = ""
    restore_started: Annotated[datetime, _described("Before anything was restored.")] | None = None
    undo_attempts: Annotated[int, _described("NonAdminRestores of the safety backup so far.")] = 0
    undo_restored: Annotated[bool, _described("Whether an undo has restored the safety backup.")] = False
    cleaning_since: (
        Annotated[datetime, _described("Since when an undo takes away what the restore has created or added.")] | None
    ) = None
    not_deleted: Annotated[
        tuple[Text, ...],
        msgspec.Meta(
            max_length=MOST_NAMES + 1,
            description="Kinds of which the restore created objects, or may have, that the undo could not delete.",
        ),
    ] = ()
    retry_at: Annotated[datetime, _described("When an undo that could not be completed is tried again.")] | None = None
    failure: Annotated[
        str, msgspec.Meta(max_length=1024, description="Why the Rollback is undone; empty if that was asked for.")
    ] = ""
    stopped: Annotated[
        tuple[Stopped, ...], msgspec.Meta(max_length=MOST_STOPPED, description="What is or was suspended.")
    ] = ()
    pruned: Annotated[
        tuple[Pruned, ...], msgspec.Meta(max_length=MOST_PRUNED, description="What is or was deleted.")
    ] = ()
    volumes: Annotated[
        tuple[KeptVolume, ...],
        msgspec.Meta(max_length=MOST_VOLUMES, description="Old volumes that are kept until keptUntil, or an undo."),
    ] = ()
    accounts: Annotated[
        tuple[Account, ...],
        msgspec.Meta(max_length=MOST_ACCOUNTS, description="The ServiceAccounts before the restore, for an undo."),
    ] = ()
    undo_until: Annotated[datetime, _described("Until when it can be undone.")] | None = None
    conditions: Conditions = ()


class RollbackMetadata(SpecMetadata, frozen=True, rename="camel"):
    """Metadata with the finalizers, and when the object was written to."""

    finalizers: tuple[str, ...] = ()
    managed_fields: tuple[Write, ...] = ()


class Rollback(Wire, frozen=True):
    """Brings a namespace back to the state of a backup, in place, as the requester; it can be undone."""

    metadata: RollbackMetadata
    spec: Annotated[RollbackSpec, msgspec.Meta(extra_json_schema={"x-kubernetes-validations": _SPEC_RULES})]
    status: RollbackStatus = RollbackStatus()
