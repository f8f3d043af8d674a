"""By which of its own labels a pod is selected in its own terms about other pods."""

from collections.abc import Mapping

import msgspec

from foresail.api.batch import JOB_NAME_LABEL
from foresail.api.marks import PRIMER_LABEL
from foresail.api.selectors import selects
from foresail.api.specs import LabelSelector

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
    terms = _terms(msgspec.json.decode(affinity, type=_Affinity)) if affinity else []
    terms += _spread.decode(spread) if spread else []
    keys = {key for term in terms for key in _keys(term, labels)}
    return tuple((key, labels[key]) for key in sorted(keys) if key in labels and key not in _OURS)


def _terms(affinity: _Affinity) -> list[_Term]:
    terms: list[_Term] = []
    for each in (affinity.pod_affinity, affinity.pod_anti_affinity):
        if each is not None:
            terms += each.required or ()
            terms += [weighted.pod_affinity_term for weighted in each.preferred or ()]
    return terms


def _keys(term: _Term, labels: Mapping[str, str]) -> set[str]:
    selector = term.label_selector
    if selector is None or not selects(selector, labels):
        return set()
    named = {expression.key for expression in selector.match_expressions or ()}
    return {*(selector.match_labels or {}), *named, *(term.match_label_keys or ())}
