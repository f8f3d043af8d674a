"""The judge of protection among kills: it sees a namespace that is in no Schedule, and a slot with two Backups."""

from datetime import UTC, datetime, timedelta
from typing import Any

from bench.protection_kills import EXCLUDE, LABEL, MARK, REASON, SLOT, UNTIL, Version, judged

START = datetime(2026, 3, 1, tzinfo=UTC)


def namespace(revision: int, labels: dict[str, str] | None = None, **annotations: str) -> Version:
    metadata = {"name": "shop", "uid": "u", "labels": labels or {}, "annotations": annotations}
    return version(revision, "namespace", {"metadata": metadata})


def schedule(revision: int, *members: str) -> Version:
    spec = {"template": {"includedNamespaces": [*members]}}
    return version(revision, "schedule", {"metadata": {"name": "gold-1"}, "spec": spec})


def version(revision: int, kind: str, body: dict[str, Any], *, is_deleted: bool = False) -> Version:
    return Version(revision, kind, is_deleted, body, START + timedelta(minutes=revision))


def test_a_namespace_that_is_in_no_schedule_for_one_version_is_seen() -> None:
    found = judged([namespace(1), schedule(2, "shop"), schedule(3, "other"), schedule(4, "shop")])
    assert len(found.unprotected) == 1
    assert found.versions == 4


def test_a_schedule_that_is_deleted_leaves_its_namespaces() -> None:
    gone = version(3, "schedule", {"metadata": {"name": "gold-1"}}, is_deleted=True)
    assert len(judged([namespace(1), schedule(2, "shop"), gone]).unprotected) == 1


def test_the_exempt_the_excluded_and_the_deleted_may_leave() -> None:
    until = {REASON: "x", UNTIL: "2027-01-01T00:00:00Z"}
    for leaving in (namespace(3, {LABEL: "none"}, **until), namespace(3, {EXCLUDE: "true"})):
        assert judged([namespace(1), schedule(2, "shop"), leaving, schedule(4)]).unprotected == []
    deleted = version(3, "namespace", namespace(3).body, is_deleted=True)
    assert judged([namespace(1), schedule(2, "shop"), deleted, schedule(4)]).unprotected == []
    expired = namespace(3, {LABEL: "none"}, **{REASON: "x", UNTIL: "2020-01-01T00:00:00Z"})
    assert len(judged([namespace(1), schedule(2, "shop"), expired, schedule(4)]).unprotected) == 1


def test_two_backups_of_one_slot_class_and_namespace_are_seen() -> None:
    def backup(revision: int, name: str, slot: str) -> Version:
        metadata = {"name": name, "annotations": {MARK: "gold", SLOT: slot}}
        return version(revision, "backup", {"metadata": metadata, "spec": {"includedNamespaces": ["shop"]}})

    assert judged([backup(1, "a", "1"), backup(2, "a", "1"), backup(3, "b", "2")]).doubled == []
    assert judged([backup(1, "a", "1"), backup(2, "b", "1")]).doubled == ["gold shop 1"]
