"""The ports of a cluster: a block of fixed numbers, so that a component comes back where it was.

The blocks lie below the range from which Linux takes the ports of outgoing connections: a component that is down
for a moment cannot lose its port to one.
"""

import socket
import zlib
from enum import IntEnum, auto

_FIRST = 20_000
_BLOCK = 16
_BLOCKS = 700


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


def number(block: int, port: Port) -> int:
    """Return the port's number in that block."""
    return _FIRST + block * _BLOCK + port


def free_block(taken: set[int], home: str = "") -> int:
    """Return a block that no cluster has and on which nobody listens.

    The search begins elsewhere for each home of clusters: those of another home are not known, and may have taken their
    block a moment ago without listening yet.
    """
    begin = zlib.crc32(home.encode())
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
