"""Judges which namespaces and claims are covered by which schedules, and why one is not."""

from collections import defaultdict
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from foresail.api.restore_check import is_sandbox
from foresail.proof.candidates import Candidate, candidates_of
from foresail.proof.claims import SHOWN_REASONS, ClaimCoverage, ClaimJudge, strictest_objective
from foresail.proof.observe import BackupRow, ClaimRow, CoverageView, NamespaceRow, ScheduleRow
from foresail.proof.parts import COMPLETE, Part, part_of
from foresail.proof.reasons import Gap, Reason
from foresail.proof.runs import in_order, last_run_gaps
from foresail.proof.scopes import Scopes
from foresail.scope.coverage import is_excluded
from foresail.scope.globs import has_wildcard

_LONG_AGO = datetime(1970, 1, 1, tzinfo=UTC)


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
    """Whether it is younger than its objective, which it cannot have missed."""

    def all_gaps(self) -> list[Gap]:
        """Return the gaps of the namespace and of its claims."""
        return [*self.gaps, *(gap for claim in self.claims for gap in claim.gaps)]


@dataclass(frozen=True, slots=True)
class _Counted:
    """The schedules of a namespace that take the same part of it, of the lowest rank that it has."""

    part: Part
    titles: frozenset[str] = frozenset()

    def has(self, backup: Candidate) -> bool:
        """Whether a backup is one of this part: a run of these schedules, or another that takes the same or all."""
        return backup.schedule in self.titles or backup.part in (self.part, COMPLETE)


@dataclass(frozen=True, slots=True)
class _Covering:
    """The schedules of a namespace, with what is the same for all namespaces that have just these."""

    schedules: tuple[ScheduleRow, ...]
    titles: tuple[str, ...]
    counted: tuple[_Counted, ...] = (_Counted(COMPLETE),)
    gaps: tuple[Gap, ...] = ()
    objective: timedelta | None = None
    next_run: datetime | None = None
    first: str = ""
    """The schedule that a new backup should come from."""


def judge(view: CoverageView, now: datetime) -> list[NamespaceCoverage]:
    """Return the coverage of each namespace, and of each that a schedule names and that does not exist."""
    return _Judgement(view, now).of_namespaces()


class _Judgement:
    def __init__(self, view: CoverageView, now: datetime) -> None:
        self.view, self.now = view, now
        self.scopes = Scopes(view)
        runs: dict[str, list[BackupRow]] = defaultdict(list)
        for each in view.backups:
            runs[each.schedule].append(each)
        self.runs = {title: in_order(rows) for title, rows in runs.items()}
        self.health = {each.title: self._health(each) for each in view.schedules}
        self.claims = ClaimJudge(view, self.scopes, self.health, now)

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
        found = [
            self._namespace(
                each, groups[tuple(covering.get(each.name, ()))], claims.get(each.name, []), good.get(each.name, [])
            )
            for each in self.view.namespaces
        ]
        return sorted([*found, *self._absent()], key=lambda each: each.name)

    def _health(self, schedule: ScheduleRow) -> list[Gap]:
        """Return why a schedule protects nothing at the moment; none if it does."""
        if schedule.paused:
            return [Gap(Reason.PAUSED, f"{schedule.title} is paused", schedule.title)]
        if schedule.not_running:
            text = f"{schedule.title} does not run: {schedule.not_running}"
            return [Gap(Reason.NOT_RUNNING, text, schedule.title)]
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
            return _Covering((), (), objective=self.view.objective)
        parts = {each.title: part_of(each, each.policies, knows_policies=not each.policy_unread) for each in schedules}
        rank = min(part.rank for part in parts.values())
        groups: dict[Part, list[ScheduleRow]] = defaultdict(list)
        for each in schedules:
            if parts[each.title].rank is rank:
                groups[parts[each.title]].append(each)
        counted = [each for rows in groups.values() for each in rows]
        unhealthy = [rows for rows in groups.values() if all(self.health[each.title] for each in rows)]
        healthy = [each for each in counted if not self.health[each.title]]
        return _Covering(
            schedules,
            tuple(each.title for each in schedules),
            tuple(_Counted(part, frozenset(each.title for each in rows)) for part, rows in groups.items()),
            tuple(gap for rows in unhealthy for each in rows[:SHOWN_REASONS] for gap in self.health[each.title]),
            self.view.objective or strictest_objective(counted),
            min((each.next_run for each in counted if each.next_run is not None and not each.paused), default=None),
            (healthy or counted)[0].title,
        )

    def _namespace(
        self,
        row: NamespaceRow,
        covering: _Covering,
        claims: Iterable[ClaimRow],
        good: Sequence[Candidate],
    ) -> NamespaceCoverage:
        if is_excluded(row.labels) or is_sandbox(row.name, row.labels):
            return NamespaceCoverage(row.name, is_excluded=True)
        titles, objective = covering.titles, covering.objective
        newest_of = {part: next((each.row for each in good if part.has(each)), None) for part in covering.counted}
        newest = _oldest(newest_of.values())
        lacking = next((min(part.titles, default="") for part, found in newest_of.items() if found is None), "")
        gaps = [*covering.gaps, *self._objective_missed(row, newest, objective, lacking or covering.first)]
        if not titles:
            gaps.insert(0, Gap(Reason.NO_SCHEDULE, f"no schedule covers namespace {row.name}"))
        return NamespaceCoverage(
            row.name,
            titles,
            newest,
            covering.next_run,
            tuple(self.claims.judge(each, row, covering.schedules, good, gaps) for each in claims),
            tuple(gaps),
            objective,
            is_new=objective is not None and self.now - row.created <= objective,
        )

    def _objective_missed(
        self, row: NamespaceRow, newest: BackupRow | None, objective: timedelta | None, schedule: str
    ) -> list[Gap]:
        if objective is None or self.now - row.created <= objective:
            return []
        if newest is None or newest.started is None:
            of = f" by {schedule}" if schedule else ""
            return [Gap(Reason.OBJECTIVE_MISSED, f"namespace {row.name} has no good backup{of}", schedule)]
        if self.now - newest.started <= objective:
            return []
        text = f"the newest good backup of namespace {row.name}, {newest.name}, is older than the objective"
        return [Gap(Reason.OBJECTIVE_MISSED, text, schedule)]

    def _absent(self) -> list[NamespaceCoverage]:
        named: dict[str, list[str]] = defaultdict(list)
        for each in self.view.schedules:
            for name in each.spec.included_namespaces or ():
                if name and name not in self.scopes.names and not has_wildcard(name):
                    named[name].append(each.title)
        found = []
        for name, titles in named.items():
            text = f"{titles[0]} names namespace {name}, which does not exist"
            gap = Gap(Reason.NAMESPACE_ABSENT, text, titles[0])
            found.append(NamespaceCoverage(name, tuple(titles), gaps=(gap,)))
        return found


def _oldest(newest: Collection[BackupRow | None]) -> BackupRow | None:
    """Return the oldest of the newest backups of each part; None if one part has no backup."""
    found = [each for each in newest if each is not None]
    return min(found, key=lambda each: each.started or _LONG_AGO) if len(found) == len(newest) else None
