"""A tenant's NonAdminSchedule at its quota: the rules decide as in the operator, and their writes are applied."""

from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import msgspec

from bench.deletion_worlds.cluster import GRACES, UIDS, ClusterWorld, Conflict, Request
from bench.deletion_worlds.model import DAY, HOUR, MINUTE, Copy, Judge, Origin, Report
from foresail import deletion
from foresail.api import nonadmin, velero
from foresail.api.instants import instant, stamp
from foresail.api.marks import ATTEMPT, DELETE_AFTER, DELETE_REASON, PINNED, RETENTION_APPROVED, SCHEDULE_UID, SLOT
from foresail.api.nonadmin import NON_ADMIN_BACKUP, NON_ADMIN_SCHEDULE, Condition
from foresail.api.policy import SelfServicePolicy
from foresail.backups import Quality
from foresail.deletion import Stored, approval
from foresail.plan import Action, Create, Delete, Key, Patch
from foresail.selfservice.families import BACKUPS
from foresail.selfservice.requests import doubts
from foresail.selfservice.requests.decide import decide as decide_request
from foresail.selfservice.requests.protection import good_ones
from foresail.selfservice.requests.status import IN_DELETION
from foresail.selfservice.requests.view import RequestView
from foresail.selfservice.rows.requests import Copy as Mirrored
from foresail.selfservice.rows.requests import RequestRow, Status, request_row
from foresail.selfservice.rows.schedules import ScheduleRow, schedule_row
from foresail.selfservice.rows.velero import Claim, DeletionRow, VeleroRow
from foresail.selfservice.schedules.decide import decide
from foresail.selfservice.schedules.keep_last import is_on_its_way
from foresail.selfservice.schedules.status import RETAINING
from foresail.selfservice.schedules.view import ScheduleView
from foresail.tenancy.namespaces import NamespaceRow
from foresail.tenancy.policies import PolicyRow, policy_row
from tests.unit.selfservice.request_rows import new_request
from tests.worlds.documents import Document, merged

NAMESPACE = "red"
TEXTS = {"0 12 * * *": DAY, "0 */6 * * *": 6 * HOUR, "0 * * * *": HOUR}
LIVES = 60 * DAY
KEEPS = (1, 3, 7, 30)
_schedule = msgspec.json.Decoder(nonadmin.Schedule)
_request = msgspec.json.Decoder(nonadmin.Request)
_encode = msgspec.json.Encoder().encode
_NAMESPACE = NamespaceRow("ns", {}, is_terminating=False)
_HELD = ("DeletionProtected", "DeletionFailed")


class Waiting(msgspec.Struct, frozen=True):
    """A run that waits for quota."""

    name: str
    since: datetime

    @property
    def slot(self) -> datetime:
        """Its slot."""
        return datetime.strptime(f"{self.name[-14:]}+0000", "%Y%m%d%H%M%S%z")


class TenantWorld(ClusterWorld):
    """One or two NonAdminSchedules of a namespace, with a quota that they reach."""

    takes_back = False
    announces_anew = False

    def __init__(self, seed: int, report: Report) -> None:
        super().__init__("tenant", seed, report)
        self.documents: dict[str, Document] = {}
        self.rows: dict[str, ScheduleRow] = {}  # of these documents, as they are now
        self.intervals: dict[str, timedelta] = {}
        self.waiting: dict[str, Waiting] = {}
        self.unanswered: dict[str, datetime] = {}  # since when a schedule does not say why a run is overdue
        for number, name in enumerate(("daily", "other")[: self.chance.choice((1, 1, 2))]):
            text = self.chance.choice(tuple(TEXTS))
            self.intervals[name] = TEXTS[text]
            self.judges[name] = Judge(f"{self.seed} {name}", report, asks_of_new=False)
            metadata = {
                "name": name,
                "namespace": NAMESPACE,
                "uid": UIDS[number],
                "resourceVersion": "1",
                "generation": 1,
                "creationTimestamp": stamp(self.now.replace(microsecond=0)),
            }
            spec = {"schedule": text, "template": {"backupSpec": {}}}
            self.documents[name] = {"metadata": metadata, "spec": spec, "status": {}}
        self.interval = min(self.intervals.values())
        self.keep_last, self.stored, self.last_good, self.age, self.grace_text = 1, 0, 0, "0s", "24h"
        self.gone = ""  # how keepLast ceased to apply
        self.edit()

    # People

    @property
    def rules(self) -> str:
        """The number to keep."""
        return "" if self.gone else f"keepLast {self.keep_last}"

    @property
    def keeps(self) -> int | None:
        """The number to keep."""
        return self.keep_last

    def edit(self) -> None:
        """Edit the SelfServicePolicy, as an edit or a label that moves the namespace to another one does."""
        self.keep_last = self.chance.choice(KEEPS[: -1 if len(self.documents) > 1 else None])
        self.last_good = self.chance.choice((0, 0, 2))
        self.age = self.chance.choice(("0s", "0s", "0s", "2h"))
        least = max(self.keep_last, self.last_good + 2, 3)  # the API server refuses less
        self.stored = self.chance.choice([stored for stored in (2, 4, 8, 20, 60) if stored >= least])
        self.grace_text = self.chance.choice(tuple(GRACES))
        self._make_policy()

    def keep_only(self, number: int, grace: str = "0s") -> None:
        """Let so many be kept."""
        self.keep_last, self.last_good, self.stored, self.grace_text, self.age = number, 0, 60, grace, "0s"
        self._make_policy()

    def protect(self, number: int) -> None:
        """Let `keepLastGood` be so many."""
        self.last_good = number
        self._make_policy()

    def fill_quota(self) -> None:
        """Let the quota be what the namespace stores."""
        self.stored = max(len(self.copies), self.keep_last, 3)
        self._make_policy()

    def _make_policy(self) -> None:
        self.grace = GRACES[self.grace_text]
        schedules = {"gracePeriod": self.grace_text}
        spec = {
            "namespaceSelector": {},
            "quotas": {"stored": self.stored},
            "schedules": schedules if self.gone else {**schedules, "keepLast": self.keep_last},
            "deletion": {"keepLastGood": self.last_good, "minimumAge": self.age},
        }
        row: PolicyRow = policy_row(msgspec.convert({"metadata": {"name": "p"}, "spec": spec}, SelfServicePolicy))
        self.policy = None if self.gone == "policy" else row

    def set_rules(self, *, applies: bool) -> None:
        """Let `keepLast` apply, or make it cease in one of the ways."""
        self.gone = "" if applies else self.chance.choice(("policy", "keepLast"))
        self._make_policy()

    def forget_approval(self, schedule: str) -> None:
        """Remove the annotation."""
        self._merge(schedule, {"metadata": {"annotations": {RETENTION_APPROVED: None}}})

    def set_paused(self, *, paused: bool) -> None:
        """Pause the schedules, or unpause them."""
        for name in self.documents:
            self._merge(name, {"spec": {"paused": paused}})

    def approve(self) -> None:
        """Look at the list of `foresail backup schedule retention`, and approve it."""
        for name, judge in self.judges.items():
            own = (copy for copy in self.copies.values() if copy.schedule == name)
            asked = [copy for copy in own if copy.waits_for_approval and not copy.is_removed]
            observed = self.row(name).status.observed
            if asked and observed is not None and observed.asks:
                judge.approve(observed.asks, (copy.uid for copy in asked))
                self.heed_approval({copy.uid for copy in asked})
                listed = [Stored(_run_name(copy), copy.uid, copy.slot, Quality.GOOD) for copy in asked]
                approved = {RETENTION_APPROVED: approval(listed, observed.asks)}
                self._merge(name, {"metadata": {"annotations": approved}})

    def name_by_hand(self, moment: datetime) -> str:
        """Return the name of a backup that the tenant makes."""
        return f"by-hand-{moment:%Y%m%d%H%M%S}"

    def view_schedule(self) -> object:
        """Return the NonAdminSchedules, and the runs that wait."""
        return {name: merged({}, document) for name, document in self.documents.items()}, dict(self.waiting)

    def put_schedule(self, schedule: object) -> None:
        """Let etcd have these again."""
        if isinstance(schedule, tuple):
            self.documents, self.waiting = dict(schedule[0]), dict(schedule[1])
            self.rows.clear()

    def _merge(self, name: str, body: object) -> None:
        self.number += 1
        version = {"metadata": {"resourceVersion": str(self.number)}}
        self.documents[name] = merged(merged(self.documents[name], body), version)
        self.rows.pop(name, None)

    # Self-service: the quota

    @property
    def is_full(self) -> bool:
        """Whether the namespace stores as many backups as it may."""
        return len(self.copies) >= self.stored

    def velero_works(self) -> None:
        """Hand runs over that wait for quota, those that wait longest first."""
        super().velero_works()
        for name, run in sorted(self.waiting.items(), key=lambda item: item[1].since):
            if not self.is_full and self.is_available and self.policy is not None:
                self.run(f"red-{run.name}", run.slot, UIDS[list(self.documents).index(name)], LIVES, name)
                del self.waiting[name]

    @property
    def on_the_way(self) -> int:
        """How many deletions were requested that nothing holds."""
        removed = (copy for copy in self.copies.values() if copy.is_removed)
        return sum(_condition(copy).get("reason") not in _HELD for copy in removed)

    # What the operator sees

    def _observe(self, name: str) -> ScheduleView:
        row = self.row(name)
        copies = [copy for copy in self.copies.values() if copy.owner == row.uid]
        rows = {_run_name(copy): _run(copy, self.now) for copy in copies}
        waiting = self.waiting if self.is_full else {}
        if name in self.waiting:
            rows[self.waiting[name].name] = _waiting(self.waiting[name], row.uid)
        removed = (_run(copy, self.now) for copy in self.copies.values() if copy.is_removed and waiting)
        return ScheduleView(
            schedule=row,
            namespace=_NAMESPACE,
            policy=self.policy,
            backups=tuple(rows.values()),
            taken=frozenset(),
            velero={_run_name(copy): _velero(copy) for copy in copies},
            restored=frozenset(_run_name(copy) for copy in copies if copy.name in self.restored),
            good=self.good() if self.last_good else (),
            is_full=len(waiting) > sum(map(is_on_its_way, removed)),
            is_waiting=name in waiting,
            doubt=next(self.doubts(bool(copies)), "") if self.rules else "",
        )

    def good(self) -> tuple[VeleroRow, ...]:
        """Return the good backups of the namespace whose deletion Velero was not asked for."""
        runs = [copy for copy in self.copies.values() if copy.origin is Origin.RUN and copy.asked is None]
        return good_ones(_velero(copy) for copy in runs)

    def doubts(self, has_copies: bool) -> Iterator[str]:  # noqa: FBT001 - one fact
        """Yield what is not certain, in the words of the rules."""
        yield from deletion.operators_doubts(self.skew, ())
        policies = (Key("", "gold"),) if self.unread == "policy" else ()
        yield from doubts.unread(policies, (), is_restore_unread=self.unread == "restore")
        if has_copies and not self.is_available:
            yield "BackupStorageLocation default is Unavailable"

    def view(self, name: str) -> ScheduleView:
        """Return what a decision sees, with the schedules that make room before this one."""
        seen = self._observe(name)
        if not seen.is_full:
            return seen
        others = sorted(map(self._observe, self.documents), key=lambda other: not other.is_waiting)
        names = [other.schedule.key.name for other in others]
        place = names.index(name)
        return msgspec.structs.replace(seen, first=tuple(others[:place]), last=tuple(others[place + 1 :]))

    def row(self, name: str) -> ScheduleRow:
        """Return the row of a NonAdminSchedule."""
        if name not in self.rows:
            self.rows[name] = schedule_row(_schedule.decode(_encode(self.documents[name])))
        return self.rows[name]

    def decide_once(self) -> bool:
        """Decide about each schedule and each requested deletion, and write once."""
        views = {name: self.view(name) for name in self.documents}  # workers decide at the same time
        self.seen_in = self.moment()
        wrote = [self._decide(name, seen) for name, seen in views.items()]
        removed = [copy for copy in self.copies.values() if copy.is_removed]
        wrote += [self._delete(copy) for copy in removed]
        return any(wrote)

    def _decide(self, name: str, seen: ScheduleView) -> bool:
        plan = decide(seen, self.now + self.offset)
        self._check_silence(name, seen)
        self.interfere([f"red-{write.key.name}" for write in plan.writes if write.kind == NON_ADMIN_BACKUP])
        for write in plan.writes:
            self.survive()
            self._apply(write, name)
        return bool(plan.writes)

    def _apply(self, write: Action, name: str) -> None:
        match write:
            case Create():
                if name not in self.waiting and f"red-{write.key.name}" not in self.copies:
                    self.waiting[name] = Waiting(write.key.name, self.now)
            case Patch(kind=kind) if kind == NON_ADMIN_SCHEDULE:
                version = self.documents[name]["metadata"]["resourceVersion"]
                if write.resource_version and write.resource_version != version:
                    raise Conflict
                self._merge(name, write.body)
            case Patch(kind=kind) if kind == NON_ADMIN_BACKUP:
                self._patch_run(write)
            case Delete():
                if name in self.waiting and self.waiting[name].name == write.key.name:
                    del self.waiting[name]
            case _:
                raise AssertionError(f"nobody expects {write}")

    def _patch_run(self, write: Patch) -> None:
        copy, body = self.copies.get(f"red-{write.key.name}"), dict(write.body)
        if copy is None or (write.resource_version and str(copy.version) != write.resource_version):
            raise Conflict
        marks = dict(body["metadata"])["annotations"]  # type: ignore[call-overload]
        at = instant(marks[DELETE_AFTER]) if marks[DELETE_AFTER] else None
        if body.get("spec"):
            own = {other.name: other for other in self.copies.values() if other.schedule == copy.schedule}
            waits = self.is_full and len(self.waiting) > self.on_the_way
            moment = replace(self.seen_in or self.moment(), has_room=not waits)
            self.judges[copy.schedule].requested(copy, own, moment, is_pinned=copy.is_pinned)
            self.change(copy, is_removed=True, delete_after=at)
            self.change_in_between(copy)
            return
        self.mark(copy, str(copy.version), at, asks=at is None and bool(marks[DELETE_REASON]))

    # The deletions that were requested

    def _delete(self, copy: Copy) -> bool:
        """Carry on with the deletion of a run, as self-service does."""
        if copy.name not in self.copies:
            return False
        request = self.requests.get(copy.name)
        view = RequestView(
            BACKUPS,
            _removed(copy),
            "velero",
            _NAMESPACE,
            self.policy,
            velero=_velero(copy),
            deletion=_deletion(request, copy) if request is not None else None,
            good=self.good() if self.last_good else (),
            is_restored=copy.name in self.restored,
            doubt=next(self.doubts(True), ""),  # noqa: FBT003 - it is one
        )
        plan = decide_request(view, self.now + self.offset)
        was_pinned = copy.is_pinned
        for write in plan.writes:
            self.survive()
            self._apply_deletion(write, copy, was_pinned=was_pinned)
        return bool(plan.writes)

    def _apply_deletion(self, write: Action, copy: Copy, *, was_pinned: bool) -> None:
        judge = self.judges[copy.schedule]
        match write:
            case Create():
                around = {other.name: other for other in self.copies.values() if other.origin is Origin.RUN}
                judge.carried_out(copy, around, self.moment(), self.protects, is_pinned=was_pinned)
                copy.asked = self.now
                self.is_available = self.is_available and self.meddling != "reject"
                attempt = int(write.mark[ATTEMPT])
                request = Request(copy.name, copy.uid, self.now, patience=self.patience(), attempt=attempt)
                self.requests[copy.name] = request
            case Delete(kind=velero.BACKUP):
                stored = self.bucket.get(copy.name)
                judge.removed(copy, stored.content if stored is not None else None)
                self.drop(copy, with_data=False)
            case Delete(kind=velero.DELETE_REQUEST):
                self.requests.pop(copy.name, None)
            case Delete():
                copy.is_terminating = True
            case Patch():
                copy.status = merged(copy.status, dict(write.body)["status"])
                self.change(copy)
            case _:  # the finalizer goes with the Backup
                pass

    @property
    def protects(self) -> tuple[int, timedelta]:
        """How many good ones of the namespace the policy protects, and how young ones."""
        if self.policy is None:
            return 0, timedelta()
        return self.last_good, 2 * HOUR if self.age == "2h" else timedelta()

    # What must be reported, and must come to its end

    def _check_silence(self, name: str, seen: ScheduleView) -> None:
        condition = seen.schedule.status.condition(RETAINING)
        is_reported = condition is not None and condition.status == "False"
        overdue = [copy for copy in self.overdue(2 * HOUR) if copy.schedule == name]
        is_doubtful = not self.is_available or abs(self.offset) > 6 * MINUTE or bool(self.unread)
        if not (overdue and is_doubtful and self.rules) or is_reported:
            self.unanswered.pop(name, None)
        elif self.now - self.unanswered.setdefault(name, self.now) > HOUR:
            self.report.unreported.append(f"{self.seed}: {overdue[0].name} is overdue, and nobody says why")

    def overdue(self, by: timedelta) -> list[Copy]:
        """Return the runs whose date has passed by so much."""
        copies = [copy for copy in self.copies.values() if not copy.is_removed and not copy.is_pinned]
        return [copy for copy in copies if copy.delete_after is not None and copy.delete_after + by < self.now]

    def check_end(self) -> None:
        """Report a run that is overdue, and a schedule that waits for a quota that its old runs could free."""
        for copy in self.overdue(2 * DAY):
            self.report.starved.append(f"{self.seed}: {copy.name} is overdue since {copy.delete_after}")
        own = [copy for copy in self.copies.values() if copy.origin is Origin.RUN]
        young = 4 if self.age == "2h" else 0
        each = 2 * self.keep_last + self.last_good + 2 + young  # partial ones beside good ones
        stays = each * len(self.documents) + sum(copy.is_pinned for copy in own)
        others = len(self.copies) - len(own)
        for name, interval in self.intervals.items():
            newest = max((copy.slot for copy in own if copy.schedule == name), default=None)
            is_late = newest is None or self.now - newest > 2 * interval + 2 * DAY
            if is_late and others + stays < self.stored:
                text = f"the last run of {name} was {newest}, now is {self.now}"
                counts = f"{len(own)} runs, {others} others of {self.stored}"
                self.report.starved.append(f"{self.seed}: {text}; {counts}")


def _run_name(copy: Copy) -> str:
    return copy.name.removeprefix("red-")


def _condition(copy: Copy) -> dict[str, str]:
    """Return what the request says about its deletion."""
    conditions: Any = copy.status.get("conditions", ())
    return next((condition for condition in conditions if condition["type"] == IN_DELETION), {})


def _run(copy: Copy, now: datetime) -> RequestRow:
    status: dict[str, Any] = {"phase": copy.phase}
    ended = copy.phase != "New"
    good = "True" if copy.phase == "Completed" else "False"
    succeeded = Condition("Succeeded", good, "Completed" if good == "True" else "Failed", "", stamp(now), 1)
    conditions = [succeeded] if ended else []
    deleting = _condition(copy)
    if deleting:
        conditions.append(Condition(IN_DELETION, deleting["status"], deleting["reason"]))
    return new_request(
        key=Key(NAMESPACE, _run_name(copy)),
        uid=copy.uid,
        version=str(copy.version),
        created=copy.made,
        is_to_be_deleted=copy.is_removed,
        status=Status(
            phase="Created",
            conditions=tuple(conditions),
            velero=Mirrored(copy.name, copy.name, "velero", _encode(status).decode()),
        ),
        schedule_uid=copy.owner,
        slot=copy.slot,
        delete_after=copy.delete_after,
        waits_for_approval=copy.waits_for_approval,
        is_pinned=copy.is_pinned,
    )


def _removed(copy: Copy) -> RequestRow:
    """Return the row of a request whose deletion was requested, with all of its status."""
    pinned = {PINNED: "true"} if copy.is_pinned else {}
    at = {DELETE_AFTER: stamp(copy.delete_after), DELETE_REASON: "old"} if copy.delete_after is not None else {}
    metadata = {
        "name": _run_name(copy),
        "namespace": NAMESPACE,
        "uid": copy.uid,
        "resourceVersion": str(copy.version),
        "generation": 1,
        "creationTimestamp": stamp(copy.made.replace(microsecond=0)),
        "annotations": {SCHEDULE_UID: copy.owner, SLOT: stamp(copy.slot), **pinned, **at},
        "finalizers": [BACKUPS.finalizer],
        **({"deletionTimestamp": stamp(copy.made.replace(microsecond=0))} if copy.is_terminating else {}),
    }
    document = {"metadata": metadata, "spec": {"backupSpec": {}, "deleteBackup": True}, "status": copy.status}
    return msgspec.structs.replace(request_row(_request.decode(_encode(document)), BACKUPS), adopted=copy.name)


def _deletion(request: Request, copy: Copy) -> DeletionRow:
    return DeletionRow(
        Key("velero", copy.name),
        f"r-{request.uid}-{request.attempt}",
        request.made,
        Key(NAMESPACE, _run_name(copy)),
        copy.uid,
        request.attempt,
        "Processed" if request.ended is not None else "",
        request.errors,
        "{}",
    )


def _waiting(run: Waiting, uid: str) -> RequestRow:
    message = "Limit of stored backups reached"
    condition = Condition("Accepted", "False", "QuotaExceeded", message, stamp(run.since), 1)
    return new_request(
        key=Key(NAMESPACE, run.name),
        uid=f"waiting-{run.name}",
        created=run.since,
        status=Status(phase="New", conditions=(condition,)),
        schedule_uid=uid,
        slot=run.slot,
    )


def _velero(copy: Copy) -> VeleroRow:
    mirror: dict[str, Any] = {"phase": copy.phase}
    if copy.began is not None:
        mirror["startTimestamp"] = stamp(copy.began)
    if copy.has_progress:
        mirror["progress"] = {"totalItems": copy.items, "itemsBackedUp": copy.items}
    if copy.failure:
        mirror["failureReason"] = copy.failure
    return VeleroRow(
        key=Key("velero", copy.name),
        uid=f"v-{copy.uid}",
        created=copy.made,
        owner=Key(NAMESPACE, _run_name(copy)),
        request_uid=copy.uid,
        namespace_uid="ns",
        is_orphaned=False,
        is_terminating=False,
        phase=copy.phase,
        queue_position=0,
        expires=copy.expires,
        mirror=_encode(mirror).decode(),
        spec='{"storageLocation":"default"}',
        claim=Claim(is_synced=True) if copy.origin is Origin.BUCKET else None,
    )
