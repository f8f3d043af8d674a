"""Attacks by a tenant who owns a bucket: where a location leads, who approves it, and what lies in the bucket."""

import http.client
import json
import shutil
import time
from base64 import b64encode
from typing import Any

from foresail.api import marks
from foresail.api.instants import instant
from foresail.kube.clock import now
from testbed.api import Answer
from tests.cluster.buckets import ORIGIN_NAME, ORIGIN_NAMESPACE, copy_backup
from tests.redteam.attack import controlled_by
from tests.redteam.world import (
    HOSTILE,
    LOCATED,
    MINE,
    NAB,
    NABSL,
    NABSLR,
    NADR,
    NAR,
    NEIGHBOUR,
    OLD,
    TREASURE,
    VELERO,
    VICTIM,
    Json,
    World,
    account,
    body_of,
    bucket_of,
    condition,
    endpoint,
    location_spec,
    path,
    reason,
    until,
)

FLOOD = 10_000  # objects in the bucket of a tenant
_PLANTED = 30
_LOCATIONS = 12  # of a flood, of which the policy lets three be
_ACCEPTED = http.client.BAD_REQUEST
_OTHER_KEYS = "[default]\naws_access_key_id=AKIDANOTHER\naws_secret_access_key=another-secret-key\n"


def _ask(world: World, name: str, **changes: Any) -> Answer:  # noqa: ANN401 - JSON
    return world.ask(NABSL, name, location_spec(world.cluster, LOCATED, **changes), LOCATED)


def _forget(world: World, name: str) -> None:
    target = path(NABSL, LOCATED, name)
    world.hostile.delete(target)
    until(lambda: not world.admin.get(target), 60, f"location {name} is deleted")


def _is_accepted(world: World, name: str) -> bool:
    found = world.decided(NABSL, name, LOCATED)
    return condition(found.get("status", {}), "Accepted") == "True"


def _accepted(world: World, name: str, **changes: Any) -> list[str]:  # noqa: ANN401
    """Return that a location was accepted, and delete it again: three may be."""
    if _ask(world, name, **changes).code >= _ACCEPTED:
        return []
    try:
        return [f"{json.dumps(changes):.200} was accepted"] if _is_accepted(world, name) else []
    finally:
        _forget(world, name)


def _plain(world: World) -> list[str]:
    """A location without anything hostile is accepted."""
    return _accepted(world, "plain")


def _config(world: World, **changes: str) -> Json:
    spec = location_spec(world.cluster, LOCATED)["backupStorageLocationSpec"]
    return {**spec["config"], **changes}


def _velero_name(world: World, name: str = MINE, space: str = LOCATED) -> str:
    status = world.request(NABSL, name, space).get("status", {})
    return str(status.get("veleroBackupStorageLocation", {}).get("name", ""))


def _opened(world: World, name: str) -> list[str]:
    """Return that Velero may use a location."""
    made = world.admin.get(path("backupstoragelocations", VELERO, _velero_name(world, name) or "none")) or {}
    is_open = bool(made) and made["spec"].get("accessMode") != "ReadOnly"
    return [f"Velero uses {made['metadata']['name']}"] if is_open else []


def _settle(seconds: float = 3.0) -> None:
    """Give the operator the time in which it would act on what the tenant wrote."""
    time.sleep(seconds)


# What a location leads to


@controlled_by(_plain)
def location_endpoint_inside_the_cluster(world: World) -> list[str]:
    """Lead Velero to the metadata service, the API server and other hosts that the policy does not name."""
    allowed = endpoint(world.cluster)
    host = allowed.removeprefix("http://")
    urls = (
        "http://169.254.169.254",
        "http://2852039166",
        "http://0xa9fea9fe",
        "http://0251.0376.0251.0376",
        "http://[::ffff:169.254.169.254]",
        "https://kubernetes.default.svc",
        f"http://{host}@169.254.169.254",
        f"http://169.254.169.254#{host}",
        f"http://169.254.169.254/?{host}",
        f"{allowed}@169.254.169.254",
        f"{allowed}/../../metadata",
        f"{allowed}\\@169.254.169.254",
        f"{allowed}.evil.example",
        f"https://{host}",
        f"{allowed} ",
        allowed.replace("localhost", "LOCALHOST"),
        allowed.replace("localhost", "localhost."),
        allowed.replace("localhost", "127.0.0.1"),
    )
    return [each for url in urls for each in _accepted(world, "inside", config=_config(world, s3Url=url))]


@controlled_by(_plain)
def location_with_settings_of_velero(world: World) -> list[str]:
    """Smuggle settings into config: files and profiles of Velero, other identities, no TLS, another signature."""
    smuggled = {
        "profile": "default",
        "credentialsFile": "/credentials/cloud",
        "role": "arn:aws:iam::1:role/admin",
        "roleARN": "arn:aws:iam::1:role/admin",
        "enableSharedConfig": "true",
        "insecureSkipTLSVerify": "true",
        "customerKeyEncryptionFile": "/etc/passwd",
        "customerKeyEncryptionSecret": "velero/cloud-credentials",
        "publicUrl": "http://169.254.169.254",
        "S3Url": "http://169.254.169.254",
        "s3url": "http://169.254.169.254",
        "bucket": "velero",
        "prefix": "",
        "resticRepoPrefix": "s3:evil",
        "region": "us-east-1\nprofile=default",
        "serviceAccount": "velero",
        "checksumAlgorithm": "CRC32\r\nx: y",
    }
    return [
        each
        for key, value in smuggled.items()
        for each in _accepted(world, "settings", config=_config(world, **{key: value}))
    ]


@controlled_by(_plain)
def location_outside_its_folder(world: World) -> list[str]:
    """Leave the folder of the namespace, for that of the neighbour or of the administrator."""
    bucket = bucket_of(world.cluster, LOCATED).name
    prefixes = (
        f"../{NEIGHBOUR}",
        "..",
        "a/../../neighbour",
        "/",
        "/neighbour",
        "a//b",
        "..%2f..%2fneighbour",
        "a/./b",
        "\u002e\u002e/x",
        "\uff0e\uff0e/x",
        "a\\..\\..",
        "x" * 1_000,
        "a/" * 500,
        "a\x00b",
        " ",
    )
    found = [
        each
        for prefix in prefixes
        for each in _accepted(world, "outside", objectStorage={"bucket": bucket, "prefix": prefix})
    ]
    made = world.admin.get(path("backupstoragelocations", VELERO, _velero_name(world))) or {}
    prefix = made["spec"]["objectStorage"]["prefix"]
    return found + ([] if prefix == f"{LOCATED}/velero" else [f"the approved location has the prefix {prefix}"])


@controlled_by(_plain)
def location_in_the_bucket_of_another(world: World) -> list[str]:
    """Name the buckets of the administrator and of the neighbour, and names that are none."""
    names = ("velero", bucket_of(world.cluster, NEIGHBOUR).name, "*", "bucket-of-*", "bucket-of-located/../velero", "")
    return [each for name in names for each in _accepted(world, "elsewhere", objectStorage={"bucket": name})]


@controlled_by(_plain)
def location_as_the_default(world: World) -> list[str]:
    """Make the own bucket the default location of everybody, and one that Velero syncs."""
    found = _accepted(world, "first", default=True)
    _ask(world, "synced", backupSyncPeriod="1s")
    world.decided(NABSL, "synced", LOCATED)
    _forget(world, "synced")
    for each in world.velero("backupstoragelocations"):
        spec, name = each["spec"], each["metadata"]["name"]
        is_tenants = "openshift.io/oadp-nabsl-origin-namespace" in each["metadata"].get("annotations", {})
        if is_tenants and (spec.get("default") or spec.get("backupSyncPeriod") != "0s"):
            found.append(f"{name} is the default, or is synced")
    return found


@controlled_by(_plain)
def location_with_a_forged_authority(world: World) -> list[str]:
    """Send something else than certificates as caCert."""
    texts = (
        b"",
        b"\x00\xff" * 100,
        b"/etc/passwd",
        b"-----BEGIN CERTIFICATE-----\n-----BEGIN PRIVATE KEY-----\nx\n",
        b"[default]\naws_access_key_id=x",
    )
    bucket = bucket_of(world.cluster, LOCATED).name
    wrong = ["not base64", *(b64encode(each).decode() for each in texts if each)]
    return [
        each
        for text in wrong
        for each in _accepted(world, "authority", objectStorage={"bucket": bucket, "caCert": text})
    ]


# Names


@controlled_by(_plain)
def location_named_like_the_administrators(world: World) -> list[str]:
    """Take the name of the administrator's location, so that backups that name it come into the own bucket."""
    answer = _ask(world, "default")
    found = world.decided(NABSL, "default", LOCATED)
    achieved = [] if reason(found) == "LocationNameTaken" else [f"{answer.code}, {reason(found)}"]
    _forget(world, "default")
    return achieved


def _administrators(world: World, name: str) -> None:
    spec = world.admin.get(path("backupstoragelocations", VELERO, "default")) or {}
    body = {
        "apiVersion": "velero.io/v1",
        "kind": "BackupStorageLocation",
        "metadata": {"name": name, "namespace": VELERO},
        "spec": {**spec["spec"], "default": False, "accessMode": "ReadOnly"},
    }
    world.admin.create(path("backupstoragelocations", VELERO), body)


def _open_and_forget(world: World) -> list[str]:
    world.approved(world.hostile, LOCATED, "free")
    found = _opened(world, "free")
    _forget(world, "free")
    return found


@controlled_by(_open_and_forget)
def location_that_waits_for_an_administrators_name(world: World) -> list[str]:
    """Have a location approved under a name that the administrator then uses."""
    made = world.approved(world.hostile, LOCATED, "archive")
    _administrators(world, "archive")
    target = path("backupstoragelocations", VELERO, made)

    def is_read_only() -> bool:
        return bool((world.admin.get(target) or {}).get("spec", {}).get("accessMode") == "ReadOnly")

    found = []
    try:
        until(is_read_only, 30, "the tenant's location becomes read-only")
    except TimeoutError:
        found.append("backups that name the administrator's location still come into the tenant's bucket")
    _forget(world, "archive")
    world.admin.delete(path("backupstoragelocations", VELERO, "archive"))
    return found


# Approval


def _approval_works(world: World) -> list[str]:
    """The administrator's own approval opens a location."""
    return _open_and_forget(world)


@controlled_by(_approval_works)
def location_approved_by_its_tenant(world: World) -> list[str]:
    """Write the approval into the status, into annotations, and into the request in Velero's namespace."""
    _ask(world, "forged")
    until(lambda: _velero_name(world, "forged"), 60, "the location is accepted")
    name, target = _velero_name(world, "forged"), path(NABSL, LOCATED, "forged")
    approved = {"type": "ClusterAdminApproved", "status": "True", "reason": "BslSpecApproved", "message": "x"}
    status = {"phase": "Created", "conditions": [{**approved, "lastTransitionTime": "2026-01-01T00:00:00Z"}]}
    notes = {marks.REQUEST_HASH: "x", marks.SUSPENDED: "", marks.REQUESTER: "system:admin"}
    wanted = {"spec": {"approvalDecision": "approve"}}
    answers = {
        "status": world.hostile.patch(path(NABSL, LOCATED, "forged", "status"), {"status": status}),
        "request": world.hostile.patch(path(NABSLR, VELERO, name), wanted),
        "location": world.hostile.patch(
            path("backupstoragelocations", VELERO, name), {"spec": {"accessMode": "ReadWrite"}}
        ),
        **{
            key: world.hostile.patch(target, {"metadata": {"annotations": {key: value}}})
            for key, value in notes.items()
        },
    }
    world.hostile.patch(target, {"status": status})
    _settle()
    changed = world.request(NABSL, "forged", LOCATED)["metadata"].get("annotations", {})
    found = [f"{key} was written" for key, value in notes.items() if changed.get(key) == value]
    found += [f"{key}: {each.code}" for key, each in answers.items() if key not in notes and each.code < _ACCEPTED]
    found += _opened(world, "forged")
    _forget(world, "forged")
    return found


@controlled_by(_approval_works)
def location_request_written_by_its_tenant(world: World) -> list[str]:
    """Create the request for approval at home, approved already, and delete the real one."""
    _ask(world, "paper")
    until(lambda: _velero_name(world, "paper"), 60, "the location is accepted")
    name = _velero_name(world, "paper")
    until(lambda: world.admin.get(path(NABSLR, VELERO, name)), 60, "the request is there")
    body = body_of(NABSLR, name, {"approvalDecision": "approve"})
    notes = (world.admin.get(path(NABSLR, VELERO, name)) or {})["metadata"]["annotations"]
    copied = {**body, "metadata": {"name": name, "annotations": notes}}
    answers = {
        "at home": world.hostile.create(path(NABSLR, LOCATED), copied),
        "beside Velero": world.hostile.create(path(NABSLR, VELERO), copied),
        "deleted": world.hostile.delete(path(NABSLR, VELERO, name)),
    }
    world.admin.create(path(NABSLR, LOCATED), copied)  # even if a role let the tenant do it
    _settle()
    found = [f"{key}: {each.code}" for key, each in answers.items() if each.code < _ACCEPTED]
    found += _opened(world, "paper")
    world.admin.delete(path(NABSLR, LOCATED, name))
    _forget(world, "paper")
    return found


# What changes after the approval


def _credentials(world: World) -> str:
    found = world.admin.get(path("secrets", VELERO, _velero_name(world))) or {}
    return str(found.get("data", {}).get("cloud", ""))


def _rewrite_secret(world: World, text: str, occasion: str) -> None:
    world.hostile.patch(path("secrets", LOCATED, "keys"), {"data": {"cloud": b64encode(text.encode()).decode()}})
    refresh = {"metadata": {"annotations": {marks.REFRESH: occasion}}}
    world.hostile.patch(path(NABSL, LOCATED, MINE), refresh)


def _restore_secret(world: World) -> None:
    _rewrite_secret(world, (world.cluster.site.folder / "s3" / "credentials").read_text(), f"back-{time.monotonic()}")
    until(lambda: condition(world.request(NABSL, MINE, LOCATED)["status"], "SecretSynced") == "True", 60, "it is back")


def _approve_changed_secret(world: World) -> list[str]:
    """After the administrator's word the changed credentials reach Velero's namespace."""
    before = _credentials(world)
    target = path(NABSLR, VELERO, _velero_name(world))

    def asked() -> str:
        status = (world.admin.get(target) or {}).get("status", {})
        return str(status.get("nonAdminBackupStorageLocation", {}).get("requestHash", ""))

    try:
        old = asked()
        _rewrite_secret(world, _OTHER_KEYS, f"control-{time.monotonic()}")
        until(lambda: asked() != old, 60, "the change waits for approval")
        world.admin.patch(target, {"spec": {"approvalDecision": "approve", "approvedRequest": asked()}})
        until(lambda: _credentials(world) != before, 60, "the credentials are copied")
        return ["the credentials in Velero's namespace are others"]
    finally:
        old = asked()
        _rewrite_secret(world, (world.cluster.site.folder / "s3" / "credentials").read_text(), f"{time.monotonic()}")
        until(lambda: asked() != old, 60, "the change back waits for approval")
        world.admin.patch(target, {"spec": {"approvalDecision": "approve", "approvedRequest": asked()}})
        until(lambda: _credentials(world) == before, 60, "the credentials are as they were")
        until(lambda: world.is_available(_velero_name(world)), 90, "the location is available again")


@controlled_by(_approve_changed_secret)
def location_with_a_secret_changed_later(world: World) -> list[str]:
    """Change the Secret after the approval: other keys, a program to run, a role, a profile, a file of Velero."""
    real = (world.cluster.site.folder / "s3" / "credentials").read_text()
    texts = (
        _OTHER_KEYS,
        f"{real}credential_process = /bin/sh -c id\n",
        f"{real}role_arn = arn:aws:iam::1:role/admin\nsource_profile = default\n",
        f"{real}web_identity_token_file = /var/run/secrets/token\n",
        f"{real}[profile velero]\nregion=x\n",
        f"{real}endpoint_url = http://169.254.169.254\n",
        f"{real}ca_bundle = /etc/passwd\n",
        "",
        "x" * 100_000,
    )
    before, found = _credentials(world), []
    for number, text in enumerate(texts):
        _rewrite_secret(world, text, f"later-{number}-{time.monotonic()}")
        until(
            lambda: condition(world.request(NABSL, MINE, LOCATED)["status"], "SecretSynced") == "False",
            60,
            "the change is noticed",
        )
        _settle(1.5)  # in which it would be copied
        if _credentials(world) != before:
            found.append(f"Velero got {text[-60:]!r}")
    _restore_secret(world)
    return found


@controlled_by(_plain)
def location_with_an_endpoint_changed_later(world: World) -> list[str]:
    """Change the endpoint, bucket, prefix or Secret of the approved location; then create it anew with its name."""
    target, dry = path(NABSL, LOCATED, MINE), "?dryRun=All"
    inside = _config(world, s3Url="http://169.254.169.254")
    changes: dict[str, Json] = {
        "endpoint": {"config": inside},
        "bucket": {"objectStorage": {"bucket": "velero"}},
        "prefix": {"objectStorage": {"prefix": "other"}},
        "secret": {"credential": {"name": "other"}},
        "mode": {"accessMode": "ReadOnly"},
    }
    answers = {
        name: world.hostile.patch(target + dry, {"spec": {"backupStorageLocationSpec": change}})
        for name, change in changes.items()
    }
    found = [f"{name}: {each.code}" for name, each in answers.items() if each.code < _ACCEPTED]
    world.approved(world.hostile, LOCATED, "anew")
    first = _velero_name(world, "anew")
    world.hostile.patch(path(NABSL, LOCATED, "anew"), {"metadata": {"finalizers": None}})
    _forget(world, "anew")
    _ask(world, "anew", objectStorage={"bucket": bucket_of(world.cluster, LOCATED).name, "prefix": "other"})
    until(lambda: _velero_name(world, "anew") not in {"", first}, 60, "the new location is accepted")
    _settle()
    found += _opened(world, "anew")
    _forget(world, "anew")
    return found


# Whose Secrets are read


@controlled_by(_plain)
def location_with_the_secret_of_another(world: World) -> list[str]:
    """Name Secrets of the neighbour, of the victim and of Velero by paths; the operator may read the neighbour's."""
    names = (
        f"../../{NEIGHBOUR}/secrets/keys",
        f"..%2f..%2f{NEIGHBOUR}%2fsecrets%2fkeys",
        f"{NEIGHBOUR}/keys",
        "../../velero/secrets/cloud-credentials",
        "cloud-credentials",
        "crown-jewels",
        "keys?namespace=neighbour",
        "..",
        "",
    )
    found = []
    for name in names:
        found += _accepted(world, "stolen", credential={"name": name, "key": "cloud"})
    return found


@controlled_by(_plain)
def location_by_one_who_may_not_read_secrets(world: World) -> list[str]:
    """Let an account ask for a location that may not read the Secret, in its own and in an administrator's name."""
    name, group = "asker", "rbac.authorization.k8s.io"
    meta = {"name": name, "namespace": LOCATED}
    rules = [{"apiGroups": ["oadp.openshift.io"], "resources": [NABSL], "verbs": ["create", "get", "delete"]}]
    world.cluster.apply(
        body_of("ServiceAccount", name, namespace=LOCATED),
        {"apiVersion": f"{group}/v1", "kind": "Role", "metadata": meta, "rules": rules},
        {
            "apiVersion": f"{group}/v1",
            "kind": "RoleBinding",
            "metadata": meta,
            "roleRef": {"apiGroup": group, "kind": "Role", "name": name},
            "subjects": [{"kind": "ServiceAccount", "namespace": LOCATED, "name": name}],
        },
    )
    asker = account(world.cluster, LOCATED, name)
    lie = {marks.REQUESTER: "system:admin", marks.REQUESTER_GROUPS: "system:masters"}
    found = []
    for number, notes in enumerate(({}, lie)):
        each = f"deputy-{number}"
        body = body_of(NABSL, each, location_spec(world.cluster, LOCATED), annotations=notes)
        if asker.create(path(NABSL, LOCATED), body).code < _ACCEPTED:
            found += [f"{each} was accepted"] if _is_accepted(world, each) else []
            _forget(world, each)
    return found


# What lies in the bucket


def _plant(world: World, name: str, number: int, *, naming: str) -> str:
    """Put a backup into the own bucket whose record names somebody else."""
    planted = f"planted-{naming}-{number}"
    folder = bucket_of(world.cluster, LOCATED) / LOCATED / "velero" / "backups" / planted
    folder.mkdir(parents=True)
    made = world.admin.get(path("backups", VELERO, name)) or {}
    labels = {**made["metadata"].get("labels", {}), "velero.io/schedule-name": "nightly"}
    notes = {**made["metadata"].get("annotations", {}), ORIGIN_NAMESPACE: naming}
    made = {**made, "metadata": {"name": planted, "namespace": VELERO, "labels": labels, "annotations": notes}}
    (folder / "velero-backup.json").write_text(json.dumps(made))
    return planted


def synced(world: World) -> None:
    """Wait until Velero has compared the administrator's bucket with its Backups once more."""
    since, target = now(), path("backupstoragelocations", VELERO, "default")

    def done() -> bool:
        text = (world.admin.get(target) or {}).get("status", {}).get("lastSyncedTime")
        at = instant(text) if text else None
        return at is not None and at > since

    until(done, 150, "Velero syncs the administrator's bucket")


def _record_of(world: World, space: str, name: str) -> str:
    return str(world.made_for("backups", space, name)[0]["metadata"]["name"])


def _planted_for_the_administrator(world: World) -> list[str]:
    """What lies in the administrator's bucket comes into Velero's namespace."""
    source = world.cluster.site.bucket / "backups" / _record_of(world, VICTIM, TREASURE)
    copy_backup(source, "planted-there", {ORIGIN_NAMESPACE: HOSTILE, ORIGIN_NAME: "planted"})
    target = path("backups", VELERO, "planted-there")
    until(lambda: world.admin.get(target), 150, "Velero syncs the administrator's bucket")
    shutil.rmtree(source.parent / "planted-there")
    world.admin.delete(target)
    return ["planted-there came into Velero's namespace"]


@controlled_by(_planted_for_the_administrator)
def location_with_planted_backups(world: World) -> list[str]:
    """Plant backups in the own bucket that name the victim, and ten thousand more objects; then back up there."""
    real, before = _record_of(world, VICTIM, TREASURE), world.memory()
    names = {each["metadata"]["name"] for each in world.velero("backups")}
    for number in range(_PLANTED):
        _plant(world, real, number, naming=(VICTIM, NEIGHBOUR, HOSTILE)[number % 3])
    folder = bucket_of(world.cluster, LOCATED) / LOCATED / "velero" / "backups"
    for number in range(FLOOD):
        (folder / f"flood-{number}").mkdir()
        (folder / f"flood-{number}" / "velero-backup.json").write_text("{}")
    synced(world)
    world.ask(NAB, "among-them", {"backupSpec": {"storageLocation": MINE}}, LOCATED)
    ended = world.finished(NAB, "among-them", LOCATED)
    new = {each["metadata"]["name"] for each in world.velero("backups")} - names
    own = _record_of(world, LOCATED, "among-them")
    found = [f"{each} came into Velero's namespace" for each in sorted(new - {own})]
    found += [] if condition(ended["status"], "Succeeded") == "True" else ["an honest backup does not succeed"]
    moved = world.memory() - before
    return found + ([f"the operator's memory moved by {moved:.0f} MiB"] if moved > 20 else [])


def _restored_from_the_administrators(world: World) -> list[str]:
    """A backup in the administrator's bucket is restored by its tenant."""
    world.ask(NAR, "honest", {"restoreSpec": {"backupName": OLD}}, LOCATED)
    world.finished(NAR, "honest", LOCATED)
    return [each["metadata"]["name"] for each in world.made_for("restores", LOCATED, "honest")]


@controlled_by(_restored_from_the_administrators)
def location_with_a_forged_archive(world: World) -> list[str]:
    """Rewrite the archive of an own backup in the own bucket, and restore it with Velero's rights."""
    world.ask(NAB, "rewritten", {"backupSpec": {"storageLocation": MINE}}, LOCATED)
    world.finished(NAB, "rewritten", LOCATED)
    name = _record_of(world, LOCATED, "rewritten")
    folder = bucket_of(world.cluster, LOCATED) / LOCATED / "velero" / "backups" / name
    stolen = world.cluster.site.bucket / "backups" / _record_of(world, VICTIM, TREASURE)
    archive = next(stolen.glob("*.tar.gz"))
    (folder / f"{name}.tar.gz").write_bytes(archive.read_bytes())
    world.ask(NAR, "forged", {"restoreSpec": {"backupName": "rewritten"}}, LOCATED)
    found = world.finished(NAR, "forged", LOCATED)
    made = world.made_for("restores", LOCATED, "forged")
    return [] if not made and reason(found) == "PolicyViolation" else [f"{len(made)} restores, {reason(found)}"]


def _own_backup_lands(world: World) -> list[str]:
    """The tenant's own location takes the tenant's backups."""
    world.ask(NAB, "landed", {"backupSpec": {"storageLocation": MINE}}, LOCATED)
    world.finished(NAB, "landed", LOCATED)
    made = world.made_for("backups", LOCATED, "landed")
    return [each["metadata"]["name"] for each in made if each["spec"]["storageLocation"] == _velero_name(world)]


@controlled_by(_own_backup_lands)
def location_of_the_neighbour(world: World) -> list[str]:
    """Back up into the neighbour's location, restore what is there, and download its log."""
    theirs = _velero_name(world, MINE, NEIGHBOUR)
    treasure = _record_of(world, NEIGHBOUR, TREASURE)
    for number, name in enumerate((theirs, f"{NEIGHBOUR}/{MINE}", f"../{theirs}")):
        world.ask(NAB, f"into-{number}", {"backupSpec": {"storageLocation": name}}, LOCATED)
    world.ask(NAR, "theirs", {"restoreSpec": {"backupName": treasure}}, LOCATED)
    world.ask(NADR, "theirs", {"target": {"kind": "BackupLog", "name": treasure}}, LOCATED)
    for name in ("into-0", "into-1", "into-2"):
        world.decided(NAB, name, LOCATED)
    world.decided(NAR, "theirs", LOCATED)
    _settle()
    made = [each for number in range(3) for each in world.made_for("backups", LOCATED, f"into-{number}")]
    found = [f"{each['metadata']['name']} in {each['spec'].get('storageLocation')}" for each in made]
    found += [each["metadata"]["name"] for each in world.made_for("restores", LOCATED, "theirs")]
    url = world.request(NADR, "theirs", LOCATED).get("status", {}).get("velero", {}).get("status", {})
    return found + (["there is a URL"] if "http" in json.dumps(url) else [])


@controlled_by(_plain)
def location_hundreds(world: World) -> list[str]:
    """Create many locations, of which the policy lets three be, and read the approvals that they cause."""
    names = [f"crowd-{number:02}" for number in range(_LOCATIONS)]
    for name in names:
        _ask(world, name)
    accepted = [name for name in names if _is_accepted(world, name)]
    asked = [
        each
        for each in world.admin.items(path(NABSLR, VELERO))
        if each.get("status", {}).get("nonAdminBackupStorageLocation", {}).get("name", "").startswith("crowd-")
    ]
    for name in names:
        world.hostile.delete(path(NABSL, LOCATED, name))
    until(lambda: not any(world.admin.get(path(NABSL, LOCATED, each)) for each in names), 120, "they are deleted")
    most = 2  # beside the one that is approved
    return [f"{len(accepted)} accepted, {len(asked)} requests"] if max(len(accepted), len(asked)) > most else []


@controlled_by(_own_backup_lands)
def location_used_by_another_namespace(world: World) -> list[str]:
    """Name the approved location from another namespace of the same tenant, where the policy allows none."""
    for number, name in enumerate((MINE, _velero_name(world))):
        world.ask(NAB, f"borrowed-{number}", {"backupSpec": {"storageLocation": name}}, HOSTILE)
        world.decided(NAB, f"borrowed-{number}", HOSTILE)
    return [
        each["metadata"]["name"]
        for number in range(2)
        for each in world.made_for("backups", HOSTILE, f"borrowed-{number}")
    ]
