"""Judges which namespaces and claims are covered by which schedules, and why one is not."""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from foresail.api.restore_check import is_sandbox
from foresail.api.specs import BackupSpec
from foresail.proof.observe import BackupRow, ClaimRow, CoverageView, NamespaceRow, ScheduleRow
from foresail.proof.reasons import Gap, Reason
from foresail.proof.runs import good_backups, in_order, last_run_gaps
from foresail.scope.coverage import (
    Namespaces,
    Scope,
    includes_namespaced_kinds,
    is_covered,
    is_excluded,
    scope_of,
)
from foresail.scope.discovery import CLAIMS, PODS, STANDARD_KINDS, VOLUMES
from foresail.scope.globs import has_wildcard
from foresail.scope.policies import Policies
from foresail.scope.volumes import BackedUp, Method, data_backup
from foresail.scope.world import Item, ItemKey

_SHOWN_REASONS = 3


@dataclass(frozen=True, slots=True)
class ClaimCoverage:
    """How the data of a claim is saved."""

    name: str
    method: Method
    schedules: tuple[str, ...]
    gaps: tuple[Gap, ...] = ()


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
    """The schedules of a namespace, with what is the same for all namespaces that have just these."""

    schedules: tuple[ScheduleRow, ...]
    titles: tuple[str, ...]
    gaps: tuple[Gap, ...]
    objective: timedelta | None
    next_run: datetime | None


def judge(view: CoverageView, now: datetime) -> list[NamespaceCoverage]:
    """Return the coverage of each namespace, and of each that a schedule names and that does not exist."""
    return _Judgement(view, now).all()


class _Judgement:
    def __init__(self, view: CoverageView, now: datetime) -> None:
        self.view, self.now = view, now
        self.namespaces = Namespaces.named((each.name, each.labels) for each in view.namespaces)
        self.scopes: dict[tuple[object, ...], tuple[Scope, frozenset[str]]] = {}
        self.covered: dict[tuple[object, ...], frozenset[str]] = {}
        self.includes_objects: dict[tuple[object, ...], bool] = {}
        runs: dict[str, list[BackupRow]] = defaultdict(list)
        for each in view.backups:
            runs[each.schedule].append(each)
        self.runs = {title: in_order(rows) for title, rows in runs.items()}
        self.health = {each.title: self._health(each) for each in view.schedules}
        keys = {each.title: _key(each.spec, _DECIDING_DATA, each.policies) for each in view.schedules}
        numbers = {key: number for number, key in enumerate(dict.fromkeys(keys.values()))}
        self.data_group = {title: numbers[key] for title, key in keys.items()}

    def all(self) -> list[NamespaceCoverage]:
        covering: dict[str, list[int]] = defaultdict(list)
        for place, schedule in enumerate(self.view.schedules):
            for name in self._scope(schedule.spec, schedule.policies)[1]:
                covering[name].append(place)
        groups = {places: self._covering(places) for places in {(), *map(tuple, covering.values())}}
        claims: dict[str, list[ClaimRow]] = defaultdict(list)
        for claim in self.view.claims:
            claims[claim.namespace].append(claim)
        newest = self._newest_good()
        found = [
            self._namespace(
                each, groups[tuple(covering.get(each.name, ()))], claims.get(each.name, []), newest.get(each.name)
            )
            for each in self.view.namespaces
        ]
        return sorted([*found, *self._absent()], key=lambda each: each.name)

    def _scope(self, spec: BackupSpec, policies: Policies | None = None) -> tuple[Scope, frozenset[str]]:
        """Return what a spec covers and the namespaces in it; specs that cover the same are judged once."""
        key = _key(spec, (*_DECIDING_NAMESPACES, *_DECIDING_DATA), policies)
        if key not in self.scopes:
            scope = scope_of(spec, STANDARD_KINDS, self.namespaces, policies, self.view.release)
            self.scopes[key] = scope, self._covered(spec, policies)
        return self.scopes[key]

    def _covered(self, spec: BackupSpec, policies: Policies | None = None) -> frozenset[str]:
        """Return the namespaces in a spec; there are as many specs as backups, so nothing else is judged."""
        if not self._includes_objects(spec, policies):
            return frozenset()
        key = spec.included_namespaces, spec.excluded_namespaces
        if key not in self.covered:
            chosen = self.namespaces.chosen_by(spec, self.view.release)
            self.covered[key] = chosen.covered(self.namespaces.names)
        return self.covered[key]

    def _includes_objects(self, spec: BackupSpec, policies: Policies | None) -> bool:
        """Whether a spec includes kinds of objects in namespaces, not cluster-scoped kinds alone."""
        key = _key(spec, _LISTS_OF_KINDS, policies)
        if key not in self.includes_objects:
            everything_excluded = "*" in (spec.excluded_namespace_scoped_resources or ())
            kinds = self.view.kinds
            self.includes_objects[key] = not everything_excluded and (
                kinds is None or includes_namespaced_kinds(spec, kinds, policies)
            )
        return self.includes_objects[key]

    def _health(self, schedule: ScheduleRow) -> list[Gap]:
        """Return why a schedule protects nothing at the moment; none if it does."""
        if schedule.paused:
            return [Gap(Reason.PAUSED, f"{schedule.title} is paused", schedule.title)]
        if schedule.not_running:
            text = f"{schedule.title} does not run: {schedule.not_running}"
            return [Gap(Reason.NOT_RUNNING, text, schedule.title)]
        refused = self._scope(schedule.spec, schedule.policies)[0].refused
        if schedule.policy_problem:
            refused = (f"its resource policy: {schedule.policy_problem}", *refused)
        if refused:
            text = f"Velero cannot run the template of {schedule.title}: {refused[0]}"
            return [Gap(Reason.REFUSED, text, schedule.title)]
        return last_run_gaps(schedule.title, self.runs.get(schedule.title, []))

    def _newest_good(self) -> dict[str, BackupRow]:
        """Return the newest good backup of each namespace that existed when it started."""
        good = [each for rows in self.runs.values() for each in good_backups(rows)]
        good.sort(key=lambda each: each.started or self.now, reverse=True)
        created = {each.name: each.created for each in self.view.namespaces}
        found: dict[str, BackupRow] = {}
        seen: set[int] = set()
        for each in good:
            covered = self._covered(each.spec)
            if id(covered) in seen:  # a newer one with the same spec was there for every namespace that this one has
                continue
            seen.add(id(covered))
            for name in covered:
                if name not in found and each.started is not None and each.started >= created[name]:
                    found[name] = each
        return found

    def _covering(self, places: Iterable[int]) -> _Covering:
        schedules = tuple(self.view.schedules[place] for place in places)
        titles = tuple(each.title for each in schedules)
        health = [self.health[title] for title in titles]
        return _Covering(
            schedules,
            titles,
            tuple(gap for each in health[:_SHOWN_REASONS] for gap in each) if all(health) else (),
            self._objective(schedules),
            min((each.next_run for each in schedules if each.next_run is not None and not each.paused), default=None),
        )

    def _namespace(
        self,
        row: NamespaceRow,
        covering: _Covering,
        claims: Iterable[ClaimRow],
        newest: BackupRow | None,
    ) -> NamespaceCoverage:
        if is_excluded(row.labels) or is_sandbox(row.name, row.labels):
            return NamespaceCoverage(row.name, is_excluded=True)
        titles, objective = covering.titles, covering.objective
        gaps = [*covering.gaps, *self._objective_missed(row, newest, objective, titles[0] if titles else "")]
        if not titles:
            gaps.insert(0, Gap(Reason.NO_SCHEDULE, f"no schedule covers namespace {row.name}"))
        return NamespaceCoverage(
            row.name,
            titles,
            newest,
            covering.next_run,
            tuple(self._claim(each, covering.schedules) for each in claims),
            tuple(gaps),
            objective,
            is_new=objective is not None and self.now - row.created <= objective,
        )

    def _objective(self, covering: Iterable[ScheduleRow]) -> timedelta | None:
        """Return the objective of a namespace: the view's, or the strictest of the schedules that cover it."""
        own = [each.objective for each in covering if each.objective is not None]
        return self.view.objective or min(own, default=None)

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

    def _claim(self, claim: ClaimRow, covering: Sequence[ScheduleRow]) -> ClaimCoverage:
        item = _item(CLAIMS, claim.namespace, claim.body)
        pods = [_item(PODS, claim.namespace, each) for each in claim.pods]
        answers: dict[int, tuple[Method, str]] = {}
        saved: list[str] = []
        method, why = Method.NONE, []
        for each in covering:
            group = self.data_group[each.title]  # those in one group differ in their namespaces only
            if group not in answers:
                scope = self._scope(each.spec, each.policies)[0]
                answers[group] = self._data(scope, each, claim, item, pods)
            found, reason = answers[group]
            if found is Method.NONE:
                why.append(f"{each.title}: {reason}")
                continue
            method = found if method is Method.NONE else method
            saved.append(each.title)
        if saved or not covering:
            return ClaimCoverage(claim.name, method, tuple(saved))
        text = f"no schedule saves the data of claim {claim.name}: {'; '.join(why[:_SHOWN_REASONS])}"
        return ClaimCoverage(claim.name, Method.NONE, (), (Gap(Reason.VOLUME_LEFT_OUT, text, covering[0].title),))

    def _data(
        self, scope: Scope, schedule: ScheduleRow, claim: ClaimRow, item: Item, pods: Sequence[Item]
    ) -> tuple[Method, str]:
        if not is_covered(scope, item, pods):
            return Method.NONE, "its filters leave the claim out"
        backed_up = BackedUp(
            [pod for pod, row in zip(claim.pods, pods, strict=True) if is_covered(scope, row, [item])],
            scope.takes(_item(VOLUMES, "", claim.volume)),
        )
        server = self.view.server
        spec, policies = server.completed(schedule.spec), schedule.policies
        found = data_backup(spec, claim.body, claim.volume, claim.pods, policies, backed_up, has_csi=server.has_csi)
        return found.method, found.reason

    def _absent(self) -> list[NamespaceCoverage]:
        named: dict[str, list[str]] = defaultdict(list)
        for each in self.view.schedules:
            for name in each.spec.included_namespaces or ():
                if name and name not in self.namespaces.names and not has_wildcard(name):
                    named[name].append(each.title)
        found = []
        for name, titles in named.items():
            text = f"{titles[0]} names namespace {name}, which does not exist"
            gap = Gap(Reason.NAMESPACE_ABSENT, text, titles[0])
            found.append(NamespaceCoverage(name, tuple(titles), gaps=(gap,)))
        return found


_DECIDING_NAMESPACES = ("included_namespaces", "excluded_namespaces")
_LISTS_OF_KINDS = (
    "included_resources", "excluded_resources", "included_cluster_scoped_resources",
    "excluded_cluster_scoped_resources", "included_namespace_scoped_resources",
    "excluded_namespace_scoped_resources", "include_cluster_resources",
)  # fmt: skip
_DECIDING_DATA = (
    *_LISTS_OF_KINDS, "label_selector", "or_label_selectors",
    "snapshot_volumes", "default_volumes_to_fs_backup", "default_volumes_to_restic",
)  # fmt: skip
"""The fields of a spec that decide, with the namespaces, what it covers."""


def _key(spec: BackupSpec, fields: Iterable[str], policies: Policies | None) -> tuple[object, ...]:
    return (*(_frozen(getattr(spec, each)) for each in fields), id(policies))


def _frozen(value: object) -> object:
    """Return a value that can be a key: selectors have dicts, which cannot."""
    names = isinstance(value, tuple) and all(isinstance(each, str) for each in value)
    return value if names or value is None or isinstance(value, bool) else repr(value)


def _item(kind: str, namespace: str, body: object) -> Item:
    metadata = body.get("metadata") or {} if isinstance(body, dict) else {}
    key = ItemKey(kind, namespace, str(metadata.get("name", "")))
    return Item(key, metadata.get("labels") or {}, is_terminating="deletionTimestamp" in metadata)
