"""Whose backups and restores wait after Velero's server has ended: of whoever makes it end, and of no bystander."""

import json
from datetime import UTC, datetime, timedelta

import msgspec
import pytest

from foresail.api.instants import stamp
from foresail.plan import Key
from foresail.selfservice.queue.interruptions import PAUSES, Interruptions
from foresail.selfservice.queue.window import Window
from foresail.selfservice.rows.velero import VeleroRow
from tests.unit.selfservice.requests.test_decide import backup

BEGIN = datetime(2030, 1, 1, tzinfo=UTC)
FOUND = 'found it with status "InProgress" during the server starting, mark it as "Failed"'


def ended(what: str, start: int, second: int = 0) -> VeleroRow:
    """Return what a start of the server, so many hours after BEGIN, found unfinished: `red` or `red/restore`."""
    namespace, _, restore = what.partition("/")
    at = BEGIN + timedelta(hours=start, seconds=second)
    name = f"{namespace}{restore}-{start}"
    owner = Key(namespace, name) if namespace != "administrator" else None
    status = {"failureReason": FOUND, "completionTimestamp": stamp(at)}
    row = backup(key=Key("velero", name), created=at, owner=owner, phase="Failed", mirror=json.dumps(status))
    return msgspec.structs.replace(row, source="a-backup" if restore else "")


def barred(starts: list[list[str]]) -> set[str]:
    known = Interruptions()
    names = {name.partition("/")[0] for start in starts for name in start}
    for number, start in enumerate(starts):
        for second, name in enumerate(start):
            assert known.note(ended(name, number, second))
    of_backups = {name for name in names if known.barred_until(name, restores=False)}
    return of_backups | {f"{name}/restore" for name in names if known.barred_until(name, restores=True)}


@pytest.mark.parametrize(
    ("starts", "expected"),
    [
        pytest.param([["red"]], set(), id="once is a restart for any reason"),
        pytest.param([["red"], ["red"]], {"red"}, id="alone twice"),
        pytest.param([["red/restore"], ["red/restore"]], {"red/restore"}, id="restores alone twice"),
        pytest.param([["red"], ["red/restore"]], set(), id="one of each"),
        pytest.param([["red", "red/restore"]] * 2, {"red", "red/restore"}, id="its own restore shields nobody"),
        pytest.param([["blue", "red/restore"]] * 4, set(), id="a restore of another one may have done it"),
        pytest.param(
            [["blue", "red/restore"], ["blue", "red/restore"], ["red/restore"]],
            {"red/restore"},
            id="who ends it without others as well is to blame",
        ),
        pytest.param(
            [["red", "blue/restore"], ["red"], ["red", "blue/restore"]], {"red"}, id="a victim's restores go on"
        ),
        pytest.param([["red", "blue"], ["red", "green"], ["red", "blue"]], {"red"}, id="two backups at a time"),
        pytest.param([["red", "blue"]] * 2, {"red", "blue"}, id="nobody can tell them apart"),
        pytest.param([["administrator", "red/restore"]] * 3, set(), id="a restore beside an administrator's backup"),
        pytest.param([["red", "administrator/restore"]] * 3, set(), id="a backup beside an administrator's restore"),
    ],
)
def test_who_waits(starts: list[list[str]], expected: set[str]) -> None:
    assert barred(starts) == expected
    assert barred([list(reversed(start)) for start in starts]) == expected


def test_the_pause_becomes_longer_and_ends_and_a_day_forgets() -> None:
    known = Interruptions()
    for number, pause in enumerate((None, *PAUSES, PAUSES[-1])):
        known.note(ended("red", number))
        until = known.barred_until("red", restores=False)
        assert until == (None if pause is None else BEGIN + timedelta(hours=number) + pause)
    known.note(ended("red", 100))
    assert known.barred_until("red", restores=False) is None


def test_what_failed_otherwise_is_none() -> None:
    row = msgspec.structs.replace(ended("red", 0), mirror=json.dumps({"failureReason": "no such bucket"}))
    assert not Interruptions().note(row)


def test_a_bystander_is_let_go_as_soon_as_it_is_known_whose_restore_it_was() -> None:
    shared = Interruptions()
    of_backups, of_restores = (
        Window(lambda: 2, interruptions=shared),
        Window(lambda: 2, interruptions=shared, of_restores=True),
    )
    for start in range(2):
        of_backups.observe(ended("blue", start), None, initial=False)
    of_backups.enter("blue-9", Key("blue", "blue-9"), BEGIN)
    now = BEGIN + timedelta(hours=1, minutes=1)
    assert of_backups.turn("blue-9", "blue", "backup", now).is_blocked
    for start in range(2):
        of_restores.observe(ended("red/restore", start), None, initial=False)
    assert not of_backups.turn("blue-9", "blue", "backup", now).is_blocked


def test_requests_that_were_set_aside_leave_the_last_turn_to_another_namespace() -> None:
    window = Window(lambda: 3)
    for number in range(5):
        window.enter(f"red-{number}", Key("red", f"red-{number}"), BEGIN)
        window.set_aside(f"red-{number}")  # it reads the contents of its backup
    taken = []
    for number in range(5):
        name = f"red-{number}"
        if window.turn(name, "red", "restore", BEGIN).is_blocked:
            window.rejoin(name)
        else:
            window.hand_over(name, "red", BEGIN)
            taken.append(name)
    assert taken == ["red-0", "red-1"]
    window.enter("blue-0", Key("blue", "blue-0"), BEGIN)
    assert "blue-0" in window.next_names()
    window.hand_over("blue-0", "blue", BEGIN)
    for name in taken:
        window.remove(name)
        window.expire(BEGIN + timedelta(hours=1))
    assert window.next_names() == ["red-2", "red-3"], "they are called again"
