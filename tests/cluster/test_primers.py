"""Primers with the real kube-controller-manager, kube-scheduler and Karpenter, cold and by both methods."""

from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from foresail.cli.main import main
from testbed import Cluster
from tests.cluster import operators, primers
from tests.cluster.schedules import Eventually, Figure

NODES_TAKE = 20
ARMS = ("cold", "held", "timed")
TIGHT = ("unprimed", "tight", "low", "meek", "kept", "guarded", "ranged", "barred", "bound")
RESTRICTED = {
    "allowPrivilegeEscalation": False,
    "capabilities": {"drop": ["ALL"]},
    "runAsNonRoot": True,
    "seccompProfile": {"type": "RuntimeDefault"},
}


@pytest.fixture(scope="module")
def primed_cluster(karpenter_cluster: Cluster) -> Cluster:
    """The cluster with Karpenter, the kind Primer, and a pool of slow nodes for each arm."""
    primers.install(karpenter_cluster)
    karpenter_cluster.apply(*[primers.node_pool(arm, NODES_TAKE, consolidateAfter="30s") for arm in ARMS])
    return karpenter_cluster


def test_a_primed_run_starts_warm_by_either_method_and_nothing_stays_behind(
    primed_cluster: Cluster,
    tmp_path: Path,
    eventually: Eventually,
    figure: Figure,
    capsys: pytest.CaptureFixture[str],
) -> None:
    cluster = primed_cluster
    with operators.running(cluster, tmp_path, *primers.FLAGS, primers.holding(timedelta(minutes=1))):
        fire = primers.next_minute(90)
        schedule = f"{fire.minute} {fire.hour} * * *"
        cluster.apply(*[primers.cron_job(arm, schedule, arm) for arm in ARMS])
        cluster.apply(primers.primer("held", "1m"), primers.primer("timed", "1m", method="CronJob"))
        eventually(lambda: primers.primed(cluster, "timed").get("shifted"), 60)
        assert primers.shown(cluster, "held")["nextFire"] == fire.strftime("%Y-%m-%dT%H:%M:%SZ")

        eventually(lambda: all(primers.delays(cluster, ARMS).values()), 300)
        eventually(lambda: primers.placeholders(cluster) == [], 30)
        eventually(lambda: primers.primed(cluster, "held").get("startDelays"), 30)
        eventually(lambda: primers.primed(cluster, "timed").get("startDelays"), 30)

        (cold,), (held,), (timed,) = (primers.delays(cluster, ARMS)[arm] for arm in ARMS)
        figure(
            f"start delay with nodes of {NODES_TAKE} s: cold {cold:g} s, placeholder {held:g} s, CronJob {timed:g} s"
        )
        assert cold >= NODES_TAKE
        assert held <= max(cold / 10, 2)
        assert timed <= max(cold / 10, 2)
        for arm in ("held", "timed"):
            (delay,) = primers.primed(cluster, arm)["startDelays"]
            assert delay["warm"] is True, delay
        said = commands(cluster, capsys)
        assert "warm" in said["describe"]
        assert "cold" in said["suggest"], "the arm that nobody primed waits"
        assert "held" in said["get"]
        assert "its pods request something" in said["explain"]
        assert "exact: each fires 1m before a fire" in said["preview"]
        pools = "/api/v1/nodes?labelSelector=karpenter.sh%2Fnodepool%3D"
        eventually(lambda: not any(primers.listed(cluster, f"{pools}{arm}") for arm in ARMS), 120)


def commands(cluster: Cluster, capsys: pytest.CaptureFixture[str]) -> dict[str, str]:
    """Return what each command says of this cluster, by its verb."""
    where = [f"--kubeconfig={cluster.site.admin_kubeconfig}", "--namespace=default"]
    words = {
        "get": [],
        "describe": ["held"],
        "explain": ["held"],
        "suggest": [],
        "preview": ["cold", "--warm-up=1m"],
        "suspend": ["held"],
        "resume": ["held"],
    }
    said = {}
    capsys.readouterr()
    for verb, rest in words.items():
        assert main(["primer", verb, *rest, *where]) == 0, verb
        said[verb] = capsys.readouterr().out
    return said


def namespace(name: str, **labels: str) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": labels}}


def priority_class(name: str, value: int, **fields: str) -> dict[str, Any]:
    kind = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass"}
    return {**kind, "metadata": {"name": name}, "value": value, **fields}


def limits(kind: str, name: str, space: str, spec: dict[str, Any]) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": kind, "metadata": {"name": name, "namespace": space}, "spec": spec}


MOUNTED = [{"name": "data", "persistentVolumeClaim": {"claimName": "bound"}}]


def in_zone(zone: str) -> dict[str, Any]:
    return {"matchExpressions": [{"key": "topology.kubernetes.io/zone", "operator": "In", "values": [zone]}]}


def volume(name: str, zone: str) -> list[dict[str, Any]]:
    """Return a volume that can be reached from one zone alone, and the claim that has it."""
    size = {"storage": "1Gi"}
    owner = {"namespace": "default", "name": name}
    spec = {"storageClassName": "", "accessModes": ["ReadWriteOnce"]}
    where = {"nodeAffinity": {"required": {"nodeSelectorTerms": [in_zone(zone)]}}}
    source = {"csi": {"driver": "disks.example.com", "volumeHandle": name}}
    kind, claim = (
        {"apiVersion": "v1", "kind": "PersistentVolume"},
        {"apiVersion": "v1", "kind": "PersistentVolumeClaim"},
    )
    return [
        {**kind, "metadata": {"name": name}, "spec": {**spec, **source, **where, "capacity": size, "claimRef": owner}},
        {**claim, "metadata": owner, "spec": {**spec, "volumeName": name, "resources": {"requests": size}}},
    ]


def held(cluster: Cluster) -> dict[str, dict[str, Any]]:
    """Return the placeholders by the names of their Primers."""
    return {pod["metadata"]["labels"]["foresail.dev/primer"]: pod for pod in primers.placeholders(cluster)}


def test_no_run_is_later_than_unprimed_and_no_placeholder_is_more_than_its_namespace_allows(
    primed_cluster: Cluster, tmp_path: Path, eventually: Eventually, figure: Figure
) -> None:
    cluster = primed_cluster
    cluster.apply(
        *[primers.node_pool(name, NODES_TAKE) for name in TIGHT if name != "kept"],
        primers.node_pool("kept", NODES_TAKE, consolidationPolicy="WhenEmptyOrUnderutilized", consolidateAfter="0s"),
        namespace("tight"),
        namespace("guarded", **{"pod-security.kubernetes.io/enforce": "restricted"}),
        namespace("barred"),
        namespace("ranged"),
        priority_class("low", -1000),
        priority_class("meek", 1000, preemptionPolicy="Never"),
        limits("ResourceQuota", "one-run", "tight", {"hard": {"requests.cpu": "2"}}),
        limits("LimitRange", "usual", "ranged", {"limits": [{"type": "Container", "defaultRequest": {"cpu": "3"}}]}),
        limits("LimitRange", "small", "barred", {"limits": [{"type": "Pod", "max": {"cpu": "1"}}]}),
    )
    cluster.apply(*volume("bound", "test-zone-c"))
    with operators.running(cluster, tmp_path, *primers.FLAGS):
        fire = primers.next_minute(90)
        when = f"{fire.minute} {fire.hour} * * *"
        guarded = primers.cron_job("guarded", when, "guarded", "guarded")
        pod = guarded["spec"]["jobTemplate"]["spec"]["template"]["spec"]
        pod["containers"][0]["securityContext"] = RESTRICTED
        ranged = primers.cron_job("ranged", when, "ranged", "ranged")
        del ranged["spec"]["jobTemplate"]["spec"]["template"]["spec"]["containers"][0]["resources"]
        cluster.apply(
            ranged,
            primers.cron_job("unprimed", when, "unprimed"),
            primers.cron_job("tight", when, "tight", "tight"),
            primers.cron_job("low", when, "low", priorityClassName="low"),
            primers.cron_job("meek", when, "meek", priorityClassName="meek"),
            primers.cron_job("kept", when, "kept"),
            guarded,
            primers.cron_job("barred", when, "barred", "barred"),
            primers.cron_job("bound", when, "bound", volumes=MOUNTED),
            *[primers.primer(name, "1m") for name in ("low", "meek", "kept", "bound")],
            *[primers.primer(name, "1m", name) for name in ("tight", "guarded", "ranged", "barred")],
        )
        eventually(lambda: primers.primed(cluster, "barred").get("reason") == "Refused", 180)
        assert "maximum cpu usage per Pod is 1" in primers.primed(cluster, "barred")["message"]
        eventually(lambda: all(primers.primed(cluster, name).get("early") for name in ("tight", "low", "meek")), 90)
        eventually(lambda: "bound" in held(cluster), 30)
        spec = held(cluster)["bound"]["spec"]
        required = spec["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
        assert required == {"nodeSelectorTerms": [in_zone("test-zone-c")]}
        assert "volumes" not in spec, "the claim itself is never mounted"
        run = [name for name in TIGHT if name != "barred"]
        eventually(lambda: all(primers.delays(cluster, run).values()), 300)
        took = {name: delays[0] for name, delays in primers.delays(cluster, run).items()}
        figure(f"start delay with nodes of {NODES_TAKE} s where primers must take care: {took}")
        assert took["unprimed"] >= NODES_TAKE
        assert all(seconds <= took["unprimed"] + 2 for seconds in took.values()), took
        assert all(took[name] <= 5 for name in ("kept", "guarded", "ranged", "bound")), took
        eventually(lambda: primers.placeholders(cluster) == [], 30)
