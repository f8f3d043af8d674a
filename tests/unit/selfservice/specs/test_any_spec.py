"""Whatever a tenant writes: a spec that keeps to the invariant, or a refusal in a sentence; never anything else."""

import os
import re
from collections.abc import Mapping
from typing import Any

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from foresail.api.nonadmin import NEVER_BACKED_UP
from foresail.api.policy import SelfServicePolicySpec
from foresail.api.specs import BackupSpec, RestoreSpec
from foresail.plan import Key
from foresail.selfservice.reasons import Reason, Refused
from foresail.selfservice.specs.build import backup_spec, restore_spec
from foresail.tenancy.policies import PolicyRow
from tests.selfservice_invariant import BACKUP, RESTORE, breaches_of_backup, breaches_of_restore

NAMESPACE = "shop"
VELERO_BACKUP = "shop-daily-5f0c"
COUNT = os.environ.get("FORESAIL_EXAMPLES")  # a fixed sample, unless so many random ones are asked for
EXAMPLES = settings(
    max_examples=int(COUNT or 200),
    derandomize=COUNT is None,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
)

OPEN: Mapping[str, Any] = {"namespaceSelector": {}}
WIDE = {
    "namespaceSelector": {},
    "backup": {
        "fileSystem": "Allowed",
        "hooks": {"allowed": True, "timeout": {"maximum": "2m"}},
        "ttl": {"minimum": "1h", "maximum": "720h"},
        "parallelFiles": 4,
        "allowed": {
            "storageLocations": ["fast", "cold"],
            "volumeSnapshotLocations": ["east"],
            "resourcePolicies": ["skip-nfs"],
            "datamovers": ["kopia"],
            "volumeGroupSnapshotLabelKeys": ["group"],
        },
    },
    "restore": {
        "hooks": {"allowed": True},
        "allowed": {
            "existingResourcePolicies": ["update"],
            "resourceModifiers": ["skip-nfs"],
            "resourcePolicies": ["skip-nfs"],
        },
        "kinds": {"refused": ["secrets"]},
    },
}
STRICT = {
    "namespaceSelector": {},
    "backup": {
        "required": {"ttl": "24h", "snapshotMoveData": True, "storageLocation": "cold"},
        "defaults": {"datamover": "kopia", "uploaderConfig": {"parallelFilesUpload": 99}},
        "csiSnapshotTimeout": {"maximum": "5m"},
    },
    "restore": {
        "defaults": {"existingResourcePolicy": "update"},
        "required": {"restorePVs": False},
        "kinds": {
            "allowed": ["deployments.apps", "persistentvolumeclaims", "configmaps", "roles.rbac.authorization.k8s.io"]
        },
    },
}
POLICIES: list[Mapping[str, Any]] = [OPEN, WIDE, STRICT]


def row(spec: Mapping[str, Any]) -> PolicyRow:
    return PolicyRow(Key("", "team"), msgspec.convert(spec, SelfServicePolicySpec))


hostile_text = st.one_of(
    st.text(max_size=20),
    st.sampled_from(
        ["*", "**", "*.*", "?", "[", "[!a]*", "{a,b}", "a,b", "!", "\\", "", ".", "-", "..", "a.b.", "kube-system",
         "shop ", "shop\n", "SHOP", "s*", "\u0455hop", "\ud800", "x" * 5000, "../velero", "shop/../velero", "0", "null"]
    ),
)  # fmt: skip
anything = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), hostile_text),
    lambda deeper: st.one_of(st.lists(deeper, max_size=4), st.dictionaries(hostile_text, deeper, max_size=4)),
    max_leaves=12,
)
kind = st.one_of(
    hostile_text,
    st.sampled_from(
        ["pods", "secrets", "deployments.apps", "deployments", "PersistentVolumeClaims", "pvc", "pv",
         "persistentvolumes", "configmaps", "nonadminbackups", "nonadminbackups.oadp.openshift.io", "backups.velero.io",
         "clusterroles", "clusterroles.rbac.authorization.k8s.io", "roles", "roles.rbac.authorization.k8s.io",
         "rolebindings", "nodes", "namespaces", "events", "gadgets.example.com",
         "volumesnapshotclasses.snapshot.storage.k8s.io", "*"]
    ),
)  # fmt: skip
good_kind = st.sampled_from(["pods", "secrets", "deployments.apps", "deployments", "pvc", "configmaps", "pv"])
kinds = st.one_of(
    st.lists(good_kind, max_size=4), st.lists(kind, max_size=4), st.just(["*"]), st.just(["pods"] * 300), anything
)
namespaces: st.SearchStrategy[list[str]] = st.one_of(
    st.just([NAMESPACE]), st.just([]), st.lists(hostile_text, max_size=3), st.just(["kube-system"])
)
name = st.one_of(
    st.sampled_from(["fast", "cold", "east", "kopia", "velero", "group", "skip-nfs", "none", "update", ""]),
    hostile_text,
)
duration = st.one_of(
    st.sampled_from(["0", "0s", "30s", "5m", "1h", "24h", "24h0m0s", "720h", "9999h", "999999h", "-1h", "1h\n", "1d",
                     "", "0.5h", "1e9h", "9223372036854775807ns", "5m5m", "infinity"]),
    hostile_text,
)  # fmt: skip
label = st.one_of(
    st.sampled_from(["app", "tier", "example.com/team", "velero.io/schedule-name", "openshift.io/oadp"]),
    hostile_text,
)
requirement = st.fixed_dictionaries(
    {"key": label, "operator": st.sampled_from(["In", "NotIn", "Exists", "DoesNotExist", "Gt", ""])},
    optional={"values": st.lists(label, max_size=3)},
)
selector = st.one_of(
    st.fixed_dictionaries(
        {},
        optional={
            "matchLabels": st.dictionaries(label, label, max_size=3),
            "matchExpressions": st.lists(requirement, max_size=2),
        },
    ),
    anything,
)
flag = st.one_of(st.booleans(), st.none(), anything)
reference = st.one_of(
    st.fixed_dictionaries(
        {"kind": st.sampled_from(["ConfigMap", "configmap", "Secret"]), "name": name}, optional={"apiGroup": name}
    ),
    anything,
)
command = st.one_of(st.just(["sync"]), st.lists(hostile_text, max_size=3))


def hook_rules(groups: list[str], timeouts: list[str]) -> st.SearchStrategy[Any]:
    run = st.fixed_dictionaries(
        {"command": command},
        optional={
            **dict.fromkeys(timeouts, duration),
            "container": hostile_text,
            "onError": st.sampled_from(["Fail", "Continue", "Ignore"]),
            "waitForReady": st.booleans(),
        },
    )
    hook = st.one_of(
        st.fixed_dictionaries({"exec": run}),
        st.fixed_dictionaries({"init": st.fixed_dictionaries({"initContainers": st.just([{"name": "x"}])})}),
        anything,
    )
    rule = st.fixed_dictionaries(
        {"name": hostile_text},
        optional={
            **dict.fromkeys(groups, st.lists(hook, max_size=2)),
            "includedNamespaces": namespaces,
            "excludedNamespaces": st.one_of(st.just([]), namespaces),
            "includedResources": kinds,
            "excludedResources": kinds,
            "labelSelector": selector,
        },
    )
    return st.one_of(st.fixed_dictionaries({"resources": st.lists(rule, max_size=2)}), anything)


def ordered() -> st.SearchStrategy[Any]:
    objects = st.sampled_from(
        ["shop/a", "shop/a,shop/b", "kube-system/a", "a", "shop/a/b", "shop/,", "shop/a,other/b", ""]
    )
    return st.one_of(st.dictionaries(kind, objects, max_size=2), anything)


def uploader(number: str) -> st.SearchStrategy[Any]:
    numbers = st.integers(min_value=-2, max_value=99)
    return st.one_of(
        st.fixed_dictionaries({}, optional={number: numbers, "writeSparseFiles": st.booleans(), "x": numbers}), anything
    )


BACKUP_FIELDS: dict[str, st.SearchStrategy[Any]] = {
    "metadata": st.one_of(st.fixed_dictionaries({"labels": st.dictionaries(label, label, max_size=3)}), anything),
    "includedNamespaces": namespaces,
    "excludedNamespaces": namespaces,
    "includedResources": kinds,
    "excludedResources": kinds,
    "includedClusterScopedResources": kinds,
    "excludedClusterScopedResources": kinds,
    "includedNamespaceScopedResources": kinds,
    "excludedNamespaceScopedResources": kinds,
    "includeClusterResources": flag,
    "labelSelector": selector,
    "orLabelSelectors": st.one_of(st.lists(selector, max_size=3), anything),
    "orderedResources": ordered(),
    "hooks": hook_rules(["pre", "post"], ["timeout"]),
    "storageLocation": name,
    "volumeSnapshotLocations": st.lists(name, max_size=2),
    "ttl": duration,
    "snapshotVolumes": flag,
    "snapshotMoveData": flag,
    "defaultVolumesToFsBackup": flag,
    "defaultVolumesToRestic": flag,
    "volumeGroupSnapshotLabelKey": name,
    "datamover": name,
    "resourcePolicy": reference,
    "csiSnapshotTimeout": duration,
    "itemOperationTimeout": duration,
    "uploaderConfig": uploader("parallelFilesUpload"),
}
RESTORE_FIELDS: dict[str, st.SearchStrategy[Any]] = {
    "backupName": name,
    "scheduleName": name,
    "includedNamespaces": namespaces,
    "excludedNamespaces": namespaces,
    "includedResources": kinds,
    "excludedResources": kinds,
    "namespaceMapping": st.one_of(st.just({}), st.just({NAMESPACE: "kube-system"}), anything),
    "labelSelector": selector,
    "orLabelSelectors": st.one_of(st.lists(selector, max_size=3), anything),
    "restorePVs": flag,
    "restoreStatus": st.one_of(st.just({}), st.fixed_dictionaries({"includedResources": kinds}), anything),
    "preserveNodePorts": flag,
    "includeClusterResources": flag,
    "hooks": hook_rules(["postHooks"], ["execTimeout", "waitTimeout"]),
    "existingResourcePolicy": name,
    "itemOperationTimeout": duration,
    "resourceModifier": reference,
    "resourcePolicy": reference,
    "uploaderConfig": uploader("parallelFilesDownload"),
}


@st.composite
def a_spec(draw: st.DrawFn, fields: Mapping[str, st.SearchStrategy[Any]], always: Mapping[str, Any]) -> dict[str, Any]:
    chosen = draw(st.lists(st.sampled_from(sorted(fields)), unique=True, max_size=4))
    spec = {**always, **{field: draw(fields[field]) for field in chosen}}
    if draw(st.integers(0, 9)) == 0:
        spec[draw(hostile_text)] = draw(anything)
    return spec


FORBIDDEN = re.compile(
    r"allowed by SelfServicePolicy|the administrator has restricted|ask a cluster administrator|"
    r"is too (short|long); the|is reserved; choose|entries; shorten it to at most|"
    r"self-service never backs up|does not allow to restore|"
    r"init containers are never allowed|hooks.* is restricted, can not contain namespaces|"
    r"(volumeSnapshotLocations|restoreStatus) is restricted"
)
"""What only a policy can allow or could allow elsewhere; everything else is wrong under any policy."""


def is_a_good_refusal(refused: Refused, invalid: Reason) -> bool:
    reason = Reason.POLICY_VIOLATION if FORBIDDEN.search(refused.message) else invalid
    return refused.reason is reason and 10 < len(refused.message) < 700 and refused.message.isprintable()


@pytest.mark.repeats
@pytest.mark.parametrize("policy", POLICIES, ids=["open", "wide", "strict"])
def test_any_backup_spec_keeps_to_the_invariant_or_is_refused(policy: Mapping[str, Any]) -> None:
    accepted: list[dict[str, Any]] = []
    holding = row(policy)

    @EXAMPLES
    @given(a_spec(BACKUP_FIELDS, {}))
    def holds(tenant: dict[str, Any]) -> None:
        made = backup_spec(tenant, NAMESPACE, holding)
        if isinstance(made, Refused):
            assert is_a_good_refusal(made, Reason.INVALID_BACKUP_SPEC), made
            return
        assert breaches_of_backup(made, NAMESPACE, policy) == []
        accepted.append(made)

    holds()
    assert len(accepted) > 20, "too few were accepted for the invariant to mean anything"


@pytest.mark.repeats
@pytest.mark.parametrize("policy", POLICIES, ids=["open", "wide", "strict"])
def test_any_restore_spec_keeps_to_the_invariant_or_is_refused(policy: Mapping[str, Any]) -> None:
    accepted: list[dict[str, Any]] = []
    holding = row(policy)

    @EXAMPLES
    @given(a_spec(RESTORE_FIELDS, {"backupName": "daily"}))
    def holds(tenant: dict[str, Any]) -> None:
        made = restore_spec(tenant, NAMESPACE, VELERO_BACKUP, holding)
        if isinstance(made, Refused):
            assert is_a_good_refusal(made, Reason.INVALID_RESTORE_SPEC), made
            return
        assert breaches_of_restore(made, NAMESPACE, VELERO_BACKUP, policy) == []
        accepted.append(made)

    holds()
    assert len(accepted) > 20, "too few were accepted for the invariant to mean anything"


@pytest.mark.repeats
@EXAMPLES
@given(anything.filter(lambda value: isinstance(value, dict)))
def test_json_of_any_shape_is_no_reason_to_fail(tenant: Any) -> None:  # noqa: ANN401
    assert isinstance(backup_spec(tenant, NAMESPACE, row(OPEN)), (dict, Refused))
    assert isinstance(restore_spec(tenant, NAMESPACE, VELERO_BACKUP, row(OPEN)), (dict, Refused))


def test_the_strategies_and_the_invariant_name_every_field_of_velero() -> None:
    backup = {each.encode_name for each in msgspec.structs.fields(BackupSpec)}
    restore = {each.encode_name for each in msgspec.structs.fields(RestoreSpec)}
    assert set(BACKUP) == set(BACKUP_FIELDS) == backup
    assert set(RESTORE) == set(RESTORE_FIELDS) == restore


GOOD_BACKUP = {
    "includedNamespaces": [NAMESPACE],
    "excludedNamespaceScopedResources": [*NEVER_BACKED_UP],
    "excludedClusterScopedResources": ["*.*", "componentstatuses", "nodes"],
    "defaultVolumesToFsBackup": False,
    "resourcePolicy": {"kind": "configmap", "name": "foresail-snapshot-volumes"},
}
GOOD_RESTORE = {
    "backupName": VELERO_BACKUP,
    "includedNamespaces": [NAMESPACE],
    "includedResources": ["pods"],
    "excludedResources": [*NEVER_BACKED_UP],
}


@pytest.mark.parametrize(
    "worse",
    [
        {"includedNamespaces": [NAMESPACE, "other"]},
        {"includedNamespaces": ["*"]},
        {"excludedNamespaces": ["other"]},
        {"includedResources": ["pods"]},
        {"excludedResources": ["pods"]},
        {"includeClusterResources": True},
        {"includedClusterScopedResources": ["persistentvolumes"]},
        {"excludedClusterScopedResources": ["nodes", "componentstatuses"]},
        {"excludedClusterScopedResources": ["[", "*.*", "componentstatuses", "nodes"]},
        {"excludedNamespaceScopedResources": []},
        {"excludedNamespaceScopedResources": ["*", "*.oadp.openshift.io"]},
        {"includedNamespaceScopedResources": ["*", "pods"]},
        {"includedNamespaceScopedResources": ["pod[s]"]},
        {"metadata": {"labels": {"velero.io/schedule-name": "daily"}}},
        {"labelSelector": {}, "orLabelSelectors": [{}]},
        {"labelSelector": {"matchExpressions": [{"key": "a", "operator": "Gt"}]}},
        {"orLabelSelectors": []},
        {"orderedResources": {"pods": "other/a"}},
        {"hooks": {"resources": []}},
        {"storageLocation": "default"},
        {"volumeSnapshotLocations": ["default"]},
        {"ttl": "forever"},
        {"snapshotVolumes": "yes"},
        {"snapshotMoveData": 1},
        {"defaultVolumesToFsBackup": "yes"},
        {"defaultVolumesToFsBackup": True},
        {"resourcePolicy": {"kind": "configmap", "name": "another"}},
        {"defaultVolumesToRestic": True},
        {"volumeGroupSnapshotLabelKey": "app"},
        {"datamover": "other"},
        {"resourcePolicy": {"kind": "configmap", "name": "x"}},
        {"csiSnapshotTimeout": "5h"},
        {"itemOperationTimeout": "25h"},
        {"uploaderConfig": {"parallelFilesUpload": 65}},
        {"aFieldOfTomorrow": 1},
    ],
)
def test_the_invariant_notices_a_worse_backup(worse: dict[str, Any]) -> None:
    assert breaches_of_backup(GOOD_BACKUP, NAMESPACE, OPEN) == []
    assert breaches_of_backup({**GOOD_BACKUP, **worse}, NAMESPACE, OPEN)


@pytest.mark.parametrize(
    "worse",
    [
        {"backupName": "another"},
        {"scheduleName": "daily"},
        {"includedNamespaces": []},
        {"excludedNamespaces": ["other"]},
        {"includedResources": []},
        {"includedResources": ["pods", "roles"]},
        {"includedResources": ["pods", "priorityclasses"]},
        {"includedResources": ["nonadminbackups.oadp.openshift.io"], "excludedResources": ["pods"]},
        {"excludedResources": ["["]},
        {"excludedResources": ["*"]},
        {"namespaceMapping": {NAMESPACE: "other"}},
        {"labelSelector": {}, "orLabelSelectors": [{}]},
        {"labelSelector": {"x": 1}},
        {"orLabelSelectors": []},
        {"restorePVs": "yes"},
        {"restoreStatus": {}},
        {"preserveNodePorts": "yes"},
        {"includeClusterResources": True},
        {"hooks": {"resources": []}},
        {"existingResourcePolicy": "update"},
        {"itemOperationTimeout": "25h"},
        {"resourceModifier": {"kind": "configmap", "name": "x"}},
        {"resourcePolicy": {"kind": "configmap", "name": "x"}},
        {"uploaderConfig": {"parallelFilesDownload": -1}},
        {"aFieldOfTomorrow": 1},
    ],
)
def test_the_invariant_notices_a_worse_restore(worse: dict[str, Any]) -> None:
    assert breaches_of_restore(GOOD_RESTORE, NAMESPACE, VELERO_BACKUP, OPEN) == []
    assert breaches_of_restore({**GOOD_RESTORE, **worse}, NAMESPACE, VELERO_BACKUP, OPEN)


@pytest.mark.parametrize(
    "worse",
    [
        {"includedNamespaces": ["other"]},
        {"includedNamespaces": None},
        {"excludedNamespaces": ["other"]},
        {"pre": [{"exec": {"command": ["x"], "timeout": "3m"}}]},
        {"pre": [{"exec": {"command": ["x"]}}]},
        {"post": [{"init": {}}]},
        {"includedResources": ["["]},
    ],
)
def test_the_invariant_notices_a_worse_hook(worse: dict[str, Any]) -> None:
    good = {"name": "x", "includedNamespaces": [NAMESPACE], "pre": [{"exec": {"command": ["x"], "timeout": "2m"}}]}
    assert breaches_of_backup({**GOOD_BACKUP, "hooks": {"resources": [good]}}, NAMESPACE, WIDE) == []
    assert breaches_of_backup({**GOOD_BACKUP, "hooks": {"resources": [{**good, **worse}]}}, NAMESPACE, WIDE)
