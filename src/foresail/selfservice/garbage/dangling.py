"""Waiting Velero objects whose namespace was deleted: Velero would run them in a namespace of another team."""

from datetime import datetime

import msgspec

from foresail import deletion_writes
from foresail.plan import Level, Note, Plan, Subject
from foresail.selfservice.families import Family
from foresail.selfservice.reasons import Reason
from foresail.selfservice.requests.rules import UNSEEN
from foresail.selfservice.rows.velero import VeleroRow
from foresail.tenancy.namespaces import NamespaceRow


class DanglingView(msgspec.Struct, frozen=True):
    """A waiting Velero Backup or Restore, and the namespace of its name as it is now."""

    family: Family
    velero: VeleroRow
    namespace: NamespaceRow | None
    target: NamespaceRow | None = None  # the other namespace that a Restore is into


def missing_namespace(view: DanglingView) -> str:
    """Return the namespace of a waiting Velero object that is deleted, being deleted or re-created; empty if none."""
    row = view.velero
    if row.owner is None or not row.is_recorded or not row.is_waiting:
        return ""
    if not _is_live(view.namespace, row.namespace_uid):
        return row.owner.namespace
    return row.target if row.target_uid and not _is_live(view.target, row.target_uid) else ""


def _is_live(namespace: NamespaceRow | None, uid: str) -> bool:
    return namespace is not None and namespace.uid == uid and not namespace.is_terminating


def decide(view: DanglingView, now: datetime) -> Plan:
    """Delete a waiting Velero object whose namespace is no longer the recorded one."""
    row = view.velero
    family = view.family
    where = missing_namespace(view)
    if row.is_terminating or not where:
        return Plan()
    certain = row.created + UNSEEN  # the namespace may be so new that our watch has not delivered it
    if now < certain:
        return Plan(wake_at=certain)
    kind = family.velero.name
    text = f"Deleted waiting {kind} {row.key.name}: its namespace {where} was deleted; create a new {family.kind.name}"
    note = Note(family.velero, row.key, row.uid, Reason.NAMESPACE_GONE.value, text, Level.WARNING)
    gone = deletion_writes.delete_waiting(family.velero, row.key, row.uid)
    return Plan((gone,), notes=(note,), subject=Subject(family.velero, row.key, row.uid))
