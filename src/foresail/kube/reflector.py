"""The watch as a state machine without I/O: the next request, and the meaning of each line and each end of a stream.

```
            ┌─────────── failed ─────────→ LISTING ──────────┐
START → INITIAL                                              ├→ WATCHING ─┐
  ↑         └──── bookmark "initial events end" ─────────────┘            │
  └─────────────────────────── 410, gone ─────────────────────────────────┘
```
INITIAL requests the current state as a stream (WatchList). LISTING requests it in pages if that stream failed: a server
may not support it, and a proxy may always cut it. Without permission to watch there are no pages, because the store
would never be updated after them. Either way the store is updated object by object, and what was missing is removed at
the end, so that deletions during a gap are reported like any other. In WATCHING a stream that ends is reopened at its
resourceVersion; only if that has expired is everything read again.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import Enum, auto
from typing import Any, Generic, TypeVar

import msgspec

from foresail.kube.failures import Cause, Failure, Status, failure
from foresail.kube.json_stream import decode
from foresail.kube.pages import Page
from foresail.kube.store import Store, Unreadable
from foresail.plan import Key, Keyed, Kind

Wire = TypeVar("Wire")
Row = TypeVar("Row")

_PAGE = "500"
_MAX_PROBLEM = 500
_END_OF_INITIAL = "k8s.io/initial-events-end"

_MAY_NOT_WATCH = (Cause.FORBIDDEN, Cause.UNAUTHORIZED)


class Phase(Enum):
    """The phase of the state machine."""

    INITIAL = auto()
    LISTING = auto()
    WATCHING = auto()


@dataclass(frozen=True, slots=True)
class WatchSpec(Generic[Wire, Row]):
    """Which objects to watch, and what to keep of them."""

    kind: Kind
    wire: type[Wire]  # what is decoded of an object; everything else is skipped
    row: Callable[[Wire], Row]
    namespace: str = ""  # empty: the whole cluster
    labels: str = ""
    fields: str = ""
    metadata_only: bool = False  # the server sends only metadata: for large objects of which labels are enough
    optional: bool = False  # a kind that a cluster need not serve; while it does not, the store is empty

    @property
    def selectors(self) -> dict[str, str]:
        """The parameters that limit what the server sends."""
        chosen = {"labelSelector": self.labels, "fieldSelector": self.fields}
        return {name: value for name, value in chosen.items() if value}

    def selects(self, labels: Mapping[str, str]) -> bool:
        """Whether the label selector matches these labels."""
        return all(_meets(labels, term.strip()) for term in self.labels.split(",") if term)

    def may_share(self, other: "WatchSpec[Any, Any]") -> bool:
        """Whether one stream can serve both: the same objects, or all of them if one of the two selects by label."""
        mine = self.kind, self.namespace, self.fields, self.metadata_only
        theirs = other.kind, other.namespace, other.fields, other.metadata_only
        return mine == theirs and (self.labels == other.labels or not (self.labels and other.labels))


@dataclass(frozen=True, slots=True)
class Change(Generic[Row]):
    """A row that was added, changed or removed; `initial` if it comes from a list and not from an event.

    A row is removed with its object, and also when the object becomes unreadable; the deletion of an unreadable object
    is a change without rows. An object that was deleted and created again during a gap is two changes, if its rows have
    a `uid`.
    """

    key: Key
    old: Row | None
    new: Row | None
    initial: bool


class _Metadata(msgspec.Struct):
    name: str = ""
    namespace: str = ""
    uid: str = ""
    resource_version: str = msgspec.field(default="", name="resourceVersion")
    annotations: dict[str, str] | None = None


class _Named(msgspec.Struct):
    metadata: _Metadata


class _Labels(msgspec.Struct):
    labels: dict[str, str] | None = None


class _Labelled(msgspec.Struct):
    metadata: _Labels


class WatchLine(msgspec.Struct):
    """A line of a watch: what happened, and to which object, still encoded."""

    type: str
    object: msgspec.Raw


_line = msgspec.json.Decoder(WatchLine)
_named = msgspec.json.Decoder(_Named)
_labelled = msgspec.json.Decoder(_Labelled)
_status = msgspec.json.Decoder(Status)


@dataclass(slots=True)
class Reflector(Generic[Wire, Row]):
    """Keeps one store true to the objects of one spec."""

    spec: WatchSpec[Wire, Row]
    store: Store[Row]
    changed: Callable[[Change[Row]], None]
    unreadable: Callable[[Unreadable], None]
    filters: bool = False  # the stream delivers more than the spec selects, because reflectors share it
    phase: Phase = Phase.INITIAL
    synced: bool = False  # whether the store has been complete once
    restarts: int = 0
    bookmarks: int = 0
    version: str = ""  # the resourceVersion of the store, once it is complete
    _next_page: str = ""
    _seen: set[Key] = field(default_factory=set)
    _decoder: msgspec.json.Decoder[Wire] = field(init=False)

    def __post_init__(self) -> None:
        self._decoder = msgspec.json.Decoder(self.spec.wire)

    @property
    def parameters(self) -> Mapping[str, str]:
        """The parameters of the next request: a watch, or in LISTING a page."""
        selectors = self.spec.selectors
        if self.filters:
            selectors.pop("labelSelector", None)
        match self.phase:
            case Phase.INITIAL:
                return {
                    **selectors,
                    "watch": "true",
                    "allowWatchBookmarks": "true",
                    "sendInitialEvents": "true",
                    "resourceVersionMatch": "NotOlderThan",
                }
            case Phase.LISTING:
                token = {"continue": self._next_page} if self._next_page else {}
                return {**selectors, "limit": _PAGE, **token}
            case Phase.WATCHING:
                return {
                    **selectors,
                    "watch": "true",
                    "allowWatchBookmarks": "true",
                    "resourceVersion": self.version,
                }

    def feed_line(self, data: bytes) -> Failure | None:
        """Process one line of a watch; after a failure the stream must be closed."""
        try:
            line = decode(_line, data)
        except msgspec.DecodeError as problem:
            return Failure(Cause.UNREADABLE, f"a line of the watch is not an event: {problem}")
        match line.type:
            case "ADDED" | "MODIFIED":
                self._put(line.object)
            case "DELETED":
                self._delete(line.object)
            case "BOOKMARK":
                self._bookmark(line.object)
            case "ERROR":
                return _failure(line.object)
            case _:
                return Failure(Cause.UNREADABLE, f"the watch sent an event of type {line.type!r}")
        return None

    def feed_page(self, page: Page) -> None:
        """Process one page of a list."""
        if not self._next_page:
            self._seen.clear()
        for item in page.items or ():
            self._put(item)
        self._next_page = page.metadata.next_page
        if not self._next_page:
            self.version = page.metadata.resource_version
            self._complete()

    def end_request(self, why: Failure | None) -> bool:
        """Process the end of a request; return whether to pause before the next one."""
        self.restarts += 1
        if self.is_unserved(why):
            self._seen.clear()
            self.phase = Phase.INITIAL  # pages would not be found either
            return True
        match self.phase:
            case Phase.INITIAL:
                self._seen.clear()  # the next one starts from the beginning
                if why is None or why.cause not in _MAY_NOT_WATCH:
                    self.phase = Phase.LISTING
                return why is None or why.cause is not Cause.INVALID  # Invalid: the server does not support WatchList
            case Phase.LISTING:
                self._next_page = ""  # the token may have expired, or belong to another server
                return True
            case Phase.WATCHING:
                if why is not None and why.cause in (Cause.EXPIRED, Cause.NOT_FOUND):
                    self.phase = Phase.INITIAL
                return why is not None

    def is_unserved(self, why: Failure | None) -> bool:
        """Whether a request for an optional kind ended because the API server does not serve it."""
        return self.spec.optional and why is not None and why.cause is Cause.NOT_FOUND

    def mark_unserved(self) -> None:
        """Empty the store of an optional kind that is not served, and count it as complete."""
        self.store.is_served = False
        for key in [*self.store, *self.store.unread]:
            self._remove(key)
        self.synced = True

    def _put(self, raw: msgspec.Raw) -> None:
        named = self._named(raw)
        if named is None:
            return
        key = Key(named.namespace, named.name)
        if self.phase is Phase.WATCHING:
            self.version = named.resource_version
        if self.filters and not self.spec.selects(_labels(raw)):
            self._seen.discard(key)
            self._remove(key)
            return
        try:
            row = self.spec.row(decode(self._decoder, raw))
        except (msgspec.DecodeError, ValueError, RecursionError) as problem:
            self._note(key)
            self.store.unread.pop(key, None)  # so that _remove does not report a deletion; it is added again below
            self._remove(key)
            unread = self.store.unread[key] = Unreadable(key, named.uid, _short(problem), _labels(raw))
            self.unreadable(unread)
            return
        if isinstance(row, Keyed):
            key = row.key  # one object in memory instead of two
        self._note(key)
        self.store.unread.pop(key, None)
        if _is_another(self.store.get(key), row):
            self._remove(key)  # deleted and created again during a gap
        old = self.store.put(key, row)
        if old != row:
            self.changed(Change(key, old, row, initial=self.phase is not Phase.WATCHING))

    def _note(self, key: Key) -> None:
        if self.phase is not Phase.WATCHING:
            self._seen.add(key)

    def _delete(self, raw: msgspec.Raw) -> None:
        named = self._named(raw)
        if named is None:
            return
        key = Key(named.namespace, named.name)
        self.version = named.resource_version
        self._seen.discard(key)
        self._remove(key)

    def _remove(self, key: Key) -> None:
        was_unread = self.store.unread.pop(key, None) is not None
        old = self.store.remove(key)
        if old is not None or was_unread:
            self.changed(Change(key, old, None, initial=False))

    def _bookmark(self, raw: msgspec.Raw) -> None:
        named = self._named(raw)
        if named is None:
            return
        self.version = named.resource_version
        self.bookmarks += 1
        if self.phase is Phase.INITIAL and (named.annotations or {}).get(_END_OF_INITIAL) == "true":
            self._complete()

    def _complete(self) -> None:
        """Remove what the list did not contain: it was deleted during a gap."""
        for key in [key for key in (*self.store, *self.store.unread) if key not in self._seen]:
            self._remove(key)
        self._seen.clear()
        self.phase = Phase.WATCHING
        self.synced = self.store.is_served = True

    def _named(self, raw: msgspec.Raw) -> _Metadata | None:
        try:
            return decode(_named, raw).metadata
        except msgspec.DecodeError as problem:
            self.unreadable(Unreadable(Key("", ""), "", _short(problem)))
            return None


def _is_another(old: object, new: object) -> bool:
    """Whether two rows with UIDs belong to different objects."""
    before = getattr(old, "uid", "")
    after = getattr(new, "uid", "")
    return bool(before and after) and before != after


def _meets(labels: Mapping[str, str], requirement: str) -> bool:
    """Whether labels match one requirement of an equality-based selector."""
    if requirement.startswith("!"):
        return requirement[1:] not in labels
    name, sign, value = requirement.partition("=")
    if not sign:
        return name in labels
    if name.endswith("!"):
        return labels.get(name[:-1]) != value
    return labels.get(name) == value.removeprefix("=")


def _labels(raw: msgspec.Raw) -> Mapping[str, str]:
    """Return the labels of an object, or none if they cannot be decoded."""
    try:
        return decode(_labelled, raw).metadata.labels or {}
    except (msgspec.DecodeError, RecursionError):
        return {}


def _short(problem: Exception) -> str:
    """Return a decoder's message, truncated because it may quote the object."""
    return str(problem)[:_MAX_PROBLEM]


def _failure(raw: msgspec.Raw) -> Failure:
    try:
        status = _status.decode(raw)
    except msgspec.DecodeError as problem:
        return Failure(Cause.UNREADABLE, f"the watch sent an error that is not a status: {problem}")
    return failure(status.code, status.reason, status.message)
