"""Requests of the command line to the API server: a result, or an error with the request and what to do."""

import argparse
import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from datetime import datetime
from typing import TypeVar

import msgspec

from foresail.api import velero
from foresail.api.authorization import OWN_ACCESS_REVIEW, Discovery, Review
from foresail.api.metadata import Metadata, Named
from foresail.cli.errors import (
    CommandError,
    ExistsError,
    NotAllowedError,
    NotFoundError,
    TooLargeError,
    UnauthorizedError,
    UnreachableError,
)
from foresail.kube.client import Client, address
from foresail.kube.connect import ConnectError, connect, namespace_of_context
from foresail.kube.failures import Cause, Failure
from foresail.kube.http_direct import direct_http
from foresail.kube.pages import ListMetadata, Page, read_pages
from foresail.kube.server import in_units
from foresail.plan import Body, Key, Kind

T = TypeVar("T")
MANAGER = "foresail-cli"
"""The field manager of the command line."""

_NO_SUCH_KIND = ("the server could not find the requested resource", "404 page not found")
_NAME_ONE = "specify a kubeconfig with --kubeconfig or KUBECONFIG, and a context with --context"
_NO_ANSWER = (Cause.UNREACHABLE, Cause.UNAUTHORIZED)
_COMMANDS = {
    "Schedule": "schedule",
    "NonAdminBackup": "backup",
    "NonAdminRestore": "restore",
    "NonAdminBackupStorageLocation": "location",
    "Primer": "primer",
    "SelfServicePolicy": "policy",
    "Rollback": "rollback",
}


_SERVED_BY = {
    "Primer": "primers",
    "RestoreCheck": "restore-checks",
    "ProtectionClass": "protection",
    "Protection": "protection",
    "Rollback": "rollback",
}
"""The capability that installs a kind, if that is not self-service."""


class _Rest(msgspec.Struct, rename="camel"):
    remaining_item_count: int | None = None


class _Counted(msgspec.Struct):
    metadata: _Rest
    items: list[msgspec.Raw] | None = None


class _Names(msgspec.Struct):
    metadata: ListMetadata = msgspec.field(default_factory=ListMetadata)
    items: list[Named] | None = None


class Cluster:
    """A cluster, with the rights of the user's kubeconfig."""

    def __init__(self, client: Client) -> None:
        self._client = client

    @property
    def client(self) -> Client:
        """The client itself, for reads that a capability defines."""
        return self._client

    async def listed(self, kind: Kind, namespace: str, labels: str = "", fields: str = "") -> list[msgspec.Raw]:
        """Return all objects of a kind in a namespace, or in the cluster if that is empty; not decoded yet."""
        selection = {"labelSelector": labels, "fieldSelector": fields}
        objects = await self._every(kind, namespace, {name: text for name, text in selection.items() if text})
        if isinstance(objects, Failure):
            if objects.cause is Cause.INVALID and labels:
                raise CommandError(f"-l {labels!r}: {objects.message}", "write app=web,tier in (a,b),!old")
            raise refusal(objects, "list", kind, Key(namespace, ""))
        return objects

    async def first_page(self, kind: Kind, namespace: str, labels: str, limit: int) -> list[msgspec.Raw]:
        """Return the first objects of a kind that have these labels, and no more than a limit."""
        page = await self._client.page(kind, namespace, {"labelSelector": labels, "limit": str(limit)}, Page)
        if isinstance(page, Failure):
            raise refusal(page, "list", kind, Key(namespace, ""))
        return list(page.items or ())

    async def listed_if_known(self, kind: Kind, namespace: str = "") -> list[msgspec.Raw]:
        """Return all objects of a kind, and none if the cluster does not know that kind."""
        objects = await self._every(kind, namespace, {})
        if isinstance(objects, Failure):
            if objects.cause is Cause.NOT_FOUND:
                return []
            raise refusal(objects, "list", kind, Key(namespace, ""))
        return objects

    async def knows(self, kind: Kind) -> bool:
        """Return whether the cluster serves a kind; if discovery fails, the next request reports why."""
        page = await self._client.page(kind, "", {"limit": "1"}, Page)
        return not (isinstance(page, Failure) and page.cause is Cause.NOT_FOUND)

    async def count(self, kind: Kind) -> int:
        """Return how many objects of a kind the whole cluster has; none if it does not know the kind."""
        page = await self._client.page(kind, "", {"limit": "1"}, _Counted)
        if isinstance(page, Failure):
            if page.cause is Cause.NOT_FOUND:
                return 0
            raise refusal(page, "list", kind, Key("", ""))
        return len(page.items or ()) + (page.metadata.remaining_item_count or 0)

    async def _every(self, kind: Kind, namespace: str, selection: dict[str, str]) -> list[msgspec.Raw] | Failure:
        pages = await self._pages(kind, namespace, selection)
        return pages if isinstance(pages, Failure) else [item for page in pages for item in page.items or ()]

    async def _pages(self, kind: Kind, namespace: str, selection: dict[str, str]) -> list[Page] | Failure:
        pages = list[Page]()
        size = 0
        async for page in read_pages(self._client, kind, namespace, Page, selection):
            if isinstance(page, Failure):
                return page
            pages.append(self._kept_of(page))
            size += sum(len(memoryview(item)) for item in pages[-1].items or ())
            most = self._most_bytes(namespace)
            if most is not None and size > most:
                raise too_large(kind, namespace, f"its objects have more than {in_units(most)}")
        return pages

    def _kept_of(self, page: Page) -> Page:
        """Return what is kept of a page."""
        return page

    def _most_bytes(self, _namespace: str) -> int | None:
        """Return how many bytes the objects of a list may have, in a namespace or in the cluster; None: any."""
        return None

    async def metadata_pages(self, kind: Kind, namespace: str = "") -> AsyncIterator[list[Metadata]]:
        """Yield the metadata of all objects of a kind page by page, so that only one is in memory."""
        async for page in read_pages(self._client, kind, namespace, _Names, metadata_only=True):
            if isinstance(page, Failure):
                raise refusal(page, "list", kind, Key(namespace, ""))
            yield [item.metadata for item in page.items or ()]

    async def read(self, kind: Kind, key: Key, of: type[T]) -> T:
        """Return one object."""
        answer = await self._client.get(kind, key, of)
        if isinstance(answer, Failure):
            raise refusal(answer, "get", kind, key)
        return answer

    async def if_there(self, kind: Kind, key: Key, of: type[T]) -> T | None:
        """Return one object, or None if there is none."""
        answer = await self._client.get(kind, key, of)
        if isinstance(answer, Failure):
            if answer.cause is Cause.NOT_FOUND:
                return None
            raise refusal(answer, "get", kind, key)
        return answer

    async def discovered(self) -> Discovery | None:
        """Return which resources are served outside the core group; None if discovery fails."""
        answer = await self._client.discover(Discovery)
        return None if isinstance(answer, Failure) else answer

    async def server_time(self) -> datetime:
        """Return what time it is at the API server, to the second."""
        answer = await self._client.server_time()
        if isinstance(answer, Failure):
            if answer.cause in _NO_ANSWER:
                raise _no_answer(answer)
            raise CommandError(f"the API server did not report its time: {answer.message}")
        return answer

    async def create(self, kind: Kind, key: Key, body: Body, *, dry_run: bool = False) -> msgspec.Raw:
        """Create an object, and return it as it is then; a dry run stores nothing."""
        send = self._client.create_dry_run if dry_run else self._client.create
        made = await send(kind, key, body, msgspec.Raw)
        if isinstance(made, Failure):
            raise refusal(made, "create", kind, key)
        return made

    async def reviewed(self, kind: Kind, body: Body) -> msgspec.Raw | None:
        """Ask the API server for a review, which it stores nowhere; None if it does not answer."""
        made = await self._client.create(kind, Key("", ""), body, msgspec.Raw)
        return None if isinstance(made, Failure) else made

    async def merge(self, kind: Kind, key: Key, body: Body, *, dry_run: bool = False) -> msgspec.Raw:
        """Change an object, and return it as it is then; a dry run stores nothing."""
        made = await self._client.merge(kind, key, body, msgspec.Raw, dry_run=dry_run)
        if isinstance(made, Failure):
            raise refusal(made, "patch", kind, key)
        return made

    async def merged_if_same(self, kind: Kind, key: Key, body: Body) -> bool:
        """Change an object; False if it is no longer at the version that the body names, or is deleted."""
        made = await self._client.merge(kind, key, body, msgspec.Raw)
        if isinstance(made, Failure) and made.cause not in (Cause.CONFLICT, Cause.NOT_FOUND):
            raise refusal(made, "patch", kind, key)
        return not isinstance(made, Failure)

    async def merge_by_name(self, kind: Kind, key: Key, body: Body, *, dry_run: bool = False) -> msgspec.Raw:
        """Change an object of a built-in kind, whose lists are merged by the names in them."""
        made = await self._client.merge_by_name(kind, key, body, msgspec.Raw, dry_run=dry_run)
        if isinstance(made, Failure):
            raise refusal(made, "patch", kind, key)
        return made

    async def apply(self, kind: Kind, key: Key, body: Body, *, dry_run: bool = False) -> msgspec.Raw:
        """Declare the fields of an object, and return it as it is then."""
        made = await self._client.apply(kind, key, body, msgspec.Raw, dry_run=dry_run)
        if isinstance(made, Failure):
            if made.cause is Cause.NOT_FOUND:
                problem = f"{kind.name} {key}: the cluster does not serve {kind.plural}.{kind.group}"
                raise CommandError(problem, "install the CustomResourceDefinition, or leave this option out")
            if made.cause is Cause.CONFLICT:
                hint = "remove these fields from the other manager, or delete the object, then try again"
                raise CommandError(f"{kind.name} {key}: {made.message}", hint)
            raise refusal(made, "patch", kind, key)
        return made

    async def delete(self, kind: Kind, key: Key, uid: str, *, dry_run: bool = False) -> None:
        """Delete the object with that UID."""
        failure = await self._client.delete(kind, key, uid, dry_run=dry_run)
        if failure is not None:
            raise refusal(failure, "delete", kind, key)


def on_cluster(args: argparse.Namespace, work: Callable[[Cluster], Awaitable[T]]) -> T:
    """Connect, do the work and disconnect."""

    async def run() -> T:
        async with connected(args) as cluster:
            return await work(cluster)

    return asyncio.run(run())


def on_namespace(args: argparse.Namespace, work: Callable[[Cluster], Awaitable[T]]) -> T:
    """Determine the namespace, none with -A, connect, do the work and disconnect."""
    if getattr(args, "all_namespaces", False):
        args.namespace = ""
    settle_namespace(args)
    return on_cluster(args, work)


@asynccontextmanager
async def connected(args: argparse.Namespace) -> AsyncIterator[Cluster]:
    """Connect, and disconnect when the block ends."""
    try:
        connection = await connect(args.kubeconfig, args.context)
    except ConnectError as error:
        raise UnreachableError(str(error), _NAME_ONE) from error
    async with Client(connection, manager=MANAGER, http=direct_http(connection)) as client:
        yield Cluster(client)


def settle_namespace(args: argparse.Namespace) -> None:
    """Let the namespace be that of the kube context, unless another was named."""
    if args.namespace is None:
        try:
            args.namespace = namespace_of_context(args.kubeconfig, args.context)
        except ConnectError as error:
            raise UnreachableError(str(error), _NAME_ONE) from error


def refusal(failure: Failure, verb: str, kind: Kind, key: Key) -> CommandError:
    """Return a failed request as an error that names the object, the cause and what to do."""
    where = _place(kind, key)
    name = f"{kind.name} {key}" if key.name else f"{kind.plural}{where}"
    resource = f"{kind.plural}.{kind.group}" if kind.group else kind.plural
    if failure.cause is Cause.FORBIDDEN:
        rule = f"apiGroups: [{kind.group!r}], resources: [{kind.plural}], verbs: [{verb}]"
        role = f"a Role in {key.namespace}" if key.namespace else "a ClusterRole"
        doubt = f"; or check that {key.namespace} is the right namespace" if key.namespace else ""
        return NotAllowedError(f"{name}: you may not {verb} {resource}{where}", f"{role} must allow {{{rule}}}{doubt}")
    if failure.cause is Cause.NOT_FOUND:
        return _not_found(failure, kind, key)
    if failure.cause is Cause.TOO_LARGE:
        return too_large(kind, key.namespace, failure.message)
    if failure.cause in _NO_ANSWER:
        return _no_answer(failure)
    if failure.cause is Cause.ALREADY_EXISTS:
        return ExistsError(f"{name} already exists", "choose another name, or delete it first")
    return CommandError(f"{name}: cannot {verb} it: {failure.message}", _try(kind, key))


def _not_found(failure: Failure, kind: Kind, key: Key) -> CommandError:
    resource = f"{kind.plural}.{kind.group}" if kind.group else kind.plural
    if failure.message.startswith('namespaces "'):
        return NotFoundError(f"namespace {key.namespace} does not exist", "name an existing namespace with -n")
    if not key.name or failure.message.strip() in _NO_SUCH_KIND:
        return CommandError(f"the cluster does not serve {resource}", _installs(kind))
    return NotFoundError(f"{kind.name} {key} does not exist", f"list what exists: {_list_command(kind, resource, key)}")


def _installs(kind: Kind) -> str:
    if kind.group == velero.GROUP:
        return "check that Velero is installed in this cluster"
    capability = _SERVED_BY.get(kind.name, "self-service")
    return f"install Foresail with {capability}: foresail install --{capability}"


def too_large(kind: Kind, namespace: str, cause: str) -> TooLargeError:
    """Return the error for a list that is not read to its end."""
    place = f" of namespace {namespace}" if namespace else ""
    return TooLargeError(f"the list of {kind.plural}{place} is too large: {cause}", "use the command line")


def _no_answer(failure: Failure) -> UnreachableError:
    if failure.cause is Cause.UNAUTHORIZED:
        hint = "renew the credentials of your kubeconfig"
        return UnauthorizedError(f"the API server does not accept your credentials: {failure.message}", hint)
    hint = "check --kubeconfig, --context and the network"
    return UnreachableError(f"the API server does not answer: {failure.message}", hint)


def _list_command(kind: Kind, resource: str, key: Key) -> str:
    where = "-A" if kind.group == velero.GROUP else f"-n {key.namespace}"  # a tenant sees one namespace
    if kind.name in _COMMANDS:
        return f"foresail {_COMMANDS[kind.name]} get{f' {where}' if kind.namespaced else ''}"
    return f"kubectl get {resource} {where}" if kind.namespaced else f"kubectl get {resource}"


def _place(kind: Kind, key: Key) -> str:
    if not kind.namespaced:
        return ""
    return f" in namespace {key.namespace}" if key.namespace else " in all namespaces"


def _try(kind: Kind, key: Key) -> str:
    if kind.name not in _COMMANDS:
        return f"try again, or see kubectl get --raw {address(kind, key.namespace, key.name)}"
    where = f"-n {key.namespace}" if kind.namespaced and key.namespace else ""
    words = ("foresail", _COMMANDS[kind.name], "get", key.name, where, "-o yaml")
    return f"try again, or see {' '.join(filter(None, words))}"


async def may(cluster: Cluster, verb: str, kind: Kind, namespace: str = "", name: str = "") -> bool:
    """Return whether the user may do something with a kind or one object, in a namespace or in the whole cluster."""
    asked = {"verb": verb, "group": kind.group, "resource": kind.plural, "namespace": namespace}
    if name:
        asked["name"] = name
    review = OWN_ACCESS_REVIEW
    body = {"apiVersion": review.api_version, "kind": review.name, "spec": {"resourceAttributes": asked}}
    made = await cluster.create(review, Key("", ""), body)
    return msgspec.json.decode(made, type=Review).status.allowed


async def may_all(cluster: Cluster, verb: str, kinds: Sequence[tuple[Kind, str]]) -> bool:
    """Return whether the user may do something with each kind in its namespace; the first no is enough."""
    for kind, namespace in kinds:
        if not await may(cluster, verb, kind, namespace):
            return False
    return True
