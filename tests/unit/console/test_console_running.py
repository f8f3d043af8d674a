"""What runs: its bytes, throughput, and times beside the last one; and the way to cancel what waits."""

import json
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from foresail.cli.rollback.rollbacks import Seen, decode
from foresail.cli.tenant.tenant_request import TenantRequest
from foresail.console.layout import Site
from foresail.console.pages import Offered, Pace, detail
from foresail.console.running import MOST, Rates, elapsed, last_like, rollback_elapsed
from foresail.selfservice.families import BACKUPS, RESTORES
from tests.unit.cli.test_tenant import seen
from tests.unit.cli.test_transfer import GIB, MIB, NOW, at
from tests.unit.console.test_console import Browser, browse, everything
from tests.unit.console.test_report import REVIEWS, TENANTS, Outline

SITE = Site("mount", "secret", "shop", is_administrator=True)


def one(
    name: str, mib: int = 0, *, ago: float = 90, took: float | None = None, spec: dict[str, Any] | None = None
) -> TenantRequest:
    """Return a backup that began so many seconds ago, and took so many, or runs."""
    began = NOW - timedelta(seconds=ago)
    velero: dict[str, Any] = {"phase": "InProgress", "startTimestamp": f"{began:%Y-%m-%dT%H:%M:%SZ}"}
    if took is not None:
        ended = began + timedelta(seconds=took)
        velero |= {"phase": "Completed", "completionTimestamp": f"{ended:%Y-%m-%dT%H:%M:%SZ}"}
    uploads = {"total": 1, "inProgress": 1, "bytesDone": mib * MIB, "totalBytes": GIB}
    status = {"phase": "Created", "veleroBackup": {"name": name, "status": velero}, "dataMoverDataUploads": uploads}
    metadata = {"name": name, "namespace": "shop", "uid": f"uid-of-{name}"}
    return seen(metadata=metadata, spec={"backupSpec": spec or {}}, status=status)


def test_a_page_shows_bytes_throughput_and_the_time_left_once_two_changes_were_seen() -> None:
    rates = Rates()
    for second, mib in ((0, 100), (10, 200)):
        assert rates.observe(one("a", mib), at(second)) is None
    rate = rates.observe(one("a", 300), at(20))
    page = detail(SITE, one("a", 300), NOW, Offered(may_restore=False, may_download=False), Pace(rate))
    assert "0.29 of 1 GiB, 10 MiB/s, 72s left" in map(str.strip, Outline(page).texts)


def test_the_throughput_of_one_request_is_not_that_of_another_and_not_kept_for_ever() -> None:
    rates = Rates()
    for second, mib in ((0, 100), (10, 200), (20, 300)):
        for name in ("a", "b"):
            rates.observe(one(name, mib), at(second))
    assert rates.observe(one("a", 300, took=60), at(21)) is None
    assert rates.observe(one("b", 300), at(21)) == 10 * MIB
    for number in range(MOST):
        rates.observe(one(f"other-{number}", 1), at(22))
    assert rates.observe(one("b", 310), at(23)) is None


def test_what_runs_is_shown_beside_the_last_one_of_its_like() -> None:
    secrets = {"includedResources": ["secrets"]}
    others = [
        one("old", ago=9000, took=300),
        one("last", ago=5000, took=150),
        one("small", ago=4000, took=3, spec=secrets),
        one("a"),
        one("runs-too", ago=30),
    ]
    assert elapsed(one("a"), last_like(one("a"), others), NOW) == "1m30s; the last one, last, took 2m30s"
    assert last_like(one("b", spec=secrets), others) == others[2]
    assert elapsed(one("a"), None, NOW) == "1m30s"
    assert elapsed(others[0], None, NOW) == "5m"
    assert elapsed(seen(), None, NOW) == "n/a"


def rollback(name: str, ago: float, took: float | None, **spec: object) -> Seen:
    """Return a rollback of one step."""
    step = {"name": "Restoring", "started": f"{NOW - timedelta(seconds=ago):%Y-%m-%dT%H:%M:%SZ}"}
    if took is not None:
        step["finished"] = f"{NOW - timedelta(seconds=ago - took):%Y-%m-%dT%H:%M:%SZ}"
    status = {"phase": "Restoring" if took is None else "Completed", "steps": [step]}
    kind = {"apiVersion": "foresail.dev/v1alpha1", "kind": "Rollback"}
    metadata = {"name": name, "namespace": "shop"}
    content = {**kind, "metadata": metadata, "spec": {"to": "copy", **spec}, "status": status}
    return decode(json.dumps(content).encode())


def test_a_rollback_is_shown_beside_the_last_one() -> None:
    others = [rollback("old", 9000, 60), rollback("last", 5000, 150), rollback("plan", 100, 1, dryRun=True)]
    assert rollback_elapsed(rollback("now", 90, None), others, NOW) == "1m30s; the last one, last, took 2m30s"
    assert rollback_elapsed(others[1], others, NOW) == "2m30s"
    assert rollback_elapsed(rollback("now", 90, None), (), NOW) == "1m30s"


def waiting(family: str, phase: str = "New") -> dict[str, Any]:
    """Return a request for which nothing was made in Velero."""
    kind = {"backup": BACKUPS, "restore": RESTORES}[family].kind
    metadata = {
        "name": "waits",
        "namespace": "shop",
        "uid": "uid-of-waits",
        "creationTimestamp": "2026-11-19T06:00:00Z",
    }
    return {
        "apiVersion": kind.api_version,
        "kind": kind.name,
        "metadata": metadata,
        "spec": {f"{family}Spec": {}},
        "status": {"phase": phase},
    }


@pytest.mark.parametrize(
    ("word", "change", "body"),
    [
        ("backup", f"PATCH {TENANTS}/nonadminbackups/waits", {"spec": {"deleteBackup": True}}),
        ("restore", f"DELETE {TENANTS}/nonadminrestores/waits", {"preconditions": {"uid": "uid-of-waits"}}),
    ],
)
def test_what_waits_is_cancelled_after_a_preview(tmp_path: Path, word: str, change: str, body: dict[str, Any]) -> None:
    path = f"/ns/shop/cancel/{word}/waits"

    async def walk(browser: Browser) -> None:
        await browser.sign_in()
        assert path in (await browser.get(f"/ns/shop/{word}/waits")).text
        texts = " ".join(Outline((await browser.get(path)).text).texts)
        assert f"foresail {word} delete waits -n shop" in texts
        assert "Velero has not begun it" in texts
        assert browser.changes == []
        assert (await browser.post(path, {**browser.own, "uid": "another"})).status == 400
        assert (await browser.post(path, {**browser.own, "uid": "uid-of-waits"})).status == 303
        assert browser.changes == [change]
        sent = browser.server.bodies[change]
        assert {name: sent[name] for name in body} == body

    browse(tmp_path, walk, everything() | {f"{TENANTS}/nonadmin{word}s/waits": waiting(word)})


def test_what_velero_has_begun_is_not_cancelled(tmp_path: Path) -> None:
    async def walk(browser: Browser) -> None:
        await browser.sign_in()
        assert "/cancel/" not in (await browser.get("/ns/shop/backup/first")).text
        page = (await browser.get("/ns/shop/cancel/backup/first")).text
        assert "Velero has it already and cannot stop it" in page
        assert 'method="post"' not in page
        assert (await browser.post("/ns/shop/cancel/backup/first", browser.own)).status == 400
        assert "It has ended" in (await browser.get("/ns/shop/cancel/backup/copy")).text
        assert browser.changes == []

    browse(tmp_path, walk)


def test_who_may_not_write_is_offered_no_cancellation(tmp_path: Path) -> None:
    def review(_: str, sent: dict[str, Any]) -> dict[str, Any]:
        return {"status": {"allowed": sent["spec"]["resourceAttributes"]["verb"] in ("list", "get", "watch")}}

    async def walk(browser: Browser) -> str:
        await browser.sign_in()
        return (await browser.get("/ns/shop/backup/waits")).text

    answers = everything() | {f"{TENANTS}/nonadminbackups/waits": waiting("backup"), REVIEWS: review}
    assert "/cancel/" not in browse(tmp_path, walk, answers)
