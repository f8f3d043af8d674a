"""Where one cluster lives: its folder, its ports, its files. Every program of the cluster is described from this."""

import fcntl
import json
import os
import shutil
import ssl
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, fields
from functools import cached_property
from pathlib import Path
from typing import Any, Self
from zlib import crc32

from testbed import ports
from testbed.api import trust
from testbed.command import spelled
from testbed.errors import TestbedError
from testbed.places import clusters_folder
from testbed.ports import Port

_FILE = "cluster.json"
ADMIN = "admin"
NODE_NAME = "worker"


@dataclass(frozen=True, slots=True)
class Options:
    """What a cluster is made of, besides etcd, the API server and the controller manager."""

    velero: str | None = None  # the component that brings it: "velero" or "velero-1.17"
    kubernetes: str = "kube"  # the component that brings the control plane: "kube", or "kube-1.34" and others
    emulate: str = ""  # the older minor version, such as 1.33, whose kinds and features the control plane has instead
    nodes: int = 0
    karpenter: str | None = None  # the component that brings it: "karpenter" or "karpenter-1.15"
    audit: bool = False
    node_seconds: int = 30  # how long a node that Karpenter made takes to become ready
    capacity_buffers: bool = False  # whether Karpenter acts on CapacityBuffers; their kind is there in any case
    node: bool = False  # whether there is a real node, whose pods are containers
    flux: bool = False  # whether Flux's controllers run, which read buckets of the S3 server
    ha: bool = False  # whether the control plane is highly available: three etcd members, three API servers
    csi: bool = False  # whether the real node has volumes with snapshots, of which Velero makes use
    saves_memory: bool = False  # whether etcd and the API servers collect garbage as often as Go does by default

    @property
    def pods_run(self) -> bool:
        """Whether there are, or will be, nodes."""
        return self.node or self.has_kwok

    @property
    def has_kwok(self) -> bool:
        """Whether KWOK plays nodes."""
        return self.karpenter is not None or self.nodes > 0

    def written(self) -> dict[str, object]:
        """Return what differs from the defaults: another checkout may not know an option that nobody chose."""
        defaults = asdict(Options())
        return {name: value for name, value in asdict(self).items() if value != defaults[name]}

    @classmethod
    def read(cls, written: dict[str, Any]) -> Self:
        """Return options that were written; those that only another checkout knows are left out."""
        own = {field.name for field in fields(cls)}
        return cls(**{name: value for name, value in written.items() if name in own})


@dataclass(frozen=True)
class Site:
    """The place of one cluster, the same for everyone who opens it by its name."""

    folder: Path
    block: int
    options: Options
    owner: str | None  # the mark of the process that the cluster must not outlive, if any

    @property
    def name(self) -> str:
        """The cluster's name."""
        return self.folder.name

    @classmethod
    def claim(cls, name: str, options: Options, owner: str | None) -> Self:
        """Make the folder of a new cluster and reserve its ports."""
        if not name or name.startswith(".") or "/" in name:
            raise TestbedError(f"{name!r} cannot be a cluster's name", "use letters, digits and dashes")
        with _registry_lock():
            folder = clusters_folder() / name
            if folder.exists():
                raise TestbedError(f"cluster {name!r} is there already", f"run: {spelled('down', '--name', name)}")
            taken = {site.block for site in known()}
            # A state folder knows nothing of the clusters of another, so each begins elsewhere.
            site = cls(folder, ports.free_block(taken, crc32(str(folder.parent).encode())), options, owner)
            content = {"block": site.block, "options": options.written(), "owner": owner}
            scratch = folder.with_name(f".{name}.new")
            shutil.rmtree(scratch, ignore_errors=True)
            scratch.mkdir()
            (scratch / _FILE).write_text(json.dumps(content, indent=2))
            scratch.rename(folder)  # a folder that can be seen always says whose ports it has
        return site

    @classmethod
    def open(cls, name: str) -> Self:
        """Return the site of an existing cluster."""
        folder = clusters_folder() / name
        try:
            content = json.loads((folder / _FILE).read_text())
        except FileNotFoundError:
            raise TestbedError(f"there is no cluster {name!r}", f"run: {spelled('up')}") from None
        return cls(folder, content["block"], Options.read(content["options"]), content["owner"])

    @property
    def is_orphaned(self) -> bool:
        """Whether the process that the cluster must not outlive is gone."""
        return self.owner is not None and process_mark(int(self.owner.split("@")[0])) != self.owner

    def port(self, port: Port) -> int:
        """Return a port's number."""
        return ports.number(self.block, port)

    def url(self, port: Port, scheme: str = "https") -> str:
        """Return the loopback address of a server."""
        return f"{scheme}://127.0.0.1:{self.port(port)}"

    @property
    def server(self) -> str:
        """The API server's address."""
        return self.url(Port.APISERVER)

    @property
    def pki(self) -> Path:
        """The folder of keys and certificates."""
        return self.folder / "pki"

    @property
    def admin_kubeconfig(self) -> Path:
        """The administrator's kubeconfig."""
        return self.folder / "kubeconfig"

    @property
    def programs(self) -> Path:
        """The folder of links to the programs that a person wants at hand."""
        return self.folder / "bin"

    @property
    def bucket(self) -> Path:
        """The folder in which the S3 server keeps the objects of Velero's bucket."""
        return self.folder / "s3" / "data" / "velero"

    @property
    def audit_logs(self) -> Path:
        """The folder of the audit logs, one for each API server."""
        return self.folder / "audit"

    @cached_property
    def admin_trust(self) -> ssl.SSLContext:
        """A TLS context with the administrator's certificate."""
        return trust(self.pki / "ca.crt", (self.pki / f"user-{ADMIN}.crt", self.pki / f"user-{ADMIN}.key"))


def process_mark(pid: int) -> str | None:
    """Return what tells a process from every other, later ones with the same id included; None if it is gone."""
    try:
        status = Path(f"/proc/{pid}/stat").read_text()
    except FileNotFoundError:
        return None
    started = status.rpartition(")")[2].split()[19]  # field 22 of the line; a name may contain blanks and brackets
    return f"{pid}@{started}"


def names() -> list[str]:
    """Return the names of all clusters of this user."""
    folder = clusters_folder()
    return sorted(entry.name for entry in folder.iterdir() if entry.name[0] != ".") if folder.exists() else []


def known() -> list[Site]:
    """Return the sites of all clusters, without what is only a rest of one."""
    found = []
    for name in names():
        with suppress(TestbedError):  # it may be removed while we look
            found.append(Site.open(name))
    return found


def remove(folder: Path) -> None:
    """Remove a cluster's folder: at once for whoever looks, then file by file."""
    trash = folder.with_name(f".{folder.name}.old")
    shutil.rmtree(trash, ignore_errors=True)
    if folder.exists():
        folder.rename(trash)
    shutil.rmtree(trash, ignore_errors=True)


@contextmanager
def _registry_lock() -> Iterator[None]:
    folder = clusters_folder()
    folder.mkdir(parents=True, exist_ok=True)
    lock = os.open(folder / ".lock", os.O_RDWR | os.O_CREAT, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
    finally:
        os.close(lock)
