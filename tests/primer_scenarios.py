"""The seed's scenarios, and a year of what was made of one of them, by the Go library."""

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from testbed.oracle import Oracle, Question

SCENARIOS: list[dict[str, Any]] = json.loads(Path(__file__).with_suffix(".json").read_text())["scenarios"]
VALID = [each for each in SCENARIOS if "error" not in each]
(SIX_FIELDS,) = (each["cronjob"] for each in SCENARIOS if each.get("error") == "six fields")
KNOWN_ISSUES = ("0 14-16 * * *", "0-15 0 * * *", "0 0 * * 5")
"""What the seed says that it cannot convert."""

_YEAR = 365 * 86_400
_FIRES = 24_000  # no scenario fires more often than each minute of an hour each day


def year(
    oracle: Oracle, scenario: dict[str, Any], primers: Iterable[tuple[str, str]], start: int
) -> tuple[list[int], list[int]]:
    """Return the fires of a scenario minus its warm-up, and those of (schedule, time zone) pairs, from `start` on."""
    lead = 60 * scenario["warmup"]
    asked = [Question("robfig", scenario["cronjob"], "UTC", start + lead, 0, _FIRES)]
    asked += [Question("robfig", text, zone, start, 0, _FIRES) for text, zone in primers]
    original, *others = [answer.fires or [] for answer in oracle.ask(asked)]
    fired = sorted(fire for fires in others for fire in fires)
    return [fire - lead for fire in original if fire - lead < start + _YEAR], [at for at in fired if at < start + _YEAR]
