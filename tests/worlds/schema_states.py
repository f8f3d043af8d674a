"""Valid and nearly valid objects from the schema of a kind, and what the API server would say of them."""

import random
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from copy import deepcopy
from datetime import datetime
from typing import Any

from foresail.api.crds import DEFINITIONS, definition
from foresail.plan import Kind
from tests.worlds.documents import Document

Value = Any  # JSON
_Check = Callable[[Document, Any, str], Iterator[str]]
_DURATIONS = ("0s", "1s", "30s", "90s", "2m", "1h", "24h", "720h", "1h30m", "8760h")
_EXPRESSIONS = (
    "*/5 * * * *",
    "3 * * * *",
    "@daily",
    "@every 1m",
    "0 0 30 2 *",
    "61 * * * *",
    "often",
    "CRON_TZ=x 0 * * * *",
)
_WORDS = ("a", "b", "red", "daily", "default", "x.y/z", "*", "-", "A b", "ä", "", "9" * 70)
_OF_FIELD: tuple[tuple[str, Sequence[Value]], ...] = (
    (r"schedule$", _EXPRESSIONS),
    (r"timeZone$|^zone$", ("UTC", "Europe/Berlin", "Mars/Phobos")),
    (r"ttl|[dD]eadline|[pP]eriod|warmUp|[iI]nterval|keepFailed|backoff|Timeout|Age$|releaseAfter|spread", _DURATIONS),
    (r"At$|^from$|^until$|time", ("2026-01-01T00:00:00Z", "2030-02-29T00:00:00Z", "22:00", "06:30")),
    (r"^operator$", ("In", "NotIn", "Exists", "DoesNotExist", "Near")),
)
_WRONG: Mapping[str, Sequence[Value]] = {
    "string": (7, None, ["a"], {"a": "b"}, "x" * 5000, "\n"),
    "integer": (-1, 0, 2**40, 2**63, "7", 1.5, None),
    "boolean": ("true", 0, None),
    "array": ({}, "a", [None], ["a"] * 300, None),
    "object": ([], "a", None, {"unknown": {"deep": [1]}}),
}


def schema_of(kind: Kind) -> Document:
    """Return the schema of the spec of one of our kinds; an object without fields if it has none."""
    of = next(each for each in DEFINITIONS if each.kind == kind)
    fields = definition(of)["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]
    found: Document = fields.get("spec", {"type": "object"})
    return found


# What is generated


def valid(schema: Document, dice: random.Random, field: str = "", depth: int = 0) -> Value:
    """Return a value that the schema takes, or nearly always."""
    if "enum" in schema:
        return dice.choice(schema["enum"])
    if schema.get("nullable") and dice.random() < 0.05:
        return None
    makers: Mapping[str, Callable[[], Value]] = {
        "object": lambda: _object(schema, dice, depth),
        "array": lambda: _array(schema, dice, field, depth),
        "string": lambda: _string(schema, dice, field),
        "integer": lambda: _integer(schema, dice),
        "boolean": lambda: dice.random() < 0.5,
    }
    maker = makers.get(schema.get("type", ""))
    return maker() if maker is not None else dice.choice((1, 10, "25%", "500m", "5m", "1h30m"))


def _object(schema: Document, dice: random.Random, depth: int) -> Document:
    fields = schema.get("properties")
    if fields is None:
        inner = schema.get("additionalProperties") or {"type": "string"}
        return {word: valid(inner, dice, "", depth + 1) for word in dice.sample(("a", "b", "red"), dice.randrange(3))}
    needed = schema.get("required", ())
    share = 0.5 / (depth + 1)
    chosen = [name for name in fields if name in needed or dice.random() < share]
    return {name: valid(fields[name], dice, name, depth + 1) for name in chosen}


def _array(schema: Document, dice: random.Random, field: str, depth: int) -> list[Value]:
    least = schema.get("minItems", 0)
    return [valid(schema["items"], dice, field, depth + 1) for _ in range(least + dice.randrange(3))]


def _string(schema: Document, dice: random.Random, field: str) -> str:
    words = next((words for pattern, words in _OF_FIELD if re.search(pattern, field)), None)
    pattern = schema.get("pattern")
    if words is None:
        words = _WORDS if pattern is None else (*_DURATIONS, *_WORDS)
    fitting = [word for word in words if not list(problems(schema, word))]
    return str(dice.choice(fitting or list(words)))


def _integer(schema: Document, dice: random.Random) -> int:
    least, most = schema.get("minimum", 0), schema.get("maximum", 1000)
    return int(dice.choice((least, most, dice.randint(least, most), min(least + 1, most))))


def nearly_valid(schema: Document, dice: random.Random) -> Value:
    """Return a valid value in which one place is wrong, or only odd."""
    value = deepcopy(valid(schema, dice))
    places = list(_places(schema, value))
    holder, name, of = dice.choice(places) if places else (None, "", schema)
    wrong = dice.choice(_WRONG.get(of.get("type", "object"), ("", 0)))
    if holder is None:
        return value
    if dice.random() < 0.15:
        del holder[name]
    elif dice.random() < 0.15 and isinstance(holder, dict):
        holder[f"{name}x"] = wrong
    else:
        holder[name] = wrong
    return value


def _places(schema: Document, value: Value) -> Iterator[tuple[Any, Any, Document]]:
    if isinstance(value, dict):
        for name, inner in value.items():
            of = (schema.get("properties") or {}).get(name) or schema.get("additionalProperties")
            if isinstance(of, dict):
                yield value, name, of
                yield from _places(of, inner)
    elif isinstance(value, list) and isinstance(schema.get("items"), dict):
        for number, inner in enumerate(value):
            yield value, number, schema["items"]
            yield from _places(schema["items"], inner)


# What the API server says


def stored(schema: Document, value: Value) -> Value:
    """Return what the API server stores: unknown fields are pruned, and so is null where a field may not be null."""
    if isinstance(value, dict) and "properties" in schema:
        known = {name: inner for name, inner in value.items() if name in schema["properties"]}
        return {name: stored(schema["properties"][name], inner) for name, inner in known.items()}
    if isinstance(value, list) and isinstance(schema.get("items"), dict):
        return [stored(schema["items"], inner) for inner in value]
    return value


def problems(schema: Document, value: Value, path: str = "spec") -> Iterator[str]:
    """Yield why the API server refuses a value; rules in CEL are not asked."""
    if value is None:
        if not schema.get("nullable"):
            yield f"{path}: null"
        return
    if "x-kubernetes-int-or-string" in schema:
        if isinstance(value, bool) or not isinstance(value, int | str):
            yield f"{path}: neither a number nor a string"
        return
    wanted = schema.get("type")
    if wanted is not None and not _is(wanted, value):
        yield f"{path}: not of type {wanted}"
        return
    if "enum" in schema and value not in schema["enum"]:
        yield f"{path}: not one of {schema['enum']}"
    checks: Mapping[str, _Check] = {
        "string": _of_string,
        "integer": _of_integer,
        "array": _of_array,
        "object": _of_object,
    }
    if wanted in checks:
        yield from checks[str(wanted)](schema, value, path)


def _is(wanted: str, value: Value) -> bool:
    if wanted == "integer":
        return isinstance(value, int) and not isinstance(value, bool) and abs(value) < 2**63
    return isinstance(value, {"string": str, "boolean": bool, "array": list, "object": dict}[wanted])


def _of_string(schema: Document, value: str, path: str) -> Iterator[str]:
    if not schema.get("minLength", 0) <= len(value) <= schema.get("maxLength", 10**9):
        yield f"{path}: length"
    if "pattern" in schema and not re.search(schema["pattern"], value):
        yield f"{path}: pattern"
    if schema.get("format") == "date-time":
        try:
            datetime.fromisoformat(value)
        except ValueError:
            yield f"{path}: no time"


def _of_integer(schema: Document, value: int, path: str) -> Iterator[str]:
    if not schema.get("minimum", -(2**63)) <= value <= schema.get("maximum", 2**63):
        yield f"{path}: bounds"


def _of_array(schema: Document, value: list[Value], path: str) -> Iterator[str]:
    if not schema.get("minItems", 0) <= len(value) <= schema.get("maxItems", 10**9):
        yield f"{path}: items"
    for number, inner in enumerate(value):
        yield from problems(schema["items"], inner, f"{path}[{number}]")


def _of_object(schema: Document, value: Document, path: str) -> Iterator[str]:
    fields = schema.get("properties")
    yield from (f"{path}.{name}: required" for name in schema.get("required", ()) if name not in value)
    if len(value) > schema.get("maxProperties", 10**9):
        yield f"{path}: properties"
    for name, inner in value.items():
        of = fields.get(name) if fields is not None else schema.get("additionalProperties")
        if isinstance(of, dict):
            yield from problems(of, inner, f"{path}.{name}")
