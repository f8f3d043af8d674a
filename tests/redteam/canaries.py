"""Canaries on a real node: what a tenant must neither read nor change, and where a tenant could read it."""

import gzip
import hashlib
import io
import json
import os
import secrets
import stat
import tarfile
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from testbed import Cluster
from testbed.node import csi, programs
from tests.redteam.world import NAB, NADR, NAR, Caller, Json, path

_READ_BY_EDITORS = ("configmaps", "secrets", "pods", "persistentvolumeclaims", "volumesnapshots", NAB, NAR, NADR)
_LARGEST_FILE = 32 << 20


def new_canary(name: str) -> str:
    """Return a text that is nowhere else."""
    return f"canary-{name}-{secrets.token_hex(16)}"


@dataclass(frozen=True)
class Canaries:
    """The texts by name, the files of the machine that hold them, and folders in which nothing may change."""

    texts: dict[str, str] = field(default_factory=dict)
    files: dict[str, Path] = field(default_factory=dict)
    folders: dict[str, Path] = field(default_factory=dict)

    def place(self, name: str, file: Path, text: str = "") -> None:
        """Write a canary into a file."""
        self.texts[name] = text or new_canary(name)
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(f"{self.texts[name]}\n")  # a log has whole lines
        self.files[name] = file

    def fingerprints(self) -> dict[str, str]:
        """Return one of each canary on disk, and of each folder."""
        found = {f"canary {name}": fingerprint({"": file}) for name, file in self.files.items()}
        for name, folder in self.folders.items():
            found[f"folder of {name}"] = fingerprint(
                {str(file.relative_to(folder)): file for file in folder.rglob("*") if not file.is_dir()}
            )
        return found

    def in_texts(self, places: Iterable[tuple[str, bytes]]) -> dict[str, list[str]]:
        """Return which canaries are in which places."""
        wanted = {name: text.encode() for name, text in self.texts.items()}
        found: dict[str, list[str]] = {}
        for place, content in places:
            held = [f"has canary {name}" for name, text in wanted.items() if text in content]
            if held:
                found[place] = held
        return found


def fingerprint(files: Mapping[str, Path]) -> str:
    """Return a digest of files with their names; links are not followed."""
    digest = hashlib.sha256()
    for name, file in sorted(files.items()):
        content = str(file.readlink()).encode() if file.is_symlink() else _content(file)
        digest.update(f"{name}\0{len(content)}\0".encode() + content)
    return digest.hexdigest()


def _content(file: Path) -> bytes:
    """Return what a regular file holds, or its beginning; nothing of what is none or is gone."""
    with suppress(FileNotFoundError, NotADirectoryError):
        if stat.S_ISREG(file.lstat().st_mode):
            with file.open("rb") as stream:
                return stream.read(_LARGEST_FILE)
    return b""


def _files_below(folder: Path) -> Iterator[Path]:
    if folder.is_file():
        yield folder
    for here, _, names in os.walk(folder, followlinks=False):
        yield from (Path(here) / name for name in names)


def volume_folder(cluster: Cluster, volume: Json) -> Path:
    """Return the folder of the node that holds a volume."""
    spec = volume["spec"]
    if "csi" in spec:
        return csi.volumes_folder(cluster.site) / str(spec["csi"]["volumeHandle"])
    return Path((spec.get("local") or spec.get("hostPath") or {"path": "/nowhere"})["path"])


def volumes_of(admin: Caller, namespace: str) -> list[Json]:
    """Return the volumes of the claims of a namespace."""
    volumes = admin.items(path("persistentvolumes"))
    return [volume for volume in volumes if volume["spec"].get("claimRef", {}).get("namespace") == namespace]


def pod_folder(cluster: Cluster, pod: Json) -> Path:
    """Return the folder of the kubelet with the volumes of a pod."""
    return programs.folder(cluster.site) / "kubelet" / "pods" / str(pod["metadata"]["uid"]) / "volumes"


def readable(cluster: Cluster, admin: Caller, namespace: str, archives: Iterable[Path]) -> Iterator[tuple[str, bytes]]:
    """Return all that whoever may edit in a namespace can read: volumes, logs, objects, and these archives."""
    for plural in _READ_BY_EDITORS:
        yield f"{namespace}/{plural}", json.dumps(admin.items(path(plural, namespace))).encode()
    for volume in volumes_of(admin, namespace):
        place = f"volume of {namespace}/{volume['spec']['claimRef']['name']}"
        yield from _contents(place, volume_folder(cluster, volume))
    for pod in admin.items(path("pods", namespace)):
        place = f"volumes of pod {namespace}/{pod['metadata']['name']}"
        yield from _contents(place, pod_folder(cluster, pod) / "kubernetes.io~empty-dir")
    for folder in (programs.folder(cluster.site) / "pod-logs").glob(f"{namespace}_*"):
        yield from _contents(f"log of {folder.name}", folder)
    for archive in archives:
        yield from _unpacked(archive)


def _contents(place: str, folder: Path) -> Iterator[tuple[str, bytes]]:
    if folder.exists():
        yield from ((f"{place}: {file.name}", _content(file)) for file in _files_below(folder))


def _unpacked(folder: Path) -> Iterator[tuple[str, bytes]]:
    """Return what a backup or restore has in the bucket, each file and each member of an archive."""
    for file in sorted(folder.glob("*")):
        content = _content(file)
        if file.name.endswith(".gz"):
            content = gzip.decompress(content)
        yield f"bucket: {file.name}", content
        if file.name.endswith(".tar.gz"):
            with tarfile.open(fileobj=io.BytesIO(content)) as tarball:
                for member in tarball.getmembers():
                    stream = tarball.extractfile(member)
                    yield f"bucket: {file.name}: {member.name}", stream.read() if stream else b""
