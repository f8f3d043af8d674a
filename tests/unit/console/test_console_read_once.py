"""What a page costs the API server: each list is read once and each right is asked for once, whoever needs them."""

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from foresail.console import recent
from tests.unit.cli.test_coverage import listed
from tests.unit.console.test_console import Browser, browse, everything
from tests.unit.console.test_report import REVIEWS

IN_THE_HEADER = ("/leases/", "/deployments", "/backupstoragelocations")
"""Whether Velero and the operator run is read apart from the page, and kept for some seconds."""


@pytest.mark.parametrize(
    ("path", "is_administrator"),
    [("/", True), ("/ns/shop", True), ("/policies", True), ("/", False), ("/ns/shop", False)],
)
def test_a_page_reads_each_list_once_and_asks_for_each_right_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, path: str, *, is_administrator: bool
) -> None:
    monkeypatch.setattr(recent, "SECONDS", 0)  # no page has what another one has just read
    reviews = Counter[str]()

    def review(_: str, sent: dict[str, Any]) -> dict[str, Any]:
        asked = sent["spec"]["resourceAttributes"]
        reviews[json.dumps(asked, sort_keys=True)] += 1
        return {"status": {"allowed": is_administrator or asked["namespace"] == "shop"}}

    async def walk(browser: Browser) -> None:
        await browser.sign_in()
        await browser.get("/calendar")  # the rights are reviewed, and the header is read
        reviews.clear()
        before = len(browser.server.asked)
        page = await browser.get(path)
        assert page.status == 200, page.text
        pairs = zip(browser.server.asked[before:], browser.server.queries[before:], strict=True)
        lists = [pair for pair in pairs if pair[1] and not any(part in pair[0] for part in IN_THE_HEADER)]
        whole = {asked for asked, query in lists if query.keys() == {"limit"}}
        read = Counter(asked if asked in whole else f"{asked} {query}" for asked, query in lists)
        assert {asked: count for asked, count in (read + reviews).items() if count > 1} == {}

    own = {f"/api/v1/namespaces/shop/{kind}": listed() for kind in ("persistentvolumeclaims", "pods")}
    browse(tmp_path, walk, {**everything(), **own, REVIEWS: review})
