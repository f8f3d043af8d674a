"""Why it failed and what was left out, on the real cluster: what a real Velero does stands in `kubectl describe`."""

from collections.abc import Iterator
from typing import Any

import pytest

from testbed import Cluster
from tests.cluster.tenants import (
    Eventually,
    Tenant,
    allow_annotations,
    allow_file_system,
    arrive,
    as_velero,
    condition,
    install,
    operator,
)


@pytest.fixture(scope="module")
def served(velero_cluster: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """Velero with both charts, and the operator at work."""
    install(velero_cluster)
    log = tmp_path_factory.mktemp("operator") / "log"
    with operator(velero_cluster, log):
        yield velero_cluster


def run_pod(person: Tenant, annotations: dict[str, str]) -> None:
    """Let a pod run with a volume, and wait for it."""
    spec: dict[str, Any] = {
        "containers": [{"name": "web", "image": "web", "volumeMounts": [{"name": "cache", "mountPath": "/cache"}]}],
        "volumes": [{"name": "cache", "emptyDir": {}}],
    }
    metadata = {"name": "front", "annotations": annotations}
    person.kubectl(
        "create", "--filename=-", body={"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}
    )
    person.wait("pod/front", "--for=condition=Ready")


def why(person: Tenant, target: str, eventually: Eventually) -> str:
    """Return what the condition says once it says why."""
    person.wait(target, "--for=condition=Succeeded=False")
    eventually(lambda: ". " in condition(person.status(target), "Succeeded")[2], 120)
    return condition(person.status(target), "Succeeded")[2]


def left_behind(cluster: Cluster) -> list[str]:
    items = cluster.get("downloadrequests.velero.io", "--namespace=velero")["items"]
    return [name for each in items if (name := each["metadata"]["name"]).startswith("results-")]


def test_kubectl_describe_says_why_a_backup_and_a_restore_failed(served: Cluster, eventually: Eventually) -> None:
    ann = arrive(served, "reasons", eventually)
    allow_file_system("reasons", served)
    # There is no node agent that could read the volume; the chart's policy keeps tenants from asking for that.
    run_pod(as_velero(served, "reasons"), {"backup.velero.io/backup-volumes": "cache"})
    ann.back_up("volume")
    said = why(ann, "nonadminbackup/volume", eventually)
    cause = "Velero reports: pods front: Skip pod volume cache: daemonset pod not found in running state"
    assert said.startswith("Backup partially failed: 1 error, 1 warning. ")
    assert cause in said
    assert cause in ann.kubectl("describe", "nab", "volume")
    eventually(lambda: not left_behind(served), 120)

    served.kubectl("create", "quota", "full", "--hard=count/configmaps=0", "--namespace=reasons")
    in_force = "--for=jsonpath={.status.hard['count/configmaps']}=0"  # until then Velero would be told something else
    served.kubectl("wait", "quota/full", in_force, "--namespace=reasons", "--timeout=120s")
    ann.kubectl("delete", "configmap", "settings")
    ann.restore("back", "volume")
    said = why(ann, "nonadminrestore/back", eventually)
    assert "Velero reports: error restoring configmaps/reasons/settings: " in said
    assert "exceeded quota: full" in ann.kubectl("describe", "nar", "back")
    eventually(lambda: not left_behind(served), 120)


def test_what_velero_says_of_no_namespace_is_counted_and_the_command_named(
    served: Cluster, eventually: Eventually
) -> None:
    bob = arrive(served, "hooks", eventually)
    allow_annotations("hooks", served)
    hook = {"pre.hook.backup.velero.io/command": '["/bin/false"]', "pre.hook.backup.velero.io/container": "web"}
    run_pod(as_velero(served, "hooks"), hook)
    bob.back_up("hook")
    assert why(bob, "nonadminbackup/hook", eventually) == (
        "Backup partially failed: 1 error, 1 failed hook. "
        "1 error without a namespace. Read all with foresail backup logs hook -n hooks --results"
    )
    eventually(lambda: not left_behind(served), 120)


def test_a_complete_backup_without_the_data_of_a_volume_says_so(served: Cluster, eventually: Eventually) -> None:
    cat = arrive(served, "volumes", eventually)
    size = {"storage": "1Gi"}
    modes, classless = ["ReadWriteOnce"], {"storageClassName": ""}
    volume = {"capacity": size, "accessModes": modes, "hostPath": {"path": "/data"}, **classless}
    served.apply({"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": "left"}, "spec": volume})
    spec = {"accessModes": modes, "volumeName": "left", "resources": {"requests": size}, **classless}
    body = {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "data"}, "spec": spec}
    cat.kubectl("create", "--filename=-", body=body)
    cat.wait("persistentvolumeclaim/data", "--for=jsonpath={.status.phase}=Bound")
    cat.back_up("without")
    cat.wait("nonadminbackup/without", "--for=condition=DataIncomplete")
    status = cat.status("nonadminbackup/without")
    assert condition(status, "Succeeded")[:2] == ("True", "Completed")
    text = "Completed, but 1 of 1 volume was not backed up: data"
    assert condition(status, "DataIncomplete") == ("True", "VolumesLeftOut", text)
