"""What can be measured of Schedules: read when someone asks, and gone with the Schedule."""

from collections.abc import Callable, Iterable
from datetime import datetime

from prometheus_client import Histogram
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from foresail.api import velero
from foresail.kube.clock import now
from foresail.kube.store import Store
from foresail.plan import Key
from foresail.schedules.observe import BackupRow, LocationRow, Seen
from foresail.schedules.reasons import HELD
from foresail.schedules.rules import Verdict

_BUCKETS = (0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0, 900.0, 3600.0)
_LABELS = ("namespace", "schedule")
RESULTS = ("Completed", "PartiallyFailed", "Failed", "FailedValidation")


class ScheduleMetrics(Collector):
    """The last verdict on each Schedule, as figures."""

    def __init__(self, locations: Store[LocationRow]) -> None:
        self._locations = locations
        self._verdicts: dict[Key, tuple[Seen, Verdict]] = {}
        self._lateness = Histogram(
            "foresail_schedule_lateness_seconds",
            "How long after its slot a scheduled Backup was there.",
            buckets=_BUCKETS,
            registry=None,
        )

    # What the controller tells

    def judged(self, seen: Seen, verdict: Verdict) -> None:
        """Remember what the rules last said about a Schedule."""
        self._verdicts[seen.schedule.key] = (seen, verdict)

    def gone(self, key: Key) -> None:
        """Forget a Schedule that is no more."""
        self._verdicts.pop(key, None)

    def came(self, backup: BackupRow) -> None:
        """Measure how late a Backup that was just made is."""
        if backup.slot is not None and backup.is_waiting:
            self._lateness.observe(max((now() - backup.slot).total_seconds(), 0.0))

    # What is asked

    def describe(self) -> Iterable[Metric]:
        """Return nothing: the figures are not asked for before there are any."""
        return []

    def collect(self) -> Iterable[Metric]:
        """Read the figures of this moment."""
        yield from self._lateness.collect()
        instant = now()
        yield self._gauge(
            "next_run_timestamp_seconds",
            "When the next run is due, or has been if it is held.",
            lambda _, verdict: verdict.next_run.timestamp() if verdict.next_run else None,
        )
        yield self._gauge(
            "overdue_seconds",
            "For how long a run has been due; 0 while paused.",
            lambda _, verdict: _overdue(verdict, instant),
        )
        yield self._gauge(
            "paused_since_timestamp_seconds",
            "Since when a Schedule is paused, as far as it was seen.",
            lambda _, verdict: _since(verdict),
        )
        yield self._gauge(
            "last_success_timestamp_seconds",
            "When the last Backup of the Schedule that completed did so.",
            lambda seen, _: _last_success(seen),
        )
        yield self._results()
        yield self._held()
        yield self._availability()

    def _gauge(self, name: str, meaning: str, value: Callable[[Seen, Verdict], float | None]) -> Metric:
        family = GaugeMetricFamily(f"foresail_schedule_{name}", meaning, labels=_LABELS)
        for key, (seen, verdict) in self._verdicts.items():
            found = value(seen, verdict)
            if found is not None:
                family.add_metric((key.namespace, key.name), found)
        return family

    def _results(self) -> Metric:
        family = GaugeMetricFamily(
            "foresail_schedule_last_result",
            "1 for the result of the last run that has ended.",
            labels=(*_LABELS, "result"),
        )
        for key, (seen, _) in self._verdicts.items():
            last = last_ended(seen)
            if last is not None:
                for result in RESULTS:
                    family.add_metric((key.namespace, key.name, result), float(last.phase == result))
        return family

    def _held(self) -> Metric:
        family = GaugeMetricFamily(
            "foresail_schedule_held", "1 if a run that is due is held, by reason.", labels=(*_LABELS, "reason")
        )
        for key, (_, verdict) in self._verdicts.items():
            if verdict.held is not None and not verdict.is_settling:
                for reason in HELD:
                    family.add_metric((key.namespace, key.name, reason.value), float(verdict.held.reason is reason))
        return family

    def _availability(self) -> Metric:
        family = GaugeMetricFamily(
            "foresail_backup_location_available",
            "1 if Velero could reach a BackupStorageLocation when it last tried, 0 if not.",
            labels=("namespace", "location"),
        )
        for row in self._locations.rows():
            family.add_metric((row.key.namespace, row.key.name), float(row.phase == velero.AVAILABLE))
        return family


def last_ended(seen: Seen) -> BackupRow | None:
    """Return the newest Backup of a Schedule that has ended, among those of this cluster."""
    ended = [each for each in seen.backups if each.phase in RESULTS and each.is_of(seen.schedule)]
    return max(ended, key=lambda each: (each.slot or each.created, each.key), default=None)


def _overdue(verdict: Verdict, instant: datetime) -> float:
    # The verdict is as old as the last look, and the slot after it may have come since.
    due = verdict.due or verdict.upcoming
    return max((instant - due).total_seconds(), 0.0) if due is not None else 0.0


def _since(verdict: Verdict) -> float | None:
    paused = verdict.changes.observed.paused_since
    return paused.timestamp() if paused is not None else None


def _last_success(seen: Seen) -> float | None:
    completed = [
        each.completed
        for each in seen.backups
        if each.phase == velero.COMPLETED and each.completed and each.is_of(seen.schedule)
    ]
    return max(completed).timestamp() if completed else None
