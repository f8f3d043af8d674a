"""Takes the pictures of the report for the docs with Chromium, which must be installed.

python -m docs.screenshots
"""

import asyncio
import tempfile
from pathlib import Path

from foresail.cli.report.page import report_page
from tests.browser.chromium import chromium
from tests.browser.fleet import fleet

DOCS = Path(__file__).parent
_WIDTH, _HEIGHT = 1180, 720


async def picture_of(page_text: str, width: int, height: int) -> bytes:
    """Return a page as a PNG."""
    with tempfile.NamedTemporaryFile("w", suffix=".html", encoding="utf-8") as file:
        file.write(page_text)
        file.flush()
        async with chromium() as page:
            await page.appear("light", width, height)
            await page.open(Path(file.name).as_uri())
            return await page.picture()


if __name__ == "__main__":
    (DOCS / "report.png").write_bytes(asyncio.run(picture_of(report_page(fleet(12)), _WIDTH, _HEIGHT)))
