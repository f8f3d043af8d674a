"""The background reads before a hand-over: a backup's contents, API discovery, access reviews and pods' annotations."""

import asyncio
import logging
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Collection, Iterable
from functools import partial
from math import inf
from typing import Protocol, TypeVar

import msgspec

from foresail.api.authorization import SUBJECT_ACCESS_REVIEW, Discovery, Review
from foresail.api.core import CONFIG_MAP, ConfigMap
from foresail.api.metadata import Named
from foresail.api.pods import POD
from foresail.api.velero_files import MOST_BYTES
from foresail.bucket import DownloadError, MissingFileError, TooLargeError, download, trusting
from foresail.kube.failures import Cause, Failure
from foresail.kube.pages import Page, PageReader, PageSize, read_pages
from foresail.plan import Body, Key, Kind
from foresail.selfservice.access import rules as access
from foresail.selfservice.access.contents import ContentKind, Contents, contents_of
from foresail.selfservice.access.discovery import (
    BUILT_IN,
    ApiResource,
    api_resources,
    cluster_scoped_names,
    unserved_names,
)
from foresail.selfservice.access.rules import Options, Question, Verdict
from foresail.selfservice.access.view import (
    Check,
    Checked,
    PodCheck,
    PodsChecked,
    Recheck,
    Rechecked,
    SecretsCheck,
    SecretsChecked,
)
from foresail.selfservice.specs import annotations, file_system
from foresail.selfservice.specs.annotations import MOST_POD_BYTES

MOST_BACKUPS = 1024
MOST_CHARACTERS = 32 << 20
"""How long the names in all cached contents may be together: whoever writes to a bucket chooses them."""


class ContentsCache:
    """The contents of backups by UID, or by that and a namespace; those not used for longest are dropped first."""

    def __init__(self, most_backups: int = MOST_BACKUPS, most_characters: int = MOST_CHARACTERS) -> None:
        self._contents: OrderedDict[str, Contents] = OrderedDict()
        self._most_backups = most_backups
        self._most_characters = most_characters
        self._characters = 0

    def __contains__(self, backup_uid: str) -> bool:
        return backup_uid in self._contents

    def get(self, backup_uid: str) -> Contents | None:
        """Return the contents of a backup, which count as just used; None if they are not cached."""
        contents = self._contents.get(backup_uid)
        if contents is not None:
            self._contents.move_to_end(backup_uid)
        return contents

    def add(self, backup_uid: str, contents: Contents) -> None:
        """Cache the contents of a backup; the last ones are cached whatever their size."""
        self.discard(backup_uid)
        self._contents[backup_uid] = contents
        self._characters += contents.characters
        while len(self._contents) > 1 and (
            len(self._contents) > self._most_backups or self._characters > self._most_characters
        ):
            self.discard(next(iter(self._contents)))

    def discard(self, backup_uid: str) -> None:
        """Forget the contents of one backup."""
        contents = self._contents.pop(backup_uid, None)
        self._characters -= contents.characters if contents is not None else 0

    def discard_all(self, backup_uid: str) -> None:
        """Forget the contents of one backup, for whichever namespace."""
        of_namespaces = f"{backup_uid}/"
        for key in [key for key in self._contents if key == backup_uid or key.startswith(of_namespaces)]:
            self.discard(key)

    def clear(self) -> None:
        """Forget the contents of every backup."""
        self._contents.clear()
        self._characters = 0


_log = logging.getLogger(__name__)
T = TypeVar("T")

_SECONDS = 60.0  # for one file
_SERVED_SECONDS = 300.0
_NEW_KINDS_SECONDS = 10.0  # how often discovery is read again at most because of a name that it does not have
_AT_ONCE = 8  # access reviews of one restore
_TOO_LARGE_SECONDS = 60.0  # for which pods that are too large are not read again: they cost the API server seconds
_PODS = PageSize(50, 4 << 20)  # several namespaces are read at once
_NOT_VELEROS = "Velero's list of its contents is unreadable; create a new backup"
_NO_ANSWER = "the API server did not answer"


class ApiServer(PageReader, Protocol):
    """The requests to the API server."""

    async def create(self, kind: Kind, key: Key, body: Body, of: type[T]) -> T | Failure:
        """Create an object; an access review is answered and not stored."""

    async def get(self, kind: Kind, key: Key, of: type[T]) -> T | Failure:
        """Read one object."""

    async def discover(self, of: type[T]) -> T | Failure:
        """Read which resources are served outside the core group."""


_pod = msgspec.json.Decoder(Named)
Read = Callable[[Check], Awaitable[Contents]]


Query = Check | PodCheck | Recheck | SecretsCheck
Answer = Checked | PodsChecked | Rechecked | SecretsChecked
_ANSWERS: dict[type[Query], Callable[..., Answer]] = {
    Check: Checked,
    PodCheck: PodsChecked,
    Recheck: Rechecked,
    SecretsCheck: SecretsChecked,
}


class NotAnsweredError(Exception):
    """Why a question has no answer, in a few words."""


class AccessReader:
    """Runs the access checks of hand-overs; caches the contents of backups and the served kinds."""

    def __init__(self, server: ApiServer | None, read: Read | None = None) -> None:
        self._server = server
        self._read = read or read_contents
        self._contents = ContentsCache()
        self._served: tuple[ApiResource, ...] = ()
        self._served_at = -inf  # by the event loop's clock
        self._discovering = asyncio.Lock()
        self._too_large: dict[str, float] = {}  # by namespace: until when its pods count as too large

    def knows(self, contents: str) -> bool:
        """Whether the contents of a backup are cached, by the key that a check has for them."""
        return contents in self._contents

    def forget(self) -> None:
        """Forget the contents of every backup."""
        self._contents.clear()

    def discard(self, backup_uid: str) -> None:
        """Forget the contents of a backup that was deleted."""
        self._contents.discard_all(backup_uid)

    async def run(self, check: Query) -> Answer:
        """Run one check; a failure is a result too."""
        try:
            return await self._run(check)
        except TooLargeError:
            return Checked(is_too_large=True)
        except (NotAnsweredError, DownloadError) as error:
            problem = str(error)
        except Exception as error:  # noqa: BLE001 - whatever one backup does to us must not end the work on others
            _log.warning("access check failed: %s", type(error).__name__)
            problem = "internal error, see the operator's log"
        return _ANSWERS[type(check)](problem=problem)

    async def _run(self, check: Query) -> Answer:
        match check:
            case Recheck(options):
                may = await self._reviewed(access.handed_over(options.included), options)
                return Rechecked(tuple(name for name, is_allowed in may.items() if not is_allowed))
            case SecretsCheck():
                return SecretsChecked(await self._may_read_secrets(check))
            case PodCheck():
                checked = await self._checked_pods(check) if check.checks_pods else PodsChecked()
                unserved, cluster_scoped = await self._named(check.kinds)
                readers = frozenset([secret for secret in check.secrets if await self._may_read_secrets(secret)])
                return msgspec.structs.replace(
                    checked,
                    unserved=unserved,
                    cluster_scoped=cluster_scoped,
                    secrets_readers=readers,
                    volume_policies=await self._volume_policies(check.volume_policies),
                )
            case Check():
                contents = await self._contents_for(check)
                return Checked() if check.list_url else Checked(await self._verdict(contents, check))

    # The contents of a backup

    async def _contents_for(self, check: Check) -> Contents:
        known = self._contents.get(check.contents)
        if known is None:
            known = await self._read(check)
            self._contents.add(check.contents, known)
        return known

    # What the requester may create

    async def _verdict(self, contents: Contents, check: Check) -> Verdict:
        options = check.options
        served = await self._serves() if access.needs_discovery(contents) else BUILT_IN
        asked, unserved = access.candidates(contents, served, options)
        along = access.brought_along(asked, contents, served)
        names = [resource.name for resource in asked]
        if not options.is_by_requester:
            risky = access.volumes_at_risk(contents, names, options)
            return Verdict(
                tuple(names),
                volumes=risky,
                copied=access.copied(contents, names, options),
                objects=_objects(contents, asked, names),
                claims=_claims(contents, asked, names),
            )
        extra = {one.name: one for rest in along.values() for one in rest if one.name not in names}
        may = await self._reviewed((*asked, *extra.values()), options)
        allowed, denied = access.allowed_resources(asked, may, along)
        risky = access.volumes_at_risk(contents, allowed, options)
        if risky and await self._may_all(access.volume_questions(options), options):
            risky = ()
        objects = _objects(contents, asked, allowed)
        copied = access.copied(contents, allowed, options)
        claims = _claims(contents, asked, allowed)
        return Verdict(tuple(allowed), tuple(denied), tuple(unserved), risky, copied, objects, claims)

    async def _reviewed(self, resources: tuple[ApiResource, ...], options: Options) -> dict[str, bool]:
        limit = asyncio.Semaphore(_AT_ONCE)

        async def ask(resource: ApiResource) -> bool:
            async with limit:
                return await self._may_all(access.questions(resource, options), options)

        answers = await asyncio.gather(*(ask(api_resource) for api_resource in resources))
        return {resource.name: answer for resource, answer in zip(resources, answers, strict=True)}

    async def _may_read_secrets(self, check: SecretsCheck) -> bool:
        if not check.user:
            return False  # the API server refuses a review without a user
        question = Question("get", "", "secrets", check.namespace)
        return await self._may(question, Options(check.namespace, user=check.user, groups=check.groups))

    async def _may_all(self, questions: Iterable[Question], options: Options) -> bool:
        """Ask in order; the first denial ends it."""
        for question in questions:
            if not await self._may(question, options):
                return False
        return True

    async def _may(self, question: Question, options: Options) -> bool:
        attributes = {
            "verb": question.verb,
            "group": question.group,
            "resource": question.plural,
            "namespace": question.namespace,
        }
        if question.subresource:
            attributes["subresource"] = question.subresource
        spec = {"user": options.user, "groups": list(options.groups), "resourceAttributes": attributes}
        kind = SUBJECT_ACCESS_REVIEW
        body = {"apiVersion": kind.api_version, "kind": kind.name, "spec": spec}
        return _answer(await self._connected().create(kind, Key("", ""), body, Review)).status.allowed

    async def _serves(self, newer_than: float = _SERVED_SECONDS) -> tuple[ApiResource, ...]:
        """Return the served kinds, read at most that many seconds ago; a read that fails discards nothing."""
        async with self._discovering:
            clock = asyncio.get_running_loop().time
            if clock() >= self._served_at + newer_than:
                self._served = api_resources(_answer(await self._connected().discover(Discovery)))
                self._served_at = clock()
            return self._served

    async def _named(self, names: tuple[str, ...]) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Return the kinds that are not served, and the cluster-scoped ones; new kinds count."""
        if not names:
            return (), ()
        served = await self._serves()
        if unserved_names(names, served):
            served = await self._serves(_NEW_KINDS_SECONDS)
        return unserved_names(names, served), cluster_scoped_names(names, served)

    # What the pods carry

    async def _checked_pods(self, check: PodCheck) -> PodsChecked:
        """Return what the pods carry; a namespace that is too large is read once a minute, however often it asks."""
        now = asyncio.get_running_loop().time()
        self._too_large = {namespace: until for namespace, until in self._too_large.items() if until > now}
        if check.namespace in self._too_large:
            return PodsChecked(is_too_large=True)
        refused = await self._refused_pod(check)
        if refused.is_too_large:
            self._too_large[check.namespace] = now + _TOO_LARGE_SECONDS
        return refused

    async def _refused_pod(self, check: PodCheck) -> PodsChecked:
        """Return the first pod that Velero must not back up; tenants choose how large and how many pods are."""
        left = MOST_POD_BYTES
        server = self._connected()
        async for page in read_pages(server, POD, check.namespace, Page, metadata_only=True, size=_PODS):
            if isinstance(page, Failure) and page.cause is Cause.TOO_LARGE:
                return PodsChecked(is_too_large=True)
            for raw in _answer(page).items or ():
                left -= len(memoryview(raw))
                if left < 0:
                    return PodsChecked(is_too_large=True)
                pod = _pod.decode(raw).metadata
                annotation = annotations.refused_on_pod(
                    pod.annotations or {}, hooks=check.checks_hooks, files=check.checks_files
                )
                if annotation is not None:
                    return PodsChecked(pod.name, annotation)
        return PodsChecked()

    async def _volume_policies(self, key: Key | None) -> str:
        """Return how the volume policies of a ConfigMap leave room for file-system backup; empty if they do not."""
        if key is None:
            return ""
        config_map = await self._connected().get(CONFIG_MAP, key, ConfigMap)
        if isinstance(config_map, Failure) and config_map.cause is Cause.NOT_FOUND:
            return file_system.MISSING
        return file_system.gap_in(_answer(config_map).data)

    def _connected(self) -> ApiServer:
        if self._server is None:
            raise NotAnsweredError(_NO_ANSWER)
        return self._server


def _objects(contents: Contents, asked: Iterable[ApiResource], names: Collection[str]) -> int:
    """Return how many objects of a backup are of the named resources."""
    return contents.objects(
        [ContentKind(resource.group, resource.kind) for resource in asked if resource.name in names]
    )


def _claims(contents: Contents, asked: Iterable[ApiResource], names: Collection[str]) -> int:
    """Return how many claims a restore of the named resources brings back."""
    return _objects(contents, asked, {access.CLAIMS} & {*names})


def _answer(answer: T | Failure) -> T:
    if isinstance(answer, Failure):
        _log.warning("access check failed: %s", answer)  # it names the operator's account, so no tenant reads it
        raise NotAnsweredError(f"{_NO_ANSWER} ({answer.cause.value})")
    return answer


async def read_contents(check: Check) -> Contents:
    """Read both files about a backup; an old backup has no file about its volumes."""
    if not check.list_url:
        raise NotAnsweredError("its contents are not known yet")
    resources = await _file(check.list_url, check.authority)
    try:
        volumes = await _file(check.volumes_url, check.authority)
    except MissingFileError:
        volumes = None
    options = check.options
    read = partial(contents_of, is_shared=options.is_shared)
    contents = await asyncio.to_thread(read, options.namespace, resources, volumes)
    if contents is None:
        raise NotAnsweredError(_NOT_VELEROS)
    return contents


async def _file(url: str, authority: str) -> bytes:
    pieces = [piece async for piece in download(url, most=MOST_BYTES, seconds=_SECONDS, tls=trusting(authority))]
    return b"".join(pieces)
