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

_CLUSTER = 4  # parts of resources/RESOURCE/cluster/NAME.json
_NAMESPACED = 5  # parts of resources/RESOURCE/namespaces/NAMESPACE/NAME.json


class ArchiveError(Exception):
    """Why an archive cannot be read."""


def read_archive(archive: bytes) -> list[Item]:
    """Return the items of an unpacked archive in the order of their names.

    Velero stores an item a second time below its preferred version; only the first place counts.
    """
    try:
        with tarfile.open(fileobj=io.BytesIO(archive), mode="r:") as tar:
            found = dict(_items(tar))
    except (tarfile.TarError, OSError, EOFError) as problem:
        raise ArchiveError(f"the archive is damaged: {problem}") from problem
    return [found[key] for key in sorted(found)]


def _items(tar: tarfile.TarFile) -> Iterator[tuple[ItemKey, Item]]:
    for count, member in enumerate(tar):
        if count > MOST_ITEMS:
            raise ArchiveError(f"the archive has more than {MOST_ITEMS} files")
        key = key_of(member.name) if member.isfile() else None
        file = tar.extractfile(member) if key is not None else None
        if key is not None and file is not None:
            yield key, _item(key, file.read())


def key_of(path: str) -> ItemKey | None:
    """Return the item that a path of the archive stands for; None for any other file."""
    parts = path.removeprefix("./").split("/")
    if parts[0] != "resources" or not path.endswith(".json"):
        return None
    name = parts[-1].removesuffix(".json")
    if len(parts) == _CLUSTER and parts[2] == "cluster":
        return ItemKey(parts[1], "", name)
    if len(parts) == _NAMESPACED and parts[2] == "namespaces":
        return ItemKey(parts[1], parts[3], name)
    return None


def _item(key: ItemKey, file: bytes) -> Item:
    try:
        body: Any = json.loads(file)
    except (ValueError, RecursionError):
        return Item(key, problem="its file in the backup is not JSON")
    if not isinstance(body, dict) or not isinstance(body.get("metadata"), dict):
        return Item(key, problem="its file in the backup holds no object")
    return Item(key, body)
