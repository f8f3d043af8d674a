"""What a cluster can do to a running controller; each time it ends in the right state, in the same process."""

import asyncio
import os
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from http import HTTPStatus
from pathlib import Path
from typing import Any

import pytest

from foresail.kube.client import Client
from foresail.kube.connect import connect
from foresail.kube.failures import Cause, Failure
from foresail.plan import Key, Kind
from testbed import Cluster, Options, TestbedError
from tests.cluster.parents import finished, owners, parents, uids
from tests.cluster.replicas import ACCOUNT, LEASE, USER, Replica, holder, permit

Eventually = Callable[[Callable[[], object], float], None]
CONFIG_MAP = Kind("", "v1", "configmaps", "ConfigMap")


@contextmanager
def leading(cluster: Cluster, log: Path, eventually: Eventually) -> Iterator[Replica]:
    """Run a replica that leads; at the end it must still be the same process."""
    replica = Replica(cluster.service_account_kubeconfig("default", ACCOUNT), log)
    try:
        eventually(lambda: replica.said("became leader"), 120)
        yield replica
        assert replica.process.poll() is None, "it ended by itself"
    finally:
        replica.kill()


# Outages


@pytest.fixture
def two_clusters() -> Iterator[list[Cluster]]:
    """Two clusters, so that two long outages are waited for at once."""
    with ExitStack() as stack:
        names = [f"pytest-{os.getpid()}-outage-{number}" for number in (1, 2)]
        yield [stack.enter_context(Cluster.create(name, Options(), owned=True)) for name in names]


def outlive(
    cluster: Cluster, log: Path, eventually: Eventually, begin: Callable[[], None], end: Callable[[], None]
) -> float:
    """Let an outage begin in the middle of work, and end; return how many seconds after it all was as it should be."""
    permit(cluster)
    where = "outage"
    cluster.kubectl("create", "namespace", where)
    names = [f"p-{number:03}" for number in range(300)]

    def make_parents() -> None:
        with suppress(TestbedError):  # it breaks off in the middle
            cluster.apply(*parents(where, names))

    def all_are_made() -> bool:
        cluster.apply(*parents(where, names))
        return True

    with leading(cluster, log, eventually) as replica:
        making = threading.Thread(target=make_parents)
        making.start()
        eventually(lambda: len(finished(cluster, where)) > 10, 60)
        assert len(finished(cluster, where)) < len(names), "there is work left to do"
        begin()
        end()
        ended = time.monotonic()
        making.join()
        assert replica.said("lost leadership")
        assert replica.ask("/healthz") == (200, "ok\n")
        eventually(all_are_made, 60)  # it may refuse for a moment yet
        eventually(lambda: finished(cluster, where) == set(names), 180)
        took = time.monotonic() - ended
        assert owners(cluster, where) == uids(cluster, where)
        assert holder(cluster) == replica.identity
    return took


def test_a_minute_without_the_api_server_and_half_a_minute_of_frozen_etcd_are_survived(
    two_clusters: list[Cluster], tmp_path: Path, eventually: Eventually, figure: Callable[[str], None]
) -> None:
    killed, frozen = two_clusters

    def away() -> float:
        def begin() -> None:
            killed.fault.kill("kube-apiserver")
            time.sleep(60)

        return outlive(killed, tmp_path / "away.log", eventually, begin, lambda: killed.fault.start("kube-apiserver"))

    def freeze() -> float:
        def begin() -> None:
            frozen.fault.stop("etcd")
            time.sleep(30)

        return outlive(frozen, tmp_path / "frozen.log", eventually, begin, lambda: frozen.fault.cont("etcd"))

    with ThreadPoolExecutor() as pool:
        after_kill, after_freeze = [each.result() for each in [pool.submit(away), pool.submit(freeze)]]
    figure(
        f"outages: all 300 parents finished {after_kill:.1f} s after the API server was back from 60 s, "
        f"{after_freeze:.1f} s after etcd was back from 30 s"
    )


# Too many requests


def limits() -> list[dict[str, Any]]:
    """Return limits for the replica's ServiceAccount: two or three requests at a time, and no queue for the others."""
    group = "flowcontrol.apiserver.k8s.io/v1"
    limited = {
        "nominalConcurrencyShares": 1,
        "lendablePercent": 0,
        "borrowingLimitPercent": 0,
        "limitResponse": {"type": "Reject"},
    }
    who = {"kind": "ServiceAccount", "serviceAccount": {"name": ACCOUNT, "namespace": "default"}}
    what = {"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"], "namespaces": ["*"], "clusterScope": True}
    level = {
        "apiVersion": group,
        "kind": "PriorityLevelConfiguration",
        "metadata": {"name": "storm"},
        "spec": {"type": "Limited", "limited": limited},
    }
    schema = {
        "apiVersion": group,
        "kind": "FlowSchema",
        "metadata": {"name": "storm"},
        "spec": {
            "priorityLevelConfiguration": {"name": "storm"},
            "matchingPrecedence": 2,
            "rules": [{"subjects": [who], "resourceRules": [what]}],
        },
    }
    return [level, schema]


@pytest.fixture
def limited_cluster(cluster: Cluster) -> Iterator[Cluster]:
    """The cluster with an audit log, as long as it has the limits."""
    permit(cluster)
    cluster.apply(*limits())
    cluster.kubectl("wait", "flowschema/storm", "--for=condition=Dangling=false", "--timeout=60s")  # they are in force
    yield cluster
    cluster.kubectl("delete", "flowschema,prioritylevelconfiguration", "storm")


def codes(cluster: Cluster, where: str) -> Counter[int]:
    """Count the answers to all writes in a namespace, as the audit log has them."""
    return Counter(request.code for request in cluster.audit(USER) if request.namespace == where)


def test_a_server_that_refuses_most_requests_is_asked_again_until_all_is_done(
    limited_cluster: Cluster, tmp_path: Path, eventually: Eventually, figure: Callable[[str], None]
) -> None:
    cluster, where = limited_cluster, "storm"
    cluster.kubectl("create", "namespace", where)
    names = [f"p-{number:03}" for number in range(150)]
    cluster.apply(*parents(where, names))
    began = time.monotonic()
    with leading(cluster, tmp_path / "storm.log", eventually):
        eventually(lambda: finished(cluster, where) == set(names), 240)
        took = time.monotonic() - began
        assert owners(cluster, where) == uids(cluster, where)
    cluster.kubectl("delete", "lease", LEASE)
    refused = codes(cluster, where)[HTTPStatus.TOO_MANY_REQUESTS]
    assert refused > 10
    figure(f"429: {refused} writes were refused until 150 parents were finished, {took:.1f} s after the start")


def test_a_write_that_is_refused_as_one_too_many_is_not_sent_again_by_the_client(limited_cluster: Cluster) -> None:
    cluster, where, count = limited_cluster, "once", 100
    cluster.kubectl("create", "namespace", where)
    kubeconfig = str(cluster.service_account_kubeconfig("default", ACCOUNT))

    async def run() -> list[object]:
        async with Client(await connect(kubeconfig), max_in_flight=count) as client:
            keys = [Key(where, f"c-{number}") for number in range(count)]
            bodies = [(key, {"metadata": {"name": key.name}}) for key in keys]
            return await asyncio.gather(*(client.create(CONFIG_MAP, key, body, object) for key, body in bodies))

    failures = [answer for answer in asyncio.run(run()) if isinstance(answer, Failure)]
    assert failures
    assert {failure.cause for failure in failures} == {Cause.TOO_MANY}
    assert all(failure.retry_after is not None for failure in failures)
    sent = codes(cluster, where)
    assert sent == {HTTPStatus.CREATED: count - len(failures), HTTPStatus.TOO_MANY_REQUESTS: len(failures)}
