"""The fleet page of 1,000 clusters: `python -m bench.fleet_page`, a part of `make bench-console`.

A stand-in of Prometheus answers with the series of 1,000 clusters. `foresail console --fleet` runs as its own process,
and the page is asked for as a browser does: the first time, and again. It fails if a figure misses its bound.
"""

import json
import sys
import threading
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.cookiejar import CookieJar
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from subprocess import PIPE, Popen
from typing import Any
from urllib.parse import parse_qs, urlsplit

from bench.figures import Bounds, verdict
from foresail.console.report.fleet import FAILED_CHECKS, NOT_SAFE, OLDEST, REPORTED, WITHOUT
from foresail.kube.clock import now

CLUSTERS = 1_000
BOUNDS: Bounds = {
    "fleet_page_s is at most 1": lambda f: f["fleet_page_s"] <= 1,
    "fleet_again_s is at most 1": lambda f: f["fleet_again_s"] <= 1,
    "fleet_page_kb is at most 100": lambda f: f["fleet_page_kb"] <= 100,
    "fleet_rows is 100": lambda f: f["fleet_rows"] == 100,
}


class Prometheus(BaseHTTPRequestHandler):
    """Answers with a value for each cluster; every fiftieth is silent, every tenth not safe."""

    def do_GET(self) -> None:
        """Answer a question."""
        (query,) = parse_qs(urlsplit(self.path).query)["query"]
        at = now().timestamp()
        values: dict[str, Callable[[int], float]] = {
            NOT_SAFE: lambda number: int(number % 10 == 0),
            OLDEST: lambda number: 3600.0 * (number % 30),
            WITHOUT: lambda number: number % 3,
            REPORTED: lambda number: at - (86400 if number % 50 == 0 else 60),
            FAILED_CHECKS: lambda _: 0,
        }
        result = [
            {"metric": {"cluster": f"cluster-{number:04}"}, "value": [at, str(values[query](number))]}
            for number in range(CLUSTERS)
        ]
        body = json.dumps({"status": "success", "data": {"resultType": "vector", "result": result}}).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Write nothing."""


@contextmanager
def prometheus() -> Iterator[str]:
    """Serve the series until the block ends."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), Prometheus)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()


@contextmanager
def console(url: str) -> Iterator[str]:
    """Run the console of a fleet until the block ends, and return its first URL."""
    words = [sys.executable, "-m", "foresail", "console", "--fleet", "--no-browser", f"--prometheus={url}"]
    with Popen(words, stderr=PIPE, text=True) as process:
        try:
            yield next(line.strip() for line in process.stderr or () if line.startswith("http"))
        finally:
            process.terminate()


def measure() -> dict[str, Any]:
    """Return how long the page takes, and how large it is."""
    with prometheus() as url, console(url) as first:
        browser = urllib.request.build_opener(urllib.request.HTTPCookieProcessor(CookieJar())).open
        browser(first, timeout=60).read()  # gives the cookie
        took, page = list[float](), b""
        for _ in range(2):
            began = time.monotonic()
            page = browser(first.partition("?")[0], timeout=60).read()
            took.append(time.monotonic() - began)
    return {
        "clusters": CLUSTERS,
        "fleet_page_s": round(took[0], 3),
        "fleet_again_s": round(took[1], 3),
        "fleet_page_kb": len(page) // 1000,
        "fleet_rows": page.count(b"<tr>") - 1,
    }


if __name__ == "__main__":
    sys.exit(verdict(measure(), BOUNDS))
