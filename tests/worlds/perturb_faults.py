"""Guards of the product that are broken by hand, to see that the judge of perturbations finds each."""

import random
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch

from foresail.kube import execute
from foresail.kube.loop import Loop
from foresail.kube.reflector import Phase, Reflector
from foresail.plan import Action, Plan
from foresail.schedules import build, slots

_parameters: Any = Reflector.__dict__["parameters"]
_complete = Reflector._complete  # noqa: SLF001 - a part of it is left out


def _from_the_cache(self: Reflector[Any, Any]) -> Mapping[str, str]:
    asked: Mapping[str, str] = _parameters.fget(self)
    return asked if self.phase is Phase.WATCHING else {**asked, "resourceVersion": "0"}


async def _at_once(_: Loop[Any]) -> None:
    pass


def _status_first(self: Plan) -> tuple[Action, ...]:
    """Remember what was done before it is done."""
    return self.actions if self.status is None else (self.status, *self.actions)


def _keeps_what_went(self: Reflector[Any, Any]) -> None:
    """Believe that nothing went while nobody looked."""
    self._seen.update(self.store)
    _complete(self)


_backup_name = slots.backup_name


def _named_anew(*args: Any) -> str:  # noqa: ANN401 - those of the original
    return f"{_backup_name(*args)}-{random.getrandbits(16):04x}"


async def _taken(_self: execute.Executor, _action: Action) -> execute.Outcome:
    return execute.Outcome.REFUSED


FAULTS: dict[str, tuple[object, str, object]] = {
    "cache": (Reflector, "parameters", property(_from_the_cache)),
    "synced": (Loop, "synced", _at_once),
    "order": (Plan, "writes", property(_status_first)),
    "name": (build, "backup_name", _named_anew),
    "gone": (Reflector, "_complete", _keeps_what_went),
    "owner": (execute.Executor, "_owner", _taken),
}


@contextmanager
def planted(name: str) -> Iterator[None]:
    """Break a guard for a while."""
    where, attribute, fault = FAULTS[name]
    with patch.object(where, attribute, fault):
        yield
