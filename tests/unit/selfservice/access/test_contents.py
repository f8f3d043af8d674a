"""What is kept of Velero's lists about a backup: its kinds, and volumes that would come back as they were."""

import json
from typing import Any

import pytest

from foresail.selfservice.access.contents import ContentKind, Contents, VolumeRow, contents_of
from foresail.selfservice.access.reader import ContentsCache

LISTS = {
    "v1/ConfigMap": ["shop/a", "shop/b"],
    "apps/v1/Deployment": ["shop/web"],
    "v1/Secret": ["other/x"],
    "v1/Namespace": ["shop"],
    "v1/PersistentVolume": ["pv-1", "pv-2"],
}


def volume(name: str, **fields: Any) -> dict[str, Any]:  # noqa: ANN401 - JSON
    return {"pvName": name, "pvcName": f"claim-of-{name}", "pvcNamespace": "shop", **fields}


def test_the_kinds_of_the_namespace_are_kept_and_those_of_others_are_not() -> None:
    found = contents_of("shop", json.dumps(LISTS).encode(), b"[]")
    assert found is not None
    assert found.kinds == (ContentKind("", "ConfigMap"), ContentKind("apps", "Deployment"))
    assert found.counts == (2, 1)
    assert found.objects(found.kinds) == 3
    assert found.cluster_kinds == (ContentKind("", "Namespace"), ContentKind("", "PersistentVolume"))


@pytest.mark.parametrize(
    ("info", "expected"),
    [
        ({"backupMethod": "PodVolumeBackup", "pvInfo": {"reclaimPolicy": "Retain"}}, None),
        ({"backupMethod": "CSISnapshot", "pvInfo": {"reclaimPolicy": "Retain"}}, None),
        ({"skipped": True, "pvInfo": {"reclaimPolicy": "Delete"}}, None),
        ({"skipped": True, "pvInfo": {"reclaimPolicy": "Retain"}}, VolumeRow("pv-1", "claim-of-pv-1")),
        ({"backupMethod": "NativeSnapshot"}, VolumeRow("pv-1", "claim-of-pv-1", has_snapshot=True)),
        ({"backupMethod": "NativeSnapshot", "result": "failed"}, VolumeRow("pv-1", "claim-of-pv-1")),
    ],
)
def test_a_volume_that_velero_would_re_create_as_it_was_is_kept(
    info: dict[str, Any], expected: VolumeRow | None
) -> None:
    lists = json.dumps({"v1/PersistentVolume": ["pv-1"]}).encode()
    found = contents_of("shop", lists, json.dumps([volume("pv-1", **info)]).encode())
    assert found is not None
    assert found.volumes == ((expected,) if expected is not None else ())


@pytest.mark.parametrize("infos", [None, b"null", b"[]"])
def test_a_volume_without_information_counts_as_not_backed_up(infos: bytes | None) -> None:
    found = contents_of("shop", json.dumps(LISTS).encode(), infos)
    assert found is not None
    assert [each.name for each in found.volumes] == ["pv-1", "pv-2"]


@pytest.mark.parametrize("lists", [b"", b"[]", b"null", b'{"v1/PersistentVolume": {}}', b"\xff"])
def test_a_file_that_is_not_of_velero_s_shape_is_refused(lists: bytes) -> None:
    assert contents_of("shop", lists, b"[]") is None


@pytest.mark.parametrize(
    ("kind", "volume_name", "claim", "is_read"),
    [
        (f"{'g' * 253}/v1/{'k' * 63}", "p" * 253, "c" * 253, True),
        (f"{'g' * 8_000}/v1/Kind", "pv-1", "claim", False),
        (f"g.io/v1/{'k' * 8_000}", "pv-1", "claim", False),
        ("g.io/v1/Kind", "p" * 254, "claim", False),
        ("g.io/v1/Kind", "pv-1", "c" * 254, False),
    ],
)
def test_a_name_longer_than_kubernetes_allows_makes_the_file_unreadable(
    kind: str, volume_name: str, claim: str, is_read: bool
) -> None:
    lists = json.dumps({kind: ["shop/a"], "v1/PersistentVolume": [volume_name]}).encode()
    found = contents_of("shop", lists, json.dumps([{"pvName": volume_name, "pvcName": claim}]).encode())
    assert (found is not None) == is_read


def contents_with(volumes: int) -> Contents:
    return Contents(volumes=tuple(VolumeRow("p" * 200, "c" * 200) for _ in range(volumes)))


def test_the_cache_drops_what_was_not_used_for_longest_once_its_names_are_too_long_together() -> None:
    cache = ContentsCache(most_backups=10, most_characters=5_000)
    for uid in ("a", "b"):
        cache.add(uid, contents_with(4))  # 2,000 characters each, with what Python needs beside them
    assert cache.get("a") is not None
    cache.add("c", contents_with(4))
    assert [uid in cache for uid in "abc"] == [True, False, True]
    cache.add("d", contents_with(1_000))
    assert [uid in cache for uid in "acd"] == [False, False, True]
    cache.discard("d")
    for uid in "abc":
        cache.add(uid, contents_with(2))
    assert all(uid in cache for uid in "abc"), "what was dropped still counts"


def test_the_cache_has_a_bounded_number_of_backups() -> None:
    cache = ContentsCache(most_backups=2)
    for uid in "aabc":
        cache.add(uid, Contents())
    assert [uid in cache for uid in "abc"] == [False, True, True]
    cache.clear()
    assert "c" not in cache
