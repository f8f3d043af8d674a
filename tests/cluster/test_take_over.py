"""docs/how-to/take-over-schedules.md, followed as written: no run is lost, and none is made twice."""

import json
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from foresail.api.marks import OBSERVED, SLOT
from foresail.kube.clock import now
from testbed import Cluster, Options
from testbed.build import program
from tests.cluster.schedules import Eventually, Figure, created, phase, schedule, show, shown

PAGE = Path(__file__).parents[2] / "docs" / "how-to" / "take-over-schedules.md"
NAMES = ("first", "second")
MINUTE = timedelta(minutes=1)
DONE = "the command above has ended with code"
OFF = "--disable-controllers=schedule"


def commands(section: str) -> list[str]:
    """Return the commands of a section of the page."""
    text = PAGE.read_text().split(f"\n## {section}\n")[1].split("\n## ")[0]
    return [line.removeprefix("$ ") for line in text.splitlines() if line.startswith("$ ")]


class Reader:
    """Someone who reads the page and types its commands into one shell."""

    def __init__(self, cluster: Cluster, folder: Path) -> None:
        (folder / "charts").symlink_to(Path(__file__).parents[2] / "charts")
        (folder / "helm").symlink_to(program("helm", "helm"))
        (folder / "foresail").symlink_to(Path(sys.executable).with_name("foresail"))
        path = [str(folder), str(cluster.site.programs), os.environ["PATH"]]
        environment = {"PATH": ":".join(path), "HOME": str(folder), "KUBECONFIG": str(cluster.kubeconfig)}
        self._cluster = cluster
        self._shell = subprocess.Popen(
            ["/bin/bash"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            cwd=folder,
            env=environment,
            process_group=0,
        )

    def type(self, command: str) -> str:
        """Run a command and return what it printed."""
        if command.startswith("kubectl rollout status deployment/velero"):
            self._cluster.fault.restart("velero")  # the part of the kubelet, of which there is none here
        assert self._shell.stdin is not None
        assert self._shell.stdout is not None
        self._shell.stdin.write(f"{command}\necho {DONE} $?\n")
        self._shell.stdin.flush()
        printed: list[str] = []
        for line in self._shell.stdout:
            if line.startswith(DONE):
                assert line == f"{DONE} 0\n", f"{command}: {line}{''.join(printed)}"
                return "".join(printed)
            printed.append(line)
        raise AssertionError(f"the shell ended at: {command}")

    def leave(self) -> None:
        """End the shell and whatever it started."""
        os.killpg(self._shell.pid, 9)
        self._shell.communicate()


@pytest.fixture
def cluster() -> Iterator[Cluster]:
    """A cluster with Velero that has never seen Foresail."""
    with Cluster.create(f"pytest-{os.getpid()}-take-over", Options(velero="velero"), owned=True) as found:
        yield found


@pytest.fixture
def reader(cluster: Cluster, tmp_path: Path) -> Iterator[Reader]:
    found = Reader(cluster, tmp_path)
    yield found
    found.leave()


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


def test_over_and_back_every_minute_has_exactly_one_backup(
    cluster: Cluster, reader: Reader, eventually: Eventually, figure: Figure
) -> None:
    turn_on(cluster)
    for command in commands("Before"):
        reader.type(command)
    begun = now()
    cluster.apply(*(schedule(name, "* * * * *") for name in NAMES))

    eventually(lambda: all(made(cluster, name) for name in NAMES), 150)
    assert all(by_velero(each) for name in NAMES for each in made(cluster, name))

    over = now()
    printed = [reader.type(command) for command in commands("Switch over")]
    assert printed[-1] == "No resources found in velero namespace.\n"
    took_over = now() - over
    eventually(lambda: all(not by_velero(made(cluster, name)[-1]) for name in NAMES), 90)

    back = now()
    for command in commands("Switch back"):
        reader.type(command)
    took_back = now() - back
    assert OFF not in arguments(cluster)
    assert not any(OBSERVED in item["metadata"].get("annotations", {}) for item in shown(cluster).values())
    count = {name: len(made(cluster, name)) for name in NAMES}
    eventually(lambda: all(len(made(cluster, name)) > count[name] for name in NAMES), 150)
    end = now()

    for name in NAMES:
        found = made(cluster, name)
        ticks = [tick(each) for each in found]
        assert by_velero(found[-1])
        assert max(Counter(ticks).values()) == 1, f"{name}: a minute has two Backups"
        first = created(show(cluster, name)).replace(second=0) + MINUTE
        due = [first + number * MINUTE for number in range(int((ticks[-1] - first) / MINUTE) + 1)]
        assert ticks == due, f"{name}: of two minutes within one switch the second would be enough"
        assert {phase(each) for each in found} & {"Failed", "PartiallyFailed", "FailedValidation"} == set()
    minutes = (end - begun) / MINUTE
    figure(
        f"take-over: {minutes:.1f} minutes, every minute one Backup; the commands took "
        f"{took_over.total_seconds():.0f} s over and {took_back.total_seconds():.0f} s back"
    )


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
