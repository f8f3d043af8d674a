"""The rules: whether a record is trusted, who has permitted the adoption, and whether the name is free.

Labels and annotations of a Velero Backup come from the bucket, so whoever writes to the bucket writes them. Two things
such a writer cannot know: the key that signs records, and the UID that this cluster gave to the Velero Backup.
"""

from datetime import datetime

import msgspec

from foresail.plan import Claim
from foresail.selfservice.adoption.view import AdoptionView
from foresail.selfservice.rows.requests import RequestRow
from foresail.selfservice.rows.velero import VeleroRow
from foresail.selfservice.signatures import Record, verify
from foresail.tenancy.namespaces import NamespaceRow
from foresail.tenancy.records import is_owned

AUTOMATIC, NEVER = "Automatic", "Never"


class Offer(Claim, msgspec.Struct, frozen=True):
    """A Velero Backup that can be adopted."""

    is_verified: bool  # its record is signed
    is_permitted: bool  # by the policy or by an administrator
    is_name_taken: bool  # by another NonAdminBackup


def offer(view: AdoptionView, now: datetime) -> Offer | None:
    """Return how a Velero Backup can be adopted; None if there is nothing to adopt."""
    row = view.backup
    namespace = view.namespace
    policy = view.policy
    if namespace is None or namespace.is_terminating or policy is None or policy.spec.adoption == NEVER:
        return None
    if (row.expires is not None and row.expires <= now) or is_adopted_already(view, namespace):
        return None
    verified = is_verified(view)
    permitted = is_approved(row, namespace) or (verified and is_automatic(view, namespace))
    return Offer(verified, permitted, is_name_taken(view))


def is_adopted_already(view: AdoptionView, namespace: NamespaceRow) -> bool:
    """Whether a Velero Backup has its NonAdminBackup."""
    return view.request is not None and is_owned(view.request, namespace, view.backup)


def is_verified(view: AdoptionView) -> bool:
    """Whether this operator, or one with the same key, signed the record for this Backup in this bucket."""
    row = view.backup
    owner = view.owner
    if row.claim is None:
        return False
    record = Record(row.key.name, view.storage, owner.namespace, row.namespace_uid, owner.name, row.request_uid)
    return verify(record, row.claim.signature, view.keyring)


def approval(backup_uid: str, namespace_uid: str) -> str:
    """Return what an administrator writes on a Velero Backup to have it adopted.

    It names the UIDs of this cluster's objects, which nobody can know before Velero has synced the Backup: an approval
    that was planted in the bucket never fits.
    """
    return f"{backup_uid}.{namespace_uid}"


def is_approved(row: VeleroRow, namespace: NamespaceRow) -> bool:
    """Whether an administrator gives this very Backup to this very namespace."""
    return row.claim is not None and row.claim.approval == approval(row.uid, namespace.uid)


def is_automatic(view: AdoptionView, namespace: NamespaceRow) -> bool:
    """Whether the policy permits the adoption of a verified record without asking.

    It is not for a namespace that was created again. Nor for what its tenant may have given up: a Backup that never
    left the cluster, one that was adopted before, and one that was deleted by force.
    """
    row = view.backup
    policy = view.policy
    is_meant = policy is not None and policy.spec.adoption == AUTOMATIC and row.namespace_uid == namespace.uid
    is_lost = row.claim is not None and row.claim.is_synced and not row.claim.is_adopted
    return is_meant and is_lost and not view.is_force_deleted


def is_name_taken(view: AdoptionView) -> bool:
    """Whether another NonAdminBackup has the name."""
    request = view.request
    return request is not None and not is_ours(request, view.backup) and not is_of_other_controller(view)


def is_ours(request: RequestRow, row: VeleroRow) -> bool:
    """Whether we created, or marked, a NonAdminBackup for the adoption of this Backup."""
    return request.adopted == row.key.name and request.adopted_uid == row.uid


def is_of_other_controller(view: AdoptionView) -> bool:
    """Whether the existing controller made this Backup for the NonAdminBackup that is there."""
    request = view.request
    if request is None or request.is_being_removed:
        return False
    return not view.backup.request_uid and request.status.velero.nacuuid == view.backup.key.name
