"""What an attack is, and the list of all of them."""

from collections.abc import Callable
from dataclasses import dataclass

from tests.redteam.world import World

Act = Callable[[World], list[str]]
"""Try it, then look as the administrator: what the attack achieved; nothing if it failed."""


@dataclass(frozen=True)
class Attack:
    """A named attempt with one sentence of what it tries."""

    name: str
    tries: str
    act: Act
    control: bool = False  # whether the same act succeeds, and is noticed, with an administrator's credentials


ATTACKS: list[Attack] = []


def attack(act: Act) -> Act:
    """Add a function to the list; its docstring says what it tries."""
    ATTACKS.append(_named(act, control=False))
    return act


def controlled_attack(act: Act) -> Act:
    """Add a function that must succeed if the hostile tenant is an administrator: so its check is known to see."""
    ATTACKS.append(_named(act, control=True))
    return act


def _named(act: Act, *, control: bool) -> Attack:
    if not act.__doc__:
        raise ValueError(f"attack {act.__name__} does not say what it tries: write a docstring of one sentence")
    return Attack(act.__name__, act.__doc__.strip(), act, control)
