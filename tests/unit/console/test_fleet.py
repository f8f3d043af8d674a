"""The fleet: which clusters are silent, what Prometheus does not know is never safe, and nobody else gets in."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import timedelta
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any, cast
from urllib.parse import parse_qs, urlsplit

import pytest

from docs.external_assets import external_assets
from foresail.cli.errors import CommandError, UsageError
from foresail.cli.main import main, parser
from foresail.console import guard
from foresail.console.fleet_server import FRESH, FleetConsole
from foresail.console.read_fleet import read_contexts, read_prometheus, reader_of
from foresail.console.report.fleet import (
    FAILED_CHECKS,
    NOT_SAFE,
    OLDEST,
    QUERIES,
    REPORTED,
    WITHOUT,
    ClusterRow,
    Fleet,
    fleet_of,
    row_of_figures,
    rows_of_series,
)
from foresail.console.report.fleet_page import fleet_report
from foresail.console.report.snapshot import Wanted
from foresail.console.server import Console, new_secrets
from foresail.kube.clock import now
from tests.unit.cli.canned import Canned, canned
from tests.unit.console.test_console import ATTACKS, XSS, Browser, everything
from tests.unit.console.test_report import NOW, Outline, figures
from tests.unit.served import served

WANTED = Wanted("velero")


def fleet(*names: str, word: str = "Safe") -> Fleet:
    return fleet_of([ClusterRow(name, word, reported=now(), not_safe=0) for name in names], now(), "a test")


@asynccontextmanager
async def fleet_console(found: Fleet, console_url: str = "") -> AsyncIterator[Browser]:
    async def read() -> Fleet:
        return found

    known = new_secrets()
    console = FleetConsole(read, known, console_url)
    runner = await console.serve(console.application(), 0)
    try:
        yield Browser(cast("Console", console), known, cast("Canned", None))
    finally:
        await runner.cleanup()


def series(**values: float) -> dict[str, dict[str, float]]:
    names = {"not_safe": NOT_SAFE, "oldest": OLDEST, "without": WITHOUT, "reported": REPORTED, "failed": FAILED_CHECKS}
    return {names[name]: {"one": value} for name, value in values.items()}


@pytest.mark.parametrize(
    ("values", "word"),
    [
        (series(reported=NOW.timestamp(), not_safe=0), "Safe"),
        (series(reported=NOW.timestamp(), not_safe=3), "Not safe"),
        (series(reported=NOW.timestamp()), "Unknown"),
        (series(reported=NOW.timestamp() - 7201, not_safe=0), "Silent"),
        (series(not_safe=0), "Silent"),
        (series(oldest=60), "Silent"),
    ],
)
def test_what_prometheus_does_not_know_is_never_safe(values: dict[str, dict[str, float]], word: str) -> None:
    (row,) = rows_of_series(values, NOW)
    assert (row.name, row.word) == ("one", word)


def test_silent_clusters_come_first_and_safe_ones_last() -> None:
    words = ("Safe", "Unknown", "Silent", "At risk", "Not safe")
    found = fleet_of([ClusterRow(word, word) for word in words], NOW, "a test")
    assert [row.word for row in found.rows] == ["Silent", "Not safe", "At risk", "Unknown", "Safe"]
    assert found.counts == {"Silent": 1, "Not safe": 1, "At risk": 1, "Unknown": 1, "Safe": 1}


def test_a_cluster_is_judged_as_its_own_console_judges_it() -> None:
    own = figures()
    row = row_of_figures("prod", "10.0.0.1", own)
    assert (row.counted, row.safe) == (len(own.counted), own.safe)
    assert row.word != "Safe"
    assert row.message == own.safety.message


def test_every_context_is_read_and_one_that_fails_hides_no_other(tmp_path: Path) -> None:
    with canned(tmp_path, everything()) as server:
        config = json.loads(server.kubeconfig.read_text())
        (name,) = [each["name"] for each in config["contexts"]]
        gone = {"name": "gone", "cluster": {"server": "http://127.0.0.1:9"}}
        config["clusters"].append(gone)
        config["contexts"].append({"name": "gone", "context": {"cluster": "gone", "user": ""}})
        config["contexts"].append({"name": "broken", "context": {"cluster": "missing", "user": ""}})
        server.kubeconfig.write_text(json.dumps(config))
        found = asyncio.run(read_contexts(str(server.kubeconfig), ["gone", name, "broken"], WANTED, now()))
        rows = {row.name: row for row in found.rows}
        assert rows["gone"].word == rows["broken"].word == "Silent"
        assert rows[name].word == "Not safe"
        assert rows[name].counted
        args = parser().parse_args(["console", "--fleet", "--kubeconfig", str(server.kubeconfig), "--contexts", "x"])
        with pytest.raises(UsageError, match="none of these contexts"):
            reader_of(args, WANTED)
        file = tmp_path / "fleet.html"
        assert main(["report", "--fleet", "--html", str(file), "--kubeconfig", str(server.kubeconfig)]) == 0
        texts = Outline(file.read_text()).texts
        assert {"gone", name, "broken"} <= set(texts)
        assert external_assets("page.html", file.read_text()) == []


class Answering(BaseHTTPRequestHandler):
    """A Prometheus with two clusters."""

    answers: dict[str, list[tuple[str, float]]]
    status = 200

    def do_GET(self) -> None:
        (query,) = parse_qs(urlsplit(self.path).query)["query"]
        result = [{"metric": {"cluster": name}, "value": [0, str(value)]} for name, value in self.answers[query]]
        body = json.dumps({"status": "success", "data": {"resultType": "vector", "result": result}}).encode()
        self.send_response(self.status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        pass


def test_prometheus_is_asked_once_for_every_figure() -> None:
    at = now()
    stamp = at.timestamp()
    values = {NOT_SAFE: [("a", 0), ("b", 2)], REPORTED: [("a", stamp), ("b", stamp)], OLDEST: [("a", 60)]}
    handler = type("Own", (Answering,), {"answers": {query: values.get(query, []) for query in QUERIES}})
    with served(handler) as server:
        found = asyncio.run(read_prometheus(f"http://127.0.0.1:{server.server_port}", at))
    assert [(row.name, row.word) for row in found.rows] == [("b", "Not safe"), ("a", "Safe")]
    assert found.rows[1].oldest == timedelta(seconds=60)
    failing = type("Failing", (handler,), {"status": 503})
    with served(failing) as server, pytest.raises(CommandError, match="answers with 503"):
        asyncio.run(read_prometheus(f"http://127.0.0.1:{server.server_port}", at))
    with pytest.raises(CommandError, match="does not answer"):
        asyncio.run(read_prometheus("http://127.0.0.1:9", at))


def test_the_page_of_a_thousand_clusters_is_small_searched_and_paged() -> None:
    async def walk() -> None:
        names = [f"cluster-{number:04}" for number in range(1000)]
        async with fleet_console(fleet(*names), "https://{}.example.com") as browser:
            await browser.sign_in()
            answer = await browser.get("/")
            page = answer.text
            assert guard.HEADERS["Content-Security-Policy"] == answer.headers["content-security-policy"]
            assert len(page) < 100_000
            assert page.count("<tr>") == 101
            assert "Safe: 1,000 clusters" in page
            assert 'href="https://cluster-0000.example.com"' in page
            assert external_assets("page.html", page.replace("https://cluster", "/")) == []
            found = (await browser.get("/?q=0999")).text
            assert found.count("<tr>") == 2
            assert (await browser.get("/?page=x&q=%3Cscript%3E")).text.count("<script") == 0

    asyncio.run(walk())


def test_the_clusters_are_read_again_behind_a_page_that_is_shown_at_once() -> None:
    reads = 0

    async def read() -> Fleet:
        nonlocal reads
        reads += 1
        return replace(fleet(f"read-{reads}"), at=now() - 2 * FRESH)

    async def walk() -> None:
        console = FleetConsole(read, new_secrets())
        assert (await console.current()).rows[0].name == "read-1"
        assert (await console.current()).rows[0].name == "read-1"
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        assert (await console.current()).rows[0].name == "read-2"

    asyncio.run(walk())


@pytest.mark.parametrize("attack", ATTACKS, ids=lambda each: each.__name__)
def test_an_attack_on_the_fleet_reads_nothing(attack: Callable[[Browser], Any]) -> None:
    async def walk() -> None:
        async with fleet_console(fleet("prod-eu1")) as browser:
            await browser.sign_in()
            answer = await attack(browser)
            assert 400 <= answer.status < 500, answer
            assert "prod-eu1" not in answer.text
            assert "set-cookie" not in answer.headers

    asyncio.run(walk())


def test_names_of_clusters_are_text() -> None:
    page = fleet_report(fleet(XSS, word="Silent"))
    assert "<script" not in page
    assert "<img" not in page


@pytest.mark.parametrize(
    "words",
    [
        ["console", "--fleet", "--in-cluster"],
        ["console", "--prometheus", "http://x"],
        ["console", "--fleet", "--prometheus", "ftp://x"],
        ["report", "--html", "-", "--contexts", "x"],
        ["report", "--html", "-", "--fleet", "-A"],
    ],
)
def test_options_that_mean_nothing_together_are_refused(words: list[str]) -> None:
    assert main(words) == 2
