"""docs/how-to/take-over-schedules.md, followed as written: no run is lost, and none is made twice."""

import json
import os
from collections import Counter
from collections.abc import Iterator
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from foresail.api.marks import OBSERVED, SLOT
from foresail.kube.clock import now
from testbed import Cluster, Options
from tests.cluster.kubelet import kubelet
from tests.cluster.pages import Reader, reading
from tests.cluster.schedules import Eventually, Figure, created, phase, schedule, show, shown

PAGE = "how-to/take-over-schedules.md"
NAMES = ("first", "second")
MINUTE = timedelta(minutes=1)
OFF = "--disable-controllers=schedule"


@pytest.fixture
def cluster() -> Iterator[Cluster]:
    """A cluster with Velero that has never seen Foresail."""
    with Cluster.create(f"pytest-{os.getpid()}-take-over", Options(velero="velero"), owned=True) as found:
        yield found


@pytest.fixture
def reader(cluster: Cluster, tmp_path: Path) -> Iterator[Reader]:
    with reading(cluster, tmp_path) as found:
        yield found


def made(cluster: Cluster, name: str) -> list[dict[str, Any]]:
    label = f"--selector=velero.io/schedule-name={name}"
    items: list[dict[str, Any]] = cluster.get("backups.velero.io", "--namespace=velero", label)["items"]
    return sorted(items, key=created)


def tick(backup: dict[str, Any]) -> datetime:
    """Return the minute for which a Backup was made: Velero's are made within the minute, ours say it."""
    said = backup["metadata"].get("annotations", {}).get(SLOT)
    return datetime.fromisoformat(said) if said else created(backup).replace(second=0)


def by_velero(backup: dict[str, Any]) -> bool:
    return SLOT not in backup["metadata"].get("annotations", {})


@pytest.mark.full
def test_over_and_back_every_minute_has_exactly_one_backup(
    cluster: Cluster, reader: Reader, tmp_path: Path, eventually: Eventually, figure: Figure
) -> None:
    # Velero looks once a minute from its start on: at the end of a minute it would lose ticks by itself.
    eventually(lambda: now().second <= 30, 60)
    turn_on(cluster)
    folder = tmp_path / "kubelet"
    folder.mkdir()
    with kubelet(cluster, folder):
        reader.follow(PAGE, "Before")
        begun = now()
        cluster.apply(*(schedule(name, "* * * * *") for name in NAMES))

        eventually(lambda: all(made(cluster, name) for name in NAMES), 240)
        assert all(by_velero(each) for name in NAMES for each in made(cluster, name))

        over = now()
        reader.follow(PAGE, "Switch over")
        took_over = now() - over
        eventually(lambda: all(not by_velero(made(cluster, name)[-1]) for name in NAMES), 240)

        eventually(lambda: now().second <= 30, 60)
        back = now()
        reader.follow(PAGE, "Switch back")
        took_back = now() - back
        assert OFF not in arguments(cluster)
        assert not any(OBSERVED in item["metadata"].get("annotations", {}) for item in shown(cluster).values())
        count = {name: len(made(cluster, name)) for name in NAMES}
        eventually(lambda: all(len(made(cluster, name)) > count[name] for name in NAMES), 240)
        ended = now()

    for name in NAMES:
        found = made(cluster, name)
        ticks = [tick(each) for each in found]
        assert by_velero(found[-1])
        assert max(Counter(ticks).values()) == 1, f"{name}: a minute has two Backups"
        first = created(show(cluster, name)).replace(second=0) + MINUTE
        due = [first + number * MINUTE for number in range(int((ticks[-1] - first) / MINUTE) + 1)]
        ours = next(created(each) for each in found if not by_velero(each))
        velero_s = next(created(each) for each in found if by_velero(each) and created(each) >= back)
        switches = ((over, ours), (back, velero_s))
        passed = {each for each in due for begin, end in switches if is_passed(each, begin, end)}
        assert set(ticks) | passed == set(due), f"{name}: of two minutes within one switch the second is enough"
        assert {phase(each) for each in found} & {"Failed", "PartiallyFailed", "FailedValidation"} == set()
    minutes = (ended - begun) / MINUTE
    figure(
        f"take-over: {minutes:.1f} minutes, every minute one Backup; the commands took "
        f"{took_over.total_seconds():.0f} s over and {took_back.total_seconds():.0f} s back"
    )


def is_passed(tick: datetime, begin: datetime, end: datetime) -> bool:
    """Whether a tick and the one after it fell into one switch, so that only the later one is made up for."""
    return begin - MINUTE <= tick and tick + MINUTE <= end


def arguments(cluster: Cluster) -> list[str]:
    deployment = cluster.get("deployment", "velero", "--namespace=velero")
    found: list[str] = deployment["spec"]["template"]["spec"]["containers"][0]["args"]
    return found


def turn_on(cluster: Cluster) -> None:
    """Have Velero's own controller on, as in a cluster that has never seen Foresail."""
    left = [each for each in arguments(cluster) if each != OFF]
    change = json.dumps([{"op": "replace", "path": "/spec/template/spec/containers/0/args", "value": left}])
    cluster.kubectl("patch", "deployment", "velero", "--namespace=velero", "--type=json", f"--patch={change}")
    cluster.fault.restart("velero")
