"""What an attack is, and the list of all of them."""

from collections.abc import Callable
from dataclasses import dataclass, replace

from tests.redteam.world import CLOSED, World, changes

Act = Callable[[World], list[str]]
"""Try it, then look as the administrator: what the attack achieved; nothing if it failed."""


@dataclass(frozen=True)
class Attack:
    """A named attempt with one sentence of what it tries."""

    name: str
    tries: str
    act: Act
    control: Act | None = None  # must succeed and be noticed: an attack whose check cannot see that proves nothing


ATTACKS: list[Attack] = []


def attack(act: Act) -> Act:
    """Add a function to the list; its docstring says what it tries."""
    ATTACKS.append(_named(act, None))
    return act


def controlled_attack(act: Act) -> Act:
    """Add a function that must succeed if the hostile tenant is an administrator, where no policy holds."""
    ATTACKS.append(_named(act, as_administrator(act)))
    return act


def as_administrator(act: Act) -> Act:
    """Return the same act with an administrator's credentials."""

    def control(world: World) -> list[str]:
        before = world.belongings()
        return act(replace(world, hostile=world.admin, home=CLOSED)) + changes(before, world.belongings())

    return control


def controlled_by(control: Act) -> Callable[[Act], Act]:
    """Add a function with the rightful way to the same effect, which must be noticed."""

    def add(act: Act) -> Act:
        ATTACKS.append(_named(act, control))
        return act

    return add


def listed(module: str, name: str, tries: str, act: Act, control: Act) -> None:
    """Add one row of a module's table of attacks."""

    def one(world: World) -> list[str]:
        return act(world)

    one.__module__ = module
    ATTACKS.append(Attack(name, tries, one, control))


def _named(act: Act, control: Act | None) -> Attack:
    if not act.__doc__:
        raise ValueError(f"attack {act.__name__} does not say what it tries: write a docstring of one sentence")
    return Attack(act.__name__, act.__doc__.strip(), act, control)
