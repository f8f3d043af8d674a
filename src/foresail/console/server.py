"""`foresail console`: the pages over HTTP, and the door for one browser on this machine."""

import argparse
import asyncio
import logging
import secrets
import signal
import ssl
import sys
import tempfile
import webbrowser
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import timedelta
from http import HTTPStatus
from typing import Protocol, TypeVar

from aiohttp import web

from foresail.cli.access.cluster import Cluster, connected, settle_namespace
from foresail.cli.check.checks import read_record
from foresail.cli.errors import (
    CommandError,
    NotAllowedError,
    NotFoundError,
    UnauthorizedError,
    UnreachableError,
    UsageError,
)
from foresail.cli.location.request import decide
from foresail.cli.options.shared import read_objective
from foresail.cli.tenant.adopt import SeenAdoption, approve_one
from foresail.cli.tenant.files import Access, trust_of
from foresail.cli.tenant.new_request import problem_with_name
from foresail.cli.tenant.tenant_request import is_restorable
from foresail.console import (
    cluster_pages,
    guard,
    live,
    pages,
    policy_pages,
    restore_pages,
)
from foresail.console.changes import back_up_now, restore, set_paused
from foresail.console.layout import Search, Site, Viewpoint, entrance, plain_page, problem_page
from foresail.console.read import Reader, Rights
from foresail.console.report.snapshot import Wanted
from foresail.console.turns import LONGEST_WAIT, MOST_STREAMS, Streams, TurnError, Turns
from foresail.console.web.assets import CONSOLE, SCRIPT, SHEET
from foresail.cron import CronError
from foresail.cron.zone_names import validate_zone_name
from foresail.kube.clock import now
from foresail.kube.connect import cluster_of_context
from foresail.plan import Key
from foresail.selfservice.families import BACKUPS, RESTORES

T = TypeVar("T")
LOOPBACK = "127.0.0.1"
_NAME = r"[a-z0-9](?:[-a-z0-9.]{0,251}[a-z0-9])?"
_START_AGAIN = "Open the URL that foresail console has printed, or start it again: the URL works once."
_PATIENCE = timedelta(minutes=2)
_MOST_NAME = 253
SILENT = logging.getLogger("foresail.console.http")
"""Of aiohttp, which would log the beginning of a header that is too long: that of a token."""

SILENT.disabled = True
_Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]
_Page = Callable[["Pages", web.Request], Awaitable[web.StreamResponse]]


@dataclass(frozen=True, slots=True, repr=False)
class Form:
    """Where the pages of a viewer are, and what makes a form theirs."""

    mount: str
    csrf: str
    viewer: str = ""  # a digest of the token, if there are several
    context: str = ""  # of the kubeconfig
    server: str = ""  # host and port of the API server


class Pages:
    """What one viewer sees and does: every read and write is the reader's, with that viewer's own rights."""

    def __init__(self, reader: Reader, form: Form, tls: ssl.SSLContext, streams: Streams) -> None:
        self._reader = reader
        self._cluster = reader.cluster
        self._form = form
        self._velero_namespace = reader.wanted.velero_namespace
        self._tls = tls  # in front of the bucket, from which a plan reads the contents of a backup
        self._streams = streams
        self.share = reader.share

    async def in_turn(self, read: Callable[[], Awaitable[T]]) -> T:
        """Read when it is this viewer's turn."""
        rights = await self._reader.rights(now())
        async with self.share.read(is_administrator=rights.is_administrator):
            return await read()

    def forget(self) -> None:
        """Forget what was read."""
        self._reader.forget()

    @classmethod
    def add_to(cls, app: web.Application, mount: str) -> None:
        """Add the routes: each leads to a method of the Pages that the door has let in."""
        get = _leading_to(app.router.add_get, _in_turn)
        get_at_once = _leading_to(app.router.add_get, _counted)
        get_free = _leading_to(app.router.add_get, _at_once)  # files, and streams, which are counted by themselves
        post = _leading_to(app.router.add_post, _counted)
        change = _leading_to(app.router.add_post, _to_the_end)
        base = f"/{mount}"
        namespace = f"{{namespace:{_NAME}}}"
        name = f"{{name:{_NAME}}}"
        get(f"{base}/", cls._overview)
        get_free(f"{base}/style.css", cls._style)
        get_free(f"{base}/live.js", cls._script)
        get_free(f"{base}/live", cls._live)
        get_free(f"{base}/live/ns/{namespace}", cls._live)
        get_free(f"{base}/live/ns/{namespace}/{{word:backup|restore}}/{name}", cls._live)
        get(f"{base}/namespaces", cls._namespaces)
        get(f"{base}/calendar", cls._calendar)
        post(f"{base}/calendar/preview", cls._preview)
        get(f"{base}/doctor", cls._doctor)
        get(f"{base}/queue", cls._queue)
        get(f"{base}/policies", cls._policies)
        get(f"{base}/checks", cls._checks)
        get(f"{base}/ns/{namespace}/check/{name}", cls._check)
        get_at_once(f"{base}/ns/{namespace}/check/{name}/evidence.json", cls._evidence)
        get(f"{base}/primers", cls._primers)
        decision = "{verb:approve|reject}"
        change(f"{base}/approvals/location/{namespace}/{name}/{decision}", cls._decide_location)
        change(f"{base}/approvals/backup/{name}/approve", cls._adopt)
        get(f"{base}/ns/{namespace}", cls._one_namespace)
        get_at_once(f"{base}/ns/{namespace}/{{word:backup|restore}}/{name}", cls._detail)
        post(f"{base}/ns/{namespace}/{{word:backup}}/{name}/{{file:contents}}", cls._file)
        post(f"{base}/ns/{namespace}/{{word:backup|restore}}/{name}/{{file:log}}", cls._file)
        get(f"{base}/ns/{namespace}/restore", cls._choose)
        post(f"{base}/ns/{namespace}/plan", cls._plan)
        change(f"{base}/ns/{namespace}/restore", cls._restore)
        change(f"{base}/ns/{namespace}/backup", cls._back_up)
        change(f"{base}/ns/{namespace}/schedule/{name}/{{verb:pause|unpause}}", cls._pause)

    async def rights(self) -> Rights:
        """Return what the viewer may read."""
        return await self._reader.rights(now())

    async def _site(self, namespace: str = "") -> Site:
        """Return the site, for a page of a namespace or of the one that was chosen."""
        rights = await self.rights()
        form = self._form
        return Site(
            form.mount,
            form.csrf,
            namespace or self._reader.wanted.namespace,
            rights.is_administrator,
            offered=rights.offered,
            viewpoint=Viewpoint(form.context, form.server, rights.user, rights.namespaces),
        )

    async def problem(self, error: CommandError, request: web.Request) -> str:
        """Return an error in the layout; what was asked for by a form is not asked for again."""
        again = request.path_qs if request.method == "GET" and "/live" not in request.path else ""
        is_refused = isinstance(error, NotAllowedError)
        return problem_page(await self._site(), error.problem, error.hint or "", again, is_refused=is_refused)

    async def _site_of(self, page: str) -> Site:
        """Return the site for a page that not everybody may read; refuse who may not."""
        site = await self._site()
        if page not in site.offered:
            raise NotAllowedError(f"you may not read what the page {page} shows", _WHO_MAY)
        return site

    async def _overview(self, _: web.Request) -> web.Response:
        at = now()
        figures = await self._reader.figures(at)
        waiting = await self._reader.waiting(at)
        site = await self._site()
        newest = [] if site.is_administrator else await self._reader.requests(site.namespace)
        return _page(pages.overview(site, figures, waiting, newest))

    async def _style(self, _: web.Request) -> web.Response:
        return web.Response(text=f"{SHEET}{CONSOLE}", content_type="text/css")

    async def _script(self, _: web.Request) -> web.Response:
        return web.Response(text=SCRIPT, content_type="text/javascript")

    async def _live(self, request: web.Request) -> web.StreamResponse:
        """Report whenever what a page shows is no longer what the browser has seen."""
        with self._streams.one(self._form.viewer) as is_free:
            if not is_free:
                raise web.HTTPServiceUnavailable(reason="Too many pages are followed at once")
            return await self._stream(request)

    async def _stream(self, request: web.Request) -> web.StreamResponse:
        seen = request.query.get("seen", "")
        is_one = "name" in request.match_info
        clock = asyncio.get_running_loop()
        began = begun = clock.time()
        text = await self._digest(request, is_first=True)  # what cannot be read is refused before the stream begins
        took = clock.time() - begun
        answer = web.StreamResponse(headers={**guard.HEADERS, "Content-Type": "text/event-stream"})
        try:
            await answer.prepare(request)
            await answer.write(live.FIRST)
            while not self._streams.is_over(clock.time() - began):
                await answer.write(live.ALIVE if text == seen else live.CHANGED)
                seen = text
                with suppress(TimeoutError):
                    await asyncio.wait_for(self._streams.ended.wait(), live.pause(took, is_one=is_one))
                begun = clock.time()
                text = await self._digest(request)
                took = clock.time() - begun
        except (ConnectionError, CommandError, TurnError):
            pass  # the browser has left the page, or may no longer read it, or has to try again
        except Exception as error:  # noqa: BLE001 - the answer has begun: it can only end
            print(f"error: {request.method}: {type(error).__name__}", file=sys.stderr)
        return answer

    async def _digest(self, request: web.Request, *, is_first: bool = False) -> str:
        place = request.match_info
        at = now()
        if "name" in place:
            family = BACKUPS if place["word"] == BACKUPS.word else RESTORES
            key = Key(place["namespace"], place["name"])
            read = self._reader.request(family, key, at) if is_first else self._reader.polled(family, key)
            return live.digest([await read])
        if "namespace" in place:
            return live.digest(await self.in_turn(lambda: self._reader.requests(place["namespace"])))
        return live.digest(await self.in_turn(lambda: self._reader.waiting(at)))

    async def _namespaces(self, request: web.Request) -> web.Response:
        figures = await self._reader.figures(now())
        return _page(pages.namespaces(await self._site(), figures, _search(request)))

    async def _calendar(self, _: web.Request) -> web.Response:
        at = now()
        site = await self._site()
        schedules = await self._reader.schedules(at) if site.is_administrator else []
        return _page(cluster_pages.calendar(site, await self._reader.figures(at), schedules))

    async def _preview(self, request: web.Request) -> web.Response:
        """Show what a SchedulePolicy would change; nothing is applied."""
        manifest = (await self._own_form(request)).get("manifest", "").replace("\r\n", "\n")  # as browsers send lines
        text = manifest[: cluster_pages.MOST_TEXT]
        at = now()
        site = await self._site()
        if not site.is_administrator:
            raise NotAllowedError("you may not read all Schedules and Backups", _WHO_MAY)
        try:
            preview = await self.in_turn(lambda: self._reader.preview(text, at))
        except UnreachableError:
            raise
        except CommandError as error:
            return _page(cluster_pages.refused(site, text, error), HTTPStatus.BAD_REQUEST)
        return _page(cluster_pages.previewed(site, text, preview))

    async def _doctor(self, _: web.Request) -> web.Response:
        site = await self._site_of("doctor")
        return _page(pages.doctor(site, await self._reader.findings()))

    async def _queue(self, request: web.Request) -> web.Response:
        site = await self._site_of("queue")
        requests, shares = await self._reader.queue(now())
        return _page(cluster_pages.queue(site, requests, shares, _search(request)))

    async def _policies(self, _: web.Request) -> web.Response:
        at = now()
        site = await self._site_of("policies")
        reader = self._reader
        applied = await reader.policies()
        schedules = await reader.schedule_policies(at)
        return _page(policy_pages.policies(site, applied, schedules, await reader.approvals(at), at))

    async def _checks(self, request: web.Request) -> web.Response:
        at = now()
        site = await self._site_of("checks")
        places = (await self._reader.rights(at)).checks
        return _page(pages.checks(site, places, await self._reader.checks(at), _search(request)))

    async def _check(self, request: web.Request) -> web.Response:
        key = Key(request.match_info["namespace"], request.match_info["name"])
        document, evidence, history = await self._reader.check(key)
        return _page(pages.check(await self._site(), key, document, read_record(evidence), history))

    async def _evidence(self, request: web.Request) -> web.Response:
        evidence = await self._reader.evidence(Key(request.match_info["namespace"], request.match_info["name"]))
        if not evidence:
            raise CommandError("there is no evidence of the last run, or you may not read it", "start a check")
        headers = {"Content-Disposition": 'attachment; filename="record.json"'}
        return web.Response(text=evidence, content_type="application/json", headers=headers)

    async def _primers(self, request: web.Request) -> web.Response:
        at = now()
        site = await self._site_of("primers")
        return _page(cluster_pages.primers(site, await self._reader.primers(at), _search(request), at))

    async def _decide_location(self, request: web.Request) -> web.Response:
        seen = (await self._own_form(request)).get("request", "")
        key = Key(request.match_info["namespace"], request.match_info["name"])
        await decide(self._cluster, self._velero_namespace, key, request.match_info["verb"], seen=seen)
        return await self._moved("policies")

    async def _adopt(self, request: web.Request) -> web.Response:
        fields = await self._own_form(request)
        seen = SeenAdoption(*(fields.get(each, "") for each in ("uid", "namespace", "record")))
        await approve_one(self._cluster, self._reader.scope, request.match_info["name"], seen, now())
        return await self._moved("policies")

    async def _one_namespace(self, request: web.Request) -> web.Response:
        at = now()
        name = request.match_info["namespace"]
        namespace = await self._reader.namespace(name, at)
        return _page(pages.namespace(await self._site(name), name, namespace, at))

    async def _detail(self, request: web.Request) -> web.Response:
        at = now()
        family = BACKUPS if request.match_info["word"] == BACKUPS.word else RESTORES
        key = Key(request.match_info["namespace"], request.match_info["name"])
        tenant_request = await self._reader.request(family, key, at)
        is_copy = family is BACKUPS and is_restorable(tenant_request, at)
        may_restore = is_copy and await self._reader.may_restore(key.namespace)
        may_download = not tenant_request.is_open and await self._reader.may_download(key.namespace)
        site = await self._site(key.namespace)
        return _page(pages.detail(site, tenant_request, at, may_restore=may_restore, may_download=may_download))

    async def _file(self, request: web.Request) -> web.Response:
        """Show a file of Velero; a form asks for it, for a request for the file is created and deleted."""
        await self._own_form(request)
        place = request.match_info
        site = await self._site(place["namespace"])
        access = self._access
        key = Key(place["namespace"], place["name"])
        if place["file"] == restore_pages.CONTENTS:
            return _page(restore_pages.contents(site, *await self._reader.contents(key, access)))
        family = BACKUPS if place["word"] == BACKUPS.word else RESTORES
        return _page(restore_pages.log(site, *await self._reader.log(family, key, access)))

    def _access(self) -> Access:
        return Access(self._tls, now() + _PATIENCE)

    async def _choose(self, request: web.Request) -> web.Response:
        at = now()
        namespace = request.match_info["namespace"]
        copies = await self._reader.copies(namespace, at)
        chosen = request.query.get("backup", "")
        return _page(restore_pages.choose(await self._site(namespace), namespace, copies, chosen, _search(request), at))

    async def _plan(self, request: web.Request) -> web.Response:
        copy, policy, _ = await self._wished(request)
        at = now()
        site = await self._site(copy.namespace)
        wish = restore_pages.Wish(await self._reader.copy(copy), policy)
        try:
            plan = await self._reader.plan(copy, policy, self._access)
        except CommandError as error:
            return _page(restore_pages.unplanned(site, wish, error, at))
        return _page(restore_pages.planned(site, wish, plan, at))

    async def _restore(self, request: web.Request) -> web.Response:
        copy, policy, uid = await self._wished(request)
        key = await restore(self._cluster, copy, uid, policy, now())
        return await self._moved("ns", key.namespace, RESTORES.word, key.name)

    async def _wished(self, request: web.Request) -> tuple[Key, str, str]:
        """Return the copy of a form, what to do with existing objects, and the UID of the copy."""
        fields = await self._own_form(request)
        name = fields.get("backup", "")
        policy = fields.get("policy", "")
        if problem_with_name(name) is not None or policy not in (restore_pages.KEEP, restore_pages.UPDATE):
            raise web.HTTPBadRequest(reason="Choose a backup, and what to do with objects that exist")
        return Key(request.match_info["namespace"], name), policy, fields.get("uid", "")

    async def _back_up(self, request: web.Request) -> web.Response:
        await self._own_form(request)
        key = await back_up_now(self._cluster, request.match_info["namespace"], now())
        return await self._moved("ns", key.namespace, BACKUPS.word, key.name)

    async def _pause(self, request: web.Request) -> web.Response:
        uid = (await self._own_form(request)).get("uid", "")
        key = Key(request.match_info["namespace"], request.match_info["name"])
        await set_paused(self._cluster, key, uid, paused=request.match_info["verb"] == "pause")
        return await self._moved("ns", key.namespace)

    async def _own_form(self, request: web.Request) -> dict[str, str]:
        """Return the fields of a form that this console has made; refuse every other."""
        fields = {name: value for name, value in (await request.post()).items() if isinstance(value, str)}
        if not guard.is_own_form(fields.get("csrf", ""), self._form.csrf):
            raise web.HTTPForbidden(reason="This form is not from this console")
        return fields

    async def _moved(self, *parts: str) -> web.Response:
        """Lead the browser to a page after a change, so that reloading does not repeat it."""
        return web.Response(status=HTTPStatus.SEE_OTHER, headers={"Location": (await self._site()).link(*parts)})


class Door(Protocol):
    """Who is let in."""

    mount: str
    streams: Streams

    async def admit(self, request: web.Request) -> "Pages | web.StreamResponse":
        """Return the pages of whoever asks, or why there are none."""

    async def unauthorized(self, request: web.Request, error: UnauthorizedError) -> web.StreamResponse:
        """Answer a viewer whose credentials the API server does not accept."""


def application(door: Door) -> web.Application:
    """Return the routes behind a door; every answer has the same headers."""

    @web.middleware
    async def guarded(request: web.Request, handler: _Handler) -> web.StreamResponse:
        answer = await _answered(door, request, handler)
        if not answer.prepared:
            answer.headers.update(guard.HEADERS)
        return answer

    async def end_streams(_: web.Application) -> None:
        door.streams.ended.set()

    app = web.Application(middlewares=[guarded], client_max_size=guard.MOST_BODY)
    Pages.add_to(app, door.mount)
    app.on_shutdown.append(end_streams)
    return app


_WHO_MAY = "a viewer of this page must be allowed to list Velero's Schedules and Backups"


async def _answered(door: Door, request: web.Request, handler: _Handler) -> web.StreamResponse:
    try:
        admitted = await door.admit(request)
        if not isinstance(admitted, Pages):
            return admitted
        request[_PAGES] = admitted
        return await handler(request)
    except web.HTTPException as error:
        return _refused(error)
    except UnauthorizedError as error:
        return await door.unauthorized(request, error)
    except CommandError as error:
        return await _problem(request, error)
    except Exception as error:  # noqa: BLE001 - a page must not end the console, nor show what it holds
        print(f"error: {request.method}: {type(error).__name__}", file=sys.stderr)
        return plain(HTTPStatus.INTERNAL_SERVER_ERROR, "This did not work", "The page failed.")


def _refused(error: web.HTTPException) -> web.Response:
    """Answer what is no page, or no way to ask for one, without asking the cluster anything."""
    if error.status == HTTPStatus.NOT_FOUND:
        return plain(HTTPStatus.NOT_FOUND, "No such page", "the console has no such page", "go back to the overview")
    return plain(HTTPStatus(error.status), "Refused", error.reason)


async def _problem(request: web.Request, error: CommandError) -> web.StreamResponse:
    """Answer an error in the layout of the viewer; if even that cannot be read, on a page of its own."""
    kinds = ((NotAllowedError, HTTPStatus.FORBIDDEN), (NotFoundError, HTTPStatus.NOT_FOUND))
    status = next((status for kind, status in kinds if isinstance(error, kind)), HTTPStatus.BAD_GATEWAY)
    pages = request.get(_PAGES)
    try:
        content = await pages.problem(error, request) if pages is not None else None
    except (CommandError, TurnError):
        content = None
    if content is None:
        return plain(status, "This did not work", error.problem, error.hint or "")
    return _page(content, status)


def plain(status: HTTPStatus, title: str, text: str, hint: str = "") -> web.Response:
    """Return a page without navigation."""
    return _page(plain_page(title, text, hint), status)


def asked_of(request: web.Request, cookie: str, *, is_entry: bool) -> guard.Asked:
    """Return what the rules look at."""
    return guard.Asked(
        request.method,
        request.headers.getall("Host", ()),
        request.headers.get("Origin"),
        request.headers.get("Sec-Fetch-Site"),
        request.cookies.get(cookie, ""),
        request.content_type,
        is_entry=is_entry,
    )


class Console:
    """The console of one viewer on this machine: a door that the token of the first URL opens once."""

    def __init__(
        self,
        cluster: Cluster,
        wanted: Wanted,
        known: guard.Secrets,
        tls: ssl.SSLContext,
        operator_namespace: str | None = None,
        place: tuple[str, str] = ("", ""),  # the context of the kubeconfig, and the host of its API server
    ) -> None:
        self._secrets = known
        self.mount = known.mount
        self.streams = Streams(MOST_STREAMS)
        self._form = Form(known.mount, known.csrf, context=place[0], server=place[1])
        self._cluster = cluster
        self._wanted = wanted
        self._tls = tls
        self._operator_namespace = operator_namespace
        self._share = Turns().share()
        self._pages = self._pages_of(wanted.namespace)
        self._is_token_used = False
        self.address = ""

    def _pages_of(self, namespace: str) -> Pages:
        wanted = replace(self._wanted, namespace=namespace)
        reader = Reader(self._cluster, wanted, self._operator_namespace, self._share)
        return Pages(reader, self._form, self._tls, self.streams)

    @property
    def first_url(self) -> str:
        """The URL that opens the console once."""
        return f"http://{self.address}{self._base}?token={self._secrets.token}"

    @property
    def _base(self) -> str:
        return f"/{self.mount}/"

    async def serve(self, port: int) -> web.AppRunner:
        """Listen on the loopback address, and return what stops it."""
        app = application(self)
        runner = web.AppRunner(app, access_log=None, logger=SILENT, handle_signals=False, handler_cancellation=True)
        await runner.setup()
        await web.TCPSite(runner, LOOPBACK, port).start()
        self.address = f"{LOOPBACK}:{runner.addresses[0][1]}"
        return runner

    async def admit(self, request: web.Request) -> Pages | web.StreamResponse:
        """Let in the browser that has the cookie, and give it to the one that has the token."""
        is_entry = request.method == "GET" and request.path == self._base and "token" in request.query
        asked = asked_of(request, guard.COOKIE, is_entry=is_entry)
        refused = guard.refusal(asked, guard.Place(self.address, f"http://{self.address}"))
        if refused is not None:
            return plain(refused.status, "Refused", refused.text)
        if not guard.is_signed_in(asked, self._secrets):
            return self._sign_in(request)
        if request.method == "GET" and request.path == self._base and "namespace" in request.query:
            return await self._switch(request, request.query["namespace"].strip())
        return self._pages

    async def _switch(self, request: web.Request, namespace: str) -> web.StreamResponse:
        """Let all pages be about another namespace, if the viewer may read it."""
        request[_PAGES] = self._pages  # in whose layout a refusal is shown
        if problem_with_name(namespace) is not None:
            raise CommandError(f"{namespace[:_MOST_NAME]!r} is not the name of a namespace", "correct the name")
        pages = self._pages_of(namespace)
        rights = await pages.rights()
        if not (rights.is_administrator or rights.has_namespace):
            problem = f"you may not list the backups and schedules of namespace {namespace}, or it does not exist"
            raise NotAllowedError(problem, "a Role there must allow to list nonadminbackups and nonadminschedules")
        self._pages = pages
        page = f"{self._base}ns/{namespace}" if rights.is_administrator else self._base
        return web.Response(status=HTTPStatus.SEE_OTHER, headers={"Location": page})

    async def unauthorized(self, _: web.Request, error: UnauthorizedError) -> web.StreamResponse:
        """Show what to do about the kubeconfig."""
        return plain(HTTPStatus.BAD_GATEWAY, "This did not work", error.problem, error.hint or "")

    def _sign_in(self, request: web.Request) -> web.StreamResponse:
        """Exchange the token of the first URL for the cookie, once."""
        is_first = request.method == "GET" and request.path == self._base and not self._is_token_used
        if not is_first or not guard.is_token(request.query.get("token", ""), self._secrets):
            return plain(HTTPStatus.UNAUTHORIZED, "Not signed in", _START_AGAIN)
        self._is_token_used = True
        answer = _page(entrance(self._base))
        answer.set_cookie(guard.COOKIE, self._secrets.session, path=self._base, httponly=True, samesite="Strict")
        return answer


_PAGES = web.RequestKey("pages", Pages)


_CHANGES: set[asyncio.Task[web.StreamResponse]] = set()
"""Changes that are under way; the event loop keeps no task alive."""


async def _at_once(pages: Pages, request: web.Request, page: _Page) -> web.StreamResponse:
    return await page(pages, request)


async def _counted(pages: Pages, request: web.Request, page: _Page) -> web.StreamResponse:
    with pages.share.page():
        return await page(pages, request)


async def _in_turn(pages: Pages, request: web.Request, page: _Page) -> web.StreamResponse:
    with pages.share.page():
        return await pages.in_turn(lambda: page(pages, request))


async def _to_the_end(pages: Pages, request: web.Request, page: _Page) -> web.StreamResponse:
    """Make a change to its end, also if the browser leaves meanwhile; whatever its end, the viewer sees it at once."""

    async def changed() -> web.StreamResponse:
        try:
            return await _counted(pages, request, page)
        finally:
            pages.forget()

    task = asyncio.create_task(changed())
    _CHANGES.add(task)
    task.add_done_callback(_CHANGES.discard)
    return await asyncio.shield(task)


def _leading_to(
    add: Callable[[str, _Handler], object],
    led: Callable[[Pages, web.Request, _Page], Awaitable[web.StreamResponse]],
) -> Callable[[str, _Page], None]:
    """Return what adds a route to a method of the admitted Pages."""

    def added(path: str, page: _Page) -> None:
        async def answer(request: web.Request) -> web.StreamResponse:
            try:
                return await led(request[_PAGES], request, page)
            except TurnError as error:
                refused = plain(error.status, "Busy", str(error), "Try again in a moment.")
                refused.headers["Retry-After"] = f"{LONGEST_WAIT:.0f}"
                return refused

        add(path, answer)

    return added


def _page(content: str, status: HTTPStatus = HTTPStatus.OK) -> web.Response:
    body = content.encode()
    if len(body) > guard.MOST_PAGE:
        body = plain_page("Too large", "This page is too large to show.", "Use the command line.").encode()
        status = HTTPStatus.INTERNAL_SERVER_ERROR
    return web.Response(body=body, status=status, content_type="text/html", charset="utf-8")


def _search(request: web.Request) -> Search:
    number = request.query.get("page", "1")
    return Search(request.query.get("q", "")[:253], int(number) if number.isdecimal() and len(number) < 6 else 1)  # noqa: PLR2004


def new_secrets() -> guard.Secrets:
    """Return secrets that nobody has used."""
    token, session, csrf = (secrets.token_urlsafe(32) for _ in range(3))
    return guard.Secrets(token, session, csrf, mount=secrets.token_urlsafe(9))


def wanted_of(args: argparse.Namespace) -> Wanted:
    """Return what the pages are about."""
    try:
        zone = validate_zone_name(args.zone)
    except CronError as error:
        raise UsageError(f"--zone: {error}") from error
    return Wanted(args.velero_namespace, args.namespace or "", read_objective(args), zone)


def run_console(args: argparse.Namespace) -> int:
    """Run the command."""
    settle_namespace(args)
    asyncio.run(_serve(args, wanted_of(args), trust_of(args)))
    return 0


def set_by_signals() -> asyncio.Event:
    """Return an event that SIGINT and SIGTERM set, by which a console ends."""
    ended = asyncio.Event()
    for signals in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(signals, ended.set)
    return ended


async def _serve(args: argparse.Namespace, wanted: Wanted, tls: ssl.SSLContext) -> None:
    async with connected(args) as cluster:
        place = cluster_of_context(args.kubeconfig, args.context)
        console = Console(cluster, wanted, new_secrets(), tls, args.operator_namespace, place)
        try:
            runner = await console.serve(args.port)
        except OSError as error:
            raise CommandError(f"cannot listen on {LOOPBACK}:{args.port}: {error}", "choose another --port") from error
        print(f"{console.first_url}\nThe URL works once. Ctrl-C ends the console.", file=sys.stderr, flush=True)
        ended = set_by_signals()
        # In a file that only the user can read: everybody on the machine sees the arguments of a browser.
        with tempfile.NamedTemporaryFile("w", suffix=".html") as file:
            file.write(entrance(console.first_url))
            file.flush()
            if not args.no_browser:
                webbrowser.open(f"file://{file.name}")
            try:
                await ended.wait()
            finally:
                await runner.cleanup()
