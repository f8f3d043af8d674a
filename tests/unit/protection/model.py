"""A cluster in memory: what the writes of Plans do to Schedules, one by one, judged after each."""

from collections import Counter
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

import msgspec

from foresail.api.marks import PROTECTION_CLASS
from foresail.plan import Action, Create, Delete, Key, Patch
from foresail.protection.decide import decide_assignment
from foresail.protection.rows import BackupRow, ClassRow, NamespaceRow, ScheduleRow
from foresail.protection.rules import choice
from foresail.protection.view import AssignmentView, Classes
from tests.unit.protection.rows import NOON, backup, classes, schedule


@dataclass
class Model:
    """Namespaces, classes, Schedules and Backups, and what was wrong at any moment."""

    namespaces: dict[str, NamespaceRow] = field(default_factory=dict)
    classes: dict[str, ClassRow] = field(default_factory=dict)
    schedules: dict[str, ScheduleRow] = field(default_factory=dict)
    backups: list[BackupRow] = field(default_factory=list)
    now: datetime = NOON
    writes: int = 0
    protected: set[str] = field(default_factory=set)
    faults: list[str] = field(default_factory=list)

    @property
    def known(self) -> Classes:
        """The classes, as decisions see them."""
        return classes(*self.classes.values())

    def view(self) -> AssignmentView:
        """Return what the decision sees."""
        rows = tuple(self.schedules.values())
        runs = {row.name: tuple(run for run in self.backups if run.schedule == row.name) for row in rows}
        return AssignmentView("velero", dict(self.namespaces), self.known, rows, runs)

    def settle(self, most: int = 50) -> int:
        """Decide and write until nothing differs, or only so many writes; return how many there were."""
        before = self.writes
        while plan := decide_assignment(self.view(), self.now).actions:
            for action in plan:
                if self.writes - before >= most:
                    return self.writes - before
                self.write(action)
        return self.writes - before

    def write(self, action: Action) -> None:
        """Do what the API server does, and judge what there is then."""
        self.writes += 1
        name = action.key.name
        match action:
            case Create(body=body):
                assert name not in self.schedules
                spec: Any = body["spec"]
                of = action.mark[PROTECTION_CLASS]
                self._put(name, of, spec["schedule"], spec["template"], dict(body["metadata"]["labels"]))  # type: ignore[index]
            case Patch(body=body):
                row = self.schedules[name]
                assert action.resource_version == row.version
                spec = body.get("spec", {})
                template = {**msgspec.json.decode(row.template), **spec.get("template", {})}
                labels = {**row.labels, **body.get("metadata", {}).get("labels", {})}  # type: ignore[attr-defined]
                self._put(
                    name,
                    row.protection_class,
                    spec.get("schedule", row.text),
                    {key: value for key, value in template.items() if value is not None},
                    {key: value for key, value in labels.items() if value is not None},
                )
            case Delete(uid=uid):
                assert self.schedules.pop(name).uid == uid
            case _:
                raise AssertionError(action)
        self.judge()

    def _put(self, name: str, of: str, text: str, template: dict[str, Any], labels: dict[str, str]) -> None:
        old = self.schedules.get(name)
        self.schedules[name] = schedule(
            name,
            *template["includedNamespaces"],
            of=of,
            uid=old.uid if old is not None else f"uid-{name}-{self.writes}",
            version=str(self.writes),
            template=msgspec.json.encode(template),
            text=text,
            labels=labels,
        )

    def run(self, name: str, phase: str) -> None:
        """Let a Schedule run once."""
        self.now += timedelta(minutes=10)
        row = self.schedules[name]
        uids = {each: self.namespaces[each].uid for each in row.members if each in self.namespaces}
        self.backups.append(backup(name, self.now, phase=phase, uids=uids, schedule_uid=row.uid))

    def delete_namespace(self, name: str) -> None:
        """Delete a namespace."""
        self.namespaces.pop(name, None)
        self.protected.discard(name)

    def judge(self) -> None:
        """Note what must never be: a namespace that was in a Schedule and is in none, or in two of one class."""
        count = Counter(member for row in self.schedules.values() for member in row.members)
        for name in list(self.protected):
            if choice(self.namespaces[name], self.known, self.now).leaves:
                self.protected.discard(name)
            elif not count[name]:
                self.faults.append(f"{name} is in no Schedule")
        self.protected |= {name for name in count if name in self.namespaces}
        twice = Counter((row.protection_class, member) for row in self.schedules.values() for member in row.members)
        self.faults += [f"{member} is twice in {of}" for (of, member), number in twice.items() if number > 1]
        if any(not row.members for row in self.schedules.values()):
            self.faults.append("a Schedule without namespaces takes all of them")

    def place(self, name: str) -> set[str]:
        """Return the Schedules that take a namespace."""
        return {row.name for row in self.schedules.values() if name in row.members}


def key(name: str) -> Key:
    """Return the key of a Schedule."""
    return Key("velero", name)
