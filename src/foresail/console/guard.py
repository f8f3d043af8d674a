"""Which requests of a browser are answered: pure rules, in the order in which they are checked."""

from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import sha256
from hmac import compare_digest
from hmac import new as hmac
from http import HTTPStatus

COOKIE = "foresail-console"
FORM = "application/x-www-form-urlencoded"
MOST_BODY = 16 << 10
"""Bytes of a form that are read."""

MOST_PAGE = 4 << 20
"""Bytes of a page that are sent."""

HEADERS = {
    "Cache-Control": "no-store",
    "Content-Security-Policy": "default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self'; "
    "form-action 'self'; frame-ancestors 'none'; base-uri 'none'",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
    "Referrer-Policy": "same-origin",  # with no-referrer, browsers send forms with `Origin: null`
    "Server": "foresail",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
}
"""The headers of every answer; the one script that runs is a file of the console."""


@dataclass(frozen=True, slots=True, repr=False)
class Secrets:
    """What only the browser of the user knows: made anew at each start."""

    token: str  # in the first URL; it works once
    session: str  # in the cookie
    csrf: str  # in every form
    mount: str  # the first part of every path: browsers do not keep the cookies of two ports apart


@dataclass(frozen=True, slots=True)
class Asked:
    """A request, as far as the rules look at it."""

    method: str
    hosts: Sequence[str]  # every Host header
    origin: str | None = None
    site: str | None = None  # Sec-Fetch-Site
    session: str = ""
    content_type: str = ""
    is_entry: bool = False  # the first URL, which a terminal in a browser may open; the token decides


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why a request is not answered."""

    status: HTTPStatus
    text: str


@dataclass(frozen=True, slots=True)
class Place:
    """Where browsers find the console."""

    host: str
    origin: str


def refusal(asked: Asked, place: Place) -> Refusal | None:
    """Return why a request from a browser is refused, whoever sends it; None if it is not."""
    if list(asked.hosts) != [place.host]:  # DNS rebinding: the name of somebody else leads here
        return Refusal(HTTPStatus.MISDIRECTED_REQUEST, f"This server answers at {place.origin} only.")
    if asked.method not in ("GET", "HEAD", "POST"):
        return Refusal(HTTPStatus.METHOD_NOT_ALLOWED, "This method is not allowed.")
    if (is_foreign(asked) and not asked.is_entry) or asked.origin not in (None, place.origin):
        return Refusal(HTTPStatus.FORBIDDEN, "Another site sent this request.")
    return _refused_change(asked) if asked.method == "POST" else None


def is_foreign(asked: Asked) -> bool:
    """Whether a page of another site caused the request."""
    return asked.site not in (None, "none", "same-origin")


def _refused_change(asked: Asked) -> Refusal | None:
    if asked.origin is None:
        return Refusal(HTTPStatus.FORBIDDEN, "A change needs the header Origin.")
    if asked.content_type != FORM:
        return Refusal(HTTPStatus.UNSUPPORTED_MEDIA_TYPE, "A change is sent as a form.")
    return None


def is_signed_in(asked: Asked, secrets: Secrets) -> bool:
    """Whether the request has the cookie of this console."""
    return _is_same(asked.session, secrets.session)


def is_token(given: str, secrets: Secrets) -> bool:
    """Whether this is the token of the first URL."""
    return _is_same(given, secrets.token)


def is_own_form(given: str, csrf: str) -> bool:
    """Whether a form was made by this console for this browser."""
    return _is_same(given, csrf)


def csrf_of(session: str) -> str:
    """Return the secret of the forms of a browser, from the cookie that only it and the console know."""
    return hmac(session.encode(), b"a form of the console", sha256).hexdigest()


def _is_same(given: str, secret: str) -> bool:
    return compare_digest(given.encode(errors="replace"), secret.encode())
