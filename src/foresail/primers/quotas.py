"""Which ResourceQuota has no room for more pods, counted as the API server counts them."""

from collections.abc import Iterable
from fractions import Fraction

from foresail.primers.rows import QuotaRow
from foresail.primers.shape import Shape, amounts

_PLAIN = ("cpu", "memory", "ephemeral-storage")  # a quota may name these without saying that requests are meant

Pods = Iterable[tuple[Shape, int]]
"""So many pods of each shape."""


def first_exceeded(quotas: Iterable[QuotaRow], more: Pods, beside: Pods = ()) -> str | None:
    """Return in words which quota would be exceeded by so many pods more of these shapes; None if all fit.

    What is to come beside them counts as used, but is not blamed.
    """
    wanted = list(more)
    others = list(beside)
    for quota in quotas:
        hard = amounts(quota.hard)
        used = amounts(quota.used)
        for name, most in hard.items():
            added = _total(quota, name, wanted)
            if added and used.get(name, Fraction(0)) + _total(quota, name, others) + added > most:
                texts = dict(quota.hard)
                return f"ResourceQuota {quota.key.name} allows {texts[name]} of {name}"
    return None


def _total(quota: QuotaRow, name: str, pods: Pods) -> Fraction:
    return sum((_counted(shape, name) * count for shape, count in pods if _counts(quota, shape)), Fraction(0))


def _counted(shape: Shape, name: str) -> Fraction:
    if name in ("pods", "count/pods"):
        return Fraction(1)
    limits = amounts(shape.limits)
    requests = amounts(shape.requests)
    if name.startswith("limits."):
        return limits.get(name.removeprefix("limits."), Fraction(0))
    if name in _PLAIN:
        return requests.get(name, Fraction(0))
    return requests.get(name.removeprefix("requests."), Fraction(0)) if name.startswith("requests.") else Fraction(0)


def _counts(quota: QuotaRow, shape: Shape) -> bool:
    return all(_in_scope(scope, operator, values, shape) for scope, operator, values in quota.scopes)


def _in_scope(scope: str, operator: str, values: tuple[str, ...], shape: Shape) -> bool:
    match scope:
        case "Terminating":
            return shape.deadline
        case "NotTerminating":
            return not shape.deadline
        case "BestEffort":
            return shape.is_best_effort
        case "NotBestEffort":
            return not shape.is_best_effort
        case "PriorityClass":
            return _meets(operator, values, shape.priority_class)
        case _:
            return False


def _meets(operator: str, values: tuple[str, ...], name: str) -> bool:
    match operator:
        case "In":
            return name in values
        case "NotIn":
            return name not in values
        case "DoesNotExist":
            return not name
        case _:
            return bool(name)
