"""A cluster as one page reads it: each list and each right is asked for once, and all parts of the page agree."""

import asyncio
from collections import defaultdict
from collections.abc import Awaitable, Callable, Hashable

import msgspec

from foresail.api.authorization import OWN_ACCESS_REVIEW
from foresail.cli.access.cluster import Cluster
from foresail.console.kept import is_key, labelled
from foresail.plan import Body, Key, Kind

_Read = Callable[[], Awaitable[list[msgspec.Raw]]]


class ReadOnce(Cluster):
    """Another cluster, of which nothing is read twice; it lasts for one page."""

    def __init__(self, cluster: Cluster) -> None:
        super().__init__(cluster.client)
        self._cluster = cluster
        self._reading: dict[Hashable, asyncio.Lock] = defaultdict(asyncio.Lock)
        self._lists: dict[Hashable, list[msgspec.Raw]] = {}
        self._reviews: dict[Hashable, msgspec.Raw] = {}

    async def listed(self, kind: Kind, namespace: str, labels: str = "", fields: str = "") -> list[msgspec.Raw]:
        """Return all objects of a kind; those with a label from the list of all, if that was read."""
        whole = self._lists.get((kind, namespace, "", ""))
        if whole is not None and is_key(labels) and not fields:
            return labelled(whole, labels)
        return await self._list(
            (kind, namespace, labels, fields), lambda: self._cluster.listed(kind, namespace, labels, fields)
        )

    async def listed_if_known(self, kind: Kind, namespace: str = "") -> list[msgspec.Raw]:
        """Return all objects of a kind, and none if the cluster does not know that kind."""
        if (kind, namespace, "", "") in self._lists:
            return await self.listed(kind, namespace)
        raws = await self._list((kind, namespace), lambda: self._cluster.listed_if_known(kind, namespace))
        if raws:  # the cluster knows the kind
            self._lists[kind, namespace, "", ""] = raws
        return raws

    async def create(self, kind: Kind, key: Key, body: Body, *, dry_run: bool = False) -> msgspec.Raw:
        """Create an object; the answer to a question about the viewer's rights is that of the first time."""
        if kind is not OWN_ACCESS_REVIEW:
            return await self._cluster.create(kind, key, body, dry_run=dry_run)
        asked = msgspec.json.encode(body)
        async with self._reading[asked]:
            if asked not in self._reviews:
                self._reviews[asked] = await self._cluster.create(kind, key, body)
            return self._reviews[asked]

    async def _list(self, what: Hashable, read: _Read) -> list[msgspec.Raw]:
        async with self._reading[what]:
            if what not in self._lists:
                self._lists[what] = await read()
            return list(self._lists[what])
