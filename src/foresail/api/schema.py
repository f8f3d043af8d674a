"""Renders a type into the structural OpenAPI schema of a CustomResourceDefinition.

A field without a default is required, `X | None` is nullable, and a Literal is an enum. Bounds and descriptions are in
`msgspec.Meta`, in `meanings` or, for an object, in its docstring. `with_defaults_told` takes defaults out of a schema:
the API server would write them into objects, which GitOps tools then compare with a manifest.
"""

import inspect
from typing import Any

import msgspec
from msgspec.inspect import (
    AnyType,
    BoolType,
    DateTimeType,
    DictType,
    Field,
    IntType,
    LiteralType,
    Metadata,
    NoneType,
    StrType,
    StructType,
    Type,
    UnionType,
    VarTupleType,
)

from foresail.api.meanings import MEANINGS

Schema = dict[str, Any]
_EITHER = "x-kubernetes-int-or-string"  # two types, so what is added to the type says all


def schema(of: object) -> Schema:
    """Return the schema of a type; a type that has no schema here is an error in our own code."""
    return _rendered(msgspec.inspect.type_info(of))


def _rendered(kind: Type) -> Schema:
    match kind:
        case Metadata(type=inner, extra_json_schema=extra):
            added = extra or {}
            return {**({} if _EITHER in added else _rendered(inner)), **added}
        case UnionType(types=types):
            return _nullable(types)
        case StructType():
            return _object(kind)
        case VarTupleType(item_type=item, min_length=least, max_length=most):
            return _without_none(type="array", items=_rendered(item), minItems=least, maxItems=most)
        case DictType(value_type=value, max_length=most):
            return _without_none(type="object", maxProperties=most, **_values(value))
        case _:
            return _scalar(kind)


def _scalar(kind: Type) -> Schema:
    match kind:
        case StrType(pattern=pattern, min_length=least, max_length=most):
            return _without_none(type="string", pattern=pattern, minLength=least, maxLength=most)
        case IntType(ge=least, le=most):
            return _without_none(type="integer", format="int64", minimum=least, maximum=most)
        case BoolType():
            return {"type": "boolean"}
        case DateTimeType():
            return {"type": "string", "format": "date-time"}
        case LiteralType(values=values):
            return {"type": "string", "enum": list(values)}
        case _:
            raise TypeError(f"{kind} has no schema: say in {__name__} how it is rendered")


def _nullable(types: tuple[Type, ...]) -> Schema:
    values = [one for one in types if not isinstance(one, NoneType)]
    if len(values) != 1 or len(types) == 1:
        raise TypeError(f"{types} has no structural schema: only one type, or that type and None, can be rendered")
    return {**_rendered(values[0]), "nullable": True}


def _values(kind: Type) -> Schema:
    if isinstance(kind, AnyType):
        return {"x-kubernetes-preserve-unknown-fields": True}
    return {"additionalProperties": _rendered(kind)}


def _object(kind: StructType) -> Schema:
    return _without_none(
        type="object",
        description=_description(kind.cls),
        required=sorted(field.encode_name for field in kind.fields if field.required) or None,
        properties={field.encode_name: _field(kind.cls, field) for field in kind.fields},
    )


def _field(of: type, field: Field) -> Schema:
    """Return the schema of a field, with the description nearest to it, and its default."""
    rendered = _rendered(field.type)
    name = field.encode_name
    own = MEANINGS.get(f"{of.__name__}.{name}")
    meaning = own or (None if _is_described(field.type) else MEANINGS.get(name)) or rendered.get("description")
    default = None if isinstance(field.default, msgspec.Struct | msgspec.UnsetType) else field.default
    told = {} if default in (None, "", (), msgspec.NODEFAULT) else {"default": default}
    return {**rendered, **_without_none(description=meaning), **told}


def _is_described(kind: Type) -> bool:
    match kind:
        case Metadata(type=inner, extra_json_schema=extra):
            return "description" in (extra or {}) or _is_described(inner)
        case UnionType(types=types):
            return any(map(_is_described, types))
        case _:
            return False


def with_defaults_told(of: Schema, *, are_told: bool) -> Schema:
    """Return a schema without defaults, which the descriptions have instead; in a status they mean nothing."""
    told = {name: value for name, value in of.items() if name != "default"}
    if "default" in of and are_told:
        told["description"] = f"{of['description']} Default: {_shown(of['default'])}."
    if "properties" in of:
        told["properties"] = {
            name: with_defaults_told(field, are_told=are_told) for name, field in of["properties"].items()
        }
    if "items" in of:
        told["items"] = with_defaults_told(of["items"], are_told=are_told)
    return told


def _shown(value: object) -> str:
    match value:
        case bool():
            return str(value).lower()
        case tuple():
            return ", ".join(map(str, value))
        case _:
            return str(value)


def _description(of: type) -> str:
    """Return the docstring of a type on one line."""
    return " ".join((inspect.getdoc(of) or "").split())


def _without_none(**entries: object) -> Schema:
    return {name: entry for name, entry in entries.items() if entry is not None}
