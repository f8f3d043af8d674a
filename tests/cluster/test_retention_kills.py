"""A fixed sample of the kills that `make retention-kills` does in full."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from bench.retention_kills import Series, prepare
from testbed import Cluster
from tests.cluster.schedules import Figure, clear

pytestmark = pytest.mark.full


@pytest.fixture
def deleting(schedule_cluster: Cluster) -> Iterator[Cluster]:
    """A cluster whose Velero deletes Backups, and does nothing else with them."""
    clear(schedule_cluster)
    prepare(schedule_cluster)
    yield schedule_cluster
    schedule_cluster.kubectl("delete", "schedulepolicies.foresail.dev", "--all")
    clear(schedule_cluster)
    schedule_cluster.restart_velero("schedule")


def test_killed_amid_deletions_it_never_deletes_the_newest_good_backups(
    deleting: Cluster, tmp_path: Path, figure: Figure
) -> None:
    report = Series(deleting, tmp_path).run(8, print)
    deleting.kubectl("delete", "lease", "foresail", "--namespace=velero", "--ignore-not-found")
    figure(f"retention: {report.figures()}")
    assert report.is_right, report
    assert report.amid_deletions
