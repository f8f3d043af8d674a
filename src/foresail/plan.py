"""The result of a decision: Plan, Action and Note, frozen values that import nothing of ours."""

from collections.abc import Mapping
from datetime import datetime, timedelta
from enum import Enum
from typing import Generic, TypeVar

import msgspec

Query = TypeVar("Query")
Answer = TypeVar("Answer")
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


class Key(msgspec.Struct, frozen=True, order=True, gc=False):
    """What a controller works on at one time: the namespace (empty if there is none) and the name.

    Stores and queues look keys up many times per reconcile, so they are hashed and compared without Python code.
    """

    namespace: str
    name: str

    def __str__(self) -> str:
        return "/".join(part for part in (self.namespace, self.name) if part)


class PartKey(Key, frozen=True, order=True):
    """What one of several controllers works on that share their stores and one queue: `part` says which of them."""

    part: str

    def __str__(self) -> str:
        return f"{self.namespace}/{self.part}/{self.name}" if self.namespace else f"{self.part}/{self.name}"

    @property
    def object(self) -> Key:
        """The key without the controller, as stores know it."""
        return Key(self.namespace, self.name)


class Keyed(msgspec.Struct, frozen=True, gc=False):
    """A row of an object, with its key: the store uses this key object, so that it is in memory once.

    Rows hold nothing that could lead back to them, so the collection of cycles leaves them out; that saves 16 bytes.
    """

    key: Key


class Create(msgspec.Struct, frozen=True):
    """Create an object; an existing one counts as done only if it has our mark.

    `mark` are the annotations by which an object of that name is recognised as the one that this very action
    creates. Without them on it, it is someone else's: the plan ends there, and nothing is changed.
    """

    kind: Kind
    key: Key
    body: Body
    mark: Mapping[str, str]


class Patch(msgspec.Struct, frozen=True):
    """Merge into an object, or into its status; with a version, only if it has not changed since."""

    kind: Kind
    key: Key
    body: Body
    resource_version: str | None = None
    subresource: str = ""


class JsonPatch(msgspec.Struct, frozen=True):
    """Change single items of an object by JSON patch (RFC 6902), only if the object still has that version.

    A merge patch replaces a whole list, so its writer must hold the list. This one names one item by its index.
    """

    kind: Kind
    key: Key
    operations: tuple[Body, ...]
    resource_version: str


class Apply(msgspec.Struct, frozen=True):
    """Declare the fields that are ours, by server-side apply."""

    kind: Kind
    key: Key
    body: Body
    subresource: str = ""


class Delete(msgspec.Struct, frozen=True):
    """Delete the object with that UID, not a later one of the same name; an already deleted one counts as done.

    With a version, only if it has not changed since.
    """

    kind: Kind
    key: Key
    uid: str
    resource_version: str = ""


class DeleteLabelled(msgspec.Struct, frozen=True):
    """Delete all objects of a kind in a namespace that have a label; the writer need not be able to read them.

    The key has the namespace and no name. If there are no such objects, it counts as done.
    """

    kind: Kind
    key: Key
    label: str
    value: str

    @property
    def selector(self) -> str:
        """The label selector."""
        return f"{self.label}={self.value}"


Action = Create | Patch | JsonPatch | Apply | Delete | DeleteLabelled


class Level(Enum):
    """How an Event is shown."""

    NORMAL = "Normal"
    WARNING = "Warning"


class Subject(msgspec.Struct, frozen=True):
    """The object of a Plan, on which the runtime reports Events about the Plan."""

    kind: Kind
    key: Key
    uid: str


class Note(msgspec.Struct, frozen=True):
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


class Plan(msgspec.Struct, frozen=True):
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


class ReadResult(msgspec.Struct, Generic[Query, Answer], frozen=True):
    """The result of a background read: when it started, which attempt of the same query it is, and how long it took."""

    query: Query
    answer: Answer
    started: datetime
    attempts: int
    took: timedelta = timedelta()

    @property
    def ended(self) -> datetime:
        """When the result was there: a slow read is as good as a quick one."""
        return self.started + self.took
