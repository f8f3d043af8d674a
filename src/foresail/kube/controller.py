"""What a controller provides, and what the loop asks of its surroundings."""

import asyncio
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Generic, Protocol, TypeVar, runtime_checkable

from foresail.kube.execute import Result
from foresail.kube.reflector import Change, WatchSpec
from foresail.kube.store import Store
from foresail.plan import Key, Plan

View = TypeVar("View")


@dataclass(frozen=True, slots=True)
class LowPriority:
    """A key to reconcile after the keys of live changes."""

    key: Key


MapsChanges = Callable[[Change[Any]], Iterable[Key | LowPriority]]
"""Returns the keys that a change concerns."""


def no_keys(*_: object) -> Iterable[Any]:
    """Return no keys."""
    return ()


@dataclass(frozen=True, slots=True)
class Informer:
    """What to watch, the store to fill, and how the controller maps changes to keys.

    `learn` updates the controller's memory with a change and returns the keys that this affects.
    `keys` runs after it and only reads.
    """

    spec: WatchSpec[Any, Any]
    store: Store[Any]
    keys: MapsChanges
    learn: MapsChanges = no_keys


class Controller(Protocol, Generic[View]):
    """What a capability provides; the loop does everything else."""

    @property
    def name(self) -> str:
        """The controller's name in logs and metrics."""

    @property
    def informers(self) -> Sequence[Informer]:
        """What the controller watches."""

    def observe(self, key: Key, now: datetime) -> View | None:
        """Collect what a decision about the key needs; None if there is nothing to decide."""

    def decide(self, view: View, now: datetime) -> Plan:
        """Return what to do; a pure function."""


@runtime_checkable
class Reserves(Protocol):
    """A controller whose decisions compete for a quota or a turn."""

    def begin(self, key: Key, view: Any, plan: Plan, now: datetime) -> Iterable[Key]:  # noqa: ANN401 - as observed
        """Reserve what a Plan takes before its first write; return the keys to reconcile now."""


@runtime_checkable
class Settles(Protocol):
    """A controller that remembers the results of its Plans."""

    def settled(
        self,
        key: Key,
        view: Any,  # noqa: ANN401 - as observed, None if there is nothing to decide
        plan: Plan,
        result: Result,
        now: datetime,
    ) -> Iterable[Key]:
        """Confirm or release what was reserved; return the keys to reconcile now, perhaps the same one."""


@runtime_checkable
class Recovers(Protocol):
    """A controller in which a key may block others."""

    def crashed(self, key: Key) -> Iterable[Key]:
        """Release what a key blocks whose reconcile raised an exception; return the keys to reconcile now."""


@runtime_checkable
class HasTerms(Protocol):
    """A controller that remembers decisions, which are valid only while this process is the leader."""

    def start_term(self) -> Iterable[Key]:
        """Forget the decisions of an earlier term; return the keys to reconcile because of it."""


class Executes(Protocol):
    """Executes Plans: the executor, or a dry run."""

    async def execute(self, plan: Plan) -> Result:
        """Execute a Plan and return its result."""


class Election(Protocol):
    """Tells when this process is the leader; implemented by `Leadership` if there are several replicas."""

    async def until_leader(self) -> None:
        """Return when this process is the leader."""

    async def until_follower(self) -> None:
        """Return when this process does not lead."""


class SingleReplica:
    """An election with one candidate, which is always the leader."""

    async def until_leader(self) -> None:
        """Return at once."""

    async def until_follower(self) -> None:
        """Never return."""
        await asyncio.Event().wait()
