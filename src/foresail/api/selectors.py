"""Which objects a label selector selects, which of several policies applies, and what can be wrong with a selector."""

from collections.abc import Mapping

from foresail.api.specs import LabelRequirement, LabelSelector


def selects(selector: LabelSelector, labels: Mapping[str, str]) -> bool:
    """Whether a selector selects an object with these labels; one that cannot be read selects nothing."""
    if any(labels.get(key) != value for key, value in (selector.match_labels or {}).items()):
        return False
    return all(_meets(expression, labels) for expression in selector.match_expressions or ())


def precedence(priority: int, name: str) -> tuple[int, str]:
    """Return by what to sort policies: the one that applies has the highest priority, of equals the first name."""
    return -priority, name


def problem_of(selector: LabelSelector) -> str | None:
    """Return what is wrong with a selector; None if it can be read."""
    for expression in selector.match_expressions or ():
        if expression.operator in ("In", "NotIn") and not expression.values:
            return f"{expression.operator} of {expression.key!r} has no values"
        if expression.operator in ("Exists", "DoesNotExist") and expression.values:
            return f"{expression.operator} of {expression.key!r} takes no values"
    return None


def _meets(requirement: LabelRequirement, labels: Mapping[str, str]) -> bool:
    value = labels.get(requirement.key)
    values = requirement.values or ()
    match requirement.operator:
        case "In":
            return value is not None and value in values
        case "NotIn":
            return bool(values) and value not in values
        case "Exists":
            return value is not None and not values
        case "DoesNotExist":
            return value is None and not values
