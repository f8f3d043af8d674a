"""What a pod's terms select: its own labels, and the nodes from which its volumes can be reached."""

from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from foresail.api.batch import JOB_NAME_LABEL
from foresail.api.marks import PRIMER_LABEL
from foresail.api.selectors import selects
from foresail.api.specs import LabelSelector
from foresail.primers.small_cache import small_cache

_OURS = (PRIMER_LABEL, JOB_NAME_LABEL)  # by which placeholders are told from the pods of Jobs


class _Term(msgspec.Struct, frozen=True, rename="camel"):
    label_selector: LabelSelector | None = None
    match_label_keys: list[str] | None = None


class _Weighted(msgspec.Struct, frozen=True, rename="camel"):
    pod_affinity_term: _Term = _Term()


class _Terms(msgspec.Struct, frozen=True):
    required: list[_Term] | None = msgspec.field(name="requiredDuringSchedulingIgnoredDuringExecution", default=None)
    preferred: list[_Weighted] | None = msgspec.field(
        name="preferredDuringSchedulingIgnoredDuringExecution", default=None
    )


class _Affinity(msgspec.Struct, frozen=True, rename="camel"):
    pod_affinity: _Terms | None = None
    pod_anti_affinity: _Terms | None = None


_spread = msgspec.json.Decoder(list[_Term])


def own_labels(affinity: bytes, spread: bytes, labels: Mapping[str, str]) -> tuple[tuple[str, str], ...]:
    """Return the labels that a placeholder needs to stand for a pod in those of its terms that select the pod itself.

    With them, pods that want to be together find the first of them, and pods that keep apart or are spread reserve a
    node each.
    """
    if not labels:
        return ()
    terms = _terms_about_pods(msgspec.json.decode(affinity, type=_Affinity)) if affinity else []
    terms += _spread.decode(spread) if spread else []
    keys = {key for term in terms for key in _keys(term, labels)}
    return tuple((key, labels[key]) for key in sorted(keys) if key in labels and key not in _OURS)


def _terms_about_pods(affinity: _Affinity) -> list[_Term]:
    terms: list[_Term] = []
    for affinities in (affinity.pod_affinity, affinity.pod_anti_affinity):
        if affinities is not None:
            terms += affinities.required or ()
            terms += [weighted.pod_affinity_term for weighted in affinities.preferred or ()]
    return terms


def _keys(term: _Term, labels: Mapping[str, str]) -> set[str]:
    selector = term.label_selector
    if selector is None or not selects(selector, labels):
        return set()
    named = {expression.key for expression in selector.match_expressions or ()}
    return {*(selector.match_labels or {}), *named, *(term.match_label_keys or ())}


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
    terms: list[Term] = _alternatives(own) if own else [{}]
    for volume in volumes:
        others = _alternatives(msgspec.json.decode(volume))
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


def _alternatives(selector: dict[str, Any]) -> list[Term]:
    """Return the alternatives of a node selector; an empty one matches no node, so it is none."""
    terms = [{part: item.get(part) or [] for part in _PARTS} for item in selector.get("nodeSelectorTerms") or ()]
    return [term for term in terms if any(term.values())]


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
