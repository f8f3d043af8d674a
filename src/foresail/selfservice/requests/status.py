"""The status of a request: how conditions change, which way phases go, and the smallest patch from one to the next."""

from datetime import datetime
from typing import Any

import msgspec

from foresail.api.instants import stamp
from foresail.api.nonadmin import Condition
from foresail.reporting import LONGEST_MESSAGE, dated, merge_patch
from foresail.selfservice.families import Family
from foresail.selfservice.reasons import Reason
from foresail.selfservice.rows.requests import Copy, Status
from foresail.selfservice.rows.velero import Counts

NEW, BACKING_OFF, CREATED, DELETING = "New", "BackingOff", "Created", "Deleting"
_ORDER = ("", NEW, BACKING_OFF, CREATED, DELETING)

ACCEPTED, AUTHORIZED, QUEUED, SUCCEEDED = "Accepted", "Authorized", "Queued", "Succeeded"
DATA_INCOMPLETE, IN_DELETION, ADOPTED = "DataIncomplete", "Deleting", "Adopted"
TRUE, FALSE, UNKNOWN = "True", "False", "Unknown"


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
    conditions = with_condition(status.conditions, wanted, generation, now)
    return msgspec.structs.replace(status, conditions=conditions) if conditions != status.conditions else status


def with_condition(
    conditions: tuple[Condition, ...], wanted: NewCondition, generation: int, now: datetime
) -> tuple[Condition, ...]:
    """Return the conditions with this one in its place, or at their end."""
    message = wanted.message[:LONGEST_MESSAGE]
    new = Condition(wanted.type, wanted.status, wanted.reason.value, message, stamp(now), generation)
    by_type = {condition.type: condition for condition in conditions}
    return tuple({**by_type, new.type: dated(conditions, new)}.values())


def remove_condition(status: Status, kind: str) -> Status:
    """Return the status without a condition."""
    left = tuple(condition for condition in status.conditions if condition.type != kind)
    return msgspec.structs.replace(status, conditions=left)


def changed(before: Status, after: Status) -> list[Condition]:
    """Return the conditions with another status or another reason than before."""
    old = {condition.type: (condition.status, condition.reason) for condition in before.conditions}
    return [
        condition for condition in after.conditions if old.get(condition.type) != (condition.status, condition.reason)
    ]


def patch_body(family: Family, before: Status, after: Status) -> dict[str, object]:
    """Return the merge patch of the status that leads from one to the other; empty if nothing differs."""
    if before == after:
        return {}
    return merge_patch(_wire(family, before), _wire(family, after))


def _wire(family: Family, status: Status) -> dict[str, Any]:
    texts = {"phase": status.phase, "startingDeadline": status.starting_deadline}
    body: dict[str, Any] = {name: text for name, text in texts.items() if text}
    if status.conditions:
        body["conditions"] = [msgspec.to_builtins(condition) for condition in status.conditions]
    if status.velero != Copy():
        body[family.reference] = _copied(status.velero)
    if status.deletion != Copy():
        body["veleroDeleteBackupRequest"] = _copied(status.deletion)
    if status.position is not None:
        body["queueInfo"] = {"estimatedQueuePosition": status.position}
    for name, counts in ((family.transfers, status.transfers), (family.volumes, status.volumes)):
        if counts:
            body[name] = _counted(counts)
    for name, results in (("restoredItems", status.restored), ("volumesLeftOut", status.volumes_left_out)):
        if results is not None:
            body[name] = msgspec.to_builtins(results)
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
