"""The door of a console on this machine: one browser, which the token of the first URL lets in once."""

import asyncio
import logging
import signal
import sys
import tempfile
import webbrowser
from http import HTTPStatus

from aiohttp import web

from foresail.cli.errors import CommandError
from foresail.console import guard
from foresail.console.layout import entrance, plain_page

LOOPBACK = "127.0.0.1"
_NOT_SIGNED_IN = "The URL that foresail console printed has been used: it signs in one browser, once."
_START_AGAIN = (
    "In the terminal of the console press Ctrl-C, run foresail console again and open the new URL. Backups go on"
    " without the console."
)
SILENT = logging.getLogger("foresail.console.http")
"""Of aiohttp, which would log the beginning of a header that is too long: that of a token."""

SILENT.disabled = True


def plain(status: HTTPStatus, title: str, text: str, hint: str = "", base: str = "") -> web.Response:
    """Return a page without navigation."""
    return html_answer(plain_page(title, text, hint, base), status)


def html_answer(content: str, status: HTTPStatus = HTTPStatus.OK) -> web.Response:
    """Return a page, or that it is too large."""
    body = content.encode()
    if len(body) > guard.MOST_PAGE:
        body = plain_page("Too large", "This page is too large to show.", "Use the command line.").encode()
        status = HTTPStatus.INTERNAL_SERVER_ERROR
    return web.Response(body=body, status=status, content_type="text/html", charset="utf-8")


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


def set_by_signals() -> asyncio.Event:
    """Return an event that SIGINT and SIGTERM set, by which a console ends."""
    ended = asyncio.Event()
    for signals in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(signals, ended.set)
    return ended


class LocalDoor:
    """Listens on the loopback address, and gives the cookie to the browser that has the token of the first URL."""

    def __init__(self, known: guard.Secrets) -> None:
        self._secrets = known
        self.mount = known.mount
        self._is_token_used = False
        self.address = ""

    @property
    def first_url(self) -> str:
        """The URL that opens the console once."""
        return f"http://{self.address}{self.base}?token={self._secrets.token}"

    @property
    def base(self) -> str:
        """The path of the first page."""
        return f"/{self.mount}/"

    async def serve(self, app: web.Application, port: int) -> web.AppRunner:
        """Listen on the loopback address, and return what stops it."""
        runner = web.AppRunner(app, access_log=None, logger=SILENT, handle_signals=False, handler_cancellation=True)
        await runner.setup()
        await web.TCPSite(runner, LOOPBACK, port).start()
        self.address = f"{LOOPBACK}:{runner.addresses[0][1]}"
        return runner

    async def serve_until_ended(self, app: web.Application, port: int, *, is_opened: bool) -> None:
        """Listen, let the user's browser open the first URL, and end with a signal."""
        try:
            runner = await self.serve(app, port)
        except OSError as error:
            raise CommandError(f"cannot listen on {LOOPBACK}:{port}: {error}", "choose another --port") from error
        print(f"{self.first_url}\nThe URL works once. Ctrl-C ends the console.", file=sys.stderr, flush=True)
        ended = set_by_signals()
        # In a file that only the user can read: everybody on the machine sees the arguments of a browser.
        with tempfile.NamedTemporaryFile("w", suffix=".html") as file:
            file.write(entrance(self.first_url))
            file.flush()
            if is_opened:
                webbrowser.open(f"file://{file.name}")
            try:
                await ended.wait()
            finally:
                await runner.cleanup()

    def refused(self, request: web.Request) -> web.StreamResponse | None:
        """Return why a request is not answered, or the cookie for the token; None if it is answered."""
        is_entry = request.method == "GET" and request.path == self.base and "token" in request.query
        asked = asked_of(request, guard.COOKIE, is_entry=is_entry)
        refused = guard.refusal(asked, guard.Place(self.address, f"http://{self.address}"))
        if refused is not None:
            return plain(refused.status, "Refused", refused.text)
        return None if guard.is_signed_in(asked, self._secrets) else self._sign_in(request)

    def _sign_in(self, request: web.Request) -> web.StreamResponse:
        """Exchange the token of the first URL for the cookie, once."""
        is_first = request.method == "GET" and request.path == self.base and not self._is_token_used
        if not is_first or not guard.is_token(request.query.get("token", ""), self._secrets):
            return plain(HTTPStatus.UNAUTHORIZED, "Not signed in", _NOT_SIGNED_IN, _START_AGAIN)
        self._is_token_used = True
        answer = html_answer(entrance(self.base))
        answer.set_cookie(guard.COOKIE, self._secrets.session, path=self.base, httponly=True, samesite="Strict")
        return answer
