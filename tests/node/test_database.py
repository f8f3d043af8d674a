"""A tenant's PostgreSQL, lost with its volume, comes back row by row."""

import time
from collections.abc import Iterator

import pytest

from testbed import Cluster
from tests.cluster.schedules import schedule
from tests.node.data_paths import on_both_paths
from tests.node.nodes import eventually, is_identical
from tests.node.tenant_database import Database, create_database

BACKUPS = "backups.velero.io"


@pytest.fixture
def doomed(served: Cluster, request: pytest.FixtureRequest) -> Iterator[Database]:
    """A database with rows, backed up on one path, in a namespace that the test deletes."""
    name = f"doomed-{time.monotonic_ns() % 1_000_000}"
    yield create_database(served, name, request.param)
    served.kubectl("delete", "namespace", name, "--ignore-not-found", "--timeout=300s")


@on_both_paths("database", sampled=True)
def test_a_tenant_restores_a_database_whose_volume_is_lost(database: Database) -> None:
    before = database.checksum()
    backup = database.back_up("nightly")
    assert backup.code == 0, backup.reported
    database.destroy_contents()
    restore = database.restore("nightly")
    assert restore.code == 0, restore.reported
    database.wait_ready()
    assert is_identical(before, database.checksum())


@on_both_paths("doomed")
def test_an_administrator_restores_a_deleted_namespace_from_its_tenants_backup(doomed: Database) -> None:
    before = doomed.checksum()
    backup = doomed.back_up("last")
    assert backup.code == 0, backup.reported
    name = doomed.tenant.status("nonadminbackup/last")["veleroBackup"]["name"]
    doomed.destroy_namespace()
    restore_as_administrator(doomed, name)
    assert is_identical(before, doomed.checksum())


@on_both_paths("doomed")
def test_a_schedule_backs_up_a_database_whose_namespace_is_lost(doomed: Database) -> None:
    before, cluster = doomed.checksum(), doomed.cluster
    template = {"includedNamespaces": [doomed.namespace], **doomed.path.template}
    cluster.apply(schedule(doomed.namespace, "* * * * *", template))
    try:
        eventually(lambda: completed(doomed), 240, "a Backup of the Schedule completes")
    finally:
        cluster.velero("schedule", "delete", doomed.namespace, "--confirm")
    name = completed(doomed)[0]
    doomed.destroy_namespace()
    restore_as_administrator(doomed, name)
    assert is_identical(before, doomed.checksum())


def completed(database: Database) -> list[str]:
    """Return the completed Backups of the Schedule that is named after the database's namespace."""
    selector = f"--selector=velero.io/schedule-name={database.namespace}"
    found = database.cluster.get(BACKUPS, "--namespace=velero", selector)["items"]
    return [each["metadata"]["name"] for each in found if each.get("status", {}).get("phase") == "Completed"]


def restore_as_administrator(database: Database, backup: str) -> None:
    """Restore a Velero Backup with Velero's own command line, and wait until the database answers."""
    database.cluster.velero("restore", "create", backup, f"--from-backup={backup}", "--wait")
    found = database.cluster.get("restores.velero.io", backup, "--namespace=velero")["status"]
    assert found["phase"] == "Completed", found
    database.wait_ready()
