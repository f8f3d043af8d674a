"""The controller of Schedules: what it watches, how changes map to keys, and the state it keeps in memory."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import datetime, timedelta
from itertools import islice

import msgspec

from foresail.api import velero
from foresail.api.apps import DEPLOYMENT, Deployment, StartedPod
from foresail.api.core import NAMESPACE
from foresail.api.metadata import Named
from foresail.api.pods import POD
from foresail.api.schedule_policy import SCHEDULE_POLICY, SchedulePolicy
from foresail.cron import Dialect
from foresail.kube.controller import Informer, LowPriority, no_keys
from foresail.kube.execute import Outcome, Result
from foresail.kube.failures import Cause, is_refusal
from foresail.kube.reflector import Change, WatchSpec
from foresail.kube.store import Store
from foresail.plan import Create, Key, Plan
from foresail.schedules.decide import Starts, plan
from foresail.schedules.groups import Groups, counts_until, limited_group
from foresail.schedules.metrics import ScheduleMetrics
from foresail.schedules.observe import (
    BackupRow,
    DeletionRow,
    GroupView,
    LocationRow,
    RestoreRow,
    ScheduleRow,
    ScheduleView,
    Unread,
    VeleroServer,
    backup_row,
    deletion_row,
    location_of,
    location_row,
    restore_row,
    schedule_row,
)
from foresail.schedules.policies import group_of, settings_under
from foresail.schedules.reasons import Reason
from foresail.schedules.retention import backup_of, deletion_name, is_waiting_for_velero, unusable_deletion
from foresail.schedules.rules import MOST_NAMED, Verdict, judge
from foresail.schedules.settings import Settings
from foresail.schedules.velero_server import (
    REQUESTS,
    SERVER_PODS,
    DeploymentRow,
    PodRow,
    VeleroView,
    VersionRequest,
    decide_version_request,
    deployment_row,
    identify_server,
    pod_row,
    request_name,
    version_request,
)
from foresail.slots.policy_timing import (
    PolicyRow,
    index_values,
    lookup_values,
    policy_for,
    policy_row,
    reaches,
    timing_under,
)

_VELERO = Key("", "velero")  # the key of the Velero server: no Schedule has an empty namespace
_SOON = timedelta(seconds=5)  # until a Schedule that was not reconciled yet may be due
# After these answers to a create, the API server has stored nothing.
_NOT_CREATED = frozenset(
    {
        Cause.CONFLICT,
        Cause.FORBIDDEN,
        Cause.INVALID,
        Cause.NOT_FOUND,
        Cause.NOT_LEADING,
        Cause.TOO_MANY,
        Cause.UNAUTHORIZED,
    }
)
_NAMESPACES = WatchSpec(NAMESPACE, Named, lambda wire: wire.metadata.uid, metadata_only=True)
_ANSWERS = 8  # of Velero's last rollouts or, where it has no Deployment, of the last days


class Schedules:
    """Takes the place of Velero's schedule controller in one namespace."""

    name = "schedules"

    def __init__(
        self,
        namespace: str,
        settings: Settings,
        dialect: Dialect | None = None,
        skew: Callable[[], timedelta | None] = lambda: None,
        *,
        records_namespaces: bool = False,
    ) -> None:
        self.namespace = namespace
        self.settings = settings
        self.schedules = Store[ScheduleRow]({"location": lambda row: [row.location]})
        self.backups = Store[BackupRow](
            {
                "schedule": lambda row: [row.schedule],
                "unfinished": lambda row: [] if row.is_terminal else [row.schedule],
                "state": lambda row: ["waiting"] if row.is_waiting else [],
            }
        )
        self.locations = Store[LocationRow]()
        self.policies = Store[PolicyRow]({"selects": index_values, "group": lambda row: [group_of(row)]})
        self.deletions = Store[DeletionRow](
            {"backup": lambda row: [row.backup], "state": lambda row: ["open"] if row.is_open and row.is_ours else []}
        )
        self.restores = Store[RestoreRow]({"backup": lambda row: [row.backup], "schedule": lambda row: [row.schedule]})
        self.deployments = Store[DeploymentRow | None]()
        self.pods = Store[PodRow | None]()
        self.answers = Store[velero.StatusRequest]()
        self.namespaces = Store[str]()  # their UIDs
        self._records_namespaces = records_namespaces
        self.metrics = ScheduleMetrics(self.locations, lambda: self.backups.by("state", "waiting"))
        self._flag = dialect
        self._skew = skew  # by how much the operator's clock is ahead of the API server's
        self._next: dict[Key, datetime] = {}  # the next run of each Schedule
        self._decided: set[Key] = set()  # the Schedules that were reconciled in this term as leader
        self._deleted: dict[str, datetime] = {}  # the slot of the last Backup that was deleted, by its Schedule's UID
        self._unobserved: dict[str, tuple[Key, datetime]] = {}  # the last Backup created, by its Schedule's UID
        self._unwritable: set[Key] = set()  # Schedules to which the last write was refused
        self._unrequested: dict[Key, Mapping[str, datetime]] = {}  # Backups in phase Deleting that no request names
        self._waits_to_delete: dict[Key, None] = {}  # Schedules with more to delete, in the order in which they ask
        self._groups = Groups()
        self._version_request: VersionRequest | None = None
        self._versions: dict[str, str] = {}  # by the name of the request; Velero deletes those that it has answered

    @property
    def informers(self) -> tuple[Informer, ...]:
        """Everything in Velero's namespace that a decision depends on."""
        here = self.namespace
        labelled = velero.SCHEDULE_LABEL
        return (
            Informer(
                WatchSpec(velero.SCHEDULE, velero.Schedule, schedule_row, here),
                self.schedules,
                _keys_for_schedule,
                self._learn_schedule,
            ),
            Informer(
                WatchSpec(velero.BACKUP, velero.Backup, backup_row, here, labels=labelled),
                self.backups,
                self._keys_for_backup,
                self._learn_backup,
            ),
            Informer(
                WatchSpec(velero.LOCATION, velero.Location, location_row, here), self.locations, self._keys_for_location
            ),
            Informer(
                WatchSpec(SCHEDULE_POLICY, SchedulePolicy, policy_row, optional=True),
                self.policies,
                self._keys_for_policy,
                self._learn_policy,
            ),
            Informer(
                WatchSpec(velero.DELETE_REQUEST, velero.DeleteBackupRequest, deletion_row, here),
                self.deletions,
                self._keys_for_deletion,
            ),
            Informer(
                WatchSpec(velero.RESTORE, velero.Restore, restore_row, here), self.restores, self._keys_for_restore
            ),
            Informer(
                WatchSpec(DEPLOYMENT, Deployment, deployment_row, here), self.deployments, self._keys_for_deployment
            ),
            Informer(WatchSpec(POD, StartedPod, pod_row, here, labels=SERVER_PODS), self.pods, self._keys_for_pod),
            Informer(
                WatchSpec(velero.STATUS_REQUEST, velero.StatusRequest, lambda wire: wire, here),
                self.answers,
                _keys_for_answer,
                self._learn_answer,
            ),
            *([Informer(_NAMESPACES, self.namespaces, no_keys)] if self._records_namespaces else ()),
        )

    # Update state from changes

    def _learn_schedule(self, change: Change[ScheduleRow]) -> Iterable[Key]:
        if change.old is not None and change.new is None:
            self._deleted.pop(change.old.uid, None)
            self._unobserved.pop(change.old.uid, None)
        return self._place(change.key)

    def _learn_policy(self, change: Change[PolicyRow]) -> Iterable[Key]:
        """Note in which group each unfinished Backup counts; return who may start under another limit."""
        woken = {object_key for key in self._groups.with_unfinished() for object_key in self._place(key)}
        for group in (group_of(change.old), group_of(change.new)):
            woken.update(key for _, key in self._groups.first(group or "", 1))
        return woken

    def _learn_backup(self, change: Change[BackupRow]) -> Iterable[Key]:
        if change.old is None and change.new is not None and not change.initial:
            self.metrics.measure_lateness(change.new, self._started(change.new))
        if change.new is None and change.old is not None:
            self._note_deleted(change.old)
        if change.new is not None and self._unobserved.get(change.new.schedule_uid, (None,))[0] == change.key:
            del self._unobserved[change.new.schedule_uid]
        keys = {Key(row.key.namespace, row.schedule) for row in (change.old, change.new) if row is not None}
        return [object_key for key in keys for object_key in self._learn_run(change, key)]

    def _learn_run(self, change: Change[BackupRow], schedule: Key) -> Iterable[Key]:
        """Note the unfinished Backups of a Schedule; return who waits for the place of one that has ended."""
        self._groups.release_seen(change.key, schedule)
        return self._place(schedule)

    def _learn_answer(self, change: Change[velero.StatusRequest]) -> Iterable[Key]:
        """Keep the version that Velero reports; Velero deletes the request soon."""
        name = change.key.name
        version = change.new.status.server_version if change.new is not None else ""
        if not name.startswith(REQUESTS) or not version or self._versions.get(name) == version:
            return ()
        self._versions[name] = version
        if len(self._versions) > _ANSWERS:
            del self._versions[next(iter(self._versions))]
        return tuple(self.schedules)

    def _place(self, schedule: Key) -> Iterable[Key]:
        """Note in which group the unfinished Backups of a Schedule count; return who waits for a place that is free."""
        row = self.schedules.get(schedule)
        rows = self.backups.by("unfinished", schedule.name) if row is not None else ()
        backups = {backup.key.name: counts_until(backup) for backup in rows if row is not None and backup.is_of(row)}
        if not backups and not self._groups.has_unfinished(schedule):
            return ()
        policy = self._policy_of(row) if row is not None and backups else None
        freed = self._groups.place(schedule, group_of(policy), backups)
        return [waits for _, waits in self._groups.first(freed, 1)] if freed is not None else ()

    def _note_deleted(self, backup: BackupRow) -> None:
        schedule = self.schedules.get(Key(backup.key.namespace, backup.schedule))
        slot = backup.slot
        if slot is not None and schedule is not None and schedule.uid == backup.schedule_uid:
            self._deleted[schedule.uid] = max(slot, self._deleted.get(schedule.uid, slot))

    # Map changes to keys

    def _keys_for_backup(self, change: Change[BackupRow]) -> Iterable[Key | LowPriority]:
        """Return the Schedule; until its Backup ends no run of it starts, so runs of others that are due come first."""
        if change.old is None and change.new is None:  # an unreadable Backup was deleted: its Schedule is unknown
            return tuple(self.schedules)
        keys = {Key(row.key.namespace, row.schedule) for row in (change.old, change.new) if row is not None}
        has_ended = change.new is None or change.new.is_terminal or len(keys) > 1
        return keys if has_ended else map(LowPriority, keys)

    def _keys_for_location(self, change: Change[LocationRow]) -> Iterator[Key]:
        for row in self.schedules.by("location", change.key.name):
            yield row.key
        for row in self.schedules.by("location", ""):
            yield row.key

    def _keys_for_policy(self, change: Change[PolicyRow]) -> Iterator[LowPriority]:
        rows = [row for row in (change.old, change.new) if row is not None]
        was_unread = change.old is None and not change.initial  # perhaps: no policy deleted anything until now
        for schedule in self.schedules.rows():
            if was_unread or any(reaches(row, schedule.key.name, schedule.labels) for row in rows):
                yield LowPriority(schedule.key)

    def _keys_for_deletion(self, change: Change[DeletionRow]) -> Iterator[Key]:
        """Return the Schedule of the Backup, and the one that waits longest to delete if Velero has room again."""
        names = {backup_of(change.key.name), *(row.backup for row in (change.old, change.new) if row is not None)}
        for name in names:
            backup = self.backups.get(Key(change.key.namespace, name))
            if backup is not None:
                yield Key(change.key.namespace, backup.schedule)
        if change.new is None or not change.new.is_open:
            yield from islice(self._waits_to_delete, 1)

    def _keys_for_restore(self, change: Change[RestoreRow]) -> Iterator[Key]:
        for row in (change.old, change.new):
            if row is not None and row.schedule:
                yield Key(change.key.namespace, row.schedule)
            backup = self.backups.get(Key(change.key.namespace, row.backup)) if row is not None else None
            if backup is not None:
                yield Key(change.key.namespace, backup.schedule)

    def _keys_for_deployment(self, _: Change[DeploymentRow | None]) -> Iterator[Key]:
        yield _VELERO
        yield from self.schedules

    def _keys_for_pod(self, change: Change[PodRow | None]) -> Iterable[Key]:
        rows = [row for row in (change.old, change.new) if row is not None]
        concerns_all = any(row.has_schedule_controller for row in rows) or (rows and not self._servers())
        return tuple(self.schedules) if concerns_all else ()

    # Observe, decide, settle

    def observe(self, key: Key, now: datetime) -> ScheduleView | VeleroView | None:
        """Collect what a decision about a Schedule, or about Velero, depends on."""
        if key == _VELERO:
            requests = {*self._versions, *(answer.name for answer in self.answers)}
            return VeleroView(self.namespace, self._servers(), self._version_request, frozenset(requests))
        schedule = self.schedules.get(key)
        if schedule is None:
            return None
        policy = self._policy_of(schedule)
        backups = tuple(self.backups.by("schedule", key.name))
        locations = tuple(self.locations.rows())
        view = ScheduleView(
            schedule=schedule,
            backups=backups,
            location=location_of(schedule.location, locations),
            server=self._velero_server(now),
            settings=settings_under(policy, self.settings),
            unread=self._unread_backups(key),
            deleted=self._deleted.get(schedule.uid),
            unobserved=self._unobserved.get(schedule.uid, (None, None))[1],
            policy=policy,
            group=self._group_view(key, policy, now),
            is_record_refused=key in self._unwritable,
            namespaces=self._namespaces_of(schedule),
        )
        return view if policy is None or policy.spec.retention is None else self._with_deletions(view, locations, now)

    def _namespaces_of(self, schedule: ScheduleRow) -> dict[str, str] | None:
        """Return the UIDs of the namespaces that a Schedule of a ProtectionClass takes; None for any other."""
        if not schedule.protection_class or not self._records_namespaces:
            return None
        uids = ((name, self.namespaces.get(Key("", name))) for name in schedule.included)
        return {name: uid for name, uid in uids if uid}

    def _policy_of(self, schedule: ScheduleRow) -> PolicyRow | None:
        name = schedule.key.name
        labels = schedule.labels
        may_select = (policy for value in lookup_values(name, labels) for policy in self.policies.by("selects", value))
        return policy_for(name, labels, may_select)

    def _group_view(self, key: Key, policy: PolicyRow | None, now: datetime) -> GroupView | None:
        """Return the group of a Schedule; its Backups are counted as they change, not here."""
        limited = limited_group(policy, self.policies.by("group", group_of(policy)))
        if limited is None:
            return None
        group = limited.name
        running, names = self._groups.unfinished(group, now, MOST_NAMED)
        reserved, starting = self._groups.reserved(group, now, MOST_NAMED, without=key)
        named = tuple(sorted((*names, *starting)))
        more = running + reserved - len(named)
        view = msgspec.structs.replace(limited, unfinished=named, more=more, is_reserving=reserved > 0)
        return msgspec.structs.replace(
            view,
            waiting=self._groups.first(group, view.free, without=key),
            turn=self._groups.turn(key, group),
        )

    def _with_deletions(self, view: ScheduleView, locations: tuple[LocationRow, ...], now: datetime) -> ScheduleView:
        """Add what retention depends on, which only a Schedule with such rules needs."""
        names = [backup.key.name for backup in view.backups]
        deletions = tuple(row for name in names for row in self.deletions.by("backup", name))
        unusable = {name: unread for name in names if (unread := self._unusable_deletion(name)) is not None}
        requested = {*(deletion.backup for deletion in deletions), *unusable}
        # A Restore that cannot be decoded may read any of them.
        reads_all = bool(self.restores.unread) or any(self.restores.by("schedule", view.schedule.key.name))
        return msgspec.structs.replace(
            view,
            unread_policies=tuple(
                Unread(unreadable.key, unreadable.problem) for unreadable in self.policies.unread.values()
            ),
            locations=locations,
            skew=self._skew(),
            stale=self._stale(),
            deletions=deletions,
            open_deletions=sum(row.is_pending(now) for row in self.deletions.by("state", "open")),
            unusable=unusable,
            unrequested=self._unrequested_of(view, requested, now),
            restored=frozenset(name for name in names if reads_all or any(self.restores.by("backup", name))),
        )

    def _stale(self) -> tuple[str, ...]:
        """Return the kinds that say what must stay, of which the operator may not know the present state."""
        stores = (
            (velero.SCHEDULE, self.schedules),
            (velero.BACKUP, self.backups),
            (velero.RESTORE, self.restores),
            (SCHEDULE_POLICY, self.policies),
            (velero.LOCATION, self.locations),
        )
        return tuple(kind.name for kind, store in stores if store.is_stale)

    def _unusable_deletion(self, backup: str) -> Unread | None:
        key = Key(self.namespace, deletion_name(backup))
        unread = self.deletions.unread.get(key)
        return unusable_deletion(backup, self.deletions.get(key), Unread(key, unread.problem) if unread else None)

    def _unrequested_of(self, view: ScheduleView, requested: set[str], now: datetime) -> dict[str, datetime]:
        """Return the Backups in phase Deleting without a request, by when that was first observed."""
        deleting = {backup.key.name for backup in view.backups if backup.phase == velero.DELETING}
        before = self._unrequested.get(view.schedule.key, {})
        return {name: before.get(name, now) for name in deleting - requested}

    def decide(self, view: ScheduleView | VeleroView, now: datetime) -> Plan:
        """Return the Plan for a Schedule, or for the version request."""
        if isinstance(view, VeleroView):
            return decide_version_request(view, now)
        return plan(view, judge(view, now), now)

    def begin(self, key: Key, view: ScheduleView | VeleroView, plan: Plan, now: datetime) -> Iterable[Key]:
        """Reserve the place of a Backup in its group before it is created."""
        if isinstance(view, ScheduleView) and view.group is not None:
            starts = plan.claim(Starts)
            if starts is not None and starts.backup not in self.backups:
                self._groups.reserve(key, view.group.name, starts.backup, now)
        return ()

    def settled(
        self, key: Key, view: ScheduleView | VeleroView | None, plan: Plan, result: Result, now: datetime
    ) -> Iterable[Key]:
        """Record the version request and when each Schedule runs next, whether or not the writes succeeded."""
        waited_for = self._groups.group_waited_for(key)
        if view is None:
            self._groups.forget(key)
            self.metrics.forget(key)
            self._next.pop(key, None)
            self._decided.discard(key)
            self._waits_to_delete.pop(key, None)
            self._unrequested.pop(key, None)
            self._unwritable.discard(key)
        elif isinstance(view, VeleroView):
            self._version_request = plan.claim(VersionRequest)
        elif (verdict := plan.claim(Verdict)) is not None:
            self._decided.add(key)
            self.metrics.record(view, verdict)
            self._note_deletions(key, view, verdict, now)
            self._note_next(key, None if verdict.refused or view.schedule.paused else verdict.starts)
            self._note_turn(key, view, verdict, result)
            self._note_refused(key, result)
            self._note_created(view, plan, result)
        groups = {waited_for, view.group.name if isinstance(view, ScheduleView) and view.group else None}
        return [object_key for group in groups if group is not None for object_key in self._next_in(group, key, now)]

    def crashed(self, key: Key) -> Iterable[Key]:
        """Take a Schedule out of the queue of its group, whose other runs would wait behind it."""
        group = self._groups.group_waited_for(key)
        self._groups.leave(key)
        return [each for _, each in self._groups.first(group or "", 1)]

    def _note_turn(self, key: Key, view: ScheduleView, verdict: Verdict, result: Result) -> None:
        """Queue a run that waits for a place in its group, and release the place of a Backup that was not created.

        After any other failure the Backup may exist: its place is free once it is observed, or after a minute.
        A run that starts once the record of other slots is observed keeps its place in the queue until then.
        """
        if _is_create_refused(result):
            self._groups.release(key)
        because = verdict.blocked_by
        turn = verdict.turn
        is_limited = because is not None and because.reason is Reason.CONCURRENCY_LIMIT and not verdict.is_settling
        is_recorded = because is None and verdict.not_run is not None and result.outcome is Outcome.DONE
        if (is_limited or is_recorded) and view.group is not None and turn is not None:
            self._groups.wait(key, view.group.name, turn)
        else:
            self._groups.leave(key)

    def _note_refused(self, key: Key, result: Result) -> None:
        """Note whether the Schedule can be written to: its record is not worth a run."""
        if result.outcome is Outcome.DONE:
            self._unwritable.discard(key)
            return
        is_schedule = result.action is not None and result.action.kind == velero.SCHEDULE
        if is_schedule and result.failure is not None and is_refusal(result.failure):
            self._unwritable.add(key)

    def _note_created(self, view: ScheduleView, plan: Plan, result: Result) -> None:
        """Remember the slot of a new Backup until it is in the store: a late watch must not make it a missed one."""
        starts = plan.claim(Starts)
        if starts is None or starts.slot is None or starts.backup in self.backups:
            return
        failed = None if result.action is None else result.action.key
        if result.outcome is Outcome.DONE or failed not in (None, starts.backup):  # a later write may have failed
            self._unobserved[view.schedule.uid] = starts.backup, starts.slot

    def _next_in(self, group: str, settled: Key, now: datetime) -> Iterator[Key]:
        """Return the first Schedule that waits for a place in a group, if the group has one."""
        for _, key in self._groups.first(group, 1):
            if key == settled:
                continue
            schedule = self.schedules.get(key)
            policy = self._policy_of(schedule) if schedule is not None else None
            view = self._group_view(key, policy, now)
            if view is None or view.name != group or view.free:
                yield key

    def start_term(self) -> Iterable[Key]:
        """Forget what was decided in an earlier term: another leader has run since. Reconcile every Schedule."""
        self._next.clear()
        self._decided.clear()
        self._groups.start_term()
        self.metrics.clear()
        return tuple(self.schedules)

    def next_slot(self, after: datetime) -> datetime | None:
        """Return the next slot of any Schedule after an instant; one not reconciled yet may be due any moment."""
        if any(row.key not in self._decided and not row.paused for row in self.schedules.rows()):
            return after + _SOON
        return min((instant for instant in self._next.values() if instant > after), default=None)

    @property
    def concurrency(self) -> int:
        """How many Backups Velero runs at a time, by the flags of its Deployment."""
        return max((row.concurrency for row in self._servers()), default=1)

    def _started(self, backup: BackupRow) -> datetime | None:
        """Return the first instant at which the run of a Backup could start: its slot, moved by a policy."""
        schedule = self.schedules.get(Key(backup.key.namespace, backup.schedule))
        if schedule is None or backup.slot is None:
            return backup.slot
        policy = self._policy_of(schedule)
        timing = timing_under(policy, str(schedule.key), settings_under(policy, self.settings).zone)
        return backup.slot if timing is None else timing.starts(backup.slot)

    def _note_deletions(self, key: Key, view: ScheduleView, verdict: Verdict, now: datetime) -> None:
        retained = verdict.retained
        self._unrequested.pop(key, None)
        if view.unrequested:
            self._unrequested[key] = view.unrequested
        deletes = retained is not None and (retained.decision.deletes or retained.again)
        if deletes and is_waiting_for_velero(view, now):
            self._waits_to_delete[key] = None
        else:
            self._waits_to_delete.pop(key, None)

    def _note_next(self, key: Key, slot: datetime | None) -> None:
        if slot is None:
            self._next.pop(key, None)
        else:
            self._next[key] = slot

    def _velero_server(self, now: datetime) -> VeleroServer:
        # The request is derived, not stored: a new leader may know the answer before it sends a request.
        servers = self._servers()
        request = version_request(servers, self._version_request, now)
        answer = self._versions.get(request_name(request), "") if request else ""
        known = identify_server(servers, answer, self._flag, request.requested if request else None, self.pods.rows())
        unread = next(iter(self.deployments.unread.values()), None) if not servers else None
        return msgspec.structs.replace(
            known,
            unread=Unread(unread.key, unread.problem) if unread else None,
            is_recognised=known.is_recognised or self.settings.velero_schedules_off,
        )

    def _unread_backups(self, key: Key) -> tuple[Unread, ...]:
        return tuple(
            Unread(unreadable.key, unreadable.problem)
            for unreadable in self.backups.unread.values()
            if unreadable.labels.get(velero.SCHEDULE_LABEL) == key.name
        )

    def _servers(self) -> tuple[DeploymentRow, ...]:
        return tuple(row for row in self.deployments.rows() if row is not None)


def _is_create_refused(result: Result) -> bool:
    """Whether the Backup of a Plan was certainly not created."""
    is_create = isinstance(result.action, Create) and result.action.kind == velero.BACKUP
    cause = result.failure.cause if result.failure is not None else None
    return is_create and (result.outcome is Outcome.REFUSED or cause in _NOT_CREATED)


def _keys_for_schedule(change: Change[ScheduleRow]) -> Iterable[Key]:
    # Velero comes first: without a request, a missing answer means nothing.
    return (_VELERO, change.key) if change.old is None else (change.key,)


def _keys_for_answer(_: Change[velero.StatusRequest]) -> Iterable[Key]:
    return ()  # only a new version maps to keys, and `_learn_answer` returns those
