"""RestoreChecks on real Velero: a good backup passes, planted faults are found, nothing escapes, nothing stays."""

import json
import tarfile
from collections.abc import Iterator

import pytest

from bench.restore_checks import FLAGS, USER, escapes, killed
from bench.restore_drill import Drill, install, usual, wait
from bench.restore_faults import FAULTS, is_found
from foresail.api.marks import CHECK, CHECK_LABEL, CHECK_RUN
from foresail.proof.checks.kinds import LEFT_OUT
from testbed import Cluster, TestbedError
from tests.cluster.operators import Operator, running


@pytest.fixture(scope="module")
def drill(own_velero_cluster: Cluster) -> Drill:
    install(own_velero_cluster)
    return Drill(own_velero_cluster)


@pytest.fixture(scope="module")
def operator(drill: Drill, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Operator]:
    with running(drill.cluster, tmp_path_factory.mktemp("checks"), *FLAGS) as process:
        yield process


SANDBOX = "foresail-check-0123456789-abcdef"
RESTORE = {
    "backupName": "good",
    "includedNamespaces": ["good"],
    "namespaceMapping": {"good": SANDBOX},
    "includedResources": ["configmaps"],
    "excludedResources": [*LEFT_OUT],
    "includeClusterResources": False,
    "restorePVs": False,
    "resourceModifier": {"kind": "ConfigMap", "name": "check-0123456789-modifiers"},
}


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({}, ""),
        ({"includedNamespaces": ["*"], "namespaceMapping": {"*": SANDBOX}}, "only into sandboxes"),
        ({"includedNamespaces": ["goo*"], "namespaceMapping": {"goo*": SANDBOX}}, "only into sandboxes"),
        ({"includedNamespaces": ["good", "other"]}, "only into sandboxes"),
        ({"namespaceMapping": {"good": "kube-system"}}, "only into sandboxes"),
        ({"includedResources": ["*"]}, "it restores listed kinds"),
        ({"includeClusterResources": True}, "it restores listed kinds"),
    ],
)
def test_the_token_of_restore_checks_restores_into_sandboxes_only(
    drill: Drill, change: dict[str, object], said: str
) -> None:
    metadata: dict[str, object] = {"name": "check-0123456789", "namespace": "velero", "labels": {CHECK_LABEL: "a"}}
    metadata["annotations"] = {CHECK: "velero/a", CHECK_RUN: "0123456789"}
    body = {"apiVersion": "velero.io/v1", "kind": "Restore", "metadata": metadata, "spec": {**RESTORE, **change}}
    words = ("create", "--dry-run=server", f"--as={USER}", "--filename=-")
    if not said:
        drill.cluster.kubectl(*words, text=json.dumps(body))
        return
    with pytest.raises(TestbedError, match=said):
        drill.cluster.kubectl(*words, text=json.dumps(body))


@pytest.mark.usefixtures("operator")
def test_a_good_backup_passes_and_its_sandbox_is_removed(drill: Drill) -> None:
    drill.make("good", *usual())
    drill.back_up("good", "--include-namespaces=good")
    result = drill.check("good")
    assert (result["result"], result["reason"]) == ("Pass", "Complete"), result["message"]
    assert result["itemsFound"] == result["itemsExpected"] >= len(usual())
    evidence = drill.cluster.get("configmap", result["evidence"], "--namespace=velero")["data"]
    record = json.loads(evidence["record.json"])
    assert record["result"] == "Pass"
    assert record["kubernetes"] == record["backupKubernetes"] != ""
    assert "velero" in record["veleroImage"]
    assert (record["location"], record["bucket"]) == ("default", drill.cluster.site.bucket.name)
    wait(lambda: not drill.leftovers(), "the removal of the sandbox")


@pytest.mark.usefixtures("operator")
def test_a_backup_while_a_sandbox_exists_has_cluster_scoped_objects_and_nothing_of_the_sandbox(drill: Drill) -> None:
    drill.make("kept", *usual())
    drill.back_up("kept", "--include-namespaces=kept")
    drill.add_to_list("kept", "v1/ConfigMap", "kept/absent")
    assert drill.check("kept", keepFailed="1h")["reason"] == "ItemsMissing"
    [sandbox] = drill.sandboxes()
    drill.back_up("meanwhile", "--exclude-resources=events,events.events.k8s.io")
    with tarfile.open(drill.file("meanwhile", ".tar.gz")) as archive:
        names = [each.removeprefix("resources/") for each in archive.getnames()]
    assert any(each.startswith("clusterroles.rbac.authorization.k8s.io/cluster/") for each in names)
    of_sandbox = [each for each in names if f"/{sandbox}" in each and "preferredversion" not in each]
    assert sorted(each for each in of_sandbox if each.endswith(".json")) == [
        f"configmaps/namespaces/{sandbox}/kube-root-ca.crt.json",
        f"namespaces/cluster/{sandbox}.json",
    ]
    drill.forget("kept")
    wait(lambda: not drill.leftovers(), "the removal of the sandbox")


@pytest.mark.usefixtures("operator")
@pytest.mark.parametrize(
    "fault",
    [pytest.param(name, marks=[pytest.mark.full] if number % 3 else []) for number, name in enumerate(FAULTS)],
)
def test_a_planted_fault_is_found_with_the_right_reason(drill: Drill, fault: str) -> None:
    result = FAULTS[fault][0](drill)
    assert is_found(fault, result), (result["result"], result["reason"], result["message"])


@pytest.mark.usefixtures("operator")
def test_side_effects_from_inside_a_backup_do_not_escape(drill: Drill) -> None:
    escaped, result = escapes(drill)
    assert (escaped, drill.leftovers()) == ([], [])
    assert result["message"] == "the backup has no object of namespace elsewhere", "the sandbox took everything else"


@pytest.mark.full
def test_checks_survive_kills_and_leave_nothing(drill: Drill, operator: Operator) -> None:
    results = killed(drill, operator, 4)
    assert [each["result"] for each in results] == ["Pass"]
    wait(lambda: not drill.leftovers(), "the removal of everything")
