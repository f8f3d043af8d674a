"""Judges whether the data of a claim is saved: by which schedules, and when last."""

from collections.abc import Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from foresail.api.specs import BackupSpec
from foresail.proof.candidates import Candidate, Scopes
from foresail.proof.reasons import Gap, Reason, is_late
from foresail.proof.remedies import remedy_for
from foresail.proof.view import BackupRow, ClaimRow, CoverageView, NamespaceRow, ScheduleRow
from foresail.scope.covered import is_covered, is_excluded
from foresail.scope.discovery import CLAIMS, PODS, VOLUMES
from foresail.scope.resource_policies import Policies
from foresail.scope.volumes import BackedUp, Method, data_backup
from foresail.scope.world import Item, ItemKey

SHOWN_REASONS = 3
"""So many schedules are named in one gap."""


@dataclass(frozen=True, slots=True)
class ClaimCoverage:
    """How the data of a claim is saved, and when it was last."""

    name: str
    method: Method
    schedules: tuple[str, ...]
    gaps: tuple[Gap, ...] = ()
    newest_good: BackupRow | None = None
    next_run: datetime | None = None
    objective: timedelta | None = None
    is_saved: bool = False
    """Whether a schedule that is in order saves it, within the objective."""

    needs_agents: bool = False
    """Whether Velero's node agents copy or move it."""

    is_wanted: bool = True
    """Whether there is data to save: not if it has the exclusion label, or no volume yet."""

    is_in_newest: bool = True
    """Whether the newest good backup of its namespace has the data, unless the claim is younger."""

    created: datetime | None = None
    """Since when backups can have its data."""

    lacking: tuple[AbstractSet[str], ...] = field(default=(), compare=False)
    """The names of good backups that have not its data, whether the claim was there or not."""

    def is_younger_than(self, backup: datetime) -> bool:
        """Whether a backup started before there was data to save."""
        return self.is_wanted and self.created is not None and backup < self.created

    def is_lacked_by(self, backup: str, started: datetime) -> bool:
        """Whether a good backup has not its data, although it was there."""
        return any(backup in names for names in self.lacking) and not self.is_younger_than(started)


class ClaimJudge:
    """Judges claims of all namespaces; `health` has why a schedule protects nothing at the moment."""

    def __init__(self, view: CoverageView, scopes: Scopes, health: Mapping[str, Sequence[Gap]], now: datetime) -> None:
        self._view = view
        self._scopes = scopes
        self._health = health
        self._now = now
        self._groups = {schedule.title: scopes.group(schedule.spec, schedule.policies) for schedule in view.schedules}

    def judge(
        self,
        claim: ClaimRow,
        namespace: NamespaceRow,
        covering: Sequence[ScheduleRow],
        backups: Sequence[Candidate],
        shown: BackupRow | None,
        reported: Sequence[Gap],
    ) -> ClaimCoverage:
        """Return the coverage of a claim; of its namespace, `shown` is the newest good backup.

        `reported` are the gaps of the namespace, which are not repeated.
        """
        data = _Data(self._view, self._scopes, claim)
        if claim.volume is None or is_excluded(data.item.labels):
            return ClaimCoverage(claim.name, Method.NONE, (), is_wanted=False)
        created = claim.created or namespace.created
        is_in_newest = data.is_in_what_is_shown(shown, backups, created)
        lacking = tuple(backup.alike for backup in backups if backup.knows_policies and not data.is_in(backup))
        saving, left_out = self._saving(data, covering)
        if not saving:
            why = _left_out(claim, covering, left_out, data)
            return ClaimCoverage(
                claim.name, Method.NONE, (), why, is_in_newest=is_in_newest, created=created, lacking=lacking
            )
        trusted = [row for row in saving if not row.is_in_tenants_bucket] or saving
        healthy = [row for row in trusted if not self._health[row.title]]
        savers = _Savers(trusted, healthy)
        objective = self._view.objective or strictest_objective(trusted)
        newest = self._newest(data, backups, created, is_trusting=trusted[0].is_in_tenants_bucket)
        gaps = self._gaps(data, savers, backups, newest, created, objective)
        method = data.by(savers.first, self._groups)[0]
        return ClaimCoverage(
            claim.name,
            method,
            tuple(row.title for row in saving),
            tuple(_not_repeated(gaps, reported)),
            newest,
            savers.next_run,
            objective,
            is_saved=not gaps,
            needs_agents=_needs_agents(method, savers.first),
            is_in_newest=is_in_newest,
            created=created,
            lacking=lacking,
        )

    def _gaps(
        self,
        data: "_Data",
        savers: "_Savers",
        backups: Sequence[Candidate],
        newest: BackupRow | None,
        created: datetime,
        objective: timedelta | None,
    ) -> list[Gap]:
        """Return why the data of a claim that schedules save is not safe."""
        trusted = savers.trusted
        claim = data.claim
        first = savers.first.title
        gaps: list[Gap] = []
        if not savers.healthy:
            gaps += [gap for row in trusted[:SHOWN_REASONS] for gap in self._health[row.title]]
        elif self._view.agents_down and _needs_agents(data.by(savers.first, self._groups)[0], savers.first):
            text = f"the data of claim {claim.name} needs Velero's node agents: {self._view.agents_down}"
            gaps.append(Gap(Reason.AGENT_NOT_READY, text, first))
        if backups and backups[0].row is not newest:
            gaps += self._last_run_without(data, claim, backups, created, trusted)
        if objective is not None and self._now - created > objective:
            gaps += self._objective_missed(claim, newest, objective, first)
        if gaps:
            return gaps
        expected = expected_since(trusted) if objective is None else None
        return _unproven(claim, newest, created, expected, first)

    def _saving(self, data: "_Data", covering: Iterable[ScheduleRow]) -> tuple[list[ScheduleRow], list[str]]:
        """Return the schedules that save the data of a claim, and why each of the others does not."""
        saving = []
        left_out = []
        for schedule in covering:
            method, reason = data.by(schedule, self._groups)
            if method is Method.NONE:
                left_out.append(f"{schedule.title}: {reason}")
            else:
                saving.append(schedule)
        return saving, left_out

    def _newest(
        self, data: "_Data", backups: Iterable[Candidate], created: datetime, *, is_trusting: bool
    ) -> BackupRow | None:
        """Return the newest backup with the data; in a tenant's bucket only if no schedule saves it elsewhere."""
        for backup in backups:
            if backup.started < created:
                return None
            is_trusted = is_trusting or not backup.row.is_in_tenants_bucket
            if is_trusted and backup.knows_policies and data.is_in(backup):
                return backup.row
        return None

    def _last_run_without(
        self,
        data: "_Data",
        claim: ClaimRow,
        backups: Iterable[Candidate],
        created: datetime,
        saving: Sequence[ScheduleRow],
    ) -> list[Gap]:
        """Return the gap if the last run of the schedules that save a claim has not its data after all."""
        titles = [schedule.title for schedule in saving]
        last = next((backup for backup in backups if backup.schedule in titles), None)
        if last is None or last.started < created or not data.is_lacking(last):
            return []
        what = f"the last run of {last.schedule}, {last.row.name}, has no snapshot of claim {claim.name}"
        schedule = next(row for row in saving if row.title == last.schedule)
        remedy = remedy_for(schedule, data.method_with, has_failed=True)
        text = f"{what}, although Velero should have made one"
        return [Gap(Reason.VOLUME_LEFT_OUT, text, last.schedule, remedy=remedy)]

    def _objective_missed(
        self, claim: ClaimRow, newest: BackupRow | None, objective: timedelta, schedule: str
    ) -> list[Gap]:
        if newest is None or newest.started is None:
            return [Gap(Reason.OBJECTIVE_MISSED, f"no good backup has the data of claim {claim.name}", schedule)]
        if self._now - newest.started <= objective:
            return []
        text = f"the newest good backup with the data of claim {claim.name}, {newest.name}, is older than the objective"
        return [Gap(Reason.OBJECTIVE_MISSED, text, schedule)]


@dataclass(frozen=True, slots=True)
class _Savers:
    """The schedules to trust that save the data of a claim, and those of them that are in order."""

    trusted: Sequence[ScheduleRow]
    healthy: Sequence[ScheduleRow]

    @property
    def first(self) -> ScheduleRow:
        """The schedule that gaps name: one in order, if there is any."""
        return (self.healthy or self.trusted)[0]

    @property
    def next_run(self) -> datetime | None:
        """When the next run of one that is in order starts."""
        return min((row.next_run for row in self.healthy if row.next_run is not None), default=None)


def _needs_agents(method: Method, schedule: ScheduleRow) -> bool:
    """Whether node agents copy the files of a volume, or move its snapshot."""
    moves = method is Method.SNAPSHOT and bool(schedule.spec.snapshot_move_data)
    return moves or method is Method.FILE_SYSTEM


class _Data:
    """How specs save the data of one claim: those of one group do it in the same way."""

    def __init__(self, view: CoverageView, scopes: Scopes, claim: ClaimRow) -> None:
        self._server = view.server
        self._scopes = scopes
        self.claim = claim
        self.item = _item(CLAIMS, claim.namespace, claim.body)
        self._pods = [_item(PODS, claim.namespace, pod) for pod in claim.pods]
        self._answers: dict[int, tuple[Method, str]] = {}

    def by(self, schedule: ScheduleRow, groups: Mapping[str, int]) -> tuple[Method, str]:
        """Return how a schedule saves it, or why it does not."""
        if schedule.policy_unread:
            return Method.NONE, schedule.policy_unread
        return self._saved(groups[schedule.title], schedule.spec, schedule.policies)

    def is_in(self, backup: Candidate) -> bool:
        """Whether a backup has it."""
        return not self.is_lacking(backup) and self._method(backup) is not Method.NONE

    def is_in_what_is_shown(self, shown: BackupRow | None, backups: Iterable[Candidate], created: datetime) -> bool:
        """Whether the newest good backup has it, as far as that is known; nobody misses it in an older one."""
        newest = next((backup for backup in backups if backup.row is shown), None)
        if newest is None or newest.started < created or not newest.knows_policies:
            return True
        return self.is_in(newest)

    def is_lacking(self, backup: Candidate) -> bool:
        """Whether a backup should have it, and its status says that it has not."""
        row = backup.row
        if row.has_snapshots and row.left_out is not None and not row.left_out:
            return False
        is_named = row.left_out is None or self.claim.name in row.left_out
        method = self._method(backup)
        return (is_named and method is not Method.NONE) or (not row.has_snapshots and method is Method.SNAPSHOT)

    def _method(self, backup: Candidate) -> Method:
        return self._saved(backup.group, backup.row.spec, backup.policies)[0]

    def method_with(self, spec: BackupSpec, policies: Policies | None) -> Method:
        """Return how a spec that no schedule has would save it."""
        return self._judge(spec, policies)[0]

    def _saved(self, group: int, spec: BackupSpec, policies: Policies | None) -> tuple[Method, str]:
        if group not in self._answers:
            self._answers[group] = self._judge(spec, policies)
        return self._answers[group]

    def _judge(self, spec: BackupSpec, policies: Policies | None) -> tuple[Method, str]:
        scope = self._scopes.of(spec, policies)
        claim = self.claim
        if not is_covered(scope, self.item, self._pods):
            return Method.NONE, "its filters leave the claim out"
        backed_up = BackedUp(
            [pod for pod, row in zip(claim.pods, self._pods, strict=True) if is_covered(scope, row, [self.item])],
            scope.takes(_item(VOLUMES, "", claim.volume)),
        )
        backup = data_backup(spec, claim.body, claim.volume, claim.pods, policies, backed_up, self._server)
        return backup.method, backup.reason


def strictest_objective(schedules: Iterable[ScheduleRow]) -> timedelta | None:
    """Return the strictest objective of the schedules; of those that are not paused, if there are any."""
    rows = list(schedules)
    running = [row for row in rows if not row.paused] or rows
    return min((schedule.objective for schedule in running if schedule.objective), default=None)


def _left_out(claim: ClaimRow, covering: Sequence[ScheduleRow], causes: Sequence[str], data: _Data) -> tuple[Gap, ...]:
    """Return the gap of a claim whose data no schedule saves, as far as their resource policies could be read."""
    if not covering:
        return ()
    unread = next((schedule for schedule in covering if schedule.policy_unread), None)
    if unread is not None:
        text = f"whether {unread.title} saves the data of claim {claim.name} is unknown: {unread.policy_unread}"
        return (Gap(Reason.POLICY_UNREAD, text, unread.title),)
    text = f"no schedule saves the data of claim {claim.name}: {'; '.join(causes[:SHOWN_REASONS])}"
    remedy = remedy_for(covering[0], data.method_with)
    return (Gap(Reason.VOLUME_LEFT_OUT, text, covering[0].title, remedy=remedy),)


def expected_since(schedules: Iterable[ScheduleRow]) -> datetime | None:
    """Return since when one of the schedules should have made a good backup; those that are paused do not count."""
    return max((schedule.expected for schedule in schedules if schedule.expected and not schedule.paused), default=None)


def _unproven(
    claim: ClaimRow, newest: BackupRow | None, created: datetime, expected: datetime | None, schedule: str
) -> list[Gap]:
    """Return the gap of a claim whose schedules are in order and whose data is in no good backup, or in none lately."""
    is_due = expected is not None and created < expected
    if newest is None:
        text = f"no good backup has the data of claim {claim.name} yet"
        return [Gap(Reason.RUNS_MISSED if is_due else Reason.NO_GOOD_BACKUP, text, schedule)]
    if expected is None or not is_due or newest.started is None or newest.started >= expected:
        return []
    text = f"the newest good backup with the data of claim {claim.name}, {newest.name}, is older than the last three"
    return [Gap(Reason.RUNS_MISSED, f"{text} runs of {schedule}", schedule)]


def _not_repeated(gaps: Iterable[Gap], reported: Sequence[Gap]) -> Iterable[Gap]:
    known_late = is_late(reported)
    has_none = any(gap.reason is Reason.NO_GOOD_BACKUP for gap in reported)
    return (
        gap
        for gap in gaps
        if gap not in reported
        and not (known_late and is_late([gap]))
        and not (has_none and gap.reason is Reason.NO_GOOD_BACKUP)
    )


def _item(kind: str, namespace: str, body: object) -> Item:
    metadata = body.get("metadata") or {} if isinstance(body, dict) else {}
    key = ItemKey(kind, namespace, str(metadata.get("name", "")))
    return Item(key, metadata.get("labels") or {}, is_terminating="deletionTimestamp" in metadata)
