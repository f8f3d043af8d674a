"""Attack self-service on a real cluster as a hostile tenant: `make redteam`.

Prints a line for each attack and, last, one JSON object: how many were tried, how many succeeded, their names, and the
same for each part.
"""

import argparse
import json
import sys
import tempfile
import time
from itertools import groupby
from pathlib import Path

from tests.redteam.fields import attack_fields
from tests.redteam.modules import FIELDS_AND_OBJECTS, PARTS, Part
from tests.redteam.score import Score
from tests.redteam.world import World, changes


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


def run_parts(parts: list[Part], only: str, scores: dict[str, Score], *, with_fields: bool) -> None:
    """Run parts that share a world, one after the other."""
    began = time.monotonic()
    wanted = {part.name: [one for one in part.attacks() if only in one.name] for part in parts}
    runs = {part.name: part.run for part in parts}
    has_fields = with_fields and FIELDS_AND_OBJECTS in wanted
    if not any(wanted.values()) and not has_fields:
        return
    try:
        with tempfile.TemporaryDirectory() as folder, parts[0].world(Path(folder)) as world:
            print(f"ready     after {time.monotonic() - began:.0f} s", flush=True)
            for name, attacks in wanted.items():
                start = time.monotonic()
                runs[name](world, attacks, scores[name])
                if has_fields and name == FIELDS_AND_OBJECTS:
                    run_fields(world, scores[name])
                print(f"part      {name}: {scores[name].attacks} in {time.monotonic() - start:.0f} s", flush=True)
    except Exception:  # noqa: BLE001 - the last line is printed whatever happens
        scores[parts[0].name].fail("the world around the attacks")


def _is_possible(part: Part) -> bool:
    """Whether this machine has what a part needs; otherwise say so, for nobody else does."""
    lacks = part.lacks()
    if lacks:
        print(f"NOT TRIED {part.name}: this machine lacks {', '.join(lacks)}", flush=True)
    return not lacks


def main() -> int:
    """Run the attacks; 1 if one succeeded or could not be tried."""
    parser = argparse.ArgumentParser(prog="python -m tests.redteam", description=__doc__)
    names = [part.name for part in PARTS]
    parser.add_argument("--part", choices=names, help="run only this part")
    parser.add_argument("--only", default="", help="run only attacks whose name contains this")
    parser.add_argument("--skip-fields", action="store_true", help="leave the generated attacks out")
    args = parser.parse_args()
    began, chosen = time.monotonic(), [part for part in PARTS if args.part in (None, part.name) and _is_possible(part)]
    scores = {part.name: Score() for part in chosen}
    for _, together in groupby(chosen, key=lambda part: part.world):
        run_parts(list(together), args.only, scores, with_fields=not args.skip_fields)
    print(summary(scores, time.monotonic() - began))
    return 1 if any(score.succeeded or score.broken for score in scores.values()) else 0


if __name__ == "__main__":
    sys.exit(main())
