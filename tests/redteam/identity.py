"""Attacks on whose a request or a Velero object is: names, labels, annotations, owners, statuses."""

import http.client
from typing import Any

from foresail.api import marks
from foresail.selfservice.downloads.targets import SERVED, TARGETS
from tests.redteam.attack import attack, controlled_attack
from tests.redteam.world import (
    HOSTILE,
    NAB,
    NADR,
    NAR,
    NIGHTLY,
    OLD,
    TREASURE,
    VELERO,
    VICTIM,
    World,
    body_of,
    may_edit,
    path,
    reason,
    until,
    user,
)

SYNCED_FROM = "openshift.io/oadp-nab-synced-from-nacuuid"
_EMPTY: dict[str, Any] = {"backupSpec": {}}
_REFUSED_SPEC = {"backupSpec": {"includedNamespaces": ["x"]}}
_COPY = {"nacuuid": NIGHTLY, "name": NIGHTLY, "namespace": VELERO, "status": {"phase": "Completed"}}


def _notes(world: World, plural: str, name: str) -> dict[str, str]:
    found: dict[str, str] = world.request(plural, name).get("metadata", {}).get("annotations", {})
    return found


@attack
def forge_the_label_of_a_synced_backup(world: World) -> list[str]:
    """Claim by label and by annotation that a NonAdminBackup stands for the administrator's Velero Backup."""
    found = []
    for where in ("labels", "annotations"):
        name = f"synced-{where}"
        body = body_of(NAB, name, _REFUSED_SPEC, **{where: {SYNCED_FROM: NIGHTLY}})
        answer = world.hostile.create(path(NAB, HOSTILE), body)
        stored = world.request(NAB, name).get("metadata", {}).get(where, {})
        found += [f"{where}: {answer.code}"] if SYNCED_FROM in stored else []
    return found


@attack
def forge_the_record(world: World) -> list[str]:
    """Write the annotations by which the operator knows whose a Velero object is."""
    keys = (marks.REQUEST_UID, marks.NAMESPACE_UID, marks.ORPHANED, marks.ATTEMPT, marks.REOPENED)
    answers = {key: world.ask(NAB, "recorded", _REFUSED_SPEC, annotations={key: "x"}) for key in keys}
    return [f"{key}: {each.code}" for key, each in answers.items() if each.code < http.client.BAD_REQUEST]


@attack
def forge_the_record_later(world: World) -> list[str]:
    """Add reserved labels to a request by merge patch, JSON patch and server-side apply with the operator's name."""
    world.ask(NAB, "later", _REFUSED_SPEC)
    target = path(NAB, HOSTILE, "later")
    key = "openshift.io/oadp-nab-origin-nacuuid"
    apply = {**body_of(NAB, "later", _REFUSED_SPEC), "metadata": {"name": "later", "labels": {key: NIGHTLY}}}
    world.hostile.patch(target, {"metadata": {"labels": {key: NIGHTLY}}})
    world.hostile.patch(target, [{"op": "add", "path": "/metadata/labels", "value": {key: NIGHTLY}}], "json")
    world.hostile.patch(f"{target}?fieldManager=foresail&force=true", apply, "apply")
    return [f"it carries {key}"] if key in world.request(NAB, "later")["metadata"].get("labels", {}) else []


def _forged_status(world: World, plural: str, spec: object, status: object) -> list[str]:
    name = "liar"
    found = (
        [f"it was created with a status: {world.request(plural, name)['status']}"]
        if _born_with(world, plural, spec, status)
        else []
    )
    answer = world.hostile.patch(path(plural, HOSTILE, name, "status"), {"status": status})
    found += [f"its status was written: {answer.code}"] if answer.code < http.client.BAD_REQUEST else []
    world.hostile.patch(path(plural, HOSTILE, name), {"status": status})
    written = world.request(plural, name).get("status", {})
    return found + (["its status names the backup of another"] if NIGHTLY in str(written) else [])


def _born_with(world: World, plural: str, spec: object, status: object) -> bool:
    body = {**body_of(plural, "liar", spec), "status": status}
    answer = world.hostile.create(path(plural, HOSTILE), body)
    return answer.code == http.client.CREATED and NIGHTLY in str(answer.json().get("status", ""))


@controlled_attack
def forge_the_status_of_a_backup(world: World) -> list[str]:
    """Write into the status of a NonAdminBackup that the administrator's Velero Backup was made for it."""
    return _forged_status(world, NAB, _REFUSED_SPEC, {"phase": "Created", "veleroBackup": _COPY})


@controlled_attack
def forge_the_status_of_a_restore(world: World) -> list[str]:
    """Write the same into the status of a NonAdminRestore."""
    spec = {"restoreSpec": {"backupName": OLD, "scheduleName": "x"}}
    return _forged_status(world, NAR, spec, {"phase": "Created", "veleroRestore": _COPY})


@controlled_attack
def forge_the_status_of_a_download(world: World) -> list[str]:
    """Write an address into the status of a NonAdminDownloadRequest."""
    spec = {"target": {"kind": "BackupContents", "name": OLD}}
    return _forged_status(world, NADR, spec, {"velero": {"status": {"downloadURL": f"http://x/{NIGHTLY}"}}})


@attack
def forge_the_requester(world: World) -> list[str]:
    """Create a request that says an administrator asked for it."""
    notes = {marks.REQUESTER: "admin", marks.REQUESTER_GROUPS: "system:masters"}
    world.ask(NAR, "forged", {"restoreSpec": {"backupName": "later-perhaps"}}, annotations=notes)
    stored = _notes(world, NAR, "forged")
    return [f"{key} is {value}" for key, value in notes.items() if stored.get(key) == value]


@attack
def forge_the_requester_later(world: World) -> list[str]:
    """Change who asked for a request that waits."""
    world.ask(NAR, "waiting", {"restoreSpec": {"backupName": "later-perhaps"}})
    notes = {marks.REQUESTER: "admin", marks.REQUESTER_GROUPS: "system:masters"}
    target = path(NAR, HOSTILE, "waiting")
    world.hostile.patch(target, {"metadata": {"annotations": notes}})
    world.hostile.patch(target, [{"op": "add", "path": "/metadata/annotations", "value": notes}], "json")
    stored = _notes(world, NAR, "waiting")
    return [f"{key} is {value}" for key, value in notes.items() if stored.get(key) == value]


@attack
def remove_the_requester(world: World) -> list[str]:
    """Take away who asked, so that nobody's rights are asked for; the restore must not go ahead then."""
    world.ask(NAR, "nobodys", {"restoreSpec": {"backupName": "later-perhaps"}})
    target = path(NAR, HOSTILE, "nobodys")
    world.hostile.patch(target, {"metadata": {"annotations": None}})
    world.hostile.patch(target, {"spec": {"restoreSpec": {"backupName": OLD, "includedResources": ["configmaps"]}}})
    if marks.REQUESTER in _notes(world, NAR, "nobodys"):
        return []
    world.decided(NAR, "nobodys")
    return ["it is restored without a requester"] if world.made_for("restores", HOSTILE, "nobodys") else []


@attack
def edit_the_request_of_somebody_stronger(world: World) -> list[str]:
    """Change what a namespace administrator asked for, so that it runs with that person's rights."""
    world.cluster.apply(may_edit(HOSTILE, "bossy", "admin"))
    boss = user(world.cluster, "bossy")
    target = path(NAR, HOSTILE, "of-boss")
    body = body_of(NAR, "of-boss", {"restoreSpec": {"backupName": "later-perhaps"}})
    until(lambda: boss.create(path(NAR, HOSTILE), body).code < http.client.BAD_REQUEST, 30, "the boss may ask")
    kinds = ["rolebindings.rbac.authorization.k8s.io"]
    world.hostile.patch(target, {"spec": {"restoreSpec": {"backupName": OLD, "includedResources": kinds}}})
    found = world.request(NAR, "of-boss")
    changed = found["spec"]["restoreSpec"].get("backupName") == OLD
    asked_by = found["metadata"].get("annotations", {}).get(marks.REQUESTER)
    world.admin.delete(target)
    return (
        [f"its spec was changed and it is still asked for by {asked_by}"] if changed and asked_by != "mallory" else []
    )


@attack
def take_the_victims_name(world: World) -> list[str]:
    """Name a request so that the Velero object's name begins as the victim's would, and delete it by force."""
    world.ask(NAB, TREASURE, _EMPTY)
    world.finished(NAB, TREASURE)
    own = {each["metadata"]["name"] for each in world.made_for("backups", HOSTILE, TREASURE)}
    others = {each["metadata"]["name"] for each in world.made_for("backups", VICTIM)}
    world.hostile.patch(path(NAB, HOSTILE, TREASURE), {"spec": {"forceDeleteBackup": True}})
    return [f"{each} belongs to both" for each in own & others]


@attack
def use_long_names_that_collide_when_cut(world: World) -> list[str]:
    """Create two requests whose names differ only in the last of 253 characters."""
    names = ["n" * 252 + each for each in "ab"]
    found = []
    for name in names:
        world.ask(NAB, name, _EMPTY)
        world.finished(NAB, name)
        found += [(each["metadata"]["name"], name) for each in world.made_for("backups", HOSTILE, name)]
    made = {name for name, _ in found}
    return [] if len(made) == len(found) == len(names) else [f"{len(names)} requests share {made}"]


@attack
def use_names_that_are_paths(world: World) -> list[str]:
    """Create requests whose names lead elsewhere: parents, separators, NUL and letters that look alike."""
    names = ("..", "../victim", "a/b", "treasure\u0000", "tre\u0430sure", "x" * 254, "*", "a%2fb", " ")
    answers = {repr(name): world.ask(NAB, name, _EMPTY).code for name in names}
    return [f"{name}: {code}" for name, code in answers.items() if code < http.client.BAD_REQUEST]


def _is_unfinished(world: World, name: str) -> bool:
    phases = [each.get("status", {}).get("phase", "") for each in world.made_for("backups", HOSTILE, name)]
    return any(each in {"", "New", "Queued", "ReadyToStart", "InProgress", "Finalizing"} for each in phases)


@attack
def own_the_victims_objects(world: World) -> list[str]:
    """Give a request owners among the objects of others, and see what Velero's object inherits."""
    backup = world.made_for("backups", VICTIM)[0]["metadata"]
    owner = {"apiVersion": "velero.io/v1", "kind": "Backup", "name": backup["name"], "uid": backup["uid"]}
    world.ask(NAB, "owned", _EMPTY, ownerReferences=[{**owner, "controller": True, "blockOwnerDeletion": True}])
    world.decided(NAB, "owned")  # the garbage collector may delete it: its owner is in another namespace
    until(lambda: not _is_unfinished(world, "owned"), 60, "Velero ends its backup")
    made = world.made_for("backups", HOSTILE, "owned")
    return [f"{each['metadata']['name']} has owners" for each in made if each["metadata"].get("ownerReferences")]


@attack
def pass_velero_labels_on(world: World) -> list[str]:
    """Label a request as Velero labels the backups of a Schedule and of another location."""
    labels = {"velero.io/schedule-name": NIGHTLY, "velero.io/storage-location": "vault"}
    world.ask(NAB, "labelled", _EMPTY, labels=labels, annotations={"velero.io/resource-timeout": "9999h"})
    world.finished(NAB, "labelled")
    found = []
    for each in world.made_for("backups", HOSTILE, "labelled"):
        carried = each["metadata"].get("labels", {})
        found += [f"{key} is {value}" for key, value in labels.items() if carried.get(key) == value]
        notes = each["metadata"].get("annotations", {})
        found += ["its resource timeout is passed on"] if notes.get("velero.io/resource-timeout") == "9999h" else []
    return found


@attack
def hand_out_the_victims_log(world: World) -> list[str]:
    """Ask for the log of the victim's and the administrator's backup by every name they have."""
    made = world.made_for("backups", VICTIM)[0]["metadata"]["name"]
    names = (made, NIGHTLY, TREASURE, f"{VICTIM}.{TREASURE}")
    for number, name in enumerate(names):
        world.ask(NADR, f"log-{number}", {"target": {"kind": "BackupLog", "name": name}})
        world.decided(NADR, f"log-{number}")
    asked = [each["spec"]["target"]["name"] for each in world.velero("downloadrequests")]
    shown = [each for each in world.admin.items(path(NADR, HOSTILE)) if "velero" in each.get("status", {})]
    own = {each["metadata"]["name"] for each in world.made_for("backups", HOSTILE)}
    found = [f"Velero was asked for {name}" for name in asked if name in {made, NIGHTLY}]
    return found + [f"{each['metadata']['name']} shows an address" for each in shown if not own]


@attack
def hand_out_contents(world: World) -> list[str]:
    """Ask for every file of one's own backup that holds objects, Secrets of others' service accounts among them."""
    refused = sorted(TARGETS.keys() - SERVED)
    for kind in refused:
        world.ask(NADR, kind.lower(), {"target": {"kind": kind, "name": OLD}})
        world.decided(NADR, kind.lower())
    kinds = {each["spec"]["target"]["kind"] for each in world.velero("downloadrequests")}
    return [f"Velero was asked for {kind}" for kind in refused if kind in kinds]


@attack
def restore_the_victims_backup(world: World) -> list[str]:
    """Restore the victim's and the administrator's backup by every name they have."""
    made = world.made_for("backups", VICTIM)[0]["metadata"]["name"]
    for number, name in enumerate((made, NIGHTLY, TREASURE + "x", f"{VICTIM}/{TREASURE}")):
        world.ask(NAR, f"theirs-{number}", {"restoreSpec": {"backupName": name}})
    for number in range(4):
        world.decided(NAR, f"theirs-{number}")
    sources = {each["spec"]["backupName"] for each in world.made_for("restores", HOSTILE)}
    return [f"{name} was restored" for name in sources & {made, NIGHTLY}]


@attack
def inherit_a_request_made_again(world: World) -> list[str]:
    """Drop the finalizer, delete a request and create it again, to get the Velero Backup of the first."""
    world.ask(NAB, "again", _EMPTY)
    world.finished(NAB, "again")
    before = {each["metadata"]["name"] for each in world.made_for("backups", HOSTILE, "again")}
    target = path(NAB, HOSTILE, "again")
    world.hostile.delete(target)
    world.hostile.patch(target, {"metadata": {"finalizers": None}})
    until(lambda: not world.request(NAB, "again"), 60, "the request is gone")
    world.ask(NAB, "again", {"backupSpec": {"includedNamespaces": ["x"]}})
    found = world.decided(NAB, "again")
    named = found.get("status", {}).get("veleroBackup", {}).get("name", "")
    world.ask(NAR, "of-again", {"restoreSpec": {"backupName": "again"}})
    world.decided(NAR, "of-again")
    restored = {each["spec"]["backupName"] for each in world.made_for("restores", HOSTILE, "of-again")}
    return [f"the new request has {name}" for name in before & ({named} | restored)]


@attack
def change_an_accepted_request(world: World) -> list[str]:
    """Change the spec of a request after it was accepted."""
    change = {"spec": {"backupSpec": {"storageLocation": "elsewhere"}}}
    answer = world.hostile.patch(path(NAB, HOSTILE, OLD), change)
    return [f"it was changed: {answer.code}"] if answer.code < http.client.BAD_REQUEST else []


@attack
def add_a_field_that_nobody_knows(world: World) -> list[str]:
    """Send fields beside the spec that a later reader might believe."""
    body = {**body_of(NAB, "unknown", {**_REFUSED_SPEC, "syncedFrom": NIGHTLY}), "velero": NIGHTLY}
    world.hostile.create(path(NAB, HOSTILE), body)
    stored = world.request(NAB, "unknown")
    return ["it was stored"] if "syncedFrom" in stored.get("spec", {}) or "velero" in stored else []


@attack
def restore_ones_own_requests(world: World) -> list[str]:
    """Restore NonAdminBackups and NonAdminRestores, which would come back with a status of the past."""
    kinds = ["nonadminbackups.oadp.openshift.io", "nonadminbackups", "nonadminrestores"]
    for number, kind in enumerate(kinds):
        world.ask(NAR, f"requests-{number}", {"restoreSpec": {"backupName": OLD, "includedResources": [kind]}})
    for number in range(len(kinds)):
        world.finished(NAR, f"requests-{number}")
    marked = [each for each in world.admin.items(path(NAB, HOSTILE)) if _came_from_restore(each)]
    return [f"{each['metadata']['name']} came back" for each in marked]


def _came_from_restore(found: dict[str, Any]) -> bool:
    return "velero.io/restore-name" in found["metadata"].get("labels", {})


@attack
def pose_as_restored(world: World) -> list[str]:
    """Label a request as if an administrator had restored it, and hope that no quota and no check applies."""
    labels = {"velero.io/restore-name": "dr", "velero.io/backup-name": NIGHTLY}
    world.ask(NAR, "posed", {"restoreSpec": {"backupName": NIGHTLY}}, labels=labels)
    found = world.decided(NAR, "posed")
    made = world.made_for("restores", HOSTILE, "posed")
    return [f"a Velero Restore was made ({reason(found)})"] if made else []
