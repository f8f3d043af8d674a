"""Why it failed: Velero's results of a backup or restore are read once, and shown in its condition from then on.

    failed, and not explained → a Velero DownloadRequest → its URL → a background read → the condition → done

Each step is found by what the one before has left, so a crash between any two is like a pause. That the results were
read is told by the condition itself: while it is not, they are asked for again.
"""

from datetime import datetime, timedelta

from foresail.api import velero
from foresail.plan import Key, Patch, Plan, Subject
from foresail.selfservice.requests import build, outcome, rules
from foresail.selfservice.requests.file_requests import FileRequests, ask, delete_file_request, file_name, silent_at
from foresail.selfservice.requests.status import SUCCEEDED, Said, patch_body, told
from foresail.selfservice.results.cause import explained, told_cause, unreadable
from foresail.selfservice.results.observe import ResultsSeen, Wanted
from foresail.selfservice.rows.download_requests import DownloadRequestRow, File
from foresail.selfservice.rows.namespaces import NamespaceRow
from foresail.selfservice.rows.requests import RequestRow

PAUSES = (timedelta(seconds=5), timedelta(seconds=20), timedelta(minutes=1))
"""After which what could not be read is tried again; after the last of them it is given up."""

PREFIX = "results-"
"""How the names of the DownloadRequests for results begin."""

SILENCE = timedelta(minutes=10)
"""After which Velero is not waited for any more."""

FAILED = (velero.FAILED, velero.PARTIALLY_FAILED)
"""The phases of what has results that say why."""


def decide(seen: ResultsSeen, now: datetime) -> Plan:
    """Say what is to be done about the results of a request now, and when to reconcile next."""
    request, namespace = seen.request, seen.namespace
    said = unexplained(seen)
    if said is None or request is None or namespace is None:
        return Plan(file_requests(seen).delete_all())  # it is over
    answer = file_requests(seen).current
    if answer is None:
        return ask_velero(seen, request, namespace)
    if answer.target != file_of(seen, request):
        # Its URL would be of something else: ask again.
        return Plan((delete_file_request(answer),), subject=_subject(seen, request))
    cause = cause_of(seen, request, said, answer, now)
    if cause is None:
        wish = wanted(seen, now)
        return Plan(wake_at=next_look(seen, answer, now), reads=() if wish is None else (wish,))
    return explain(seen, request, explained(said, cause), now)


def wanted(seen: ResultsSeen, now: datetime) -> Wanted | None:
    """Return what is to be sent for now; None if nothing, or not yet."""
    answer = file_requests(seen).current
    if unexplained(seen) is None or seen.request is None or answer is None or not answer.url:
        return None
    if answer.target != file_of(seen, seen.request):
        return None
    wish, read_result = Wanted(answer.url, seen.authority, seen.request.key.namespace), seen.read_result
    if read_result is None or read_result.query.url != wish.url:
        return wish
    if read_result.found.lines is not None or read_result.attempts > len(PAUSES):
        return None
    return wish if read_result.started + PAUSES[read_result.attempts - 1] <= now else None


def is_over(seen: ResultsSeen) -> bool:
    """Whether nothing of the results is needed any more."""
    return unexplained(seen) is None


# What is known


def unexplained(seen: ResultsSeen) -> Said | None:
    """Return what is in the condition of a request that has failed and does not say why; None if there is none."""
    request, namespace, row = seen.request, seen.namespace, seen.velero
    if request is None or namespace is None or row is None or _is_leaving(request, namespace):
        return None
    if row.phase not in FAILED or not rules.is_owned(request, namespace, row):
        return None
    if seen.backup is None or seen.backup.namespace_uid != namespace.uid:
        return None
    said, stands = outcome.outcome(seen.family, row.mirror), request.status.condition(SUCCEEDED)
    if said is None or stands is None or (stands.status, stands.reason) != (said.status, said.reason.value):
        return None  # the condition follows, and with it the next look
    return None if outcome.kept(stands, said) is not said else said


def _is_leaving(request: RequestRow, namespace: NamespaceRow) -> bool:
    return namespace.is_going or request.is_going or request.is_to_be_deleted or request.is_to_be_forced


def file_requests(seen: ResultsSeen) -> FileRequests:
    """Return the DownloadRequests that were made for the results of a request of this name."""
    return FileRequests(PREFIX, seen.request.uid if seen.request is not None else "", seen.answers)


def file_of(seen: ResultsSeen, request: RequestRow) -> File:
    """Return the file that Velero is asked for."""
    return File(f"{seen.family.velero.name}Results", build.nacuuid(request))


def cause_of(
    seen: ResultsSeen, request: RequestRow, said: Said, answer: DownloadRequestRow, now: datetime
) -> str | None:
    """Return in words why it failed, or why that cannot be told; None while there is hope."""
    family, key, read_result = seen.family, request.key, seen.read_result
    silent = silent_at(answer, SILENCE)
    if silent is not None:
        return unreadable("Velero has not said where they are", family, key) if silent <= now else None
    if read_result is None or read_result.query.url != answer.url:
        return None
    if read_result.found.lines is not None:
        return told_cause(read_result.found.lines, said, family, key)
    return unreadable(read_result.found.problem, family, key) if read_result.attempts > len(PAUSES) else None


def next_look(seen: ResultsSeen, answer: DownloadRequestRow, now: datetime) -> datetime | None:
    """Return when to reconcile next, unless a background read or Velero wakes the key before."""
    silent = silent_at(answer, SILENCE)
    if silent is not None:
        return silent
    read_result = seen.read_result
    if read_result is None or read_result.query.url != answer.url:
        return None
    again = read_result.started + PAUSES[read_result.attempts - 1]
    return again if again > now else None


# What is done


def ask_velero(seen: ResultsSeen, request: RequestRow, namespace: NamespaceRow) -> Plan:
    """Make Velero's DownloadRequest, with the record of whose it is."""
    file = file_of(seen, request)
    key = Key(seen.velero_namespace, file_name(PREFIX, request.uid))
    record = build.record(seen.family, request, namespace)
    create = ask(key, file, record, {seen.family.nacuuid_label: file.name})
    return Plan((*file_requests(seen).delete_obsolete(), create), subject=_subject(seen, request))


def explain(seen: ResultsSeen, request: RequestRow, said: Said, now: datetime) -> Plan:
    """Write the cause into the condition, and take away what was needed for it: in this order."""
    after = told(request.status, said, request.generation, now)
    body = {"status": patch_body(seen.family, request.status, after)}
    status = Patch(seen.family.kind, request.key, body, request.version, "status")
    return Plan((status, *file_requests(seen).delete_all()), subject=_subject(seen, request))


def _subject(seen: ResultsSeen, request: RequestRow) -> Subject:
    return Subject(seen.family.kind, request.key, request.uid)
