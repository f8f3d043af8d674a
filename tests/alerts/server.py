"""A real Prometheus that scrapes what a test serves, as the Prometheus operator would set it up from the chart."""

import json
import socket
import subprocess
import threading
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from foresail.api.monitoring import SERVICE_MONITOR
from foresail.cli.install.manifests import InstallOptions, operators
from foresail.kube.metrics import CONTENT_TYPE
from testbed.prometheus import prometheus

ROOT = Path(__file__).parents[2]
RULES = ROOT / "charts" / "foresail" / "rules"
_SECONDS = 60.0


class Prometheus:
    """A running server, and for how many seconds an answer is waited for."""

    def __init__(self, port: int, seconds: float = 5) -> None:
        self._address, self._seconds = f"http://127.0.0.1:{port}", seconds

    def ask(self, path: str) -> Any:  # noqa: ANN401 - JSON
        """Return the data of an answer of the HTTP API; None while the server starts."""
        try:
            with urllib.request.urlopen(self._address + path, timeout=self._seconds) as answer:  # noqa: S310 - loopback
                return json.load(answer)["data"]
        except (urllib.error.URLError, OSError):
            return None

    def query(self, query: str) -> list[dict[str, Any]]:
        """Return the labels and the value of each series that an expression has now."""
        found = self.ask(f"/api/v1/query?query={urllib.parse.quote(query)}")
        return list(found["result"]) if found else []

    def series(self, query: str) -> list[dict[str, str]]:
        """Return the labels of each series that an expression has now."""
        return [each["metric"] for each in self.query(query)]

    def targets(self) -> list[dict[str, Any]]:
        """Return the targets that were scraped, with the error of the last scrape."""
        found = self.ask("/api/v1/targets")
        return [each for each in found["activeTargets"] if each["health"] != "unknown"] if found else []

    def alerts(self, name: str) -> list[dict[str, str]]:
        """Return the labels of each alert of that name, pending or firing."""
        found = self.ask("/api/v1/alerts")
        labels = [each["labels"] for each in found["alerts"]] if found else []
        return [each for each in labels if each["alertname"] == name]


def endpoint() -> dict[str, Any]:
    """Return the endpoint of the ServiceMonitor that the chart renders."""
    pieces = operators(InstallOptions(("schedules",), "velero", "velero", "foresail", monitoring=True))
    (monitor,) = (piece.body for piece in pieces if piece.kind == SERVICE_MONITOR)
    (found,) = monitor["spec"]["endpoints"]
    return dict(found)


@contextmanager
def scraping(ports: Mapping[str, int], folder: Path) -> Iterator[Prometheus]:
    """Scrape a port of loopback for each pod, once a second, with the labels that the Prometheus operator adds."""
    targets = [
        {"targets": [f"127.0.0.1:{port}"], "labels": {"namespace": "velero", "pod": pod, "container": "foresail"}}
        for pod, port in ports.items()
    ]
    job = {"job_name": "foresail", "honor_labels": endpoint().get("honorLabels", False), "static_configs": targets}
    config = {
        "global": {"scrape_interval": "1s", "evaluation_interval": "1s"},
        "rule_files": [str(RULES / "*.yaml")],
        "scrape_configs": [job],
    }
    try:
        with running(config, folder) as port:
            yield Prometheus(port)
    finally:
        print((folder / "prometheus.log").read_text())


@contextmanager
def running(config: Mapping[str, Any], folder: Path) -> Iterator[int]:
    """Run Prometheus with that configuration, its log and its data in a folder; yield its port."""
    (folder / "prometheus.yaml").write_text(json.dumps(config))
    port = _free_port()
    command = [
        str(prometheus()), f"--config.file={folder / 'prometheus.yaml'}", f"--storage.tsdb.path={folder / 'tsdb'}",
        f"--web.listen-address=127.0.0.1:{port}", "--log.level=warn",
    ]  # fmt: skip
    with (folder / "prometheus.log").open("wb") as log:
        process = subprocess.Popen(command, stderr=log, stdout=log)
    try:
        yield port
    finally:
        process.kill()
        process.wait()


@contextmanager
def served(page_at: Callable[[str], bytes]) -> Iterator[int]:
    """Serve the figures of each path on loopback; yield the port."""

    class Page(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            page = page_at(self.path)
            self.send_response(200)
            self.send_header("Content-Type", CONTENT_TYPE)
            self.send_header("Content-Length", str(len(page)))
            self.end_headers()
            self.wfile.write(page)

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Page)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield server.server_port
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def eventually(holds: Callable[[], bool]) -> None:
    """Wait until something holds."""
    deadline = time.monotonic() + _SECONDS
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.2)


def _free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])
