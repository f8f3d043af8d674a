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

ACCEPTED, AUTHORIZED, QUEUED, SUCCEEDED = "Accepted", "Authorized", "Queued", "Succeeded"
DATA_INCOMPLETE, IN_DELETION, ADOPTED = "DataIncomplete", "Deleting", "Adopted"
TRUE, FALSE, UNKNOWN = "True", "False", "Unknown"

_LONGEST_MESSAGE = 2048


def forward(before: str, after: str) -> str:
    """Return the later of two phases: a phase is never left for an earlier one."""
    return max(before, after, key=lambda phase: _ORDER.index(phase) if phase in _ORDER else 0)


class NewCondition(msgspec.Struct, frozen=True):
    """A condition to set; its time and generation are added then."""

    type: str
    status: str
    reason: Reason
    message: str


def set_condition(status: Status, wanted: NewCondition, generation: int, now: datetime) -> Status:
    """Return the status with this condition; its transition time changes only with its status."""
    old = status.condition(wanted.type)
    since = old.last_transition_time if old is not None and old.status == wanted.status else stamp(now)
    message = wanted.message[:_LONGEST_MESSAGE]
    new = Condition(wanted.type, wanted.status, wanted.reason.value, message, since, generation)
    if new == old:
        return status
    rest = tuple(each for each in status.conditions if each.type != wanted.type)
    where = status.conditions.index(old) if old is not None else len(rest)
    return msgspec.structs.replace(status, conditions=(*rest[:where], new, *rest[where:]))


def remove_condition(status: Status, kind: str) -> Status:
    """Return the status without a condition."""
    left = tuple(each for each in status.conditions if each.type != kind)
    return msgspec.structs.replace(status, conditions=left)


def changed(before: Status, after: Status) -> list[Condition]:
    """Return the conditions with another status or another reason than before."""
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
    if status.starting_deadline:
        body["startingDeadline"] = status.starting_deadline
    for name, counts in ((family.transfers, status.transfers), (family.volumes, status.volumes)):
        if counts:
            body[name] = _counted(counts)
    if status.restored is not None:
        body["restoredItems"] = msgspec.to_builtins(status.restored)
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
