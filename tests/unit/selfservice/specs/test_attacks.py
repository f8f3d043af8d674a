"""One test for each way in that is a field of a backup or a restore, or the choice of a namespace.

The rows and their numbers are those of the threat model of self-service. Each test says what becomes of the attempt.
"""

# ruff: noqa: N802 - the names of the rows are in capitals

from fnmatch import fnmatchcase
from typing import Any

import pytest

from foresail.selfservice.policy.quotas import over_quota
from foresail.selfservice.reasons import Reason, Refused
from foresail.selfservice.specs.build import backup_spec, restore_spec
from foresail.tenancy.policies import PolicyRow, policy_for
from tests.unit.selfservice.policies import policy

OPEN = policy()


def backup(spec: dict[str, Any], rules: PolicyRow = OPEN) -> dict[str, Any]:
    made = backup_spec(spec, "shop", rules)
    assert not isinstance(made, Refused), made
    return made


def refused_backup(spec: dict[str, Any], rules: PolicyRow = OPEN, reason: Reason = Reason.INVALID_BACKUP_SPEC) -> str:
    made = backup_spec(spec, "shop", rules)
    assert isinstance(made, Refused), made
    assert made.reason is reason
    return made.message


def forbidden_backup(spec: dict[str, Any], rules: PolicyRow = OPEN) -> str:
    """Return why the policy forbids what another policy may allow."""
    return refused_backup(spec, rules, Reason.POLICY_VIOLATION)


def restore(spec: dict[str, Any], rules: PolicyRow = OPEN) -> dict[str, Any]:
    made = restore_spec({"backupName": "daily", **spec}, "shop", "shop-daily-1", rules)
    assert not isinstance(made, Refused), made
    return made


def refused_restore(spec: dict[str, Any], rules: PolicyRow = OPEN, reason: Reason = Reason.INVALID_RESTORE_SPEC) -> str:
    made = restore_spec({"backupName": "daily", **spec}, "shop", "shop-daily-1", rules)
    assert isinstance(made, Refused), made
    assert made.reason is reason
    return made.message


def forbidden_restore(spec: dict[str, Any], rules: PolicyRow = OPEN) -> str:
    """Return why the policy forbids what another policy may allow."""
    return refused_restore(spec, rules, Reason.POLICY_VIOLATION)


def is_left_out(kind: str, excluded: list[str]) -> bool:
    return any(fnmatchcase(kind, each) for each in excluded)


def test_A3_a_restore_of_cluster_scoped_objects_is_refused_and_absent_only_volumes_come_along() -> None:
    said = refused_restore({"includeClusterResources": True})
    assert said == ("NonAdminRestore spec.restoreSpec.includeClusterResources is restricted, can only be set to false")
    made = restore({})
    assert "includeClusterResources" not in made
    assert made["includedNamespaces"] == ["shop"]
    for kind in ("clusterroles.rbac.authorization.k8s.io", "clusterrolebindings.rbac.authorization.k8s.io"):
        assert is_left_out(kind, made["excludedResources"])


def test_A3_a_restore_may_leave_out_volumes_as_well() -> None:
    assert restore({"includeClusterResources": False})["includeClusterResources"] is False


def test_A4_volumes_come_back_only_with_claims_and_the_policy_can_forbid_them() -> None:
    rules = policy(restore={"required": {"restorePVs": False}})
    assert restore({}, rules)["restorePVs"] is False
    assert forbidden_restore({"restorePVs": True}, rules) == (
        "the administrator has restricted spec.restoreSpec.restorePVs field value to false"
    )
    made = restore({"includedResources": ["pods", "pvc"]})
    assert "persistentvolumes" in made["includedResources"]
    assert "persistentvolumes" not in restore({"includedResources": ["pods"]})["includedResources"]


def test_A4_classes_of_snapshots_are_never_restored() -> None:
    assert is_left_out("volumesnapshotclasses.snapshot.storage.k8s.io", restore({})["excludedResources"])


@pytest.mark.parametrize("update", [False, True])
def test_A5_what_grants_rights_or_lifts_limits_is_left_out(update: bool) -> None:
    rules = policy(restore={"allowed": {"existingResourcePolicies": ["update"]}})
    made = restore({"existingResourcePolicy": "update"} if update else {}, rules)
    for kind in (
        "roles.rbac.authorization.k8s.io",
        "rolebindings.rbac.authorization.k8s.io",
        "rolebindings.authorization.openshift.io",
        "resourcequotas",
        "limitranges",
        "networkpolicies.networking.k8s.io",
        "endpoints",
        "endpointslices.discovery.k8s.io",
    ):
        assert is_left_out(kind, made["excludedResources"]), kind


@pytest.mark.parametrize("kind", ["rolebindings", "RoleBindings", "rolebindings.rbac.authorization.k8s.io"])
def test_A5_asking_for_them_by_name_is_refused(kind: str) -> None:
    assert "does not allow to restore" in forbidden_restore({"includedResources": ["pods", kind]})


def test_A5_objects_that_exist_are_not_overwritten_unless_the_policy_allows_it() -> None:
    assert "existingResourcePolicy update is not allowed" in forbidden_restore({"existingResourcePolicy": "update"})


def test_A5_an_administrator_can_let_them_come_back() -> None:
    made = restore({}, policy(restore={"kinds": {"refused": ["resourcequotas"]}}))
    assert not is_left_out("rolebindings.rbac.authorization.k8s.io", made["excludedResources"])
    assert is_left_out("resourcequotas", made["excludedResources"])


@pytest.mark.parametrize("allowed", [False, True])
def test_A6_init_containers_are_refused_whatever_the_policy_says(allowed: bool) -> None:
    container = {"name": "x", "image": "x", "securityContext": {"privileged": True}}
    hook = {"name": "x", "postHooks": [{"init": {"initContainers": [container]}}]}
    said = forbidden_restore({"hooks": {"resources": [hook]}}, policy(restore={"hooks": {"allowed": allowed}}))
    assert ("init containers are never allowed" if allowed else "hooks are not allowed") in said


EXEC = {"command": ["sync"]}


def test_A7_hooks_are_refused_unless_the_policy_allows_them() -> None:
    said = forbidden_backup({"hooks": {"resources": [{"name": "x", "pre": [{"exec": EXEC}]}]}})
    assert said == "spec.backupSpec.hooks are not allowed by SelfServicePolicy team; remove them"
    said = forbidden_restore({"hooks": {"resources": [{"name": "x", "postHooks": [{"exec": EXEC}]}]}})
    assert said == "spec.restoreSpec.hooks are not allowed by SelfServicePolicy team; remove them"


@pytest.mark.parametrize(("maximum", "asked"), [(None, "9999h"), (None, "601s"), ("1m", "61s")])
def test_A7_a_hook_that_takes_too_long_is_refused(maximum: str | None, asked: str) -> None:
    hooks = {"allowed": True, "timeout": {"maximum": maximum} if maximum else {}}
    pre = {"name": "x", "pre": [{"exec": {**EXEC, "timeout": asked}}]}
    said = forbidden_backup({"hooks": {"resources": [pre]}}, policy(backup={"hooks": hooks}))
    assert said.endswith(f"is too long; the maximum is {maximum or '10m'}")
    for field in ("execTimeout", "waitTimeout"):
        after = {"name": "x", "postHooks": [{"exec": {**EXEC, field: asked}}]}
        assert "too long" in forbidden_restore({"hooks": {"resources": [after]}}, policy(restore={"hooks": hooks}))


@pytest.mark.parametrize("zero", [None, "0", "0s"])
def test_A7_a_hook_without_a_timeout_gets_one_for_velero_waits_for_ever_without(zero: str | None) -> None:
    rules = policy(backup={"hooks": {"allowed": True}}, restore={"hooks": {"allowed": True}})
    wait = {"waitTimeout": zero} if zero else {}
    made = restore({"hooks": {"resources": [{"name": "x", "postHooks": [{"exec": {**EXEC, **wait}}]}]}}, rules)
    run = made["hooks"]["resources"][0]["postHooks"][0]["exec"]
    assert (run["execTimeout"], run["waitTimeout"]) == ("30s", "10m")
    rules = policy(backup={"hooks": {"allowed": True, "timeout": {"maximum": "1m"}}})
    made = backup({"hooks": {"resources": [{"name": "x", "post": [{"exec": EXEC}]}]}}, rules)
    assert made["hooks"]["resources"][0]["post"][0]["exec"]["timeout"] == "1m"


@pytest.mark.parametrize("field", ["includedNamespaces", "excludedNamespaces"])
def test_A7_a_hook_for_another_namespace_is_refused_and_without_one_it_is_for_the_tenants(field: str) -> None:
    rules = policy(backup={"hooks": {"allowed": True}})
    hook: dict[str, Any] = {"name": "x", "pre": [{"exec": EXEC}]}
    assert "other than: shop" in forbidden_backup({"hooks": {"resources": [{**hook, field: ["kube-system"]}]}}, rules)
    made = backup({"hooks": {"resources": [hook]}}, rules)
    assert made["hooks"]["resources"][0]["includedNamespaces"] == ["shop"]


@pytest.mark.parametrize("namespaces", [["other"], ["shop", "other"], ["*"], ["sho?"], ["s*"], ["shop\n"], [""]])
def test_A8_any_namespace_but_the_tenants_is_refused(namespaces: list[str]) -> None:
    assert refused_backup({"includedNamespaces": namespaces}) == (
        "NonAdminBackup spec.backupSpec.includedNamespaces is restricted, can not contain namespaces other than: shop"
    )
    assert refused_backup({"excludedNamespaces": namespaces}) == (
        "NonAdminBackup spec.backupSpec.excludedNamespaces is restricted"
    )


@pytest.mark.parametrize("namespaces", [None, [], ["shop"]])
def test_A8_the_tenants_namespace_is_written_whatever_was(namespaces: list[str] | None) -> None:
    assert backup({"includedNamespaces": namespaces})["includedNamespaces"] == ["shop"]
    assert restore({"includedNamespaces": namespaces})["includedNamespaces"] == ["shop"]


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("namespaceMapping", {"shop": "kube-system"}),
        ("includedNamespaces", ["other"]),
        ("excludedNamespaces", ["other"]),
        ("scheduleName", "daily"),
    ],
)
def test_A9_a_restore_to_or_from_elsewhere_is_refused(field: str, value: object) -> None:
    said = refused_restore({field: value})
    assert said == f"NonAdminRestore nonAdminRestore.spec.restoreSpec.{field} is restricted"


@pytest.mark.parametrize(
    "mapping",
    [{"shop": "kube-system"}, {"other": "stage"}, {"*": "stage"}, {"shop": "stage", "other": "shop"}, {"shop": ""}],
)
def test_A9_a_restore_that_may_go_to_one_namespace_goes_to_no_other(mapping: dict[str, str]) -> None:
    asked = {"backupName": "daily", "namespaceMapping": mapping}
    found = restore_spec(asked, "shop", "shop-daily-1", OPEN, "stage")
    assert isinstance(found, Refused)
    assert "namespaceMapping is restricted" in found.message


def test_A9_the_mapping_of_a_restore_is_written_anew() -> None:
    asked = {"backupName": "daily", "namespaceMapping": {"shop": "stage"}}
    found = restore_spec(asked, "shop", "shop-daily-1", OPEN, "stage")
    assert isinstance(found, dict)
    assert found["namespaceMapping"] == {"shop": "stage"}
    assert found["includedNamespaces"] == ["shop"]


def test_A9_the_backup_that_is_restored_is_the_tenants_own_whatever_its_name() -> None:
    assert restore({"backupName": "cluster-daily"})["backupName"] == "shop-daily-1"
    assert refused_restore({"backupName": ""}) == "NonAdminRestore spec.restoreSpec.backupName is not set"


def test_A10_a_backup_of_cluster_scoped_objects_is_refused() -> None:
    assert refused_backup({"includeClusterResources": True}) == (
        "NonAdminBackup spec.backupSpec.includeClusterResources is restricted, can only be set to false"
    )
    assert refused_backup({"includedClusterScopedResources": ["persistentvolumes"]}) == (
        "NonAdminBackup spec.backupSpec.includedScopedResources is restricted, must remain empty"
    )


@pytest.mark.parametrize("spec", [{}, {"includedResources": ["serviceaccounts"]}, {"excludedResources": ["pods"]}])
def test_A10_of_what_comes_along_only_volumes_are_taken(spec: dict[str, Any]) -> None:
    left_out = backup(spec)["excludedClusterScopedResources"]
    for kind in ("clusterroles.rbac.authorization.k8s.io", "widgets.example.com", "nodes"):
        assert is_left_out(kind, left_out), kind
    for kind in ("persistentvolumes", "namespaces"):
        assert not is_left_out(kind, left_out), kind


def test_A10_without_cluster_resources_not_even_volumes_are_taken() -> None:
    assert backup({"includeClusterResources": False})["excludedClusterScopedResources"] == ["*"]
    assert backup({"excludedClusterScopedResources": ["*"]})["excludedClusterScopedResources"] == ["*"]


@pytest.mark.parametrize("entry", ["[", "{", "pod?", "*s", "*.velero.io", "!pods", "pods,secrets", "", "pods\n"])
@pytest.mark.parametrize("field", ["includedResources", "excludedResources"])
def test_A10_a_pattern_that_would_void_our_exclusions_is_refused(field: str, entry: str) -> None:
    assert "is not a resource name" in refused_backup({field: [entry]})
    assert "is not a resource name" in refused_restore({field: [entry]})


@pytest.mark.parametrize("location", ["default", "another-teams"])
def test_A11_a_storage_location_is_refused_unless_it_is_in_the_policys_list(location: str) -> None:
    said = forbidden_backup({"storageLocation": location})
    assert said == f"spec.backupSpec.storageLocation {location} is not allowed by SelfServicePolicy team; remove it"
    rules = policy(backup={"allowed": {"storageLocations": [location]}})
    assert backup({"storageLocation": location}, rules)["storageLocation"] == location
    assert "storageLocation" not in backup({"storageLocation": ""})


def test_A12_a_volume_snapshot_location_is_refused() -> None:
    said = forbidden_backup({"volumeSnapshotLocations": ["default"]})
    assert said == "NonAdminBackup spec.backupSpec.volumeSnapshotLocations is restricted"


def test_A13_an_object_of_veleros_namespace_is_refused() -> None:
    reference = {"kind": "configmap", "name": "x"}
    forbidden_backup({"resourcePolicy": reference})
    forbidden_restore({"resourcePolicy": reference})
    forbidden_restore({"resourceModifier": reference})


def test_A13_what_is_no_config_map_is_invalid_whatever_the_policy_says() -> None:
    reference = {"kind": "Secret", "name": "x"}
    refused_backup({"resourcePolicy": reference})
    refused_restore({"resourcePolicy": reference})
    refused_restore({"resourceModifier": reference})


def test_A13_unless_it_is_a_config_map_in_the_policys_list() -> None:
    rules = policy(backup={"allowed": {"resourcePolicies": ["x"]}})
    reference = {"kind": "configmap", "name": "x"}
    assert backup({"resourcePolicy": reference}, rules)["resourcePolicy"] == reference
    refused_backup({"resourcePolicy": {"kind": "Secret", "name": "x"}}, rules)


@pytest.mark.parametrize("status", [{}, {"includedResources": ["nonadminbackups"]}, {"includedResources": ["*"]}])
def test_A14_restoring_a_status_is_refused(status: dict[str, Any]) -> None:
    assert forbidden_restore({"restoreStatus": status}) == (
        "NonAdminRestore spec.restoreSpec.restoreStatus is restricted; remove it"
    )


def test_A14_requests_are_neither_backed_up_nor_restored() -> None:
    for kind in ("nonadminbackups", "nonadminrestores", "nonadminbackupstoragelocations", "nonadmindownloadrequests"):
        name = f"{kind}.oadp.openshift.io"
        assert is_left_out(name, backup({})["excludedNamespaceScopedResources"])
        assert is_left_out(name, restore({})["excludedResources"])
        assert "self-service never backs up" in forbidden_backup({"includedResources": [name]})
        assert "does not allow to restore" in forbidden_restore({"includedResources": [name]})


@pytest.mark.parametrize("field", ["ttl", "csiSnapshotTimeout", "itemOperationTimeout"])
def test_A20_a_duration_beyond_the_policys_bounds_is_refused(field: str) -> None:
    rules = policy(backup={field: {"minimum": "1m", "maximum": "2h"}})
    assert "is too long; the maximum is 2h" in forbidden_backup({field: "2h1s"}, rules)
    assert "is too short; the minimum is 1m" in forbidden_backup({field: "59s"}, rules)
    assert backup({field: "2h0m0s"}, rules)[field] == "2h0m0s"


def test_A20_a_backup_that_names_no_ttl_lives_no_longer_than_the_policy_allows() -> None:
    assert backup({}, policy(backup={"ttl": {"maximum": "168h"}}))["ttl"] == "168h"
    assert backup({"ttl": "0"}, policy(backup={"ttl": {"maximum": "168h"}}))["ttl"] == "168h"
    assert backup({}, policy(backup={"ttl": {"maximum": "168h"}, "defaults": {"ttl": "24h"}}))["ttl"] == "24h"


@pytest.mark.parametrize(
    ("field", "shorter", "longer"), [("csiSnapshotTimeout", "5m", "30m"), ("itemOperationTimeout", "30m", "8h")]
)
def test_A20_a_timeout_that_nobody_set_lasts_no_longer_than_the_policy_allows(
    field: str, shorter: str, longer: str
) -> None:
    assert backup({}, policy(backup={field: {"maximum": shorter}}))[field] == shorter
    assert backup({field: "0"}, policy(backup={field: {"maximum": shorter}}))[field] == shorter
    assert field not in backup({}, policy(backup={field: {"maximum": longer}})), "Velero's own is shorter"
    if field == "itemOperationTimeout":
        assert restore({}, policy(restore={field: {"maximum": shorter}}))[field] == shorter
        assert field not in restore({}, policy(restore={field: {"maximum": longer}}))


def test_A20_timeouts_have_a_ceiling_where_the_policy_says_nothing() -> None:
    assert "the maximum is 10m" in forbidden_backup({"csiSnapshotTimeout": "9999h"})
    assert "the maximum is 24h" in forbidden_backup({"itemOperationTimeout": "9999h"})
    assert "the maximum is 24h" in forbidden_restore({"itemOperationTimeout": "9999h"})


def test_A20_an_unknown_data_mover_is_refused() -> None:
    assert "datamover other is not allowed" in forbidden_backup({"datamover": "other"})
    assert backup({"datamover": "velero"})["datamover"] == "velero"


@pytest.mark.parametrize("count", [-1, 65, 10**30])
def test_A20_too_many_files_at_once_are_refused(count: int) -> None:
    forbidden_backup({"uploaderConfig": {"parallelFilesUpload": count}})
    forbidden_restore({"uploaderConfig": {"parallelFilesDownload": count}})


def test_A20_more_backups_than_the_quota_are_refused() -> None:
    rules = policy(quotas={"stored": 3, "active": 1})
    assert over_quota(rules, stored=2, active=0) is None
    stored, active = over_quota(rules, stored=3, active=0), over_quota(rules, stored=2, active=1)
    assert stored is not None
    assert active is not None
    assert stored.reason is active.reason is Reason.QUOTA_EXCEEDED
    assert stored.message.startswith("Limit of 3 stored backups reached; delete one")
    assert active.message.startswith("Limit of 1 concurrent backups reached; starts automatically when one finishes")


@pytest.mark.parametrize("namespace", ["kube-system", "kube-public", "kube-anything", "velero", "foresail"])
def test_A21_no_policy_reaches_the_namespaces_of_the_cluster_of_velero_and_of_ours(namespace: str) -> None:
    assert policy_for(namespace, {}, [OPEN], never={"velero", "foresail"}) is None
    assert policy_for("shop", {}, [OPEN], never={"velero", "foresail"}) is OPEN


@pytest.mark.parametrize(
    "spec",
    [
        {"aFieldOfTomorrow": True},
        {"metadata": {"annotations": {"a": "b"}}},
        {"uploaderConfig": {"x": 1}},
        {"labelSelector": {"matchNothing": []}},
        {"hooks": {"resources": [{"name": "x", "runAs": "root"}]}},
    ],
)
def test_a_field_that_nobody_has_thought_of_is_refused(spec: dict[str, Any]) -> None:
    assert refused_backup(spec).endswith("is not supported by self-service; remove it")
