"""The spec for Velero of a tenant's request, or why there is none.

Velero acts with the rights of a cluster administrator. So a spec for Velero is never the tenant's with something taken
out: it is built here field by field. A field that is not here does not reach Velero.
"""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import msgspec

from foresail.api.policy import BackupPolicy, RestorePolicy
from foresail.api.specs import (
    BackupMetadata,
    BackupSpec,
    RestoreSpec,
)
from foresail.selfservice.reasons import Reason, Refused
from foresail.selfservice.specs import file_system, kinds, snapshot_timeout
from foresail.selfservice.specs.hooks import backup_hooks, restore_hooks
from foresail.selfservice.specs.values import (
    Refusal,
    Violation,
    anything,
    as_json,
    config_map,
    duration,
    few_enough,
    files_at_once,
    length,
    listed,
    own_labels,
    read,
    selectors,
    settled,
    shown,
)
from foresail.tenancy.policies import PolicyRow
from foresail.tenancy.volume_policies import VOLUME_POLICIES


class Field(NamedTuple):
    """One field: what the tenant wrote, and the policy."""

    name: str
    path: str  # as the tenant reads it
    wrote: Any
    rules: BackupPolicy | RestorePolicy
    policy: str

    @property
    def required(self) -> Any:  # noqa: ANN401 - of the field's type
        """What the policy requires."""
        return getattr(self.rules.required, self.name)

    @property
    def default(self) -> Any:  # noqa: ANN401 - of the field's type
        """What the policy takes if the tenant wrote nothing."""
        return getattr(self.rules.defaults, self.name)

    def allowed(self, names: str) -> tuple[str, ...]:
        """Return a list of the policy."""
        values: tuple[str, ...] = getattr(self.rules.allowed, names)
        return values

    def settle(self, check: Callable[[Any], None], *, is_empty_unset: bool = False) -> Any:  # noqa: ANN401 - as above
        """Return the value; `check` is for what the tenant wrote."""
        wrote = self.wrote or None if is_empty_unset else self.wrote
        return settled(self.path, wrote, self.required, self.default, check)


Settle = Callable[[Field], Any]


def settle_all(
    table: Mapping[str, Settle],
    spec: BackupSpec | RestoreSpec,
    path: str,
    rules: BackupPolicy | RestorePolicy,
    policy: str,
) -> dict[str, Any]:
    """Return the values of all fields of a table, in its order."""
    written = dict(zip(spec.__struct_fields__, spec.__struct_encode_fields__, strict=True))
    fields = (Field(name, f"{path}.{written[name]}", getattr(spec, name), rules, policy) for name in table)
    return {field.name: table[field.name](field) for field in fields}


# Rows of a table


def free(field: Field) -> Any:  # noqa: ANN401 - of the field's type
    """Take any value of the tenant."""
    return field.settle(anything)


def one_of(names: str, *always: str) -> Settle:
    """Take a value of the policy's list, or one that is always allowed."""
    return lambda field: field.settle(
        listed(field.path, (*always, *field.allowed(names)), field.policy), is_empty_unset=True
    )


def all_of(names: str, violation: str) -> Settle:
    """Take a list whose values are all in the policy's list."""

    def settle(field: Field) -> Any:  # noqa: ANN401 - of the field's type
        def check(wrote: tuple[str, ...]) -> None:
            if any(value not in field.allowed(names) for value in wrote):
                raise Violation(violation)

        return field.settle(check, is_empty_unset=True)

    return settle


def config_map_of(names: str) -> Settle:
    """Take a reference to a ConfigMap in the policy's list."""
    return lambda field: field.settle(config_map(field.path, field.allowed(names), field.policy))


def within(ceiling: str | None, unset: str | None = None) -> Settle:
    """Take a duration within the policy's bounds, and within our ceiling where the policy has no maximum.

    What is not set lasts for as long as Velero wants, if that is known, and never longer than the maximum.
    """

    def settle(field: Field) -> str | None:
        bounds = getattr(field.rules, field.name)
        default = field.default
        if not default and bounds.maximum is not None and _is_shorter(field.path, bounds.maximum, unset):
            default = bounds.maximum
        return duration(field.path, field.wrote, bounds, required=field.required, default=default, ceiling=ceiling)

    return settle


def _is_shorter(path: str, maximum: str, unset: str | None) -> bool:
    return unset is None or length(path, maximum) < length(path, unset)


def uploader(files: str, written: str) -> Settle:
    """Take the settings of an uploader with as many files at once as the policy lets it have."""

    def settle(field: Field) -> Any:  # noqa: ANN401 - of the field's type
        check = files_at_once(f"{field.path}.{written}", field.rules.parallel_files, field.policy)
        return field.settle(lambda value: check(getattr(value, files)))

    return settle


_UPDATE = "update"


def beyond_chart(spec: Mapping[str, Any], path: str, policy: PolicyRow) -> Refused | None:
    """Return why the API server would refuse a spec that the policy allows; None if it would not."""
    chart = policy.chart
    if spec.get("hooks") and not chart.hooks:
        return _off_in_chart(f"{path}.hooks", "hooks")
    if spec.get("existingResourcePolicy") == _UPDATE and not chart.update_existing:
        return _off_in_chart(f"{path}.existingResourcePolicy {_UPDATE}", "updateExisting")
    if spec.get("namespaceMapping") and not chart.other_namespaces:
        return _off_in_chart(f"{path}.namespaceMapping", "otherNamespaces")
    for field, value, allowed in (
        ("resourcePolicy", "resourcePolicies", chart.resource_policies),
        ("resourceModifier", "resourceModifiers", chart.resource_modifiers),
    ):
        name = (spec.get(field) or {}).get("name")
        if name is not None and allowed is not None and name not in (*allowed, *VOLUME_POLICIES):
            return _off_in_chart(f"{path}.{field} {name}", value)
    return None


def _off_in_chart(field: str, value: str) -> Refused:
    text = f"{field} is off in this cluster, whatever the policy allows; remove it, or ask a cluster administrator"
    return Refused(Reason.POLICY_VIOLATION, f"{text} to set selfService.{value} of the chart")


NO_EXPIRY = "876000h"
"""The ttl of a backup in a tenant's own bucket, 100 years.

When a backup expires, Velero deletes what its archive names, and the tenant can rewrite that.
"""

LONGEST_SNAPSHOT = "10m"
LONGEST_OPERATION = "24h"
"""How long Velero may wait for a snapshot, and for the data of a volume, where the policy has no maximum."""

_VELEROS_OPERATION = "4h"
"""How long Velero waits for the data of a volume unless it is told otherwise."""

_BACKUP = "spec.backupSpec"
_RESTORE = "spec.restoreSpec"

_BACKUP_FIELDS = {
    "storage_location": one_of("storage_locations"),
    "volume_snapshot_locations": all_of(
        "volume_snapshot_locations", f"NonAdminBackup {_BACKUP}.volumeSnapshotLocations is restricted"
    ),
    "ttl": within(None),
    "snapshot_volumes": free,
    "snapshot_move_data": free,
    "default_volumes_to_fs_backup": free,
    "volume_group_snapshot_label_key": one_of("volume_group_snapshot_label_keys"),
    "datamover": one_of("datamovers", "velero"),
    "resource_policy": config_map_of("resource_policies"),
    "csi_snapshot_timeout": within(LONGEST_SNAPSHOT, snapshot_timeout.VELEROS_OWN),
    "item_operation_timeout": within(LONGEST_OPERATION, _VELEROS_OPERATION),
    "uploader_config": uploader("parallel_files_upload", "parallelFilesUpload"),
}
_RESTORE_FIELDS = {
    "restore_pvs": free,
    "preserve_node_ports": free,
    "existing_resource_policy": one_of("existing_resource_policies", "none"),
    "item_operation_timeout": within(LONGEST_OPERATION, _VELEROS_OPERATION),
    "resource_modifier": config_map_of("resource_modifiers"),
    "resource_policy": config_map_of("resource_policies"),
    "uploader_config": uploader("parallel_files_download", "parallelFilesDownload"),
}
"""The fields that a policy can require, default or restrict."""

_BOTH = ("included_namespaces", "label_selector", "or_label_selectors", "hooks")
BACKUP_WRITTEN = (
    *("metadata", "included_namespace_scoped_resources", "excluded_namespace_scoped_resources"),
    *("excluded_cluster_scoped_resources", "ordered_resources", *_BOTH, *_BACKUP_FIELDS),
)
RESTORE_WRITTEN = (
    *("backup_name", "included_resources", "excluded_resources", "include_cluster_resources", "namespace_mapping"),
    *(*_BOTH, *_RESTORE_FIELDS),
)
"""Every field that a spec for Velero can have; the fence of the operator's token admits no other one."""


def backup_spec(
    tenant: Mapping[str, Any], namespace: str, policy: PolicyRow, own_location: str = ""
) -> dict[str, Any] | Refused:
    """Return the spec of the Velero Backup for a tenant's backupSpec, or why there is none.

    `own_location` is the Velero location of the tenant's own that `storageLocation` names. There, nothing expires.
    """
    is_own = bool(own_location) and policy.spec.backup.required.storage_location is None
    try:
        spec = read(BackupSpec, tenant, _BACKUP)
        spec = msgspec.structs.replace(spec, storage_location=None) if is_own else spec
        made = _backup(spec, namespace, policy.spec.backup, policy.name)
    except Refusal as refusal:
        return _refused(refusal, Reason.INVALID_BACKUP_SPEC)
    made = msgspec.structs.replace(made, storage_location=own_location, ttl=NO_EXPIRY) if is_own else made
    written = _written(made)
    return beyond_chart(written, _BACKUP, policy) or written


def restore_spec(
    tenant: Mapping[str, Any], namespace: str, velero_backup: str, policy: PolicyRow, target: str = ""
) -> dict[str, Any] | Refused:
    """Return the spec of the Velero Restore for a tenant's restoreSpec, or why there is none.

    `velero_backup` is the Velero Backup of the tenant's own NonAdminBackup that `backupName` names. `target` is the
    other namespace that it may restore into, whose policy this is then; every other mapping is refused.
    """
    try:
        spec = read(RestoreSpec, tenant, _RESTORE)
        made = _restore(spec, namespace, velero_backup, policy, target)
    except Refusal as refusal:
        return _refused(refusal, Reason.INVALID_RESTORE_SPEC)
    written = _written(made)
    return beyond_chart(written, _RESTORE, policy) or written


def limited(spec: dict[str, Any], policy: PolicyRow) -> dict[str, Any] | Refused:
    """Return the spec of a restore from a bucket that its tenant can rewrite at any moment.

    What the operator reads there and what Velero reads later may differ. So nothing comes back whose content needs
    trust: pods, which Velero's identity would admit, and volumes, which can be any volume of the cluster.
    """
    if policy.spec.locations.restores == "Full":
        return spec
    named = spec.get("includedResources") or ()
    included = kinds.without_trust(named)
    if named and not included:  # an empty list would mean every kind
        text = "Pods and volumes do not come back from a storage location of the tenant"
        return Refused(Reason.POLICY_VIOLATION, f"{text}; include other kinds, or ask a cluster administrator")
    excluded = dict.fromkeys((*(spec.get("excludedResources") or ()), *kinds.NEED_TRUST))
    kept = {"includedResources": included} if named else {}
    return {**spec, **kept, "excludedResources": list(excluded), "restorePVs": False}


def _refused(refusal: Refusal, invalid: Reason) -> Refused:
    """Tell what the policy forbids from what is wrong or what the existing controller calls invalid."""
    return Refused(Reason.POLICY_VIOLATION if isinstance(refusal, Violation) else invalid, str(refusal))


def _backup(spec: BackupSpec, namespace: str, rules: BackupPolicy, policy: str) -> BackupSpec:
    _backup_restrictions(spec, namespace)
    backed_up = kinds.backed_up(spec, _BACKUP)
    label_selector, or_label_selectors = selectors(_BACKUP, spec.label_selector, spec.or_label_selectors)
    values = settle_all(_BACKUP_FIELDS, spec, _BACKUP, rules, policy)
    if rules.file_system == "Refused":
        values |= file_system.left_out(values, policy)
    return BackupSpec(
        metadata=_metadata(spec.metadata),
        included_namespaces=(namespace,),
        included_namespace_scoped_resources=backed_up.included,
        excluded_namespace_scoped_resources=backed_up.excluded,
        excluded_cluster_scoped_resources=backed_up.cluster_scoped_excluded,
        label_selector=label_selector,
        or_label_selectors=or_label_selectors,
        ordered_resources=_ordered(spec.ordered_resources, namespace),
        hooks=backup_hooks(spec.hooks, namespace, rules.hooks, policy),
        **values,
    )


def _restore(spec: RestoreSpec, namespace: str, velero_backup: str, policy: PolicyRow, target: str) -> RestoreSpec:
    rules = policy.spec.restore
    mapping = {namespace: target} if target else None
    _restore_restrictions(spec, namespace, mapping)
    included, excluded = kinds.restored(
        spec.included_resources, spec.excluded_resources, rules.kinds, _RESTORE, policy.name
    )
    label_selector, or_label_selectors = selectors(_RESTORE, spec.label_selector, spec.or_label_selectors)
    return RestoreSpec(
        backup_name=velero_backup,
        included_namespaces=(namespace,),
        included_resources=included,
        excluded_resources=excluded,
        namespace_mapping=mapping,
        # Absent, nothing without a namespace comes but what a claim brings along: its volume. False, not even that.
        include_cluster_resources=spec.include_cluster_resources,
        label_selector=label_selector,
        or_label_selectors=or_label_selectors,
        hooks=restore_hooks(spec.hooks, namespace, rules.hooks, policy.name),
        **settle_all(_RESTORE_FIELDS, spec, _RESTORE, rules, policy.name),
    )


# What no policy can allow, in the words that tenants know


def _backup_restrictions(spec: BackupSpec, namespace: str) -> None:
    if any(included != namespace for included in spec.included_namespaces or ()):
        text = "includedNamespaces is restricted, can not contain namespaces other than"
        raise Refusal(f"NonAdminBackup {_BACKUP}.{text}: {namespace}")
    if spec.excluded_namespaces:
        raise Refusal(f"NonAdminBackup {_BACKUP}.excludedNamespaces is restricted")
    if spec.include_cluster_resources:
        text = "includeClusterResources is restricted, can only be set to false"
        raise Refusal(f"NonAdminBackup {_BACKUP}.{text}")
    if spec.included_cluster_scoped_resources:
        text = "includedScopedResources is restricted, must remain empty"  # so it is called by the existing controller
        raise Refusal(f"NonAdminBackup {_BACKUP}.{text}")
    if spec.default_volumes_to_restic:
        raise Refusal(f"{_BACKUP}.defaultVolumesToRestic is restricted; set defaultVolumesToFsBackup instead")


def _restore_restrictions(spec: RestoreSpec, namespace: str, mapping: Mapping[str, str] | None) -> None:
    restricted = {
        "scheduleName": bool(spec.schedule_name),
        "includedNamespaces": any(included != namespace for included in spec.included_namespaces or ()),
        "excludedNamespaces": bool(spec.excluded_namespaces),
        "namespaceMapping": bool(spec.namespace_mapping) and spec.namespace_mapping != mapping,
    }
    if restricted.pop("scheduleName"):
        raise Refusal(f"NonAdminRestore nonAdminRestore.{_RESTORE}.scheduleName is restricted")
    if not spec.backup_name:
        raise Refusal(f"NonAdminRestore {_RESTORE}.backupName is not set")
    for field, is_set in restricted.items():
        if is_set:
            raise Refusal(f"NonAdminRestore nonAdminRestore.{_RESTORE}.{field} is restricted")
    if spec.include_cluster_resources:
        text = "includeClusterResources is restricted, can only be set to false"
        raise Refusal(f"NonAdminRestore {_RESTORE}.{text}")
    if mapping and spec.hooks is not None and spec.hooks.resources:  # Velero matches their namespaces after the mapping
        raise Violation(f"NonAdminRestore {_RESTORE}.hooks is restricted with namespaceMapping; remove one of them")
    if spec.restore_status is not None:
        raise Violation(f"NonAdminRestore {_RESTORE}.restoreStatus is restricted; remove it")


# The fields that need more than a line


def _metadata(metadata: BackupMetadata | None) -> BackupMetadata | None:
    labels = own_labels(f"{_BACKUP}.metadata.labels", metadata.labels if metadata else None)
    return BackupMetadata(labels=labels) if labels else None


def _ordered(ordered: Mapping[str, str] | None, namespace: str) -> dict[str, str] | None:
    """Return which objects come first; names without the tenant's namespace before them would be of other objects."""
    path = f"{_BACKUP}.orderedResources"
    few_enough(path, ordered)
    kinds.names(path, tuple(ordered or ()))
    if "*" in (ordered or {}):
        raise Refusal(f"{path} contains *, which is not a kind; list each kind by name")
    for kind, objects in (ordered or {}).items():
        for place in objects.split(","):
            if not place.startswith(f"{namespace}/") or place.count("/") != 1:
                raise Refusal(
                    f"{path} {kind} contains {shown(place)}; write objects as {namespace}/NAME, separated by commas"
                )
    return dict(ordered) if ordered else None


def _written(spec: BackupSpec | RestoreSpec) -> dict[str, Any]:
    document: dict[str, Any] = as_json(spec)
    return document
