"""A network that closes sandboxes, as a plugin would that enforces their NetworkPolicy: by the node's packet filter.

The node's own plugin enforces none. Here a pod outside sandboxes is let out once its address is known.
"""

import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from testbed import Cluster
from testbed.node import programs
from testbed.node.needs import command
from testbed.node.network import PODS

_TABLE = "closed_sandboxes"
_RULES = f"""
table inet {_TABLE} {{
  set outgoing {{ type ipv4_addr; }}
  chain forward {{
    type filter hook forward priority -10; policy accept;
    ip saddr {PODS} ip daddr != {PODS} ip saddr != @outgoing drop
  }}
}}
"""


@contextmanager
def closed_sandboxes(cluster: Cluster) -> Iterator[None]:
    """Let no pod of a sandbox leave the node's pod network for a while."""
    ends = threading.Event()
    _filter(cluster, _RULES)
    try:
        _let_out(cluster, set())
        follower = threading.Thread(target=_follow, args=(cluster, ends), daemon=True)
        follower.start()
        yield
    finally:
        ends.set()
        follower.join(timeout=30)
        _filter(cluster, f"delete table inet {_TABLE}")


def _follow(cluster: Cluster, ends: threading.Event) -> None:
    known: set[str] = set()
    while not ends.wait(0.3):
        known = _let_out(cluster, known)


def _let_out(cluster: Cluster, known: set[str]) -> set[str]:
    """Let out the pods that are in no sandbox, and return their addresses."""
    pods = cluster.listed("/api/v1/pods")
    found = {
        each.get("status", {}).get("podIP", "")
        for each in pods
        if not each["metadata"]["namespace"].startswith("foresail-check-")
    }
    new = {each for each in found - known if each.startswith("10.98.")}
    if new:
        _filter(cluster, f"add element inet {_TABLE} outgoing {{ {', '.join(sorted(new))} }}")
    return known | new


def _filter(cluster: Cluster, rules: str) -> None:
    node = programs.first_process(cluster.site)
    words = [command("nsenter"), f"--target={node}", "--net", command("nft"), "--file", "-"]
    subprocess.run(words, input=rules, text=True, check=True, capture_output=True, timeout=30)
