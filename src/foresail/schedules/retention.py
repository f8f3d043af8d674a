"""Retention of a Schedule's Backups: which of them go, and what keeps the operator from deleting any.

Only runs of this very Schedule in this cluster count and go, Velero's own runs before Foresail included. What came from
a bucket may be another cluster's, and what has a name of its own was made by hand: they neither count nor go, and
Velero deletes them when they expire.
"""

import hashlib
import re
from collections.abc import Iterator
from datetime import datetime, timedelta
from functools import lru_cache

import msgspec

from foresail.api import velero
from foresail.api.instants import stamp
from foresail.api.marks import RETENTION, RETENTION_APPROVED, SCHEDULE_UID
from foresail.plan import Create, Key, Level
from foresail.retention import Copy, Rule, Rules, horizon, kept, oldest_first, why_not_kept
from foresail.schedules.expression import parse_expression
from foresail.schedules.observe import BackupRow, DeletionRow, ScheduleRow, ScheduleView, Unread, location_of
from foresail.schedules.policies import retention_rules
from foresail.schedules.reasons import Because, Reason
from foresail.schedules.slots import timing_of
from foresail.slots.due import is_in_future
from foresail.slots.interval import longest_run_gap
from foresail.slots.rules import SETTLING_TIME

MOST_UNAPPROVED = 10
MOST_UNAPPROVED_SHARE = 0.2
"""New rules may delete this many Backups of a Schedule, and this share of them, before someone approves the rules."""

MOST_OPEN_DELETIONS = 10
"""DeleteBackupRequests of ours that Velero has at a time: it processes one after the other."""

_DIGEST_LENGTH = 12
_SUFFIX = "-retention"
_UNFINISHED = "an earlier deletion did not finish"
_VELEROS_NAME = re.compile("-[0-9]{14}")  # what Velero adds to the name of a Schedule


class Retained(msgspec.Struct, frozen=True):
    """What the rules of retention say about the Backups of a Schedule."""

    digest: str  # of the rules
    kept: dict[str, tuple[Rule, ...]]  # by the name of the Backup
    goes: dict[str, str]  # why no rule keeps it, by the name of the Backup, the oldest first
    is_approved: bool
    blocked_by: Because | None = None
    deleting: tuple[str, ...] = ()  # Backups that Velero has begun to delete
    again: tuple[str, ...] = ()  # those of them to request again, for their deletion has ended without success
    failed: Because | None = None  # a deletion that failed or cannot be requested

    @property
    def deletes(self) -> dict[str, str]:
        """Why each Backup is deleted, by its name, in the order of the deletions."""
        return dict.fromkeys(self.again, _UNFINISHED) | self.goes


def retain(view: ScheduleView, observed: str, now: datetime) -> Retained | None:
    """Return what the rules keep and what goes; None if the Schedule has no rules.

    `observed` is the digest of the rules by which Backups were deleted before.
    """
    rules = retention_rules(view.policy, view.settings.zone)
    if rules is None:
        return None
    copies = [_copy(each, view) for each in view.backups if counts(each, view.schedule, now)]
    reasons = kept(copies, rules)
    going = sorted((each for each in copies if not reasons[each.name]), key=oldest_first)
    why = why_not_kept(copies, rules) if going else str
    goes = {each.name: why(each) for each in going}
    digest = digest_of(rules)
    is_approved = _is_approved(view.schedule, digest, observed, len(goes), len(copies))
    deleting = [each for each in view.backups if each.phase == velero.DELETING and _is_run(each, view.schedule, now)]
    again = tuple(each.key.name for each in deleting if _is_requested_again(each, view, now))
    blocked_by = _in_doubt(view, now) if goes or again else None
    if goes and blocked_by is None and not is_approved:
        blocked_by = _not_approved(view, len(goes), len(copies))
    found = Retained(digest, reasons, goes, is_approved, blocked_by, tuple(each.key.name for each in deleting), again)
    return msgspec.structs.replace(found, failed=_failed_deletion(view, found, now))


def counts(backup: BackupRow, schedule: ScheduleRow, now: datetime) -> bool:
    """Whether a Backup is a run of this Schedule that retention counts: made here, and here to stay."""
    is_gone = backup.phase in (velero.FAILED_VALIDATION, velero.DELETING)
    return not is_gone and _is_run(backup, schedule, now)


def _is_run(backup: BackupRow, schedule: ScheduleRow, now: datetime) -> bool:
    is_run = backup.schedule_uid == schedule.uid or (
        not backup.schedule_uid and _VELEROS_NAME.fullmatch(backup.key.name.removeprefix(schedule.key.name)) is not None
    )
    is_expired = backup.expires is not None and backup.expires <= now
    return is_run and not (backup.is_synced or is_expired)


def _is_requested_again(backup: BackupRow, view: ScheduleView, now: datetime) -> bool:
    """Whether the deletion of a Backup has ended and left it: Velero removes the request last if it succeeds."""
    is_free = not backup.is_pinned and backup.key.name not in view.restored
    return is_free and _is_left(backup, view, now) and next(_doubts_about(backup, view, now), None) is None


def _is_left(backup: BackupRow, view: ScheduleView, now: datetime) -> bool:
    since = view.unrequested.get(backup.key.name)
    return since is not None and since + SETTLING_TIME <= now


@lru_cache(1_000)
def digest_of(rules: Rules) -> str:
    """Return a short digest of the rules, by which they are approved."""
    return hashlib.sha256(repr(rules).encode()).hexdigest()[:_DIGEST_LENGTH]


def delete_first(view: ScheduleView, retained: Retained, now: datetime) -> tuple[Create, Because] | None:
    """Return the deletion of the oldest Backup that goes, one at a time; None if none is deleted now."""
    if retained.blocked_by is not None or is_waiting_for_velero(view, now):
        return None
    requested = {each.backup for each in view.deletions} | view.unusable.keys()
    for name, why in retained.deletes.items():
        if name not in requested:
            reason = Because(Reason.RETENTION_DELETED, f"deleted Backup {name}: {why}.", Level.NORMAL)
            return _deletion(view.schedule, name, why), reason
    return None


def lifetime(view: ScheduleView, slot: datetime, upcoming: datetime) -> timedelta | None:
    """Return the ttl of a new Backup: longer than the rules keep it, so that they decide; None without rules."""
    rules = retention_rules(view.policy, view.settings.zone)
    if rules is None:
        return None
    cron = parse_expression(view.schedule.text, view.settings.zone, view.server.dialect, slot)
    gap = None if isinstance(cron, Because) else longest_run_gap(cron, slot, timing_of(view))
    return horizon(rules, max(upcoming - slot, gap or timedelta()))


def is_waiting_for_velero(view: ScheduleView, now: datetime) -> bool:
    """Whether Velero has a deletion of this Schedule to process, or as many as it gets at a time."""
    return view.open_deletions >= MOST_OPEN_DELETIONS or any(each.is_pending(now) for each in view.deletions)


def deletion_name(backup: str) -> str:
    """Return the name of our DeleteBackupRequest for a Backup."""
    return f"{backup}{_SUFFIX}"


def backup_of(deletion: str) -> str:
    """Return the name of the Backup for which a DeleteBackupRequest of ours has this name."""
    return deletion.removesuffix(_SUFFIX)


def unusable_deletion(backup: str, row: DeletionRow | None, unread: Unread | None) -> Unread | None:
    """Return why a request with the name of a Backup's deletion does not delete it; None if nothing is in the way."""
    if unread is not None:
        return Unread(unread.key, f"cannot be read ({unread.problem})")
    if row is not None and row.backup != backup:
        return Unread(row.key, f"is for Backup {row.backup or '<none>'}")
    return None


def _failed_deletion(view: ScheduleView, retained: Retained, now: datetime) -> Because | None:
    """Return which deletion failed, was abandoned or cannot be requested; Velero removes such requests after a day."""
    for each in view.deletions:
        if each.backup not in retained.goes and each.backup not in retained.deleting:
            continue
        if each.errors:
            text = f"Velero could not delete Backup {each.backup}: {each.errors[0]}. The next try follows within a day."
            return Because(Reason.RETENTION_FAILED, text)
        if each.is_stalled(now):
            text = f"Velero has not finished the deletion of Backup {each.backup} for an hour. Check its log."
            again = "If it was restarted amid it, the next try follows within a day."
            return Because(Reason.RETENTION_FAILED, f"{text} {again}")
    return _not_requested(view, retained) or _not_repeated(view, retained, now)


def _not_requested(view: ScheduleView, retained: Retained) -> Because | None:
    """Return why a deletion cannot be requested."""
    for name in (*retained.deleting, *retained.goes):
        if name in view.unusable:
            request, problem = view.unusable[name].key, view.unusable[name].problem
            text = f"DeleteBackupRequest {request} {problem}, so Backup {name} is not deleted. Delete that request."
            return Because(Reason.RETENTION_FAILED, text)
    return None


def _not_repeated(view: ScheduleView, retained: Retained, now: datetime) -> Because | None:
    """Return why a deletion that failed is not requested again."""
    for backup in view.backups:
        if backup.key.name in retained.deleting and _is_left(backup, view, now):
            for doubt in _doubts_about(backup, view, now):
                text = f"{doubt}, so the deletion of Backup {backup.key.name}, which failed, is not repeated."
                return Because(Reason.RETENTION_FAILED, text)
    return None


def next_deletion_check(view: ScheduleView, retained: Retained, now: datetime) -> datetime | None:
    """Return when the clock alone may change what is deleted or reported."""
    found = [each.stalls_at for each in view.deletions if each.stalls_at is not None]
    found += [since + SETTLING_TIME for since in view.unrequested.values()]
    if retained.deletes and view.open_deletions >= MOST_OPEN_DELETIONS:
        found.append(now + velero.DELETION_TIME)
    return min((each for each in found if each > now), default=None)


def _deletion(schedule: ScheduleRow, backup: str, why: str) -> Create:
    body = {
        "metadata": {"labels": {velero.BACKUP_NAME_LABEL: velero.label_of(backup)}, "annotations": {RETENTION: why}},
        "spec": {"backupName": backup},
    }
    return Create(
        velero.DELETE_REQUEST,
        Key(schedule.key.namespace, deletion_name(backup)),
        body,
        {SCHEDULE_UID: schedule.uid},
    )


def _copy(backup: BackupRow, view: ScheduleView) -> Copy:
    return Copy(
        name=backup.key.name,
        started=backup.slot or backup.created,
        is_good=backup.phase == velero.COMPLETED,
        is_finished=backup.is_terminal,
        is_pinned=backup.is_pinned,
        is_restored=backup.key.name in view.restored,
    )


def _is_approved(schedule: ScheduleRow, digest: str, observed: str, going: int, copies: int) -> bool:
    """Whether the rules may delete: approved by someone, in effect before, or too few Backups go to ask."""
    if digest in (observed, schedule.annotations.get(RETENTION_APPROVED)):
        return True
    return going <= MOST_UNAPPROVED and going <= copies * MOST_UNAPPROVED_SHARE


def _not_approved(view: ScheduleView, going: int, copies: int) -> Because:
    name = view.schedule.key.name
    policy = view.policy.name if view.policy else ""
    text = (
        f"SchedulePolicy {policy} would delete {going} of {copies} Backups, so it waits for approval."
        f" To see them: foresail schedule retention {name}. To approve: foresail schedule retention {name} --approve."
    )
    return Because(Reason.RETENTION_NOT_APPROVED, text)


def _in_doubt(view: ScheduleView, now: datetime) -> Because | None:
    """Return why nothing is deleted: something that the rules depend on is not certain."""
    problem = next(_doubts(view, now), None)
    return None if problem is None else Because(Reason.RETENTION_IN_DOUBT, f"{problem}, so nothing is deleted.")


def _doubts(view: ScheduleView, now: datetime) -> Iterator[str]:
    for unread in view.unread_policies:
        yield f"Correct SchedulePolicy {unread.key.name}: it cannot be read ({unread.problem}) and may apply"
    for unread in view.unread:
        yield f"Backup {unread.key} cannot be read ({unread.problem})"
    for backup in view.backups:
        if counts(backup, view.schedule, now):
            yield from _doubts_about(backup, view, now)


def _doubts_about(backup: BackupRow, view: ScheduleView, now: datetime) -> Iterator[str]:
    moment = max(filter(None, (backup.slot, backup.created, backup.completed)))
    if is_in_future(moment, now):
        yield f"Backup {backup.key} has a time in the future ({stamp(moment)}). Check the clocks"
    location = location_of(backup.location, view.locations)
    if location is None:
        yield f"BackupStorageLocation {backup.location} of Backup {backup.key} does not exist"
    elif location.phase != velero.AVAILABLE or location.is_read_only:
        state = "read-only" if location.is_read_only else location.phase or "not checked by Velero yet"
        yield f"BackupStorageLocation {location.key} is {state}"
