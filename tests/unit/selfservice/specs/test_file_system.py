"""Velero copies no files from or to the pods of tenants, unless their policy allows it."""

from typing import Any

import pytest

from foresail.api.specs import BackupSpec
from foresail.cli.install.manifests import InstallOptions, operators
from foresail.scope.resource_policies import policies_of
from foresail.scope.volumes import Method, data_backup, file_system_annotation, file_system_gap, pod_volumes
from foresail.selfservice.reasons import Reason, Refused
from foresail.selfservice.specs.annotations import refused_on_pod, refused_pod
from foresail.selfservice.specs.build import backup_spec
from foresail.selfservice.specs.file_system import gap_in, refused_restore
from foresail.tenancy.volume_policies import NO_VOLUMES, SNAPSHOTS, VOLUME_POLICIES
from tests.unit.selfservice.policies import policy

ALLOWING = policy(backup={"fileSystem": "Allowed"})
OPTED_IN = "backup.velero.io/backup-volumes"
CATCH_ALL = "{conditions: {}, action: {type: snapshot}}"


def built(tenant: dict[str, Any], **backup: Any) -> dict[str, Any]:  # noqa: ANN401 - JSON
    made = backup_spec(tenant, "shop", policy(backup=backup))
    assert isinstance(made, dict), made
    return made


def message(found: object) -> str:
    assert isinstance(found, Refused)
    assert found.reason is Reason.POLICY_VIOLATION
    assert len(found.message.split()) <= 30
    return found.message


# The spec


@pytest.mark.parametrize(
    ("tenant", "backup"),
    [
        ({"defaultVolumesToFsBackup": True}, {}),
        ({}, {"defaults": {"defaultVolumesToFsBackup": True}}),
        ({}, {"required": {"defaultVolumesToFsBackup": True}}),
    ],
)
def test_a_spec_or_policy_that_copies_files_by_default_is_refused(
    tenant: dict[str, Any], backup: dict[str, Any]
) -> None:
    said = message(backup_spec(tenant, "shop", policy(backup=backup)))
    assert "defaultVolumesToFsBackup" in said
    assert "snapshotMoveData" in said
    allowed = backup_spec(tenant, "shop", policy(backup={**backup, "fileSystem": "Allowed"}))
    assert isinstance(allowed, dict)
    assert allowed["defaultVolumesToFsBackup"] is True
    assert "resourcePolicy" not in allowed


@pytest.mark.parametrize(("snapshots", "name"), [(None, SNAPSHOTS), (True, SNAPSHOTS), (False, NO_VOLUMES)])
def test_the_spec_for_velero_says_that_no_files_are_copied(snapshots: bool | None, name: str) -> None:
    made = built({} if snapshots is None else {"snapshotVolumes": snapshots})
    assert made["defaultVolumesToFsBackup"] is False
    assert made["resourcePolicy"] == {"kind": "configmap", "name": name}


def test_a_resource_policy_of_the_administrator_stays() -> None:
    rules = {"kind": "configmap", "name": "rules"}
    assert built({}, defaults={"resourcePolicy": rules})["resourcePolicy"] == rules


# What Velero does with it, whatever the pods say


VOLUMES: list[dict[str, Any]] = [
    {"name": "data", "persistentVolumeClaim": {"claimName": "data"}},
    {"name": "scratch", "emptyDir": {}},
    {"name": "share", "nfs": {"server": "nfs", "path": "/"}},
    {"name": "inline", "csi": {"driver": "inline.example.com"}},
]


@pytest.mark.parametrize("snapshots", [None, True, False])
@pytest.mark.parametrize("annotation", [OPTED_IN, "backup.velero.io/backup-volumes-excludes", "unrelated"])
def test_no_annotation_of_a_pod_makes_velero_copy_files(annotation: str, snapshots: bool | None) -> None:
    made = built({} if snapshots is None else {"snapshotVolumes": snapshots})
    spec, policies = BackupSpec(**_fields(made)), VOLUME_POLICIES[made["resourcePolicy"]["name"]]
    claim: dict[str, Any] = {"metadata": {"name": "data"}, "status": {"phase": "Bound"}}
    volume = {
        "metadata": {"name": "pv"},
        "spec": {"csi": {"driver": "disk.example.com"}, "capacity": {"storage": "1Gi"}},
    }
    mounts = [{"name": each["name"], "mountPath": f"/{each['name']}"} for each in VOLUMES]
    metadata = {"name": "web", "annotations": {annotation: "data,scratch,share,inline"}}
    pod = {
        "metadata": metadata,
        "spec": {"volumes": VOLUMES, "containers": [{"volumeMounts": mounts}]},
        "status": {"phase": "Running"},
    }
    assert pod_volumes(spec, pod, {"data": (claim, volume)}, policies) == []
    saved = data_backup(spec, claim, volume, [pod], policies)
    assert saved.method is (Method.NONE if snapshots is False else Method.SNAPSHOT)


def _fields(made: dict[str, Any]) -> dict[str, Any]:
    return {
        "default_volumes_to_fs_backup": made["defaultVolumesToFsBackup"],
        "snapshot_volumes": made.get("snapshotVolumes"),
    }


def test_the_chart_creates_the_volume_policies_that_the_operator_names() -> None:
    pieces = operators(InstallOptions(("self-service",), "velero", "velero", "foresail"))
    maps = {piece.key.name: piece.body["data"] for piece in pieces if piece.kind.name == "ConfigMap"}
    assert {name: policies_of(maps[name]) for name in VOLUME_POLICIES} == VOLUME_POLICIES
    assert [file_system_gap(each) for each in VOLUME_POLICIES.values()] == ["", ""]


# Resource policies of administrators


@pytest.mark.parametrize(
    ("rules", "gap"),
    [
        (CATCH_ALL, ""),
        (f"{{conditions: {{capacity: '0,'}}, action: {{type: skip}}}}, {CATCH_ALL}", ""),
        ("{conditions: {nfs: {}}, action: {type: skip}}, {action: {type: custom}}", ""),
        (f"{CATCH_ALL}, {{conditions: {{}}, action: {{type: fs-backup}}}}", ""),
        ("", "does not end"),
        ("{conditions: {storageClass: [gold]}, action: {type: snapshot}}", "does not end"),
        ("{conditions: {capacity: '1Gi,'}, action: {type: snapshot}}", "does not end"),
        ("{conditions: {nfs: {}}, action: {type: snapshot}}", "does not end"),
        (f"{{conditions: {{nfs: {{}}}}, action: {{type: fs-backup}}}}, {CATCH_ALL}", "action fs-backup"),
        ("{conditions: {}, action: {type: no-such}}", "is refused by Velero"),
    ],
)
def test_a_resource_policy_must_decide_about_every_volume_without_copying_files(rules: str, gap: str) -> None:
    found = gap_in({"policy": f"{{version: v1, volumePolicies: [{rules}]}}"})
    assert found.startswith(gap) if gap == "" else gap in found
    assert bool(found) == bool(gap)


# Pods


@pytest.mark.parametrize(
    ("annotations", "chosen"),
    [
        ({OPTED_IN: "data"}, OPTED_IN),
        ({OPTED_IN: ",data"}, OPTED_IN),
        ({OPTED_IN: ""}, None),
        ({"backup.velero.io/backup-volumes-excludes": "data"}, None),
        ({"snapshot.velero.io/data": "0123"}, "snapshot.velero.io/data"),
        ({}, None),
    ],
)
def test_the_annotations_by_which_a_pod_asks_for_a_copy(annotations: dict[str, str], chosen: str | None) -> None:
    assert file_system_annotation(annotations) == chosen


def test_hooks_and_copies_are_refused_each_by_its_own_rule() -> None:
    hook = "pre.hook.backup.velero.io/command"
    both = {hook: "[]", OPTED_IN: "data"}
    assert refused_on_pod(both, hooks=True, files=True) == hook
    assert refused_on_pod(both, hooks=False, files=True) == OPTED_IN
    assert refused_on_pod(both, hooks=False, files=False) is None
    assert "to copy its files" in message(refused_pod("web", OPTED_IN, policy()))
    assert "copy" not in message(refused_pod("web", hook, policy()))


# Restores


@pytest.mark.parametrize(
    ("rules", "copied", "claims", "restores_claims", "reason"),
    [
        (policy(), (), ("data",), True, None),
        (policy(), ("data",), (), True, Reason.POLICY_VIOLATION),
        (policy(), ("",), (), True, Reason.POLICY_VIOLATION),
        (ALLOWING, (), ("data",), True, None),
        (ALLOWING, ("data",), ("other",), True, None),
        (ALLOWING, ("data",), ("data",), True, Reason.VOLUME_NOT_NEW),
        (ALLOWING, ("data", ""), (), True, Reason.VOLUME_NOT_NEW),
        (ALLOWING, ("data",), (), False, Reason.VOLUME_NOT_NEW),
    ],
)
def test_a_restore_fills_only_volumes_that_it_creates_and_only_if_allowed(
    rules: Any,  # noqa: ANN401
    copied: tuple[str, ...],
    claims: tuple[str, ...],
    restores_claims: bool,
    reason: Reason | None,
) -> None:
    found = refused_restore("daily", copied, claims, rules, restores_claims=restores_claims)
    assert (found.reason if found else None) == reason
    if found is not None:
        assert "daily" in found.message
        assert len(found.message.split()) <= 30
