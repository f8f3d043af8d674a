"""Pictures of a namespace's page in each state, for people who are asked what they see: `--pictures FOLDER`.

The names are numbers in no order of the states; `key.json` beside them, for whoever asks, says what is true of each.
"""

import asyncio
import json
from collections.abc import Mapping
from hashlib import sha256
from pathlib import Path

from bench import MeasurementError
from bench.truth.answers import Console
from tests.browser.chromium import chromium


class Album:
    """The pictures of one run."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._key: dict[str, dict[str, str]] = {}
        folder.mkdir(parents=True, exist_ok=True)

    def take(self, console: Console, who: str, truths: Mapping[str, str], state: str = "") -> None:
        """Take the first screen of the page of each namespace, as one of the viewers sees it."""
        asyncio.run(self._take(console, who, truths, state))
        (self._folder / "key.json").write_text(json.dumps(self._key, indent=1))

    async def _take(self, console: Console, who: str, truths: Mapping[str, str], state: str) -> None:
        async with chromium() as page:
            await page.appear("light")
            for cookie in console.cookies:  # the URL with which one signs in works once
                await page.call("Network.setCookie", name=cookie.name, value=cookie.value or "", url=f"{console.base}/")
            for namespace, truth in truths.items():
                name = sha256(f"{who} {state} {namespace}".encode()).hexdigest()[:6]
                await page.open(f"{console.base}/ns/{namespace}")
                if namespace not in await page.run("document.title"):
                    raise MeasurementError(f"{who} is not shown namespace {namespace}")
                (self._folder / f"{name}.png").write_bytes(await page.picture())
                self._key[name] = {"viewer": who, "state": state, "namespace": namespace, "truth": truth}
