"""The life of a check: choose a backup, fence a sandbox, restore, compare, record, remove everything.

    due → status.run → list of the backup → sandboxes, Restore → it ends → files → evidence → status.last → removal

Each step finds what the one before has left, so a crash between any two is only a delay. What belongs to no running
check is removed at every reconcile, so no exit path needs a removal of its own.
"""

from collections.abc import Container, Iterable, Sequence
from datetime import datetime, timedelta

import msgspec

from foresail import __version__
from foresail.api.instants import whole
from foresail.api.restore_check import (
    MOST_IN_STATUS,
    RESTORE_CHECK,
    CheckProblem,
    CheckResult,
    CheckRun,
    RestoreCheckStatus,
)
from foresail.api.velero import DOWNLOAD_REQUEST
from foresail.plan import Action, Level, Note, Patch, Plan, ReadResult, Subject
from foresail.proof.checks import build, data, data_build, rules, tenants
from foresail.proof.checks.build import CONTENTS, RESTORED, RESULTS, VOLUMES
from foresail.proof.checks.contents import Contents
from foresail.proof.checks.judge import Verdict, failed, verdict_without_restore
from foresail.proof.checks.kinds import Wanted
from foresail.proof.checks.reasons import Reason
from foresail.proof.checks.rows import BackupRow, CheckRow, DownloadRow, RestoreRow
from foresail.proof.checks.status import patch_body, with_conditions
from foresail.proof.checks.tenants import Turn
from foresail.proof.checks.view import CheckView, DataSettings, Files, FilesFound

PAUSE = timedelta(seconds=20)
"""After files could not be read."""

SILENCE = timedelta(minutes=2)
"""After which a DownloadRequest that Velero has not answered is replaced."""

_MARGIN = timedelta(seconds=30)
_LONGEST_MESSAGE, _LONGEST_PROBLEM = 1024, 512


def decide(view: CheckView, now: datetime) -> Plan:
    """Return what to do about a check now, and when to reconcile next."""
    refused = tenants.refusal(view.check, view.tenant) if view.check is not None and view.tenant is not None else None
    view = tenants.bounded(view)
    removed = rules.leftovers(view, now)
    check = view.check
    if check is None:
        return Plan(removed, wake_at=rules.starts_until(view, now))
    run = check.status.run
    if refused is not None:
        plan = refuse(check, refused, now)
    else:
        plan = start(view, check, now) if run is None else proceed(view, check, run, now)
    wake_at = _earliest(plan.wake_at, _kept_until(check, now), rules.starts_until(view, now))
    return msgspec.structs.replace(plan, actions=(*removed, *plan.actions), wake_at=wake_at)


def refuse(check: CheckRow, refused: tuple[Reason, str], now: datetime) -> Plan:
    """Report why a tenant's check is not served, and give up its run: what it has made is then removed."""
    status = msgspec.structs.replace(check.status, run=None, next_run=None)
    return _report(check, status, (False, *refused), now)


# Between two checks


def start(view: CheckView, check: CheckRow, now: datetime) -> Plan:
    """Record a run, if one is due; nothing is made before it is recorded."""
    status = check.status
    newest = rules.newest_good(view)
    if check.spec.depth == "Data" and view.data is None:
        text = "spec.depth is Data, which is off: set proof.data.enabled in the chart's values"
        return _report(check, msgspec.structs.replace(status, next_run=None), (False, Reason.DATA_DISABLED, text), now)
    due = rules.due(check, newest, now)
    since = rules.waiting_since(check, view.backups)
    status = msgspec.structs.replace(status, next_run=due.upcoming, waiting_since=since)
    if check.spec.suspend:
        suspended = msgspec.structs.replace(status, next_run=None)
        return _report(check, suspended, (True, Reason.SUSPENDED, "No check starts: spec.suspend is true"), now)
    if due.is_due and newest is not None:
        return begin(view, check, status, newest, now)
    if due.problem:
        return _report(check, status, (False, Reason.INVALID_SCHEDULE, due.problem), now)
    if newest is None:
        text = "No Completed Backup is selected; check spec.backups"
        idle = msgspec.structs.replace(status, next_run=None)  # a Backup wakes it, not the schedule
        return _report(check, idle, (False, Reason.NO_BACKUP, text), now)
    return _report(check, status, (True, Reason.WAITING, "Waiting for the next run"), now, due.upcoming)


def begin(view: CheckView, check: CheckRow, status: RestoreCheckStatus, backup: BackupRow, now: datetime) -> Plan:
    """Record that this backup is being checked, unless it must wait; the start of a tenant's check is counted first."""
    tenant = view.tenant
    blocking = rules.blocking_sandbox(view, now)
    if blocking is not None:
        whose = "remove what its conditions name" if tenant is None else "ask a cluster administrator"
        text = f"Namespace {blocking.key.name} of an earlier run is still being deleted; if it stays, {whose}"
        return _report(check, status, (False, Reason.SANDBOX_TERMINATING, text), now)
    run_id = build.run_id(check, backup.uid)
    wait = tenants.wait(check, tenant, run_id, now) if tenant is not None else None
    if wait is not None:
        held = msgspec.structs.replace(status, next_run=None if wait.turn is not None else wait.until)
        plan = _report(check, held, (True, wait.reason, wait.message), now, wait.until)
        return msgspec.structs.replace(plan, claims=() if wait.turn is None else (wait.turn,))
    run = CheckRun(run_id, backup.key.name, backup.uid, whole(now), check.spec.depth)
    after = msgspec.structs.replace(status, run=run, handled_request=check.request)
    plan = _report(check, after, (True, Reason.RUNNING, f"Checking Backup {run.backup}"), now)
    if tenant is None:
        return plan
    return msgspec.structs.replace(
        plan, actions=(build.start(check, run.id),), claims=(Turn.TAKES, build.Start(run.id))
    )


# A check


def proceed(view: CheckView, check: CheckRow, run: CheckRun, now: datetime) -> Plan:
    """Do the next step of a run."""
    if rules.deadline(check, run) <= now:
        held = rules.held_by_velero(view, run)
        text = f"the check of Backup {run.backup} did not end within {check.spec.deadline}{held}"
        verdict = data.overdue(view, check, run) or failed(Reason.DEADLINE_EXCEEDED, text)
        return finish(view, check, run, verdict, now)
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
    return msgspec.structs.replace(
        plan, subject=_subject(check), wake_at=_earliest(plan.wake_at, rules.deadline(check, run))
    )


def prepare(view: CheckView, check: CheckRow, run: CheckRun, now: datetime) -> Plan:
    """Read what the backup has, and restore it, unless that alone fails the check.

    With depth Data, a canary proves the fence before there is a Restore.
    """
    settings = _data_settings(view, run)
    canaries = view.pods_result
    if settings is not None and run.fence is None and canaries is not None and canaries.query.run == run.id:
        return follow(view, check, run, data.prove_fence(check, run, settings, canaries, now), now)
    files = read(view, check, run, None, now)
    if isinstance(files, Plan):
        return files
    contents = files.contents
    if contents is None:
        text = f"the list of the backup: {files.problem}"
        return finish(view, check, run, failed(Reason.CONTENTS_UNREADABLE, text), now)
    verdict = refusal(view, check, run, contents, files)
    if verdict is not None:
        return finish(view, check, run, verdict, now)
    return restore_into_sandboxes(view, check, run, contents, files, now)


def refusal(
    view: CheckView, check: CheckRow, run: CheckRun, contents: Contents, files_found: FilesFound
) -> Verdict | None:
    """Return the verdict on a backup that is not restored at all; None if it is."""
    if run.depth == "Data" and view.data is None:
        return failed(Reason.DATA_DISABLED, "depth Data was switched off meanwhile")
    verdict = verdict_without_restore(contents, check.most_objects)
    if verdict is None and run.depth == "Data":
        return data.verdict_before(contents, check.spec, files_found.claims, view.free_volumes)
    return verdict


def restore_into_sandboxes(
    view: CheckView, check: CheckRow, run: CheckRun, contents: Contents, files_found: FilesFound, now: datetime
) -> Plan:
    """Fence a sandbox for each namespace, and restore into them once all their quotas count."""
    sources = contents.namespaces
    objects = contents.objects
    settings = _data_settings(view, run)
    moved = files_found.claims.moved if files_found.claims is not None else ()
    fences = rules.fences(view, run, sources)
    unfenced = [name for name, quota in fences.items() if quota is None]
    if unfenced:
        made = [
            create
            for source in unfenced
            for create in build.sandbox(check, run.id, source, objects[source], settings, sorted(view.free_volumes))
        ]
        claims = data_build.claim_rules(data.claims_of(contents), moved) if settings is not None else None
        return Plan((build.modifiers(check, run.id, claims), *made))
    if not all(quota.is_counted for quota in fences.values() if quota is not None):
        return Plan()
    if settings is not None and run.fence is None:
        return Plan(reads=(data.canary_query(run, sources, files_found),))
    seconds = rules.seconds_left(check, run, now)
    return Plan((build.restore(check, run, sources, contents.custom, seconds, has_moved=bool(moved)),))


def _data_settings(view: CheckView, run: CheckRun) -> DataSettings | None:
    return view.data if run.depth == "Data" else None


def compare(view: CheckView, check: CheckRow, run: CheckRun, restore: RestoreRow, now: datetime) -> Plan:
    """Read what the restore did, and judge it; with depth Data, what its pods do too."""
    kept = data.kept_verdict(view, run)
    if kept is not None:
        return follow(view, check, run, data.check_pods(view, check, run, restore, kept, now), now)
    files = read(view, check, run, restore, now)
    if isinstance(files, Plan):
        return files
    verdict = files.verdict or failed(Reason.CONTENTS_UNREADABLE, f"the files of the restore: {files.problem}")
    if run.depth == "Data" and not verdict.problems:
        return follow(view, check, run, data.check_pods(view, check, run, restore, verdict, now), now)
    return finish(view, check, run, verdict, now)


def follow(view: CheckView, check: CheckRow, run: CheckRun, step: data.Step, now: datetime) -> Plan:
    """Do what a step of depth Data says."""
    if isinstance(step, Plan):
        return step
    if isinstance(step, Verdict):
        return finish(view, check, run, step, now)
    after = msgspec.structs.replace(check.status, run=step.run)
    plan = _report(check, after, (True, Reason.RUNNING, f"Checking Backup {run.backup}"), now)
    return msgspec.structs.replace(plan, notes=(step.note,) if step.note is not None else ())


def abandon(check: CheckRow, now: datetime) -> Plan:
    """Give up a run whose backup is deleted meanwhile: it says nothing about the backups that there are."""
    after = msgspec.structs.replace(check.status, run=None)
    return _report(check, after, (True, Reason.WAITING, "The Backup was deleted during its check"), now)


def finish(view: CheckView, check: CheckRow, run: CheckRun, verdict: Verdict, now: datetime) -> Plan:
    """Record the evidence, then the result; the removal follows, because the run is then over."""
    has_passed = not verdict.problems
    restore = rules.restore_of(view, run)
    keeps = rules.length(check.spec.keep_failed)
    seen = {row.source: row.key.name for row in view.sandboxes if row.run == run.id}
    sandboxes = dict(restore.sandboxes) if restore is not None else seen
    result = CheckResult(
        id=run.id,
        backup=run.backup,
        backup_uid=run.backup_uid,
        started=run.started,
        completed=whole(now),
        result="Pass" if has_passed else "Fail",
        reason=verdict.reason.value,
        message=data.message(verdict, run)[:_LONGEST_MESSAGE],
        namespaces=len(sandboxes),
        items_expected=verdict.expected,
        items_found=verdict.found,
        items_not_checked=verdict.not_checked,
        restore_seconds=restore.seconds if restore is not None else None,
        fence="NotEnforced" if verdict.reason is Reason.NOT_FENCED else run.fence,
        reached=run.reached,
        pods_ready=verdict.pods_ready,
        ready_seconds=run.ready_seconds,
        assertion_exit_code=verdict.exit_code,
        evidence=build.evidence_key(check, run.id).name,
        kept_until=whole(now) + keeps if keeps and not has_passed else None,
        problems=tuple(
            CheckProblem(problem.reason.value, problem.message[:_LONGEST_PROBLEM])
            for problem in verdict.problems[:MOST_IN_STATUS]
        ),
    )
    record = _evidence(view, check, run, verdict, restore) | {
        "sandboxes": sandboxes,
        **msgspec.to_builtins(msgspec.structs.replace(result, kept_until=None, problems=())),
    }
    after = msgspec.structs.replace(
        check.status,
        run=None,
        last=result,
        last_passed=result.completed if has_passed else check.status.last_passed,
        waiting_since=None if has_passed else check.status.waiting_since,
    )
    level = Level.NORMAL if has_passed else Level.WARNING
    note = Note(RESTORE_CHECK, check.key, check.uid, result.reason, f"Backup {run.backup}: {result.message}", level)
    plan = _report(check, after, (True, Reason.WAITING, "Waiting for the next run"), now)
    return msgspec.structs.replace(plan, actions=(build.evidence(check, run.id, record),), notes=(note,))


def _evidence(
    view: CheckView, check: CheckRow, run: CheckRun, verdict: Verdict, restore: RestoreRow | None
) -> dict[str, object]:
    """Return what the evidence has beside the result: the circumstances and every problem."""
    most = MOST_IN_STATUS if check.is_tenants else None
    record: dict[str, object] = {
        "format": "foresail.dev/restore-check/v1",
        "check": {"namespace": check.key.namespace, "name": check.key.name, "uid": check.uid},
        "depth": run.depth,
    }
    if run.depth == "Data":
        record["dataSpec"] = data_spec(check)
    return record | {
        "foresail": __version__,
        "kubernetes": _kubernetes(view),
        **msgspec.to_builtins(view.environment),
        "restorePhase": restore.phase if restore is not None else "",
        "problemCount": verdict.count,
        "problems": [msgspec.to_builtins(problem) for problem in verdict.problems[:most]],
        "digests": dict(verdict.digests),
    }


def data_spec(check: CheckRow) -> dict[str, object]:
    """Return what the evidence says about how the data was checked."""
    wanted = check.spec.assertion
    return {
        "allowUnfenced": check.spec.allow_unfenced,
        "assertion": msgspec.to_builtins(wanted) if wanted is not None else None,
    }


def _kubernetes(view: CheckView) -> str:
    files = view.files_result
    pods = view.pods_result
    if files is not None:
        return files.answer.kubernetes
    return pods.query.kubernetes if pods is not None else ""


# Files


def read(
    view: CheckView, check: CheckRow, run: CheckRun, restore: RestoreRow | None, now: datetime
) -> Plan | FilesFound:
    """Return what the files of a run say; a Plan if there is something to do or to wait for before."""
    names = _needed_files(run, restore)
    rows = _download_rows(view, run, names)
    query = _files(view, check, run, restore, rows) if len(rows) == len(names) else None
    result = view.files_result
    if query is not None and result is not None and result.query == query:
        return _answer(result, rows.values(), now)
    stale = [row for row in rows.values() if _is_stale(row, run, names, now)]
    if stale:
        return Plan(_replaced(stale))
    if query is None:
        return Plan(_missing_downloads(check, run, names, rows))
    silent = [row for row in rows.values() if not row.url]
    if silent:
        return Plan(wake_at=min((row.created or now) + SILENCE for row in silent))
    return Plan(reads=(query,))


def _answer(result: ReadResult[Files, FilesFound], rows: Iterable[DownloadRow], now: datetime) -> Plan | FilesFound:
    """Return what the files say; after a failure, a pause and new requests."""
    if result.answer.is_final or not result.answer.problem:
        return result.answer
    again = result.started + PAUSE
    return Plan(wake_at=again) if now < again else Plan(_replaced(rows))


def _missing_downloads(
    check: CheckRow, run: CheckRun, names: Iterable[str], rows: Container[str]
) -> tuple[Action, ...]:
    return tuple(build.download(check, run, name) for name in names if name not in rows)


def _needed_files(run: CheckRun, restore: RestoreRow | None) -> tuple[str, ...]:
    """Return the files to read: those of the backup before the restore, and those of the restore after it."""
    if restore is not None:
        return (CONTENTS, RESTORED, RESULTS)
    return (CONTENTS, VOLUMES) if run.depth == "Data" else (CONTENTS,)


def _download_rows(view: CheckView, run: CheckRun, names: Iterable[str]) -> dict[str, DownloadRow]:
    """Return the DownloadRequests of a run by the file that they are for."""
    rows = {row.key.name: row for row in view.downloads if row.run == run.id and not row.is_terminating}
    return {name: rows[f"check-{run.id}-{name}"] for name in names if f"check-{run.id}-{name}" in rows}


def _files(
    view: CheckView, check: CheckRow, run: CheckRun, restore: RestoreRow | None, rows: dict[str, DownloadRow]
) -> Files:
    listed = tuple(check.spec.custom_resources or ())
    has_data = run.depth == "Data"
    wanted = Wanted(tuple(check.spec.namespaces or ()), listed, has_data)
    if restore is None:
        volumes = rows[VOLUMES].url if VOLUMES in rows else ""
        return Files(run.id, rows[CONTENTS].url, wanted, view.authority, classes=view.classes, volumes=volumes)
    # Those that the Restore names, not those that are seen: a namespace that its watch has not shown yet is no loss.
    return Files(
        run.id,
        rows[CONTENTS].url,
        wanted,
        view.authority,
        restore.phase,
        rows[RESTORED].url,
        rows[RESULTS].url,
        restore.sandboxes,
        view.classes,
    )


def _is_stale(row: DownloadRow, run: CheckRun, names: Sequence[str], now: datetime) -> bool:
    """Whether a DownloadRequest is of no use: silent, about to expire, or of another file."""
    if row.target not in [build.target(run, name) for name in names]:
        return True
    if not row.url:
        return row.created is not None and row.created + SILENCE <= now
    return row.expires is not None and row.expires <= now + _MARGIN


def _replaced(rows: Iterable[DownloadRow]) -> tuple[Action, ...]:
    return tuple(build.delete(DOWNLOAD_REQUEST, row) for row in rows)


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
    return min((instant for instant in instants if instant is not None), default=None)


def _subject(check: CheckRow) -> Subject:
    return Subject(RESTORE_CHECK, check.key, check.uid)
