"""How much work a tenant's objects make, counted in rows and calls: all controllers share one loop."""

from collections.abc import Hashable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from foresail.api import velero
from foresail.api.nonadmin import NON_ADMIN_BACKUP, NON_ADMIN_SCHEDULE
from foresail.api.policy import RestoreChecksPolicy, SelfServicePolicySpec
from foresail.api.restore_check import RESTORE_CHECK, CheckedBackups, RestoreCheckSpec, RestoreCheckStatus
from foresail.api.specs import LabelSelector
from foresail.kube.reflector import Change
from foresail.kube.store import Row, Store
from foresail.plan import Key, Keyed, Kind
from foresail.proof.checks.controller import RestoreChecks
from foresail.proof.checks.reads import FileReader
from foresail.proof.checks.rows import BackupRow, CheckRow, LocationRow, RequestRow
from foresail.proof.checks.view import CheckView
from foresail.tenancy.namespaces import NamespaceRow
from foresail.tenancy.policies import PolicyRow
from foresail.tenancy.records import nacuuid, nacuuid_of

NOON = datetime(2026, 11, 17, 12, tzinfo=UTC)
SERVED = 2


class Counted(Store[Row]):
    """Counts the rows that it hands out."""

    __slots__ = ("handed_out",)

    def __init__(self, like: Store[Row]) -> None:
        super().__init__(like._indexers)  # noqa: SLF001 - the indexes as declared
        self.handed_out = 0

    def by(self, index: str, value: Hashable) -> list[Row]:
        found = super().by(index, value)
        self.handed_out += len(found)
        return found


class Scene:
    """A controller whose informers are fed by hand; its policy serves two checks of a namespace."""

    def __init__(self) -> None:
        self.controller = RestoreChecks("velero", FileReader(None).run, never=())
        self.checks = self.controller.state.checks = Counted(self.controller.state.checks)
        self.backups = self.controller.state.backups = Counted(self.controller.state.backups)
        self.requests = self.controller.state.requests = Counted(self.controller.state.requests)
        spec = SelfServicePolicySpec(LabelSelector(), restore_checks=RestoreChecksPolicy(maximum=SERVED))
        self.controller.state.policies.put(Key("", "default"), PolicyRow(Key("", "default"), spec))
        self.controller.state.namespaces.put(Key("", "red"), NamespaceRow("red-uid", {}, is_terminating=False))
        self.feed(velero.LOCATION, LocationRow(Key("velero", "default"), is_default=True))

    def feed(self, kind: Kind, new: Keyed | None, key: Key | None = None) -> list[Any]:
        """Put a row into its store, or remove it, and return the keys that this is mapped to."""
        (informer,) = (each for each in self.controller.informers if each.spec.kind == kind)
        at = new.key if new is not None else key
        assert at is not None
        old = informer.store.put(at, new) if new is not None else informer.store.remove(at)
        change: Change[Any] = Change(at, old, new, initial=False)
        return [*informer.learn(change), *informer.keys(change)]

    def ask(self, name: str, after: int = 0, **chosen: Any) -> CheckRow:  # noqa: ANN401 - JSON
        backups = CheckedBackups(**(chosen or {"non_admin_backups": LabelSelector()}))
        created = NOON + timedelta(seconds=after)
        row = CheckRow(
            Key("red", name), name, "1", 1, created, RestoreCheckSpec(backups), RestoreCheckStatus(), "velero"
        )
        self.feed(RESTORE_CHECK, row)
        return row

    def back_up(self, request: RequestRow) -> list[Any]:
        row = BackupRow(
            Key("velero", nacuuid(request)),
            f"{request.uid}-backup",
            velero.COMPLETED,
            {},
            "",
            NOON,
            owner=request.key,
            request_uid=request.uid,
            namespace_uid="red-uid",
        )
        return self.feed(velero.BACKUP, row)

    def view(self, name: str) -> CheckView:
        found = self.controller.observe(Key("red", name), NOON)
        assert isinstance(found, CheckView)
        return found


def request(name: str, **labels: str) -> RequestRow:
    return RequestRow(Key("red", name), f"{name}-uid", labels)


def test_requests_without_a_backup_cost_a_check_nothing() -> None:
    scene = Scene()
    scene.ask("own")
    scene.feed(NON_ADMIN_BACKUP, request("monday"))
    for number in range(500):
        scene.feed(NON_ADMIN_BACKUP, request(f"refused-{number}"))
    scene.back_up(request("monday"))
    before = nacuuid_of.cache_info()
    assert [each.uid for each in scene.view("own").backups] == ["monday-uid-backup"]
    after = nacuuid_of.cache_info()
    assert after.hits + after.misses - before.hits - before.misses <= 1
    assert (scene.requests.handed_out, scene.backups.handed_out) == (0, 1)


def test_a_request_wakes_only_the_checks_that_select_it_and_only_if_it_has_a_backup() -> None:
    scene = Scene()
    scene.ask("of-gold", non_admin_backups=LabelSelector(match_labels={"tier": "gold"}))
    scene.ask("of-schedule", non_admin_schedule="nightly")
    assert scene.feed(NON_ADMIN_BACKUP, request("refused", tier="gold")) == []
    gold = request("monday", tier="gold")
    assert scene.back_up(gold) == [Key("red", "of-gold"), Key("red", "of-schedule")], "its request is not known yet"
    assert scene.feed(NON_ADMIN_BACKUP, gold) == [Key("red", "of-gold")]
    assert scene.feed(NON_ADMIN_BACKUP, request("monday", tier="gold", other="1")) == [Key("red", "of-gold")]
    assert scene.feed(NON_ADMIN_BACKUP, request("monday", tier="iron")) == [Key("red", "of-gold")]
    assert scene.feed(NON_ADMIN_BACKUP, request("monday", tier="iron", other="1")) == []
    assert scene.feed(NON_ADMIN_BACKUP, gold) == [Key("red", "of-gold")]
    assert scene.feed(NON_ADMIN_BACKUP, None, gold.key) == [Key("red", "of-gold")]


def test_a_schedule_wakes_only_the_checks_that_name_it() -> None:
    scene = Scene()
    scene.ask("all")
    scene.ask("of-schedule", non_admin_schedule="nightly")
    assert scene.feed(NON_ADMIN_SCHEDULE, request("weekly")) == []
    assert scene.feed(NON_ADMIN_SCHEDULE, request("nightly")) == [Key("red", "of-schedule")]
    assert scene.feed(NON_ADMIN_SCHEDULE, None, Key("red", "nightly")) == [Key("red", "of-schedule")]


def test_the_rank_of_a_check_costs_no_scan_and_one_that_is_not_served_reads_no_backup() -> None:
    scene = Scene()
    for number in range(300):
        scene.ask(f"check-{number:03}", after=(number * 7) % 300)
    scene.feed(NON_ADMIN_BACKUP, request("monday"))
    scene.back_up(request("monday"))
    scene.checks.handed_out = scene.backups.handed_out = 0
    views = [scene.view(f"check-{number:03}") for number in range(300)]
    ranks = [each.tenant.rank for each in views if each.tenant is not None]
    assert ranks == [(number * 7) % 300 for number in range(300)]
    assert [len(each.backups) for each in views] == [int(rank < SERVED) for rank in ranks]
    assert (scene.checks.handed_out, scene.backups.handed_out) == (0, SERVED)


def test_a_check_that_is_deleted_or_replaced_gives_its_rank_to_the_next() -> None:
    scene = Scene()
    first, second = scene.ask("b"), scene.ask("a", after=1)
    scene.ask("c", after=2)
    assert scene.feed(RESTORE_CHECK, None, first.key) == [first.key, Key("red", "a"), Key("red", "c")]
    scene.feed(RESTORE_CHECK, None, second.key)
    scene.ask("a", after=3)
    found = [scene.view(each).tenant for each in ("c", "a")]
    assert [each.rank for each in found if each is not None] == [0, 1]


@pytest.mark.parametrize(
    ("before", "after", "wakes"),
    [
        (None, LocationRow(Key("velero", "own"), is_tenants=True), False),
        (LocationRow(Key("velero", "own"), is_tenants=True), None, False),
        (
            LocationRow(Key("velero", "own"), is_tenants=True),
            LocationRow(Key("velero", "own"), "CA", is_tenants=True),
            False,
        ),
        (LocationRow(Key("velero", "own"), is_tenants=True), LocationRow(Key("velero", "own")), True),
        (None, LocationRow(Key("velero", "own"), is_default=True, is_tenants=True), True),
        (None, LocationRow(Key("velero", "own")), True),
    ],
)
def test_a_tenant_s_own_location_wakes_no_check(
    before: LocationRow | None, after: LocationRow | None, wakes: bool
) -> None:
    scene = Scene()
    scene.ask("own")
    if before is not None:
        scene.feed(velero.LOCATION, before)
    assert scene.feed(velero.LOCATION, after, Key("velero", "own")) == ([Key("red", "own")] if wakes else [])
