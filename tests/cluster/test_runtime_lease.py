"""Several replicas of the example controller, each its own process, as one ServiceAccount with just what it needs."""

import asyncio
import random
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime
from http import HTTPStatus
from pathlib import Path
from typing import Any

import pytest

from foresail.kube.candidate import LeaseTiming
from foresail.kube.client import Client
from foresail.kube.clock import now
from foresail.kube.connect import connect
from foresail.kube.controller import Informer
from foresail.kube.execute import Executor
from foresail.kube.health import liveness_problems
from foresail.kube.lease import Leadership
from foresail.kube.loop import Loop
from foresail.kube.reflector import WatchSpec
from foresail.kube.store import Store
from foresail.plan import Key, Plan
from testbed import Cluster
from testbed.site import ADMIN
from tests.cluster.parents import PARENT, finished, owners, parents, uids
from tests.cluster.replicas import ACCOUNT, EXAMPLE, USER, Replica, holder, permit

STOPPING = Path(__file__).with_name("stopping_replica.py")
Eventually = Callable[[Callable[[], object], float], None]


@pytest.fixture(scope="module", autouse=True)
def permitted(cluster: Cluster) -> None:
    permit(cluster)


Start = Callable[..., Replica]


@pytest.fixture
def start(cluster: Cluster, tmp_path: Path, eventually: Eventually) -> Iterator[Start]:
    """Start a replica and wait until it is ready; all are gone at the end, and the Lease too."""
    started: list[Replica] = []

    def begin(identity: str, script: Path = EXAMPLE, argument: str = "0", server: str | None = None) -> Replica:
        kubeconfig = cluster.service_account_kubeconfig("default", ACCOUNT, server)
        replica = Replica(kubeconfig, tmp_path / f"{identity}.log", script, argument)
        started.append(replica)
        eventually(replica.is_ready, 120)
        return replica

    yield begin
    for replica in started:
        replica.kill()
    cluster.kubectl("delete", "lease", "one-child-each", "--ignore-not-found")


@contextmanager
def namespace(cluster: Cluster, name: str) -> Iterator[str]:
    cluster.kubectl("create", "namespace", name)
    yield name


def leads(cluster: Cluster, replica: Replica) -> Callable[[], bool]:
    return lambda: holder(cluster) == replica.identity


def work_began(cluster: Cluster, where: str, name: str, eventually: Eventually) -> datetime:
    """Make a parent, and return when its child was asked for: the audit log knows, however late we look."""
    since = now()
    cluster.apply(*parents(where, [name]))
    eventually(lambda: name in finished(cluster, where), 60)
    asked = [each for each in cluster.audit(USER) if (each.namespace, each.verb) == (where, "create")]
    return min(each.at for each in asked if each.at >= since)


def test_after_the_leader_is_killed_and_after_it_is_ended_the_other_one_works_on(
    cluster: Cluster, start: Start, eventually: Eventually, figure: Callable[[str], None]
) -> None:
    with namespace(cluster, "failover") as where:
        first = start("first")
        eventually(leads(cluster, first), 30)
        second = start("second")
        cluster.apply(*parents(where, ["before"]))
        eventually(lambda: finished(cluster, where) == {"before"}, 30)
        assert holder(cluster) == "first"

        at = now()
        first.process.kill()
        killed = (work_began(cluster, where, "after-kill", eventually) - at).total_seconds()
        assert killed <= 15

        third = start("third")
        second.process.terminate()
        went_on = work_began(cluster, where, "after-end", eventually)
        assert second.process.wait(60) == 0
        released = datetime.fromisoformat(second.said("released Lease")[0]["time"])
        asked = [each.at for each in cluster.audit(ADMIN) if (each.namespace, each.name) == (where, "after-end")]
        ended = (went_on - max(released, *asked)).total_seconds()  # there was nothing to do before both
        assert ended <= 2
        eventually(leads(cluster, third), 30)
        assert cluster.get("lease", "one-child-each")["spec"]["leaseTransitions"] == 2
        assert owners(cluster, where) == uids(cluster, where)
        figure(f"failover: {killed:.1f} s after SIGKILL, {ended:.1f} s after the release on SIGTERM")


def test_killed_and_started_again_under_the_same_name_it_leads_at_once(
    cluster: Cluster, start: Start, eventually: Eventually
) -> None:
    first = start("same")
    eventually(leads(cluster, first), 30)
    first.kill()
    again = start("same")
    eventually(lambda: again.said("became leader"), 30)
    begun, leading = (datetime.fromisoformat(line["time"]) for line in (again.lines[0], again.said("became leader")[0]))
    assert (leading - begun).total_seconds() < 5, "it does not wait until its own Lease runs out"
    assert cluster.get("lease", "one-child-each")["spec"]["leaseTransitions"] == 0


def test_a_signal_during_work_leaves_nothing_half_done(
    cluster: Cluster, start: Start, eventually: Eventually, figure: Callable[[str], None]
) -> None:
    with namespace(cluster, "drained") as where:
        replica = start("drained")
        eventually(leads(cluster, replica), 30)
        names = [f"p-{number:03}" for number in range(300)]
        applying = threading.Thread(target=cluster.apply, args=parents(where, names))
        applying.start()
        eventually(lambda: len(finished(cluster, where)) > 20, 60)
        replica.process.terminate()
        told = time.monotonic()
        assert replica.process.wait(60) == 0
        took = time.monotonic() - told
        applying.join()
        done = finished(cluster, where)
        assert set(owners(cluster, where)) == done
        assert holder(cluster) == ""
        figure(f"drained: {took:.2f} s from SIGTERM to the end, {len(done)} of {len(names)} parents were finished")


def test_events_that_are_refused_and_slow_do_not_cost_the_lease(
    cluster: Cluster, start: Start, eventually: Eventually
) -> None:
    with namespace(cluster, "slow-events") as where, cluster.proxy() as proxy:
        replica = start("slow-events", server=proxy.url)
        eventually(leads(cluster, replica), 30)
        proxy.refuse("/apis/events.k8s.io", after=3)
        names = [f"p-{number:02}" for number in range(40)]
        cluster.apply(*parents(where, names))
        eventually(lambda: finished(cluster, where) == set(names), 60)
        eventually(lambda: proxy.refused >= 12, 90)  # by then the shared limiter was down to one request at a time
        until = time.monotonic() + 15
        while time.monotonic() < until:
            assert not replica.said("lost leadership")
            time.sleep(0.5)
        cluster.apply(*parents(where, ["late"]))
        eventually(lambda: "late" in finished(cluster, where), 10)


def test_an_idle_pair_asks_for_nothing_but_its_lease(cluster: Cluster, start: Start, eventually: Eventually) -> None:
    first = start("idle-1")
    eventually(leads(cluster, first), 30)
    start("idle-2")

    def asked_for(seconds: float) -> set[str]:
        since = now()  # not by count: the line about a request may be written late
        time.sleep(seconds)
        return {request.resource for request in cluster.audit(USER) if request.at >= since}

    lease = {"leases.coordination.k8s.io"}
    eventually(lambda: asked_for(2) == lease, 60)  # what other tests left behind is done
    assert asked_for(4) == lease


@pytest.mark.full
def test_whoever_is_killed_twenty_times_over_no_child_is_made_twice_and_no_parent_forgotten(
    cluster: Cluster, start: Start, eventually: Eventually, figure: Callable[[str], None]
) -> None:
    with namespace(cluster, "often") as where:
        chance = random.Random(5)  # noqa: S311 - chance, not secrecy
        replicas = [start("often-0"), start("often-1")]
        names = [f"p-{number:03}" for number in range(400)]
        killed_leaders = 0
        for kill in range(20):
            cluster.apply(*parents(where, names[kill * 20 : kill * 20 + 20]))
            time.sleep(chance.random())
            victim = chance.choice(replicas)
            killed_leaders += holder(cluster) == victim.identity
            victim.kill()
            replicas[replicas.index(victim)] = start(victim.identity)
        eventually(lambda: finished(cluster, where) == set(names), 120)
        assert owners(cluster, where) == uids(cluster, where)
        created = [r for r in cluster.audit(USER) if r.resource == "configmaps" and r.verb == "create"]
        mine = [r.name for r in created if r.namespace == where and r.code == HTTPStatus.CREATED]
        assert len(mine) <= len(names), "a creation whose client died unanswered is logged with another code"
        figure(f"20 kills, {killed_leaders} of them of the leader: {len(names)} parents, each with its one child")


@pytest.mark.full
def test_leaders_paused_for_a_minute_before_a_write_do_no_harm_and_report_why_they_lost_the_lease(
    cluster: Cluster, start: Start, eventually: Eventually
) -> None:
    with namespace(cluster, "paused") as where:
        # The first stops before the child of a. The second, which leads after it, makes a's two writes and the child
        # of b, and stops before the status of b. The third finishes b.
        first = start("first-paused", STOPPING, "1")
        eventually(leads(cluster, first), 30)
        second = start("second-paused", STOPPING, "4")
        cluster.apply(*parents(where, ["a"]))
        eventually(first.is_stopped, 30)
        stopped = {first.identity: time.monotonic()}
        eventually(lambda: finished(cluster, where) == {"a"}, 60)
        third = start("third")
        cluster.apply(*parents(where, ["b"]))
        eventually(second.is_stopped, 30)
        stopped[second.identity] = time.monotonic()
        eventually(lambda: finished(cluster, where) == {"a", "b"}, 60)
        assert holder(cluster) == "third"
        patch = '--patch={"status": {"later": "yes"}}'
        for name in ("a", "b"):
            cluster.kubectl("patch", "parent", name, "-n", where, "--subresource=status", "--type=merge", patch)
        before = cluster.get("parents", "--namespace", where)["items"]
        children = cluster.get("configmaps", "--namespace", where)["items"]
        for paused in (first, second):
            time.sleep(max(0.0, 60 - (time.monotonic() - stopped[paused.identity])))
            paused.process.send_signal(signal.SIGCONT)
            eventually(lambda paused=paused: paused.said("lost leadership"), 30)  # type: ignore[misc]
        time.sleep(2)
        assert cluster.get("parents", "--namespace", where)["items"] == before
        assert cluster.get("configmaps", "--namespace", where)["items"] == children
        assert [item["status"] for item in before] == [{"child": name, "later": "yes"} for name in ("a", "b")]
        assert all("so it was paused" in each.said("lost leadership")[0]["message"] for each in (first, second))

        # They stand again: warm followers, one of which leads when the third ends.
        third.process.terminate()
        eventually(lambda: holder(cluster) in (first.identity, second.identity), 30)
        cluster.apply(*parents(where, ["c"]))
        eventually(lambda: finished(cluster, where) == {"a", "b", "c"}, 30)
        assert owners(cluster, where) == uids(cluster, where)


def test_a_leader_without_the_api_server_steps_down_before_the_lease_expires_and_campaigns_again(
    cluster: Cluster,
) -> None:
    async def run() -> None:
        with cluster.proxy() as proxy:
            kubeconfig = await asyncio.to_thread(cluster.service_account_kubeconfig, "default", ACCOUNT, proxy.url)
            async with Client(await connect(str(kubeconfig))) as client:
                timing = LeaseTiming(duration=8, renew_deadline=5, retry_period=0.5)
                leadership = Leadership(client, Key("default", "cut-off"), "me", now, timing)
                running = asyncio.create_task(leadership.run())
                await asyncio.wait_for(leadership.until_leader(), 30)
                await asyncio.to_thread(proxy.stall, "leases")
                await asyncio.wait_for(leadership.until_follower(), 30)
                lost = now()
                assert not leadership.is_leader
                lease = await asyncio.to_thread(cluster.get, "lease", "cut-off")
                renewed = datetime.fromisoformat(lease["spec"]["renewTime"])
                # A renewal that was under way may have arrived, unanswered.
                least = timing.renew_deadline - 2 * timing.retry_period
                assert least <= (lost - renewed).total_seconds() < timing.duration
                await asyncio.to_thread(proxy.resume)
                await asyncio.wait_for(leadership.until_leader(), 30)
                running.cancel()
                await asyncio.wait([running])
                await leadership.release()
                assert not leadership.is_leader

    asyncio.run(run())
    assert cluster.get("lease", "cut-off")["spec"]["holderIdentity"] == ""


def test_of_two_processes_under_one_name_the_later_one_leads_and_the_earlier_one_says_why_it_does_not(
    start: Start, eventually: Eventually
) -> None:
    earlier = start("namesake")
    eventually(lambda: earlier.said("became leader"), 30)
    log = earlier.log.rename(earlier.log.with_suffix(".earlier"))
    earlier.log = log
    later = start("namesake")
    eventually(lambda: earlier.said("was acquired by another process with the same identity"), 30)
    time.sleep(3)
    assert len(earlier.said("became leader")) == len(later.said("became leader")) == 1
    assert not later.said("lost leadership")


def test_a_watch_that_dies_ends_the_loop_and_is_named_by_the_probe(cluster: Cluster) -> None:
    def row(_wire: object) -> object:
        raise ZeroDivisionError

    class Broken:
        name = "broken"
        informers = (Informer(WatchSpec(PARENT, object, row), Store[object](), lambda change: [change.key]),)

        def observe(self, key: Key, _now: datetime) -> Key | None:
            return key

        def decide(self, _seen: Key, _now: datetime) -> Plan:
            return Plan()

    async def run() -> None:
        kubeconfig = await asyncio.to_thread(cluster.service_account_kubeconfig, "default", ACCOUNT)
        async with Client(await connect(str(kubeconfig))) as client:
            loop = Loop(client, Broken(), Executor(client), now)
            with pytest.raises(ExceptionGroup):
                await asyncio.wait_for(loop.run(), 60)
            assert liveness_problems([loop]) == ["broken: the watch of Parent has ended"]

    cluster.apply(*parents("default", ["broken"]))
    asyncio.run(run())
    cluster.kubectl("delete", "parent", "broken")


def shown(replica: Replica) -> dict[str, str]:
    """Return its metrics."""
    code, text = replica.ask("/metrics")
    assert code == HTTPStatus.OK
    return dict(line.rsplit(" ", 1) for line in text.splitlines() if not line.startswith("#"))


def events(cluster: Cluster, where: str) -> list[tuple[str, str, str, str]]:
    items: list[dict[str, Any]] = cluster.get("events.events.k8s.io", "--namespace", where)["items"]
    return sorted((e["regarding"]["name"], e["type"], e["reason"], e["note"]) for e in items)


def test_it_tells_users_in_events_operators_in_metrics_and_probes_and_everyone_in_its_log(
    cluster: Cluster, start: Start, eventually: Eventually
) -> None:
    with namespace(cluster, "told") as where:
        cluster.kubectl("create", "configmap", "taken", "--from-literal=owner=somebody", "--namespace", where)
        replica = start("told")
        wrong = {**parents(where, ["wrong"])[0], "status": {"child": "x"}}
        cluster.apply(wrong)
        status = '--patch={"status": {"child": {"not": "a text"}}}'
        cluster.apply(*parents(where, ["right", "taken"]))
        eventually(lambda: {"right", "wrong"} <= finished(cluster, where), 60)
        cluster.kubectl("patch", "parent", "wrong", "-n", where, "--subresource=status", "--type=merge", status)
        told = [
            ("right", "Normal", "ChildMade"),
            ("taken", "Warning", "NameTaken"),
            ("wrong", "Normal", "ChildMade"),
            ("wrong", "Warning", "Unreadable"),
        ]
        eventually(lambda: [event[:3] for event in events(cluster, where)] == told, 60)
        time.sleep(3)  # it tries the taken name again and again
        assert [event[:3] for event in events(cluster, where)] == told
        notes = {event[2]: event[3] for event in events(cluster, where)}
        assert notes["NameTaken"] == (
            "ConfigMap told/taken already exists and is not managed by this operator. "
            "Rename or delete it; the operator then continues automatically."
        )
        assert "Parent told/wrong cannot be decoded and is ignored: Expected `str`" in notes["Unreadable"]
        assert "NameTaken" in cluster.kubectl("describe", "parent", "taken", "--namespace", where)

        assert replica.ask("/healthz") == (200, "ok\n")
        eventually(lambda: shown(replica)['foresail_queue_age_seconds{controller="one-child-each"}'] == "0.0", 60)
        figures = shown(replica)
        assert [value for name, value in figures.items() if name.startswith("leader_election_")] == ["1.0"]
        assert float(figures['workqueue_adds_total{name="one-child-each"}']) >= 3
        assert float(figures['workqueue_queue_duration_seconds_count{name="one-child-each"}']) >= 3
        created = [name for name in figures if name.startswith('rest_client_requests_total{code="201"')]
        assert created
        assert 'method="POST"' in created[0]
        assert float(figures['foresail_writes_total{kind="ConfigMap",verb="create"}']) >= 3
        assert float(figures['foresail_writes_total{kind="Parent",verb="patch"}']) >= 2
        assert float(figures['foresail_store_objects{controller="one-child-each",kind="Parent",selector=""}']) >= 2
        assert figures['foresail_unreadable_objects{controller="one-child-each",kind="Parent",selector=""}'] == "1.0"
        restarts = 'foresail_watch_restarts_total{controller="one-child-each",kind="ConfigMap",selector="'
        assert any(each.startswith(restarts) for each in figures)
        assert float(figures['foresail_reconciles_total{controller="one-child-each",outcome="refused"}']) >= 2

        about = {line["key"] for line in replica.lines if line.get("key", "").startswith(f"{where}/")}
        assert about == {"told/right", "told/taken", "told/wrong"}
        cluster.kubectl("delete", "parent", "taken", "--namespace", where)  # else every later leader tries it too
