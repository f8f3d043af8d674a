"""How controllers report: a reason with its sentence, Events, the times of conditions, and the patch of a status."""

from collections.abc import Collection, Iterable, Mapping
from enum import StrEnum
from itertools import islice
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec

from foresail.api import nonadmin
from foresail.plan import Level, Note, Subject

LONGEST_MESSAGE = 2048
"""Characters of a condition's message; the rest is cut off."""

if TYPE_CHECKING:
    from foresail.api import requests  # the schemas: few commands need them

Condition = TypeVar("Condition", nonadmin.Condition, "requests.Condition")
"""As it is read from a tenant's kinds, with its time as text, or as ours have it."""


class Because(msgspec.Struct, frozen=True):
    """A reason, and in a sentence what it means here and what to do."""

    reason: StrEnum
    message: str
    level: Level = Level.WARNING


def some(names: Collection[str], most: int = 5, count: int | None = None) -> str:
    """Return the first names as they appear in a message, and how many more there are of all, or of a count."""
    more = (len(names) if count is None else count) - most
    return ", ".join(islice(names, most)) + (f" and {more} more" if more > 0 else "")


def note(subject: Subject, because: Because) -> Note:
    """Return the Event that tells the subject's readers why."""
    return Note(subject.kind, subject.key, subject.uid, because.reason.value, because.message, because.level)


def dated(conditions: Iterable[Condition], new: Condition) -> Condition:
    """Return a condition with the time of the one that it replaces: the time changes only with the status."""
    for old in conditions:
        if old.type == new.type and old.status == new.status:
            return msgspec.structs.replace(new, last_transition_time=old.last_transition_time)
    return new


def merge_patch(before: Mapping[str, Any], after: Mapping[str, Any]) -> dict[str, Any]:
    """Return the JSON merge patch that leads from one document to the other; empty if nothing differs."""
    patch: dict[str, Any] = {name: None for name in before if name not in after}
    for name, value in after.items():
        old = before.get(name)
        if old == value:
            continue
        if isinstance(old, Mapping) and isinstance(value, Mapping):
            patch[name] = merge_patch(old, value)
        else:
            patch[name] = value
    return patch
