"""Protection by label in a world: both operators, Velero, people who label, and a judge that sees every version."""

from collections import Counter
from datetime import datetime, timedelta
from typing import Any

import msgspec

from foresail.api import velero
from foresail.api.core import CLAIM
from foresail.api.marks import NAMESPACE_UIDS, PROTECTION_CLASS, SLOT
from foresail.api.protection import PROTECTION, PROTECTION_NAME
from foresail.api.protection import PROTECTION_CLASS as CLASS
from foresail.kube.failures import Failure
from foresail.kube.loop import LoopTiming
from foresail.plan import Key
from foresail.protection.controller import ProtectionByLabel
from foresail.schedules.controller import Schedules
from tests.worlds.documents import Document
from tests.worlds.garbage import NAMESPACE
from tests.worlds.history import Happening
from tests.worlds.process import CALM, Moment, Process, Turnover
from tests.worlds.roles import Grant, Role
from tests.worlds.schedule_scene import HOME, ScheduleScene
from tests.worlds.velero_stand_in import Ending, in_a_moment
from tests.worlds.visitor import Visitor, Write
from tests.worlds.world import Definition, done

LABEL = "foresail.dev/protection"
REASON, UNTIL = "foresail.dev/protection-reason", "foresail.dev/protection-until"
EXCLUDE = "velero.io/exclude-from-backup"
GRACE = timedelta(seconds=10)
"""How long after a change of a namespace its Schedules may still be as they were asked for before."""

LATE = timedelta(seconds=60)
_SEES_NAMESPACES = frozenset(Grant("namespaces", verb, everywhere=True) for verb in ("list", "watch"))


class Judge:
    """Knows nothing of the operator's rules: who was in a Schedule stays in one, and no slot takes anybody twice."""

    def __init__(self, scene: "ProtectionScene") -> None:
        self.versions = 0
        self.unprotected: list[str] = []
        self.doubled: list[str] = []
        self._scene = scene
        self._since: dict[tuple[str, str], datetime] = {}  # by name and UID: since when it is in a Schedule
        self._may_leave: dict[str, datetime] = {}  # when a namespace was last exempt or excluded
        self._slots: set[tuple[str, str, str]] = set()
        scene.world.history.listeners.append(self._heard)

    def _heard(self, happening: Happening) -> None:
        if happening.kind == velero.BACKUP and happening.before is None and happening.after is not None:
            self._judge_backup(happening.after)
        if happening.kind in (NAMESPACE, velero.SCHEDULE):
            self.versions += 1
            self._judge_version()

    def _judge_backup(self, backup: Document) -> None:
        annotations = backup["metadata"].get("annotations", {})
        for name in backup["spec"].get("includedNamespaces", ()):
            slot = (annotations.get(PROTECTION_CLASS, ""), name, annotations.get(SLOT, ""))
            if slot in self._slots:
                self.doubled.append(" ".join(slot))
            self._slots.add(slot)

    def _judge_version(self) -> None:
        now = self._scene.clock()
        present = self._scene.world.history.present(NAMESPACE)
        members = self._scene.members
        known = set()
        for key, namespace in present.items():
            identity = key.name, namespace["metadata"]["uid"]
            known.add(identity)
            if self._is_exempt(namespace, now):
                self._may_leave[key.name] = now
            if members[key.name]:
                self._since.setdefault(identity, now)
            elif identity in self._since:
                is_old = now - self._since.pop(identity) > GRACE
                may_leave = now - self._may_leave.get(key.name, datetime.min.replace(tzinfo=now.tzinfo)) <= GRACE
                if is_old and not may_leave and "deletionTimestamp" not in namespace["metadata"]:
                    self.unprotected.append(f"{key.name} at {now.isoformat()}")
        for identity in self._since.keys() - known:
            del self._since[identity]

    @staticmethod
    def _is_exempt(namespace: Document, now: datetime) -> bool:
        labels = namespace["metadata"].get("labels") or {}
        annotations = namespace["metadata"].get("annotations") or {}
        if labels.get(EXCLUDE) == "true":
            return True
        is_none = labels.get(LABEL) == "none" and bool(annotations.get(REASON))
        return is_none and datetime.fromisoformat(annotations.get(UNTIL) or "2000-01-01T00:00:00Z") > now


class ProtectionScene(ScheduleScene):
    """The world of Schedules, with classes and Protections."""

    def __init__(self, ending: Ending = in_a_moment, ttl: timedelta | None = None, version: str = "v1.18.3") -> None:
        super().__init__(
            version=version,
            ending=ending,
            ttl=ttl,
            more=(Definition(CLASS), Definition(PROTECTION, status=False), Definition(CLAIM)),
        )
        self.judge = Judge(self)
        self.keeper: Process | None = None
        self.keepers: list[Visitor] = []

    # What people do

    def classify(self, name: str, schedule: str = "*/10 * * * *", **spec: object) -> Document:
        """Create a ProtectionClass, or write its spec anew."""
        key = Key("", name)
        body = {"spec": {"schedule": schedule, **spec}}
        if key in self.world.history.present(CLASS):
            nothing: dict[str, Any] = {"default": None, "namespacesPerBackup": None, "schedulePolicy": None}
            return done(self.world.merge(CLASS, key, {"spec": {**nothing, **body["spec"]}}, "admin"))
        return done(self.world.create(CLASS, {"metadata": {"name": name}, **body}, "admin"))

    def remove_class(self, name: str) -> None:
        """Delete a class, as if admission had not been asked."""
        self.world.delete(CLASS, Key("", name))

    def ask(self, name: str, asked: str | None = None, reason: str | None = None, until: str | None = None) -> None:
        """Create a namespace, or change what it says about its protection."""
        metadata: Document = {"labels": {LABEL: asked}, "annotations": {REASON: reason, UNTIL: until}}
        key = Key("", name)
        if key not in self.world.history.present(NAMESPACE):
            kept = {field: {key: text for key, text in words.items() if text} for field, words in metadata.items()}
            done(self.world.create(NAMESPACE, {"metadata": {"name": name, **kept}}, "admin"))
        else:
            self.world.merge(NAMESPACE, key, {"metadata": metadata}, "admin")

    def label(self, name: str, **labels: str | None) -> None:
        """Change other labels of a namespace."""
        self.world.merge(NAMESPACE, Key("", name), {"metadata": {"labels": labels}}, "admin")

    def claim(self, namespace: str, name: str, volume: str = "pv") -> None:
        """Create a claim in a namespace, with a volume or without."""
        body = {"metadata": {"name": name}, "spec": {"volumeName": volume}}
        done(self.world.create(CLAIM, body, "user", namespace))

    def snapshot(self, backup: str, count: int) -> None:
        """Let a Backup have so many snapshots."""
        status = {"status": {"csiVolumeSnapshotsCompleted": count}}
        done(self.world.merge(velero.BACKUP, Key(HOME, backup), status, "velero"))

    def drop(self, name: str) -> None:
        """Delete a namespace."""
        self.world.delete(NAMESPACE, Key("", name))

    # What is there

    @property
    def groups(self) -> dict[str, list[str]]:
        """The namespaces of each Schedule of a class."""
        found = self.world.history.present(velero.SCHEDULE)
        marks = {key: row["metadata"].get("annotations", {}) for key, row in found.items()}
        ours = {key.name: row for key, row in found.items() if PROTECTION_CLASS in marks[key]}
        return {name: row["spec"]["template"]["includedNamespaces"] for name, row in sorted(ours.items())}

    @property
    def members(self) -> Counter[str]:
        """In how many Schedules each namespace is."""
        found = self.world.history.present(velero.SCHEDULE).values()
        return Counter(name for row in found for name in row["spec"]["template"].get("includedNamespaces", ()))

    def place(self, name: str) -> list[str]:
        """Return the Schedules that take a namespace."""
        return [group for group, names in self.groups.items() if name in names]

    def protection(self, name: str) -> Any:  # noqa: ANN401 - JSON
        """Return the status of the Protection of a namespace; None if there is none."""
        found = self.world.get(PROTECTION, Key(name, PROTECTION_NAME))
        return None if isinstance(found, Failure) else found["status"]

    def verdict(self, name: str) -> tuple[str, str]:
        """Return whether a namespace is protected, as its Protection says, and the reason."""
        (condition,) = self.protection(name)["conditions"]
        return condition["status"], condition["reason"]

    def gaps(self, name: str) -> list[str]:
        """Return the gaps that the Protection of a namespace names."""
        return [each["reason"] for each in (self.protection(name) or {}).get("notCovered", ())]

    def class_status(self, name: str) -> Any:  # noqa: ANN401 - JSON
        """Return the status of a class."""
        return done(self.world.get(CLASS, Key("", name))).get("status", {})

    def uids_of(self, backup: str) -> dict[str, str]:
        """Return the UIDs that a Backup records."""
        text = done(self.world.get(velero.BACKUP, Key(HOME, backup)))["metadata"]["annotations"][NAMESPACE_UIDS]
        return msgspec.json.decode(text, type=dict[str, str])

    @property
    def backups(self) -> list[str]:
        """The Backups, in the order of their names."""
        return sorted(key.name for key in self.world.history.present(velero.BACKUP))

    # The operators

    def start(self, dies: Moment | None = None, workers: int = 2, timing: LoopTiming = CALM) -> Process:
        """Start the operator of Schedules, which records the UIDs of namespaces."""
        visitor = Visitor(self.world, weather=self.weather, role=Role("schedules", _SEES_NAMESPACES))
        self.visitors.append(visitor)
        controller = Schedules(HOME, self.settings, skew=timedelta, records_namespaces=True)
        self.process = Process(visitor, controller, dies=dies, workers=workers, timing=timing, emit=self.notes.append)
        return self.process

    def keep(self, dies: Moment | None = None, workers: int = 4, leads: Turnover | None = None) -> Process:
        """Start the operator of protection."""
        visitor = Visitor(self.world, weather=self.weather, role=Role("protection"))
        self.keepers.append(visitor)
        self.keeper = Process(
            visitor,
            ProtectionByLabel(HOME),
            dies=dies,
            workers=workers,
            timing=CALM,
            election=leads,
            may_write=lambda: leads is None or leads.is_leader,
            emit=self.notes.append,
        )
        return self.keeper

    async def end(self) -> None:
        """End both operators where they stand."""
        await self.stop()
        if self.keeper is not None:
            await self.keeper.kill()
            self.keeper = None

    @property
    def kept(self) -> list[Write]:
        """Everything that the operator of protection has written, over all its lives."""
        return [write for visitor in self.keepers for write in visitor.writes if write.refused is None]
