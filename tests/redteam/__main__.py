"""Attack self-service on a real cluster as a hostile tenant: `make redteam`.

Prints a line for each attack and, last, one JSON object: how many were tried, how many succeeded, and their names.
"""

import argparse
import json
import sys
import tempfile
import time
import traceback
from dataclasses import dataclass, field
from pathlib import Path

from tests.redteam.attack import ATTACKS, Attack
from tests.redteam.fields import attack_fields
from tests.redteam.modules import MODULES  # noqa: F401 - importing them registers the attacks
from tests.redteam.world import World, attacked, changes


@dataclass
class Score:
    """What came of the attacks."""

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

    def summary(self, seconds: float) -> str:
        """Return the last line."""
        return json.dumps(
            {
                "attacks": self.attacks,
                "succeeded": len(self.succeeded),
                "names": sorted(self.succeeded),
                "fields": self.fields,
                "controls": self.controls,
                "broken": self.broken,
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


def main() -> int:
    """Run the attacks; 1 if one succeeded or could not be tried."""
    parser = argparse.ArgumentParser(prog="python -m tests.redteam", description=__doc__)
    parser.add_argument("--only", default="", help="run only attacks whose name contains this")
    parser.add_argument("--skip-fields", action="store_true", help="leave the generated attacks out")
    args = parser.parse_args()
    began, score = time.monotonic(), Score()
    try:
        with tempfile.TemporaryDirectory() as folder, attacked(Path(folder)) as world:
            print(f"ready     after {time.monotonic() - began:.0f} s", flush=True)
            run_all(world, [one for one in ATTACKS if args.only in one.name], score, with_fields=not args.skip_fields)
    except Exception:  # noqa: BLE001 - the last line is printed whatever happens
        score.fail("the world around the attacks")
    print(score.summary(time.monotonic() - began))
    return 1 if score.succeeded or score.broken else 0


if __name__ == "__main__":
    sys.exit(main())
