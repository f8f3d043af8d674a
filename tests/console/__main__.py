"""Two viewers walk through the console on a real cluster with Velero, in Chromium: `make test-console`.

Prints a line for each question and, last, one JSON object. Exit code 1 unless every question is answered, no attack
succeeds, RBAC refuses nothing, and every request of a console is its viewer's. The texts of the pages are in
build/console.
"""

import asyncio
import json
import re
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from http import HTTPStatus
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast
from urllib.parse import parse_qs, urlsplit

from foresail.console import guard
from testbed import Cluster
from tests.browser.chromium import AXE, PROGRAM, Page, chromium
from tests.cluster.tenants import VELERO, of_namespace, operator
from tests.cluster.test_tenant_locations import Owner
from tests.console.attacks import KINDS, as_deputy, on_headers, on_paths, on_size
from tests.console.questions import (
    ADMINISTRATOR,
    ADOPT,
    APPROVE,
    BACK_UP,
    CLASS,
    CONFIRM,
    EVIDENCE,
    FLEET,
    PAUSE,
    PLAN,
    POSITION,
    PREVIEW,
    PROGRESS,
    QUESTIONS,
    TENANT,
    WALKED,
    Question,
)
from tests.console.relay import relayed
from tests.console.scene import ADMINISTRATOR as ADMINISTRATORS_NAME
from tests.console.scene import SHOP, eventually, scene, served, velero_busy, without_operator
from tests.unit.console.test_console import ATTACKS, FORGERIES, POSTS, XSS, Browser

if TYPE_CHECKING:
    from foresail.console.server import Console
    from tests.unit.cli.canned import Canned

_LINK = "[...document.querySelectorAll('a, button')].find(each => RegExp('^' + {}).test(each.textContent))"
_BUTTON = "[...document.querySelectorAll('button')].find(each => each.textContent === {})"
_LOST = "configmaps/shop/settings"
_PATIENCE = 240.0
_TEXTS = Path("build/console")
_ADDRESSES = {TENANT: "127.0.0.77", ADMINISTRATOR: "127.0.0.78", FLEET: "127.0.0.79"}
_NAMES = {TENANT: f"tenant-of-{SHOP}", ADMINISTRATOR: ADMINISTRATORS_NAME, FLEET: ADMINISTRATORS_NAME}


@dataclass
class Score:
    """What came of the walk."""

    answered: list[str] = field(default_factory=list)
    unanswered: list[str] = field(default_factory=list)
    attacks: int = 0
    succeeded: list[str] = field(default_factory=list)
    violations: list[str] = field(default_factory=list)
    requests: int = 0  # of both consoles
    refused: list[str] = field(default_factory=list)
    foreign: list[str] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)

    def count(self, question: Question, *, is_answered: bool) -> None:
        """Count a question."""
        name = f"{question.who}: {question.page}: {question.text}"
        (self.answered if is_answered else self.unanswered).append(name)
        print(f"{'answered' if is_answered else 'OPEN    '}  {name}", flush=True)

    def attack(self, name: str, *, is_success: bool) -> None:
        """Count an attack."""
        self.attacks += 1
        if is_success:
            self.succeeded.append(name)
            print(f"SUCCEEDED {name}", flush=True)

    def summary(self, seconds: float) -> str:
        """Return the last line."""
        return json.dumps(
            {
                "questions": len(QUESTIONS),
                "answered": len(self.answered),
                "requests": self.requests,
                "refused_requests": len(self.refused),
                "other_identities": len(self.foreign),
                "attacks": self.attacks,
                "succeeded": len(self.succeeded),
                "violations": len(self.violations) if AXE.exists() else None,
                "problems": self.problems,
                "seconds": round(seconds),
            }
        )

    @property
    def is_good(self) -> bool:
        """Whether nothing went wrong."""
        wrong = self.succeeded or self.violations or self.refused or self.foreign or self.problems
        return not wrong and self.requests > 0 and len(self.answered) == len(QUESTIONS)


@dataclass
class Viewer:
    """Somebody in front of a browser, with a console of their own."""

    who: str
    url: str  # the first one
    page: Page
    score: Score
    looked_at: set[str] = field(default_factory=set)

    @property
    def start(self) -> str:
        """The start page."""
        return self.url.partition("?")[0]

    async def sign_in(self) -> None:
        """Open the first URL."""
        await self.page.call("Page.navigate", url=self.url)
        title = "Fleet" if self.who == FLEET else "Overview"
        await self.page.settled(f"document.title.startsWith('{title} · ')")

    async def click(self, found: str, text: str) -> None:
        """Click a link or a button, and wait for the page that follows."""
        await self.page.run("window.isOld = true")
        element = found.format(json.dumps(text))
        if not await self.page.run(f"Boolean({element})"):
            raise LookupError(f"{await self.page.run('document.title')} has no {text}: {await self.text()}")
        await self.page.run(f"{element}.click()")
        await self.page.settled("!window.isOld && document.readyState === 'complete'")

    async def text(self) -> str:
        """Return what the page shows, with the texts of its buttons."""
        found = await self.page.run("document.body.innerText")
        return str(found)

    async def shows(self, text: str) -> None:
        """Wait until the page shows a text; it renews itself."""
        until = time.monotonic() + _PATIENCE
        while text not in await self.text():
            assert time.monotonic() < until, f"{text} is not in {await self.text()}"
            await asyncio.sleep(1)

    async def inspect(self, name: str) -> None:
        """Let axe-core look at a page in both themes, once."""
        if name in self.looked_at or not AXE.exists():
            return
        self.looked_at.add(name)
        for theme in ("light", "dark"):
            await self.page.appear(theme)
            found = [f"{self.who}: {name}: {theme}: {each}" for each in await self.page.violations()]
            self.score.violations += found
            for each in found:
                print(f"VIOLATION {each}", flush=True)

    async def ask(self, facts: Mapping[str, str]) -> None:
        """Look for the answer to each question that the walk does not meet on its way."""
        for question in QUESTIONS:
            if question.who == self.who and question.answer != WALKED and question is not POSITION:
                await self.look_for(question, facts)

    async def look_for(self, question: Question, facts: Mapping[str, str]) -> None:
        """Look for the answer to a question, from the start page."""
        await self.page.open(self.start)
        try:
            for link in question.clicks:
                await self.click(_LINK, link)
        except LookupError as error:
            print(error, file=sys.stderr)
        await self.note(question.page)
        self.score.count(question, is_answered=question.is_answered(await self.text(), facts))
        await self.inspect(question.page)

    async def note(self, name: str) -> None:
        """Write down what the page shows."""
        (_TEXTS / f"{self.who}-{name}.txt".replace(" ", "-").lower()).write_text(await self.text())


@asynccontextmanager
async def viewing(who: str, cluster: Cluster, kubeconfig: Path, score: Score) -> AsyncIterator[Viewer]:
    """Run `foresail console` with somebody's kubeconfig, and open a browser; then read the console's requests."""
    with relayed(kubeconfig, _ADDRESSES[who], kubeconfig.with_suffix(f".{who}")) as own:
        async with _viewing(who, own, score) as viewer:
            yield viewer
    found = cluster.audit_from(_ADDRESSES[who])
    score.requests += len(found)
    for each in found:
        line = f"{each.user}: {each.verb} {each.resource or each.uri} in {each.namespace or 'the cluster'}"
        if each.code == HTTPStatus.FORBIDDEN:
            score.refused.append(line)
            print(f"REFUSED   {line}", flush=True)
        if each.user != _NAMES[who] or each.impersonated:
            score.foreign.append(line)
            print(f"NOT THE VIEWER'S  {line} {each.impersonated}", flush=True)


@asynccontextmanager
async def _viewing(who: str, kubeconfig: Path, score: Score) -> AsyncIterator[Viewer]:
    about = "--fleet" if who == FLEET else f"--namespace={SHOP}"
    words = ("-m", "foresail", "console", "--no-browser", f"--kubeconfig={kubeconfig}", about)
    process = await asyncio.create_subprocess_exec(sys.executable, *words, stderr=asyncio.subprocess.PIPE)
    try:
        assert process.stderr is not None
        url = (await asyncio.wait_for(process.stderr.readline(), 60)).decode().strip()
        async with chromium() as page:
            viewer = Viewer(who, url, page, score)
            await viewer.sign_in()
            yield viewer
            score.problems += [f"{who}: {each}" for each in page.problems]
            hosts = {urlsplit(each).netloc for each in page.requested if each.startswith("http")}
            score.problems += [f"{who}: requested {each}" for each in hosts - {urlsplit(url).netloc}]
    finally:
        process.terminate()
        await process.wait()


async def tenants_walk(viewer: Viewer, cluster: Cluster, tenant: Owner) -> None:
    """Back up and watch, break something, plan and restore it, ask every question, queue, and pause."""
    score = viewer.score
    await viewer.click(_LINK, f"Namespace {SHOP}")
    await viewer.click(_BUTTON, "Back up now")
    await viewer.page.run("window.stays = true")
    await viewer.shows("Completed")
    stays = await viewer.page.run("window.stays") is True  # the page renewed itself, and was not loaded again
    score.count(PROGRESS, is_answered=stays and bool(re.search(r"items\s+([1-9]\d*) of \1\s", await viewer.text())))
    made = max((each for each in tenant.names("nonadminbackup") if "/console-" in each), default="")
    score.count(BACK_UP, is_answered=made.rpartition("/")[2] in await viewer.page.run("document.title") and bool(made))
    tenant.kubectl("delete", "configmap", "settings")
    await viewer.page.open(viewer.start)
    await viewer.click(_LINK, f"Namespace {SHOP}")
    await viewer.click(_LINK, "Restore from a backup")
    await viewer.inspect("Restore wizard")
    await viewer.click(_BUTTON, "Show the plan")
    await viewer.note("Restore plan")
    planned(score, await viewer.text())
    await viewer.inspect("Restore plan")
    await viewer.click(_BUTTON, "Restore everything…")
    await viewer.note("Confirm")
    await viewer.inspect("Confirm")
    await viewer.page.run(f"document.querySelector('#typed').value = '{SHOP}'")
    await viewer.click(_LINK, "Restore in ")
    await viewer.inspect("Restore")
    await viewer.shows("Completed")
    restored = "settings" in tenant.kubectl("get", "configmaps", "--output=name")
    score.count(CONFIRM, is_answered=restored)
    await viewer.ask(facts_of(cluster, tenant))
    with velero_busy(cluster, tenant):
        await viewer.look_for(POSITION, {})
    await viewer.page.open(viewer.start)
    await viewer.click(_LINK, f"Namespace {SHOP}")
    await viewer.click(_BUTTON, "Pause nightly")
    paused = tenant.kubectl("get", "nonadminschedule", "nightly", "--output=jsonpath={.spec.paused}")
    score.count(PAUSE, is_answered=paused == "true")


def facts_of(cluster: Cluster, tenant: Owner) -> dict[str, str]:
    """Return what the cluster has, as kubectl shows it."""
    newest = max(each.rpartition("/")[2] for each in tenant.names("nonadminbackup") if "/console-" in each)
    return {
        "newest": newest,
        "newest_velero": tenant.status(f"nonadminbackup/{newest}")["veleroBackup"]["name"],
        "broken": tenant.status("nonadminbackup/broken")["veleroBackup"]["name"],
        "stored": str(len(of_namespace(cluster, "backups", SHOP))),
    }


def planned(score: Score, shown: str) -> None:
    """Count whether the plan names the object that is missing."""
    found = re.search(rf"Brought back \(\d+\) create\s[\s\S]*{_LOST}\s", shown) is not None
    score.count(PLAN, is_answered=found)
    if not found:
        print(shown, file=sys.stderr)


async def administrators_walk(viewer: Viewer, cluster: Cluster, tenant: Owner) -> None:
    """Ask every question, preview a policy, read evidence, and approve a location and an adoption."""
    score = viewer.score
    facts = facts_of(cluster, tenant)
    await viewer.ask(facts)
    await viewer.page.open(viewer.start)
    for link in PREVIEW.clicks:
        await viewer.click(_LINK, link)
    await viewer.note("Policy preview")
    before, _, after = (await viewer.text()).partition("With it")
    spread = "In the same minute" in before and "In the same minute" not in after
    score.count(PREVIEW, is_answered=spread and "would apply to 3 of 3 Schedules" in before)
    await viewer.inspect("Policy preview")
    await viewer.page.open(viewer.start)
    for link in EVIDENCE.clicks:
        await viewer.click(_LINK, link)
    link = _LINK.format('"Download the evidence"')
    record = await viewer.page.run(f"fetch({link}.href).then(found => found.json())")
    score.count(EVIDENCE, is_answered=(record["result"], record["restoreSeconds"]) == ("Pass", 7))
    await viewer.page.open(viewer.start)
    await viewer.click(_LINK, "Policies")
    await viewer.click(_LINK, f"Approve {SHOP}/mine")
    await viewer.inspect("Approve")
    await viewer.click(_BUTTON, f"Approve {SHOP}/mine")
    (found,) = cluster.get("nonadminbackupstoragelocationrequests.oadp.openshift.io", "--namespace=velero")["items"]
    score.count(APPROVE, is_answered=found["spec"].get("approvalDecision") == "approve")
    await creates_a_class(viewer, cluster)
    await viewer.page.open(f"{viewer.start}policies")
    await viewer.click(_LINK, f"Approve {_velero_name(cluster, 'kept')}")
    await viewer.click(_BUTTON, f"Approve {_velero_name(cluster, 'kept')}")


async def creates_a_class(viewer: Viewer, cluster: Cluster) -> None:
    """Preview a ProtectionClass for every namespace, create it, and delete it with kubectl."""
    await viewer.page.open(viewer.start)
    for link in CLASS.clicks:
        await viewer.click(_LINK, link)
    await viewer.page.run("document.querySelector('#choice-default').value = 'yes'")
    await viewer.click(_BUTTON, "Preview")
    await viewer.note("New class")
    shown = await viewer.text()
    await viewer.click(_BUTTON, "Create the class")
    made = dict(_classes(cluster)).get("nightly", {})
    is_foreseen = re.search(r"ProtectionClass nightly: 3 namespaces[\s\S]*backups\s+1 at each run", shown) is not None
    viewer.score.count(CLASS, is_answered=is_foreseen and made.get("default") is True)
    if not is_foreseen:
        print(shown, file=sys.stderr)
    cluster.kubectl("delete", "protectionclasses.foresail.dev", "nightly", "--ignore-not-found")


def _velero_name(cluster: Cluster, name: str) -> str:
    key = "openshift.io/oadp-nab-origin-name"
    found = of_namespace(cluster, "backups", SHOP)
    return next(str(each["metadata"]["name"]) for each in found if each["metadata"]["annotations"][key] == name)


async def adopted(viewer: Viewer, tenant: Owner) -> bool:
    """Return whether the backup has its request again, and the console shows it as a copy."""
    eventually(lambda: "nonadminbackup.oadp.openshift.io/kept" in tenant.names("nonadminbackup"), _PATIENCE)
    await viewer.page.open(f"{viewer.start}ns/{SHOP}/backup/kept")
    await viewer.shows("Completed")
    return "Restore this backup" in await viewer.text()


async def browser_of(viewer: Viewer) -> tuple[Browser, guard.Secrets]:
    """Return what sends bytes to the console of a viewer, with the secrets of that browser."""
    address = urlsplit(viewer.url)
    if viewer.who != FLEET:
        await viewer.page.open(f"{viewer.start}ns/{SHOP}")
    csrf = str(await viewer.page.run("document.querySelector('input[name=csrf]')?.value ?? 'a-fleet-has-no-forms'"))
    cookies = (await viewer.page.call("Network.getCookies", urls=[viewer.start]))["cookies"]
    session = next(each["value"] for each in cookies if each["name"] == guard.COOKIE)
    (token,) = parse_qs(address.query)["token"]
    known = guard.Secrets(token, session, csrf, address.path.strip("/"))
    console = cast("Console", SimpleNamespace(address=address.netloc))
    return Browser(console, known, cast("Canned", None), cookie=session), known


async def attack(viewer: Viewer) -> None:
    """Try every attack of the unit tests on this console, and look for markup of the tenant in its pages."""
    await viewer.page.open(viewer.start if viewer.who == FLEET else f"{viewer.start}ns/{SHOP}")
    browser, known = await browser_of(viewer)
    for each in ATTACKS:
        found = await each(browser)
        viewer.score.attack(f"{viewer.who}: {each.__name__}", is_success=not is_refused(found, known))
    for kind in KINDS if viewer.who != FLEET else (on_paths, on_headers, on_size):
        async for name, is_success in kind(browser):
            viewer.score.attack(f"{viewer.who}: {name}", is_success=is_success)
    for path in () if viewer.who == FLEET else POSTS:
        for what, headers, fields in FORGERIES:
            sent = {**browser.own, "backup": "copy", "policy": "none", **fields}
            found = await browser.post(path, sent, **headers)
            viewer.score.attack(f"{viewer.who}: {path} {what}", is_success=not is_refused(found, known))
    hostile = f"ns/{SHOP}/backup/hostile", f"ns/{SHOP}/restore/hostile", f"ns/{SHOP}/schedule/hostile/edit"
    pages = ("", f"ns/{SHOP}", *hostile, "namespaces", "calendar", f"ns/{SHOP}/schedule", f"ns/{SHOP}/back-up")
    for path in ("",) if viewer.who == FLEET else pages:
        await viewer.page.open(f"{viewer.start}{path}")
        foreign = "document.querySelectorAll('script:not([src$=\"/live.js\"]), img, iframe').length"
        viewer.score.attack(f"{viewer.who}: markup in /{path}", is_success=bool(await viewer.page.run(foreign)))


async def deputies(cluster: Cluster, tenant: Owner, score: Score) -> None:
    """Try every form in namespaces where the tenant may do nothing; these refusals are RBAC's own, and not counted."""
    others = ("bare", VELERO, "kube-system")
    before = {other: _objects(cluster, other) for other in others}
    classes = _classes(cluster)
    async with _viewing(TENANT, tenant.kubeconfig, score) as viewer:
        browser, _ = await browser_of(viewer)
        async for name, is_success in as_deputy(browser, others):
            score.attack(f"{TENANT}: {name}", is_success=is_success)
    for other in others:
        score.attack(f"{TENANT}: changed {other}", is_success=_objects(cluster, other) != before[other])
    score.attack(f"{TENANT}: changed the classes", is_success=_classes(cluster) != classes)


def _classes(cluster: Cluster) -> list[Any]:
    return [(each["metadata"]["name"], each["spec"]) for each in cluster.get("protectionclasses.foresail.dev")["items"]]


def _objects(cluster: Cluster, namespace: str) -> list[str]:
    """Return the names and the specs of what a deputy could write."""
    kinds = "nonadminbackups,nonadminrestores,nonadminschedules,schedules.velero.io,backups.velero.io,restorechecks"
    found = cluster.get(kinds, f"--namespace={namespace}")["items"]
    label = cluster.get("namespace", namespace)["metadata"].get("labels", {})
    return [json.dumps([each["kind"], each["metadata"]["name"], each["spec"]], sort_keys=True) for each in found] + [
        json.dumps(label, sort_keys=True)
    ]


def is_refused(answer: Any, known: guard.Secrets) -> bool:  # noqa: ANN401 - an answer of the tests
    """Whether an answer refuses, and tells no secret."""
    is_told = any(each in answer.text for each in (known.csrf, known.session))
    return 400 <= answer.status < 500 and not is_told


def plant(tenant: Owner) -> None:
    """Write markup wherever a tenant can, in a backup that the operator refuses with the words of its spec."""
    body = {
        "apiVersion": "oadp.openshift.io/v1alpha1",
        "kind": "NonAdminBackup",
        "metadata": {"name": "hostile", "annotations": {"note": XSS}},
        "spec": {"backupSpec": {"includedResources": [XSS], "storageLocation": XSS}},
    }
    tenant.kubectl("create", "--filename=-", body=body)
    restore = {"restoreSpec": {"backupName": "hostile", "includedResources": [XSS]}}
    schedule = {"schedule": "0 5 * * *", "paused": True, "template": {"backupSpec": {"storageLocation": XSS}}}
    for kind, spec in (("NonAdminRestore", restore), ("NonAdminSchedule", schedule)):
        tenant.kubectl("create", "--filename=-", body={**body, "kind": kind, "spec": spec})


def fleet_of(kubeconfig: Path) -> Path:
    """Return a kubeconfig with three contexts: two of this cluster, and one of a cluster that does not answer."""
    content = json.loads(kubeconfig.read_text())
    (own,) = content["contexts"]
    content["clusters"].append({"name": "silent", "cluster": {"server": "https://127.0.0.1:9"}})
    content["contexts"].append({**own, "name": "second"})
    content["contexts"].append({"name": "silent-cluster", "context": {**own["context"], "cluster": "silent"}})
    file = kubeconfig.with_name("fleet.kubeconfig")
    file.touch(mode=0o600)
    file.write_text(json.dumps(content))
    return file


async def walk(cluster: Cluster, folder: Path, score: Score) -> None:
    """Walk as the tenant while the operator runs, then as the administrator while it does not, until it adopts."""
    with served(cluster, folder) as tenant:
        plant(tenant)
        async with viewing(TENANT, cluster, tenant.kubeconfig, score) as viewer:
            await tenants_walk(viewer, cluster, tenant)
            await attack(viewer)
    without_operator(cluster, tenant)
    await deputies(cluster, tenant, score)
    async with viewing(FLEET, cluster, fleet_of(cluster.user_kubeconfig(ADMINISTRATORS_NAME)), score) as viewer:
        await viewer.ask({})
        await attack(viewer)
    async with viewing(ADMINISTRATOR, cluster, cluster.user_kubeconfig(ADMINISTRATORS_NAME), score) as viewer:
        await administrators_walk(viewer, cluster, tenant)
        await attack(viewer)
        with operator(cluster, folder / "operator.log", 0, "--tenant-locations"):
            score.count(ADOPT, is_answered=await adopted(viewer, tenant))


def main() -> int:
    """Run the walk."""
    began, score = time.monotonic(), Score()
    _TEXTS.mkdir(parents=True, exist_ok=True)
    if PROGRAM is None:
        print("Chromium is not installed (apt-get install chromium)", file=sys.stderr)
        return 1
    if not AXE.exists():
        print(f"NOT TESTED: axe-core is not at {AXE}", flush=True)
    with tempfile.TemporaryDirectory() as folder, scene() as cluster:
        try:
            asyncio.run(walk(cluster, Path(folder), score))
        except Exception as error:  # noqa: BLE001 - the last line is printed whatever happens
            score.problems.append(f"{type(error).__name__}: {str(error)[:300]}")
    print(score.summary(time.monotonic() - began))
    return 0 if score.is_good else 1


if __name__ == "__main__":
    sys.exit(main())
