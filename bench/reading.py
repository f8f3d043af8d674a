"""Reads all objects of a kind, to know what is to be done and to check what was."""

from typing import TypeVar

from bench import MeasurementError
from bench.draining import opened
from foresail.kube.client import Client, decoder
from foresail.kube.failures import Failure
from foresail.kube.json_stream import LineSplitter
from foresail.kube.pages import Page
from foresail.plan import Kind

T = TypeVar("T")


async def everything(
    client: Client, kind: Kind, of: type[T], labels: str = "", namespace: str = ""
) -> tuple[list[T], str]:
    """Return all objects of a kind, and the version of the cluster at which they were read."""
    found: list[T] = []
    token = ""
    while True:
        chosen = {"labelSelector": labels} if labels else {}
        page = await client.page(kind, namespace, {"limit": "5000", "continue": token, **chosen}, Page)
        if isinstance(page, Failure):
            raise MeasurementError(f"{kind.plural} cannot be listed: {page}")
        found += map(decoder(of).decode, page.items or ())
        token = page.metadata.next_page
        if not token:
            return found, page.metadata.resource_version


async def streamed(client: Client, kind: Kind) -> int:
    """Return how many objects of a kind the API server streams, as it does to an operator that starts.

    An API server that has just been started then has them in its cache.
    """
    wanted = {"sendInitialEvents": "true", "allowWatchBookmarks": "true", "resourceVersionMatch": "NotOlderThan"}
    lines, found = LineSplitter(), 0
    async with await opened(client, kind, "", wanted) as stream:
        while chunk := await stream.read():
            for line in lines.feed(chunk):
                if line.startswith(b'{"type":"BOOKMARK"'):
                    return found
                found += 1
    raise MeasurementError(f"the stream of {kind.plural} ended after {found}")
