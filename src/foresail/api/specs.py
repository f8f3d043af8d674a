"""What a tenant may write of Velero's BackupSpec, RestoreSpec and BackupStorageLocationSpec: every field of Velero's.

A field that is absent and one that is null mean the same: None here, and left out when it is written again.
Patterns and bounds are for the API server, which refuses at `kubectl apply` what Velero could not even read: one
duration that Go does not parse, in one object, stops Velero from listing all of them.
"""

from typing import Annotated, Any, Literal

import msgspec

DURATION_PATTERN = (
    "^(0|"
    r"([0-9]{1,6}(\.[0-9]{1,9})?h)?([0-9]{1,6}(\.[0-9]{1,9})?m)?([0-9]{1,6}(\.[0-9]{1,9})?s)?"
    r"([0-9]{1,9}ms)?([0-9]{1,9}us)?([0-9]{1,9}ns)?"
    ")$"
)
"""Durations as Go reads them: no signs, the units in their usual order, and too few digits to overflow."""

Duration = Annotated[str, msgspec.Meta(pattern=DURATION_PATTERN, min_length=1, max_length=64)]
MOST_ENTRIES = 512
"""Of a list or a map, for the API server: twice what self-service accepts, which refuses in better words."""

_FEW = msgspec.Meta(max_length=MOST_ENTRIES)
Text = Annotated[str, msgspec.Meta(max_length=1024)]
"""A name or a label: the longest that Kubernetes has is 317 characters."""

LongText = Annotated[str, msgspec.Meta(max_length=16_384)]
"""A command, or an order of objects: as long as a whole spec may be."""

Names = Annotated[tuple[Text, ...], _FEW]
Labels = Annotated[dict[str, Text], _FEW]
_ATOMIC = msgspec.Meta(extra_json_schema={"x-kubernetes-map-type": "atomic"})
_ATOMIC_LIST = msgspec.Meta(extra_json_schema={"x-kubernetes-list-type": "atomic"})


class Wire(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """The base of everything here: names in camel case on the wire, and what is absent stays absent."""


class LabelRequirement(Wire, frozen=True):
    """One condition on a label."""

    key: Text
    operator: Literal["In", "NotIn", "Exists", "DoesNotExist"]
    values: Annotated[Names, _ATOMIC_LIST] | None = None


class LabelSelector(Wire, frozen=True):
    """Which objects, by their labels: all conditions together; an empty selector means every object."""

    match_labels: Labels | None = None
    match_expressions: Annotated[tuple[LabelRequirement, ...], _ATOMIC_LIST, _FEW] | None = None


Selector = Annotated[LabelSelector, _ATOMIC]
Selectors = Annotated[tuple[Selector, ...], _FEW]


class LocalReference(Wire, frozen=True):
    """An object in Velero's namespace, by kind and name."""

    kind: Text
    name: Text
    api_group: Text | None = None


Reference = Annotated[LocalReference, _ATOMIC]


class BackupMetadata(Wire, frozen=True):
    """Labels for the Velero Backup."""

    labels: Labels | None = None


class UploaderConfigForBackup(Wire, frozen=True):
    """How the uploader works."""

    parallel_files_upload: int | None = None


class ExecHook(Wire, frozen=True):
    """A command that Velero runs in a container of a pod."""

    command: Annotated[tuple[LongText, ...], msgspec.Meta(min_length=1, max_length=MOST_ENTRIES)]
    container: Text | None = None
    on_error: Literal["Continue", "Fail"] | None = None
    timeout: Duration | None = None


class BackupResourceHook(Wire, frozen=True):
    """One hook around the backup of an item."""

    exec: ExecHook


class BackupHookRule(Wire, frozen=True):
    """Hooks, and the pods that they are for."""

    name: Text
    included_namespaces: Names | None = None
    excluded_namespaces: Names | None = None
    included_resources: Names | None = None
    excluded_resources: Names | None = None
    label_selector: Selector | None = None
    pre: Annotated[tuple[BackupResourceHook, ...], _FEW] | None = None
    post: Annotated[tuple[BackupResourceHook, ...], _FEW] | None = None


class BackupHooks(Wire, frozen=True):
    """All hooks of a backup."""

    resources: Annotated[tuple[BackupHookRule, ...], _FEW] | None = None


class BackupSpec(Wire, frozen=True):
    """Velero's BackupSpec."""

    metadata: BackupMetadata | None = None
    included_namespaces: Names | None = None
    excluded_namespaces: Names | None = None
    included_resources: Names | None = None
    excluded_resources: Names | None = None
    included_cluster_scoped_resources: Names | None = None
    excluded_cluster_scoped_resources: Names | None = None
    included_namespace_scoped_resources: Names | None = None
    excluded_namespace_scoped_resources: Names | None = None
    include_cluster_resources: bool | None = None
    label_selector: Selector | None = None
    or_label_selectors: Selectors | None = None
    ordered_resources: Annotated[dict[str, LongText], _FEW] | None = None
    hooks: BackupHooks | None = None
    storage_location: Text | None = None
    volume_snapshot_locations: Names | None = None
    ttl: Duration | None = None
    snapshot_volumes: bool | None = None
    snapshot_move_data: bool | None = None
    default_volumes_to_fs_backup: bool | None = None
    default_volumes_to_restic: bool | None = None
    volume_group_snapshot_label_key: Text | None = None
    datamover: Text | None = None
    resource_policy: Reference | None = None
    csi_snapshot_timeout: Duration | None = None
    item_operation_timeout: Duration | None = None
    uploader_config: UploaderConfigForBackup | None = None


class StoredRequirement(LabelRequirement, frozen=True):
    """A condition on a label, as Velero's objects have it."""

    key: str
    operator: Any
    values: tuple[str, ...] | None = None


class StoredSelector(LabelSelector, frozen=True):
    """A selector, as Velero's objects have it."""

    match_labels: dict[str, str] | None = None
    match_expressions: tuple[StoredRequirement, ...] | None = None


class StoredBackupSpec(BackupSpec, frozen=True):
    """The spec of a Velero Backup or Schedule: the bounds for tenants do not hold for administrators."""

    metadata: Any = None
    included_namespaces: tuple[str, ...] | None = None
    excluded_namespaces: tuple[str, ...] | None = None
    included_resources: tuple[str, ...] | None = None
    excluded_resources: tuple[str, ...] | None = None
    included_cluster_scoped_resources: tuple[str, ...] | None = None
    excluded_cluster_scoped_resources: tuple[str, ...] | None = None
    included_namespace_scoped_resources: tuple[str, ...] | None = None
    excluded_namespace_scoped_resources: tuple[str, ...] | None = None
    label_selector: StoredSelector | None = None
    or_label_selectors: tuple[StoredSelector, ...] | None = None
    ordered_resources: Any = None
    hooks: Any = None
    storage_location: str | None = None
    volume_snapshot_locations: tuple[str, ...] | None = None
    ttl: Any = None
    csi_snapshot_timeout: Any = None
    item_operation_timeout: Any = None


class UploaderConfigForRestore(Wire, frozen=True):
    """How the uploader works when it brings data back."""

    parallel_files_download: int | None = None
    write_sparse_files: bool | None = None


class RestoreStatusSpec(Wire, frozen=True):
    """Whose status is restored as well."""

    included_resources: Names | None = None
    excluded_resources: Names | None = None


class ExecRestoreHook(Wire, frozen=True):
    """A command that Velero runs in a container of a restored pod."""

    command: Annotated[tuple[LongText, ...], msgspec.Meta(min_length=1, max_length=MOST_ENTRIES)]
    container: Text | None = None
    on_error: Literal["Continue", "Fail"] | None = None
    exec_timeout: Duration | None = None
    wait_timeout: Duration | None = None
    wait_for_ready: bool | None = None


class InitRestoreHook(Wire, frozen=True):
    """Init containers that Velero adds to a restored pod."""

    init_containers: Annotated[tuple[Annotated[dict[str, Any], _FEW], ...], _FEW] | None = None
    timeout: Duration | None = None


class RestoreResourceHook(Wire, frozen=True):
    """One hook after the restore of a pod."""

    exec: ExecRestoreHook | None = None
    init: InitRestoreHook | None = None


class RestoreHookRule(Wire, frozen=True):
    """Hooks, and the pods that they are for."""

    name: Text
    included_namespaces: Names | None = None
    excluded_namespaces: Names | None = None
    included_resources: Names | None = None
    excluded_resources: Names | None = None
    label_selector: Selector | None = None
    post_hooks: Annotated[tuple[RestoreResourceHook, ...], _FEW] | None = None


class RestoreHooks(Wire, frozen=True):
    """All hooks of a restore."""

    resources: Annotated[tuple[RestoreHookRule, ...], _FEW] | None = None


class RestoreSpec(Wire, frozen=True):
    """Velero's RestoreSpec; `backupName` is the name of a NonAdminBackup where a tenant writes it."""

    backup_name: Text | None = None
    schedule_name: Text | None = None
    included_namespaces: Names | None = None
    excluded_namespaces: Names | None = None
    included_resources: Names | None = None
    excluded_resources: Names | None = None
    namespace_mapping: Labels | None = None
    label_selector: Selector | None = None
    or_label_selectors: Selectors | None = None
    restore_pvs: bool | None = msgspec.field(default=None, name="restorePVs")
    restore_status: RestoreStatusSpec | None = None
    preserve_node_ports: bool | None = None
    include_cluster_resources: bool | None = None
    hooks: RestoreHooks | None = None
    existing_resource_policy: Text | None = None
    item_operation_timeout: Duration | None = None
    resource_modifier: Reference | None = None
    resource_policy: Reference | None = None
    uploader_config: UploaderConfigForRestore | None = None


class ObjectStorageLocation(Wire, frozen=True):
    """A bucket, and the folder in it."""

    bucket: Annotated[str, msgspec.Meta(min_length=1, max_length=255)]
    prefix: Annotated[str, msgspec.Meta(max_length=1024)] | None = None
    ca_cert: (
        Annotated[
            str,
            msgspec.Meta(
                max_length=16_384,
                description="CA certificates of the endpoint: PEM in base64.",
                extra_json_schema={"format": "byte"},
            ),
        ]
        | None
    ) = None


class CredentialSelector(Wire, frozen=True):
    """One key of a Secret."""

    key: Annotated[str, msgspec.Meta(min_length=1, max_length=253)]
    name: Annotated[str, msgspec.Meta(max_length=253)] | None = None
    optional: bool | None = None


class BackupStorageLocationSpec(Wire, frozen=True):
    """A place for backups."""

    provider: Annotated[str, msgspec.Meta(min_length=1, max_length=253)]
    object_storage: ObjectStorageLocation
    config: Labels | None = None
    credential: CredentialSelector | None = None
    access_mode: Literal["ReadOnly", "ReadWrite"] | None = None
    backup_sync_period: Duration | None = None
    validation_frequency: Duration | None = None
    default: bool | None = None
