"""`foresail console`: the pages over HTTP, and the door for one browser on this machine."""

import argparse
import asyncio
import secrets
import ssl
import sys
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
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
from foresail.cli.options.shared import read_objective
from foresail.cli.restore_plan.planning import RestorePlan
from foresail.cli.tenant.files import Access, trust_of
from foresail.cli.tenant.new_request import problem_with_name
from foresail.cli.tenant.only import check_only, picked_of, writes_digest, writes_of
from foresail.cli.tenant.tenant_request import is_restorable
from foresail.console import (
    act_pages,
    acts,
    cluster_pages,
    guard,
    live,
    pages,
    plan_pages,
    policy_pages,
    protection_pages,
    restore_pages,
    rollback_pages,
)
from foresail.console.changes import back_up_now, check_seen, restore, restore_picked, set_paused
from foresail.console.desk import Desk, addresses
from foresail.console.door import LocalDoor, html_answer, plain
from foresail.console.layout import Search, Site, Viewpoint, problem_page
from foresail.console.read import Reader, Rights
from foresail.console.report.snapshot import Wanted
from foresail.console.timeline import Window, window_of
from foresail.console.turns import LONGEST_WAIT, MOST_STREAMS, Streams, TurnError, Turns
from foresail.console.web.assets import CONSOLE, SCRIPT, SHEET
from foresail.cron import CronError
from foresail.cron.zone_names import validate_zone_name
from foresail.kube.clock import now
from foresail.kube.connect import cluster_of_context
from foresail.plan import Key
from foresail.selfservice.families import BACKUPS, RESTORES

T = TypeVar("T")
_NAME = r"[a-z0-9](?:[-a-z0-9.]{0,251}[a-z0-9])?"
_PATIENCE = timedelta(minutes=2)
_MOST_NAME = 253
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
    name: str = ""  # of the cluster, as the administrator calls it
    color: str = ""  # the same


class Pages:
    """What one viewer sees and does: every read and write is the reader's, with that viewer's own rights."""

    def __init__(self, reader: Reader, form: Form, tls: ssl.SSLContext, streams: Streams) -> None:
        self._reader = reader
        self._cluster = reader.cluster
        self._form = form
        self._desk = Desk(reader.cluster, reader.scope)
        self._tls = tls  # in front of the bucket, from which a plan reads the contents of a backup
        self._streams = streams
        self.share = reader.share

    async def in_turn(self, read: Callable[[], Awaitable[T]]) -> T:
        """Read when it is this viewer's turn."""
        rights = await self._reader.rights()
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
        get_free(f"{base}/live/ns/{namespace}/{{word:backup|restore|rollback}}/{name}", cls._live)
        get(f"{base}/namespaces", cls._namespaces)
        get(f"{base}/calendar", cls._calendar)
        post(f"{base}/calendar/preview", cls._preview)
        change(f"{base}/calendar/apply", cls._apply_policies)
        get(f"{base}/doctor", cls._doctor)
        get(f"{base}/queue", cls._queue)
        get(f"{base}/policies", cls._policies)
        get(f"{base}/checks", cls._checks)
        get(f"{base}/ns/{namespace}/check/{name}", cls._check)
        get_at_once(f"{base}/ns/{namespace}/check/{name}/evidence.json", cls._evidence)
        get(f"{base}/primers", cls._primers)
        get(f"{base}/protection", cls._protection)
        get(f"{base}/rollbacks", cls._rollbacks)
        get_at_once(f"{base}/ns/{namespace}/rollback/{name}", cls._rollback)
        get(f"{base}/ns/{namespace}", cls._one_namespace)
        get_at_once(f"{base}/ns/{namespace}/{{word:backup|restore}}/{name}", cls._detail)
        post(f"{base}/ns/{namespace}/{{word:backup}}/{name}/{{file:contents}}", cls._file)
        post(f"{base}/ns/{namespace}/{{word:backup|restore}}/{name}/{{file:log}}", cls._file)
        get(f"{base}/ns/{namespace}/restore", cls._choose)
        post(f"{base}/ns/{namespace}/plan", cls._plan)
        post(f"{base}/ns/{namespace}/confirm", cls._confirm)
        change(f"{base}/ns/{namespace}/restore", cls._restore)
        change(f"{base}/ns/{namespace}/backup", cls._back_up)
        change(f"{base}/ns/{namespace}/schedule/{name}/{{verb:pause|unpause}}", cls._pause)
        for path in addresses(namespace, name):
            get_at_once(f"{base}/{path}", cls._preview_act)
            change(f"{base}/{path}", cls._act)

    async def rights(self) -> Rights:
        """Return what the viewer may read."""
        return await self._reader.rights()

    async def _site(self, namespace: str = "") -> Site:
        """Return the site, for a page of a namespace or of the one that was chosen."""
        rights = await self.rights()
        at = now()
        health = await self._reader.health(at)
        form = self._form
        return Site(
            form.mount,
            form.csrf,
            namespace or self._reader.wanted.namespace,
            rights.is_administrator,
            offered=rights.offered,
            viewpoint=Viewpoint(
                form.context, form.server, rights.user, rights.namespaces, form.name, form.color, health, at
            ),
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

    async def _overview(self, request: web.Request) -> web.Response:
        at = now()
        reader = self._reader.for_one_page()
        waiting = await reader.waiting()
        site = await self._site()
        if site.is_administrator:
            return html_answer(pages.overview(site, await reader.figures(at), waiting, _search(request)))
        own = await reader.namespace(site.namespace, at)
        return html_answer(pages.own_overview(site, own, waiting, _window(request, at)))

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
        if place.get("word") == rollback_pages.WORD:
            return live.version_digest([(await self._reader.rollback(Key(place["namespace"], place["name"]))).content])
        if "name" in place:
            family = BACKUPS if place["word"] == BACKUPS.word else RESTORES
            key = Key(place["namespace"], place["name"])
            read = self._reader.request(family, key, at) if is_first else self._reader.polled(family, key)
            followed = await read
            self._reader.rates.observe(followed, at)
            return live.digest([followed])
        if "namespace" in place:
            return live.digest(await self.in_turn(lambda: self._reader.requests(place["namespace"])))
        return live.digest(await self.in_turn(self._reader.waiting))

    async def _namespaces(self, request: web.Request) -> web.Response:
        figures = await self._reader.for_one_page().figures(now())
        return html_answer(pages.namespaces(await self._site(), figures, _search(request)))

    async def _calendar(self, _: web.Request) -> web.Response:
        at = now()
        reader = self._reader.for_one_page()
        site = await self._site()
        schedules = await reader.schedules(at) if site.is_administrator else []
        return html_answer(cluster_pages.calendar(site, await reader.figures(at), schedules))

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
            return html_answer(cluster_pages.refused(site, text, error), HTTPStatus.BAD_REQUEST)
        return html_answer(cluster_pages.previewed(site, text, preview))

    async def _apply_policies(self, request: web.Request) -> web.Response:
        """Apply the SchedulePolicies of a form, as the preview has shown them."""
        manifest = (await self._own_form(request)).get("manifest", "").replace("\r\n", "\n")
        await acts.apply_policies(self._cluster, manifest[: cluster_pages.MOST_TEXT])
        return await self._moved("policies")

    async def _doctor(self, _: web.Request) -> web.Response:
        site = await self._site_of("doctor")
        return html_answer(pages.doctor(site, await self._reader.findings()))

    async def _queue(self, request: web.Request) -> web.Response:
        site = await self._site_of("queue")
        requests, shares = await self._reader.queue()
        return html_answer(cluster_pages.queue(site, requests, shares, _search(request)))

    async def _policies(self, _: web.Request) -> web.Response:
        at = now()
        site = await self._site_of("policies")
        reader = self._reader.for_one_page()
        applied = await reader.policies()
        schedules = await reader.schedule_policies(at)
        approvals = await reader.approvals(at)
        return html_answer(policy_pages.policies(site, applied, schedules, approvals, at))

    async def _checks(self, request: web.Request) -> web.Response:
        at = now()
        site = await self._site_of("checks")
        places = (await self._reader.rights()).checks
        return html_answer(pages.checks(site, places, await self._reader.checks(at), _search(request)))

    async def _check(self, request: web.Request) -> web.Response:
        key = Key(request.match_info["namespace"], request.match_info["name"])
        document, evidence, history = await self._reader.check(key)
        may_run = await self._reader.may_run_check(key)
        site = await self._site()
        return html_answer(pages.check(site, key, document, read_record(evidence), history, may_run=may_run))

    async def _evidence(self, request: web.Request) -> web.Response:
        evidence = await self._reader.evidence(Key(request.match_info["namespace"], request.match_info["name"]))
        if not evidence:
            raise CommandError("there is no evidence of the last run, or you may not read it", "start a check")
        headers = {"Content-Disposition": 'attachment; filename="record.json"'}
        return web.Response(text=evidence, content_type="application/json", headers=headers)

    async def _protection(self, request: web.Request) -> web.Response:
        at = now()
        site = await self._site_of("protection")
        protected = await self._reader.protection()
        return html_answer(protection_pages.protection(site, protected, _search(request), at))

    async def _rollbacks(self, request: web.Request) -> web.Response:
        at = now()
        site = await self._site_of("rollbacks")
        rollbacks = await self._reader.rollbacks()
        return html_answer(rollback_pages.rollbacks(site, rollbacks, _search(request), at))

    async def _rollback(self, request: web.Request) -> web.Response:
        at = now()
        key = Key(request.match_info["namespace"], request.match_info["name"])
        seen = await self._reader.rollback(key)
        others = [] if seen.has_ended else await self._reader.rollbacks_of(key.namespace)
        may_change, may_create = [await self._reader.may_roll_back(verb, key.namespace) for verb in ("patch", "create")]
        site = await self._site(key.namespace)
        return html_answer(
            rollback_pages.rollback(site, seen, at, others, may_change=may_change, may_create=may_create)
        )

    async def _primers(self, request: web.Request) -> web.Response:
        at = now()
        site = await self._site_of("primers")
        return html_answer(cluster_pages.primers(site, await self._reader.primers(at), _search(request), at))

    async def _one_namespace(self, request: web.Request) -> web.Response:
        at = now()
        name = request.match_info["namespace"]
        namespace = await self._reader.for_one_page().namespace(name, at)
        return html_answer(pages.namespace(await self._site(name), name, namespace, at, _window(request, at)))

    async def _detail(self, request: web.Request) -> web.Response:
        at = now()
        family = BACKUPS if request.match_info["word"] == BACKUPS.word else RESTORES
        key = Key(request.match_info["namespace"], request.match_info["name"])
        tenant_request = await self._reader.request(family, key, at)
        is_copy = family is BACKUPS and is_restorable(tenant_request, at)
        may_restore = is_copy and await self._reader.may_restore(key.namespace)
        may_download = not tenant_request.is_open and await self._reader.may_download(key.namespace)
        may_roll_back = is_copy and await self._reader.may_roll_back("create", key.namespace)
        may_cancel = await self._reader.may_cancel(tenant_request)
        offered = pages.Offered(may_restore, may_download, may_roll_back, may_cancel)
        pace = pages.Pace(self._reader.rates.observe(tenant_request, at), await self._reader.last_like(tenant_request))
        return html_answer(pages.detail(await self._site(key.namespace), tenant_request, at, offered, pace))

    async def _file(self, request: web.Request) -> web.Response:
        """Show a file of Velero; a form asks for it, for a request for the file is created and deleted."""
        await self._own_form(request)
        place = request.match_info
        site = await self._site(place["namespace"])
        access = self._access
        key = Key(place["namespace"], place["name"])
        if place["file"] == restore_pages.CONTENTS:
            return html_answer(restore_pages.contents(site, *await self._reader.contents(key, access)))
        family = BACKUPS if place["word"] == BACKUPS.word else RESTORES
        return html_answer(restore_pages.log(site, *await self._reader.log(family, key, access)))

    def _access(self) -> Access:
        return Access(self._tls, now() + _PATIENCE)

    async def _choose(self, request: web.Request) -> web.Response:
        at = now()
        namespace = request.match_info["namespace"]
        copies = await self._reader.copies(namespace, at)
        chosen = request.query.get("backup", "")
        return html_answer(
            restore_pages.choose(await self._site(namespace), namespace, copies, chosen, _search(request), at)
        )

    async def _plan(self, request: web.Request) -> web.Response:
        wish = await self._wished(request)
        at = now()
        site = await self._site(wish.copy.key.namespace)
        try:
            plan, since = await self._reader.plan(wish.copy.key, wish.policy, self._access)
        except CommandError as error:
            return html_answer(plan_pages.unplanned(site, wish, error, at))
        return html_answer(plan_pages.planned(site, wish, plan, at, since))

    async def _confirm(self, request: web.Request) -> web.Response:
        """Ask for the name of the namespace; nothing is written yet."""
        wish = await self._wished(request)
        check_seen(wish.copy, (await self._own_form(request)).get("uid", ""))
        site = await self._site(wish.copy.key.namespace)
        if not wish.picked:
            return html_answer(plan_pages.confirm(site, wish, now()))
        plan = await self._picked(wish)
        check_only(plan)
        return html_answer(plan_pages.confirm(site, wish, now(), plan, writes_digest(writes_of(plan))))

    async def _restore(self, request: web.Request) -> web.Response:
        wish = await self._wished(request)
        fields = await self._own_form(request)
        copy = wish.copy.key
        if fields.get("typed", "").strip() != copy.namespace:
            raise web.HTTPBadRequest(reason="The name of the namespace was not typed: nothing is restored")
        uid = fields.get("uid", "")
        if not wish.picked:
            key = await restore(self._cluster, copy, uid, wish.policy, acts.asked_at(fields, now()))
            return await self._moved("ns", key.namespace, RESTORES.word, key.name)
        check_seen(wish.copy, uid)
        told = await restore_picked(self._cluster, await self._picked(wish), fields.get("seen", ""))
        return html_answer(plan_pages.done(await self._site(copy.namespace), wish, told))

    async def _picked(self, wish: plan_pages.Wish) -> RestorePlan:
        """Return the plan of the ticked objects alone."""
        key = wish.copy.key
        picked = picked_of(wish.picked, key.namespace)
        plan, _ = await self._reader.plan(key, wish.policy, self._access, picked=picked)
        return plan

    async def _wished(self, request: web.Request) -> plan_pages.Wish:
        """Return what a form wants restored: which copy, what to do with existing objects, and which objects."""
        fields = await self._own_form(request)
        name = fields.get("backup", "")
        policy = fields.get("policy", "")
        if problem_with_name(name) is not None or policy not in (restore_pages.KEEP, restore_pages.UPDATE):
            raise web.HTTPBadRequest(reason="Choose a backup, and what to do with objects that exist")
        ticked = [str(value) for value in (await request.post()).getall("pick", [])]
        if fields.get("what") == "ticked" and not ticked:
            raise web.HTTPBadRequest(reason="Tick at least one object, or restore everything")
        words = ticked if fields.get("what") == "ticked" else []
        if "only" in fields:
            words = fields["only"].split(",")
        namespace = request.match_info["namespace"]
        picked_of(words, namespace)  # before anything is read
        copy = await self._reader.copy(Key(namespace, name))
        search = fields.get("q", "").strip()[:_MOST_NAME]
        return plan_pages.Wish(copy, policy, search, tuple(dict.fromkeys(words)))

    async def _back_up(self, request: web.Request) -> web.Response:
        await self._own_form(request)
        key = await back_up_now(self._cluster, request.match_info["namespace"], now())
        return await self._moved("ns", key.namespace, BACKUPS.word, key.name)

    async def _pause(self, request: web.Request) -> web.Response:
        uid = (await self._own_form(request)).get("uid", "")
        key = Key(request.match_info["namespace"], request.match_info["name"])
        await set_paused(self._cluster, key, uid, paused=request.match_info["verb"] == "pause")
        return await self._moved("ns", key.namespace)

    async def _preview_act(self, request: web.Request) -> web.Response:
        """Show what an act would write; nothing is written."""
        fields = {name: value for name, value in request.query.items() if name not in ("csrf", "at")}
        at = acts.asked_at(fields, now())
        act = await self._desk.act(request.match_info, fields, at)
        return html_answer(act_pages.preview(await self._site(request.match_info.get("namespace", "")), act, at))

    async def _act(self, request: web.Request) -> web.Response:
        """Do what the page has shown, as it is built again from the fields of the form."""
        fields = await self._own_form(request)
        at = acts.asked_at(fields, now())
        act = await self._desk.act(request.match_info, fields, at)
        is_changed = fields.get("previewed", act.digest) != act.digest
        if is_changed or fields.get("what") == "preview":
            site = await self._site(request.match_info.get("namespace", ""))
            return html_answer(act_pages.preview(site, act, at, is_changed=is_changed))
        try:
            await acts.perform(self._cluster, act, at, fields.get("typed", ""))
        except UnreachableError:
            raise
        except CommandError as error:  # the form comes back as it was filled in
            site = await self._site(request.match_info.get("namespace", ""))
            return html_answer(act_pages.preview(site, act.refused(error), at), HTTPStatus.BAD_REQUEST)
        return await self._moved(*act.after)

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
        return _refused(error, f"/{door.mount}/" if _PAGES in request else "")
    except UnauthorizedError as error:
        return await door.unauthorized(request, error)
    except CommandError as error:
        return await _problem(request, error)
    except Exception as error:  # noqa: BLE001 - a page must not end the console, nor show what it holds
        print(f"error: {request.method}: {type(error).__name__}", file=sys.stderr)
        text = "The page failed."
        return plain(HTTPStatus.INTERNAL_SERVER_ERROR, "This did not work", text, base=f"/{door.mount}/")


def _refused(error: web.HTTPException, base: str) -> web.Response:
    """Answer what is no page, or no way to ask for one, without asking the cluster anything."""
    if error.status == HTTPStatus.NOT_FOUND:
        return plain(HTTPStatus.NOT_FOUND, "No such page", "the console has no such page", base=base)
    return plain(HTTPStatus(error.status), "Refused", error.reason, base=base)


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
        base = request.path[: request.path.find("/", 1) + 1]
        return plain(status, "This did not work", error.problem, error.hint or "", base)
    return html_answer(content, status)


class Console(LocalDoor):
    """The console of one viewer on this machine: a door that the token of the first URL opens once."""

    def __init__(
        self,
        cluster: Cluster,
        wanted: Wanted,
        known: guard.Secrets,
        tls: ssl.SSLContext,
        operator_namespace: str | None = None,
        place: tuple[str, str] = ("", ""),  # the context of the kubeconfig, and the host of its API server
        plate: tuple[str, str] = ("", ""),  # the name and the color of the cluster, as the administrator has set them
    ) -> None:
        super().__init__(known)
        self.streams = Streams(MOST_STREAMS)
        self._form = Form(known.mount, known.csrf, "", *place, *plate)
        self._cluster = cluster
        self._wanted = wanted
        self._tls = tls
        self._operator_namespace = operator_namespace
        self._share = Turns().share()
        self._pages = self._pages_of(wanted.namespace)

    def _pages_of(self, namespace: str) -> Pages:
        wanted = replace(self._wanted, namespace=namespace)
        reader = Reader(self._cluster, wanted, self._operator_namespace, self._share)
        return Pages(reader, self._form, self._tls, self.streams)

    async def admit(self, request: web.Request) -> Pages | web.StreamResponse:
        """Let in the browser that has the cookie, and give it to the one that has the token."""
        refused = self.refused(request)
        if refused is not None:
            return refused
        if request.method == "GET" and request.path == self.base and "namespace" in request.query:
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
        page = f"{self.base}ns/{namespace}" if rights.is_administrator else self.base
        return web.Response(status=HTTPStatus.SEE_OTHER, headers={"Location": page})

    async def unauthorized(self, _: web.Request, error: UnauthorizedError) -> web.StreamResponse:
        """Show what to do about the kubeconfig."""
        return plain(HTTPStatus.BAD_GATEWAY, "This did not work", error.problem, error.hint or "")


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


def _window(request: web.Request, at: datetime) -> Window:
    return window_of(request.query.get("span", ""), request.query.get("days", ""), at)


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


async def _serve(args: argparse.Namespace, wanted: Wanted, tls: ssl.SSLContext) -> None:
    async with connected(args) as cluster:
        place = cluster_of_context(args.kubeconfig, args.context)
        plate = (args.cluster_name, args.cluster_color)
        console = Console(cluster, wanted, new_secrets(), tls, args.operator_namespace, place, plate)
        await console.serve_until_ended(application(console), args.port, is_opened=not args.no_browser)
