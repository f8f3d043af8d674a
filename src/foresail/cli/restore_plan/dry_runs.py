"""The requests of a restore plan: reads, and dry runs with the caller's own rights."""

import asyncio
from collections import defaultdict
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import msgspec

from foresail.api.authorization import Discovery
from foresail.api.core import STORAGE_CLASS
from foresail.cli.access.cluster import Cluster, may
from foresail.kube.client import Client
from foresail.kube.failures import Cause, Failure
from foresail.kube.pages import Page, read_pages
from foresail.plan import Key, Kind
from foresail.proof.restore_plan.decide import Observed, Question, World, question, question_again, written_as
from foresail.proof.restore_plan.items import Document, ItemKey, Served, ServedKind, at, metadata
from foresail.proof.restore_plan.prepare import Preparation, Step
from foresail.proof.restore_plan.refusals import Answer
from foresail.selfservice.access.discovery import CORE

NAMESPACE = Kind("", "v1", "namespaces", "Namespace", namespaced=False)
ACCOUNT = Kind("", "v1", "serviceaccounts", "ServiceAccount")
QUOTA = Kind("", "v1", "resourcequotas", "ResourceQuota")

_AT_ONCE = 16
_ATTEMPTS = 6
_PAUSE = 0.2
_WORTH_A_LIST = 4  # a list costs about as much as so many reads
_AGAIN = (Cause.TOO_MANY, Cause.UNREACHABLE)


def served_kinds(discovery: Discovery) -> Served:
    """Return every resource of the cluster."""
    kinds = [
        ServedKind("", api_resource.plural, api_resource.kind, api_resource.is_namespaced, aliases=api_resource.aliases)
        for api_resource in CORE
    ]
    for group in discovery.items or ():
        versions: dict[str, list[str]] = defaultdict(list)
        by_name: dict[str, ServedKind] = {}
        for version in group.versions or ():
            for resource in version.resources or ():
                versions[resource.resource].append(version.version)
                names = tuple(filter(None, (resource.singular_resource, *(resource.short_names or ()))))
                kind = resource.response_kind.kind if resource.response_kind is not None else ""
                is_namespaced = resource.scope == "Namespaced"
                by_name.setdefault(
                    resource.resource,
                    ServedKind(group.metadata.name, resource.resource, kind, is_namespaced, aliases=names),
                )
        kinds += [
            ServedKind(served.group, name, served.kind, served.is_namespaced, tuple(versions[name]), served.aliases)
            for name, served in by_name.items()
        ]
    return Served(kinds)


@dataclass(frozen=True, slots=True)
class Write:
    """What does one step of a restore without Velero."""

    target: ItemKey
    kind: Kind
    asked: Question


class DryRuns:
    """Asks the API server about the steps of a plan; stores nothing, and reads only what the caller may read."""

    def __init__(self, client: Client, served: Served, policy: str) -> None:
        self._client = client
        self._caller = Cluster(client)
        self._served = served
        self._policy = policy
        self._limit = asyncio.Semaphore(_AT_ONCE)

    async def world(self, namespaces: Collection[str]) -> World:
        """Return what exists beside the items, as far as the caller may read it."""
        read = {name: await self._namespace(name) for name in namespaces}
        exist = {name for name, document in read.items() if document is not None}
        terminating = {name for name in exist if is_terminating(read[name] or {})}
        listed = {name: await self._listed(QUOTA, name) for name in exist}
        quotas = [item for quota_items in listed.values() for item in quota_items or ()]
        unlisted = frozenset(name for name, items in listed.items() if items is None)
        classes = await self._listed(STORAGE_CLASS, "")
        names = None if classes is None else _names(classes)
        return World(self._served, frozenset(exist), quotas, names, frozenset(terminating), unlisted)

    async def accounts(self, namespaces: Collection[str]) -> dict[str, frozenset[str] | None]:
        """Return the names of the ServiceAccounts of each namespace; None where the caller may not list them."""
        wanted = list(namespaces)
        accounts = await asyncio.gather(*(self._listed(ACCOUNT, name) for name in wanted))
        return {name: None if listed is None else _names(listed) for name, listed in zip(wanted, accounts, strict=True)}

    async def observed(
        self, preparation: Preparation, world: World, scratch: Mapping[str, str]
    ) -> dict[ItemKey, Observed]:
        """Return what exists of each item, and the answers to the dry runs; `scratch` replaces new namespaces."""
        steps = [step for step in preparation.steps if step.body and step.target.namespace not in world.terminating]
        live = await self.live([step for step in steps if _is_there(step, world)])
        planned = {step.target for step in steps}
        answers = await asyncio.gather(
            *(self._observed(step, live.get(step.target), planned, scratch) for step in steps)
        )
        spaces = [name for name in preparation.namespaces if name not in world.namespaces]
        created = await asyncio.gather(
            *(self._dry_run(NAMESPACE, Key("", ""), preparation.namespaces[name]) for name in spaces)
        )
        observed = {step.target: answer for step, answer in zip(steps, answers, strict=True)}
        for name, answer in zip(spaces, created, strict=True):
            observed[ItemKey("namespaces", "", name)] = Observed(None, answer)
        return observed

    def writes(self, preparation: Preparation, observed: Mapping[ItemKey, Observed]) -> tuple[Write, ...]:
        """Return what to send to do the steps without Velero, in order."""
        writes = []
        for step in preparation.steps:
            kind = self._kind(step)
            known = observed.get(step.target, Observed())
            asked = None if kind is None else written_as(step, known.live, self._policy)
            if kind is not None and asked is not None:
                writes.append(Write(step.target, kind, asked))
        return tuple(writes)

    async def _observed(
        self, step: Step, live: Document | None, planned: Collection[ItemKey], scratch: Mapping[str, str]
    ) -> Observed:
        asked = question(step, live, self._policy)
        kind = self._kind(step)
        if asked is None or kind is None:
            return Observed(live)
        space = scratch.get(step.target.namespace, step.target.namespace)
        if asked.is_patch:
            return Observed(live, await self._dry_run_patch(kind, Key(space, step.target.name), asked.body))
        while True:
            answer = await self._dry_run(kind, Key(space, ""), moved(asked.body, space))
            answer = _renamed(answer, space, step.target.namespace)
            again = question_again(step, asked, answer, planned)
            if again is None:
                return Observed(live, answer, asked.assumed)
            asked = again

    async def _dry_run(self, kind: Kind, key: Key, body: Document) -> Answer:
        return await self._persist(lambda: self._client.create_dry_run(kind, key, body, msgspec.Raw))

    async def _dry_run_patch(self, kind: Kind, key: Key, body: Document) -> Answer:
        return await self._persist(
            lambda: self._client.merge(kind, key, body, msgspec.Raw, dry_run=True), is_patch=True
        )

    async def _persist(self, send: Callable[[], Awaitable[msgspec.Raw | Failure]], *, is_patch: bool = False) -> Answer:
        async with self._limit:
            made = await send()
            for attempt in range(_ATTEMPTS):
                if not isinstance(made, Failure) or made.cause not in _AGAIN:
                    break
                await asyncio.sleep(_PAUSE * 2**attempt)
                made = await send()
            return _answer(made, is_patch=is_patch)

    async def live(self, steps: Iterable[Step]) -> dict[ItemKey, Document]:
        """Return the existing objects of the steps, as far as the caller may read them."""
        groups: dict[tuple[Kind, str], list[Step]] = defaultdict(list)
        for step in steps:
            kind = self._kind(step)
            if kind is not None:
                groups[kind, step.target.namespace].append(step)
        bodies = await asyncio.gather(*(self._group(kind, name, targets) for (kind, name), targets in groups.items()))
        return {key: body for group in bodies for key, body in group.items()}

    async def _group(self, kind: Kind, namespace: str, steps: list[Step]) -> dict[ItemKey, Document]:
        if len(steps) >= _WORTH_A_LIST:
            listed = await self._listed(kind, namespace)
            if listed is not None:
                known = {str(metadata(item).get("name")): item for item in listed}
                return {step.target: known[step.target.name] for step in steps if step.target.name in known}
        if not await may(self._caller, "get", kind, namespace):
            return {}
        read = await asyncio.gather(*(self._read(kind, Key(namespace, step.target.name)) for step in steps))
        return {step.target: body for step, body in zip(steps, read, strict=True) if body is not None}

    async def _read(self, kind: Kind, key: Key) -> Document | None:
        async with self._limit:
            answer = await self._client.get(kind, key, dict[str, Any])
        return None if isinstance(answer, Failure) else answer

    async def _listed(self, kind: Kind, namespace: str) -> list[Document] | None:
        """Return the objects of a kind; None if the caller may not list them."""
        if not await may(self._caller, "list", kind, namespace):
            return None
        items: list[Document] = []
        async with self._limit:
            async for page in read_pages(self._client, kind, namespace, Page):
                if isinstance(page, Failure):
                    return None
                for raw in page.items or ():
                    body: Document = msgspec.json.decode(raw)
                    items.append({"apiVersion": kind.api_version, "kind": kind.name, **body})
        return items

    async def _namespace(self, name: str) -> Document | None:
        """Return a namespace; None if it does not exist, and an empty one if the caller may not read it."""
        if not await may(self._caller, "get", NAMESPACE, name, name):
            return {}
        answer = await self._client.get(NAMESPACE, Key("", name), dict[str, Any])
        if isinstance(answer, Failure):
            return None if answer.cause is Cause.NOT_FOUND else {}
        return answer

    def _kind(self, step: Step) -> Kind | None:
        known = self._served.kind(step.target.resource)
        version = str(step.body.get("apiVersion", "")).rpartition("/")[2]
        if known is None or version not in known.versions:
            return None
        return Kind(known.group, version, known.plural, known.kind, namespaced=bool(step.target.namespace))


def moved(body: Document, namespace: str) -> Document:
    """Return an object in another namespace."""
    if not namespace:
        return body
    return {**body, "metadata": {**metadata(body), "namespace": namespace}}


def is_terminating(namespace: Document) -> bool:
    """Whether a namespace is being deleted."""
    return bool(metadata(namespace).get("deletionTimestamp")) or at(namespace, "status", "phase") == "Terminating"


def _names(bodies: Iterable[Document]) -> frozenset[str]:
    return frozenset(str(metadata(body).get("name")) for body in bodies)


def _is_there(step: Step, world: World) -> bool:
    return not step.target.namespace or step.target.namespace in world.namespaces


def _answer(made: msgspec.Raw | Failure, *, is_patch: bool) -> Answer:
    if isinstance(made, Failure):
        return Answer(made.code, made.reason, made.message or made.cause.value)
    return Answer(result=msgspec.json.decode(made)) if is_patch else Answer()


def _renamed(answer: Answer, scratch: str, namespace: str) -> Answer:
    return Answer(answer.code, answer.reason, answer.message.replace(scratch, namespace) if scratch else answer.message)
