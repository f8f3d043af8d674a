"""Restores into another namespace of the requester: what both namespaces must allow, and every way around it."""

from collections.abc import Callable
from typing import Any

import pytest

from foresail.api import velero
from foresail.api.marks import NAMESPACE_UID, TARGET_NAMESPACE_UID
from foresail.api.nonadmin import NON_ADMIN_RESTORE
from foresail.api.policy import SELF_SERVICE_POLICY
from foresail.plan import Key
from foresail.selfservice.access.contents import ContentKind, Contents, VolumeRow
from tests.worlds.garbage import NAMESPACE
from tests.worlds.tenancy import VELERO, Tenancy
from tests.worlds.test_selfservice_paths import NAB, NAR, backed_up, tell
from tests.worlds.world import done

INTO_BLUE = {"namespaceMapping": {"red": "blue"}}
ALLOWED = {"intoOtherNamespaces": "Allowed"}
CONFIG_MAPS, SECRETS, PODS = ContentKind("", "ConfigMap"), ContentKind("", "Secret"), ContentKind("", "Pod")
CLAIMS = ContentKind("", "PersistentVolumeClaim")
HELD = Contents(kinds=(CONFIG_MAPS, SECRETS), counts=(2, 2))

Act = Callable[[Tenancy], None]


def policy(tenancy: Tenancy, name: str = "default", **spec: Any) -> None:  # noqa: ANN401 - JSON
    done(tenancy.world.merge(SELF_SERVICE_POLICY, Key("", name), {"spec": spec}, "admin"))


def allow(tenancy: Tenancy) -> None:
    policy(tenancy, restore=ALLOWED)


def policy_of_blue(tenancy: Tenancy, **spec: Any) -> None:  # noqa: ANN401 - JSON
    """Give the target a policy of its own, which outranks the one of both."""
    tenancy.make_policy({}, "blue")
    label(tenancy, "blue", team="blue")
    policy(tenancy, "blue", namespaceSelector={"matchLabels": {"team": "blue"}}, priority=1, **spec)


def label(tenancy: Tenancy, namespace: str, **labels: str | None) -> None:
    done(tenancy.world.merge(NAMESPACE, Key("", namespace), {"metadata": {"labels": labels}}, "admin"))


def create_namespace(tenancy: Tenancy, name: str) -> None:
    labels = {"foresail.dev/self-service": "enabled"}
    done(tenancy.world.create(NAMESPACE, {"metadata": {"name": name, "labels": labels}}, "admin"))


async def ready(tenancy: Tenancy) -> None:
    allow(tenancy)
    tenancy.reviews.held = HELD
    await backed_up(tenancy)


async def asked(tenancy: Tenancy, **spec: Any) -> None:  # noqa: ANN401 - JSON
    tenancy.restore(NAR, NAB.name, **(spec or INTO_BLUE))
    await tenancy.settle(30)


def made(tenancy: Tenancy) -> dict[str, Any]:
    found = tenancy.made_for(NAR, NON_ADMIN_RESTORE)
    assert found is not None, tenancy.status(NAR, NON_ADMIN_RESTORE)
    return found


def refused(tenancy: Tenancy) -> tuple[str, str]:
    assert tenancy.velero_objects(velero.RESTORE) == {}
    status, reason, message = tenancy.condition(NAR, "Accepted", NON_ADMIN_RESTORE)
    assert status == "False", tenancy.status(NAR, NON_ADMIN_RESTORE)
    return reason, message


def uid_of(tenancy: Tenancy, namespace: str) -> str:
    return str(tenancy.world.history.present(NAMESPACE)[Key("", namespace)]["metadata"]["uid"])


def test_a_restore_goes_into_another_namespace_of_its_requester() -> None:
    async def story(tenancy: Tenancy) -> None:
        await ready(tenancy)
        await asked(tenancy)
        found = made(tenancy)
        assert found["spec"]["namespaceMapping"] == {"red": "blue"}
        assert found["spec"]["includedNamespaces"] == ["red"]
        assert found["spec"]["includedResources"] == ["configmaps", "secrets"]
        annotations = found["metadata"]["annotations"]
        assert annotations[NAMESPACE_UID] == uid_of(tenancy, "red")
        assert annotations[TARGET_NAMESPACE_UID] == uid_of(tenancy, "blue")
        assert set(tenancy.reviews.asked) >= {
            (verb, resource, namespace)
            for resource in ("configmaps", "secrets")
            for verb, namespace in (("create", "blue"), ("get", "red"))
        }
        tenancy.velero_says(NAR, velero.COMPLETED, NON_ADMIN_RESTORE)
        await tenancy.settle(10)
        assert tenancy.condition(NAR, "Succeeded", NON_ADMIN_RESTORE)[0] == "True"

    tell(story)


def test_a_restore_without_a_mapping_asks_and_writes_what_it_did_before() -> None:
    async def story(tenancy: Tenancy) -> None:
        await ready(tenancy)
        await asked(tenancy, namespaceMapping={})
        assert "namespaceMapping" not in made(tenancy)["spec"]
        assert TARGET_NAMESPACE_UID not in made(tenancy)["metadata"]["annotations"]
        assert {(verb, namespace) for verb, _, namespace in tenancy.reviews.asked} == {("create", "red")}

    tell(story)


def with_policy_that_refuses(tenancy: Tenancy) -> None:
    policy_of_blue(tenancy, restore={"intoOtherNamespaces": "Refused"})


HINDRANCES: dict[str, tuple[Act, dict[str, str]]] = {
    "the policy of both is the default one": (lambda tenancy: policy(tenancy, restore=None), {"red": "blue"}),
    "the policy of the target refuses": (with_policy_that_refuses, {"red": "blue"}),
    "the target has no self-service": (
        lambda tenancy: label(tenancy, "blue", **{"foresail.dev/self-service": None}),
        {"red": "blue"},
    ),
    "the target does not exist": (lambda _: None, {"red": "green"}),
    "the target is Velero's namespace": (
        lambda tenancy: label(tenancy, VELERO, **{"foresail.dev/self-service": "enabled"}),
        {"red": VELERO},
    ),
    "the target is the cluster's": (lambda tenancy: create_namespace(tenancy, "kube-public"), {"red": "kube-public"}),
    "another namespace is mapped": (lambda _: None, {"blue": "red"}),
    "every namespace is mapped": (lambda _: None, {"*": "blue"}),
    "several are mapped": (lambda _: None, {"red": "blue", "blue": "red"}),
    "to itself": (lambda _: None, {"red": "red"}),
    "to nothing": (lambda _: None, {"red": ""}),
    "to a pattern": (lambda _: None, {"red": "*"}),
    "to a path": (lambda _: None, {"red": "blue/../kube-system"}),
}


@pytest.mark.parametrize("hindrance", HINDRANCES)
def test_what_one_of_both_policies_does_not_allow_is_refused_for_good(hindrance: str) -> None:
    hinder, mapping = HINDRANCES[hindrance]

    async def story(tenancy: Tenancy) -> None:
        await ready(tenancy)
        hinder(tenancy)
        await tenancy.settle(10)
        await asked(tenancy, namespaceMapping=mapping)
        reason, message = refused(tenancy)
        assert reason == "InvalidRestoreSpec"
        assert "spec.restoreSpec.namespaceMapping is restricted" in message
        allow(tenancy)
        await tenancy.settle(1000)
        assert tenancy.velero_objects(velero.RESTORE) == {}, "a refusal is final"

    tell(story)


def test_a_target_that_does_not_exist_is_refused_in_the_words_for_one_that_takes_no_restores() -> None:
    async def story(tenancy: Tenancy) -> None:
        await ready(tenancy)
        create_namespace(tenancy, "closed")
        label(tenancy, "closed", **{"foresail.dev/self-service": None})
        await tenancy.settle(10)
        answers = set[tuple[str, str]]()
        for name in ("closed", "nowhere"):
            key = Key("red", f"into-{name}")
            tenancy.restore(key, NAB.name, namespaceMapping={"red": name})
            await tenancy.settle(10)
            _, reason, message = tenancy.condition(key, "Accepted", NON_ADMIN_RESTORE)
            answers.add((reason, message.replace(name, "NAME")))
        assert len(answers) == 1
        assert tenancy.reviews.asked == []

    tell(story)


DENIED: dict[str, tuple[Callable[[str, str, str], bool], str]] = {
    "no rights in the target": (lambda _verb, _resource, namespace: namespace != "blue", ""),
    "it may only read in the target": (lambda verb, _resource, namespace: (verb, namespace) != ("create", "blue"), ""),
    "it may not read what the backup holds": (lambda verb, _resource, _namespace: verb != "get", ""),
    "it may not read Secrets at home": (
        lambda verb, resource, namespace: (verb, resource, namespace) != ("get", "secrets", "red"),
        "secrets",
    ),
    "it may not create Secrets there": (
        lambda verb, resource, namespace: (verb, resource, namespace) != ("create", "secrets", "blue"),
        "secrets",
    ),
}


@pytest.mark.parametrize("case", DENIED)
def test_nothing_goes_where_the_requester_could_not_have_carried_it(case: str) -> None:
    may, left_out = DENIED[case]

    async def story(tenancy: Tenancy) -> None:
        await ready(tenancy)
        tenancy.reviews.may = lambda _user, verb, resource, namespace: may(verb, resource, namespace)
        await asked(tenancy)
        if left_out:
            assert made(tenancy)["spec"]["includedResources"] == ["configmaps"]
            message = tenancy.condition(NAR, "Authorized", NON_ADMIN_RESTORE)[2]
            assert "tenant may not create them in blue, or get them in red: secrets" in message
        else:
            reason, message = refused(tenancy)
            assert reason == "AccessDenied"
            assert "in blue, or get them in red" in message

    tell(story)


def test_a_policy_that_decides_alone_about_kinds_does_not_do_so_for_another_namespace() -> None:
    async def story(tenancy: Tenancy) -> None:
        await ready(tenancy)
        policy(tenancy, restore={"authorization": "Policy"})
        tenancy.reviews.may = lambda _user, _verb, _resource, namespace: namespace != "blue"
        await asked(tenancy)
        assert refused(tenancy)[0] == "AccessDenied"

    tell(story)


@pytest.mark.parametrize("missing", ["pods", "pods/exec"])
def test_the_data_of_volumes_goes_only_where_it_could_be_read_before(missing: str) -> None:
    async def story(tenancy: Tenancy) -> None:
        await ready(tenancy)
        tenancy.reviews.held = Contents(kinds=(CONFIG_MAPS, CLAIMS, PODS), counts=(1, 1, 1))
        tenancy.reviews.may = lambda _user, verb, resource, namespace: (
            (verb, resource, namespace) != ("create", missing, "red")
        )
        await asked(tenancy)
        assert made(tenancy)["spec"]["includedResources"] == ["configmaps"]

    tell(story)


def test_a_volume_without_data_in_the_backup_does_not_get_a_second_claim_elsewhere() -> None:
    async def story(tenancy: Tenancy) -> None:
        await ready(tenancy)
        policy(tenancy, restore={"volumes": "AsIs"})
        tenancy.reviews.held = Contents(
            kinds=(CLAIMS,),
            counts=(1,),
            cluster_kinds=(ContentKind("", "PersistentVolume"),),
            volumes=(VolumeRow("pv-1", "data"),),
        )
        tenancy.reviews.may = lambda _user, _verb, resource, _namespace: resource != "persistentvolumes"
        await asked(tenancy)
        assert refused(tenancy)[0] == "VolumeNotBackedUp"

    tell(story)


def test_the_policy_of_the_target_says_what_comes_in() -> None:
    async def story(tenancy: Tenancy) -> None:
        await ready(tenancy)
        policy(tenancy, restore={"allowed": {"existingResourcePolicies": ["update"]}})
        policy_of_blue(tenancy, restore={**ALLOWED, "kinds": {"allowed": ["configmaps"]}})
        await tenancy.settle(10)
        await asked(tenancy, **INTO_BLUE, existingResourcePolicy="update")
        assert refused(tenancy)[0] == "PolicyViolation"
        key = Key("red", "second")
        tenancy.restore(key, NAB.name, **INTO_BLUE)
        await tenancy.settle(10)
        found = tenancy.made_for(key, NON_ADMIN_RESTORE)
        assert found is not None
        assert found["spec"]["includedResources"] == ["configmaps"]

    tell(story)


def test_hooks_do_not_go_into_another_namespace() -> None:
    async def story(tenancy: Tenancy) -> None:
        await ready(tenancy)
        policy(tenancy, restore={"hooks": {"allowed": True}})
        hook = {"name": "h", "postHooks": [{"exec": {"command": ["id"]}}]}
        await asked(tenancy, **INTO_BLUE, hooks={"resources": [hook]})
        reason, message = refused(tenancy)
        assert reason == "PolicyViolation"
        assert "hooks is restricted with namespaceMapping" in message

    tell(story)


def test_the_quotas_of_the_target_count_and_nobody_waits_in_them() -> None:
    async def story(tenancy: Tenancy) -> None:
        await ready(tenancy)
        policy_of_blue(tenancy, restore=ALLOWED, quotas={"restores": {"active": 1}})
        await tenancy.settle(10)
        await asked(tenancy)
        made(tenancy)
        second = Key("red", "second")
        tenancy.restore(second, NAB.name, **INTO_BLUE)
        await tenancy.settle(30)
        status, reason, message = tenancy.condition(second, "Accepted", NON_ADMIN_RESTORE)
        assert (status, reason) == ("False", "PolicyViolation")
        assert "Namespace blue has as many restores as quotas.restores" in message
        own = Key("blue", "own")
        tenancy.back_up(Key("blue", "b"))
        await tenancy.settle()
        tenancy.velero_says(Key("blue", "b"), velero.COMPLETED)
        tenancy.restore(own, "b")
        await tenancy.settle(10)
        assert tenancy.condition(own, "Accepted", NON_ADMIN_RESTORE)[1] == "QuotaExceeded"
        tenancy.velero_says(NAR, velero.COMPLETED, NON_ADMIN_RESTORE)
        await tenancy.settle(10)
        tenancy.edit(second, NON_ADMIN_RESTORE, retriedAt=tenancy.now())
        await tenancy.settle(30)
        taken = [key for key in (own, second) if tenancy.made_for(key, NON_ADMIN_RESTORE) is not None]
        assert len(taken) == 1

    tell(story)


def test_a_restore_that_may_not_create_there_uses_no_quota_of_the_target() -> None:
    async def story(tenancy: Tenancy) -> None:
        await ready(tenancy)
        policy_of_blue(tenancy, restore=ALLOWED, quotas={"restores": {"active": 1, "stored": 1}})
        tenancy.reviews.may = lambda user, _verb, _resource, namespace: user == "owner" or namespace == "red"
        await tenancy.settle(10)
        for number in range(5):
            tenancy.restore(Key("red", f"no-{number}"), NAB.name, **INTO_BLUE)
        await tenancy.settle(30)
        tenancy.reviews.may = lambda *_: True
        await asked(tenancy)
        made(tenancy)

    tell(story)


def forbid_there(tenancy: Tenancy) -> None:
    tenancy.reviews.may = lambda _user, _verb, _resource, namespace: namespace != "blue"


def forbid_reading(tenancy: Tenancy) -> None:
    tenancy.reviews.may = lambda _user, verb, _resource, _namespace: verb != "get"


WITHDRAWN: dict[str, tuple[Act, str]] = {
    "no rights in the target any more": (forbid_there, "may no longer create configmaps, secrets in blue"),
    "no rights to read at home any more": (forbid_reading, "or get them in red"),
    "the policy refuses it": (lambda tenancy: policy(tenancy, restore=None), "is restricted"),
    "the target leaves self-service": (
        lambda tenancy: label(tenancy, "blue", **{"foresail.dev/self-service": None}),
        "does not exist, or its policy",
    ),
    "the target gets another policy": (with_policy_that_refuses, "does not exist, or its policy"),
}


@pytest.mark.parametrize("restarts", [False, True], ids=["in one life", "across a restart"])
@pytest.mark.parametrize("case", WITHDRAWN)
def test_what_is_not_allowed_any_more_before_velero_begins_is_withdrawn(case: str, *, restarts: bool) -> None:
    act, cause = WITHDRAWN[case]

    async def story(tenancy: Tenancy) -> None:
        await ready(tenancy)
        await asked(tenancy)
        made(tenancy)
        if restarts:
            await tenancy.stop()
        act(tenancy)
        if restarts:
            tenancy.start()
        await tenancy.settle(125)
        assert tenancy.velero_objects(velero.RESTORE) == {}
        _, reason, message = tenancy.condition(NAR, "Succeeded", NON_ADMIN_RESTORE)
        assert reason == "RestoreWithdrawn"
        assert cause in message

    tell(story)


@pytest.mark.parametrize("recreated", [False, True], ids=["deleted", "deleted and created again"])
@pytest.mark.parametrize("down", [False, True], ids=["while it runs", "while it is down"])
def test_a_restore_does_not_run_in_a_later_namespace_of_the_targets_name(*, recreated: bool, down: bool) -> None:
    async def story(tenancy: Tenancy) -> None:
        await ready(tenancy)
        await asked(tenancy)
        made(tenancy)
        if down:
            await tenancy.stop()
        tenancy.delete_namespace("blue")
        await tenancy.settle(1)
        if recreated:
            create_namespace(tenancy, "blue")
        if down:
            tenancy.start()
        await tenancy.settle(60)
        assert tenancy.velero_objects(velero.RESTORE) == {}

    tell(story)


def test_what_a_restore_did_is_read_from_where_it_did_it() -> None:
    async def story(tenancy: Tenancy) -> None:
        await ready(tenancy)
        await asked(tenancy)
        tenancy.velero_says(NAR, velero.PARTIALLY_FAILED, NON_ADMIN_RESTORE, errors=1)
        await tenancy.settle(5)
        tenancy.velero_answers()
        await tenancy.settle(5)
        assert [wanted.namespace for wanted in tenancy.read] == ["blue"]

    tell(story)


def test_a_restore_that_has_ended_frees_the_quota_of_the_namespace_that_it_was_made_into() -> None:
    async def story(tenancy: Tenancy) -> None:
        await ready(tenancy)
        policy_of_blue(tenancy, restore=ALLOWED, quotas={"restores": {"active": 1, "stored": 2}})
        await tenancy.settle(10)
        tenancy.back_up(Key("blue", "b"))
        await tenancy.settle()
        tenancy.velero_says(Key("blue", "b"), velero.COMPLETED)
        for number in range(4):
            incoming = Key("red", f"incoming-{number}")
            tenancy.restore(incoming, NAB.name, **INTO_BLUE)
            await tenancy.settle(10)
            assert tenancy.made_for(incoming, NON_ADMIN_RESTORE) is not None, "what red keeps is not blue's"
            if number == 3:
                tenancy.restore(Key("blue", "own"), "b")
                await tenancy.settle(10)
                assert tenancy.condition(Key("blue", "own"), "Accepted", NON_ADMIN_RESTORE)[1] == "QuotaExceeded"
            tenancy.velero_says(incoming, velero.COMPLETED, NON_ADMIN_RESTORE)
            await tenancy.settle(10)
        assert tenancy.made_for(Key("blue", "own"), NON_ADMIN_RESTORE) is not None
        tenancy.velero_says(Key("blue", "own"), velero.COMPLETED, NON_ADMIN_RESTORE)
        await tenancy.settle(120)

    tell(story)


@pytest.mark.parametrize("mapping", [None, {"red": "green"}], ids=["to its own", "to a third"])
def test_an_edit_after_the_hand_over_does_not_let_another_namespace_be_asked_about(
    mapping: dict[str, str] | None,
) -> None:
    async def story(tenancy: Tenancy) -> None:
        await ready(tenancy)
        create_namespace(tenancy, "green")
        await asked(tenancy)
        assert made(tenancy)["spec"]["namespaceMapping"] == {"red": "blue"}
        tenancy.edit(NAR, NON_ADMIN_RESTORE, restoreSpec={"namespaceMapping": mapping and {"red": None, **mapping}})
        forbid_there(tenancy)
        await tenancy.settle(125)
        assert tenancy.velero_objects(velero.RESTORE) == {}
        assert tenancy.condition(NAR, "Succeeded", NON_ADMIN_RESTORE)[1] == "RestoreWithdrawn"

    tell(story)
