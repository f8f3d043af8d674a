"""Method Placeholder: pods that hold the place of a run from its fire minus the warm-up until it has come.

At any instant there is at most one reservation for a CronJob. It serves the next fire; what is left of the one before
is taken over, so windows that overlap merge and never stack.

```
   fire - warmUp          fire                       fire + releaseAfter
        │── make, keep ────│── keep until the run's pods have nodes ──│ let go
```
"""

from datetime import datetime, timedelta

import msgspec

from foresail.api.instants import stamp, whole
from foresail.api.primer import Warming
from foresail.plan import Action, Level
from foresail.primers.build import EARLY, attempt_of, create_placeholder, delete_placeholder, placeholder_name
from foresail.primers.fires import Fires
from foresail.primers.limits import SETTLES, USEFUL, too_many
from foresail.primers.observe import PlaceholderRow, Seen, Target
from foresail.primers.reasons import Because, Loss, Reason
from foresail.primers.rules import (
    REHEARSED_BEFORE,
    Verdict,
    has_arrived,
    is_admission_known,
    is_covered,
    is_located,
    run_of,
)
from foresail.primers.shape import Shape
from foresail.primers.steps import Steps, remembered

ATTEMPTS = 3
CHANCE = timedelta(seconds=2)
"""For so long a pod of the run may wait for the scheduler to push a placeholder aside."""

_ECHO = timedelta(seconds=2)
_SLACK = timedelta(seconds=60)


def release(seen: Seen, target: Target, _now: datetime) -> Steps:
    """Let go of everything that is held."""
    known = remembered(seen, target.cron.uid)
    gone = [each for each in target.placeholders if not each.is_going]
    return Steps(tuple(map(delete_placeholder, gone)), warming=known.warming if known else None)


def plan(seen: Seen, verdict: Verdict, now: datetime) -> Steps:
    """Return what to create, keep and release for a CronJob now."""
    target, fires, shape = verdict.target, verdict.fires, verdict.shape
    if fires is None or shape is None:
        return release(seen, target, now)
    stands = _Stand(seen, verdict, fires, shape, now)
    if stands.is_kept_for_the_last:
        return stands.after_the_fire()
    if not stands.is_open or is_covered(target, fires.upcoming, verdict.count):
        return stands.let_go()
    return stands.before_the_fire()


class _Stand:
    """How things stand for one CronJob at one instant."""

    def __init__(self, seen: Seen, verdict: Verdict, fires: Fires, shape: Shape, now: datetime) -> None:
        self.seen, self.verdict, self.fires, self.shape, self.now = seen, verdict, fires, shape, now
        self.target, self.primer = verdict.target, seen.primer
        known = remembered(seen, self.target.cron.uid)
        held = known.warming if known else None
        self.memory = held if held is None or held.buffer is None else None  # a buffer is not what is held here
        standing = [each for each in self.target.placeholders if each.holds]
        self.live = [each for each in standing if not self._is_on_a_going_node(each)]
        self.useless = [each for each in self.target.placeholders if not each.is_going and each not in self.live]
        self.opens = fires.upcoming - self.primer.warm_up
        self.closes = fires.upcoming - EARLY if verdict.early else fires.upcoming

    @property
    def is_open(self) -> bool:
        """Whether capacity is to be held for the next fire."""
        return self.opens <= self.now < self.closes

    @property
    def is_kept_for_the_last(self) -> bool:
        """Whether the last fire has just been, and its run has not come yet."""
        last = self.fires.last
        if last is None or self.verdict.early or has_arrived(self.target, last, self.verdict.count):
            return False
        if not any(each.fire == last for each in self.live) and (self.memory is None or self.memory.fire != last):
            return False
        until = self.primer.release_after if self.live else min(SETTLES, self.primer.release_after)
        return self.now < last + until

    @property
    def _settled(self) -> datetime | None:
        """Until when the run of the last fire is waited for; None if it has come, or comes no more."""
        last, memory = self.fires.last, self.memory
        if last is None:
            return None
        if self.verdict.early and not has_arrived(self.target, last, self.verdict.count):
            # A run that comes late could not push aside what is made now; one whose Job is gone already has been.
            is_gone = run_of(self.target, last) is None and self.target.cron.last == last
            until = last + (SETTLES if is_gone else self.primer.release_after)
        elif memory is not None and memory.fire == last:
            until = last + SETTLES
        else:
            return None
        return until if self.now < until else None

    @property
    def _lasts(self) -> timedelta:
        """For how long a placeholder that is made now may stand, should nobody be there to let it go."""
        if self.verdict.early:
            return self.closes - self.now  # one that the run cannot push aside must not be there after the fire
        return self.closes - self.now + self.primer.release_after + _SLACK

    # Around a fire

    def after_the_fire(self) -> Steps:
        """Keep what is held until the run has come; what has no node by then would only take one from the run."""
        last = self.fires.last
        assert last is not None  # noqa: S101 - for the type checker: it is asked for only after a fire
        run = run_of(self.target, last)
        let_go, wakes = list(self.useless), [last + self.primer.release_after, last + SETTLES, self.fires.upcoming]
        memory = self.memory
        if run is not None:
            let_go += [each for each in self.live if not each.node]
            waiting = [each for each in run[1] if not each.node and not each.is_over]
            if any(each.created + CHANCE <= self.now for each in waiting):
                let_go = [*self.useless, *self.live]
            wakes += [each.created + CHANCE for each in waiting]
            if memory is not None and memory.lost is None and any(not each.node for each in self.live):
                memory = msgspec.structs.replace(memory, lost=Loss.NEVER_SCHEDULED.value)
        return self._steps(let_go, wakes, memory, is_warming=bool(self.live))

    def let_go(self) -> Steps:
        """Hold nothing: it is too early, the run has come, or it holds its place itself."""
        wakes = [self.opens, self.closes, self.fires.upcoming]
        asked = is_located(self.target, self.shape, self.fires.upcoming) and is_admission_known(self.target)
        if not asked:
            wakes.append(self.opens - REHEARSED_BEFORE)
        last, said = self.fires.last, tuple[Because, ...]()
        unused = [each for each in self.live if last is not None and each.fire == last]
        if last is not None and unused and run_of(self.target, last) is None and not self.verdict.early:
            name = self.target.cron.key.name
            text = f"CronJob {name} did not run at {stamp(last)}, so what was held for it is let go."
            said = (Because(Reason.NO_FIRE, text, Level.NORMAL),)
        return self._steps([*self.useless, *self.live], wakes, self.memory, said=said)

    def before_the_fire(self) -> Steps:
        """Hold as many places as the run needs, and make again what was lost."""
        fire = self.fires.upcoming
        # A moment before the fire everything is looked at again: a quota may have filled up meanwhile.
        wakes = [self.closes, fire - EARLY, fire]
        kept = self.live[: self.verdict.count]
        let_go = [*self.useless, *self.live[self.verdict.count :]]
        missing = self.verdict.count - len(kept)
        if missing == 0:
            return self._steps(let_go, wakes, self._noted(kept), is_warming=True)
        if self._settled is not None:
            return self._steps(let_go, [*wakes, self._settled], self.memory, is_warming=bool(kept))
        if not (is_admission_known(self.target) and is_located(self.target, self.shape, fire)):
            return self._steps(let_go, wakes, self.memory, is_warming=bool(kept))  # the answer is on its way
        memory, said = self._after_losses(kept)
        because = self._hindrance(memory, missing)
        if because is not None:
            silent = because.reason is Reason.LOST
            hindered = None if silent else because
            return self._steps(let_go, wakes, memory, said=said, because=hindered, is_warming=bool(kept))
        attempt = memory.attempt if memory is not None else 1
        taken = {each.key.name for each in kept}
        cron = self.target.cron
        numbers = [(index, attempt) for index in range(self.verdict.count + len(kept))]
        free = [each for each in numbers if placeholder_name(cron, fire, *each) not in taken][:missing]
        makes = [create_placeholder(self.seen, cron, self.shape, fire, each, self._lasts) for each in free]
        steps = self._steps(let_go, [*wakes, self.now + _ECHO], memory, said=said, is_warming=True)
        return msgspec.structs.replace(steps, actions=(*steps.actions, *makes))

    # What is remembered

    def _noted(self, kept: list[PlaceholderRow]) -> Warming:
        """Return what there is of what is held: how much, where, and how long it took."""
        fire, memory = self.fires.upcoming, self.memory
        if memory is None or memory.fire != fire:
            memory = Warming(fire=fire, made=0, since=whole(min(each.created for each in kept)))
        attempt = max((attempt_of(each.key.name) for each in kept if each.fire == fire), default=1)
        if attempt > memory.attempt:  # whoever made them again was cut off before the status said so
            lost = self.seen.losses.get(self.target.cron.uid, Loss.DISRUPTED.value)
            memory = msgspec.structs.replace(memory, attempt=attempt, lost=lost)
        nodes = tuple(sorted({*memory.nodes, *(each.node for each in kept if each.node)}))
        took = [each.scheduled - each.created for each in kept if each.scheduled is not None]
        provisioned = memory.provisioned
        if provisioned is None and len(took) == len(kept):
            provisioned = int(max(took).total_seconds())
        return msgspec.structs.replace(memory, made=max(memory.made, len(kept)), nodes=nodes, provisioned=provisioned)

    def _after_losses(self, kept: list[PlaceholderRow]) -> tuple[Warming | None, tuple[Because, ...]]:
        """Return what is remembered once a loss is taken in, and what is to be said about it."""
        memory, fire = self.memory, self.fires.upcoming
        if memory is None or memory.fire != fire:
            return None, ()
        if memory.made <= len(kept):
            return memory, ()
        cause = self.seen.losses.get(self.target.cron.uid, Loss.DISRUPTED.value)
        left, needed = fire - self.now, timedelta(seconds=memory.provisioned or 0)
        again = memory.attempt < ATTEMPTS and left >= max(needed, USEFUL)
        what = "it is made again" if again else "there is no time or attempt left to make it again"
        text = f"what was held for CronJob {self.target.cron.key.name} at {stamp(fire)} was lost ({cause}): {what}."
        attempt = memory.attempt + 1 if again else ATTEMPTS + 1
        noted = msgspec.structs.replace(memory, made=0, attempt=attempt, lost=cause)
        return noted, (Because(Reason.LOST, text),)

    def _hindrance(self, memory: Warming | None, missing: int) -> Because | None:
        """Return why nothing is made though something is missing."""
        seen = self.seen
        if memory is not None and memory.attempt > ATTEMPTS:
            return Because(Reason.LOST, "")
        if self.fires.upcoming - self.now < USEFUL:
            return Because(Reason.LOST, "")
        hindered = too_many(seen, self.target.cron, missing)
        if hindered is not None:
            return hindered
        attempt = memory.attempt if memory is not None else 1
        names = [
            placeholder_name(self.target.cron, self.fires.upcoming, index, attempt)
            for index in range(self.verdict.count)
        ]
        refused = next((seen.refused[each] for each in names if each in seen.refused), None)
        return Because(Reason.REFUSED, refused) if refused is not None else None

    def _is_on_a_going_node(self, row: PlaceholderRow) -> bool:
        node = self.seen.nodes.get(row.node)
        return node is not None and node.is_going

    def _steps(
        self,
        let_go: list[PlaceholderRow],
        wakes: list[datetime],
        memory: Warming | None,
        *,
        said: tuple[Because, ...] = (),
        because: Because | None = None,
        is_warming: bool = False,
    ) -> Steps:
        actions: tuple[Action, ...] = tuple(map(delete_placeholder, let_go))
        nodes = ((memory.fire, memory.nodes),) if memory is not None else ()
        return Steps(actions, tuple(wakes), memory, is_warming, because, said, nodes)
