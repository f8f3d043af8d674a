"""Method Placeholder: pods that hold capacity for a run, from the warm-up until the run has its nodes.

At any instant there is at most one reservation for a CronJob. It serves the next fire, and takes over what is left of
the one before it: windows that overlap merge and never stack.

```
   fire - warmUp          fire                       fire + releaseAfter
        │── create, keep ──│── keep until the run's pods have nodes ──│ release
```
"""

from datetime import datetime, timedelta

import msgspec

from foresail.api.instants import stamp, whole
from foresail.api.primer import Warming
from foresail.plan import Action, Level
from foresail.primers.build import attempt_of, create_placeholder, delete_placeholder, placeholder_name
from foresail.primers.fires import Fires
from foresail.primers.reasons import Loss, Reason
from foresail.primers.rows import PlaceholderRow
from foresail.primers.rules import BACKGROUND_READ_LEAD, Verdict, are_volumes_located, is_admission_known
from foresail.primers.shape import Shape
from foresail.primers.steps import (
    MIN_LEAD,
    RUN_GRACE,
    Steps,
    has_arrived,
    is_covered,
    recorded_primed,
    run_of,
    too_many,
)
from foresail.primers.view import PrimerView, Target
from foresail.reporting import Because

ATTEMPTS = 3
EARLY = timedelta(seconds=2)
"""How long before a fire a placeholder is released that the run could not preempt."""

PREEMPTION_GRACE = timedelta(seconds=2)
"""How long a pod of the run may wait for the scheduler to preempt a placeholder."""

_OBSERVE_WITHIN = timedelta(seconds=2)
_SLACK = timedelta(seconds=60)


def release(view: PrimerView, target: Target, _now: datetime) -> Steps:
    """Release everything that is held."""
    known = recorded_primed(view, target.cron.uid)
    released = [placeholder for placeholder in target.placeholders if not placeholder.is_terminating]
    return Steps(tuple(map(delete_placeholder, released)), warming=known.warming if known else None)


def plan(view: PrimerView, verdict: Verdict, now: datetime) -> Steps:
    """Return what to create, keep and release for a CronJob now."""
    target = verdict.target
    fires = verdict.fires
    shape = verdict.shape
    if fires is None or shape is None:
        return release(view, target, now)
    reservation = _Reservation(view, verdict, fires, shape, now)
    if reservation.is_reserved_for_last_fire:
        return reservation.after_fire()
    if not reservation.is_open or is_covered(target, fires.upcoming, verdict.count):
        return reservation.hold_nothing()
    return reservation.before_fire()


class _Reservation:
    """The reservation for one CronJob at one instant."""

    def __init__(self, view: PrimerView, verdict: Verdict, fires: Fires, shape: Shape, now: datetime) -> None:
        self.view = view
        self.verdict = verdict
        self.fires = fires
        self.shape = shape
        self.now = now
        self.target = verdict.target
        self.primer = view.primer
        known = recorded_primed(view, self.target.cron.uid)
        held = known.warming if known else None
        self.warming = held if held is None or held.buffer is None else None  # only what placeholders held
        active = [placeholder for placeholder in self.target.placeholders if placeholder.holds]
        self.live = [row for row in active if not self._is_on_terminating_node(row)]
        self.unusable = [
            placeholder
            for placeholder in self.target.placeholders
            if not placeholder.is_terminating and placeholder not in self.live
        ]
        self.opens = fires.upcoming - self.primer.warm_up
        self.closes = fires.upcoming - EARLY if verdict.early else fires.upcoming

    @property
    def is_open(self) -> bool:
        """Whether capacity is to be held for the next fire."""
        return self.opens <= self.now < self.closes

    @property
    def is_reserved_for_last_fire(self) -> bool:
        """Whether the last fire has just passed, and its run has no nodes yet."""
        last = self.fires.last
        if last is None or self.verdict.early or has_arrived(self.target, last, self.verdict.count):
            return False
        if not any(placeholder.fire == last for placeholder in self.live) and (
            self.warming is None or self.warming.fire != last
        ):
            return False
        until = self.primer.release_after if self.live else min(RUN_GRACE, self.primer.release_after)
        return self.now < last + until

    @property
    def _run_awaited_until(self) -> datetime | None:
        """Until when to wait for the run of the last fire; None if it has its nodes, or is not expected any more."""
        last = self.fires.last
        warming = self.warming
        if last is None:
            return None
        if self.verdict.early and not has_arrived(self.target, last, self.verdict.count):
            # A late run could not preempt what is created now; one whose Job is deleted has ended.
            is_deleted = run_of(self.target, last) is None and self.target.cron.last == last
            until = last + (RUN_GRACE if is_deleted else self.primer.release_after)
        elif warming is not None and warming.fire == last:
            until = last + RUN_GRACE
        else:
            return None
        return until if self.now < until else None

    @property
    def _lasts(self) -> timedelta:
        """How long a placeholder that is created now may run if no operator releases it."""
        if self.verdict.early:
            return self.closes - self.now  # one that the run cannot preempt must end before the fire
        return self.closes - self.now + self.primer.release_after + _SLACK

    # Around a fire

    def after_fire(self) -> Steps:
        """Keep what is held until the run has its nodes; a placeholder without a node would take one from the run."""
        last = self.fires.last
        assert last is not None  # noqa: S101 - for the type checker: it is asked for only after a fire
        run = run_of(self.target, last)
        released = list(self.unusable)
        wakes = [last + self.primer.release_after, last + RUN_GRACE, self.fires.upcoming]
        warming = self.warming
        if run is not None:
            released += [placeholder for placeholder in self.live if not placeholder.node]
            waiting = [pod for pod in run[1] if not pod.node and not pod.is_over]
            if any(pod.created + PREEMPTION_GRACE <= self.now for pod in waiting):
                released = [*self.unusable, *self.live]
            wakes += [pod.created + PREEMPTION_GRACE for pod in waiting]
            if warming is not None and warming.lost is None and any(not placeholder.node for placeholder in self.live):
                warming = msgspec.structs.replace(warming, lost=Loss.NEVER_SCHEDULED.value)
        return self._steps(released, wakes, warming, is_warming=bool(self.live))

    def hold_nothing(self) -> Steps:
        """Hold nothing: it is too early, the run has its nodes, or an active run covers the next fire."""
        wakes = [self.opens, self.closes, self.fires.upcoming]
        asked = are_volumes_located(self.target, self.shape, self.fires.upcoming) and is_admission_known(self.target)
        if not asked:
            wakes.append(self.opens - BACKGROUND_READ_LEAD)
        last = self.fires.last
        events = tuple[Because, ...]()
        unused = [placeholder for placeholder in self.live if last is not None and placeholder.fire == last]
        if last is not None and unused and run_of(self.target, last) is None and not self.verdict.early:
            name = self.target.cron.key.name
            text = f"CronJob {name} did not run at {stamp(last)}, so the capacity held for it is released."
            events = (Because(Reason.NO_FIRE, text, Level.NORMAL),)
        return self._steps([*self.unusable, *self.live], wakes, self.warming, events=events)

    def before_fire(self) -> Steps:
        """Hold capacity for all pods of the run, and create again what was lost."""
        fire = self.fires.upcoming
        # A moment before the fire everything is evaluated again: a quota may be used up by then.
        wakes = [self.closes, fire - EARLY, fire]
        kept = self.live[: self.verdict.count]
        released = [*self.unusable, *self.live[self.verdict.count :]]
        missing = self.verdict.count - len(kept)
        if missing == 0:
            return self._steps(released, wakes, self._updated_warming(kept), is_warming=True)
        if self._run_awaited_until is not None:
            return self._steps(released, [*wakes, self._run_awaited_until], self.warming, is_warming=bool(kept))
        if not (is_admission_known(self.target) and are_volumes_located(self.target, self.shape, fire)):
            return self._steps(released, wakes, self.warming, is_warming=bool(kept))  # a background read runs
        warming, events = self._after_losses(kept)
        because = self._blocker(warming, missing)
        if because is not None:
            silent = because.reason is Reason.LOST
            blocker = None if silent else because
            return self._steps(released, wakes, warming, events=events, because=blocker, is_warming=bool(kept))
        attempt = warming.attempt if warming is not None else 1
        taken = {placeholder.key.name for placeholder in kept}
        cron = self.target.cron
        numbers = [(index, attempt) for index in range(self.verdict.count + len(kept))]
        free = [number for number in numbers if placeholder_name(cron, fire, *number) not in taken][:missing]
        makes = [create_placeholder(self.view, cron, self.shape, fire, number, self._lasts) for number in free]
        steps = self._steps(released, [*wakes, self.now + _OBSERVE_WITHIN], warming, events=events, is_warming=True)
        return msgspec.structs.replace(steps, actions=(*steps.actions, *makes))

    # What is remembered

    def _updated_warming(self, kept: list[PlaceholderRow]) -> Warming:
        """Return how much is held, on which nodes, and how long that took."""
        fire = self.fires.upcoming
        warming = self.warming
        if warming is None or warming.fire != fire:
            warming = Warming(fire=fire, made=0, since=whole(min(placeholder.created for placeholder in kept)))
        attempt = max((attempt_of(placeholder.key.name) for placeholder in kept if placeholder.fire == fire), default=1)
        if attempt > warming.attempt:  # an operator created them again and stopped before it wrote the status
            lost = self.view.losses.get(self.target.cron.uid, Loss.DISRUPTED.value)
            warming = msgspec.structs.replace(warming, attempt=attempt, lost=lost)
        nodes = tuple(sorted({*warming.nodes, *(placeholder.node for placeholder in kept if placeholder.node)}))
        took = [
            placeholder.scheduled - placeholder.created for placeholder in kept if placeholder.scheduled is not None
        ]
        provisioned = warming.provisioned
        if provisioned is None and len(took) == len(kept):
            provisioned = int(max(took).total_seconds())
        return msgspec.structs.replace(warming, made=max(warming.made, len(kept)), nodes=nodes, provisioned=provisioned)

    def _after_losses(self, kept: list[PlaceholderRow]) -> tuple[Warming | None, tuple[Because, ...]]:
        """Return what to record after a loss, and what to report about it."""
        warming = self.warming
        fire = self.fires.upcoming
        if warming is None or warming.fire != fire:
            return None, ()
        if warming.made <= len(kept):
            return warming, ()
        cause = self.view.losses.get(self.target.cron.uid, Loss.DISRUPTED.value)
        left = fire - self.now
        needed = timedelta(seconds=warming.provisioned or 0)
        again = warming.attempt < ATTEMPTS and left >= max(needed, MIN_LEAD)
        what = "it is created again" if again else "no time or attempt is left to create it again"
        text = f"the capacity held for CronJob {self.target.cron.key.name} at {stamp(fire)} was lost ({cause}): {what}."
        attempt = warming.attempt + 1 if again else ATTEMPTS + 1
        noted = msgspec.structs.replace(warming, made=0, attempt=attempt, lost=cause)
        return noted, (Because(Reason.LOST, text),)

    def _blocker(self, warming: Warming | None, missing: int) -> Because | None:
        """Return why nothing is created although something is missing."""
        view = self.view
        if warming is not None and warming.attempt > ATTEMPTS:
            return Because(Reason.LOST, "")
        if self.fires.upcoming - self.now < MIN_LEAD:
            return Because(Reason.LOST, "")
        blocker = too_many(view, self.target.cron, missing)
        if blocker is not None:
            return blocker
        attempt = warming.attempt if warming is not None else 1
        names = [
            placeholder_name(self.target.cron, self.fires.upcoming, index, attempt)
            for index in range(self.verdict.count)
        ]
        refused = next((view.refused[name] for name in names if name in view.refused), None)
        return Because(Reason.REFUSED, refused) if refused is not None else None

    def _is_on_terminating_node(self, row: PlaceholderRow) -> bool:
        node = self.view.nodes.get(row.node)
        return node is not None and node.is_terminating

    def _steps(
        self,
        released: list[PlaceholderRow],
        wakes: list[datetime],
        warming: Warming | None,
        *,
        events: tuple[Because, ...] = (),
        because: Because | None = None,
        is_warming: bool = False,
    ) -> Steps:
        actions: tuple[Action, ...] = tuple(map(delete_placeholder, released))
        nodes = ((warming.fire, warming.nodes),) if warming is not None else ()
        return Steps(actions, tuple(wakes), warming, is_warming, because, events, nodes)
