"""Takes the pictures of the report and of the console for the docs with Chromium, which must be installed.

python -m docs.screenshots

Every page of the console is taken in both themes and at three widths into build/screenshots; docs/console has a few.
"""

import asyncio
import gzip
import tempfile
from datetime import datetime, timedelta
from pathlib import Path

from foresail.console.fleet_server import FleetConsole
from foresail.console.report.fleet import ClusterRow, Fleet, fleet_of, silent
from foresail.console.report.page import report_page
from foresail.console.server import new_secrets
from foresail.kube.clock import now
from tests.browser.chromium import Page, chromium
from tests.browser.fleet import fleet
from tests.browser.made_up_cluster import CONTENTS, made_up_cluster
from tests.unit.console.test_console import Browser, browsing
from tests.unit.console.test_console_restore import archive, bucket

DOCS = Path(__file__).parent
CONSOLE = DOCS / "console"
ALL = Path("build/screenshots")
_WIDTH, _HEIGHT = 1180, 720
_SIZES = ((375, 812), (1280, 900), (3840, 2160))
_THEMES = ("light", "dark")
_PAGES = {
    "overview": "/",
    "namespaces": "/namespaces",
    "namespace": "/ns/shop",
    "namespace-month": "/ns/shop?span=month",
    "namespace-unsafe": "/ns/photos",
    "protect": "/ns/travel/protect",
    "schedule": "/ns/shop/schedule",
    "schedule-change": "/ns/shop/change-schedule/shop-nightly?schedule=30+*/6+*+*+*&volumes=moved",
    "schedule-own-change": "/ns/shop/schedule/nightly/edit?schedule=61+4+*+*+*",
    "schedule-new": "/ns/travel/new-schedule",
    "back-up": "/ns/shop/back-up?name=before-upgrade-2&kinds=configmaps,+secrets&keep=720h",
    "run": "/ns/shop/run/shop-nightly",
    "check-run": "/ns/velero/check/mail-proof/run",
    "rollbacks": "/rollbacks",
    "rollback": "/ns/shop/rollback/before-noon",
    "rollback-plan": "/ns/shop/rollback/plan-1",
    "rollback-run": "/ns/shop/rollback/plan-1/run",
    "rollback-undo": "/ns/shop/rollback/monday/undo",
    "protection": "/protection",
    "class-new": "/protection/new-class?name=bronze&default=yes&policy=nights",
    "class-change": "/protection/class/gold?schedule=0+*/2+*+*+*&together=3",
    "missing": "/ns/shop/backup/missing",
    "backup": "/ns/shop/backup/before-upgrade",
    "backup-waits": "/ns/bank/backup/release-12",
    "cancel": "/ns/bank/cancel/backup/release-12",
    "restore": "/ns/shop/restore",
    "calendar": "/calendar",
    "queue": "/queue",
    "policies": "/policies",
    "checks": "/checks",
    "check": "/ns/velero/check/mail-proof",
    "primers": "/primers",
    "doctor": "/doctor",
}
_FORMS = {
    "restore-plan": ("/ns/shop/restore?backup=nightly-0", "/plan"),
    "restore-confirm": ("", "/confirm"),  # from the page before
    "policy-preview": ("/calendar", "/calendar/preview"),
    "log": ("/ns/shop/backup/nightly-0", "/log"),
    "contents": ("/ns/shop/backup/nightly-0", "/contents"),
}
_FULL = (("namespace", "light"), ("restore-plan", "light"), ("fleet", "dark"))
_LOG = b"".join(
    b'time="2026-11-17T04:00:%02dZ" level=info msg="Backed up %d items out of 41"\n' % (n, n) for n in range(42)
)
_HELD = (
    b'{"v1/ConfigMap": ["shop/banner", "shop/prices"], "apps/v1/Deployment": ["shop/web"], "v1/Service": ["shop/web"]}'
)


async def picture_of(page_text: str, width: int, height: int) -> bytes:
    """Return a page as a PNG."""
    with tempfile.NamedTemporaryFile("w", suffix=".html", encoding="utf-8") as file:
        file.write(page_text)
        file.flush()
        async with chromium() as page:
            await page.appear("light", width, height)
            await page.open(Path(file.name).as_uri())
            return await page.picture()


async def take_console(folder: Path) -> None:
    """Take every page of the console."""
    files = {
        "BackupContents": archive(*CONTENTS),
        "BackupVolumeInfos": gzip.compress(b"[]"),
        "BackupLog": gzip.compress(_LOG),
        "BackupResourceList": gzip.compress(_HELD),
    }
    with bucket(**files) as url:
        async with (
            browsing(folder, made_up_cluster(url), context="prod-eu1", color="orange") as browser,
            chromium() as page,
        ):
            await page.call("Page.navigate", url=browser.console.first_url)
            await page.settled("document.title.startsWith('Overview')")
            for name, path in _PAGES.items():
                await page.open(_address(browser, path))
                await _take(page, name)
            for name, (path, action) in _FORMS.items():
                if path:
                    await page.open(_address(browser, path))
                title = await page.run("document.title")
                await page.run("document.querySelector('input[name=policy][value=update]')?.click()")
                await page.run(f"document.querySelector('form[action$=\"{action}\"] button').click()")
                await page.settled(f"document.title !== {title!r} && document.readyState === 'complete'")
                await _take(page, name)


async def take_fleet() -> None:
    """Take the page of a fleet."""
    at = now()
    names = ("prod-eu1", "prod-eu2", "prod-us1", "staging", "edge-paris", "edge-lyon", "lab")
    words = ("Safe", "Safe", "Not safe", "At risk", "Silent", "Safe", "Unknown")
    found = [_cluster(place, name, word, at) for place, (name, word) in enumerate(zip(names, words, strict=True))]

    async def read() -> Fleet:
        return fleet_of(found, at, "7 contexts of the kubeconfig")

    console = FleetConsole(read, new_secrets(), "https://console.{}.example.com")
    runner = await console.serve(console.application(), 0)
    try:
        async with chromium() as page:
            await page.call("Page.navigate", url=console.first_url)
            await page.settled("document.title.startsWith('Fleet')")
            await _take(page, "fleet")
    finally:
        await runner.cleanup()


def _cluster(place: int, name: str, word: str, at: datetime) -> ClusterRow:
    if word == "Unknown":
        return ClusterRow(name, word, "you may not read the whole cluster", reported=at)
    if word == "Silent":
        return silent(name, "the API server does not answer: cannot connect to 10.4.0.1:6443")
    whys = {
        "Not safe": "shop: no schedule saves the data of claim ledger (and 2 more)",
        "At risk": "mail: the last 3 runs of mail-nightly partially failed",
        "Safe": "",
    }
    age = timedelta(hours=3 + 2 * place)
    bad = 3 if word == "Not safe" else int(word == "At risk")
    return ClusterRow(name, word, whys[word], 40 - bad, 40, bad, age, int(bad > 1), int(bad > 1), at)


def _address(browser: Browser, path: str) -> str:
    return f"http://{browser.console.address}{browser.base}{path}"


async def _take(page: Page, name: str) -> None:
    for theme in _THEMES:
        for width, height in _SIZES:
            await page.appear(theme, width, height)
            (ALL / f"{name}-{theme}-{width}.png").write_bytes(await page.picture())
            if (name, theme) in _FULL and width == _SIZES[1][0]:
                (CONSOLE / f"{name}.webp").write_bytes(await page.picture("webp", 75))


if __name__ == "__main__":
    ALL.mkdir(parents=True, exist_ok=True)
    CONSOLE.mkdir(exist_ok=True)
    (DOCS / "report.png").write_bytes(asyncio.run(picture_of(report_page(fleet(12)), _WIDTH, _HEIGHT)))
    with tempfile.TemporaryDirectory() as place:
        asyncio.run(take_console(Path(place)))
    asyncio.run(take_fleet())
