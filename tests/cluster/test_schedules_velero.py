"""From the cron expression to S3 and back: the operator, the real Velero and a real bucket.

`make matrix` runs the same against the last Velero with the other cron dialect, and an older Kubernetes.
"""

import json
import os
import re
from collections.abc import Iterator
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from foresail.api.marks import SCHEDULE_UID
from foresail.api.velero import TERMINAL
from foresail.kube.clock import now
from testbed import Cluster, Options
from tests.cluster import operators
from tests.cluster.operators import Operator, running
from tests.cluster.schedules import (
    FULL,
    Eventually,
    Figure,
    backups,
    clear,
    days_apart,
    instant_of,
    phase,
    schedule,
    show,
    shown,
    slot,
    slots,
)
from tests.cluster.versions import in_matrix

VERSION = {"velero": "v1.18.3", "velero-1.17": "v1.17.2"}
NAMESPACE = "harbour"
TEMPLATE = {"includedNamespaces": [NAMESPACE], "ttl": "24h0m0s"}
MINUTE = timedelta(minutes=1)
RESTARTED = "during the server starting"  # Velero's words about what it did not live to finish
COMMON = (5, 4) if FULL else (2, 1)  # Schedules in each of two clusters, and ticks: their product is common slots


@pytest.fixture(scope="module")
def cluster(schedule_cluster: Cluster) -> Cluster:
    clear(schedule_cluster)
    schedule_cluster.kubectl("create", "namespace", NAMESPACE)
    schedule_cluster.kubectl("create", "configmap", "cargo", "--from-literal=tons=40", f"--namespace={NAMESPACE}")
    return schedule_cluster


@pytest.fixture(scope="module", autouse=True)
def operator(cluster: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Operator]:
    with running(cluster, tmp_path_factory.mktemp("operator")) as found:
        yield found
    clear(cluster)


def at(zone: str, instant: datetime) -> str:
    """Return the expression for that minute of every day, as a clock in the zone shows it."""
    there = instant.astimezone(ZoneInfo(zone))
    return f"CRON_TZ={zone} {there.minute} {there.hour} * * *"


def completed(cluster: Cluster, name: str) -> list[datetime]:
    return [slot(each) for each in backups(cluster, name) if phase(each) == "Completed"]


def test_five_schedules_in_two_zones_are_completed_to_s3_and_velero_may_be_restarted_in_the_middle(
    cluster: Cluster, eventually: Eventually
) -> None:
    texts = {
        "often": "@every 20s",
        "kolkata-minutes": "CRON_TZ=Asia/Kolkata * * * * *",
        "new-york-minutes": "CRON_TZ=America/New_York * * * * *",
    }
    cluster.apply(*(schedule(name, text, TEMPLATE) for name, text in texts.items()))
    eventually(lambda: completed(cluster, "often"), 240)
    # One that is on its way when Velero ends is lost by Velero itself, so it ends between two.
    eventually(lambda: all(phase(each) in TERMINAL for each in backups(cluster)), 240)
    cluster.fault.restart("velero")
    restarted = now()
    tick = (restarted + MINUTE / 2).replace(second=0, microsecond=0) + MINUTE
    daily = {"kolkata": at("Asia/Kolkata", tick), "new-york": at("America/New_York", tick)}
    cluster.apply(*(schedule(name, text, TEMPLATE) for name, text in daily.items()))
    eventually(lambda: all(completed(cluster, name)[-1:] > [restarted] for name in (*texts, *daily)), 480)
    assert completed(cluster, "kolkata") == completed(cluster, "new-york") == [tick]
    made = backups(cluster)
    stored = cluster.bucket_objects()  # after them: what is complete is stored
    for each in made:
        name = each["metadata"]["name"]
        assert phase(each) not in ("PartiallyFailed", "FailedValidation"), name
        assert phase(each) != "Failed" or RESTARTED in each["status"]["failureReason"], name
        if phase(each) == "Completed":
            assert f"backups/{name}/{name}.tar.gz" in stored


def test_the_label_queries_of_dashboards_and_of_veleros_command_line_find_the_backups(
    cluster: Cluster,
) -> None:
    names = {each["metadata"]["name"] for each in backups(cluster, "kolkata")}
    label = "velero.io/schedule-name=kolkata"
    found = cluster.kubectl("get", "backups.velero.io", "--namespace=velero", f"--selector={label}", "--output=name")
    assert {line.rpartition("/")[2] for line in found.split()} == names
    listed = cluster.velero("backup", "get", "--selector", label)
    assert names == {line.split()[0] for line in listed.splitlines()[1:]}
    assert all(re.fullmatch(r"kolkata-\d{14}-[0-9a-f]{8}", name) for name in names)


def test_a_schedule_is_restored_by_its_name(cluster: Cluster) -> None:
    cluster.kubectl("delete", "namespace", NAMESPACE)
    cluster.velero("restore", "create", "back", "--from-schedule", "kolkata", "--wait")
    assert cluster.get("restore.velero.io", "back", "--namespace=velero")["status"]["phase"] == "Completed"
    assert cluster.get("configmap", "cargo", f"--namespace={NAMESPACE}")["data"] == {"tons": "40"}


def test_velero_itself_is_asked_for_its_version(cluster: Cluster, operator: Operator, eventually: Eventually) -> None:
    version = VERSION[cluster.site.options.velero or ""]
    other = next(each for each in VERSION.values() if each != version)
    text, both, either = days_apart()
    cluster.apply(schedule("days", text, TEMPLATE))
    eventually(lambda: "next_run_timestamp_seconds" in operator.figures("days"), 60)
    wanted = operator.figures("days")["next_run_timestamp_seconds"]
    assert wanted == (both if version == "v1.18.3" else either).timestamp()
    cluster.kubectl("set", "image", "deployment/velero", f"velero=velero/velero:{other}", "--namespace=velero")
    try:
        eventually(lambda: answered(cluster), 120)
        eventually(lambda: operator.figures("days")["next_run_timestamp_seconds"] == wanted, 60)
    finally:
        cluster.kubectl("set", "image", "deployment/velero", f"velero=velero/velero:{version}", "--namespace=velero")


def answered(cluster: Cluster) -> bool:
    asked = cluster.get("serverstatusrequests.velero.io", "--namespace=velero")["items"]
    generation = cluster.get("deployment", "velero", "--namespace=velero")["metadata"]["generation"]
    return any(each["metadata"]["name"].endswith(f"-{generation}") and each.get("status") for each in asked)


def test_veleros_own_command_line_keeps_working(cluster: Cluster, operator: Operator, eventually: Eventually) -> None:
    name = "often"
    line = next(each for each in cluster.velero("schedule", "get").splitlines() if each.startswith(f"{name} "))
    assert re.match(r"often\s+Enabled\s+.*@every 20s\s+24h0m0s\s+.*ago\s+.*false", line), line
    described = cluster.velero("schedule", "describe", name, "--colorized=false")
    assert re.search(r"Phase:\s+Enabled", described)
    assert re.search(r"Schedule:\s+@every 20s", described)
    assert re.search(r"Last Backup:\s+20\d\d-", described)

    assert "paused successfully" in cluster.velero("schedule", "pause", name)
    eventually(lambda: "paused_since_timestamp_seconds" in operator.figures(name), 60)
    eventually(lambda: all(phase(each) in TERMINAL for each in backups(cluster, name)), 240)
    before = slots(cluster, name)
    last = instant_of(show(cluster, name), "lastBackup")
    assert last is not None
    eventually(lambda: now() > last + timedelta(seconds=25), 60)
    assert slots(cluster, name) == before
    assert "unpaused successfully" in cluster.velero("schedule", "unpause", name)
    unpaused = now()
    eventually(lambda: len(slots(cluster, name)) > len(before), 60)
    assert slots(cluster, name)[len(before)] <= unpaused + timedelta(seconds=5), "what was due runs now"

    cluster.velero("schedule", "pause", name)
    cluster.velero("schedule", "unpause", name, "--skip-immediately=true")
    eventually(lambda: instant_of(show(cluster, name), "lastSkipped"), 60)

    fired = slots(cluster, name)
    cluster.velero("backup", "create", "by-hand", "--from-schedule", name, "--wait")
    made = cluster.get("backups.velero.io", "by-hand", "--namespace=velero")
    assert phase(made) == "Completed"
    assert SCHEDULE_UID not in made["metadata"].get("annotations", {})
    assert set(fired) <= set(slots(cluster, name))
    assert "deleted" in cluster.velero("schedule", "delete", name, "--confirm")
    assert name not in shown(cluster)


@pytest.mark.full
def test_two_clusters_on_one_bucket_and_prefix_never_take_each_others_names(
    cluster: Cluster, tmp_path: Path, eventually: Eventually, figure: Figure
) -> None:
    clear(cluster)
    options = in_matrix(Options(velero="velero"))
    with Cluster.create(f"pytest-{os.getpid()}-second", options, owned=True) as second:
        share_bucket(cluster, second, eventually)
        operators.install(second)
        second.kubectl("create", "namespace", NAMESPACE)
        second.kubectl("create", "configmap", "cargo", "--from-literal=tons=80", f"--namespace={NAMESPACE}")
        with running(second, tmp_path):
            count, ticks = COMMON
            names = [f"common-{number}" for number in range(count)]
            eventually(lambda: now().second <= 30, 60)  # all are there before the first common tick
            for each in (cluster, second):
                each.apply(*(schedule(name, "* * * * *", TEMPLATE) for name in names))
            first = now().replace(second=0, microsecond=0) + MINUTE
            wanted = [first + number * MINUTE for number in range(ticks)]
            for each in (cluster, second):
                eventually(lambda each=each: all(set(wanted) <= set(slots(each, n)) for n in names), 60 * ticks + 240)  # type: ignore[misc]
                pause(each, names)
            for each in (cluster, second):
                eventually(lambda each=each: ended(each, wanted), 60 * ticks + 480)  # type: ignore[misc]
            done = [b for each in (cluster, second) for b in backups(each) if slot(b) in wanted]
            assert [phase(each) for each in done] == ["Completed"] * (2 * count * ticks)
            assert len({each["metadata"]["name"] for each in done}) == 2 * count * ticks
            stored = cluster.bucket_objects()
            for made in done:
                name = made["metadata"]["name"]
                assert f"backups/{name}/{name}.tar.gz" in stored
            figure(f"two clusters, one bucket: {count * ticks} common slots, {len(done)} Backups Completed")


def pause(cluster: Cluster, names: list[str]) -> None:
    cluster.apply(*(schedule(name, "* * * * *", TEMPLATE, paused=True) for name in names))


def ended(cluster: Cluster, wanted: list[datetime]) -> bool:
    return all(phase(each) in TERMINAL for each in backups(cluster) if slot(each) in wanted)


def share_bucket(first: Cluster, second: Cluster, eventually: Eventually) -> None:
    """Let the second cluster's Velero use the first one's bucket, with the first one's keys."""

    def location(cluster: Cluster) -> dict[str, Any]:
        found: dict[str, Any] = cluster.get("backupstoragelocation", "default", "--namespace=velero")
        return found

    keys = "s3/credentials"
    (second.folder / keys).write_text((first.folder / keys).read_text())
    change = json.dumps({"spec": {"config": location(first)["spec"]["config"]}, "status": {"phase": "Unavailable"}})
    second.fault.kill("velero")
    second.kubectl(
        "patch", "backupstoragelocation", "default", "--namespace=velero", "--type=merge", f"--patch={change}"
    )
    second.fault.start("velero")
    eventually(lambda: location(second)["status"]["phase"] == "Available", 180)
