"""A real Prometheus that scrapes what a test serves, as the Prometheus operator would set it up from the chart."""

import json
import socket
import subprocess
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import yaml

from testbed.prometheus import prometheus

ROOT = Path(__file__).parents[2]
RULES = ROOT / "charts" / "foresail" / "rules"
_MANIFEST = ROOT / "src" / "foresail" / "manifests" / "schedules+self-service+primers.yaml"
_SECONDS = 60.0


class Prometheus:
    """A running server."""

    def __init__(self, port: int) -> None:
        self._address = f"http://127.0.0.1:{port}"

    def ask(self, path: str) -> Any:  # noqa: ANN401 - JSON
        """Return the data of an answer of the HTTP API; None while the server starts."""
        try:
            with urllib.request.urlopen(self._address + path, timeout=5) as answer:  # noqa: S310 - loopback
                return json.load(answer)["data"]
        except (urllib.error.URLError, OSError):
            return None

    def series(self, query: str) -> list[dict[str, str]]:
        """Return the labels of each series that an expression has now."""
        found = self.ask(f"/api/v1/query?query={urllib.parse.quote(query)}")
        return [each["metric"] for each in found["result"]] if found else []

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
    documents = yaml.safe_load_all(_MANIFEST.read_text())
    monitor = next(each for each in documents if each and each["kind"] == "ServiceMonitor")
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
    (folder / "prometheus.yaml").write_text(yaml.safe_dump(config))
    port = _free_port()
    command = [
        str(prometheus()), f"--config.file={folder / 'prometheus.yaml'}", f"--storage.tsdb.path={folder / 'tsdb'}",
        f"--web.listen-address=127.0.0.1:{port}", "--log.level=warn",
    ]  # fmt: skip
    with (folder / "prometheus.log").open("wb") as log:
        process = subprocess.Popen(command, stderr=log, stdout=log)
    try:
        yield Prometheus(port)
    finally:
        process.kill()
        process.wait()
        print((folder / "prometheus.log").read_text())


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
