"""The cause of a failure: Velero's results are read once and reported in the condition.

    failed, and not explained → a Velero DownloadRequest → its URL → a background read → the condition → done

Each step finds what the one before has left, so a crash between any two is only a delay. The condition itself
records that the results were read: without it, they are requested again.
"""

from datetime import datetime, timedelta

from foresail.api import velero
from foresail.plan import Key, Patch, Plan, Subject
from foresail.selfservice.requests import build, outcome
from foresail.selfservice.requests.file_requests import FileRequests, ask, delete_file_request, file_name, silent_at
from foresail.selfservice.requests.status import SUCCEEDED, NewCondition, patch_body, set_condition
from foresail.selfservice.results.cause import explained, reported_cause, unreadable
from foresail.selfservice.results.observe import ResultsView, Wanted
from foresail.selfservice.rows.download_requests import DownloadRequestRow, File
from foresail.selfservice.rows.requests import RequestRow
from foresail.tenancy.namespaces import NamespaceRow
from foresail.tenancy.records import is_owned, nacuuid

PAUSES = (timedelta(seconds=5), timedelta(seconds=20), timedelta(minutes=1))
"""Delays before the next attempt to read results; there is none after the last."""

PREFIX = "results-"
"""The prefix of the DownloadRequests for results."""

SILENCE = timedelta(minutes=10)
"""How long to wait for Velero."""

FAILED = (velero.FAILED, velero.PARTIALLY_FAILED)
"""The phases that have results with a cause."""


def decide(view: ResultsView, now: datetime) -> Plan:
    """Return the Plan for the results of a request."""
    request, namespace = view.request, view.namespace
    expected = unexplained(view)
    if expected is None or request is None or namespace is None:
        return Plan(file_requests(view).delete_all())  # it is over
    answer = file_requests(view).current
    if answer is None:
        return ask_velero(view, request, namespace)
    if answer.target != file_of(view, request):
        # Its URL would be of something else: ask again.
        return Plan((delete_file_request(answer),), subject=_subject(view, request))
    cause = cause_of(view, request, expected, answer, now)
    if cause is None:
        query = wanted(view, now)
        return Plan(wake_at=requeue_at(view, answer, now), reads=() if query is None else (query,))
    return explain(view, request, explained(expected, cause), now)


def wanted(view: ResultsView, now: datetime) -> Wanted | None:
    """Return the read to start now; None if none is due."""
    answer = file_requests(view).current
    if unexplained(view) is None or view.request is None or answer is None or not answer.url:
        return None
    if answer.target != file_of(view, view.request):
        return None
    query, read_result = Wanted(answer.url, view.authority, view.request.key.namespace), view.read_result
    if read_result is None or read_result.query.url != query.url:
        return query
    if read_result.found.lines is not None or read_result.attempts > len(PAUSES):
        return None
    return query if read_result.started + PAUSES[read_result.attempts - 1] <= now else None


def is_over(view: ResultsView) -> bool:
    """Whether the results are no longer needed."""
    return unexplained(view) is None


# State


def unexplained(view: ResultsView) -> NewCondition | None:
    """Return the condition of a failed request without a cause; None if there is none."""
    request, namespace, row = view.request, view.namespace, view.velero
    if request is None or namespace is None or row is None or _is_leaving(request, namespace):
        return None
    if row.phase not in FAILED or not is_owned(request, namespace, row):
        return None
    if view.backup is None or view.backup.namespace_uid != namespace.uid:
        return None
    expected, current = outcome.outcome(view.family, row.mirror), request.status.condition(SUCCEEDED)
    if (
        expected is None
        or current is None
        or (current.status, current.reason) != (expected.status, expected.reason.value)
    ):
        return None  # the condition follows and requeues it
    return None if outcome.kept(current, expected) is not expected else expected


def _is_leaving(request: RequestRow, namespace: NamespaceRow) -> bool:
    return namespace.is_terminating or request.is_terminating or request.is_to_be_deleted or request.is_to_be_forced


def file_requests(view: ResultsView) -> FileRequests:
    """Return the DownloadRequests for the results of a request with this name."""
    return FileRequests(PREFIX, view.request.uid if view.request is not None else "", view.answers)


def file_of(view: ResultsView, request: RequestRow) -> File:
    """Return the file that Velero is asked for."""
    return File(f"{view.family.velero.name}Results", nacuuid(request))


def cause_of(
    view: ResultsView, request: RequestRow, expected: NewCondition, answer: DownloadRequestRow, now: datetime
) -> str | None:
    """Return in words why it failed, or why that cannot be told; None while there is hope."""
    family, key, read_result = view.family, request.key, view.read_result
    silent = silent_at(answer, SILENCE)
    if silent is not None:
        return unreadable("Velero did not provide their download URL", family, key) if silent <= now else None
    if read_result is None or read_result.query.url != answer.url:
        return None
    if read_result.found.lines is not None:
        return reported_cause(read_result.found.lines, expected, family, key)
    return unreadable(read_result.found.problem, family, key) if read_result.attempts > len(PAUSES) else None


def requeue_at(view: ResultsView, answer: DownloadRequestRow, now: datetime) -> datetime | None:
    """Return when to reconcile next, unless a background read or Velero wakes the key before."""
    silent = silent_at(answer, SILENCE)
    if silent is not None:
        return silent
    read_result = view.read_result
    if read_result is None or read_result.query.url != answer.url:
        return None
    again = read_result.started + PAUSES[read_result.attempts - 1]
    return again if again > now else None


# What is done


def ask_velero(view: ResultsView, request: RequestRow, namespace: NamespaceRow) -> Plan:
    """Make Velero's DownloadRequest, with the record of whose it is."""
    file = file_of(view, request)
    key = Key(view.velero_namespace, file_name(PREFIX, request.uid))
    record = build.record(view.family, request, namespace)
    create = ask(key, file, record, {view.family.nacuuid_label: file.name})
    return Plan((*file_requests(view).delete_obsolete(), create), subject=_subject(view, request))


def explain(view: ResultsView, request: RequestRow, expected: NewCondition, now: datetime) -> Plan:
    """Write the cause into the condition, and take away what was needed for it: in this order."""
    after = set_condition(request.status, expected, request.generation, now)
    body = {"status": patch_body(view.family, request.status, after)}
    status = Patch(view.family.kind, request.key, body, request.version, "status")
    return Plan((status, *file_requests(view).delete_all()), subject=_subject(view, request))


def _subject(view: ResultsView, request: RequestRow) -> Subject:
    return Subject(view.family.kind, request.key, request.uid)
