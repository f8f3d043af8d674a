"""The status of a request: how conditions change, which way phases go, and the smallest patch from one to the next."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

import msgspec

from foresail.api.instants import stamp
from foresail.api.nonadmin import Condition
from foresail.selfservice.families import Family
from foresail.selfservice.reasons import Reason
from foresail.selfservice.rows.requests import Copy, Status
from foresail.selfservice.rows.velero import Counts

NEW, BACKING_OFF, CREATED, DELETING = "New", "BackingOff", "Created", "Deleting"
_ORDER = ("", NEW, BACKING_OFF, CREATED, DELETING)

ACCEPTED, QUEUED, IN_DELETION, SUCCEEDED, NOTABLE = "Accepted", "Queued", "Deleting", "Succeeded", "Notable"
AUTHORIZED = "Authorized"
TRUE, FALSE, UNKNOWN = "True", "False", "Unknown"

_LONGEST_MESSAGE = 2048


def forward(before: str, after: str) -> str:
    """Return the later of two phases: a phase is never left for an earlier one."""
    return max(before, after, key=lambda phase: _ORDER.index(phase) if phase in _ORDER else 0)


class Said(msgspec.Struct, frozen=True):
    """What a condition is to say."""

    type: str
    status: str
    reason: Reason
    message: str


def told(status: Status, said: Said, generation: int, now: datetime) -> Status:
    """Return the status with a condition that says this; its time is kept while its status is the same."""
    old = status.condition(said.type)
    since = old.last_transition_time if old is not None and old.status == said.status else stamp(now)
    message = said.message[:_LONGEST_MESSAGE]
    new = Condition(said.type, said.status, said.reason.value, message, since, generation)
    if new == old:
        return status
    rest = tuple(each for each in status.conditions if each.type != said.type)
    where = status.conditions.index(old) if old is not None else len(rest)
    return msgspec.structs.replace(status, conditions=(*rest[:where], new, *rest[where:]))


def untold(status: Status, kind: str) -> Status:
    """Return the status without a condition."""
    left = tuple(each for each in status.conditions if each.type != kind)
    return msgspec.structs.replace(status, conditions=left)


def changed(before: Status, after: Status) -> list[Condition]:
    """Return the conditions that say something new: another status, or another reason."""
    old = {each.type: (each.status, each.reason) for each in before.conditions}
    return [each for each in after.conditions if old.get(each.type) != (each.status, each.reason)]


def patch_body(family: Family, before: Status, after: Status) -> dict[str, object]:
    """Return the merge patch of the status that leads from one to the other; empty if nothing differs."""
    if before == after:
        return {}
    return difference(_wire(family, before), _wire(family, after))


def difference(before: Mapping[str, Any], after: Mapping[str, Any]) -> dict[str, object]:
    """Return what must be merged into the one to get the other; null takes away."""
    found: dict[str, object] = {name: None for name in before if name not in after}
    for name, value in after.items():
        old = before.get(name)
        if old == value:
            continue
        if isinstance(old, Mapping) and isinstance(value, Mapping):
            found[name] = difference(old, value)
        else:
            found[name] = value
    return found


def _wire(family: Family, status: Status) -> dict[str, Any]:
    body: dict[str, Any] = {}
    if status.phase:
        body["phase"] = status.phase
    if status.conditions:
        body["conditions"] = [msgspec.to_builtins(each) for each in status.conditions]
    if status.velero != Copy():
        body[family.reference] = _copied(status.velero)
    if status.deletion != Copy():
        body["veleroDeleteBackupRequest"] = _copied(status.deletion)
    if status.position is not None:
        body["queueInfo"] = {"estimatedQueuePosition": status.position}
    for name, counts in ((family.transfers, status.transfers), (family.volumes, status.volumes)):
        if counts:
            body[name] = _counted(counts)
    return body


def _copied(copy: Copy) -> dict[str, Any]:
    named = {"nacuuid": copy.nacuuid, "name": copy.name, "namespace": copy.namespace}
    body: dict[str, Any] = {name: value for name, value in named.items() if value}
    if copy.spec != "{}":
        body["spec"] = msgspec.json.decode(copy.spec)
    body["status"] = msgspec.json.decode(copy.mirror)
    return body


def _counted(counts: Counts) -> dict[str, int]:
    return dict(counts)
