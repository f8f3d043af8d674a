"""The points of a namespace's time line, from what was read of it."""

from collections.abc import Iterable, Iterator
from datetime import datetime

from foresail.api.instants import instant
from foresail.backups import FAILED_PHASES
from foresail.cli.tenant.tenant_request import TenantRequest
from foresail.console.report.figures import Figures, LastCheck
from foresail.console.report.worth import Worth, worths_of
from foresail.console.timeline import Point, What

_WORTHS = {
    Worth.COMPLETE: What.COMPLETE,
    Worth.LACKING: What.LACKING,
    Worth.FAILED: What.FAILED,
    Worth.UNJUDGED: What.UNJUDGED,
}
_LONGEST = 200


def points_of(figures: Figures, backups: Iterable[TenantRequest], restores: Iterable[TenantRequest]) -> list[Point]:
    """Return every point; a backup of a team is one point, also where its Velero Backup was read as well."""
    now = figures.instant
    worths = worths_of(figures)
    runs = {run.name: run for of_schedule in figures.runs.values() for run in of_schedule}
    points = list[Point]()
    for request in backups:
        name = request.key.name if request.key.name in runs else request.made.name
        runs.pop(name, None)
        points += _of_backup(request, worths.get(name), now)
    for run in runs.values():
        worth, note = worths[run.name]
        points.append(Point(run.started, _WORTHS[worth], run.name, (), note[:_LONGEST]))
        if run.goes is not None and run.goes > now:
            points.append(Point(run.goes, What.DELETED, run.name, (), "by retention, or the end of its time to live"))
    points += _of_restores(restores)
    points += (Point(planned.at, What.PLANNED, planned.schedule) for planned in figures.planned or figures.upcoming)
    return [*points, *_of_checks(figures.checks or ())]


def _what(request: TenantRequest, worth: tuple[Worth, str] | None) -> tuple[What, str]:
    """Return what a team's backup is, and why; complete only if coverage says so."""
    if request.is_open:
        return What.RUNNING, ""
    if request.is_refused:
        return What.REFUSED, _because(request)
    if request.incomplete is not None:
        return What.LACKING, request.incomplete.message
    if worth is not None:
        return _WORTHS[worth[0]], worth[1]
    return (What.FAILED, request.velero.phase) if request.velero.phase in FAILED_PHASES else (What.UNJUDGED, "")


def _because(request: TenantRequest) -> str:
    return request.blocking.message if request.blocking is not None else ""


def _of_backup(request: TenantRequest, worth: tuple[Worth, str] | None, now: datetime) -> Iterator[Point]:
    at = request.started or request.request.metadata.creation_timestamp
    if at is None:
        return
    path = ("ns", request.key.namespace, request.family.word, request.key.name)
    what, note = _what(request, worth)
    yield Point(at, what, request.key.name, path, note[:_LONGEST])
    mark = request.mark
    expires = instant(request.velero.expiration or "")
    goes = min((at for at in (mark.delete_after, expires) if at is not None), default=None)
    if goes is not None and goes > now and not mark.is_kept:
        why = mark.why if goes == mark.delete_after else "its time to live ends"
        yield Point(goes, What.DELETED, request.key.name, path, why[:_LONGEST])


def _of_restores(restores: Iterable[TenantRequest]) -> Iterator[Point]:
    for request in restores:
        at = request.started or request.request.metadata.creation_timestamp
        if at is None:
            continue
        what = What.RESTORE_FAILED if request.velero.phase in FAILED_PHASES else What.RESTORED
        note = "runs" if request.is_open else request.velero.phase
        if request.is_refused:
            what, note = What.RESTORE_REFUSED, _because(request)[:_LONGEST]
        yield Point(
            at, what, request.key.name, ("ns", request.key.namespace, request.family.word, request.key.name), note
        )


def _of_checks(checks: Iterable[LastCheck]) -> Iterator[Point]:
    for check in checks:
        at = check.last.completed if check.last is not None else None
        if check.last is not None and at is not None:
            what = What.CHECK_FAILED if check.has_failed else What.PASSED
            yield Point(
                at, what, check.name, ("ns", check.namespace, "check", check.name), check.last.reason[:_LONGEST]
            )
