"""What a decision about a tenant's own location depends on."""

import msgspec

from foresail.plan import ReadResult
from foresail.selfservice.locations.credentials import Credentials
from foresail.selfservice.rows.locations import ApprovalRow, LocationRow, TenantLocationRow
from foresail.selfservice.rows.requests import RequestRow
from foresail.tenancy.namespaces import NamespaceRow
from foresail.tenancy.policies import PolicyRow


class CredentialsCheck(msgspec.Struct, frozen=True):
    """The question what one key of a tenant's Secret holds, and whether the requester may read it."""

    namespace: str
    name: str
    key: str
    user: str
    groups: tuple[str, ...] = ()
    occasion: str = ""  # another one asks again


class CredentialsChecked(msgspec.Struct, frozen=True):
    """The credentials, or why there are none."""

    credentials: Credentials | None = None
    problem: str = ""


class LocationView(msgspec.Struct, frozen=True):
    """Everything that a decision about one location depends on, but the time."""

    location: TenantLocationRow
    velero_namespace: str
    namespace: NamespaceRow | None
    policy: PolicyRow | None = None
    approval: ApprovalRow | None = None  # by its name; whose it is, is for the rules to say
    velero: LocationRow | None = None  # the same
    has_namesake: bool = False  # whether the administrator has a location of its name
    earlier: int = 0  # older locations of the namespace
    holds_backups: bool = False  # whether Velero Backups are in it; only if it is being deleted
    backups: tuple[RequestRow, ...] = ()  # the NonAdminBackups among them
    reserved: frozenset[str] = frozenset()  # namespaces whose ServiceAccounts are never requesters
    read_result: ReadResult[CredentialsCheck, CredentialsChecked] | None = None
