"""A highly available control plane: what each of its faults does, and that it comes back from it."""

import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from http import HTTPStatus
from pathlib import Path
from typing import Any

import pytest

from testbed import Cluster, Options, TestbedError
from testbed.api import Answer, is_ok, request
from testbed.replicas import APISERVER, ETCD, names, replicas
from tests.cluster.parents import finished, parents
from tests.cluster.replicas import ACCOUNT, Replica, permit
from tests.cluster.schedules import Eventually, Figure
from tests.cluster.test_runtime_stale import STALE as STALE_REPLICA

MAPS = "/api/v1/namespaces/default/configmaps"
FROM_CACHE = "resourceVersion=0"
INITIAL = (
    "watch=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true&timeoutSeconds=5"
)
SERVERS = names(Options(ha=True), APISERVER)
STALE = SERVERS[1]
UP_SECONDS = 30.0


def ask(cluster: Cluster, server: str, target: str, seconds: float = 60.0) -> Answer:
    """Ask one of the API servers."""
    port = next(each.port for each in replicas(cluster.site.options, APISERVER) if each.name == server)
    return request("GET", cluster.site.url(port) + target, cluster.site.admin_trust, seconds=seconds)


def listed(cluster: Cluster, server: str, query: str = "") -> set[str]:
    items: list[dict[str, Any]] = ask(cluster, server, f"{MAPS}?{query}").json()["items"]
    return {each["metadata"]["name"] for each in items}


def make(cluster: Cluster, name: str) -> bool:
    cluster.apply({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": "default"}})
    return True


@contextmanager
def frozen(cluster: Cluster, server: str) -> Iterator[None]:
    cluster.fault.freeze_cache(server)
    try:
        yield
    finally:
        cluster.fault.release_cache(server)


@contextmanager
def operator(kubeconfig: Path, folder: Path) -> Iterator[Replica]:
    replica = Replica(kubeconfig, folder / "operator.log", STALE_REPLICA, "100")
    try:
        yield replica
    finally:
        replica.kill()


@contextmanager
def cut_off(cluster: Cluster, member: str) -> Iterator[None]:
    cluster.fault.cut_off(member)
    try:
        yield
    finally:
        cluster.fault.rejoin(member)


@pytest.mark.full
def test_it_is_up_within_half_a_minute(figure: Figure) -> None:
    took: list[float] = []
    while not took or (min(took) > UP_SECONDS and len(took) < 3):  # the best of three: others run beside this test
        began = time.monotonic()
        with Cluster.create("pytest-ha-up", Options(ha=True), owned=True) as cluster:
            took.append(time.monotonic() - began)
            assert all(cluster.status().values())
    figure(f"`testbed up --ha`: {min(took):.1f} s")
    assert min(took) <= UP_SECONDS


def test_it_has_three_of_each_that_agree_behind_one_address(ha_cluster: Cluster) -> None:
    cluster = ha_cluster
    assert list(cluster.status()) == [
        "links", *names(Options(ha=True), ETCD), *SERVERS,
        "kube-controller-manager-1", "kube-controller-manager-2",
    ]  # fmt: skip
    make(cluster, "shared")
    assert all("shared" in listed(cluster, server) for server in SERVERS)
    with pytest.raises(TestbedError, match="has no component 'kube-apiserver-4'"):
        cluster.fault.kill("kube-apiserver-4")


def test_a_frozen_cache_shows_the_past_to_whoever_does_not_ask_for_the_present(
    ha_cluster: Cluster, eventually: Eventually
) -> None:
    cluster = ha_cluster
    make(cluster, "before")
    eventually(lambda: "before" in listed(cluster, STALE, FROM_CACHE), 30)
    with frozen(cluster, STALE):
        make(cluster, "after")
        assert "after" in listed(cluster, SERVERS[0], FROM_CACHE)
        assert "after" not in listed(cluster, STALE, FROM_CACHE), "from the cache"
        assert "after" in listed(cluster, STALE), "a consistent list, which waits for the cache and then asks etcd"
        assert ask(cluster, STALE, f"{MAPS}/after").code == HTTPStatus.OK, "one object, from etcd"
        assert "Too large resource version" in ask(cluster, STALE, f"{MAPS}?{INITIAL}").text, "all, as a stream"
        assert ask(cluster, STALE, "/readyz").code == HTTPStatus.OK, "nobody notices"
    eventually(lambda: "after" in listed(cluster, STALE, FROM_CACHE), 30)


def test_the_leader_of_etcd_moves_and_then_is_cut_off_and_comes_back(
    ha_cluster: Cluster, eventually: Eventually
) -> None:
    cluster = ha_cluster
    first = cluster.fault.leader()
    second = cluster.fault.move_leader()
    eventually(lambda: cluster.fault.leader() == second != first, 30)
    alone = SERVERS[names(Options(ha=True), ETCD).index(second)]
    with cut_off(cluster, second):
        eventually(lambda: cluster.fault.leader() != second, 60)
        cluster.fault.lead_to(*(each for each in SERVERS if each != alone))
        eventually(lambda: make(cluster, "without-it"), 60)
        assert ask(cluster, alone, "/readyz").code == HTTPStatus.INTERNAL_SERVER_ERROR
        with pytest.raises(TimeoutError):
            ask(cluster, alone, MAPS, 2)
    cluster.fault.lead_to()
    eventually(lambda: "without-it" in listed(cluster, alone), 60)


@pytest.mark.full
def test_api_servers_restart_one_after_the_other_and_one_answers_at_any_time(ha_cluster: Cluster) -> None:
    cluster = ha_cluster
    before = {each: cluster.status()[each] for each in SERVERS}
    cluster.fault.roll(APISERVER)
    for each in SERVERS:
        assert set(before[each]).isdisjoint(cluster.status()[each])
        assert is_ok(f"{cluster.server}/readyz", cluster.site.admin_trust)


@pytest.mark.full
def test_a_copy_of_etcd_is_restored_in_every_member(ha_cluster: Cluster) -> None:
    cluster = ha_cluster
    make(cluster, "in-the-copy")
    copy = cluster.fault.save_etcd()
    make(cluster, "too-late")
    cluster.fault.restore_etcd(copy)
    for server in SERVERS:
        found = listed(cluster, server)
        assert "in-the-copy" in found
        assert "too-late" not in found


@pytest.mark.full
def test_an_operator_that_does_not_see_its_own_writes_is_not_ready_until_it_does(
    ha_cluster: Cluster, tmp_path: Path, eventually: Eventually
) -> None:
    cluster = ha_cluster
    permit(cluster)
    kubeconfig = cluster.service_account_kubeconfig("default", ACCOUNT)
    cluster.fault.lead_to(STALE)
    try:
        with operator(kubeconfig, tmp_path) as replica:
            eventually(replica.is_ready, 60)  # the server knows what it may do
        with ExitStack() as until_released:
            until_released.enter_context(frozen(cluster, STALE))
            cluster.apply(*parents("default", ["unseen"]))
            with operator(kubeconfig, tmp_path) as replica:
                eventually(lambda: finished(cluster, "default") == {"unseen"}, 60)
                eventually(lambda: "one-child-each: ConfigMap is stale" in replica.ask("/readyz")[1], 150)
                until_released.close()
                eventually(replica.is_ready, 60)
    finally:
        cluster.fault.lead_to()


@pytest.mark.full
def test_a_single_control_plane_says_how_to_get_links(doomed_cluster: Cluster) -> None:
    with pytest.raises(TestbedError, match="has no links") as raised:
        doomed_cluster.fault.freeze_cache("kube-apiserver")
    assert raised.value.hint == "bring the cluster up with --ha"
