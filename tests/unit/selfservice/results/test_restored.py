"""What a restore did, from Velero's list of restored objects and its warnings."""

import json

import pytest

from foresail.api.nonadmin import RestoredGroup, RestoredItems
from foresail.selfservice.results.restored import MOST_NAMES, restored_everywhere, restored_items, summary

LISTED = {
    "v1/ConfigMap": ["shop/gone(created)", "shop/kube-root-ca.crt(failed)", "shop/settings(failed)", "bank/x(created)"],
    "v1/Secret": ["shop/db(skipped)"],
    "v1/Service": ["shop/web(updated)", "shop/broken(failed)"],
    "apps/v1/Deployment": ["shop/web(failed)"],
    "apps/v1/ReplicaSet": ["shop/web-5d4(failed)"],
    "v1/Pod": ["shop/web-5d4-x1(failed)", "shop/bare(created)"],
    "v1/PersistentVolume": ["pv-1(created)"],
}
EXISTS = "could not restore, {} already exists. Warning: the in-cluster version is different"
WARNINGS = [EXISTS.format("ConfigMap:settings"), EXISTS.format('Deployment "web"'), EXISTS.format("Pod:web-5d4-x1")]


def items(listed: object = LISTED, warnings: object = WARNINGS) -> RestoredItems | None:
    results = {"warnings": {"namespaces": {"shop": warnings}}}
    return restored_items("shop", json.dumps(listed).encode(), json.dumps(results).encode())


def test_each_object_is_counted_once_and_what_follows_by_itself_is_one_number() -> None:
    assert items() == RestoredItems(
        created=RestoredGroup(2, ("ConfigMap gone", "Pod bare")),
        changed_back=RestoredGroup(1, ("Service web",)),
        left=RestoredGroup(2, ("ConfigMap settings", "Deployment web")),
        failed=RestoredGroup(1, ("Service broken",)),
        unchanged=1,
        following=3,
    )


def test_names_are_bounded() -> None:
    many = items({"v1/ConfigMap": [f"shop/c-{number}(created)" for number in range(1000)]})
    assert many is not None
    assert many.created.count == 1000
    assert len(many.created.names) == MOST_NAMES
    assert "ConfigMap c-1, " in summary(many)
    assert "and 995 more" in summary(many)


@pytest.mark.parametrize("listed", [[], "x", {"v1/ConfigMap": "shop/a(created)"}, {"v1/ConfigMap": [1]}])
def test_a_list_of_another_shape_says_nothing(listed: object) -> None:
    assert items(listed) is None


@pytest.mark.parametrize(
    "entry", ["shop/a\x1b[31m(created)", "shop/" + "a" * 254 + "(created)", "a(created)", "shop/a"]
)
def test_what_no_object_can_be_called_is_not_counted(entry: str) -> None:
    assert items({"v1/ConfigMap": [entry], "v1/Bad Kind": ["shop/a(created)"]}) == RestoredItems()


def test_the_sentence_has_what_happened_and_no_zeros() -> None:
    told = items()
    assert told is not None
    assert summary(told) == (
        "Created 2 (ConfigMap gone, Pod bare); changed back 1 (Service web); left 2 as they are (ConfigMap settings, "
        "Deployment web); failed to restore 1 (Service broken); 1 is unchanged since the backup; "
        "3 follow automatically"
    )
    assert summary(RestoredItems(left=RestoredGroup(1, ("ConfigMap a",)))) == (
        "Nothing was changed; left 1 as they are (ConfigMap a)"
    )
    assert summary(RestoredItems()) == "Nothing was changed"


def test_an_administrators_restore_counts_every_namespace_and_the_objects_of_none() -> None:
    results = {"warnings": {"namespaces": {"shop": WARNINGS}, "cluster": [EXISTS.format("PersistentVolume:pv-1")]}}
    listed = {"v1/ConfigMap": LISTED["v1/ConfigMap"], "v1/PersistentVolume": ["pv-1(failed)", "pv-2(created)"]}
    found = restored_everywhere(json.dumps(listed).encode(), json.dumps(results).encode())
    assert found == RestoredItems(
        created=RestoredGroup(3, ("PersistentVolume pv-2", "ConfigMap x in bank", "ConfigMap gone in shop")),
        left=RestoredGroup(2, ("PersistentVolume pv-1", "ConfigMap settings in shop")),
        following=1,
    )


def test_the_names_of_a_restore_of_one_namespace_do_not_repeat_it() -> None:
    found = restored_everywhere(b'{"v1/ConfigMap": ["shop/a(created)"], "v1/Namespace": ["shop(created)"]}', b"{}")
    assert found == RestoredItems(created=RestoredGroup(2, ("Namespace shop", "ConfigMap a")))
    assert restored_everywhere(b"[]", b"{}") is None
