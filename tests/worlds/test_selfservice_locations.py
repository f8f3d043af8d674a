"""Tenants' own locations: approval, credentials, revocation and deletion, and a death at every write."""

from collections.abc import Awaitable, Callable

import pytest

from foresail.api import core, velero
from foresail.api.marks import REFRESH, REQUESTER, REQUESTER_GROUPS
from foresail.api.nonadmin import NON_ADMIN_BACKUP, NON_ADMIN_LOCATION, NON_ADMIN_RESTORE
from foresail.api.policy import SELF_SERVICE_POLICY
from foresail.plan import Key
from tests.worlds.own_locations import FIRST, KEYS, OWN, SECOND, OwnLocations, live
from tests.worlds.process import Moment
from tests.worlds.reviews import everything
from tests.worlds.tenancy import VELERO
from tests.worlds.virtual_time import run
from tests.worlds.world import done

NAB, NAR = Key("red", "daily"), Key("red", "back")
GOLD = Key("red", "gold")
Story = Callable[[OwnLocations], Awaitable[None]]


async def opened(tenancy: OwnLocations) -> str:
    """Let a tenant have a location; return its name in Velero's namespace."""
    tenancy.write_secret()
    tenancy.ask()
    await tenancy.settle(5)
    tenancy.decide("approve")
    await tenancy.settle(5)
    made = tenancy.made()
    assert made is not None
    return str(made["metadata"]["name"])


async def stored(tenancy: OwnLocations) -> str:
    """Let a backup be in that location."""
    name = await opened(tenancy)
    tenancy.back_up(NAB, storageLocation=OWN.name)
    await tenancy.settle(5)
    tenancy.velero_says(NAB, "Completed", progress={"totalItems": 2})
    await tenancy.settle(5)
    return name


# Approval


def test_a_location_waits_for_approval_and_then_takes_the_backups_of_its_namespace_alone() -> None:
    async def story(tenancy: OwnLocations) -> None:
        tenancy.write_secret()
        uid = tenancy.ask()
        await tenancy.settle(5)
        assert tenancy.location()["phase"] == "New"
        assert tenancy.said("Accepted")[:2] == ("True", "BslSpecValidation")
        assert tenancy.said("ClusterAdminApproved")[:2] == ("False", "BslSpecApprovalPending")
        assert (tenancy.made(), tenancy.copied()) == (None, "")
        asked = tenancy.approval()
        assert asked is not None
        assert asked["spec"] == {"approvalDecision": "pending"}
        shown = asked["status"]["nonAdminBackupStorageLocation"]
        assert (shown["namespace"], shown["name"]) == ("red", "mine")
        assert shown["requestedSpec"]["objectStorage"] == {"bucket": "red-backups"}
        assert (
            shown["nacuuid"] == asked["metadata"]["name"] == tenancy.location()["veleroBackupStorageLocation"]["name"]
        )
        assert FIRST not in str(asked)

        tenancy.decide("approve")
        await tenancy.settle(5)
        assert tenancy.location()["phase"] == "Created"
        assert tenancy.said("ClusterAdminApproved")[:2] == ("True", "BslSpecApproved")
        assert tenancy.said("SecretSynced")[:2] == ("True", "SecretCreated")
        assert tenancy.said("BackupStorageLocationSynced")[:2] == ("True", "BackupStorageLocationCreated")
        assert tenancy.location()["veleroBackupStorageLocation"]["status"] == {"phase": "Available"}
        made = tenancy.made()
        assert made is not None
        assert made["metadata"]["annotations"]["foresail.dev/request-uid"] == uid
        assert made["spec"]["objectStorage"] == {"bucket": "red-backups", "prefix": "red"}
        assert (made["spec"]["accessMode"], made["spec"]["backupSyncPeriod"]) == ("ReadWrite", "0s")
        assert made["spec"]["credential"] == {"name": made["metadata"]["name"], "key": "cloud"}
        assert tenancy.copied() == KEYS.format(FIRST)

        tenancy.back_up(NAB, storageLocation=OWN.name)
        other = Key("blue", "theft")
        tenancy.back_up(other, storageLocation=OWN.name)
        third = Key("blue", "guess")
        tenancy.back_up(third, storageLocation=made["metadata"]["name"])
        await tenancy.settle(5)
        found = tenancy.made_for(NAB)
        assert found is not None
        assert found["spec"]["storageLocation"] == made["metadata"]["name"]
        for key in (other, third):
            assert tenancy.made_for(key) is None
            assert tenancy.condition(key, "Accepted")[1] == "LocationUnavailable"

    live(story)


def test_without_a_policy_that_allows_it_there_is_no_location_and_no_secret_is_read() -> None:
    async def story(tenancy: OwnLocations) -> None:
        tenancy.set_rules(allowed=False)
        tenancy.write_secret()
        tenancy.ask()
        await tenancy.settle(5)
        assert tenancy.said("Accepted")[:2] == ("False", "PolicyViolation")
        assert (tenancy.approval(), tenancy.made(), tenancy.secrets_read) == (None, None, 0)
        tenancy.set_rules(allowed=True, approval="NotRequired")
        await tenancy.settle(5)
        assert tenancy.location()["phase"] == "Created"

    live(story)


def test_a_rejected_location_is_never_made_and_an_approval_later_makes_it() -> None:
    async def story(tenancy: OwnLocations) -> None:
        tenancy.write_secret()
        tenancy.ask()
        await tenancy.settle(5)
        tenancy.decide("reject")
        await tenancy.settle(5)
        assert tenancy.location()["phase"] == "BackingOff"
        assert tenancy.said("ClusterAdminApproved")[:2] == ("False", "BslSpecRejected")
        assert (tenancy.made(), tenancy.copied()) == (None, "")
        tenancy.decide("approve")
        await tenancy.settle(5)
        assert tenancy.location()["phase"] == "Created"

    live(story)


@pytest.mark.parametrize("decision", ["pending", "reject"])
def test_a_revoked_location_takes_nothing_new_and_keeps_what_it_has_for_the_administrator(decision: str) -> None:
    async def story(tenancy: OwnLocations) -> None:
        name = await stored(tenancy)
        tenancy.decide(decision)
        await tenancy.settle(5)
        made = tenancy.made()
        assert made is not None
        assert made["spec"]["accessMode"] == "ReadOnly"
        assert tenancy.copied() == KEYS.format(FIRST), "the administrator restores with it"
        assert tenancy.location()["phase"] == "Created", "a phase never goes back"
        assert name in tenancy.velero_objects(velero.LOCATION)
        late = Key("red", "late")
        tenancy.back_up(late, storageLocation=OWN.name)
        tenancy.restore(NAR, NAB.name)
        await tenancy.settle(5)
        for key, kind in ((late, NON_ADMIN_BACKUP), (NAR, NON_ADMIN_RESTORE)):
            status, reason, message = tenancy.condition(key, "Accepted", kind)
            assert (status, reason) == ("False", "LocationUnavailable")
            assert "not approved any more" in message
        assert not tenancy.velero_objects(velero.RESTORE)
        tenancy.decide("approve")
        await tenancy.settle(5)
        assert tenancy.made_for(late) is not None
        assert tenancy.made_for(NAR, NON_ADMIN_RESTORE) is not None

    live(story)


@pytest.mark.parametrize("decision", ["pending", "reject"])
def test_an_approval_is_revoked_although_the_tenant_has_taken_the_secret_away(decision: str) -> None:
    async def story(tenancy: OwnLocations) -> None:
        await stored(tenancy)
        tenancy.granted.clear()
        await tenancy.settle(3700)
        assert tenancy.said("SecretSynced")[1] == "SecretSyncFailed"
        tenancy.decide(decision)
        await tenancy.settle(5)
        made = tenancy.made()
        assert made is not None
        assert made["spec"]["accessMode"] == "ReadOnly"
        assert tenancy.said("ClusterAdminApproved")[0] == "False"
        late = Key("red", "late")
        tenancy.back_up(late, storageLocation=OWN.name)
        await tenancy.settle(5)
        assert "not approved any more" in tenancy.condition(late, "Accepted")[2]
        tenancy.granted.add(Key("red", "keys"))
        tenancy.decide("approve")
        await tenancy.settle(700)
        assert tenancy.made_for(late) is not None

    live(story)


def test_a_policy_that_no_longer_allows_locations_suspends_them() -> None:
    async def story(tenancy: OwnLocations) -> None:
        await opened(tenancy)
        tenancy.set_rules(allowed=False)
        await tenancy.settle(5)
        made = tenancy.made()
        assert made is not None
        assert made["spec"]["accessMode"] == "ReadOnly"
        tenancy.set_rules(allowed=True)
        await tenancy.settle(5)
        made = tenancy.made()
        assert made is not None
        assert made["spec"]["accessMode"] == "ReadWrite"

    live(story)


# Credentials


def test_changed_credentials_wait_for_another_approval_and_the_approved_ones_stay() -> None:
    async def story(tenancy: OwnLocations) -> None:
        await opened(tenancy)
        tenancy.write_secret(SECOND)
        await tenancy.settle(3700)  # nobody watches Secrets: it is read once an hour
        assert tenancy.copied() == KEYS.format(FIRST)
        assert tenancy.said("SecretSynced")[:2] == ("False", "BslSpecApprovalPending")
        asked = tenancy.approval()
        assert asked is not None
        assert asked["status"]["phase"] == "Pending"
        made = tenancy.made()
        assert made is not None
        assert made["spec"]["accessMode"] == "ReadWrite"
        seen = asked["status"]["nonAdminBackupStorageLocation"]["requestHash"]
        tenancy.decide("approve", approvedRequest=seen)
        await tenancy.settle(5)
        assert tenancy.copied() == KEYS.format(SECOND)
        assert tenancy.said("SecretSynced")[:2] == ("True", "SecretUpdated")

    live(story)


def test_an_approval_of_what_was_seen_does_not_approve_what_came_after() -> None:
    async def story(tenancy: OwnLocations) -> None:
        tenancy.write_secret()
        tenancy.ask()
        await tenancy.settle(5)
        asked = tenancy.approval()
        assert asked is not None
        seen = asked["status"]["nonAdminBackupStorageLocation"]["requestHash"]
        tenancy.write_secret(SECOND)
        body = {"metadata": {"annotations": {REFRESH: "1"}}}
        done(tenancy.world.merge(NON_ADMIN_LOCATION, OWN, body, "tenant"))
        await tenancy.settle(5)
        tenancy.decide("approve", approvedRequest=seen)
        await tenancy.settle(5)
        assert (tenancy.made(), tenancy.copied()) == (None, "")

    live(story)


def test_the_annotation_has_the_secret_read_at_once_and_without_approval_it_is_copied() -> None:
    async def story(tenancy: OwnLocations) -> None:
        tenancy.write_secret()
        tenancy.ask()
        await tenancy.settle(5)
        assert tenancy.copied() == KEYS.format(FIRST)
        tenancy.write_secret(SECOND)
        await tenancy.settle(5)
        assert tenancy.copied() == KEYS.format(FIRST)
        done(tenancy.world.merge(NON_ADMIN_LOCATION, OWN, {"metadata": {"annotations": {REFRESH: "1"}}}, "tenant"))
        await tenancy.settle(5)
        assert tenancy.copied() == KEYS.format(SECOND)
        tenancy.decide("reject")
        await tenancy.settle(5)
        made = tenancy.made()
        assert made is not None
        assert made["spec"]["accessMode"] == "ReadOnly", "an administrator can always reject"

    live(story, "NotRequired")


def test_an_idle_location_is_read_once_an_hour_and_nothing_is_written() -> None:
    async def story(tenancy: OwnLocations) -> None:
        await opened(tenancy)
        read, revision = tenancy.secrets_read, tenancy.world.history.revision
        await tenancy.settle(6 * 3600)
        assert tenancy.secrets_read - read == 6
        assert tenancy.world.history.revision == revision

    live(story)


@pytest.mark.parametrize(
    ("prepare", "word"),
    [
        (lambda tenancy: tenancy.granted.clear(), "The operator may not read Secret keys"),
        (lambda tenancy: setattr(tenancy.reviews, "may", lambda *_: False), "tenant may not read Secret keys"),
        (
            lambda tenancy: tenancy.write_secret(content="[default]\ncredential_process=/bin/sh\n"),
            "Key cloud of Secret keys in namespace red cannot be used",
        ),
    ],
)
def test_a_secret_that_cannot_be_used_is_reported_and_read_again_later(
    prepare: Callable[[OwnLocations], object], word: str
) -> None:
    async def story(tenancy: OwnLocations) -> None:
        tenancy.write_secret()
        prepare(tenancy)
        tenancy.ask()
        await tenancy.settle(5)
        status, reason, message = tenancy.said("SecretSynced")
        assert (status, reason) == ("False", "SecretSyncFailed")
        assert message.startswith(word)
        assert (tenancy.approval(), tenancy.made()) == (None, None)
        tenancy.granted.add(Key("red", "keys"))
        tenancy.reviews.may = lambda *_: True
        tenancy.write_secret(FIRST)
        await tenancy.settle(60)
        assert tenancy.approval() is not None

    live(story)


def test_credentials_that_can_be_read_at_last_are_no_problem_while_the_location_waits_for_approval() -> None:
    async def story(tenancy: OwnLocations) -> None:
        tenancy.write_secret()
        tenancy.granted.clear()
        tenancy.ask()
        await tenancy.settle(5)
        assert tenancy.said("SecretSynced")[:2] == ("False", "SecretSyncFailed")
        tenancy.granted.add(Key("red", "keys"))
        await tenancy.settle(60)
        assert tenancy.said("ClusterAdminApproved")[:2] == ("False", "BslSpecApprovalPending")
        assert tenancy.said("SecretSynced")[:2] == ("False", "BslSpecApprovalPending")
        assert "may not read" not in tenancy.said("SecretSynced")[2]
        tenancy.decide("approve")
        await tenancy.settle(5)
        assert tenancy.said("SecretSynced")[0] == "True"

    live(story)


def test_a_location_without_credential_or_secret_harms_nobody() -> None:
    async def story(tenancy: OwnLocations) -> None:
        tenancy.ask(credential=None)
        tenancy.ask(Key("red", "no-secret"))
        await tenancy.settle(5)
        assert "credential is not set" in tenancy.said("Accepted")[2]
        assert "does not exist" in tenancy.said("SecretSynced", Key("red", "no-secret"))[2]
        tenancy.write_secret(namespace="blue")
        tenancy.ask(Key("blue", "good"))
        await tenancy.settle(5)
        assert tenancy.approval(Key("blue", "good")) is not None

    live(story)


def test_the_policy_bounds_how_many_locations_a_namespace_has() -> None:
    async def story(tenancy: OwnLocations) -> None:
        tenancy.write_secret()
        for name in ("a", "b", "c"):
            tenancy.ask(Key("red", name))
        await tenancy.settle(5)
        assert tenancy.said("Accepted", Key("red", "c"))[:2] == ("False", "QuotaExceeded")
        tenancy.delete(Key("red", "a"), NON_ADMIN_LOCATION)
        await tenancy.settle(5)
        assert tenancy.approval(Key("red", "c")) is not None

    live(story, maximum=2)


# Restores from a bucket that its tenant can rewrite


def test_a_restore_brings_back_neither_pods_nor_volumes() -> None:
    async def story(tenancy: OwnLocations) -> None:
        await stored(tenancy)
        tenancy.restore(NAR, NAB.name)
        await tenancy.settle(5)
        made = tenancy.made_for(NAR, NON_ADMIN_RESTORE)
        assert made is not None
        assert made["spec"]["includedResources"] == ["configmaps", "deployments.apps"]
        assert {"pods", "persistentvolumes", "persistentvolumeclaims"} <= set(made["spec"]["excludedResources"])
        assert made["spec"]["restorePVs"] is False
        only = Key("red", "only-pods")
        tenancy.restore(only, NAB.name, includedResources=["pods"])
        await tenancy.settle(5)
        assert tenancy.condition(only, "Accepted", NON_ADMIN_RESTORE)[1] == "PolicyViolation"

    live(story)


def test_a_policy_can_allow_everything_or_refuse_restores() -> None:
    async def story(tenancy: OwnLocations) -> None:
        await stored(tenancy)
        tenancy.set_rules(restores="Refused")
        await tenancy.settle(1)
        tenancy.restore(NAR, NAB.name)
        await tenancy.settle(5)
        assert tenancy.condition(NAR, "Accepted", NON_ADMIN_RESTORE)[1] == "PolicyViolation"
        tenancy.set_rules(restores="Full")
        await tenancy.settle(5)
        assert tenancy.made_for(NAR, NON_ADMIN_RESTORE) is None
        tenancy.edit(NAR, NON_ADMIN_RESTORE, retriedAt=tenancy.now())
        await tenancy.settle(5)
        made = tenancy.made_for(NAR, NON_ADMIN_RESTORE)
        assert made is not None
        assert "pods" in made["spec"]["includedResources"]

    live(story)


def test_a_restore_waits_while_nobody_knows_whose_its_location_is() -> None:
    async def story(tenancy: OwnLocations) -> None:
        place = Key(VELERO, await stored(tenancy))
        done(tenancy.world.merge(velero.LOCATION, place, {"status": {"lastSyncedTime": "unreadable"}}, "velero"))
        await tenancy.settle(1)
        tenancy.restore(NAR, NAB.name)
        await tenancy.settle(5)
        assert tenancy.made_for(NAR, NON_ADMIN_RESTORE) is None
        assert tenancy.condition(NAR, "Accepted", NON_ADMIN_RESTORE)[1] == "LocationUnavailable"
        done(tenancy.world.merge(velero.LOCATION, place, {"status": {"lastSyncedTime": None}}, "velero"))
        await tenancy.settle(5)
        made = tenancy.made_for(NAR, NON_ADMIN_RESTORE)
        assert made is not None
        assert "pods" in made["spec"]["excludedResources"]

    live(story)


@pytest.mark.parametrize("restores", ["Limited", "Full"])
def test_a_restore_brings_back_only_what_its_requester_may_create_whatever_the_policy_says(restores: str) -> None:
    async def story(tenancy: OwnLocations) -> None:
        rules = {"authorization": "Policy", "volumes": "AsIs"}
        done(tenancy.world.merge(SELF_SERVICE_POLICY, Key("", "default"), {"spec": {"restore": rules}}, "admin"))
        tenancy.reviews.may = lambda _user, _verb, resource, _namespace: resource != "deployments.apps"
        await stored(tenancy)
        tenancy.restore(NAR, NAB.name, includedResources=["deployments.apps"])
        await tenancy.settle(30)
        assert tenancy.made_for(NAR, NON_ADMIN_RESTORE) is None
        assert tenancy.condition(NAR, "Authorized", NON_ADMIN_RESTORE)[:2] == ("False", "AccessDenied")
        tenancy.reviews.may = everything
        tenancy.edit(NAR, NON_ADMIN_RESTORE, retriedAt=tenancy.now())
        await tenancy.settle(30)
        made = tenancy.made_for(NAR, NON_ADMIN_RESTORE)
        assert made is not None, "new access was not noticed"
        assert made["spec"]["includedResources"] == ["deployments.apps"]

    live(story, restores=restores)


def test_a_restore_from_an_own_location_needs_a_requester_whatever_the_policy_says() -> None:
    async def story(tenancy: OwnLocations) -> None:
        rules = {"authorization": "Policy"}
        done(tenancy.world.merge(SELF_SERVICE_POLICY, Key("", "default"), {"spec": {"restore": rules}}, "admin"))
        await stored(tenancy)
        spec = {"restoreSpec": {"backupName": NAB.name}}
        body = {"metadata": {"name": NAR.name}, "spec": spec}
        done(tenancy.world.create(NON_ADMIN_RESTORE, body, "tenant", NAR.namespace))
        await tenancy.settle(5)
        assert tenancy.made_for(NAR, NON_ADMIN_RESTORE) is None
        assert tenancy.condition(NAR, "Accepted", NON_ADMIN_RESTORE)[1] == "RequesterUnknown"

    live(story)


# Secrets: whoever reads the bucket reads them


def _no_secrets(_user: str, verb: str, resource: str, namespace: str) -> bool:
    return (verb, resource, namespace) != ("get", "secrets", "red")


@pytest.mark.parametrize(
    "asked", [{}, {"includedResources": ["configmaps", "Secrets", "secret"]}, {"includedResources": ["*"]}]
)
def test_a_backup_in_an_own_bucket_leaves_out_secrets_that_its_requester_may_not_read(
    asked: dict[str, list[str]],
) -> None:
    async def story(tenancy: OwnLocations) -> None:
        await opened(tenancy)
        tenancy.reviews.may = _no_secrets
        tenancy.back_up(NAB, storageLocation=OWN.name, **asked)
        await tenancy.settle(10)
        made = tenancy.made_for(NAB)
        assert made is not None
        spec = made["spec"]
        assert "secrets" in spec["excludedNamespaceScopedResources"]
        included = spec.get("includedNamespaceScopedResources") or []
        assert {each.lower() for each in included}.isdisjoint({"secret", "secrets"}), (
            "Velero refuses a kind in both lists"
        )
        status, reason, message = tenancy.condition(NAB, "Authorized")
        assert (status, reason) == ("True", "KindsLeftOut")
        assert "may not read them: secrets" in message
        tenancy.velero_says(NAB, "Completed", progress={"totalItems": 2})
        await tenancy.settle(5)
        assert tenancy.condition(NAB, "Authorized")[:2] == ("True", "KindsLeftOut"), "it stays said"

    live(story)


@pytest.mark.parametrize("name", ["secrets", "secret", "Secrets", "SECRET", "secrets.", "secrets.v1"])
def test_a_backup_of_secrets_alone_in_an_own_bucket_needs_a_requester_who_may_read_them(name: str) -> None:
    async def story(tenancy: OwnLocations) -> None:
        await opened(tenancy)
        tenancy.reviews.may = _no_secrets
        tenancy.back_up(NAB, storageLocation=OWN.name, includedResources=[name])
        await tenancy.settle(60)
        assert tenancy.made_for(NAB) is None
        assert tenancy.condition(NAB, "Accepted")[0] == "False"

    live(story)


def test_a_backup_in_an_own_bucket_has_the_secrets_of_a_requester_who_may_read_them() -> None:
    async def story(tenancy: OwnLocations) -> None:
        await opened(tenancy)
        tenancy.back_up(NAB, storageLocation=OWN.name)
        await tenancy.settle(10)
        made = tenancy.made_for(NAB)
        assert made is not None
        assert "secrets" not in made["spec"].get("excludedNamespaceScopedResources", [])
        assert ("get", "secrets", "red") in tenancy.reviews.asked

    live(story)


def test_a_backup_in_an_own_bucket_without_a_requester_leaves_out_secrets() -> None:
    async def story(tenancy: OwnLocations) -> None:
        await opened(tenancy)
        body = {"metadata": {"name": NAB.name}, "spec": {"backupSpec": {"storageLocation": OWN.name}}}
        done(tenancy.world.create(NON_ADMIN_BACKUP, body, "tenant", NAB.namespace))
        await tenancy.settle(10)
        made = tenancy.made_for(NAB)
        assert made is not None
        assert "secrets" in made["spec"]["excludedNamespaceScopedResources"]

    live(story)


def _reads_secrets(reader: str) -> Callable[[str, str, str, str], bool]:
    def may(user: str, verb: str, resource: str, _namespace: str) -> bool:
        return user == reader or (verb, resource) != ("get", "secrets")

    return may


@pytest.mark.parametrize(("reader", "denied"), [("alice", "tenant"), ("tenant", "alice"), ("", "alice")])
def test_a_backup_in_an_own_bucket_has_secrets_only_if_both_its_requester_and_the_locations_may_read_them(
    reader: str, denied: str
) -> None:
    async def story(tenancy: OwnLocations) -> None:
        await opened(tenancy)
        tenancy.reviews.may = _reads_secrets(reader)
        metadata = {"name": NAB.name, "annotations": {REQUESTER: "alice", REQUESTER_GROUPS: "system:authenticated"}}
        body = {"metadata": metadata, "spec": {"backupSpec": {"storageLocation": OWN.name}}}
        done(tenancy.world.create(NON_ADMIN_BACKUP, body, "alice", NAB.namespace))
        await tenancy.settle(10)
        made = tenancy.made_for(NAB)
        assert made is not None
        assert "secrets" in made["spec"]["excludedNamespaceScopedResources"]
        status, reason, message = tenancy.condition(NAB, "Authorized")
        assert (status, reason) == ("True", "KindsLeftOut")
        assert denied in message
        assert len(message.split()) <= 30

    live(story)


@pytest.mark.parametrize(
    "kinds", [["secrets", "nodes"], ["secrets", "nodes", "unknowns"], ["Secret", "nodes", "nodes"]]
)
def test_without_its_secrets_a_backup_of_cluster_scoped_kinds_alone_is_refused(kinds: list[str]) -> None:
    async def story(tenancy: OwnLocations) -> None:
        await opened(tenancy)
        tenancy.reviews.may = _no_secrets
        tenancy.back_up(NAB, storageLocation=OWN.name, includedResources=kinds)
        await tenancy.settle(60)
        assert tenancy.made_for(NAB) is None, "Velero would back up every kind of the namespace"
        assert tenancy.condition(NAB, "Accepted")[0] == "False"

    live(story)


def test_a_backup_without_its_secrets_names_the_kinds_that_are_not_served_too() -> None:
    async def story(tenancy: OwnLocations) -> None:
        await opened(tenancy)
        tenancy.reviews.may = _no_secrets
        tenancy.back_up(NAB, storageLocation=OWN.name, includedResources=["secrets", "configmaps", "unknowns"])
        await tenancy.settle(10)
        assert tenancy.made_for(NAB) is not None
        message = tenancy.condition(NAB, "Authorized")[2]
        assert "secrets" in message
        assert "unknowns" in message

    live(story)


def test_nobody_is_asked_about_secrets_for_the_administrators_bucket_or_a_backup_without_them() -> None:
    async def story(tenancy: OwnLocations) -> None:
        await opened(tenancy)
        tenancy.reviews.may = _no_secrets
        tenancy.reviews.asked.clear()
        tenancy.back_up(NAB)
        tenancy.back_up(Key("red", "named"), storageLocation=OWN.name, includedResources=["configmaps"])
        tenancy.back_up(Key("red", "without"), storageLocation=OWN.name, excludedResources=["secrets"])
        await tenancy.settle(10)
        for name in ("daily", "named", "without"):
            assert tenancy.made_for(Key("red", name)) is not None
        assert tenancy.reviews.asked == []

    live(story)


# Names of administrators' locations


def test_an_own_location_never_gets_the_backups_that_name_a_location_of_the_administrator() -> None:
    async def story(tenancy: OwnLocations) -> None:
        tenancy.make_location("gold", provider="aws")
        tenancy.allow_locations("gold")
        await tenancy.settle(1)
        tenancy.edit_location("gold", velero.AVAILABLE)
        tenancy.write_secret()
        tenancy.ask(GOLD)
        await tenancy.settle(5)
        assert tenancy.said("Accepted", GOLD)[:2] == ("False", "LocationNameTaken")
        assert tenancy.made(GOLD) is None
        tenancy.back_up(NAB, storageLocation="gold")
        await tenancy.settle(5)
        found = tenancy.made_for(NAB)
        assert found is not None
        assert found["spec"]["storageLocation"] == "gold"

    live(story, "NotRequired")


def test_an_own_location_is_read_only_while_an_administrator_has_one_of_its_name() -> None:
    async def story(tenancy: OwnLocations) -> None:
        tenancy.write_secret()
        tenancy.ask(GOLD)
        await tenancy.settle(5)
        made = tenancy.made(GOLD)
        assert made is not None
        tenancy.make_location("gold", provider="aws")
        await tenancy.settle(5)
        assert tenancy.said("Accepted", GOLD)[:2] == ("False", "LocationNameTaken")
        assert tenancy.velero_objects(velero.LOCATION)[made["metadata"]["name"]]["spec"]["accessMode"] == "ReadOnly"
        tenancy.back_up(NAB, storageLocation="gold")
        await tenancy.settle(5)
        assert tenancy.condition(NAB, "Accepted")[:2] == ("False", "LocationUnavailable")
        done(tenancy.world.delete(velero.LOCATION, Key(VELERO, "gold")))
        await tenancy.settle(5)
        found = tenancy.made_for(NAB)
        assert found is not None, "the name is free again"
        assert found["spec"]["storageLocation"] == made["metadata"]["name"]

    live(story, "NotRequired")


def test_a_name_that_the_policy_lists_is_the_administrators_even_if_that_location_does_not_exist() -> None:
    async def story(tenancy: OwnLocations) -> None:
        tenancy.write_secret()
        tenancy.ask(GOLD)
        await tenancy.settle(5)
        assert tenancy.made(GOLD) is not None
        tenancy.allow_locations("gold")
        await tenancy.settle(5)
        assert tenancy.said("Accepted", GOLD)[:2] == ("False", "LocationNameTaken")
        tenancy.back_up(NAB, storageLocation="gold")
        await tenancy.settle(5)
        found = tenancy.made_for(NAB)
        assert found is not None
        assert found["spec"]["storageLocation"] == "gold", "Velero reports that it does not exist"

    live(story, "NotRequired")


def test_a_location_of_the_administrator_that_cannot_be_read_keeps_its_name() -> None:
    async def story(tenancy: OwnLocations) -> None:
        tenancy.make_location("gold", provider="aws")
        body = {"status": {"lastSyncedTime": "unreadable"}}
        done(tenancy.world.merge(velero.LOCATION, Key(VELERO, "gold"), body, "velero"))
        tenancy.write_secret()
        tenancy.ask(GOLD)
        await tenancy.settle(5)
        assert tenancy.said("Accepted", GOLD)[:2] == ("False", "LocationNameTaken")
        assert tenancy.made(GOLD) is None

    live(story, "NotRequired")


# Deletion


def test_a_deleted_location_takes_its_backups_and_its_credentials_with_it_and_no_data() -> None:
    async def story(tenancy: OwnLocations) -> None:
        await stored(tenancy)
        tenancy.delete(OWN, NON_ADMIN_LOCATION)
        await tenancy.settle(10)
        assert tenancy.request(OWN, NON_ADMIN_LOCATION) is None
        assert tenancy.request(NAB) is None
        assert (tenancy.approval(), tenancy.made(), tenancy.copied()) == (None, None, "")
        assert not tenancy.velero_objects(velero.BACKUP)
        assert not tenancy.velero_objects(velero.DELETE_REQUEST), "nobody asks Velero to delete data"

    live(story)


def test_velero_is_never_asked_to_delete_what_is_in_a_bucket_that_its_tenant_can_rewrite() -> None:
    async def story(tenancy: OwnLocations) -> None:
        await stored(tenancy)
        tenancy.edit(NAB, deleteBackup=True)
        await tenancy.settle(10)
        assert tenancy.request(NAB) is None
        assert not tenancy.velero_objects(velero.BACKUP)
        asked = [each for each in tenancy.world.history.happenings if each.kind == velero.DELETE_REQUEST]
        assert not asked, "Velero would act on the archive in the bucket with its own rights"

    live(story)


def test_a_backup_in_a_bucket_of_its_tenant_is_deleted_when_it_finishes() -> None:
    async def story(tenancy: OwnLocations) -> None:
        await opened(tenancy)
        tenancy.back_up(NAB, storageLocation=OWN.name)
        await tenancy.settle(5)
        tenancy.velero_says(NAB, "InProgress")
        tenancy.edit(NAB, deleteBackup=True)
        await tenancy.settle(5)
        assert tenancy.made_for(NAB) is not None
        message = tenancy.condition(NAB, "Deleting")[2]
        assert "deleted when it finishes" in message
        tenancy.velero_says(NAB, "Completed", progress={"totalItems": 2})
        await tenancy.settle(5)
        assert tenancy.request(NAB) is None

    live(story)


def test_a_policy_protects_a_backup_in_a_bucket_of_its_tenant_too() -> None:
    async def story(tenancy: OwnLocations) -> None:
        await stored(tenancy)
        rules = {"spec": {"deletion": {"minimumAge": "24h"}}}
        done(tenancy.world.merge(SELF_SERVICE_POLICY, Key("", "default"), rules, "admin"))
        await tenancy.settle(1)
        tenancy.edit(NAB, deleteBackup=True)
        await tenancy.settle(5)
        assert tenancy.condition(NAB, "Deleting")[:2] == ("False", "DeletionProtected")
        assert tenancy.made_for(NAB) is not None

    live(story)


def test_velero_never_expires_a_backup_in_a_bucket_of_its_tenant() -> None:
    async def story(tenancy: OwnLocations) -> None:
        await opened(tenancy)
        tenancy.back_up(NAB, storageLocation=OWN.name, ttl="1h")
        await tenancy.settle(5)
        made = tenancy.made_for(NAB)
        assert made is not None
        assert made["spec"]["ttl"] == "876000h"

    live(story)


def test_a_location_stays_for_the_administrator_while_backups_of_a_deleted_namespace_are_in_it() -> None:
    async def story(tenancy: OwnLocations) -> None:
        name = await stored(tenancy)
        tenancy.delete_namespace("red")
        await tenancy.settle(10)
        assert Key("", "red") not in tenancy.world.history.present(tenancy.world.kinds[-1])
        assert tenancy.velero_objects(velero.LOCATION)[name]["spec"]["accessMode"] == "ReadOnly"
        assert Key(VELERO, name) in tenancy.world.history.present(core.SECRET)
        assert tenancy.approval() is None

    live(story)


def test_a_location_of_the_same_name_inherits_neither_approval_nor_credentials() -> None:
    async def story(tenancy: OwnLocations) -> None:
        first = await opened(tenancy)
        tenancy.delete(OWN, NON_ADMIN_LOCATION)
        await tenancy.settle(10)
        tenancy.ask()
        await tenancy.settle(10)
        asked = tenancy.approval()
        assert asked is not None
        assert asked["metadata"]["name"] != first
        assert asked["spec"]["approvalDecision"] == "pending"
        assert tenancy.made() is None

    live(story)


def test_names_that_somebody_else_has_are_left_alone() -> None:
    async def story(tenancy: OwnLocations) -> None:
        tenancy.write_secret()
        tenancy.ask()
        await tenancy.settle(5)
        asked = tenancy.approval()
        assert asked is not None
        name = asked["metadata"]["name"]
        tenancy.make_location(name, provider="aws")
        tenancy.decide("approve")
        await tenancy.settle(5)
        assert tenancy.said("BackupStorageLocationSynced")[:2] == ("False", "BackupStorageLocationSyncError")
        assert tenancy.velero_objects(velero.LOCATION)[name]["spec"] == {"provider": "aws"}
        assert tenancy.copied() == ""

    live(story)


# A death at every write


@pytest.mark.parametrize("after", [False, True])
@pytest.mark.parametrize("number", range(1, 15))
def test_a_death_at_any_write_leaves_one_location_with_the_right_credentials_and_none_after_deletion(
    number: int, after: bool
) -> None:
    async def whole() -> None:
        tenancy = OwnLocations()
        died = False
        process = tenancy.start(Moment(after=after, write=number))
        tenancy.write_secret()
        tenancy.ask()

        async def go_on(seconds: float) -> None:
            nonlocal died, process
            for _ in range(int(seconds * 10)):
                await tenancy.settle(0.1)
                if process.died:
                    died = True
                    await process.kill()
                    process = tenancy.start()

        await go_on(5)
        tenancy.decide("approve")
        await go_on(5)
        assert tenancy.location()["phase"] == "Created"
        assert tenancy.copied() == KEYS.format(FIRST)
        tenancy.delete(OWN, NON_ADMIN_LOCATION)
        await go_on(5)
        assert tenancy.request(OWN, NON_ADMIN_LOCATION) is None
        assert (tenancy.approval(), tenancy.made(), tenancy.copied()) == (None, None, "")
        assert died or number > 13
        tenancy.check()
        await tenancy.stop()

    run(whole())
