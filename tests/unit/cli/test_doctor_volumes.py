"""What the doctor says about the way of tenants' volumes into backups and back."""

import json
from argparse import Namespace
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from foresail.cli.access.cluster import on_cluster
from foresail.cli.doctor.evidence import gather
from foresail.cli.doctor.finding import Finding, Grade
from foresail.cli.doctor.installation import findings
from foresail.cli.doctor.workloads import SNAPSHOTS, VolumeData, changed_policies, read_changed_policies
from foresail.tenancy.volume_policies import VOLUME_POLICIES
from tests.unit.cli.canned import canned
from tests.unit.cli.test_doctor import HEALTHY


def wrong(found: VolumeData | None) -> list[Finding]:
    return [each for each in findings(replace(HEALTHY, volume_data=found)) if each.about == "volumes"]


def test_a_cluster_without_snapshots_and_one_as_it_should_be_have_no_finding() -> None:
    assert wrong(None) == wrong(VolumeData()) == []


def test_velero_without_csi_is_a_warning_since_its_backups_complete_without_the_data() -> None:
    (found,) = wrong(VolumeData(has_csi=False))
    assert found.grade is Grade.WARNING
    assert "without the feature EnableCSI" in found.says
    assert "--features=EnableCSI" in found.fix


def test_a_claim_that_waits_for_a_pod_blocks_restores_of_others() -> None:
    (found,) = wrong(VolumeData(waiting_classes=("fast", "slow")))
    assert "a restored claim of fast, slow without a pod" in found.says
    assert '"ignoreDelayBinding": true' in found.fix


def server(*features: str) -> dict[str, Any]:
    container = {"image": "velero/velero:v1.18.3", "command": ["/velero"], "args": ["server", *features]}
    return deployment("velero", container, {})


def deployment(name: str, container: dict[str, Any], labels: dict[str, str]) -> dict[str, Any]:
    metadata = {"name": name, "namespace": "velero", "labels": labels}
    return {"metadata": metadata, "spec": {"template": {"spec": {"containers": [container]}}}}


@pytest.mark.parametrize(
    ("features", "settings", "expected"),
    [
        (["--features=EnableCSI"], {"restorePVC": {"ignoreDelayBinding": True}}, VolumeData()),
        (["--features=EnableCSI"], {"restorePVC": {}}, VolumeData(waiting_classes=("wait",))),
        (["--features="], None, VolumeData(has_csi=False, waiting_classes=("wait",))),
        ([], "not JSON", VolumeData(has_csi=False, waiting_classes=("wait",))),
    ],
)
def test_flags_and_configuration_are_read_from_the_cluster(
    tmp_path: Path,
    features: list[str],
    settings: dict[str, Any] | str | None,
    expected: VolumeData,
) -> None:
    operator = {"name": "operator", "args": ["operator", "run", "--self-service=true"]}
    labels = {"app.kubernetes.io/name": "foresail"}
    config = [] if settings is None else ["--node-agent-configmap=agents"]
    agent = {"image": "velero/velero:v1.18.3", "command": ["/velero"], "args": ["node-agent", "server", *config]}
    text = settings if isinstance(settings, str) else json.dumps(settings)
    classes = [
        {"metadata": {"name": "at-once"}, "volumeBindingMode": "Immediate"},
        {"metadata": {"name": "wait"}, "volumeBindingMode": "WaitForFirstConsumer"},
    ]
    definitions = [SNAPSHOTS, "selfservicepolicies.foresail.dev"]
    answers = {
        "/version": {},
        "/apis/apiextensions.k8s.io/v1/customresourcedefinitions": {
            "metadata": {},
            "items": [{"metadata": {"name": each}, "spec": {}} for each in definitions],
        },
        "/apis/apps/v1/deployments": {
            "metadata": {},
            "items": [server(*features), deployment("foresail", operator, labels)],
        },
        "/apis/apps/v1/namespaces/velero/daemonsets": {"metadata": {}, "items": [deployment("node-agent", agent, {})]},
        "/api/v1/namespaces/velero/configmaps/agents": {"metadata": {"name": "agents"}, "data": {"any": text}},
        "/apis/storage.k8s.io/v1/storageclasses": {"metadata": {}, "items": classes},
    }
    with canned(tmp_path, answers) as cluster:
        args = Namespace(kubeconfig=str(cluster.kubeconfig), context=None)
        seen = on_cluster(args, lambda read: gather(read, "velero", None))
    assert seen.volume_data == expected, seen.unread
    assert seen.changed_policies == tuple(VOLUME_POLICIES), "none of them is in this cluster"
    (found,) = changed_policies(seen.changed_policies, "velero")
    assert found.grade is Grade.PROBLEM


@pytest.mark.parametrize(("action", "changed"), [("snapshot", ()), ("fs-backup", ("foresail-snapshot-volumes",))])
def test_volume_policies_that_were_changed_are_found(tmp_path: Path, action: str, changed: tuple[str, ...]) -> None:
    policies = {"foresail-snapshot-volumes": action, "foresail-skip-volumes": "skip"}
    answers = {
        f"/api/v1/namespaces/velero/configmaps/{name}": {
            "data": {"policy.yaml": f"version: v1\nvolumePolicies:\n- conditions: {{}}\n  action: {{type: {each}}}\n"}
        }
        for name, each in policies.items()
    }
    with canned(tmp_path, answers) as cluster:
        args = Namespace(kubeconfig=str(cluster.kubeconfig), context=None)
        assert on_cluster(args, lambda read: read_changed_policies(read, "velero")) == changed
