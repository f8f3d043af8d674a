"""A Rollback in a world: the operator, self-service with Velero behind it, Flux, the team, and an independent judge."""

import asyncio
import json
from collections.abc import Callable, Iterator
from copy import deepcopy
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, TypeVar

import msgspec

from foresail.api import core
from foresail.api.apps import DEPLOYMENT
from foresail.api.authorization import OWN_ACCESS_REVIEW, SUBJECT_ACCESS_REVIEW
from foresail.api.instants import stamp
from foresail.api.marks import NOT_BACKED_UP
from foresail.api.nonadmin import NON_ADMIN_BACKUP, NON_ADMIN_DOWNLOAD_REQUEST, NON_ADMIN_RESTORE, NOTHING_TO_RESTORE
from foresail.api.pods import POD
from foresail.api.policy import SELF_SERVICE_POLICY
from foresail.api.rollback import ROLLBACK
from foresail.bucket import DownloadError
from foresail.kube.client import decoder
from foresail.kube.failures import Cause, Failure
from foresail.plan import Body, Key, Kind
from foresail.rollback.controller import Rollbacks
from foresail.rollback.kinds import (
    ACCOUNT,
    APPLICATION,
    HELM_RELEASE,
    KUSTOMIZATION,
    LISTED,
    SCALED_OBJECT,
    STATEFUL_SET,
    full_name,
)
from foresail.rollback.reads import SurveyReader
from foresail.rollback.storage_reads import REPLICA_SET
from foresail.tenancy.policies import ChartLimits
from tests.worlds.documents import Document
from tests.worlds.garbage import NAMESPACE
from tests.worlds.history import Happening
from tests.worlds.process import CALM, Moment, Process
from tests.worlds.streams import Weather
from tests.worlds.virtual_time import WallClock
from tests.worlds.visitor import Visitor, Write
from tests.worlds.world import Definition, World, done

SHOP, HOME, NAME = "shop", "velero", "back"
TEAM = "dora"
KEY = Key(SHOP, NAME)
GOOD = "good"
PAUSED = "autoscaling.keda.sh/paused"
RESTORED_BY = "velero.io/restore-name"
WIDGET = Kind("shop.example", "v1", "widgets", "Widget")
_CHANGED = (core.CONFIG_MAP, DEPLOYMENT, STATEFUL_SET, core.SECRET, WIDGET, ACCOUNT)
"""The kinds of objects in the shop."""

_NAMES = {
    "ConfigMap": ("configmaps", "v1/ConfigMap"),
    "Deployment": ("deployments.apps", "apps/v1/Deployment"),
    "StatefulSet": ("statefulsets.apps", "apps/v1/StatefulSet"),
    "Secret": ("secrets", "v1/Secret"),
    "ServiceAccount": ("serviceaccounts", "v1/ServiceAccount"),
    "Widget": ("widgets.shop.example", "shop.example/v1/Widget"),
}
"""How Velero's filters and its lists call them."""

_DENIED = Failure(Cause.FORBIDDEN, "admission webhook denied the request", 403, "Forbidden")
SUSPENDABLE = ((KUSTOMIZATION, "apps"), (HELM_RELEASE, "chart"), (SCALED_OBJECT, "web"))
T = TypeVar("T")
Denies = Callable[[str, Kind, Any], bool]
"""Whether a write is refused: its verb, the kind, and the body if there is one."""

State = dict[tuple[str, str], Any]
"""What is in each object, by its kind and name."""


@dataclass
class Line:
    """Self-service and Velero as a team sees them: requests are taken in turn, and their results are in the bucket."""

    scene: "RollbackScene"
    bucket: dict[str, State] = field(default_factory=dict)
    is_away: bool = False  # the bucket, or Velero
    is_off: bool = False  # self-service: nobody takes requests
    is_refused: bool = False  # the requester may no longer restore
    fails_halfway: int = 0  # how many of the next restores end in the middle
    over_quota: int = 0  # how many of the next restores cannot create an object
    forgets: bool = False  # the list of what a restore did is never read
    leaves_out: set[str] = field(default_factory=set)  # kinds that the requester may not change any more

    async def work(self) -> None:
        """Take requests in turn, for ever."""
        while True:
            await asyncio.sleep(1.0)
            if self.is_off:
                continue
            for kind, take in (
                (NON_ADMIN_DOWNLOAD_REQUEST, self._answer),
                (NON_ADMIN_BACKUP, self._back_up),
                (NON_ADMIN_RESTORE, self._restore),
            ):
                for key, row in sorted(self.scene.world.history.present(kind).items()):
                    if not row.get("status"):
                        await take(key, row)

    async def _answer(self, key: Key, row: Document) -> None:
        about = row["spec"]["target"]["name"]
        url = f"https://bucket/{about}"
        self._report(NON_ADMIN_DOWNLOAD_REQUEST, key, {"velero": {"status": {"downloadURL": url}}})
        await asyncio.sleep(0)

    async def _back_up(self, key: Key, row: Document) -> None:
        mirror: Document = {"nacuuid": f"{key.name}-uuid", "spec": {"storageLocation": "default"}}
        began = stamp(self.scene.clock())
        self._report(NON_ADMIN_BACKUP, key, {"phase": "Created", "veleroBackup": mirror})
        taken = {name: what for name, what in self.scene.state().items() if not self._is_excluded(name)}
        moved = self.scene.snapshot(row)
        await asyncio.sleep(3.0)
        phase = "Failed" if self.is_away else "Completed"
        if phase == "Completed":
            self.bucket[row["metadata"]["name"]] = taken
        ends = {"phase": phase, "startTimestamp": began, "expiration": stamp(self.scene.clock() + timedelta(days=30))}
        self._report(NON_ADMIN_BACKUP, key, {**moved, "veleroBackup": {**mirror, "status": ends}})

    def _is_excluded(self, name: tuple[str, str]) -> bool:
        kind = next(each for each in _CHANGED if each.name == name[0])
        labels = self.scene.world.history.present(kind)[Key(SHOP, name[1])]["metadata"].get("labels") or {}
        return labels.get(NOT_BACKED_UP) == "true"

    async def _restore(self, key: Key, row: Document) -> None:
        spec = row["spec"]["restoreSpec"]
        name = f"{key.name}-{row['metadata']['uid'][-6:]}"
        self._report(NON_ADMIN_RESTORE, key, {"phase": "New", "veleroRestore": {"nacuuid": name}})
        await asyncio.sleep(2.0)  # it has a name, and its requester's access is looked at
        refusal = "may not" if self.is_refused else NOTHING_TO_RESTORE if self._is_empty(spec) else ""
        if Key(SHOP, spec["backupName"]) not in self.scene.world.history.present(NON_ADMIN_BACKUP):
            refusal = f"NonAdminBackup {spec['backupName']} does not exist"
        if refusal:
            condition = {"type": "Accepted", "status": "False", "reason": "PolicyViolation", "message": refusal}
            refused = {"phase": "BackingOff", "veleroRestore": None, "conditions": [condition]}
            self._report(NON_ADMIN_RESTORE, key, refused)
            return
        mirror: Document = {"nacuuid": name, "status": {"phase": "InProgress"}}
        accepted = {"phase": "Created", "veleroRestore": mirror, "conditions": self._accepted()}
        self._report(NON_ADMIN_RESTORE, key, accepted)
        await asyncio.sleep(2.0)
        if spec.get("includedResources") == ["persistentvolumeclaims"]:
            phase, items = await self.scene.fill(spec, name), _items([], [])
        else:
            phase, items = await self._bring_back(spec, name)
        self._report(NON_ADMIN_RESTORE, key, {"veleroRestore": {"status": {"phase": phase}}})
        if not self.forgets:
            await asyncio.sleep(2.0)
            self._report(NON_ADMIN_RESTORE, key, {"restoredItems": items})

    def _accepted(self) -> list[Document]:
        if not self.leaves_out:
            return []
        text = f"Left out because {TEAM} may not create them: {', '.join(sorted(self.leaves_out))}. To restore them"
        return [{"type": "Accepted", "status": "True", "reason": "KindsLeftOut", "message": text}]

    def _is_empty(self, spec: Document) -> bool:
        is_known = spec["backupName"] in self.bucket and spec.get("includedResources") != ["persistentvolumeclaims"]
        return is_known and not any(_is_wanted(kind, spec) for kind, _ in self.bucket[spec["backupName"]])

    async def _bring_back(self, spec: Document, name: str) -> tuple[str, Document]:
        """Bring back what is in the backup, object by object; return how it ends, and what was done."""
        created, failed = list[str](), list[str]()
        if self.is_away or spec["backupName"] not in self.bucket:
            return "Failed", _items(created, failed)
        wanted = [each for each in self.bucket[spec["backupName"]].items() if _is_wanted(each[0][0], spec)]
        wanted = [each for each in wanted if _NAMES[each[0][0]][0] not in self.leaves_out]
        halfway, self.fails_halfway = bool(self.fails_halfway), max(self.fails_halfway - 1, 0)
        full, self.over_quota = bool(self.over_quota), max(self.over_quota - 1, 0)
        for number, ((kind_name, object_name), content) in enumerate(wanted):
            if halfway and number == len(wanted) // 2:
                return "PartiallyFailed", _items(created, [f"{kind_name} {object_name}"])
            await asyncio.sleep(0.4)
            kind = next(each for each in _CHANGED if each.name == kind_name)
            at = Key(SHOP, object_name)
            there = at in self.scene.world.history.present(kind)
            if full and not there:
                failed.append(f"{kind_name} {object_name}")
                continue
            labels = {"metadata": {"labels": {RESTORED_BY: name}}}
            if there and kind == ACCOUNT:
                self._add_to(at, content, labels)
            elif there:
                old = self.scene.world.history.present(kind)[at]
                gone: dict[str, Any] = {part: None for part in ("data", "spec") if part in old}
                gone["metadata"] = {"annotations": None}  # whoever is not in the backup goes
                self.scene.world.merge(kind, at, gone, "velero")
                self.scene.world.merge(kind, at, {**labels, **deepcopy(content)}, "velero")
            else:
                body = {"metadata": {"name": object_name, **labels["metadata"]}, **deepcopy(content)}
                self.scene.world.create(kind, body, "velero", SHOP)
                created.append(f"{kind_name} {object_name}")
        return "Completed", _items(created, failed)

    def _add_to(self, at: Key, content: Document, labels: Document) -> None:
        """Do with a ServiceAccount what Velero does: add what it lacks, and take nothing away."""
        now = self.scene.world.history.present(ACCOUNT)[at].get("imagePullSecrets", [])
        more = [each for each in content.get("imagePullSecrets", []) if each not in now]
        annotations = {"annotations": {"cloud.example/role": "of the backup"}} if content["imagePullSecrets"] else {}
        body = {"metadata": {**labels["metadata"], **annotations}, "imagePullSecrets": [*now, *more]}
        self.scene.world.merge(ACCOUNT, at, body, "velero")

    def _report(self, kind: Kind, key: Key, status: Document) -> None:
        self.scene.world.merge(kind, key, {"status": status}, "self-service", "status")

    async def fetch(self, url: str, _authority: str) -> bytes:
        """Return Velero's list of a backup."""
        await asyncio.sleep(0.1)
        if self.is_away:
            raise DownloadError("the bucket cannot be reached")
        lists: dict[str, list[str]] = {"v1/Pod": [f"{SHOP}/web-1"]}
        for kind, name in self.bucket[url.rpartition("/")[2]]:
            lists.setdefault(_NAMES[kind][1], []).append(f"{SHOP}/{name}")
        for claim in self.scene.claims_in(url.rpartition("/")[2]):
            lists.setdefault("v1/PersistentVolumeClaim", []).append(f"{SHOP}/{claim}")
        return json.dumps(lists).encode()


def _items(created: list[str], failed: list[str]) -> Document:
    groups = {"created": created, "failed": failed}
    return {name: {"count": len(names), "names": names[:5]} for name, names in groups.items()} | {"unchanged": 1}


def _is_wanted(kind: str, spec: Document) -> bool:
    included = spec.get("includedResources")
    return included is None or _NAMES[kind][0] in included


class Asking:
    """The API server as the operator's reads see it: access reviews are answered by the team's rights."""

    def __init__(self, visitor: Visitor, scene: "RollbackScene") -> None:
        self._visitor, self._scene = visitor, scene
        self.get, self.page = visitor.get, visitor.page

    async def discover(self, of: type[T]) -> T | Failure:
        await asyncio.sleep(0.001)
        resource = {"resource": WIDGET.plural, "responseKind": {"kind": WIDGET.name}, "scope": "Namespaced"}
        versions = [{"version": WIDGET.version, "resources": [resource]}]
        return decoder(of).decode(
            msgspec.json.encode({"items": [{"metadata": {"name": WIDGET.group}, "versions": versions}]})
        )

    async def create(self, kind: Kind, key: Key, body: Body, of: type[T]) -> T | Failure:
        assert kind in (SUBJECT_ACCESS_REVIEW, OWN_ACCESS_REVIEW)
        assert key == Key("", "")
        await asyncio.sleep(0.001)
        spec: Any = body["spec"]
        what = spec["resourceAttributes"]
        resource = f"{what['resource']}.{what['group']}".removesuffix(".")
        if kind == OWN_ACCESS_REVIEW:
            may = (what["verb"], resource) not in self._scene.beyond_the_operator
            return decoder(of).decode(msgspec.json.encode({"status": {"allowed": may}}))
        allowed = spec["user"] == TEAM and (what["verb"], resource) not in self._scene.forbidden
        allowed = allowed and not self._scene.line.is_refused
        return decoder(of).decode(msgspec.json.encode({"status": {"allowed": allowed}}))


@dataclass
class Judged:
    """What was wrong in one life."""

    lost_volumes: list[str] = field(default_factory=list)
    not_resumed: list[str] = field(default_factory=list)
    worse: list[str] = field(default_factory=list)
    left_behind: list[str] = field(default_factory=list)

    def __iter__(self) -> Iterator[str]:
        yield from (*self.lost_volumes, *self.not_resumed, *self.worse, *self.left_behind)


class Judge:
    """Knows nothing of the operator's rules: what was there before, what is in the backup, and who writes when."""

    def __init__(self, scene: "RollbackScene") -> None:
        self.found = Judged()
        self.touched: set[tuple[str, str]] = set()  # by the team meanwhile: not judged
        self.before: State = {}
        self.restored: State = {}  # once the restore is compared, and before anything is resumed
        self._scene = scene
        self._phase = ""
        scene.world.history.listeners.append(self._heard)

    def _heard(self, happening: Happening) -> None:
        if happening.kind == ROLLBACK and happening.key == KEY:
            self._phase_changed(happening)
        elif (
            happening.kind in (core.CLAIM, core.VOLUME)
            and happening.before is not None
            and not self._scene.replaces
            and not self._is_over()
        ):
            self.found.lost_volumes.append(f"{happening.kind.name} {happening.key} was changed or deleted")
        elif happening.kind in _CHANGED and not self._is_over():
            self._object_changed(happening)

    def _is_over(self) -> bool:
        place = self._scene.world.history.present(NAMESPACE).get(Key("", SHOP))
        return place is None or "deletionTimestamp" in place["metadata"]

    def _phase_changed(self, happening: Happening) -> None:
        phase = str((happening.after or {}).get("status", {}).get("phase", "New"))
        if phase == self._phase or happening.after is None:
            return
        self._phase = phase
        if phase == "Suspending":
            self.before = self._scene.state()
        if phase == "Resuming" and self._scene.spec.get("volumes") != "Data":
            self.restored = self._scene.state()
            self._compare("the backup", self._scene.line.bucket[GOOD], self.restored)

    def _object_changed(self, happening: Happening) -> None:
        """See whether there is a way back whenever the restore, or the operator, changes an object."""
        by = self._scene.writer
        if by == "flux" and self._phase in ("Restoring", "Pruning", "Comparing"):
            self.found.worse.append(f"Flux changed {happening.key} while {self._phase}")
        if by in ("velero", "foresail"):
            safe = [state for name, state in self._scene.line.bucket.items() if name != GOOD]
            before = {name: what for name, what in self.before.items() if name not in self.touched}
            if not any(before.items() <= state.items() for state in safe):
                self.found.worse.append(f"{happening.key} changed before there was a good backup of it")

    def _compare(self, what: str, wanted: State, state: State) -> None:
        scene = self._scene
        for name in {*wanted, *state} - self.touched:
            is_only = scene.only is not None and _NAMES[name[0]][0] not in scene.only
            is_extra = name not in wanted and what == "the backup" and not scene.prunes
            if not is_only and not is_extra and wanted.get(name) != state.get(name):
                self.found.worse.append(f"{name} is {state.get(name)} and not as in {what}: {wanted.get(name)}")

    def end(self) -> Judged:
        """Judge the end of a life."""
        scene = self._scene
        if self._is_over():
            return self.found
        body = scene.world.history.present(ROLLBACK).get(KEY)
        for (kind, name), value in scene.suspended().items():
            if value != scene.formerly[kind, name]:
                self.found.not_resumed.append(f"{kind} {name} is {value!r}, and was {scene.formerly[kind, name]!r}")
        downloads = scene.world.history.present(NON_ADMIN_DOWNLOAD_REQUEST)
        self.found.left_behind += [f"{key}" for key in downloads if key.name.startswith(f"{NAME}-")]
        if body is None or body.get("status", {}).get("phase") in ("Undone", "Refused"):
            self._compare("the namespace before", self.before or scene.state(), scene.state())
        if body is not None:
            phase = body.get("status", {}).get("phase", "New")
            if phase not in ("Completed", "Undone", "Refused", "Planned"):
                self.found.left_behind.append(f"the Rollback is {phase}: {scene.message}")
            if body["metadata"].get("finalizers"):
                self.found.left_behind.append(f"its finalizer, while it is {phase}")
        return self.found


class RollbackScene:
    """One shop whose team wants it back as it was, and everybody around it."""

    replaces = False  # whether volumes are replaced

    def claims_in(self, _backup: str) -> list[str]:
        """Return the claims of a backup."""
        return []

    def snapshot(self, _row: Document) -> Document:
        """Back up the data of volumes, and return what the status of the request then has of it."""
        return {}

    async def fill(self, _spec: Document, _name: str) -> str:
        """Restore claims with their data, and return how that ends."""
        raise NotImplementedError

    def __init__(self, *, prunes: bool = False, only: tuple[str, ...] | None = None, **spec: object) -> None:
        self.clock = WallClock()
        kinds = [Definition(kind, status=False) for kind in LISTED]
        kinds += [Definition(kind) for kind in (KUSTOMIZATION, HELM_RELEASE, SCALED_OBJECT, APPLICATION)]
        requests = (NON_ADMIN_BACKUP, NON_ADMIN_RESTORE, NON_ADMIN_DOWNLOAD_REQUEST, ROLLBACK)
        kinds += [Definition(kind) for kind in requests]
        plain = (
            core.SECRET,
            WIDGET,
            SELF_SERVICE_POLICY,
            core.CLAIM,
            core.VOLUME,
            core.STORAGE_CLASS,
            POD,
            REPLICA_SET,
        )
        kinds += [Definition(kind, status=False) for kind in plain]
        self.world = World(self.clock, *kinds)
        self.weather = Weather()
        self.prunes, self.only = prunes, only
        self.forbidden: set[tuple[str, str]] = set()
        self.beyond_the_operator: set[tuple[str, str]] = set()  # what its own Roles do not have
        self.writer = ""  # who makes the change that is heard of
        self.denies: Denies = lambda *_: False  # a webhook that refuses writes of the operator
        self.line = Line(self)
        self.process: Process | None = None
        self.chart = ChartLimits()
        self.visitors: list[Visitor] = []
        self.deaths = 0
        self._watch_writers()
        self._furnish()
        self.formerly = self.suspended()
        self.judge = Judge(self)
        self.spec: Document = {"to": GOOD, **({"prune": True} if prunes else {}), **spec}
        if only is not None:
            self.spec["only"] = [*only]

    def _watch_writers(self) -> None:
        world = self.world

        def told(do: Callable[..., Any], verb: str, place: int) -> Callable[..., Any]:
            def call(*arguments: Any, **named: Any) -> Any:  # noqa: ANN401 - as the world's own
                self.writer = str(arguments[place]) if len(arguments) > place else str(named.get("by", ""))
                if self.writer == "foresail" and self.denies(verb, arguments[0], arguments[place - 1]):
                    return _DENIED
                return do(*arguments, **named)

            return call

        world.create = told(world.create, "create", 2)  # type: ignore[method-assign]
        world.merge = told(world.merge, "merge", 3)  # type: ignore[method-assign]
        delete = world.delete

        def deleted(kind: Kind, key: Key, uid: str = "", resource_version: str = "") -> Any:  # noqa: ANN401
            self.writer = "foresail" if uid else "team"
            if uid and self.denies("delete", kind, None):
                return _DENIED
            return delete(kind, key, uid, resource_version)

        world.delete = deleted  # type: ignore[method-assign]
        delete_labelled = world.delete_labelled

        def deleted_labelled(kind: Kind, namespace: str, selector: str) -> Any:  # noqa: ANN401
            if self.denies("delete", kind, None):
                return _DENIED
            return delete_labelled(kind, namespace, selector)

        world.delete_labelled = deleted_labelled  # type: ignore[method-assign]

    def _furnish(self) -> None:
        make = self.world.create
        for name in (SHOP, HOME):
            make(NAMESPACE, {"metadata": {"name": name, "labels": {"team": "yes"}}}, "admin")
        restore = {"allowed": {"existingResourcePolicies": ["update"]}}
        policy = {"namespaceSelector": {}, "restore": restore, "rollback": {"enabled": True, "prune": True}}
        make(SELF_SERVICE_POLICY, {"metadata": {"name": "all"}, "spec": policy}, "admin")
        self.configure("settings", {"colour": "red"})
        self.configure("removed", {"key": "kept"})
        for name in ("password", "token"):
            self._put(core.SECRET, name, {"data": {"key": name}})
        self._put(WIDGET, "wheel", {"spec": {"size": 1}})
        self._put(ACCOUNT, "runner", {"imagePullSecrets": [{"name": "old"}]})
        self.deploy("web", "web:1", 3)
        self.deploy("worker", "worker:1", 2)
        self.line.bucket[GOOD] = self.state()
        self.configure("settings", {"colour": "blue", "more": "yes"})
        for kind, lost in ((core.CONFIG_MAP, "removed"), (core.SECRET, "password"), (WIDGET, "wheel")):
            self.world.delete(kind, Key(SHOP, lost))
        self._put(core.SECRET, "token", {"data": {"key": "changed"}})
        self._put(ACCOUNT, "runner", {"imagePullSecrets": []})
        self.deploy("web", "web:broken", 1)
        self.configure("added", {"by": "the upgrade"})
        self.deploy("canary", "canary:1", 1)
        make(core.CLAIM, {"metadata": {"name": "data"}, "spec": {"volumeName": "pv-1"}}, TEAM, SHOP)
        make(core.VOLUME, {"metadata": {"name": "pv-1"}, "spec": {"claimRef": {"namespace": SHOP}}}, "admin")
        make(KUSTOMIZATION, {"metadata": {"name": "apps"}, "spec": {"path": "./"}}, TEAM, SHOP)
        make(HELM_RELEASE, {"metadata": {"name": "chart"}, "spec": {"suspend": False}}, TEAM, SHOP)
        make(SCALED_OBJECT, {"metadata": {"name": "web"}, "spec": {}}, TEAM, SHOP)
        make(KUSTOMIZATION, {"metadata": {"name": "asleep"}, "spec": {"suspend": True}}, TEAM, SHOP)
        make(NON_ADMIN_BACKUP, {"metadata": {"name": GOOD}, "spec": {"backupSpec": {}}}, TEAM, SHOP)
        velero = {"nacuuid": "good-uuid", "spec": {"storageLocation": "default"}, "status": {"phase": "Completed"}}
        good = {"status": {"phase": "Created", "veleroBackup": velero}}
        self.world.merge(NON_ADMIN_BACKUP, Key(SHOP, GOOD), good, "self-service", "status")

    # What people do

    def configure(self, name: str, data: dict[str, str]) -> None:
        """Create a ConfigMap, or write it anew."""
        self._put(core.CONFIG_MAP, name, {"data": data})

    def deploy(self, name: str, image: str, replicas: int) -> None:
        """Create a Deployment, or change it."""
        self._put(DEPLOYMENT, name, {"spec": {"replicas": replicas, "image": image}})

    def _put(self, kind: Kind, name: str, body: Document, by: str = TEAM) -> None:
        key = Key(SHOP, name)
        if key not in self.world.history.present(kind):
            self.world.create(kind, {"metadata": {"name": name}, **body}, by, SHOP)
        else:
            self.world.merge(kind, key, body, by)

    def ask(self, name: str = NAME, by: str = TEAM, **spec: object) -> None:
        """Create a Rollback."""
        metadata = {"name": name, "annotations": {"foresail.dev/requester": by}}
        done(self.world.create(ROLLBACK, {"metadata": metadata, "spec": {**self.spec, **spec}}, by, SHOP))

    def undo(self) -> None:
        """Ask for the undo."""
        if KEY in self.world.history.present(ROLLBACK):
            self.world.merge(ROLLBACK, KEY, {"spec": {"undo": True}}, TEAM)

    async def flux(self) -> None:
        """Apply what is in git, again and again, unless suspended."""
        while True:
            await asyncio.sleep(7.0)
            row = self.world.history.present(KUSTOMIZATION).get(Key(SHOP, "apps"))
            if row is not None and not row["spec"].get("suspend"):
                self._put(core.CONFIG_MAP, "settings", {"data": {"colour": "blue", "more": "yes"}}, by="flux")

    # What is there

    def state(self) -> State:
        """Return what is in each object of the shop."""
        return {
            (kind.name, key.name): deepcopy(
                {part: row[part] for part in ("data", "spec", "imagePullSecrets") if part in row}
            )
            for kind in _CHANGED
            for key, row in self.world.history.present(kind).items()
            if key.namespace == SHOP and "deletionTimestamp" not in row["metadata"]
        }

    def suspended(self) -> dict[tuple[str, str], object]:
        """Return the value by which each tool is suspended or not."""
        found: dict[tuple[str, str], object] = {}
        for kind, name in SUSPENDABLE:
            row = self.world.history.present(kind).get(Key(SHOP, name))
            if row is not None:
                annotations = row["metadata"].get("annotations") or {}
                is_keda = kind == SCALED_OBJECT
                found[full_name(kind), name] = annotations.get(PAUSED) if is_keda else row["spec"].get("suspend")
        return found

    @property
    def status(self) -> Any:  # noqa: ANN401 - JSON
        """The status of the Rollback."""
        return (self.world.history.present(ROLLBACK).get(KEY) or {}).get("status", {})

    @property
    def phase(self) -> str:
        """Its phase."""
        return str(self.status.get("phase", "New"))

    @property
    def reason(self) -> str:
        """The reason of its condition."""
        return next((each["reason"] for each in self.status.get("conditions", ()) if each["type"] == "Succeeded"), "")

    @property
    def message(self) -> str:
        """The message of its condition."""
        return next((each["message"] for each in self.status.get("conditions", ()) if each["type"] == "Succeeded"), "")

    # The operator

    def start(self, dies: Moment | None = None) -> Process:
        """Start the operator."""
        visitor = Visitor(self.world, weather=self.weather)
        self.visitors.append(visitor)
        reader = SurveyReader(Asking(visitor, self), HOME, self.line.fetch)
        rollbacks = Rollbacks(HOME, reader.run, chart=self.chart)
        self.process = Process(visitor, rollbacks, dies=dies, workers=2, timing=CALM)
        return self.process

    @property
    def writes(self) -> list[Write]:
        """Everything that the operator has written, over all its lives."""
        return [write for visitor in self.visitors for write in visitor.writes if write.refused is None]

    async def until_ended(self, seconds: float, deaths: list[Moment]) -> None:
        """Let time pass until the Rollback has ended, with a new operator after each death."""
        left = list(deaths)
        for _ in range(int(seconds)):
            await asyncio.sleep(1.0)
            assert self.process is not None
            if self.process.died:
                self.deaths += 1
                await self.process.kill()
                await asyncio.sleep(3.0)
                self.start(left.pop(0) if left else None)

    async def end(self) -> None:
        """End the operator where it stands."""
        if self.process is not None:
            await self.process.kill()
            self.process = None


Fault = Callable[[RollbackScene], None]
