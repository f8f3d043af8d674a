"""YAML as go-yaml reads it: a scalar keeps its text where Go wants a string; only one without a type is resolved."""

import math
import re
from datetime import date
from decimal import Decimal
from typing import Any

import yaml

_NULL, _MERGE, _TEXT = (f"tag:yaml.org,2002:{word}" for word in ("null", "merge", "str"))
_WORDS = {
    **dict.fromkeys(("true", "True", "TRUE"), "true"),
    **dict.fromkeys(("false", "False", "FALSE"), "false"),
    **dict.fromkeys((".nan", ".NaN", ".NAN"), ".nan"),
    **dict.fromkeys((".inf", ".Inf", ".INF", "+.inf", "+.Inf", "+.INF"), ".inf"),
    **dict.fromkeys(("-.inf", "-.Inf", "-.INF"), "-.inf"),
}
_DATE = re.compile(r"([0-9]{4})-([0-9]{1,2})-([0-9]{1,2})")
_INTEGER = re.compile(r"([-+]?)(0[xX][0-9a-fA-F]+|0[bB][01]+|0[oO]?[0-7]+|0|[1-9][0-9]*)")
_FLOAT = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?")
_MOST_VALUES = 100_000
_LEAST, _GREATEST = -(2**63), 2**64 - 1


class Plain(str):
    """A scalar without quotes, which may be more than text where Go wants a value of any type."""

    __slots__ = ()


class _Loader(yaml.SafeLoader):
    """Leaves every scalar as text, except for null and the key of a merge."""

    yaml_implicit_resolvers = {  # noqa: RUF012  as the base class has it
        first: [pair for pair in known if pair[0] in (_NULL, _MERGE)]
        for first, known in yaml.SafeLoader.yaml_implicit_resolvers.items()
    }


def _text(_: yaml.SafeLoader, node: yaml.ScalarNode) -> str:
    return Plain(node.value) if node.style is None else str(node.value)


_Loader.add_constructor(_TEXT, _text)


def load(text: str) -> Any:  # noqa: ANN401  any YAML
    """Return the first document; scalars without quotes are `Plain`. Raise ValueError if aliases make it too large."""
    loader = _Loader(text)
    try:
        node = loader.get_node() if loader.check_node() else None
        if node is None:
            return None
        if _values_in(node, {}) > _MOST_VALUES:
            raise ValueError(f"it has more than {_MOST_VALUES} values")
        return loader.construct_document(node)
    finally:
        loader.dispose()


def _values_in(node: yaml.Node, known: dict[int, int | None]) -> int:
    """Return how many values a node has with all aliases expanded; each node is counted once."""
    if isinstance(node, yaml.ScalarNode):
        return 1
    if id(node) in known:
        counted = known[id(node)]
        if counted is None:
            raise ValueError("an anchor contains itself")
        return counted
    known[id(node)] = None
    parts = [part for pair in node.value for part in pair] if isinstance(node, yaml.MappingNode) else node.value
    known[id(node)] = count = 1 + sum(_values_in(item, known) for item in parts)
    return count


def resolved(text: str) -> str | None:
    """Return how Go writes the bool, number or date that a plain scalar is; None if it is text."""
    if text in _WORDS:
        return _WORDS[text]
    if match := _DATE.fullmatch(text):
        try:
            return f"{date(*map(int, match.groups()))}T00:00:00Z"
        except ValueError:
            return None
    plain = text.replace("_", "") if text[:1] in "+-0123456789" else text
    if (integer := _integer(plain)) is not None:
        return str(integer)
    return _float(float(plain)) if _FLOAT.fullmatch(plain) and math.isfinite(float(plain)) else None


def _integer(text: str) -> int | None:
    match = _INTEGER.fullmatch(text)
    if match is None:
        return None
    sign, digits = match.groups()
    is_octal = digits.startswith("0") and digits[1:].isdecimal()
    value = int(digits, 8 if is_octal else 0) * (-1 if sign == "-" else 1)
    return value if _LEAST <= value <= _GREATEST else None


def _float(value: float) -> str:
    """Return the fewest digits that mean the number, with an exponent as Go has it."""
    number = Decimal(repr(value)).normalize()
    exponent = number.adjusted() if number else 0
    if -4 <= exponent < 6:  # noqa: PLR2004  the bounds of Go's format %g
        return f"{number:f}"
    return f"{number.scaleb(-exponent):f}e{exponent:+03d}"
