"""Typed requests over one connection pool; each returns the requested type or a Failure."""

import asyncio
import logging
import random
import ssl
from asyncio import sslproto
from collections.abc import Awaitable, Callable, Mapping, Sequence
from datetime import datetime, timedelta
from http import HTTPStatus
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self, TypeVar
from urllib.parse import quote, unquote, urlsplit

import msgspec

from foresail import __version__
from foresail.kube.connect import ConnectError, Connection, date_of
from foresail.kube.failures import INITIALIZING_SECONDS, Cause, Failure, Status, failure, unreachable
from foresail.kube.json_stream import decode
from foresail.kube.requests import RequestLimiter, Requests
from foresail.kube.server import MOST_BYTES, Answer, Http, LargeAnswerError, Stream
from foresail.plan import Body, Key, Kind

if TYPE_CHECKING:
    from foresail.kube.tracing import Tracer

T = TypeVar("T")

_log = logging.getLogger(__name__)
_JSON = "application/json"
_METADATA = f"{_JSON};as=PartialObjectMetadata;g=meta.k8s.io;v=v1"
_METADATA_LIST = f"{_JSON};as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"
_DISCOVERY = f"{_JSON};g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
_MERGE = "application/merge-patch+json"
_JSON_PATCH = "application/json-patch+json"
_MERGE_BY_NAME = "application/strategic-merge-patch+json"
_HEADERS = ("Accept-Encoding", "identity"), ("User-Agent", f"foresail/{__version__}")
_NONE: dict[str, str] = {}
_DRY_RUN = {"dryRun": "All"}
_APPLY = "application/apply-patch+yaml"  # JSON is YAML
_ATTEMPTS = 5
_LONGEST_WAIT = 30.0
_MOST_OF_A_REFUSAL = 1 << 20
_SECONDS = 30.0  # for a request and its answer; a watch has no such limit
_encoder = msgspec.json.Encoder()

_decoders: dict[type[Any], msgspec.json.Decoder[Any]] = {}


def decoder(of: type[T]) -> msgspec.json.Decoder[T]:
    """Return the decoder of a type, made once."""
    known = _decoders.get(of)
    if known is None:
        known = _decoders[of] = msgspec.json.Decoder(of)
    return known


def address(kind: Kind, namespace: str = "", name: str = "", subresource: str = "") -> str:
    """Return the path of an object, or of all objects of a kind in a namespace or in the cluster."""
    parts = ["", "apis", kind.group, kind.version] if kind.group else ["", "api", kind.version]
    if namespace and kind.namespaced:
        parts += ["namespaces", namespace]
    parts += [kind.plural, *filter(None, (name, subresource))]
    return "/".join(quote(part, safe="", errors="surrogatepass") for part in parts)


def _refused_path(path: str) -> Failure | None:
    """Return a failure for a path with a name that the API server would take for another path, as client-go does."""
    for segment in map(unquote, path.split("/")):
        if segment in (".", "..") or "/" in segment or "%" in segment:
            return Failure(Cause.INVALID, f"the name {segment!r} cannot be in a URL: use one without / and %")
    return None


class Client:
    """One identity at one API server; all methods are safe for concurrent tasks."""

    def __init__(
        self,
        connection: Connection,
        *,
        manager: str = "foresail",
        max_in_flight: int = 64,
        requests: Requests | None = None,
        tracer: "Tracer | None" = None,
        http: Http | None = None,
        most_bytes: int = MOST_BYTES,
    ) -> None:
        _shrink_tls_buffers()
        self._connection = connection
        self._manager = manager
        self._most_bytes = most_bytes  # of the body of one answer
        self._http = http or _pool(connection, tracer)
        self._requests = requests or Requests()
        self._host = urlsplit(connection.server).netloc
        self._limiter = RequestLimiter(max_in_flight)  # without watches: they last

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """Close every connection."""
        await self._http.close()

    # Reading

    async def get(self, kind: Kind, key: Key, of: type[T]) -> T | Failure:
        """Read one object."""
        return await self._read(address(kind, key.namespace, key.name), {}, of)

    async def page(
        self,
        kind: Kind,
        namespace: str,
        parameters: Mapping[str, str],
        of: type[T],
        *,
        metadata_only: bool = False,
        most_bytes: int | None = None,
    ) -> T | Failure:
        """Read one page of a list, decoded into the given type."""
        accept = _METADATA_LIST if metadata_only else _JSON
        return await self._read(address(kind, namespace), parameters, of, accept, most_bytes)

    async def discover(self, of: type[T]) -> T | Failure:
        """Read the resources that the API server serves outside the core group, in one request."""
        return await self._read("/apis", {}, of, _DISCOVERY)

    async def version(self, of: type[T]) -> T | Failure:
        """Read the version of the API server."""
        return await self._read("/version", {}, of)

    async def server_time(self) -> datetime | Failure:
        """Return the time of the API server, to the second."""
        answer = await self._open("/version", {}, _JSON, _SECONDS)
        if isinstance(answer, Failure):
            return answer
        async with answer:
            date = answer.headers.get("Date", "")
        time = date_of(date)
        return time or Failure(Cause.UNREADABLE, f"GET /version: the header Date is {date[:40]!r}")

    @property
    def skew(self) -> timedelta | None:
        """By how much our clock is ahead of the API server's, by its last answer; None before the first."""
        return self._connection.skew

    # Writing

    async def create(self, kind: Kind, key: Key, body: Body, of: type[T]) -> T | Failure:
        """Create an object."""
        return await self._write("POST", address(kind, key.namespace), body, _JSON, of)

    async def create_dry_run(self, kind: Kind, key: Key, body: Body, of: type[T]) -> T | Failure:
        """Return an object as it would be after admission, without creating it."""
        return await self._write("POST", address(kind, key.namespace), body, _JSON, of, _DRY_RUN)

    async def merge(
        self, kind: Kind, key: Key, body: Body, of: type[T], subresource: str = "", *, dry_run: bool = False
    ) -> T | Failure:
        """Merge into an object; with a resourceVersion in the body, only if it is still the newest."""
        path = address(kind, key.namespace, key.name, subresource)
        return await self._write("PATCH", path, body, _MERGE, of, _DRY_RUN if dry_run else {})

    async def json_patch(self, kind: Kind, key: Key, operations: Sequence[Body], of: type[T]) -> T | Failure:
        """Apply the operations of a JSON patch, all or none."""
        return await self._write("PATCH", address(kind, key.namespace, key.name), operations, _JSON_PATCH, of)

    async def merge_by_name(
        self, kind: Kind, key: Key, body: Body, of: type[T], *, dry_run: bool = False
    ) -> T | Failure:
        """Merge into an object of a built-in kind, and into those items of its lists that have the same name."""
        path = address(kind, key.namespace, key.name)
        return await self._write("PATCH", path, body, _MERGE_BY_NAME, of, _DRY_RUN if dry_run else {})

    async def apply(
        self, kind: Kind, key: Key, body: Body, of: type[T], subresource: str = "", *, dry_run: bool = False
    ) -> T | Failure:
        """Declare our fields of an object; fields that someone else owns are a conflict."""
        path = address(kind, key.namespace, key.name, subresource)
        parameters = {"fieldManager": self._manager} | (_DRY_RUN if dry_run else {})
        return await self._write("PATCH", path, body, _APPLY, of, parameters)

    async def delete(
        self, kind: Kind, key: Key, uid: str, resource_version: str = "", *, dry_run: bool = False
    ) -> Failure | None:
        """Delete the object with that UID, and version if any; None if it is being deleted or already deleted."""
        preconditions = {"uid": uid} | ({"resourceVersion": resource_version} if resource_version else {})
        body: dict[str, object] = {"apiVersion": "v1", "kind": "DeleteOptions", "preconditions": preconditions}
        if dry_run:
            body["dryRun"] = ["All"]  # with options in the body, the API server ignores those in the URL
        answer = await self._write("DELETE", address(kind, key.namespace, key.name), body, _JSON, msgspec.Raw)
        if isinstance(answer, Failure) and answer.cause is not Cause.NOT_FOUND:
            return answer
        return None

    async def delete_labelled(self, kind: Kind, namespace: str, selector: str) -> Failure | None:
        """Delete the objects of a namespace that a label selector means; None if the API server has deleted them."""
        options = {"apiVersion": "v1", "kind": "DeleteOptions"}
        parameters = {"labelSelector": selector}
        answer = await self._write("DELETE", address(kind, namespace), options, _JSON, msgspec.Raw, parameters)
        return answer if isinstance(answer, Failure) else None

    # Streaming

    async def stream(
        self, kind: Kind, namespace: str, parameters: Mapping[str, str], *, metadata_only: bool = False
    ) -> Stream | Failure:
        """Open a watch; it lasts until one side ends it, and the caller must close it."""
        path = address(kind, namespace)
        accept = _METADATA if metadata_only else _JSON
        answer = await self._open(path, parameters, accept)
        if isinstance(answer, Failure) and answer.cause is Cause.UNAUTHORIZED:
            await self._renew()
            answer = await self._open(path, parameters, accept)
        return answer if isinstance(answer, Failure) else self._http.stream(answer)

    async def _renew(self) -> None:
        """Read the credentials again; a failure is logged, and the next 401 tries again."""
        try:
            await self._connection.renew()
        except ConnectError as problem:
            _log.warning("%s", problem)

    async def _open(
        self, path: str, parameters: Mapping[str, str], accept: str, seconds: float | None = None
    ) -> Answer | Failure:
        if refused := _refused_path(path):
            return refused
        try:
            response = await self._send("GET", path, parameters, ("Accept", accept), None, seconds)
            if response.status == HTTPStatus.OK:
                return response
            async with response:
                return await _refusal("GET", path, response)
        except ConnectError as problem:
            return Failure(Cause.UNAUTHORIZED, str(problem))
        except self._http.errors as problem:
            return await self._unreachable(problem)

    async def _send(
        self,
        method: str,
        path: str,
        parameters: Mapping[str, str],
        content: tuple[str, str],
        data: bytes | None,
        seconds: float | None,
    ) -> Answer:
        headers = [*await self._connection.headers(), *_HEADERS, content]
        if data is not None:
            headers.append(("Accept", _JSON))
        sending = self._http.send(method, path, parameters, headers, data, seconds)
        return await self._requests.measured(method, self._host, sending)

    async def _unreachable(self, problem: Exception) -> Failure:
        if isinstance(problem, ssl.SSLCertVerificationError):
            await self._renew()  # the cluster's CA may have been replaced: the next request finds the new one
        return unreachable(problem)

    async def _read(
        self,
        path: str,
        parameters: Mapping[str, str],
        of: type[T],
        accept: str = _JSON,
        most_bytes: int | None = None,
    ) -> T | Failure:
        # A read changes nothing, so it may be sent again after any failure.
        again = {Cause.TOO_MANY, Cause.UNREACHABLE, Cause.SERVER}
        return await self._persist(lambda: self._once("GET", path, parameters, None, accept, of, most_bytes), again)

    async def _write(
        self,
        method: str,
        path: str,
        body: Body | Sequence[Body],
        content: str,
        of: type[T],
        parameters: Mapping[str, str] = _NONE,
    ) -> T | Failure:
        # A write is sent once. While it waited for a Retry-After or for new credentials, leadership could be lost.
        # So the caller requeues, decides again, and checks again whether it may write.
        data = _encoder.encode(body)
        answer = await self._once(method, path, parameters, data, content, of)
        if isinstance(answer, Failure) and answer.cause is Cause.UNAUTHORIZED:
            await self._renew()
        return answer

    async def _persist(self, send: Callable[[], Awaitable[T | Failure]], again: set[Cause]) -> T | Failure:
        renewed = False
        attempt = 0
        while True:
            answer = await send()
            if not isinstance(answer, Failure):
                return answer
            if answer.cause is Cause.UNAUTHORIZED and not renewed:
                renewed = True
                await self._renew()
                continue
            attempt += 1
            if answer.cause not in again or attempt == _ATTEMPTS:
                return answer
            wait = answer.retry_after if answer.retry_after is not None else 0.1 * 2**attempt
            most = INITIALIZING_SECONDS if answer.is_initializing else _LONGEST_WAIT
            await asyncio.sleep(min(wait, most) * random.uniform(1.0, 1.5))  # noqa: S311 - to spread, not to hide

    async def _once(
        self,
        method: str,
        path: str,
        parameters: Mapping[str, str],
        data: bytes | None,
        content: str,
        of: type[T],
        most_bytes: int | None = None,
    ) -> T | Failure:
        if refused := _refused_path(path):
            return refused
        header = "Accept" if data is None else "Content-Type", content
        try:
            async with self._limiter:
                response = await self._send(method, path, parameters, header, data, _SECONDS)
                async with response:
                    self._connection.note_date(response.headers.get("Date", ""))
                    if response.status == HTTPStatus.TOO_MANY_REQUESTS:
                        self._limiter.throttle()
                    else:
                        self._limiter.recover()
                    if response.status >= HTTPStatus.MULTIPLE_CHOICES:
                        return await _refusal(method, path, response)
                    received = await response.read(most_bytes or self._most_bytes)
        except LargeAnswerError as problem:
            return Failure(Cause.TOO_LARGE, f"{method} {path}: {problem}")
        except ConnectError as problem:
            return Failure(Cause.UNAUTHORIZED, str(problem))
        except self._http.errors as problem:
            return await self._unreachable(problem)
        return _decoded(received, of, f"{method} {path}", response.status)


def _decoded(received: bytes, of: type[T], request: str, status: int) -> T | Failure:
    try:
        return decode(decoder(of), received)
    except msgspec.DecodeError as problem:
        return Failure(Cause.UNREADABLE, f"{request}: {problem}", status)


def _pool(connection: Connection, tracer: "Tracer | None") -> Http:
    from foresail.kube.http_pool import HttpPool  # noqa: PLC0415 - aiohttp takes longer to import than most commands

    return HttpPool(connection, tracer)


def _shrink_tls_buffers() -> None:
    """Give each TLS connection of this process a buffer of 64 KiB.

    asyncio's default is 256 KiB for the life of a connection. An operator has some thirty watches, and a leader up to
    one more connection per worker; after they close, little of that memory is returned. A TLS record has at most
    16 KiB; buffers of four records took no more CPU.
    """
    sslproto.SSLProtocol.max_size = 64 << 10


async def _refusal(method: str, path: str, response: Answer) -> Failure:
    try:
        received = await response.read(_MOST_OF_A_REFUSAL)
    except LargeAnswerError as problem:
        received = str(problem).encode()
    if response.status < HTTPStatus.BAD_REQUEST:
        text = f"{method} {path}: redirect to {response.headers.get('Location')} not followed"
        return failure(response.status, "", text)
    try:
        status = decoder(Status).decode(received)
    except msgspec.DecodeError:
        status = Status(message=received[:200].decode(errors="replace"))
    return failure(response.status, status.reason, status.message, _seconds(response.headers.get("Retry-After")))


def _seconds(text: Any) -> float | None:  # noqa: ANN401 - a header, or nothing
    return float(text) if isinstance(text, str) and text.isdecimal() else None
