"""Every field of our kinds, from the definitions that the API server gets."""

from collections.abc import Iterator
from functools import cache

from docs.generate.tables import code, table
from foresail.api.crds import DEFINITIONS, Definition, definition
from foresail.api.schema import Schema
from foresail.api.spec_fields import BACKUP_FIELDS, RESTORE_FIELDS, Treatment

_TOP = """# Kinds

The definitions are in the chart `foresail-crds`, and `kubectl explain` says the same.
What the kinds are for is in [self-service](../self-service.md), [SchedulePolicy](../../concepts/schedule-policy.md), [RestoreChecks](../../how-to/check-restores.md), [protection by label](../../concepts/protection.md) and [primers](../primers.md).
A field in **bold** is required.
"""
_VELERO = {"spec.backupSpec": ("backupSpec", BACKUP_FIELDS), "spec.restoreSpec": ("restoreSpec", RESTORE_FIELDS)}
_TREATMENTS = """## How each field of Velero's is handled

`backupSpec` and `restoreSpec` have the fields of Velero's BackupSpec and RestoreSpec.
Velero acts with the permissions of an administrator, so each of them has a treatment, and a test fails if a Velero has a field without one.
"""


def page() -> str:
    """Return the page."""
    specs = [_velero(each, path) for each in DEFINITIONS for path in _VELERO if path in dict(_fields(_root(each)))]
    meanings = table(("word", "meaning"), ((one.name.lower(), one.value) for one in Treatment))
    return "\n".join([_TOP, *(_section(each) for each in DEFINITIONS), _TREATMENTS, meanings, *specs])


@cache
def _root(of: Definition) -> Schema:
    root: Schema = definition(of)["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    return root


def _section(of: Definition) -> str:
    kind, root = of.kind, _root(of)
    where = "namespaced" if kind.namespaced else "cluster-scoped"
    head = f"## {kind.name}\n\n{root['description']}\n`{kind.group}/{kind.version}`, `{of.short_name}`, {where}.\n"
    rules = [f"- {message}.\n" for _, message in of.rules]
    said = "\nWhat the API server says if a change is refused:\n\n" + "".join(rules) if rules else ""
    rows = [_row(path, field) for path, field in _fields(root) if not _is_within_velero(path)]
    return f"{head}{said}\n{table(('field', 'type', 'meaning'), rows)}"


def _is_within_velero(path: str) -> bool:
    return any(path.startswith(f"{each}.") for each in _VELERO)


def _velero(of: Definition, path: str) -> str:
    name, treatments = _VELERO[path]
    rows = [
        (*_row(field.removeprefix(f"{path}."), shown), _treatment(field.removeprefix(f"{path}."), treatments))
        for field, shown in _fields(_root(of))
        if field.startswith(f"{path}.")
    ]
    return f"### {name}\n\n{table(('field', 'type', 'meaning', 'for tenants'), rows)}"


def _treatment(path: str, treatments: dict[str, Treatment]) -> str:
    """Return that of the longest path that this one is or is below."""
    above = [each for each in treatments if path == each or path.startswith((f"{each}.", f"{each}[]"))]
    return treatments[max(above, key=len)].name.lower()


def _fields(of: Schema, above: str = "") -> Iterator[tuple[str, Schema]]:
    """Return the fields below, each with its path; what reads the same wherever it stands is not taken apart."""
    for name, field in of.get("properties", {}).items():
        if not above and name not in ("spec", "status"):
            continue
        path = f"{above}{name}"
        if above:
            yield path, {**field, "is_required": name in of.get("required", ())}
        if not _known(field):
            yield from _fields(field, f"{path}.")
            yield from _fields(field.get("items", {}), f"{path}[].")


def _row(path: str, field: Schema) -> tuple[str, str, str]:
    said = str(field.get("description", ""))
    rules = [_rule(each["message"]) for each in field.get("x-kubernetes-validations", ())]
    name = f"**{code(path)}**" if field["is_required"] else code(path)
    link = f"See [{_VELERO[path][0]}](#{_VELERO[path][0].lower()})." if path in _VELERO else ""
    return name, _type(field), " ".join([said, *rules, link])


def _rule(message: str) -> str:
    return f"It {message}." if message.startswith("must ") else f"The API server's message: “{message}”."


def _known(field: Schema) -> str:
    """Return the name of what is known by its shape; empty if the field is to be taken apart."""
    fields = field.get("properties", {})
    below = field.get("items", {}).get("properties", {})
    if "matchLabels" in fields:
        return "label selector"
    if "matchLabels" in below:
        return "list of label selectors"
    if "lastTransitionTime" in below:
        return "list of [conditions](reasons.md)"
    if fields and all(set(each) == {"type", "format"} for each in fields.values()):
        return "numbers: " + ", ".join(map(code, fields))
    return ""


def _type(field: Schema) -> str:  # noqa: PLR0911 - one for each sort of field
    match field:
        case _ if known := _known(field):
            return known
        case {"enum": words}:
            return ", ".join(map(code, words))
        case {"x-kubernetes-int-or-string": True}:
            return "number or string"
        case {"x-kubernetes-preserve-unknown-fields": True}:
            return "as Velero has it"
        case {"items": {"enum": words}}:
            return f"list of {', '.join(map(code, words))}"
        case {"items": item}:
            return f"list of {_type(item)}s"
        case {"additionalProperties": value}:
            return f"map to {_type(value)}"
        case {"format": "date-time"}:
            return "time"
        case _:
            return f"{field['type']}{_bounds(field)}"


def _bounds(field: Schema) -> str:
    bounds = [f"{field[each]:,}" for each in ("minimum", "maximum") if each in field]
    return f", {' to '.join(bounds)}{' at least' if len(bounds) == 1 else ''}" if bounds else ""
