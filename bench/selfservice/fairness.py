"""Fairness on a real Velero: what a crowd of requests does to a Schedule, to other tenants and to an administrator."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta
from itertools import islice
from typing import Any

from bench import MeasurementError
from bench.arrivals import Arrivals
from bench.operator import NAMESPACE, operator
from bench.selfservice.line import positions
from bench.selfservice.world import FLAGS, TENANTS, create_namespaces, install_policy, request, requests, tenant, world
from bench.writing import create_all
from foresail.api.instants import instant
from foresail.api.nonadmin import NON_ADMIN_BACKUP, NON_ADMIN_RESTORE
from foresail.api.velero import SCHEDULE_LABEL, TERMINAL
from foresail.kube.clock import now
from foresail.plan import Key
from testbed import Cluster, Options
from tests.cluster import tenants
from tests.cluster.schedules import schedule

_LONGEST = 1800.0
_AHEAD = 60.0  # seconds before the slot at which the crowd has come, at least
_FIVE = tuple(f"share-{number}" for number in range(5))
_WINDOW = (*FLAGS[:2], "--self-service-window=2")
_ORIGIN = "openshift.io/oadp-{}-origin-namespace"

Item = dict[str, Any]


def accepted(count: int) -> dict[str, object]:
    """Measure until each of so many requests that come at once shows a position, while Velero takes none."""
    with world() as cluster:
        create_namespaces(cluster, map(tenant, range(TENANTS)))
        shown = Arrivals(
            cluster,
            NON_ADMIN_BACKUP,
            note=lambda event: event.object.metadata.name if positions(event) is not None else None,
        )
        with operator(cluster, *_WINDOW, settled="selfservice"), shown as arrivals:
            begun = now()
            create_all(cluster, NON_ADMIN_BACKUP, requests(count))
            arrivals.wait(count, _LONGEST)
            seconds = arrivals.lags(begun)[-1]
    return {"accepted_requests": count, "accepted_1000_s": round(seconds, 2)}


@contextmanager
def working(*flags: str, name: str) -> Iterator[Cluster]:
    """Bring up a cluster on which Velero works, and the operator with the windows that it has by default."""
    with Cluster.create(f"bench-fair-{name}", Options(velero="velero"), owned=True) as cluster:
        cluster.restart_velero("schedule")
        tenants.install(cluster, schedules=True)
        install_policy(cluster)
        with operator(cluster, "--self-service", *flags, settled="selfservice"):
            yield cluster


def nightly(count: int) -> dict[str, object]:
    """Measure how many backups of a crowd are between the slot of a Schedule and the start of its run."""
    with working(name="nightly") as cluster:
        _open(cluster, "crowd")
        create_all(cluster, NON_ADMIN_BACKUP, [request("crowd", "before")])
        _until(lambda: len(_ended(_of(cluster, "backups", "nab", "crowd"))) == 1, "the first backup")
        slot = (now() + timedelta(seconds=_AHEAD + 60)).replace(second=0, microsecond=0)
        cluster.apply(schedule("nightly", f"{slot.minute} {slot.hour} * * *", {"includedNamespaces": ["*"]}))
        create_all(cluster, NON_ADMIN_BACKUP, (request("crowd", f"crowd-{number:04}") for number in range(count)))
        _until(lambda: _begun(_nights(cluster)), "the nightly run")
        (night,) = _nights(cluster)
        crowd = _of(cluster, "backups", "nab", "crowd")
    start = _at(night, "startTimestamp")
    between = [
        each for each in crowd if _at(each, "startTimestamp") < start and _at(each, "completionTimestamp") > slot
    ]
    before = [each for each in crowd if _at(each, "completionTimestamp") <= slot]
    return {
        "nightly_requests": count,
        "nightly_before_the_slot": len(before),
        "nightly_delay_backups": len(between),
        "nightly_delay_s": (start - slot).total_seconds(),
    }


def share(count: int) -> dict[str, object]:
    """Measure the shares of Velero's time of five equal tenants, and of two with weights 1 and 2, among so many."""
    with working(name="share") as cluster:
        _open(cluster, *_FIVE)
        equal = _times(cluster, _FIVE, count)
    with working(name="weights") as cluster:
        install_policy(cluster, "heavy", {"kubernetes.io/metadata.name": "heavy"}, weight=2, priority=10)
        _open(cluster, "light", "heavy")
        light, heavy = _times(cluster, ("light", "heavy"), count)
    mean = sum(equal) / len(equal)
    return {
        "share_backups": count,
        "share_seconds": [round(each, 1) for each in equal],
        "share_error": round(max(abs(each / mean - 1) for each in equal), 3),
        "weight_seconds": [round(light, 1), round(heavy, 1)],
        "weight_error": round(abs(heavy / light / 2 - 1), 3),
    }


def admin_restore(count: int) -> dict[str, object]:
    """Measure how many of a tenant's restores an administrator's restore waits for."""
    with working(name="restore") as cluster:
        _open(cluster, "crowd")
        create_all(cluster, NON_ADMIN_BACKUP, [request("crowd", "source")])
        _until(lambda: len(_ended(_of(cluster, "backups", "nab", "crowd"))) == 1, "the backup")
        (backup,) = _of(cluster, "backups", "nab", "crowd")
        kind = {"apiVersion": NON_ADMIN_RESTORE.api_version, "kind": NON_ADMIN_RESTORE.name}
        spec = {"restoreSpec": {"backupName": "source"}}
        keys = [Key("crowd", f"r{number:04}") for number in range(count)]
        create_all(
            cluster,
            NON_ADMIN_RESTORE,
            ((key, {**kind, "metadata": {"name": key.name, "namespace": "crowd"}, "spec": spec}) for key in keys),
        )
        _until(lambda: len(_ended(_of(cluster, "restores", "nar", "crowd"))) >= 3, "the first restores")
        cluster.velero("restore", "create", "admins", f"--from-backup={backup['metadata']['name']}")
        _until(lambda: _begun([cluster.get("restores.velero.io", "admins", f"--namespace={NAMESPACE}")]), "the restore")
        admins = cluster.get("restores.velero.io", "admins", f"--namespace={NAMESPACE}")
        crowd = _of(cluster, "restores", "nar", "crowd")
    came, start = _instant(admins["metadata"]["creationTimestamp"]), _at(admins, "startTimestamp")
    before = [each for each in crowd if _at(each, "startTimestamp") < start and _at(each, "completionTimestamp") > came]
    return {
        "admin_restore_requests": count,
        "admin_restore_waits_for": len(before),
        "admin_restore_delay_s": (start - came).total_seconds(),
    }


def _times(cluster: Cluster, namespaces: tuple[str, ...], count: int) -> list[float]:
    """Let each namespace ask for as many backups; return Velero's time for each when so many have ended in all."""
    for namespace in namespaces:  # one after the other: the first has a long queue when the others come
        create_all(cluster, NON_ADMIN_BACKUP, (request(namespace, f"b{number:04}") for number in range(count)))
    first = time.monotonic()
    _until(lambda: len(_all_ended(cluster, namespaces)) >= count, f"{count} backups")
    print(f"{count} backups of {len(namespaces)} tenants took {time.monotonic() - first:.0f} s", flush=True)
    found = sorted(_all_ended(cluster, namespaces), key=lambda each: _at(each, "startTimestamp"))
    counted = list(
        islice(found, len(namespaces), count)
    )  # the first ones, of the time before all had come, are left out
    return [sum(_seconds(each) for each in counted if _namespace(each, "nab") == namespace) for namespace in namespaces]


def _all_ended(cluster: Cluster, namespaces: tuple[str, ...]) -> list[Item]:
    items: list[Item] = cluster.get("backups.velero.io", f"--namespace={NAMESPACE}")["items"]
    return _ended([each for each in items if _namespace(each, "nab") in namespaces])


def _open(cluster: Cluster, *namespaces: str) -> None:
    create_namespaces(cluster, namespaces)
    for namespace in namespaces:
        cluster.kubectl("create", "configmap", "settings", "--from-literal=a=b", f"--namespace={namespace}")


def _of(cluster: Cluster, plural: str, short: str, namespace: str) -> list[Item]:
    items: list[Item] = cluster.get(f"{plural}.velero.io", f"--namespace={NAMESPACE}")["items"]
    return [each for each in items if _namespace(each, short) == namespace]


def _namespace(item: Item, short: str) -> str:
    return str(item["metadata"].get("annotations", {}).get(_ORIGIN.format(short), ""))


def _nights(cluster: Cluster) -> list[Item]:
    found: list[Item] = cluster.get("backups.velero.io", f"--namespace={NAMESPACE}", f"--selector={SCHEDULE_LABEL}")[
        "items"
    ]
    return found


def _ended(items: list[Item]) -> list[Item]:
    return [each for each in items if each.get("status", {}).get("phase") in TERMINAL]


def _begun(items: list[Item]) -> bool:
    return any(each.get("status", {}).get("startTimestamp") for each in items)


def _at(item: Item, field: str) -> datetime:
    text = item.get("status", {}).get(field)
    return _instant(text) if text else datetime.max.replace(tzinfo=now().tzinfo)


def _instant(text: str) -> datetime:
    found = instant(text)
    if found is None:
        raise MeasurementError(f"{text} is no instant")
    return found


def _seconds(item: Item) -> float:
    return max((_at(item, "completionTimestamp") - _at(item, "startTimestamp")).total_seconds(), 1.0)


def _until(is_so: Callable[[], bool], what: str) -> None:
    deadline = time.monotonic() + _LONGEST
    while not is_so():
        if time.monotonic() > deadline:
            raise MeasurementError(f"{what} did not come within {_LONGEST:g} s")
        time.sleep(1)
