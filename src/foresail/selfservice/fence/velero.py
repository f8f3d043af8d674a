"""What self-service writes in Velero's namespace for the requests of tenants."""

from foresail.api import nonadmin, velero
from foresail.api.fence import (
    ANNOTATIONS,
    CREATE,
    DELETE,
    LABELS,
    NAME,
    OLD_ANNOTATIONS,
    OLD_STATUS,
    SPEC,
    STATUS,
    UNCHANGED_SPEC,
    UPDATE,
    Condition,
    Rule,
    all_of,
    any_of,
    has_all,
    only,
    plain,
    quoted,
    same,
    unchanged,
    value,
    words,
)
from foresail.api.marks import (
    ADOPT,
    ADOPTED,
    ATTEMPT,
    BACKUP_UID,
    NAMESPACE_UID,
    ORPHANED,
    POD_VOLUME_TIMEOUT,
    PROTECTION_CLASS,
    RECORD_SIGNATURE,
    REOPENED,
    REQUEST_UID,
    REQUESTER,
    TARGET_NAMESPACE_UID,
)
from foresail.api.specs import (
    BackupHookRule,
    BackupSpec,
    RestoreHookRule,
    RestoreSpec,
)
from foresail.selfservice.access.rules import PODS
from foresail.selfservice.access.view import PREFIXES
from foresail.selfservice.downloads.decide import PREFIX as DOWNLOAD
from foresail.selfservice.downloads.targets import SERVED, TARGETS
from foresail.selfservice.downloads.targets import Rule as Served
from foresail.selfservice.downloads.view import NACUUID_LABEL as DOWNLOAD_LABEL
from foresail.selfservice.families import BACKUPS, RESTORES, Family
from foresail.selfservice.results.decide import PREFIX as RESULTS
from foresail.selfservice.rows.velero import ORIGIN_NAME, ORIGIN_NAMESPACE
from foresail.selfservice.specs.annotations import MODIFIER
from foresail.selfservice.specs.build import BACKUP_WRITTEN, RESTORE_WRITTEN
from foresail.selfservice.specs.kinds import CLUSTER_SCOPED_LEFT_OUT
from foresail.selfservice.specs.values import RESERVED_DOMAINS
from foresail.tenancy.restored_kinds import EVERYTHING, NEVER_RESTORED
from foresail.tenancy.volume_policies import VOLUME_POLICIES

OURS = "[0-9a-f]{8}-[0-9a-f]{4}-5[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}"
"""The UUID at the end of a name that this controller gave."""

OF_TENANT = "-[0-9a-f]{8}-[0-9a-f]{4}-[45][0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}$"
"""The end of a name of a tenant's object, by this controller or the other one."""

OF_CLASS = "-[1-9][0-9]*-[0-9]{14}-[0-9a-f]{8}(-r[1-9][0-9]?)?$"
"""The end of the name of the backup of a ProtectionClass: the number of its Schedule, the slot and the attempt."""

_STEM = 20  # characters of a namespace that are in every name, however long it is


def is_of(name: str, origin: str) -> str:
    """Return whether the name of a Velero object can be of a tenant's namespace."""
    short = f'{name}.startsWith({origin} + "-")'
    return f"({origin}.size() > {_STEM} ? {name}.startsWith({origin}.substring(0, {_STEM})) : {short})"


def labels(label: str, more: tuple[str, ...] = ()) -> str:
    """Return whether an object has the labels of every object of a tenant, one with its own name, and some others."""
    fixed = [f"{LABELS}[?{quoted(key)}] == optional.of({quoted(text)})" for key, text in nonadmin.LABELS.items()]
    return all_of(only(LABELS, (*nonadmin.LABELS, label, *more)), *fixed, f"{value(LABELS, label)} == {NAME}")


OWN_RESOURCE_POLICIES = tuple(VOLUME_POLICIES)
"""ConfigMaps of the chart in Velero's namespace that tenants' Backups and Restores may have as a policy."""

_HOOKS = "hooks need selfService.hooks of the chart, and are for the tenant's namespace without init containers"


def _encoded(of: type, fields: tuple[str, ...]) -> list[str]:
    names = dict(zip(of.__struct_fields__, of.__struct_encode_fields__, strict=True))  # type: ignore[attr-defined]
    return [names[field] for field in fields]


def _config_map(field: str, names: str, own: tuple[str, ...]) -> str:
    of = value(SPEC, field, "{}")
    is_listed = f"{value(of, 'name')} in {words(own)} || {value(of, 'name')} in {names}"
    return any_of(
        f'!("{field}" in {SPEC})',
        all_of(only(of, ("kind", "name")), f'{value(of, "kind")}.lowerAscii() == "configmap"', is_listed),
    )


def _hooks(rule: type, hooks: tuple[str, ...]) -> Condition:
    keys = [field for field in rule.__struct_encode_fields__ if field != "excludedNamespaces"]  # type: ignore[attr-defined]
    commands = " && ".join(f'each[?"{name}"].orValue([]).all(hook, {only("hook", ("exec",))})' for name in hooks)
    of = value(SPEC, "hooks", "{}")
    each = f'{only("each", keys)} && each[?"includedNamespaces"].orValue([]) == [variables.origin] && {commands}'
    allowed = f"variables.allowsHooks && {only(of, ('resources',))}"
    return Condition(
        any_of(f'!("hooks" in {SPEC})', f"{allowed} && {value(of, 'resources', '[]')}.all(each, {each})"), _HOOKS
    )


def _velero_object(family: Family, fields: type, written: tuple[str, ...], *annotations: str) -> tuple[Condition, ...]:
    record = (family.origin_namespace, family.origin_name, REQUEST_UID, NAMESPACE_UID)
    return (
        plain("spec"),
        Condition(
            all_of(
                only(ANNOTATIONS, (*record, REQUESTER, POD_VOLUME_TIMEOUT, *annotations)),
                has_all(ANNOTATIONS, record),
                labels(family.nacuuid_label),
            ),
            "it creates only what is recorded as a request of a tenant, with no label and annotation but its own",
        ),
        Condition("variables.isReachable", "selfService.namespaces and excludedNamespaces do not allow this namespace"),
        Condition(
            all_of(f"{NAME}.matches({quoted(f'-{OURS}$')})", is_of(NAME, "variables.origin")),
            "its name is that of the tenant's request",
        ),
        Condition(only(SPEC, _encoded(fields, written)), "it writes no other fields of a spec"),
        Condition(
            f"{value(SPEC, 'includedNamespaces', '[]')} == [variables.origin]",
            "it backs up and restores exactly one namespace: that of the request",
        ),
        Condition(
            _config_map("resourcePolicy", "variables.resourcePolicies", OWN_RESOURCE_POLICIES),
            "resourcePolicy needs selfService.resourcePolicies of the chart",
        ),
    )


_BACKUP = Rule(
    velero.BACKUP,
    CREATE,
    (
        *_velero_object(BACKUPS, BackupSpec, BACKUP_WRITTEN, RECORD_SIGNATURE),
        _hooks(BackupHookRule, ("pre", "post")),
        Condition(
            f"{quoted(EVERYTHING)} in {value(SPEC, 'excludedClusterScopedResources', '[]')} || "
            f"{words(CLUSTER_SCOPED_LEFT_OUT)}.all(each, "
            f"each in {value(SPEC, 'excludedClusterScopedResources', '[]')})",
            "it leaves cluster-scoped resources out of a tenant's backup",
        ),
        Condition(
            any_of(
                f"!{value(SPEC, 'storageLocation')}.matches({quoted(OF_TENANT)})",
                is_of(value(SPEC, "storageLocation"), "variables.origin"),
            ),
            "it stores nothing in the location of another tenant",
        ),
        Condition(
            all_of(
                only(value(SPEC, "metadata", "{}"), ("labels",)),
                f'{SPEC}[?"metadata"][?"labels"].orValue({{}}).all(key, !{words(RESERVED_DOMAINS)}.exists(each, '
                'key.startsWith(each + "/") || key.contains("." + each + "/")))',
            ),
            "a tenant's labels are not those by which Velero, Kubernetes and Foresail recognise objects",
        ),
    ),
)
_RESTORE = Rule(
    velero.RESTORE,
    CREATE,
    (
        *_velero_object(RESTORES, RestoreSpec, RESTORE_WRITTEN, TARGET_NAMESPACE_UID, PROTECTION_CLASS),
        _hooks(RestoreHookRule, ("postHooks",)),
        Condition(
            all_of(
                f"!{value(SPEC, 'includeClusterResources', 'false')}",
                f"{words(NEVER_RESTORED)}.all(each, each in {value(SPEC, 'excludedResources', '[]')})",
            ),
            "it restores no cluster-scoped resources and none of Velero's and self-service's own kinds",
        ),
        Condition(
            any_of(
                f'!("namespaceMapping" in {SPEC}) && !({quoted(TARGET_NAMESPACE_UID)} in {ANNOTATIONS})',
                all_of(
                    "variables.allowsOtherNamespaces",
                    f"{value(SPEC, 'namespaceMapping', '{}')}.size() == 1 && variables.target != variables.origin",
                    "variables.isTargetReachable",
                    has_all(ANNOTATIONS, (TARGET_NAMESPACE_UID,)),
                    f'!("hooks" in {SPEC})',
                ),
            ),
            "it restores into another namespace only if selfService.otherNamespaces of the chart is set, without hooks,"
            " and if selfService.namespaces and excludedNamespaces allow that one too",
        ),
        Condition(
            any_of(
                all_of(
                    f"{value(SPEC, 'backupName')}.matches({quoted(OF_TENANT)})",
                    f"!({quoted(PROTECTION_CLASS)} in {ANNOTATIONS})",
                ),
                all_of(
                    "variables.allowsFromProtection",
                    has_all(ANNOTATIONS, (PROTECTION_CLASS,)),
                    f'{value(SPEC, "backupName")}.startsWith({value(ANNOTATIONS, PROTECTION_CLASS)} + "-")',
                    f"{value(SPEC, 'backupName')}.matches({quoted(OF_CLASS)})",
                    f"{quoted(PODS)} in {value(SPEC, 'excludedResources', '[]')}",
                    f'!("namespaceMapping" in {SPEC}) && !("hooks" in {SPEC})',
                ),
            ),
            "it restores only backups of tenants, and those of ProtectionClasses into their own namespace without pods",
        ),
        Condition(
            _config_map("resourceModifier", "variables.resourceModifiers", (MODIFIER,)),
            "resourceModifier is its own, or needs selfService.resourceModifiers of the chart",
        ),
        Condition(
            f'{value(SPEC, "existingResourcePolicy")} in ["", "none"] || (variables.allowsUpdates && '
            f'{value(SPEC, "existingResourcePolicy")} == "update")',
            "existingResourcePolicy update needs selfService.updateExisting of the chart",
        ),
    ),
)
_HAS_RECORD = Condition(f"{quoted(REQUEST_UID)} in {OLD_ANNOTATIONS}", "it deletes only what it made for a tenant")
_DELETED_VELERO = tuple(
    Rule(kind, DELETE, (_HAS_RECORD,)) for kind in (velero.BACKUP, velero.RESTORE, velero.DELETE_REQUEST)
)

_IS_REOPENED = f"{ANNOTATIONS}[?{quoted(REOPENED)}] != {OLD_ANNOTATIONS}[?{quoted(REOPENED)}]"
_IS_ADOPTED = f"{ANNOTATIONS}[?{quoted(ADOPTED)}] == optional.of(object.metadata.uid)"
_RECORD_KEYS = (BACKUPS.origin_namespace, BACKUPS.origin_name, REQUEST_UID, NAMESPACE_UID)
_MARKS = (
    UNCHANGED_SPEC,
    unchanged()[2],
    Condition(
        any_of(
            all_of(same(ANNOTATIONS, OLD_ANNOTATIONS, (ORPHANED, REOPENED)), f"{LABELS} == variables.oldLabels"),
            all_of(
                _IS_ADOPTED,
                same(
                    ANNOTATIONS,
                    OLD_ANNOTATIONS,
                    (REQUEST_UID, NAMESPACE_UID, ADOPTED, RECORD_SIGNATURE, ADOPT, ORPHANED),
                ),
                has_all(ANNOTATIONS, _RECORD_KEYS),
                same(LABELS, "variables.oldLabels", (*nonadmin.LABELS, BACKUPS.nacuuid_label)),
                f'{value(STATUS, "phase")} in ["Completed", "PartiallyFailed"]',
                "variables.isReachable",
            ),
        ),
        "it changes nothing of a Backup but its own marks, and the record only of an ended Backup that is adopted",
    ),
    Condition(
        any_of(
            f"{STATUS} == {OLD_STATUS}",
            all_of(
                _IS_REOPENED,
                same(STATUS, OLD_STATUS, ("phase",)),
                f"{value(STATUS, 'phase')} in {words(sorted(set(velero.REOPENED.values())))}",
            ),
        ),
        "it changes no status of a Backup but the phase of one that Velero has to end once more",
    ),
    Condition(any_of(f"{quoted(REQUEST_UID)} in {OLD_ANNOTATIONS}", _IS_ADOPTED), "it changes only backups of tenants"),
)
_DELETION = Rule(
    velero.DELETE_REQUEST,
    CREATE,
    (
        plain("spec"),
        Condition(
            all_of(
                only(SPEC, ("backupName",)),
                f"{value(SPEC, 'backupName')} == {NAME}",
                f"{NAME}.matches({quoted(OF_TENANT)})",
                only(ANNOTATIONS, (REQUEST_UID, ATTEMPT, BACKUPS.origin_namespace, BACKUPS.origin_name)),
                has_all(ANNOTATIONS, (REQUEST_UID, ATTEMPT)),
                labels(BACKUPS.nacuuid_label, (velero.BACKUP_NAME_LABEL, velero.BACKUP_UID_LABEL)),
            ),
            "it deletes only backups that were made for a tenant",
        ),
    ),
)
_CONTENTS = [kind for kind, target in TARGETS.items() if target.rule is Served.CONTENTS]
_TARGET = f'{SPEC}[?"target"]'
_DOWNLOAD = Rule(
    velero.DOWNLOAD_REQUEST,
    CREATE,
    (
        plain("spec"),
        Condition(
            all_of(
                only(SPEC, ("target",)),
                only(f"{_TARGET}.orValue({{}})", ("kind", "name")),
                f"{words((DOWNLOAD, RESULTS, *PREFIXES.values()))}.exists(each, {NAME}.startsWith(each))",
                only(
                    ANNOTATIONS,
                    (
                        *(ORIGIN_NAMESPACE, ORIGIN_NAME, REQUEST_UID, NAMESPACE_UID, BACKUP_UID),
                        *(BACKUPS.origin_namespace, BACKUPS.origin_name),
                        *(RESTORES.origin_namespace, RESTORES.origin_name),
                    ),
                ),
                f"{words((REQUEST_UID, BACKUP_UID))}.exists(key, key in {ANNOTATIONS})",
                only(LABELS, (*nonadmin.LABELS, DOWNLOAD_LABEL, BACKUPS.nacuuid_label, RESTORES.nacuuid_label)),
            ),
            "it writes no other fields of a DownloadRequest",
        ),
        Condition(
            any_of(
                f'{_TARGET}[?"name"].orValue("").matches({quoted(OF_TENANT)})',
                all_of(
                    "variables.allowsFromProtection",
                    f'{_TARGET}[?"name"].orValue("").matches({quoted(OF_CLASS)})',
                    f'{_TARGET}[?"kind"].orValue("") in {words(sorted(PREFIXES))}',
                    f"{words(tuple(PREFIXES.values()))}.exists(each, {NAME}.startsWith(each))",
                    only(ANNOTATIONS, (BACKUP_UID,)),
                ),
            ),
            "it reads only files about backups and restores of tenants, and the lists of those of ProtectionClasses",
        ),
        Condition(
            any_of(
                f'{_TARGET}[?"kind"].orValue("") in {words(sorted(SERVED))}',
                f'variables.allowsContents && {_TARGET}[?"kind"].orValue("") in {words(_CONTENTS)} && '
                f"{NAME}.startsWith({quoted(DOWNLOAD)})",
            ),
            "it reads logs, results and lists, and contents only if selfService.downloadContents is set",
        ),
    ),
)
_DELETED_DOWNLOAD = Rule(
    velero.DOWNLOAD_REQUEST,
    DELETE,
    (
        Condition(
            f"{words((REQUEST_UID, BACKUP_UID))}.exists(key, key in {OLD_ANNOTATIONS})",
            "it deletes only DownloadRequests that it made",
        ),
    ),
)

RULES = (
    _BACKUP,
    Rule(velero.BACKUP, UPDATE, _MARKS),
    _RESTORE,
    *_DELETED_VELERO,
    _DELETION,
    _DOWNLOAD,
    _DELETED_DOWNLOAD,
)
