"""The pages of the queue, policies and approvals, checks and primers."""

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest

from foresail.api.nonadmin import Approval, Location
from foresail.api.policy import Quotas
from foresail.cli.policy.get import Use
from foresail.cli.policy.usage import Usage, in_order, tenant_shares
from foresail.cli.tenant.tenant_request import TenantRequest, decode_request
from foresail.console.cluster_pages import queue
from foresail.console.layout import Search, Site
from foresail.console.pages import quota_section
from foresail.console.policy_pages import Approvals, policies
from foresail.selfservice.families import BACKUPS
from tests.unit.cli.test_adopt import FORGED, GOOD, TAKEN
from tests.unit.cli.test_coverage import named
from tests.unit.console.test_console import GROUP, Browser, browse, everything, of_tenant
from tests.unit.console.test_report import NOW, REVIEWS, Outline

SITE = Site("mount", "secret", "shop", is_administrator=True, offered=frozenset({"queue", "policies"}))
REQUEST = f"{GROUP}/namespaces/velero/nonadminbackupstoragelocationrequests/shop-mine"


def open_request(name: str, namespace: str, phase: str, position: int = 0, minute: int = 0) -> TenantRequest:
    status = {
        "phase": "Created",
        "veleroBackup": {"name": name, "status": {"phase": phase}},
        "queueInfo": {"estimatedQueuePosition": position},
    }
    body = named(name, namespace, spec={"backupSpec": {}}, status=status)
    body["metadata"]["creationTimestamp"] = f"2026-11-16T10:{minute:02}:00Z"
    return decode_request(BACKUPS, json.dumps(body).encode())


OPEN = [
    open_request("late", "shop", "Queued", 2),
    open_request("new", "bank", "", minute=5),
    open_request("next", "shop", "Queued", 1),
    open_request("runs", "bank", "InProgress"),
]


def usage(namespace: str, weight: int) -> Usage:
    return Usage(namespace, "web", Quotas(stored=9), Use(stored=4), Use(), weight)


def test_the_queue_is_in_the_order_in_which_it_is_served() -> None:
    assert [each.key.name for each in in_order(OPEN)] == ["runs", "next", "late", "new"]


def test_shares_are_by_weight_among_the_namespaces_that_have_open_requests() -> None:
    found = tenant_shares(OPEN, [usage("shop", 3), usage("idle", 50)])
    assert [(each.namespace, each.weight, each.share) for each in found] == [("shop", 3, 0.75), ("bank", 1, 0.25)]
    assert [(each.running, each.waiting) for each in found] == [(0, 2), (1, 1)]
    assert tenant_shares([], []) == []


def test_the_page_of_the_queue_says_who_runs_who_waits_and_the_shares() -> None:
    page = queue(SITE, in_order(OPEN), tenant_shares(OPEN, [usage("shop", 3)]), Search())
    texts = Outline(page).texts
    assert (texts.count("runs"), texts.count("waits")) == (2, 3)  # a name is `runs` too
    assert {"75%", "25%", "4 of 9"} <= set(texts)


def test_use_that_is_unknown_is_not_shown_as_zero() -> None:
    found = Usage("shop", "web", Quotas(stored=9), None, Use(2, 1))
    texts = Outline(quota_section(found)).texts
    assert texts[texts.index("backups") + 1] == "use unknown, limit 9"
    assert texts[texts.index("active backups") + 1] == "use unknown"
    assert texts[texts.index("restores") + 1] == "2, no limit"
    assert "Not counted: backups deleted by force that Velero may bring back." in texts
    shares = tenant_shares(OPEN, [found])
    assert {each.namespace: each.stored for each in shares} == {"shop": (None, 9), "bank": (None, None)}


def location(decision: str = "", name: str = "mine", spec: dict[str, Any] | None = None) -> Approval:
    asked = {"name": name, "namespace": "shop", "requestHash": f"hash-of-{name}", "requestedSpec": spec or {}}
    body = {"metadata": {"name": "r"}, "spec": {"approvalDecision": decision}}
    content = {**body, "status": {"nonAdminBackupStorageLocation": asked}}
    return msgspec.json.decode(json.dumps(content), type=Approval)


def page_of(*locations: Approval, may: bool = True) -> str:
    return policies(SITE, [], [], Approvals(locations, [GOOD, FORGED, TAKEN], may, may), NOW)


def test_a_request_is_decided_by_forms_that_name_what_was_seen() -> None:
    page = page_of(location())
    assert "Approve shop/mine" in page
    assert "Reject shop/mine" in page
    assert "/approvals/location/shop/mine/approve?request=hash-of-mine" in page
    page = page_of(location("approve"))
    assert "Approve shop/mine" not in page  # it is approved already, and can be rejected
    assert "Reject shop/mine" in page


def test_a_request_is_shown_with_where_it_leads_and_without_credentials() -> None:
    spec = {
        "provider": "aws",
        "objectStorage": {"bucket": "b", "prefix": "p", "caCert": "cGVt"},
        "config": {"region": "eu", "s3Url": "https://me:secret@evil.example", "tagging": "x" * 5000},
        "credential": {"name": "keys", "key": "cloud"},
        "accessMode": "ReadOnly",
    }
    page = page_of(location(spec=spec))
    shown = set(Outline(page).texts)
    assert {"provider: aws", "bucket: b", "prefix: p", "CA: set", "config.region: eu", "accessMode: ReadOnly"} <= shown
    assert "config.s3Url: https://…@evil.example" in shown
    assert not any(each in page for each in ("secret@", "keys", "cGVt", "x" * 1000))
    assert {"prefix: none", "CA: none"} <= set(Outline(page_of(location())).texts)
    many = {"config": {f"key-{number}": "v" for number in range(90)}}
    assert "and 64 more: use the command line" in Outline(page_of(location(spec=many))).texts


def test_a_location_without_a_request_is_shown_with_what_it_waits_for() -> None:
    condition = {
        "type": "SecretSynced",
        "status": "False",
        "reason": "SecretSyncFailed",
        "message": "may not read keys",
    }
    spec = {"backupStorageLocationSpec": {"objectStorage": {"bucket": "b"}}}
    body = named("mine", "shop", spec=spec, status={"phase": "BackingOff", "conditions": [condition]})
    held = msgspec.json.decode(json.dumps(body), type=Location)
    page = policies(SITE, [], [], Approvals([], [], may_decide=True, may_adopt=True, unrequested=[held]), NOW)
    assert {"mine", "b", "SecretSyncFailed: may not read keys"} <= set(Outline(page).texts)
    assert "Approve shop/mine" not in page


def test_only_what_can_be_adopted_has_a_button() -> None:
    page = page_of()
    assert "Approve shop-good" in page
    assert "Approve shop-forged" in page
    assert "Approve shop-taken" not in page
    assert "NameTaken" in page
    for each in ("uid=uid-of-good", "namespace=live-uid", "record=verified", "record=unverified"):
        assert each in page  # what the approval is about


def test_a_viewer_who_may_not_read_the_key_is_told_that_no_record_is_verifiable() -> None:
    found = Approvals([], [FORGED], may_decide=True, may_adopt=True, unread_key="velero/key")
    texts = Outline(policies(SITE, [], [], found, NOW)).texts
    assert "not verifiable" in texts
    assert "Records are not verifiable: you may not get Secret velero/key." in texts
    assert "not verifiable" not in page_of()


def test_a_viewer_who_may_not_decide_is_offered_nothing() -> None:
    page = page_of(location(), may=False)
    assert "/approvals/" not in page
    assert 'method="post"' not in page


@pytest.mark.parametrize("verb", ["approve", "reject"])
def test_an_administrator_decides_about_a_location_and_is_led_back(tmp_path: Path, verb: str) -> None:
    async def walk(browser: Browser) -> None:
        await browser.sign_in()
        assert f"{verb.capitalize()} shop/mine" in (await browser.get("/policies")).text
        page = (await browser.get(f"/approvals/location/shop/mine/{verb}?request=hash-of-it")).text
        for each in ("Nothing is written yet", f"foresail location request {verb} mine -n shop", "approvalDecision"):
            assert each in page
        assert browser.changes == []
        answer = await browser.post(f"/approvals/location/shop/mine/{verb}", {**browser.own, "request": "hash-of-it"})
        assert (answer.status, answer.headers["location"]) == (303, f"{browser.base}/policies")
        body = browser.server.bodies[f"PATCH {REQUEST}"]
        assert body["spec"]["approvalDecision"] == verb
        assert body["spec"]["approvedRequest"] == ("hash-of-it" if verb == "approve" else "")
        assert browser.changes == [f"PATCH {REQUEST}"]

    browse(tmp_path, walk)


def test_a_location_that_has_changed_since_it_was_seen_is_not_approved(tmp_path: Path) -> None:
    async def walk(browser: Browser) -> None:
        await browser.sign_in()
        for seen in ("hash of before", ""):
            answer = await browser.post("/approvals/location/shop/mine/approve", {**browser.own, "request": seen})
            assert answer.status == 502
            assert "has changed meanwhile" in answer.text
        assert browser.changes == []

    browse(tmp_path, walk)


def test_a_velero_backup_that_nobody_offers_is_not_adopted(tmp_path: Path) -> None:
    async def walk(browser: Browser) -> None:
        await browser.sign_in()
        answer = await browser.post("/approvals/backup/other/approve", {**browser.own, "uid": "u"})
        assert answer.status == 502
        assert "Velero Backup other cannot be adopted" in answer.text
        assert browser.changes == []

    browse(tmp_path, walk)


def test_policies_are_shown_with_where_they_hold_and_a_broken_one_hides_no_other(tmp_path: Path) -> None:
    async def walk(browser: Browser) -> list[str]:
        await browser.sign_in()
        return Outline((await browser.get("/policies")).text).texts

    texts = browse(tmp_path, walk)
    assert {"web", "nights", "broken", "cannot be read", "every namespace"} <= set(texts)
    assert any("bank" in each and "lab" in each for each in texts)  # where web holds


def test_a_check_has_its_result_its_problems_its_durations_and_its_evidence(tmp_path: Path) -> None:
    async def walk(browser: Browser) -> None:
        await browser.sign_in()
        assert {"nightly", "Fail", "7"} <= set(Outline((await browser.get("/checks")).text).texts)
        texts = Outline((await browser.get("/ns/velero/check/nightly")).text).texts
        assert {"Fail (broken)", "and 2 more", "Download the evidence"} <= set(texts)
        asked = len(browser.server.asked)
        answer = await browser.get("/ns/velero/check/nightly/evidence.json")
        assert "GET /api/v1/namespaces/velero/configmaps" not in browser.server.asked[asked:]  # all of the history
        assert answer.headers["content-disposition"] == 'attachment; filename="record.json"'
        assert answer.headers["content-type"].startswith("application/json")
        assert json.loads(answer.text)["problemCount"] == 3

    browse(tmp_path, walk, everything("broken"))


def test_an_administrator_sees_the_checks_of_tenants_after_their_own_and_finds_them_by_name(tmp_path: Path) -> None:
    async def walk(browser: Browser) -> None:
        await browser.sign_in()
        page = (await browser.get("/checks")).text
        assert page.index("/ns/velero/check/nightly") < page.index("/ns/shop/check/own")
        assert "foresail check get -A" in page
        found = (await browser.get("/checks?q=shop%2F")).text
        assert "/ns/shop/check/own" in found
        assert "/ns/velero/check/nightly" not in found
        texts = Outline((await browser.get("/ns/shop/check/own")).text).texts
        assert {"and 2 more", "Download the evidence"} <= set(texts), "administrators read the evidence of tenants"

    browse(tmp_path, walk, everything("broken"))


def test_a_tenant_sees_the_checks_of_their_own_namespace_only(tmp_path: Path) -> None:
    def review(_: str, sent: dict[str, Any]) -> dict[str, Any]:
        asked = sent["spec"]["resourceAttributes"]
        is_own = asked["resource"] == "restorechecks" or asked["group"] == "oadp.openshift.io"
        return {"status": {"allowed": is_own and asked["namespace"] == "shop"}}

    async def walk(browser: Browser) -> None:
        await browser.sign_in()
        page = (await browser.get("/checks")).text
        assert "/ns/shop/check/own" in page
        assert "foresail check get -n shop" in page
        assert "/ns/shop/check/own" in (await browser.get("/ns/shop")).text
        shown = " ".join(Outline((await browser.get("/")).text).texts)
        assert "No restore check has proven it." in shown  # the one there is cannot be decoded
        texts = Outline((await browser.get("/ns/shop/check/own")).text).texts
        assert "of the status: broken" in texts
        assert "Download the evidence" not in texts
        assert (await browser.get("/ns/shop/check/own/evidence.json")).status == 502
        assert (await browser.get("/ns/velero/check/nightly")).status == 403
        reads = [asked for asked in browser.server.asked if asked.startswith("GET ") and "/leases/" not in asked]
        assert not [read for read in reads if "/namespaces/velero/" in read or read.endswith("v1alpha1/restorechecks")]

    browse(tmp_path, walk, everything("broken") | {REVIEWS: review})


def test_primers_have_cold_beside_warm(tmp_path: Path) -> None:
    async def walk(browser: Browser) -> None:
        await browser.sign_in()
        assert {"warm", "41s", "1s", "10m"} <= set(Outline((await browser.get("/primers")).text).texts)

    browse(tmp_path, walk)


def test_pages_that_the_viewer_may_not_read_are_neither_shown_nor_read(tmp_path: Path) -> None:
    answers: dict[str, Any] = {**of_tenant(), REVIEWS: {"status": {"allowed": False}}}

    async def walk(browser: Browser) -> None:
        await browser.sign_in()
        shown = Outline((await browser.get("/namespaces")).text).texts
        assert not {"Queue", "Policies", "Checks", "Primers", "Doctor"} & set(shown)
        asked = len(browser.server.asked)
        for path in ("/queue", "/policies", "/checks", "/primers"):
            assert (await browser.get(path)).status == 403
        assert browser.server.asked[asked:] == []
        for path in ("/ns/velero/check/nightly", "/ns/velero/check/nightly/evidence.json", "/ns/shop/check/own"):
            assert (await browser.get(path)).status == 403
        assert {each.rpartition("/")[2] for each in browser.server.asked[asked:]} == {"selfsubjectaccessreviews"}

    browse(tmp_path, walk, answers)
