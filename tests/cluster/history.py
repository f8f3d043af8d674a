"""Every state of every object of a kind, written down from one watch: nothing from its begin to its end is missed."""

import http.client
import json
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any
from urllib.parse import urlsplit

from foresail.kube.json_stream import truncate_depth
from testbed import Cluster

_SECONDS = 36_000
_ANSWER_SECONDS = 60.0
_CATCH_UP_SECONDS = 60.0


@contextmanager
def recorded(cluster: Cluster, path: str) -> Iterator[list[dict[str, Any]]]:
    """Yield the states of the objects under a path: those at the begin of the block, then each change to its end."""
    present = cluster.collection(path)
    states: list[dict[str, Any]] = present["items"]
    where = urlsplit(cluster.server)
    trust = cluster.site.admin_trust
    wire = http.client.HTTPSConnection(where.hostname or "", where.port, context=trust, timeout=_ANSWER_SECONDS)
    version = present["metadata"]["resourceVersion"]
    wire.request("GET", f"{path}?watch=true&resourceVersion={version}&timeoutSeconds={_SECONDS}")
    stream = wire.getresponse()  # from now on nothing can be missed, however late it is read
    assert stream.status == http.client.OK, stream.read()
    assert wire.sock is not None
    wire.sock.settimeout(None)

    def read() -> None:
        with suppress(OSError, http.client.HTTPException, ValueError):  # it is shut down in the end
            for line in stream:
                states.append(json.loads(truncate_depth(line))["object"])  # noqa: PERF401 - each is seen as it comes

    reader = threading.Thread(target=read)
    reader.start()
    try:
        yield states
        _catch_up(cluster, path, states)
        assert reader.is_alive(), f"the record of {path} has a gap"
    finally:
        with suppress(OSError):
            wire.sock.shutdown(socket.SHUT_RDWR)
        reader.join()
        wire.close()


def _catch_up(cluster: Cluster, path: str, states: list[dict[str, Any]]) -> None:
    """Return when the record has come to what there is now."""
    newest = max(map(_version, cluster.listed(path)), default=0)
    deadline = time.monotonic() + _CATCH_UP_SECONDS
    while max(map(_version, states), default=0) < newest:
        assert time.monotonic() < deadline, f"the record of {path} does not follow"
        time.sleep(0.1)


def _version(item: dict[str, Any]) -> int:
    return int(item["metadata"]["resourceVersion"])
