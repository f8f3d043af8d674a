"""Attacks on the time, memory and storage of others: quotas, the queue, oversized objects, deletion."""

import http.client
import json
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

from tests.redteam.attack import attack
from tests.redteam.world import (
    HOSTILE,
    IDLE,
    NAB,
    NAR,
    PROTECTED,
    SCARCE,
    World,
    body_of,
    may_edit,
    namespace,
    path,
    policy_for,
    reason,
    until,
    user,
)

_MEGABYTE = "x" * 1_000_000
_PATCHES = 3  # each keeps the API server busy for seconds
_REFUSED = 40
_MOST_MEMORY = 20.0  # MiB
_PODS, _MOST_PEAK = 60, 100.0  # of 1.3 MB each; MiB
_EMPTY: dict[str, Any] = {"backupSpec": {}}
_NO_PLACE = {"QuotaExceeded"}
_FINAL = {"Completed", "PartiallyFailed", "Failed", "FailedValidation"}


def _unfinished(world: World, plural: str, of: str) -> list[str]:
    """Return the Velero objects of a namespace that Velero has not finished."""
    found = [each for each in world.made_for(plural, of) if each.get("status", {}).get("phase") not in _FINAL]
    return [each["metadata"]["name"] for each in found]


def _memory_moved(world: World, before: float) -> list[str]:
    moved = world.memory() - before
    return [f"the operator's memory moved by {moved:.0f} MiB"] if moved > _MOST_MEMORY else []


@attack
def fill_the_memory_with_finalizers(world: World) -> list[str]:
    """Patch a request with finalizers of one megabyte, again and again."""
    world.ask(NAB, "fat", {"backupSpec": {"includedNamespaces": ["x"]}})
    world.decided(NAB, "fat")
    before, target = world.memory(), path(NAB, HOSTILE, "fat")
    for number in range(_PATCHES):
        finalizers = [f"example.com/{number}-{each}-{'y' * 200}" for each in range(2_000)]
        world.hostile.patch(target, {"metadata": {"finalizers": finalizers}})
    _answers_others(world, "after-finalizers")
    world.hostile.patch(target, {"metadata": {"finalizers": None}})
    return _memory_moved(world, before)


@attack
def fill_the_memory_with_refused_specs(world: World) -> list[str]:
    """Create requests of one megabyte that are refused."""
    before = world.memory()
    for number in range(_REFUSED):
        world.ask(NAB, f"big-{number}", {"backupSpec": {"labelSelector": {"matchLabels": {"x": _MEGABYTE}}}})
    _answers_others(world, "after-specs")
    found = _memory_moved(world, before)
    for number in range(_REFUSED):
        world.admin.delete(path(NAB, HOSTILE, f"big-{number}"))
    return found


@attack
def fill_the_memory_with_pods(world: World) -> list[str]:
    """Make the operator read pods of megabytes before a backup."""
    before = world.memory("VmHWM")
    finalizers = [f"{'.'.join(['d' * 60] * 4)}/{number:04}{'x' * 55}" for number in range(2_000)]
    spec = {"containers": [{"name": "main", "image": "none"}], "nodeName": "nowhere"}
    names = [f"fat-{number}" for number in range(_PODS)]
    for name in names:
        meta = {"name": name, "finalizers": finalizers}
        body = {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": spec}
        answer = world.hostile.create("/api/v1/namespaces/" + HOSTILE + "/pods", body)
        assert answer.code < http.client.BAD_REQUEST, answer.text
    world.ask(NAB, "of-fat-pods", _EMPTY)
    found = reason(world.decided(NAB, "of-fat-pods", seconds=120))
    moved = world.memory("VmHWM") - before
    for name in names:
        target = f"/api/v1/namespaces/{HOSTILE}/pods/{name}"
        world.admin.patch(target, {"metadata": {"finalizers": None}})
        world.admin.delete(target, gracePeriodSeconds="0")
    problems = [f"the operator's peak moved by {moved:.0f} MiB"] if moved > _MOST_PEAK else []
    assert found, "the backup is not decided"
    return problems


@contextmanager
def _restore_waits_in_velero(world: World, space: str) -> Iterator[None]:
    """Show that the tenant's restores work, and leave one with a Velero that is stopped."""
    world.cluster.apply(namespace(space), may_edit(space, "mallory"))
    until(lambda: world.hostile.get(path(NAB, space)) is not None, 60, "the tenant may ask")
    world.ask(NAB, "one", _EMPTY, space)
    world.finished(NAB, "one", space)
    world.ask(NAR, "first", {"restoreSpec": {"backupName": "one"}}, space)
    world.finished(NAR, "first", space)
    with world.velero_stopped():
        world.ask(NAR, "late", {"restoreSpec": {"backupName": "one"}}, space)
        until(lambda: _unfinished(world, "restores", space), 60, "Velero has the restore")
        yield


@attack
def restore_after_access_is_gone(world: World) -> list[str]:
    """Queue a restore in Velero, lose all access, and get the objects back when Velero goes on."""
    space = "revoked"
    with _restore_waits_in_velero(world, space):
        world.cluster.kubectl("delete", "rolebindings", "--all", f"--namespace={space}")
        try:
            until(lambda: not _unfinished(world, "restores", space), 150, "the restore is withdrawn")
        except TimeoutError:
            return ["the restore waits for Velero though its requester has no access"]
        finally:
            world.cluster.kubectl("delete", "namespace", space, "--wait=false")
    return []


@attack
def keep_a_restore_that_a_stricter_policy_would_not_make(world: World) -> list[str]:
    """Queue a restore of volumes in Velero, try to edit the request, and outlive a policy that no longer allows it."""
    space = "tightened"
    with _restore_waits_in_velero(world, space):
        world.hostile.patch(path(NAR, space, "late"), {"spec": {"restoreSpec": {"restorePVs": False}}})
        world.cluster.apply(policy_for(space, {"restore": {"required": {"restorePVs": False}}, "priority": 10}))
        try:
            until(lambda: not _unfinished(world, "restores", space), 150, "the restore is withdrawn")
        except TimeoutError:
            return ["Velero keeps a restore of volumes, which the policy no longer allows"]
        finally:
            world.cluster.kubectl("delete", "selfservicepolicy", space)
            world.cluster.kubectl("delete", "namespace", space, "--wait=false")
    return []


def _answers_others(world: World, name: str) -> None:
    """Wait until the operator has answered a harmless request, so that it has seen all that came before."""
    world.ask(NAB, name, {"backupSpec": {"includedNamespaces": ["x"]}})
    world.decided(NAB, name)


@attack
def nest_deeper_than_anyone_reads(world: World) -> list[str]:
    """Nest five thousand levels below a field without a schema, so that whoever reads it ends."""
    root = {"name": "root", "image": "root", "deep": "%"}
    hooks = {"resources": [{"name": "hook", "postHooks": [{"init": {"initContainers": [root]}}]}]}
    text = json.dumps(body_of(NAR, "deep", {"restoreSpec": {"backupName": "any", "hooks": hooks}}))
    world.hostile.send("POST", path(NAR, HOSTILE), text.replace('"%"', '{"a":' * 5_000 + "1" + "}" * 5_000))
    _answers_others(world, "after-depth")
    world.admin.delete(path(NAR, HOSTILE, "deep"))
    return [] if world.operator.poll() is None else ["the operator has ended"]


@attack
def flood_the_queue(world: World) -> list[str]:
    """Ask for thirty backups at once and see how many stand in Velero's queue before everybody else's."""
    names = [f"flood-{number}" for number in range(30)]
    with world.velero_stopped():
        for name in names:
            world.ask(NAB, name, _EMPTY)
        for name in names:
            world.decided(NAB, name)
        queued = _unfinished(world, "backups", HOSTILE)
        for name in names:
            world.hostile.patch(path(NAB, HOSTILE, name), {"spec": {"forceDeleteBackup": True}})
        until(lambda: not _unfinished(world, "backups", HOSTILE), 60, "the flood is gone")
    return [f"{len(queued)} backups are in Velero's queue"] if len(queued) > 3 else []


@attack
def flood_with_restores(world: World) -> list[str]:
    """Ask for ten restores where the quota is one at a time and two in all."""
    world.ask(NAB, "one", _EMPTY, SCARCE)
    world.finished(NAB, "one", SCARCE)
    world.ask(NAR, "first", {"restoreSpec": {"backupName": "one"}}, SCARCE)  # then the operator knows the contents
    world.finished(NAR, "first", SCARCE)
    world.hostile.delete(path(NAR, SCARCE, "first"))
    until(lambda: not world.made_for("restores", SCARCE), 60, "the first restore is gone")
    names = [f"flood-{number}" for number in range(10)]
    with world.velero_stopped():
        for name in names:
            world.ask(NAR, name, {"restoreSpec": {"backupName": "one"}}, SCARCE)
        for name in names:
            world.decided(NAR, name, SCARCE)
        queued = _unfinished(world, "restores", SCARCE)
    found = [f"{len(queued)} restores are with Velero at once"] if len(queued) > 1 else []
    world.finished(NAR, names[0], SCARCE)
    until(lambda: not _unfinished(world, "restores", SCARCE), 120, "the restores end")
    made = world.made_for("restores", SCARCE)
    found += [f"{len(made)} restores were made"] if len(made) > 2 else []
    for name in names:
        world.hostile.delete(path(NAR, SCARCE, name))
    return found


@attack
def restore_in_spite_of_a_quota_of_nothing(world: World) -> list[str]:
    """Ask for a restore where the policy allows none."""
    world.ask(NAB, "one", _EMPTY, IDLE)
    world.finished(NAB, "one", IDLE)
    world.ask(NAR, "none", {"restoreSpec": {"backupName": "one"}}, IDLE)
    until(
        lambda: world.made_for("restores", IDLE) or reason(world.request(NAR, "none", IDLE)) in _NO_PLACE,
        60,
        "the operator decides about the quota",
    )
    return [f"{len(world.made_for('restores', IDLE))} restores were made"] if world.made_for("restores", IDLE) else []


def _is_forced(world: World, name: str) -> bool:
    """Tell whether a request is gone, or says what its deletion waits for."""
    found = world.request(NAB, name, SCARCE)
    return not found or bool(found.get("status", {}).get("phase") == "Deleting")


def _stored(world: World, of: str) -> set[str]:
    """Return the backups of a namespace that are in the bucket."""
    folder = world.cluster.site.bucket / "backups"
    return {each.name for each in folder.iterdir() if each.name.startswith(f"{of}-")}


@attack
def force_backups_out_of_the_quota(world: World) -> list[str]:
    """Make a backup and force it away, again and again, where only one may be stored."""
    world.ask(NAB, "one", _EMPTY, SCARCE)
    world.finished(NAB, "one", SCARCE)
    for name in ("one", "two", "three"):
        world.ask(NAB, name, _EMPTY, SCARCE)
        if reason(world.decided(NAB, name, SCARCE)) == "QuotaExceeded":
            continue
        world.finished(NAB, name, SCARCE)
        world.hostile.patch(path(NAB, SCARCE, name), {"spec": {"forceDeleteBackup": True}})
        until(partial(_is_forced, world, name), 60, "it is forced away")
    stored = _stored(world, SCARCE)
    return [f"{len(stored)} backups are stored where one is allowed"] if len(stored) > 1 else []


@attack
def drop_the_finalizer_to_leave_the_quota(world: World) -> list[str]:
    """Delete a request without its finalizer, so that its backup counts no more."""
    for name in ("four", "five"):
        world.ask(NAB, name, _EMPTY, SCARCE)
        world.decided(NAB, name, SCARCE)
        target = path(NAB, SCARCE, name)
        world.hostile.delete(target)
        world.hostile.patch(target, {"metadata": {"finalizers": None}})
    stored = {each["metadata"]["name"] for each in world.made_for("backups", SCARCE)} | _stored(world, SCARCE)
    return [f"{len(stored)} backups exist where one is allowed"] if len(stored) > 1 else []


@attack
def destroy_data_without_the_right_to_delete(world: World) -> list[str]:
    """Set the delete flags as somebody who may patch requests and not delete them."""
    role = {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRole",
        "metadata": {"name": "clerk"},
        "rules": [
            {
                "apiGroups": ["oadp.openshift.io"],
                "resources": [NAB],
                "verbs": ["get", "list", "create", "patch"],
            }
        ],
    }
    world.cluster.apply(role, may_edit(HOSTILE, "clerk", "clerk"))
    clerk = user(world.cluster, "clerk")
    until(lambda: clerk.get(path(NAB, HOSTILE)), 30, "the clerk may read")
    world.ask(NAB, "filed", _EMPTY)
    world.finished(NAB, "filed")
    for flag in ("deleteBackup", "forceDeleteBackup"):
        clerk.patch(path(NAB, HOSTILE, "filed"), {"spec": {flag: True}})
    spec = world.request(NAB, "filed").get("spec", {})
    born = clerk.create(path(NAB, HOSTILE), body_of(NAB, "stillborn", {**_EMPTY, "forceDeleteBackup": True}))
    world.admin.delete(path("clusterroles", name="clerk"))
    world.admin.delete(path("rolebindings", HOSTILE, "clerk-clerk"))
    found = [f"{flag} is set" for flag in ("deleteBackup", "forceDeleteBackup") if not spec or spec.get(flag)]
    return found if born.code != http.client.INTERNAL_SERVER_ERROR else [*found, "the API server fails"]


@attack
def delete_a_protected_backup(world: World) -> list[str]:
    """Delete, by flag, by force and without the finalizer, the only good backup where the policy protects it."""
    world.ask(NAB, "kept", _EMPTY, PROTECTED)
    world.finished(NAB, "kept", PROTECTED)
    target = path(NAB, PROTECTED, "kept")
    made = {each["metadata"]["name"] for each in world.made_for("backups", PROTECTED)}
    world.hostile.patch(target, {"spec": {"deleteBackup": True}})
    world.hostile.patch(target, {"spec": {"forceDeleteBackup": True}})
    world.hostile.delete(target)
    _answers_others(world, "after-deletion")
    world.hostile.patch(target, {"metadata": {"finalizers": None}})
    _answers_others(world, "after-finalizer")
    asked = {each["spec"]["backupName"] for each in world.velero("deletebackuprequests")}
    left = {each["metadata"]["name"] for each in world.made_for("backups", PROTECTED)}
    found = [f"Velero was asked to delete {each}" for each in made & asked]
    return found + [f"{each} is gone" for each in made - left]


@attack
def make_namespaces_for_a_longer_queue(world: World) -> list[str]:
    """Create a namespace to get a second share of the queue, or delete the own one."""
    made = world.hostile.create(path("namespaces"), namespace("sybil"))
    gone = world.hostile.delete(f"{path('namespaces', name=HOSTILE)}?dryRun=All")
    return [f"{each.code}" for each in (made, gone) if each.code < http.client.BAD_REQUEST]
