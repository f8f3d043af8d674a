"""10,000 namespaces of one class in 30 nights of virtual time: `make protection-nights`, `SIZE=0.1` for a tenth.

The last line is one JSON object: the most writes of a namespace in a night, and those of all days beside the nights.
"""

import argparse
import json
import os
import sys
import time
from collections import Counter
from datetime import timedelta

from tests.worlds import virtual_time
from tests.worlds.protection_scene import ProtectionScene
from tests.worlds.virtual_time import BEGINNING

NAMESPACES, NIGHTS = 10_000, 30
_DAY, _HOUR = timedelta(days=1), timedelta(hours=1)


async def lived(count: int, nights: int) -> dict[str, int]:
    """Live through the nights, and count the writes of the operator of protection."""
    scene = ProtectionScene()
    scene.start()
    scene.keep()
    scene.classify("gold", "0 1 * * *")
    for number in range(count):
        scene.ask(f"team-{number}", "gold")
    await scene.until(BEGINNING + _HOUR / 2)
    found = {
        "in_schedules": sum(map(len, scene.groups.values())),
        "schedules": len(scene.groups),
        "most": 0,
        "by_day": 0,
    }
    before = len(scene.kept)
    for night in range(1, nights + 1):
        for until, is_night in ((BEGINNING + (night - 1) * _DAY + 12 * _HOUR, True), (BEGINNING + night * _DAY, False)):
            await scene.until(until)
            writes = Counter(write.key.namespace for write in scene.kept[before:])
            before = len(scene.kept)
            if is_night:
                found["most"] = max(found["most"], *writes.values())
            else:
                found["by_day"] += sum(writes.values())
        print(f"night {night}: at most {found['most']} writes of one, {found['by_day']} by day", flush=True)
    await scene.end()
    return found


def main() -> int:
    """Live through them, and print the figures."""
    parser = argparse.ArgumentParser(prog="python -m bench.protection_nights", description=__doc__)
    parser.add_argument("--size", type=float, default=float(os.environ.get("SIZE") or 1))
    parser.add_argument("--nights", type=int, default=NIGHTS)
    args = parser.parse_args()
    began, count = time.monotonic(), max(round(NAMESPACES * args.size), 1)
    found = virtual_time.run(lived(count, args.nights))
    figures = {
        "namespaces": count,
        "nights": args.nights,
        "schedules": found["schedules"],
        "writes_per_namespace_and_night": found["most"],
        "writes_by_day": found["by_day"],
        "seconds": round(time.monotonic() - began),
    }
    print(json.dumps(figures))
    return int(found["most"] > 1 or bool(found["by_day"]) or found["in_schedules"] != count)


if __name__ == "__main__":
    sys.exit(main())
