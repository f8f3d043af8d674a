"""Asks a real Prometheus about a fleet of simulated clusters: `make bench-fleet`.

One Prometheus scrapes 1,000 clusters with 200 namespaces each and evaluates `examples/fleet-rules.yaml`. Each question
of docs/how-to/fleet.md is asked five times, and its answer compared with what was served. The last line is JSON.
"""

import argparse
import json
import os
import socket
import subprocess
import sys
import tempfile
import threading
import time
import urllib.parse
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from random import Random
from typing import Any

from foresail.kube.clock import now
from testbed.prometheus import prometheus

ROOT = Path(__file__).parents[1]
CLUSTERS, NAMESPACES = 1_000, 200
QUESTIONS = {
    "no_good_backup_in_24h": "namespace:foresail_good_backup_age_seconds:over_24h",
    "worst_rpo": "topk(1, cluster:foresail_good_backup_age_seconds:max)",
    "silent_clusters": "time() - cluster:foresail_coverage_timestamp_seconds:max > 7200",
}
MOST_SECONDS = 2.0
_HOUR = 3600
_ROUNDS = 5
_FAMILIES = ("good_backup_timestamp_seconds", "objective_seconds", "gaps", "claims", "claims_saved")


class Fleet:
    """What the clusters report; every fiftieth is silent, and every hundredth namespace has no backup."""

    def __init__(self, clusters: int) -> None:
        random = Random(20)  # noqa: S311 - reproducible, not secret
        self.began = int(now().timestamp())
        self.ages = [[self._age(random) for _ in range(NAMESPACES)] for _ in range(clusters)]
        self.silent = {f"cluster-{number}" for number in range(0, clusters, 50)}

    def _age(self, random: Random) -> int | None:
        """Return the age of a newest good backup in seconds; nothing is near one of the limits."""
        draw = random.random()
        if draw < 0.01:
            return None
        return random.randint(30, 200) * _HOUR if draw < 0.05 else random.randint(1, 20) * _HOUR

    def page(self, number: int) -> bytes:
        """Return the page of a cluster."""
        lines = [f"foresail_coverage_timestamp_seconds {self.began - self._silence(number)}"]
        for index, age in enumerate(self.ages[number]):
            values = (self.began - age if age is not None else 0, 26 * _HOUR, int(age is None), 3, 2)
            label = f'{{namespace="team-{index}"}}'
            lines += [
                f"foresail_namespace_{name}{label} {value}" for name, value in zip(_FAMILIES, values, strict=True)
            ]
        return ("\n".join(lines) + "\n").encode()

    def _silence(self, number: int) -> int:
        return 12 * _HOUR if f"cluster-{number}" in self.silent else 60

    def answers(self) -> dict[str, Callable[[list[dict[str, Any]]], bool]]:
        """Return for each question whether a result is right."""
        late = {
            (f"cluster-{number}", f"team-{index}")
            for number, ages in enumerate(self.ages)
            for index, age in enumerate(ages)
            if age is None or age > 24 * _HOUR
        }
        worst = max(age for ages in self.ages for age in ages if age is not None)
        return {
            "no_good_backup_in_24h": lambda found: (
                {(each["metric"]["cluster"], each["metric"]["namespace"]) for each in found} == late
            ),
            "worst_rpo": lambda found: [abs(float(each["value"][1]) - worst) < _HOUR for each in found] == [True],
            "silent_clusters": lambda found: {each["metric"]["cluster"] for each in found} == self.silent,
        }


@contextmanager
def serving(fleet: Fleet) -> Iterator[int]:
    """Serve the pages of all clusters on one port of loopback, at `/NUMBER`."""

    class Page(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            page = fleet.page(int(self.path.strip("/")))
            self.send_response(200)
            self.send_header("Content-Type", "text/plain; version=0.0.4")
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


@contextmanager
def scraping(clusters: int, port: int, folder: Path) -> Iterator[str]:
    """Run Prometheus with the rules of a fleet; yield its address."""
    targets = [
        {"targets": [f"127.0.0.1:{port}"], "labels": {"cluster": f"cluster-{number}", "__metrics_path__": f"/{number}"}}
        for number in range(clusters)
    ]
    config = {
        "global": {"scrape_interval": "2m", "scrape_timeout": "1m", "evaluation_interval": "1m"},
        "rule_files": [str(ROOT / "examples" / "fleet-rules.yaml")],
        "scrape_configs": [{"job_name": "fleet", "static_configs": targets}],
    }
    (folder / "prometheus.yaml").write_text(json.dumps(config))
    own = _free_port()
    command = [
        str(prometheus()), f"--config.file={folder / 'prometheus.yaml'}", f"--storage.tsdb.path={folder / 'tsdb'}",
        f"--web.listen-address=127.0.0.1:{own}", "--log.level=warn",
    ]  # fmt: skip
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(command, stderr=log, stdout=log)
    try:
        yield f"http://127.0.0.1:{own}"
    finally:
        process.kill()
        process.wait()


def _free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


def ask(address: str, query: str) -> list[dict[str, Any]]:
    """Return the result of an instant query; an empty one while the server starts."""
    try:
        with urllib.request.urlopen(f"{address}/api/v1/query?query={urllib.parse.quote(query)}", timeout=120) as answer:  # noqa: S310
            found: list[dict[str, Any]] = json.load(answer)["data"]["result"]
    except OSError:
        return []
    return found


def wait_for_fleet(address: str, clusters: int) -> None:
    """Wait until every cluster was scraped and the rules were evaluated with all of them."""
    until = time.monotonic() + 1200
    wanted = (
        ("count(foresail_coverage_timestamp_seconds)", clusters),
        ("count(cluster:foresail_good_backup_age_seconds:max)", clusters),
        ("count(cluster:foresail_coverage_timestamp_seconds:max)", clusters),
        ("count(cluster:foresail_namespaces_without_good_backup_24h:count > 0)", clusters),
    )
    for query, count in wanted:
        while [float(each["value"][1]) for each in ask(address, query)] != [count]:
            if time.monotonic() > until:
                raise TimeoutError(f"{query} is not {count}")
            time.sleep(5)


def main() -> int:
    """Ask the questions, and print how long the slowest answers took."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--size", type=float, default=float(os.environ.get("SIZE") or 1))
    clusters = max(round(CLUSTERS * parser.parse_args().size), 1)
    fleet, seconds, wrong = Fleet(clusters), dict[str, float](), list[str]()
    with (
        tempfile.TemporaryDirectory() as folder,
        serving(fleet) as port,
        scraping(clusters, port, Path(folder)) as address,
    ):
        wait_for_fleet(address, clusters)
        for name, query in QUESTIONS.items():
            took, found = list[float](), list[dict[str, Any]]()
            for _ in range(_ROUNDS):
                began = time.monotonic()
                found = ask(address, query)
                took.append(time.monotonic() - began)
            seconds[name] = round(max(took), 2)
            if not fleet.answers()[name](found):
                wrong.append(name)
    figures = {
        "clusters": clusters,
        "namespaces": clusters * NAMESPACES,
        "series": clusters * (NAMESPACES * len(_FAMILIES) + 1),
        "slowest_seconds": seconds,
        "wrong": wrong,
    }
    print(json.dumps(figures))
    return 1 if wrong or max(seconds.values()) > MOST_SECONDS else 0


if __name__ == "__main__":
    sys.exit(main())
