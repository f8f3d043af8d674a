"""The cause of a failure, and what a restore did: Velero's files are read once and reported in the status.

    ended, and not explained → Velero DownloadRequests → their URLs → a background read → the status → done

Each step finds what the one before has left, so a crash between any two is only a delay. The condition itself
records that the results were read: without it, they are requested again.
"""

from collections.abc import Mapping
from datetime import datetime, timedelta

import msgspec

from foresail.api import velero
from foresail.plan import Delete, Key, Patch, Plan, Subject
from foresail.selfservice.families import RESTORES, Family
from foresail.selfservice.requests import build, outcome, points
from foresail.selfservice.requests.file_requests import FileRequests, ask, delete_file_request, file_name, silent_at
from foresail.selfservice.requests.outcome import beginning, cut
from foresail.selfservice.requests.status import FALSE, SUCCEEDED, NewCondition, patch_body, set_condition
from foresail.selfservice.results.file import Lines
from foresail.selfservice.results.restored import summary
from foresail.selfservice.results.view import Found, ResultsView, Wanted
from foresail.selfservice.rows.requests import RequestRow, Status
from foresail.selfservice.rows.velero import DownloadRequestRow, File, glimpse
from foresail.tenancy.namespaces import NamespaceRow
from foresail.tenancy.records import is_owned, nacuuid

MOST_MESSAGE_BYTES = 2048


def explained(condition: NewCondition, cause: str) -> NewCondition:
    """Return the condition with its cause, in at most 2 KiB."""
    message = beginning(condition) + cause if cause else condition.message
    return msgspec.structs.replace(condition, message=cut(message, MOST_MESSAGE_BYTES))


def told_first(condition: NewCondition, summary: str) -> NewCondition:
    """Return the condition with what a restore did after its outcome, unless that is too long."""
    longer = msgspec.structs.replace(condition, message=beginning(condition) + summary)
    return longer if beginning(longer).startswith(longer.message) else condition


def reported_cause(lines: Lines, condition: NewCondition, family: Family, request: RequestRow) -> str:
    """Return the cause from Velero's results, and the command that shows more.

    Of a restore from a backup that others share, what is about no namespace is not even counted.
    """
    begin = "Velero reports: "
    lines = msgspec.structs.replace(lines, others=0) if request.point else lines
    end = _where_more(lines, family, request)
    room = MOST_MESSAGE_BYTES - sum(len(text.encode()) for text in (beginning(condition), begin, end))
    shown = cut("; ".join(lines.own), room)
    return f"{begin}{shown}{end}" if shown else end.removeprefix("; ")


def unreadable(problem: str, family: Family, request: RequestRow) -> str:
    """Report that the cause could not be read, and the command that shows it."""
    return f"Velero's results could not be read ({problem}). {_log(family, request)}"


def _where_more(lines: Lines, family: Family, request: RequestRow) -> str:
    if not lines.own and not lines.others:
        return f"Velero's results do not mention it. {_log(family, request)}"
    left = [f"{lines.more} more"] if lines.more else []
    if lines.others:
        left.append(f"{lines.others} {'error' if lines.others == 1 else 'errors'} without a namespace")
    if request.point:
        return f"; {left[0]}" if left else ""
    command = f"{_command(family, request.key)} --results"
    return f"; {' and '.join(left)}. Read all with {command}" if left else ""


def _log(family: Family, request: RequestRow) -> str:
    if request.point:  # its log names other namespaces
        return f"Ask a cluster administrator for: velero restore logs {nacuuid(request)}"
    return f"Read the log with {_command(family, request.key)}"


def _command(family: Family, key: Key) -> str:
    return f"foresail {family.word} logs {key.name} -n {key.namespace}"


PAUSES = (timedelta(seconds=5), timedelta(seconds=20), timedelta(minutes=1))
"""Delays before the next attempt to read results; there is none after the last."""

PREFIX = "results-"
"""The prefix of the DownloadRequests for results."""

LIST_PREFIX = f"{PREFIX}list-"
"""The prefix of the DownloadRequests for lists of restored objects."""

LIST = "RestoreResourceList"
"""The file with what a restore did to each object."""

RECENTLY = timedelta(hours=1)
"""How long ago a complete restore may have ended to be looked into; earlier ones would all be read at an upgrade."""

SILENCE = timedelta(minutes=10)
"""How long to wait for Velero."""

FAILED = (velero.FAILED, velero.PARTIALLY_FAILED)
"""The phases that have results with a cause."""


def decide(view: ResultsView, now: datetime) -> Plan:
    """Return the Plan for the results of a request."""
    request = view.request
    namespace = view.namespace
    expected = unexplained(view)
    if expected is None or request is None or namespace is None:
        return Plan(_delete_all(view))  # it is over
    files = files_of(view, request)
    answers = current(view)
    if not answers and _ended_long_ago(view, now):
        return Plan(_delete_all(view))
    missing = {prefix: file for prefix, file in files.items() if prefix not in answers}
    if missing:
        return ask_velero(view, request, namespace, missing)
    strange = [answer for prefix, answer in answers.items() if answer.target != files.get(prefix)]
    if strange:
        # Their URLs would be of something else: ask again.
        return Plan(tuple(map(delete_file_request, strange)), subject=_subject(view, request))
    after = after_reading(view, request, expected, now)
    if after is None:
        query = wanted(view, now)
        return Plan(wake_at=requeue_at(view, now), reads=() if query is None else (query,))
    return explain(view, request, after)


def wanted(view: ResultsView, now: datetime) -> Wanted | None:
    """Return the read to start now; None if none is due."""
    query = query_of(view)
    read_result = view.read_result
    if query is None or read_result is None or not _is_same(read_result.query, query):
        return query
    if read_result.attempts > len(PAUSES) or tells(unexplained(view), read_result.answer):
        return None
    return query if read_result.started + PAUSES[read_result.attempts - 1] <= now else None


def query_of(view: ResultsView) -> Wanted | None:
    """Return what is read; None as long as Velero has not answered for all files."""
    request = view.request
    if unexplained(view) is None or request is None:
        return None
    files = files_of(view, request)
    answers = current(view)
    urls = {prefix: answers[prefix].url for prefix, file in files.items() if _is_answer(answers.get(prefix), file)}
    if not all(urls.get(prefix) for prefix in files):
        return None
    namespace = request.target or request.key.namespace  # Velero reports where it creates objects
    return Wanted(urls.get(PREFIX, ""), view.authority, namespace, urls.get(LIST_PREFIX, ""))


def _is_answer(answer: DownloadRequestRow | None, file: File) -> bool:
    return answer is not None and answer.target == file


def _is_same(query: Wanted, other: Wanted) -> bool:
    return (query.url, query.list_url) == (other.url, other.list_url)


def is_over(view: ResultsView) -> bool:
    """Whether the results are no longer needed."""
    return unexplained(view) is None


# State


def unexplained(view: ResultsView) -> NewCondition | None:
    """Return the condition of a request that ended and is not explained; None if there is none."""
    request = view.request
    namespace = view.namespace
    row = view.velero
    if request is None or namespace is None or row is None or _is_leaving(request, namespace):
        return None
    if not has_results(view.family, row.phase) or not is_owned(request, namespace, row):
        return None
    if not points.is_source(view.backup, request, namespace):
        return None
    expected = outcome.outcome(view.family, row.mirror)
    current = request.status.condition(SUCCEEDED)
    if (
        expected is None
        or not outcome.has_files(expected)
        or current is None
        or (current.status, current.reason) != (expected.status, expected.reason.value)
    ):
        return None  # the condition follows and requeues it
    return None if outcome.kept(current, expected) is not expected else expected


def _is_leaving(request: RequestRow, namespace: NamespaceRow) -> bool:
    return namespace.is_terminating or request.is_terminating or request.is_to_be_deleted or request.is_to_be_forced


def has_results(family: Family, phase: str) -> bool:
    """Whether something that ended like this is looked into."""
    return phase in FAILED or (family is RESTORES and phase == velero.COMPLETED)


def file_requests(view: ResultsView) -> tuple[FileRequests, ...]:
    """Return the DownloadRequests for the files about a request with this name."""
    uid = view.request.uid if view.request is not None else ""
    return tuple(FileRequests(prefix, uid, view.answers) for prefix in (PREFIX, LIST_PREFIX))


def current(view: ResultsView) -> dict[str, DownloadRequestRow]:
    """Return the DownloadRequests for this request, by prefix."""
    asked = ((requests.prefix, requests.current) for requests in file_requests(view))
    return {prefix: answer for prefix, answer in asked if answer is not None}


def _delete_all(view: ResultsView) -> tuple[Delete, ...]:
    return tuple(delete for requests in file_requests(view) for delete in requests.delete_all())


def files_of(view: ResultsView, request: RequestRow) -> dict[str, File]:
    """Return the files that Velero is asked for, by prefix; a restore without warnings needs no results."""
    name = nacuuid(request)
    row = view.velero
    files = {PREFIX: File(f"{view.family.velero.name}Results", name)}
    if view.family is not RESTORES or row is None:
        return files
    listed = {LIST_PREFIX: File(LIST, name)}
    return {**files, **listed} if row.phase in FAILED or glimpse(row.mirror).warnings else listed


def _ended_long_ago(view: ResultsView, now: datetime) -> bool:
    row = view.velero
    ended = glimpse(row.mirror).completion_timestamp if row is not None else None
    return row is not None and row.phase not in FAILED and (ended is None or ended + RECENTLY < now)


def after_reading(view: ResultsView, request: RequestRow, expected: NewCondition, now: datetime) -> Status | None:
    """Return the status that says what happened, or why that cannot be told; None while there is hope."""
    family = view.family
    read_result = view.read_result
    if (silent := _silent_at(view)) is not None:
        cause = unreadable("Velero did not provide their download URL", family, request)
        return _explained(request, explained(expected, cause), now) if silent <= now else None
    query = query_of(view)
    if read_result is None or query is None or not _is_same(read_result.query, query):
        return None
    results = read_result.answer
    if not tells(expected, results):
        cause = unreadable(results.problem, family, request)
        given_up = read_result.attempts > len(PAUSES)
        return _explained(request, explained(expected, cause), now) if given_up else None
    status = msgspec.structs.replace(request.status, restored=results.restored)
    told = expected if results.restored is None else told_first(expected, summary(results.restored))
    cause = ""
    if expected.status == FALSE and results.lines is not None:
        cause = reported_cause(results.lines, told, family, request)
    return set_condition(status, explained(told, cause), request.generation, now)


def tells(expected: NewCondition | None, results: Found) -> bool:
    """Whether what was read explains the outcome: a failure needs its lines, a complete restore its objects."""
    has_cause = expected is not None and expected.status == FALSE and results.lines is not None
    return has_cause or results.restored is not None


def _explained(request: RequestRow, condition: NewCondition, now: datetime) -> Status:
    return set_condition(request.status, condition, request.generation, now)


def _silent_at(view: ResultsView) -> datetime | None:
    """Return when Velero counts as silent; None if it has answered for all files."""
    times = [silent_at(answer, SILENCE) for answer in current(view).values()]
    return min((at for at in times if at is not None), default=None)


def requeue_at(view: ResultsView, now: datetime) -> datetime | None:
    """Return when to reconcile next, unless a background read or Velero wakes the key before."""
    silent = _silent_at(view)
    if silent is not None:
        return silent
    read_result = view.read_result
    query = query_of(view)
    if read_result is None or query is None or not _is_same(read_result.query, query):
        return None
    again = read_result.started + PAUSES[read_result.attempts - 1]
    return again if again > now else None


# What is done


def ask_velero(view: ResultsView, request: RequestRow, namespace: NamespaceRow, files: Mapping[str, File]) -> Plan:
    """Make Velero's DownloadRequests, with the record of whose they are."""
    record = build.record(view.family, request, namespace)
    creates = [
        ask(
            Key(view.velero_namespace, file_name(prefix, request.uid)),
            file,
            record,
            {view.family.nacuuid_label: file.name},
        )
        for prefix, file in files.items()
    ]
    obsolete = [delete for requests in file_requests(view) for delete in requests.delete_obsolete()]
    return Plan((*obsolete, *creates), subject=_subject(view, request))


def explain(view: ResultsView, request: RequestRow, after: Status) -> Plan:
    """Write what happened into the status, and take away what was needed for it: in this order."""
    body = {"status": patch_body(view.family, request.status, after)}
    status = Patch(view.family.kind, request.key, body, request.version, "status")
    return Plan((status, *_delete_all(view)), subject=_subject(view, request))


def _subject(view: ResultsView, request: RequestRow) -> Subject:
    return Subject(view.family.kind, request.key, request.uid)
