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
_TOGETHER = 12
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


def _judged(world: NodeWorld, title: str, run: Callable[[], dict[str, list[str]]]) -> dict[str, list[str]]:
    """Run attacks together, and return what each achieved; nothing if nobody knows which of them did what."""
    began, before, known = time.monotonic(), world.belongings(), world.breaches()
    try:
        achieved = run()
    except Exception:  # noqa: BLE001 - each of them is tried alone
        print(f"together  {title}\n{traceback.format_exc(limit=-3)}", flush=True)
        return {}
    new = changes(before, world.belongings())
    new += [f"{name}: {', '.join(wrong)}" for name, wrong in world.breaches().items() if name not in known]
    print(f"together  {title}: {len(achieved)} in {time.monotonic() - began:.1f} s {new or ''}", flush=True)
    return {} if new and not any(achieved.values()) else achieved


def _acts(world: NodeWorld, chosen: list[Attack]) -> dict[str, list[str]]:
    """Try attacks one after the other, and return what each achieved; those that broke are left out."""
    achieved = {}
    for one in chosen:
        began = time.monotonic()
        try:
            achieved[one.name] = one.act(world)
        except Exception:  # noqa: BLE001 - it is tried again alone
            print(f"again     {one.name}\n{traceback.format_exc(limit=-3)}", flush=True)
        else:
            print(f"tried     {one.name} ({time.monotonic() - began:.1f} s): {one.tries}", flush=True)
    return achieved


def run_cycles(world: NodeWorld, wanted: list[Attack], score: Score) -> None:
    """Run attacks that share a look at the canaries: those of a cycle, then others; what is not decided, alone."""
    left = {one.name: one for one in wanted}
    decided: dict[str, list[str]] = {}
    for cycle, members in CYCLES.items():
        chosen = {name: steps for name, steps in members.items() if name in left}
        run = functools.partial(_run_cycle, world, cycle, chosen)
        decided |= _judged(world, cycle.__name__, run) if chosen else {}
    in_cycles = {name for members in CYCLES.values() for name in members}
    others = [one for one in wanted if one.name not in in_cycles]
    for start in range(0, len(others), _TOGETHER):
        acts = functools.partial(_acts, world, others[start : start + _TOGETHER])
        decided |= _judged(world, f"from {start}", acts)
    for name, achieved in decided.items():
        score.add(name, achieved)
        one = left.pop(name)
        if one.control:
            run_control(world, one, score)
            world.clear()
    run_each(world, list(left.values()), score)
