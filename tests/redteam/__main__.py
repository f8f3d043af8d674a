"""Attack self-service on a real cluster as a hostile tenant: `make redteam`.

Prints a line for each attack and, last, one JSON object: how many were tried, how many succeeded, their names, and the
same for each part.
"""

import argparse
import json
import sys
import tempfile
import time
import traceback
from dataclasses import dataclass, field
from itertools import groupby
from pathlib import Path

from tests.redteam.attack import Attack
from tests.redteam.fields import attack_fields
from tests.redteam.modules import FIELDS_AND_OBJECTS, PARTS, Part
from tests.redteam.world import World, changes


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


def summary(scores: dict[str, Score], seconds: float) -> str:
    """Return the last line: all parts together, and each of them."""
    every = list(scores.values())
    return json.dumps(
        {
            "attacks": sum(one.attacks for one in every),
            "succeeded": sum(len(one.succeeded) for one in every),
            "names": sorted(name for one in every for name in one.succeeded),
            "fields": sum(one.fields for one in every),
            "controls": sum(one.controls for one in every),
            "broken": [name for one in every for name in one.broken],
            "parts": {
                name: {"attacks": one.attacks, "succeeded": len(one.succeeded), "controls": one.controls}
                for name, one in scores.items()
            },
            "seconds": round(seconds),
        }
    )


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


def run_fields(world: World, score: Score) -> None:
    """Try every field of our kinds."""
    began, before = time.monotonic(), world.belongings()
    try:
        found = attack_fields(world)
    except Exception:  # noqa: BLE001 - as above
        score.fail("fields")
        return
    for name, achieved in found.items():
        score.add(name, achieved)
    score.fields = len(found)
    score.add("fields_all_together", changes(before, world.belongings()))
    print(f"tried     {len(found)} fields ({time.monotonic() - began:.1f} s)", flush=True)


def run_control(world: World, one: Attack, score: Score) -> None:
    """Do what must succeed: an attack whose check does not see that is broken."""
    try:
        assert one.control is not None
        assert one.control(world), f"the control of {one.name} succeeds, and its check does not see it"
    except Exception:  # noqa: BLE001 - as above
        score.fail(f"control of {one.name}")
        return
    score.controls += 1


def run_all(world: World, wanted: list[Attack], score: Score, *, with_fields: bool) -> None:
    """Run attacks, fields, controls, and again what could not be tried: a busy machine may have been the reason."""
    broken = [one for one in wanted if not run(world, one, score)]
    if with_fields:
        run_fields(world, score)
    for one in wanted:
        if one.control:
            run_control(world, one, score)
    for one in broken:
        score.broken.remove(one.name)
        run(world, one, score)


def run_parts(parts: list[Part], only: str, scores: dict[str, Score], *, with_fields: bool) -> None:
    """Run parts that share a world, one after the other."""
    began = time.monotonic()
    wanted = {part.name: [one for one in part.attacks() if only in one.name] for part in parts}
    has_fields = with_fields and FIELDS_AND_OBJECTS in wanted
    if not any(wanted.values()) and not has_fields:
        return
    try:
        with tempfile.TemporaryDirectory() as folder, parts[0].world(Path(folder)) as world:
            print(f"ready     after {time.monotonic() - began:.0f} s", flush=True)
            for name, attacks in wanted.items():
                start = time.monotonic()
                run_all(world, attacks, scores[name], with_fields=has_fields and name == FIELDS_AND_OBJECTS)
                print(f"part      {name}: {scores[name].attacks} in {time.monotonic() - start:.0f} s", flush=True)
    except Exception:  # noqa: BLE001 - the last line is printed whatever happens
        scores[parts[0].name].fail("the world around the attacks")


def main() -> int:
    """Run the attacks; 1 if one succeeded or could not be tried."""
    parser = argparse.ArgumentParser(prog="python -m tests.redteam", description=__doc__)
    names = [part.name for part in PARTS]
    parser.add_argument("--part", choices=names, help="run only this part")
    parser.add_argument("--only", default="", help="run only attacks whose name contains this")
    parser.add_argument("--skip-fields", action="store_true", help="leave the generated attacks out")
    args = parser.parse_args()
    began, chosen = time.monotonic(), [part for part in PARTS if args.part in (None, part.name)]
    scores = {part.name: Score() for part in chosen}
    for _, together in groupby(chosen, key=lambda part: part.world):
        run_parts(list(together), args.only, scores, with_fields=not args.skip_fields)
    print(summary(scores, time.monotonic() - began))
    return 1 if any(score.succeeded or score.broken for score in scores.values()) else 0


if __name__ == "__main__":
    sys.exit(main())
