"""What a decision about a Velero Backup without a NonAdminBackup depends on."""

import msgspec

from foresail.plan import Key, PartKey
from foresail.selfservice.rows.requests import RequestRow
from foresail.selfservice.rows.velero import VeleroRow
from foresail.selfservice.signatures import NO_KEYS, Keyring
from foresail.tenancy.namespaces import NamespaceRow
from foresail.tenancy.policies import PolicyRow

WORD = "adoption"
"""The controller that adopts."""


class AdoptionView(msgspec.Struct, frozen=True):
    """Everything that the decision depends on, but the time."""

    backup: VeleroRow
    owner: Key  # the NonAdminBackup that the record names
    namespace: NamespaceRow | None  # as it is now
    policy: PolicyRow | None = None
    request: RequestRow | None = None  # what has that name now
    keyring: Keyring = NO_KEYS
    storage: str = ""  # bucket and prefix of the location that the Backup is in
    is_force_deleted: bool = False  # its tenant deleted it by force, and it came back
    is_announced: bool = False  # an Event about the namespace was emitted


def key_for(row: VeleroRow) -> PartKey | None:
    """Return the key under which a Velero Backup is adopted; None if it needs no reconcile."""
    if not row.may_be_adopted or row.owner is None:
        return None
    return PartKey(row.owner.namespace, row.key.name, WORD)
