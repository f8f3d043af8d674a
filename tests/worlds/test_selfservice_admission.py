"""The labels of namespaces that admission policies need: kept by the operator, and no hand-over without them."""

from typing import Any

from foresail.api.core import NAMESPACE
from foresail.api.nonadmin import NON_ADMIN_BACKUP
from foresail.api.policy import SELF_SERVICE_POLICY
from foresail.plan import Key
from tests.worlds.tenancy import Tenancy
from tests.worlds.test_selfservice_paths import NAB, tell
from tests.worlds.world import done

REFUSED = {"foresail.dev/velero-annotations": "refused", "foresail.dev/file-system-backup": "refused"}
RED = Key("", "red")


def labels(tenancy: Tenancy, name: str = "red") -> dict[str, Any]:
    found = done(tenancy.world.get(NAMESPACE, Key("", name)))["metadata"].get("labels") or {}
    return {key: value for key, value in found.items() if key in REFUSED}


def unlabel(tenancy: Tenancy) -> None:
    done(tenancy.world.merge(NAMESPACE, RED, {"metadata": {"labels": dict.fromkeys(REFUSED)}}, "admin"))


def test_namespaces_that_a_policy_selects_are_labelled_once_and_not_after_it_is_gone() -> None:
    async def story(tenancy: Tenancy) -> None:
        await tenancy.settle(5)
        assert labels(tenancy) == labels(tenancy, "blue") == REFUSED
        assert labels(tenancy, "velero") == {}
        version = done(tenancy.world.get(NAMESPACE, RED))["metadata"]["resourceVersion"]
        await tenancy.settle(3600)
        assert done(tenancy.world.get(NAMESPACE, RED))["metadata"]["resourceVersion"] == version
        spec = {"spec": {"veleroAnnotations": "Allowed", "backup": {"fileSystem": "Allowed"}}}
        done(tenancy.world.merge(SELF_SERVICE_POLICY, Key("", "default"), spec, "admin"))
        await tenancy.settle(5)
        assert labels(tenancy) == dict.fromkeys(REFUSED, "allowed")
        done(tenancy.world.delete(SELF_SERVICE_POLICY, Key("", "default")))
        await tenancy.settle(5)
        assert labels(tenancy) == {}

    tell(story)


def test_a_request_waits_until_the_labels_are_observed_again_and_is_told_why() -> None:
    async def story(tenancy: Tenancy) -> None:
        await tenancy.settle(1)
        unlabel(tenancy)
        tenancy.back_up(NAB)
        await tenancy.settle(7)
        assert tenancy.made_for(NAB) is None, "the operator does not fight for the label"
        status, reason, message = tenancy.condition(NAB, "Authorized", NON_ADMIN_BACKUP)
        assert (status, reason) == ("Unknown", "NamespaceUnlabelled")
        assert "does not have label foresail.dev/velero-annotations=refused yet" in message
        await tenancy.settle(20)
        assert labels(tenancy) == REFUSED
        assert tenancy.made_for(NAB) is not None
        assert "NamespaceUnlabelled" in {note.reason for note in tenancy.notes}

    tell(story)


def test_a_tool_that_removes_the_labels_each_minute_costs_few_writes() -> None:
    async def story(tenancy: Tenancy) -> None:
        await tenancy.settle(5)
        restored = 0
        for _ in range(60):
            restored += labels(tenancy) == REFUSED
            unlabel(tenancy)
            await tenancy.settle(60)
        assert 1 <= restored <= 10
        await tenancy.settle(700)  # the tool has stopped

    tell(story)
