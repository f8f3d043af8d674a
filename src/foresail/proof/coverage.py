"""Judges which namespaces and claims are covered by which schedules, and why one is not."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from foresail.api.instants import stamp
from foresail.api.restore_check import is_sandbox
from foresail.backups import in_order
from foresail.origin import Origin
from foresail.proof.candidates import Candidate, CandidateIndex, Scopes, candidates_of
from foresail.proof.claims import SHOWN_REASONS, ClaimCoverage, ClaimJudge, expected_since, strictest_objective
from foresail.proof.reasons import Gap, Reason
from foresail.proof.runs import blocked, last_run_gaps
from foresail.proof.tiers import COMPLETE, Part, those_that_count
from foresail.proof.view import BackupRow, ClaimRow, CoverageView, NamespaceRow, ScheduleRow
from foresail.reporting import some
from foresail.scope.covered import is_excluded
from foresail.scope.globs import has_wildcard

_SKEW = timedelta(minutes=5)
"""How far the clocks of Velero and of this machine may differ."""

_DAY = timedelta(days=1)
"""How long a namespace without an objective counts as new, if its schedule does not tell."""


@dataclass(frozen=True, slots=True)
class NamespaceCoverage:
    """What covers a namespace, and what does not."""

    name: str
    schedules: tuple[str, ...] = ()
    newest_good: BackupRow | None = None
    next_run: datetime | None = None
    claims: tuple[ClaimCoverage, ...] = ()
    gaps: tuple[Gap, ...] = ()
    objective: timedelta | None = None
    is_excluded: bool = False
    """Whether nobody wants a backup of it: it has the exclusion label, or is a sandbox of a RestoreCheck."""
    is_new: bool = False
    """Whether it is younger than its objective, which it cannot have missed; without one, than a few runs."""

    unknown: tuple[str, ...] = ()
    """What the reader could not find out about it."""

    in_order: tuple[str, ...] = ()
    """The schedules that protect it at the moment."""

    created: datetime | None = None

    @property
    def covered_by(self) -> tuple[str, ...]:
        """The schedules that protect it; all of them if none does, because the gap says why."""
        return self.in_order or self.schedules

    @property
    def claims_wanted(self) -> int:
        """How many claims have data to save."""
        return sum(claim.is_wanted for claim in self.claims)

    @property
    def claims_saved(self) -> int:
        """How many claims are saved, in order and within the objective."""
        return sum(claim.is_saved for claim in self.claims)

    @property
    def left_out(self) -> tuple[str, ...]:
        """The claims whose data the newest good backup has not, although they were there."""
        return tuple(claim.name for claim in self.claims if not claim.is_in_newest)

    def is_younger_than(self, started: datetime) -> bool:
        """Whether a backup of then is one of an earlier namespace of this name."""
        return self.created is not None and started < self.created

    def without(self, backup: str, started: datetime) -> tuple[str, ...]:
        """Return the claims whose data a good backup has not, although they were there."""
        return tuple(claim.name for claim in self.claims if claim.is_lacked_by(backup, started))

    def younger_than(self, started: datetime) -> tuple[str, ...]:
        """Return the claims that a backup of then cannot have, for they came later."""
        return tuple(claim.name for claim in self.claims if claim.is_younger_than(started))

    def is_newest(self, backup: str) -> bool:
        """Whether a backup is the newest good one."""
        return self.newest_good is not None and self.newest_good.name == backup

    def lacks(self, backup: str, started: datetime) -> str:
        """Return in words which data a good backup has not, although the claims were there; empty if it has all."""
        lacking = self.left_out if self.is_newest(backup) else self.without(backup, started)
        return f"without the data of {some(lacking)}" if lacking else ""

    def predates(self, started: datetime) -> str:
        """Return in words which claims came after a backup, which therefore says nothing about their data."""
        younger = self.younger_than(started)
        return f"made before {'claims' if len(younger) > 1 else 'claim'} {some(younger)} existed" if younger else ""

    @property
    def newer_than_newest(self) -> tuple[str, ...]:
        """The claims that came after the newest good backup."""
        newest = self.newest_good
        return self.younger_than(newest.started) if newest is not None and newest.started is not None else ()

    @property
    def newest_note(self) -> str:
        """Which data the newest good backup has not, to follow its name or age; empty if it has all."""
        newest = self.newest_good
        if newest is None or newest.started is None:
            return ""
        note = self.lacks(newest.name, newest.started) or self.predates(newest.started)
        return f", {note}" if note else ""

    def all_gaps(self) -> list[Gap]:
        """Return the gaps of the namespace and of its claims."""
        return [*self.gaps, *(gap for claim in self.claims for gap in claim.gaps)]


@dataclass(frozen=True, slots=True)
class _Counted:
    """The schedules of a namespace that take the same part of it, of the lowest tier that it has."""

    part: Part = COMPLETE
    titles: frozenset[str] = frozenset()
    objective: timedelta | None = None
    first: str = ""
    """The schedule that a new backup should come from."""

    expected: datetime | None = None
    """Without an objective, since when a good backup should have started."""


@dataclass(frozen=True, slots=True)
class _Covering:
    """The schedules of a namespace, with what is the same for all namespaces that have just these."""

    schedules: tuple[ScheduleRow, ...]
    titles: tuple[str, ...]
    counted: tuple[_Counted, ...]
    gaps: tuple[Gap, ...] = ()
    next_run: datetime | None = None
    in_order: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class _Newest:
    """The newest good backup of what some schedules take of a namespace, and when it should be there."""

    of: _Counted
    backup: BackupRow | None
    age: timedelta

    @property
    def is_late(self) -> bool:
        return self.of.objective is not None and (self.backup is None or self.age > self.of.objective)


def _runs(view: CoverageView, origin: Origin) -> dict[str, list[BackupRow]]:
    """Return the runs of one origin that have ended, by their schedule."""
    runs: dict[str, list[BackupRow]] = defaultdict(list)
    for backup in view.backups:
        if backup.origin is origin:
            runs[backup.schedule].append(backup)
    return {title: in_order(rows) for title, rows in runs.items()}


def _unreadable(newest: BackupRow | None, reported: Iterable[Gap]) -> list[Gap]:
    """Return the gap of a newest good backup that Velero cannot read, unless that is reported of its schedule."""
    if newest is None or not newest.location_problem:
        return []
    if any(gap.reason is Reason.LOCATION_UNAVAILABLE for gap in reported):
        return []
    text = f"the newest good backup, {newest.name}, cannot be restored now: {newest.location_problem}"
    return [Gap(Reason.LOCATION_UNAVAILABLE, text, newest.schedule, newest.name)]


def judge(view: CoverageView, now: datetime) -> list[NamespaceCoverage]:
    """Return the coverage of each namespace, and of each that a schedule names and that does not exist."""
    return _Judgement(view, now).of_namespaces()


class _Judgement:
    def __init__(self, view: CoverageView, now: datetime) -> None:
        self.view = view
        self.now = now
        self.scopes = Scopes(view)
        self.runs = _runs(view, Origin.HERE)
        self.unknown = _runs(view, Origin.UNKNOWN)
        self.blocked = {schedule.title: blocked(schedule, now) for schedule in view.schedules}
        self.health = {schedule.title: self._health(schedule) for schedule in view.schedules}
        self.claims = ClaimJudge(view, self.scopes, self.health, now)
        self.worst: dict[tuple[int, ...], _Newest] = {}

    def of_namespaces(self) -> list[NamespaceCoverage]:
        covering: dict[str, list[int]] = defaultdict(list)
        for place, schedule in enumerate(self.view.schedules):
            for name in self.scopes.namespaces_in(schedule.spec, schedule.policies):
                covering[name].append(place)
        groups = {places: self._covering(places) for places in {(), *map(tuple, covering.values())}}
        claims: dict[str, list[ClaimRow]] = defaultdict(list)
        for claim in self.view.claims:
            claims[claim.namespace].append(claim)
        good = candidates_of(self.view, self.runs.values(), self.scopes)
        doubtful = candidates_of(self.view, self.unknown.values(), self.scopes)
        coverages = [
            self._namespace(
                namespace,
                groups[tuple(covering.get(namespace.name, ()))],
                claims.get(namespace.name, []),
                good.get(namespace.name, []),
                doubtful.get(namespace.name, []),
            )
            for namespace in self.view.namespaces
        ]
        return sorted([*coverages, *self._absent()], key=lambda coverage: coverage.name)

    def _health(self, schedule: ScheduleRow) -> list[Gap]:
        """Return why a schedule protects nothing at the moment; none if it does."""
        causes = self.blocked[schedule.title]
        if causes:
            return causes
        refused = self.scopes.of(schedule.spec, schedule.policies).refused
        if schedule.policy_problem:
            refused = (f"its resource policy: {schedule.policy_problem}", *refused)
        if refused:
            text = f"Velero cannot run the template of {schedule.title}: {refused[0]}"
            return [Gap(Reason.REFUSED, text, schedule.title)]
        return last_run_gaps(schedule.title, self.runs.get(schedule.title, []))

    def _covering(self, places: Iterable[int]) -> _Covering:
        schedules = tuple(self.view.schedules[place] for place in places)
        if not schedules:
            return _Covering((), (), (_Counted(objective=self.view.objective),))
        groups = those_that_count(schedules)
        counted = [row for rows in groups.values() for row in rows]
        return _Covering(
            schedules,
            tuple(row.title for row in schedules),
            tuple(self._counted(part, rows) for part, rows in groups.items()),
            tuple(gap for rows in groups.values() for gap in self._common_gaps(rows)),
            min((at for row in counted if (at := row.next_run) and not self.blocked[row.title]), default=None),
            tuple(row.title for row in schedules if not self.health[row.title]),
        )

    def _common_gaps(self, schedules: Sequence[ScheduleRow]) -> Iterator[Gap]:
        """Yield why schedules protect nothing at the moment, if none of them does."""
        if all(self.health[row.title] for row in schedules):
            for row in schedules[:SHOWN_REASONS]:
                yield from self.health[row.title]

    def _counted(self, part: Part, schedules: Sequence[ScheduleRow]) -> _Counted:
        healthy = [schedule for schedule in schedules if not self.health[schedule.title]]
        objective = self.view.objective or strictest_objective(schedules)
        return _Counted(
            part,
            frozenset(schedule.title for schedule in schedules),
            objective,
            (healthy or schedules)[0].title,
            expected_since(schedules) if objective is None else None,
        )

    def _namespace(
        self,
        row: NamespaceRow,
        covering: _Covering,
        claims: Iterable[ClaimRow],
        good: Sequence[Candidate],
        doubtful: Sequence[Candidate],
    ) -> NamespaceCoverage:
        if is_excluded(row.labels) or is_sandbox(row.name, row.labels):
            return NamespaceCoverage(row.name, is_excluded=True)
        worst = self._worst(covering, good)
        objective = worst.of.objective
        gaps = [*covering.gaps, *self._objective_missed(row, worst), *_unreadable(worst.backup, covering.gaps)]
        if worst.backup is None and doubtful:
            text = f"{doubtful[0].row.name} came from a bucket, and nothing shows that this cluster made it"
            gaps.append(Gap(Reason.ORIGIN_UNKNOWN, text, worst.of.first, doubtful[0].row.name))
        if not gaps and covering.titles:
            gaps += self._unproven(row, worst)
        if not covering.titles and self.view.is_own:
            text = f"namespace {row.name} has no NonAdminSchedule, and Schedules of administrators you may not see"
            gaps = [Gap(Reason.NO_OWN_SCHEDULE, text)]
        elif not covering.titles:
            gaps.insert(0, Gap(Reason.NO_SCHEDULE, f"no schedule covers namespace {row.name}"))
        judged = tuple(self.claims.judge(claim, row, covering.schedules, good, worst.backup, gaps) for claim in claims)
        wants_data = any(coverage.is_wanted for coverage in judged)
        agents = (self.view.agents_unknown,) if any(coverage.needs_agents for coverage in judged) else ()
        return NamespaceCoverage(
            row.name,
            covering.titles,
            worst.backup,
            covering.next_run,
            judged,
            tuple(gaps),
            objective,
            is_new=row.created >= self._since(worst.of),
            unknown=(
                *self.view.unknown,
                *(self.view.unknown_volumes if wants_data else ()),
                *filter(None, agents),
                *self._from_the_future(worst.backup),
            ),
            in_order=covering.in_order,
            created=row.created,
        )

    def _from_the_future(self, backup: BackupRow | None) -> list[str]:
        """Return that the age of a backup is unknown, because its clock and this one differ."""
        if backup is None or backup.started is None or backup.started - self.now <= _SKEW:
            return []
        return [f"how old {backup.name} is: it started {stamp(backup.started)}, which is in the future"]

    def _since(self, counted: _Counted) -> datetime:
        """Return since when a good backup should have started: one that misses it is late."""
        if counted.objective is not None:
            return self.now - counted.objective
        return counted.expected or self.now - _DAY

    def _unproven(self, row: NamespaceRow, worst: _Newest) -> list[Gap]:
        """Return the gap of a namespace whose schedules are in order and have made no good backup, or none lately."""
        expected = worst.of.expected
        backup = worst.backup
        schedule = worst.of.first
        if backup is None:
            text = f"namespace {row.name} has no good backup yet; {schedule} has made none"
            return [Gap(Reason.NO_GOOD_BACKUP, text, schedule)]
        if expected is None or backup.started is None or backup.started >= expected or row.created >= expected:
            return []
        text = f"the newest good backup of namespace {row.name}, {backup.name}, is older than the last three runs"
        return [Gap(Reason.RUNS_MISSED, f"{text} of {schedule}", schedule)]

    def _worst(self, covering: _Covering, good: Sequence[Candidate]) -> _Newest:
        """Return the part whose newest backup misses its objective, or is the oldest.

        Thousands of namespaces may have the same schedules and backups: their answer is the same, worked out once.
        """
        key = (id(covering), *map(id, good))
        if key not in self.worst:
            index = CandidateIndex(good)
            newest = [self._newest(counted, index) for counted in covering.counted]
            self.worst[key] = max(newest, key=lambda backup: (backup.is_late, backup.age))
        return self.worst[key]

    def _newest(self, counted: _Counted, index: CandidateIndex) -> _Newest:
        newest = index.newest(counted.part, counted.titles)
        if newest is None:
            return _Newest(counted, None, timedelta.max)
        return _Newest(counted, newest.row, self.now - newest.started)

    def _objective_missed(self, row: NamespaceRow, worst: _Newest) -> list[Gap]:
        objective = worst.of.objective
        schedule = worst.of.first
        if objective is None or not worst.is_late or self.now - row.created <= objective:
            return []
        if worst.backup is None:
            by = f" by {schedule}" if schedule else ""
            return [Gap(Reason.OBJECTIVE_MISSED, f"namespace {row.name} has no good backup{by}", schedule)]
        text = f"the newest good backup of namespace {row.name}, {worst.backup.name}, is older than the objective"
        return [Gap(Reason.OBJECTIVE_MISSED, text, schedule)]

    def _absent(self) -> list[NamespaceCoverage]:
        named: dict[str, list[str]] = defaultdict(list)
        for schedule in self.view.schedules:
            for name in schedule.spec.included_namespaces or ():
                if name and name not in self.scopes.names and not has_wildcard(name):
                    named[name].append(schedule.title)
        coverages = []
        for name, titles in named.items():
            text = f"{titles[0]} names namespace {name}, which does not exist"
            gap = Gap(Reason.NAMESPACE_ABSENT, text, titles[0])
            coverages.append(NamespaceCoverage(name, tuple(titles), gaps=(gap,)))
        return coverages
