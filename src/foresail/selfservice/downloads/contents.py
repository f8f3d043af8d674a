"""Contents of backups include Secrets: only requesters who may read Secrets in the namespace may download them."""

from datetime import datetime, timedelta

from foresail.plan import Plan
from foresail.selfservice.access.rules import is_system_account
from foresail.selfservice.access.view import SecretsCheck
from foresail.selfservice.downloads.observe import DownloadRow, DownloadView
from foresail.selfservice.reasons import Reason
from foresail.selfservice.requests.authorization import FRESH
from foresail.selfservice.requests.status import FALSE, NewCondition

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
    if not result.found.problem:
        return None if result.found.is_allowed else _denied(request)
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
