"""Backups that are not deleted for now: what a policy protects, and runs that are kept, read by a restore or in doubt.

A policy protects the young backups, and the newest good ones of a namespace. While one cannot be read that may apply
there, or the clocks differ, nobody knows what it protects.
"""

from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import Any

import msgspec

from foresail.api import velero
from foresail.api.instants import stamp
from foresail.api.nonadmin import NEVER_BACKED_UP
from foresail.backups import good_backups, has_expired, in_order
from foresail.cron.duration import length_of
from foresail.selfservice.reasons import Reason
from foresail.selfservice.requests.force_deleted import forced_at, is_busy
from foresail.selfservice.requests.rules import own, own_deletion
from foresail.selfservice.requests.status import FALSE, IN_DELETION
from foresail.selfservice.requests.view import RequestView
from foresail.selfservice.rows.requests import RequestRow, Status
from foresail.selfservice.rows.velero import VeleroRow
from foresail.tenancy.policies import PolicyRow
from foresail.tenancy.volume_policies import VOLUME_POLICIES

RECHECK = timedelta(minutes=5)
"""How often a deletion that a restore holds is judged again."""

_EXCLUDED = "excludedNamespaceScopedResources"
_FILTERS = ("labelSelector", "orLabelSelectors", "includedNamespaceScopedResources", _EXCLUDED)
_COPIES = ("snapshotMoveData", "defaultVolumesToFsBackup")  # each copies the data of volumes if it is true


class Protected(msgspec.Struct, frozen=True):
    """Why a backup is not deleted, and from when on it may be; None if no instant is known."""

    message: str
    until: datetime | None = None


def protection(view: RequestView, now: datetime) -> Protected | None:
    """Return why a backup whose deletion is requested stays for now; None if it may be deleted."""
    row = own(view)
    policy = view.policy
    is_asked = view.request.is_to_be_deleted or view.request.is_to_be_forced
    if row is None or not is_asked or is_under_way(view):
        return None
    by_policy = _too_young(view, row, policy, now) or _among_the_last(view, row, policy, now) if policy else None
    is_run = bool(view.request.schedule_uid) and not view.request.is_to_be_forced
    return _in_doubt(view, row, now) or by_policy or (in_use(view, now) if is_run else None)


def in_use(view: RequestView, now: datetime) -> Protected | None:
    """Return why a backup stays that its owner keeps, if a schedule made it, that a restore reads, or in doubt.

    A rule cannot take back what it has asked for, so what is kept or read since then is found here.
    """
    request = view.request
    name = request.key.name
    if request.is_pinned and request.schedule_uid:
        undo = f"foresail backup keep {name} --undo --namespace {request.key.namespace}"
        return Protected(f"NonAdminBackup {name} is kept from deletion. To delete it: {undo}")
    if view.is_restored:
        return Protected(f"A restore reads NonAdminBackup {name}, which is deleted when that has ended", now + RECHECK)
    if view.doubt and is_by_rule(request):
        return Protected(f"{view.doubt}, so no old run is deleted", now + RECHECK)
    return None


def _in_doubt(view: RequestView, row: VeleroRow, now: datetime) -> Protected | None:
    """Return why a backup stays that its owner deletes, while nobody knows whether a policy protects it."""
    if not view.doubt or is_by_rule(view.request) or not _can_be_protected(row):
        return None
    return Protected(f"{view.doubt}, so NonAdminBackup {view.request.key.name} is not deleted", now + RECHECK)


def _can_be_protected(row: VeleroRow) -> bool:
    return row.phase in velero.RESTORABLE or is_busy(row)


def protects(policy: PolicyRow) -> bool:
    """Whether a policy protects any backups from deletion by their tenants."""
    return bool(policy.spec.deletion.keep_last_good or length_of(policy.spec.deletion.minimum_age or "0s"))


def is_by_rule(request: RequestRow) -> bool:
    """Whether `keepLast` has requested the deletion of a run: then it waits for the end of every doubt."""
    return request.is_to_be_deleted and bool(request.schedule_uid) and request.delete_after is not None


def is_under_way(view: RequestView) -> bool:
    """Whether the deletion has begun: what is partly deleted is not kept."""
    return own_deletion(view) is not None or forced_at(view.request.status) is not None


def is_protected(status: Status) -> bool:
    """Whether a status reports that the requested deletion is not carried out yet."""
    condition = status.condition(IN_DELETION)
    return condition is not None and condition.status == FALSE and condition.reason == Reason.DELETION_PROTECTED


def good_ones(rows: Iterable[VeleroRow]) -> tuple[VeleroRow, ...]:
    """Return the good backups of a namespace."""
    return tuple(row for row in good_backups(in_order(rows)) if not row.is_terminating)


class Coverage(msgspec.Struct, frozen=True):
    """What a backup covers: its row, and its spec, decoded once for all comparisons."""

    row: VeleroRow
    spec: dict[str, Any]

    @property
    def filters(self) -> dict[str, Any]:
        """What limits a backup to a part of its namespace; our own kinds are never backed up."""
        document = {name: self.spec[name] for name in _FILTERS if self.spec.get(name)}
        excluded = [item for item in document.pop(_EXCLUDED, ()) if item not in NEVER_BACKED_UP]
        return {**document, _EXCLUDED: excluded} if excluded else document


def coverage(row: VeleroRow) -> Coverage:
    """Return what a backup covers."""
    return Coverage(row, msgspec.json.decode(row.spec, type=dict[str, Any]))


def replaces(newer: Coverage, older: Coverage) -> bool:
    """Whether a later backup covers what an earlier one does, with the data of its volumes, and lives as long."""
    is_later = newer.row.started > older.row.started and _lives_as_long(newer.row, older.row)
    return is_later and newer.filters in ({}, older.filters) and _saves_as_much(newer.spec, older.spec)


def _lives_as_long(newer: VeleroRow, older: VeleroRow) -> bool:
    return newer.expires is None or (older.expires is not None and newer.expires >= older.expires)


def _saves_as_much(mine: dict[str, Any], other: dict[str, Any]) -> bool:
    """Whether a backup switches off nothing that another one does for volumes; a field that is not set is a default."""
    copies = all(mine.get(name) is True or mine.get(name) == other.get(name) for name in _COPIES)
    snapshots = mine.get("snapshotVolumes") is not False or other.get("snapshotVolumes") is False
    return copies and snapshots and _resource_policy(mine) in ("", _resource_policy(other))


def _resource_policy(spec: dict[str, Any]) -> str:
    """Return the resource policy of an administrator; ours follow from `snapshotVolumes` and leave nothing else out."""
    name: str = (spec.get("resourcePolicy") or {}).get("name", "")
    return "" if name in VOLUME_POLICIES else name


def _too_young(view: RequestView, row: VeleroRow, policy: PolicyRow, now: datetime) -> Protected | None:
    length = length_of(policy.spec.deletion.minimum_age or "0s")
    if not length or not _can_be_protected(row):
        return None
    until = view.request.created + length
    if now >= until:
        return None
    text = f"SelfServicePolicy {policy.name} keeps backups for {policy.spec.deletion.minimum_age}"
    return Protected(f"{text}; NonAdminBackup {view.request.key.name} is deleted at {stamp(until)}", until)


def is_among_the_last(row: VeleroRow, good: Iterable[VeleroRow], kept: int, now: datetime) -> bool:
    """Whether `keepLastGood` keeps a backup: it is good, and too few of the good ones replace it."""
    good = tuple(good)
    if not kept or row.key not in {backup.key for backup in good}:
        return False
    mine = coverage(row)
    lasting = (backup for backup in good if not has_expired(backup.expires, now))
    return sum(replaces(coverage(backup), mine) for backup in lasting) < kept


def _among_the_last(view: RequestView, row: VeleroRow, policy: PolicyRow, now: datetime) -> Protected | None:
    kept = policy.spec.deletion.keep_last_good
    if not is_among_the_last(row, view.good, kept, now):
        return None
    text = f"SelfServicePolicy {policy.name} keeps the last {kept} completed backups"
    newer_ones = f"{kept} newer ones with at least its contents and lifetime complete"
    return Protected(f"{text}; NonAdminBackup {view.request.key.name} is deleted after {newer_ones}")
