"""Attacks by one who writes to the administrator's bucket: forged and replayed records, approvals, and a flood."""

import json
import shutil
import time
from base64 import b64decode
from collections.abc import Iterator
from pathlib import Path

from foresail.api import marks
from foresail.selfservice.signatures import KEY_BYTES, NO_KEYS, SECRET_NAME, Keyring, Record, keyring_of, sign
from tests.cluster import tenants
from tests.cluster.buckets import NACUUID, ORIGIN_NAME, ORIGIN_NAMESPACE, annotations_in, copy_backup
from tests.redteam.attack import controlled_by
from tests.redteam.locations import synced
from tests.redteam.world import (
    HOSTILE,
    LOCATED,
    NAB,
    NAR,
    NIGHTLY,
    OLD,
    REBORN,
    TREASURE,
    VELERO,
    VICTIM,
    Json,
    World,
    config,
    may_edit,
    namespace,
    path,
    until,
)

FLOOD = 300  # Backups that Velero creates from the bucket, some ten in a second
_MOST_MEMORY = 20.0  # MiB
_GUESSED = NO_KEYS.with_key(b"g" * KEY_BYTES, signs=True)
_STORAGE = "velero/"
_UID = "0c1d2e3f-1111-5222-8333-444455556666"
_GENUINE, _NAMED = f"{LOCATED}-returned-{_UID}", f"{LOCATED}-named-{_UID}"  # as the operator names them


def _folder(world: World, space: str, name: str) -> Path:
    made: str = world.made_for("backups", space, name)[0]["metadata"]["name"]
    return world.cluster.site.bucket / "backups" / made


def _uid(world: World, space: str) -> str:
    return str((world.admin.get(path("namespaces", name=space)) or {})["metadata"]["uid"])


def _keyring(world: World) -> Keyring:
    secret = world.cluster.get("secret", SECRET_NAME, f"--namespace={VELERO}")
    return keyring_of({name: b64decode(text) for name, text in secret["data"].items()})


def signed(world: World, backup: str, name: str, ring: Keyring, space: str = LOCATED) -> dict[str, str]:
    """Return the annotations of a record that a keyring signed."""
    record = Record(backup, _STORAGE, space, _uid(world, space), name, _UID)
    return {
        ORIGIN_NAMESPACE: space,
        ORIGIN_NAME: name,
        marks.REQUEST_UID: record.request_uid,
        marks.NAMESPACE_UID: record.namespace_uid,
        marks.RECORD_SIGNATURE: sign(record, ring),
    }


def forged(world: World) -> Iterator[tuple[str, dict[str, str]]]:
    """Yield the annotations of each planted backup: whoever writes knows real records and every UID, and no key."""
    real, theirs = annotations_in(_folder(world, LOCATED, OLD)), annotations_in(_folder(world, VICTIM, TREASURE))
    uid, signature = _uid(world, LOCATED), real[marks.RECORD_SIGNATURE]
    version, identifier, mac = signature.split(".")
    own = {**real, ORIGIN_NAME: "forged"}
    guessed = signed(world, "forged-guessed", "forged", _GUESSED)
    yield "none", {ORIGIN_NAMESPACE: LOCATED, ORIGIN_NAME: "forged"}
    yield "uids", {key: value for key, value in own.items() if key != marks.RECORD_SIGNATURE}
    yield "guessed", guessed
    yield (
        "guessed-id",
        {
            **guessed,
            marks.RECORD_SIGNATURE: f"{version}.{identifier}.{guessed[marks.RECORD_SIGNATURE].split('.')[2]}",
        },
    )
    yield "replayed", real
    yield "replayed-name", own
    yield "replayed-request", {**real, marks.REQUEST_UID: _UID}
    yield "replayed-uid", {**real, marks.NAMESPACE_UID: _uid(world, HOSTILE)}
    yield "replayed-space", {**real, ORIGIN_NAMESPACE: HOSTILE}
    yield "replayed-space-uid", {**real, ORIGIN_NAMESPACE: HOSTILE, marks.NAMESPACE_UID: _uid(world, HOSTILE)}
    yield "replayed-victim", theirs
    yield "victims-for-me", {**theirs, ORIGIN_NAMESPACE: LOCATED, ORIGIN_NAME: "forged"}
    yield "victims-for-my-uid", {**theirs, ORIGIN_NAMESPACE: LOCATED, marks.NAMESPACE_UID: uid}
    yield "mine-for-victim", {**real, ORIGIN_NAMESPACE: VICTIM, marks.NAMESPACE_UID: _uid(world, VICTIM)}
    yield "veleros", {**real, ORIGIN_NAMESPACE: VELERO}
    yield "systems", {**real, ORIGIN_NAMESPACE: "kube-system"}
    broken = (
        "", ".", "..", "v1", f"v2.{identifier}.{mac}", f"v0.{identifier}.{mac}", f"v1.{identifier}.", f"v1..{mac}",
        f"v1.{identifier}.{mac[:-1]}", f"v1.{identifier}.{mac}0", f"v1.{identifier}.{'0' * 64}",
        f"v1.{identifier}.{mac[::-1]}", f"v1.signing-key.{mac}", "x" * 100_000, f"v1.{identifier}.{mac} ",
    )  # fmt: skip
    for number, text in enumerate(broken):
        yield f"broken-{number}", {**own, marks.RECORD_SIGNATURE: text}
    unsigned = {ORIGIN_NAMESPACE: LOCATED, ORIGIN_NAME: "approved"}
    yield "approved", {**unsigned, marks.ADOPT: f"{_UID}.{uid}"}
    yield "approved-space", {**unsigned, marks.ADOPT: uid, marks.ADOPTED: uid}
    yield "approved-star", {**unsigned, marks.ADOPT: "*.*", marks.ADOPTED: "*"}


def _plant(world: World, cases: dict[str, dict[str, str]]) -> None:
    """Put copies of the victim's backup into the administrator's bucket, and wait until Velero has them all."""
    source = _folder(world, VICTIM, TREASURE)
    for name, notes in cases.items():
        copy_backup(source, name, notes)
    synced(world)

    def are_there() -> bool:
        return cases.keys() <= {each["metadata"]["name"] for each in world.velero("backups")}

    until(are_there, 180, "Velero has created the planted Backups")
    time.sleep(3)  # in which the operator would adopt


def _remove(world: World, names: dict[str, dict[str, str]]) -> None:
    for name in names:
        shutil.rmtree(world.cluster.site.bucket / "backups" / name)
    for name in names:
        world.admin.delete(path("backups", VELERO, name))
    until(lambda: not names.keys() & {each["metadata"]["name"] for each in world.velero("backups")}, 120, "they go")


def _requests(world: World) -> set[str]:
    found = world.admin.items(path(NAB))
    return {f"{each['metadata']['namespace']}/{each['metadata']['name']}" for each in found}


def _offered(world: World) -> dict[str, str]:
    """Return what `foresail backup adopt` shows to the administrator: the record of each Velero Backup."""
    listed: list[Json] = json.loads(tenants.foresail(world.cluster, "backup", "adopt", "-A", "-o", "json") or "[]")
    return {each["veleroBackup"]: each["record"] for each in listed}


def _signed_is_adopted(world: World) -> list[str]:
    """A record that the real key signed, for this namespace and this backup, is adopted without asking."""
    case = {_GENUINE: signed(world, _GENUINE, "returned", _keyring(world))}
    before = _requests(world)
    _plant(world, case)
    until(lambda: _requests(world) > before, 60, "the genuine record is adopted")
    found = sorted(_requests(world) - before)
    world.hostile.patch(path(NAB, LOCATED, "returned"), {"spec": {"deleteBackup": True}})
    until(lambda: _requests(world) <= before, 120, "the adopted backup is deleted")
    until(lambda: not world.admin.get(path("backups", VELERO, _GENUINE)), 120, "Velero has deleted it")
    return found


@controlled_by(_signed_is_adopted)
def record_forged_and_replayed(world: World) -> list[str]:
    """Plant more than thirty backups with forged, broken and replayed records where the policy adopts by itself."""
    cases = {f"forged-{name}": notes for name, notes in forged(world)}
    assert len(cases) >= 30
    before = _requests(world)
    _plant(world, cases)
    try:
        found = [f"{each} was adopted" for each in sorted(_requests(world) - before)]
        shown = {name: record for name, record in _offered(world).items() if name in cases}
        assert shown, "the administrator sees none of them"
        found += [f"{name} is shown as {record}" for name, record in shown.items() if record != "unverified"]
        print(f"          {len(cases)} planted, {len(shown)} offered as unverified", flush=True)
    finally:
        _remove(world, cases)
    return found


def _administrator_adopts(world: World) -> list[str]:
    """What the administrator names is adopted, verified or not."""
    case = {_NAMED: {ORIGIN_NAMESPACE: LOCATED, ORIGIN_NAME: "named"}}
    before = _requests(world)
    _plant(world, case)
    tenants.foresail(world.cluster, "backup", "adopt", "named", "-n", LOCATED, "--wait", "--timeout", "1m")
    found = sorted(_requests(world) - before)
    world.hostile.patch(path(NAB, LOCATED, "named"), {"spec": {"deleteBackup": True}})
    until(lambda: _requests(world) <= before, 120, "the adopted backup is deleted")
    until(lambda: not world.admin.get(path("backups", VELERO, _NAMED)), 120, "Velero has deleted it")
    return found


@controlled_by(_administrator_adopts)
def record_flood(world: World) -> list[str]:
    """Plant hundreds of backups that name three namespaces, and look at memory, Events and an honest backup."""
    owners = (LOCATED, VICTIM, "nowhere")
    cases = {
        f"flood-{number:03}": {ORIGIN_NAMESPACE: owners[number % 3], ORIGIN_NAME: f"flood-{number}"}
        for number in range(FLOOD)
    }
    before, memory = _requests(world), world.memory()
    _plant(world, cases)
    try:
        found = [f"{each} was adopted" for each in sorted(_requests(world) - before)]
        moved = world.memory() - memory
        found += [f"the operator's memory moved by {moved:.0f} MiB"] if moved > _MOST_MEMORY else []
        told = [each for each in world.admin.items(path("events")) if each.get("reason") == "BackupsAdoptable"]
        found += [f"{len(told)} Events"] if len(told) > len(owners) + 2 else []
        world.ask(NAB, "in-the-flood", {"backupSpec": {}}, LOCATED)
        world.finished(NAB, "in-the-flood", LOCATED, 120)
        print(f"          {FLOOD} planted, {len(told)} Events, memory moved by {moved:.1f} MiB", flush=True)
    finally:
        _remove(world, cases)
    return found


@controlled_by(_administrator_adopts)
def record_approved_by_its_tenant(world: World) -> list[str]:
    """Write the approval on the Velero Backup, on an own request and on the namespace, and claim a Backup by label."""
    uid = _uid(world, LOCATED)
    notes = {"metadata": {"annotations": {marks.ADOPT: f"{_UID}.{uid}"}}}
    claim = {"labels": {NACUUID: NIGHTLY}, "annotations": {marks.ADOPTED: _UID, marks.ADOPT: f"{_UID}.{uid}"}}
    answers = {
        "on the Backup": world.hostile.patch(path("backups", VELERO, NIGHTLY), notes),
        "on the request": world.hostile.patch(path(NAB, LOCATED, OLD), notes),
        "on the namespace": world.hostile.patch(path("namespaces", name=LOCATED), notes),
        "by label": world.ask(NAB, "claimed", {"backupSpec": {}}, LOCATED, **claim),
        "the key": world.hostile.send("GET", path("secrets", VELERO, SECRET_NAME)),
    }
    return [f"{name}: {each.code}" for name, each in answers.items() if each.code < 400]


def _administrator_adopts_across(world: World) -> list[str]:
    """Across UIDs the administrator decides, and is heard."""
    before = _requests(world)
    tenants.foresail(world.cluster, "backup", "adopt", "past", "-n", REBORN, "--wait", "--timeout", "1m")
    return sorted(_requests(world) - before)


@controlled_by(_administrator_adopts_across)
def record_of_an_earlier_namespace(world: World) -> list[str]:
    """Come after another team into a namespace of the same name, whose records are verified; adopt and restore them."""
    world.ask(NAB, "past", {"backupSpec": {}}, REBORN)
    world.finished(NAB, "past", REBORN)
    name = world.made_for("backups", REBORN, "past")[0]["metadata"]["name"]
    world.admin.delete(path("namespaces", name=REBORN))
    until(lambda: not world.admin.get(path("namespaces", name=REBORN)), 120, "the namespace is deleted")
    world.cluster.apply(namespace(REBORN), may_edit(REBORN, "mallory"), config(REBORN))
    synced(world)
    before = _requests(world)
    world.ask(NAR, "past", {"restoreSpec": {"backupName": "past"}}, REBORN)
    world.ask(NAR, "direct", {"restoreSpec": {"backupName": name}}, REBORN)
    for each in ("past", "direct"):
        world.decided(NAR, each, REBORN)
    time.sleep(3)
    assert _offered(world).get(name) == "verified", "the record is signed, and still not enough"
    found = [f"{each} was adopted" for each in sorted(_requests(world) - before)]
    return found + [each["metadata"]["name"] for each in world.made_for("restores", REBORN)]
