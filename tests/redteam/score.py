"""What came of the attacks of a part, and how one attack is tried and judged."""

import time
import traceback
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import groupby

from tests.redteam.attack import Attack
from tests.redteam.world import World, changes

_TOGETHER = 25


@dataclass
class Score:
    """What came of the attacks of a part."""

    attacks: int = 0
    fields: int = 0
    controls: int = 0
    succeeded: dict[str, list[str]] = field(default_factory=dict)
    broken: list[str] = field(default_factory=list)

    def add(self, name: str, achieved: list[str]) -> None:
        """Count one attack, and say what it achieved."""
        self.attacks += 1
        if achieved:
            self.succeeded[name] = achieved
            print(f"SUCCEEDED {name}: {'; '.join(achieved):.600}", flush=True)

    def fail(self, name: str) -> None:
        """Count an attack that could not be tried: it proves nothing."""
        self.broken.append(name)
        print(f"BROKEN    {name}\n{traceback.format_exc(limit=-3)}", flush=True)


def run(world: World, one: Attack, score: Score) -> bool:
    """Try one attack and look afterwards at the victim, the cluster and every Velero object; False if it broke."""
    began, before, known = time.monotonic(), world.belongings(), world.breaches()
    try:
        achieved = one.act(world)
        achieved += changes(before, world.belongings())
        achieved += [f"{name}: {', '.join(wrong)}" for name, wrong in world.breaches().items() if name not in known]
    except Exception:  # noqa: BLE001 - whatever it is, the others are tried
        score.fail(one.name)
        return False
    score.add(one.name, achieved)
    if not achieved:
        print(f"failed    {one.name} ({time.monotonic() - began:.1f} s): {one.tries}", flush=True)
    return True


def run_in_groups(world: World, wanted: list[Attack], score: Score) -> None:
    """Run hundreds of short attacks: what belongs to others is compared around each group of them.

    If anything differs after a group, each of its attacks runs again by itself.
    """
    broken: list[Attack] = []
    for group in batched(wanted, _TOGETHER):
        broken += _run_group(world, group, score)
    for one in wanted:
        if one.control:
            run_control(world, one, score)
    for one in broken:
        if one.name in score.broken:
            score.broken.remove(one.name)
            run(world, one, score)


def _run_group(world: World, group: list[Attack], score: Score) -> list[Attack]:
    """Run a group, and return the attacks that could not be tried."""
    began, before, known = time.monotonic(), world.belongings(), world.breaches()
    achieved: dict[str, list[str]] = {}
    broken = []
    for one in group:
        try:
            achieved[one.name] = one.act(world)
        except Exception:  # noqa: BLE001 - whatever it is, the others are tried
            score.fail(one.name)
            broken.append(one)
    if changes(before, world.belongings()) or world.breaches().keys() - known.keys():
        print(f"again     {len(group)} one by one: something of others was changed", flush=True)
        return broken + [one for one in group if one not in broken and not run(world, one, score)]
    for one in group:
        if one.name in achieved:
            score.add(one.name, achieved[one.name])
    failed = sum(not found for found in achieved.values())
    seconds = time.monotonic() - began
    print(f"failed    {failed} of {len(group)} ({seconds:.1f} s): {group[0].name} to {group[-1].name}", flush=True)
    return broken


def batched(wanted: list[Attack], size: int) -> Iterator[list[Attack]]:
    """Yield the attacks of each module in groups."""
    for _, of_module in groupby(wanted, key=lambda one: one.act.__module__):
        attacks = list(of_module)
        for at in range(0, len(attacks), size):
            yield attacks[at : at + size]


def run_control(world: World, one: Attack, score: Score) -> None:
    """Do what must succeed: an attack whose check does not see that is broken."""
    try:
        assert one.control is not None
        assert one.control(world), f"the control of {one.name} succeeds, and its check does not see it"
    except Exception:  # noqa: BLE001 - as above
        score.fail(f"control of {one.name}")
        return
    score.controls += 1


def run_each(world: World, wanted: list[Attack], score: Score) -> None:
    """Run attacks, controls, and again what could not be tried: a busy machine may have been the reason."""
    broken = [one for one in wanted if not run(world, one, score)]
    for one in wanted:
        if one.control:
            run_control(world, one, score)
    for one in broken:
        score.broken.remove(one.name)
        run(world, one, score)
