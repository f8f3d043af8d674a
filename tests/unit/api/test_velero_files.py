"""Files from a bucket that become large in memory: none of their readers decodes what it does not count."""

import json
import tracemalloc
from collections.abc import Callable

import pytest

from foresail.api.velero_files import MOST_BYTES, MOST_KINDS, MOST_VOLUMES, raw_lists
from foresail.cli.tenant.held import held_kinds
from foresail.cli.tenant.volumes import volume_infos
from foresail.proof.checks.contents import lists_of, saved_claims
from foresail.proof.restore_plan.volumes import read_volumes
from foresail.selfservice.access.contents import contents_of
from foresail.selfservice.results.file import parts

LISTS = b'{"v1/ConfigMap": ["shop/a"]}'
MOST_MEMORY = 40 << 20
"""Of one read beside the file: four run at once in an operator, whose limit is 768 MiB."""

VOLUMES: dict[str, Callable[[bytes], object]] = {
    "access": lambda file: contents_of("shop", LISTS, file),
    "checks": saved_claims,
    "plan": read_volumes,
    "command line": lambda file: volume_infos("shop", file),
}
RESOURCES: dict[str, Callable[[bytes], object]] = {
    "access": lambda file: contents_of("shop", file, None),
    "checks": lists_of,
    "command line": lambda file: held_kinds("shop", file),
}


def filled(begin: bytes, repeated: bytes, end: bytes) -> bytes:
    return begin + repeated * ((MOST_BYTES - len(begin) - len(end)) // len(repeated)) + end


BOMBS = {
    "objects": filled(b"[", b"{},", b"{}]"),
    "kinds": filled(b"{", b'"a":[],', b'"b":[]}'),
    "spaced kinds": filled(b"{", b'"a" :0,', b'"b":0}'),
    "names": filled(b'{"v1/PersistentVolume":[', b'"a",', b'"b"]}'),
    "deep": filled(b"", b"[", b""),
    "nested": filled(b"[", b'{"pvInfo":{}},', b"{}]"),
    "results": filled(b'{"errors":{"velero":[', b'"a",', b'"b"]}}'),
    "namespaces": filled(b'{"errors":{"namespaces":{', b'"a":[],', b'"b":[]}}}'),
}


def peak(read: Callable[[bytes], object], file: bytes) -> int:
    tracemalloc.start()
    try:
        read(file)
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("bomb", BOMBS.values(), ids=list(BOMBS))
@pytest.mark.parametrize(
    "read",
    [*VOLUMES.values(), *RESOURCES.values(), parts],
    ids=[*(f"volumes by {each}" for each in VOLUMES), *(f"list by {each}" for each in RESOURCES), "results"],
)
def test_a_small_file_does_not_become_large_in_memory(read: Callable[[bytes], object], bomb: bytes) -> None:
    assert peak(read, bomb) < MOST_MEMORY


@pytest.mark.parametrize("read", VOLUMES.values(), ids=list(VOLUMES))
@pytest.mark.parametrize(("count", "is_read"), [(MOST_VOLUMES, True), (MOST_VOLUMES + 1, False)])
def test_as_many_volumes_are_read_as_a_backup_may_have(
    read: Callable[[bytes], object], count: int, is_read: bool
) -> None:
    info = {"pvName": "pv", "pvcName": "data", "pvcNamespace": "shop", "pvInfo": {"reclaimPolicy": "Delete"}}
    assert (read(json.dumps([info] * count).encode()) is not None) == is_read


@pytest.mark.parametrize(("count", "is_read"), [(MOST_KINDS, True), (MOST_KINDS + 1, False)])
def test_as_many_kinds_are_read_as_a_cluster_may_have(count: int, is_read: bool) -> None:
    lists = {f"g{number}.io/v1/Kind": ["shop/b"] for number in range(count)}
    assert (raw_lists(json.dumps(lists).encode()) is not None) == is_read
