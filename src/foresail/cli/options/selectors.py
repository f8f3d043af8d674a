"""Label selectors: as users write them, as objects hold them, and as Velero shows them."""

import re
from typing import Any

from foresail.cli.errors import UsageError

_NONE = "<none>"
_KEY = r"[A-Za-z0-9][-A-Za-z0-9_./]*"
_VALUE = r"[-A-Za-z0-9_.]*"
_PART = re.compile(r"(?:[^,(]|\([^)]*\))+")  # up to a comma that is not in parentheses
_SET = re.compile(rf"({_KEY})\s+(in|notin)\s*\(([^()]*)\)")
_EQUAL = re.compile(rf"({_KEY})\s*(==|=|!=)\s*({_VALUE})")
_PRESENT = re.compile(rf"(!?)\s*({_KEY})")


def read_selector(text: str) -> dict[str, Any]:
    """Return the selector that a text such as `app=web,tier in (a,b),!old` means, as objects hold it."""
    labels: dict[str, str] = {}
    expressions: list[dict[str, Any]] = []
    for part in (item.strip() for item in _PART.findall(text)):
        if match := _EQUAL.fullmatch(part):
            key, operator, value = match.groups()
            if operator == "!=":
                expressions.append({"key": key, "operator": "NotIn", "values": [value]})
            else:
                labels[key] = value
        elif match := _SET.fullmatch(part):
            values = sorted({value.strip() for value in match[3].split(",")})
            expressions.append({"key": match[1], "operator": "In" if match[2] == "in" else "NotIn", "values": values})
        elif match := _PRESENT.fullmatch(part):
            expressions.append({"key": match[2], "operator": "DoesNotExist" if match[1] else "Exists"})
        else:
            raise UsageError(
                f"{part!r} in the selector {text!r} is not a condition", "write app=web,tier in (a,b),!old"
            )
    selector: dict[str, Any] = {}
    if labels:
        selector["matchLabels"] = labels
    if expressions:
        selector["matchExpressions"] = sorted(expressions, key=lambda expression: str(expression["key"]))
    return selector


def shown_selector(selector: Any) -> str:  # noqa: ANN401 - a field of an object
    """Return a selector as Velero and kubectl show it: the conditions in the order of their keys."""
    known = selector if isinstance(selector, dict) else {}
    parts = [(key, f"{key}={value}") for key, value in (known.get("matchLabels") or {}).items()]
    expressions = known.get("matchExpressions") or []
    parts += [
        (expression["key"], _shown(expression["key"], expression["operator"], expression.get("values") or []))
        for expression in expressions
    ]
    return ",".join(text for _, text in sorted(parts, key=lambda part: part[0])) or _NONE


def _shown(key: str, operator: str, values: list[str]) -> str:
    match operator:
        case "Exists":
            return key
        case "DoesNotExist":
            return f"!{key}"
        case _:
            return f"{key} {operator.lower()} ({','.join(sorted(values))})"
