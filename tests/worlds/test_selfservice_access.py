"""Restores authorised as the requester: what comes back, what is left out and named, and how much it costs."""

import random
from importlib.resources import files
from typing import Any

import msgspec
import pytest

from foresail.api import velero
from foresail.api.marks import REQUESTER
from foresail.api.nonadmin import NON_ADMIN_BACKUP, NON_ADMIN_RESTORE
from foresail.api.pods import POD
from foresail.api.policy import SELF_SERVICE_POLICY, SelfServicePolicySpec
from foresail.plan import Key
from foresail.selfservice.access.contents import ContentKind, Contents, VolumeRow
from foresail.selfservice.specs.annotations import MODIFIER
from tests.worlds.tenancy import Tenancy
from tests.worlds.test_selfservice_paths import NAB, NAR, backed_up, tell
from tests.worlds.world import done

CONFIG_MAPS, PODS, DEPLOYMENTS = ContentKind("", "ConfigMap"), ContentKind("", "Pod"), ContentKind("apps", "Deployment")
CLAIMS, ROLES = ContentKind("", "PersistentVolumeClaim"), ContentKind("rbac.authorization.k8s.io", "Role")
EXCEPTIONS = ContentKind("kyverno.io", "PolicyException")
WITH_VOLUME = Contents(
    kinds=(CONFIG_MAPS, CLAIMS, PODS),
    cluster_kinds=(ContentKind("", "PersistentVolume"),),
    volumes=(VolumeRow("pv-1", "data"),),
)


def policy(tenancy: Tenancy, **spec: Any) -> None:  # noqa: ANN401 - JSON
    done(tenancy.world.merge(SELF_SERVICE_POLICY, Key("", "default"), {"spec": spec}, "admin"))


def velero_restore(tenancy: Tenancy) -> dict[str, Any]:
    made = tenancy.made_for(NAR, NON_ADMIN_RESTORE)
    assert made is not None, tenancy.status(NAR, NON_ADMIN_RESTORE)
    return made


def refused(tenancy: Tenancy) -> tuple[str, str]:
    assert tenancy.made_for(NAR, NON_ADMIN_RESTORE) is None
    status, reason, message = tenancy.condition(NAR, "Accepted", NON_ADMIN_RESTORE)
    assert status == "False"
    return reason, message


def test_a_restore_brings_back_the_kinds_that_the_requester_may_create_and_names_the_others() -> None:
    async def story(tenancy: Tenancy) -> None:
        tenancy.reviews.held = Contents(kinds=(CONFIG_MAPS, DEPLOYMENTS, EXCEPTIONS, ContentKind("gone.io", "Thing")))
        tenancy.reviews.may = lambda user, verb, resource, namespace: (
            (user, verb, namespace) == ("tenant", "create", "red") and "kyverno" not in resource
        )
        await backed_up(tenancy)
        tenancy.restore(NAR, NAB.name)
        await tenancy.settle(2)
        made = velero_restore(tenancy)
        assert made["spec"]["includedResources"] == ["configmaps", "deployments.apps"]
        assert made["spec"]["resourceModifier"] == {"kind": "configmap", "name": MODIFIER}
        assert made["metadata"]["annotations"][REQUESTER] == "tenant"
        assert made["metadata"]["annotations"]["velero.io/pod-volume-timeout"] == "1h"
        status, reason, message = tenancy.condition(NAR, "Authorized", NON_ADMIN_RESTORE)
        assert (status, reason) == ("True", "KindsLeftOut")
        assert "tenant may not create them: policyexceptions.kyverno.io" in message
        assert "does not serve them: Thing.gone.io" in message

    tell(story)


def test_extra_requests_of_a_restore_are_at_most_three_and_one_per_kind() -> None:
    async def story(tenancy: Tenancy) -> None:
        held = (CONFIG_MAPS, PODS, DEPLOYMENTS, ContentKind("", "Service"), ContentKind("", "ServiceAccount"))
        tenancy.reviews.held = Contents(kinds=held)
        await backed_up(tenancy)
        assert tenancy.process is not None
        for number in range(10):
            before, asked = len(tenancy.process.visitor.writes), len(tenancy.reviews.asked)
            tenancy.restore(Key("red", f"back-{number}"), NAB.name)
            await tenancy.settle(2)
            writes = [each.verb for each in tenancy.process.visitor.writes[before:] if each.kind in REQUESTED]
            reviews = len(tenancy.reviews.asked) - asked
            assert len(writes) + reviews + tenancy.reviews.discovered <= 3 + len(held)
            assert writes == (["create", "create"] if number == 0 else [])
        assert len(tenancy.reviews.read) == 1
        assert tenancy.reviews.discovered == 0, "every cluster serves these kinds alike"

    tell(story)


@pytest.mark.parametrize("held", [{"kinds": (DEPLOYMENTS, EXCEPTIONS)}, {"cluster_kinds": (EXCEPTIONS,)}])
def test_discovery_is_asked_once_about_kinds_that_only_some_clusters_serve(held: dict[str, Any]) -> None:
    async def story(tenancy: Tenancy) -> None:
        tenancy.reviews.held = Contents(**{"kinds": (DEPLOYMENTS,), **held})
        await backed_up(tenancy)
        for number in range(3):
            tenancy.restore(Key("red", f"back-{number}"), NAB.name)
            await tenancy.settle(2)
        assert tenancy.reviews.discovered == 1

    tell(story)


REQUESTED = (velero.DOWNLOAD_REQUEST,)


SYSTEM = ("velero:velero", "velero:foresail", "kube-system:addons")


@pytest.mark.parametrize("user", ["", *(f"system:serviceaccount:{each}" for each in SYSTEM)])
def test_a_restore_without_a_requester_or_by_velero_is_refused(user: str) -> None:
    async def story(tenancy: Tenancy) -> None:
        await backed_up(tenancy)
        metadata = {"name": NAR.name, "annotations": {REQUESTER: user}}
        body = {"metadata": metadata, "spec": {"restoreSpec": {"backupName": NAB.name}}}
        done(tenancy.world.create(NON_ADMIN_RESTORE, body, "tenant", NAR.namespace))
        await tenancy.settle(2)
        assert refused(tenancy)[0] == "RequesterUnknown"

    tell(story)


def test_a_requester_who_may_create_nothing_is_refused_and_an_edit_asks_again() -> None:
    async def story(tenancy: Tenancy) -> None:
        tenancy.reviews.may = lambda *_: False
        await backed_up(tenancy)
        tenancy.restore(NAR, NAB.name)
        await tenancy.settle(30)
        reason, message = refused(tenancy)
        assert reason == "AccessDenied"
        assert "configmaps, deployments.apps, pods" in message
        tenancy.reviews.may = lambda *_: True
        spec = {"backupName": NAB.name, "includedResources": ["deploy", "cm"]}
        tenancy.edit(NAR, NON_ADMIN_RESTORE, restoreSpec=spec)
        await tenancy.settle(30)
        assert velero_restore(tenancy)["spec"]["includedResources"] == ["configmaps", "deployments.apps"]

    tell(story)


def test_a_denied_restore_asks_and_writes_nothing_until_its_requester_asks_again() -> None:
    async def story(tenancy: Tenancy) -> None:
        tenancy.reviews.may = lambda *_: False
        await backed_up(tenancy)
        tenancy.restore(NAR, NAB.name)
        await tenancy.settle(30)
        assert refused(tenancy)[0] == "AccessDenied"
        asked, revision = len(tenancy.reviews.asked), tenancy.world.history.revision
        tenancy.reviews.may = lambda *_: True
        await tenancy.settle(1800)
        assert (len(tenancy.reviews.asked), tenancy.world.history.revision) == (asked, revision)
        tenancy.edit(NAR, NON_ADMIN_RESTORE, retriedAt=tenancy.now())
        await tenancy.settle(30)
        velero_restore(tenancy)
        assert tenancy.condition(NAR, "Authorized", NON_ADMIN_RESTORE)[:2] == ("True", "AllKindsAllowed")

    tell(story)


def test_a_volume_that_was_not_backed_up_is_refused_and_named() -> None:
    async def story(tenancy: Tenancy) -> None:
        tenancy.reviews.held = WITH_VOLUME
        tenancy.reviews.may = lambda _user, _verb, resource, _namespace: resource != "persistentvolumes"
        await backed_up(tenancy)
        tenancy.restore(NAR, NAB.name)
        await tenancy.settle(30)
        reason, message = refused(tenancy)
        assert reason == "VolumeNotBackedUp"
        assert "pv-1 of claim data" in message
        excluded = {"backupName": NAB.name, "excludedResources": ["persistentvolumeclaims", "pods"]}
        tenancy.edit(NAR, NON_ADMIN_RESTORE, restoreSpec=excluded)
        await tenancy.settle(30)
        assert velero_restore(tenancy)["spec"]["includedResources"] == ["configmaps"]

    tell(story)


def test_a_restore_starts_when_its_requester_may_create_volumes_and_asks_again() -> None:
    async def story(tenancy: Tenancy) -> None:
        tenancy.reviews.held = WITH_VOLUME
        tenancy.reviews.may = lambda _user, _verb, resource, _namespace: resource != "persistentvolumes"
        await backed_up(tenancy)
        tenancy.restore(NAR, NAB.name)
        await tenancy.settle(30)
        assert refused(tenancy)[0] == "VolumeNotBackedUp"
        tenancy.reviews.may = lambda *_: True
        await tenancy.settle(20 * 60)
        assert refused(tenancy)[0] == "VolumeNotBackedUp"
        tenancy.edit(NAR, NON_ADMIN_RESTORE, retriedAt=tenancy.now())
        await tenancy.settle(30)
        assert "persistentvolumes" in velero_restore(tenancy)["spec"]["includedResources"]

    tell(story)


def test_a_policy_that_decides_about_volumes_itself_is_not_asked_again() -> None:
    async def story(tenancy: Tenancy) -> None:
        policy(tenancy, restore={"authorization": "Policy"})
        tenancy.reviews.held = WITH_VOLUME
        await backed_up(tenancy)
        tenancy.restore(NAR, NAB.name)
        await tenancy.settle(30)
        assert refused(tenancy)[0] == "VolumeNotBackedUp"
        assert tenancy.process is not None
        assert tenancy.process.loop.queue.delayed == 0

    tell(story)


@pytest.mark.parametrize("way", ["pods bring claims", "the policy", "the requester"])
def test_who_may_have_a_volume_as_it_was(way: str) -> None:
    async def story(tenancy: Tenancy) -> None:
        tenancy.reviews.held = WITH_VOLUME
        tenancy.reviews.may = lambda _user, _verb, resource, _namespace: (
            resource != "persistentvolumes" or way == "the requester"
        )
        if way == "the policy":
            policy(tenancy, restore={"volumes": "AsIs"})
        await backed_up(tenancy)
        spec = {"excludedResources": ["persistentvolumeclaims"]} if way == "pods bring claims" else {}
        tenancy.restore(NAR, NAB.name, **spec)
        await tenancy.settle(30)
        if way == "pods bring claims":
            assert refused(tenancy)[0] == "VolumeNotBackedUp"
        else:
            assert "persistentvolumes" in velero_restore(tenancy)["spec"]["includedResources"]

    tell(story)


def test_a_policy_that_authorizes_by_itself_reviews_only_volumes() -> None:
    async def story(tenancy: Tenancy) -> None:
        policy(tenancy, restore={"authorization": "Policy"})
        tenancy.reviews.may = lambda *_: False
        tenancy.reviews.held = WITH_VOLUME
        await backed_up(tenancy)
        tenancy.restore(NAR, NAB.name)
        await tenancy.settle(30)
        assert refused(tenancy)[0] == "VolumeNotBackedUp"
        policy(tenancy, restore={"authorization": "Policy", "volumes": "AsIs"})
        tenancy.edit(NAR, NON_ADMIN_RESTORE, restoreSpec={"backupName": NAB.name, "restorePVs": True})
        await tenancy.settle(30)
        assert "includedResources" not in velero_restore(tenancy)["spec"]
        assert tenancy.reviews.asked == []

    tell(story)


def test_rights_in_a_backup_need_the_right_to_grant_them() -> None:
    async def story(tenancy: Tenancy) -> None:
        policy(tenancy, restore={"kinds": {"refused": []}})
        tenancy.reviews.held = Contents(kinds=(CONFIG_MAPS, ROLES, ContentKind(ROLES.group, "RoleBinding")))
        tenancy.reviews.may = lambda _user, verb, _resource, _namespace: verb != "escalate"
        await backed_up(tenancy)
        tenancy.restore(NAR, NAB.name)
        await tenancy.settle(2)
        rights = "rolebindings.rbac.authorization.k8s.io"
        assert velero_restore(tenancy)["spec"]["includedResources"] == ["configmaps", rights]
        assert "roles.rbac" in tenancy.condition(NAR, "Authorized", NON_ADMIN_RESTORE)[2]
        assert ("bind", "clusterroles.rbac.authorization.k8s.io", "red") in tenancy.reviews.asked

    tell(story)


def test_an_unreadable_bucket_blocks_the_restore_and_is_reported() -> None:
    async def story(tenancy: Tenancy) -> None:
        tenancy.reviews.broken = "the bucket answers 503"
        await backed_up(tenancy)
        tenancy.restore(NAR, NAB.name)
        await tenancy.settle(30)
        assert tenancy.made_for(NAR, NON_ADMIN_RESTORE) is None
        status, reason, message = tenancy.condition(NAR, "Authorized", NON_ADMIN_RESTORE)
        assert (status, reason) == ("Unknown", "CheckingAccess")
        assert "the bucket answers 503" in message
        tenancy.reviews.broken = ""
        await tenancy.settle(150)
        velero_restore(tenancy)
        assert tenancy.condition(NAR, "Authorized", NON_ADMIN_RESTORE)[:2] == ("True", "AllKindsAllowed")

    tell(story)


def test_a_backup_with_too_many_objects_is_refused_while_the_policy_checks_access() -> None:
    async def story(tenancy: Tenancy) -> None:
        tenancy.reviews.is_too_large = True
        await backed_up(tenancy)
        tenancy.restore(NAR, NAB.name)
        await tenancy.settle(30)
        reason, message = refused(tenancy)
        assert reason == "BackupTooLarge"
        assert f"contents list of backup {NAB.name} is larger than 16 MiB" in message
        read = len(tenancy.reviews.read)
        await tenancy.settle(1800)
        assert len(tenancy.reviews.read) == read, "it never gets smaller"
        for rules, why in (
            ({"authorization": "Policy"}, "its volumes are still to be checked"),
            ({"authorization": "Policy", "volumes": "AsIs"}, "its objects are still to be counted"),
        ):
            policy(tenancy, restore=rules)
            tenancy.edit(NAR, NON_ADMIN_RESTORE, retriedAt=tenancy.now())
            await tenancy.settle(30)
            assert refused(tenancy)[0] == "BackupTooLarge", why
        policy(
            tenancy,
            restore={
                "authorization": "Policy",
                "volumes": "AsIs",
                "maximumObjects": 1_000_000,
                "maximumClaims": 1_000_000,
            },
        )
        tenancy.edit(NAR, NON_ADMIN_RESTORE, retriedAt=tenancy.now())
        await tenancy.settle(30)
        velero_restore(tenancy)

    tell(story)


def test_a_url_that_has_expired_is_asked_for_again() -> None:
    async def story(tenancy: Tenancy) -> None:
        tenancy.reviews.broken = "the bucket answers 403"
        await backed_up(tenancy)
        tenancy.restore(NAR, NAB.name)
        await tenancy.settle(700)
        tenancy.reviews.broken = ""
        await tenancy.settle(150)
        velero_restore(tenancy)

    tell(story)


@pytest.mark.parametrize("allowed", [False, True])
def test_a_pod_with_a_backup_hook_is_refused_unless_the_policy_allows_it(allowed: bool) -> None:
    async def story(tenancy: Tenancy) -> None:
        if allowed:
            policy(tenancy, veleroAnnotations="Allowed")
        hook = {"pre.hook.backup.velero.io/command": "sleep", "pre.hook.backup.velero.io/timeout": "9999h"}
        body = {"metadata": {"name": "web", "annotations": hook}, "spec": {}}
        done(tenancy.world.create(POD, body, "tenant", "red"))
        tenancy.back_up(NAB)
        await tenancy.settle(30)
        if allowed:
            assert tenancy.made_for(NAB) is not None
            return
        assert tenancy.made_for(NAB) is None
        status, reason, message = tenancy.condition(NAB, "Accepted", NON_ADMIN_BACKUP)
        assert (status, reason) == ("False", "PolicyViolation")
        assert "Pod web has annotation pre.hook.backup.velero.io/command" in message

    tell(story)


@pytest.mark.parametrize("rules", [{}, {"authorization": "Policy", "volumes": "AsIs"}])
def test_a_restore_of_more_objects_than_the_policy_allows_is_refused(rules: dict[str, str]) -> None:
    async def story(tenancy: Tenancy) -> None:
        policy(tenancy, restore=rules)
        tenancy.reviews.held = Contents(kinds=(CONFIG_MAPS, PODS, DEPLOYMENTS), counts=(9_990, 8, 3))
        await backed_up(tenancy)
        tenancy.restore(NAR, NAB.name)
        await tenancy.settle(30)
        reason, message = refused(tenancy)
        assert reason == "PolicyViolation"
        assert "has 10,001 objects, and SelfServicePolicy default allows 10,000 (maximumObjects)" in message
        reads = len(tenancy.reviews.read)
        await tenancy.settle(1500)
        assert len(tenancy.reviews.read) == reads
        assert refused(tenancy)[0] == "PolicyViolation"
        tenancy.edit(NAR, NON_ADMIN_RESTORE, restoreSpec={"backupName": NAB.name, "excludedResources": ["pods"]})
        await tenancy.settle(30)
        velero_restore(tenancy)

    tell(story)


@pytest.mark.parametrize("rules", [{}, {"authorization": "Policy", "volumes": "AsIs", "maximumObjects": 1_000_000}])
def test_a_restore_of_more_claims_than_the_policy_allows_is_refused(rules: dict[str, Any]) -> None:
    async def story(tenancy: Tenancy) -> None:
        policy(tenancy, restore=rules)
        tenancy.reviews.held = Contents(kinds=(CONFIG_MAPS, CLAIMS), counts=(5, 31))
        await backed_up(tenancy)
        tenancy.restore(NAR, NAB.name)
        await tenancy.settle(30)
        reason, message = refused(tenancy)
        assert reason == "PolicyViolation"
        assert "has 31 volume claims, and SelfServicePolicy default allows 30; exclude" in message
        assert len(message.split()) <= 30
        left = {"backupName": NAB.name, "excludedResources": ["persistentvolumeclaims"]}
        tenancy.edit(NAR, NON_ADMIN_RESTORE, restoreSpec=left)
        await tenancy.settle(30)
        velero_restore(tenancy)

    tell(story)


@pytest.mark.parametrize("most", [31, 1_000_000])
def test_a_policy_may_allow_more_claims(most: int) -> None:
    async def story(tenancy: Tenancy) -> None:
        policy(tenancy, restore={"maximumClaims": most})
        tenancy.reviews.held = Contents(kinds=(CONFIG_MAPS, CLAIMS), counts=(5, 31))
        await backed_up(tenancy)
        tenancy.restore(NAR, NAB.name)
        await tenancy.settle(30)
        velero_restore(tenancy)

    tell(story)


@pytest.mark.parametrize(("most", "reads"), [(20_000, 1), (1_000_000, 0)])
def test_a_policy_may_allow_more_objects_or_not_have_them_counted(most: int, reads: int) -> None:
    async def story(tenancy: Tenancy) -> None:
        policy(
            tenancy,
            restore={"authorization": "Policy", "volumes": "AsIs", "maximumObjects": most, "maximumClaims": 1_000_000},
        )
        tenancy.reviews.held = Contents(kinds=(CONFIG_MAPS,), counts=(20_000,))
        await backed_up(tenancy)
        tenancy.restore(NAR, NAB.name)
        await tenancy.settle(5)
        velero_restore(tenancy)
        assert len(tenancy.reviews.read) == reads

    tell(story)


def test_pods_too_large_to_check_are_refused_once_and_not_read_again_at_each_start(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("foresail.selfservice.access.reader.MOST_POD_BYTES", 64 << 10)

    async def story(tenancy: Tenancy) -> None:
        for number in range(80):
            body = {"metadata": {"name": f"fat-{number}", "finalizers": [f"foresail.dev/{'x' * 900}"]}, "spec": {}}
            done(tenancy.world.create(POD, body, "tenant", "red"))
        tenancy.back_up(NAB)
        await tenancy.settle(30)
        assert tenancy.made_for(NAB) is None
        status, reason, message = tenancy.condition(NAB, "Accepted", NON_ADMIN_BACKUP)
        assert (status, reason) == ("False", "PolicyViolation")
        assert "pods of namespace red have more than 64 MiB of metadata" in message
        lists = tenancy.reviews.lists
        assert lists == 2, "the second page is the last that is read"
        await tenancy.stop()
        tenancy.start()
        await tenancy.settle(300)
        assert tenancy.reviews.lists == lists
        tenancy.back_up(Key("red", "again"))
        await tenancy.settle(30)
        assert tenancy.reviews.lists == 2 * lists
        others = [Key("red", f"again-{number}") for number in range(8)]
        for key in others:
            tenancy.back_up(key)
        tenancy.back_up(Key("blue", "other"))
        await tenancy.settle(20)
        assert {tenancy.condition(key, "Accepted")[1] for key in others} == {"PolicyViolation"}
        assert tenancy.made_for(Key("blue", "other")) is not None
        assert tenancy.reviews.lists == 2 * lists + 1, "the pods of red are read once a minute"
        await tenancy.settle(60)
        tenancy.back_up(Key("red", "later"))
        await tenancy.settle(60)
        assert tenancy.reviews.lists == 3 * lists + 1

    tell(story)


def test_a_modifier_of_the_policy_is_refused_unless_the_policy_allows_velero_s_annotations() -> None:
    async def story(tenancy: Tenancy) -> None:
        reference = {"kind": "configmap", "name": "theirs"}
        policy(tenancy, restore={"defaults": {"resourceModifier": reference}})
        await backed_up(tenancy)
        tenancy.restore(NAR, NAB.name)
        await tenancy.settle(30)
        assert refused(tenancy)[0] == "PolicyViolation"
        policy(tenancy, veleroAnnotations="Allowed")
        tenancy.edit(NAR, NON_ADMIN_RESTORE, restoreSpec={"backupName": NAB.name, "restorePVs": True})
        await tenancy.settle(30)
        assert velero_restore(tenancy)["spec"]["resourceModifier"] == reference

    tell(story)


def test_while_velero_does_not_answer_no_review_is_sent_and_the_tenant_sees_why() -> None:
    async def story(tenancy: Tenancy) -> None:
        await backed_up(tenancy)
        tenancy.signs_contents = False
        tenancy.restore(NAR, NAB.name)
        await tenancy.settle(120)
        assert tenancy.condition(NAR, "Authorized", NON_ADMIN_RESTORE)[:2] == ("Unknown", "CheckingAccess")
        assert tenancy.reviews.asked == []
        tenancy.velero_answers()
        await tenancy.settle(5)
        velero_restore(tenancy)

    tell(story)


RESOURCES = {
    ContentKind("", "ConfigMap"): "configmaps",
    ContentKind("", "Secret"): "secrets",
    ContentKind("", "Pod"): "pods",
    ContentKind("", "PersistentVolumeClaim"): "persistentvolumeclaims",
    ContentKind("", "ServiceAccount"): "serviceaccounts",
    ContentKind("apps", "Deployment"): "deployments.apps",
    ContentKind("kyverno.io", "PolicyException"): "policyexceptions.kyverno.io",
    ContentKind("networking.k8s.io", "Ingress"): "ingresses.networking.k8s.io",
    ContentKind("batch", "Job"): "jobs.batch",
}
SHARE = 50  # of the restores in each world
WORLDS = 20


@pytest.mark.repeats
@pytest.mark.parametrize("seed", range(WORLDS))
def test_a_thousand_restores_with_random_kinds_and_random_rights_bring_back_what_a_model_allows(seed: int) -> None:
    """Each world has its own rights and one backup for each restore; together they are a thousand."""
    dice = random.Random(seed)  # noqa: S311 - to choose, not to hide

    async def story(tenancy: Tenancy) -> None:
        rights = {
            (f"tenant-{number}", verb, each)
            for number in range(SHARE)
            for verb in ("create", "update", "patch")
            for each in RESOURCES.values()
            if dice.random() < 0.7
        }
        tenancy.reviews.may = lambda user, verb, resource, _namespace: (user, verb, resource) in rights
        await backed_up(tenancy)
        for number in range(SHARE):
            kinds = tuple(sorted(each for each in RESOURCES if dice.random() < 0.5))
            volumes = (VolumeRow("pv", "data"),) if CLAIMS in kinds and dice.random() < 0.3 else ()
            tenancy.reviews.held = Contents(kinds=kinds, volumes=volumes)
            assert tenancy.reader is not None
            tenancy.reader.forget()
            updates = dice.random() < 0.3
            await one_restore(tenancy, number, rights, kinds, volumes=bool(volumes), updates=updates)
        await tenancy.settle(900)  # what was forgotten is read once more for those that were denied

    tell(story)


async def one_restore(
    tenancy: Tenancy,
    number: int,
    rights: set[tuple[str, str, str]],
    kinds: tuple[ContentKind, ...],
    *,
    volumes: bool,
    updates: bool,
) -> None:
    user, key = f"tenant-{number}", Key("red", f"back-{number}")
    policy(tenancy, restore={"allowed": {"existingResourcePolicies": ["update"]}})
    spec = {"backupName": NAB.name, **({"existingResourcePolicy": "update"} if updates else {})}
    metadata = {"name": key.name, "annotations": {REQUESTER: user}}
    done(
        tenancy.world.create(
            NON_ADMIN_RESTORE, {"metadata": metadata, "spec": {"restoreSpec": spec}}, "tenant", key.namespace
        )
    )
    await tenancy.settle(2)
    held = {RESOURCES[each] for each in kinds}

    def may(resource: str) -> bool:
        needs = ["create", *(["update"] if updates or resource == "serviceaccounts" else []), *["patch"] * updates]
        return all((user, verb, resource) in rights for verb in needs)

    expected = {each for each in held if may(each)}
    if "persistentvolumeclaims" in held and not may("persistentvolumeclaims"):
        expected.discard("pods")
    is_risky = volumes and bool(expected & {"pods", "persistentvolumeclaims"})
    made = tenancy.made_for(key, NON_ADMIN_RESTORE)
    if not expected or is_risky:
        assert made is None
        return
    assert made is not None, tenancy.status(key, NON_ADMIN_RESTORE)
    along = {"persistentvolumes", "volumesnapshots.snapshot.storage.k8s.io"}
    along.add("volumesnapshotcontents.snapshot.storage.k8s.io")
    restored = set(made["spec"]["includedResources"])
    assert restored - along == expected
    assert not restored & along or "persistentvolumeclaims" in expected


def default_policy() -> SelfServicePolicySpec:
    """Return the policy that `foresail install` creates."""
    text = files("foresail.manifests").joinpath("foresail.yaml").read_text()
    documents = [msgspec.yaml.decode(part) for part in text.split("\n---\n")]
    objects = [each["object"] for each in documents if each and "object" in each]
    (spec,) = (each["spec"] for each in objects if each["kind"] == SELF_SERVICE_POLICY.name)
    return msgspec.convert(spec, SelfServicePolicySpec)


@pytest.mark.parametrize("lacking", ["", "create", "update", "patch"])
def test_with_the_default_policy_a_restore_changes_what_its_requester_may_change(lacking: str) -> None:
    async def story(tenancy: Tenancy) -> None:
        policy(tenancy, restore=msgspec.to_builtins(default_policy().restore))
        tenancy.reviews.held = Contents(kinds=(CONFIG_MAPS, DEPLOYMENTS))
        tenancy.reviews.may = lambda user, verb, resource, namespace: (
            (user, namespace) == ("tenant", "red") and (verb != lacking or resource != "deployments.apps")
        )
        await backed_up(tenancy)
        tenancy.restore(NAR, NAB.name, existingResourcePolicy="update")
        await tenancy.settle(2)
        made = velero_restore(tenancy)["spec"]
        assert made["existingResourcePolicy"] == "update"
        assert made["includedResources"] == ["configmaps", *([] if lacking else ["deployments.apps"])]

    tell(story)


NATIVE = msgspec.structs.replace(WITH_VOLUME, volumes=(VolumeRow("pv-1", "data", has_snapshot=True),))


@pytest.mark.parametrize("lacking", ["", "update", "patch"])
def test_a_restore_that_would_change_a_volume_needs_the_right_to_change_volumes(lacking: str) -> None:
    """Velero patches a PersistentVolume that exists, for one with a snapshot of its provider."""

    async def story(tenancy: Tenancy) -> None:
        policy(tenancy, restore={"allowed": {"existingResourcePolicies": ["update"]}})
        tenancy.reviews.held = NATIVE
        tenancy.reviews.may = lambda _user, verb, resource, _: verb != lacking or resource != "persistentvolumes"
        await backed_up(tenancy)
        tenancy.restore(NAR, NAB.name, existingResourcePolicy="update")
        await tenancy.settle(30)
        if not lacking:
            assert "persistentvolumes" in velero_restore(tenancy)["spec"]["includedResources"]
            return
        reason, message = refused(tenancy)
        assert reason == "AccessDenied"
        assert "pv-1 of claim data" in message
        tenancy.edit(NAR, NON_ADMIN_RESTORE, restoreSpec={"existingResourcePolicy": None})
        await tenancy.settle(30)
        assert "persistentvolumes" in velero_restore(tenancy)["spec"]["includedResources"], "nothing is changed"

    tell(story)


@pytest.mark.parametrize("authorization", ["Requester", "Policy"])
def test_a_backup_of_cluster_scoped_kinds_alone_stays_refused(authorization: str) -> None:
    async def story(tenancy: Tenancy) -> None:
        policy(tenancy, restore={"authorization": authorization})
        tenancy.back_up(NAB, includedResources=["clusterroles"])
        await tenancy.settle(30)
        refused = tenancy.request(NAB, NON_ADMIN_BACKUP)
        await tenancy.settle(120)
        assert tenancy.request(NAB, NON_ADMIN_BACKUP) == refused, "nothing is written again"
        assert tenancy.condition(NAB, "Accepted", NON_ADMIN_BACKUP)[1] == "InvalidBackupSpec"

    tell(story)
