"""Scenarios for the schedules of primer CronJobs, and a year of each by the Go library.

They have the shape that the second design document gives its own; CONTRIBUTING.md tells how to add one.
"""

from collections.abc import Iterable
from enum import StrEnum
from pathlib import Path

import msgspec

from testbed.oracle import Oracle, Question

_YEAR = 365 * 86_400
_FIRES = 24_000  # no scenario fires more often than each minute of an hour each day
_ZONE = "CRON_TZ="


class Type(StrEnum):
    """What the API server does with the CronJob."""

    ALLOWED = "AdmissionAllowed"
    REJECTED = "AdmissionRejected"


class Scenario(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A CronJob, a warm-up in minutes, and the schedules of the primer CronJobs."""

    name: str
    type: Type
    cronjob: str
    warmup: int
    expected: tuple[str, ...]
    document: str | None = None  # the answer in the document's own text; empty for a known issue
    archived: str | None = None  # the answer of the archived implementation behind it; empty if it rejects

    @property
    def schedules(self) -> list[tuple[str, str]]:
        """The expected schedules with their time zones."""
        return [_with_zone(each) for each in self.expected]


class _File(msgspec.Struct, frozen=True):
    about: str
    scenarios: tuple[Scenario, ...]


SCENARIOS = msgspec.json.decode(Path(__file__).with_suffix(".json").read_bytes(), type=_File).scenarios
ALLOWED = [each for each in SCENARIOS if each.type is Type.ALLOWED]
REJECTED = [each for each in SCENARIOS if each.type is Type.REJECTED]
DOCUMENT_EXAMPLES = (
    "0 * * * *",
    "0 2 * * *",
    "0/30 * * * *",
    "0,30 * * * *",
    "0-5 * * * *",
    "0,1,2,3,4,5 * * * *",
    "30 * * * *",
    "-10 * * * *",
    "0 0 * * *",
    "0 14-16 * * *",
    "0-15 0 * * *",
    "0 0 * * 5",
)
"""Every cron expression in the text of the design document that a CronJob could have, in its order."""


def year(
    oracle: Oracle, scenario: Scenario, primers: Iterable[tuple[str, str]], start: int
) -> tuple[list[int], list[int]]:
    """Return the fires of a scenario minus its warm-up, and those of (schedule, time zone) pairs, from `start` on."""
    lead = 60 * scenario.warmup
    asked = [Question("robfig", scenario.cronjob, "UTC", start + lead, 0, _FIRES)]
    asked += [Question("robfig", text, zone, start, 0, _FIRES) for text, zone in primers]
    original, *others = [answer.fires or [] for answer in oracle.ask(asked)]
    fired = sorted(fire for fires in others for fire in fires)
    return [fire - lead for fire in original if fire - lead < start + _YEAR], [at for at in fired if at < start + _YEAR]


def _with_zone(text: str) -> tuple[str, str]:
    if not text.startswith(_ZONE):
        return text, "UTC"
    zone, _, schedule = text.removeprefix(_ZONE).partition(" ")
    return schedule, zone
