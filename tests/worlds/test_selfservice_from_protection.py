"""Restores from the backup of a ProtectionClass: one's own namespace and nothing of the others of its group."""

import asyncio
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import msgspec
import pytest

from foresail.api import velero
from foresail.api.instants import stamp
from foresail.api.marks import NAMESPACE_UIDS, PROTECTION_CLASS
from foresail.api.nonadmin import NON_ADMIN_DOWNLOAD_REQUEST, NON_ADMIN_RESTORE
from foresail.api.policy import SELF_SERVICE_POLICY
from foresail.api.protection import PROTECTION_CLASS as CLASS
from foresail.plan import Key
from foresail.selfservice.access.contents import ContentKind, Contents
from foresail.selfservice.results.file import Lines
from foresail.selfservice.results.view import Found
from tests.worlds import virtual_time
from tests.worlds.garbage import NAMESPACE
from tests.worlds.process import Moment
from tests.worlds.tenancy import VELERO, Tenancy, asked_by_tenant
from tests.worlds.test_selfservice_paths import NAR, tell
from tests.worlds.world import done

POINT = "gold-1-20260101010000-0a1b2c3d"
BUCKET = "main"
HELD = Contents(
    kinds=(ContentKind("", "ConfigMap"), ContentKind("", "PersistentVolumeClaim"), ContentKind("", "Pod")),
    counts=(2, 1, 1),
)
Act = Callable[[Tenancy], object]


def uid_of(tenancy: Tenancy, namespace: str) -> str:
    return str(tenancy.world.history.present(NAMESPACE)[Key("", namespace)]["metadata"]["uid"])


def classify(tenancy: Tenancy, name: str = "gold", *, by_tenants: bool = True) -> None:
    spec = {"schedule": "0 1 * * *", "restore": {"byTenants": by_tenants}}
    if Key("", name) in tenancy.world.history.present(CLASS):
        done(tenancy.world.merge(CLASS, Key("", name), {"spec": spec}, "admin"))
    else:
        done(tenancy.world.create(CLASS, {"metadata": {"name": name}, "spec": spec}, "admin"))


def taken(tenancy: Tenancy, name: str = POINT, of: dict[str, str] | None = None, **changes: Any) -> None:  # noqa: ANN401
    """Let a Schedule of a class have taken a backup of red and blue."""
    uids = {"red": uid_of(tenancy, "red"), "blue": uid_of(tenancy, "blue")} if of is None else of
    annotations = {PROTECTION_CLASS: "gold", NAMESPACE_UIDS: msgspec.json.encode(uids).decode()}
    annotations |= changes.pop("annotations", {})
    ended = tenancy.clock() + timedelta(minutes=1)
    status = {
        "phase": velero.COMPLETED,
        "expiration": stamp(tenancy.clock() + timedelta(days=30)),
        "completionTimestamp": stamp(ended),
        **changes,
    }
    body = {
        "metadata": {"name": name, "annotations": annotations, "labels": {velero.SCHEDULE_LABEL: "gold-1"}},
        "spec": {"storageLocation": BUCKET, "includedNamespaces": sorted(uids)},
        "status": status,
    }
    done(tenancy.world.create(velero.BACKUP, body, "schedules", VELERO))


def ask(tenancy: Tenancy, key: Key = NAR, point: str = POINT, **spec: Any) -> None:  # noqa: ANN401 - JSON
    body = {"metadata": asked_by_tenant(key.name), "spec": {"restoreSpec": spec, "fromProtection": {"backup": point}}}
    done(tenancy.world.create(NON_ADMIN_RESTORE, body, "tenant", key.namespace))


def ready(tenancy: Tenancy) -> None:
    tenancy.make_location(BUCKET)
    tenancy.reviews.held = HELD
    classify(tenancy)
    taken(tenancy)


def made(tenancy: Tenancy, key: Key = NAR) -> dict[str, Any]:
    found = tenancy.made_for(key, NON_ADMIN_RESTORE)
    assert found is not None, tenancy.status(key, NON_ADMIN_RESTORE)
    return found


def refused(tenancy: Tenancy, key: Key = NAR) -> tuple[str, str]:
    assert tenancy.velero_objects(velero.RESTORE) == {}
    status, reason, message = tenancy.condition(key, "Accepted", NON_ADMIN_RESTORE)
    assert status == "False", tenancy.status(key, NON_ADMIN_RESTORE)
    return reason, message


def test_a_team_gets_its_own_namespace_from_a_backup_that_others_share() -> None:
    async def story(tenancy: Tenancy) -> None:
        ready(tenancy)
        ask(tenancy)
        await tenancy.settle(30)
        found = made(tenancy)
        spec = found["spec"]
        assert spec["backupName"] == POINT
        assert spec["includedNamespaces"] == ["red"]
        assert "namespaceMapping" not in spec
        assert not spec.get("includeClusterResources")
        assert "pods" not in spec["includedResources"]
        assert "pods" in spec["excludedResources"]
        assert {"configmaps", "persistentvolumeclaims"} <= set(spec["includedResources"])
        assert found["metadata"]["annotations"][PROTECTION_CLASS] == "gold"
        assert {namespace for _, _, namespace in tenancy.reviews.asked} == {"red"}
        assert [wish.options.is_shared for wish in tenancy.reviews.read] == [True]
        progress = {"totalItems": 400, "itemsRestored": 400}
        tenancy.velero_says(NAR, velero.COMPLETED, NON_ADMIN_RESTORE, progress=progress, warnings=1)
        await tenancy.settle(30)
        assert tenancy.condition(NAR, "Succeeded", NON_ADMIN_RESTORE)[0] == "True"
        mirrored = tenancy.status(NAR, NON_ADMIN_RESTORE)["veleroRestore"]["status"]
        assert mirrored["warnings"] == 1
        assert "progress" not in mirrored, "Velero counts the volumes of the others too"

    tell(story)


def test_both_teams_of_a_group_restore_their_own() -> None:
    async def story(tenancy: Tenancy) -> None:
        ready(tenancy)
        other = Key("blue", "back")
        ask(tenancy)
        ask(tenancy, other)
        await tenancy.settle(30)
        assert made(tenancy)["spec"]["includedNamespaces"] == ["red"]
        assert made(tenancy, other)["spec"]["includedNamespaces"] == ["blue"]
        assert {wish.options.namespace for wish in tenancy.reviews.read} == {"red", "blue"}, "each reads its own"

    tell(story)


def without_the_class(tenancy: Tenancy) -> None:
    tenancy.world.delete(CLASS, Key("", "gold"))


def rewritten(tenancy: Tenancy, **changes: Any) -> None:  # noqa: ANN401 - JSON
    tenancy.world.delete(velero.BACKUP, Key(VELERO, POINT))
    taken(tenancy, **changes)


HINDRANCES: dict[str, tuple[Act, str, str]] = {
    "the class never let teams restore": (lambda it: classify(it, by_tenants=False), "PolicyViolation", "byTenants"),
    "the class is gone": (without_the_class, "PolicyViolation", "byTenants"),
    "the backup is of an earlier namespace of that name": (
        lambda it: rewritten(it, of={"red": "an earlier one", "blue": uid_of(it, "blue")}),
        "InvalidRestoreSpec",
        "is no backup of namespace red",
    ),
    "the backup is of others only": (
        lambda it: rewritten(it, of={"blue": uid_of(it, "blue")}),
        "InvalidRestoreSpec",
        "is no backup of namespace red",
    ),
    "the backup says nothing of its namespaces": (
        lambda it: rewritten(it, annotations={NAMESPACE_UIDS: ""}),
        "InvalidRestoreSpec",
        "is no backup of namespace red",
    ),
    "the backup is of no class": (
        lambda it: rewritten(it, annotations={PROTECTION_CLASS: ""}),
        "InvalidRestoreSpec",
        "is no backup of namespace red",
    ),
    "the backup was made for a tenant": (
        lambda it: rewritten(
            it,
            annotations={
                "openshift.io/oadp-nab-origin-name": "shop",
                "openshift.io/oadp-nab-origin-namespace": "blue",
            },
        ),
        "InvalidRestoreSpec",
        "is no backup of namespace red",
    ),
    "the backup came from the bucket": (
        lambda it: rewritten(it, completionTimestamp="2025-12-31T00:00:00Z"),
        "InvalidRestoreSpec",
        "not trusted",
    ),
    "the backup has expired": (
        lambda it: rewritten(it, expiration=stamp(it.clock())),
        "BackupExpired",
        "restore from another backup",
    ),
    "the backup has failed": (lambda it: rewritten(it, phase="Failed"), "InvalidRestoreSpec", "is Failed"),
    "the backup is being deleted": (lambda it: rewritten(it, phase="Deleting"), "InvalidRestoreSpec", "is Deleting"),
    "the backup still runs": (lambda it: rewritten(it, phase="InProgress"), "BackupNotReady", "is InProgress"),
    "its location is gone": (
        lambda it: done(it.world.delete(velero.LOCATION, Key(VELERO, BUCKET))),
        "LocationUnavailable",
        "storage location",
    ),
}


@pytest.mark.parametrize("name", HINDRANCES)
def test_what_is_not_a_point_of_the_namespace_is_not_restored(name: str) -> None:
    hinder, reason, words = HINDRANCES[name]

    async def story(tenancy: Tenancy) -> None:
        ready(tenancy)
        await tenancy.settle(5)
        hinder(tenancy)
        await tenancy.settle(5)
        ask(tenancy)
        await tenancy.settle(20)
        found, message = refused(tenancy)
        assert (found, words in message) == (reason, True), message
        assert "blue" not in message, "nothing of the others of the group is told"

    tell(story)


def test_who_creates_a_namespace_again_gets_nothing_of_the_former_owner() -> None:
    async def story(tenancy: Tenancy) -> None:
        ready(tenancy)
        tenancy.delete_namespace("red")
        await tenancy.settle(60)
        labels = {"foresail.dev/self-service": "enabled"}
        done(tenancy.world.create(NAMESPACE, {"metadata": {"name": "red", "labels": labels}}, "admin"))
        ask(tenancy)
        await tenancy.settle(20)
        assert "is no backup of namespace red" in refused(tenancy)[1]

    tell(story)


def test_a_backup_of_others_and_one_that_does_not_exist_are_told_in_the_same_words() -> None:
    async def story(tenancy: Tenancy) -> None:
        ready(tenancy)
        rewritten(tenancy, of={"blue": uid_of(tenancy, "blue")}, phase="InProgress")
        ask(tenancy)
        ask(tenancy, Key("red", "other"), point="gold-1-20260102010000-0a1b2c3d")
        await tenancy.settle(20)
        first, second = refused(tenancy)[1], refused(tenancy, Key("red", "other"))[1]
        assert first.replace(POINT, "X") == second.replace("gold-1-20260102010000-0a1b2c3d", "X")

    tell(story)


ASKED_TOO_MUCH: dict[str, tuple[dict[str, Any], str]] = {
    "another backup beside it": ({"backupName": "shop"}, "name a backup each"),
    "another namespace": ({"namespaceMapping": {"red": "blue"}}, "restores namespace red only"),
    "a namespace of the group": ({"includedNamespaces": ["blue"]}, "includedNamespaces is restricted"),
    "both namespaces": ({"includedNamespaces": ["red", "blue"]}, "includedNamespaces is restricted"),
    "all namespaces": ({"includedNamespaces": ["*"]}, "includedNamespaces is restricted"),
    "objects of the cluster": ({"includeClusterResources": True}, "includeClusterResources is restricted"),
    "hooks": ({"hooks": {"resources": [{"name": "x"}]}}, "remove spec.restoreSpec.hooks"),
    "pods alone": ({"includedResources": ["pods"]}, "Pods do not come back"),
    "a schedule": ({"scheduleName": "gold-1"}, "scheduleName is restricted"),
}


@pytest.mark.parametrize("name", ASKED_TOO_MUCH)
def test_a_restore_from_a_class_asks_for_its_own_namespace_only(name: str) -> None:
    spec, words = ASKED_TOO_MUCH[name]

    async def story(tenancy: Tenancy) -> None:
        ready(tenancy)
        restore = {"intoOtherNamespaces": "Allowed"}
        done(tenancy.world.merge(SELF_SERVICE_POLICY, Key("", "default"), {"spec": {"restore": restore}}, "admin"))
        ask(tenancy, **spec)
        await tenancy.settle(20)
        assert words in refused(tenancy)[1]

    tell(story)


def test_a_restore_that_waits_is_withdrawn_when_the_class_is_closed() -> None:
    async def story(tenancy: Tenancy) -> None:
        ready(tenancy)
        ask(tenancy)
        await tenancy.settle(30)
        assert made(tenancy)["spec"]["backupName"] == POINT
        classify(tenancy, by_tenants=False)
        await tenancy.settle(10)
        assert tenancy.velero_objects(velero.RESTORE) == {}
        assert tenancy.condition(NAR, "Succeeded", NON_ADMIN_RESTORE)[1] == "RestoreWithdrawn"
        classify(tenancy)
        await tenancy.settle(30)
        assert tenancy.velero_objects(velero.RESTORE) == {}, "withdrawn is final"

    tell(story)


def test_a_restore_waits_for_a_backup_that_runs_and_goes_on_when_that_has_ended() -> None:
    async def story(tenancy: Tenancy) -> None:
        ready(tenancy)
        rewritten(tenancy, phase="InProgress")
        ask(tenancy)
        await tenancy.settle(10)
        assert refused(tenancy)[0] == "BackupNotReady"
        tenancy.world.merge(velero.BACKUP, Key(VELERO, POINT), {"status": {"phase": velero.COMPLETED}}, "velero")
        await tenancy.settle(30)
        assert made(tenancy)["spec"]["includedNamespaces"] == ["red"]

    tell(story)


def test_kinds_that_the_requester_may_not_create_stay_out() -> None:
    async def story(tenancy: Tenancy) -> None:
        ready(tenancy)
        done(
            tenancy.world.merge(
                SELF_SERVICE_POLICY, Key("", "default"), {"spec": {"restore": {"authorization": "Policy"}}}, "admin"
            )
        )
        tenancy.reviews.may = lambda _user, _verb, resource, _namespace: resource == "configmaps"
        ask(tenancy)
        await tenancy.settle(30)
        assert made(tenancy)["spec"]["includedResources"] == ["configmaps"], "whatever the policy says"

    tell(story)


def test_claims_whose_files_only_pods_would_bring_are_not_restored_empty() -> None:
    async def story(tenancy: Tenancy) -> None:
        ready(tenancy)
        tenancy.reviews.held = msgspec.structs.replace(HELD, copied=("data",))
        ask(tenancy)
        await tenancy.settle(30)
        reason, message = refused(tenancy)
        assert (reason, "claim data" in message) == ("PolicyViolation", True)
        other = Key("red", "without-claims")
        ask(tenancy, other, excludedResources=["persistentvolumeclaims"])
        await tenancy.settle(30)
        assert "persistentvolumeclaims" in made(tenancy, other)["spec"]["excludedResources"]

    tell(story)


def test_the_files_of_such_a_restore_are_for_administrators() -> None:
    async def story(tenancy: Tenancy) -> None:
        ready(tenancy)
        ask(tenancy)
        await tenancy.settle(30)
        tenancy.velero_says(NAR, velero.COMPLETED, NON_ADMIN_RESTORE)
        for target in ("RestoreLog", "RestoreResults", "RestoreResourceList", "RestoreItemOperations"):
            tenancy.download(Key("red", target.lower()), target, NAR.name)
        await tenancy.settle(30)
        for target in ("RestoreLog", "RestoreResults", "RestoreResourceList", "RestoreItemOperations"):
            said = tenancy.condition(Key("red", target.lower()), "Processed", NON_ADMIN_DOWNLOAD_REQUEST)
            assert said[1] == "TargetNotServed", said
        names = [name for name in tenancy.velero_objects(velero.DOWNLOAD_REQUEST) if name.startswith("nadr-")]
        assert names == []

    tell(story)


def test_what_failed_is_told_of_the_own_namespace_alone() -> None:
    async def story(tenancy: Tenancy) -> None:
        ready(tenancy)
        tenancy.results = Found(Lines(("configmaps a: no",), others=7))
        ask(tenancy)
        await tenancy.settle(30)
        tenancy.velero_says(NAR, velero.PARTIALLY_FAILED, NON_ADMIN_RESTORE, errors=8)
        await tenancy.settle(5)
        tenancy.velero_answers()
        await tenancy.settle(30)
        message = tenancy.condition(NAR, "Succeeded", NON_ADMIN_RESTORE)[2]
        assert "configmaps a: no" in message
        assert "without a namespace" not in message
        assert "--results" not in message
        assert [wanted.namespace for wanted in tenancy.read] == ["red"]

    tell(story)


@pytest.mark.repeats
@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
def test_a_death_at_any_write_of_such_a_restore_is_made_good(after: bool, figure: Callable[[str], None]) -> None:
    def deaths(write: int) -> int:
        async def live() -> int:
            tenancy = Tenancy()
            ready(tenancy)
            running = asyncio.create_task(tenancy.keep_running([Moment(after=after, write=write)], 1))
            working = asyncio.create_task(tenancy.velero_works())
            ask(tenancy)
            ask(tenancy, Key("blue", "back"))
            await tenancy.settle(60)
            for key in (NAR, Key("blue", "back")):
                assert made(tenancy, key)["spec"]["includedNamespaces"] == [key.namespace]
                assert tenancy.condition(key, "Succeeded", NON_ADMIN_RESTORE)[0] == "True"
            tenancy.check()
            for task in (running, working):
                task.cancel()
            await asyncio.gather(running, working, return_exceptions=True)
            await tenancy.stop()
            return tenancy.deaths

        return virtual_time.run(live())

    number = 0
    while deaths(number + 1):
        number += 1
    assert number >= 5
    figure(f"self-service, from protection: {number} deaths {'after' if after else 'before'} a write")
