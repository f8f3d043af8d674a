"""SelfServicePolicy: what the tenants of some namespaces may request from Velero, and how much of it.

If several policies match a namespace, the one with the highest `priority` applies; of equals, the first by name.
Policies are not merged. A namespace that no policy matches has no self-service.

The tenant's value of a field takes precedence over `defaults`. If the field is in `required`, a tenant may omit it or
set the same value; any other value is refused. Bounds and allowed lists apply to the tenant's values only. `defaults`
and `required` are used unchanged. `spec_fields` has what no policy can allow.
"""

from typing import Annotated, Literal

import msgspec

from foresail.api.specs import (
    Duration,
    Names,
    Reference,
    Selector,
    UploaderConfigForBackup,
    UploaderConfigForRestore,
    Wire,
)
from foresail.plan import Kind

GROUP = "foresail.dev"
SELF_SERVICE_POLICY = Kind(GROUP, "v1alpha1", "selfservicepolicies", "SelfServicePolicy", namespaced=False)

OPT_IN_LABEL = "foresail.dev/self-service"
OPT_IN_VALUE = "enabled"
"""The chart's default policy matches namespaces with this label, and no others."""

REFUSED_KINDS = (
    "roles.rbac.authorization.k8s.io",
    "rolebindings.rbac.authorization.k8s.io",
    "resourcequotas",
    "limitranges",
    "networkpolicies.networking.k8s.io",
)
"""Kinds that a restore leaves out by default, because they grant rights or lift limits."""

ExistingResourcePolicy = Literal["none", "update"]
NO_MAXIMUM = 1_000_000
"""The value of `restore.maximumObjects` and `restore.maximumClaims` that sets no limit: nothing is counted then."""

Count = Annotated[int, msgspec.Meta(ge=0, le=1_000_000)]
Positive = Annotated[int, msgspec.Meta(ge=1, le=1_000)]


def _described(text: str) -> msgspec.Meta:
    return msgspec.Meta(description=text)


class Bounds(Wire, frozen=True):
    """The shortest and the longest duration that a tenant may set, both included.

    Without a maximum, a ttl has no limit, and a timeout has the operator's limit.
    """

    minimum: Duration | None = None
    maximum: Duration | None = None


Between = Annotated[
    Bounds,
    msgspec.Meta(
        extra_json_schema={
            "x-kubernetes-validations": [
                {
                    "rule": "!has(self.minimum) || !has(self.maximum)"
                    " || duration(self.minimum) <= duration(self.maximum)",
                    "message": "the minimum is longer than the maximum, so nothing is between them",
                }
            ]
        }
    ),
]


class Hooks(Wire, frozen=True):
    """Whether a tenant's spec may have hooks: commands that Velero runs in the tenant's pods."""

    allowed: Annotated[bool, _described("If false, every hook is refused. Init containers are always refused.")] = False
    timeout: Annotated[Between, _described("Bounds of every hook timeout; a hook without one gets the maximum.")] = (
        Bounds()
    )


class BackupValues(Wire, frozen=True):
    """Fields of a BackupSpec that an administrator may set for tenants. Named objects are in Velero's namespace."""

    ttl: Duration | None = None
    csi_snapshot_timeout: Duration | None = None
    item_operation_timeout: Duration | None = None
    storage_location: str | None = None
    volume_snapshot_locations: Names | None = None
    snapshot_volumes: bool | None = None
    snapshot_move_data: bool | None = None
    default_volumes_to_fs_backup: bool | None = None
    volume_group_snapshot_label_key: str | None = None
    datamover: str | None = None
    resource_policy: Reference | None = None
    uploader_config: UploaderConfigForBackup | None = None


class BackupAllowed(Wire, frozen=True):
    """Names of objects in Velero's namespace that a tenant may use; all others are refused."""

    storage_locations: Names = ()
    volume_snapshot_locations: Names = ()
    resource_policies: Annotated[Names, _described("Names of ConfigMaps; none if empty.")] = ()
    datamovers: Names = ()
    volume_group_snapshot_label_keys: Names = ()


FileSystem = Literal["Refused", "Allowed"]


class BackupPolicy(Wire, frozen=True):
    """Rules for NonAdminBackups."""

    defaults: BackupValues = BackupValues()
    required: BackupValues = BackupValues()
    file_system: Annotated[
        FileSystem,
        _described(
            "Whether Velero copies files from and to the tenants' pods. Allowed: a tenant who may run pods can reach"
            " data of other pods on the node and Velero's credentials. Set it only for tenants that you trust."
        ),
    ] = "Refused"
    ttl: Between = Bounds()
    csi_snapshot_timeout: Between = Bounds()
    item_operation_timeout: Between = Bounds()
    pod_volume_timeout: Annotated[
        Duration,
        _described("How long Velero waits for volumes that it copies from or to pods; other requests wait meanwhile."),
    ] = "1h"
    parallel_files: (
        Annotated[Positive, _described("Maximum number of files that one upload transfers in parallel; 64 if absent.")]
        | None
    ) = None
    allowed: BackupAllowed = BackupAllowed()
    hooks: Hooks = Hooks()


class RestoreValues(Wire, frozen=True):
    """Fields of a RestoreSpec that an administrator may set for tenants. Named objects are in Velero's namespace."""

    item_operation_timeout: Duration | None = None
    restore_pvs: bool | None = msgspec.field(default=None, name="restorePVs")
    preserve_node_ports: bool | None = None
    existing_resource_policy: ExistingResourcePolicy | None = None
    resource_modifier: Reference | None = None
    resource_policy: Reference | None = None
    uploader_config: UploaderConfigForRestore | None = None


class RestoreAllowed(Wire, frozen=True):
    """The values that a tenant may use; all others are refused."""

    existing_resource_policies: Annotated[
        tuple[ExistingResourcePolicy, ...],
        msgspec.Meta(max_length=8, description="Allowed values; none is always allowed."),
    ] = ()
    resource_modifiers: Annotated[Names, _described("Names of ConfigMaps in Velero's namespace; none if empty.")] = ()
    resource_policies: Annotated[Names, _described("Names of ConfigMaps in Velero's namespace; none if empty.")] = ()


class RestoredKinds(Wire, frozen=True):
    """The kinds to restore, as plural.group, such as deployments.apps, or the plural for the core group.

    Foresail's kinds, Velero's kinds and cluster-scoped kinds are never restored; volumes are restored with the
    tenant's claims.
    """

    allowed: Annotated[Names, _described("Only these kinds; if absent, all except the refused.")] | None = None
    refused: (
        Annotated[Names, _described("Never these kinds; if absent, kinds that grant permissions or lift limits.")]
        | None
    ) = None


Authorization = Literal["Requester", "Policy"]
Elsewhere = Literal["Refused", "Allowed"]
Volumes = Literal["BackedUp", "AsIs"]
VeleroAnnotations = Literal["Refused", "Allowed"]


class RestorePolicy(Wire, frozen=True):
    """Rules for NonAdminRestores."""

    authorization: Annotated[
        Authorization,
        _described(
            "Requester: restores only the kinds that the requester may create. Policy: restores what kinds allows."
        ),
    ] = "Requester"
    volumes: Annotated[
        Volumes,
        _described(
            "BackedUp: refuses to re-create a volume that was not backed up and is not deleted with its claim."
            " AsIs: re-creates it as it was."
        ),
    ] = "BackedUp"
    maximum_objects: Annotated[
        int,
        msgspec.Meta(
            ge=1,
            le=NO_MAXIMUM,
            description="Objects of a backup that one restore may bring back: other restores wait until Velero has"
            f" created them. {NO_MAXIMUM}: no limit.",
        ),
    ] = 10_000
    maximum_claims: Annotated[
        int,
        msgspec.Meta(
            ge=1,
            le=NO_MAXIMUM,
            description="Volume claims of a backup that one restore may bring back: the end of other restores waits"
            f" for each that is missing. {NO_MAXIMUM}: no limit.",
        ),
    ] = 30
    starting_deadline: Annotated[
        Duration,
        _described("How long after its request a restore may start; one that still waits then expires."),
    ] = "1h"
    into_other_namespaces: Annotated[
        Elsewhere,
        _described(
            "Allowed: requesters restore into another namespace, by namespaceMapping, what they may get here and create"
            " there. The policies of both namespaces must allow it; that of the other one applies."
        ),
    ] = "Refused"
    defaults: RestoreValues = RestoreValues()
    required: RestoreValues = RestoreValues()
    item_operation_timeout: Between = Bounds()
    pod_volume_timeout: Annotated[
        Duration,
        _described("How long Velero waits for volumes that it copies from or to pods; other requests wait meanwhile."),
    ] = "1h"
    parallel_files: (
        Annotated[
            Positive, _described("Maximum number of files that one download transfers in parallel; 64 if absent.")
        ]
        | None
    ) = None
    allowed: RestoreAllowed = RestoreAllowed()
    kinds: RestoredKinds = RestoredKinds()
    hooks: Hooks = Hooks()


class RestoreQuotas(Wire, frozen=True):
    """Limits on the restores of one namespace; no limit if absent."""

    active: Annotated[Count, _described("Restores that have not finished yet.")] | None = None
    stored: Annotated[Count, _described("Accepted restores that exist, in any phase.")] | None = None
    history: Annotated[
        Count, _described("Finished restores to keep; older ones are deleted with their Velero Restores.")
    ] = 20


class Quotas(Wire, frozen=True):
    """Limits for one namespace; no limit if absent."""

    stored: Annotated[Count, _described("Backups that exist, in any phase.")] | None = None
    active: Annotated[Count, _described("Backups that Velero has not finished yet.")] | None = None
    restores: RestoreQuotas = RestoreQuotas()


class SchedulesPolicy(Wire, frozen=True):
    """What holds for NonAdminSchedules. Without it, the defaults hold: a tenant may create backups by hand anyway."""

    minimum_interval: Annotated[
        Duration, _described("Shortest time between two runs, judged by the next 1,000 fires of the expression.")
    ] = "1h"
    maximum: Annotated[Count, _described("NonAdminSchedules of a namespace that run; 0 allows none.")] = 10
    keep_last: (
        Annotated[
            Positive,
            _described(
                "Good backups of each schedule to keep; others are deleted with their data. The newest good and the"
                " newest restorable one stay. If absent, only ttl deletes."
            ),
        ]
        | None
    ) = None
    grace_period: Annotated[
        Duration,
        msgspec.Meta(
            description="How long a backup beyond keepLast stays, marked, before it is deleted. If quotas.stored is"
            " reached and a run waits, one goes at once.",
            extra_json_schema={
                "x-kubernetes-validations": [
                    {"rule": "duration(self) <= duration('720h')", "message": "must be at most 720h"}
                ]
            },
        ),
    ] = "24h"
    jitter: (
        Annotated[
            Duration,
            _described("Longest delay of runs; each schedule has its own, always the same. No delay if absent."),
        ]
        | None
    ) = None
    schedule_policy: (
        Annotated[
            str,
            msgspec.Meta(
                min_length=1,
                max_length=253,
                description="A SchedulePolicy whose timeZone, spread, windows and startingDeadline apply; none if"
                " absent.",
            ),
        ]
        | None
    ) = None


class RestoreChecksPolicy(Wire, frozen=True):
    """What holds for RestoreChecks in tenants' namespaces; they check backups of their own namespace only."""

    maximum: Annotated[
        Count, _described("RestoreChecks of a namespace that are served, the oldest; 0 allows none.")
    ] = 0
    minimum_interval: Annotated[
        Duration,
        _described(
            "Shortest time between two checks of a RestoreCheck. A namespace starts up to maximum checks in it."
        ),
    ] = "1h"
    maximum_objects: Annotated[
        int, msgspec.Meta(ge=1, le=20_000, description="Objects of a backup that one check restores into a sandbox.")
    ] = 1_000
    custom_resources: Annotated[
        Names,
        _described(
            "Custom resources that a check may restore, as plural.group; none if empty. Their operators act on the"
            " restored objects."
        ),
    ] = ()


RollbackVolumesPolicy = Literal["None", "All"]


class RollbackPolicy(Wire, frozen=True):
    """What holds for Rollbacks: whether a namespace goes back to a backup in place, as its requester."""

    enabled: Annotated[
        bool,
        _described(
            "Whether Rollbacks are served. They change back objects that exist, so"
            " restore.allowed.existingResourcePolicies must have update."
        ),
    ] = False
    volumes: Annotated[
        RollbackVolumesPolicy,
        _described("Which volumes a Rollback may replace; rollback.volumes of the chart must be true."),
    ] = "None"
    prune: Annotated[
        bool, _described("Whether a Rollback may delete objects that are not in the backup, if its requester may.")
    ] = False
    keep_old_volumes: Annotated[
        Duration,
        msgspec.Meta(
            description="How long after its end a Rollback can be undone, at most.",
            extra_json_schema={
                "x-kubernetes-validations": [
                    {
                        "rule": "duration(self) >= duration('1h') && duration(self) <= duration('720h')",
                        "message": "must be from 1h to 720h",
                    }
                ]
            },
        ),
    ] = "24h"


class DeletionPolicy(Wire, frozen=True):
    """Protection of backups from deletion by their tenants."""

    minimum_age: (
        Annotated[Duration, _described("Backups younger than this are not deleted; no protection by age if absent.")]
        | None
    ) = None
    keep_last_good: Annotated[
        Count, _described("Completed backups of the namespace to keep; the newest ones are not deleted.")
    ] = 0


ContentsDownload = Literal["Refused", "Allowed"]


class DownloadPolicy(Wire, frozen=True):
    """What tenants may download about their own backups, beyond logs, results and lists."""

    contents: Annotated[
        ContentsDownload,
        _described("Allowed: requesters who may get Secrets in the namespace download the objects of their backups."),
    ] = "Refused"


Approval = Literal["Required", "NotRequired"]
RestoresFromOwn = Literal["Refused", "Limited", "Full"]


class LocationPolicy(Wire, frozen=True):
    """Whether tenants may have locations of their own, and which."""

    allowed: Annotated[bool, _described("If false, every NonAdminBackupStorageLocation is refused.")] = False
    approval: Annotated[
        Approval, _described("Required: an administrator approves each location and each change of its credentials.")
    ] = "Required"
    restores: Annotated[
        RestoresFromOwn,
        _described(
            "What tenants restore from a bucket that they can rewrite. Refused: nothing. Limited: no pods and no"
            " volumes, but a forged archive still creates DataUploads and Namespaces with Velero's rights. Full: all"
            " kinds that the requester may create; a forged archive creates anything. Set it only for tenants"
            " that you trust."
        ),
    ] = "Refused"
    providers: Annotated[Names, _described("Allowed providers; aws is the only one that self-service supports.")] = (
        "aws",
    )
    buckets: Annotated[Names, _described("Allowed bucket names, with * as wildcard; if absent, any.")] | None = None
    endpoints: Annotated[
        Names,
        _described("Allowed config.s3Url: host, host:port, or with http:// before it. If empty, only AWS itself."),
    ] = ()
    config_keys: Annotated[Names, _described("Allowed keys of config.")] = (
        "region",
        "s3ForcePathStyle",
        "s3Url",
        "checksumAlgorithm",
        "serverSideEncryption",
        "kmsKeyId",
    )
    validation_frequency: Annotated[
        Between, _described("Bounds of how often Velero checks the bucket; the minimum is 1m if absent.")
    ] = Bounds()
    maximum: Annotated[Count, _described("Locations that one namespace may have.")] = 3


Adoption = Literal["Automatic", "Approved", "Never"]


_KEEP_LAST = "has(self.spec.schedules) && has(self.spec.schedules.keepLast)"
_NO_SCHEDULES = "has(self.spec.schedules.maximum) && self.spec.schedules.maximum == 0"
_LAST_GOOD = "has(self.spec.deletion) && has(self.spec.deletion.keepLastGood)"
_STAYS = f"({_LAST_GOOD} && self.spec.deletion.keepLastGood > 1 ? self.spec.deletion.keepLastGood : 1)"
_ENOUGH = f"self.spec.quotas.stored > {_STAYS} + 1 && self.spec.quotas.stored >= self.spec.schedules.keepLast"
_HAS_ROOM = f"!has(self.spec.quotas) || !has(self.spec.quotas.stored) || ({_ENOUGH})"
_ROLLS_BACK = "has(self.spec.rollback) && has(self.spec.rollback.enabled) && self.spec.rollback.enabled"
_POLICIES = "self.spec.restore.allowed.existingResourcePolicies"
_MAY_UPDATE = (
    "has(self.spec.restore) && has(self.spec.restore.allowed)"
    f" && has({_POLICIES}) && {_POLICIES}.exists(each, each == 'update')"
)
_TOO_LOW = "quotas.stored is too low for schedules.keepLast: what it keeps leaves no room for a run."
RULES = (
    (
        f"!({_KEEP_LAST}) || ({_NO_SCHEDULES}) || {_HAS_ROOM}",
        f"{_TOO_LOW} Set quotas.stored to keepLast and to 3 at least, and to deletion.keepLastGood + 2",
    ),
    (
        f"!({_ROLLS_BACK}) || ({_MAY_UPDATE})",
        "rollback.enabled changes objects that exist: add update to restore.allowed.existingResourcePolicies",
    ),
)
"""What the API server checks of a policy as a whole."""


class SelfServicePolicySpec(Wire, frozen=True):
    """The namespaces of the policy, and the rules for them."""

    namespace_selector: Annotated[
        Selector, _described("By the labels of the namespace. Empty means every namespace that may have self-service.")
    ]
    priority: Annotated[
        int,
        msgspec.Meta(
            ge=-1_000_000,
            le=1_000_000,
            description="Of the policies that match, the one with the highest priority applies.",
        ),
    ] = 0
    weight: Annotated[
        Positive, _described("The share of each namespace in the queue, relative to other namespaces that wait.")
    ] = 1
    backup: BackupPolicy = BackupPolicy()
    restore: RestorePolicy = RestorePolicy()
    quotas: Quotas = Quotas()
    deletion: DeletionPolicy = DeletionPolicy()
    downloads: DownloadPolicy = DownloadPolicy()
    schedules: Annotated[
        SchedulesPolicy,
        msgspec.Meta(
            extra_json_schema={
                "x-kubernetes-validations": [
                    {
                        "rule": "!has(self.jitter) || !has(self.schedulePolicy)",
                        "message": "jitter does not apply with schedulePolicy: set spread in the SchedulePolicy",
                    }
                ]
            }
        ),
    ] = SchedulesPolicy()
    restore_checks: RestoreChecksPolicy = RestoreChecksPolicy()
    rollback: RollbackPolicy = RollbackPolicy()
    locations: LocationPolicy = LocationPolicy()
    adoption: Annotated[
        Adoption,
        _described(
            "Whether Velero Backups of the namespace that have no NonAdminBackup get one. Automatic: if the record is"
            " signed and names this very namespace. Approved: if an administrator runs foresail backup adopt."
        ),
    ] = "Approved"
    velero_annotations: Annotated[
        VeleroAnnotations,
        _described("Whether objects may have annotations that make Velero run commands or restore a status."),
    ] = "Refused"


class PolicyMetadata(Wire, frozen=True):
    """The metadata of a policy, which is cluster-scoped."""

    name: str
    uid: str = ""
    resource_version: str = ""
    generation: int = 0


class SelfServicePolicy(Wire, frozen=True):
    """Sets what the teams of some namespaces may back up and restore, and how much of it."""

    metadata: PolicyMetadata
    spec: SelfServicePolicySpec
