"""Faults that are planted by hand, to see that the model finds them: `python -m bench.deletion_worlds --plant NAME`."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import ModuleType
from typing import Any

from foresail import deletion, deletion_writes

_mark = deletion_writes.mark


def _without_version(*args: Any) -> Any:  # noqa: ANN401 - those of the original
    kind, backup, uid, _, at, why = args
    return _mark(kind, backup, uid, "", at, why)


FAULTS: dict[str, tuple[ModuleType, str, Callable[..., Any] | str]] = {
    "last": (deletion, "protected", lambda *_: frozenset()),  # the newest good and restorable ones may go
    "grace": (deletion, "_is_due", lambda *_: True),  # nothing is announced before it goes
    "breaker": (deletion, "is_mass_deletion", lambda *_, **__: False),  # any number goes without an approval
    "clock": (deletion, "clock_doubt", lambda _: ""),  # the operator's clock is believed
    "shadow": (deletion, "SHADOWS", "no failure"),  # a failed Backup takes the data of an earlier one with it
    "version": (deletion_writes, "mark", _without_version),  # a pin between decision and write is not noticed
}


@contextmanager
def planted(name: str) -> Iterator[None]:
    """Plant a fault for a while."""
    module, attribute, fault = FAULTS[name]
    original = getattr(module, attribute)
    setattr(module, attribute, fault)
    try:
        yield
    finally:
        setattr(module, attribute, original)
