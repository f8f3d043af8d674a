"""What a decision about the results of a backup or restore sees, and what is sent for."""

import msgspec

from foresail.api.nonadmin import RestoredItems
from foresail.plan import Key, ReadResult
from foresail.selfservice.families import Family
from foresail.selfservice.results.file import Lines
from foresail.selfservice.rows.requests import RequestRow
from foresail.selfservice.rows.velero import DownloadRequestRow, VeleroRow
from foresail.tenancy.namespaces import NamespaceRow


class Wanted(msgspec.Struct, frozen=True):
    """The results that are to be read, and of what in them the tenant may know."""

    url: str  # empty if only the list is read
    authority: str  # an additional CA certificate in PEM; empty if there is none
    namespace: str
    list_url: str = ""  # of a restore, the list of restored objects; empty if it is not read


class Found(msgspec.Struct, frozen=True):
    """What was read, or why it could not be."""

    lines: Lines | None = None
    problem: str = ""
    restored: RestoredItems | None = None


class ResultsView(msgspec.Struct, frozen=True):
    """Everything that a decision about the results of one request depends on, but the time."""

    key: Key  # of the reconcile
    family: Family
    request: RequestRow | None  # None if it is gone; what was made for it may still be there
    velero_namespace: str
    namespace: NamespaceRow | None = None
    velero: VeleroRow | None = None  # by its name; whose it is, is for the rules to say
    backup: VeleroRow | None = None  # the Velero Backup in whose location the results lie
    answers: tuple[DownloadRequestRow, ...] = ()
    authority: str = ""
    read_result: ReadResult[Wanted, Found] | None = None
