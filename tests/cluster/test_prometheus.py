"""A real Prometheus beside real operators: what it scrapes, and whom its alerts name."""

from collections.abc import Callable
from pathlib import Path

from testbed import Cluster
from tests.alerts.server import scraping
from tests.cluster import primers, tenants
from tests.cluster.operators import SELF_SERVICE, Operator, running

Eventually = Callable[[Callable[[], object], float], None]
NAMESPACES = ("forge", "mill")


def port_of(operator: Operator) -> int:
    return int(operator.said("serving on port")[-1]["message"].rpartition(" ")[2])


def test_prometheus_reads_both_deployments_and_an_alert_names_the_tenants_namespace(
    own_velero_cluster: Cluster, tmp_path: Path, eventually: Eventually
) -> None:
    cluster = own_velero_cluster
    primers.install(cluster)
    tenants.install(cluster, schedules=True)
    with (
        running(cluster, tmp_path) as schedules,
        running(cluster, tmp_path, *SELF_SERVICE) as one,
        running(cluster, tmp_path, *primers.FLAGS) as other,
    ):
        for namespace in NAMESPACES:  # no policy matches them
            cluster.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}})
            metadata = {"name": "first", "namespace": namespace}
            body = {"apiVersion": tenants.API, "kind": "NonAdminBackup", "metadata": metadata}
            cluster.apply({**body, "spec": {"backupSpec": {}}})
        ports = {
            "foresail-schedules-1": port_of(schedules),
            "foresail-self-service-1": port_of(one),
            "foresail-primers-1": port_of(other),
        }
        with scraping(ports, tmp_path) as prometheus:
            eventually(lambda: len(prometheus.targets()) == len(ports), 60)
            assert [(each["health"], each["lastError"]) for each in prometheus.targets()] == [("up", "")] * 3
            eventually(lambda: len(prometheus.alerts("ForesailTenantWithoutPolicy")) == len(NAMESPACES), 60)
            alerts = prometheus.alerts("ForesailTenantWithoutPolicy")
            assert sorted(each["namespace"] for each in alerts) == list(NAMESPACES)
            leads = prometheus.series("leader_election_master_status == 1")
            assert {each["pod"]: each["name"] for each in leads} == {
                "foresail-schedules-1": "foresail-schedules",
                "foresail-self-service-1": "foresail-self-service",
                "foresail-primers-1": "foresail-primers",
            }
            assert prometheus.series('rest_client_requests_total{code="200"}')
            assert prometheus.series('foresail_selfservice_waiting_requests{reason="NoPolicy"} == 1')
            # Pending until the first scrape.
            eventually(lambda: prometheus.alerts("ForesailSchedulesUnattended") == [], 60)
    assert "duplicate" not in (tmp_path / "prometheus.log").read_text()
