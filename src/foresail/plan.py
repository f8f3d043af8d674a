"""The result of a decision: Plan, Action and Note, frozen values that import nothing of ours."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import Enum
from typing import Generic, TypeVar

import msgspec

Query = TypeVar("Query")
Found = TypeVar("Found")
OneClaim = TypeVar("OneClaim", bound="Claim")

Body = Mapping[str, object]
"""A JSON object; treat it as immutable."""


class Kind(msgspec.Struct, frozen=True):
    """A kind of object, with everything that its address needs."""

    group: str  # empty for the core group
    version: str
    plural: str
    name: str
    namespaced: bool = True

    @property
    def api_version(self) -> str:
        """The value of `apiVersion` in an object of this kind."""
        return f"{self.group}/{self.version}" if self.group else self.version


class Key(msgspec.Struct, frozen=True, order=True):
    """What a controller works on at one time: the namespace (empty if there is none) and the name.

    Stores and queues look keys up many times per reconcile, so they are hashed and compared without Python code.
    """

    namespace: str
    name: str

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}" if self.namespace else self.name


class PartKey(Key, frozen=True, order=True):
    """What one of several controllers works on that share their stores and one queue: `part` says which of them."""

    part: str

    def __str__(self) -> str:
        return f"{self.namespace}/{self.part}/{self.name}" if self.namespace else f"{self.part}/{self.name}"

    @property
    def object(self) -> Key:
        """The key without the controller, as stores know it."""
        return Key(self.namespace, self.name)


class Keyed(msgspec.Struct, frozen=True):
    """A row of an object, with its key: the store uses this key object, so that it is in memory once."""

    key: Key


@dataclass(frozen=True, slots=True)
class Create:
    """Create an object; an existing one counts as done only if it has our mark.

    `mark` are the annotations by which an object of that name is recognised as the one that this very action
    creates. Without them on it, it is someone else's: the plan ends there, and nothing is changed.
    """

    kind: Kind
    key: Key
    body: Body
    mark: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Patch:
    """Merge into an object, or into its status; with a version, only if it has not changed since."""

    kind: Kind
    key: Key
    body: Body
    resource_version: str | None = None
    subresource: str = ""


@dataclass(frozen=True, slots=True)
class JsonPatch:
    """Change single items of an object by JSON patch (RFC 6902), only if the object still has that version.

    A merge patch replaces a whole list, so its writer must hold the list. This one names one item by its index.
    """

    kind: Kind
    key: Key
    operations: tuple[Body, ...]
    resource_version: str


@dataclass(frozen=True, slots=True)
class Apply:
    """Declare the fields that are ours, by server-side apply."""

    kind: Kind
    key: Key
    body: Body
    subresource: str = ""


@dataclass(frozen=True, slots=True)
class Delete:
    """Delete the object with that UID, not a later one of the same name; an already deleted one counts as done.

    With a version, only if it has not changed since.
    """

    kind: Kind
    key: Key
    uid: str
    resource_version: str = ""


Action = Create | Patch | JsonPatch | Apply | Delete


class Level(Enum):
    """How an Event is shown."""

    NORMAL = "Normal"
    WARNING = "Warning"


@dataclass(frozen=True, slots=True)
class Subject:
    """The object of a Plan, on which the runtime reports Events about the Plan."""

    kind: Kind
    key: Key
    uid: str


@dataclass(frozen=True, slots=True)
class Note:
    """An Event about an object: a reason that programs know, and a message that people read."""

    kind: Kind
    key: Key
    uid: str
    reason: str
    message: str
    level: Level = Level.NORMAL
    pattern: str = ""
    """What is the same each time this happens, if the message is not; Events with the same pattern are repetitions."""


class Claim:
    """What a controller must know of a Plan beside its writes: what it takes of others, or what the rules found.

    Each capability has kinds of its own. The controller remembers them from before the first write.
    """

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class Plan:
    """Everything that a decision wants: nothing else leaves it."""

    actions: tuple[Action, ...] = ()  # in their order
    status: Patch | None = None  # written after them
    notes: tuple[Note, ...] = ()  # the Events to emit once it is done
    wake_at: datetime | None = None  # when to reconcile again, if nothing changes before
    subject: Subject | None = None
    reads: tuple[object, ...] = ()
    """What to read in the background; an answer requeues the key."""
    claims: tuple[Claim, ...] = ()
    """For the controller's memory and metrics; the runtime ignores them."""

    def claim(self, kind: type[OneClaim]) -> OneClaim | None:
        """Return the claim of a kind; None if there is none."""
        return next((claim for claim in self.claims if isinstance(claim, kind)), None)

    @property
    def writes(self) -> tuple[Action, ...]:
        """All writes in order; the status comes last, because it reports what was done."""
        return self.actions if self.status is None else (*self.actions, self.status)


@dataclass(frozen=True, slots=True)
class ReadResult(Generic[Query, Found]):
    """The result of a background read, when it started, and how many attempts the same query has had."""

    query: Query
    found: Found
    started: datetime
    attempts: int
