"""What a report shows: figures of what coverage and the calendar found, without reading or judging anything."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime, timedelta
from heapq import merge
from itertools import islice
from operator import itemgetter

import msgspec

from foresail.api.metadata import Named
from foresail.api.restore_check import CheckResult, RestoreCheckSpec, RestoreCheckStatus
from foresail.backups import ENDED, FAILED_PHASES, Quality
from foresail.backups import judge as judge_runs
from foresail.cli.coverage.closing_commands import closing_command
from foresail.cli.cron.load import Load, Timetable, load_of
from foresail.proof.coverage import NamespaceCoverage
from foresail.proof.reasons import Gap, is_late
from foresail.proof.safety import count_safe, safety_of
from foresail.proof.view import BackupRow
from foresail.safety.verdict import WORST_FIRST, Safety, Verdict


@dataclass(frozen=True, slots=True)
class LastCheck:
    """A RestoreCheck with its last result."""

    name: str
    schedule: str = ""  # whose backups it checks; empty if it selects them by labels
    last: CheckResult | None = None  # None if no check has ended yet
    problem: str = ""  # why there is no result
    namespace: str = ""  # Velero's, or that of a tenant

    @property
    def has_failed(self) -> bool:
        """Whether the last check ended, and did not pass."""
        return self.last is not None and self.last.result != "Pass"


class _Check(Named, frozen=True):
    spec: RestoreCheckSpec
    status: RestoreCheckStatus = RestoreCheckStatus()


def last_checks(raw: Iterable[msgspec.Raw]) -> tuple[LastCheck, ...]:
    """Return the last results, failed ones first; one that cannot be decoded hides no other."""
    return failed_first(_last_check(item) for item in raw)


def failed_first(checks: Iterable[LastCheck]) -> tuple[LastCheck, ...]:
    """Return checks in the order of a report."""
    return tuple(sorted(checks, key=lambda check: (not check.has_failed, check.namespace, check.name)))


def _last_check(raw: msgspec.Raw) -> LastCheck:
    try:
        check = msgspec.json.decode(raw, type=_Check)
    except msgspec.ValidationError as error:
        meta = msgspec.json.decode(raw, type=Named).metadata
        return LastCheck(meta.name, problem=f"cannot be decoded: {error}", namespace=meta.namespace)
    ready = next(
        (condition.message for condition in check.status.conditions if condition.type == "Ready"),
        "no operator has seen it",
    )
    meta = check.metadata
    last = check.status.last
    return LastCheck(meta.name, check.spec.backups.schedule or "", last, "" if last else ready, meta.namespace)


RECENT = timedelta(days=7)
"""How far back failed runs are shown, and how far ahead the calendar goes."""

_UPCOMING = 10


@dataclass(frozen=True, slots=True)
class UpcomingRun:
    """A run that is due."""

    at: datetime
    schedule: str


@dataclass(frozen=True, slots=True)
class Run:
    """A backup as a time line shows it: what it is worth, and when it goes."""

    name: str
    started: datetime
    quality: Quality
    lacks_data: bool = False
    failure: str = ""
    schedule: str = ""
    goes: datetime | None = None  # when retention or Velero deletes it
    foreign: str = ""  # why it may be no backup of this cluster


MOST_RUNS = 14
"""Runs of a schedule in a strip."""


@dataclass(frozen=True, slots=True)
class OpenGaps:
    """Gaps of a namespace with the command that closes them, or shows the cause."""

    namespace: str
    command: str
    gaps: tuple[Gap, ...]


@dataclass(frozen=True, slots=True)
class Figures:
    """Everything that a report shows."""

    namespace: str  # empty for all
    velero_namespace: str
    instant: datetime
    namespaces: tuple[NamespaceCoverage, ...]
    load: Load
    upcoming: tuple[UpcomingRun, ...] = ()
    failed: tuple[BackupRow, ...] = ()
    objective: timedelta | None = None
    is_tenant: bool = False
    checks: tuple[LastCheck, ...] | None = None  # None if the reader may not list RestoreChecks
    velero: tuple[BackupRow, ...] = ()  # of one namespace: the newest Velero Backups of administrators that name it
    runs: Mapping[str, tuple[Run, ...]] = field(default_factory=dict)  # by the title of their schedule, oldest first
    planned: tuple[UpcomingRun, ...] = ()  # of one namespace

    @property
    def subject(self) -> str:
        """What the report is about."""
        return f"Namespace {self.namespace}" if self.namespace else "All namespaces"

    @property
    def counted(self) -> list[NamespaceCoverage]:
        """The namespaces that a backup is wanted of."""
        return [namespace for namespace in self.namespaces if not namespace.is_excluded]

    @property
    def safe(self) -> int:
        """How many namespaces are safe."""
        return count_safe(self.counted)

    @property
    def safety(self) -> Safety:
        """The verdict about all of them, with its evidence: the worst one."""
        verdicts = [(coverage.name, safety_of(coverage)) for coverage in self.counted]
        worst = next((verdict for verdict in WORST_FIRST if any(one.verdict is verdict for _, one in verdicts)), None)
        if worst is None and self.namespaces:
            return safety_of(self.namespaces[0])
        if worst is None:
            return Safety(Verdict.UNKNOWN, "there is no namespace to judge")
        alike = [(name, one) for name, one in verdicts if one.verdict is worst]
        name, first = alike[0]
        if len(verdicts) == 1:
            return first
        others = f" (and {len(alike) - 1} more)" if len(alike) > 1 else ""
        text = "all namespaces are safe" if worst is Verdict.SAFE else f"{name}: {first.message}{others}"
        return Safety(worst, text)

    @property
    def worst_first(self) -> list[tuple[NamespaceCoverage, Safety]]:
        """The namespaces that a backup is wanted of with their verdicts, the worst first."""
        verdicts = [(coverage, safety_of(coverage)) for coverage in self.counted]
        return sorted(verdicts, key=lambda pair: (WORST_FIRST.index(pair[1].verdict), pair[0].name))

    def strip(self, coverage: NamespaceCoverage) -> list[Run]:
        """Return the last runs of the schedules that cover a namespace, oldest first."""
        runs = [run for title in coverage.schedules for run in self.runs.get(title, ())]
        return sorted(runs, key=lambda run: (run.started, run.name))[-MOST_RUNS:]

    @property
    def passed_checks(self) -> int:
        """How many RestoreChecks passed last."""
        return sum(check.last is not None and not check.has_failed for check in self.checks or ())

    @property
    def gaps(self) -> list[OpenGaps]:
        """Every gap with its command, in the order of the namespaces."""
        gaps_of: dict[tuple[str, str], list[Gap]] = {}
        for namespace in self.namespaces:
            for gap in namespace.all_gaps():
                gaps_of.setdefault((namespace.name, self.command_for(namespace.name, gap)), []).append(gap)
        return [OpenGaps(name, command, tuple(gaps)) for (name, command), gaps in gaps_of.items()]

    def command_for(self, namespace: str, gap: Gap) -> str:
        """Return the command that closes a gap, or shows its cause."""
        return closing_command(namespace, gap, self.velero_namespace, self.instant, is_tenant=self.is_tenant)

    @property
    def is_late(self) -> bool:
        """Whether a namespace or a claim misses its objective."""
        return any(is_late(namespace.all_gaps()) for namespace in self.namespaces)

    @property
    def without_backup(self) -> list[str]:
        """The namespaces that have no good backup at all."""
        return [coverage.name for coverage in self.counted if coverage.newest_good is None]

    @property
    def worst(self) -> tuple[str, timedelta] | None:
        """The namespace whose newest good backup is the oldest, and its age; None if there is no good backup."""
        ages = [
            (self.instant - coverage.newest_good.started, coverage.name)
            for coverage in self.counted
            if coverage.newest_good is not None and coverage.newest_good.started is not None
        ]
        age, name = max(ages, default=(timedelta(), ""))
        return (name, age) if ages else None


def calendar_load(timetables: Sequence[Timetable], first: date, zone: str, now: datetime) -> Load:
    """Return how many runs start when in the days to come."""
    return load_of(timetables, [first + timedelta(days=number) for number in range(RECENT.days)], zone, now)


def upcoming_runs(timetables: Iterable[Timetable], now: datetime) -> tuple[UpcomingRun, ...]:
    """Return the next runs of all schedules, in order."""
    runs = merge(*(_runs(timetable, now) for timetable in timetables), key=lambda run: (run.at, run.schedule))
    return tuple(islice(runs, _UPCOMING))


def _runs(timetable: Timetable, now: datetime) -> Iterator[UpcomingRun]:
    return (UpcomingRun(at, str(timetable.key)) for at in timetable.fires(now, now + RECENT))


_MOST_PLANNED = 60
_PLANNED = timedelta(days=31)


def planned_runs(timetables: Iterable[Timetable], now: datetime) -> tuple[UpcomingRun, ...]:
    """Return the runs of the next month, as many as a time line shows."""
    runs = merge(
        *(
            (UpcomingRun(at, str(timetable.key)) for at in islice(timetable.fires(now, now + _PLANNED), _MOST_PLANNED))
            for timetable in timetables
        ),
        key=lambda run: (run.at, run.schedule),
    )
    return tuple(islice(runs, _MOST_PLANNED))


def runs_of(backups: Iterable[BackupRow], goes: Mapping[str, datetime | None], most: int) -> dict[str, tuple[Run, ...]]:
    """Return the last runs of each schedule, oldest first, judged as coverage judges them; '' has those by hand."""
    grouped: dict[str, list[BackupRow]] = defaultdict(list)
    for backup in backups:
        grouped[backup.schedule].append(backup)
    runs = dict[str, tuple[Run, ...]]()
    for title, rows in grouped.items():
        dated = sorted((at, row.name, row) for row in rows if row.phase in ENDED and (at := row.run_at) is not None)
        qualities = judge_runs(row for _, _, row in dated)
        runs[title] = tuple(
            Run(
                name,
                at,
                qualities[name],
                row.left_out is None or bool(row.left_out),
                row.failure,
                title,
                goes.get(name),
                row.foreign,
            )
            for at, name, row in dated[-most:]
        )
    return runs


def failed_runs(backups: Iterable[BackupRow], now: datetime) -> tuple[BackupRow, ...]:
    """Return the runs that failed recently, the newest first."""
    dated = ((backup.run_at, backup) for backup in backups if backup.phase in FAILED_PHASES)
    recent = [(at, backup) for at, backup in dated if at is not None and now - at <= RECENT]
    return tuple(backup for _, backup in sorted(recent, key=itemgetter(0), reverse=True))
