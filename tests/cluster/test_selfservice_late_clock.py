"""An operator whose clock is behind Velero's: an expired backup is not missed, and its request does not stay."""

import time
from pathlib import Path

import pytest

from foresail.api.instants import instant
from foresail.kube.clock import now
from testbed import Cluster
from tests.cluster.tenants import Eventually, arrive, condition, in_bucket, install, operator, quotas

BEHIND = 75.0


@pytest.mark.full
def test_finding_5_the_request_of_an_expired_backup_goes_though_the_clock_is_behind(
    velero_cluster: Cluster, tmp_path: Path, eventually: Eventually
) -> None:
    cluster = velero_cluster
    install(cluster)
    with operator(cluster, tmp_path / "log", behind=BEHIND):
        lea = arrive(cluster, "late", eventually)
        quotas("late", cluster, stored=1)  # a policy that has no shortest ttl
        lea.back_up("brief", ttl="15s")
        lea.wait("nonadminbackup/brief", "--for=condition=Succeeded", seconds=120)
        made = lea.status("nonadminbackup/brief")["veleroBackup"]
        expires = instant(made["status"]["expiration"])
        assert expires is not None
        time.sleep(max((expires - now()).total_seconds() + 1, 0))
        cluster.velero("backup", "delete", made["name"], "--confirm")  # as Velero does once an hour
        lea.wait("nonadminbackup/brief", "--for=condition=Accepted=false", seconds=60)
        status = lea.status("nonadminbackup/brief")
        assert condition(status, "Accepted")[1] == "VeleroBackupNotFound", "by its clock the backup has not expired"
        assert condition(status, "Succeeded")[:2] == ("True", "Completed")
        lea.wait("nonadminbackup/brief", "--for=delete", seconds=int(BEHIND) + 60)
        assert in_bucket(cluster, made["name"]) == []
