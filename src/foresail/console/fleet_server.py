"""`foresail console --fleet`: one page about many clusters, behind the same door as the console of one.

It is read-only: it reads each cluster with the viewer's own kubeconfig, or asks Prometheus, and keeps the last answer
in memory only, so that a page is shown at once while the next answer is on its way.
"""

import argparse
import asyncio
import sys
from datetime import timedelta
from http import HTTPStatus
from urllib.parse import urlencode

from aiohttp import web

from foresail.cli.errors import CommandError
from foresail.console import guard
from foresail.console.door import LocalDoor, html_answer, plain
from foresail.console.layout import ROWS
from foresail.console.read_fleet import ReadFleet, reader_of
from foresail.console.report.fleet import Fleet
from foresail.console.report.fleet_page import fleet_footer, fleet_main
from foresail.console.server import new_secrets, wanted_of
from foresail.console.web.assets import CONSOLE, SHEET
from foresail.console.web.markup import Html, document, element, joined
from foresail.kube.clock import now

FRESH = timedelta(seconds=60)
"""How old an answer may be before the clusters are read again."""

_LONGEST_NAME = 253
_MOST_DIGITS = 5


class FleetConsole(LocalDoor):
    """The page of a fleet for the browser that the token has let in."""

    def __init__(self, read: ReadFleet, known: guard.Secrets, console_url: str = "") -> None:
        super().__init__(known)
        self._read = read
        self._console_url = console_url
        self._known: Fleet | None = None
        self._reading: asyncio.Task[Fleet] | None = None

    def application(self) -> web.Application:
        """Return the routes; every answer has the headers of the console."""

        @web.middleware
        async def guarded(request: web.Request, handler: object) -> web.StreamResponse:  # noqa: ARG001 - there is none
            refused = self.refused(request)
            answer = refused if refused is not None else await self._answered(request)
            answer.headers.update(guard.HEADERS)
            return answer

        return web.Application(middlewares=[guarded], client_max_size=guard.MOST_BODY)

    async def _answered(self, request: web.Request) -> web.StreamResponse:
        if request.method not in ("GET", "HEAD"):
            return plain(HTTPStatus.METHOD_NOT_ALLOWED, "Refused", "This console changes nothing.")
        if request.path == f"{self.base}style.css":
            return web.Response(text=f"{SHEET}{CONSOLE}", content_type="text/css")
        if request.path != self.base:
            return plain(HTTPStatus.NOT_FOUND, "No such page", "the console has no such page")
        try:
            fleet = await self.current()
        except CommandError as error:
            return plain(HTTPStatus.BAD_GATEWAY, "This did not work", error.problem, error.hint or "")
        except Exception as error:  # noqa: BLE001 - a page must not end the console, nor show what it holds
            print(f"error: {type(error).__name__}", file=sys.stderr)
            return plain(HTTPStatus.INTERNAL_SERVER_ERROR, "This did not work", "The page failed.")
        return html_answer(self._page(fleet, request))

    async def current(self) -> Fleet:
        """Return what was read last; read again in the background once it is old, and wait only without any."""
        known = self._known
        is_old = known is None or now() - known.at > FRESH
        if is_old and self._reading is None:
            self._reading = asyncio.create_task(self._renewed())
        if known is not None:
            return known
        assert self._reading is not None  # noqa: S101 - as it was begun
        return await asyncio.shield(self._reading)

    async def _renewed(self) -> Fleet:
        try:
            self._known = await self._read()
            return self._known
        finally:
            self._reading = None

    def _page(self, fleet: Fleet, request: web.Request) -> Html:
        text = request.query.get("q", "")[:_LONGEST_NAME]
        number = request.query.get("page", "1")
        at = int(number) if number.isdecimal() and len(number) <= _MOST_DIGITS else 1
        return fleet_page(fleet, self.base, self._console_url, text, at)


def fleet_page(fleet: Fleet, base: str, console_url: str, text: str, at: int) -> Html:
    """Return the page with the clusters whose name has a text, a hundred at a time."""
    matching = [row for row in fleet.rows if text.lower() in row.name.lower()]
    pages = max((len(matching) + ROWS - 1) // ROWS, 1)
    at = min(max(at, 1), pages)
    product = element("a", "Foresail", href=base, class_="product")
    bar = element("div", product, element("strong", "Fleet"), class_="bar")
    shown = matching[(at - 1) * ROWS : at * ROWS]
    paging = _paging(base, text, at, pages, fleet)
    main = fleet_main(fleet, shown, console_url, _search(base, text), paging)
    head = (element("link", rel="stylesheet", href=f"{base}style.css"),)
    return document("Fleet · Foresail", head, (element("header", bar, element("h1", "Fleet")), main, fleet_footer()))


def _search(base: str, text: str) -> Html:
    label = element("label", "Name contains ", for_="q")
    field = element("input", type="search", id="q", name="q", value=text, maxlength=_LONGEST_NAME)
    send = element("button", "Search", type="submit")
    return element("form", label, field, " ", send, method="get", action=base, role="search")


def _paging(base: str, text: str, at: int, pages: int, fleet: Fleet) -> Html:
    links = [
        element("a", name, href=f"{base}?{urlencode({'q': text, 'page': number})}")
        for name, number in (("previous", at - 1), ("next", at + 1))
        if 1 <= number <= pages
    ]
    note = joined((f"{len(fleet.rows)} clusters, page {at} of {pages} ", *links))
    return element("p", note, class_="note paging")


def run_fleet_console(args: argparse.Namespace) -> int:
    """Run the command."""
    asyncio.run(_serve(args, reader_of(args, wanted_of(args))))
    return 0


async def _serve(args: argparse.Namespace, read: ReadFleet) -> None:
    console = FleetConsole(read, new_secrets(), args.console_url)
    await console.serve_until_ended(console.application(), args.port, is_opened=not args.no_browser)
