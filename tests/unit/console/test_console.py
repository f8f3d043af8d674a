"""The console: what it shows, and 28 ways to attack it over a real socket."""

import asyncio
import json
import re
import ssl
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from http.cookies import SimpleCookie
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest

from docs.external_assets import external_assets
from foresail.api.marks import REQUEST_UID
from foresail.cli.access import self_service
from foresail.cli.access.cluster import connected
from foresail.cli.main import parser
from foresail.console import guard
from foresail.console.report.snapshot import Wanted
from foresail.console.server import Console, application, new_secrets
from tests.unit.cli.canned import Canned, canned
from tests.unit.cli.test_coverage import listed, named
from tests.unit.console.test_report import REVIEWS, TENANTS, Outline, of_administrator

XSS = "<script>alert(1)</script><img src=x onerror=alert(1)>"
GROUP = "/apis/oadp.openshift.io/v1alpha1"
SERVED = {"foresail.dev/velero-annotations": "Refused"}
"""On a namespace with self-service."""


@dataclass
class Answer:
    """What came back."""

    status: int
    headers: dict[str, str]
    text: str


@dataclass
class Browser:
    """Sends bytes to a console, as a browser or an attacker would."""

    console: Console
    secrets: guard.Secrets
    server: Canned
    cookie: str = ""
    answers: list[Answer] = field(default_factory=list)

    @property
    def base(self) -> str:
        return f"/{self.secrets.mount}"

    async def raw(self, content: bytes) -> Answer:
        host, port = self.console.address.split(":")
        reader, writer = await asyncio.open_connection(host, int(port))
        writer.write(content)
        found = await asyncio.wait_for(reader.read(), 30)
        writer.close()
        head, _, body = found.partition(b"\r\n\r\n")
        first, *lines = head.decode("latin-1").split("\r\n")
        headers = {name.lower(): value.strip() for name, _, value in (each.partition(":") for each in lines)}
        self.answers.append(Answer(int(first.split()[1]), headers, body.decode(errors="replace")))
        return self.answers[-1]

    async def ask(self, method: str, path: str, headers: Mapping[str, str] | None = None, body: str = "") -> Answer:
        given = {
            "Host": self.console.address,
            "Connection": "close",
            "Content-Length": str(len(body)),
            **(headers or {}),
        }
        if self.cookie and "Cookie" not in given:
            given["Cookie"] = f"{guard.COOKIE}={self.cookie}"
        lines = [f"{method} {path} HTTP/1.1", *(f"{name}: {value}" for name, value in given.items() if value != "-")]
        return await self.raw(("\r\n".join(lines) + "\r\n\r\n" + body).encode())

    async def get(self, path: str, **headers: str) -> Answer:
        return await self.ask(
            "GET", f"{self.base}{path}", {name.replace("_", "-"): value for name, value in headers.items()}
        )

    async def post(self, path: str, fields: Mapping[str, str], **headers: str) -> Answer:
        given = {"Origin": f"http://{self.console.address}", "Content-Type": guard.FORM}
        given |= {name.replace("_", "-"): value for name, value in headers.items()}
        return await self.ask("POST", f"{self.base}{path}", given, urlencode(fields))

    async def sign_in(self) -> Answer:
        answer = await self.ask("GET", f"{self.base}/?token={self.secrets.token}")
        self.cookie = SimpleCookie(answer.headers["set-cookie"])[guard.COOKIE].value
        return answer

    @property
    def own(self) -> dict[str, str]:
        return {"csrf": self.secrets.csrf}

    @property
    def changes(self) -> list[str]:
        return [each for each in self.server.writes if not each.endswith("reviews")]


def of_tenant(word: str = "shop") -> dict[str, Any]:
    """Return a namespace whose tenant writes a word wherever they can."""
    template = {"schedule": "0 3 * * *", "template": {"backupSpec": {}}}
    schedule = named("nightly", "shop", spec=template, status={"conditions": [refused(word)]})
    schedule["metadata"] |= {"uid": "u1", "annotations": {"note": word}}
    status = {"phase": word, "conditions": [refused(word)], "veleroBackup": {"name": "v", "status": failed(word)}}
    backup = named("first", "shop", spec={"backupSpec": {"labelSelector": {}}}, status=status)
    backup["metadata"] |= {"uid": "u2", "labels": {"a": word}}
    kind = {"apiVersion": "oadp.openshift.io/v1alpha1", "kind": "NonAdminBackup"}
    good = copy_of("copy", word)
    return {
        REVIEWS: {"status": {"allowed": True}},
        f"{TENANTS}/nonadminschedules": listed(schedule),
        f"{TENANTS}/nonadminbackups": listed(backup, good),
        f"{TENANTS}/nonadminbackups/copy": {**kind, **good},
        f"{TENANTS}/nonadminbackups/first": {**kind, **backup},
        f"{TENANTS}/nonadminrestores": listed(),
        f"{TENANTS}/nonadminschedules/nightly": schedule,
        "/api/v1/namespaces/shop/events": listed(),
    }


def copy_of(name: str, word: str = "shop", day: int = 2) -> dict[str, Any]:
    """Return a backup that can be restored."""
    progress = {"totalItems": 7, "itemsBackedUp": 7}
    velero = {"phase": "Completed", "startTimestamp": f"2026-11-{day:02}T03:00:00Z", "progress": progress}
    velero |= {"expiration": "2999-01-01T00:00:00Z", "failureReason": word}
    succeeded = {"type": "VeleroSucceeded", "status": "True", "reason": word, "message": word}
    status = {"phase": "Created", "conditions": [succeeded], "veleroBackup": {"name": "v2", "status": velero}}
    found = named(name, "shop", spec={"backupSpec": {}}, status=status)
    found["metadata"] |= {"uid": f"uid-of-{name}", "annotations": {"a": word}}
    return found


def refused(word: str) -> dict[str, str]:
    return {"type": "Accepted", "status": "False", "reason": word, "message": word}


def failed(word: str) -> dict[str, Any]:
    return {"phase": word, "failureReason": word, "validationErrors": [word], "startTimestamp": "2026-11-01T00:00:00Z"}


@asynccontextmanager
async def browsing(folder: Path, answers: Mapping[str, Any], **wanted: str) -> AsyncIterator[Browser]:
    with canned(folder, answers) as server:
        args = parser().parse_args(["console", "--kubeconfig", str(server.kubeconfig)])
        async with connected(args) as cluster:
            known = new_secrets()
            tls = ssl.create_default_context()
            place = wanted.get("context", ""), wanted.get("server", "")
            plate = "", wanted.get("color", "")
            about = Wanted("velero", wanted.get("namespace", "shop"))
            console = Console(cluster, about, known, tls, place=place, plate=plate)
            runner = await console.serve(application(console), 0)
            try:
                yield Browser(console, known, server)
            finally:
                await runner.cleanup()


def everything(word: str = "shop") -> dict[str, Any]:
    found = of_administrator() | of_tenant(word) | of_policies(word) | of_checks(word) | of_primers(word)
    tenants = found[f"{TENANTS}/nonadminbackups"]
    velero = "/apis/velero.io/v1/namespaces/velero/schedules"
    found[f"{velero}/nightly"] = found[velero]["items"][0]
    found |= of_rollbacks(word)
    gold = named("gold", spec={"schedule": "0 2 * * *", "template": {"labelSelector": {"matchLabels": {"a": word}}}})
    gold["metadata"]["uid"] = "uid-of-gold"
    found["/apis/foresail.dev/v1alpha1/protectionclasses/gold"] = gold
    return {**found, f"{GROUP}/nonadminbackups": tenants, f"{GROUP}/nonadminrestores": listed()}


def of_policies(word: str = "shop") -> dict[str, Any]:
    """Return policies, and a tenant's request for a storage location."""
    own = "/apis/foresail.dev/v1alpha1"
    asked: dict[str, Any] = {"name": "mine", "namespace": "shop", "requestHash": "hash-of-it", "nacuuid": "shop-mine"}
    asked["requestedSpec"] = {"objectStorage": {"bucket": word}}
    request = named("shop-mine", "velero", status={"phase": word, "nonAdminBackupStorageLocation": asked})
    request["metadata"] |= {"annotations": {REQUEST_UID: "location-uid"}, "resourceVersion": "7"}
    location = named("mine", "shop", status={"veleroBackupStorageLocation": {"name": "shop-mine"}})
    location["metadata"] |= {"uid": "location-uid", "annotations": {"a": word}}
    policy = {"metadata": {"name": "web"}, "spec": {"namespaceSelector": {}, "weight": 3, "quotas": {"stored": 5}}}
    nights = {"metadata": {"name": "nights"}, "spec": {"selector": {"matchLabels": {"a": "b"}}, "priority": 4}}
    requests = f"{GROUP}/namespaces/velero/nonadminbackupstoragelocationrequests"
    return {
        f"{own}/selfservicepolicies": listed(policy),
        f"{own}/schedulepolicies": listed(nights, {"metadata": {"name": "broken"}, "spec": {"priority": word}}),
        "/apis/velero.io/v1/namespaces/velero/restores": listed(),
        "/api/v1/namespaces/shop": named("shop")
        | {"metadata": {"name": "shop", "creationTimestamp": "2026-01-01T00:00:00Z", "labels": SERVED}},
        requests: listed(request),
        f"{requests}/shop-mine": request,
        f"{TENANTS}/nonadminbackupstoragelocations/mine": location,
    }


def of_checks(word: str = "shop") -> dict[str, Any]:
    """Return a RestoreCheck that failed, and one of a tenant, with their evidence."""
    last: dict[str, Any] = {
        "result": "Fail",
        "reason": word,
        "message": word,
        "backup": word,
        "evidence": "check-1-evidence",
    }
    last |= {"started": "2026-11-16T06:00:00Z", "completed": "2026-11-16T06:01:00Z", "restoreSeconds": 7}
    check = named("nightly", "velero", spec={}, status={"last": last})
    check["metadata"]["uid"] = "check-uid"
    problem = {"reason": word, "message": f"of the status: {word}"}
    own = named(
        "own", "shop", spec={"backups": {"nonAdminBackups": {}}}, status={"last": {**last, "problems": [problem]}}
    )
    own["metadata"]["uid"] = "own-uid"
    record = {"problems": [{"reason": word, "message": word}], "problemCount": 3, "restoreSeconds": 7, "result": word}
    evidence = {"metadata": {"name": "check-1-evidence"}, "data": {"record.json": json.dumps(record)}}
    spoiled = {"metadata": {"name": "check-0-evidence"}, "data": {"record.json": "{"}}
    group, maps = "/apis/foresail.dev/v1alpha1", "/api/v1/namespaces/velero/configmaps"
    return {
        f"{group}/restorechecks": listed(own, check),
        f"{group}/namespaces/velero/restorechecks": listed(check),
        f"{group}/namespaces/shop/restorechecks": listed(own),
        f"{group}/namespaces/velero/restorechecks/nightly": check,
        f"{group}/namespaces/shop/restorechecks/own": own,
        maps: listed(evidence, spoiled),
        f"{maps}/check-1-evidence": evidence,
    }


def of_rollbacks(word: str = "shop") -> dict[str, Any]:
    """Return a Rollback that can be undone, and the plan of another one."""
    own = "/apis/foresail.dev/v1alpha1"
    condition = {"type": "Succeeded", "status": "True", "reason": "Completed", "message": word}
    condition["lastTransitionTime"] = "2026-11-16T06:00:00Z"
    names = {"count": 60, "names": [f"configmaps/{word}"]}
    plan = {"digest": "0" * 64, **dict.fromkeys(("created", "existing", "extra", "suspended", "leftOut"), names)}
    step = {"name": "Restoring", "started": "2026-11-16T06:00:00Z", "finished": "2026-11-16T06:00:09Z", "message": word}
    stopped = {"kind": "a", "name": word, "uid": "u", "former": word}
    status: dict[str, Any] = {"phase": "Completed", "plan": plan, "steps": [step], "conditions": [condition]}
    status |= {"requester": word, "safetyBackup": word, "undoUntil": "2999-01-01T00:00:00Z", "stopped": [stopped]}
    status |= {"pruned": [{"kind": "a", "name": word, "uid": "u"}]}
    kind = {"apiVersion": "foresail.dev/v1alpha1", "kind": "Rollback"}
    back = {**kind, **named("back", "shop", spec={"to": "copy", "prune": True}, status=status)}
    back["metadata"]["uid"] = "uid-of-back"
    planned = {"phase": "Planned", "plan": plan, "conditions": [{**condition, "reason": "Planned"}]}
    dry = {**kind, **named("plan", "shop", spec={"to": "copy", "dryRun": True}, status=planned)}
    both = listed(back, dry)
    path = f"{own}/namespaces/shop/rollbacks"
    return {f"{own}/rollbacks": both, path: both, f"{path}/back": back, f"{path}/plan": dry}


def of_primers(word: str = "shop") -> dict[str, Any]:
    """Return a Primer with a cold and a warm start, and no annotated CronJob."""
    delays = [
        {"fire": "2025-12-31T03:00:00Z", "seconds": 41, "warm": False},
        {"fire": "2026-01-01T03:00:00Z", "seconds": 1, "warm": True},
    ]
    status = {
        "nextFire": "2026-11-18T03:00:00Z",
        "cronJobs": [{"name": "daily", "startDelays": delays}],
        "conditions": [{"type": "Ready", "status": "False", "reason": word, "message": word}],
    }
    primer = named("warm", "shop", spec={"warmUp": "10m"}, status=status)
    return {"/apis/foresail.dev/v1alpha1/primers": listed(primer), "/apis/batch/v1/cronjobs": listed()}


def browse(folder: Path, walk: Callable[[Browser], Any], answers: Mapping[str, Any] | None = None) -> Any:  # noqa: ANN401
    async def walked() -> Any:  # noqa: ANN401
        async with browsing(folder, everything() if answers is None else answers) as browser:
            return await walk(browser)

    return asyncio.run(walked())


PAGES = (
    "/", "/namespaces", "/calendar", "/doctor", "/ns/shop", "/ns/shop/backup/first", "/ns/shop/backup/copy",
    "/ns/shop/restore", "/queue", "/policies", "/checks", "/ns/velero/check/nightly", "/ns/shop/check/own", "/primers",
    "/ns/shop/protect", "/ns/shop/schedule", "/ns/shop/run/nightly", "/ns/shop/check/own/run", "/ns/shop?span=years",
    "/protection", "/ns/shop/back-up", "/ns/shop/new-schedule", "/ns/shop/change-schedule/nightly",
    "/ns/shop/unpause/nightly",
    "/ns/shop/schedule/nightly/edit", "/ns/shop/schedule/nightly/approve", "/approvals/deletion/nightly/approve",
    "/approvals/location/shop/mine/approve?request=hash-of-it", "/rollbacks", "/ns/shop/rollback/back",
    "/ns/shop/rollback/back/undo", "/ns/shop/rollback/plan", "/ns/shop/rollback/plan/run",
    "/ns/shop/new-rollback?to=copy", "/protection/new-class", "/protection/class/gold",
    "/ns/shop/cancel/backup/first",
)  # fmt: skip
POSTS = (
    "/approvals/location/shop/mine/approve", "/approvals/location/shop/mine/reject",
    "/approvals/backup/shop-old/approve", "/calendar/preview",
    "/ns/shop/backup", "/ns/shop/plan", "/ns/shop/confirm", "/ns/shop/restore", "/ns/shop/schedule/nightly/pause",
    "/ns/shop/schedule/nightly/unpause", "/ns/shop/backup/copy/log", "/ns/shop/restore/r/log",
    "/ns/shop/backup/copy/contents", "/ns/shop/protect", "/ns/shop/schedule", "/ns/shop/run/nightly",
    "/ns/shop/check/own/run", "/ns/shop/unpause/nightly",
    "/calendar/apply", "/ns/shop/back-up", "/ns/shop/new-schedule", "/ns/shop/change-schedule/nightly",
    "/ns/shop/schedule/nightly/edit", "/ns/shop/schedule/nightly/approve", "/approvals/deletion/nightly/approve",
    "/ns/shop/new-rollback", "/ns/shop/rollback/back/undo", "/ns/shop/rollback/plan/run",
    "/protection/new-class", "/protection/class/gold", "/ns/shop/cancel/backup/first", "/ns/shop/cancel/restore/r",
)  # fmt: skip


def test_every_page_answers_with_the_same_headers_and_fetches_nothing(tmp_path: Path) -> None:
    async def walk(browser: Browser) -> None:
        await browser.sign_in()
        for path in PAGES:
            answer = await browser.get(path)
            assert answer.status == 200, (path, answer.text)
            assert external_assets("page.html", answer.text) == []
            assert {name.lower(): value for name, value in guard.HEADERS.items()}.items() <= answer.headers.items()
            assert "The same in the terminal" in answer.text
        assert browser.changes == []

    browse(tmp_path, walk)


def test_the_overview_answers_what_is_protected_and_what_waits(tmp_path: Path) -> None:
    async def walk(browser: Browser) -> str:
        await browser.sign_in()
        return " ".join(Outline((await browser.get("/")).text).texts)

    shown = browse(tmp_path, walk)
    for each in ("Not safe: ", "Namespaces, the worst first", "NoSchedule", "velero/nightly", "Protect"):
        assert each in shown


@pytest.mark.parametrize("is_tenant", [False, True])
def test_the_page_of_a_namespace_begins_with_its_verdict(tmp_path: Path, is_tenant: bool) -> None:
    async def walk(browser: Browser) -> list[str]:
        await browser.sign_in()
        page = (await browser.get("/ns/shop")).text
        verdicts = re.findall(r'data-verdict="(\w+)"', page)  # as bench/truth reads it
        assert verdicts in (["AtRisk"], ["Unsafe"], ["Unknown"])
        return Outline(page).texts

    own = {**of_tenant(), REVIEWS: {"status": {"allowed": False}}}
    shown = browse(tmp_path, walk, own) if is_tenant else browse(tmp_path, walk)
    verdict = next(text for text in shown if "namespace shop" in text)
    assert verdict.partition(":")[0].strip() in ("At risk", "Not safe", "Unknown whether namespace shop is safe")


def test_the_list_of_namespaces_is_searched_and_paged_on_the_server(tmp_path: Path) -> None:
    answers = everything()
    answers["/api/v1/namespaces"]["items"] += [named(f"team-{number:04}") for number in range(250)]

    async def walk(browser: Browser) -> tuple[str, str, str]:
        await browser.sign_in()
        found = [
            await browser.get(each) for each in ("/namespaces", "/namespaces?q=TEAM-01&page=9", "/namespaces?page=x")
        ]
        return found[0].text, found[1].text, found[2].text

    first, second, third = browse(tmp_path, walk, answers)
    assert first.count("<tr>") == 101
    assert "page 1 of 3" in first
    assert "100 of 254, page 1 of 1" in second
    assert "page 1 of 3" in third


def test_a_tenant_backs_up_now_and_is_led_to_the_new_backup(tmp_path: Path) -> None:
    answers = {**everything(), f"{TENANTS}/nonadminbackups": listed()}

    async def walk(browser: Browser) -> None:
        await browser.sign_in()
        assert "Back up now" in (await browser.get("/ns/shop")).text
        answer = await browser.post("/ns/shop/backup", browser.own)
        assert answer.status == 303
        assert answer.headers["location"].startswith(f"{browser.base}/ns/shop/backup/console-")
        assert browser.changes == [f"POST {TENANTS}/nonadminbackups"]
        body = browser.server.bodies[f"POST {TENANTS}/nonadminbackups"]
        assert body["spec"] == {"backupSpec": {}}

    browse(tmp_path, walk, answers)


def test_no_backup_is_offered_while_the_storage_location_fails(tmp_path: Path) -> None:
    """People who saw the page at night asked why a button was there that could do nothing."""
    location = named("default", "velero", spec={"default": True}, status={"phase": "Unavailable", "message": "gone"})
    answers = {**everything(), "/apis/velero.io/v1/namespaces/velero/backupstoragelocations": listed(location)}

    async def walk(browser: Browser) -> None:
        await browser.sign_in()
        page = (await browser.get("/ns/shop")).text
        assert "Back up now" not in page
        assert "Back up with" not in page
        assert "See the doctor" in page

    browse(tmp_path, walk, answers)


def test_without_self_service_the_page_says_so_and_offers_no_button_that_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(self_service, "_PAUSE", 0.0)
    answers = {**everything(), "/api/v1/namespaces/shop": named("shop"), f"{TENANTS}/nonadminbackups": listed()}

    async def walk(browser: Browser) -> None:
        await browser.sign_in()
        page = Outline((await browser.get("/ns/shop")).text).texts
        assert "Back up now" not in page
        assert "Restore from a backup" not in page
        assert any("Self-service is not enabled in namespace shop" in text for text in page)
        assert "kubectl label namespace shop foresail.dev/self-service=enabled" in page
        assert "velero backup create NAME --include-namespaces shop" in page
        shown = page[page.index("Velero: Schedules and Backups of administrators") :]
        assert "nightly" in shown
        assert shown[shown.index("nightly-1") :][1:2] == ["Completed"]
        assert "foresail plan nightly-1 --include-namespaces shop --restore" in shown
        answer = await browser.post("/ns/shop/backup", browser.own)
        assert answer.status != 303
        assert "Self-service is not enabled in namespace shop" in answer.text
        assert browser.changes == []

    browse(tmp_path, walk, answers)


def test_a_tenant_pauses_the_schedule_that_they_have_seen(tmp_path: Path) -> None:
    async def walk(browser: Browser) -> None:
        await browser.sign_in()
        assert "Pause nightly" in (await browser.get("/ns/shop")).text
        answer = await browser.post("/ns/shop/schedule/nightly/pause", {**browser.own, "uid": "u1"})
        assert answer.status == 303
        body = browser.server.bodies[f"PATCH {TENANTS}/nonadminschedules/nightly"]
        assert (body["spec"], body["metadata"]["uid"]) == ({"paused": True}, "u1")

    browse(tmp_path, walk)


def test_a_schedule_without_its_uid_is_not_paused(tmp_path: Path) -> None:
    async def walk(browser: Browser) -> None:
        await browser.sign_in()
        for verb in ("pause", "unpause"):
            answer = await browser.post(f"/ns/shop/schedule/nightly/{verb}", browser.own)
            assert (answer.status, "the form has no UID" in answer.text) == (502, True)
        assert browser.changes == []

    browse(tmp_path, walk)


def test_what_the_viewer_may_not_do_is_not_offered(tmp_path: Path) -> None:
    async def walk(browser: Browser) -> None:
        await browser.sign_in()
        page = await browser.get("/ns/shop")
        assert page.status == 200, page.text
        assert 'method="post"' not in page.text
        assert "Doctor" not in page.text
        assert (await browser.get("/doctor")).status == 403

    browse(tmp_path, walk, {**of_tenant(), REVIEWS: {"status": {"allowed": False}}})


def test_a_tenant_sees_the_use_of_the_quotas_as_far_as_they_may_read_the_policy(tmp_path: Path) -> None:
    hidden = set[str]()

    def review(_: str, sent: dict[str, Any]) -> dict[str, Any]:
        asked = sent["spec"]["resourceAttributes"]
        is_own = asked["namespace"] == "shop" and asked["resource"] not in ("persistentvolumeclaims", "pods")
        is_own |= asked["resource"] == "selfservicepolicies"
        return {"status": {"allowed": is_own and asked["resource"] not in hidden}}

    async def walk(browser: Browser) -> None:
        await browser.sign_in()
        found = Outline((await browser.get("/ns/shop")).text).texts
        assert found[found.index("backups") + 1].strip() == "2 of 5"
        assert found[found.index("active backups") + 1] == "1, no limit"
        assert "Set by SelfServicePolicy web." in found
        hidden.add("selfservicepolicies")
        asked = len(browser.server.asked)
        found = Outline((await browser.get("/ns/shop")).text).texts
        assert found[found.index("backups") + 1] == "2, limit unknown"
        assert any("you may not list selfservicepolicies" in each for each in found)
        assert not any("selfservicepolicies" in each for each in browser.server.asked[asked:])
        hidden.add("nonadminrestores")
        assert "Quotas" not in Outline((await browser.get("/ns/shop")).text).texts

    browse(tmp_path, walk, {**of_tenant(), **of_policies(), REVIEWS: review})


def test_a_refusal_of_the_api_server_is_shown_with_its_reason(tmp_path: Path) -> None:
    async def walk(browser: Browser) -> None:
        await browser.sign_in()
        answer = await browser.get("/ns/shop/backup/missing")
        assert answer.status == 404
        assert "NonAdminBackup shop/missing does not exist" in answer.text
        for part in ("<nav", "style.css", "Back to the overview", "Try again"):
            assert part in answer.text, "an error page is in the layout, with the ways out"

    browse(tmp_path, walk)


def test_what_a_viewer_may_not_do_is_said_without_the_words_of_rbac(tmp_path: Path) -> None:
    async def walk(browser: Browser) -> None:
        await browser.sign_in()
        answer = await browser.get("/ns/shop/backup/secret")
        assert answer.status == 403
        shown, _, folded = answer.text.partition("<details>")
        assert "<nav" in shown
        assert "apiGroups" not in shown
        assert "apiGroups" in folded

    forbidden = {"kind": "Status", "reason": "Forbidden", "message": "not for you", "code": 403}
    path = "/apis/oadp.openshift.io/v1alpha1/namespaces/shop/nonadminbackups/secret"
    browse(tmp_path, walk, {**everything(), path: lambda *_: forbidden})


def test_an_address_that_is_no_page_is_answered_in_words(tmp_path: Path) -> None:
    async def walk(browser: Browser) -> None:
        await browser.sign_in()
        answer = await browser.get("/nonsense")
        assert answer.status == 404
        assert "the console has no such page" in answer.text

    browse(tmp_path, walk, everything())


async def by_name(browser: Browser) -> Answer:
    return await browser.get("/", Host="evil.example")


async def by_name_and_port(browser: Browser) -> Answer:
    return await browser.get("/", Host=f"evil.example:{browser.console.address.split(':')[1]}")


async def by_localhost(browser: Browser) -> Answer:
    return await browser.get("/", Host=f"localhost:{browser.console.address.split(':')[1]}")


async def two_hosts(browser: Browser) -> Answer:
    cookie = f"Cookie: {guard.COOKIE}={browser.cookie}"
    lines = (f"GET {browser.base}/ HTTP/1.1", f"Host: {browser.console.address}", "Host: evil.example", cookie)
    return await browser.raw(("\r\n".join(lines) + "\r\nConnection: close\r\n\r\n").encode())


async def without_cookie(browser: Browser) -> Answer:
    return await browser.get("/ns/shop", Cookie="-")


async def with_a_guessed_cookie(browser: Browser) -> Answer:
    return await browser.get("/ns/shop", Cookie=f"{guard.COOKIE}=guess")


async def with_the_token_again(browser: Browser) -> Answer:
    return await browser.get(f"/?token={browser.secrets.token}", Cookie="-")


async def with_the_token_as_cookie(browser: Browser) -> Answer:
    return await browser.get("/", Cookie=f"{guard.COOKIE}={browser.secrets.token}")


async def from_another_site(browser: Browser) -> Answer:
    return await browser.get("/", Sec_Fetch_Site="cross-site")


async def from_another_port(browser: Browser) -> Answer:
    return await browser.get("/", Sec_Fetch_Site="same-site")


async def read_by_another_origin(browser: Browser) -> Answer:
    return await browser.get("/", Origin="http://evil.example")


async def form_of_another_origin(browser: Browser) -> Answer:
    return await browser.post("/ns/shop/backup", browser.own, Origin="http://evil.example")


async def form_of_a_sandboxed_frame(browser: Browser) -> Answer:
    return await browser.post("/ns/shop/backup", browser.own, Origin="null")


async def form_without_origin(browser: Browser) -> Answer:
    return await browser.post("/ns/shop/backup", browser.own, Origin="-")


async def form_without_token(browser: Browser) -> Answer:
    return await browser.post("/ns/shop/backup", {})


async def form_with_a_guessed_token(browser: Browser) -> Answer:
    return await browser.post("/ns/shop/backup", {"csrf": browser.cookie})


async def form_as_plain_text(browser: Browser) -> Answer:
    return await browser.post("/ns/shop/backup", browser.own, Content_Type="text/plain")


async def form_as_json(browser: Browser) -> Answer:
    return await browser.post("/ns/shop/backup", browser.own, Content_Type="application/json")


async def change_by_get(browser: Browser) -> Answer:
    return await browser.get(f"/ns/shop/backup?csrf={browser.secrets.csrf}")


async def change_by_another_method(browser: Browser) -> Answer:
    return await browser.ask(
        "DELETE", f"{browser.base}/ns/shop/backup", {"Origin": f"http://{browser.console.address}"}
    )


async def large_form(browser: Browser) -> Answer:
    return await browser.post("/ns/shop/backup", {**browser.own, "x": "y" * 2 * guard.MOST_BODY})


async def path_above(browser: Browser) -> Answer:
    return await browser.get("/ns/..%2f..%2fvelero/backup/first")


async def path_into_the_api(browser: Browser) -> Answer:
    return await browser.get("/ns/shop/backup/first%2f..%2f..%2f..%2fsecrets")


async def name_with_a_header(browser: Browser) -> Answer:
    return await browser.post("/ns/shop%0d%0aSet-Cookie:%20a=b/backup", browser.own)


async def stream_without_cookie(browser: Browser) -> Answer:
    return await browser.get("/live", Cookie="-")


async def stream_of_another_site(browser: Browser) -> Answer:
    return await browser.get("/live/ns/shop/backup/first", Origin="http://evil.example", Sec_Fetch_Site="cross-site")


async def script_of_another_site(browser: Browser) -> Answer:
    return await browser.get("/live.js", Sec_Fetch_Site="cross-site")


async def other_mount(browser: Browser) -> Answer:
    return await browser.ask("GET", "/guess/ns/shop")


ATTACKS = (
    by_name, by_name_and_port, by_localhost, two_hosts, without_cookie, with_a_guessed_cookie, with_the_token_again,
    with_the_token_as_cookie, from_another_site, from_another_port, read_by_another_origin, form_of_another_origin,
    form_of_a_sandboxed_frame, form_without_origin, form_without_token, form_with_a_guessed_token, form_as_plain_text,
    form_as_json, change_by_get, change_by_another_method, large_form, path_above, path_into_the_api,
    name_with_a_header, stream_without_cookie, stream_of_another_site, script_of_another_site, other_mount,
)  # fmt: skip


@pytest.mark.parametrize("attack", ATTACKS, ids=lambda each: each.__name__)
def test_an_attack_reads_nothing_and_changes_nothing(tmp_path: Path, attack: Callable[[Browser], Any]) -> None:
    async def walk(browser: Browser) -> None:
        await browser.sign_in()
        asked = len(browser.server.asked)
        answer = await attack(browser)
        assert 400 <= answer.status < 500, answer
        assert "set-cookie" not in answer.headers
        assert "nightly" not in answer.text
        assert browser.server.asked[asked:] == []
        assert not any(each in answer.text for each in (browser.secrets.csrf, browser.secrets.session))

    browse(tmp_path, walk)


FORGERIES: tuple[tuple[str, dict[str, str], dict[str, str]], ...] = (
    ("of another origin", {"Origin": "http://evil.example"}, {}),
    ("of a sandboxed frame", {"Origin": "null"}, {}),
    ("without an origin", {"Origin": "-"}, {}),
    ("of another site", {"Sec_Fetch_Site": "cross-site"}, {}),
    ("as plain text", {"Content_Type": "text/plain"}, {}),
    ("without the cookie", {"Cookie": "-"}, {}),
    ("by another name", {"Host": "evil.example"}, {}),
    ("without the secret", {}, {"csrf": ""}),
    ("with a guessed secret", {}, {"csrf": "guess"}),
    ("that is too large", {}, {"x": "y" * 2 * guard.MOST_BODY}),
)


@pytest.mark.parametrize("path", POSTS)
def test_a_forged_form_reaches_nothing(tmp_path: Path, path: str) -> None:
    async def walk(browser: Browser) -> None:
        await browser.sign_in()
        asked = len(browser.server.asked)
        for what, headers, fields in FORGERIES:
            answer = await browser.post(path, {**browser.own, "backup": "copy", "policy": "none", **fields}, **headers)
            assert 400 <= answer.status < 500, (what, answer)
        assert browser.server.asked[asked:] == []

    browse(tmp_path, walk)


@pytest.mark.parametrize("path", POSTS)
def test_no_form_is_answered_as_a_link(tmp_path: Path, path: str) -> None:
    async def walk(browser: Browser) -> None:
        await browser.sign_in()
        await browser.get(f"{path}?csrf={browser.secrets.csrf}&backup=copy&policy=none")
        assert browser.changes == []

    browse(tmp_path, walk)


def test_every_form_of_the_console_is_attacked(tmp_path: Path) -> None:
    async def walk(browser: Browser) -> None:
        for each in application(browser.console).router.routes():
            if each.method == "POST" and each.resource is not None:
                info = each.resource.get_info()
                pattern = info.get("pattern") or re.compile(re.escape(info["path"]))
                assert any(pattern.fullmatch(f"{browser.base}{path}") for path in POSTS), pattern

    browse(tmp_path, walk)


@pytest.mark.parametrize(
    ("asked", "status"),
    [
        (guard.Asked("GET", ["127.0.0.1:1"]), None),
        (guard.Asked("GET", ["127.0.0.1:1", "evil.example"]), 421),
        (guard.Asked("GET", []), 421),
        (guard.Asked("GET", ["127.0.0.1:1"], site="cross-site"), 403),
        (guard.Asked("GET", ["127.0.0.1:1"], site="cross-site", is_entry=True), None),
        (guard.Asked("PUT", ["127.0.0.1:1"]), 405),
        (guard.Asked("POST", ["127.0.0.1:1"], "http://127.0.0.1:1", content_type="text/plain"), 415),
        (guard.Asked("POST", ["127.0.0.1:1"], "http://127.0.0.1:1", content_type=guard.FORM), None),
        (guard.Asked("POST", ["127.0.0.1:1"], "https://127.0.0.1:1", content_type=guard.FORM), 403),
    ],
)
def test_each_rule_of_the_guard_holds_by_itself(asked: guard.Asked, status: int | None) -> None:
    found = guard.refusal(asked, guard.Place("127.0.0.1:1", "http://127.0.0.1:1"))
    assert (found.status if found else None) == status


def test_strings_of_a_hostile_tenant_change_no_element_of_any_page(tmp_path: Path) -> None:
    async def walk(browser: Browser) -> list[list[str]]:
        await browser.sign_in()
        found = [await browser.get(path) for path in PAGES if path != "/doctor"]
        assert [each.status for each in found] == [200] * len(found)
        own = f'<script src="{browser.base}/live.js" defer></script>'
        assert not any("<script" in each.text.replace(own, "") or "<img" in each.text for each in found)
        return [Outline(each.text).tags for each in found]

    plain = browse(tmp_path, walk, everything("word"))
    assert browse(tmp_path, walk, everything(XSS)) == plain


def test_a_message_without_end_is_cut(tmp_path: Path) -> None:
    async def walk(browser: Browser) -> None:
        await browser.sign_in()
        answer = await browser.get("/ns/shop/backup/first")
        assert answer.status == 200
        assert len(answer.text) < 100_000

    browse(tmp_path, walk, everything("x" * 300_000))


def test_the_cookie_is_the_browsers_alone_and_the_token_works_once(tmp_path: Path) -> None:
    async def walk(browser: Browser) -> None:
        answer = await browser.sign_in()
        cookie = answer.headers["set-cookie"]
        assert all(each in cookie for each in ("HttpOnly", "SameSite=Strict", f"Path={browser.base}/"))
        assert browser.secrets.token not in answer.text
        assert browser.cookie not in answer.text
        assert len({browser.secrets.token, browser.secrets.session, browser.secrets.csrf, browser.secrets.mount}) == 4
        assert browser.secrets.session not in repr(browser.secrets)

    browse(tmp_path, walk)


def test_only_the_loopback_address_is_listened_on(tmp_path: Path) -> None:
    async def walk(browser: Browser) -> None:
        assert browser.console.address.startswith("127.0.0.1:")

    browse(tmp_path, walk)
