"""`foresail backup adopt`: what is listed, what is offered, and what is approved."""

from dataclasses import replace
from datetime import UTC, datetime

import pytest

from foresail.api.marks import ADOPT
from foresail.cli.errors import CommandError
from foresail.cli.tenant.adopt import SeenAdoption, approving, as_data, list_digest, named, seen, select_one
from foresail.cli.tenant.adopt import adoptable as adoptable_of
from foresail.cli.tenant.adoptable import Adoptable
from foresail.plan import Key
from foresail.selfservice.adoption.rules import Offer
from foresail.selfservice.adoption.view import AdoptionView
from foresail.selfservice.rows.velero import VeleroRow
from foresail.tenancy.namespaces import NamespaceRow

LIVE = NamespaceRow("live-uid", {}, is_terminating=False)


def adoptable(name: str, *, verified: bool = True, taken: bool = False, made_for: str = "old-uid") -> Adoptable:
    row = VeleroRow(
        key=Key("velero", f"shop-{name}"),
        uid=f"uid-of-{name}",
        created=datetime(2026, 11, 16, tzinfo=UTC),
        owner=Key("shop", name),
        request_uid="request",
        namespace_uid=made_for,
        is_orphaned=False,
        is_terminating=False,
        phase="Completed",
        queue_position=0,
        expires=None,
        mirror='{"startTimestamp":"2026-11-15T03:00:00Z"}',
        spec="{}",
    )
    view = AdoptionView(row, Key("shop", name), LIVE)
    return Adoptable(view, LIVE, Offer(verified, is_permitted=False, is_name_taken=taken))


SEEN = SeenAdoption("uid-of-good", LIVE.uid, "verified")
GOOD, FORGED, TAKEN = adoptable("good"), adoptable("forged", verified=False), adoptable("taken", taken=True)


def test_the_verified_ones_are_offered_unless_more_is_asked_for() -> None:
    every = [GOOD, FORGED, TAKEN]
    assert adoptable_of(every, include_unverified=False) == [GOOD]
    assert adoptable_of(every, include_unverified=True) == [GOOD, FORGED]


def test_the_list_that_was_seen_is_approved_and_nothing_else() -> None:
    assert seen([GOOD, FORGED], list_digest([GOOD])) == [GOOD]
    assert seen([GOOD, FORGED], list_digest([GOOD, FORGED])) == [GOOD, FORGED]
    reborn = replace(GOOD, namespace=NamespaceRow("uid-of-a-later-namespace", {}, is_terminating=False))
    for now in ([GOOD, adoptable("later")], [reborn], []):
        with pytest.raises(CommandError, match="is not what can be adopted now"):
            seen(now, list_digest([GOOD]))


def test_a_name_takes_what_it_names_verified_or_not() -> None:
    assert named([GOOD, FORGED], ["forged"]) == [FORGED]
    with pytest.raises(CommandError, match="no backup other can be adopted"):
        named([GOOD], ["other"])
    with pytest.raises(CommandError, match="no backup taken can be adopted"):
        named([TAKEN], ["taken"])


def test_a_name_that_two_velero_backups_claim_is_not_guessed() -> None:
    with pytest.raises(CommandError, match="several Velero Backups have this name"):
        named([GOOD, adoptable("good", verified=False)], ["good"])


def test_one_velero_backup_is_selected_by_its_name_and_uid() -> None:
    assert select_one([FORGED, GOOD], "shop-good", SEEN) is GOOD
    for name, uid in (("shop-good", "uid-of-forged"), ("good", "uid-of-good"), ("shop-taken", "uid-of-taken")):
        with pytest.raises(CommandError, match="cannot be adopted"):
            select_one([FORGED, GOOD, TAKEN], name, replace(SEEN, uid=uid))


@pytest.mark.parametrize("namespace_uid", ["uid-of-an-earlier-one", ""])
def test_a_namespace_that_was_replaced_since_it_was_seen_is_given_nothing(namespace_uid: str) -> None:
    with pytest.raises(CommandError, match="namespace shop is another one than you have seen"):
        select_one([GOOD], "shop-good", replace(SEEN, namespace_uid=namespace_uid))


@pytest.mark.parametrize("record", ["unverified", ""])
def test_a_record_that_is_another_one_than_was_seen_is_not_approved(record: str) -> None:
    with pytest.raises(CommandError, match="its record is verified now"):
        select_one([GOOD], "shop-good", replace(SEEN, record=record))
    with pytest.raises(CommandError, match="its record is unverified now"):
        select_one([FORGED], "shop-forged", replace(SEEN, uid="uid-of-forged"))


def test_an_approval_is_for_this_object_in_this_namespace() -> None:
    body = approving(GOOD)
    assert body == {"metadata": {"uid": "uid-of-good", "annotations": {ADOPT: "uid-of-good.live-uid"}}}


def test_what_is_listed() -> None:
    assert as_data(FORGED) == {
        "namespace": "shop",
        "name": "forged",
        "record": "unverified",
        "madeFor": "an earlier namespace",
        "state": "Adoptable",
        "started": "2026-11-15T03:00:00Z",
        "veleroBackup": "shop-forged",
    }
    assert as_data(TAKEN)["state"] == "NameTaken"
    assert as_data(adoptable("same", made_for="live-uid"))["madeFor"] == "this namespace"
    assert as_data(adoptable("theirs", made_for=""))["madeFor"] == "unknown"
