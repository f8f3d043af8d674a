"""Metrics of Schedules: counts of all, and series of their own for those that need attention.

What a scrape shows of a Schedule is computed when the Schedule is reconciled, so a scrape reads no Backup.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from enum import StrEnum
from heapq import nsmallest
from math import inf
from typing import NamedTuple

from prometheus_client import Counter as Total
from prometheus_client import Histogram
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from foresail.api import velero
from foresail.kube.clock import now
from foresail.kube.store import Store
from foresail.plan import Key
from foresail.schedules.observe import BackupRow, LocationRow, ScheduleView
from foresail.schedules.results import good_since, last_ended, last_success
from foresail.schedules.rules import Verdict, cannot_run
from foresail.slots.policy_timing import rpo_of

LATE_SECONDS = 60.0  # a burst of Schedules with the same slot takes seconds, and is no lateness
MOST_SHOWN = 1_000  # Schedules with series of their own, if not all of them are wanted
_BUCKETS = (0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0, 900.0, 3600.0)
_LABELS = ("namespace", "schedule")


class State(StrEnum):
    """The state of a Schedule; the most urgent comes first."""

    LATE = "late"
    HELD = "held"
    FAILING = "failing"
    INVALID = "invalid"
    PAUSED = "paused"
    HEALTHY = "healthy"


_RANK = {state: rank for rank, state in enumerate(State)}


class Figures(NamedTuple):
    """What is shown of one Schedule; instants are in seconds since 1970."""

    due: float | None  # the slot of the run that is due, or the first to come
    paused_since: float | None
    last_success: float | None
    result: str  # of the last run that has ended; empty if there is none
    held: str  # the reason
    invalid: str  # the reason
    retention_blocked: str = ""  # the reason why nothing is deleted
    is_retention_failed: bool = False  # Velero could not delete a Backup
    objective: float | None = None  # seconds
    good_since: float = 0.0  # when the newest good Backup started, or the Schedule was created
    attempts: float | None = None  # at the last slot, if failed runs are repeated

    def overdue(self, instant: float) -> float:
        """Return for how many seconds a run has been due."""
        # The figures are as old as the last reconcile, and the slot after it may have come since.
        return max(instant - self.due, 0.0) if self.due is not None else 0.0

    def objective_used(self, instant: float) -> float | None:
        """Return the age of the newest good Backup as a share of the objective; None without one."""
        return max(instant - self.good_since, 0.0) / self.objective if self.objective else None

    def exceeds_objective(self, instant: float) -> bool:
        """Whether the newest good Backup is older than the objective allows."""
        return (self.objective_used(instant) or 0.0) > 1.0

    def state(self, instant: float) -> State:
        """Return the state of the Schedule."""
        if self.held:
            return State.HELD
        if self.due is not None and instant - self.due > LATE_SECONDS:
            return State.LATE
        if self.result and self.result != velero.COMPLETED:
            return State.FAILING
        if self.invalid:
            return State.INVALID
        return State.HEALTHY if self.paused_since is None else State.PAUSED


class ScheduleMetrics(Collector):
    """The last verdict on each Schedule, as figures."""

    def __init__(self, locations: Store[LocationRow], waiting: Callable[[], Sequence[BackupRow]]) -> None:
        self._locations = locations
        self._waiting = waiting
        self.shows_all = False  # whether healthy Schedules have series of their own too
        self._figures: dict[Key, Figures] = {}
        self._lateness = Histogram(
            "foresail_schedule_lateness_seconds",
            "Time from a slot until its Backup was created.",
            buckets=_BUCKETS,
            registry=None,
        )
        self._retries = Total(
            "foresail_schedule_retries", "Backups that repeat a failed run for the same slot.", registry=None
        )

    # What the controller reports

    def record(self, view: ScheduleView, verdict: Verdict) -> None:
        """Record the last verdict on a Schedule."""
        self._figures[view.schedule.key] = figures_of(view, verdict)

    def forget(self, key: Key) -> None:
        """Forget a Schedule that is deleted."""
        self._figures.pop(key, None)

    def clear(self) -> None:
        """Forget the verdicts on all Schedules."""
        self._figures.clear()

    def measure_lateness(self, backup: BackupRow, started: datetime | None) -> None:
        """Measure how long after the instant at which it could start a Backup was made, or count a further attempt."""
        if backup.is_repetition:
            self._retries.inc()
            return
        if started is not None and backup.is_waiting:
            self._lateness.observe(max((now() - started).total_seconds(), 0.0))

    # What a scrape reads

    def describe(self) -> Iterable[Metric]:
        """Return nothing: the registry must not collect before there are figures."""
        return []

    def collect(self) -> Iterable[Metric]:
        """Read the figures of this moment."""
        return self._snapshot().families()

    def parts(self) -> Iterable[Iterable[Metric]]:
        """Copy what is known, and leave the rest to another thread."""
        yield self._snapshot().families()

    def _snapshot(self) -> "_Snapshot":
        return _Snapshot(
            dict(self._figures),
            tuple(self._locations.rows()),
            tuple(self._waiting()),
            (*self._lateness.collect(), *self._retries.collect()),
            self.shows_all,
        )


class _Snapshot(NamedTuple):
    """A copy of the figures at one moment."""

    figures: Mapping[Key, Figures]
    locations: tuple[LocationRow, ...]
    waiting: tuple[BackupRow, ...]  # that Velero has not begun
    counted: tuple[Metric, ...]  # lateness, and further attempts
    shows_all: bool

    def families(self) -> Iterable[Metric]:
        """Return what a scrape shows."""
        yield from self.counted
        instant = now().timestamp()
        states = {key: figure.state(instant) for key, figure in self.figures.items()}
        yield from self._all(states, instant)
        yield from self._backups(instant)
        shown, omitted = self._shown(states, instant)
        yield _gauge(
            "foresail_schedule_series_omitted",
            "Schedules that need attention and have no series, because there are too many.",
            (),
            [((), omitted)],
        )
        yield from self._each(shown, instant)
        yield self._availability()

    def _all(self, states: Mapping[Key, State], instant: float) -> Iterable[Metric]:
        """Show the Schedules of each namespace in numbers."""
        counts: dict[str, Counter[State]] = {}
        blocked = Counter(
            (key.namespace, figure.retention_blocked)
            for key, figure in self.figures.items()
            if figure.retention_blocked
        )
        failed = Counter(key.namespace for key, figure in self.figures.items() if figure.is_retention_failed)
        exceeded = Counter(key.namespace for key, figure in self.figures.items() if figure.exceeds_objective(instant))
        next_runs: dict[str, float] = {}
        successes: dict[str, float] = {}
        for key, state in states.items():
            figure = self.figures[key]
            namespace = key.namespace
            counts.setdefault(namespace, Counter())[state] += 1
            _keep_least(next_runs, namespace, figure.due)
            if state is not State.PAUSED:
                _keep_least(successes, namespace, figure.last_success)
        yield _gauge(
            "foresail_schedules",
            "Schedules by state: the first of late, held, failing, invalid, paused and healthy that applies.",
            ("namespace", "state"),
            (((namespace, state), by_state[state]) for namespace, by_state in counts.items() for state in State),
        )
        yield _gauge(
            "foresail_schedules_retention_blocked",
            "Schedules with Backups to delete by retention of which none is deleted, by reason.",
            ("namespace", "reason"),
            blocked.items(),
        )
        yield _gauge(
            "foresail_schedules_retention_failed",
            "Schedules with a Backup to delete by retention whose deletion failed.",
            ("namespace",),
            (((namespace,), float(failed[namespace])) for namespace in counts),
        )
        yield _gauge(
            "foresail_schedules_objective_exceeded",
            "Schedules whose newest Completed Backup is older than the objective of their SchedulePolicy.",
            ("namespace",),
            (((namespace,), float(exceeded[namespace])) for namespace in counts),
        )
        yield _gauge(
            "foresail_schedules_next_run_timestamp_seconds",
            "Earliest time at which a Schedule is due, in the past if it is late or held.",
            ("namespace",),
            (((namespace,), next_run) for namespace, next_run in next_runs.items()),
        )
        yield _gauge(
            "foresail_schedules_oldest_success_timestamp_seconds",
            "Oldest last success of all Schedules that are not paused.",
            ("namespace",),
            (((namespace,), success) for namespace, success in successes.items()),
        )

    def _backups(self, instant: float) -> Iterable[Metric]:
        """Show what Velero has not begun: a Schedule whose last Backup waits is neither late nor held."""
        ages: dict[str, list[float]] = {key.namespace: [] for key in self.figures}
        for row in self.waiting:
            ages.setdefault(row.key.namespace, []).append(max(instant - row.created.timestamp(), 0.0))
        yield _gauge(
            "foresail_schedules_waiting_backups",
            "Backups of Schedules that Velero has not begun.",
            ("namespace",),
            (((namespace,), len(values)) for namespace, values in ages.items()),
        )
        yield _gauge(
            "foresail_schedules_oldest_waiting_backup_seconds",
            "For how long the oldest Backup of a Schedule that Velero has not begun has waited; 0 if none waits.",
            ("namespace",),
            (((namespace,), max(values, default=0.0)) for namespace, values in ages.items()),
        )

    def _shown(self, states: Mapping[Key, State], instant: float) -> tuple[list[Key], int]:
        """Return the Schedules with series of their own, and how many more need attention."""
        if self.shows_all:
            return list(states), 0
        troubled = [
            key
            for key, state in states.items()
            if state is not State.HEALTHY or self.figures[key].exceeds_objective(instant)
        ]
        if len(troubled) <= MOST_SHOWN:
            return troubled, 0

        def urgency(key: Key) -> tuple[int, float]:
            return _RANK[states[key]], self.figures[key].due or inf

        # Each state has a share: 1,500 that one location blocks do not hide the one whose last run failed.
        share = MOST_SHOWN // (len(State) - 1)
        shown = {
            key
            for state in State
            if state is not State.HEALTHY
            for key in nsmallest(share, (key for key in troubled if states[key] is state), key=urgency)
        }
        rest = nsmallest(MOST_SHOWN - len(shown), (key for key in troubled if key not in shown), key=urgency)
        return [*shown, *rest], len(troubled) - MOST_SHOWN

    def _each(self, shown: Sequence[Key], instant: float) -> Iterable[Metric]:
        yield self._gauge(
            "next_run_timestamp_seconds",
            "Time at which the next run is due, in the past if it is held.",
            shown,
            lambda figure: figure.due,
        )
        yield self._gauge(
            "overdue_seconds",
            "Seconds that a run has been due; 0 while paused.",
            shown,
            lambda figure: figure.overdue(instant),
        )
        yield self._gauge(
            "paused_since_timestamp_seconds",
            "Time since which a Schedule is paused, as observed.",
            shown,
            lambda figure: figure.paused_since,
        )
        yield self._gauge(
            "last_success_timestamp_seconds",
            "Time at which the last successful Backup of the Schedule completed.",
            shown,
            lambda figure: figure.last_success,
        )
        yield self._gauge(
            "objective_used_ratio",
            "Age of the newest Completed Backup as a share of the SchedulePolicy's objective; above 1 it is missed.",
            shown,
            lambda figure: figure.objective_used(instant),
        )
        yield self._gauge(
            "attempts",
            "Attempts at the last slot, if a SchedulePolicy repeats failed runs.",
            shown,
            lambda figure: figure.attempts,
        )
        yield self._named("last_result", "1 for the result of the last finished run.", "result", shown)
        yield self._named("held", "1 if a due run is held, by reason.", "held", shown, "reason")
        yield self._named("invalid", "1 if a Schedule can never run, by reason.", "invalid", shown, "reason")

    def _gauge(self, name: str, meaning: str, shown: Sequence[Key], value: Callable[[Figures], float | None]) -> Metric:
        figures = ((key, value(self.figures[key])) for key in shown)
        samples = (((key.namespace, key.name), number) for key, number in figures if number is not None)
        return _gauge(f"foresail_schedule_{name}", meaning, _LABELS, samples)

    def _named(self, name: str, meaning: str, field: str, shown: Sequence[Key], label: str = "") -> Metric:
        """Show a word as the label of a series that is 1."""
        words = ((key, getattr(self.figures[key], field)) for key in shown)
        samples = (((key.namespace, key.name, word), 1.0) for key, word in words if word)
        return _gauge(f"foresail_schedule_{name}", meaning, (*_LABELS, label or field), samples)

    def _availability(self) -> Metric:
        return _gauge(
            "foresail_backup_location_available",
            "1 if Velero reached a BackupStorageLocation in its last check, 0 if not; none of a tenant's own bucket.",
            ("namespace", "location"),
            (
                ((row.key.namespace, row.key.name), float(row.phase == velero.AVAILABLE))
                for row in self.locations
                if not row.is_tenants
            ),
        )


def figures_of(view: ScheduleView, verdict: Verdict) -> Figures:
    """Return what is shown of a Schedule."""
    due = verdict.next_run
    paused = verdict.changes.observed.paused_since
    success = last_success(view)
    last = last_ended(view)
    blocker = cannot_run(view, verdict)
    rpo = rpo_of(view.policy)
    return Figures(
        due=due.timestamp() if due is not None else None,
        paused_since=paused.timestamp() if paused is not None else None,
        last_success=success.timestamp() if success is not None else None,
        result=last.phase if last is not None else "",
        held=verdict.blocked_by.reason.value if verdict.blocked_by is not None and not verdict.is_settling else "",
        invalid=blocker.reason.value if blocker is not None else "",
        retention_blocked=_retention_blocked(verdict),
        is_retention_failed=verdict.retained is not None and verdict.retained.failed is not None,
        objective=rpo.total_seconds() if rpo is not None else None,
        good_since=good_since(view).timestamp(),
        attempts=float(verdict.attempts.made) if verdict.attempts is not None else None,
    )


def _retention_blocked(verdict: Verdict) -> str:
    blocked_by = verdict.retained.blocked_by if verdict.retained is not None else None
    return blocked_by.reason.value if blocked_by is not None else ""


def _keep_least(least: dict[str, float], key: str, value: float | None) -> None:
    if value is not None and value < least.get(key, inf):
        least[key] = value


def _gauge(
    name: str, meaning: str, labels: Sequence[str], samples: Iterable[tuple[tuple[str, ...], float]]
) -> GaugeMetricFamily:
    family = GaugeMetricFamily(name, meaning, labels=labels)
    for values, value in samples:
        family.add_metric(values, value)
    return family
