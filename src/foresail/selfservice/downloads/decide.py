"""NonAdminDownloadRequests: whether one is served, which file Velero provides, and when the request expires.

Whose a file is, is read from the record on Velero's object, never from what a tenant wrote or from a status. Where the
file lies, Velero knows from its own Backup: nothing of a tenant's spec leads there.
"""

from datetime import datetime, timedelta
from typing import Any

import msgspec

from foresail.api import nonadmin, velero
from foresail.api.instants import stamp
from foresail.api.marks import NAMESPACE_UID, REQUEST_UID
from foresail.api.nonadmin import NON_ADMIN_DOWNLOAD_REQUEST
from foresail.plan import Action, Delete, Key, Level, Patch, Plan, Subject
from foresail.reporting import Because, merge_patch, note
from foresail.selfservice.access.view import SecretsCheck
from foresail.selfservice.downloads.targets import TARGETS, Rule, is_contents, rule_of
from foresail.selfservice.downloads.view import NACUUID_LABEL, Asks, DownloadRow, DownloadView
from foresail.selfservice.families import BACKUPS, RESTORES, Family
from foresail.selfservice.policy.quotas import no_policy
from foresail.selfservice.reasons import Reason
from foresail.selfservice.requests.authorization import FRESH
from foresail.selfservice.requests.file_requests import (
    LIFETIME,
    FileRequests,
    ask,
    delete_file_request,
    expires_at,
    file_name,
    silent_at,
)
from foresail.selfservice.requests.rules import absence_counts_at, is_refused
from foresail.selfservice.requests.status import (
    ACCEPTED,
    BACKING_OFF,
    CREATED,
    FALSE,
    NEW,
    TRUE,
    NewCondition,
    changed,
    forward,
    set_condition,
)
from foresail.selfservice.rows.requests import Copy, RequestRow, Status
from foresail.selfservice.rows.velero import ORIGIN_NAME, ORIGIN_NAMESPACE, DownloadRequestRow, File, VeleroRow
from foresail.selfservice.specs.values import shown
from foresail.tenancy.namespaces import NamespaceRow
from foresail.tenancy.records import is_owned
from foresail.tenancy.requester import is_system_account

PROCESSED = "Processed"
RETRY = timedelta(seconds=10)
"""The delay before a review without an answer is repeated."""


def contents_access(view: DownloadView, request: DownloadRow, now: datetime) -> NewCondition | Plan | None:
    """Return None if the requester may have contents; else why not, or the Plan that asks the API server first.

    The answer is at most a minute old whenever Velero is asked for a file, or its URL is shown.
    """
    problem = _requester_problem(view, request)
    if problem is not None:
        return problem
    if _is_denied(request):
        return _denied(request)
    query = _query(request)
    result = view.read_result
    if result is None or result.query != query or result.started + FRESH < now:
        return Plan(reads=(query,))
    if not result.answer.problem:
        return None if result.answer.is_allowed else _denied(request)
    again = result.started + RETRY
    return Plan(reads=(query,)) if again <= now else Plan(wake_at=again)


def _query(request: DownloadRow) -> SecretsCheck:
    return SecretsCheck(request.key.namespace, request.requester, request.requester_groups)


def _is_denied(request: DownloadRow) -> bool:
    """Whether this spec was denied; it is not reviewed again until it changes."""
    said = request.status.condition(PROCESSED)
    is_current = said is not None and said.observed_generation == request.generation
    return is_current and said is not None and said.reason == Reason.CONTENTS_DENIED


def _denied(request: DownloadRow) -> NewCondition:
    text = f"{request.requester} may not get Secrets in namespace {request.key.namespace}"
    return _refusal(f"{text}, and the contents of a backup hold them; create another request as a user who may")


def _requester_problem(view: DownloadView, request: DownloadRow) -> NewCondition | None:
    if not request.requester:
        text = "The request has no recorded requester, so access to Secrets cannot be checked"
        return _refusal(f"{text}; ask a cluster administrator to install the admission policies")
    if is_system_account(request.requester, view.reserved):
        return _refusal(f"{request.requester} is a system account; create the request as yourself")
    return None


def _refusal(text: str) -> NewCondition:
    return NewCondition(PROCESSED, FALSE, Reason.CONTENTS_DENIED, text)


NOT_AVAILABLE = {BACKUPS.kind: "NonAdminBackupNotAvailable", RESTORES.kind: "NonAdminRestoreNotAvailable"}
"""The conditions of the existing controller; only one is set at a time."""


PREFIX = "nadr-"
"""How the names of the DownloadRequests for tenants begin."""

SILENCE = timedelta(minutes=1)
"""The time after which the status reports that Velero does not answer."""

MOST_UNANSWERED = 10
"""How many files of one namespace Velero is asked for at a time: it starts a process for each."""

HAS_FILES = (velero.COMPLETED, velero.PARTIALLY_FAILED, velero.FAILED)
"""The phases in which Velero has written its files."""


def family_of(kind: str) -> Family:
    """Return whether a file is about a backup or about a restore."""
    return RESTORES if kind.startswith("Restore") else BACKUPS


def decide(view: DownloadView, now: datetime) -> Plan:
    """Return the Plan for a NonAdminDownloadRequest."""
    request = view.request
    namespace = view.namespace
    obsolete = file_requests(view).delete_obsolete()
    if obsolete:
        return Plan(obsolete)
    if request is None or request.is_terminating or namespace is None or namespace.is_terminating:
        return Plan()
    if request.url:
        return keep_until_it_expires(request, now)
    return serve(view, request, namespace, now)


def serve(view: DownloadView, request: DownloadRow, namespace: NamespaceRow, now: datetime) -> Plan:
    """Request a file from Velero and show its answer, or report why not; ownership is checked each time."""
    if not view.has_policy:
        why = no_policy(request.key.namespace)
        return _plan(request, refused(request, NewCondition(PROCESSED, FALSE, why.reason, why.message), now))
    if view.about is not None and view.velero is None:
        at = absence_counts_at(view.about)
        if at is not None and now < at:
            return Plan(wake_at=at)  # it may just have been created
    wanted = file_of(view, request, namespace)
    if isinstance(wanted, NewCondition):
        return _plan(request, refused(request, wanted, now))
    return hand_out(view, request, namespace, wanted, now)


def hand_out(view: DownloadView, request: DownloadRow, namespace: NamespaceRow, wanted: File, now: datetime) -> Plan:
    """Ask Velero for a file of the tenant's own and show its answer; for contents, check access first."""
    access = contents_access(view, request, now) if is_contents(wanted.kind) else None
    if isinstance(access, NewCondition):
        return _plan(request, refused(request, access, now))
    if access is not None:
        return access
    answer = file_requests(view).current
    if answer is None and view.unanswered >= MOST_UNANSWERED:
        text = f"Limit of {MOST_UNANSWERED} concurrent downloads reached; starts automatically when Velero answers one"
        return _plan(request, refused(request, NewCondition(PROCESSED, FALSE, Reason.WAITING_FOR_TURN, text), now))
    if answer is None:
        return ask_velero(view, request, namespace, wanted, now)
    if answer.target != wanted:
        # Its URL would be of something else: ask again.
        return Plan((delete_file_request(answer),), subject=_subject(request))
    return show_answer(request, answer, now)


def is_over(view: DownloadView) -> bool:
    """Whether no answer about access is needed any more."""
    return view.request is None or bool(view.request.url) or not is_contents(view.request.target.kind)


def keep_until_it_expires(request: DownloadRow, now: datetime) -> Plan:
    """Keep a request while its URL is valid."""
    until = request.expires or request.created + LIFETIME
    return expire(request) if until <= now else Plan(wake_at=until)


def expire(request: DownloadRow) -> Plan:
    """Delete a request whose URL has expired."""
    kind = NON_ADMIN_DOWNLOAD_REQUEST.name
    text = f"The download URL has expired; deleting {kind} {request.key.name}. Create a new one to download again"
    report = note(_subject(request), Because(Reason.DOWNLOAD_EXPIRED, text, Level.NORMAL))
    gone = Delete(NON_ADMIN_DOWNLOAD_REQUEST, request.key, request.uid)
    return Plan((gone,), notes=(report,), subject=_subject(request))


# Whether it is served


def file_of(view: DownloadView, request: DownloadRow, namespace: NamespaceRow) -> File | NewCondition:
    """Return the file to request from Velero, with the name of Velero's object, or why there is none."""
    kind = request.target.kind
    name = request.target.name
    if rule_of(kind) is not Rule.SERVED and not (is_contents(kind) and view.allows_contents):
        return NewCondition(PROCESSED, FALSE, Reason.TARGET_NOT_SERVED, _not_served(kind))
    family = family_of(kind)
    about = view.about
    if about is None:
        return _missing(family, f"{family.kind.name} {shown(name)} does not exist in namespace {request.key.namespace}")
    row = view.velero
    if about.point or row is None:
        return _of_others_too(about) if about.point else _not_there(family, about)
    if not is_owned(about, namespace, row):
        return _missing(family, f"{_made(family)} of {shown(name)} was not created for it")
    if view.backup is None or view.backup.namespace_uid != namespace.uid:
        return _missing(
            BACKUPS, f"The Velero Backup of {shown(name)} does not exist or does not belong to this namespace"
        )
    return _not_ready(family, row, name) or File(kind, row.key.name)


def _not_there(family: Family, about: RequestRow) -> NewCondition:
    """Report why there is no Velero object, and whether it may still come."""
    name = about.key.name
    if about.status.phase in ("", NEW, BACKING_OFF):
        if is_refused(family, about.status.phase, about.status.condition(ACCEPTED)):
            return _missing(family, f"{family.kind.name} {name} was refused; see its conditions")
        return _waits(f"{family.kind.name} {name} has not started; the download starts when it finishes")
    return _missing(family, f"{_made(family)} of {name} does not exist")


def _not_ready(family: Family, row: VeleroRow, name: str) -> NewCondition | None:
    """Report why Velero has not written the file; None if it has."""
    if row.phase in HAS_FILES:
        return None
    if row.is_terminal:
        return _missing(family, f"{family.kind.name} {name} is {row.phase}, so there is no file to download")
    return _waits(f"{family.kind.name} {name} is {row.phase or NEW}; the download starts when it finishes")


def _made(family: Family) -> str:
    return f"The Velero {family.velero.name}"


def _missing(family: Family, text: str) -> NewCondition:
    return NewCondition(NOT_AVAILABLE[family.kind], TRUE, Reason.ERROR, text)


def _waits(text: str) -> NewCondition:
    return NewCondition(PROCESSED, FALSE, Reason.WAITING, text)


def _not_served(kind: str) -> str:
    if is_contents(kind):
        holds = TARGETS[kind].holds
        return f"{kind} holds {holds}; ask a cluster administrator for downloads.contents: Allowed in the policy"
    holds = f" holds {TARGETS[kind].holds} and" if kind in TARGETS else ""
    return f"{shown(kind)}{holds} is not available to tenants; request a log, results or a list such as BackupLog"


def _of_others_too(about: RequestRow) -> NewCondition:
    text = f"NonAdminRestore {about.key.name} is from the backup of a ProtectionClass; its files name other namespaces"
    more = "its status says what it did, and a cluster administrator can read its log"
    return NewCondition(PROCESSED, FALSE, Reason.TARGET_NOT_SERVED, f"{text}; {more}")


# What is done


def file_requests(view: DownloadView) -> FileRequests:
    """Return the DownloadRequests of a NonAdminDownloadRequest with this name."""
    return FileRequests(PREFIX, view.request.uid if view.request is not None else "", view.answers)


def ask_velero(view: DownloadView, request: DownloadRow, namespace: NamespaceRow, wanted: File, now: datetime) -> Plan:
    """Create Velero's DownloadRequest, with its ownership record."""
    name = file_name(PREFIX, request.uid)
    record = {
        ORIGIN_NAMESPACE: request.key.namespace,
        ORIGIN_NAME: request.key.name,
        REQUEST_UID: request.uid,
        NAMESPACE_UID: namespace.uid,
    }
    create = ask(Key(view.velero_namespace, name), wanted, record, {NACUUID_LABEL: name})
    plan = _plan(
        request, _with_condition(request, NEW, _waits("Waiting for Velero to provide the download URL"), now), (create,)
    )
    return msgspec.structs.replace(plan, claims=(Asks(create.key),))


def show_answer(request: DownloadRow, answer: DownloadRequestRow, now: datetime) -> Plan:
    """Show the tenant the URL; without one report that, and after a while whom to ask."""
    silent = silent_at(answer, SILENCE)
    if silent is None:
        until = expires_at(answer)
        if until <= now:
            return expire(request)
        text = f"status.velero.status.downloadURL is valid until {stamp(until)}; this object is deleted then"
        status = _with_condition(request, CREATED, NewCondition(PROCESSED, TRUE, Reason.SUCCESS, text), now)
        return _plan(request, msgspec.structs.replace(status, velero=Copy(mirror=answer.mirror)), wake_at=until)
    if now < silent:
        status = _with_condition(request, NEW, _waits("Waiting for Velero to provide the download URL"), now)
        return _plan(request, status, wake_at=silent)
    text = f"Velero has not answered since {stamp(answer.created)}; ask a cluster administrator whether it is running"
    return _plan(
        request, _with_condition(request, NEW, NewCondition(PROCESSED, FALSE, Reason.VELERO_SILENT, text), now)
    )


def refused(request: DownloadRow, why: NewCondition, now: datetime) -> Status:
    """Return the status of a request that cannot be served, or not yet; what only waits stays New."""
    return _with_condition(request, NEW if why.reason in _WAITING else BACKING_OFF, why, now)


_WAITING = (Reason.WAITING, Reason.WAITING_FOR_TURN, Reason.NO_POLICY, Reason.CHECKING_ACCESS)


def _with_condition(request: DownloadRow, phase: str, condition: NewCondition, now: datetime) -> Status:
    before = request.status
    alone = tuple(other for other in before.conditions if other.type == condition.type)
    status = msgspec.structs.replace(before, phase=forward(before.phase, phase), conditions=alone)
    return set_condition(status, condition, request.generation, now)


def _plan(
    request: DownloadRow, after: Status, actions: tuple[Action, ...] = (), wake_at: datetime | None = None
) -> Plan:
    """Return the Plan that ends with this status, and with an Event for what is new in it."""
    before = request.status
    body = merge_patch(_wire(before), _wire(after)) if before != after else {}
    patch = Patch(NON_ADMIN_DOWNLOAD_REQUEST, request.key, {"status": body}, request.version, "status")
    subject = _subject(request)
    reports = (
        Because(Reason(condition.reason), condition.message, _level(condition)) for condition in changed(before, after)
    )
    notes = tuple(note(subject, report) for report in reports)
    return Plan(actions, patch if body else None, notes, wake_at, subject)


def _level(condition: nonadmin.Condition) -> Level:
    return Level.WARNING if condition.reason in _WARNED else Level.NORMAL


_WARNED = tuple(
    reason.value for reason in (Reason.ERROR, Reason.TARGET_NOT_SERVED, Reason.CONTENTS_DENIED, Reason.VELERO_SILENT)
)


def _wire(status: Status) -> dict[str, Any]:
    body: dict[str, Any] = {"phase": status.phase} if status.phase else {}
    if status.conditions:
        body["conditions"] = [msgspec.to_builtins(condition) for condition in status.conditions]
    if status.velero != Copy():
        body["velero"] = {"status": msgspec.json.decode(status.velero.mirror)}
    return body


def _subject(request: DownloadRow) -> Subject:
    return Subject(NON_ADMIN_DOWNLOAD_REQUEST, request.key, request.uid)
