"""What is kept of Velero's lists about a backup: its kinds, and volumes that would come back as they were."""

import json
from typing import Any

import pytest

from foresail.selfservice.access.contents import ContentKind, VolumeRow, contents_of

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
