"""Schedules that cannot run, on the real Velero with the real S3: each is reported, once, wherever people look."""

import json
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from foresail.kube.clock import now
from testbed import Cluster
from tests.cluster.operators import Operator, running
from tests.cluster.schedules import (
    TEMPLATE,
    Eventually,
    clear,
    instant_of,
    put_status,
    quick_velero,
    reasons,
    schedule,
    show,
    slots,
    velero_at_rest,
)
from tests.cluster.test_doctor import doctor

PLACE = "no-bucket"
UNREADABLE = "9999-12-31T23:59:59-14:00"  # the API server takes it, and it is no instant in UTC


@pytest.fixture
def cluster(schedule_cluster: Cluster) -> Iterator[Cluster]:
    clear(schedule_cluster)
    yield schedule_cluster
    clear(schedule_cluster)


@pytest.fixture
def at_rest(cluster: Cluster) -> Iterator[Cluster]:
    """The cluster with a Velero that ends each Backup at once: what is deleted while the real one runs it blocks it."""
    with velero_at_rest(cluster), quick_velero(cluster):
        yield cluster


@pytest.fixture
def operator(cluster: Cluster, tmp_path: Path) -> Iterator[Operator]:
    with running(cluster, tmp_path) as found:
        yield found


def decisions(operator: Operator, name: str) -> list[str]:
    """Return what the log says was decided about a Schedule, in its order."""
    lines = [json.loads(line) for line in operator.log.read_text().splitlines()]
    return [line["decision"] for line in lines if line.get("key") == f"velero/{name}" and "decision" in line]


def test_a_missing_bucket_is_reported_once_with_the_useful_word_first(
    cluster: Cluster, operator: Operator, eventually: Eventually
) -> None:
    default: dict[str, Any] = cluster.get("backupstoragelocation", "default", "--namespace=velero")
    spec = {**default["spec"], "default": False, "objectStorage": {"bucket": "nobody-made-it"}}
    metadata = {"name": PLACE, "namespace": "velero"}
    location = {"apiVersion": "velero.io/v1", "kind": "BackupStorageLocation", "metadata": metadata}
    cluster.apply({**location, "spec": {**spec, "validationFrequency": "1s"}})
    said: set[str] = set()

    def message() -> str:
        found: dict[str, Any] = cluster.get("backupstoragelocation", PLACE, "--namespace=velero")
        return str(found["status"]["message"])

    try:
        eventually(message, 120)
        cluster.apply(schedule("held", "@every 1s", {**TEMPLATE, "storageLocation": PLACE}))
        eventually(lambda: "LocationUnavailable" in reasons(cluster, "held"), 60)

        def several() -> bool:
            said.add(message())
            return len(said) > 2

        eventually(several, 180)  # the same problem, each time with another request ID
        items = cluster.listed("/apis/events.k8s.io/v1/namespaces/velero/events")
        (event,) = [each for each in items if each["regarding"]["name"] == "held"]
        assert f"BackupStorageLocation velero/{PLACE} is Unavailable: NoSuchBucket: " in event["note"]
        assert decisions(operator, "held") == ["LocationUnavailable"]
    finally:
        cluster.kubectl("delete", "schedule.velero.io", "held", "--namespace=velero")
        cluster.kubectl("delete", "backupstoragelocation", PLACE, "--namespace=velero")


def test_what_can_never_run_is_a_finding_and_a_metric(
    cluster: Cluster, operator: Operator, eventually: Eventually
) -> None:
    expected = {"typo": "InvalidSchedule", "never": "NeverFires", "lost": "LocationUnavailable"}
    cluster.apply(
        schedule("typo", "61 * * * *"),
        schedule("never", "0 0 30 2 *"),
        schedule("lost", "0 0 1 1 *", {**TEMPLATE, "storageLocation": "moon"}),
        schedule("fine", "0 0 1 1 *"),
    )
    eventually(
        lambda: all(operator.figures(name)[f'invalid{{reason="{each}"}}'] == 1 for name, each in expected.items()), 60
    )
    assert not any(each.startswith("invalid") for each in operator.figures("fine"))
    code, found, _ = doctor(cluster.kubeconfig)
    assert code == 1
    wrong = [each["says"] for each in found["schedules"] if each["grade"] == "problem"]
    assert sorted(each.partition(":")[0] for each in wrong) == sorted(
        f"{name} can never run ({reason})" for name, reason in expected.items()
    )


def test_a_backup_that_cannot_be_read_blocks_the_next_run_until_it_is_deleted(
    at_rest: Cluster, operator: Operator, eventually: Eventually
) -> None:
    cluster = at_rest
    labels = {"velero.io/schedule-name": "behind"}
    metadata = {"name": "odd", "namespace": "velero", "labels": labels}
    backup = {"apiVersion": "velero.io/v1", "kind": "Backup", "metadata": metadata, "spec": {}}
    cluster.apply({**backup, "status": {"phase": "Completed"}})
    put_status(cluster, "backups", "odd", expiration=UNREADABLE)
    cluster.apply(schedule("behind", "@every 2s"))
    eventually(lambda: "velero/odd cannot be read" in reasons(cluster, "behind")["Busy"], 60)
    assert decisions(operator, "behind") == ["Busy"]
    cluster.kubectl("delete", "backup.velero.io", "odd", "--namespace=velero")
    eventually(lambda: "Created" in decisions(operator, "behind"), 60)


def test_a_last_backup_in_the_future_stops_no_schedule(
    at_rest: Cluster, operator: Operator, eventually: Eventually
) -> None:
    cluster = at_rest
    cluster.apply(schedule("jumped", "@every 5s"))
    eventually(lambda: "Created" in decisions(operator, "jumped"), 60)
    put_status(cluster, "schedules", "jumped", lastBackup="2099-01-01T00:00:00Z")
    eventually(lambda: "lastBackup (2099-01-01T00:00:00Z)" in reasons(cluster, "jumped")["TimeInFuture"], 60)

    def runs_again() -> bool:
        found = decisions(operator, "jumped")
        return "Created" in found[found.index("TimeInFuture") :]

    eventually(runs_again, 60)
    last = instant_of(show(cluster, "jumped"), "lastBackup")
    assert last is None or last < now() + timedelta(minutes=1)
    due = slots(cluster, "jumped")
    assert len(due) == len(set(due))
