"""What is to be done about a Velero Backup without a NonAdminBackup.

First the NonAdminBackup is created, under the name and with the UID of the Backup in a mark. When its own UID is
observed, the record on the Velero Backup is written. A crash between the two is a pause: the mark leads on.
"""

from datetime import datetime, timedelta

from foresail.api.core import NAMESPACE
from foresail.plan import Action, Key, Note, Plan, Subject
from foresail.selfservice.adoption import build, rules
from foresail.selfservice.adoption.observe import AdoptionView
from foresail.selfservice.adoption.rules import Offer
from foresail.selfservice.families import BACKUPS
from foresail.selfservice.reasons import Reason
from foresail.tenancy.namespaces import NamespaceRow

_NEWS = timedelta(hours=1)  # what came back longer ago was announced then, and so was a namespace that did


def decide(view: AdoptionView, now: datetime) -> Plan:
    """Adopt a Velero Backup if that is permitted; else only offer it."""
    offer = rules.offer(view, now)
    if offer is None or view.namespace is None:
        return Plan()
    if not offer.is_permitted or offer.is_name_taken:
        return Plan(notes=announcement(view, view.namespace, offer, now), verdict=offer)
    row = view.backup
    subject = Subject(BACKUPS.velero, row.key, row.uid)
    return Plan(_writes(view, view.namespace), subject=subject, verdict=offer)


def _writes(view: AdoptionView, namespace: NamespaceRow) -> tuple[Action, ...]:
    request = view.request
    if request is None:
        return (build.create_request(view),)
    recorded = build.new_record(view, request, namespace)
    return (recorded,) if rules.is_ours(request, view.backup) else (build.mark_request(view, request), recorded)


def announcement(view: AdoptionView, namespace: NamespaceRow, offer: Offer, now: datetime) -> tuple[Note, ...]:
    """Return one Event for a namespace whose backups, or which itself, came back: they wait for an administrator.

    It is in the namespace, where its team may list it.
    """
    since = max(view.backup.created, namespace.created or view.backup.created)
    if view.is_announced or offer.is_name_taken or now - since > _NEWS:
        return ()
    name = view.owner.namespace
    text = (
        f"Velero has backups of namespace {name} without a NonAdminBackup; to give them to the tenant, a cluster "
        f"administrator runs foresail backup adopt -n {name}"
    )
    return (Note(NAMESPACE, Key(name, name), namespace.uid, Reason.BACKUPS_ADOPTABLE.value, text),)
