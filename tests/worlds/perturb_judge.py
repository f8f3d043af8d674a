"""The judge of perturbations: a life with one must do and leave what the same life without one did and left."""

import json
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from foresail.api import velero
from tests.worlds.documents import Document

_NO_MEANING = (
    "lastTransitionTime",
    "startingDeadline",
    "nodeName",
    "nodes",
    "sha256",
    "digests",
    "foresail.dev/record-signature",
    "warm",
    "note",
    "provisioned",
)
_INSTANT = re.compile(r"…|\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z")


@dataclass
class Lived:
    """A life as the judge sees it."""

    state: dict[str, str] = field(default_factory=dict)
    events: int = 0
    writes: int = 0
    came: bool = False  # whether the perturbation did
    born: Counter[str] = field(default_factory=Counter)
    gone: Counter[str] = field(default_factory=Counter)
    slots: Counter[str] = field(default_factory=Counter)  # runs of each; a retry is a further one
    crashed: int = 0
    stuck: set[str] = field(default_factory=set)


def wrong(lived: Lived, whole: Lived) -> Iterator[str]:
    """Yield what is wrong about a life with a perturbation, beside the one without."""
    if not lived.came:
        yield "it did not come about"
    if lived.crashed:
        yield f"{lived.crashed} reconciles crashed"
    yield from (f"a run is doubled: {each}" for each in lived.slots - whole.slots)
    yield from (f"a run is missing: {each}" for each in whole.slots - lived.slots)
    yield from (f"deleted, and not in the reference: {each}" for each in _more(lived.gone, whole.gone))
    yield from (f"created, and not in the reference: {each}" for each in _more(lived.born, whole.born))
    yield from (f"not created: {each}" for each in whole.born - lived.born)
    yield from (f"stuck: {each}" for each in sorted(lived.stuck - whole.stuck))
    for name in sorted(whole.state.keys() | lived.state.keys()):
        before, after = (meaning(each.state.get(name, "null")) for each in (whole, lived))
        yield from (f"{name}: {each}" for each in differences(before, after))


def _more(found: Counter[str], reference: Counter[str]) -> Iterator[str]:
    """Yield what is not in the reference as often; to ask for the deletion of what is gone again deletes nothing."""
    for text, number in (found - reference).items():
        if not text.startswith(velero.DELETE_REQUEST.name) or text not in reference:
            yield f"{text}, {number} times more"


def meaning(text: str) -> Any:  # noqa: ANN401 - JSON
    """Return what an object says, without when it said so and on which node something was."""
    return json.loads(text, object_hook=_meaning)


def _meaning(document: Document) -> Document:
    return {name: _record(value) for name, value in document.items() if name not in _NO_MEANING}


def _record(value: Any) -> Any:  # noqa: ANN401 - JSON
    """Return what a record in a text says."""
    return meaning(value) if isinstance(value, str) and value.startswith("{") else value


def differences(before: Any, after: Any, path: str = "") -> Iterator[str]:  # noqa: ANN401 - JSON
    """Yield where two documents differ."""
    if isinstance(before, dict) and isinstance(after, dict):
        for name in sorted(before.keys() | after.keys()):
            yield from differences(before.get(name), after.get(name), f"{path}.{name}")
    elif isinstance(before, list) and isinstance(after, list) and len(before) == len(after):
        for number, (one, other) in enumerate(zip(before, after, strict=True)):
            yield from differences(one, other, f"{path}[{number}]")
    elif before != after and not (_INSTANT.fullmatch(str(before)) and _INSTANT.fullmatch(str(after))):
        yield f"{path or 'it'} is {json.dumps(after)[:300]} and not {json.dumps(before)[:300]}"
