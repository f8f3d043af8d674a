"""A Velero Schedule under a SchedulePolicy: the rules decide as in the operator, and their writes are applied."""

from datetime import timedelta
from typing import Any

import msgspec

from bench.deletion_worlds.cluster import GRACES, OURS, ClusterWorld, Conflict, Request
from bench.deletion_worlds.model import DAY, HOUR, MINUTE, Copy, Report
from foresail.api import velero
from foresail.api.instants import instant
from foresail.api.marks import DELETE_AFTER, RETENTION_APPROVED, SCHEDULE_UID, SLOT
from foresail.cron.duration import length_of
from foresail.deletion import approval
from foresail.plan import Action, Create, Delete, Key, Patch
from foresail.schedules.decide import decide
from foresail.schedules.observe import BackupRow, DeletionRow, ScheduleRow, ScheduleView
from foresail.schedules.policies import settings_under
from foresail.schedules.retention import Retained, asked_for, deletion_name
from foresail.schedules.rules import Verdict, judge
from foresail.schedules.settings import Settings
from foresail.slots.policy_timing import PolicyRow
from tests.unit.schedules.rows import AVAILABLE, schedule, view, watched
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


class ScheduleWorld(ClusterWorld):
    """One Velero Schedule."""

    def __init__(self, seed: int, report: Report) -> None:
        super().__init__(f"schedule {seed}", report)
        text = self.chance.choice(tuple(TEXTS))
        self.interval = TEXTS[text]
        self.schedule = watched(schedule(text=text, created=self.now, last_backup=None))
        self.rules, self.zone, self.grace_text = self.chance.choice(RULES), "UTC", self.chance.choice(tuple(GRACES))
        self.policy = self._policy()

    def _policy(self) -> PolicyRow:
        self.grace = GRACES[self.grace_text]
        return policy(retention={**self.rules, "gracePeriod": self.grace_text}, timeZone=self.zone)

    def edit(self) -> None:
        """Edit the rules, the zone or the grace period."""
        field = self.chance.randrange(3)
        if field == 0:
            self.rules = self.chance.choice(RULES)
        elif field == 1:
            self.zone = self.chance.choice(ZONES)
        else:
            self.grace_text = self.chance.choice(tuple(GRACES))
        self.policy = self._policy()

    def set_paused(self, *, paused: bool) -> None:
        """Pause the Schedule, or unpause it."""
        self._change_schedule(paused=paused)

    def _change_schedule(self, **changes: Any) -> None:  # noqa: ANN401 - any column
        self.number += 1
        self.schedule = msgspec.structs.replace(self.schedule, version=str(self.number), **changes)

    def view_schedule(self) -> object:
        """Return the row of the Schedule."""
        return self.schedule

    def put_schedule(self, schedule: object) -> None:
        """Let etcd have this row again."""
        if isinstance(schedule, ScheduleRow):
            self.schedule = schedule

    def approve(self) -> None:
        """Look at the list of `foresail schedule retention`, and approve it."""
        seen = self.view()
        retained = judge(seen, self.now + self.offset).retained
        if retained is not None and retained.decision.asks:
            listed = asked_for(seen.backups, retained)
            self.judge.approved |= {row.uid for row in listed}
            approved = approval(listed, retained.digest)
            self._change_schedule(annotations={**self.schedule.annotations, RETENTION_APPROVED: approved})

    # What the operator sees

    def view(self) -> ScheduleView:
        """Return what a decision sees."""
        location = msgspec.structs.replace(AVAILABLE, phase="Available" if self.is_available else "Unavailable")
        deletions = tuple(map(_deletion_row, self.requests.values()))
        return view(
            self.schedule,
            *map(_row, self.copies.values()),
            policy=self.policy,
            settings=settings_under(self.policy, Settings()),
            locations=(location,),
            location=location,
            deletions=deletions,
            open_deletions=sum(row.is_pending(self.now + self.offset) for row in deletions),
            restored=self.restored,
            skew=self.offset,
        )

    def decide_once(self) -> bool:
        """Decide and write once."""
        at = self.now + self.offset
        seen = self.view()
        plan = decide(seen, at)
        verdict = plan.claim(Verdict)
        if verdict is not None and verdict.retained is not None:
            self._check_silence(verdict.retained)
        self.interfere([write.key.name for write in plan.writes if write.kind == velero.BACKUP])
        for write in plan.writes:
            self.survive()
            self._apply(write)
        return bool(plan.writes)

    def _apply(self, write: Action) -> None:
        match write:
            case Create(kind=velero.BACKUP):
                ttl = dict(write.body["spec"]).get("ttl", "")  # type: ignore[call-overload]
                slot = instant(write.mark[SLOT]) or self.now
                self.run(write.key.name, slot, write.mark[SCHEDULE_UID], length_of(ttl) if ttl else None)
            case Create():
                self._ask(str(write.body["spec"]["backupName"]))  # type: ignore[index]
            case Patch(kind=velero.SCHEDULE):
                self._patch_schedule(write)
            case Patch():
                self._patch_backup(write)
            case Delete(kind=velero.BACKUP):
                self._delete_backup(write)
            case Delete():
                backup = self.requests.pop(write.key.name).backup
                if backup in self.copies:
                    self.copies[backup].asked = None
            case _:
                raise AssertionError(f"nobody expects {write}")

    def _patch_backup(self, write: Patch) -> None:
        copy = self.copies.get(write.key.name)
        if copy is None:
            raise Conflict
        after = write.body["metadata"]["annotations"][DELETE_AFTER]  # type: ignore[index]
        self.mark(copy, write.resource_version or "", instant(after) if after else None, asks=False)

    def _delete_backup(self, write: Delete) -> None:
        copy = self.copies.get(write.key.name)
        if copy is None or copy.uid != write.uid:
            raise Conflict
        stored = self.bucket.get(copy.name)
        self.judge.removed(copy, stored.content if stored is not None else None)
        self.drop(copy, with_data=False)

    def _ask(self, name: str) -> None:
        copy = self.copies[name]
        self.judge.requested(copy, self.copies, self.moment())
        copy.asked = self.now
        self.requests.setdefault(deletion_name(name), Request(name, copy.uid, self.now))

    def _patch_schedule(self, write: Patch) -> None:
        if write.resource_version != self.schedule.version:
            raise Conflict
        body: Any = write.body
        annotations = {**self.schedule.annotations, **body.get("metadata", {}).get("annotations", {})}
        status = body.get("status", {})
        last = status.get("lastBackup", self.schedule.last_backup)
        self._change_schedule(
            annotations={name: text for name, text in annotations.items() if text is not None},
            last_backup=instant(last) if isinstance(last, str) else last,
        )

    # What must be reported, and must come to its end

    def _check_silence(self, retained: Retained) -> None:
        if abs(self.offset) > 5 * MINUTE:  # the doubt about the clock is reported instead
            return
        late = [row for row in self.requests.values() if row.ended is None and self.now - row.made > 70 * MINUTE]
        if late and retained.failed is None and not retained.withdrawn:
            self.report.unreported.append(f"{self.seed}: Velero does not begin the deletion of {late[0].backup}")
        overdue = [copy for copy in self.overdue(HOUR) if copy.name in retained.goes]
        if overdue and not self.is_available and retained.blocked_by is None:
            self.report.unreported.append(f"{self.seed}: {overdue[0].name} is overdue, and nobody says why")

    def overdue(self, by: timedelta) -> list[Copy]:
        """Return the Backups whose date has passed by so much."""
        copies = [copy for copy in self.copies.values() if copy.delete_after is not None]
        return [copy for copy in copies if copy.delete_after is not None and copy.delete_after + by < self.now]

    def check_end(self) -> None:
        """Report a Backup that is overdue, and a Schedule that does not run."""
        for copy in self.overdue(2 * DAY):
            self.report.starved.append(f"{self.seed}: {copy.name} is overdue since {copy.delete_after}")
        newest = max((copy.slot for copy in self.copies.values() if copy.owner == OURS), default=None)
        if newest is None or self.now - newest > 2 * self.interval + DAY:
            self.report.starved.append(f"{self.seed}: the last run was {newest}, and now is {self.now}")


def _row(copy: Copy) -> BackupRow:
    return BackupRow(
        Key("velero", copy.name),
        "daily",
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
        items=copy.items if copy.phase != "New" else None,
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
