"""Rollbacks in the console: the plan, the steps with their times, and the way back."""

from pathlib import Path
from typing import Any

import pytest

from foresail.api.marks import REQUESTER
from tests.unit.console.test_console import Browser, browse, everything
from tests.unit.console.test_report import REVIEWS, TENANTS, Outline

PATH = "/apis/foresail.dev/v1alpha1/namespaces/shop/rollbacks"
REVIEW = "/apis/authentication.k8s.io/v1/selfsubjectreviews"


def cluster(**more: Any) -> dict[str, Any]:  # noqa: ANN401
    """Return a cluster that knows who asks, and takes Rollbacks."""
    found = everything() | {REVIEW: {"status": {"userInfo": {"username": "kim"}}}}
    policies = found["/apis/foresail.dev/v1alpha1/selfservicepolicies"]
    policies["items"][0]["spec"]["rollback"] = {"enabled": True, "prune": True}
    return found | more


def test_the_list_has_each_rollback_and_its_page_the_steps_with_their_times(tmp_path: Path) -> None:
    async def walk(browser: Browser) -> None:
        await browser.sign_in()
        page = (await browser.get("/rollbacks")).text
        assert "/ns/shop/rollback/back" in page
        texts = Outline((await browser.get("/ns/shop/rollback/back")).text).texts
        for each in ("restoring", "06:00:00 UTC", "9s", "Brought back (60)", "and 59 more.", "Deleted (60)"):
            assert each in texts, texts
        assert "Undo" in texts
        plan = Outline((await browser.get("/ns/shop/rollback/plan")).text).texts
        assert "Roll back exactly as planned" in plan
        assert "New since then, and stay (60)" in plan

    browse(tmp_path, walk, cluster())


def test_a_plan_is_made_by_a_dry_run_and_rolled_back_by_its_digest(tmp_path: Path) -> None:
    async def walk(browser: Browser) -> None:
        await browser.sign_in()
        assert "/ns/shop/new-rollback?to=copy" in (await browser.get("/ns/shop/backup/copy")).text
        page = (await browser.get("/ns/shop/new-rollback?to=copy&prune=yes")).text
        assert "foresail rollback create --to copy --prune --dry-run -n shop" in page
        answer = await browser.post("/ns/shop/new-rollback", {**browser.own, "to": "copy", "prune": "yes"})
        assert "/ns/shop/rollback/plan-" in answer.headers["location"]
        body = browser.server.bodies[f"POST {PATH}"]
        assert body["spec"] == {"to": "copy", "volumes": "None", "prune": True, "dryRun": True}
        assert body["metadata"]["annotations"][REQUESTER] == "kim"
        path = "/ns/shop/rollback/plan/run"
        page = (await browser.get(path)).text
        assert f"--plan-digest {'0' * 64}" in page
        for typed in ({}, {"typed": "bank"}):
            answer = await browser.post(path, {**browser.own, "digest": "0" * 64, **typed})
            assert (answer.status, "shop was not typed" in answer.text) == (400, True)
        answer = await browser.post(path, {**browser.own, "digest": "1" * 64, "typed": "shop"})
        assert "the plan is another one than you have seen" in answer.text
        answer = await browser.post(path, {**browser.own, "digest": "0" * 64, "typed": "shop"})
        assert answer.status == 303, answer.text
        assert browser.server.bodies[f"POST {PATH}"]["spec"]["planDigest"] == "0" * 64

    backups = everything()[f"{TENANTS}/nonadminbackups"]
    rollbacks = everything()[PATH]
    more = {PATH: lambda _, sent: sent or rollbacks, f"{TENANTS}/nonadminbackups": backups}
    browse(tmp_path, walk, cluster(**more))


def test_a_plan_with_volumes_is_run_with_them(tmp_path: Path) -> None:
    rollbacks = everything()[PATH]
    for each in rollbacks["items"]:
        each["spec"]["volumes"] = "All"

    async def walk(browser: Browser) -> None:
        await browser.sign_in()
        path = "/ns/shop/rollback/plan/run"
        assert "--volumes all --plan-digest" in (await browser.get(path)).text
        answer = await browser.post(path, {**browser.own, "digest": "0" * 64, "typed": "shop"})
        assert answer.status == 303, answer.text
        assert browser.server.bodies[f"POST {PATH}"]["spec"]["volumes"] == "All"

    plan = next(each for each in rollbacks["items"] if each["metadata"]["name"] == "plan")
    browse(tmp_path, walk, cluster(**{PATH: lambda _, sent: sent or rollbacks, f"{PATH}/plan": plan}))


def test_a_rollback_is_undone_after_its_namespace_is_typed(tmp_path: Path) -> None:
    async def walk(browser: Browser) -> None:
        await browser.sign_in()
        path = "/ns/shop/rollback/back/undo"
        page = (await browser.get(path)).text
        assert "foresail rollback undo back -n shop" in page
        assert "What was changed since is lost" in page
        assert (await browser.post(path, browser.own)).status == 400
        assert browser.changes == []
        answer = await browser.post(path, {**browser.own, "typed": "shop"})
        assert answer.headers["location"].endswith("/ns/shop/rollback/back")
        body = browser.server.bodies[f"PATCH {PATH}/back"]
        assert (body["spec"], body["metadata"]["uid"]) == ({"undo": True}, "uid-of-back")

    browse(tmp_path, walk, cluster())


@pytest.mark.parametrize(
    ("phase", "says"),
    [("Refused", "has changed nothing"), ("Undone", "is undone already"), ("Planned", "has changed nothing")],
)
def test_what_cannot_be_undone_says_why(tmp_path: Path, phase: str, says: str) -> None:
    answers = cluster()
    answers[f"{PATH}/back"]["status"]["phase"] = phase

    async def walk(browser: Browser) -> None:
        await browser.sign_in()
        assert "/rollback/back/undo" not in (await browser.get("/ns/shop/rollback/back")).text
        assert says in (await browser.get("/ns/shop/rollback/back/undo")).text
        answer = await browser.post("/ns/shop/rollback/back/undo", {**browser.own, "typed": "shop"})
        assert answer.status == 400
        assert browser.changes == []

    browse(tmp_path, walk, answers)


def test_where_the_policy_has_no_rollbacks_the_plan_says_so(tmp_path: Path) -> None:
    async def walk(browser: Browser) -> None:
        await browser.sign_in()
        page = (await browser.get("/ns/shop/new-rollback?to=copy")).text
        assert "rollback is not enabled in namespace shop" in page
        missing = (await browser.get("/ns/shop/new-rollback?to=../x")).text
        assert "backup: the name is not valid" in missing
        assert browser.changes == []

    browse(tmp_path, walk, everything())


def test_who_may_not_list_rollbacks_is_offered_none(tmp_path: Path) -> None:
    def review(_: str, sent: dict[str, Any]) -> dict[str, Any]:
        return {"status": {"allowed": sent["spec"]["resourceAttributes"]["resource"] != "rollbacks"}}

    async def walk(browser: Browser) -> None:
        await browser.sign_in()
        assert "/rollbacks" not in (await browser.get("/")).text
        assert "new-rollback" not in (await browser.get("/ns/shop/backup/copy")).text
        assert (await browser.get("/rollbacks")).status == 403
        assert (await browser.get("/ns/shop/rollback/back")).status == 403
        assert not any("rollbacks" in each for each in browser.server.asked)

    browse(tmp_path, walk, cluster(**{REVIEWS: review}))
