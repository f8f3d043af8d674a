"""What the pages can do: each act is shown before it is written, and written as it was shown."""

import re
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest

from foresail.api.instants import stamp
from foresail.api.marks import DELETE_REASON, RETENTION_APPROVED
from foresail.cli.main import parser
from foresail.cli.tenant.spec import backup_spec
from foresail.console import server
from foresail.console.layout import Site
from foresail.console.policy_pages import Approvals, policies
from foresail.deletion import approved
from foresail.kube.clock import now
from tests.unit.cli.test_coverage import listed, named
from tests.unit.cli.test_tenant_retention import backup
from tests.unit.cli.test_tenant_schedule import wire
from tests.unit.console.test_console import PAGES, XSS, Browser, browse, everything
from tests.unit.console.test_report import NOW, TENANTS, Outline

VELERO = "/apis/velero.io/v1/namespaces/velero"
OWN = "/apis/foresail.dev/v1alpha1"


def writable() -> dict[str, Any]:
    """Return a cluster that takes what the acts write."""
    return everything() | {
        f"{OWN}/protectionclasses": listed(
            *(named(name, spec={"schedule": "0 2 * * *"}) for name in ("gold", "bronze"))
        ),
        "/api/v1/namespaces/bare": named("bare"),
    }


@pytest.mark.parametrize(
    ("path", "shown", "change"),
    [
        ("/ns/bare/protect", "foresail protection set bronze -n bare", "PATCH /api/v1/namespaces/bare"),
        ("/ns/shop/schedule", "foresail backup schedule create nightly", f"POST {TENANTS}/nonadminschedules"),
        ("/ns/shop/run/nightly", "foresail schedule run nightly -n velero", f"POST {VELERO}/backups"),
        ("/ns/shop/check/own/run", "foresail check run own -n shop", f"PATCH {OWN}/namespaces/shop/restorechecks/own"),
    ],
)  # fmt: skip
def test_an_act_is_shown_and_then_written(tmp_path: Path, path: str, shown: str, change: str) -> None:
    async def walk(browser: Browser) -> None:
        await browser.sign_in()
        page = (await browser.get(path)).text
        texts = " ".join(Outline(page).texts)
        assert all(each in texts for each in ("Nothing is written yet", shown)), texts
        assert browser.changes == []
        answer = await browser.post(path, browser.own)
        assert browser.changes == [change], answer

    browse(tmp_path, walk, writable())


def test_without_classes_a_schedule_is_created_whose_runs_are_shown(tmp_path: Path) -> None:
    async def walk(browser: Browser) -> None:
        await browser.sign_in()
        page = (await browser.get("/ns/shop/protect?schedule=30+1+*+*+*")).text
        texts = Outline(page).texts
        assert "7 runs in the next 7 days, and no SchedulePolicy applies." in texts
        await browser.post("/ns/shop/protect", {**browser.own, "schedule": "30 1 * * *"})
        body = browser.server.bodies[f"POST {VELERO}/schedules"]
        assert body["spec"] == {"schedule": "30 1 * * *", "template": {"includedNamespaces": ["shop"]}}

    browse(tmp_path, walk)


@pytest.mark.parametrize(
    ("path", "fields", "says"),
    [
        ("/ns/bare/protect", {"class": "platinum"}, "there is no ProtectionClass platinum"),
        ("/ns/bare/protect", {"class": "none"}, "there is no ProtectionClass none"),
        ("/ns/shop/schedule", {"schedule": "61 * * * *"}, "When: minute: '61' is above 59. allowed: "),
        ("/ns/shop/schedule", {"name": "../../secrets"}, "the name is not valid"),
        ("/ns/shop/schedule", {"name": "a" * 300}, "the name has 300 characters"),
        ("/ns/shop/schedule", {"kinds": "../secrets"}, "kinds: write up to 64 such as deployments.apps"),
        ("/ns/shop/back-up", {"name": "-n"}, "name: the name is not valid"),
        ("/ns/shop/back-up", {"keep": "for ever"}, "keep for: 'for ever' is not a duration"),
        ("/ns/shop/back-up", {"volumes": "own"}, "volumes: choose one of the ways"),
        ("/ns/shop/back-up", {"kinds": ",".join(f"kind{n}s" for n in range(65))}, "kinds: write up to 64"),
        ("/ns/shop/new-schedule", {"namespaces": ""}, "namespaces: name at least one"),
        ("/ns/shop/new-schedule", {"namespaces": "shop,--all"}, "'--all' is not the name of a namespace"),
        ("/ns/shop/new-schedule", {"schedule": "0 0 30 2 *"}, "never fires"),
        ("/ns/shop/schedule/nightly/edit", {"uid": "another"}, "is another one than you have seen"),
        ("/ns/shop/schedule/nightly/edit", {}, "Nothing differs from what is there."),
        ("/ns/shop/change-schedule/nightly", {"uid": "another"}, "is another one than you have seen"),
    ],
)
def test_what_cannot_be_written_is_neither_offered_nor_written(
    tmp_path: Path, path: str, fields: dict[str, str], says: str
) -> None:
    async def walk(browser: Browser) -> None:
        await browser.sign_in()
        query = "&".join(f"{name}={value}" for name, value in fields.items()).replace(" ", "+")
        page = (await browser.get(f"{path}?{query}")).text
        assert says in " ".join(Outline(page).texts)
        assert 'method="post"' not in page
        answer = await browser.post(path, {**browser.own, **fields})
        assert answer.status == 400
        assert says in " ".join(Outline(answer.text).texts)
        assert browser.changes == []

    browse(tmp_path, walk, writable())


def test_the_row_of_a_namespace_offers_only_what_the_viewer_may(tmp_path: Path) -> None:
    def review(_: str, sent: dict[str, Any]) -> dict[str, Any]:
        asked = sent["spec"]["resourceAttributes"]
        return {"status": {"allowed": asked["verb"] in ("list", "get", "watch")}}

    async def walk(browser: Browser) -> str:
        await browser.sign_in()
        return (await browser.get("/")).text

    assert "/protect" in browse(tmp_path, walk)
    read_only = everything() | {"/apis/authorization.k8s.io/v1/selfsubjectaccessreviews": review}
    page = browse(tmp_path, walk, read_only)
    assert "Namespaces, the worst first" in page
    assert '/protect"' not in page
    assert "/run/" not in page


def test_a_paused_schedule_is_unpaused_where_running_it_once_would_not_help(tmp_path: Path) -> None:
    answers = everything()
    path = f"{VELERO}/schedules/nightly"
    paused = {**answers[path], "spec": {**answers[path]["spec"], "paused": True}}
    answers |= {path: paused, f"{VELERO}/schedules": listed(paused)}

    async def walk(browser: Browser) -> None:
        await browser.sign_in()
        front = (await browser.get("/")).text
        assert '/ns/shop/unpause/nightly"' in front
        assert "/run/nightly" not in front
        page = (await browser.get("/ns/shop/unpause/nightly")).text
        assert "Lets Schedule nightly run again." in " ".join(Outline(page).texts)
        answer = await browser.post("/ns/shop/unpause/nightly", browser.own)
        assert answer.status == 303, answer.text
        assert browser.server.bodies[f"PATCH {path}"]["spec"] == {"paused": False}

    browse(tmp_path, walk, answers)
    browse(tmp_path, refuses_what_runs)


async def refuses_what_runs(browser: Browser) -> None:
    await browser.sign_in()
    assert "Schedule nightly is not paused" in (await browser.get("/ns/shop/unpause/nightly")).text


def test_a_team_with_a_schedule_is_offered_another_one(tmp_path: Path) -> None:
    async def walk(browser: Browser) -> str:
        await browser.sign_in()
        return (await browser.get("/ns/shop")).text

    assert "Create a schedule" in Outline(browse(tmp_path, walk, writable())).texts


def test_protection_by_label_shows_gaps_first_and_offers_to_mend_them(tmp_path: Path) -> None:
    def one(namespace: str, truth: str, reason: str) -> dict[str, Any]:
        condition = {"type": "Protected", "status": truth, "reason": reason, "message": f"of {namespace}"}
        status = {"class": "gold", "schedules": ["gold-1"], "conditions": [condition]}
        return named("protection", namespace, status=status)

    ready = {"type": "Ready", "status": "True", "reason": "Ready", "message": ""}
    gold = named("gold", spec={"schedule": "0 2 * * *"}, status={"namespaces": 2, "conditions": [ready]})
    answers = everything() | {
        f"{OWN}/protections": listed(one("fine", "True", "Protected"), one("bare", "False", "UnknownClass")),
        f"{OWN}/protectionclasses": listed(gold),
    }

    async def walk(browser: Browser) -> str:
        await browser.sign_in()
        return (await browser.get("/protection")).text

    page = browse(tmp_path, walk, answers)
    assert page.index("UnknownClass") < page.index(">fine<")
    texts = Outline(page).texts
    assert {"1 of 2 namespaces are not protected as asked.", "True: Ready", "0 2 * * *"} <= set(texts)
    assert "/ns/bare/protect" in page
    assert "/ns/fine/protect" not in page
    assert "There is none yet. The first step:" in " ".join(Outline(browse(tmp_path, walk)).texts)


POLICY = """apiVersion: foresail.dev/v1alpha1
kind: SchedulePolicy
metadata:
  name: nights
  labels: {a: b}
spec:
  selector: {}
  spread:
    within: 1h
---
apiVersion: v1
kind: Secret
metadata:
  name: stolen
"""


def test_only_the_policies_of_a_text_are_applied_and_only_what_was_previewed_of_them(tmp_path: Path) -> None:
    async def walk(browser: Browser) -> None:
        await browser.sign_in()
        page = (await browser.post("/calendar/preview", {**browser.own, "manifest": POLICY})).text
        assert "Apply these policies" in page
        assert browser.changes == []
        await browser.post("/calendar/apply", {**browser.own, "manifest": POLICY.replace("\n", "\r\n")})
        (change,) = browser.changes
        assert change.startswith(f"PATCH {OWN}/schedulepolicies/nights")
        answer = await browser.post("/calendar/apply", {**browser.own, "manifest": "a: &a [*a]"})
        assert answer.status == 502
        assert len(browser.changes) == 1

    browse(tmp_path, walk)


OPTIONS = {"name": "before", "volumes": "moved", "kinds": "secrets, deployments.apps", "keep": "72h"}


def test_a_backup_with_options_is_what_its_command_says(tmp_path: Path) -> None:
    async def walk(browser: Browser) -> None:
        await browser.sign_in()
        page = (await browser.get(f"/ns/shop/back-up?{urlencode(OPTIONS)}")).text
        words = "--include-resources=secrets,deployments.apps --snapshot-move-data=true --ttl=72h0m0s -n shop"
        assert f"foresail backup create before {words}" in " ".join(Outline(page).texts)
        answer = await browser.post("/ns/shop/back-up", {**browser.own, **OPTIONS})
        assert answer.headers["location"].endswith("/ns/shop/backup/before")
        spec = browser.server.bodies[f"POST {TENANTS}/nonadminbackups"]["spec"]["backupSpec"]
        assert spec == {
            "includedResources": ["secrets", "deployments.apps"],
            "snapshotMoveData": True,
            "ttl": "72h0m0s",
        }
        args = parser().parse_args(["backup", "create", "before", *words.split()])
        assert backup_spec(args) == spec

    browse(tmp_path, walk)


def test_where_self_service_is_off_an_administrator_backs_up_with_velero(tmp_path: Path) -> None:
    async def walk(browser: Browser) -> None:
        await browser.sign_in()
        assert "/ns/shop/back-up" in (await browser.get("/ns/shop")).text
        page = (await browser.get("/ns/shop/back-up?name=x&volumes=none")).text
        words = "--include-namespaces shop --snapshot-volumes=false --default-volumes-to-fs-backup=false -n velero"
        assert f"velero backup create x {words}" in " ".join(Outline(page).texts)
        await browser.post("/ns/shop/back-up", {**browser.own, "name": "x", "volumes": "none"})
        spec = browser.server.bodies[f"POST {VELERO}/backups"]["spec"]
        data = {"snapshotVolumes": False, "defaultVolumesToFsBackup": False}
        assert spec == {"includedNamespaces": ["shop"], **data}

    bare = {"metadata": {"name": "shop", "creationTimestamp": "2026-01-01T00:00:00Z"}}
    browse(tmp_path, walk, everything() | {"/api/v1/namespaces/shop": bare})


def test_a_schedule_of_a_team_is_changed_as_far_as_the_form_goes(tmp_path: Path) -> None:
    async def walk(browser: Browser) -> None:
        await browser.sign_in()
        assert "/ns/shop/schedule/nightly/edit" in (await browser.get("/ns/shop")).text
        unchanged = (await browser.get("/ns/shop/schedule/nightly/edit")).text
        assert "Nothing differs from what is there." in unchanged
        assert "7 runs in the next 7 days" in unchanged
        wish = {"uid": "u1", "schedule": "5 4 * * *", "kinds": "secrets", "volumes": "files", "keep": ""}
        page = (await browser.get(f"/ns/shop/schedule/nightly/edit?{urlencode(wish)}")).text
        assert "7 runs in the next 7 days" in page
        await browser.post("/ns/shop/schedule/nightly/edit", {**browser.own, **wish})
        body = browser.server.bodies[f"PATCH {TENANTS}/nonadminschedules/nightly"]
        assert body["metadata"]["uid"] == "u1"
        template = {"includedResources": ["secrets"], "defaultVolumesToFsBackup": True}
        assert body["spec"] == {"schedule": "5 4 * * *", "template": {"backupSpec": template}}

    browse(tmp_path, walk)


def test_what_a_form_does_not_have_stays_in_a_schedule_and_what_it_empties_goes(tmp_path: Path) -> None:
    answers = everything()
    schedule = answers[f"{VELERO}/schedules/nightly"]
    mixed = {"snapshotVolumes": True, "snapshotMoveData": False, "includedNamespaces": ["shop"], "ttl": "1h0m0s"}
    answers[f"{VELERO}/schedules/nightly"] = {**schedule, "spec": {"schedule": "0 2 * * *", "template": mixed}}

    async def walk(browser: Browser) -> None:
        await browser.sign_in()
        page = (await browser.get("/ns/shop/change-schedule/nightly")).text
        assert '<option value="own" selected>as it is now' in page
        (uid,) = re.findall(r'name="uid" value="([^"]*)"', page)
        wish = {"uid": uid, "volumes": "own", "keep": "", "kinds": "", "schedule": "0 2 * * *"}
        answer = await browser.post("/ns/shop/change-schedule/nightly", {**browser.own, **wish})
        assert answer.status == 303, answer.text
        assert browser.server.bodies[f"PATCH {VELERO}/schedules/nightly"]["spec"] == {"template": {"ttl": None}}

    browse(tmp_path, walk, answers)


def test_the_schedule_of_a_class_is_changed_in_the_class(tmp_path: Path) -> None:
    answers = everything()
    schedule = answers[f"{VELERO}/schedules/nightly"]
    kept = {**schedule["metadata"], "annotations": {"foresail.dev/protection-class": "gold"}}
    answers[f"{VELERO}/schedules/nightly"] = {**schedule, "metadata": kept}

    async def walk(browser: Browser) -> None:
        await browser.sign_in()
        page = (await browser.get("/ns/shop/change-schedule/nightly?schedule=0+5+*+*+*")).text
        assert "the operator keeps this Schedule for ProtectionClass gold" in page
        assert 'method="post"' not in page

    browse(tmp_path, walk, answers)


def test_protection_shows_which_schedule_takes_the_namespace_and_when(tmp_path: Path) -> None:
    async def walk(browser: Browser) -> str:
        await browser.sign_in()
        return " ".join(Outline((await browser.get("/ns/shop/protect?class=gold")).text).texts)

    gold = named("gold", spec={"schedule": "0 2 * * *"})
    none = {path: listed() for path in (f"{OWN}/schedulepolicies", "/apis/apps/v1/deployments")}
    more = none | {f"{OWN}/protectionclasses": listed(gold)}
    shown = browse(tmp_path, walk, everything() | more)
    assert re.search(r"Schedule gold-\w+ backs it up", shown), shown
    assert "7 runs in the next 7 days, and no SchedulePolicy applies." in shown


@pytest.mark.parametrize(
    ("status", "says", "folded"),
    [
        ({"reason": "AlreadyExists", "code": 409, "message": "x"}, "NonAdminBackup shop/mine already exists", ""),
        ({"reason": "Forbidden", "code": 403, "message": "x"}, "you may not create nonadminbackups", "apiGroups"),
        ({"reason": "Invalid", "code": 422, "message": f"spec: {XSS}"}, "cannot create it: spec: <script>", ""),
    ],
)
def test_a_form_that_is_refused_comes_back_as_it_was_filled_in(
    tmp_path: Path, status: dict[str, Any], says: str, folded: str
) -> None:
    wish = {"name": "mine", "kinds": "secrets", "keep": "7h", "volumes": "files"}

    async def walk(browser: Browser) -> None:
        await browser.sign_in()
        answer = await browser.post("/ns/shop/back-up", {**browser.own, **wish})
        assert answer.status == 400
        assert says in " ".join(Outline(answer.text).texts)
        for value in ('value="mine"', 'value="secrets"', 'value="7h"', 'value="files" selected'):
            assert value in answer.text
        shown, _, hidden = answer.text.partition("<details>")
        assert "apiGroups" not in shown
        assert folded in hidden

    refused = {"kind": "Status", **status}
    backups = everything()[f"{TENANTS}/nonadminbackups"]
    answers = everything() | {f"{TENANTS}/nonadminbackups": lambda _, sent: refused if sent else backups}
    browse(tmp_path, walk, answers)


def test_a_team_sees_what_would_be_deleted_and_approves_exactly_that(tmp_path: Path) -> None:
    asking = wire()
    asking["status"]["observed"] = {"record": '{"schedule": "0 3 * * *", "asks": "keepLast 1"}'}
    waiting = [backup(day, **{DELETE_REASON: "keepLast 1 keeps newer ones"}) for day in (12, 13)]
    answers = everything() | {
        f"{TENANTS}/nonadminschedules": listed(asking),
        f"{TENANTS}/nonadminschedules/nightly": asking,
        f"{TENANTS}/nonadminbackups": listed(backup(15), *waiting),
    }
    path = "/ns/shop/schedule/nightly/approve"

    async def walk(browser: Browser) -> None:
        await browser.sign_in()
        assert path in (await browser.get("/ns/shop")).text
        page = (await browser.get(path)).text
        assert "Deletes 2 backups with their data" in page
        assert all(each["metadata"]["name"] in page for each in waiting)
        (digest,) = re.findall(r'name="list" value="([^"]+)"', page)
        for seen in ("another", ""):
            assert (await browser.post(path, {**browser.own, "list": seen})).status == 502
        assert browser.changes == []
        refused = await browser.post(path, {**browser.own, "list": digest, "typed": "nightly"})
        assert (refused.status, browser.changes) == (400, [])
        assert (await browser.post(path, {**browser.own, "list": digest, "typed": "shop"})).status == 303
        metadata = browser.server.bodies[f"PATCH {TENANTS}/nonadminschedules/nightly"]["metadata"]
        assert len(approved(metadata["annotations"][RETENTION_APPROVED], "keepLast 1")) == 2

    browse(tmp_path, walk, answers)


def test_deletions_of_schedules_wait_on_the_page_of_policies() -> None:
    site = Site("mount", "secret", "shop", is_administrator=True)
    found = Approvals([], [], may_decide=True, may_adopt=True, deletions=[("daily", ["a", "b"]), ("calm", [])])
    page = policies(site, [], [], replace(found, may_delete=True), NOW)
    assert "/mount/approvals/deletion/daily/approve" in page
    assert "calm" not in page
    assert "/approvals/deletion" not in policies(site, [], [], found, NOW)


CHANGED = "You changed the form, or the cluster has changed: this is what it would write now."


def hidden(page: str) -> dict[str, str]:
    """Return the fields of the form of a page that nobody fills in."""
    return dict(re.findall(r'<input type="hidden" name="([^"]+)" value="([^"]*)"', page))


def keeping(answers: dict[str, Any], path: str) -> list[str]:
    """Let the API server keep what is created below a path, and refuse it a second time; return the names."""
    names = list[str]()

    def create(_: str, sent: dict[str, Any]) -> dict[str, Any]:
        name = sent["metadata"]["name"]
        if name in names:
            text = f'"{name}" already exists'
            return {"kind": "Status", "reason": "AlreadyExists", "message": text, "code": 409}
        names.append(name)
        sent["metadata"]["creationTimestamp"] = stamp(now())
        answers[f"{path}/{name}"] = sent
        return sent

    listed_before = answers.get(path, listed())
    answers[path] = lambda path, sent: create(path, sent) if sent else listed_before
    return names


def test_an_object_that_has_changed_since_its_preview_is_previewed_again(tmp_path: Path) -> None:
    answers = writable()
    path = f"{VELERO}/schedules/nightly"

    async def walk(browser: Browser) -> None:
        await browser.sign_in()
        shown = hidden((await browser.get("/ns/shop/run/nightly")).text)
        spec = answers[path]["spec"]
        answers[path] = {**answers[path], "spec": {**spec, "template": {"includedNamespaces": ["bank"]}}}
        again = await browser.post("/ns/shop/run/nightly", shown)
        assert (again.status, CHANGED in again.text, browser.changes) == (200, True, [])
        assert (await browser.post("/ns/shop/run/nightly", hidden(again.text))).status == 303
        assert browser.server.bodies[f"POST {VELERO}/backups"]["spec"]["includedNamespaces"] == ["bank"]

    browse(tmp_path, walk, answers)


@pytest.mark.parametrize(
    ("path", "created"),
    [
        ("/ns/shop/run/nightly", f"{VELERO}/backups"),
        ("/ns/shop/back-up?name=mine", f"{TENANTS}/nonadminbackups"),
        ("/ns/shop/rollback/plan/run", f"{OWN}/namespaces/shop/rollbacks"),
    ],
)
def test_a_form_that_is_sent_twice_creates_one_object(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, path: str, created: str
) -> None:
    """A double click sends a form twice, and the second answer is the one that is seen."""
    answers = writable()
    names = keeping(answers, created)

    async def walk(browser: Browser) -> None:
        await browser.sign_in()
        shown = {**hidden((await browser.get(path)).text), "name": "mine", "volumes": "default", "typed": "shop"}
        place = path.partition("?")[0]
        first = await browser.post(place, shown)
        monkeypatch.setattr(server, "now", lambda: now() + timedelta(seconds=2))
        second = await browser.post(place, shown)
        assert (first.status, second.status, len(names)) == (303, 303, 1), second.text
        assert first.headers["location"] == second.headers["location"]
        monkeypatch.setattr(server, "now", lambda: now() + timedelta(minutes=20))
        late = await browser.post(place, {**shown, "name": "later"})
        assert (late.status, len(names)) == (200, 1), "an act that was previewed long ago is previewed again"

    browse(tmp_path, walk, answers)


def test_what_has_not_changed_is_not_previewed_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def walk(browser: Browser) -> list[str]:
        await browser.sign_in()
        pages = {path: (await browser.get(path)).text for path in PAGES}
        monkeypatch.setattr(server, "now", lambda: now() + timedelta(seconds=3))
        forms = {path: hidden(page) for path, page in pages.items() if 'name="previewed"' in page}
        for path, fields in forms.items():
            answer = await browser.post(path.partition("?")[0], {**fields, "typed": "shop"})
            assert CHANGED not in answer.text, path
        return list(forms)

    assert len(browse(tmp_path, walk, writable())) >= 10


def test_a_form_that_was_changed_after_its_preview_is_previewed_again(tmp_path: Path) -> None:
    async def walk(browser: Browser) -> None:
        await browser.sign_in()
        page = (await browser.get(f"/ns/shop/back-up?{urlencode(OPTIONS)}")).text
        (digest,) = re.findall(r'name="previewed" value="([^"]+)"', page)
        for more in ({"keep": "96h"}, {"what": "preview"}):
            answer = await browser.post("/ns/shop/back-up", {**browser.own, **OPTIONS, "previewed": digest, **more})
            assert answer.status == 200
            assert (CHANGED in answer.text) is ("keep" in more)
            assert browser.changes == []
        answer = await browser.post("/ns/shop/back-up", {**browser.own, **OPTIONS, "previewed": digest})
        assert answer.status == 303

    browse(tmp_path, walk)


NEW_CLASS, GOLD = "/protection/new-class", "/protection/class/gold"
PLAIN = {f"{OWN}/schedulepolicies": listed(named("nights", spec={"selector": {}, "spread": {"within": "1h"}}))} | {
    path: listed() for path in ("/apis/apps/v1/deployments", "/apis/apps/v1/namespaces/velero/deployments")
}


def test_a_new_class_shows_what_it_would_do_before_it_is_created(tmp_path: Path) -> None:
    far = f"{(now().hour + 12) % 24:02}"  # from each end of the week that is shown, whatever the policy adds
    schedule = f"0 {int(far)} * * *"
    wish = {"name": "silver", "schedule": schedule, "default": "yes", "together": "1", "policy": "nights"}

    async def walk(browser: Browser) -> list[str]:
        await browser.sign_in()
        assert "/protection/new-class" in (await browser.get("/protection")).text
        texts = Outline((await browser.get(f"{NEW_CLASS}?{urlencode(wish)}")).text).texts
        assert browser.changes == []
        answer = await browser.post(NEW_CLASS, {**browser.own, **wish, "keep": "72h"})
        assert answer.headers["location"].endswith("/protection")
        assert browser.server.bodies[f"POST {OWN}/protectionclasses"] == {
            "apiVersion": "foresail.dev/v1alpha1",
            "kind": "ProtectionClass",
            "metadata": {"name": "silver"},
            "spec": {
                "schedule": schedule,
                "schedulePolicy": "nights",
                "namespacesPerBackup": 1,
                "default": True,
                "template": {"ttl": "72h0m0s"},
            },
        }
        return texts

    shown = browse(tmp_path, walk, everything() | PLAIN | {f"{OWN}/protectionclasses": listed()})
    spaces = len(everything()["/api/v1/namespaces"]["items"]) - 1  # Velero's own is in no default class
    assert f"ProtectionClass silver: {spaces} namespaces, of which 0 by their label" in shown
    assert f"{spaces} at each run, of up to 1 namespace" in shown
    times = rf"the first starts at \S+T{far}:\d\d:\d\dZ, the last at \S+T{far}:"
    assert any(re.match(times, each) for each in shown), shown
    assert any(re.match(r"\d+ of \d+ namespaces in no Schedule now", each) for each in shown)
    assert "unknown, for no backup of the last 7 days has completed" in shown or any("about " in each for each in shown)
    assert "7 runs in the next 7 days, by SchedulePolicy nights." in shown


def test_a_class_is_changed_as_far_as_the_form_goes(tmp_path: Path) -> None:
    gold = named("gold", spec={"schedule": "0 2 * * *", "namespacesPerBackup": 20, "template": {"labelSelector": {}}})
    gold["metadata"]["uid"] = "u"
    answers = everything() | PLAIN | {f"{OWN}/protectionclasses": listed(gold), f"{OWN}/protectionclasses/gold": gold}

    async def walk(browser: Browser) -> None:
        await browser.sign_in()
        assert GOLD in (await browser.get("/protection")).text
        unchanged = (await browser.get(GOLD)).text
        assert "Nothing differs from what is there." in unchanged
        assert "ProtectionClass gold has no namespaces" in unchanged
        wish = {"schedule": "0 3 * * *", "restores": "yes", "keep": "24h", "uid": "u"}
        page = " ".join(Outline((await browser.get(f"{GOLD}?{urlencode(wish)}")).text).texts)
        assert "kubectl patch protectionclasses.foresail.dev gold --type merge -p" in page
        assert (await browser.post(GOLD, {**browser.own, **wish})).status == 303
        body = browser.server.bodies[f"PATCH {OWN}/protectionclasses/gold"]
        spec = {"schedule": "0 3 * * *", "restore": {"byTenants": True}, "template": {"ttl": "24h0m0s"}}
        assert body == {"metadata": {"uid": "u"}, "spec": spec}

    browse(tmp_path, walk, answers)


@pytest.mark.parametrize(
    ("path", "fields", "says"),
    [
        (NEW_CLASS, {"name": "none"}, "write at most 50 characters, and not none"),
        (NEW_CLASS, {"name": "a" * 51}, "write at most 50 characters"),
        (NEW_CLASS, {"name": "-n"}, "name: the name is not valid"),
        (NEW_CLASS, {"name": "gold"}, "ProtectionClass gold exists"),
        (NEW_CLASS, {"schedule": "61 * * * *"}, "When: minute: '61' is above 59"),
        (NEW_CLASS, {"schedule": "0 0 30 2 *"}, "never fires"),
        (NEW_CLASS, {"policy": "evenings"}, "there is no SchedulePolicy evenings"),
        (NEW_CLASS, {"policy": "../x"}, "'../x' is not the name of a SchedulePolicy"),
        (NEW_CLASS, {"together": "101"}, "write a number from 1 to 100"),
        (NEW_CLASS, {"together": "many"}, "write a number from 1 to 100"),
        (NEW_CLASS, {"default": "maybe"}, "choose no or yes"),
        (NEW_CLASS, {"keep": "for ever"}, "keep for: 'for ever' is not a duration"),
        (GOLD, {"uid": "another"}, "is another one than you have seen"),
        (GOLD, {"together": "0"}, "write a number from 1 to 100"),
    ],
)
def test_a_class_that_cannot_be_used_is_explained_at_its_form(
    tmp_path: Path, path: str, fields: dict[str, str], says: str
) -> None:
    gold = named("gold", spec={"schedule": "0 2 * * *"})

    async def walk(browser: Browser) -> None:
        await browser.sign_in()
        page = (await browser.get(f"{path}?{urlencode(fields)}")).text
        assert says in " ".join(Outline(page).texts)
        assert 'method="post"' not in page
        assert (await browser.post(path, {**browser.own, **fields})).status == 400
        assert browser.changes == []

    browse(tmp_path, walk, everything() | PLAIN | {f"{OWN}/protectionclasses": listed(gold)})


def test_who_may_not_read_the_cluster_still_sees_the_form_of_a_class(tmp_path: Path) -> None:
    def review(_: str, sent: dict[str, Any]) -> dict[str, Any]:
        asked = sent["spec"]["resourceAttributes"]
        return {"status": {"allowed": asked["resource"] == "protectionclasses" or asked["namespace"] == "shop"}}

    async def walk(browser: Browser) -> str:
        await browser.sign_in()
        asked = len(browser.server.asked)
        page = (await browser.get(NEW_CLASS)).text
        assert not any(each.endswith("/api/v1/namespaces") for each in browser.server.asked[asked:])
        return page

    page = browse(tmp_path, walk, everything() | {"/apis/authorization.k8s.io/v1/selfsubjectaccessreviews": review})
    assert "What it would do is not shown: you may not list namespaces" in page
    assert 'method="post"' in page
