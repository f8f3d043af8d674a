"""Attacks that share a backup and a restore of Velero: each of their own would take a minute on a real node."""

import functools
import time
import traceback
from collections.abc import Callable, Generator, Mapping
from typing import TypeVar

from tests.redteam.attack import ATTACKS, Act, Attack
from tests.redteam.node_world import NodeWorld
from tests.redteam.score import Score, run_control, run_each
from tests.redteam.world import World, changes

Steps = Callable[[NodeWorld], Generator[None, None, list[str]]]
"""Do something, yield while the cycle does its part, go on, and return in the end what the attack achieved."""

Cycle = Callable[[NodeWorld, Callable[[], None]], None]
"""What is done once for all attacks; calls its second argument when each of them may take its next step."""

OnNode = Callable[[NodeWorld], list[str]]
CYCLES: dict[Cycle, dict[str, Steps]] = {}
_Function = TypeVar("_Function", bound=Callable[..., object])


def _registered(function: _Function, act: OnNode, control: OnNode | None) -> _Function:
    """Add an act to the list under the name of a function, whose docstring says what it tries."""

    def on_node(done: OnNode) -> Act:
        @functools.wraps(function)
        def on_world(world: World) -> list[str]:
            assert isinstance(world, NodeWorld)
            return done(world)

        return on_world

    assert function.__doc__
    tries = " ".join(function.__doc__.split())
    ATTACKS.append(Attack(function.__name__, tries, on_node(act), on_node(control) if control else None))
    return function


def alone(control: OnNode | None = None) -> Callable[[OnNode], OnNode]:
    """Add a function that needs no cycle, maybe with the rightful way to the same effect."""
    return lambda act: _registered(act, act, control)


def in_cycle(cycle: Cycle, control: OnNode | None = None) -> Callable[[Steps], Steps]:
    """Add steps to a cycle; alone they have the cycle for themselves."""

    def add(steps: Steps) -> Steps:
        CYCLES.setdefault(cycle, {})[steps.__name__] = steps
        return _registered(
            steps, lambda world: _run_cycle(world, cycle, {steps.__name__: steps})[steps.__name__], control
        )

    return add


def _run_cycle(world: NodeWorld, cycle: Cycle, chosen: Mapping[str, Steps]) -> dict[str, list[str]]:
    """Let attacks take their steps together; return what each achieved."""
    started = {name: steps(world) for name, steps in chosen.items()}
    achieved: dict[str, list[str]] = {}

    def step() -> None:
        for name, steps in started.items():
            if name not in achieved:
                try:
                    next(steps)
                except StopIteration as end:
                    achieved[name] = end.value

    try:
        cycle(world, step)
        step()
    finally:
        world.clear()
    return achieved


def _together(world: NodeWorld, cycle: Cycle, chosen: Mapping[str, Steps]) -> dict[str, list[str]] | None:
    """Run a cycle, and return what each attack achieved; None if nobody knows which achieved what."""
    began, before, known = time.monotonic(), world.belongings(), world.breaches()
    try:
        achieved = _run_cycle(world, cycle, chosen)
    except Exception:  # noqa: BLE001 - each of them is tried alone
        print(f"cycle     {cycle.__name__}\n{traceback.format_exc(limit=-3)}", flush=True)
        return None
    new = changes(before, world.belongings())
    new += [f"{name}: {', '.join(wrong)}" for name, wrong in world.breaches().items() if name not in known]
    print(f"cycle     {cycle.__name__}: {len(chosen)} in {time.monotonic() - began:.1f} s {new}", flush=True)
    return None if new and not any(achieved.values()) else achieved


def run_cycles(world: NodeWorld, wanted: list[Attack], score: Score) -> None:
    """Run the cycles with the attacks that are wanted, then one by one what is in none or was not decided."""
    left = {one.name: one for one in wanted}
    for cycle, members in CYCLES.items():
        chosen = {name: steps for name, steps in members.items() if name in left}
        achieved = _together(world, cycle, chosen) if chosen else None
        for name, result in (achieved or {}).items():
            score.add(name, result)
            one = left.pop(name)
            if one.control:
                run_control(world, one, score)
                world.clear()
    run_each(world, list(left.values()), score)
