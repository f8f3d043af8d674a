"""The tutorial of primers, followed as written on a cluster that has never seen Foresail."""

from pathlib import Path

from testbed import Cluster
from tests.cluster.pages import reading

SECTIONS = ("Install", "A CronJob that waits", "See what waits", "Prime it", "See that it helped", "And back")


def test_a_cron_job_is_primed(own_velero_cluster: Cluster, tmp_path: Path) -> None:
    with reading(own_velero_cluster, tmp_path) as reader:
        for section in SECTIONS:
            reader.follow("tutorial/warm-cronjobs.md", section)
    assert own_velero_cluster.get("primers", "--namespace=shop")["items"] == []
