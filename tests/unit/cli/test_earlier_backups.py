"""A team whose namespace was created again is told where its backups are."""

from pathlib import Path
from typing import Any

import pytest

from foresail.cli.main import main
from tests.unit.cli.canned import canned
from tests.unit.cli.test_coverage import listed, named
from tests.unit.console.test_console import Browser, browse, everything
from tests.unit.console.test_report import REVIEWS, TENANTS, Outline

EVENTS = "/api/v1/namespaces/shop/events"
WAIT = (
    "Velero has backups of namespace shop without a NonAdminBackup: ask a cluster administrator to run"
    " foresail backup adopt -n shop"
)
MAYBE = "backups of an earlier namespace shop are not listed; a cluster administrator returns them"


@pytest.mark.parametrize(
    ("may", "events", "says"),
    [
        (True, listed(named("e", "shop")), WAIT),
        (True, listed(), MAYBE),
        (False, {"kind": "Status", "reason": "Forbidden", "message": "no", "code": 403}, MAYBE),
        (True, {"kind": "Status", "reason": "InternalError", "message": "no", "code": 500}, MAYBE),
    ],
    ids=["reported", "not reported", "may not list Events", "Events cannot be read"],
)
def test_an_empty_list_says_where_earlier_backups_are(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], may: bool, events: dict[str, Any], says: str
) -> None:
    answers = {f"{TENANTS}/nonadminbackups": listed(), EVENTS: events, REVIEWS: {"status": {"allowed": may}}}
    with canned(tmp_path, answers) as server:
        assert main(["backup", "get", "-n", "shop", "--kubeconfig", str(server.kubeconfig)]) == 0
        selectors = [query["fieldSelector"] for query in server.queries if "fieldSelector" in query]
    first, hint = capsys.readouterr().err.splitlines()
    assert first == "No backups found in namespace shop"
    assert hint.startswith(f"hint: {says}")
    assert all(selector == ["reason=BackupsAdoptable"] for selector in selectors)


@pytest.mark.parametrize("words", [["restore", "get"], ["backup", "get", "-l", "app=web"]])
def test_other_empty_lists_say_nothing_of_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], words: list[str]
) -> None:
    answers = {f"{TENANTS}/nonadminbackups": listed(), f"{TENANTS}/nonadminrestores": listed()}
    with canned(tmp_path, answers) as server:
        assert main([*words, "-n", "shop", "--kubeconfig", str(server.kubeconfig)]) == 0
    assert "hint" not in capsys.readouterr().err


def test_the_page_of_a_namespace_without_backups_says_it_too(tmp_path: Path) -> None:
    empty = {f"{TENANTS}/nonadminbackups": listed(), EVENTS: listed(named("e", "shop"))}

    async def walk(browser: Browser) -> list[str]:
        await browser.sign_in()
        return Outline((await browser.get("/ns/shop")).text).texts

    assert f"{WAIT}." in browse(tmp_path, walk, everything() | empty)
