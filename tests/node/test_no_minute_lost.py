"""A Schedule for every minute, while Foresail is installed, upgraded, rolled back and removed: one Backup a minute."""

import os
import time
from collections import Counter
from collections.abc import Callable, Iterator
from datetime import datetime, timedelta
from typing import Any

import pytest

from foresail.api.marks import SLOT
from foresail.kube.clock import now
from testbed import Cluster, Options
from tests.cluster.schedules import created, schedule
from tests.node.nodes import CHECKOUT, IMAGE, foresail, foresail_fails

MINUTE = timedelta(minutes=1)
NAME = "often"
NEWER = f"{IMAGE}-newer"
BROKEN = f"{IMAGE}-that-nobody-has-pushed"


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    """A cluster whose Velero, in pods, runs its Schedules itself, and that has never seen Foresail."""
    with Cluster.create(f"pytest-{os.getpid()}-minutes", Options(velero="velero", node=True), owned=True) as found:
        for image in (IMAGE, NEWER):
            found.build_image(CHECKOUT, image)
        early_in_a_minute()
        found.restart_velero()
        yield found


def until(holds: Callable[[], bool], seconds: float) -> None:
    deadline = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(1)


def early_in_a_minute() -> None:
    """Wait, for Velero looks once a minute from its start on: at the end of a minute it would lose some by itself."""
    until(lambda: now().second <= 25, 60)


def made(cluster: Cluster) -> list[dict[str, Any]]:
    label = f"--selector=velero.io/schedule-name={NAME}"
    return sorted(cluster.get("backups.velero.io", "--namespace=velero", label)["items"], key=created)


def is_ours(backup: dict[str, Any]) -> bool:
    return SLOT in backup["metadata"].get("annotations", {})


def minute_of(backup: dict[str, Any]) -> datetime:
    """Return the minute for which a Backup was made: ours say it, and Velero makes its own within the minute."""
    slot = backup["metadata"].get("annotations", {}).get(SLOT)
    return datetime.fromisoformat(slot) if slot else created(backup).replace(second=0)


def wait_for_another(cluster: Cluster, *, ours: bool) -> None:
    """Wait until the next Backup is there, made by Foresail or by Velero."""
    before = len(made(cluster))
    until(lambda: len(found := made(cluster)) > before and is_ours(found[-1]) is ours, 150)


def assert_one_backup_for_each_minute(cluster: Cluster) -> str:
    found = made(cluster)
    minutes = Counter(minute_of(each) for each in found)
    first, last = min(minutes), max(minutes)
    due = {first + number * MINUTE for number in range(int((last - first) / MINUTE) + 1)}
    without, twice = sorted(due - set(minutes)), [each for each, count in minutes.items() if count > 1]
    ended = Counter(each.get("status", {}).get("phase", "New") for each in found)
    text = f"{len(due)} minutes, {len(without)} without a Backup, {len(twice)} with two; {dict(ended)}"
    assert (without, twice) == ([], []), f"{text}: {[each['metadata']['name'] for each in found]}"
    return text


@pytest.mark.timeout(1200)  # with the start of the cluster and the images
def test_every_minute_has_one_backup_whoever_runs_the_schedules(
    cluster: Cluster, measured: dict[str, float | bool | None], figure: Callable[[str], None]
) -> None:
    cluster.apply(schedule(NAME, "* * * * *"))
    until(lambda: bool(made(cluster)), 150)

    said = foresail_fails(cluster, "install", f"--image={BROKEN}", "--timeout=20s")
    assert "Velero still runs the Schedules" in said
    foresail(cluster, "install", f"--image={IMAGE}", "--timeout=5m")
    wait_for_another(cluster, ours=True)
    foresail(cluster, "install", f"--image={NEWER}", "--timeout=5m")
    wait_for_another(cluster, ours=True)
    said = foresail_fails(cluster, "install", f"--image={BROKEN}", "--timeout=20s")
    assert "the previous operator still runs the Schedules" in said
    assert f"to go back: foresail install -n velero --image {NEWER}" in said
    foresail(cluster, "install", "-n", "velero", "--image", NEWER, "--timeout=5m")
    wait_for_another(cluster, ours=True)
    early_in_a_minute()
    foresail(cluster, "uninstall", "--timeout=5m")
    for _ in range(2):
        wait_for_another(cluster, ours=False)

    figure(f"a Schedule for every minute: {assert_one_backup_for_each_minute(cluster)}")
    measured["minutes_lost_or_doubled"] = 0
