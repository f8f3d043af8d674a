"""The stories of lives on a highly available control plane: schedules with retention, and self-service."""

import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from datetime import datetime
from functools import partial
from http import HTTPStatus
from typing import Any, ClassVar

from foresail.api.marks import SCHEDULE_UID, SLOT
from foresail.api.policy import OPT_IN_LABEL, OPT_IN_VALUE
from foresail.kube.clock import now
from testbed import Cluster, TestbedError
from testbed.api import request
from tests.cluster import operators
from tests.cluster.ha_lives import Event, Story
from tests.cluster.schedules import schedule
from tests.cluster.tenants import API, VELERO, install
from tests.worlds.perturb_judge import Lived

PERIOD = 10.0  # seconds: Velero takes one to four for each backup
EVERY = f"@every {PERIOD:g}s"
_KEEP_LAST = 1
_SOON = 0.5  # seconds after a run at which people act, so that no cache stands still at the next run
_TOO_LATE = 3.0  # seconds after its slot: then people cannot act in time, and the life tells nothing
_GRACE = 20.0  # seconds in which a run comes that is due, though a cache stands still or the operator starts again
_TEMPLATE = {"includedNamespaces": ["default"], "includedResources": ["configmaps"]}
_VELERO_API = f"/apis/velero.io/v1/namespaces/{VELERO}"
_TENANTS = f"/apis/{API}"
_ORIGIN = ("openshift.io/oadp-nab-origin", "openshift.io/oadp-nar-origin")
_UUID = 37  # characters of a dash and a UUID
_PATIENCE = 120.0


def prepare(cluster: Cluster) -> None:
    """Install the charts, and policies that hold for every life."""
    install(cluster, schedules=True)
    keep = {"selector": {}, "retention": {"keepLast": _KEEP_LAST, "gracePeriod": "0s"}}
    limits = {"minimumInterval": "1s", "maximum": 1000, "keepLast": _KEEP_LAST, "gracePeriod": "0s"}
    tenants = {"namespaceSelector": {}, "quotas": {"stored": 1000}, "schedules": limits}
    cluster.apply(
        _of("foresail.dev/v1alpha1", "SchedulePolicy", {"name": "keep"}, spec=keep),
        _of("foresail.dev/v1alpha1", "SelfServicePolicy", {"name": "tenants"}, spec=tenants),
        _of("v1", "ConfigMap", {"name": "settings", "namespace": "default"}, data={"a": "b"}),
    )


def _of(version: str, kind: str, metadata: dict[str, Any], **content: Any) -> dict[str, Any]:  # noqa: ANN401 - JSON
    return {"apiVersion": version, "kind": kind, "metadata": metadata, **content}


class _Timed(Story):
    """A story with schedules, whose runs are named by their number."""

    def __init__(self, cluster: Cluster, mark: str) -> None:
        super().__init__(cluster, mark)
        self.schedules: dict[str, tuple[str, datetime]] = {}  # the name and the begin of each, by its UID

    def note(self, event: Event) -> None:
        """Remember a schedule."""
        meta = event.item["metadata"]
        self.schedules[event.uid] = self.short(meta["name"]), datetime.fromisoformat(meta["creationTimestamp"])

    def short(self, name: str) -> str:
        """Return a name without the mark."""
        return name.removeprefix(f"{self.mark}-")

    def slot(self, event: Event) -> str:
        """Return of which schedule an object is which run."""
        of, at = event.annotation(SCHEDULE_UID), event.annotation(SLOT)
        if of not in self.schedules or not at:
            return ""
        slots = self._slots(of, event)
        return f"{self.schedules[of][0]} #{slots.index(datetime.fromisoformat(at)) + 1}"

    def _slots(self, uid: str, *further: Event) -> list[datetime]:
        """Return the slots for which a schedule has ever had a run, and that of a further event."""
        return sorted({at for each in (*self.events, *further) if (at := self._slot_of(each, uid)) is not None})

    def _slot_of(self, event: Event, uid: str) -> datetime | None:
        at = event.annotation(SLOT)
        return datetime.fromisoformat(at) if at and event.annotation(SCHEDULE_UID) == uid else None

    def after(self, run: str) -> None:
        """Return soon after a run came, which Velero may delay: a schedule waits for the run before."""
        _until(lambda: any(self.slot(each) == run for each in list(self.events)), f"{self.mark}: {run}")
        slot = next(each.annotation(SLOT) for each in self.events if self.slot(each) == run)
        self.is_spoiled |= (now() - datetime.fromisoformat(slot)).total_seconds() > _TOO_LATE
        time.sleep(_SOON)

    def lived(self) -> Lived:
        """Return this life, with what is too late in it."""
        found = super().lived()
        found.stuck = set(self._late_runs())
        return found

    def _late_runs(self) -> Iterator[str]:
        """Yield runs that came too late after they were due and the run before had ended."""
        for uid, (name, begin) in self.schedules.items():
            free = begin
            for slot in self._slots(uid):
                made, ended = self._made_and_ended(uid, slot)
                late = (made - max(free, slot)).total_seconds()
                skipped = (slot - free).total_seconds()
                if max(late, skipped - PERIOD) > _GRACE:
                    yield f"{name}: the run for {slot} came {late:.0f} s late, {skipped:.0f} s after the one before"
                free = max(slot, ended)

    def _made_and_ended(self, uid: str, slot: datetime) -> tuple[datetime, datetime]:
        mine = [each.item for each in self.events if self._slot_of(each, uid) == slot]
        ended = [at for each in mine if (at := each.get("status", {}).get("completionTimestamp"))]
        made = datetime.fromisoformat(mine[0]["metadata"]["creationTimestamp"])
        return made, datetime.fromisoformat(ended[-1]) if ended else made

    def apply(self, *objects: dict[str, Any]) -> None:
        """Create objects, or change them."""
        for each in objects:
            _until(partial(self._done, partial(self.cluster.apply, each)), f"{self.mark}: {each['metadata']}")

    def patch(self, path: str, **spec: Any) -> None:  # noqa: ANN401 - JSON
        """Change fields of an object's spec."""
        _until(partial(self._asked, "PATCH", path, {"spec": spec}), f"the change of {path}")

    def delete(self, path: str) -> None:
        """Delete an object."""
        _until(partial(self._asked, "DELETE", path), f"the deletion of {path}")

    def _done(self, act: Callable[[], object]) -> bool:
        with suppress(OSError, TestbedError):  # its API server may be down
            act()
            return True
        return False

    def _asked(self, method: str, path: str, body: object = None) -> bool:
        url, trust = self.cluster.server + path, self.cluster.site.admin_trust
        with suppress(OSError):
            code = request(method, url, trust, body, content="application/merge-patch+json").code
            return code == HTTPStatus.OK or (method == "DELETE" and code == HTTPStatus.NOT_FOUND)
        return False


class Scheduled(_Timed):
    """Two Schedules run, the older run goes, one Schedule is deleted and the other paused."""

    name = "schedules"
    rest = frozenset({"Schedule plain", "Backup plain #2", "Backup other #1"})
    flags = ()
    paths: ClassVar[dict[str, str]] = {
        "Schedule": f"{_VELERO_API}/schedules",
        "Backup": f"{_VELERO_API}/backups",
        "DeleteBackupRequest": f"{_VELERO_API}/deletebackuprequests",
    }

    def live(self) -> None:
        """Two runs of one, one of the other; all acts come soon after a run."""
        for name in ("plain", "other"):
            self.apply(schedule(f"{self.mark}-{name}", EVERY, _TEMPLATE, skipImmediately=True))
        self.after("other #1")
        self.delete(f"{_VELERO_API}/schedules/{self.mark}-other")
        self.after("plain #2")
        self.patch(f"{_VELERO_API}/schedules/{self.mark}-plain", paused=True)

    def owns(self, event: Event) -> bool:
        """Whether its Schedule has the mark."""
        meta = event.item["metadata"]
        if event.kind == "Schedule" and meta["name"].startswith(f"{self.mark}-"):
            self.note(event)
            return True
        if event.kind == "Backup":
            return str(meta.get("labels", {}).get("velero.io/schedule-name", "")).startswith(f"{self.mark}-")
        return event.kind != "Schedule" and str(event.item["spec"]["backupName"]).startswith(f"{self.mark}-")

    def named(self, event: Event) -> str:
        """Return the name without the mark, of a run with its number."""
        if event.kind == "Backup":
            return self.slot(event)
        if event.kind == "DeleteBackupRequest":
            return "of " + next((self.slot(each) for each in self.events if self._is_backup(each, event)), "unknown")
        return self.short(event.item["metadata"]["name"])

    def _is_backup(self, event: Event, of: Event) -> bool:
        return event.kind == "Backup" and event.item["metadata"]["name"] == of.item["spec"]["backupName"]

    def meaning(self, event: Event) -> dict[str, Any]:
        """Return the phase, and what people wrote."""
        spec, status = event.item.get("spec", {}), event.item.get("status", {})
        return {"phase": status.get("phase"), "paused": spec.get("paused")}


class Served(_Timed):
    """A tenant backs up, restores, deletes, and has a schedule that keeps the last run and is paused in the end."""

    name = "tenants"
    rest = frozenset(
        f"{kind} {name}"
        for kind, *names in (
            ("NonAdminBackup", "kept", "often #2"),
            ("NonAdminRestore", "restored"),
            ("NonAdminSchedule", "often"),
            ("Backup", "kept", "often #2"),
            ("Restore", "restored"),
        )
        for name in names
    )
    flags = operators.SELF_SERVICE
    paths: ClassVar[dict[str, str]] = {
        "NonAdminBackup": f"{_TENANTS}/nonadminbackups",
        "NonAdminRestore": f"{_TENANTS}/nonadminrestores",
        "NonAdminSchedule": f"{_TENANTS}/nonadminschedules",
        "Backup": f"{_VELERO_API}/backups",
        "Restore": f"{_VELERO_API}/restores",
        "DeleteBackupRequest": f"{_VELERO_API}/deletebackuprequests",
    }

    def live(self) -> None:
        """Two backups and a schedule; one is restored, one is deleted with its data."""
        space = {"name": self.mark, "labels": {OPT_IN_LABEL: OPT_IN_VALUE}}
        self.apply(
            _of("v1", "Namespace", space), _of("v1", "ConfigMap", self._at("settings"), data={"currency": "EUR"})
        )
        maps = {"backupSpec": {"includedResources": ["configmaps"]}}
        for name in ("kept", "deleted"):
            self.apply(_of(API, "NonAdminBackup", self._at(name), spec=maps))
        timed = {"schedule": EVERY, "skipImmediately": True, "template": maps}
        self.apply(_of(API, "NonAdminSchedule", self._at("often"), spec=timed))
        self._wait("kept")
        spec = {"restoreSpec": {"backupName": "kept"}}
        self.apply(_of(API, "NonAdminRestore", self._at("restored"), spec=spec))
        self._wait("deleted")
        self.patch(f"{self._path}/nonadminbackups/deleted", deleteBackup=True)
        self.after("often #2")
        self.patch(f"{self._path}/nonadminschedules/often", paused=True)

    @property
    def _path(self) -> str:
        return f"{_TENANTS}/namespaces/{self.mark}"

    def _at(self, name: str) -> dict[str, str]:
        return {"name": name, "namespace": self.mark}

    def _wait(self, name: str) -> None:
        def succeeded() -> bool:
            mine = [each for each in self.events if each.kind == "NonAdminBackup" and self.named(each) == name]
            conditions = mine[-1].item.get("status", {}).get("conditions", []) if mine else []
            return any(each["type"] == "Succeeded" and each["status"] == "True" for each in conditions)

        _until(succeeded, f"{self.mark}/{name}")

    def owns(self, event: Event) -> bool:
        """Whether it is in the namespace of this life, or made for it."""
        meta = event.item["metadata"]
        if event.kind == "DeleteBackupRequest":
            return str(event.item["spec"]["backupName"]).startswith(f"{self.mark}-")
        if event.kind in ("Backup", "Restore"):
            return self.mark in (event.annotation(f"{each}-namespace") for each in _ORIGIN)
        if event.kind == "NonAdminSchedule" and meta["namespace"] == self.mark:
            self.note(event)
        return str(meta["namespace"]) == self.mark

    def named(self, event: Event) -> str:
        """Return the name, of a run with its number; what Velero has is named by the request."""
        if slot := self.slot(event):
            return slot
        if event.kind == "DeleteBackupRequest":
            return "of " + self._request(self.short(event.item["spec"]["backupName"])[:-_UUID])
        if event.kind in ("Backup", "Restore"):
            return self._request(next(filter(None, (event.annotation(f"{each}-name") for each in _ORIGIN)), ""))
        return str(event.item["metadata"]["name"])

    def _request(self, name: str) -> str:
        """Return the name of a request, of a run with its number."""
        found = (each for each in self.events if each.kind == "NonAdminBackup")
        return next((self.slot(each) or name for each in found if each.item["metadata"]["name"] == name), name)

    def meaning(self, event: Event) -> dict[str, Any]:
        """Return the phase, the conditions without their words, and what people wrote."""
        spec, status = event.item.get("spec", {}), event.item.get("status", {})
        conditions = {each["type"]: [each["status"], each["reason"]] for each in status.get("conditions", [])}
        return {"phase": status.get("phase"), "paused": spec.get("paused"), "conditions": conditions}


def _until(holds: Callable[[], bool], what: str) -> None:
    deadline = time.monotonic() + _PATIENCE
    while not holds():
        assert time.monotonic() < deadline, f"{what} did not succeed within {_PATIENCE:g} s"
        time.sleep(0.1)


STORIES = (Scheduled, Served)
