"""The ports of a cluster: a block of fixed numbers, so that a component comes back where it was.

The blocks lie below the range from which Linux takes the ports of outgoing connections: a component that is down
for a moment cannot lose its port to one.
"""

import socket
from enum import IntEnum, auto

_FIRST = 20_000
_BLOCK = 32
_BLOCKS = 380


class Port(IntEnum):
    """Who listens: the value is the place in the block."""

    ETCD = 0
    ETCD_PEER = auto()
    APISERVER = auto()
    CONTROLLER_MANAGER = auto()
    SCHEDULER = auto()
    KWOK = auto()
    S3 = auto()
    VELERO_METRICS = auto()
    VELERO_PROFILER = auto()
    KARPENTER_METRICS = auto()
    KARPENTER_HEALTH = auto()
    FLUX_FILES = auto()
    FLUX_SOURCE_HEALTH = auto()
    FLUX_KUSTOMIZE_HEALTH = auto()
    FLUX_HELM_HEALTH = auto()
    # Of a highly available control plane only; see testbed.replicas.
    ETCD_2 = auto()
    ETCD_3 = auto()
    ETCD_PEER_2 = auto()
    ETCD_PEER_3 = auto()
    ETCD_LINK_1 = auto()
    ETCD_LINK_2 = auto()
    ETCD_LINK_3 = auto()
    PEER_LINK_1 = auto()
    PEER_LINK_2 = auto()
    PEER_LINK_3 = auto()
    APISERVER_1 = auto()
    APISERVER_2 = auto()
    APISERVER_3 = auto()
    CONTROLLER_MANAGER_2 = auto()
    SCHEDULER_2 = auto()
    LINKS = auto()


def number(block: int, port: Port) -> int:
    """Return the port's number in that block."""
    return _FIRST + block * _BLOCK + port


def free_block(taken: set[int], begin: int = 0) -> int:
    """Return the first block from there on that no cluster has and on which nobody listens."""
    blocks = ((begin + step) % _BLOCKS for step in range(_BLOCKS))
    return next(block for block in blocks if block not in taken and all(is_free(number(block, port)) for port in Port))


def is_free(port: int) -> bool:
    """Tell whether one could listen on that loopback port now."""
    with socket.socket() as probe:
        # As servers do: a connection that lingers in TIME_WAIT does not keep the port from a listener.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True
