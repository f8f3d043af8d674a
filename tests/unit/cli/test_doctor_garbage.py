"""What the doctor says about Velero objects without an owner."""

from dataclasses import replace
from datetime import timedelta

import msgspec

from foresail.api.marks import REQUEST_UID
from foresail.cli.doctor.finding import Grade
from foresail.cli.doctor.installation import garbage
from foresail.cli.doctor.requests import Ownerless, ownerless, ownerless_locations
from foresail.plan import Key
from foresail.selfservice.families import RESTORES
from foresail.selfservice.rows.locations import ApprovalRow, LocationRow
from foresail.tenancy.records import nacuuid_of
from tests.unit.cli.test_doctor import HEALTHY
from tests.unit.selfservice.requests.test_garbage import NAME, VIEW, deletion, restore

UNDO = Key("red", "undo")


def test_objects_without_their_request_are_found_by_uid_and_those_of_others_by_name() -> None:
    rows, deletions = [restore()], [deletion(NAME)]
    both = {"restore": {UNDO: "u1"}, "backup": {UNDO: "u1"}}
    assert ownerless(rows, deletions, both) == Ownerless()
    another = {"restore": {UNDO: "u2"}, "backup": {}}
    assert [each.kind.name for each in ownerless(rows, deletions, another).ours] == ["Restore", "DeleteBackupRequest"]
    foreign = [restore(name="red-undo-1", lacks=REQUEST_UID)]
    assert ownerless(foreign, [], {"restore": {}, "backup": {}}) == Ownerless(others=("Restore red-undo-1",))
    assert ownerless(foreign, [], {"restore": {UNDO: "u9"}, "backup": {}}) == Ownerless()
    assert RESTORES.word == "restore"


def test_a_location_without_its_owner_is_found_unless_a_backup_is_in_it() -> None:
    at = HEALTHY.instant
    owner, uid = Key("red", "mine"), "u1"
    name = nacuuid_of(owner.namespace, owner.name, uid)
    place = LocationRow(name, "", uid="v1", owner=owner, request_uid=uid, namespace_uid="n1", created=at)
    admins = LocationRow("default", "", uid="v2", created=at)
    both = (place, admins)
    [view] = ownerless_locations(both, (), {}, (), "velero")
    assert (view.kind.name, view.key.name) == ("BackupStorageLocation", name)
    assert ownerless_locations(both, (), {owner: "u2"}, (), "velero") == (view,), "another of the same name"
    assert ownerless_locations(both, (), {owner: uid}, (), "velero") == ()
    assert ownerless_locations(both, (), {}, {name}, "velero") == ()
    asked = (ApprovalRow(Key("velero", name), "a1", "1", owner, uid, "n1", "approve", "", "", "{}", "", "", at),)
    assert [each.uid for each in ownerless_locations((), asked, {}, (), "velero")] == ["a1"]
    assert ownerless_locations(both, asked, {}, {name}, "velero") == (), "it is deleted after its location"
    seen = replace(HEALTHY, ownerless=Ownerless((msgspec.structs.replace(view, since=at - timedelta(days=9)),)))
    assert [each.grade for each in garbage(seen)] == [Grade.GOOD], "nobody knows since when it has no owner"


def found(*ages: timedelta, others: tuple[str, ...] = ()) -> list[tuple[Grade, str]]:
    now = HEALTHY.server_time or HEALTHY.instant
    ours = tuple(msgspec.structs.replace(VIEW, since=now - age) for age in ages)
    seen = replace(HEALTHY, ownerless=Ownerless(ours, others))
    return [(each.grade, each.says) for each in garbage(seen)]


def test_what_the_operator_will_remove_is_good_and_what_it_should_have_removed_is_a_warning() -> None:
    assert found() == []
    text = f"Restore {NAME}: no owner; the operator deletes them within two hours"
    assert found(timedelta(minutes=5)) == [(Grade.GOOD, text)]
    text = f"Restore {NAME}: no owner for more than two hours, and not deleted"
    assert found(timedelta(hours=3), timedelta(0)) == [(Grade.WARNING, text)]
    assert found(others=("Restore x",))[0][0] is Grade.WARNING
