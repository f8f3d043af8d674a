"""Attacks through restores from the backup of a class: into, of and as others, of the past, and what they tell."""

import gzip
import http.client
import itertools
import json
import time
from functools import partial
from typing import Any, cast

from foresail.api.marks import NAMESPACE_UIDS, PROTECTION_CLASS, REQUESTER
from tests.redteam.attack import Act, controlled_by, listed
from tests.redteam.class_world import GOLD, PLAIN, SHUT, SOLO, ClassWorld
from tests.redteam.world import (
    CLOSED,
    HOSTILE,
    NAB,
    NADR,
    NAR,
    NIGHTLY,
    REBORN,
    VELERO,
    VICTIM,
    Caller,
    Json,
    World,
    body_of,
    may_edit,
    namespace,
    path,
    until,
    user,
)
from tests.selfservice_invariant import breaches_of_restore

_numbers = itertools.count()
_MOST_TOLD = 30


def _handed_over(
    world: World,
    spec: Json,
    who: Caller | None = None,
    space: str = HOSTILE,
    **metadata: Any,  # noqa: ANN401 - JSON
) -> list[str]:
    """Ask for a restore, and return the Velero Restores that were made for it."""
    name = f"r{next(_numbers)}"
    answer = (who or world.hostile).create(path(NAR, space), body_of(NAR, name, spec, **metadata))
    if answer.code >= http.client.BAD_REQUEST:
        return []
    world.decided(NAR, name, space)
    until(lambda: _is_settled(world, name, space), 60, f"restore {name} is judged")
    return [f"{each['metadata']['name']} of {each['spec']['includedNamespaces']}" for each in
            world.made_for("restores", space, name)]  # fmt: skip


def _is_settled(world: World, name: str, space: str) -> bool:
    status = world.request(NAR, name, space).get("status", {})
    return status.get("phase") in {"BackingOff", "Created"} or _accepted(status) == "BackupNotReady"


def _accepted(status: Json) -> str:
    return next((each["reason"] for each in status.get("conditions", []) if each["type"] == "Accepted"), "")


def _spec(world: World, of: str = GOLD, **restore: Any) -> Json:  # noqa: ANN401 - JSON
    return {"restoreSpec": restore, "fromProtection": {"backup": cast("ClassWorld", world).point(of)}}


def _rightful(world: World) -> list[str]:
    """Restore the own namespace from the own group: it is handed over."""
    return _handed_over(world, _spec(world))


def _sent(spec: Json, world: World) -> list[str]:
    return _handed_over(world, _spec(world, **spec))


_ASKED: dict[str, tuple[str, Json]] = {
    "into_the_victim": ("Map the own namespace to the victim's.", {"namespaceMapping": {HOSTILE: VICTIM}}),
    "of_the_victim": ("Map the victim's namespace to the own.", {"namespaceMapping": {VICTIM: HOSTILE}}),
    "into_velero": ("Map the own namespace to Velero's.", {"namespaceMapping": {HOSTILE: VELERO}}),
    "into_a_closed_namespace": ("Map it to one without self-service.", {"namespaceMapping": {HOSTILE: CLOSED}}),
    "of_another_member": (
        "Include the namespace of the victim, which is in the group.",
        {"includedNamespaces": [VICTIM]},
    ),
    "of_two_members": ("Include both namespaces of the group.", {"includedNamespaces": [HOSTILE, VICTIM]}),
    "of_all_members": ("Include every namespace of the group by a star.", {"includedNamespaces": ["*"]}),
    "of_members_by_a_pattern": ("Include namespaces by a pattern.", {"includedNamespaces": ["[hv]*"]}),
    "of_all_but_one": ("Exclude the own namespace, so that the others are left.", {"excludedNamespaces": [HOSTILE]}),
    "of_the_cluster": ("Ask for the objects of the cluster in the archive.", {"includeClusterResources": True}),
    "of_the_schedule": ("Name the Schedule of the group instead of a backup.", {"scheduleName": "gold-1"}),
    "with_two_sources": ("Name a NonAdminBackup beside the point.", {"backupName": "own"}),
    "of_pods": ("Ask for pods, which name objects beside themselves.", {"includedResources": ["pods"]}),
    "with_hooks": (
        "Run commands in pods after the restore.",
        {"hooks": {"resources": [{"name": "x", "postHooks": [{"exec": {"command": ["/bin/true"]}}]}]}},
    ),
    "of_roles": (
        "Bring back roles and bindings that were in the namespace.",
        {"includedResources": ["rolebindings.rbac.authorization.k8s.io"]},
    ),
    "with_a_status": ("Restore the status of objects.", {"restoreStatus": {"includedResources": ["*"]}}),
}

for _name, (_tries, _restore) in _ASKED.items():
    listed(__name__, f"protection_restore_{_name}", _tries, partial(_sent, _restore), _rightful)


def _named(backup: str, world: World) -> list[str]:
    return _handed_over(world, {"restoreSpec": {}, "fromProtection": {"backup": backup}})


def _of_class(of: str, world: World) -> list[str]:
    return _named(cast("ClassWorld", world).point(of), world)


_NAMED: dict[str, tuple[str, Act]] = {
    "of_a_group_without_oneself": ("Name the backup of a group in which only the victim is.", partial(_of_class, SOLO)),
    "of_a_class_that_is_shut": ("Name the backup of a class that lets no team restore.", partial(_of_class, SHUT)),
    "of_an_administrator": ("Name an administrator's backup of both namespaces.", partial(_named, NIGHTLY)),
    "by_a_path": ("Name the backup by a path.", partial(_named, f"../{SOLO}-1")),
    "by_a_star": ("Name all backups by a star.", partial(_named, "*")),
    "by_the_name_of_the_schedule": ("Name the Schedule as if it were a backup.", partial(_named, "gold-1")),
    "by_an_endless_name": ("Name a backup by 253 characters.", partial(_named, "g" * 253)),
}

for _name, (_tries, _act) in _NAMED.items():
    listed(__name__, f"protection_restore_{_name}", _tries, _act, _rightful)


def _shut_again(world: World) -> list[str]:
    """Restore in a namespace of the class that is shut: as its own tenant, but the class says no."""
    world.cluster.apply(namespace(CLOSED))
    until(lambda: "foresail.dev/velero-annotations" in _labels(world, CLOSED), 30, "it has self-service")
    return _handed_over(world, _spec(world, SHUT), space=CLOSED)


def _labels(world: World, space: str) -> Json:
    found: Json = (world.admin.get(path("namespaces", name=space)) or {})["metadata"].get("labels", {})
    return found


@controlled_by(_rightful)
def protection_restore_own_namespace_of_a_shut_class(world: World) -> list[str]:
    """Restore one's own namespace from a class that never let teams restore."""
    return _shut_again(world)


def _edited(world: World, sub: str = "") -> list[str]:
    """Ask for one's own, and name the victim's backup once that is accepted."""
    name = f"r{next(_numbers)}"
    world.ask(NAR, name, _spec(world))
    until(lambda: _accepted(world.request(NAR, name).get("status", {})) == "RestoreAccepted", 60, "it is accepted")
    theirs = {"spec": {"fromProtection": {"backup": cast("ClassWorld", world).point(SOLO)}}}
    world.hostile.patch(path(NAR, HOSTILE, name, sub), theirs)
    world.finished(NAR, name)
    found = world.made_for("restores", HOSTILE, name)
    theirs_now = [each for each in found if each["spec"]["backupName"].startswith(SOLO)]
    stored = world.request(NAR, name).get("spec", {}).get("fromProtection", {}).get("backup", "")
    return [f"it restores {len(theirs_now)}"] if theirs_now else ["it names another"] if stored.startswith(SOLO) else []


def _edited_before(world: World) -> list[str]:
    """Edit a restore that was refused: that is anybody's right, and is stored."""
    name = f"r{next(_numbers)}"
    world.ask(NAR, name, {"restoreSpec": {}, "fromProtection": {"backup": "none"}})
    until(lambda: _is_settled(world, name, HOSTILE), 60, "it is refused")
    mine = cast("ClassWorld", world).point(GOLD)
    world.hostile.patch(path(NAR, HOSTILE, name), {"spec": {"fromProtection": {"backup": mine}}})
    until(lambda: world.made_for("restores", HOSTILE, name), 60, "the edited restore is handed over")
    return ["it was edited"]


@controlled_by(_edited_before)
def protection_restore_edited_after_it_was_accepted(world: World) -> list[str]:
    """Name the backup of the victim after one's own was accepted."""
    return _edited(world)


@controlled_by(_edited_before)
def protection_restore_edited_by_its_status(world: World) -> list[str]:
    """Do the same through the subresource status."""
    return _edited(world, "status")


# As somebody else


def _as_administrator(world: World, name: str = "system:admin") -> list[str]:
    return _handed_over(world, _spec(world), annotations={REQUESTER: name})


@controlled_by(lambda world: _as_administrator(world, "mallory"))
def protection_restore_in_the_name_of_an_administrator(world: World) -> list[str]:
    """Write an administrator's name into the annotation of the requester."""
    name = f"r{next(_numbers)}"
    world.hostile.create(path(NAR, HOSTILE), body_of(NAR, name, _spec(world), annotations={REQUESTER: "system:admin"}))
    found = world.request(NAR, name).get("metadata", {}).get("annotations", {}).get(REQUESTER)
    return [f"it is in the name of {found}"] if found == "system:admin" else []


@controlled_by(_rightful)
def protection_restore_by_who_may_create_nothing(world: World) -> list[str]:
    """Restore as somebody who may ask for restores and create nothing that they bring back."""
    return _handed_over(world, _spec(world), user(world.cluster, "eve"))


# Of the past


def _born_again(world: World, *, is_again: bool) -> list[str]:
    """Restore into a namespace with the name of a deleted one, or before it was deleted."""
    if is_again:
        world.admin.delete(path("namespaces", name=REBORN))
        until(lambda: world.admin.get(path("namespaces", name=REBORN)) is None, 60, "the namespace is gone")
        world.cluster.apply(namespace(REBORN), may_edit(REBORN, "mallory"))
        until(lambda: "foresail.dev/velero-annotations" in _labels(world, REBORN), 30, "it has self-service")
    return _handed_over(world, _spec(world), space=REBORN)


@controlled_by(_rightful)
def protection_restore_of_a_former_owner(world: World) -> list[str]:
    """Create a namespace under the name of a deleted one, and restore what its owner had."""
    return _born_again(world, is_again=True)


@controlled_by(_rightful)
def protection_restore_with_the_uid_of_a_former_owner(world: World) -> list[str]:
    """Write the UID of the former namespace into annotations and labels of the new one and of the request."""
    backup = world.admin.get(path("backups", VELERO, cast("ClassWorld", world).point(GOLD))) or {}
    uids = backup["metadata"]["annotations"][NAMESPACE_UIDS]
    former = json.loads(uids)[REBORN]
    notes = {"foresail.dev/namespace-uid": former, NAMESPACE_UIDS: uids}
    world.hostile.patch(
        path("namespaces", name=REBORN), {"metadata": {"annotations": notes, "labels": {"uid": former}}}
    )
    now = (world.admin.get(path("namespaces", name=REBORN)) or {})["metadata"]["uid"]
    if now == former:
        world.admin.delete(path("namespaces", name=REBORN))
        raise RuntimeError("the namespace has not been created again")
    return _handed_over(world, _spec(world), space=REBORN, annotations=notes)


# Records that look like those of a class


def _marked_backup(world: World, where: str) -> list[str]:
    """Back up the own namespace with the marks by which backups of a class are recognised."""
    uid = (world.admin.get(path("namespaces", name=HOSTILE)) or {})["metadata"]["uid"]
    marks = {PROTECTION_CLASS: GOLD, NAMESPACE_UIDS: json.dumps({HOSTILE: uid, VICTIM: uid})}
    name = f"b{next(_numbers)}"
    spec: Json = {"backupSpec": {"snapshotVolumes": False}}
    metadata: Json = {}
    if where == "spec":
        spec["backupSpec"]["metadata"] = {"labels": {"velero.io/schedule-name": "gold-1", PROTECTION_CLASS: GOLD}}
    else:
        metadata = {"annotations": marks}
    world.ask(NAB, name, spec, HOSTILE, **metadata)
    if world.request(NAB, name):
        world.finished(NAB, name)
    made = world.made_for("backups", HOSTILE, name)
    found = [key for each in made for key in (*marks, "velero.io/schedule-name") if key in str(each["metadata"])]
    found += _named(made[0]["metadata"]["name"], world) if made else []
    return found


def _marked_by_administrator(world: World) -> list[str]:
    name = "gold-1-20200101000000-0a1b2c3d"
    notes = {PROTECTION_CLASS: GOLD}
    spec = {"includedNamespaces": [VICTIM], "storageLocation": "default"}
    world.admin.create(path("backups", VELERO), body_of("backups", name, spec, annotations=notes))
    found = world.admin.get(path("backups", VELERO, name)) or {}
    until(lambda: _phase(world, name) == "Completed", 60, "it has ended")
    world.cluster.velero("backup", "delete", name, "--confirm")
    until(lambda: world.admin.get(path("backups", VELERO, name)) is None, 60, "it is gone")
    return [key for key in notes if key in str(found)]


def _phase(world: World, name: str) -> str:
    return str((world.admin.get(path("backups", VELERO, name)) or {}).get("status", {}).get("phase"))


@controlled_by(_marked_by_administrator)
def protection_backup_with_the_marks_of_a_class(world: World) -> list[str]:
    """Ask for a backup with the annotations of one that a class has taken, and restore from it as from a point."""
    return _marked_backup(world, "annotations")


@controlled_by(_marked_by_administrator)
def protection_backup_with_the_labels_of_a_class(world: World) -> list[str]:
    """Ask for a backup with the labels of a Schedule of a class in its spec."""
    return _marked_backup(world, "spec")


# What the archive holds of others


def _theirs(world: World) -> list[str]:
    """Return what of the victim is in the namespace of the hostile tenant."""
    found = [each["metadata"]["name"] for each in world.admin.items(path("persistentvolumeclaims", HOSTILE))]
    found += [each["metadata"]["name"] for each in world.admin.items(path("secrets", HOSTILE))]
    return [name for name in found if name in {"jewels", "crown-jewels"}]


def _restored(world: World, spec: Json) -> list[str]:
    name = f"r{next(_numbers)}"
    world.ask(NAR, name, spec)
    world.finished(NAR, name)
    return _theirs(world)


def _whole_archive(world: World) -> list[str]:
    """Let an administrator restore the victim's objects into the namespace of the hostile tenant."""
    spec = {
        "backupName": cast("ClassWorld", world).point(GOLD),
        "includedNamespaces": [VICTIM],
        "namespaceMapping": {VICTIM: HOSTILE},
    }
    name = f"whole{next(_numbers)}"
    world.admin.create(path("restores", VELERO), body_of("restores", name, spec))
    until(lambda: _theirs(world), 60, "the victim's objects are there")
    found = _theirs(world)
    world.cluster.velero("restore", "delete", name, "--confirm")
    for plural, each in (("persistentvolumeclaims", "jewels"), ("secrets", "crown-jewels")):
        world.admin.delete(path(plural, HOSTILE, each))
    until(lambda: not _theirs(world), 60, "they are gone")
    return found


@controlled_by(_whole_archive)
def protection_restore_of_a_pod_with_a_path_for_a_claim(world: World) -> list[str]:
    """Restore a pod from before self-service whose claim is a path to the victim's, and which demands it."""
    world.admin.delete(path("pods", HOSTILE, "grasping"), gracePeriodSeconds="0")
    return _restored(world, _spec(world))


@controlled_by(_whole_archive)
def protection_restore_of_everything_that_there_is(world: World) -> list[str]:
    """Restore with existingResourcePolicy update and no kind left out."""
    return _restored(world, _spec(world, existingResourcePolicy="update"))


_POINTING = {"velero.io/volume-snapshot-name": f"../{VICTIM}/velero-jewels"}


def _claim_stored(world: World, space: str, who: Caller) -> list[str]:
    spec = {
        "accessModes": ["ReadWriteOnce"],
        "resources": {"requests": {"storage": "1Mi"}},
        "storageClassName": "none",
    }
    body = {**body_of("PersistentVolumeClaim", "pointing", spec, annotations=_POINTING), "apiVersion": "v1"}
    who.create(path("persistentvolumeclaims", space), body)
    found = world.admin.get(path("persistentvolumeclaims", space, "pointing"))
    world.admin.delete(path("persistentvolumeclaims", space, "pointing"))
    return [key for key in _POINTING if key in str(found)]


@controlled_by(lambda world: _claim_stored(world, "default", world.admin))
def protection_claim_that_points_to_a_snapshot_of_the_victim(world: World) -> list[str]:
    """Annotate a claim with a path to a VolumeSnapshot of the victim in the archive of the group."""
    return _claim_stored(world, HOSTILE, world.hostile)


@controlled_by(lambda world: _pod_stored(world, "default", world.admin))
def protection_pod_that_demands_what_it_names(world: World) -> list[str]:
    """Annotate a pod so that Velero restores what it names, whatever the restore leaves out."""
    return _pod_stored(world, HOSTILE, world.hostile)


def _pod_stored(world: World, space: str, who: Caller) -> list[str]:
    key = "restore.velero.io/must-include-additional-items"
    body = {**body_of("Pod", "demanding", annotations={key: "true"}), "apiVersion": "v1", "spec": PLAIN}
    who.create(path("pods", space), body)
    found = world.admin.get(path("pods", space, "demanding"))
    world.admin.delete(path("pods", space, "demanding"), gracePeriodSeconds="0")
    return [key] if key in str(found) else []


# What is told


def _done(world: World) -> str:
    name = f"r{next(_numbers)}"
    world.ask(NAR, name, _spec(world))
    world.finished(NAR, name)
    return name


def _names_in_velero_s_log(world: World) -> list[str]:
    """Read Velero's own log of a restore: it names the others."""
    _done(world)
    logs = list((world.cluster.site.bucket / "restores").glob("*/restore-*-logs.gz"))
    text = "".join(gzip.decompress(each.read_bytes()).decode(errors="replace") for each in logs)
    return [VICTIM] if VICTIM in text else []


@controlled_by(_names_in_velero_s_log)
def protection_restore_that_tells_of_the_others(world: World) -> list[str]:
    """Look for the names and the numbers of the other members in one's request after the restore."""
    name = _done(world)
    found = json.dumps(world.request(NAR, name))
    events = json.dumps(world.hostile.items(f"/apis/events.k8s.io/v1/namespaces/{HOSTILE}/events"))
    told = [word for word in (VICTIM, "jewels", REBORN, "itemsRestored") if word in found or word in events]
    return [f"it tells of {word}" for word in told]


def _served(world: World, kind: str, name: str) -> list[str]:
    asked = f"d{next(_numbers)}"
    world.ask(NADR, asked, {"target": {"kind": kind, "name": name}})
    world.decided(NADR, asked)
    time.sleep(1)
    found = world.request(NADR, asked).get("status", {}).get("velero", {}).get("status", {}).get("downloadURL")
    return ["its URL is shown"] if found else []


def _own_file(kind: str, world: World) -> list[str]:
    """Ask for the log of a backup of one's own, which is served."""
    name = f"b{next(_numbers)}"
    world.ask(NAB, name, {"backupSpec": {"snapshotVolumes": False}})
    world.finished(NAB, name)
    asked = f"d{next(_numbers)}"
    world.ask(NADR, asked, {"target": {"kind": kind, "name": name}})
    until(lambda: "downloadURL" in str(world.request(NADR, asked).get("status")), 60, "its URL is shown")
    return ["its URL is shown"]


def _file_of_restore(kind: str, world: World) -> list[str]:
    return _served(world, kind, _done(world))


def _file_of_point(kind: str, world: World) -> list[str]:
    return _served(world, kind, cast("ClassWorld", world).point(GOLD))


for _kind in ("RestoreLog", "RestoreResults", "RestoreResourceList"):
    listed(
        __name__,
        f"protection_download_{_kind}",
        f"Download the {_kind} of a restore from a group, which names the others.",
        partial(_file_of_restore, _kind),
        partial(_own_file, "BackupLog"),
    )
for _kind in ("BackupLog", "BackupResourceList", "BackupContents"):
    listed(
        __name__,
        f"protection_download_{_kind}",
        f"Download the {_kind} of the backup of a group by its name.",
        partial(_file_of_point, _kind),
        partial(_own_file, "BackupLog"),
    )


def _message(world: World, backup: str) -> str:
    name = f"r{next(_numbers)}"
    world.ask(NAR, name, {"restoreSpec": {}, "fromProtection": {"backup": backup}})
    until(lambda: _is_settled(world, name, HOSTILE), 60, "it is refused")
    conditions = world.request(NAR, name)["status"]["conditions"]
    return str(next(each["message"] for each in conditions if each["type"] == "Accepted")).replace(backup, "X")


def _told_apart(world: World, first: str, second: str) -> list[str]:
    one, other = _message(world, first), _message(world, second)
    return [] if one == other else [f"{one!r:.{_MOST_TOLD}} is not {other!r:.{_MOST_TOLD}}"]


@controlled_by(lambda world: _told_apart(world, "gold-1-none", "x" * 250))
def protection_learn_which_backups_there_are(world: World) -> list[str]:
    """Tell by the refusal a backup of others from one that does not exist."""
    there = cast("ClassWorld", world).point(SOLO)
    return _told_apart(world, there, f"{there[:-1]}x")


def _bystander_waits(world: World, seconds: float) -> list[str]:
    began = time.monotonic()
    name = f"v{next(_numbers)}"
    point = cast("ClassWorld", world).point(GOLD)
    body = body_of(NAR, name, {"restoreSpec": {}, "fromProtection": {"backup": point}})
    world.victim.create(path(NAR, VICTIM), body)
    while not world.made_for("restores", VICTIM, name):
        if time.monotonic() - began > seconds:
            return [f"the victim's restore is not handed over within {seconds:g} s"]
        time.sleep(0.2)
    world.finished(NAR, name, VICTIM)
    world.admin.delete(path(NAR, VICTIM, name))
    until(lambda: not world.request(NAR, name, VICTIM), 60, "it is gone")
    return []


def _stopped(world: World) -> list[str]:
    world.operator.send_signal(19)
    try:
        return _bystander_waits(world, 5)
    finally:
        world.operator.send_signal(18)
        time.sleep(5)
        for each in world.admin.items(path(NAR, VICTIM)):
            world.finished(NAR, each["metadata"]["name"], VICTIM)
            world.admin.delete(path(NAR, VICTIM, each["metadata"]["name"]))
        until(lambda: not world.admin.items(path(NAR, VICTIM)), 60, "they are gone")


@controlled_by(_stopped)
def protection_flood_of_restores(world: World) -> list[str]:
    """Ask for two hundred restores of backups that there are not, and of those of others."""
    there = cast("ClassWorld", world).point(SOLO)
    for number in range(200):
        spec = {"restoreSpec": {}, "fromProtection": {"backup": there if number % 2 else f"gold-1-{number}"}}
        world.hostile.create(path(NAR, HOSTILE), body_of(NAR, f"flood-{number}", spec))
    found = _bystander_waits(world, 60)
    world.hostile.delete(path(NAR, HOSTILE))
    return found


def _wrong(world: World) -> list[str]:
    """See that the judge of specs finds a restore of the whole group wrong."""
    spec = {"includedNamespaces": [HOSTILE, VICTIM], "backupName": "x", "excludedResources": []}
    return breaches_of_restore(spec, HOSTILE, "x", world.policy(HOSTILE))


@controlled_by(_wrong)
def protection_restore_of_what_was_left(world: World) -> list[str]:
    """Look at every Velero Restore of all attacks together: none is of another namespace."""
    return [f"{name}: {', '.join(wrong)}" for name, wrong in world.breaches().items()]
