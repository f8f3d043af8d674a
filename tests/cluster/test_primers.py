"""Primers with the real kube-controller-manager, kube-scheduler and Karpenter: warm, kept, and never later."""

import statistics
import time
from collections.abc import Callable, Iterator
from datetime import timedelta

import pytest

from foresail.cli.main import main
from foresail.kube.clock import now
from testbed import Cluster
from tests.cluster import primers
from tests.cluster.primer_scene import (
    ARMS,
    FIRES,
    LOST,
    NODES_TAKE,
    STANDING,
    TIGHT,
    WARM_UP,
    ZONE,
    Scene,
    in_zone,
    playing,
)
from tests.cluster.schedules import FULL, Eventually, Figure

PATIENCE = 300.0 * (FIRES + 1)
HOSTNAME = "kubernetes.io/hostname"


@pytest.fixture(scope="module")
def scene(karpenter_cluster: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scene]:
    """Everything that the tests of this file look at; the fires come while they run."""
    with playing(karpenter_cluster, tmp_path_factory.mktemp("primers")) as begun:
        yield begun


def strike(cluster: Cluster, _name: str, node: str) -> bool:
    """Delete a node, as an administrator or the cloud may."""
    cluster.kubectl("delete", "node", node, "--wait=false")
    return True


def push(cluster: Cluster, name: str, node: str) -> bool:
    """Let a stranger's pod, more important than a placeholder, take up a node."""
    found = cluster.get("node", node)
    cpu = found["status"]["allocatable"]["cpu"]
    thousandths = int(cpu[:-1]) if cpu.endswith("m") else 1000 * int(cpu)
    requests = {"cpu": f"{thousandths - 1000}m"}  # so that a run has no room beside it
    spec = {
        "containers": [{"name": "stranger", "image": "any:1", "resources": {"requests": requests}}],
        "nodeSelector": {HOSTNAME: found["metadata"]["labels"][HOSTNAME]},
        "tolerations": [{"key": "only", "operator": "Equal", "value": name}],
    }
    metadata = {"name": f"stranger-of-{name}", "namespace": "default"}
    cluster.apply({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec})
    return True


def test_where_karpenter_does_not_act_on_buffers_auto_holds_by_placeholders_and_says_why(
    scene: Scene, eventually: Eventually
) -> None:
    cluster, fire = scene.cluster, primers.next_minute(3600)
    schedule = f"{fire.minute} {fire.hour} {fire.day} {fire.month} *"
    cluster.apply(primers.cron_job("auto", schedule, "none"), primers.primer("auto", "2h"))  # so it is due now
    eventually(lambda: primers.primed(cluster, "auto").get("method") == "Placeholder", 120)
    assert "no autoscaler had answered a CapacityBuffer" in primers.primed(cluster, "auto")["methodBecause"]
    eventually(lambda: scene.held("auto"), 60)
    cluster.kubectl("delete", "primer,cronjob", "auto", "--namespace=default")
    assert cluster.get("capacitybuffers,podtemplates", "--namespace=default")["items"] == []


@pytest.mark.parametrize(
    ("name", "lead", "lose", "cause"),
    [("struck", timedelta(minutes=3), strike, "Disrupted"), ("pushed", timedelta(minutes=2), push, "Preempted")],
    ids=LOST,
)
def test_what_is_lost_before_the_fire_is_made_again_and_recorded(
    scene: Scene,
    eventually: Eventually,
    name: str,
    lead: timedelta,
    lose: Callable[[Cluster, str, str], bool],
    cause: str,
) -> None:
    cluster = scene.cluster
    eventually(lambda: running(scene, name), PATIENCE)
    if FULL:
        time.sleep(max((scene.later - lead - now()).total_seconds(), 0.0))
    eventually(lambda: (node := running(scene, name)) and lose(cluster, name, node), PATIENCE)
    eventually(lambda: primers.primed(cluster, name).get("warming", {}).get("lost"), 120)
    warming = primers.primed(cluster, name)["warming"]
    assert warming["lost"] == cause, warming
    assert warming["attempt"] == 2, "there is time for another"
    eventually(lambda: name in said(cluster, "Lost"), 60)
    eventually(lambda: scene.operator.figures()[f'foresail_primer_lost_total{{cause="{cause}"}}'] >= 1, 60)


def unprimed(scene: Scene) -> list[float]:
    """Return how long the slowest that nobody primed took at each fire: a node may come quicker than it says."""
    took = scene.took(("unprimed", "cold", "spare"))
    beside = [] if FULL else took["spare"]
    return [max(*pair, *beside) for pair in zip(took["unprimed"], took["cold"], strict=True)]


def is_later(took: float, unprimed: float) -> bool:
    """Whether a run has waited longer than one that nobody primed, by more than what a busy machine may cost.

    One that has begun in half the time that a node takes has not waited for a node, and the other may have found one.
    """
    return took > max(unprimed + 2, NODES_TAKE / 2)


def running(scene: Scene, name: str) -> str:
    """Return the node on which the placeholder of a Primer runs; empty if it does not yet."""
    there = [pod for pod in scene.held(name) if pod.get("status", {}).get("phase") == "Running"]
    return str(there[0]["spec"]["nodeName"]) if there else ""


def said(cluster: Cluster, reason: str, namespace: str = "default") -> dict[str, str]:
    """Return what Events with that reason say, by the names of their Primers."""
    events = cluster.listed(f"/apis/events.k8s.io/v1/namespaces/{namespace}/events")
    return {each["regarding"]["name"]: each["note"] for each in events if each["reason"] == reason}


@pytest.mark.full
def test_no_run_is_later_than_unprimed_and_no_placeholder_is_more_than_its_namespace_allows(
    scene: Scene, eventually: Eventually, figure: Figure
) -> None:
    cluster = scene.cluster
    eventually(lambda: said(cluster, "Refused", "barred"), 180)
    assert "maximum cpu usage per Pod is 1" in said(cluster, "Refused", "barred")["barred"]
    refused = 'foresail_primer_refused_total{cause="Forbidden",namespace="barred"}'
    eventually(lambda: scene.operator.figures()[refused] >= 1, 60)
    run = [name for name in TIGHT if name != "barred"]
    eventually(lambda: scene.is_over((*run, "cold")), PATIENCE)
    for name in ("tight", "low", "meek"):  # what the run could not push aside ends by itself, should nobody be there
        assert scene.sight.specs[name]["activeDeadlineSeconds"] <= WARM_UP.total_seconds()
    took = scene.took(run)
    figure(f"start delay with nodes of {NODES_TAKE} s where primers must take care: {took}")
    assert max(took["unprimed"]) >= NODES_TAKE, "there is something to be gained"
    for name in run:
        assert not any(is_later(*pair) for pair in zip(took[name], unprimed(scene), strict=True)), took
    eventually(lambda: all(scene.is_warm(name) for name in ("kept", "guarded", "ranged", "bound")), 60)
    eventually(lambda: not any(scene.held(name) for name in (*TIGHT, *LOST)), PATIENCE)


def test_a_primed_run_starts_warm_by_either_method_and_nothing_stays_behind(
    scene: Scene, eventually: Eventually, figure: Figure, capsys: pytest.CaptureFixture[str]
) -> None:
    cluster = scene.cluster
    eventually(lambda: scene.is_over(ARMS), PATIENCE)
    eventually(lambda: scene.is_warm("held") and scene.is_warm("timed"), 60)
    told = commands(cluster, capsys)  # at once: the pods of the arm that nobody primed go with their node
    assert "warm" in told["describe"]
    assert "cold" in told["suggest"], "the arm that nobody primed waits"
    took = compared(scene, eventually)
    cold, held, timed = (took[arm] for arm in ARMS)
    figure(f"start delay with nodes of {NODES_TAKE} s: cold {cold:g} s, placeholder {held:g} s, CronJob {timed:g} s")
    assert cold >= NODES_TAKE
    assert held <= max(cold / 10, 2)
    assert timed <= max(cold / 10, 2)
    assert "held" in told["get"]
    assert "its pods request something" in told["explain"]
    assert "exact: each fires 1m before a fire" in told["preview"]
    cluster.kubectl("delete", "cronjobs", *ARMS, "--namespace=default")
    eventually(lambda: not any(scene.held(arm) for arm in ARMS), 60)
    pools = "/api/v1/nodes?labelSelector=karpenter.sh%2Fnodepool%3D"
    eventually(lambda: not any(cluster.listed(f"{pools}{arm}") for arm in ARMS), PATIENCE)


def compared(scene: Scene, eventually: Eventually) -> dict[str, float]:
    """Return how long the arms took: in the median of all fires, or at the first that a busy machine did not disturb.

    What a machine with two cores does beside it may cost seconds that are nobody's: where a single fire counts, it has
    three tries.
    """
    if FULL:
        return {arm: statistics.median(each) for arm, each in scene.took(ARMS).items()}
    took: dict[str, float] = {}
    for fire in scene.tries:
        eventually(lambda fire=fire: len(scene.took_at(fire, ARMS)) == len(ARMS), PATIENCE)  # type: ignore[misc]
        took = scene.took_at(fire, ARMS)
        if max(took["held"], took["timed"]) <= max(took["cold"] / 10, 2):
            break
    return took


def commands(cluster: Cluster, capsys: pytest.CaptureFixture[str]) -> dict[str, str]:
    """Return what each command says of this cluster, by its verb."""
    where = [f"--kubeconfig={cluster.site.admin_kubeconfig}", "--namespace=default"]
    words: dict[str, list[str]] = {
        "suggest": [],
        "get": [],
        "describe": ["held"],
        "explain": ["held"],
        "preview": ["cold", "--warm-up=1m"],
        "suspend": ["held"],
        "resume": ["held"],
    }
    told = {}
    capsys.readouterr()
    for verb, rest in words.items():
        assert main(["primer", verb, *rest, *where]) == 0, verb
        told[verb] = capsys.readouterr().out
    return told


def test_a_placeholder_is_where_the_volumes_of_the_run_are_and_mounts_none(
    scene: Scene, eventually: Eventually
) -> None:
    eventually(lambda: "bound" in scene.sight.specs, PATIENCE)
    spec = scene.sight.specs["bound"]
    required = spec["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
    assert required == {"nodeSelectorTerms": [in_zone(ZONE)]}
    assert "volumes" not in spec


def test_a_warm_up_longer_than_the_period_is_one_standing_reservation_and_never_a_second_node(
    scene: Scene, eventually: Eventually, figure: Figure
) -> None:
    eventually(lambda: scene.is_over(STANDING), PATIENCE)
    took, sight = scene.took(STANDING), scene.sight
    at_once = {name: (sight.held.get(name, 0), sight.nodes[name]) for name in STANDING}
    figure(f"standing reservations: start delays {took}; placeholders and nodes at once {at_once}")
    assert at_once["often"] == (1, 1)
    assert len(sight.ever["often"]) == 1, "the run leaves its node to the reservation, and takes it back"
    eventually(lambda: scene.is_warm("often"), 60)
    assert at_once["lean"][0] == 1
    assert not any(is_later(*pair) for pair in zip(took["lean"], took["spare"], strict=True)), took
    assert primers.primed(scene.cluster, "asked")["reason"] == "NeedsAllowStanding"
    assert "asked" not in sight.held


def test_a_run_whose_place_was_lost_and_made_again_is_not_later_than_unprimed(
    scene: Scene, eventually: Eventually, figure: Figure
) -> None:
    eventually(lambda: scene.is_over(LOST), PATIENCE)
    took = scene.took(LOST)
    figure(f"start delay where the node was deleted, and where a stranger took the place, before the fire: {took}")
    assert not any(is_later(took[name][0], max(unprimed(scene))) for name in LOST), took
