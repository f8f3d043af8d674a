"""A bucket that a hostile party writes to: of 30 planted backups none is adopted, and none is shown as verified."""

from collections.abc import Iterator

import pytest

from foresail.api import velero
from foresail.api.marks import ADOPT, ADOPTED, NAMESPACE_UID, RECORD_SIGNATURE, REQUEST_UID
from foresail.api.nonadmin import NON_ADMIN_BACKUP
from foresail.plan import Key
from foresail.selfservice.adoption.rules import approval
from foresail.selfservice.reasons import Reason
from foresail.selfservice.signatures import KEY_BYTES, NO_KEYS, key_id
from tests.worlds.adoption_scene import (
    KEY,
    NACUUID,
    OLD_UID,
    ORIGIN_NAME,
    ORIGIN_NAMESPACE,
    namespace_uid,
    of_other_controller,
    offers,
    open_bucket,
    signed,
    sync,
)
from tests.worlds.documents import Document
from tests.worlds.tenancy import VELERO, Tenancy
from tests.worlds.test_selfservice_paths import tell
from tests.worlds.world import done

VICTIM = Key("red", "shop")
NAME = "red-shop-forged"
GUESSED = b"g" * KEY_BYTES
FLOOD = 2_000


def forged(uid: str) -> Iterator[tuple[str, Document]]:
    """Yield each forgery that a writer of the bucket can make, who knows every UID of the namespace and no key."""
    good = signed(NAME, VICTIM, uid)
    signature = good["annotations"][RECORD_SIGNATURE]
    version, identifier, mac = signature.split(".")

    def with_notes(**notes: str) -> Document:
        return {**good, "annotations": {**good["annotations"], **{_NAMES[key]: text for key, text in notes.items()}}}

    yield "no signature", of_other_controller(NAME, VICTIM)
    yield "no signature, with UIDs", with_notes(signature="")
    yield "a signature with a guessed key", signed(NAME, VICTIM, uid, ring=NO_KEYS.with_key(GUESSED, signs=True))
    yield (
        "a guessed key under our key's ID",
        with_notes(
            signature=f"{version}.{identifier}."
            + signed(NAME, VICTIM, uid, ring=NO_KEYS.with_key(GUESSED, signs=True))["annotations"][
                RECORD_SIGNATURE
            ].split(".")[2]
        ),
    )
    yield "a signature of another backup", {**good, "name": f"{NAME}-2"}
    yield "a signature of another bucket", signed(NAME, VICTIM, uid, storage="b/q")
    yield "a signature of another prefix", signed(NAME, VICTIM, uid, storage="b/")
    yield "a signature of another namespace", with_notes(namespace="blue")
    yield "a signature of another name", with_notes(name="other")
    yield "a signature of another request", with_notes(request="other")
    yield (
        "a signature of an older namespace, moved",
        {
            **signed(NAME, VICTIM, OLD_UID),
            "annotations": {**signed(NAME, VICTIM, OLD_UID)["annotations"], NAMESPACE_UID: uid},
        },
    )
    for number, text in enumerate(
        (
            "",
            ".",
            "..",
            "v1",
            f"v2.{identifier}.{mac}",
            f"v0.{identifier}.{mac}",
            f"v1.{identifier}.",
            f"v1..{mac}",
            f"v1.{key_id(GUESSED)}.{mac}",
            f"v1.{identifier}.{mac[:-1]}",
            f"v1.{identifier}.{mac}0",
            f"v1.{identifier}.{'0' * 64}",
            f"v1.{identifier}.{mac[::-1]}",
            f"v1.signing-key.{mac}",
            "x" * 100_000,
            f"v1.{identifier}.{mac} ",
        )
    ):
        yield f"a broken signature {number}", with_notes(signature=text)
    yield (
        "an approval that was planted",
        {
            **of_other_controller(NAME, VICTIM),
            "annotations": {**of_other_controller(NAME, VICTIM)["annotations"], ADOPT: approval("00000000", uid)},
        },
    )
    yield (
        "an approval without an object",
        {
            **of_other_controller(NAME, VICTIM),
            "annotations": {**of_other_controller(NAME, VICTIM)["annotations"], ADOPT: uid, ADOPTED: uid},
        },
    )
    yield "a label alone", {"name": NAME, "labels": {NACUUID: NAME}}


_NAMES = {
    "signature": RECORD_SIGNATURE,
    "namespace": ORIGIN_NAMESPACE,
    "name": ORIGIN_NAME,
    "request": REQUEST_UID,
}
CASES = [name for name, _ in forged("uid")]


def test_there_are_thirty() -> None:
    assert len(set(CASES)) >= 30


@pytest.mark.parametrize("number", range(len(CASES)), ids=CASES)
def test_a_forged_backup_is_neither_adopted_nor_shown_as_verified(number: int) -> None:
    async def story(tenancy: Tenancy) -> None:
        open_bucket(tenancy, "Automatic")
        _, metadata = list(forged(namespace_uid(tenancy)))[number]
        sync(tenancy, metadata)
        await tenancy.settle()
        assert tenancy.world.history.present(NON_ADMIN_BACKUP) == {}
        assert not any(offers(tenancy).values())
        for name in tenancy.velero_objects():
            done(tenancy.world.delete(velero.BACKUP, Key(VELERO, name)))
        await tenancy.settle()
        assert offers(tenancy) == {}

    tell(story)


def test_the_forger_s_own_backup_would_be_adopted_with_our_key() -> None:
    """The same story with nothing forged: the cases above fail for their forgery alone."""

    async def story(tenancy: Tenancy) -> None:
        open_bucket(tenancy, "Automatic")
        sync(tenancy, signed(NAME, VICTIM, namespace_uid(tenancy), ring=NO_KEYS.with_key(KEY, signs=True)))
        await tenancy.settle()
        assert tenancy.request(VICTIM) is not None

    tell(story)


def test_a_flood_costs_no_write_and_one_event_for_each_namespace() -> None:
    async def story(tenancy: Tenancy) -> None:
        open_bucket(tenancy, "Automatic")
        await tenancy.settle()  # the namespaces get their labels
        before = tenancy.process.visitor.writes[:] if tenancy.process else []
        for number in range(FLOOD):
            owner = Key(("red", "blue", "gone")[number % 3], f"shop-{number}")
            sync(tenancy, of_other_controller(f"planted-{number}", owner))
        await tenancy.settle()
        assert tenancy.process is not None
        assert tenancy.process.visitor.writes == before
        told = [each for each in tenancy.notes if each.reason == Reason.BACKUPS_ADOPTABLE]
        assert sorted(each.key.name for each in told) == ["blue", "red"]
        assert not any(offers(tenancy).values())

    tell(story)
