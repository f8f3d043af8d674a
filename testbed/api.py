"""A few plain HTTP requests to the cluster's servers, for readiness and credentials; tests use real clients."""

import http.client
import json
import ssl
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

_SECONDS = 60.0  # on a machine that has much else to do
_READY_SECONDS = 10.0


@dataclass(frozen=True, slots=True)
class Answer:
    """A server's answer: its code, and its body as text."""

    code: int
    text: str

    def json(self) -> Any:  # noqa: ANN401 - JSON is any
        """Return the body decoded."""
        return json.loads(self.text)


def trust(authority: Path, certificate: tuple[Path, Path] | None = None) -> ssl.SSLContext:
    """Return a TLS context that trusts the cluster's authority and shows a client certificate, if one is given."""
    context = ssl.create_default_context(cafile=authority)
    if certificate is not None:
        context.load_cert_chain(*certificate)
    return context


def server_context(certificate: Path, key: Path) -> ssl.SSLContext:
    """Return a TLS context for a server that shows this certificate."""
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(certificate, key)
    return context


def request(
    method: str,
    url: str,
    context: ssl.SSLContext | None = None,
    body: object = None,
    seconds: float = _SECONDS,
    accept: str = "*/*",
    content: str = "application/json",
) -> Answer:
    """Send one request and return the answer, whatever its code; an OSError means that nobody answered."""
    parts = urlsplit(url)
    host, port = parts.hostname or "", parts.port
    connection = (
        http.client.HTTPSConnection(host, port, timeout=seconds, context=context)
        if parts.scheme == "https"
        else http.client.HTTPConnection(host, port, timeout=seconds)
    )
    headers = {"Content-Type": content, "Accept": accept}
    try:
        target = parts.path + (f"?{parts.query}" if parts.query else "")
        connection.request(method, target, None if body is None else json.dumps(body), headers)
        response = connection.getresponse()
        return Answer(response.status, response.read().decode(errors="replace"))
    except http.client.HTTPException as problem:
        raise ConnectionError(f"{method} {url}: {problem!r}") from problem
    finally:
        connection.close()


def is_ok(url: str, context: ssl.SSLContext | None = None) -> bool:
    """Tell whether a server is there and answers with code 200."""
    try:
        return request("GET", url, context, seconds=_READY_SECONDS).code == http.client.OK
    except OSError:
        return False
