"""Where a pod may run by its own affinity and by that of its bound volumes: what they all allow."""

from collections.abc import Iterable
from typing import Any

import msgspec

from foresail.primers.small_cache import small_cache

Term = dict[str, list[Any]]
_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
_NODE = "nodeAffinity"
_PARTS = ("matchExpressions", "matchFields")
_MOST_TERMS = 100
"""Of alternatives: volumes that would create more of them are left to the scheduler."""


@small_cache(1_000)
def with_volume_affinity(affinity: bytes, volumes: tuple[bytes, ...]) -> bytes:
    """Return an affinity, in JSON, that also keeps a pod to the nodes from which its volumes can be reached.

    The terms of a node selector are alternatives, so each of one side is joined with each of the other.
    """
    whole: dict[str, Any] = msgspec.json.decode(affinity) if affinity else {}
    node: dict[str, Any] = whole.get("nodeAffinity") or {}
    own = node.get(_REQUIRED)
    terms: list[Term] = _terms(own) if own else [{}]
    for volume in volumes:
        others = _terms(msgspec.json.decode(volume))
        if others and len(terms) * len(others) <= _MOST_TERMS:
            terms = _unique(_joined(one, other) for one in terms for other in others)
    if terms in ([], [{}]):
        return affinity  # no node will do whatever is added, or there is nothing to add
    return msgspec.json.encode(
        {
            **whole,
            "nodeAffinity": {**node, _REQUIRED: {"nodeSelectorTerms": [_without_empty_parts(term) for term in terms]}},
        }
    )


@small_cache(1_000)
def with_node_affinity(affinity: bytes, other: bytes) -> bytes:
    """Return an affinity, in JSON, with the node affinity of another one."""
    if affinity == other:
        return affinity
    whole: dict[str, Any] = msgspec.json.decode(affinity) if affinity else {}
    node = (msgspec.json.decode(other) if other else {}).get(_NODE)
    document = {**{part: value for part, value in whole.items() if part != _NODE}, **({_NODE: node} if node else {})}
    return msgspec.json.encode(document) if document else b""


def _terms(selector: dict[str, Any]) -> list[Term]:
    """Return the alternatives of a node selector; an empty one matches no node, so it is none."""
    found = [{part: item.get(part) or [] for part in _PARTS} for item in selector.get("nodeSelectorTerms") or ()]
    return [each for each in found if any(each.values())]


def _joined(one: Term, other: Term) -> Term:
    return {part: _unique((*one.get(part, ()), *other.get(part, ()))) for part in _PARTS}


def _without_empty_parts(term: Term) -> Term:
    return {part: conditions for part, conditions in term.items() if conditions}


def _unique(iterable: Iterable[Any]) -> list[Any]:
    items: list[Any] = []
    for one in iterable:
        if one not in items:
            items.append(one)
    return items
