"""The header of every page: which product, cluster and user it is about, and the way to another namespace."""

import asyncio
import json
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from foresail.console import read, server
from foresail.console.read import MOST_NAMESPACES
from foresail.kube.clock import now, steady
from foresail.kube.connect import cluster_of_context
from tests.unit.cli.test_coverage import listed, named
from tests.unit.console.test_console import PAGES, Browser, browse, browsing, everything, of_tenant
from tests.unit.console.test_report import REVIEWS, TENANTS, Outline

WHO = "/apis/authentication.k8s.io/v1/selfsubjectreviews"
ANN = {WHO: {"status": {"userInfo": {"username": "ann"}}}}
BANK = TENANTS.replace("/shop", "/bank")


def of_two_namespaces() -> dict[str, Any]:
    """Return what a tenant of two namespaces may read, and not list."""

    def review(_: str, sent: dict[str, Any]) -> dict[str, Any]:
        asked = sent["spec"]["resourceAttributes"]
        is_own = asked["group"] == "oadp.openshift.io" and asked["namespace"] in ("shop", "bank")
        return {"status": {"allowed": is_own}}

    kinds = ("nonadminbackups", "nonadminrestores", "nonadminschedules")
    return {**of_tenant(), **ANN, **{f"{BANK}/{kind}": listed() for kind in kinds}, REVIEWS: review}


def header_of(page: str) -> str:
    return page.partition("<header>")[2].partition("</header>")[0]


def test_every_page_names_the_product_the_cluster_and_the_user(tmp_path: Path) -> None:
    async def walk() -> None:
        answers = everything() | ANN
        async with browsing(tmp_path, answers, context="prod-eu1", server="10.0.0.1:6443") as browser:
            await browser.sign_in()
            for path in (*PAGES, "/ns/shop/backup/missing"):
                page = (await browser.get(path)).text
                assert {"Foresail", "prod-eu1 (10.0.0.1:6443)", "ann"} <= set(Outline(header_of(page)).texts), path
                assert " · prod-eu1 · Foresail</title>" in page, "two tabs can be told apart"

    asyncio.run(walk())


def test_a_viewer_chooses_from_the_namespaces_that_they_may_list(tmp_path: Path) -> None:
    async def walk(browser: Browser) -> None:
        await browser.sign_in()
        header = header_of((await browser.get("/ns/shop")).text)
        assert (
            '<label for="switch-namespace">Namespace</label><select id="switch-namespace" name="namespace">' in header
        )
        assert '<option value="shop" selected>shop</option>' in header
        assert '<option value="bank">bank</option>' in header
        assert f'method="get" action="{browser.base}/"' in header
        answer = await browser.get("/?namespace=bank")
        assert (answer.status, answer.headers["location"]) == (303, f"{browser.base}/ns/bank")
        assert browser.changes == []

    browse(tmp_path, walk)


def test_with_too_many_namespaces_a_name_is_written(tmp_path: Path) -> None:
    answers = everything()
    answers["/api/v1/namespaces"] = listed(*(named(f"team-{number}") for number in range(MOST_NAMESPACES + 1)))

    async def walk(browser: Browser) -> None:
        await browser.sign_in()
        header = header_of((await browser.get("/doctor")).text)
        assert "<select" not in header
        assert '<input type="text" id="switch-namespace" name="namespace" value="shop"' in header

    browse(tmp_path, walk, answers)


def test_a_tenant_of_two_namespaces_switches_and_every_page_follows(tmp_path: Path) -> None:
    async def walk(browser: Browser) -> None:
        await browser.sign_in()
        header = header_of((await browser.get("/")).text)
        assert '<input type="text" id="switch-namespace"' in header, "they may list no namespaces"
        assert "Namespace shop" in header
        answer = await browser.get("/?namespace=bank")
        assert (answer.status, answer.headers["location"]) == (303, f"{browser.base}/")
        for path in ("/", "/calendar"):
            assert "Namespace bank" in header_of((await browser.get(path)).text)
        assert "Namespace shop" in header_of((await browser.get("/ns/shop")).text), "a page of a namespace is about it"
        assert "GET /api/v1/namespaces" not in browser.server.asked

    browse(tmp_path, walk, of_two_namespaces())


@pytest.mark.parametrize(
    ("name", "status"), [("secret", 403), ("..%2f..%2fsecrets", 502), ("", 502), ("a%0d%0ab", 502)]
)
def test_a_namespace_that_the_viewer_may_not_read_is_not_chosen(tmp_path: Path, name: str, status: int) -> None:
    async def walk(browser: Browser) -> None:
        await browser.sign_in()
        answer = await browser.get(f"/?namespace={name}")
        assert (answer.status, "<nav" in answer.text) == (status, True)
        assert "Namespace shop" in header_of((await browser.get("/")).text)
        assert not any("secret" in each for each in browser.server.asked)

    browse(tmp_path, walk, of_two_namespaces())


def test_another_site_chooses_no_namespace(tmp_path: Path) -> None:
    async def walk(browser: Browser) -> None:
        await browser.sign_in()
        assert (await browser.get("/?namespace=bank", Sec_Fetch_Site="cross-site")).status == 403
        assert "Namespace shop" in header_of((await browser.get("/")).text)

    browse(tmp_path, walk, of_two_namespaces())


def test_the_cluster_is_named_by_its_context_and_never_with_a_password(tmp_path: Path) -> None:
    cluster = {"name": "c", "cluster": {"server": "https://me:secret@prod.example:6443/path"}}
    context = {"name": "prod-eu1", "context": {"cluster": "c", "user": ""}}
    file = tmp_path / "config"
    file.write_text(json.dumps({"clusters": [cluster], "contexts": [context], "current-context": "prod-eu1"}))
    assert cluster_of_context(str(file)) == ("prod-eu1", "prod.example:6443")


def test_rights_are_reviewed_again_after_a_minute_whatever_the_clock_shows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    allowed = [True]

    async def walk(browser: Browser) -> None:
        await browser.sign_in()
        assert "/doctor" in header_of((await browser.get("/calendar")).text)
        allowed[0] = False
        monkeypatch.setattr(server, "now", lambda: now() - timedelta(days=1))
        monkeypatch.setattr(read, "steady", lambda: steady() + 61)
        assert "/doctor" not in header_of((await browser.get("/calendar")).text)

    browse(tmp_path, walk, {**everything(), REVIEWS: lambda *_: {"status": {"allowed": allowed[0]}}})
