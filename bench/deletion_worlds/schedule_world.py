"""A Velero Schedule under a SchedulePolicy: the rules decide as in the operator, and their writes are applied."""

from datetime import timedelta
from typing import Any

import msgspec

from bench.deletion_worlds.cluster import GRACES, UIDS, ClusterWorld, Conflict, Request
from bench.deletion_worlds.model import DAY, HOUR, MINUTE, Copy, Judge, Report
from foresail.api import velero
from foresail.api.instants import instant
from foresail.api.marks import DELETE_AFTER, RETENTION_APPROVED, SCHEDULE_UID, SLOT
from foresail.cron.duration import length_of
from foresail.deletion import approval
from foresail.plan import Action, Create, Delete, Key, Patch
from foresail.schedules.decide import decide
from foresail.schedules.observe import BackupRow, DeletionRow, ScheduleRow, ScheduleView, Unread
from foresail.schedules.policies import settings_under
from foresail.schedules.retention import Retained, asked_for, deletion_name
from foresail.schedules.rules import Verdict
from foresail.schedules.rules import judge as judge_schedule
from foresail.schedules.settings import Settings
from foresail.slots.policy_timing import PolicyRow
from tests.unit.schedules.rows import AVAILABLE, GO_CRON, schedule, view, watched
from tests.unit.schedules.test_policies import policy

TEXTS = {"0 12 * * *": DAY, "0 */6 * * *": 6 * HOUR, "0 * * * *": HOUR}
ZONES = ("UTC", "Europe/Berlin", "America/New_York")
RULES: tuple[dict[str, Any], ...] = (
    {"keepLast": 1},
    {"keepLast": 7},
    {"keepLast": 30},
    {"daily": 7, "weekly": 4},
    {"hourly": 24, "daily": 3},
    {"keepWithin": "240h"},
    {"daily": 3, "monthly": 2, "keepGood": 3},
)


GONE = ("policy", "retention", "handed over", "invalid")
"""How rules cease to apply to a Schedule."""

_VELERO_RUNS = msgspec.structs.replace(GO_CRON, has_schedule_controller=True)
_UNREAD = (Unread(Key("", "odd"), "spec.retention: expected an object"),)


class ScheduleWorld(ClusterWorld):
    """One or two Velero Schedules under one policy."""

    def __init__(self, seed: int, report: Report) -> None:
        super().__init__("schedule", seed, report)
        self.schedules: dict[str, ScheduleRow] = {}
        self.intervals: dict[str, timedelta] = {}
        for name, uid in (("daily", UIDS[0]), ("daily-20260101000000", UIDS[1]))[: self.chance.choice((1, 1, 2))]:
            text = self.chance.choice(tuple(TEXTS))
            row = watched(schedule(text=text, created=self.now, last_backup=None))
            self.schedules[name] = msgspec.structs.replace(row, key=Key("velero", name), uid=uid)
            self.intervals[name] = TEXTS[text]
            self.judges[name] = Judge(f"{self.seed} {name}", report)
        self.interval = min(self.intervals.values())
        self.kept, self.zone, self.grace_text = self.chance.choice(RULES), "UTC", self.chance.choice(tuple(GRACES))
        self.gone = ""  # how rules ceased to apply
        self.policy = self._policy()

    def _policy(self) -> PolicyRow:
        self.grace = GRACES[self.grace_text]
        return policy(retention={**self.kept, "gracePeriod": self.grace_text}, timeZone=self.zone)

    @property
    def rules(self) -> str:
        """The rules with their zone."""
        return "" if self.gone else f"{self.kept} {self.zone}"

    @property
    def keeps(self) -> int | None:
        """The number of `keepLast`, with which other rules only keep more."""
        number: int | None = self.kept.get("keepLast")
        return number

    def edit(self) -> None:
        """Edit the rules, the zone or the grace period."""
        field = self.chance.randrange(3)
        if field == 0:
            self.kept = self.chance.choice(RULES)
        elif field == 1:
            self.zone = self.chance.choice(ZONES)
        else:
            self.grace_text = self.chance.choice(tuple(GRACES))
        self.policy = self._policy()

    def keep_only(self, number: int, grace: str = "0s") -> None:
        """Let `keepLast` apply."""
        self.kept, self.grace_text = {"keepLast": number}, grace
        self.policy = self._policy()

    def set_rules(self, *, applies: bool) -> None:
        """Let the policy apply, or make it cease in one of the ways."""
        self.gone = "" if applies else self.chance.choice(GONE)

    def forget_approval(self, schedule: str) -> None:
        """Remove the annotation."""
        annotations = self.schedules[schedule].annotations
        kept = {name: text for name, text in annotations.items() if name != RETENTION_APPROVED}
        self._change_schedule(schedule, annotations=kept)

    def set_paused(self, *, paused: bool) -> None:
        """Pause the Schedules, or unpause them."""
        for name in self.schedules:
            self._change_schedule(name, paused=paused)

    def _change_schedule(self, name: str, **changes: Any) -> None:  # noqa: ANN401 - any column
        self.number += 1
        self.schedules[name] = msgspec.structs.replace(self.schedules[name], version=str(self.number), **changes)

    def view_schedule(self) -> object:
        """Return the rows of the Schedules."""
        return dict(self.schedules)

    def put_schedule(self, schedule: object) -> None:
        """Let etcd have these rows again."""
        if isinstance(schedule, dict):
            self.schedules = dict(schedule)

    def approve(self) -> None:
        """Look at the list of `foresail schedule retention`, and approve it."""
        for name, judge in self.judges.items():
            seen = self.view(name)
            retained = judge_schedule(seen, self.now + self.offset).retained
            if self.rules and retained is not None and retained.decision.asks:
                listed = asked_for(seen.backups, retained)
                judge.approve(self.rules, (row.uid for row in listed))
                self.heed_approval({row.uid for row in listed})
                approved = approval(listed, retained.digest)
                annotations = {**self.schedules[name].annotations, RETENTION_APPROVED: approved}
                self._change_schedule(name, annotations=annotations)

    # What the operator sees

    def view(self, name: str) -> ScheduleView:
        """Return what a decision about a Schedule sees."""
        row = self.schedules[name]
        if self.gone == "invalid":
            row = msgspec.structs.replace(row, template=b'{"ttl": "a day"}')
        location = msgspec.structs.replace(AVAILABLE, phase="Available" if self.is_available else "Unavailable")
        open_ones = [_deletion_row(request) for request in self.requests.values()]
        copies = [copy for copy in self.copies.values() if copy.schedule == name]
        names = {copy.name for copy in copies}
        applied = {"policy": None, "retention": policy(timeZone=self.zone)}.get(self.gone, self.policy)
        return view(
            row,
            *map(_row, copies),
            policy=applied,
            settings=settings_under(applied, Settings()),
            server=_VELERO_RUNS if self.gone == "handed over" else GO_CRON,
            locations=(location,),
            location=location,
            deletions=tuple(row for row in open_ones if row.backup in names),
            open_deletions=sum(row.is_pending(self.now + self.offset) for row in open_ones),
            restored=frozenset(names) if self.unread == "restore" else self.restored & names,
            unread_policies=_UNREAD if self.unread == "policy" else (),
            skew=self.skew,
        )

    def decide_once(self) -> bool:
        """Decide about each Schedule and write once."""
        return any([self._decide(name) for name in self.schedules])  # noqa: C419 - all of them

    def _decide(self, name: str) -> bool:
        at = self.now + self.offset
        seen = self.view(name)
        self.seen_in = self.moment()
        plan = decide(seen, at)
        verdict = plan.claim(Verdict)
        if verdict is not None and verdict.retained is not None and self.rules:
            self._check_silence(name, verdict.retained)
        self.interfere([write.key.name for write in plan.writes if write.kind == velero.BACKUP])
        for write in plan.writes:
            self.survive()
            self._apply(write, name)
        return bool(plan.writes)

    def _apply(self, write: Action, schedule: str) -> None:
        match write:
            case Create(kind=velero.BACKUP):
                ttl = dict(write.body["spec"]).get("ttl", "")  # type: ignore[call-overload]
                slot = instant(write.mark[SLOT]) or self.now
                lives = length_of(ttl) if ttl else None
                self.run(write.key.name, slot, write.mark[SCHEDULE_UID], lives, schedule)
            case Create():
                self._ask(str(write.body["spec"]["backupName"]))  # type: ignore[index]
            case Patch(kind=velero.SCHEDULE):
                self._patch_schedule(write)
            case Patch():
                self._patch_backup(write)
            case Delete(kind=velero.BACKUP):
                self._delete_backup(write)
            case Delete():
                request = self.requests.pop(write.key.name, None)
                if request is not None and request.backup in self.copies:
                    self.copies[request.backup].asked = None
            case _:
                raise AssertionError(f"nobody expects {write}")

    def _patch_backup(self, write: Patch) -> None:
        copy = self.copies.get(write.key.name)
        if copy is None:
            raise Conflict
        after = write.body["metadata"]["annotations"][DELETE_AFTER]  # type: ignore[index]
        self.mark(copy, write.resource_version or "", instant(after) if after else None, asks=False)
        self.was_pinned = copy.is_pinned

    was_pinned = False  # the Backup that was marked last, at that time

    def _delete_backup(self, write: Delete) -> None:
        copy = self.copies.get(write.key.name)
        if copy is None or copy.uid != write.uid:
            raise Conflict
        stored = self.bucket.get(copy.name)
        self.judges[copy.schedule].removed(copy, stored.content if stored is not None else None)
        self.drop(copy, with_data=False)

    def _ask(self, name: str) -> None:
        copy = self.copies[name]
        if self.seen_in is not None:
            own = {other.name: other for other in self.copies.values() if other.schedule == copy.schedule}
            self.judges[copy.schedule].requested(copy, own, self.seen_in, is_pinned=self.was_pinned)
        self.change_in_between(copy)
        copy.asked = self.now
        patience = 8 if self.meddling else self.patience()
        self.requests.setdefault(deletion_name(name), Request(name, copy.uid, self.now, patience=patience))

    def _patch_schedule(self, write: Patch) -> None:
        row = self.schedules[write.key.name]
        if write.resource_version != row.version:
            raise Conflict
        body: Any = write.body
        annotations = {**row.annotations, **body.get("metadata", {}).get("annotations", {})}
        status = body.get("status", {})
        last = status.get("lastBackup", row.last_backup)
        self._change_schedule(
            write.key.name,
            annotations={name: text for name, text in annotations.items() if text is not None},
            last_backup=instant(last) if isinstance(last, str) else last,
            phase=status.get("phase", row.phase),
            errors=tuple(status.get("validationErrors", row.errors) or ()),
        )

    # What must be reported, and must come to its end

    def _check_silence(self, schedule: str, retained: Retained) -> None:
        if abs(self.offset) > 5 * MINUTE:  # the doubt about the clock is reported instead
            return
        own = [row for row in self.requests.values() if self._schedule_of(row) == schedule]
        late = [row for row in own if row.ended is None and self.now - row.made > 70 * MINUTE]
        if late and retained.failed is None and not retained.withdrawn:
            self.report.unreported.append(f"{self.seed}: Velero does not begin the deletion of {late[0].backup}")
        overdue = [copy for copy in self.overdue(HOUR) if copy.name in retained.goes]
        if overdue and not self.is_available and retained.blocked_by is None:
            self.report.unreported.append(f"{self.seed}: {overdue[0].name} is overdue, and nobody says why")

    def _schedule_of(self, request: Request) -> str:
        copy = self.copies.get(request.backup)
        return copy.schedule if copy is not None else ""

    def overdue(self, by: timedelta) -> list[Copy]:
        """Return the Backups whose date has passed by so much."""
        copies = [copy for copy in self.copies.values() if copy.delete_after is not None]
        return [copy for copy in copies if copy.delete_after is not None and copy.delete_after + by < self.now]

    def check_end(self) -> None:
        """Report a Backup that is overdue, and a Schedule that does not run."""
        for copy in self.overdue(2 * DAY):
            self.report.starved.append(f"{self.seed}: {copy.name} is overdue since {copy.delete_after}")
        for name, row in self.schedules.items():
            newest = max((copy.slot for copy in self.copies.values() if copy.owner == row.uid), default=None)
            if newest is None or self.now - newest > 2 * self.intervals[name] + DAY:
                self.report.starved.append(f"{self.seed}: the last run of {name} was {newest}, and now is {self.now}")


def _row(copy: Copy) -> BackupRow:
    return BackupRow(
        Key("velero", copy.name),
        copy.schedule,
        copy.owner,
        copy.slot if copy.owner else None,
        copy.phase,
        copy.made,
        copy.completed,
        copy.expires,
        location="default",
        is_pinned=copy.is_pinned,
        uid=copy.uid,
        version=str(copy.version),
        failure=copy.failure,
        delete_after=copy.delete_after,
        began=copy.began,
        items=copy.items if copy.has_progress else None,
    )


def _deletion_row(request: Request) -> DeletionRow:
    return DeletionRow(
        Key("velero", deletion_name(request.backup)),
        request.backup,
        is_open=request.ended is None,
        is_ours=True,
        errors=request.errors,
        stalls_at=request.made + HOUR if request.ended is None else None,
        uid=f"r-{request.uid}",
        backup_uid=request.uid,
    )
