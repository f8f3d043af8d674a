"""Whether Velero can use a label selector."""

import re
from collections.abc import Iterable, Iterator

from foresail.api.selectors import problem_of
from foresail.api.specs import LabelSelector

_NAME = re.compile(r"[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?", re.ASCII)
_DOMAIN = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*", re.ASCII)
_LONGEST_DOMAIN = 253
_OPERATORS = ("In", "NotIn", "Exists", "DoesNotExist")


def selector_problem(selector: LabelSelector) -> str | None:
    """Return what makes a selector unusable for Kubernetes; None if nothing does."""
    expressions = selector.match_expressions or ()
    for key in (*(selector.match_labels or ()), *(expression.key for expression in expressions)):
        if not _is_key(key):
            return f"{key!r} is no label key"
    for value in _values(selector):
        if value and not _NAME.fullmatch(value):
            return f"{value!r} is no label value"
    unknown = [expression.operator for expression in expressions if str(expression.operator) not in _OPERATORS]
    return f"{unknown[0]!r} is no operator" if unknown else problem_of(selector)


def _values(selector: LabelSelector) -> Iterator[str]:
    yield from (selector.match_labels or {}).values()
    for expression in selector.match_expressions or ():
        yield from expression.values or ()


def malformed_alternative(selectors: Iterable[LabelSelector] | None) -> str | None:
    """Return what is wrong with a selector of `orLabelSelectors`; None if nothing is.

    Velero crashes on it. The Backup stays InProgress, and so long Velero 1.18 starts no other one.
    """
    return next((problem for selector in selectors or () if (problem := selector_problem(selector))), None)


def _is_key(key: str) -> bool:
    domain, slash, name = key.rpartition("/")
    has_domain = not slash or (len(domain) <= _LONGEST_DOMAIN and _DOMAIN.fullmatch(domain) is not None)
    return has_domain and _NAME.fullmatch(name) is not None
