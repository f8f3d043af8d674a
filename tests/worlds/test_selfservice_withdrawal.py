"""Restores that Velero has and has not begun: withdrawn when the policy or the requester's access is gone."""

from collections.abc import Callable
from typing import Any

import pytest

from foresail.api import velero
from foresail.api.nonadmin import NON_ADMIN_RESTORE
from foresail.api.policy import SELF_SERVICE_POLICY
from foresail.plan import Key
from foresail.selfservice.access.contents import ContentKind, Contents
from tests.worlds.garbage import NAMESPACE
from tests.worlds.tenancy import VELERO, Tenancy
from tests.worlds.test_selfservice_paths import NAB, NAR, backed_up, tell
from tests.worlds.world import done

KINDS = Contents(kinds=(ContentKind("", "ConfigMap"), ContentKind("", "Secret"), ContentKind("apps", "Deployment")))


async def handed_over(tenancy: Tenancy) -> None:
    tenancy.reviews.held = KINDS
    await backed_up(tenancy)
    tenancy.restore(NAR, NAB.name)
    await tenancy.settle(5)
    assert tenancy.made_for(NAR, NON_ADMIN_RESTORE) is not None


def label(tenancy: Tenancy, value: str | None) -> None:
    labels = {"foresail.dev/self-service": value}
    done(tenancy.world.merge(NAMESPACE, Key("", "red"), {"metadata": {"labels": labels}}, "admin"))


def forbid(tenancy: Tenancy, resource: str) -> None:
    tenancy.reviews.may = lambda _user, _verb, asked, _namespace: asked != resource


def edit_policy(tenancy: Tenancy, **spec: Any) -> None:  # noqa: ANN401 - JSON
    done(tenancy.world.merge(SELF_SERVICE_POLICY, Key("", "default"), {"spec": spec}, "admin"))


CHANGES: dict[str, tuple[Callable[[Tenancy], None], str]] = {
    "no policy": (lambda tenancy: label(tenancy, None), "Self-service is not enabled in namespace red"),
    "one kind is forbidden": (lambda tenancy: forbid(tenancy, "secrets"), "tenant may no longer create secrets in red"),
    "the policy refuses a kind": (
        lambda tenancy: edit_policy(tenancy, restore={"kinds": {"refused": ["secrets"]}}),
        "no longer allows all kinds",
    ),
    "the policy allows fewer kinds": (
        lambda tenancy: edit_policy(tenancy, restore={"kinds": {"allowed": ["configmaps"]}}),
        "no longer allows all kinds",
    ),
}


@pytest.mark.parametrize(("change", "cause"), CHANGES.values(), ids=list(CHANGES))
def test_a_waiting_restore_is_withdrawn_for_good(change: Callable[[Tenancy], None], cause: str) -> None:
    async def story(tenancy: Tenancy) -> None:
        await handed_over(tenancy)
        change(tenancy)
        await tenancy.settle(125)
        assert tenancy.velero_objects(velero.RESTORE) == {}
        for kind in ("Accepted", "Succeeded"):
            status, reason, message = tenancy.condition(NAR, kind, NON_ADMIN_RESTORE)
            assert (status, reason) == ("False", "RestoreWithdrawn")
            assert message.startswith("Withdrawn before Velero began it. ")
            assert cause in message
        label(tenancy, "enabled")
        tenancy.reviews.may = lambda *_: True
        edit_policy(tenancy, restore={"kinds": None})
        tenancy.edit(NAR, NON_ADMIN_RESTORE, restoreSpec={"backupName": NAB.name, "restorePVs": False})
        await tenancy.stop()
        tenancy.start()
        await tenancy.settle(700)
        assert tenancy.velero_objects(velero.RESTORE) == {}, "what was withdrawn stays so"
        assert tenancy.condition(NAR, "Succeeded", NON_ADMIN_RESTORE)[1] == "RestoreWithdrawn"
        tenancy.restore(Key("red", "again"), NAB.name)
        await tenancy.settle(5)
        assert len(tenancy.velero_objects(velero.RESTORE)) == 1

    tell(story)


UPDATE = {"existingResourcePolicy": "update"}
HOOKS = {"resources": [{"name": "h", "postHooks": [{"exec": {"container": "c", "command": ["true"]}}]}]}


def refuse_updates(tenancy: Tenancy) -> None:
    edit_policy(tenancy, restore={"allowed": {"existingResourcePolicies": []}})


def refuse_hooks(tenancy: Tenancy) -> None:
    edit_policy(tenancy, restore={"hooks": {"allowed": False}})


def require_a_modifier(tenancy: Tenancy) -> None:
    required = {"resourceModifier": {"kind": "configmap", "name": "strip"}}
    edit_policy(tenancy, veleroAnnotations="Allowed", restore={"required": required})


def require_no_volumes(tenancy: Tenancy) -> None:
    edit_policy(tenancy, restore={"required": {"restorePVs": False}})


def do_nothing(_tenancy: Tenancy) -> None:
    """Leave the policy as it is."""


HIDDEN: dict[str, tuple[dict[str, Any], dict[str, Any], Callable[[Tenancy], None], str]] = {
    "an update": (UPDATE, {"existingResourcePolicy": None}, refuse_updates, "existingResourcePolicy"),
    "hooks": ({"hooks": HOOKS}, {"hooks": None}, refuse_hooks, "hooks"),
    "another backup": ({}, {"backupName": "elsewhere"}, do_nothing, "backupName"),
    "a modifier that is required now": ({}, {}, require_a_modifier, "resourceModifier"),
    "volumes that are refused now": ({}, {}, require_no_volumes, "restorePVs"),
}


@pytest.mark.parametrize(("asked", "edit", "change", "field"), HIDDEN.values(), ids=list(HIDDEN))
def test_an_edit_after_the_hand_over_hides_nothing_from_a_policy_that_changes(
    asked: dict[str, Any], edit: dict[str, Any], change: Callable[[Tenancy], None], field: str
) -> None:
    async def story(tenancy: Tenancy) -> None:
        edit_policy(tenancy, restore={"hooks": {"allowed": True}, "allowed": {"existingResourcePolicies": ["update"]}})
        tenancy.reviews.held = KINDS
        await backed_up(tenancy)
        tenancy.restore(NAR, NAB.name, **asked)
        await tenancy.settle(5)
        assert tenancy.made_for(NAR, NON_ADMIN_RESTORE) is not None, tenancy.status(NAR, NON_ADMIN_RESTORE)
        if edit:
            tenancy.edit(NAR, NON_ADMIN_RESTORE, restoreSpec=edit)
        change(tenancy)
        await tenancy.settle(125)
        assert tenancy.velero_objects(velero.RESTORE) == {}
        _, reason, message = tenancy.condition(NAR, "Succeeded", NON_ADMIN_RESTORE)
        assert reason == "RestoreWithdrawn"
        assert f"spec.restoreSpec.{field} or the policy about it has changed" in message

    tell(story)


LOOSENED: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "annotations": ({}, {"veleroAnnotations": "Allowed"}),
    "volumes": ({"restore": {"required": {"restorePVs": False}}}, {"restore": {"required": {"restorePVs": None}}}),
    "updates": (
        {"restore": {"required": {"existingResourcePolicy": "none"}}},
        {"restore": {"required": {"existingResourcePolicy": "update"}}},
    ),
}


@pytest.mark.parametrize(("before", "after"), LOOSENED.values(), ids=list(LOOSENED))
def test_a_policy_that_allows_more_withdraws_nothing(before: dict[str, Any], after: dict[str, Any]) -> None:
    async def story(tenancy: Tenancy) -> None:
        edit_policy(tenancy, **before)
        await tenancy.settle(5)
        await handed_over(tenancy)
        edit_policy(tenancy, **after)
        await tenancy.settle(125)
        assert tenancy.made_for(NAR, NON_ADMIN_RESTORE) is not None

    tell(story)


@pytest.mark.parametrize("change", [each for each, _ in CHANGES.values()], ids=list(CHANGES))
def test_what_velero_has_begun_is_left_alone(change: Callable[[Tenancy], None]) -> None:
    async def story(tenancy: Tenancy) -> None:
        await handed_over(tenancy)
        tenancy.velero_says(NAR, "InProgress", NON_ADMIN_RESTORE)
        change(tenancy)
        await tenancy.settle(300)
        assert tenancy.condition(NAR, "Succeeded", NON_ADMIN_RESTORE)[:2] == ("Unknown", "Running")
        assert tenancy.made_for(NAR, NON_ADMIN_RESTORE) is not None

    tell(story)


def test_a_restore_that_begins_before_it_is_deleted_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    async def story(tenancy: Tenancy) -> None:
        await handed_over(tenancy)
        [name] = tenancy.velero_objects(velero.RESTORE)
        before, begun = tenancy.world.delete, list[str]()

        def begin(kind: Any, key: Key, *conditions: str) -> Any:  # noqa: ANN401 - as in the world
            done(tenancy.world.merge(kind, Key(VELERO, name), {"status": {"phase": "InProgress"}}, "velero"))
            begun.append(key.name)
            return before(kind, key, *conditions)

        monkeypatch.setattr(tenancy.world, "delete", begin)
        label(tenancy, None)
        await tenancy.settle(300)
        assert begun == [name]
        assert tenancy.condition(NAR, "Succeeded", NON_ADMIN_RESTORE)[:2] == ("Unknown", "Running")

    tell(story)


def test_access_is_asked_once_a_minute_while_a_restore_waits_and_no_longer() -> None:
    async def story(tenancy: Tenancy) -> None:
        await handed_over(tenancy)
        asked = len(tenancy.reviews.asked)
        await tenancy.settle(600)
        assert 9 <= (len(tenancy.reviews.asked) - asked) / len(KINDS.kinds) <= 10
        assert tenancy.made_for(NAR, NON_ADMIN_RESTORE) is not None
        tenancy.velero_says(NAR, velero.COMPLETED, NON_ADMIN_RESTORE)
        await tenancy.settle(5)
        asked = len(tenancy.reviews.asked)
        await tenancy.settle(600)
        assert len(tenancy.reviews.asked) == asked

    tell(story)
