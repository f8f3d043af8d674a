"""The node's network: a pair of links between the machine and the node, and a forwarder to what listens on loopback.

The machine needs no rule and no sysctl for it. Both ends of the pair go away with the node's network namespace.
"""

import socket
import subprocess
import sys
from pathlib import Path

from testbed.control_plane import FIRST_SERVICE
from testbed.errors import TestbedError
from testbed.node.needs import command
from testbed.ports import Port
from testbed.processes import Program
from testbed.site import Site

FORWARDER = "forwarder"
PODS = "10.98.0.0/24"  # never leaves the node's network namespace, so every cluster can have the same
REGISTRY_PORT = 5000
_LINKS = (198, 18)  # 198.18.0.0/15 is reserved for benchmarks: no real network of the machine uses it
_SECONDS = 30


def machine_address(site: Site) -> str:
    """Return the machine's address on the link to the node."""
    return _address(site, 1)


def node_address(site: Site) -> str:
    """Return the node's own address."""
    return _address(site, 2)


def _address(site: Site, host: int) -> str:
    # Four addresses for each block of ports: what keeps the ports of clusters apart keeps their links apart, too.
    high, low = divmod(site.block * 4, 256)
    return ".".join(map(str, (*_LINKS, high, low + host)))


def server_addresses(site: Site) -> list[str]:
    """Return the addresses besides loopback at which the API server is found: by pods, and by the node."""
    return [FIRST_SERVICE, machine_address(site)] if site.options.node else []


def link_name(site: Site) -> str:
    """Return the name of the machine's end of the link."""
    return f"foresail{site.block}"


def connect(site: Site, node: int) -> None:
    """Join the machine with the network namespace of that process, the node's first one."""
    disconnect(site)
    link, inside = link_name(site), [command("nsenter"), f"--target={node}", "--net"]
    ip = command("ip")
    _run(ip, "link", "add", link, "type", "veth", "peer", "name", "eth0", "netns", str(node))
    _run(ip, "address", "add", f"{machine_address(site)}/30", "dev", link)
    _run(ip, "link", "set", link, "up")
    _run(*inside, ip, "link", "set", "lo", "up")
    _run(*inside, ip, "address", "add", f"{node_address(site)}/30", "dev", "eth0")
    _run(*inside, ip, "link", "set", "eth0", "up")
    _run(*inside, ip, "route", "add", "default", "via", machine_address(site))
    _run(*inside, command("sh"), "-c", "echo 1 > /proc/sys/net/ipv4/ip_forward")


def disconnect(site: Site) -> None:
    """Remove the link; without that the kernel does it some time after the node's last process has ended."""
    if (Path("/sys/class/net") / link_name(site)).exists():
        # The kernel may be faster.
        subprocess.run([command("ip"), "link", "delete", link_name(site)], capture_output=True, check=False)


def forwarder(site: Site) -> Program:
    """Return the forwarder from the machine's end of the link to the API server and S3 on loopback."""
    address = machine_address(site)
    forwarded = [site.port(Port.APISERVER), *([site.port(Port.S3)] if site.options.velero else [])]
    return Program(
        FORWARDER,
        [sys.executable, str(Path(__file__).with_name("forward.py")), address, *map(str, forwarded)],
        {},
        lambda: all(_is_open(address, port) for port in forwarded),
    )


def _is_open(address: str, port: int) -> bool:
    try:
        socket.create_connection((address, port), timeout=1).close()
    except OSError:
        return False
    return True


def _run(*words: str) -> None:
    done = subprocess.run(words, capture_output=True, text=True, check=False, timeout=_SECONDS)
    if done.returncode != 0:
        raise TestbedError(
            f"{' '.join(words)}: code {done.returncode}: {done.stderr.strip()}",
            "a real node needs network namespaces and veth links: load the kernel module veth",
        )
