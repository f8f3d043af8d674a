"""Requests that wait for quota: a change touches few of them, however many there are."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

from msgspec.structs import replace

from foresail.api.nonadmin import Condition
from foresail.kube.controller import LowPriority
from foresail.kube.reflector import Change
from foresail.plan import Key, PartKey
from foresail.selfservice.controller import SelfService
from foresail.selfservice.requests.state import FamilyState
from foresail.selfservice.rows.requests import RequestRow, Status
from tests.unit.selfservice.requests.test_decide import request

BEGIN = datetime(2030, 1, 1, tzinfo=UTC)
MANY, WOKEN = 2_000, 16


class Counted(datetime):
    """An instant that counts how often it is compared."""

    comparisons = 0

    def __lt__(self, other: datetime) -> bool:  # type: ignore[override]
        Counted.comparisons += 1
        return super().__lt__(other)

    def __eq__(self, other: object) -> bool:
        Counted.comparisons += 1
        return super().__eq__(other)

    __hash__ = datetime.__hash__


def row(name: str, seconds: int, phase: str = "New", reason: str = "QuotaExceeded") -> RequestRow:
    at = BEGIN + timedelta(seconds=seconds)
    created = Counted(at.year, at.month, at.day, at.hour, at.minute, at.second, tzinfo=UTC)
    said = Condition("Accepted", "False", reason, "why", "2030-01-01T00:00:00Z", 2)
    status = Status(phase=phase, conditions=(said,))
    return request(key=Key("red", name), uid=f"uid-{name}", created=created, status=status)


def fed(service: SelfService, old: RequestRow | None, new: RequestRow | None) -> list[Key]:
    """Return the keys that a change concerns, the changed one's left out."""
    side = service.cluster.backups
    (one,) = [each for each in service.informers if each.store is side.requests]
    given = new or old
    assert given is not None
    if new is None:
        side.requests.remove(given.key)
    else:
        side.requests.put(new.key, new)
    change = Change(given.key, old, new, initial=False)
    found = (each.key if isinstance(each, LowPriority) else each for each in (*one.learn(change), *one.keys(change)))
    return [key for key in found if key != side.key(given.key)]


def crowded() -> tuple[SelfService, list[RequestRow]]:
    """Return a controller in which many requests of a namespace wait, and those, oldest first."""
    service = SelfService("velero")
    rows = [row(f"q{number * 7919 % MANY:05}", number) for number in range(MANY)]
    for number in range(MANY):
        fed(service, None, rows[number * 1543 % MANY])  # in any order
    return service, rows


def is_garbage(service: SelfService, key: Key) -> bool:
    return isinstance(key, PartKey) and key.part in service.garbage.parts


def keys(side: FamilyState, rows: list[RequestRow]) -> Iterator[Key]:
    return (side.key(each.key) for each in rows)


def test_a_deletion_wakes_the_oldest_ones_and_compares_few() -> None:
    service, rows = crowded()
    Counted.comparisons = 0
    for number in range(200):
        woken = [key for key in fed(service, rows[number], None) if not is_garbage(service, key)]
        assert woken == list(keys(service.cluster.backups, rows[number + 1 : number + 1 + WOKEN]))
    assert Counted.comparisons < 200 * 100, "a search in a sorted list, not a sort"
    for each in rows[200:]:
        fed(service, each, None)
    assert len(service.cluster.backups.quota_queue) == 0, "nothing is left"


def test_only_who_stops_waiting_or_is_refused_anew_wakes_others() -> None:
    service, rows = crowded()
    first, others = rows[0], list(keys(service.cluster.backups, rows[1 : 1 + WOKEN]))
    Counted.comparisons = 0
    patched = replace(first, version="8")
    assert fed(service, first, patched) == [], "it waits as it did"
    refused = row(first.key.name, 0, "BackingOff", "InvalidBackupSpec")
    assert fed(service, patched, refused) == others
    assert fed(service, refused, replace(refused, version="9")) == [], "it is refused as it was"
    assert fed(service, rows[1], row(rows[1].key.name, 1, reason="LocationUnavailable")) == list(
        keys(service.cluster.backups, rows[2 : 2 + WOKEN])
    )
    assert Counted.comparisons < 200
