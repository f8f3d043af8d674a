"""Which old runs of a NonAdminSchedule go: `keepLast` gives them up, and foresail.deletion decides.

A run counts only if its Velero Backup exists. If the quota is reached and a run waits for it, what `keepLast` would
delete after that run goes before it, one backup at a time: otherwise no run could ever start.
"""

from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime, timedelta

import msgspec

from foresail import deletion
from foresail.api import velero
from foresail.backups import Quality, has_expired, in_order
from foresail.backups import judge as judge_quality
from foresail.cron.duration import length_of
from foresail.deletion import Circumstances, Decision, Ledger, Stored
from foresail.retention import Copy, Rule, Rules, kept, why_not_kept
from foresail.selfservice.reasons import Reason, Refused
from foresail.selfservice.requests.protection import RECHECK, is_among_the_last
from foresail.selfservice.requests.status import IN_DELETION
from foresail.selfservice.rows.requests import RequestRow
from foresail.selfservice.schedules.view import ScheduleView
from foresail.slots.observed import Observed
from foresail.tenancy.policies import PolicyRow

_NEXT_RUN = ""  # no backup has this name
_UNDECIDED = frozenset({Rule.AFTER_GOOD, Rule.RESTORED})  # what keeps a run for the moment only
_STUCK = frozenset({Reason.DELETION_FAILED, Reason.DELETION_PROTECTED})
_HOLDS_DATA = (Quality.GOOD, Quality.PARTIAL, Quality.SHRUNK)


class Outdated(msgspec.Struct, frozen=True):
    """What becomes of the old runs of a schedule."""

    decision: Decision = Decision()
    digest: str = ""  # of the `keepLast` that is in effect
    ledger: Ledger = Ledger()
    blocked_by: Refused | None = None
    grace: timedelta = deletion.DEFAULT_GRACE
    later: datetime | None = None  # when the clock alone changes this
    gone: Stored | None = None  # the run to delete now, one at a time
    asks: str = ""  # the digest of the `keepLast` that waits for an approval


def outdated(view: ScheduleView, now: datetime) -> Outdated:
    """Return which runs beyond `keepLast` go, and what blocks it."""
    policy = view.policy
    observed = view.schedule.status.observed
    if policy is None or policy.spec.schedules.keep_last is None:
        return Outdated(ledger=ledger_of(observed))
    rules = rules_of(policy)
    stored = list(stored_runs(view, now))
    rows = {row.key.name: row for row in view.backups}
    copies = [_copy(row, rows[row.name], view) for row in stored]
    reasons = kept(copies, rules)
    age = minimum_age(policy)
    opens = {row.name: rows[row.name].created + age for row in stored}  # when it may be deleted
    gives_up = _not_held(view, _given_up(copies, rules, reasons, opens, now), now)
    if view.is_full:
        stored, gives_up = _make_room(view, stored, copies, gives_up, now)
    circumstances = _circumstances(view, policy, gives_up, now)
    decision = deletion.decide(stored, gives_up, circumstances, now)
    going = [row for row in stored if _UNDECIDED.issuperset(reasons[row.name])]
    is_blocked = bool(circumstances.doubt or view.restored)
    is_settled = not is_blocked and deletion.may_take_effect(going, stored, circumstances, now)
    instants = [*opens.values(), decision.next_at]
    if is_blocked:
        instants.append(now + RECHECK)
    return Outdated(
        decision,
        _digest_in_effect(rules, observed, is_settled=is_settled),
        circumstances.ledger,
        _blocked_by(view, decision),
        circumstances.grace,
        _first_after(instants, now),
        _first_to_go(stored, decision),
        _digest(rules) if decision.asks else "",
    )


def _given_up(
    copies: list[Copy],
    rules: Rules,
    reasons: Mapping[str, tuple[Rule, ...]],
    opens: Mapping[str, datetime],
    now: datetime,
) -> dict[str, str]:
    """Return why no rule keeps a run that is old enough to be deleted, by its name."""
    why = why_not_kept(copies, rules)
    return {copy.name: why(copy) for copy in copies if not reasons[copy.name] and opens[copy.name] <= now}


def _not_held(view: ScheduleView, gives_up: dict[str, str], now: datetime) -> dict[str, str]:
    """Return what is given up and is not among the last good backups of the namespace: its deletion would be held."""
    good = view.policy.spec.deletion.keep_last_good if view.policy is not None else 0
    return {
        name: why for name, why in gives_up.items() if not is_among_the_last(view.velero[name], view.good, good, now)
    }


def _circumstances(view: ScheduleView, policy: PolicyRow, gives_up: dict[str, str], now: datetime) -> Circumstances:
    """Return what the decision about deletions depends on, beside the runs."""
    observed = view.schedule.status.observed
    doubt = ""
    if gives_up or any(map(is_marked, view.backups)):
        doubt = next(_doubts(view, now), "")
    return Circumstances(
        length_of(policy.spec.schedules.grace_period) or timedelta(),
        ledger_of(observed),
        deletion.approved(view.schedule.approved, _digest(rules_of(policy))),
        is_edited=observed is not None and observed.retention != _digest(rules_of(policy)),
        doubt=doubt,
    )


def _digest(rules: Rules) -> str:
    return f"keepLast {rules.last}"


def _digest_in_effect(rules: Rules, observed: Observed | None, *, is_settled: bool) -> str:
    """Return the digest to remember: after an edit the former one, until few enough runs go."""
    if observed is None or is_settled:
        return _digest(rules)
    return observed.retention


def _first_after(instants: Iterable[datetime | None], now: datetime) -> datetime | None:
    return min((instant for instant in instants if instant is not None and instant > now), default=None)


def _first_to_go(stored: list[Stored], decision: Decision) -> Stored | None:
    name = next(iter(decision.deletes), None)
    return next((row for row in stored if row.name == name), None)


def held(observed: Observed | None) -> Outdated:
    """Return what holds while a schedule is refused: nothing goes, and what is recorded stays."""
    return Outdated(digest=observed.retention if observed is not None else "", ledger=ledger_of(observed))


def rules_of(policy: PolicyRow) -> Rules:
    """Return what the policy keeps of each schedule; `keepLastGood` outranks `keepLast`."""
    return Rules(last=policy.spec.schedules.keep_last or 0, good=max(1, policy.spec.deletion.keep_last_good))


def minimum_age(policy: PolicyRow) -> timedelta:
    """Return how old a backup is before it may be deleted."""
    return length_of(policy.spec.deletion.minimum_age or "0s") or timedelta()


def is_marked(run: RequestRow) -> bool:
    """Whether a run is marked for deletion, or waits for an approval of it."""
    return run.delete_after is not None or run.waits_for_approval


def is_on_its_way(run: RequestRow) -> bool:
    """Whether a deletion makes room soon; one that a policy holds, or that Velero does not carry out, does not."""
    condition = run.status.condition(IN_DELETION)
    is_stuck = condition is not None and condition.reason in _STUCK
    return run.is_being_removed and not is_stuck


def _make_room(
    view: ScheduleView, stored: list[Stored], copies: list[Copy], gives_up: dict[str, str], now: datetime
) -> tuple[list[Stored], dict[str, str]]:
    """Let one backup that is given up go at once; if there is none, one that goes after the run that waits."""
    stays = deletion.protected(stored, now)
    for names in (gives_up, *(_room_for_next_run(view, copies, now) if view.is_waiting else ())):
        going = [row for row in stored if row.name in names and row.name not in stays]
        first = min(going, key=_least_loss, default=None)
        if first is not None:
            rows = [msgspec.structs.replace(row, delete_after=now) if row is first else row for row in stored]
            return rows, {**gives_up, first.name: names[first.name]}
    return stored, gives_up


def _room_for_next_run(view: ScheduleView, copies: list[Copy], now: datetime) -> Iterator[dict[str, str]]:
    """Yield what `keepLast` gives up once the run that waits has completed, then what it alone would keep beside it.

    Partial copies stay beside as many good ones. A quota may be too small for both, and the run goes before them.
    """
    if view.policy is None:
        return
    rules = rules_of(view.policy)
    age = minimum_age(view.policy)
    created = {row.key.name: row.created for row in view.backups}
    good = rules.good + 1 if view.policy.spec.deletion.keep_last_good else rules.good  # of those that exist now
    reasons = kept([*copies, Copy(_NEXT_RUN, now, is_good=True)], Rules(last=rules.last, good=good))
    old = [copy for copy in copies if created[copy.name] + age <= now]
    why = f"quotas.stored is reached, and after the next run keepLast {rules.last} keeps newer ones"
    yield _not_held(view, {copy.name: why for copy in old if not reasons[copy.name]}, now)
    why = f"quotas.stored is reached, and has no room for the next run beside what keepLast {rules.last} keeps"
    yield _not_held(view, {copy.name: why for copy in old if reasons[copy.name] == (Rule.LAST,)}, now)


def _least_loss(row: Stored) -> tuple[int, datetime, str]:
    rank = 2 if row.quality is Quality.GOOD else int(row.quality in _HOLDS_DATA)
    return rank, row.started, row.name


def ledger_of(observed: Observed | None) -> Ledger:
    """Return what was deleted lately, as the schedule records it."""
    if observed is None:
        return Ledger()
    return Ledger(observed.deletions, observed.deleted_runs, observed.deleting)


def stored_runs(view: ScheduleView, now: datetime) -> Iterator[Stored]:
    """Yield the runs that count: their Velero Backup was made here, and neither expires nor is deleted by now."""
    made = {row.key.name: view.velero[row.key.name] for row in view.backups if _counts(row, view, now)}
    qualities = judge_quality(in_order(made.values()))
    for row in view.backups:
        if row.key.name in made:
            backup = made[row.key.name]
            quality = qualities.get(backup.name, Quality.UNFINISHED)
            is_run = row.slot is not None
            yield Stored(row.key.name, row.uid, backup.started, quality, is_run, row.delete_after, backup.expires)


def _counts(run: RequestRow, view: ScheduleView, now: datetime) -> bool:
    backup = view.velero.get(run.key.name)
    if backup is None or run.is_being_removed or backup.is_terminating:
        return False
    is_foreign = backup.claim is not None and backup.claim.is_synced
    return not is_foreign and backup.phase != velero.DELETING and not has_expired(backup.expires, now)


def _copy(stored: Stored, run: RequestRow, view: ScheduleView) -> Copy:
    return Copy(
        name=stored.name,
        started=run.slot or run.created,
        is_good=stored.quality is Quality.GOOD,
        is_partial=stored.quality is Quality.PARTIAL,
        is_finished=stored.quality is not Quality.UNFINISHED,
        is_pinned=run.is_pinned,
        is_restored=stored.name in view.restored,
        created=stored.started,
    )


def _doubts(view: ScheduleView, now: datetime) -> Iterator[str]:
    """Yield why nothing is deleted: something that the rule depends on is not certain."""
    if view.doubt:
        yield view.doubt
    for run in view.backups:
        if not _counts(run, view, now):
            continue
        if max(filter(None, (run.slot, run.created))) - now > deletion.SKEW:
            yield f"NonAdminBackup {run.key.name} has a time in the future. Check the clocks"
        if run.slot is not None and run.slot - run.created > deletion.SKEW:
            yield f"NonAdminBackup {run.key.name} was created before its slot. Check the clocks, then delete it"


def _blocked_by(view: ScheduleView, decision: Decision) -> Refused | None:
    if decision.doubt:
        return Refused(Reason.RETENTION_IN_DOUBT, f"{decision.doubt}, so no old run is deleted")
    if not decision.asks:
        return None
    policy = view.policy.name if view.policy is not None else ""
    text = f"SelfServicePolicy {policy} would delete {len(decision.asks)} of {decision.of} backups, and waits"
    ask = f"foresail backup schedule retention {view.schedule.key.name}"
    return Refused(Reason.RETENTION_NOT_APPROVED, f"{text} for approval. To see and approve them: {ask}")
