"""An API server of a few canned answers: for clusters that no test can afford, or that no real server can be."""

import json
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from types import MappingProxyType
from typing import Any
from urllib.parse import parse_qs

from tests.unit.served import served


@dataclass
class Canned:
    """What it was asked, and how to reach it."""

    kubeconfig: Path
    asked: list[str] = field(default_factory=list)  # verb and path
    queries: list[dict[str, list[str]]] = field(default_factory=list)  # of each request
    bodies: dict[str, Any] = field(default_factory=dict)  # by verb and path, the last

    @property
    def writes(self) -> list[str]:
        """The requests that were to change something."""
        return [each for each in self.asked if not each.startswith("GET ")]


@contextmanager
def canned(
    folder: Path, answers: Mapping[str, Any], pauses: Mapping[str, float] = MappingProxyType({})
) -> Iterator[Canned]:
    """Answer these paths, some after a pause, and every other one with 404, until the block ends.

    An answer may be a function of the path and of the body that was sent. A path with a query comes before one without.
    """
    found = Canned(folder / "kubeconfig")

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            path, _, query = self.path.partition("?")
            found.queries.append(parse_qs(query))
            found.asked.append(f"{self.command} {path}")
            length = int(self.headers.get("Content-Length", "0"))
            sent = json.loads(self.rfile.read(length)) if length else {}
            if length:
                found.bodies[f"{self.command} {path}"] = sent
            time.sleep(pauses.get(path, 0.0))
            status = {"kind": "Status", "reason": "NotFound", "message": "not here", "code": 404}
            if self.path in answers:
                path = self.path
            answer = answers.get(path, status)
            content = answer(path, sent) if callable(answer) else answer
            body = json.dumps(content).encode()
            is_status = isinstance(content, dict) and content.get("kind") == "Status"
            self.send_response(content.get("code", 200) if is_status else 200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        do_POST = do_PATCH = do_DELETE = do_GET  # noqa: N815 - as the library calls them

        def log_message(self, *_: object) -> None:
            pass

    with served(Handler) as server:
        cluster = {"name": "canned", "cluster": {"server": f"http://127.0.0.1:{server.server_port}"}}
        context = {"name": "canned", "context": {"cluster": "canned", "user": "nobody"}}
        users = [{"name": "nobody", "user": {}}]
        content = {"clusters": [cluster], "users": users, "contexts": [context], "current-context": "canned"}
        found.kubeconfig.write_text(json.dumps(content))
        yield found
