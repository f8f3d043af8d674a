"""Which requests of the audit log count as writes."""

from datetime import UTC, datetime

import pytest

from testbed.audit import Request

CONFIG_MAPS = "/api/v1/namespaces/shop/configmaps"


def asked(verb: str, resource: str, uri: str = CONFIG_MAPS) -> Request:
    return Request("dev", verb, uri, resource, "shop", "web", 200, datetime(2026, 1, 1, tzinfo=UTC), ended=True)


@pytest.mark.parametrize("verb", ["create", "update", "patch", "delete", "deletecollection"])
def test_whatever_changes_an_object_is_a_write(verb: str) -> None:
    assert asked(verb, "configmaps").is_write
    assert asked(verb, "roles.rbac.authorization.k8s.io").is_write
    assert asked(verb, "backups.velero.io/status").is_write


@pytest.mark.parametrize("verb", ["get", "list", "watch"])
def test_reading_is_no_write(verb: str) -> None:
    assert not asked(verb, "configmaps").is_write


def test_a_dry_run_and_a_review_are_no_writes() -> None:
    assert not asked("create", "configmaps", f"{CONFIG_MAPS}?dryRun=All").is_write
    assert not asked("create", "selfsubjectaccessreviews.authorization.k8s.io").is_write
    assert not asked("create", "selfsubjectreviews.authentication.k8s.io").is_write
