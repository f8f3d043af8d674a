"""Attacks on Rollbacks with volumes, by tenants and bad luck: data stays, and workloads come back."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from foresail.api import core
from foresail.api.apps import DEPLOYMENT
from foresail.api.nonadmin import NON_ADMIN_BACKUP, NON_ADMIN_RESTORE
from foresail.api.rollback import MOST_STOPPED, ROLLBACK
from foresail.plan import Key, Kind
from foresail.rollback.kinds import KUSTOMIZATION, STATEFUL_SET
from tests.worlds.documents import Document
from tests.worlds.history import Happening
from tests.worlds.rollback_scene import GOOD, KEY, RESTORED_BY, SHOP, TEAM
from tests.worlds.rollback_storage import BAD_DATA, GOOD_DATA, OLD, StorageScene
from tests.worlds.test_rollback_volumes import live, until, until_ended

EVE = "eve"
"""A colleague with few rights."""

_CLAIMS = "persistentvolumeclaims"


def sizes(scene: StorageScene) -> dict[str, int]:
    """Return how many pods the workloads with volumes want."""
    wanted = ((DEPLOYMENT, "db"), (STATEFUL_SET, "cache"))
    return {name: scene.world.history.present(kind)[Key(SHOP, name)]["spec"]["replicas"] for kind, name in wanted}


BEFORE = {"db": 2, "cache": 1}


def is_as_before(scene: StorageScene) -> bool:
    """Whether the old data is back, and what uses it has its size."""
    return sizes(scene) == BEFORE and set(scene.contents().values()) == {BAD_DATA}


def as_soon_as(scene: StorageScene, phase: str, do: Callable[[StorageScene], object]) -> None:
    """Do something once, as soon as the Rollback is in a phase."""
    done: list[bool] = []

    def heard(happening: Happening) -> None:
        is_it = happening.kind == ROLLBACK and happening.key == KEY
        if is_it and (happening.after or {}).get("status", {}).get("phase") == phase and not done:
            done.append(True)
            asyncio.get_running_loop().call_soon(do, scene)

    scene.world.history.listeners.append(heard)


# Who asks for the undo


def asked_by(scene: StorageScene, user: str, **spec: object) -> None:
    """Change the spec as somebody, whom admission records."""
    notes = {"annotations": {"foresail.dev/requester": user}}
    scene.world.merge(ROLLBACK, KEY, {"metadata": notes, "spec": spec}, user)


def test_an_undo_by_somebody_with_few_rights_does_not_begin_and_somebody_else_can_ask_for_it() -> None:
    async def tale(scene: StorageScene) -> None:
        await until(scene, "Completed")
        asked_by(scene, EVE, undo=True)
        await asyncio.sleep(60)
        assert (scene.phase, scene.reason) == ("Completed", "UndoWaits")
        assert EVE in scene.message
        assert set(scene.contents().values()) == {GOOD_DATA}
        asked_by(scene, EVE, undo=False)
        asked_by(scene, TEAM, undo=True)
        await until(scene, "Undone")
        assert is_as_before(scene)

    live(tale)


@pytest.mark.parametrize("phase", ["Stopping", "Replacing", "Restoring", "Resuming"])
def test_permissions_that_never_come_back_keep_no_workload_stopped(phase: str) -> None:
    """What the Rollback took away under the requester's permissions it gives back without them."""

    async def tale(scene: StorageScene) -> None:
        await until(scene, phase)
        scene.forbidden |= {(verb, _CLAIMS) for verb in ("create", "delete")}
        scene.forbidden |= {("patch", kind) for kind in ("deployments.apps", "statefulsets.apps")}
        scene.undo()
        await until(scene, "Undone")
        assert is_as_before(scene)

    live(tale)


# Writes that something refuses for ever


def stops(verb: str, kind: Kind, body: Document | None) -> bool:
    return verb == "merge" and kind in (DEPLOYMENT, STATEFUL_SET) and (body or {}).get("spec", {}).get("replicas") == 0


def suspends(verb: str, kind: Kind, body: Document | None) -> bool:
    return verb == "merge" and kind == KUSTOMIZATION and (body or {})["spec"]["suspend"] is True


def keeps(verb: str, kind: Kind, _body: Document | None) -> bool:
    return verb == "merge" and kind == core.VOLUME


def deletes_claims(verb: str, kind: Kind, _body: Document | None) -> bool:
    return verb == "delete" and kind == core.CLAIM


def restores_claims(verb: str, kind: Kind, body: Document | None) -> bool:
    is_restore = verb == "create" and kind == NON_ADMIN_RESTORE
    return is_restore and "includedResources" in (body or {})["spec"]["restoreSpec"]


def restores(verb: str, kind: Kind, body: Document | None) -> bool:
    is_restore = verb == "create" and kind == NON_ADMIN_RESTORE
    return is_restore and "-restore-" in str((body or {})["metadata"]["name"])


@pytest.mark.parametrize("denies", [stops, suspends, keeps, deletes_claims, restores_claims, restores])
def test_what_is_refused_for_ever_turns_the_rollback_back(denies: Callable[[str, Kind, Any], bool]) -> None:
    def arrange(scene: StorageScene) -> None:
        scene.denies = denies

    async def tale(scene: StorageScene) -> None:
        await until_ended(scene)
        assert (scene.phase, scene.reason) == ("Undone", "Failed")
        assert is_as_before(scene)

    live(tale, arrange)


def test_an_undo_that_cannot_restore_objects_leaves_no_workload_stopped() -> None:
    """A quota of requests: the old volumes are bound, Flux goes on, and so do workloads that are as they were."""

    def undoes(verb: str, kind: Kind, body: Document | None) -> bool:
        return verb == "create" and kind == NON_ADMIN_RESTORE and "-undo-" in str((body or {})["metadata"]["name"])

    def arrange(scene: StorageScene) -> None:
        scene.denies, scene.only = undoes, ("configmaps",)

    async def tale(scene: StorageScene) -> None:
        await until(scene, "Completed")
        scene.undo()
        await until(scene, "Undoing")
        await asyncio.sleep(1200)
        assert (scene.phase, scene.reason) == ("Undoing", "UndoWaits")
        assert sizes(scene)["cache"] == 1
        assert scene.suspended() == scene.formerly
        scene.denies = lambda *_: False
        await until(scene, "Undone")
        assert is_as_before(scene)

    live(tale, arrange, only=["configmaps"])


def test_an_undo_that_cannot_create_a_claim_says_so() -> None:
    """A quota that somebody else has used up meanwhile."""

    def creates(verb: str, kind: Kind, _body: Document | None) -> bool:
        return verb == "create" and kind == core.CLAIM

    async def tale(scene: StorageScene) -> None:
        await until(scene, "Completed")
        scene.denies = creates
        scene.undo()
        await until(scene, "Undoing")
        await asyncio.sleep(900)
        assert (scene.phase, scene.reason) == ("Undoing", "UndoWaits")
        assert "PersistentVolumeClaim shop/data" in scene.message
        scene.denies = lambda *_: False
        await until(scene, "Undone")
        assert is_as_before(scene)

    live(tale)


# What must not begin


def owned(scene: StorageScene) -> None:
    owners = [{"apiVersion": "v1", "kind": "Pod", "name": "web-0", "uid": "x", "controller": True}]
    scene.world.merge(core.CLAIM, Key(SHOP, "data"), {"metadata": {"ownerReferences": owners}}, "kube")


def without_class(scene: StorageScene) -> None:
    scene.world.merge(core.CLAIM, Key(SHOP, "data"), {"spec": {"storageClassName": None}}, "kube")


def large(scene: StorageScene) -> None:
    notes = {"annotations": {"example.com/note": "x" * 200_000}}
    scene.world.merge(core.CLAIM, Key(SHOP, "data"), {"metadata": notes}, TEAM)


def many(scene: StorageScene) -> None:
    for number in range(MOST_STOPPED - 1):
        scene.world.create(KUSTOMIZATION, {"metadata": {"name": f"many-{number}"}, "spec": {}}, TEAM, SHOP)
    scene.formerly = scene.suspended()


@pytest.mark.parametrize(
    ("arrange", "says"),
    [
        (owned, "claim data belongs to Pod web-0"),
        (without_class, "claim data names no StorageClass"),
        (large, "claim data has more than"),
        (many, "are to be suspended or stopped"),
    ],
)
def test_what_could_not_be_given_back_is_not_taken_away(arrange: Callable[[StorageScene], object], says: str) -> None:
    scene = live(until_ended, arrange)
    assert (scene.phase, scene.reason) == ("Refused", "InTheWay")
    assert any(says in way for way in scene.status["plan"]["inTheWay"]), scene.status["plan"]["inTheWay"]


def test_a_claim_that_belongs_to_its_stateful_set_is_replaced() -> None:
    def arrange(scene: StorageScene) -> None:
        owners = [{"apiVersion": "apps/v1", "kind": "StatefulSet", "name": "cache", "uid": "x"}]
        scene.world.merge(core.CLAIM, Key(SHOP, "store-cache-0"), {"metadata": {"ownerReferences": owners}}, "kube")

    assert live(until_ended, arrange).phase == "Completed"


@pytest.mark.parametrize("volumes", ["None", "All"])
def test_prune_deletes_nothing_that_owns_a_claim(volumes: str) -> None:
    """Kubernetes would delete the claim with its owner, and the volume with the claim."""

    def arrange(scene: StorageScene) -> None:
        added = scene.world.history.present(core.CONFIG_MAP)[Key(SHOP, "added")]["metadata"]["uid"]
        owners = [{"apiVersion": "v1", "kind": "ConfigMap", "name": "added", "uid": added}]
        scene._bound("kept", "pv-kept", "of the team", {"ownerReferences": owners})  # noqa: SLF001

    scene = live(until_ended, arrange, prune=True, volumes=volumes)
    assert (scene.phase, scene.reason) == ("Refused", "InTheWay")
    assert any("configmaps/added owns claim kept" in way for way in scene.status["plan"]["inTheWay"])


def test_what_owns_a_claim_by_now_is_not_deleted() -> None:
    async def tale(scene: StorageScene) -> None:
        await until(scene, "Restoring")
        added = scene.world.history.present(core.CONFIG_MAP)[Key(SHOP, "added")]["metadata"]["uid"]
        owners = [{"apiVersion": "v1", "kind": "ConfigMap", "name": "added", "uid": added}]
        scene._bound("kept", "pv-kept", "of the team", {"ownerReferences": owners})  # noqa: SLF001
        await until_ended(scene)
        assert (scene.phase, scene.reason) == ("Undone", "Failed")
        assert Key(SHOP, "added") in scene.world.history.present(core.CONFIG_MAP)
        assert is_as_before(scene)

    def arrange(scene: StorageScene) -> None:
        scene.prunes = True

    live(tale, arrange, prune=True)


# What changes meanwhile


def swapped(scene: StorageScene) -> None:
    """Another backup has the name of the one in the plan."""
    body = scene.world.history.present(NON_ADMIN_BACKUP)[Key(SHOP, GOOD)]
    scene.world.delete(NON_ADMIN_BACKUP, Key(SHOP, GOOD))
    scene.world.create(NON_ADMIN_BACKUP, {"metadata": {"name": GOOD}, "spec": body["spec"]}, EVE, SHOP)
    scene.world.merge(NON_ADMIN_BACKUP, Key(SHOP, GOOD), {"status": body["status"]}, "self-service", "status")
    scene.saved[GOOD] = {claim: ("of eve", dict(body)) for claim, (_, body) in scene.saved[GOOD].items()}


def no_safety(scene: StorageScene) -> None:
    scene.world.delete(NON_ADMIN_BACKUP, Key(SHOP, scene.status["safetyBackup"]))


@pytest.mark.parametrize("change", [swapped, no_safety])
@pytest.mark.parametrize("phase", ["Suspending", "Stopping"])
def test_a_backup_that_is_another_one_by_now_is_not_restored(
    change: Callable[[StorageScene], None], phase: str
) -> None:
    async def tale(scene: StorageScene) -> None:
        as_soon_as(scene, phase, change)
        await until_ended(scene)
        assert (scene.phase, scene.reason) == ("Undone", "Failed")
        assert is_as_before(scene)
        names = {claim["spec"]["volumeName"] for claim in scene.world.history.present(core.CLAIM).values()}
        assert names == set(OLD.values())

    live(tale)


def test_more_workloads_than_a_status_holds_turn_the_rollback_back() -> None:
    async def tale(scene: StorageScene) -> None:
        await until(scene, "Stopping")
        template = {"spec": {"volumes": [{"name": "d", "persistentVolumeClaim": {"claimName": "data"}}]}}
        for number in range(MOST_STOPPED + 1):
            name = f"more-{number}"
            scene.judge.touched.add(("Deployment", name))
            spec = {"replicas": 1, "template": template}
            scene.world.create(DEPLOYMENT, {"metadata": {"name": name}, "spec": spec}, EVE, SHOP)
        await until_ended(scene)
        assert (scene.phase, scene.reason) == ("Undone", "Failed")
        assert is_as_before(scene)

    live(tale)


def test_a_stateful_set_that_is_scaled_up_without_its_claims_does_not_keep_the_old_volume_away() -> None:
    """Its controller creates an empty claim, which is neither the old nor the restored one."""

    async def tale(scene: StorageScene) -> None:
        async with asyncio.timeout(600):
            while Key(SHOP, "store-cache-0") in scene.world.history.present(core.CLAIM):  # noqa: ASYNC110
                await asyncio.sleep(0.1)
        scene.world.merge(STATEFUL_SET, Key(SHOP, "cache"), {"spec": {"replicas": 3}}, TEAM)
        scene.judge.touched.add(("StatefulSet", "cache"))
        await until_ended(scene)
        assert scene.phase == "Undone"
        assert sizes(scene)["cache"] == 3
        assert set(scene.contents().values()) == {BAD_DATA}

    live(tale)


def test_a_claim_of_the_team_with_a_forged_label_is_not_deleted_by_an_undo() -> None:
    async def tale(scene: StorageScene) -> None:
        await until(scene, "Completed")
        label = {"metadata": {"labels": {RESTORED_BY: scene.status["veleroClaimsRestore"]}}}
        scene.world.merge(core.CLAIM, Key(SHOP, "mine"), label, EVE)
        scene.undo()
        await until(scene, "Undone")
        assert scene.volume_of("mine") == "pv-mine"

    def arrange(scene: StorageScene) -> None:
        scene._bound("mine", "pv-mine", "of the team", {})  # noqa: SLF001

    live(tale, arrange)


def test_a_new_rollback_with_our_finalizer_can_be_deleted() -> None:
    def arrange(scene: StorageScene) -> None:
        meta = {"name": "forged", "finalizers": ["foresail.dev/rollback"]}
        scene.world.create(ROLLBACK, {"metadata": meta, "spec": {"to": GOOD, "undo": True}}, EVE, SHOP)
        scene.world.delete(ROLLBACK, Key(SHOP, "forged"))

    async def tale(scene: StorageScene) -> None:
        await until_ended(scene)
        assert Key(SHOP, "forged") not in scene.world.history.present(ROLLBACK)

    live(tale, arrange)
