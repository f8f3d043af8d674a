"""A fixed sample of the kills that `make runtime-kills` does in full."""

from collections.abc import Callable
from pathlib import Path

from bench.runtime_kills import Series
from testbed import Cluster
from tests.cluster.replicas import LEASE, permit


def test_killed_around_its_writes_and_at_random_instants_it_makes_nothing_twice_and_forgets_nothing(
    cluster: Cluster, tmp_path: Path, figure: Callable[[str], None]
) -> None:
    permit(cluster)
    cluster.kubectl("delete", "lease", LEASE, "--ignore-not-found")  # of a test that failed
    report = Series(cluster, tmp_path).run(20, print)
    cluster.kubectl("delete", "lease", LEASE)
    figure(str(report))
    assert report.is_right
    assert report.share_between >= 1 / 3
    assert max(report.seconds_to_lead) < 5, "it does not wait until its own Lease runs out"
