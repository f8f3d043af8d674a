"""The report of 500 namespaces in a real browser: both themes, three widths, print, and what axe-core says."""

import asyncio
from pathlib import Path

import pytest

from foresail.console.report.page import report_page
from tests.browser.chromium import AXE, PROGRAM, Page, chromium
from tests.browser.fleet import fleet

pytestmark = pytest.mark.skipif(
    PROGRAM is None, reason="NOT TESTED: Chromium is not installed (apt-get install chromium)"
)
PICTURES = Path("build/browser")
_SECOND = 1000
_WIDTHS = (375, 1280, 3840)


def test_the_report_of_500_namespaces(tmp_path: Path) -> None:
    file = tmp_path / "report.html"
    file.write_text(report_page(fleet(500)), encoding="utf-8")
    print(f"{file.stat().st_size / 1024:.0f} KiB")
    PICTURES.mkdir(parents=True, exist_ok=True)
    asyncio.run(looked_at(file, PICTURES))


async def looked_at(file: Path, pictures: Path) -> None:
    async with chromium() as page:
        took = min([await page.open(file.as_uri()) for _ in range(3)])
        print(f"opened in {took:.0f} ms")
        assert took < _SECOND
        for theme in ("light", "dark"):
            await every_width(page, theme, pictures)
            if AXE.exists():
                found = await page.violations()
                assert found == [], found
                await page.open(file.as_uri())
        printed = await page.print()
        (pictures / "report.pdf").write_bytes(printed)
        assert printed.startswith(b"%PDF")
        assert page.problems == []
        assert set(page.requested) == {file.as_uri()}
    if not AXE.exists():
        pytest.skip(f"NOT TESTED: axe-core is not at {AXE}; the rest passed")


async def every_width(page: Page, theme: str, pictures: Path, name: str = "report") -> None:
    for width in _WIDTHS:
        await page.appear(theme, width, 2160 if width == _WIDTHS[-1] else 900)
        (pictures / f"{name}-{theme}-{width}.png").write_bytes(await page.picture())
        wide = await page.run("document.documentElement.scrollWidth")
        assert wide <= width, f"{theme}: the page is {wide} px wide in a window of {width} px"
