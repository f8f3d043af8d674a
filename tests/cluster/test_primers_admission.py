"""The API server accepts the placeholder of every pod that it accepts."""

from testbed import Cluster
from tests.cluster import primer_admission
from tests.cluster.schedules import Eventually, Figure

PODS = 100  # `make primer-admission` tries 2,000


def test_whatever_pod_the_api_server_accepts_it_accepts_the_placeholder_of_it(
    cluster: Cluster, eventually: Eventually, figure: Figure
) -> None:
    primer_admission.install(cluster)
    eventually(lambda: primer_admission.is_ready(cluster), 60)
    found = primer_admission.tally(cluster, PODS, seed=15)
    figure(f"placeholders of {found.pods} random pods: {len(found.refused)} refused")
    assert found.refused == []
    assert found.pods == PODS
