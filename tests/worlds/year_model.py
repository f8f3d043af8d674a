"""What must happen in a year by the words of the rules, written down once more: naively, sharing no code with them.

Time goes from one instant at which anything can change to the next. When something fires comes from the Go libraries
alone: the model asks, and whoever runs it brings the answers.
"""

from bisect import bisect_right
from collections.abc import Generator
from dataclasses import dataclass, field

from testbed.oracle import Question
from tests.worlds.year_policies import Policy, read_policy
from tests.worlds.year_stories import Deed, Story, Surroundings, end_of

AT_ONCE = 120  # fires that are asked for at once
Asking = Generator[Question, list[int], "Fate"]


@dataclass
class Fate:
    """What becomes of one Schedule, in seconds since 1970: its slots, when each was run, and the skips."""

    slots: list[int] = field(default_factory=list)
    made: list[float] = field(default_factory=list)
    skips: list[int] = field(default_factory=list)
    starts: dict[int, int] = field(default_factory=dict)  # of slots that a policy moves


class _Fires:
    """The fires after one instant, as far as they were asked for."""

    def __init__(self, text: str, anchor: int) -> None:
        self.text, self.anchor = text, anchor
        self.known: list[int] = []
        self.is_all = False

    def follows(self, text: str, anchor: int) -> bool:
        """Tell whether what comes after that instant is part of this chain."""
        return text == self.text and (anchor == self.anchor or anchor in self.known)

    def until(self, now: float, around: Surroundings, zone: str) -> Generator[Question, list[int], None]:
        """Ask until a fire after now is known."""
        while not self.is_all and (not self.known or self.known[-1] <= now):
            start = self.known[-1] if self.known else self.anchor
            more = yield Question(around.dialect.value, self.text, zone, start, 0, AT_ONCE)
            self.known += more
            self.is_all = len(more) < AT_ONCE


class _Life:
    """One Schedule, and what the operator knows of it; all times in seconds since 1970."""

    def __init__(self, story: Story, around: Surroundings, beginning: int, policy: Policy | None = None) -> None:
        self.told = Fate()
        self._name, self._around, self._beginning = story.name, around, beginning
        self._created = int(beginning + story.created)
        self._spec: dict[str, object] = {}
        self._deeds = [Deed(story.created, story.spec), *story.deeds]
        self._changes = sorted({beginning + edge for pair in (*around.down, *around.away) for edge in pair})
        self._ends: list[float] = []  # of Backups
        self._fires = _Fires("", 0)
        self._policy = policy
        self._zone = policy.zone if policy is not None and policy.zone else around.zone
        self._last_backup = self._last_skipped = self._edited = 0
        self._text_seen: object = None
        self._pause_seen = self._skip_used = False

    def next_instant(self, now: float) -> float:
        """Return the next instant at which anything can change."""
        known = self._fires.known
        found = [self._beginning + deed.at for deed in self._deeds[:1]]
        found += self._changes[bisect_right(self._changes, now) :][:1]
        found += known[bisect_right(known, now) :][:1]
        found += [end for end in self._ends if end > now]
        found += self._policy.instants(known, now) if self._policy is not None else []
        return min(found, default=float("inf"))

    def let_people_do(self, now: float) -> None:
        """Do what people do at that instant."""
        while self._deeds and self._beginning + self._deeds[0].at <= now:
            deed = self._deeds.pop(0)
            self._spec.update(deed.spec or {})
            if deed.by_hand:
                self._ends.append(self._beginning + end_of(deed.by_hand, deed.at))

    def look(self, now: float) -> Generator[Question, list[int], None]:
        """Do what the operator must do at that instant, if it runs."""
        if self._is_within(self._around.down, now):
            return
        self._notice(now)
        # Due is the last fire that has come, counted from the last run (or the creation), skip or edit.
        base = max(self._last_backup or self._created, self._last_skipped, self._edited)
        text = str(self._spec["schedule"])
        if not self._fires.follows(text, base):
            self._fires = _Fires(text, base)
        yield from self._fires.until(now, self._around, self._zone)
        if self._policy is not None:
            yield from self._look_under(self._policy, base, now)
            return
        due = [fire for fire in self._fires.known if base < fire <= now]
        is_busy = any(end > now for end in self._ends)
        if due and not (self._pause_seen or is_busy or self._is_within(self._around.away, now)):
            self._run(due[-1], now)

    def _look_under(self, policy: Policy, base: int, now: float) -> Generator[Question, list[int], None]:
        """Do the same under a policy: a slot waits for its start, and what will not run is recorded as skipped."""
        if self._pause_seen:
            return
        come = [slot for slot in self._fires.known if slot > base and policy.comes(slot) <= now]
        runs = come[-1] if come and policy.is_runnable(come[-1], now) else None
        if runs is None and policy.skips and not (yield from self._is_ever_inside(policy, base, now)):
            return
        over = [slot for slot in come if slot != runs]
        if (runs is None and over) or any(policy.is_left_out(slot, now) for slot in over):
            self._skip(over[-1])
        is_busy = any(end > now for end in self._ends)
        is_away = self._is_within(self._around.away, now)
        if runs is not None and not (is_busy or is_away) and policy.may_start(int(now)):
            start = policy.start(runs)
            assert start is not None
            self.told.starts[runs] = start
            self._run(runs, now)

    def _is_ever_inside(self, policy: Policy, base: int, now: float) -> Generator[Question, list[int], bool]:
        """Tell whether a slot of the next 400 days is inside the windows; else the Schedule is refused."""
        end = int(now) + 400 * 86_400
        while True:
            later = [slot for slot in self._fires.known if slot > base and policy.comes(slot) > now]
            if any(policy.start(slot) is not None and slot <= end for slot in later):
                return True
            if self._fires.is_all or (later and later[-1] > end):
                return not later
            yield from self._fires.until(self._fires.known[-1] if self._fires.known else now, self._around, self._zone)

    def _skip(self, slot: int) -> None:
        self._last_skipped = slot
        self.told.skips.append(slot)

    def _notice(self, now: float) -> None:
        """Notice an edit, a pause, and an occasion for skipImmediately."""
        is_new = self._text_seen is None
        if not is_new and self._spec["schedule"] != self._text_seen:
            # A slot that a spread delays beyond the edit has not passed.
            self._edited = int(now) - (self._policy.offset if self._policy is not None else 0)
        self._text_seen = self._spec["schedule"]
        was_paused, self._pause_seen = self._pause_seen, bool(self._spec.get("paused"))
        if self._pause_seen:
            self._skip_used = False
            return
        says = self._spec.get("skipImmediately")
        is_wanted = self._around.default if says is None else says
        if is_wanted and (is_new or was_paused or (says is True and not self._skip_used)):
            self._last_skipped = int(now)
            self.told.skips.append(int(now))
            if says is True:
                self._skip_used, self._spec["skipImmediately"] = True, None

    def _run(self, slot: int, now: float) -> None:
        self._last_backup = slot
        self.told.slots.append(slot)
        self.told.made.append(now)
        end = self._beginning + end_of(f"{self._name}/{slot}", now - self._beginning)
        self._ends = [*(each for each in self._ends if each > now), end]

    def _is_within(self, stretches: tuple[tuple[float, float], ...], now: float) -> bool:
        return any(self._beginning + start <= now < self._beginning + end for start, end in stretches)


def fate(story: Story, around: Surroundings, beginning: int, end: float) -> Asking:
    """Follow one Schedule through the year, which begins and ends at these seconds since 1970."""
    policy = (yield from read_policy(story, around, beginning)) if story.policy is not None else None
    life = _Life(story, around, beginning, policy)
    now = beginning + story.created
    while now < end:
        life.let_people_do(now)
        yield from life.look(now)
        now = life.next_instant(now)
    return life.told
