"""A tool that puts its manifest back for ever: it is never fought, and no slot is lost to it."""

import json
import os
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta
from http import HTTPStatus
from pathlib import Path
from typing import Any

import pytest

from foresail.kube.clock import now
from testbed import Cluster
from testbed.build import program
from tests.cluster.operators import USER, running
from tests.cluster.schedules import (
    FULL,
    Eventually,
    Figure,
    backups,
    created,
    instant_of,
    quick_velero,
    schedule,
    show,
    shown,
    slot,
    velero_at_rest,
)

MINUTES = 10 if FULL else 1
PERIOD = timedelta(seconds=15)
EVERY = 5.0  # seconds between two visits of the tool
APP = "shop"
APPLY = {
    "client-side": ["apply"],
    "server-side": ["apply", "--server-side", "--force-conflicts", "--field-manager=argocd-controller"],
}


def manifest(name: str) -> dict[str, Any]:
    """Return a Schedule as a GitOps tool keeps it, tracked both by a label and by an annotation."""
    found = schedule(name, f"@every {PERIOD.seconds}s", skipImmediately=True)
    found["metadata"]["labels"] = {"app.kubernetes.io/instance": APP, "team": "a"}
    found["metadata"]["annotations"] = {
        "argocd.argoproj.io/tracking-id": f"{APP}:velero.io/Schedule:velero/{name}",
        "team.example.com/contact": "ann",
    }
    return found


@contextmanager
def reapplied(cluster: Cluster, ways: dict[str, list[str]]) -> Iterator[list[str]]:
    """Apply each way's manifest every few seconds, in processes of their own; yield the ways in which it was done."""
    enough = threading.Event()
    done: list[str] = []

    def work() -> None:
        while True:
            begun = time.monotonic()
            for way, command in ways.items():
                arguments = [str(program("kube", "kubectl")), *command, "--filename=-"]
                environment = {"KUBECONFIG": str(cluster.kubeconfig), "HOME": str(cluster.folder), "PATH": os.defpath}
                text = json.dumps(manifest(way))
                ended = subprocess.run(
                    arguments, input=text, text=True, env=environment, capture_output=True, check=False
                )
                if ended.returncode == 0:  # else it comes again, as such tools do
                    done.append(way)
            if enough.wait(max(EVERY - (time.monotonic() - begun), 0)):
                return

    thread = threading.Thread(target=work)
    thread.start()
    try:
        yield done
    finally:
        enough.set()
        thread.join()


def tracked(items: list[dict[str, Any]]) -> list[str]:
    """Return what the pruner of a GitOps tool takes for its application's: by the label, or by the annotation."""
    return [
        item["metadata"]["name"]
        for item in items
        if item["metadata"].get("labels", {}).get("app.kubernetes.io/instance") == APP
        or item["metadata"].get("annotations", {}).get("argocd.argoproj.io/tracking-id", "").startswith(f"{APP}:")
    ]


@pytest.mark.full
def test_a_manifest_that_says_skip_for_ever_skips_once_and_every_slot_after_that_fires(
    schedule_cluster: Cluster, tmp_path: Path, eventually: Eventually, figure: Figure
) -> None:
    with velero_at_rest(schedule_cluster) as cluster:
        reapply_and_look(cluster, tmp_path, eventually, figure)


def reapply_and_look(cluster: Cluster, folder: Path, eventually: Eventually, figure: Figure) -> None:
    skipped: dict[str, set[datetime]] = {way: set() for way in APPLY}
    with running(cluster, folder), quick_velero(cluster):
        with reapplied(cluster, APPLY) as done:
            eventually(lambda: len(shown(cluster)) == len(APPLY), 120)
            until = now() + timedelta(minutes=MINUTES)
            while now() < until:
                for way, item in shown(cluster).items():
                    moved = instant_of(item, "lastSkipped")
                    skipped[way] |= {moved} if moved else set()
                time.sleep(1)
            last = now()
        for way in APPLY:  # what was due by then may be under way
            eventually(lambda way=way: fired(cluster, way)[-1:] >= [last - PERIOD], 120)  # type: ignore[misc]
        assert show(cluster, "client-side")["spec"]["skipImmediately"] is True, "it is put back, and left in place"
    for way in APPLY:
        assert len(skipped[way]) == 1
        began = skipped[way].pop()
        assert began >= created(show(cluster, way))
        due = [began + number * PERIOD for number in range(1, int((last - began) / PERIOD) + 1)]
        assert [each for each in fired(cluster, way) if each <= last] == due
        asked = [each for each in cluster.audit(USER) if each.name == way and each.verb == "patch"]
        written = [each for each in asked if each.code == HTTPStatus.OK]
        refused = len(asked) - len(written)  # it was decided on what was a moment old
        fires = len(fired(cluster, way))
        assert len(written) - fires <= 2
        visits = done.count(way)
        figure(
            f"GitOps, {way}: applied {visits} times, {fires} of {len(due)} slots fired, "
            f"{len(written)} patches and {refused} that were refused as out of date"
        )
        assert visits >= MINUTES * 60 / EVERY / 3

    assert set(tracked(list(shown(cluster).values()))) == set(APPLY), "the Schedules are the application's"
    assert tracked(backups(cluster)) == [], "and no Backup is"
    for each in backups(cluster):
        assert each["metadata"]["labels"]["team"] == "a"
        assert each["metadata"]["annotations"]["team.example.com/contact"] == "ann"


def fired(cluster: Cluster, name: str) -> list[datetime]:
    return [slot(each) for each in backups(cluster, name)]
