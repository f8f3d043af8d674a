"""The kinds in a backup, and the volumes that Velero would recreate unchanged.

Velero stores both beside a backup: the names of all objects by kind, and how each volume was backed up. A completed
backup never changes, so they are read once. The files come from a bucket and may hold anything.
"""

from collections.abc import Collection, Iterable

import msgspec

from foresail.api.velero_files import MOST_VOLUMES, names_in, raw_lists, volume_infos

_LONGEST_KIND = 384  # a group of 253 characters, a version and a kind of 63
_LONGEST_NAME = 253  # of an object
_PER_NAME = 100  # what Python stores beside the characters of a name
_VOLUMES = "v1/PersistentVolume"
_FILES = "PodVolumeBackup"
_SAFE = (_FILES, "CSISnapshot")  # Velero provisions a new volume for these
_NATIVE = "NativeSnapshot"
_UNNAMED = "of which the backup does not say whose it is"


class ContentKind(msgspec.Struct, frozen=True, order=True):
    """A kind of object in a backup, as the objects name it."""

    group: str
    kind: str

    def __str__(self) -> str:
        return f"{self.kind}.{self.group}" if self.group else self.kind


class VolumeRow(msgspec.Struct, frozen=True, order=True):
    """A PersistentVolume in a backup that Velero may re-create as it was."""

    name: str
    claim: str = ""
    has_snapshot: bool = False  # a native snapshot: re-created as it was only if volumes are not restored


class Contents(msgspec.Struct, frozen=True):
    """The contents of one backup, as far as they are stored."""

    kinds: tuple[ContentKind, ...] = ()
    """The kinds with objects in the tenant's namespace."""
    counts: tuple[int, ...] = ()
    """How many objects the namespace has of each of these kinds."""
    cluster_kinds: tuple[ContentKind, ...] = ()
    volumes: tuple[VolumeRow, ...] = ()
    copied: tuple[str, ...] = ()
    """The claims with files that Velero copied from pods; an empty name for a volume without a claim."""

    @property
    def characters(self) -> int:
        """How much memory they need, about, counted in characters."""
        kinds = sum(len(kind.group) + len(kind.kind) + _PER_NAME for kind in (*self.kinds, *self.cluster_kinds))
        copied = sum(len(claim) + _PER_NAME for claim in self.copied)
        return kinds + copied + sum(len(volume.name) + len(volume.claim) + _PER_NAME for volume in self.volumes)

    def objects(self, kinds: Collection[ContentKind]) -> int:
        """Return how many objects the namespace has of some kinds."""
        counted = dict(zip(self.kinds, self.counts, strict=False))
        return sum(counted.get(kind, 0) for kind in kinds)


class _VolumeDetails(msgspec.Struct, rename="camel"):
    reclaim_policy: str = ""


class _VolumeInfo(msgspec.Struct, rename="camel"):
    pv_name: str = ""
    pvc_name: str = ""
    pvc_namespace: str = ""
    backup_method: str = ""
    result: str = ""
    pv_info: _VolumeDetails | None = None


_infos = msgspec.json.Decoder(list[_VolumeInfo] | None)


def contents_of(namespace: str, resources: bytes, volumes: bytes | None, *, is_shared: bool = False) -> Contents | None:
    """Return the contents of a backup of one namespace; None if the files are not of Velero's shape.

    Of a backup that others share, volumes of their claims and of none are not among them: Velero restores a volume
    with its claim only. One of which nothing is said counts, without its name.
    """
    lists = raw_lists(resources)
    infos = volume_infos(volumes, _infos) if volumes is not None else []
    if lists is None or infos is None:
        return None
    names = names_in(lists[_VOLUMES], MOST_VOLUMES) if _VOLUMES in lists else []
    if names is None or _is_too_long(lists, names, infos):
        return None
    if is_shared:
        names, infos = _own(namespace, names, infos)
    here = f'"{namespace}/'.encode()
    elsewhere = b"/"
    objects = {_kind(name): bytes(raw) for name, raw in lists.items()}
    own = sorted((kind, count) for kind, raw in objects.items() if (count := raw.count(here)))
    return Contents(
        kinds=tuple(kind for kind, _ in own),
        counts=tuple(count for _, count in own),
        cluster_kinds=tuple(sorted(kind for kind, raw in objects.items() if elsewhere not in raw)),
        volumes=tuple(sorted(_as_they_were(names, infos))),
        copied=_copied_claims(infos),
    )


def _own(namespace: str, names: list[str], infos: list[_VolumeInfo]) -> tuple[list[str], list[_VolumeInfo]]:
    """Return the volumes of one namespace, and what is said of them."""
    said = {info.pv_name for info in infos}
    mine = [info for info in infos if info.pvc_namespace == namespace]
    own = {info.pv_name for info in mine}
    unknown = [_UNNAMED] if any(name not in said for name in names) else []
    return [*(name for name in names if name in own), *unknown], mine


def _copied_claims(infos: list[_VolumeInfo]) -> tuple[str, ...]:
    """Return the claims whose files are in the backup."""
    return tuple(sorted({info.pvc_name for info in infos if info.backup_method == _FILES}))


def _is_too_long(lists: Iterable[str], volumes: list[str], infos: list[_VolumeInfo]) -> bool:
    """Whether a kind, a volume or a claim has a name that Kubernetes does not allow."""
    longest_name = max(_longest(volumes), _longest(info.pvc_name for info in infos))
    return _longest(lists) > _LONGEST_KIND or longest_name > _LONGEST_NAME


def _longest(names: Iterable[str]) -> int:
    return max(map(len, names), default=0)


def _as_they_were(names: list[str], infos: list[_VolumeInfo]) -> list[VolumeRow]:
    """Return the volumes that Velero does not provision again; one without information counts among them."""
    known = {volume_info.pv_name: volume_info for volume_info in infos if volume_info.pv_name}
    volumes: list[VolumeRow] = []
    for name in names:
        info = known.get(name, _VolumeInfo())
        is_native = info.backup_method == _NATIVE and info.result != "failed"
        is_deleted = info.pv_info is not None and info.pv_info.reclaim_policy == "Delete"
        if info.backup_method in _SAFE or (is_deleted and info.backup_method != _NATIVE):
            continue
        volumes.append(VolumeRow(name, info.pvc_name, has_snapshot=is_native))
    return volumes


def _kind(name: str) -> ContentKind:
    """Return the kind that Velero writes as `apps/v1/Deployment` or `v1/Pod`."""
    parts = name.split("/")
    return ContentKind("/".join(parts[:-2]), parts[-1])
