"""`foresail backup contents` and the volumes of `describe --details`: what is read, compared and shown."""

import json

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from foresail.api.authorization import Discovery
from foresail.cli.main import main
from foresail.cli.tenant.contents import (
    Difference,
    as_data,
    counts_table,
    diff_text,
    listable,
    names_table,
    not_compared_text,
)
from foresail.cli.tenant.held import Change, HeldKind, LiveObject, changes, held_kinds, is_compared, is_selected
from foresail.cli.tenant.volumes import volume_infos, volumes_text
from foresail.plan import Key, Kind
from foresail.selfservice.access.discovery import BUILT_IN, CORE, ApiResource

LIST = {
    "v1/ConfigMap": ["shop/b", "shop/a", "other/c"],
    "apps/v1/Deployment": ["shop/web"],
    "v1/PersistentVolume": ["pv-1"],
    "v1/Secret": ["other/x"],
}
HELD = held_kinds("shop", json.dumps(LIST).encode()) or []
RESOURCES = {each.name: each for each in (*CORE, *BUILT_IN)}


def test_the_kinds_of_the_own_namespace_are_counted_and_named() -> None:
    assert counts_table(HELD).splitlines() == [
        "KIND               API VERSION   COUNT",
        "ConfigMap          v1            2",
        "Deployment.apps    apps/v1       1",
        "PersistentVolume   v1            1",
    ]
    assert [line.split() for line in names_table(HELD).splitlines()[1:]] == [
        ["ConfigMap", "a"],
        ["ConfigMap", "b"],
        ["Deployment.apps", "web"],
        ["PersistentVolume", "pv-1"],
    ]
    assert counts_table([]) == names_table([]) == "No objects in the backup."


@given(st.binary() | st.recursive(st.none() | st.text(), st.lists).map(lambda each: json.dumps(each).encode()))
def test_whatever_the_bucket_holds_the_list_is_read_or_refused(resources: bytes) -> None:
    assert held_kinds("shop", resources) is None or isinstance(held_kinds("shop", resources), list)
    assert volume_infos("shop", resources) is None or isinstance(volume_infos("shop", resources), list)


def live(**objects: dict[str, dict[str, str]]) -> dict[ApiResource, list[LiveObject]]:
    return {
        RESOURCES[name.replace("_", ".")]: [LiveObject(each, labels) for each, labels in found.items()]
        for name, found in objects.items()
    }


def test_what_is_gone_and_what_is_new_is_found_by_kind_and_name() -> None:
    now = live(configmaps={"a": {}, "fresh": {}}, deployments_apps={"web": {}}, secrets={"key": {}})
    assert changes(HELD, now, {}) == [
        Change("gone", "ConfigMap", "b"),
        Change("new", "ConfigMap", "fresh"),
        Change("new", "Secret", "key"),
    ]


def test_a_kind_that_could_not_be_listed_is_neither_gone_nor_new() -> None:
    assert changes(HELD, live(deployments_apps={}), {}) == [Change("gone", "Deployment.apps", "web")]


def test_an_object_that_the_selectors_of_the_backup_do_not_select_is_not_new() -> None:
    spec = {"labelSelector": {"matchLabels": {"app": "db"}}}
    now = live(configmaps={"a": {}, "b": {}, "mine": {"app": "db"}, "other": {}})
    assert changes(HELD, now, spec) == [Change("new", "ConfigMap", "mine")]
    either = {"orLabelSelectors": [{"matchLabels": {"app": "x"}}, {"matchLabels": {"app": "db"}}]}
    assert is_selected({"app": "db"}, either)
    assert not is_selected({}, either)


@pytest.mark.parametrize(
    ("name", "spec", "expected"),
    [
        ("secrets", {}, True),
        ("events", {}, False),
        ("persistentvolumes", {}, False),
        ("secrets", {"includedNamespaceScopedResources": ["configmaps"]}, False),
        ("secrets", {"includedNamespaceScopedResources": ["*"]}, True),
        ("configmaps", {"includedNamespaceScopedResources": ["secrets"]}, True),
        ("secrets", {"excludedNamespaceScopedResources": ["secrets"]}, False),
        ("jobs.batch", {"excludedResources": ["*.batch"]}, False),
    ],
)
def test_kinds_are_compared_that_such_a_backup_would_hold(
    name: str, spec: dict[str, list[str]], expected: bool
) -> None:
    assert is_compared(RESOURCES[name], HELD, spec) is expected


def test_resources_that_can_be_listed_have_the_first_version_that_lists_them() -> None:
    def row(resource: str, kind: str, verbs: list[str]) -> dict[str, object]:
        return {"resource": resource, "responseKind": {"kind": kind}, "scope": "Namespaced", "verbs": verbs}

    versions = [
        {"version": "v1", "resources": [row("jobs", "Job", ["list"]), row("reviews", "Review", ["create"])]},
        {"version": "v1beta1", "resources": [row("jobs", "Job", ["list"]), row("cronjobs", "CronJob", ["list"])]},
    ]
    document = {"items": [{"metadata": {"name": "batch"}, "versions": versions}]}
    found = listable(msgspec.convert(document, Discovery)).values()
    assert [each for each in found if each.group] == [
        Kind("batch", "v1", "jobs", "Job"),
        Kind("batch", "v1beta1", "cronjobs", "CronJob"),
    ]
    assert Kind("", "v1", "secrets", "Secret") in found
    assert "bindings" not in {each.plural for each in found}


def test_programs_get_everything_and_people_a_sentence_if_nothing_differs() -> None:
    same = Difference((), {"secrets": "you may not list secrets in namespace shop"})
    assert diff_text(HELD, same) == "No differences: the namespace has the 3 objects of the backup, and no other."
    data = as_data(Key("shop", "daily"), HELD, same)
    assert data["diff"] == {
        "changes": [],
        "notCompared": [{"kind": "secrets", "cause": "you may not list secrets in namespace shop"}],
    }
    assert data["kinds"][0] == {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "namespaced": True,
        "count": 2,
        "names": ["a", "b"],
    }
    assert "diff" not in as_data(Key("shop", "daily"), HELD, None)
    assert isinstance(HELD[0], HeldKind)


def test_names_and_diff_are_not_asked_for_together(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["backup", "contents", "daily", "--names", "--diff"])
    assert "not allowed with" in capsys.readouterr().err


def test_volumes_are_named_by_claim_with_size_method_and_result() -> None:
    found = [
        {
            "pvcName": "data",
            "pvcNamespace": "shop",
            "backupMethod": "PodVolumeBackup",
            "result": "succeeded",
            "pvbInfo": {"size": 5 << 30, "podNamespace": "shop"},
        },
        {
            "pvcName": "big",
            "pvcNamespace": "shop",
            "backupMethod": "CSISnapshot",
            "snapshotDataMoved": True,
            "snapshotDataMovementInfo": {"size": 1536},
        },
        {"pvcName": "cold", "pvcNamespace": "shop", "skipped": True, "skippedReason": "no plugin"},
        {"pvcName": "secret", "pvcNamespace": "other", "result": "succeeded"},
        {"pvbInfo": {"podName": "web", "podNamespace": "shop", "volumeName": "cache", "size": 3}, "result": "failed"},
    ]
    infos = volume_infos("shop", json.dumps(found).encode())
    assert infos is not None
    assert volumes_text(infos, has_results=True).splitlines() == [
        "Volumes:",
        "  CLAIM                   SIZE      METHOD                    RESULT",
        "  big                     1.5 KiB   CSISnapshot, data moved   n/a",
        "  cold                    n/a       n/a                       skipped: no plugin",
        "  data                    5 GiB     PodVolumeBackup           succeeded",
        "  pod web, volume cache   3 B       n/a                       failed",
    ]
    assert volumes_text([], has_results=True) == "Volumes:  <none>"
    restored = [{"pvcName": "data", "pvcNamespace": "shop", "restoreMethod": "PodVolumeBackup", "pvrInfo": {"size": 7}}]
    infos = volume_infos("shop", json.dumps(restored).encode()) or []
    assert volumes_text(infos, has_results=False).splitlines()[2].split() == ["data", "7", "B", "PodVolumeBackup"]


def test_what_is_not_compared_is_one_line() -> None:
    assert not_compared_text({}) == ""
    assert not_compared_text({"roles": "you may not list roles"}) == "not compared: roles: you may not list roles"
    many = {f"kind-{number}": "you may not" for number in range(17)}
    assert not_compared_text(many) == (
        "17 kinds were not compared: kind-0, kind-1, kind-2 and 14 more; -o json has the causes"
    )
