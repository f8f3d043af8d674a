"""The items in Velero's archive of a backup; read in memory, never unpacked to disk."""

import io
import json
import tarfile
from collections.abc import Iterator
from typing import Any

from foresail.proof.restore_plan.items import Item, ItemKey

MOST_ITEMS = 200_000
"""The most items that are read."""

MOST_BYTES = 1 << 30
"""The largest archive that is read, unpacked."""

_REGULAR = (tarfile.REGTYPE, tarfile.AREGTYPE)  # the types that Velero unpacks
_NOT_NAMES = frozenset({"", ".", ".."})
_BEFORE_VALUES = (b",", b"[", b"{")
_CLUSTER = 4  # parts of resources/RESOURCE/cluster/NAME.json
_NAMESPACED = 5  # parts of resources/RESOURCE/namespaces/NAMESPACE/NAME.json


class ArchiveError(Exception):
    """Why an archive cannot be read."""


class LargeArchiveError(ArchiveError):
    """An archive has more values than its reader wants to hold."""


def read_archive(archive: bytes, most_values: int | None = None) -> list[Item]:
    """Return the items of an unpacked archive in the order of their names.

    Velero stores an item a second time below its preferred version, which is left out here. It unpacks the archive to
    disk: of two files at the same path, the last counts.
    """
    try:
        with tarfile.open(fileobj=io.BytesIO(archive), mode="r:") as tar:
            items = dict(_items(tar, most_values))
    except (tarfile.TarError, OSError, EOFError, ValueError, OverflowError, RecursionError) as problem:
        raise ArchiveError(f"the archive is damaged: {problem}") from problem
    return [items[key] for key in sorted(items)]


def _items(tar: tarfile.TarFile, most_values: int | None) -> Iterator[tuple[ItemKey, Item]]:
    size = values = 0
    for count, member in enumerate(tar):
        if count > MOST_ITEMS:
            raise ArchiveError(f"the archive has more than {MOST_ITEMS} files")
        if member.size < 0:
            raise ArchiveError("the archive is damaged: a file has a negative size")
        named = _key_of_member(member)
        if named is None:
            continue
        key = _printable(named)
        problem = ""
        if key != named:
            problem = "its name has control characters, so it was not checked"
        elif member.issparse():  # its size is not bounded by that of the archive
            problem = "its file in the backup is sparse, so it was not read"
        if problem:
            yield key, Item(key, problem=problem)
            continue
        size += member.size
        if size > MOST_BYTES:
            raise ArchiveError(f"the archive is larger than {MOST_BYTES >> 20} MiB")
        file = tar.extractfile(member)
        content = file.read() if file is not None else b""
        values += sum(map(content.count, _BEFORE_VALUES))
        if most_values is not None and values > most_values:
            raise LargeArchiveError(f"the archive has more than {most_values} values")
        yield key, _item(key, content)


def _key_of_member(member: tarfile.TarInfo) -> ItemKey | None:
    if member.type not in _REGULAR:
        return None
    if not _NOT_NAMES.isdisjoint(member.name.removeprefix("./").split("/")):
        raise ArchiveError(f"the archive has the path {member.name[:200]!r}, which Velero does not write")
    return key_of(member.name)


def key_of(path: str) -> ItemKey | None:
    """Return the item that a path of the archive stands for; None for any other file."""
    parts = path.removeprefix("./").split("/")
    if parts[0] != "resources" or not path.endswith(".json"):
        return None
    parts[-1] = name = parts[-1].removesuffix(".json")
    if not _NOT_NAMES.isdisjoint(parts):
        return None
    if len(parts) == _CLUSTER and parts[2] == "cluster":
        return ItemKey(parts[1], "", name)
    if len(parts) == _NAMESPACED and parts[2] == "namespaces":
        return ItemKey(parts[1], parts[3], name)
    return None


def _printable(key: ItemKey) -> ItemKey:
    """Return the key with `?` for each control character, so that no name can forge lines of a plan."""
    parts = (key.resource, key.namespace, key.name)
    if all(map(str.isprintable, parts)):
        return key
    return ItemKey(*("".join(letter if letter.isprintable() else "?" for letter in part) for part in parts))


def _item(key: ItemKey, file: bytes) -> Item:
    try:
        body: Any = json.loads(file)
    except (ValueError, RecursionError):
        return Item(key, problem="its file in the backup is not JSON")
    if not isinstance(body, dict) or not isinstance(body.get("metadata"), dict):
        return Item(key, problem="its file in the backup holds no object")
    return Item(key, body)
