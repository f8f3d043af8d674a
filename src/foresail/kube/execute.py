"""The only writer: executes a Plan action by action and stops at the first failure."""

import re
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import Enum, auto
from typing import assert_never

import msgspec

from foresail.kube.expectations import Written
from foresail.kube.failures import Cause, Failure, is_refusal
from foresail.kube.logs import log_write
from foresail.kube.server import Server
from foresail.plan import Action, Apply, Body, Create, Delete, DeleteLabelled, JsonPatch, Patch, Plan

_OTHER_UID = re.compile(r"\bmetadata\.uid: .*field is immutable")
_WRONG_UID = re.compile(r"\bUID in (the )?precondition\b")  # a namespace that is terminating is a conflict too


class Outcome(Enum):
    """The outcome of a Plan."""

    DONE = auto()
    REQUEUE = auto()  # the decision was based on old state
    REFUSED = auto()  # an object of that name belongs to someone else
    FAILED = auto()


@dataclass(frozen=True, slots=True)
class Result:
    """The outcome of a Plan, the action that failed and why, and what was written before it."""

    outcome: Outcome
    action: Action | None = None
    failure: Failure | None = None
    written: tuple[Written, ...] = ()


class _Version(msgspec.Struct):
    version: str = msgspec.field(default="", name="resourceVersion")
    labels: dict[str, str] | None = None


class _Answer(msgspec.Struct):
    metadata: _Version


class _Metadata(msgspec.Struct):
    annotations: dict[str, str] = {}


class _Marked(msgspec.Struct):
    metadata: _Metadata


_NOT_LEADING = Failure(Cause.NOT_LEADING, "this replica is not the leader, so it has not written")


def _always() -> bool:
    return True


class Executor:
    """Executes the Plans of every capability; `before_write` and `after_write` let a test crash the process.

    `may_write` is checked before each write, so that a loss of leadership stops a Plan in the middle.
    """

    def __init__(
        self,
        client: Server,
        *,
        may_write: Callable[[], bool] = _always,
        before_write: Callable[[], None] = lambda: None,
        after_write: Callable[[], None] = lambda: None,
    ) -> None:
        self.writes: Counter[tuple[str, str]] = Counter()  # by kind and verb
        self.refused: Counter[tuple[str, str]] = Counter()  # by kind and cause
        self._client = client
        self._may_write = may_write
        self._before_write = before_write
        self._after_write = after_write

    async def execute(self, plan: Plan) -> Result:
        """Execute the writes in order, up to the first that fails."""
        written: list[Written] = []
        for action in plan.writes:
            if not self._may_write():
                return Result(Outcome.REQUEUE, action, _NOT_LEADING, tuple(written))
            self.writes[action.kind.name, _verb(action)] += 1
            self._before_write()
            answer = await self._act(action)
            self._after_write()
            if isinstance(answer, Failure):
                outcome, why = await self._judge(action, answer)
                if outcome is not Outcome.DONE:
                    if is_refusal(why):
                        self.refused[action.kind.name, why.cause.value] += 1
                    return Result(outcome, action, why, tuple(written))
                continue
            log_write(action)
            if answer is not None and answer.metadata.version.isdecimal():
                meta = answer.metadata
                written.append(Written(action.kind, int(meta.version), action.key.namespace, meta.labels or {}))
        return Result(Outcome.DONE, written=tuple(written))

    async def _act(self, action: Action) -> _Answer | Failure | None:
        client = self._client
        match action:
            case Create():
                return await client.create(action.kind, action.key, _addressed(action, action.mark), _Answer)
            case Patch():
                return await client.merge(action.kind, action.key, _versioned(action), _Answer, action.subresource)
            case JsonPatch():
                return await client.json_patch(action.kind, action.key, _guarded(action), _Answer)
            case Apply():
                return await client.apply(action.kind, action.key, _addressed(action, {}), _Answer, action.subresource)
            case Delete():
                return await client.delete(action.kind, action.key, action.uid, action.resource_version)
            case DeleteLabelled():
                return await client.delete_labelled(action.kind, action.key.namespace, action.selector)
            case _:
                assert_never(action)

    async def _judge(self, action: Action, failure: Failure) -> tuple[Outcome, Failure]:
        """Return what a failed write means for its Plan, and why."""
        if isinstance(action, Create) and failure.cause is Cause.ALREADY_EXISTS:
            owner = await self._owner(action)
            return (owner, failure) if isinstance(owner, Outcome) else (_outcome(action, owner), owner)
        return _outcome(action, failure), failure

    async def _owner(self, action: Create) -> Outcome | Failure:
        """Return whether the existing object is the one that this action would have created."""
        existing = await self._client.get(action.kind, action.key, _Marked)
        if isinstance(existing, Failure):
            return existing
        ours = action.mark.items() <= existing.metadata.annotations.items()
        return Outcome.DONE if ours and action.mark else Outcome.REFUSED


def _outcome(action: Action, failure: Failure) -> Outcome:
    match action, failure.cause:
        case Delete(), Cause.CONFLICT if _WRONG_UID.search(failure.message):
            return Outcome.DONE  # that UID is already deleted; another object has the name now
        case Patch(), Cause.INVALID if _OTHER_UID.search(failure.message):
            return Outcome.REQUEUE  # another object has the name now
        case _, Cause.CONFLICT | Cause.NOT_FOUND | Cause.ALREADY_EXISTS:
            return Outcome.REQUEUE
        case _:
            return Outcome.FAILED


def _addressed(action: Create | Apply, mark: Mapping[str, str]) -> Body:
    """Return the object with its name and its mark, which identifies it as ours after a crash."""
    metadata = action.body.get("metadata")
    known = metadata if isinstance(metadata, dict) else {}
    annotations = {**(known.get("annotations") or {}), **mark}
    place = {"namespace": action.key.namespace} if action.key.namespace else {}
    noted = {"annotations": annotations} if annotations else {}
    return {
        "apiVersion": action.kind.api_version,
        "kind": action.kind.name,
        **action.body,
        "metadata": {**known, "name": action.key.name, **place, **noted},
    }


def _verb(action: Action) -> str:
    match action:
        case JsonPatch():
            return "patch"
        case DeleteLabelled():
            return "delete"
        case _:
            return type(action).__name__.lower()


def _guarded(action: JsonPatch) -> tuple[Body, ...]:
    """Return the operations and a check of the resourceVersion: a changed object is then a conflict."""
    version = {"op": "replace", "path": "/metadata/resourceVersion", "value": action.resource_version}
    return (version, *action.operations)


def _versioned(action: Patch) -> Body:
    if action.resource_version is None:
        return action.body
    metadata = action.body.get("metadata")
    known = metadata if isinstance(metadata, dict) else {}
    return {**action.body, "metadata": {**known, "resourceVersion": action.resource_version}}
