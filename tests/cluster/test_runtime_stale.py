"""Watches that fail for ever at a real API server: without permission, and with a CA that was replaced."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from testbed import Cluster
from tests.cluster import operators
from tests.cluster.parents import finished, parents
from tests.cluster.replicas import ACCOUNT, Replica, permit

STALE = Path(__file__).with_name("stale_replica.py")
POD = Path(__file__).with_name("pod_replica.py")
FAILURES = 'foresail_watch_failures_total{cause="%s",controller="one-child-each",kind="Parent",selector=""}'
AGE = 'foresail_store_age_seconds{controller="one-child-each",kind="Parent",selector=""}'
Eventually = Callable[[Callable[[], object], float], None]


@pytest.fixture
def own_cluster(doomed_cluster: Cluster) -> Cluster:
    permit(doomed_cluster)
    return doomed_cluster


@contextmanager
def ended(replica: Replica) -> Iterator[Replica]:
    try:
        yield replica
    finally:
        replica.kill()


def figure(replica: Replica, name: str) -> float:
    rows = dict(line.rsplit(" ", 1) for line in replica.ask("/metrics")[1].splitlines() if not line.startswith("#"))
    return float(rows.get(name, "0"))


def test_a_watch_without_permission_is_logged_counted_and_makes_the_replica_unready_until_it_works_again(
    own_cluster: Cluster, tmp_path: Path, eventually: Eventually
) -> None:
    cluster = own_cluster
    with cluster.proxy() as proxy:
        kubeconfig = cluster.service_account_kubeconfig("default", ACCOUNT, proxy.url)
        with ended(Replica(kubeconfig, tmp_path / "stale.log", STALE, "6")) as replica:
            eventually(replica.is_ready, 60)
            bindings = cluster.get("clusterrolebinding", ACCOUNT)
            cluster.kubectl("delete", "clusterrolebinding", ACCOUNT)
            proxy.cut("watch=true")  # an open watch outlives its permission

            eventually(lambda: replica.said("cannot watch Parent"), 30)
            eventually(lambda: figure(replica, FAILURES % "Forbidden") >= 3, 60)
            eventually(lambda: "one-child-each: Parent is stale, last confirmed" in replica.ask("/readyz")[1], 60)
            code, text = replica.ask("/readyz")
            assert code == 503
            assert "Forbidden" in text
            assert figure(replica, AGE) > 6
            assert replica.ask("/healthz") == (200, "ok\n")
            forbidden = [line for line in replica.said("cannot watch Parent") if "Forbidden" in line["message"]]
            assert len(forbidden) == 1, "not at each retry"

            del bindings["metadata"]["resourceVersion"], bindings["metadata"]["uid"]
            cluster.apply(bindings)
            cluster.apply(*parents("default", ["late"]))
            eventually(lambda: "late" in finished(cluster, "default"), 60)
            eventually(lambda: replica.said("watching Parent again after"), 60)


@pytest.mark.full
def test_an_operator_whose_permissions_are_deleted_reports_each_watch_and_goes_on_when_they_are_back(
    schedule_cluster: Cluster, tmp_path: Path, eventually: Eventually
) -> None:
    cluster, operator = schedule_cluster, operators.Operator(schedule_cluster, tmp_path)
    kinds = ("Schedule", "Backup", "BackupStorageLocation")
    with cluster.proxy() as proxy:
        cluster.service_account_kubeconfig("velero", "foresail-schedules", proxy.url)  # which it reads
        try:
            operator.start()
            cluster.kubectl("delete", "rolebinding", "foresail-schedules", "--namespace=velero")
            proxy.cut("watch=true")
            for kind in kinds:
                eventually(lambda kind=kind: forbidden(operator, kind), 60)  # type: ignore[misc]
            figures = operator.figures()
            assert all(any(refused(name, kind) and figures[name] for name in figures) for kind in kinds)
            operators.install(cluster)
            for kind in kinds:
                eventually(lambda kind=kind: operator.said(f"watching {kind} again after"), 120)  # type: ignore[misc]
        finally:
            operator.kill()
            operators.install(cluster)
            cluster.kubectl("delete", "lease", "foresail-schedules", "--namespace=velero", "--ignore-not-found")


def forbidden(operator: operators.Operator, kind: str) -> bool:
    return any("Forbidden" in line["message"] for line in operator.said(f"cannot watch {kind},"))


def refused(name: str, kind: str) -> bool:
    return name.startswith('foresail_watch_failures_total{cause="Forbidden"') and f'kind="{kind}"' in name


def test_a_replaced_ca_is_read_again_by_a_running_replica(
    own_cluster: Cluster, tmp_path: Path, eventually: Eventually
) -> None:
    cluster = own_cluster
    pod, address = tmp_path / "pod", urlsplit(cluster.server)
    pod.mkdir()
    (pod / "ca.crt").write_bytes((cluster.site.pki / "ca.crt").read_bytes())
    (pod / "token").write_text(cluster.service_account_token("default", ACCOUNT))
    where = {"KUBERNETES_SERVICE_HOST": str(address.hostname), "KUBERNETES_SERVICE_PORT": str(address.port)}
    with ended(Replica(pod, tmp_path / "in-pod.log", POD, environment=where)) as replica:
        eventually(replica.is_ready, 60)
        cluster.apply(*parents("default", ["before"]))
        eventually(lambda: finished(cluster, "default") == {"before"}, 60)

        authority = cluster.fault.replace_authority()
        eventually(lambda: "certificate verify failed" in replica.log.read_text(), 180)
        cluster.apply(*parents("default", ["after"]))
        assert finished(cluster, "default") == {"before"}

        fresh = tmp_path / "fresh"
        fresh.write_bytes(authority.read_bytes())
        fresh.rename(pod / "ca.crt")
        eventually(lambda: finished(cluster, "default") == {"before", "after"}, 180)
        eventually(lambda: replica.said("watching Parent again after"), 90)
        assert figure(replica, FAILURES % "Unreachable") >= 1
