"""RestoreChecks with depth Data: no pod of a backup starts before the fence is proven, and nothing is left."""

import asyncio
import json
from collections.abc import Awaitable, Callable, Sequence
from datetime import timedelta
from typing import Any

import pytest

from foresail.api import core, velero
from foresail.api.marks import CANARY_REACHED
from foresail.api.pods import POD, RESOURCE_QUOTA
from foresail.cron.duration import length_of
from foresail.proof.checks.rows import EXCLUDED
from foresail.proof.checks.volumes import FILLED, PROVISIONED_BY
from tests.worlds import virtual_time
from tests.worlds.check_scene import DATA, CheckScene
from tests.worlds.garbage import NAMESPACE
from tests.worlds.process import Moment
from tests.worlds.roles import VELERO

LISTS = {
    "v1/ConfigMap": ["red/settings"],
    "v1/PersistentVolume": ["pvc-1"],
    "v1/PersistentVolumeClaim": ["red/data"],
    "v1/Pod": ["red/db-0"],
    "apps/v1/Deployment": ["red/db"],
}
COUNT = {"image": "example.com/psql:1", "command": ["count-rows"]}
Story = Callable[[CheckScene], Awaitable[None]]


def lived(story: Story, dies: Sequence[Moment] = (), *, has_data: bool = True) -> CheckScene:
    """Live through a story with depth Data switched on, maybe with deaths in it."""

    async def live() -> CheckScene:
        scene = CheckScene()
        scene.data = DATA if has_data else None
        await scene.live(story(scene), dies)
        return scene

    return virtual_time.run(live())


def checks(*, seconds: float = 120, lists: dict[str, list[str]] | None = None, **spec: Any) -> Story:  # noqa: ANN401 - JSON
    """Return the story of one check."""

    async def story(scene: CheckScene) -> None:
        scene.make_check(depth="Data", **spec)
        scene.back_up("nightly-1", lists=lists or LISTS)
        await asyncio.sleep(seconds)

    return story


def passes(scene: CheckScene) -> Awaitable[None]:
    return checks(assertion=COUNT)(scene)


async def does_not_count(scene: CheckScene) -> None:
    """Have an assertion that fails, and keep the sandbox for a minute."""
    scene.assertion_code = 3
    await checks(seconds=40, assertion=COUNT, keepFailed="1m")(scene)
    assert len(scene.named(NAMESPACE)) == 1
    await asyncio.sleep(120)


async def crashes(scene: CheckScene) -> None:
    """Have pods that never become ready."""
    scene.become_ready = False
    await checks(seconds=200, deadline="2m")(scene)


async def is_open(scene: CheckScene) -> None:
    """Have a network that does not enforce policies."""
    scene.canary_code = CANARY_REACHED
    await checks()(scene)


def of_backup(scene: CheckScene) -> list[str]:
    return [each for each in scene.started if not each.startswith("foresail-")]


def test_data_passes_with_its_pods_and_assertion_and_leaves_nothing() -> None:
    scene = lived(passes)
    last = scene.status()["last"]
    assert (last["result"], last["reason"]) == ("Pass", "Complete"), last["message"]
    assert (last["fence"], last["podsReady"], last["assertionExitCode"]) == ("Enforced", 1, 0)
    assert last["readySeconds"] >= last["restoreSeconds"]
    assert [each.rpartition("-")[0] for each in scene.started] == ["foresail-canary", "db", "foresail-assertion"]
    (record,) = scene.evidence()
    assert (record["depth"], record["fence"], record["kubernetes"]) == ("Data", "Enforced", "v1.36.0")
    assert record["dataSpec"] == {"allowUnfenced": False, "assertion": COUNT}
    assert (scene.leftovers(), scene.unfenced) == ([], [])


def test_a_network_without_policies_is_found_before_any_pod_of_the_backup_starts() -> None:
    scene = lived(is_open)
    last = scene.status()["last"]
    assert (last["result"], last["reason"], last["fence"]) == ("Fail", "NotFenced", "NotEnforced")
    assert "API server, bucket" in last["message"]
    assert (scene.births, of_backup(scene), scene.leftovers()) == ([], [], [])


def test_allow_unfenced_goes_on_and_says_so_everywhere() -> None:
    async def story(scene: CheckScene) -> None:
        scene.canary_code = CANARY_REACHED
        await checks(allowUnfenced=True)(scene)

    scene = lived(story)
    last = scene.status()["last"]
    assert (last["result"], last["fence"], last["reached"]) == ("Pass", "NotEnforced", ["API server", "bucket"])
    assert last["message"].startswith("NOT FENCED: ")
    (record,) = scene.evidence()
    assert (record["fence"], record["dataSpec"]["allowUnfenced"]) == ("NotEnforced", True)


@pytest.mark.parametrize("code", [0, 1, 127, None])
def test_a_canary_that_says_nothing_about_the_fence_starts_nothing(code: int | None) -> None:
    async def story(scene: CheckScene) -> None:
        scene.canary_code = code
        await checks(seconds=200, deadline="2m", allowUnfenced=True)(scene)

    scene = lived(story)
    assert (scene.result(), scene.births, scene.leftovers()) == (("Fail", "CanaryFailed"), [], [])


def test_an_assertion_that_fails_fails_the_check_with_what_it_printed() -> None:
    scene = lived(does_not_count)
    last = scene.status()["last"]
    assert (last["result"], last["reason"], last["assertionExitCode"]) == ("Fail", "AssertionFailed", 3)
    assert "exit code 3: 4 rows" in last["message"]
    assert scene.leftovers() == []


def test_pods_that_do_not_become_ready_fail_the_check() -> None:
    scene = lived(crashes)
    last = scene.status()["last"]
    assert (last["result"], last["reason"], last["podsReady"]) == ("Fail", "PodsNotReady", 0)
    assert "red/db-0 (CrashLoopBackOff)" in last["message"]
    assert scene.leftovers() == []


def test_volumes_that_velero_does_not_fill_in_time_fail_the_check() -> None:
    async def story(scene: CheckScene) -> None:
        scene.lasts = 10_000.0
        await checks(seconds=200, deadline="2m")(scene)

    scene = lived(story)
    assert (scene.result(), scene.leftovers()) == (("Fail", "PodsNotReady"), [])
    assert "Velero was still restoring their volumes" in scene.status()["last"]["message"]


def test_data_that_velero_could_not_restore_fails_before_the_assertion() -> None:
    async def story(scene: CheckScene) -> None:
        scene.phase, scene.errors = velero.PARTIALLY_FAILED, ["pod volume restore failed: BLOB not found"]
        await passes(scene)

    scene = lived(story)
    assert scene.result() == ("Fail", "RestorePartiallyFailed")
    assert not any(each.startswith("foresail-assertion") for each in scene.started)


def test_a_claim_without_its_data_fails_before_the_restore_unless_an_assertion_decides() -> None:
    async def story(scene: CheckScene) -> None:
        scene.lost = {"red/data"}
        await checks()(scene)

    scene = lived(story)
    assert (scene.result(), scene.births) == (("Fail", "DataMissing"), [])
    assert "red/data" in scene.status()["last"]["message"]


@pytest.mark.parametrize("spec", [{}, {"assertion": COUNT}])
def test_claims_without_their_volumes_fail_before_the_restore(spec: dict[str, Any]) -> None:
    """Velero keeps the name of a volume that the backup does not have, and the claim stays pending."""
    lists = {gvk: names for gvk, names in LISTS.items() if gvk != "v1/PersistentVolume"}
    scene = lived(checks(lists=lists, **spec))
    assert (scene.result(), scene.births) == (("Fail", "DataMissing"), [])
    assert "the backup has no PersistentVolumes" in scene.status()["last"]["message"]


@pytest.mark.parametrize(
    ("lists", "spec", "reason"),
    [
        ({"v1/ConfigMap": ["red/settings"]}, {}, "BackupEmpty"),
        ({"v1/Pod": [f"n{each}/a" for each in range(11)]}, {}, "TooManyNamespaces"),
        ({"v1/Pod": ["red/a", "blue/a"]}, {"assertion": COUNT}, "AssertionFailed"),
        ({"v1/Pod": ["red/a"]}, {"assertion": {**COUNT, "namespace": "green"}}, "AssertionFailed"),
    ],
)
def test_what_data_cannot_check_is_refused_without_a_sandbox(
    lists: dict[str, list[str]], spec: dict[str, Any], reason: str
) -> None:
    scene = lived(checks(lists=lists, **spec))
    assert (scene.result(), scene.births, scene.started) == (("Fail", reason), [], [])


def test_data_is_off_unless_the_administrator_switched_it_on() -> None:
    scene = lived(checks(), has_data=False)
    assert (scene.condition("Ready"), scene.births, scene.leftovers()) == (("False", "DataDisabled"), [], [])


def test_a_sandbox_of_data_is_fenced_and_the_restore_brings_no_policies_and_no_volumes_of_others() -> None:
    seen: dict[str, Any] = {}

    async def story(scene: CheckScene) -> None:
        scene.lasts = 20.0
        await checks(seconds=15, storage="5Gi", deadline="2m")(scene)
        present = scene.world.history.present
        (seen["namespace"],) = [each for key, each in present(NAMESPACE).items() if key.name.startswith("foresail-")]
        for kind in (core.NETWORK_POLICY, core.ROLE_BINDING, velero.RESTORE):
            (seen[kind.name],) = present(kind).values()
        (seen["quota"],) = present(RESOURCE_QUOTA).values()
        seen["pods"] = list(present(POD).values())
        (seen["modifiers"],) = [each for key, each in present(core.CONFIG_MAP).items() if "modifiers" in key.name]
        await asyncio.sleep(60)

    lived(story)
    labels = seen["namespace"]["metadata"]["labels"]
    assert labels["pod-security.kubernetes.io/enforce"] == "restricted"
    assert labels["foresail.dev/restore-check-depth"] == "Data"
    assert not EXCLUDED.items() <= labels.items(), "Velero would leave cluster-scoped objects out of other Backups"
    inside_it = (seen["NetworkPolicy"], seen["RoleBinding"], seen["quota"], *seen["pods"])
    assert all(EXCLUDED.items() <= each["metadata"]["labels"].items() for each in inside_it)
    inside: list[dict[str, Any]] = [{"podSelector": {}}]
    policy = seen["NetworkPolicy"]["spec"]
    assert (policy["ingress"], policy["egress"]) == ([{"from": inside}], [{"to": inside}])
    assert seen["quota"]["spec"]["hard"]["requests.storage"] == "5Gi"
    assert seen["RoleBinding"]["subjects"] == [
        {"kind": "ServiceAccount", "name": "foresail-checks", "namespace": VELERO}
    ]
    restore = seen["Restore"]["spec"]
    assert {"pods", "persistentvolumeclaims"} <= set(restore["includedResources"])
    assert {"networkpolicies.networking.k8s.io", "ingresses.networking.k8s.io"} <= set(restore["excludedResources"])
    assert (restore["includeClusterResources"], restore["restorePVs"]) == (False, False)
    timeout = length_of(seen["Restore"]["metadata"]["annotations"]["velero.io/pod-volume-timeout"])
    assert timeout is not None
    assert timedelta(seconds=100) < timeout <= timedelta(minutes=2), "Velero restores nothing else until then"
    (canary,) = seen["pods"]
    assert canary["spec"]["automountServiceAccountToken"] is False
    security = canary["spec"]["securityContext"]
    assert (security["runAsNonRoot"], "runAsUser" in security) == (True, False), "restricted-v2 refuses a fixed user"
    rules = json.loads(seen["modifiers"]["data"]["modifiers.yaml"])["resourceModifierRules"]
    claims = [each for each in rules if each["conditions"]["groupResource"] == "persistentvolumeclaims"]
    patched = json.loads(claims[-1]["mergePatches"][0]["patchData"])["spec"]
    for each in ("deployments.apps", "statefulsets.apps", "replicasets.apps", "replicationcontrollers"):
        patches = [
            json.loads(rule["mergePatches"][0]["patchData"]) for rule in rules if each in rule["conditions"].values()
        ]
        (template,) = [patch["spec"]["template"] for patch in patches if "spec" in patch]
        assert template["metadata"] == {"annotations": None, "finalizers": None, "labels": EXCLUDED}
    assert patched == {"volumeName": None, "selector": None, "dataSource": None, "dataSourceRef": None}


def test_moved_data_is_restored_by_velero_into_volumes_of_its_own() -> None:
    seen: dict[str, Any] = {}

    async def story(scene: CheckScene) -> None:
        scene.moves, scene.lasts = True, 20.0
        await checks(seconds=15, deadline="2m", assertion=COUNT)(scene)
        (seen["restore"],) = scene.world.history.present(velero.RESTORE).values()
        await asyncio.sleep(60)

    scene = lived(story)
    assert scene.result() == ("Pass", "Complete")
    spec = seen["restore"]["spec"]
    assert (spec["includeClusterResources"], spec["restorePVs"]) == (False, True)
    timeout = length_of(spec["itemOperationTimeout"])
    assert timeout is not None
    assert timedelta(seconds=100) < timeout <= timedelta(minutes=2)


def test_a_volume_of_a_sandbox_that_would_outlive_it_is_deleted_with_it_and_no_other() -> None:
    sandbox, uid = "foresail-check-0123456789-abcdef", "8c1f"
    claimed = {"claimRef": {"namespace": sandbox, "uid": uid}}
    volumes = {
        f"pvc-{uid}": claimed,
        "of-somebody-before": claimed,
        f"no-provisioner-{uid}": claimed,
        "without-a-uid": {"claimRef": {"namespace": sandbox}},
        f"of-somebody-{uid}": {"claimRef": {"namespace": "red", "uid": uid}},
        f"with-a-similar-name-{uid}": {"claimRef": {"namespace": f"{sandbox}-2", "uid": uid}},
        "of-nobody": {},
        "filled": {"claimRef": {"namespace": sandbox}},
        "filled-for-another": {"claimRef": {"namespace": sandbox}},
    }
    labels = {"filled": f"{sandbox}.data.x7k2p", "filled-for-another": "red.data.x7k2p"}

    async def story(scene: CheckScene) -> None:
        for name, spec in volumes.items():
            annotations = {} if name.startswith("no-") else {PROVISIONED_BY: "example.com/disks"}
            filled = {FILLED: labels[name]} if name in labels else {}
            metadata = {"name": name, "annotations": annotations, "labels": filled}
            body = {"metadata": metadata, "spec": {**spec, "persistentVolumeReclaimPolicy": "Retain"}}
            scene.world.create(core.VOLUME, body, "provisioner")
        await asyncio.sleep(10)

    present = lived(story).world.history.present(core.VOLUME)
    found = [key.name for key, each in present.items() if each["spec"]["persistentVolumeReclaimPolicy"] == "Delete"]
    assert found == [f"pvc-{uid}", "filled"]
    labelled = [
        key.name for key, each in present.items() if EXCLUDED.items() <= (each["metadata"].get("labels") or {}).items()
    ]
    assert labelled == found, "no other Backup has it"


def test_a_sandbox_that_took_a_volume_of_somebody_fails_and_leaves_the_volume_alone() -> None:
    async def story(scene: CheckScene) -> None:
        scene.become_ready = False
        await checks(seconds=20, deadline="2m")(scene)
        (sandbox,) = [key.name for key in scene.world.history.present(NAMESPACE) if key.name.startswith("foresail-")]
        spec = {"claimRef": {"namespace": sandbox, "uid": "8c1f"}, "persistentVolumeReclaimPolicy": "Retain"}
        body = {"metadata": {"name": "archive", "annotations": {PROVISIONED_BY: "example.com/disks"}}, "spec": spec}
        scene.world.create(core.VOLUME, body, "binder")
        await asyncio.sleep(20)

    scene = lived(story)
    assert scene.result() == ("Fail", "VolumeNotProvisioned")
    assert "PersistentVolume archive" in scene.status()["last"]["message"]
    (volume,) = scene.world.history.present(core.VOLUME).values()
    assert volume["spec"]["persistentVolumeReclaimPolicy"] == "Retain"


def is_free(scene: CheckScene, storage_class: str, **spec: object) -> None:
    """Create a volume that any claim of its class could take, unless it is reserved by the spec."""
    body = {"metadata": {"name": "archive"}, "spec": {"storageClassName": storage_class, **spec}}
    scene.world.create(core.VOLUME, {**body, "status": {"phase": "Available"}}, "administrator")


def test_claims_get_no_class_that_has_a_free_volume_of_somebody() -> None:
    async def story(scene: CheckScene) -> None:
        is_free(scene, "local")
        scene.become_ready = False
        await checks(seconds=20, deadline="2m")(scene)

    (quota,) = lived(story).world.history.present(RESOURCE_QUOTA).values()
    assert quota["spec"]["hard"]["local.storageclass.storage.k8s.io/persistentvolumeclaims"] == "0"


@pytest.mark.parametrize(("reserved", "result"), [({}, "Fail"), ({"claimRef": {"namespace": "shop"}}, "Pass")])
def test_nothing_is_restored_beside_a_free_volume_without_a_class(reserved: dict[str, Any], result: str) -> None:
    async def story(scene: CheckScene) -> None:
        is_free(scene, "", **reserved)
        await passes(scene)

    scene = lived(story)
    last = scene.status()["last"]
    assert last["result"] == result, last["message"]
    assert ("PersistentVolume archive has no storage class" in last["message"]) is (result == "Fail")
    assert bool(of_backup(scene)) is (result == "Pass")


@pytest.mark.repeats
@pytest.mark.parametrize("story", [passes, crashes, is_open])
@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
def test_a_death_at_any_write_starts_nothing_outside_the_fence_and_leaves_nothing(story: Story, after: bool) -> None:
    expected, number = lived(story).result(), 0
    while True:
        scene = lived(story, [Moment(after=after, write=number + 1)])
        assert (scene.result(), scene.leftovers(), scene.unfenced) == (expected, [], [])
        first = scene.started[0]
        assert first.startswith("foresail-canary-"), "the canary is the first pod"
        assert len(set(scene.started)) == len(scene.started)
        if not scene.deaths:
            break
        number += 1
    assert number >= 8
