"""Two viewers walk through the console on a real cluster with Velero, in Chromium: `make test-console`.

Prints a line for each question and attack and, last, one JSON object. Exit code 1 if something went wrong; a question
that no page answers yet is counted, and is no error.
"""

import asyncio
import json
import re
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import datetime
from http import HTTPStatus
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast
from urllib.parse import parse_qs, urlsplit

from foresail.cli.console import guard
from foresail.kube.clock import now
from testbed import Cluster
from testbed.audit import Request
from tests.browser.chromium import AXE, PROGRAM, Page, chromium
from tests.cluster.test_tenant_locations import Owner
from tests.console.questions import ADMINISTRATOR, CONFIRM, PLAN, QUESTIONS, TENANT, WALKED, Question
from tests.console.scene import ADMINISTRATOR as ADMINISTRATORS_NAME
from tests.console.scene import SHOP, scene, served
from tests.unit.cli.test_console import ATTACKS, FORGERIES, POSTS, XSS, Browser

if TYPE_CHECKING:
    from foresail.cli.console.server import Console
    from tests.unit.cli.canned import Canned

_LINK = "[...document.querySelectorAll('a, button')].find(each => RegExp('^' + {}).test(each.textContent))"
_BUTTON = "[...document.querySelectorAll('button')].find(each => each.textContent === {})"
_LOST = "configmaps/shop/settings"
_PATIENCE = 240.0


@dataclass
class Score:
    """What came of the walk."""

    answered: list[str] = field(default_factory=list)
    unanswered: list[str] = field(default_factory=list)
    attacks: int = 0
    succeeded: list[str] = field(default_factory=list)
    violations: list[str] = field(default_factory=list)
    refused: list[str] = field(default_factory=list)
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
                "refused_requests": len(self.refused),
                "attacks": self.attacks,
                "succeeded": len(self.succeeded),
                "violations": len(self.violations) if AXE.exists() else None,
                "problems": self.problems,
                "seconds": round(seconds),
            }
        )

    @property
    def is_good(self) -> bool:
        """Whether nothing went wrong; a question without a pattern is not answered yet."""
        known = sum(not each.answer for each in QUESTIONS)
        wrong = self.succeeded or self.violations or self.refused or self.problems
        return not wrong and len(self.answered) == len(QUESTIONS) - known


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
        await self.page.settled("document.title === 'Overview · Foresail'")

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

    async def ask(self) -> None:
        """Look for the answer to each question, each time from the start page."""
        for question in (each for each in QUESTIONS if each.who == self.who and each.answer != WALKED):
            if not question.answer:
                self.score.count(question, is_answered=False)
                continue
            await self.page.open(self.start)
            try:
                for link in question.clicks:
                    await self.click(_LINK, link)
            except LookupError as error:
                print(error, file=sys.stderr)
            found = re.search(question.answer, await self.text())
            self.score.count(question, is_answered=found is not None)
            if found is None:
                print(await self.text(), file=sys.stderr)
            await self.inspect(question.page)


@asynccontextmanager
async def viewing(who: str, kubeconfig: Path, score: Score) -> AsyncIterator[Viewer]:
    """Run `foresail console` with somebody's kubeconfig, and open a browser."""
    words = ("-m", "foresail", "console", "--no-browser", f"--kubeconfig={kubeconfig}", f"--namespace={SHOP}")
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


async def tenants_walk(viewer: Viewer, tenant: Owner) -> None:
    """Back up and watch, break something, plan and restore it, pause, and ask every question."""
    await viewer.click(_LINK, f"Namespace {SHOP}")
    await viewer.click(_BUTTON, "Back up now")
    await viewer.shows("Completed")
    tenant.kubectl("delete", "configmap", "settings")
    await viewer.page.open(viewer.start)
    await viewer.click(_LINK, f"Namespace {SHOP}")
    await viewer.click(_LINK, "Restore from a copy")
    await viewer.inspect("Restore wizard")
    await viewer.click(_BUTTON, "Show the plan")
    shown = await viewer.text()
    planned(viewer.score, shown)
    await viewer.inspect("Restore plan")
    await viewer.click(_BUTTON, "Restore")
    await viewer.inspect("Restore")
    await viewer.shows("Completed")
    restored = "settings" in tenant.kubectl("get", "configmaps", "--output=name")
    viewer.score.count(CONFIRM, is_answered=restored)
    await viewer.ask()
    await viewer.page.open(viewer.start)
    await viewer.click(_LINK, f"Namespace {SHOP}")
    await viewer.click(_BUTTON, "Pause nightly")
    if "true" not in tenant.kubectl("get", "nonadminschedule", "nightly", "--output=jsonpath={.spec.paused}"):
        viewer.score.problems.append("the schedule is not paused")


def planned(score: Score, shown: str) -> None:
    """Count whether the plan names the object that is missing."""
    found = re.search(rf"{_LOST}\s+create", shown) is not None
    score.count(PLAN, is_answered=found)
    if not found:
        print(shown, file=sys.stderr)


async def administrators_walk(viewer: Viewer, cluster: Cluster) -> None:
    """Ask every question, find a gap, and approve a request."""
    await viewer.ask()
    await viewer.page.open(viewer.start)
    if "bare" not in await viewer.text():
        viewer.score.problems.append("the overview does not name the namespace without a backup")
    await viewer.click(_LINK, "Policies")
    await viewer.click(_BUTTON, f"Approve {SHOP}/mine")
    (found,) = cluster.get("nonadminbackupstoragelocationrequests.oadp.openshift.io", "--namespace=velero")["items"]
    if found["spec"].get("approvalDecision") != "approve":
        viewer.score.problems.append("the request is not approved")


async def attack(viewer: Viewer) -> None:
    """Try every attack of the unit tests on this console, and look for markup of the tenant in its pages."""
    address = urlsplit(viewer.url)
    await viewer.page.open(f"{viewer.start}ns/{SHOP}")
    csrf = str(await viewer.page.run("document.querySelector('input[name=csrf]').value"))
    cookies = (await viewer.page.call("Network.getCookies", urls=[viewer.start]))["cookies"]
    session = next(each["value"] for each in cookies if each["name"] == guard.COOKIE)
    (token,) = parse_qs(address.query)["token"]
    known = guard.Secrets(token, session, csrf, address.path.strip("/"))
    console = cast("Console", SimpleNamespace(address=address.netloc))
    browser = Browser(console, known, cast("Canned", None), cookie=session)
    for each in ATTACKS:
        found = await each(browser)
        viewer.score.attack(f"{viewer.who}: {each.__name__}", is_success=not is_refused(found, known))
    for path in POSTS:
        for what, headers, fields in FORGERIES:
            sent = {**browser.own, "backup": "copy", "policy": "none", **fields}
            found = await browser.post(path, sent, **headers)
            viewer.score.attack(f"{viewer.who}: {path} {what}", is_success=not is_refused(found, known))
    for path in ("", f"ns/{SHOP}", f"ns/{SHOP}/backup/hostile", "namespaces", "calendar"):
        await viewer.page.open(f"{viewer.start}{path}")
        foreign = "document.querySelectorAll('script:not([src$=\"/live.js\"]), img, iframe').length"
        viewer.score.attack(f"{viewer.who}: markup in /{path}", is_success=bool(await viewer.page.run(foreign)))


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


def refused(found: Sequence[Request], since: datetime) -> list[str]:
    """Return the requests that RBAC refused since then; an access review is never one of them."""
    return [
        f"{each.user}: {each.verb} {each.resource or each.uri} in {each.namespace or 'the cluster'}"
        for each in found
        if each.code == HTTPStatus.FORBIDDEN and each.at >= since
    ]


async def walk(cluster: Cluster, folder: Path, score: Score) -> None:
    """Walk as the tenant while the operator runs, then as the administrator while it does not."""
    with served(cluster, folder) as tenant:
        plant(tenant)
        began = now()
        async with viewing(TENANT, tenant.kubeconfig, score) as viewer:
            await tenants_walk(viewer, tenant)
            await attack(viewer)
        score.refused += refused(cluster.audit(f"tenant-of-{SHOP}"), began)
    tenant.back_up("waits-here")
    async with viewing(ADMINISTRATOR, cluster.user_kubeconfig(ADMINISTRATORS_NAME), score) as viewer:
        await administrators_walk(viewer, cluster)
        await attack(viewer)
    score.refused += refused(cluster.audit(ADMINISTRATORS_NAME), began)
    for each in score.refused:
        print(f"REFUSED   {each}", flush=True)


def main() -> int:
    """Run the walk."""
    began, score = time.monotonic(), Score()
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
