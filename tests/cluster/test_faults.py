"""Each fault does to the real component what its name says, and the cluster comes back from it."""

import time
from collections.abc import Callable

import pytest

from testbed import Cluster, TestbedError
from testbed.api import is_ok, request
from testbed.ports import Port

pytestmark = pytest.mark.full

Eventually = Callable[[Callable[[], object], float], None]


def test_a_frozen_api_server_answers_no_one_until_it_continues(doomed_cluster: Cluster) -> None:
    cluster = doomed_cluster
    cluster.fault.stop("kube-apiserver")
    with pytest.raises(TimeoutError):
        request("GET", f"{cluster.server}/readyz", cluster.site.admin_trust, seconds=1)
    cluster.fault.cont("kube-apiserver")
    assert request("GET", f"{cluster.server}/readyz", cluster.site.admin_trust).code == 200


def test_a_restarted_control_plane_still_knows_everything(doomed_cluster: Cluster, eventually: Eventually) -> None:
    cluster = doomed_cluster
    cluster.kubectl("create", "configmap", "kept", "--from-literal=key=value")
    for component in ("etcd", "kube-apiserver", "kube-controller-manager"):
        before = cluster.status()[component]
        cluster.fault.restart(component)
        assert set(before).isdisjoint(cluster.status()[component])
    eventually(lambda: is_ok(f"{cluster.server}/readyz", cluster.site.admin_trust), 120)
    assert cluster.get("configmap", "kept")["data"] == {"key": "value"}
    cluster.fault.terminate("kube-controller-manager")
    assert cluster.status()["kube-controller-manager"] == []


def test_after_compaction_and_a_restart_an_old_revision_is_gone(doomed_cluster: Cluster) -> None:
    cluster = doomed_cluster
    old = cluster.get("namespace", "default")["metadata"]["resourceVersion"]
    for number in range(3):
        cluster.kubectl("create", "configmap", f"later-{number}")
    revision = cluster.fault.compact_etcd()
    assert revision > int(old)
    cluster.fault.kill("kube-apiserver")
    with pytest.raises(TestbedError, match="Connection refused"):
        cluster.get("namespace", "default")
    cluster.fault.start("kube-apiserver")
    path = f"/api/v1/configmaps?watch=true&timeoutSeconds=2&resourceVersion={old}"
    answer = request("GET", cluster.server + path, cluster.site.admin_trust)
    assert answer.json()["object"]["code"] == 410


def test_velero_and_its_bucket_come_back_from_a_kill(velero_cluster: Cluster) -> None:
    cluster = velero_cluster
    cluster.velero("backup", "create", "before-the-kill", "--include-namespaces=default", "--wait")
    cluster.fault.kill("velero")
    cluster.fault.restart("s3")
    cluster.fault.start("velero")
    assert is_ok(f"{cluster.site.url(Port.S3, 'http')}/health")
    cluster.velero("backup", "create", "after-the-kill", "--include-namespaces=default", "--wait")
    found = cluster.get("backups.velero.io", "--namespace=velero")["items"]
    phases = {each["metadata"]["name"]: each.get("status", {}).get("phase") for each in found}
    assert phases.items() >= {"before-the-kill": "Completed", "after-the-kill": "Completed"}.items()


def test_a_fault_for_what_is_not_there_says_what_is(cluster: Cluster) -> None:
    with pytest.raises(TestbedError, match="has no component 'velero'") as raised:
        cluster.fault.kill("velero")
    assert raised.value.hint == "it has: etcd, kube-apiserver, kube-controller-manager"
    with pytest.raises(TestbedError, match="runs already"):
        cluster.fault.start("etcd")


def test_a_restart_of_the_api_server_is_a_matter_of_seconds(
    doomed_cluster: Cluster, figure: Callable[[str], None]
) -> None:
    seconds = []
    for _ in range(3):
        began = time.monotonic()
        doomed_cluster.fault.restart("kube-apiserver")
        seconds.append(time.monotonic() - began)
    figure(f"kube-apiserver killed and ready again, three times: {', '.join(f'{s:.1f}' for s in seconds)} s")
    assert max(seconds) < 30
