"""Which objects a label selector selects, and what can be wrong with one."""

from collections.abc import Mapping

from foresail.api.specs import LabelRequirement, LabelSelector


def selects(selector: LabelSelector, labels: Mapping[str, str]) -> bool:
    """Whether a selector selects an object with these labels; one that cannot be read selects nothing."""
    if any(labels.get(key) != value for key, value in (selector.match_labels or {}).items()):
        return False
    return all(_meets(each, labels) for each in selector.match_expressions or ())


def problem_of(selector: LabelSelector) -> str | None:
    """Return what is wrong with a selector; None if it can be read."""
    for each in selector.match_expressions or ():
        if each.operator in ("In", "NotIn") and not each.values:
            return f"{each.operator} of {each.key!r} has no values"
        if each.operator in ("Exists", "DoesNotExist") and each.values:
            return f"{each.operator} of {each.key!r} takes no values"
    return None


def _meets(requirement: LabelRequirement, labels: Mapping[str, str]) -> bool:
    value, values = labels.get(requirement.key), requirement.values or ()
    match requirement.operator:
        case "In":
            return value is not None and value in values
        case "NotIn":
            return bool(values) and value not in values
        case "Exists":
            return value is not None and not values
        case "DoesNotExist":
            return value is None and not values
