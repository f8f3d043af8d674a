"""Velero's file-system data path is closed to tenants: at the check of a backup, in its spec, and before a restore."""

from typing import Any

import pytest

from foresail.api import velero
from foresail.api.core import CLAIM, CONFIG_MAP
from foresail.api.nonadmin import NON_ADMIN_RESTORE
from foresail.api.pods import POD
from foresail.plan import Key
from foresail.selfservice.access.contents import ContentKind, Contents
from tests.worlds.tenancy import VELERO, Tenancy
from tests.worlds.test_selfservice_access import CLAIMS, CONFIG_MAPS, PODS, policy, refused, velero_restore
from tests.worlds.test_selfservice_paths import NAB, NAR, backed_up, tell
from tests.worlds.world import done

OPTED_IN = {"backup.velero.io/backup-volumes": "data"}
COPIED = Contents(kinds=(CONFIG_MAPS, CLAIMS, PODS), cluster_kinds=(ContentKind("", "PersistentVolume"),))
RULES = {"kind": "configmap", "name": "rules"}


def pod(tenancy: Tenancy, **annotations: str) -> None:
    body = {"metadata": {"name": "web", "annotations": annotations}}
    done(tenancy.world.create(POD, body, "tenant", "red"))


def claim(tenancy: Tenancy, name: str = "data") -> None:
    done(tenancy.world.create(CLAIM, {"metadata": {"name": name}}, "tenant", "red"))


def copied(tenancy: Tenancy, claim_name: str = "data", snapshot: str = "0123") -> None:
    """Let Velero have copied the files of a volume into the backup."""
    made = tenancy.made_for(NAB)
    assert made is not None
    name = made["metadata"]["name"]
    annotations = {"velero.io/pvc-name": claim_name} if claim_name else {}
    metadata = {"name": f"{name}-1", "labels": {velero.BACKUP_NAME_LABEL: name}, "annotations": annotations}
    body = {"metadata": metadata, "status": {"phase": "Completed", "snapshotID": snapshot}}
    done(tenancy.world.create(velero.POD_VOLUME_BACKUP, body, "velero", VELERO))


# Backups


def test_a_backup_of_a_pod_that_asks_for_a_copy_of_its_files_is_refused() -> None:
    async def story(tenancy: Tenancy) -> None:
        pod(tenancy, **OPTED_IN)
        tenancy.back_up(NAB)
        await tenancy.settle(30)
        assert tenancy.made_for(NAB) is None
        status, reason, message = tenancy.condition(NAB, "Accepted")
        assert (status, reason) == ("False", "PolicyViolation")
        assert "Pod web has annotation backup.velero.io/backup-volumes" in message
        revision = tenancy.world.history.revision
        await tenancy.settle(3600)
        assert tenancy.world.history.revision == revision, "a refused backup is not asked about again"

    tell(story)


def test_a_policy_that_allows_hooks_refuses_the_copy_of_files_all_the_same() -> None:
    async def story(tenancy: Tenancy) -> None:
        policy(tenancy, veleroAnnotations="Allowed")
        pod(tenancy, **OPTED_IN)
        tenancy.back_up(NAB)
        await tenancy.settle(30)
        assert tenancy.condition(NAB, "Accepted")[1] == "PolicyViolation"

    tell(story)


@pytest.mark.parametrize("way", ["no pods", "allowed", "only left out"])
def test_a_backup_in_which_velero_copies_no_files_or_may_goes_ahead(way: str) -> None:
    async def story(tenancy: Tenancy) -> None:
        pod(tenancy, **({"backup.velero.io/backup-volumes-excludes": "data"} if way == "only left out" else OPTED_IN))
        if way == "allowed":
            policy(tenancy, backup={"fileSystem": "Allowed"})
        spec: dict[str, Any] = {"excludedNamespaceScopedResources": ["pods"]} if way == "no pods" else {}
        tenancy.back_up(NAB, **spec)
        await tenancy.settle(30)
        made = tenancy.made_for(NAB)
        assert made is not None, tenancy.status(NAB)
        assert ("resourcePolicy" in made["spec"]) == (way != "allowed")

    tell(story)


def rule(tenancy: Tenancy, *rules: str) -> None:
    """Let the administrator require a resource policy with these volume policies."""
    policy(tenancy, backup={"defaults": {"resourcePolicy": RULES}})
    data = {"policy": f"{{version: v1, volumePolicies: [{', '.join(rules)}]}}"}
    done(tenancy.world.create(CONFIG_MAP, {"metadata": {"name": "rules"}, "data": data}, "admin", VELERO))


@pytest.mark.parametrize(
    ("rules", "said"),
    [
        (None, "rules does not exist"),
        ("{conditions: {}, action: {type: fs-backup}}", "action fs-backup"),
        ("{conditions: {nfs: {}}, action: {type: skip}}", "does not end with"),
    ],
)
def test_a_resource_policy_of_the_administrator_must_not_choose_the_copy_of_files(rules: str | None, said: str) -> None:
    async def story(tenancy: Tenancy) -> None:
        if rules is None:
            policy(tenancy, backup={"defaults": {"resourcePolicy": RULES}})
        else:
            rule(tenancy, rules)
        tenancy.back_up(NAB)
        await tenancy.settle(30)
        assert tenancy.made_for(NAB) is None
        assert said in tenancy.condition(NAB, "Accepted")[2]

    tell(story)


def test_a_resource_policy_that_decides_about_every_volume_is_used() -> None:
    async def story(tenancy: Tenancy) -> None:
        rule(tenancy, "{conditions: {nfs: {}}, action: {type: skip}}", "{conditions: {}, action: {type: snapshot}}")
        tenancy.back_up(NAB)
        await tenancy.settle(30)
        made = tenancy.made_for(NAB)
        assert made is not None, tenancy.status(NAB)
        assert made["spec"]["resourcePolicy"] == RULES

    tell(story)


# Restores


@pytest.mark.parametrize("source", ["the store", "the file"])
def test_a_restore_that_would_write_files_into_pods_is_refused(source: str) -> None:
    async def story(tenancy: Tenancy) -> None:
        tenancy.reviews.held = COPIED if source == "the store" else Contents(kinds=COPIED.kinds, copied=("data",))
        await backed_up(tenancy)
        if source == "the store":  # the list of volumes leaves out those whose pod was deleted meanwhile
            copied(tenancy)
        tenancy.restore(NAR, NAB.name)
        await tenancy.settle(30)
        reason, message = refused(tenancy)
        assert reason == "PolicyViolation"
        assert "claim data" in message
        assert "exclude pods" in message
        tenancy.edit(NAR, NON_ADMIN_RESTORE, restoreSpec={"backupName": NAB.name, "excludedResources": ["pods"]})
        await tenancy.settle(30)
        assert "pods" not in velero_restore(tenancy)["spec"]["includedResources"]

    tell(story)


def test_a_refused_restore_stays_refused_when_the_policy_allows_the_copy_of_files() -> None:
    async def story(tenancy: Tenancy) -> None:
        tenancy.reviews.held = COPIED
        await backed_up(tenancy)
        copied(tenancy)
        tenancy.restore(NAR, NAB.name)
        await tenancy.settle(30)
        assert refused(tenancy)[0] == "PolicyViolation"
        policy(tenancy, backup={"fileSystem": "Allowed"})
        await tenancy.settle(3600)
        assert refused(tenancy)[0] == "PolicyViolation"

    tell(story)


def test_a_copy_without_data_is_not_restored_and_blocks_nothing() -> None:
    async def story(tenancy: Tenancy) -> None:
        tenancy.reviews.held = COPIED
        await backed_up(tenancy)
        copied(tenancy, snapshot="")
        tenancy.restore(NAR, NAB.name)
        await tenancy.settle(30)
        assert "pods" in velero_restore(tenancy)["spec"]["includedResources"]

    tell(story)


@pytest.mark.parametrize(("claim_name", "said"), [("data", "existing claim data"), ("", "volumes without claims")])
def test_even_if_allowed_velero_fills_only_claims_that_the_restore_creates(claim_name: str, said: str) -> None:
    async def story(tenancy: Tenancy) -> None:
        policy(tenancy, backup={"fileSystem": "Allowed"})
        tenancy.reviews.held = COPIED
        await backed_up(tenancy)
        copied(tenancy, claim_name)
        claim(tenancy)
        tenancy.restore(NAR, NAB.name)
        await tenancy.settle(30)
        reason, message = refused(tenancy)
        assert reason == "VolumeNotNew"
        assert said in message
        revision = tenancy.world.history.revision
        await tenancy.settle(3600)
        assert tenancy.world.history.revision == revision

    tell(story)


def test_a_policy_that_decides_about_kinds_and_volumes_alone_still_writes_no_files() -> None:
    async def story(tenancy: Tenancy) -> None:
        policy(tenancy, restore={"authorization": "Policy", "volumes": "AsIs"})
        await backed_up(tenancy)
        copied(tenancy)
        tenancy.restore(NAR, NAB.name)
        other = Key("red", "without-pods")
        tenancy.restore(other, NAB.name, excludedResources=["pods"])
        await tenancy.settle(30)
        assert refused(tenancy)[0] == "PolicyViolation"
        assert tenancy.made_for(other, NON_ADMIN_RESTORE) is not None

    tell(story)
