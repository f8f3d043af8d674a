"""A plugin of mypy: `dataclasses.replace` of a msgspec Struct passes its types, and fails when it runs."""

from collections.abc import Callable

from mypy.plugin import FunctionContext, Plugin
from mypy.types import Instance, Type, get_proper_type


class Structs(Plugin):
    """Refuses dataclasses.replace of Structs."""

    def get_function_hook(self, fullname: str) -> Callable[[FunctionContext], Type] | None:
        """Return what looks at the calls of a function."""
        return _refuse_structs if fullname == "dataclasses.replace" else None


def _refuse_structs(call: FunctionContext) -> Type:
    given = get_proper_type(call.arg_types[0][0])
    if isinstance(given, Instance) and given.type.has_base("msgspec.Struct"):
        call.api.fail(f"{given.type.name} is a Struct: use msgspec.structs.replace", call.context)
    return call.default_return_type


def plugin(_version: str) -> type[Plugin]:
    """Return the plugin, as mypy asks for it."""
    return Structs
