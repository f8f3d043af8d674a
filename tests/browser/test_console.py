"""The console in a real browser: signing in, every page in both themes and three widths, and what axe-core says."""

import asyncio
import gzip
from pathlib import Path

import pytest

from foresail.console import live
from foresail.console.layout import entrance
from tests.browser.chromium import AXE, PROGRAM, Page, chromium
from tests.browser.made_up_cluster import made_up_cluster
from tests.browser.test_report import PICTURES, every_width
from tests.unit.console.test_console import PAGES, XSS, Browser, browsing, everything
from tests.unit.console.test_console_live import RESTORE, a_restore
from tests.unit.console.test_console_restore import bucket, with_bucket
from tests.unit.console.test_report import TENANTS

pytestmark = pytest.mark.skipif(
    PROGRAM is None, reason="NOT TESTED: Chromium is not installed (apt-get install chromium)"
)


def test_a_viewer_signs_in_and_walks_through_every_page(tmp_path: Path) -> None:
    PICTURES.mkdir(parents=True, exist_ok=True)

    async def walk() -> None:
        async with browsing(tmp_path, everything()) as browser, chromium() as page:
            await signed_in(page, browser, tmp_path)
            for path in PAGES:
                await looked_at(page, browser, path)
            await page.open(f"http://{browser.console.address}{browser.base}/ns/shop")
            await page.run("document.querySelector('form[action$=backup] button').click()")
            await page.settled("document.title.startsWith('This did not work')")  # the canned server makes nothing
            addresses = {each.split("/")[2] for each in page.requested if each.startswith("http")}
            assert addresses == {browser.console.address}

    asyncio.run(walk())


def test_a_tenant_plans_a_restore_and_confirms_it(tmp_path: Path) -> None:
    PICTURES.mkdir(parents=True, exist_ok=True)

    async def walk(url: str) -> None:
        async with browsing(tmp_path, with_bucket(url)) as browser, chromium() as page:
            await signed_in(page, browser, tmp_path)
            await page.open(f"http://{browser.console.address}{browser.base}/ns/shop/restore?backup=copy")
            await page.run("document.querySelector('main form button').click()")
            await page.settled("document.title === 'Restore plan · Foresail'")
            await inspected(page, "ns-shop-plan")
            await page.run("document.querySelector('main form button').click()")
            await page.settled("document.title === 'Confirm the restore · Foresail'")
            await inspected(page, "ns-shop-confirm")
            await page.run("document.querySelector('main form button').click()")  # the browser asks for the name first
            await page.run("document.querySelector('#typed').value = 'shop'")
            await page.run("document.querySelector('main form button').click()")
            await page.settled("location.pathname.includes('/restore/copy-')")
            assert f"POST {TENANTS}/nonadminrestores" in browser.changes

    with bucket() as url:
        asyncio.run(walk(url))


def test_a_page_renews_itself_and_is_complete_without_javascript(tmp_path: Path) -> None:
    answers = everything()
    answers[RESTORE] = a_restore(3)

    async def walk() -> None:
        async with browsing(tmp_path, answers) as browser, chromium() as page:
            await signed_in(page, browser, tmp_path)
            await page.call("Emulation.setScriptExecutionDisabled", value=True)
            url = f"http://{browser.console.address}{browser.base}/ns/shop/restore/r"
            await page.open(url)
            assert "3 of 8" in await page.run("document.body.innerText")
            answers[RESTORE] = a_restore(5)
            await page.open(url)  # by hand
            assert "5 of 8" in await page.run("document.body.innerText")

            await page.call("Emulation.setScriptExecutionDisabled", value=False)
            await page.open(url)
            await page.run("window.stays = true; document.querySelector('main a').focus()")
            answers[RESTORE] = a_restore(7)
            await page.settled("document.body.innerText.includes('7 of 8')")
            assert await page.run("window.stays") is True  # the page was not loaded again
            assert await page.run("document.activeElement.tagName") == "A"

            answers[RESTORE] = a_restore(8)
            await page.settled("document.body.innerText.includes('Completed')")
            assert await page.run("window.stays") is True
            assert await page.run("document.querySelector('main').dataset.live === undefined")
            await asyncio.sleep(2 * live.ONE)  # until the server writes to the closed stream
            asked = browser.server.asked.count(f"GET {RESTORE}")
            assert asked
            await asyncio.sleep(2 * live.ONE)
            assert browser.server.asked.count(f"GET {RESTORE}") == asked
            assert page.problems == []

    asyncio.run(walk())


def test_a_page_that_is_no_longer_live_says_so(tmp_path: Path) -> None:
    answers = everything()
    answers[RESTORE] = a_restore(3)

    async def walk() -> None:
        async with browsing(tmp_path, answers) as browser, chromium() as page:
            await signed_in(page, browser, tmp_path)
            await page.open(f"http://{browser.console.address}{browser.base}/ns/shop/restore/r")
            del answers[RESTORE]  # the stream ends, and no other one begins
            await page.settled("document.body.innerText.includes('This page is no longer live. Reload it.')")
            assert "3 of 8" in await page.run("document.body.innerText")
            assert await page.run("document.querySelectorAll('[role=status]').length") == 1

    asyncio.run(walk())


STATE = "document.querySelector('.verdict .state-of').innerText"
CLOCK = "document.querySelector('.verdict time').dateTime"
AGED = "getComputedStyle(document.querySelector('.verdict .aged')).visibility"
BACK = "getComputedStyle(document.querySelector('.verdict')).backgroundColor"


def test_a_verdict_that_is_not_live_says_so_and_is_not_green_for_long(tmp_path: Path) -> None:
    async def walk(url: str) -> None:
        async with browsing(tmp_path, made_up_cluster(url)) as browser, chromium() as page:
            await signed_in(page, browser, tmp_path)
            await page.call("Emulation.setScriptExecutionDisabled", value=True)
            await page.open(f"http://{browser.console.address}{browser.base}/ns/bank")
            assert await page.run("document.querySelector('.verdict').dataset.verdict") == "Safe"
            green = await page.run(BACK)
            assert (await page.run(STATE)).startswith("Not live: as of 20")
            assert await page.run(AGED) == "hidden"
            await page.run("document.getAnimations().forEach((each) => each.finish())")  # three minutes later
            assert await page.run(AGED) == "visible"
            assert await page.run(BACK) != green
            await inspected_here(page, "ns-bank-old")

    with bucket() as url:
        asyncio.run(walk(url))


def test_a_phone_shows_the_button_of_each_namespace_and_the_time_line_around_now(tmp_path: Path) -> None:
    async def walk(url: str) -> None:
        async with browsing(tmp_path, made_up_cluster(url)) as browser, chromium() as page:
            await signed_in(page, browser, tmp_path)
            await page.appear("light", 375, 812)
            await page.call("Emulation.setScriptExecutionDisabled", value=True)
            for path, what in (("/", "#worst ~ .scroll .act"), ("/ns/bank", ".line line.now")):
                await page.open(f"http://{browser.console.address}{browser.base}{path}")
                places = f"[...document.querySelectorAll('{what}')].map((each) => each.getBoundingClientRect())"
                box = f"document.querySelector('{what}').closest('.scroll').getBoundingClientRect()"
                assert await page.run(f"Math.min(...{places}.map((each) => each.left)) > {box}.left"), path
                assert await page.run(f"Math.max(...{places}.map((each) => each.right)) <= {box}.right"), path

    with bucket() as url:
        asyncio.run(walk(url))


def test_a_live_verdict_is_read_again_although_nothing_runs(tmp_path: Path) -> None:
    async def walk(url: str) -> None:
        async with browsing(tmp_path, made_up_cluster(url)) as browser, chromium() as page:
            await signed_in(page, browser, tmp_path)
            await page.open(f"http://{browser.console.address}{browser.base}/ns/bank")
            await page.settled(f"{STATE}.startsWith('Live: as of 20')")
            assert "Reload" not in await page.run(STATE)
            assert await page.run("document.getAnimations().length") == 0, "it does not age"
            first = await page.run(CLOCK)
            await page.run("document.querySelector('details').open = true")
            await page.run("window.later = 61000; window.was = Date.now; Date.now = () => was() + later")
            await page.settled(f"{CLOCK} !== {first!r}")
            await page.settled(f"{STATE}.startsWith('Live')")
            assert await page.run("document.querySelector('details').open")
            await page.run("window.fetch = () => Promise.reject(); later = 600000")
            await page.settled(f"{STATE}.startsWith('Not live')")
            assert await page.run("document.getAnimations().length"), "from now on it ages"
            assert page.problems == []

    with bucket() as url:
        asyncio.run(walk(url))


def test_a_tenant_reads_a_log_and_what_is_in_a_backup(tmp_path: Path) -> None:
    PICTURES.mkdir(parents=True, exist_ok=True)

    async def walk(url: str) -> None:
        async with browsing(tmp_path, with_bucket(url)) as browser, chromium() as page:
            await signed_in(page, browser, tmp_path)
            for file, title in (("log", "Log of copy"), ("contents", "Contents of copy")):
                await page.open(f"http://{browser.console.address}{browser.base}/ns/shop/backup/copy")
                await page.run(f"document.querySelector('form[action$={file}] button').click()")
                await page.settled(f"document.title === '{title} · Foresail'")
                await inspected(page, f"ns-shop-{file}")

    log, held = b"level=info msg=done\n" * 99, b'{"v1/ConfigMap": ["shop/a", "shop/b"]}'
    with bucket(gzip.compress(log), gzip.compress(held)) as url:
        asyncio.run(walk(url))


def test_strings_of_a_hostile_tenant_run_nothing(tmp_path: Path) -> None:
    async def walk() -> None:
        async with browsing(tmp_path, everything(XSS)) as browser, chromium() as page:
            await signed_in(page, browser, tmp_path)
            for path in PAGES:
                await page.open(f"http://{browser.console.address}{browser.base}{path}")
                assert (
                    await page.run("document.querySelectorAll('script:not([src$=\"/live.js\"]), img, iframe').length")
                    == 0
                )
            assert page.problems == []

    asyncio.run(walk())


def entrance_file(folder: Path, browser: Browser) -> str:
    """Return the address of a file like the one that `foresail console` lets the browser open."""
    file = folder / "entrance.html"
    file.write_text(entrance(browser.console.first_url))
    return file.as_uri()


async def signed_in(page: Page, browser: Browser, folder: Path) -> None:
    await page.call("Page.navigate", url=entrance_file(folder, browser))
    await page.settled("document.title === 'Overview · Foresail'")
    assert await page.run("document.cookie") == ""  # HttpOnly
    assert browser.secrets.token not in await page.run("location.href")


async def looked_at(page: Page, browser: Browser, path: str) -> None:
    await page.open(f"http://{browser.console.address}{browser.base}{path}")
    await inspected(page, path.strip("/").replace("/", "-") or "overview")


async def inspected_here(page: Page, name: str) -> None:
    """Inspect a page in the state that it is in: no width and no theme is chosen for it."""
    PICTURES.mkdir(parents=True, exist_ok=True)
    (PICTURES / f"console-{name}.png").write_bytes(await page.picture())
    if AXE.exists():
        await page.call("Emulation.setScriptExecutionDisabled", value=False)
        assert await page.violations() == []


async def inspected(page: Page, name: str) -> None:
    for theme in ("light", "dark"):
        await every_width(page, theme, PICTURES, f"console-{name}")
        if AXE.exists():
            found = await page.violations()
            assert found == [], (name, theme, found)
    assert page.problems == [], (name, page.problems)
