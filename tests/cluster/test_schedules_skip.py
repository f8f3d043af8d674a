"""Every statement about skipImmediately on a real cluster: one row each, all rows side by side."""

import json
import time
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from http import HTTPStatus
from itertools import product
from pathlib import Path
from typing import Any

import pytest

from foresail.api.instants import stamp, whole
from foresail.api.marks import OBSERVED
from foresail.kube.clock import now
from testbed import Cluster
from tests.cluster.operators import USER, running
from tests.cluster.schedules import (
    Eventually,
    backups,
    clear,
    created,
    instant_of,
    phase,
    quick_velero,
    reasons,
    schedule,
    show,
    shown,
    slot,
    slots,
    velero_at_rest,
)

PERIOD = timedelta(seconds=10)
OURS = ("schedules.velero.io", "backups.velero.io")
WORDS = {None: "nil", True: "true", False: "false"}


@dataclass(frozen=True)
class Row:
    """One statement: what happens to a Schedule, what its field says, what the operator's default is."""

    occasion: str  # create, take-over, pause or unpause
    default: bool  # --schedule-skip-immediately of the operator
    stored: bool | None  # spec.skipImmediately as it was created
    flag: bool | None = None  # --skip-immediately of the command that pauses or unpauses: it writes the field
    due: bool = False  # a slot has passed
    ran: bool = False  # there is a lastBackup

    @property
    def name(self) -> str:
        stored, flag = WORDS[self.stored], WORDS[self.flag]
        due, ran = "due" if self.due else "early", "ran" if self.ran else "new"
        return f"{self.occasion}-field-{stored}-flag-{flag}-default-{WORDS[self.default]}-{due}-{ran}"

    @property
    def sent(self) -> bool | None:
        """What the field says when the occasion comes."""
        return self.stored if self.flag is None else self.flag

    @property
    def is_skipped(self) -> bool:
        """The design document: the field if set, else the operator's default; never for what is not new."""
        if self.occasion == "take-over":
            return self.sent is True
        return self.default if self.sent is None else self.sent

    def manifest(self, *, later: bool) -> dict[str, Any]:
        paused = self.occasion == ("pause" if later else "unpause")
        text = f"@every {PERIOD.seconds}s" if self.due else "@every 1h"
        return schedule(self.name, text, paused=paused, skipImmediately=self.sent if later else self.stored)


FIELD = (None, True, False)
YES_NO = (False, True)
ROWS = [
    *(Row("create", default, stored, due=due) for default, stored, due in product(YES_NO, FIELD, YES_NO)),
    *(Row("take-over", default, stored, due=due, ran=True) for default, stored, due in product(YES_NO, FIELD, YES_NO)),
    *(Row("pause", default, None, flag) for default, flag in product(YES_NO, FIELD)),
    *(Row("unpause", *columns) for columns in product(YES_NO, FIELD, FIELD, YES_NO, YES_NO)),
]


@dataclass(frozen=True)
class Outcome:
    """What became of a row: the Schedule before and after its second step, and its slots at the end."""

    base: datetime
    before: dict[str, Any]
    backups_before: int
    step: datetime  # before the second step was taken
    taken: datetime  # and after it
    after: dict[str, Any]
    slots: list[datetime]


@pytest.fixture(scope="module")
def resting(schedule_cluster: Cluster) -> Iterator[Cluster]:
    with velero_at_rest(schedule_cluster) as cluster:
        yield cluster


@pytest.fixture(scope="module")
def outcomes(resting: Cluster, tmp_path_factory: pytest.TempPathFactory, eventually: Eventually) -> dict[Row, Outcome]:
    found: dict[Row, Outcome] = {}
    for default in YES_NO:
        rows = [row for row in ROWS if row.default is default]
        found |= outcomes_of(resting, tmp_path_factory.mktemp("skip"), rows, eventually)
    return found


def outcomes_of(cluster: Cluster, folder: Path, rows: list[Row], eventually: Eventually) -> dict[Row, Outcome]:
    """Create the rows while no operator runs, let slots pass, start it, take each row's second step, and look."""
    clear(cluster)
    cluster.apply(*(row.manifest(later=False) for row in rows))
    ran = whole(now())
    write_history(cluster, [row.name for row in rows if row.ran], ran)
    time.sleep(PERIOD.total_seconds() + 1)
    with running(cluster, folder, f"--schedule-skip-immediately={WORDS[rows[0].default]}"):
        eventually(lambda: all(observed(item) for item in shown(cluster).values()), 120)
        before, early = shown(cluster), backups(cluster)
        step = whole(now())
        cluster.apply(*(row.manifest(later=True) for row in rows if row.occasion in ("pause", "unpause")))
        taken = now()
        eventually(lambda: all(is_through(item, rows) for item in shown(cluster).values()), 120)
        time.sleep(PERIOD.total_seconds() + 3)
        due = {row.name for row in rows if row.due}
        eventually(lambda: due <= {label(each) for each in backups(cluster)}, 60)  # on a busy machine some come late
        after, made = shown(cluster), backups(cluster)
    return {
        row: Outcome(
            base=ran if row.ran else created(before[row.name]),
            before=before[row.name],
            backups_before=sum(label(each) == row.name for each in early),
            step=step,
            taken=taken,
            after=after[row.name],
            slots=[slot(each) for each in made if label(each) == row.name],
        )
        for row in rows
    }


def write_history(cluster: Cluster, names: list[str], ran: datetime) -> None:
    """Let these Schedules have run at that instant, under a controller that is gone."""
    status = {"phase": "Enabled", "lastBackup": stamp(ran)}
    items = [{**schedule(name, ""), "status": status} for name in names]
    for item in items:
        del item["spec"]  # only the status is theirs
    text = json.dumps({"apiVersion": "v1", "kind": "List", "items": items})
    command = ("apply", "--server-side", "--field-manager=history", "--validate=false", "--filename=-")
    cluster.kubectl(*command, text=text)


def observed(item: dict[str, Any]) -> dict[str, Any]:
    """Return what the operator remembers about a Schedule; nothing if it has not looked at it yet."""
    found: dict[str, Any] = json.loads(item["metadata"].get("annotations", {}).get(OBSERVED, "{}"))
    return found


def is_through(item: dict[str, Any], rows: list[Row]) -> bool:
    """Whether the operator has seen a Schedule's second step."""
    row = next(each for each in rows if each.name == item["metadata"]["name"])
    is_paused = "paused" in observed(item)
    return is_paused if row.occasion == "pause" else not is_paused


def label(backup: dict[str, Any]) -> str:
    return str(backup["metadata"]["labels"]["velero.io/schedule-name"])


def skip_field(item: dict[str, Any]) -> bool | None:
    found: bool | None = item["spec"].get("skipImmediately")
    return found


@pytest.mark.parametrize("row", [row for row in ROWS if row.occasion != "pause"], ids=lambda row: row.name)
def test_the_due_run_is_skipped_or_not_as_the_field_says_or_else_the_default(
    outcomes: dict[Row, Outcome], row: Row
) -> None:
    found = outcomes[row]
    if row.occasion == "unpause":  # never consumed while paused
        assert skip_field(found.before) is row.stored
        assert instant_of(found.before, "lastSkipped") is None
        assert found.backups_before == 0
    skipped = instant_of(found.after, "lastSkipped")
    if row.is_skipped:
        assert skipped is not None
        assert skipped >= (found.step if row.occasion == "unpause" else found.base + PERIOD)
        assert skip_field(found.after) is None  # so that it can be used again
        assert found.slots == ([skipped + PERIOD] if row.due else [])
    else:
        assert skipped is None
        assert skip_field(found.after) is row.sent
        assert len(found.slots) == row.due
        assert all((each - found.base) % PERIOD == timedelta() for each in found.slots)
        assert all(each <= found.taken + PERIOD / 2 for each in found.slots)
    assert phase(found.after) == "Enabled"


@pytest.mark.parametrize("row", [row for row in ROWS if row.occasion == "pause"], ids=lambda row: row.name)
def test_what_is_said_with_a_pause_is_kept_for_the_unpause(outcomes: dict[Row, Outcome], row: Row) -> None:
    found = outcomes[row]
    assert skip_field(found.after) is row.flag
    assert instant_of(found.after, "lastSkipped") == instant_of(found.before, "lastSkipped")
    assert (instant_of(found.after, "lastSkipped") is not None) is row.default
    assert "paused" in observed(found.after)
    assert found.slots == []


def test_with_default_true_of_three_slots_one_is_skipped_and_two_fire_and_nothing_is_written_between(
    resting: Cluster, tmp_path: Path, eventually: Eventually
) -> None:
    cluster, name = resting, "three-slots"
    clear(cluster)
    with running(cluster, tmp_path, "--schedule-skip-immediately=true"), quick_velero(cluster):
        cluster.apply(schedule(name, f"@every {PERIOD.seconds}s", paused=True))
        eventually(lambda: phase(show(cluster, name)), 60)
        time.sleep(PERIOD.total_seconds() + 1)
        cluster.apply(schedule(name, f"@every {PERIOD.seconds}s", paused=False))
        eventually(lambda: len(slots(cluster, name)) >= 2, 60)
        eventually(lambda: reasons(cluster, name), 60)  # Events come behind work
        eventually(lambda: instant_of(show(cluster, name), "lastBackup") == slots(cluster, name)[-1], 60)
    first = created(show(cluster, name)) + PERIOD
    skipped = instant_of(show(cluster, name), "lastSkipped")
    assert skipped is not None
    assert skipped > first
    fired = slots(cluster, name)  # more than two, if the machine was busy
    assert fired == [skipped + number * PERIOD for number in range(1, len(fired) + 1)]

    begun = created(show(cluster, name))
    asked = [each for each in cluster.audit(USER) if each.at >= begun and each.verb in ("create", "patch")]
    patches = [("patch", "schedules.velero.io", HTTPStatus.OK)]
    fire = [("create", "backups.velero.io", HTTPStatus.CREATED), *patches]
    written = [(each.verb, each.resource, each.code) for each in asked if each.resource in OURS]
    assert written == [*patches, *patches, *(fire * len(fired))]  # seen as paused, skipped, and the runs; none refused
    assert [each.resource for each in asked if each.resource.startswith("events")] == ["events.events.k8s.io"]
