"""What a decision about a tenant's request depends on: rows of it, of Velero's object, the namespace and the policy."""

from datetime import datetime, timedelta
from enum import Enum

import msgspec

from foresail.plan import Claim
from foresail.selfservice.access.view import AccessView
from foresail.selfservice.families import Family
from foresail.selfservice.queue.window import Position, Turn
from foresail.selfservice.rows.locations import LocationRow, TenantLocationRow
from foresail.selfservice.rows.requests import RequestRow
from foresail.selfservice.rows.velero import ClaimRow, Counts, DeletionRow, VeleroRow
from foresail.selfservice.signatures import NO_KEYS, Keyring
from foresail.tenancy.namespaces import NamespaceRow
from foresail.tenancy.policies import PolicyRow


class Source(msgspec.Struct, frozen=True):
    """The source of a restore: the tenant's backup and Velero's, or only Velero's, of a ProtectionClass."""

    request: RequestRow | None
    velero: VeleroRow | None
    by_tenants: bool = False  # of a ProtectionClass: whether teams may restore from its backups
    is_class_unread: bool = False


class Target(msgspec.Struct, frozen=True):
    """The other namespace in which a restore creates its objects, as it is now."""

    name: str
    namespace: NamespaceRow | None
    policy: PolicyRow | None
    missing_label: str = ""
    stored: int = 0  # restores of that namespace and into it, without this one
    active: int = 0


class Takes(Claim, Enum):
    """What a Plan takes that others may want."""

    QUOTA = "the request is accepted: its backup or restore counts from now on"
    HAND_OVER = "its Velero object is created, and is in Velero's queue then"
    NEXT_TURN = "the check of access is recorded: the next Plan creates the Velero object"


class RequestView(msgspec.Struct, frozen=True):
    """Everything that a decision about one request depends on, but the time."""

    family: Family
    request: RequestRow
    velero_namespace: str
    namespace: NamespaceRow | None
    policy: PolicyRow | None = None
    missing_label: str = ""  # of the namespace: admission policies do not apply until the operator has set it
    velero: VeleroRow | None = None  # found by name; the rules check ownership
    deletion: DeletionRow | None = None
    source: Source | None = None  # of a restore
    source_location: LocationRow | None = None  # where that backup is
    target: Target | None = None  # of a restore into another namespace
    stored: int = 0  # backups, or restores, of this namespace, without this one
    expirations: tuple[datetime, ...] = ()  # of the ended backups among them; only if the quota is reached
    active: int = 0
    location: LocationRow | None = None  # where a backup is that is to be deleted
    locations: tuple[LocationRow, ...] = ()  # of a backup that Velero does not have yet, or that is deleted by force
    owners: tuple[TenantLocationRow, ...] = ()  # the tenants' locations that those were made for
    keyring: Keyring = NO_KEYS
    transfers: Counts = ()
    volumes: Counts = ()
    bytes_at: datetime | None = None  # when bytes are reported if nothing else is; None: at once
    position: Position = Position()
    turn: Turn = Turn()
    history: int | None = None  # how many finished restores are kept, if this one is not among them
    unobserved_since: datetime | None = None  # since when its Velero object may exist without being observed
    claims: tuple[ClaimRow, ...] = ()  # of the namespace; before a hand-over, and when a backup is newly complete
    copied: tuple[str, ...] = ()  # before a restore: claims with files in its backup, empty for a volume without one
    good: tuple[VeleroRow, ...] = ()  # the complete backups of the namespace; only if a deletion is requested
    is_restored: bool = False  # a restore reads the backup, or is about to; only if its deletion is requested
    doubt: str = ""  # what is not certain about a deletion that is requested
    skew: timedelta = timedelta()  # of a restore: how far the operator's clock is ahead of the API server's, if known
    access: AccessView | None = None  # None: a backup is not checked, a restore waits
    saved: frozenset[str] = frozenset()  # the UIDs of those whose data was copied or moved

    @property
    def is_from_own_location(self) -> bool:
        """Whether the backup of a restore is in a bucket of its tenant, who can rewrite it at any moment."""
        return self.source_location is not None and self.source_location.owner is not None

    @property
    def acting_policy(self) -> PolicyRow | None:
        """The policy of the namespace in which objects are created."""
        return self.policy if self.target is None else self.target.policy

    @property
    def is_by_requester(self) -> bool:
        """Whether a restore contains only what its requester may create.

        From an own bucket, from the backup of a class, and into another namespace it always does.
        """
        policy = self.acting_policy
        is_in_policy = policy is not None and policy.spec.restore.authorization == "Requester"
        return is_in_policy or self.is_from_own_location or self.target is not None or bool(self.request.point)
