"""The objects that protection makes: the Schedule of a group, and the Protection of a namespace."""

from collections.abc import Sequence
from typing import Any

import msgspec

from foresail.api import velero
from foresail.api.marks import NAMESPACE_UID, NOT_BACKED_UP, PROTECTION_CLASS, SCHEDULE_POLICY_LABEL
from foresail.api.protection import PROTECTION, ProtectionStatus
from foresail.plan import Create, Delete, Key, Patch
from foresail.protection.rows import ClassRow, NamespaceRow, ProtectionRow, ScheduleRow
from foresail.reporting import merge_patch

_NAMESPACES = "includedNamespaces"


def create_schedule(key: Key, of: ClassRow, members: Sequence[str]) -> Create:
    """Return the creation of the Schedule of a group, recognisable by its class."""
    template = {**of.template, _NAMESPACES: list(members)}
    body = {"metadata": {"labels": _labels(of)}, "spec": {"schedule": of.spec.schedule, "template": template}}
    return Create(velero.SCHEDULE, key, body, {PROTECTION_CLASS: of.name})


def patch_schedule(row: ScheduleRow, of: ClassRow | None, members: Sequence[str]) -> Patch | None:
    """Return what brings a Schedule to its members, and to its class if that can be used; None if nothing differs.

    Whether it is paused is for people to decide.
    """
    template: dict[str, Any] = msgspec.json.decode(row.template, type=dict[str, Any])
    wanted = template if of is None else of.template
    wanted = {**wanted, _NAMESPACES: list(members)}
    if set(row.members) == set(members) and len(row.members) == len(members):
        wanted[_NAMESPACES] = template[_NAMESPACES]  # in whichever order
    spec: dict[str, Any] = {}
    if differences := merge_patch(template, wanted):
        spec["template"] = differences
    if of is not None and row.text != of.spec.schedule:
        spec["schedule"] = of.spec.schedule
    if row.owns_backups:
        spec["useOwnerReferencesInBackup"] = None  # they would be deleted with the Schedule of an empty group
    body: dict[str, Any] = {"spec": spec} if spec else {}
    if of is not None and (labels := _label_changes(row, of)):
        body["metadata"] = {"labels": labels}
    return Patch(velero.SCHEDULE, row.key, body, row.version) if body else None


def delete_schedule(row: ScheduleRow) -> Delete:
    """Return the deletion of a Schedule without namespaces: to Velero, none would mean all."""
    return Delete(velero.SCHEDULE, row.key, row.uid, row.version)


def _labels(of: ClassRow) -> dict[str, str]:
    named = of.spec.schedule_policy
    return {PROTECTION_CLASS: of.name, **({SCHEDULE_POLICY_LABEL: named} if named is not None else {})}


def _label_changes(row: ScheduleRow, of: ClassRow) -> dict[str, str | None]:
    wanted = _labels(of)
    changes: dict[str, str | None] = {key: text for key, text in wanted.items() if row.labels.get(key) != text}
    if SCHEDULE_POLICY_LABEL in row.labels and SCHEDULE_POLICY_LABEL not in wanted:
        changes[SCHEDULE_POLICY_LABEL] = None
    return changes


def create_protection(key: Key, namespace: NamespaceRow, status: ProtectionStatus) -> Create:
    """Return the creation of a Protection, which no backup takes: it would bring back an old status."""
    body = {"metadata": {"labels": {NOT_BACKED_UP: "true"}}, "status": msgspec.to_builtins(status)}
    return Create(PROTECTION, key, body, {NAMESPACE_UID: namespace.uid})


def patch_protection(row: ProtectionRow, status: ProtectionStatus) -> Patch | None:
    """Return the patch from the status of a Protection to another; None if nothing differs."""
    body = merge_patch(msgspec.to_builtins(row.status), msgspec.to_builtins(status))
    return Patch(PROTECTION, row.key, {"status": body}, row.version) if body else None
