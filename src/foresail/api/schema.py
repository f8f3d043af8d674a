"""Renders a type into the structural OpenAPI schema of a CustomResourceDefinition.

A field without a default is required, `X | None` is nullable, and a Literal is an enum. Bounds and descriptions are in
`msgspec.Meta`; a docstring is the description of an object. Defaults are not rendered: the API server would write
them into objects, which GitOps tools then compare with a manifest.
"""

import inspect
from typing import Any

import msgspec
from msgspec.inspect import (
    AnyType,
    BoolType,
    DateTimeType,
    DictType,
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
        properties={field.encode_name: _rendered(field.type) for field in kind.fields},
    )


def _description(of: type) -> str:
    """Return the docstring of a type on one line."""
    return " ".join((inspect.getdoc(of) or "").split())


def _without_none(**entries: object) -> Schema:
    return {name: entry for name, entry in entries.items() if entry is not None}
