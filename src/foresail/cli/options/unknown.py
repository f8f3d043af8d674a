"""Fields of a file that its kind does not have: the API server refuses them, so a preview must not pass over them."""

from collections.abc import Iterator, Mapping
from difflib import get_close_matches
from functools import cache

from foresail.api.schema import Schema, schema
from foresail.cli.errors import CommandError

_schema = cache(schema)


def refuse_unknown(title: str, spec_type: type, item: Mapping[str, object]) -> None:
    """Raise the first field of a spec that its type does not have, with the name that it may be meant to have."""
    problem = next(unknown_fields(_schema(spec_type), item.get("spec"), "spec"), None)
    if problem is not None:
        raise CommandError(f"{title}: {problem}", "correct that field")


def unknown_fields(known: Schema, value: object, path: str) -> Iterator[str]:
    """Yield each field that a schema does not have, as a sentence."""
    if isinstance(value, list) and "items" in known:
        for number, entry in enumerate(value):
            yield from unknown_fields(known["items"], entry, f"{path}[{number}]")
    if not isinstance(value, dict) or "properties" not in known:
        return
    fields = known["properties"]
    for name, inner in value.items():
        if name in fields:
            yield from unknown_fields(fields[name], inner, f"{path}.{name}")
        else:
            near = get_close_matches(str(name), fields, 1)
            yield f"{path}.{name} does not exist" + (f"; did you mean {near[0]}?" if near else "")
