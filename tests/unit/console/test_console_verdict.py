"""The banner of a verdict: whether there is a copy at all, and of when it is, in words."""

import re
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path

import pytest

from foresail.api.specs import BackupSpec
from foresail.console.home_pages import home, verdict_of
from foresail.console.layout import Search, Site
from foresail.console.read import OwnNamespace
from foresail.console.report.figures import Figures
from foresail.console.web.assets import CONSOLE, OLD_MINUTES, SCRIPT
from foresail.kube.clock import now
from foresail.proof.coverage import NamespaceCoverage
from foresail.proof.reasons import Gap, Reason
from foresail.proof.view import BackupRow
from tests.unit.console.test_console import Browser, browse, everything, of_tenant
from tests.unit.console.test_report import NOW, REVIEWS, Outline, figures

SITE = Site("mount", "secret", "shop", is_administrator=True)
GOOD = BackupRow("b-1", "Completed", BackupSpec(), NOW - timedelta(minutes=5), 7, "nightly")
PAUSED = NamespaceCoverage("shop", ("nightly",), GOOD, gaps=(Gap(Reason.PAUSED, "nightly is paused"),))
YET = Gap(Reason.NO_GOOD_BACKUP, "namespace shop has no good backup yet; nightly has made none")
NEW = NamespaceCoverage("shop", ("nightly",), gaps=(YET,), is_new=True)
DOUBTFUL = NamespaceCoverage("shop", (), gaps=(Gap(Reason.NO_OWN_SCHEDULE, "no NonAdminSchedule"),))
SAFE = NamespaceCoverage("shop", ("nightly",), GOOD)
LATE = NamespaceCoverage("shop", ("nightly",), gaps=(Gap(Reason.OBJECTIVE_MISSED, "no good backup"),))


def seen(coverage: NamespaceCoverage) -> Figures:
    return replace(figures(), namespaces=(coverage,), checks=(), upcoming=())


def banner_of(coverage: NamespaceCoverage) -> str:
    own = OwnNamespace(seen(coverage), (), (), (), may_back_up=False, may_pause=False, may_restore=False)
    return str(verdict_of(SITE, "shop", own))


@pytest.mark.parametrize(
    ("coverage", "kind", "title"),
    [
        (PAUSED, "verdict warn", "At risk: namespace shop, last good backup 5m ago"),
        (NEW, "verdict warn bare", "At risk: namespace shop, no good backup yet"),
        (DOUBTFUL, "verdict warn bare", "Unknown whether namespace shop is safe"),
        (SAFE, "verdict good", "Safe: namespace shop"),
        (LATE, "verdict bad", "Not safe: namespace shop"),
    ],
)
def test_amber_with_a_backup_and_amber_without_one_look_and_read_differently(
    coverage: NamespaceCoverage, kind: str, title: str
) -> None:
    page = banner_of(coverage)
    assert f'class="{kind}"' in page
    assert f" {title}" in Outline(page).texts
    assert ".verdict.bare{" in CONSOLE, "the stripes are a shape, not a color"


def test_the_rows_of_an_administrator_tell_amber_without_a_backup_from_amber_with_one() -> None:
    shown = replace(seen(PAUSED), namespaces=(replace(PAUSED, name="bank"), NEW, replace(SAFE, name="calm")))
    page = str(home(SITE, shown, (), Search()))
    assert '<span class="badge warn">At risk</span>' in page
    assert '<span class="badge warn bare">At risk, no backup</span>' in page


@pytest.mark.parametrize("coverage", [PAUSED, NEW, DOUBTFUL, SAFE, LATE])
def test_every_verdict_says_of_when_it_is_and_that_it_is_not_live_until_it_is(coverage: NamespaceCoverage) -> None:
    page = banner_of(coverage)
    texts = "".join(Outline(page).texts)
    assert f"Not live: as of {NOW:%Y-%m-%d %H:%M:%S} UTC. Reload the page for the verdict of now." in texts
    assert f'<time datetime="{NOW.isoformat()}">' in page
    assert f"This verdict is older than {OLD_MINUTES} minutes. It may no longer be true." in texts


def test_a_page_that_was_live_is_not_green_when_it_is_old_already() -> None:
    """The animation begins when the class `live` goes, which is long after the page was read."""
    live = re.search(r"((?:\.live [^{}]+,\n?)+[^{}]+)\{\s*animation:none\}", CONSOLE)
    assert live is not None
    assert f"{live[1].replace('.live ', '.old ')}{{\nanimation-delay:0s}}" in CONSOLE
    assert 'classList.toggle("old", age() >= OLD)' in SCRIPT
    assert 'addEventListener("pageshow", (event) => { if (event.persisted) follow(); })' in SCRIPT


def test_an_old_verdict_is_not_green_without_the_script_and_a_live_one_is_read_again() -> None:
    seconds = f"0s {60 * OLD_MINUTES}s forwards"
    assert f".verdict.good{{animation:faded {seconds}}}" in CONSOLE
    assert (
        f".aged{{max-height:0;visibility:hidden;overflow:hidden;font-weight:700;\nanimation:aged {seconds}}}" in CONSOLE
    )
    assert f"OLD = 1000 * {60 * OLD_MINUTES};" in SCRIPT
    assert "setInterval(tick, TICK)" in SCRIPT


@pytest.mark.parametrize("is_tenant", [False, True])
def test_both_first_pages_say_of_when_their_verdict_is(tmp_path: Path, is_tenant: bool) -> None:
    async def walk(browser: Browser) -> None:
        await browser.sign_in()
        for path in ("/", "/ns/shop"):
            page = (await browser.get(path)).text
            (text,) = re.findall(r'<strong class="state">Not live</strong>: as of <time datetime="([^"]+)"', page)
            assert abs(datetime.fromisoformat(text) - now()) < timedelta(minutes=5)

    browse(tmp_path, walk, {**of_tenant(), REVIEWS: {"status": {"allowed": False}}} if is_tenant else everything())
