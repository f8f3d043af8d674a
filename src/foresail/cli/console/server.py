"""`foresail console`: an HTTP server for one browser, on this machine only."""

import argparse
import asyncio
import secrets
import signal
import ssl
import sys
import tempfile
import webbrowser
from collections.abc import Awaitable, Callable
from contextlib import suppress
from datetime import timedelta
from http import HTTPStatus

from aiohttp import web

from foresail.cli.access.cluster import Cluster, connected, settle_namespace
from foresail.cli.check.checks import read_record
from foresail.cli.console import (
    check_pages,
    file_pages,
    guard,
    live,
    pages,
    policy_pages,
    primer_pages,
    queue_pages,
    restore_pages,
)
from foresail.cli.console.changes import back_up_now, restore, set_paused
from foresail.cli.console.layout import Search, Site, entrance, plain_page
from foresail.cli.console.read import Reader
from foresail.cli.errors import CommandError, UsageError
from foresail.cli.location.request import decide
from foresail.cli.options.objective import read_objective
from foresail.cli.report.snapshot import Wanted
from foresail.cli.tenant.adopt import SeenAdoption, approve_one
from foresail.cli.tenant.copies import is_restorable
from foresail.cli.tenant.files import Access, trust_of
from foresail.cli.tenant.names import problem_with_name
from foresail.cli.web.script import SCRIPT
from foresail.cli.web.sheet import CONSOLE, SHEET
from foresail.cron import CronError
from foresail.cron.tz.zone_name import validate_zone_name
from foresail.kube.clock import now
from foresail.plan import Key
from foresail.selfservice.families import BACKUPS, RESTORES

LOOPBACK = "127.0.0.1"
_NAME = r"[a-z0-9](?:[-a-z0-9.]{0,251}[a-z0-9])?"
_START_AGAIN = "Open the URL that foresail console has printed, or start it again: the URL works once."
_PATIENCE = timedelta(minutes=2)
_Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


class Console:
    """The pages of one viewer."""

    def __init__(
        self,
        cluster: Cluster,
        wanted: Wanted,
        known: guard.Secrets,
        tls: ssl.SSLContext,
        operator_namespace: str = "foresail",
    ) -> None:
        self._reader, self._cluster, self._secrets = Reader(cluster, wanted, operator_namespace), cluster, known
        self._velero_namespace = wanted.velero_namespace
        self._tls = tls  # in front of the bucket, from which a plan reads the contents of a backup
        self._namespace = wanted.namespace
        self._is_token_used = False
        self._streams, self._ended = 0, asyncio.Event()
        self.address = ""

    @property
    def first_url(self) -> str:
        """The URL that opens the console once."""
        return f"http://{self.address}{self._base}?token={self._secrets.token}"

    @property
    def _base(self) -> str:
        return f"/{self._secrets.mount}/"

    def app(self) -> web.Application:
        """Return the routes behind the guard."""
        app = web.Application(middlewares=[self._guarded], client_max_size=guard.MOST_BODY)
        base, namespace, name = f"/{self._secrets.mount}", f"{{namespace:{_NAME}}}", f"{{name:{_NAME}}}"
        app.router.add_get(f"{base}/", self._overview)
        app.router.add_get(f"{base}/style.css", self._style)
        app.router.add_get(f"{base}/live.js", self._script)
        app.router.add_get(f"{base}/live", self._live)
        app.router.add_get(f"{base}/live/ns/{namespace}", self._live)
        app.router.add_get(f"{base}/live/ns/{namespace}/{{word:backup|restore}}/{name}", self._live)
        app.on_shutdown.append(self._end_streams)
        app.router.add_get(f"{base}/namespaces", self._namespaces)
        app.router.add_get(f"{base}/calendar", self._calendar)
        app.router.add_get(f"{base}/doctor", self._doctor)
        app.router.add_get(f"{base}/queue", self._queue)
        app.router.add_get(f"{base}/policies", self._policies)
        app.router.add_get(f"{base}/checks", self._checks)
        app.router.add_get(f"{base}/checks/{name}", self._check)
        app.router.add_get(f"{base}/checks/{name}/evidence.json", self._evidence)
        app.router.add_get(f"{base}/primers", self._primers)
        decision = "{verb:approve|reject}"
        app.router.add_post(f"{base}/approvals/location/{namespace}/{name}/{decision}", self._decide_location)
        app.router.add_post(f"{base}/approvals/backup/{name}/approve", self._adopt)
        app.router.add_get(f"{base}/ns/{namespace}", self._one_namespace)
        app.router.add_get(f"{base}/ns/{namespace}/{{word:backup|restore}}/{name}", self._detail)
        app.router.add_post(f"{base}/ns/{namespace}/{{word:backup}}/{name}/{{file:contents}}", self._file)
        app.router.add_post(f"{base}/ns/{namespace}/{{word:backup|restore}}/{name}/{{file:log}}", self._file)
        app.router.add_get(f"{base}/ns/{namespace}/restore", self._choose)
        app.router.add_post(f"{base}/ns/{namespace}/plan", self._plan)
        app.router.add_post(f"{base}/ns/{namespace}/restore", self._restore)
        app.router.add_post(f"{base}/ns/{namespace}/backup", self._back_up)
        app.router.add_post(f"{base}/ns/{namespace}/schedule/{name}/{{verb:pause|unpause}}", self._pause)
        return app

    async def serve(self, port: int) -> web.AppRunner:
        """Listen on the loopback address, and return what stops it."""
        runner = web.AppRunner(self.app(), access_log=None, handle_signals=False)
        await runner.setup()
        await web.TCPSite(runner, LOOPBACK, port).start()
        self.address = f"{LOOPBACK}:{runner.addresses[0][1]}"
        return runner

    @web.middleware
    async def _guarded(self, request: web.Request, handler: _Handler) -> web.StreamResponse:
        """Answer only the viewer's own browser, and give every answer the same headers."""
        answer = await self._checked(request, handler)
        if not answer.prepared:
            answer.headers.update(guard.HEADERS)
        return answer

    async def _checked(self, request: web.Request, handler: _Handler) -> web.StreamResponse:
        asked = guard.Asked(
            request.method,
            request.headers.getall("Host", ()),
            request.headers.get("Origin"),
            request.headers.get("Sec-Fetch-Site"),
            request.cookies.get(guard.COOKIE, ""),
            request.content_type,
            is_entry=request.method == "GET" and request.path == self._base and "token" in request.query,
        )
        refused = guard.refusal(asked, self.address)
        if refused is not None:
            return _page(plain_page("Refused", refused.text), refused.status)
        if not guard.is_signed_in(asked, self._secrets):
            return self._sign_in(request)
        try:
            return await handler(request)
        except web.HTTPException as error:
            return _page(plain_page("Refused", error.reason), HTTPStatus(error.status))
        except CommandError as error:
            return _page(plain_page("This did not work", error.problem, error.hint or ""), HTTPStatus.BAD_GATEWAY)
        except Exception as error:  # noqa: BLE001 - a page must not end the console, nor show what it holds
            print(f"error: {request.method}: {type(error).__name__}", file=sys.stderr)
            return _page(plain_page("This did not work", "The page failed."), HTTPStatus.INTERNAL_SERVER_ERROR)

    def _sign_in(self, request: web.Request) -> web.StreamResponse:
        """Exchange the token of the first URL for the cookie, once."""
        is_first = request.method == "GET" and request.path == self._base and not self._is_token_used
        if not is_first or not guard.is_token(request.query.get("token", ""), self._secrets):
            return _page(plain_page("Not signed in", _START_AGAIN), HTTPStatus.UNAUTHORIZED)
        self._is_token_used = True
        answer = _page(entrance(self._base))
        answer.set_cookie(guard.COOKIE, self._secrets.session, path=self._base, httponly=True, samesite="Strict")
        return answer

    async def _site(self) -> Site:
        rights = await self._reader.rights(now())
        return Site(
            self._secrets.mount, self._secrets.csrf, self._namespace, rights.is_administrator, offered=rights.offered
        )

    async def _site_of(self, page: str) -> Site:
        """Return the site for a page that not everybody may read; refuse who may not."""
        site = await self._site()
        if page not in site.offered:
            raise CommandError(f"you may not read what the page {page} shows", "ask a cluster administrator")
        return site

    async def _overview(self, _: web.Request) -> web.Response:
        at = now()
        found, waiting = await self._reader.figures(at), await self._reader.waiting(at)
        site = await self._site()
        newest = [] if site.is_administrator else await self._reader.requests(site.namespace)
        return _page(pages.overview(site, found, waiting, newest))

    async def _style(self, _: web.Request) -> web.Response:
        return web.Response(text=f"{SHEET}{CONSOLE}", content_type="text/css")

    async def _script(self, _: web.Request) -> web.Response:
        return web.Response(text=SCRIPT, content_type="text/javascript")

    async def _live(self, request: web.Request) -> web.StreamResponse:
        """Report whenever what a page shows is no longer what the browser has seen."""
        if self._streams >= live.MOST_STREAMS:
            raise web.HTTPServiceUnavailable(reason="Too many pages are followed at once")
        self._streams += 1
        try:
            return await self._stream(request)
        finally:
            self._streams -= 1

    async def _stream(self, request: web.Request) -> web.StreamResponse:
        seen, is_one, clock = request.query.get("seen", ""), "name" in request.match_info, asyncio.get_running_loop()
        begun = clock.time()
        found = await self._digest(request, is_first=True)  # what cannot be read is refused before the stream begins
        took = clock.time() - begun
        answer = web.StreamResponse(headers={**guard.HEADERS, "Content-Type": "text/event-stream"})
        try:
            await answer.prepare(request)
            await answer.write(live.FIRST)
            while not self._ended.is_set():
                await answer.write(live.ALIVE if found == seen else live.CHANGED)
                seen = found
                with suppress(TimeoutError):
                    await asyncio.wait_for(self._ended.wait(), live.pause(took, is_one=is_one))
                begun = clock.time()
                found = await self._digest(request)
                took = clock.time() - begun
        except (ConnectionError, CommandError):
            pass  # the browser has left the page, or may no longer read it
        except Exception as error:  # noqa: BLE001 - the answer has begun: it can only end
            print(f"error: {request.method}: {type(error).__name__}", file=sys.stderr)
        return answer

    async def _digest(self, request: web.Request, *, is_first: bool = False) -> str:
        place, at = request.match_info, now()
        if "name" in place:
            family = BACKUPS if place["word"] == BACKUPS.word else RESTORES
            key = Key(place["namespace"], place["name"])
            read = self._reader.request(family, key, at) if is_first else self._reader.polled(family, key)
            return live.digest([await read])
        if "namespace" in place:
            return live.digest(await self._reader.requests(place["namespace"]))
        return live.digest(await self._reader.waiting(at))

    async def _end_streams(self, _: web.Application) -> None:
        self._ended.set()

    async def _namespaces(self, request: web.Request) -> web.Response:
        found = await self._reader.figures(now())
        return _page(pages.namespaces(await self._site(), found, _search(request)))

    async def _calendar(self, _: web.Request) -> web.Response:
        at, site = now(), await self._site()
        schedules = await self._reader.schedules(at) if site.is_administrator else []
        return _page(pages.calendar(site, await self._reader.figures(at), schedules))

    async def _doctor(self, _: web.Request) -> web.Response:
        site = await self._site_of("doctor")
        return _page(pages.doctor(site, await self._reader.findings()))

    async def _queue(self, request: web.Request) -> web.Response:
        site = await self._site_of("queue")
        found, shares = await self._reader.queue(now())
        return _page(queue_pages.queue(site, found, shares, _search(request)))

    async def _policies(self, _: web.Request) -> web.Response:
        at, site, reader = now(), await self._site_of("policies"), self._reader
        applied, schedules = await reader.policies(), await reader.schedule_policies(at)
        return _page(policy_pages.policies(site, applied, schedules, await reader.approvals(at), at))

    async def _checks(self, _: web.Request) -> web.Response:
        site = await self._site_of("checks")
        return _page(check_pages.checks(site, self._velero_namespace, await self._reader.checks(), now()))

    async def _check(self, request: web.Request) -> web.Response:
        site = await self._site_of("checks")
        found, evidence, history = await self._reader.check(request.match_info["name"])
        return _page(check_pages.check(site, self._velero_namespace, found, read_record(evidence), history))

    async def _evidence(self, request: web.Request) -> web.Response:
        await self._site_of("checks")
        _, evidence, _ = await self._reader.check(request.match_info["name"])
        if not evidence:
            raise CommandError("there is no evidence of the last run, or you may not read it", "start a check")
        headers = {"Content-Disposition": 'attachment; filename="record.json"'}
        return web.Response(text=evidence, content_type="application/json", headers=headers)

    async def _primers(self, request: web.Request) -> web.Response:
        at, site = now(), await self._site_of("primers")
        return _page(primer_pages.primers(site, await self._reader.primers(at), _search(request), at))

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
        at, name = now(), request.match_info["namespace"]
        found = await self._reader.namespace(name, at)
        return _page(pages.namespace(await self._site(), name, found, at))

    async def _detail(self, request: web.Request) -> web.Response:
        at, family = now(), BACKUPS if request.match_info["word"] == BACKUPS.word else RESTORES
        key = Key(request.match_info["namespace"], request.match_info["name"])
        found = await self._reader.request(family, key, at)
        is_copy = family is BACKUPS and is_restorable(found, at)
        may_restore = is_copy and await self._reader.may_restore(key.namespace)
        may_download = not found.is_open and await self._reader.may_download(key.namespace)
        return _page(pages.detail(await self._site(), found, at, may_restore=may_restore, may_download=may_download))

    async def _file(self, request: web.Request) -> web.Response:
        """Show a file of Velero; a form asks for it, for a request for the file is created and deleted."""
        await self._own_form(request)
        site, place, access = await self._site(), request.match_info, Access(self._tls, now() + _PATIENCE)
        key = Key(place["namespace"], place["name"])
        if place["file"] == file_pages.CONTENTS:
            return _page(file_pages.contents(site, *await self._reader.contents(key, access)))
        family = BACKUPS if place["word"] == BACKUPS.word else RESTORES
        return _page(file_pages.log(site, *await self._reader.log(family, key, access)))

    async def _choose(self, request: web.Request) -> web.Response:
        at, namespace = now(), request.match_info["namespace"]
        copies = await self._reader.copies(namespace, at)
        chosen = request.query.get("backup", "")
        return _page(restore_pages.choose(await self._site(), namespace, copies, chosen, _search(request), at))

    async def _plan(self, request: web.Request) -> web.Response:
        copy, policy, _ = await self._wished(request)
        at, site = now(), await self._site()
        wish = restore_pages.Wish(await self._reader.copy(copy), policy)
        try:
            plan = await self._reader.plan(copy, policy, lambda: Access(self._tls, now() + _PATIENCE))
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
        name, policy = fields.get("backup", ""), fields.get("policy", "")
        if problem_with_name(name) is not None or policy not in (restore_pages.KEEP, restore_pages.UPDATE):
            raise web.HTTPBadRequest(reason="Choose a copy, and what to do with objects that exist")
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
        if not guard.is_own_form(fields.get("csrf", ""), self._secrets):
            raise web.HTTPForbidden(reason="This form is not from this console")
        return fields

    async def _moved(self, *parts: str) -> web.Response:
        """Lead the browser to a page after a change, so that reloading does not repeat it."""
        return web.Response(status=HTTPStatus.SEE_OTHER, headers={"Location": (await self._site()).link(*parts)})


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


def run_console(args: argparse.Namespace) -> int:
    """Run the command."""
    objective = read_objective(args)
    try:
        zone = validate_zone_name(args.zone)
    except CronError as error:
        raise UsageError(f"--zone: {error}") from error
    settle_namespace(args)
    tls = trust_of(args)
    asyncio.run(_serve(args, Wanted(args.velero_namespace, args.namespace, objective, zone), tls))
    return 0


async def _serve(args: argparse.Namespace, wanted: Wanted, tls: ssl.SSLContext) -> None:
    async with connected(args) as cluster:
        console = Console(cluster, wanted, new_secrets(), tls, args.operator_namespace)
        try:
            runner = await console.serve(args.port)
        except OSError as error:
            raise CommandError(f"cannot listen on {LOOPBACK}:{args.port}: {error}", "choose another --port") from error
        print(f"{console.first_url}\nThe URL works once. Ctrl-C ends the console.", file=sys.stderr, flush=True)
        ended = asyncio.Event()
        for each in (signal.SIGINT, signal.SIGTERM):
            asyncio.get_running_loop().add_signal_handler(each, ended.set)
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
