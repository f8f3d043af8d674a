"""What a SchedulePolicy means, written down once more for the year: from lists of open stretches, second by second."""

import hashlib
from bisect import bisect_right
from collections.abc import Generator, Sequence
from dataclasses import dataclass
from typing import Any

from testbed.oracle import Question
from tests.worlds.year_stories import Story, Surroundings

_BEFORE = 60 * 86_400  # seconds before the year: every window has opened by then, and is in step with its clock
_AFTER = 500 * 86_400
_AT_ONCE = 2_000
_NEAR = 6  # slots ahead whose starts are looked at


@dataclass
class Policy:
    """The policy of one Schedule; open stretches begin and end at seconds since 1970."""

    zone: str
    offset: int
    deadline: int | None
    skips: bool
    opens: Sequence[int]
    closes: Sequence[int]

    def is_open(self, at: int) -> bool:
        """Tell whether a run may start at that second."""
        number = bisect_right(self.opens, at) - 1
        return number >= 0 and at < self.closes[number]

    def may_start(self, at: int) -> bool:
        """Tell whether a run of this Schedule may start at that second: for it, an opening is later by its delay."""
        number = bisect_right(self.opens, at) - 1
        return self.is_open(at) and (self.skips or at >= self._opening(number))

    def start(self, slot: int) -> int | None:
        """Return the first second at which the run of a slot may start; None if it may not."""
        at = slot + self.offset
        number = bisect_right(self.opens, at)
        if self.skips:
            return at if self.is_open(at) else None
        if self.is_open(at):
            return max(at, self._opening(number - 1))
        return self._opening(number) if number < len(self.opens) else None

    def _opening(self, number: int) -> int:
        """Return when runs start that waited for an opening: each Schedule after its own delay, before the close."""
        return self.opens[number] + self.offset % (self.closes[number] - self.opens[number])

    def comes(self, slot: int) -> float:
        """Return when something is to be done about a slot: when it may start, or at once if it is skipped."""
        start = self.start(slot)
        if start is None:
            return slot + self.offset if self.skips else float("inf")
        return start

    def is_runnable(self, slot: int, now: float) -> bool:
        """Tell whether a slot that has come may still run."""
        start = self.start(slot)
        if start is None or self._is_late(start, now):
            return False
        return not self.skips or now < self.closes[bisect_right(self.opens, start) - 1]

    def is_left_out(self, slot: int, now: float) -> bool:
        """Tell whether the policy, and not only a newer slot, keeps a slot from running."""
        start = self.start(slot)
        if start is None or start != slot + self.offset or self._is_late(start, now):
            return True
        return not self.is_runnable(slot, now)

    def instants(self, slots: Sequence[int], now: float) -> list[float]:
        """Return when the next thing may happen by the clock alone."""
        first = bisect_right(slots, now - self.offset)
        near = slots[max(0, first - 150) : first + _NEAR]
        found: list[float] = [self.comes(slot) for slot in near]
        if self.deadline is not None:
            found += [start + self.deadline + 1 for start in map(self.start, near) if start is not None]
        following = bisect_right(self.opens, now)
        found += self.opens[following:][:1]
        found += [self._opening(number) for number in (following - 1, following) if 0 <= number < len(self.opens)]
        found += self.closes[bisect_right(self.closes, now) :][:1]
        return [each for each in found if now < each < float("inf")]

    def _is_late(self, start: int, now: float) -> bool:
        return self.deadline is not None and now - start > self.deadline


def read_policy(story: Story, around: Surroundings, beginning: int) -> Generator[Question, list[int], Policy]:
    """Read the policy of a Schedule; the openings of its windows come from the Go libraries."""
    spec: dict[str, Any] = dict(story.policy or {})
    zone = spec.get("timeZone", "")
    windows = spec.get("windows", {})
    start, end = beginning - _BEFORE, beginning + _AFTER
    stretches: dict[str, list[tuple[int, int]]] = {"allowed": [], "excluded": []}
    for field, found in stretches.items():
        for each in windows.get(field, ()):
            fires: list[int] = []
            while not fires or fires[-1] < end:
                since = fires[-1] if fires else start
                at = each.get("timeZone") or zone or around.zone
                more = yield Question("robfig", each["schedule"], at, since, 0, _AT_ONCE)
                fires += more
                if len(more) < _AT_ONCE:
                    break
            found += [(fire, fire + _seconds(each["duration"])) for fire in fires]
    if not windows.get("allowed"):
        stretches["allowed"] = [(start, end)]
    opens, closes = _open_stretches(stretches["allowed"], stretches["excluded"])
    within = _seconds(spec["spread"]["within"]) if "spread" in spec else None
    digest = hashlib.sha256(f"velero/{story.name}".encode()).digest()
    return Policy(
        zone=zone,
        offset=int.from_bytes(digest[:8], "big") % (within + 1) if within is not None else 0,
        deadline=_seconds(spec["startingDeadline"]) if "startingDeadline" in spec else None,
        skips=windows.get("outside") == "Skip",
        opens=opens,
        closes=closes,
    )


def _open_stretches(allowed: list[tuple[int, int]], excluded: list[tuple[int, int]]) -> tuple[list[int], list[int]]:
    """Sweep over all beginnings and ends: open is what some allowed stretch covers and no excluded one."""
    changes = sorted(
        [
            (at, kind, step)
            for kind, found in ((0, allowed), (1, excluded))
            for a, b in found
            for at, step in ((a, 1), (b, -1))
        ]
    )
    depth = [0, 0]
    opens: list[int] = []
    closes: list[int] = []
    is_open = False
    for number, (at, kind, step) in enumerate(changes):
        depth[kind] += step
        if number + 1 < len(changes) and changes[number + 1][0] == at:
            continue
        if is_open != (depth[0] > 0 and depth[1] == 0):
            is_open = not is_open
            (opens if is_open else closes).append(at)
    return opens, closes + ([changes[-1][0]] if len(opens) > len(closes) else [])


def _seconds(minutes: str) -> int:
    return 60 * int(minutes.removesuffix("m"))
