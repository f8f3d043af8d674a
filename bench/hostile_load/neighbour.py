"""The normal tenant: backs up and restores, and keeps how long each takes from the request to its end."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import count
from statistics import median

from bench import MeasurementError
from tests.redteam.world import NAB, NAR, Caller, Json, body_of, condition, path

NORMAL = "normal"
_BASE = "base"
_POLL_SECONDS = 0.1
_ENDED = {"True", "False"}
_FIRST_SECONDS = 180.0


@dataclass
class Times:
    """Seconds of each backup and each restore, and how many did not end or failed."""

    backups: list[float] = field(default_factory=list)
    restores: list[float] = field(default_factory=list)
    unfinished: int = 0
    failed: int = 0

    def slowdown(self, alone: "Times") -> float:
        """Return by how much backups or restores take longer than they took alone, whichever is worse."""
        pairs = ((self.backups, alone.backups), (self.restores, alone.restores))
        return max(median(ours) / median(theirs) for ours, theirs in pairs)


@dataclass
class Neighbour:
    """A tenant with a few objects, the role `edit` and the chart's policy."""

    caller: Caller
    _numbers: "count[int]" = field(default_factory=count)

    def prepare(self) -> None:
        """Create what is backed up, and the backup from which everything is restored."""
        for number in range(10):
            body = {**body_of("ConfigMap", f"settings-{number}"), "data": {"number": str(number)}}
            self.caller.create(path("configmaps", NORMAL), body)
        seconds = self._ended(NAB, _BASE, {"backupSpec": {}}, _FIRST_SECONDS)
        if seconds is None or self._outcome(NAB, _BASE) != "True":
            raise MeasurementError("the first backup of the normal tenant did not succeed")

    def work(self, goes_on: Callable[[], bool], longest: float) -> Times:
        """Back up and restore in turn, at least once each, as long as told."""
        times = Times()
        while goes_on() or not times.restores:
            name = f"turn-{next(self._numbers)}"
            self._measure(NAB, name, {"backupSpec": {}}, longest, times.backups, times)
            self.caller.delete(path("configmaps", NORMAL, "settings-0"))
            self._measure(NAR, name, {"restoreSpec": {"backupName": _BASE}}, longest, times.restores, times)
            for plural in (NAB, NAR):
                self.caller.delete(path(plural, NORMAL, name))
        return times

    def _measure(self, plural: str, name: str, spec: Json, longest: float, into: list[float], times: Times) -> None:
        seconds = self._ended(plural, name, spec, longest)
        into.append(longest if seconds is None else seconds)
        times.unfinished += seconds is None
        times.failed += seconds is not None and self._outcome(plural, name) == "False"

    def _ended(self, plural: str, name: str, spec: Json, longest: float) -> float | None:
        """Create a request; return the seconds until it has ended, or None if it does not in time."""
        began = time.monotonic()
        answer = self.caller.create(path(plural, NORMAL), body_of(plural, name, spec))
        while answer.code >= 500 and time.monotonic() < began + longest:
            time.sleep(_POLL_SECONDS)
            answer = self.caller.create(path(plural, NORMAL), body_of(plural, name, spec))
        while time.monotonic() < began + longest:
            if self._outcome(plural, name) in _ENDED:
                return time.monotonic() - began
            time.sleep(_POLL_SECONDS)
        return None

    def _outcome(self, plural: str, name: str) -> str:
        found = self.caller.get(path(plural, NORMAL, name)) or {}
        return condition(found.get("status", {}), "Succeeded")


def shown(seconds: Sequence[float]) -> dict[str, float]:
    """Return the median and the worst of some seconds."""
    return {"median_s": round(median(seconds), 2), "worst_s": round(max(seconds), 2), "count": len(seconds)}
