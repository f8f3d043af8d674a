"""Writes many objects at once, past the API server: copies of what it has stored.

A hundred thousand objects are not created one by one: that would take minutes, and their creation is not what is
measured. When the API server is back it reads them as it reads everything it has stored.
"""

import base64
from collections.abc import Iterable
from itertools import islice
from typing import Any

from bench import MeasurementError
from testbed import Cluster
from testbed.api import request
from testbed.control_plane import APISERVER
from testbed.ports import Port

Stored = tuple[str, bytes]
"""Where an object is stored, and its content."""

_AT_ONCE = 100  # objects in one write to etcd, which takes 128


def stored(cluster: Cluster, key: str) -> bytes:
    """Return what is stored under a key."""
    found: str = _etcd(cluster, "kv/range", {"key": _text(key.encode())})["kvs"][0]["value"]
    return base64.b64decode(found)


def count(cluster: Cluster, first: str, end: str) -> int:
    """Return how many keys there are from one up to another; the API server has no work by it."""
    asked = {"key": _text(first.encode()), "range_end": _text(end.encode()), "count_only": True}
    return int(_etcd(cluster, "kv/range", asked).get("count", 0))


def store(cluster: Cluster, objects: Iterable[Stored]) -> None:
    """Store all of these objects while the API server is down."""
    cluster.fault.kill(APISERVER)
    pairs = ({"key": _text(key.encode()), "value": _text(content)} for key, content in objects)
    while puts := [{"requestPut": pair} for pair in islice(pairs, _AT_ONCE)]:
        _etcd(cluster, "kv/txn", {"success": puts})
    cluster.fault.start(APISERVER)


def _text(content: bytes) -> str:
    return base64.b64encode(content).decode()


def _etcd(cluster: Cluster, call: str, body: object) -> dict[str, Any]:
    answer = request("POST", f"{cluster.site.url(Port.ETCD, 'http')}/v3/{call}", body=body)
    content: dict[str, Any] = answer.json()
    if "error" in content:
        raise MeasurementError(f"etcd refused {call}: {answer.text}")
    return content
