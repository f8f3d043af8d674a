"""Retention over many Plans: what one writes, the next one reads."""

from datetime import datetime, timedelta
from typing import Any

import msgspec
import pytest

from foresail.api import velero
from foresail.api.instants import instant
from foresail.api.marks import DELETE_AFTER, RETENTION_APPROVED
from foresail.deletion import approval
from foresail.plan import Create, Delete, Key, Patch
from foresail.schedules.decide import decide
from foresail.schedules.observe import BackupRow, DeletionRow, VeleroServer
from foresail.schedules.retention import Retained, asked_for
from foresail.schedules.rules import judge
from tests.unit.schedules.rows import AVAILABLE, DAY, GO_CRON, HOUR, MINUTE, NOON, backup, schedule, view, watched
from tests.unit.schedules.test_policies import policy


class Life:
    """A paused Schedule with daily runs, and the writes of its Plans."""

    def __init__(self, runs: int) -> None:
        self.now = NOON + 5 * MINUTE
        self.backups: dict[str, BackupRow] = {}
        self.schedule = watched(schedule(text="0 12 * * *", created=NOON - 400 * DAY, last_backup=NOON, paused=True))
        self.policy: Any = None
        self.server: VeleroServer = GO_CRON
        self.requested: list[str] = []
        for number in range(runs):
            self.add(number, NOON - number * DAY)

    def add(self, number: int, slot: datetime, **changed: Any) -> None:  # noqa: ANN401 - any column
        """Add the run of a slot."""
        name = f"daily-{number:03}"
        row = backup(slot=slot, key=Key("velero", name), completed=slot + MINUTE, created=slot, uid=f"u{number}")
        self.backups[name] = msgspec.structs.replace(row, location="default", items=100, **changed)

    def rules(self, keeps: int, grace: str = "0s") -> None:
        """Let a policy apply, and run."""
        self.policy = policy(retention={"keepLast": keeps, "gracePeriod": grace})
        self.run()

    def no_rules(self) -> None:
        """Delete the policy, and run."""
        self.policy = None
        self.run()

    def run(self) -> None:
        """Carry out Plans until one writes nothing."""
        for _ in range(300):
            if not self._step():
                return
            self.now += timedelta(seconds=1)
        raise AssertionError("it never comes to rest")

    def _step(self) -> bool:
        seen = view(self.schedule, *self.backups.values(), **self._around())
        plan = decide(seen, self.now)
        for write in plan.writes:
            if isinstance(write, Patch):
                self._merge(write)
            elif isinstance(write, Create):
                name = str(write.body["spec"]["backupName"])  # type: ignore[index]
                self.requested.append(name)
                del self.backups[name]
        return bool(plan.writes)

    def _around(self) -> dict[str, Any]:
        around = {"policy": self.policy, "server": self.server}
        return {**around, "locations": (AVAILABLE,), "skew": timedelta()}

    def _merge(self, write: Patch) -> None:
        annotations: Any = write.body.get("metadata", {}).get("annotations", {})  # type: ignore[attr-defined]
        if write.kind == velero.SCHEDULE:
            row = self.schedule
            status: Any = write.body.get("status", {})
            self.schedule = msgspec.structs.replace(
                row,
                annotations={**row.annotations, **annotations},
                phase=status.get("phase", row.phase),
                errors=tuple(status.get("validationErrors", row.errors) or ()),
            )
            return
        at = annotations[DELETE_AFTER]
        marked = self.backups[write.key.name]
        self.backups[marked.name] = msgspec.structs.replace(marked, delete_after=instant(at) if at else None)

    def approve(self) -> None:
        """Approve the list that waits, and run."""
        listed = approval(asked_for(self.backups.values(), self.retained), self.retained.digest)
        annotations = {**self.schedule.annotations, RETENTION_APPROVED: listed}
        self.schedule = msgspec.structs.replace(self.schedule, annotations=annotations)
        self.run()

    @property
    def marked(self) -> dict[str, datetime]:
        """When each marked Backup goes."""
        return {name: row.delete_after for name, row in self.backups.items() if row.delete_after is not None}

    @property
    def retained(self) -> Retained:
        """What the rules say now."""
        found = judge(view(self.schedule, *self.backups.values(), **self._around()), self.now).retained
        assert found is not None
        return found


# Rules that come back


def two_marked() -> Life:
    life = Life(20)
    life.rules(20, "24h")
    life.rules(18, "24h")
    assert list(life.marked) == ["daily-018", "daily-019"]
    life.now += HOUR
    return life


@pytest.mark.parametrize("gone", ["policy", "retention", "handed over", "invalid"])
def test_marks_do_not_outlive_the_rules_and_their_return_starts_a_new_grace_period(gone: str) -> None:
    life = two_marked()
    before = life.schedule
    if gone == "policy":
        life.policy = None
    elif gone == "retention":
        life.policy = policy()
    elif gone == "handed over":
        life.server = msgspec.structs.replace(GO_CRON, has_schedule_controller=True)
    else:
        life.schedule = msgspec.structs.replace(before, template=b'{"ttl": "a day"}')
    life.run()
    assert not life.marked
    life.now += 30 * DAY
    life.server = GO_CRON
    life.schedule = msgspec.structs.replace(life.schedule, template=before.template)
    returned = life.now
    life.rules(18, "720h")
    assert not life.requested
    assert all(at >= returned + 30 * DAY for at in life.marked.values())
    life.now += 30 * DAY
    life.run()
    assert sorted(life.requested) == ["daily-018", "daily-019"]


def test_requests_that_velero_has_not_begun_are_taken_back_when_the_policy_is_deleted() -> None:
    row = backup(slot=NOON, uid="u", location="default")
    request = DeletionRow(Key("velero", "x"), row.name, is_open=True, is_ours=True, uid="r", backup_uid="u")
    seen = view(watched(schedule(last_backup=NOON)), row, deletions=(request,), locations=(AVAILABLE,))
    assert decide(seen, NOON + MINUTE).actions == (Delete(velero.DELETE_REQUEST, request.key, "r"),)
    begun = msgspec.structs.replace(seen, deletions=(msgspec.structs.replace(request, is_begun=True),))
    assert not decide(begun, NOON + MINUTE).actions


def test_a_mark_that_came_due_before_its_rules_were_in_effect_is_written_anew() -> None:
    """No operator ran while the policy was away: the mark of the earlier one is still there."""
    life = Life(60)
    life.rules(60, "24h")
    life.rules(48, "24h")
    assert life.retained.decision.asks, "more than ten: they wait"
    life.rules(50, "24h")
    assert len(life.marked) == 10
    life.now += 30 * DAY
    returned = life.now
    life.rules(49, "720h")
    assert not life.requested
    assert len(life.marked) == 11 - len(life.retained.decision.asks)
    assert all(at >= returned + 30 * DAY for at in life.marked.values())


def test_retention_that_goes_and_comes_back_forgets_no_deletion() -> None:
    life = Life(100)
    life.rules(100)
    for keeps in range(90, 40, -10):
        life.rules(keeps)
        life.no_rules()
    assert len(life.requested) == 10
    life.now += DAY + HOUR
    life.rules(40)
    assert len(life.requested) == 10, "50 at once ask"
    life.rules(82)
    assert len(life.requested) == 18, "what was deleted a day ago no longer counts"


def test_an_approval_is_of_the_rules_under_which_it_was_given() -> None:
    life = Life(100)
    life.rules(100, "24h")
    life.rules(10, "24h")
    life.approve()
    assert len(life.marked) == 90
    life.rules(100, "24h")
    assert not life.marked
    life.now += 90 * DAY
    life.rules(3)
    assert not life.requested
    assert len(life.retained.decision.asks) == 97
    life.rules(10)
    assert len(life.requested) == 90, "the same rules and the same Backups"


@pytest.mark.parametrize("keeps", [100, 99], ids=["rules that are new", "rules that were edited"])
def test_an_approved_deletion_lets_ordinary_turnover_go_on(keeps: int) -> None:
    life = Life(0)
    for number in range(1, 100):
        life.add(number, NOON - number * DAY)
    life.rules(keeps)
    life.rules(10)
    life.approve()
    assert len(life.requested) == 89
    life.add(0, NOON)
    life.run()
    assert not life.retained.decision.asks
    assert len(life.requested) == 90
    life.rules(1)
    assert len(life.retained.decision.asks) == 9, "what nobody approved asks as before"


# Many at once


def test_runs_that_failed_let_no_other_backup_go() -> None:
    life = Life(0)
    for number in range(24, 54):
        life.add(number, NOON - number * HOUR)
    for number in range(54, 88):
        life.add(number, NOON - number * DAY, is_pinned=True)
    life.rules(30)
    for number in range(24):
        life.add(number, NOON - number * HOUR, phase="Failed")
    life.run()
    unpinned = {name: msgspec.structs.replace(row, is_pinned=False) for name, row in life.backups.items()}
    life.backups = unpinned
    life.run()
    assert not life.requested
    assert len(life.retained.decision.asks) == 34


def test_failed_runs_that_go_after_a_good_one_ask_nothing() -> None:
    life = Life(0)
    for number in range(24, 48):
        life.add(number, NOON - number * HOUR)
    life.rules(24)
    for number in range(1, 24):
        life.add(number, NOON - number * HOUR, phase="Failed")
    life.add(0, NOON)
    life.run()
    assert len(life.requested) == 24
