"""What this machine must have for a real node: Linux, root, and a few packages."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

from testbed.errors import TestbedError
from testbed.node import cgroups

PACKAGES = {  # a file or command of the package: the package
    "runc": "runc",
    "buildah": "buildah",
    "/usr/lib/cni/bridge": "containernetworking-plugins",
    "docker-registry": "docker-registry",
    "mmdebstrap": "mmdebstrap",
    "busybox": "busybox-static",
    "nft": "nftables",
    "iptables": "iptables",
    "conntrack": "conntrack",
    "ip": "iproute2",
    "unshare": "util-linux",
}
_RIGHTS = "the rights to make namespaces, mounts, links and control groups (a privileged container has them)"
_SECONDS = 30
_SYSTEM_PATH = "/usr/local/sbin:/usr/sbin:/sbin:/usr/local/bin:/usr/bin:/bin"


def install_command() -> str:
    """Return the command that installs every package on Debian and its descendants."""
    return f"apt-get install --no-install-recommends {' '.join(PACKAGES.values())}"


def missing() -> list[str]:
    """Return what this machine lacks for a real node, each as a reader wants to be told."""
    lacks = [] if sys.platform == "linux" else ["Linux"]
    lacks += [] if os.geteuid() == 0 else ["root"]
    lacks += [f"package {name}" for file, name in PACKAGES.items() if _found(file) is None]
    return lacks or ([] if _has_rights() else [_RIGHTS])


def _has_rights() -> bool:
    """Whether root may do here what a node does: in a container it often may not."""
    probe = 'mount -t tmpfs tmpfs /run && "$0" link add testbed0 type veth peer name testbed1'
    words = [command("unshare"), "--pid", "--fork", "--mount", "--net", "--uts", "--ipc", "sh", "-c", probe]
    done = subprocess.run([*words, command("ip")], capture_output=True, check=False, timeout=_SECONDS)
    return done.returncode == 0 and cgroups.is_writable()


def require() -> None:
    """Refuse to go on without what a real node needs."""
    if lacks := missing():
        raise TestbedError(
            f"a real node needs what this machine lacks: {', '.join(lacks)}",
            f"as root, install the packages: {install_command()}",
        )


def command(name: str) -> str:
    """Return the path of a system command; the folders of administrators count even if PATH lacks them."""
    found = _found(name)
    if found is None:
        raise TestbedError(f"there is no command {name!r}", f"as root, run: {install_command()}")
    return found


def search_path(*first: Path) -> str:
    """Return a PATH with these folders before those of the system."""
    return ":".join([*map(str, first), _SYSTEM_PATH])


def _found(name: str) -> str | None:
    if name.startswith("/"):
        return name if Path(name).exists() else None
    return shutil.which(name, path=f"{os.environ.get('PATH', '')}:{_SYSTEM_PATH}")
