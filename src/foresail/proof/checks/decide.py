"""The life of a check: choose a backup, fence a sandbox, restore, compare, record, remove everything.

    due → status.run → list of the backup → sandboxes, Restore → it ends → files → evidence → status.last → removal

Each step finds what the one before has left, so a crash between any two is only a delay. What belongs to no running
check is removed at every reconcile, so no exit path needs a removal of its own.
"""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import datetime, timedelta

import msgspec

from foresail import __version__
from foresail.api.instants import stamp, whole
from foresail.api.restore_check import MOST_NAMESPACES, RESTORE_CHECK, CheckResult, CheckRun, RestoreCheckStatus
from foresail.api.velero import DOWNLOAD_REQUEST
from foresail.plan import Action, Level, Note, Patch, Plan, Subject
from foresail.proof.checks import build, rules
from foresail.proof.checks.build import CONTENTS, RESTORED, RESULTS
from foresail.proof.checks.contents import Wanted
from foresail.proof.checks.judge import Verdict, failed, verdict_without_restore
from foresail.proof.checks.observe import BackupRow, CheckRow, CheckView, DownloadRow, Files, FilesFound, RestoreRow
from foresail.proof.checks.reasons import Reason
from foresail.proof.checks.status import patch_body, with_conditions

PAUSE = timedelta(seconds=20)
"""After files could not be read."""

SILENCE = timedelta(minutes=2)
"""After which a DownloadRequest that Velero has not answered is replaced."""

_MARGIN = timedelta(seconds=30)
_LONGEST_MESSAGE = 1024


def decide(view: CheckView, now: datetime) -> Plan:
    """Return what to do about a check now, and when to reconcile next."""
    removed = rules.leftovers(view, now)
    check = view.check
    if check is None:
        return Plan(removed)
    run = check.status.run
    plan = start(view, check, now) if run is None else proceed(view, check, run, now)
    return replace(plan, actions=(*removed, *plan.actions), wake_at=_earliest(plan.wake_at, _kept_until(check, now)))


# Between two checks


def start(view: CheckView, check: CheckRow, now: datetime) -> Plan:
    """Record a run, if one is due; nothing is made before it is recorded."""
    status, newest = check.status, rules.newest_good(view)
    found = rules.due(check, newest, now)
    status = msgspec.structs.replace(status, next_run=found.upcoming)
    if check.spec.suspend:
        suspended = msgspec.structs.replace(status, next_run=None)
        return _report(check, suspended, (True, Reason.SUSPENDED, "No check starts: spec.suspend is true"), now)
    if found.is_due and newest is not None:
        return begin(check, status, newest, now)
    if found.problem:
        return _report(check, status, (False, Reason.INVALID_SCHEDULE, found.problem), now)
    if newest is None:
        text = "No Completed Backup is selected; check spec.backups"
        return _report(check, status, (False, Reason.NO_BACKUP, text), now, found.upcoming)
    return _report(check, status, (True, Reason.WAITING, "Waiting for the next run"), now, found.upcoming)


def begin(check: CheckRow, status: RestoreCheckStatus, backup: BackupRow, now: datetime) -> Plan:
    """Record that this backup is being checked."""
    run = CheckRun(build.run_id(check.uid, backup.uid, stamp(now)), backup.key.name, backup.uid, whole(now))
    after = msgspec.structs.replace(status, run=run, handled_request=check.request)
    return _report(check, after, (True, Reason.RUNNING, f"Checking Backup {run.backup}"), now)


# A check


def proceed(view: CheckView, check: CheckRow, run: CheckRun, now: datetime) -> Plan:
    """Do the next step of a run."""
    if rules.deadline(check, run) <= now:
        text = f"the check of Backup {run.backup} did not end within {check.spec.deadline}"
        return finish(view, check, run, failed(Reason.DEADLINE_EXCEEDED, text), now)
    if rules.backup_of(view, run) is None:
        return abandon(check, now)
    restore = rules.restore_of(view, run)
    if restore is None:
        plan = prepare(view, check, run, now)
    elif restore.phase not in rules.ENDED:
        plan = Plan()
    elif restore.phase in ("Failed", "FailedValidation"):
        text = f"the restore is {restore.phase}: {restore.problem or 'Velero reports no reason'}"
        return finish(view, check, run, failed(Reason.RESTORE_FAILED, text), now)
    else:
        plan = compare(view, check, run, restore, now)
    return replace(plan, subject=_subject(check), wake_at=_earliest(plan.wake_at, rules.deadline(check, run)))


def prepare(view: CheckView, check: CheckRow, run: CheckRun, now: datetime) -> Plan:
    """Read what the backup has, fence a sandbox for each namespace, and restore into them: the Restore comes last."""
    found = read(view, check, run, None, now)
    if isinstance(found, Plan):
        return found
    contents = found.contents
    if contents is None:
        return finish(
            view, check, run, failed(Reason.CONTENTS_UNREADABLE, f"the list of the backup: {found.problem}"), now
        )
    verdict = verdict_without_restore(contents)
    if verdict is not None:
        return finish(view, check, run, verdict, now)
    sources = contents.namespaces
    if len(sources) > MOST_NAMESPACES:
        text = f"the backup has {len(sources)} namespaces; one check takes {MOST_NAMESPACES}: set spec.namespaces"
        return finish(view, check, run, failed(Reason.TOO_MANY_NAMESPACES, text), now)
    fenced = [action for each in sources for action in build.sandbox(check, run.id, each)]
    return Plan((build.modifiers(check, run.id), *fenced, build.restore(check, run, sources, contents.custom)))


def compare(view: CheckView, check: CheckRow, run: CheckRun, restore: RestoreRow, now: datetime) -> Plan:
    """Read what the restore did, and judge it."""
    found = read(view, check, run, restore, now)
    if isinstance(found, Plan):
        return found
    verdict = found.verdict or failed(Reason.CONTENTS_UNREADABLE, f"the files of the restore: {found.problem}")
    return finish(view, check, run, verdict, now)


def abandon(check: CheckRow, now: datetime) -> Plan:
    """Give up a run whose backup is deleted meanwhile: it says nothing about the backups that there are."""
    after = msgspec.structs.replace(check.status, run=None)
    return _report(check, after, (True, Reason.WAITING, "The Backup was deleted during its check"), now)


def finish(view: CheckView, check: CheckRow, run: CheckRun, verdict: Verdict, now: datetime) -> Plan:
    """Record the evidence, then the result; the removal follows, because the run is then over."""
    has_passed = not verdict.problems
    restore = rules.restore_of(view, run)
    keeps = rules.length(check.spec.keep_failed)
    sandboxes = {each.source: each.key.name for each in view.sandboxes if each.run == run.id}
    result = CheckResult(
        id=run.id,
        backup=run.backup,
        backup_uid=run.backup_uid,
        started=run.started,
        completed=whole(now),
        result="Pass" if has_passed else "Fail",
        reason=verdict.reason.value,
        message=verdict.message[:_LONGEST_MESSAGE],
        namespaces=len(sandboxes),
        items_expected=verdict.expected,
        items_found=verdict.found,
        items_not_checked=verdict.not_checked,
        restore_seconds=restore.seconds if restore is not None else None,
        evidence=build.evidence_key(check, run.id).name,
        kept_until=whole(now) + keeps if keeps and not has_passed else None,
    )
    record = {
        "format": "foresail.dev/restore-check/v1",
        "check": {"namespace": check.key.namespace, "name": check.key.name, "uid": check.uid},
        "depth": check.spec.depth,
        "foresail": __version__,
        "kubernetes": view.read_result.found.kubernetes if view.read_result is not None else "",
        **msgspec.to_builtins(view.circumstances),
        "restorePhase": restore.phase if restore is not None else "",
        "sandboxes": sandboxes,
        "problemCount": verdict.count,
        "problems": [msgspec.to_builtins(each) for each in verdict.problems],
        "digests": dict(verdict.digests),
        **msgspec.to_builtins(msgspec.structs.replace(result, kept_until=None)),
    }
    after = msgspec.structs.replace(
        check.status,
        run=None,
        last=result,
        last_passed=result.completed if has_passed else check.status.last_passed,
    )
    level = Level.NORMAL if has_passed else Level.WARNING
    note = Note(RESTORE_CHECK, check.key, check.uid, result.reason, f"Backup {run.backup}: {result.message}", level)
    plan = _report(check, after, (True, Reason.WAITING, "Waiting for the next run"), now)
    return replace(plan, actions=(build.evidence(check, run.id, record),), notes=(note,))


# Files


def read(
    view: CheckView, check: CheckRow, run: CheckRun, restore: RestoreRow | None, now: datetime
) -> Plan | FilesFound:
    """Return what the files of a run say; a Plan if there is something to do or to wait for before."""
    names = (CONTENTS,) if restore is None else (CONTENTS, RESTORED, RESULTS)
    rows = {each.key.name: each for each in view.downloads if each.run == run.id and not each.is_terminating}
    found = {name: rows[f"check-{run.id}-{name}"] for name in names if f"check-{run.id}-{name}" in rows}
    query = _files(view, check, run, restore, found) if len(found) == len(names) else None
    result = view.read_result
    if query is not None and result is not None and result.query == query:
        if result.found.is_final or not result.found.problem:
            return result.found
        again = result.started + PAUSE
        return Plan(wake_at=again) if now < again else Plan(_replaced(found.values()))
    stale = [each for each in found.values() if _is_stale(each, run, names, now)]
    if stale:
        return Plan(_replaced(stale))
    if len(found) < len(names):
        return Plan(tuple(build.download(check, run, each) for each in names if each not in found))
    if query is None or not all(each.url for each in found.values()):
        return Plan(wake_at=min((each.created or now) + SILENCE for each in found.values() if not each.url))
    return Plan(reads=(query,))


def _files(
    view: CheckView, check: CheckRow, run: CheckRun, restore: RestoreRow | None, rows: dict[str, DownloadRow]
) -> Files:
    wanted = Wanted(tuple(check.spec.namespaces or ()), tuple(check.spec.custom_resources or ()))
    if restore is None:
        return Files(run.id, rows[CONTENTS].url, wanted, view.authority, classes=view.classes)
    sandboxes = tuple(sorted((each.source, each.key.name) for each in view.sandboxes if each.run == run.id))
    return Files(
        run.id,
        rows[CONTENTS].url,
        wanted,
        view.authority,
        restore.phase,
        rows[RESTORED].url,
        rows[RESULTS].url,
        sandboxes,
        view.classes,
    )


def _is_stale(row: DownloadRow, run: CheckRun, names: Sequence[str], now: datetime) -> bool:
    """Whether a DownloadRequest is of no use: silent, about to expire, or of another file."""
    if row.target not in [build.target(run, each) for each in names]:
        return True
    if not row.url:
        return row.created is not None and row.created + SILENCE <= now
    return row.expires is not None and row.expires <= now + _MARGIN


def _replaced(rows: Iterable[DownloadRow]) -> tuple[Action, ...]:
    return tuple(build.delete(DOWNLOAD_REQUEST, each) for each in rows)


def _report(
    check: CheckRow,
    status: RestoreCheckStatus,
    ready: tuple[bool, Reason, str],
    now: datetime,
    wake_at: datetime | None = None,
) -> Plan:
    after = with_conditions(check, status, ready, now)
    body = patch_body(check.status, after)
    patch = Patch(RESTORE_CHECK, check.key, {"status": body}, check.version, "status") if body else None
    return Plan(status=patch, wake_at=wake_at, subject=_subject(check))


def _kept_until(check: CheckRow, now: datetime) -> datetime | None:
    last = check.status.last
    return last.kept_until if last is not None and last.kept_until is not None and last.kept_until > now else None


def _earliest(*instants: datetime | None) -> datetime | None:
    return min((each for each in instants if each is not None), default=None)


def _subject(check: CheckRow) -> Subject:
    return Subject(RESTORE_CHECK, check.key, check.uid)
