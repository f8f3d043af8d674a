"""`foresail console --in-cluster`: one server for many viewers, each with the token that a proxy passes for them."""

import argparse
import asyncio
import re
import secrets
import ssl
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from hashlib import sha256
from http import HTTPStatus
from pathlib import Path
from types import MappingProxyType
from urllib.parse import urlsplit

from aiohttp import web

from foresail.cli.access.cluster import MANAGER
from foresail.cli.errors import CommandError, UnauthorizedError, UsageError
from foresail.cli.tenant.files import trust_of
from foresail.cli.tenant.new_request import problem_with_name
from foresail.console import guard, setup_pages
from foresail.console.door import SILENT, asked_of, plain, set_by_signals
from foresail.console.kept import Kept, KeptCluster
from foresail.console.layout import entrance
from foresail.console.read import Reader
from foresail.console.report.snapshot import Wanted
from foresail.console.server import Form, Pages, application, wanted_of
from foresail.console.turns import Streams, Turns
from foresail.kube.client import Client
from foresail.kube.clock import steady
from foresail.kube.connect import Anonymous, ConnectError, host_of
from foresail.kube.http_pool import HttpPool

MOUNT, PORT = "foresail", 8080
"""The first part of every path, and where the console listens."""

AUTHORIZATION, ACCESS_TOKEN = "Authorization", "X-Forwarded-Access-Token"
"""Headers that may have the token: one of them is read, and no header that names a user or groups."""

SESSION, NAMESPACE = "__Host-foresail-console", "__Host-foresail-namespace"
"""Cookies: the first makes forms the browser's own, the second is the namespace that was chosen; neither has rights."""

PROBES = ("/healthz", "/readyz")
MOST_STREAMS = 400
LONGEST_STREAM = 300.0
"""Pages that all viewers follow at once, and for how many seconds: then the proxy checks the session again."""

MOST_ANSWER = 4 << 20
"""Bytes of one answer of the API server; a larger page of a list is read again in smaller ones."""

MOST_HEADER = 32 << 10
"""Bytes of a header: a token with many groups is longer than the 8 KiB that are usual."""

_BASE = f"/{MOUNT}/"
_NEW_SESSION = web.RequestKey("new session", str)
_MOST_VIEWERS, _IDLE_SECONDS = 500, 600.0
_TOKEN = re.compile(r"[A-Za-z0-9._~+/-]+=*")  # RFC 6750
_SESSION = re.compile(r"[A-Za-z0-9_-]{43}")
_AGAIN = "Reload the page or sign in again. If it stays, the API server does not accept tokens of your proxy's issuer."


@dataclass(frozen=True, slots=True)
class Setup:
    """Where the console is reached, which header has the token, and what the pages are about."""

    place: guard.Place
    header: str
    wanted: Wanted
    operator_namespace: str | None
    name: str = ""  # of the cluster
    color: str = ""


class Viewers:
    """The readers of tokens that were used lately; a reader is found by its token only, and shares nothing."""

    def __init__(self, api: Anonymous, setup: Setup) -> None:
        self._api = api
        self._setup = setup
        # Connections without an identity: every request has its own token. No viewer's objects fill the memory of all.
        self._http = HttpPool(api.connection)
        self._known: dict[tuple[str, str], tuple[float, Reader]] = {}
        self._turns = Turns()
        self._kept = Kept()
        self._timer: asyncio.TimerHandle | None = None

    def __len__(self) -> int:
        return len(self._known)

    @property
    def server(self) -> str:
        """Host and port of the API server."""
        return host_of(self._api.connection.server)

    async def close(self) -> None:
        """Close every connection."""
        if self._timer is not None:
            self._timer.cancel()
        await self._kept.close()
        await self._http.close()

    def reader(self, token: str, namespace: str) -> Reader:
        """Return the reader of a token for a namespace."""
        self._drop_old()
        key = _digest(token), namespace
        _, known = self._known.pop(key, (0.0, None))
        reader = known or self._made(token, namespace)
        self._known[key] = steady(), reader  # the last used is the last
        if self._timer is None:
            self._drop_later()
        return reader

    def forget(self, token: str) -> None:
        """Drop everything of a token."""
        self._kept.forget(_digest(token))
        for key in [known for known in self._known if known[0] == _digest(token)]:
            del self._known[key]

    def _made(self, token: str, namespace: str) -> Reader:
        client = Client(self._api.with_token(token), manager=MANAGER, http=self._http, most_bytes=MOST_ANSWER)
        wanted = replace(self._setup.wanted, namespace=namespace)
        viewer = _digest(token)
        cluster = KeptCluster(client, self._kept, viewer)
        return Reader(cluster, wanted, self._setup.operator_namespace, self._turns.share(viewer))

    def _drop_later(self) -> None:
        """Drop what is old from time to time, as long as there is anything."""
        self._drop_old()
        later = asyncio.get_running_loop().call_later
        self._timer = later(_IDLE_SECONDS / 10, self._drop_later) if self._known else None

    def _drop_old(self) -> None:
        oldest = steady() - _IDLE_SECONDS
        for key in list(self._known):
            if self._known[key][0] > oldest and len(self._known) <= _MOST_VIEWERS:
                return
            del self._known[key]


class Gate:
    """Lets in who brings a token; the API server decides what it is worth."""

    mount = MOUNT

    def __init__(self, viewers: Viewers, setup: Setup, tls: ssl.SSLContext) -> None:
        self._viewers = viewers
        self._setup = setup
        self._tls = tls
        self.streams = Streams(MOST_STREAMS, LONGEST_STREAM)

    async def serve(self, address: str | None, port: int) -> web.AppRunner:
        """Listen, and return what stops it."""
        app = application(self)
        app.on_response_prepare.append(_give_session)
        runner = web.AppRunner(
            app,
            access_log=None,
            logger=SILENT,
            handle_signals=False,
            handler_cancellation=True,
            max_field_size=MOST_HEADER,
        )
        await runner.setup()
        await web.TCPSite(runner, address, port).start()
        return runner

    async def admit(self, request: web.Request) -> Pages | web.StreamResponse:
        """Return the pages of the token in the request, or how to get there."""
        if request.path in PROBES:
            return web.Response(text="ok\n")
        asked = asked_of(request, SESSION, is_entry=_is_navigation(request))
        refused = guard.refusal(asked, self._setup.place)
        if refused is not None:
            return plain(refused.status, "Refused", refused.text)
        token = self._token(request)
        if not token:
            return _html(setup_pages.no_token(self._setup.header), HTTPStatus.UNAUTHORIZED)
        if request.path == "/":
            return _moved()
        if guard.is_foreign(asked) and request.path.startswith(_BASE):
            chosen = request.path if request.path == _BASE else request.path_qs  # no link of theirs chooses a namespace
            return _html(entrance(chosen))  # nothing is read for another site; cookies come with the next
        return await self._admitted(request, token, asked.session)

    async def _admitted(self, request: web.Request, token: str, session: str) -> Pages | web.StreamResponse:
        chosen = request.query.get("namespace", "") if request.path == _BASE else ""
        namespace = request.match_info.get("namespace") or chosen or request.cookies.get(NAMESPACE, "")
        if problem_with_name(namespace) is not None:
            namespace = self._setup.wanted.namespace
        reader = self._viewers.reader(token, namespace)
        rights = await reader.rights()
        if not (rights.is_administrator or rights.has_namespace):
            return _html(setup_pages.choose_namespace(_BASE, namespace), HTTPStatus.FORBIDDEN)
        if chosen:
            page = f"{_BASE}ns/{namespace}" if rights.is_administrator else _BASE  # whose overview is of the cluster
            return _moved({"Set-Cookie": _cookie(NAMESPACE, namespace), "Location": page})
        if not _SESSION.fullmatch(session):
            session = request[_NEW_SESSION] = secrets.token_urlsafe(32)
        setup = self._setup
        csrf = guard.csrf_of(session)
        form = Form(MOUNT, csrf, _digest(token), "", self._viewers.server, setup.name, setup.color)
        return Pages(reader, form, self._tls, self.streams)

    async def unauthorized(self, request: web.Request, _: UnauthorizedError) -> web.StreamResponse:
        """Forget the token."""
        self._viewers.forget(self._token(request))
        text = "The API server does not accept your token. It may have expired."
        return plain(HTTPStatus.UNAUTHORIZED, "Not signed in", text, _AGAIN)

    def _token(self, request: web.Request) -> str:
        return token_of(request.headers.getall(self._setup.header, ()), is_bearer=self._setup.header == AUTHORIZATION)


def token_of(values: Sequence[str], *, is_bearer: bool) -> str:
    """Return the token of the header; empty without one, with several, and if it is no token."""
    if len(values) != 1:
        return ""
    scheme, _, token = values[0].partition(" ") if is_bearer else ("bearer", "", values[0])
    return token if scheme.lower() == "bearer" and _TOKEN.fullmatch(token) else ""


def place_of(url: str) -> guard.Place:
    """Return the host and the origin that browsers send for a public URL."""
    try:
        parts = urlsplit(url)
        host = parts.netloc.lower().removesuffix(":443")
        is_origin = parts.path in ("", "/") and not parts.query and not parts.fragment and "@" not in host
        if parts.scheme == "https" and parts.hostname and parts.port != 0 and is_origin and host.isascii():
            return guard.Place(host, f"https://{host}")
    except ValueError:
        pass  # such as a port that is not a number
    raise UsageError(f"--public-url {url!r}: not a URL such as https://console.example.com")


def _is_navigation(request: web.Request) -> bool:
    """Whether a link, or the way back from a login, leads a browser here; a frame, an image or a script is none."""
    modes = [request.headers.getall(f"Sec-Fetch-{header}", ()) for header in ("Mode", "Dest")]
    return request.method == "GET" and modes == [["navigate"], ["document"]]


async def _give_session(request: web.Request, answer: web.StreamResponse) -> None:
    if _NEW_SESSION in request:
        answer.headers.add("Set-Cookie", _cookie(SESSION, request[_NEW_SESSION]))


def _cookie(name: str, value: str) -> str:
    return f"{name}={value}; HttpOnly; Path=/; SameSite=Strict; Secure"


def _moved(headers: Mapping[str, str] = MappingProxyType({})) -> web.Response:
    return web.Response(status=HTTPStatus.SEE_OTHER, headers={"Location": _BASE, **headers})


def _html(content: str, status: HTTPStatus = HTTPStatus.OK) -> web.Response:
    return web.Response(text=content, status=status, content_type="text/html")


def _digest(token: str) -> str:
    return sha256(token.encode()).hexdigest()


def run_in_cluster(args: argparse.Namespace) -> int:
    """Run the command."""
    for name in ("kubeconfig", "context", "no_browser"):
        if getattr(args, name):
            option = f"--{name.replace('_', '-')}"
            raise UsageError(f"{option}: not with --in-cluster", "every request is made with the token of its viewer")
    if not args.public_url or not args.certificate_authority:
        raise UsageError("--in-cluster needs --public-url and --certificate-authority", "see --help")
    plate = (args.cluster_name, args.cluster_color)
    setup = Setup(place_of(args.public_url), args.token_header, wanted_of(args), args.operator_namespace, *plate)
    asyncio.run(_serve(args, setup, _api_server(args), trust_of(args)))
    return 0


def _api_server(args: argparse.Namespace) -> Anonymous:
    file = args.certificate_authority
    try:
        return Anonymous(Path(file).read_bytes(), args.api_server)
    except OSError as error:
        raise UsageError(f"--certificate-authority {file}: {error}", "name a file with PEM certificates") from error
    except ConnectError as error:
        raise UsageError(str(error), "check --api-server and --certificate-authority") from error


async def _serve(args: argparse.Namespace, setup: Setup, api: Anonymous, tls: ssl.SSLContext) -> None:
    viewers = Viewers(api, setup)
    try:
        runner = await Gate(viewers, setup, tls).serve(args.address or None, args.port or PORT)
    except OSError as error:
        raise CommandError(f"cannot listen on port {args.port or PORT}: {error}", "choose another --port") from error
    print(f"serving {setup.place.origin}{_BASE} on port {args.port or PORT}", file=sys.stderr, flush=True)
    ended = set_by_signals()
    try:
        await ended.wait()
    finally:
        await runner.cleanup()
        await viewers.close()
