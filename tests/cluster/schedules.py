"""Schedules, their Backups and what is said about them, for the tests that run the operator on a real cluster."""

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta
from http import HTTPStatus
from typing import Any

from foresail.api.marks import SCHEDULE_UID, SLOT
from foresail.kube.clock import now
from testbed import Cluster
from testbed.api import request
from tests.cluster.meanwhile import meanwhile

FULL = os.environ.get("FORESAIL_FULL") == "1"
"""Whether the long runs are asked for, of which CI has a sample."""

Eventually = Callable[[Callable[[], object], float], None]
Figure = Callable[[str], None]
TEMPLATE: dict[str, Any] = {"includedNamespaces": ["default"], "includedResources": ["configmaps"]}
_API = "/apis/velero.io/v1/namespaces/velero"


def schedule(name: str, text: str, template: dict[str, Any] = TEMPLATE, **spec: object) -> dict[str, Any]:
    """Return a Schedule; fields of its spec that are None are left out."""
    return {
        "apiVersion": "velero.io/v1",
        "kind": "Schedule",
        "metadata": {"name": name, "namespace": "velero"},
        "spec": {
            "schedule": text,
            "template": template,
            **{key: value for key, value in spec.items() if value is not None},
        },
    }


def days_apart() -> tuple[str, datetime, datetime]:
    """Return an expression with a day of the month and one of the week, and its next fires if it needs both, or either.

    The day of the week comes in two days and the day of the month in at least nine, so these fires are never the same.
    """
    today = now().replace(hour=0, minute=0, second=0, microsecond=0)
    week = today + timedelta(days=2)
    month = next(
        day
        for day in (today + timedelta(days=number) for number in range(9, 99))
        if day.day <= 28 and day.weekday() != week.weekday()
    )
    both = month
    while (both.day, both.weekday()) != (month.day, week.weekday()):
        both += timedelta(days=1)
    return f"0 0 {month.day} * {week.isoweekday() % 7}", both, week


def shown(cluster: Cluster) -> dict[str, dict[str, Any]]:
    """Return all Schedules as they stand, by their names."""
    return {item["metadata"]["name"]: item for item in cluster.listed(f"{_API}/schedules")}


def show(cluster: Cluster, name: str) -> dict[str, Any]:
    """Return a Schedule as it stands."""
    return shown(cluster)[name]


def phase(item: dict[str, Any]) -> str:
    """Return the phase of a Schedule or a Backup; empty if it has none yet."""
    return str(item.get("status", {}).get("phase", ""))


def put_status(cluster: Cluster, plural: str, name: str, **status: str) -> None:
    """Write fields of an object's status, as Velero would; an object that is gone stays gone."""
    address = f"{cluster.server}{_API}/{plural}/{name}"
    code = 0
    while code != HTTPStatus.OK:
        found = request("GET", address, cluster.site.admin_trust)
        if found.code == HTTPStatus.NOT_FOUND:
            return
        item = found.json()
        item["status"] = {**item.get("status", {}), **status}
        answer = request("PUT", address, cluster.site.admin_trust, item)
        code = answer.code
        # Someone else may write at the same time, or take it away.
        assert code in (HTTPStatus.OK, HTTPStatus.CONFLICT, HTTPStatus.NOT_FOUND), answer.text


def backups(cluster: Cluster, name: str = "") -> list[dict[str, Any]]:
    """Return the Backups of a Schedule, or of all, that Foresail made in this cluster; in the order of their slots."""
    items = cluster.listed(f"{_API}/backups?labelSelector=velero.io%2Fschedule-name{f'%3D{name}' if name else ''}")
    uids = {item["metadata"]["uid"] for item in shown(cluster).values()}
    ours = [item for item in items if item["metadata"].get("annotations", {}).get(SCHEDULE_UID) in uids]
    return sorted(ours, key=slot)


def slot(backup: dict[str, Any]) -> datetime:
    """Return the instant at which a Backup was due."""
    return datetime.fromisoformat(backup["metadata"]["annotations"][SLOT])


def slots(cluster: Cluster, name: str) -> list[datetime]:
    """Return the slots for which a Schedule has a Backup."""
    return [slot(each) for each in backups(cluster, name)]


def instant_of(item: dict[str, Any], field: str) -> datetime | None:
    """Return an instant of an object's status."""
    text = item.get("status", {}).get(field)
    return datetime.fromisoformat(text) if text else None


def created(item: dict[str, Any]) -> datetime:
    """Return when an object was created."""
    return datetime.fromisoformat(item["metadata"]["creationTimestamp"])


def reasons(cluster: Cluster, name: str) -> dict[str, str]:
    """Return what Events say about a Schedule: the reasons, and the last message of each."""
    items = cluster.listed("/apis/events.k8s.io/v1/namespaces/velero/events")
    about = [item for item in items if item.get("regarding", {}).get("name") == name]
    return {item["reason"]: item["note"] for item in sorted(about, key=lambda each: each["eventTime"] or "")}


def clear(cluster: Cluster) -> None:
    """Delete every Schedule, every Backup and what was said of them; only the cluster's copies, not the bucket's."""
    events = "/apis/events.k8s.io/v1/namespaces/velero/events"
    for path in (f"{_API}/schedules", f"{_API}/backups", f"{_API}/serverstatusrequests", events):
        answer = request("DELETE", cluster.server + path, cluster.site.admin_trust, seconds=60)
        assert answer.code == HTTPStatus.OK, answer.text


def end_backups(cluster: Cluster, into: str = "Completed") -> int:
    """Put every Backup that has no phase yet into one, as an infinitely quick Velero would; return how many."""
    waiting = [item for item in cluster.listed(f"{_API}/backups") if not phase(item)]
    for item in waiting:
        put_status(cluster, "backups", item["metadata"]["name"], phase=into)
    return len(waiting)


@contextmanager
def quick_velero(cluster: Cluster) -> Iterator[None]:
    """End each Backup within a tenth of a second: slots that come every few seconds are more than the real one can."""
    with meanwhile(lambda: end_backups(cluster), every=0.1):
        yield


@contextmanager
def velero_at_rest(cluster: Cluster) -> Iterator[Cluster]:
    """Have no Velero for a while: what is done to Backups is then done by the test, in its own time."""
    cluster.fault.kill("velero")
    clear(cluster)
    try:
        yield cluster
    finally:
        clear(cluster)
        cluster.fault.start("velero")
