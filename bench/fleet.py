"""Asks a real Prometheus about a fleet of simulated clusters: `make bench-fleet`.

One Prometheus scrapes 1,000 clusters with 200 namespaces each and evaluates `examples/fleet-rules.yaml`. Each question
of docs/how-to/fleet.md is asked five times, and its answer compared with what was served. The last line is JSON.
"""

import argparse
import json
import os
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from random import Random
from typing import Any

from foresail.kube.clock import now
from tests.alerts.server import Prometheus, running, served

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
            verdict = "Safe" if age is not None and age < 26 * _HOUR else "Unsafe"
            lines.append(f'foresail_namespace_safety{{namespace="team-{index}",verdict="{verdict}"}} 1')
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
def scraping(clusters: int, port: int, folder: Path) -> Iterator[Prometheus]:
    """Run Prometheus with the rules of a fleet, whose clusters are served at `/NUMBER` of a port."""
    targets = [
        {"targets": [f"127.0.0.1:{port}"], "labels": {"cluster": f"cluster-{number}", "__metrics_path__": f"/{number}"}}
        for number in range(clusters)
    ]
    config = {
        "global": {"scrape_interval": "2m", "scrape_timeout": "1m", "evaluation_interval": "1m"},
        "rule_files": [str(ROOT / "examples" / "fleet-rules.yaml")],
        "scrape_configs": [{"job_name": "fleet", "static_configs": targets}],
    }
    with running(config, folder) as own:
        yield Prometheus(own, seconds=120)


def wait_for_fleet(server: Prometheus, clusters: int) -> None:
    """Wait until every cluster was scraped and the rules were evaluated with all of them."""
    until = time.monotonic() + 1200
    wanted = (
        ("count(foresail_coverage_timestamp_seconds)", clusters),
        ("count(cluster:foresail_good_backup_age_seconds:max)", clusters),
        ("count(cluster:foresail_coverage_timestamp_seconds:max)", clusters),
        ("count(cluster:foresail_namespaces_without_good_backup_24h:count > 0)", clusters),
    )
    for query, count in wanted:
        while [float(each["value"][1]) for each in server.query(query)] != [count]:
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
        served(lambda path: fleet.page(int(path.strip("/")))) as port,
        scraping(clusters, port, Path(folder)) as server,
    ):
        wait_for_fleet(server, clusters)
        for name, query in QUESTIONS.items():
            took, found = list[float](), list[dict[str, Any]]()
            for _ in range(_ROUNDS):
                began = time.monotonic()
                found = server.query(query)
                took.append(time.monotonic() - began)
            seconds[name] = round(max(took), 2)
            if not fleet.answers()[name](found):
                wrong.append(name)
    figures = {
        "clusters": clusters,
        "namespaces": clusters * NAMESPACES,
        "series": clusters * (NAMESPACES * (len(_FAMILIES) + 1) + 1),
        "slowest_seconds": seconds,
        "wrong": wrong,
    }
    print(json.dumps(figures))
    return 1 if wrong or max(seconds.values()) > MOST_SECONDS else 0


if __name__ == "__main__":
    sys.exit(main())
