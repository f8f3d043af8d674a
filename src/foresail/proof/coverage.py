"""Judges which namespaces and claims are covered by which schedules, and why one is not."""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from foresail.api.restore_check import is_sandbox
from foresail.proof.claims import SHOWN_REASONS, ClaimCoverage, ClaimJudge
from foresail.proof.observe import BackupRow, ClaimRow, CoverageView, NamespaceRow, ScheduleRow
from foresail.proof.reasons import Gap, Reason
from foresail.proof.runs import good_backups, in_order, last_run_gaps
from foresail.proof.scopes import Key, Scopes, chosen_objects, takes_some_objects_only
from foresail.scope.coverage import is_excluded
from foresail.scope.globs import has_wildcard
from foresail.scope.policies import Policies


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
class _Covering:
    """The schedules of a namespace, with what is the same for all namespaces that have just these.

    If some of them take all objects into a bucket of administrators, only their gaps, objective and next run count.
    """

    schedules: tuple[ScheduleRow, ...]
    titles: tuple[str, ...]
    gaps: tuple[Gap, ...]
    objective: timedelta | None
    next_run: datetime | None
    parts: frozenset[Key]
    """What the schedules take, and whether into a tenant's bucket, if none of them is complete."""


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
        good = self._good_backups()
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

    def _good_backups(self) -> dict[str, list[BackupRow]]:
        """Return the good backups of each namespace since it exists, newest first; of those that take the same, one."""
        good = [each for rows in self.runs.values() for each in good_backups(rows)]
        good.sort(key=lambda each: each.started or self.now, reverse=True)
        created = {each.name: each.created for each in self.view.namespaces}
        found: dict[str, dict[Key, BackupRow]] = defaultdict(dict)
        seen: set[tuple[frozenset[str], Key]] = set()
        for each in good:
            policies = self.scopes.policies_of(each.spec)
            covered = self.scopes.namespaces_in(each.spec, policies)
            group = self.scopes.group(each.spec, policies), each.is_in_tenants_bucket
            if (covered, group) in seen:  # a newer one was there for every namespace that this one has
                continue
            seen.add((covered, group))
            for name in covered:
                if group not in found[name] and each.started is not None and each.started >= created[name]:
                    found[name][group] = each
        return {name: list(rows.values()) for name, rows in found.items()}

    def _covering(self, places: Iterable[int]) -> _Covering:
        schedules = tuple(self.view.schedules[place] for place in places)
        complete = [each for each in schedules if _is_complete(each, each.policies)]
        counted = complete or schedules
        health = [self.health[each.title] for each in counted]
        return _Covering(
            schedules,
            tuple(each.title for each in schedules),
            tuple(gap for each in health[:SHOWN_REASONS] for gap in each) if all(health) else (),
            self.view.objective or min((each.objective for each in counted if each.objective), default=None),
            min((each.next_run for each in counted if each.next_run is not None and not each.paused), default=None),
            frozenset() if complete else frozenset(map(_part, schedules)),
        )

    def _namespace(
        self,
        row: NamespaceRow,
        covering: _Covering,
        claims: Iterable[ClaimRow],
        good: Sequence[BackupRow],
    ) -> NamespaceCoverage:
        if is_excluded(row.labels) or is_sandbox(row.name, row.labels):
            return NamespaceCoverage(row.name, is_excluded=True)
        titles, objective = covering.titles, covering.objective
        newest = next((each for each in good if self._counts(each, covering)), None)
        gaps = [*covering.gaps, *self._objective_missed(row, newest, objective, titles[0] if titles else "")]
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

    def _counts(self, backup: BackupRow, covering: _Covering) -> bool:
        """Whether a backup is one of the namespace: it is complete, or takes what the schedules take."""
        return _is_complete(backup, self.scopes.policies_of(backup.spec)) or _part(backup) in covering.parts

    def _objective_missed(
        self, row: NamespaceRow, newest: BackupRow | None, objective: timedelta | None, schedule: str
    ) -> list[Gap]:
        if objective is None or self.now - row.created <= objective:
            return []
        if newest is None or newest.started is None:
            return [Gap(Reason.OBJECTIVE_MISSED, f"namespace {row.name} has no good backup", schedule)]
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


def _is_complete(row: ScheduleRow | BackupRow, policies: Policies | None) -> bool:
    """Whether it takes all objects of a namespace, into a bucket that no tenant can empty."""
    return not row.is_in_tenants_bucket and not takes_some_objects_only(row.spec, policies)


def _part(row: ScheduleRow | BackupRow) -> Key:
    return (*chosen_objects(row.spec), row.is_in_tenants_bucket)
