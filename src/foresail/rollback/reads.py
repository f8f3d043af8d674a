"""The live survey of a namespace: the requests of a Rollback, what can be suspended, objects, and access reviews."""

import base64
import binascii
import logging
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from datetime import datetime
from typing import Any, Protocol, TypeVar

import msgspec

from foresail.api import core, nonadmin, velero
from foresail.api.authorization import OWN_ACCESS_REVIEW, SUBJECT_ACCESS_REVIEW, Discovery, Review
from foresail.api.batch import Owner
from foresail.api.instants import instant
from foresail.api.marks import NOT_BACKED_UP, ROLLBACK_UID
from foresail.api.metadata import Metadata, Write
from foresail.api.nonadmin import NON_ADMIN_BACKUP, NON_ADMIN_DOWNLOAD_REQUEST, NON_ADMIN_RESTORE
from foresail.api.rollback import ROLLBACK, Rollback
from foresail.api.velero_files import MOST_BYTES, named_lists
from foresail.bucket import DownloadError, download, trusting
from foresail.kube.failures import Cause, Failure
from foresail.kube.pages import Page, PageReader, read_pages
from foresail.plan import Body, Key, Kind
from foresail.rollback.kinds import (
    ACCOUNT,
    APPLICATION,
    FLUX_OWNERS,
    LISTED,
    PAUSED,
    SCALED_OBJECT,
    STOPPED,
    SUSPENDED,
    full_name,
)
from foresail.rollback.plan import is_of_tenant
from foresail.rollback.rows import RESTORED_BY, rollback_row
from foresail.rollback.rules import CHANGES, COMPLETED
from foresail.rollback.storage_reads import read_storage
from foresail.rollback.unlisted import kinds_by_word
from foresail.rollback.view import (
    AccountSeen,
    DownloadSeen,
    Findings,
    Listed,
    OwnedClaim,
    RequestSeen,
    Storage,
    Survey,
    Suspendable,
    Unlisted,
)

_log = logging.getLogger(__name__)
_SECONDS = 60.0
_MOST_OBJECTS = 20_000
T = TypeVar("T")

Fetch = Callable[[str, str], Awaitable[bytes]]
"""Returns the file at a URL, with an additional CA certificate in PEM."""


_NO_EDITORS = ("foresail", "velero", "kube-controller-manager")
_REFUSED = "False"
_LEFT_OUT = "KindsLeftOut"


class Api(PageReader, Protocol):
    """The requests to the API server."""

    async def create(self, kind: Kind, key: Key, body: Body, of: type[T]) -> T | Failure:
        """Create an object; an access review is answered and not stored."""

    async def get(self, kind: Kind, key: Key, of: type[T]) -> T | Failure:
        """Read one object."""

    async def discover(self, of: type[T]) -> T | Failure:
        """Read the resources that the API server serves outside the core group."""


class NotAnsweredError(Exception):
    """Why a survey has no answer, in a few words."""


class _Writer(Write, frozen=True):
    manager: str = ""
    subresource: str = ""

    @property
    def is_edit(self) -> bool:
        return not self.subresource and not self.manager.startswith(_NO_EDITORS)


class _Owned(Metadata, frozen=True, rename="camel"):
    owner_references: tuple[Owner, ...] | None = None
    managed_fields: tuple[_Writer, ...] = ()


class _Object(msgspec.Struct, frozen=True):
    metadata: _Owned


class _Account(msgspec.Struct, frozen=True, rename="camel"):
    metadata: Metadata
    image_pull_secrets: tuple[dict[str, Any], ...] | None = None
    secrets: tuple[dict[str, Any], ...] | None = None


class _SuspendSpec(msgspec.Struct, frozen=True):
    suspend: bool | None = None


class _Suspend(msgspec.Struct, frozen=True):
    metadata: Metadata
    spec: _SuspendSpec = _SuspendSpec()


class _Destination(msgspec.Struct, frozen=True):
    namespace: str = ""


class _SyncPolicy(msgspec.Struct, frozen=True):
    automated: dict[str, Any] | None = None


class _ApplicationSpec(msgspec.Struct, frozen=True, rename="camel"):
    destination: _Destination = _Destination()
    sync_policy: _SyncPolicy | None = None


class _Application(msgspec.Struct, frozen=True):
    metadata: Metadata
    spec: _ApplicationSpec = _ApplicationSpec()


class _Velero(msgspec.Struct, frozen=True):
    phase: str = ""
    expiration: str | None = None
    start: str | None = msgspec.field(default=None, name="startTimestamp")


class _VeleroSpec(msgspec.Struct, frozen=True, rename="camel"):
    storage_location: str = ""


class _Answered(msgspec.Struct, frozen=True):
    download_url: str = msgspec.field(default="", name="downloadURL")


class _Reply(msgspec.Struct, frozen=True):
    status: _Answered = _Answered()


class _DownloadStatus(msgspec.Struct, frozen=True):
    conditions: tuple[nonadmin.Condition, ...] = ()
    velero: _Reply = _Reply()


class _Download(msgspec.Struct, frozen=True):
    metadata: Metadata
    status: _DownloadStatus = _DownloadStatus()


class _Storage(msgspec.Struct, frozen=True, rename="camel"):
    ca_cert: str = ""


class _LocationSpec(msgspec.Struct, frozen=True, rename="camel"):
    object_storage: _Storage = _Storage()


class _Location(msgspec.Struct, frozen=True):
    spec: _LocationSpec = _LocationSpec()


_object = msgspec.json.Decoder(_Object)
_account = msgspec.json.Decoder(_Account)
_suspend = msgspec.json.Decoder(_Suspend)
_application = msgspec.json.Decoder(_Application)
_velero = msgspec.json.Decoder(_Velero)
_velero_spec = msgspec.json.Decoder(_VeleroSpec)


async def fetch(url: str, authority: str) -> bytes:
    """Read a file from the bucket."""
    pieces = download(url, most=MOST_BYTES, seconds=_SECONDS, tls=trusting(authority))
    return b"".join([piece async for piece in pieces])


class SurveyReader:
    """Reads what a decision about a Rollback needs, as the operator; the requester's access is asked."""

    def __init__(self, server: Api, velero_namespace: str, fetch: Fetch = fetch) -> None:
        self._server = server
        self._velero_namespace = velero_namespace
        self._fetch = fetch

    async def run(self, query: Survey) -> Findings:
        """Return what there is; a failure is a result too."""
        try:
            return await self._run(query)
        except NotAnsweredError as error:
            return Findings(problem=str(error))
        except Exception as error:  # noqa: BLE001 - whatever one namespace does to us must not end the work on others
            _log.warning("the survey for Rollback %s failed: %s", query.key, type(error).__name__)
            return Findings(problem="internal error, see the operator's log")

    async def _run(self, query: Survey) -> Findings:
        if query.glance:
            seen = await self._one(ROLLBACK, query.key, Rollback)
            return Findings(row=rollback_row(seen) if seen is not None else None)
        mine = await self._one(ROLLBACK, query.key, _Object)
        if mine is None:
            return Findings(problem="the Rollback is deleted")
        uid, namespace = mine.metadata.uid, query.key.namespace
        to = await self._request(NON_ADMIN_BACKUP, Key(namespace, query.to), uid)
        wire = await self._one(NON_ADMIN_DOWNLOAD_REQUEST, Key(namespace, query.download), _Download)
        is_trusted = wire is not None and _is_ours(wire.metadata, uid)
        contents, unreadable = await self._contents(wire, to) if is_trusted else (None, "")
        suspendables, served = await self._suspendables(namespace)
        listed, owners = await self._listed(namespace) if query.lists else ((), set())
        ways = [*await self._flux_elsewhere(owners), *await self._argo(namespace)] if query.lists else []
        return Findings(
            version=mine.metadata.resource_version,
            to=to,
            safety=await self._request(NON_ADMIN_BACKUP, Key(namespace, query.safety), uid),
            restore=await self._request(NON_ADMIN_RESTORE, Key(namespace, query.restore), uid),
            undo=await self._request(NON_ADMIN_RESTORE, Key(namespace, query.undo), uid),
            download=_download(wire, uid),
            contents=contents,
            unreadable=unreadable,
            suspendables=suspendables,
            served=served,
            listed=listed,
            owned_claims=await self._owned_claims(namespace) if query.lists and query.prunes else (),
            accounts=await self._accounts(namespace) if query.accounts else (),
            unlisted=await self._unlisted(query) if query.unlisted else (),
            in_the_way=tuple(sorted(ways)),
            claims_restore=await self._request(NON_ADMIN_RESTORE, Key(namespace, query.claims_restore), uid),
            storage=await self._storage(query),
            denied=await self._denied(query, suspendables),
        )

    async def _storage(self, query: Survey) -> Storage:
        if not query.storage:
            return Storage()

        async def one(kind: Kind, key: Key) -> msgspec.Raw | None:
            return await self._one(kind, key, msgspec.Raw)

        return await read_storage(query, one, self._all, self._velero_namespace)

    async def _one(self, kind: Kind, key: Key, of: type[T]) -> T | None:
        if not key.name:
            return None
        answer = await self._server.get(kind, key, of)
        if isinstance(answer, Failure) and answer.cause is Cause.NOT_FOUND:
            return None
        return _answer(answer)

    async def _request(self, kind: Kind, key: Key, uid: str) -> RequestSeen | None:
        wire = await self._one(kind, key, nonadmin.Request)
        return None if wire is None else _seen(wire, uid, is_backup=kind == NON_ADMIN_BACKUP)

    # The list of the backup

    async def _contents(
        self, wire: _Download | None, to: RequestSeen | None
    ) -> tuple[dict[str, tuple[str, ...]] | None, str]:
        """Return the names in the backup, or why they cannot be read now."""
        url = wire.status.velero.status.download_url if wire is not None else ""
        if not url or wire is None or to is None or is_of_tenant(to.location):
            return None, ""
        location = Key(self._velero_namespace, to.location)
        place = await self._one(velero.LOCATION, location, _Location)
        try:
            file = await self._fetch(url, _pem(place.spec.object_storage.ca_cert) if place is not None else "")
        except DownloadError as error:
            return None, f"the list of the backup cannot be read: {error}"
        lists = named_lists(file)
        if lists is None:
            return None, "the list of the backup is not in Velero's format"
        return dict(_names(lists, wire.metadata.namespace)), ""

    # The namespace

    async def _suspendables(self, namespace: str) -> tuple[tuple[Suspendable, ...], tuple[str, ...]]:
        suspendables: list[Suspendable] = []
        served: list[str] = []
        for kind in SUSPENDED:
            rows = await self._all(kind, namespace)
            if rows is None:
                continue
            served.append(full_name(kind))
            suspendables += [_suspendable(kind, _suspend.decode(raw)) for raw in rows]
        return tuple(suspendables), tuple(served)

    async def _listed(self, namespace: str) -> tuple[tuple[Listed, ...], set[tuple[Kind, Key]]]:
        """Return the objects of listed kinds, and what of Flux in other namespaces applies them."""
        objects: list[Listed] = []
        owners: set[tuple[Kind, Key]] = set()
        for kind in LISTED:
            for raw in await self._all(kind, namespace, metadata_only=True) or ():
                meta = _object.decode(raw).metadata
                objects.append(_listed(kind, meta))
                owners |= {(of, key) for of, key in _flux(meta.labels or {}) if key.namespace != namespace}
        return tuple(objects), owners

    async def _accounts(self, namespace: str) -> tuple[AccountSeen, ...]:
        raws = await self._all(ACCOUNT, namespace) or ()
        return tuple(_account_seen(_account.decode(raw)) for raw in raws)

    async def _owned_claims(self, namespace: str) -> tuple[OwnedClaim, ...]:
        """Return the claims that Kubernetes deletes with another object, and their data with them."""
        raws = await self._all(core.CLAIM, namespace, metadata_only=True) or ()
        claims = (_object.decode(raw).metadata for raw in raws)
        return tuple(
            OwnedClaim(meta.name, tuple(owner.uid for owner in meta.owner_references), meta.creation_timestamp)
            for meta in claims
            if meta.owner_references
        )

    async def _all(self, kind: Kind, namespace: str, *, metadata_only: bool = False) -> list[msgspec.Raw] | None:
        """Return the objects of a kind; None if the API server does not serve it."""
        raws: list[msgspec.Raw] = []
        async for page in read_pages(self._server, kind, namespace, Page, metadata_only=metadata_only):
            if isinstance(page, Failure) and page.cause is Cause.NOT_FOUND:
                return None
            raws += _answer(page).items or ()
            if len(raws) > _MOST_OBJECTS:
                raise NotAnsweredError(f"the namespace has more than {_MOST_OBJECTS} {kind.plural}")
        return raws

    async def _flux_elsewhere(self, owners: Iterable[tuple[Kind, Key]]) -> list[str]:
        """Return what of Flux applies objects of the namespace from elsewhere, and is not suspended."""
        ways = []
        for kind, key in sorted(owners, key=str):
            wire = await self._one(kind, key, _Suspend)
            if wire is not None and not wire.spec.suspend:
                command = f"flux suspend {kind.name.lower()} {key.name} -n {key.namespace}"
                ways.append(f"{kind.name} {key} applies objects of this namespace: have it suspended with {command}")
        return ways

    async def _argo(self, namespace: str) -> list[str]:
        """Return the Applications that sync into the namespace by themselves."""
        ways = []
        for raw in await self._all(APPLICATION, "") or ():
            wire = _application.decode(raw)
            policy = wire.spec.sync_policy
            is_automated = policy is not None and policy.automated is not None
            if wire.spec.destination.namespace == namespace and is_automated:
                key = Key(wire.metadata.namespace, wire.metadata.name)
                ways.append(f"Application {key} syncs into this namespace: have spec.syncPolicy.automated removed")
        return ways

    # What the requester may do

    async def _denied(self, query: Survey, suspendables: Iterable[Suspendable]) -> frozenset[tuple[str, str]]:
        questions = [("create", NON_ADMIN_BACKUP), ("create", NON_ADMIN_RESTORE)]
        present = {suspendable.resource for suspendable in suspendables}
        questions += [("patch", kind) for kind in SUSPENDED if full_name(kind) in present]
        questions += [("delete", kind) for kind in LISTED] if query.prunes else []
        if query.storage:
            questions += [("delete", core.CLAIM), ("create", core.CLAIM)]
            questions += [("patch", kind) for kind in STOPPED.values()]
        questions += [(verb, kind) for kind in LISTED for verb in CHANGES] if query.changes else []
        questions += [("patch", ACCOUNT)] if query.accounts and not query.changes else []
        return frozenset(
            [(verb, full_name(kind)) for verb, kind in questions if not await self._may(query, verb, kind)]
        )

    async def _may(self, query: Survey, verb: str, kind: Kind) -> bool:
        spec = {"user": query.user, "groups": [*query.groups]}
        return await self._is_allowed(SUBJECT_ACCESS_REVIEW, spec, query, verb, kind)

    async def _is_allowed(self, review: Kind, who: Mapping[str, object], query: Survey, verb: str, kind: Kind) -> bool:
        attributes = {
            "verb": verb,
            "group": kind.group,
            "resource": kind.plural,
            "namespace": query.key.namespace,
        }
        spec = {**who, "resourceAttributes": attributes}
        body = {"apiVersion": review.api_version, "kind": review.name, "spec": spec}
        return _answer(await self._server.create(review, Key("", ""), body, Review)).status.allowed

    # Kinds that are not listed

    async def _unlisted(self, query: Survey) -> tuple[Unlisted, ...]:
        """Return which of these kinds an undo may delete: by the operator's rights and the requester's."""
        by_word = kinds_by_word(_answer(await self._server.discover(Discovery)))
        return tuple([await self._one_unlisted(query, word, by_word.get(word)) for word in query.unlisted])

    async def _one_unlisted(self, query: Survey, word: str, kind: Kind | None) -> Unlisted:
        if kind is None:
            return Unlisted(word)
        may = await self._may(query, "delete", kind)
        may = may and await self._is_allowed(OWN_ACCESS_REVIEW, {}, query, "deletecollection", kind)
        refused = [verb for verb in CHANGES if not await self._may(query, verb, kind)] if query.changes else [""]
        return Unlisted(full_name(kind), kind.name, kind if may else None, next(iter(refused), ""))


def _answer(answer: T | Failure) -> T:
    if isinstance(answer, Failure):
        _log.warning("a survey failed: %s", answer)  # it names the operator's account, so no tenant reads it
        raise NotAnsweredError(f"the API server did not answer ({answer.cause.value})")
    return answer


def _seen(wire: nonadmin.Request, uid: str, *, is_backup: bool) -> RequestSeen:
    status = wire.status
    reference = (status.velero_backup if is_backup else status.velero_restore) or nonadmin.Reference()
    mirror = _velero.decode(reference.status)
    accepted = next((condition for condition in status.conditions or () if condition.type == "Accepted"), None)
    is_refused = accepted is not None and accepted.status == _REFUSED and status.phase == "BackingOff"
    seen = RequestSeen(
        uid=wire.metadata.uid,
        is_ours=_is_ours(wire.metadata, uid),
        phase=status.phase,
        refusal=accepted.message if accepted is not None and is_refused else "",
        velero_phase=mirror.phase,
        velero_name=reference.nacuuid or reference.name,
        started=_time(mirror.start),
        expires=_time(mirror.expiration),
        left_out=_left_out(status.conditions or ()),
        is_terminating=wire.metadata.deletion_timestamp is not None,
    )
    if seen.refusal == nonadmin.NOTHING_TO_RESTORE:  # as good as a restore of nothing
        return msgspec.structs.replace(seen, refusal="", velero_phase=COMPLETED, restored=nonadmin.RestoredItems())
    return _backup_seen(seen, wire) if is_backup else msgspec.structs.replace(seen, restored=status.restored_items)


def _backup_seen(seen: RequestSeen, wire: nonadmin.Request) -> RequestSeen:
    status = wire.status
    reference = status.velero_backup or nonadmin.Reference()
    return msgspec.structs.replace(
        seen,
        location=_velero_spec.decode(reference.spec).storage_location,
        moved=(status.data_mover_data_uploads or {}).get("completed", 0),
        copied=(status.file_system_pod_volume_backups or {}).get("total", 0),
        volumes_left_out=status.volumes_left_out,
    )


def _left_out(conditions: Iterable[nonadmin.Condition]) -> str:
    return next((condition.message for condition in conditions if condition.reason == _LEFT_OUT), "")


def _is_ours(meta: Metadata, uid: str) -> bool:
    return (meta.annotations or {}).get(ROLLBACK_UID) == uid


def _time(text: str | None) -> datetime | None:
    return instant(text) if text else None


def _download(wire: _Download | None, uid: str) -> DownloadSeen | None:
    if wire is None:
        return None
    problems = [condition.message for condition in wire.status.conditions if condition.type.endswith("NotAvailable")]
    is_ours = _is_ours(wire.metadata, uid)
    has_url = bool(wire.status.velero.status.download_url)
    return DownloadSeen(wire.metadata.uid, is_ours, has_url, problems[0] if problems else "")


def _account_seen(wire: _Account) -> AccountSeen:
    meta = wire.metadata
    return AccountSeen(
        meta.name,
        meta.uid,
        meta.resource_version,
        wire.image_pull_secrets or (),
        wire.secrets or (),
        tuple(meta.labels or ()),
        tuple(meta.annotations or ()),
    )


def _suspendable(kind: Kind, wire: _Suspend) -> Suspendable:
    meta = wire.metadata
    if kind == SCALED_OBJECT:
        value = (meta.annotations or {}).get(PAUSED, "")
    else:
        value = "" if wire.spec.suspend is None else str(wire.spec.suspend).lower()
    return Suspendable(full_name(kind), meta.name, meta.uid, meta.resource_version, value == "true", value[:256])


def _listed(kind: Kind, meta: _Owned) -> Listed:
    restored_by = (meta.labels or {}).get(RESTORED_BY, "")
    return Listed(
        full_name(kind),
        meta.name,
        meta.uid,
        meta.creation_timestamp,
        restored_by,
        is_owned=bool(meta.owner_references),
        is_terminating=meta.deletion_timestamp is not None,
        is_excluded=(meta.labels or {}).get(NOT_BACKED_UP) == "true",
        stopped_by=(meta.annotations or {}).get(ROLLBACK_UID, ""),
        edited=max((write.time for write in meta.managed_fields if write.is_edit and write.time), default=None),
    )


def _flux(labels: dict[str, str]) -> Iterator[tuple[Kind, Key]]:
    for group, kind in FLUX_OWNERS.items():
        name, namespace = labels.get(f"{group}/name"), labels.get(f"{group}/namespace")
        if name and namespace:
            yield kind, Key(namespace, name)


def _names(lists: dict[str, list[str]], namespace: str) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Yield the names of a namespace by group/Kind; the list has them as apps/v1/Deployment: [namespace/name]."""
    for gvk, texts in lists.items():
        parts = gvk.split("/")
        names = (text.partition("/") for text in texts)
        mine = tuple(sorted(name for place, _, name in names if place == namespace and name))
        if mine:
            yield f"{parts[0] if len(parts) > 2 else ''}/{parts[-1]}", mine  # noqa: PLR2004 - group, version, kind


def _pem(text: str) -> str:
    """Return the certificates of a location, which are in base64."""
    try:
        return base64.b64decode(text, validate=True).decode()
    except (binascii.Error, UnicodeDecodeError, ValueError):
        return ""
