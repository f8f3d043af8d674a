"""What the ServiceAccount of restore checks writes, as its fence holds it to."""

from foresail.api import core, velero
from foresail.api.fence import (
    ANNOTATIONS,
    CREATE,
    DELETE,
    LABELS,
    NAME,
    OLD_LABELS,
    OLD_SPEC,
    SPEC,
    UPDATE,
    Condition,
    Fence,
    Rule,
    all_of,
    any_of,
    events,
    has_all,
    lease,
    matches,
    only,
    plain,
    quoted,
    same,
    unchanged,
    value,
    words,
)
from foresail.api.fence import NAMESPACE as A_NAMESPACE
from foresail.api.marks import (
    CHECK,
    CHECK_DEPTH,
    CHECK_LABEL,
    CHECK_NAMESPACE,
    CHECK_RUN,
    CHECK_SOURCE,
    CHECKS_LEASE,
    POD_VOLUME_TIMEOUT,
    SANDBOX_ROLE,
)
from foresail.api.pods import POD, RESOURCE_QUOTA
from foresail.api.restore_check import RESTORE_CHECK, SANDBOX_NAME
from foresail.kube.events import EVENT
from foresail.kube.lease import LEASE
from foresail.proof.checks import build, data_build
from foresail.proof.checks.kinds import left_out
from foresail.proof.checks.rows import EXCLUDED
from foresail.proof.checks.volumes import FILLED, PROVISIONED_BY

_SANDBOX = SANDBOX_NAME.pattern
_RUN = "[0-9a-f]{10}"
_MARKS = (CHECK, CHECK_NAMESPACE, CHECK_RUN)
_PSS = "pod-security.kubernetes.io/enforce"
_OF_API_SERVER = "kubernetes.io/metadata.name"
_OF_CHECK = Condition(
    all_of(only(LABELS, (CHECK_LABEL,)), has_all(LABELS, (CHECK_LABEL,))), "it has no label but that of its check"
)
_MARKED = Condition(
    all_of(only(ANNOTATIONS, _MARKS), has_all(ANNOTATIONS, (CHECK, CHECK_RUN))), "it has no annotations but its own"
)
_LABELLED = Condition(f"{quoted(CHECK_LABEL)} in variables.oldLabels", "it deletes only what it made for a check")
_IN_SANDBOX = Condition(matches("request.namespace", _SANDBOX), "it writes this in its sandboxes only")
_OBJECT_IN_SANDBOX = (
    _IN_SANDBOX,
    Condition(
        all_of(
            only("variables.metadata", ("name", "namespace", "uid", "creationTimestamp", "generation", "managedFields",
                "labels", "annotations")),
            only(LABELS, (CHECK_LABEL, *EXCLUDED)),
            only(ANNOTATIONS, _MARKS),
        ),
        "it has no labels and annotations but its own",
    ),
)  # fmt: skip


def _named(kind: str, *suffixes: str) -> Condition:
    endings = f"({'|'.join(f'-{suffix}' if suffix else '' for suffix in suffixes)})"
    return Condition(matches("request.name", f"check-{_RUN}{endings}"), f"its {kind} are named check-...")


_CONFIG_MAPS = ("modifiers", build.EVIDENCE.lstrip("-"), build.START.lstrip("-"))
_DATA_OF_CONFIG_MAPS = {
    "modifiers": ("modifiers.yaml",),
    build.EVIDENCE.lstrip("-"): ("record.json", "sha256"),
    build.START.lstrip("-"): (),
}
_RESTORE_FIELDS = (
    *("backupName", "includedNamespaces", "namespaceMapping", "includedResources", "excludedResources"),
    *("includeClusterResources", "restorePVs", "preserveNodePorts", "itemOperationTimeout", "resourceModifier"),
)
_FILES = ("BackupResourceList", "RestoreResourceList", "RestoreResults", "BackupVolumeInfos")
_TARGET = f'{SPEC}[?"target"]'
_MAPPING = value(SPEC, "namespaceMapping", "{}")
_INCLUDED = value(SPEC, "includedNamespaces", "[]")
_KINDS = value(SPEC, "includedResources", "[]")
_EXCLUDED = value(SPEC, "excludedResources", "[]")
_OWN_MODIFIER = f'{{"kind": "ConfigMap", "name": string({NAME}) + "-modifiers"}}'
_INSIDE = '[{"podSelector": {}}]'

_RESTORE = (
    plain("spec"),
    _OF_CHECK,
    Condition(
        all_of(only(ANNOTATIONS, (*_MARKS, POD_VOLUME_TIMEOUT)), has_all(ANNOTATIONS, (CHECK, CHECK_RUN))),
        "it has no annotations but its own",
    ),
    _named("Restores", ""),
    Condition(only(SPEC, _RESTORE_FIELDS), "it writes no other fields of a Restore"),
    Condition(
        all_of(
            f"{_MAPPING}.size() > 0",
            f"{_INCLUDED}.all(each, each in {_MAPPING})",
            f"{_INCLUDED}.size() == {_MAPPING}.size()",
            f"{_MAPPING}.all(each, {matches('each', A_NAMESPACE)})",
            f"{_MAPPING}.all(each, {matches(f'{_MAPPING}[each]', _SANDBOX)})",
        ),
        "it restores only into sandboxes",
    ),
    Condition(
        all_of(
            f"{value(SPEC, 'includeClusterResources', 'true')} == false",
            f"(variables.allowsData || {value(SPEC, 'restorePVs', 'true')} == false)",
            f"{_KINDS}.size() > 0",
            f'!{_KINDS}.exists(each, each.contains("*"))',
            f"{words(left_out(has_data=True))}.all(each, each in {_EXCLUDED})",
            f"(variables.allowsData || {words(left_out(has_data=False))}.all(each, each in {_EXCLUDED}))",
            f"{value(SPEC, 'resourceModifier', '{}')} == {_OWN_MODIFIER}",
        ),
        "it restores listed kinds with its own modifier, without cluster-scoped objects, and volumes only for data",
    ),
)
_CONFIG_MAP = (
    Condition(
        all_of(
            only("object", ("apiVersion", "kind", "metadata", "data", "immutable")),
            only("variables.metadata", ("name", "namespace", "uid", "creationTimestamp", "managedFields", "labels",
                "annotations")),
        ),
        "it writes no other fields",
    ),
    _OF_CHECK,
    _MARKED,
    _named("ConfigMaps", *_CONFIG_MAPS),
    Condition(
        " && ".join(
            f'(!{NAME}.endsWith("-{name}") || {only("object.?data.orValue({})", keys)})'
            for name, keys in _DATA_OF_CONFIG_MAPS.items()
        ),
        "a ConfigMap has no keys but modifiers, or the record and its digest",
    ),
)  # fmt: skip
_NAMESPACE = (
    Condition(
        all_of(
            matches("request.name", _SANDBOX),
            only("variables.metadata", ("name", "uid", "creationTimestamp", "generation", "managedFields", "labels",
                "annotations")),
            only(LABELS, (CHECK_LABEL, CHECK_DEPTH, _PSS, _OF_API_SERVER)),
            has_all(LABELS, (CHECK_LABEL,)),
            f'{value(LABELS, _PSS)} == "restricted"',
            f'{value(LABELS, CHECK_DEPTH)} in ["", "Data"]',
            f'!("openshift.io/sa.scc.uid-range" in {ANNOTATIONS})',
            f"{ANNOTATIONS}.all(key, key in {words((*_MARKS, CHECK_SOURCE))} || "
            'key in ["openshift.io/requester", "openshift.io/display-name", "openshift.io/description"])',
        ),
        "it creates only sandboxes: restricted namespaces foresail-check-... with labels of their own",
    ),
)  # fmt: skip
_BINDING = (
    *_OBJECT_IN_SANDBOX,
    Condition(
        all_of(
            'object.roleRef.kind == "ClusterRole"',
            f"object.roleRef.name == {quoted(SANDBOX_ROLE)}",
            'object.?subjects.orValue([]).all(each, each.kind == "ServiceAccount" && "system:serviceaccount:" + '
            'each.?namespace.orValue("") + ":" + each.name == request.userInfo.username)',
        ),
        "it gives only itself rights in a sandbox",
    ),
)
_NETWORK = (
    *_OBJECT_IN_SANDBOX,
    Condition(
        all_of(
            only(SPEC, ("podSelector", "policyTypes", "ingress", "egress")),
            f"{value(SPEC, 'podSelector', '{}')} == {{}}",
            f'{value(SPEC, "policyTypes", "[]")} == ["Ingress", "Egress"]',
            f'{value(SPEC, "ingress", "[]")} in [[], [{{"from": {_INSIDE}}}]]',
            f'{value(SPEC, "egress", "[]")} in [[], [{{"to": {_INSIDE}}}]]',
        ),
        "a sandbox is closed: its NetworkPolicy admits nothing from outside and nothing to it",
    ),
)
_PODS = (
    *_OBJECT_IN_SANDBOX,
    Condition(
        any_of(
            all_of(
                f"{NAME}.startsWith({quoted(data_build.canary_name(''))})",
                f"{SPEC}.containers.all(each, each.image == variables.canaryImage)",
            ),
            f"{NAME}.startsWith({quoted(data_build.assertion_name(''))})",
        ),
        "it runs only its canary and the assertion of a check in a sandbox",
    ),
    Condition(
        all_of(
            f'!{value(SPEC, "priorityClassName")}.startsWith("system-")',
            f'!("initContainers" in {SPEC})',
            f'!("hostNetwork" in {SPEC})',
            f"{SPEC}.containers.size() == 1",
            f'{SPEC}.containers.all(each, !("volumeMounts" in each) && !("envFrom" in each) && !("env" in each))',
            f"{value(SPEC, 'volumes', '[]')}.size() == 0",
        ),
        "its pods have one container and neither volumes nor variables, so no Secret of the backup reaches them",
    ),
)
_VOLUME = (
    Condition(
        all_of(
            matches('oldObject.spec.?claimRef.?namespace.orValue("")', _SANDBOX),
            any_of(
                'oldObject.spec.?claimRef.?uid.orValue("") != ""'
                ' && oldObject.metadata.name.endsWith(oldObject.spec.?claimRef.?uid.orValue(""))',
                f'{value(OLD_LABELS, FILLED)}.startsWith(oldObject.spec.?claimRef.?namespace.orValue("") + ".")',
            ),
            f"{quoted(PROVISIONED_BY)} in variables.oldAnnotations",
        ),
        "it changes only volumes that were provisioned for its sandboxes",
    ),
    *unchanged(labels=EXCLUDED),
    Condition(
        all_of(
            f"({same(SPEC, OLD_SPEC, ('persistentVolumeReclaimPolicy',))})",
            f'{value(SPEC, "persistentVolumeReclaimPolicy")} == "Delete"',
        ),
        "it changes only the reclaim policy of a volume, to Delete",
    ),
)

FENCE = Fence(
    CHECKS_LEASE,
    "proof.restoreChecks",
    'The token of restore checks, fenced: RBAC cannot say "only namespaces with this name and label", so this does.\n'
    "Written by `make fences` from src/foresail/proof/checks/fence.py: change that.",
    (
        Rule(core.NAMESPACE, CREATE, _NAMESPACE),
        Rule(
            core.NAMESPACE,
            DELETE,
            (_LABELLED, Condition(matches("request.name", _SANDBOX), "it deletes sandboxes only")),
        ),
        Rule(RESOURCE_QUOTA, CREATE, (*_OBJECT_IN_SANDBOX, Condition(only(SPEC, ("hard",)), "a quota counts objects"))),
        Rule(core.NETWORK_POLICY, CREATE, _NETWORK),
        Rule(core.ROLE_BINDING, CREATE, _BINDING),
        Rule(POD, CREATE, _PODS),
        Rule(core.VOLUME, UPDATE, _VOLUME),
        Rule(velero.RESTORE, CREATE, _RESTORE),
        Rule(velero.RESTORE, DELETE, (_LABELLED, _named("Restores", ""))),
        Rule(
            velero.DOWNLOAD_REQUEST,
            CREATE,
            (
                plain("spec"),
                _OF_CHECK,
                _MARKED,
                _named("DownloadRequests", build.CONTENTS, build.RESTORED, build.RESULTS, build.VOLUMES),
                Condition(
                    all_of(
                        only(SPEC, ("target",)),
                        only(f"{_TARGET}.orValue({{}})", ("kind", "name")),
                        f'{_TARGET}[?"kind"].orValue("") in {words(_FILES)}',
                    ),
                    "it reads lists of names and results, never the objects of a backup",
                ),
            ),
        ),
        Rule(
            velero.DOWNLOAD_REQUEST,
            DELETE,
            (_LABELLED, _named("DownloadRequests", build.CONTENTS, build.RESTORED, build.RESULTS, build.VOLUMES)),
        ),
        Rule(core.CONFIG_MAP, CREATE, _CONFIG_MAP),
        Rule(core.CONFIG_MAP, DELETE, (_LABELLED, _named("ConfigMaps", *_CONFIG_MAPS))),
        Rule(RESTORE_CHECK, UPDATE, subresource="status"),
        events(EVENT),
        lease(LEASE, CHECKS_LEASE),
    ),
    {
        "allowsData": "{{ .Values.proof.data.enabled }}",
        "canaryImage": '"{{ .Values.proof.data.canaryImage | default (include "foresail.image" .) }}"',
    },
)
