"""A tenant's NonAdminSchedule at its quota: the rules decide as in the operator, and their writes are applied."""

from datetime import datetime, timedelta
from typing import Any

import msgspec

from bench.deletion_worlds.cluster import GRACES, OURS, ClusterWorld, Conflict, Request
from bench.deletion_worlds.model import DAY, HOUR, MINUTE, Copy, Origin, Report
from foresail import deletion
from foresail.api import nonadmin
from foresail.api.instants import instant, stamp
from foresail.api.marks import DELETE_AFTER, DELETE_REASON, RETENTION_APPROVED
from foresail.api.nonadmin import Condition
from foresail.api.policy import SelfServicePolicy
from foresail.api.requests import NON_ADMIN_BACKUP, NON_ADMIN_SCHEDULE
from foresail.backups import Quality
from foresail.deletion import Stored, approval
from foresail.plan import Action, Create, Delete, Key, Patch
from foresail.selfservice.rows.requests import Copy as Mirrored
from foresail.selfservice.rows.requests import RequestRow, Status
from foresail.selfservice.rows.schedules import ScheduleRow, schedule_row
from foresail.selfservice.rows.velero import Claim, VeleroRow
from foresail.selfservice.schedules.decide import decide
from foresail.selfservice.schedules.status import RETAINING
from foresail.selfservice.schedules.view import ScheduleView
from foresail.tenancy.namespaces import NamespaceRow
from foresail.tenancy.policies import PolicyRow, policy_row
from tests.unit.selfservice.request_rows import new_request
from tests.worlds.documents import Document, merged

NAS = Key("red", "daily")
TEXTS = {"0 12 * * *": DAY, "0 */6 * * *": 6 * HOUR, "0 * * * *": HOUR}
LIVES = 60 * DAY
_schedule = msgspec.json.Decoder(nonadmin.Schedule)
_encode = msgspec.json.Encoder().encode
_NAMESPACE = NamespaceRow("ns", {}, is_terminating=False)


class TenantWorld(ClusterWorld):
    """One NonAdminSchedule, with a quota that it reaches."""

    def __init__(self, seed: int, report: Report) -> None:
        super().__init__(f"tenant {seed}", report)
        text = self.chance.choice(tuple(TEXTS))
        self.interval = TEXTS[text]
        self.document: Document = {
            "metadata": {
                "name": NAS.name,
                "namespace": NAS.namespace,
                "uid": OURS,
                "resourceVersion": "1",
                "generation": 1,
                "creationTimestamp": stamp(self.now.replace(microsecond=0)),
            },
            "spec": {"schedule": text, "template": {"backupSpec": {}}},
            "status": {},
        }
        self.waiting: str = ""  # the run that waits for quota
        self.waited_for: datetime | None = None
        self.keep_last, self.stored, self.grace_text = self.chance.choice((1, 3, 7, 30)), 0, "24h"
        self.last_good = 0
        self.edit()

    # People

    def edit(self) -> None:
        """Edit the SelfServicePolicy, as an edit or a label that moves the namespace to another one does."""
        self.keep_last = self.chance.choice((1, 3, 7, 30))
        self.last_good = self.chance.choice((0, 0, 2))
        least = max(self.keep_last, self.last_good + 2, 3)  # the API server refuses less
        self.stored = self.chance.choice([stored for stored in (2, 4, 8, 20, 60) if stored >= least])
        self.grace_text = self.chance.choice(tuple(GRACES))
        self.grace = GRACES[self.grace_text]
        spec = {
            "namespaceSelector": {},
            "quotas": {"stored": self.stored},
            "schedules": {"keepLast": self.keep_last, "gracePeriod": self.grace_text},
            "deletion": {"keepLastGood": self.last_good},
        }
        self.policy: PolicyRow = policy_row(
            msgspec.convert({"metadata": {"name": "p"}, "spec": spec}, SelfServicePolicy)
        )

    def set_paused(self, *, paused: bool) -> None:
        """Pause the schedule, or unpause it."""
        self._merge({"spec": {"paused": paused}})

    def approve(self) -> None:
        """Look at the list of `foresail backup schedule retention`, and approve it."""
        asked = [copy for copy in self.copies.values() if copy.waits_for_approval and not copy.is_removed]
        if asked:
            self.judge.approved |= {copy.uid for copy in asked}
            listed = [Stored(_run_name(copy), copy.uid, copy.slot, Quality.GOOD) for copy in asked]
            self._merge(
                {"metadata": {"annotations": {RETENTION_APPROVED: approval(listed, f"keepLast {self.keep_last}")}}}
            )

    def name_by_hand(self, moment: datetime) -> str:
        """Return the name of a backup that the tenant makes."""
        return f"by-hand-{moment:%Y%m%d%H%M%S}"

    def view_schedule(self) -> object:
        """Return the NonAdminSchedule."""
        return merged({}, self.document), self.waiting

    def put_schedule(self, schedule: object) -> None:
        """Let etcd have this NonAdminSchedule again."""
        if isinstance(schedule, tuple):
            self.document, self.waiting = merged({}, schedule[0]), schedule[1]

    def _merge(self, body: object) -> None:
        self.number += 1
        version = {"metadata": {"resourceVersion": str(self.number)}}
        self.document = merged(merged(self.document, body), version)

    # Self-service: the quota, and deletions that were requested

    @property
    def is_full(self) -> bool:
        """Whether the namespace stores as many backups as it may."""
        return len(self.copies) >= self.stored

    def velero_works(self) -> None:
        """Hand a run over that waits for quota, and ask Velero for the deletions that were requested."""
        for copy in list(self.copies.values()):
            if copy.is_removed and copy.asked is None and copy.phase != "New":
                copy.asked = self.now
                if copy.failure:
                    self.drop(copy, with_data=False)
                else:
                    self.requests.setdefault(copy.name, Request(copy.name, copy.uid, self.now))
        super().velero_works()
        for request in self.requests.values():  # what failed is requested again
            request.errors, request.ended = (), None
        if self.waiting and not self.is_full and self.is_available:
            slot = datetime.strptime(f"{self.waiting[-14:]}+0000", "%Y%m%d%H%M%S%z")
            self.run(f"red-{self.waiting}", slot, OURS, LIVES)
            self.waiting, self.waited_for = "", None

    # What the operator sees

    def view(self) -> ScheduleView:
        """Return what a decision sees."""
        copies = [copy for copy in self.copies.values() if copy.origin is not Origin.HAND and copy.owner == OURS]
        rows = {_run_name(copy): _run(copy, self.now) for copy in copies}
        is_waiting = bool(self.waiting) and self.is_full
        if self.waiting:
            rows[self.waiting] = _waiting(self.waiting, self.waited_for or self.now)
        doubt = deletion.clock_doubt(self.offset)
        if not doubt and copies and not self.is_available:
            doubt = "BackupStorageLocation default is Unavailable"
        return ScheduleView(
            schedule=self.row,
            namespace=_NAMESPACE,
            policy=self.policy,
            backups=tuple(rows.values()),
            taken=frozenset(),
            velero={_run_name(copy): _velero(copy) for copy in copies},
            restored=frozenset(_run_name(copy) for copy in copies if copy.name in self.restored),
            is_full=is_waiting and not any(copy.is_removed for copy in copies),
            is_waiting=is_waiting,
            doubt=doubt,
        )

    @property
    def row(self) -> ScheduleRow:
        """The row of the NonAdminSchedule."""
        return schedule_row(_schedule.decode(_encode(self.document)))

    def decide_once(self) -> bool:
        """Decide and write once."""
        seen = self.view()
        plan = decide(seen, self.now + self.offset)
        self._check_silence(seen)
        self.interfere([f"red-{write.key.name}" for write in plan.writes if write.kind == NON_ADMIN_BACKUP])
        for write in plan.writes:
            self.survive()
            self._apply(write)
        return bool(plan.writes)

    def _apply(self, write: Action) -> None:
        match write:
            case Create():
                if not self.waiting and f"red-{write.key.name}" not in self.copies:
                    self.waiting, self.waited_for = write.key.name, self.now
            case Patch(kind=kind) if kind == NON_ADMIN_SCHEDULE:
                if write.resource_version and write.resource_version != self.document["metadata"]["resourceVersion"]:
                    raise Conflict
                self._merge(write.body)
            case Patch(kind=kind) if kind == NON_ADMIN_BACKUP:
                self._patch_run(write)
            case Delete():
                self.waiting = "" if self.waiting == write.key.name else self.waiting
            case _:
                raise AssertionError(f"nobody expects {write}")

    def _patch_run(self, write: Patch) -> None:
        copy, body = self.copies.get(f"red-{write.key.name}"), dict(write.body)
        if copy is None or (write.resource_version and str(copy.version) != write.resource_version):
            raise Conflict
        if body.get("spec"):
            self.judge.requested(copy, self.copies, self.moment(is_full=bool(self.waiting) and self.is_full))
            self.change(copy, is_removed=True)
            return
        marks = dict(body["metadata"])["annotations"]  # type: ignore[call-overload]
        at = instant(marks[DELETE_AFTER]) if marks[DELETE_AFTER] else None
        self.mark(copy, str(copy.version), at, asks=at is None and bool(marks[DELETE_REASON]))

    # What must be reported, and must come to its end

    def _check_silence(self, seen: ScheduleView) -> None:
        condition = seen.schedule.status.condition(RETAINING)
        is_reported = condition is not None and condition.status == "False"
        overdue = self.overdue(2 * HOUR)
        is_doubtful = not self.is_available or abs(self.offset) > 6 * MINUTE
        if not (overdue and is_doubtful) or is_reported:
            self.silent_since = None
        elif self.silent_since is None:
            self.silent_since = self.now
        elif self.now - self.silent_since > HOUR:
            self.report.unreported.append(f"{self.seed}: {overdue[0].name} is overdue, and nobody says why")

    silent_since: datetime | None = None

    def overdue(self, by: timedelta) -> list[Copy]:
        """Return the runs whose date has passed by so much."""
        copies = [copy for copy in self.copies.values() if not copy.is_removed and not copy.is_pinned]
        return [copy for copy in copies if copy.delete_after is not None and copy.delete_after + by < self.now]

    def check_end(self) -> None:
        """Report a run that is overdue, and a schedule that waits for a quota that its old runs could free."""
        for copy in self.overdue(2 * DAY):
            self.report.starved.append(f"{self.seed}: {copy.name} is overdue since {copy.delete_after}")
        own = [copy for copy in self.copies.values() if copy.origin is Origin.RUN]
        stays = 2 * self.keep_last + self.last_good + 2 + sum(copy.is_pinned for copy in own)  # partial ones beside
        others = len(self.copies) - len(own)
        newest = max((copy.slot for copy in own), default=None)
        is_late = newest is None or self.now - newest > 2 * self.interval + 2 * DAY
        if is_late and others + stays < self.stored:
            text = f"the last run was {newest}, now is {self.now}; {len(own)} runs, {others} others of {self.stored}"
            self.report.starved.append(f"{self.seed}: {text}")


def _run_name(copy: Copy) -> str:
    return copy.name.removeprefix("red-")


def _run(copy: Copy, now: datetime) -> RequestRow:
    status: dict[str, Any] = {"phase": copy.phase}
    ended = copy.phase != "New"
    good = "True" if copy.phase == "Completed" else "False"
    conditions = (Condition("Succeeded", good, "Completed" if good == "True" else "Failed", "", stamp(now), 1),)
    return new_request(
        key=Key(NAS.namespace, _run_name(copy)),
        uid=copy.uid,
        version=str(copy.version),
        created=copy.made,
        is_to_be_deleted=copy.is_removed,
        status=Status(
            phase="Created",
            conditions=conditions if ended else (),
            velero=Mirrored(copy.name, copy.name, "velero", _encode(status).decode()),
        ),
        schedule_uid=OURS,
        slot=copy.slot,
        delete_after=copy.delete_after,
        waits_for_approval=copy.waits_for_approval,
        is_pinned=copy.is_pinned,
    )


def _waiting(name: str, since: datetime) -> RequestRow:
    condition = Condition("Accepted", "False", "QuotaExceeded", "Limit of stored backups reached", stamp(since), 1)
    return new_request(
        key=Key(NAS.namespace, name),
        uid=f"waiting-{name}",
        created=since,
        status=Status(phase="New", conditions=(condition,)),
        schedule_uid=OURS,
        slot=datetime.strptime(f"{name[-14:]}+0000", "%Y%m%d%H%M%S%z"),
    )


def _velero(copy: Copy) -> VeleroRow:
    mirror: dict[str, Any] = {"phase": copy.phase}
    if copy.began is not None:
        mirror["startTimestamp"] = stamp(copy.began)
    if copy.phase != "New":
        mirror["progress"] = {"totalItems": copy.items, "itemsBackedUp": copy.items}
    if copy.failure:
        mirror["failureReason"] = copy.failure
    return VeleroRow(
        key=Key("velero", copy.name),
        uid=f"v-{copy.uid}",
        created=copy.made,
        owner=Key(NAS.namespace, _run_name(copy)),
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
