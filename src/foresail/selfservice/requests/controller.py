"""The controllers of requests and of their hand-overs: which requests an event concerns, and who decides about one."""

from collections.abc import Iterable, Iterator
from datetime import datetime
from typing import Any

import msgspec

from foresail.kube.background_reads import BackgroundReads
from foresail.kube.controller import LowPriority
from foresail.kube.execute import Result
from foresail.kube.reflector import Change
from foresail.plan import Key, PartKey, Plan
from foresail.selfservice.access.reader import AccessReader
from foresail.selfservice.access.view import PREFIXES
from foresail.selfservice.queue import window
from foresail.selfservice.queue.window import WINDOW, WindowView
from foresail.selfservice.reasons import Reason
from foresail.selfservice.requests import outcome, protection, rules
from foresail.selfservice.requests.decide import decide
from foresail.selfservice.requests.memory import Memory
from foresail.selfservice.requests.observe import Access, observe
from foresail.selfservice.requests.state import ClusterState, FamilyState, lacks_quota, point_key
from foresail.selfservice.requests.status import BACKING_OFF, CREATED, DELETING
from foresail.selfservice.requests.view import RequestView, Takes
from foresail.selfservice.rows.locations import LocationRow
from foresail.selfservice.rows.requests import RequestRow
from foresail.selfservice.rows.velero import DeletionRow, DownloadRequestRow, MovementRow, VeleroRow
from foresail.tenancy.namespaces import NamespaceRow
from foresail.tenancy.points import ClassRestoresRow
from foresail.tenancy.policies import PolicyRow


class Requests:
    """NonAdminBackups and NonAdminRestores: maps events about everything that they depend on to them."""

    view = RequestView
    decide = staticmethod(decide)

    def __init__(
        self, cluster: ClusterState, access: AccessReader, background_reads: BackgroundReads[Any, Any], memory: Memory
    ) -> None:
        self.parts = tuple(family.family.kind.plural for family in cluster.families)
        self._cluster = cluster
        self._access = access
        self._background_reads = background_reads
        self._memory = memory

    # Events to keys

    def keys_for_request(self, family: FamilyState, change: Change[RequestRow]) -> Iterator[Key]:
        """Return the request, and those that wait for what it used or is."""
        old = change.old
        new = change.new
        yield family.key(change.key)
        if new is None and old is None:
            return
        namespace = change.key.namespace
        if new is None or (old is not None and _needs_no_quota_now(old, new)):
            yield from family.keys_short_of_quota(namespace)
        if family is self._cluster.restores:
            if new is not None and outcome.has_ended(new) and not (old is not None and outcome.has_ended(old)):
                yield from family.keys(self._cluster.past_history(namespace))
            return
        if old is None or new is None or _restorability(old) != _restorability(new):
            yield from self._restores_of(change.key)

    def keys_for_velero(self, family: FamilyState, change: Change[VeleroRow]) -> Iterator[Key]:
        """Return the request of a Velero object, the restores from it, and those that it lets be deleted."""
        row = change.new or change.old
        if row is None:
            return
        is_another = change.old is None or change.new is None or change.old.phase != change.new.phase
        if row.protection_class and is_another:
            yield from self._restores_of(point_key(row.key.name))
        if row.owner is not None:
            yield family.key(row.owner)
            if family is self._cluster.backups and is_another:
                yield from self._restores_of(row.owner)
                protected = family.requests.by("blocked by", (Reason.DELETION_PROTECTED, row.owner.namespace))
                yield from family.keys(protected)

    def keys_for_deletion(self, change: Change[DeletionRow]) -> Iterator[Key]:
        """Return the backup that a DeleteBackupRequest is about."""
        row = change.new or change.old
        if row is not None and row.owner is not None:
            yield self._cluster.backups.key(row.owner)

    def keys_for_movement(self, family: FamilyState, change: Change[MovementRow]) -> Iterator[Key]:
        """Return the request that the data of a volume is moved for."""
        row = change.new or change.old
        of = family.velero.get(family.velero_key(row.of)) if row is not None else None
        if of is not None and of.owner is not None:
            yield family.key(of.owner)

    def keys_for_download_request(self, change: Change[DownloadRequestRow]) -> Iterator[Key]:
        """Return the restores whose check of access needs the file."""
        row = change.new or change.old
        if row is None or row.target.kind not in PREFIXES:
            return
        backups, restores = self._cluster.families
        backup = backups.velero.get(backups.velero_key(row.target.name))
        if backup is None:
            return
        source = point_key(backup.key.name) if backup.protection_class else backup.owner
        if source is not None:
            yield from restores.keys(restores.requests.by("handed over from", source))

    def keys_for_namespace(self, change: Change[NamespaceRow]) -> Iterator[Key]:
        """Return the requests of a namespace that depend on its policy; all of them if it is terminating."""
        is_terminating = change.new is not None and change.new.is_terminating
        is_labelled = change.old is not None and change.new is not None and change.old.admission != change.new.admission
        for family in self._cluster.families:
            rows = (
                *family.requests.by("namespace", change.key.name),
                *family.requests.by("target", change.key.name),
            )
            yield from family.keys(
                row
                for row in rows
                if (is_terminating and row.key.namespace == change.key.name)
                or not row.status.velero.nacuuid
                or protection.is_protected(row.status)
                or (is_labelled and row.status.phase not in (CREATED, DELETING))
            )

    def keys_for_policy(self, change: Change[PolicyRow]) -> Iterator[Key | LowPriority]:
        """Return every key that a policy may unblock, delete or remove from history."""
        restores = self._cluster.restores
        if not change.initial:
            for namespace in {row.key.namespace for row in restores.requests.rows() if outcome.has_ended(row)}:
                yield from map(LowPriority, restores.keys(self._cluster.past_history(namespace)))
        for family in self._cluster.families:
            yield from family.keys(family.requests.by("not accepted", True))  # noqa: FBT003 - a value of the index
            yield from family.keys(family.requests.by("blocked by", Reason.DELETION_PROTECTED))

    def keys_for_class(self, _: Change[ClassRestoresRow]) -> Iterator[Key]:
        """Return the restores from backups of classes that have not ended."""
        restores = self._cluster.restores
        yield from restores.keys(restores.requests.by("from protection", True))  # noqa: FBT003 - a value of the index

    def keys_for_location(self, change: Change[LocationRow]) -> Iterator[Key]:
        """Return the requests that wait for a location, or for Velero to sync with it."""
        backups = self._cluster.backups
        old = change.old
        new = change.new
        if old is None or new is None or old != msgspec.structs.replace(new, last_synced=old.last_synced):
            for family in self._cluster.families:
                yield from family.keys(family.requests.by("blocked by", Reason.LOCATION_UNAVAILABLE))
        yield from backups.keys(backups.requests.by("blocked by", Reason.FORCE_DELETED))

    def _restores_of(self, backup: Key) -> Iterator[Key]:
        restores = self._cluster.restores
        return restores.keys(restores.requests.by("restores", backup))

    # One reconcile

    def observe(self, key: PartKey, now: datetime) -> RequestView | None:
        """Collect what is known about a request."""
        access = Access(self._access.knows, self._background_reads.result(key))
        return observe(self._cluster, self._cluster.of_plural(key.part), key.object, access, now)

    def begin(self, _: PartKey, view: RequestView, plan: Plan, now: datetime) -> Iterable[Key]:
        """Reserve the quota and the turn that a Plan takes."""
        return self._memory.reserve(view, plan, now)

    def settled(self, key: PartKey, view: RequestView | None, plan: Plan, result: Result, _: datetime) -> Iterable[Key]:
        """Release a turn that was not used, and forget what was read if no decision needs it any more."""
        if view is None or (not plan.reads and _needs_no_read(view, plan)):
            self._background_reads.forget(key)
        return () if view is None else self._memory.release(view, result)


class HandOvers:
    """The hand-overs of each family: given up if the object is not observed in time."""

    view = WindowView
    decide = staticmethod(window.decide)
    parts = (WINDOW,)

    def __init__(self, cluster: ClusterState, memory: Memory) -> None:
        self._cluster = cluster
        self._memory = memory

    def observe(self, key: PartKey, now: datetime) -> WindowView:
        """Collect when the next hand-over of a family is given up."""
        return WindowView(key.name, self._cluster.of_plural(key.name).window.next_expiry(now))

    def begin(self, _: PartKey, view: WindowView, _plan: Plan, now: datetime) -> Iterable[Key]:
        """Give up the hand-overs whose objects were not observed in time."""
        return self._memory.expire(view.plural, now)


def _needs_no_read(view: RequestView, plan: Plan) -> bool:
    """Whether what was read in the background is of no use any more."""
    return Takes.HAND_OVER in plan.claims or view.access is None or not rules.has_nacuuid(view.request)


def _restorability(backup: RequestRow) -> tuple[str, bool]:
    """Return what a restore from a backup depends on: its phase, and whether it is being deleted."""
    return backup.status.phase, rules.is_being_deleted(backup)


def _needs_no_quota_now(old: RequestRow, new: RequestRow) -> bool:
    """Whether a request has just been refused, or has just got its quota."""
    is_refused = new.status.phase == BACKING_OFF and old.status.phase != BACKING_OFF
    return is_refused or (lacks_quota(old) and not lacks_quota(new))
