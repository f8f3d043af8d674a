"""The flowchart: which path a request is on, and what is to be done on it now.

`docs/contributing/design/self-service.svg` shows each function of the paths, which are in `create`, `update` and
`delete`. A path is walked write by write: what was written last is what the next reconcile finds, so a crash between
two writes is a pause.
"""

from collections.abc import Callable
from datetime import datetime

from foresail.plan import Plan
from foresail.selfservice.requests import rules
from foresail.selfservice.requests.create import create_or_update
from foresail.selfservice.requests.delete import (
    api_delete,
    delete_backup,
    force_delete,
    keep_protected,
    namespace_deleted,
)
from foresail.selfservice.requests.protection import protection
from foresail.selfservice.requests.view import RequestView
from foresail.tenancy.namespaces import NamespaceRow

Path = Callable[[RequestView, NamespaceRow, datetime], Plan]


def decide(view: RequestView, now: datetime) -> Plan:
    """Return the Plan for a request."""
    if view.namespace is None:
        return Plan()  # the view is incomplete: the missing event requeues it
    path = path_of(view, view.namespace)
    if path in (force_delete, delete_backup):
        protected = protection(view, now)
        if protected is not None:
            return keep_protected(view, protected, now)
    return path(view, view.namespace, now)


def path_of(view: RequestView, namespace: NamespaceRow) -> Path:
    """Return the path that a request is on; of several reasons the strongest counts."""
    request = view.request
    if namespace.is_terminating:
        return namespace_deleted
    if request.is_to_be_forced and not (request.is_to_be_deleted and rules.came_back(view)):
        return force_delete
    if request.is_to_be_deleted:
        return delete_backup
    if request.is_terminating:
        return api_delete
    return create_or_update
