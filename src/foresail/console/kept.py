"""Long lists of a viewer, kept current by a watch with the viewer's own token, so that pages do not read them again.

A list that fits into one page is read each time: that is as cheap as asking whether the viewer may still read it.
"""

import asyncio
import zlib
from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from foresail.cli.access.cluster import Cluster, may
from foresail.cli.access.together import in_thread
from foresail.kube.client import Client
from foresail.kube.clock import steady
from foresail.kube.failures import Failure
from foresail.kube.json_stream import LineSplitter, decode
from foresail.kube.pages import Page
from foresail.kube.reflector import WatchLine
from foresail.plan import Key, Kind

MOST_READ, MOST_READ_OF_NAMESPACE = 24 << 20, 4 << 20
"""Bytes of JSON of one list; tenants choose how large their objects are, and all viewers share the memory."""

MOST_BYTES, MOST_LISTS = 32 << 20, 64
"""Compressed bytes and lists that all viewers keep; what is beyond that is read each time."""

MOST_BYTES_EACH, MOST_LISTS_EACH = 8 << 20, 12
"""The same for one viewer."""

MOST_CHANGES = 2000
"""Objects of a list that have changed since it was read; then it is read again."""

SECONDS = 60
"""After so long a watch ends and is opened again with the token; a list that was not used meanwhile is dropped."""

_OPENS = 5.0  # seconds until a watch must be open
_GRACE = 10.0  # seconds after which a watch that should have ended counts as dead
_LONGEST_READ = 600.0  # seconds; a list whose read began before a change and ends after that is not kept
_SHORTEST = 1.0  # a watch that ends sooner is not opened again: something cuts it
_FASTEST = 1  # of zlib: JSON of one kind shrinks to a tenth in any case


Place = tuple[str, Kind, str]
"""A viewer, a kind, and a namespace or the whole cluster."""


class _Metadata(msgspec.Struct):
    name: str = ""
    namespace: str = ""
    resource_version: str = msgspec.field(default="", name="resourceVersion")
    labels: dict[str, str] | None = None


class _Named(msgspec.Struct):
    metadata: _Metadata


_LARGE = 1 << 10  # bytes; such an object loses what no page shows
_LONGEST_LINE = 4 << 20
_WRITES = "managedFields"
_document = msgspec.json.Decoder(dict[str, Any])
_items = msgspec.json.Decoder(list[msgspec.Raw])
_named = msgspec.json.Decoder(_Named)
_line = msgspec.json.Decoder(WatchLine)


def slimmed(page: Page) -> Page:
    """Return a page without what no page shows of large objects, and without the memory of its answer."""
    items = [_slim(item) if len(memoryview(item)) > _LARGE else item.copy() for item in page.items or ()]
    return Page(page.metadata, items)


def _slim(item: msgspec.Raw) -> msgspec.Raw:
    document = decode(_document, item)
    metadata = document.get("metadata")
    if isinstance(metadata, dict):
        metadata.pop("finalizers", None)
        metadata[_WRITES] = [_scaled(write) for write in metadata.get(_WRITES) or () if _is_of_pods(write)]
    return msgspec.Raw(msgspec.json.encode(document))


def _is_of_pods(write: dict[str, Any]) -> bool:
    return write.get("subresource") == "status" or "f:replicas" in str(write)


def _scaled(write: dict[str, Any]) -> dict[str, Any]:
    """Return when the number of pods was set, which is all that a page needs of who wrote what."""
    return {"time": write.get("time"), "fieldsV1": {"f:spec": {"f:replicas": {}}}}


class KeptList:
    """The objects of a list as they were read, and those that a watch has reported since."""

    def __init__(self, pages: Sequence[Page]) -> None:
        self._pages = [zlib.compress(msgspec.json.encode(page.items or []), _FASTEST) for page in pages]
        self._changes: dict[Key, bytes | None] = {}  # None: deleted
        self.version = pages[-1].metadata.resource_version
        self.size = sum(map(len, self._pages))
        self.used = steady()
        self.is_followed = False  # a watch is open, so the list is current

    @property
    def is_worn(self) -> bool:
        """Whether so much has changed that the list is better read again."""
        return len(self._changes) > MOST_CHANGES

    def feed(self, line: bytes) -> bool:
        """Process one line of the watch; False if the list can no longer be kept."""
        watch_line = _line.decode(line)
        if watch_line.type not in ("ADDED", "MODIFIED", "DELETED", "BOOKMARK"):
            return False
        metadata = _named.decode(watch_line.object).metadata
        self.version = metadata.resource_version
        if watch_line.type != "BOOKMARK":
            key = Key(metadata.namespace, metadata.name)
            before = self._changes.get(key) or b""
            large = len(memoryview(watch_line.object)) > _LARGE
            kept = _slim(watch_line.object) if large else watch_line.object
            after = self._changes[key] = None if watch_line.type == "DELETED" else bytes(kept)
            self.size += len(after or b"") - len(before)
        return not self.is_worn

    def items(self, label: str = "") -> list[msgspec.Raw]:
        """Return the objects in the order of their names, or those with a label."""
        changes = dict(self._changes)
        read = [raw for page in self._pages for raw in _items.decode(zlib.decompress(page))]
        if changes:
            objects: dict[Key, msgspec.Raw] = {_key(raw): raw for raw in read}
            objects |= {key: msgspec.Raw(raw) for key, raw in changes.items() if raw is not None}
            read = [objects[key] for key in sorted(objects, key=str) if changes.get(key, b"") is not None]
        return labelled(read, label)


def labelled(raws: list[msgspec.Raw], label: str) -> list[msgspec.Raw]:
    """Return the objects with a label; all if that is empty."""
    return [raw for raw in raws if not label or label in (_named.decode(raw).metadata.labels or {})]


def _key(raw: msgspec.Raw) -> Key:
    metadata = _named.decode(raw).metadata
    return Key(metadata.namespace, metadata.name)


class Kept:
    """The lists of all viewers; each is found by the token with which it was read, and ends by itself."""

    def __init__(self) -> None:
        self._lists: dict[Place, KeptList] = {}
        self._tasks: dict[Place, asyncio.Task[None]] = {}
        self._forgotten: dict[str, float] = {}
        self._compressing = asyncio.Lock()

    def __len__(self) -> int:
        return len(self._lists)

    def find(self, viewer: str, kind: Kind, namespace: str) -> KeptList | None:
        """Return a list of a viewer that is current; whether they may still read it is the caller's question."""
        kept_list = self._lists.get((viewer, kind, namespace))
        return kept_list if kept_list is not None and kept_list.is_followed else None

    def keep(self, place: Place, client: Client, pages: list[Page], began: float) -> None:
        """Keep a list whose read began then, unless it is kept already, has no room, or may be from before a change."""
        viewer = place[0]
        own = sum(task[0] == viewer for task in self._tasks)
        has_room = len(self._tasks) < MOST_LISTS and own < MOST_LISTS_EACH and self._fits(viewer)
        is_new = place not in self._tasks and self._forgotten.get(viewer, began - 1) < began
        if is_new and has_room and not self._compressing.locked():
            task = self._tasks[place] = asyncio.create_task(self._kept(place, client, pages))
            task.add_done_callback(lambda _: self._ended(place, task))

    def forget(self, viewer: str) -> None:
        """Drop everything of a viewer."""
        oldest = steady() - _LONGEST_READ
        self._forgotten = {key: at for key, at in self._forgotten.items() if at > oldest} | {viewer: steady()}
        for place in [task for task in self._tasks if task[0] == viewer]:
            self._lists.pop(place, None)
            self._tasks.pop(place).cancel()

    async def close(self) -> None:
        """Drop everything."""
        tasks = list(self._tasks.values())
        for viewer in {task[0] for task in self._tasks}:
            self.forget(viewer)
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _kept(self, place: Place, client: Client, pages: list[Page]) -> None:
        viewer, kind, namespace = place
        async with self._compressing:  # the pages are large, and no turn bounds how many lists wait here
            if not await may(Cluster(client), "watch", kind, namespace):
                return
            kept_list = await in_thread(lambda: KeptList(pages))
            pages.clear()
        self._lists[place] = kept_list
        if self._fits(viewer):
            await _follow(kept_list, client, kind, namespace, lambda: self._fits(viewer))

    def _fits(self, viewer: str) -> bool:
        own = sum(kept.size for place, kept in self._lists.items() if place[0] == viewer)
        return own <= MOST_BYTES_EACH and sum(kept_list.size for kept_list in self._lists.values()) <= MOST_BYTES

    def _ended(self, place: Place, task: asyncio.Task[None]) -> None:
        if self._tasks.get(place) is task:
            del self._tasks[place]
            self._lists.pop(place, None)
        if not task.cancelled():
            task.exception()  # the next page reads the list, and reports what is wrong


async def _follow(kept_list: KeptList, client: Client, kind: Kind, namespace: str, fits: Callable[[], bool]) -> None:
    """Feed a list until its watch fails, or until it was not used for a while."""
    began = kept_list.used - _SHORTEST
    while kept_list.used >= began and steady() - began >= _SHORTEST:
        began = steady()
        parameters = {
            "watch": "true",
            "resourceVersion": kept_list.version,
            "allowWatchBookmarks": "true",
            "timeoutSeconds": str(SECONDS),
        }
        async with asyncio.timeout(_OPENS):
            stream = await client.stream(kind, namespace, parameters)
        if isinstance(stream, Failure):
            return
        lines = LineSplitter(_LONGEST_LINE)
        async with stream, asyncio.timeout(SECONDS + _GRACE):
            kept_list.is_followed = True
            while chunk := await stream.read():
                if not all(map(kept_list.feed, lines.feed(chunk))) or not fits():
                    return
        kept_list.is_followed = False


def is_key(selector: str) -> bool:
    """Whether a selector asks only that there is a label; an empty one asks for nothing."""
    return not set(selector) & set("=!,() ")


class KeptCluster(Cluster):
    """The cluster with one viewer's token; what is kept is used only after the API server has allowed the list."""

    def __init__(self, client: Client, kept: Kept, viewer: str) -> None:
        super().__init__(client)
        self._kept = kept
        self._viewer = viewer

    def forget(self) -> None:
        """Drop what is kept: the viewer has changed something, and sees it at once."""
        self._kept.forget(self._viewer)

    def _kept_of(self, page: Page) -> Page:
        return slimmed(page)

    def _most_bytes(self, namespace: str) -> int | None:
        return MOST_READ_OF_NAMESPACE if namespace else MOST_READ

    async def _every(self, kind: Kind, namespace: str, selection: dict[str, str]) -> list[msgspec.Raw] | Failure:
        label = selection.get("labelSelector", "")
        is_whole = set(selection) <= {"labelSelector"} and is_key(label)
        if is_whole and self._kept.find(self._viewer, kind, namespace) and await may(self, "list", kind, namespace):
            kept_list = self._kept.find(self._viewer, kind, namespace)
            if kept_list is not None:
                kept_list.used = steady()
                return await in_thread(lambda: kept_list.items(label))
        began = steady()
        pages = await self._pages(kind, namespace, selection)
        if isinstance(pages, Failure):
            return pages
        items = [item for page in pages for item in page.items or ()]
        if len(pages) > 1 and not selection:
            self._kept.keep((self._viewer, kind, namespace), self._client, pages, began)
        return items
