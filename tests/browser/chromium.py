"""A real Chromium without a window, driven by its own DevTools protocol: no other tool is needed."""

import asyncio
import base64
import itertools
import json
import os
import shutil
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import aiohttp

PROGRAM = shutil.which("chromium") or shutil.which("chromium-browser")
AXE = Path(os.environ.get("AXE_CORE") or "build/browser/node_modules/axe-core/axe.min.js")
_PATIENCE = 60.0
_PAUSE = 0.1


class Page:
    """One tab."""

    def __init__(self, socket: aiohttp.ClientWebSocketResponse) -> None:
        self._socket = socket
        self._numbers = itertools.count(1)
        self.requested: list[str] = []
        """Every address that the page has asked for."""

        self.problems: list[str] = []
        """What the browser wrote to its console, such as a refusal by the Content-Security-Policy."""

    async def call(self, method: str, **parameters: object) -> dict[str, Any]:
        """Call a method of the protocol, and return its result."""
        number = next(self._numbers)
        await self._socket.send_str(json.dumps({"id": number, "method": method, "params": parameters}))
        return await self._until(lambda each: each.get("id") == number)

    async def _until(self, is_wanted: Any) -> dict[str, Any]:  # noqa: ANN401 - a test of a message
        async with asyncio.timeout(_PATIENCE):
            while True:
                message = json.loads(await self._socket.receive_str())
                self._note(message)
                if "error" in message:
                    raise AssertionError(message["error"])
                if is_wanted(message):
                    found: dict[str, Any] = message.get("result") or message.get("params") or {}
                    return found

    def _note(self, message: dict[str, Any]) -> None:
        method = message.get("method")
        if method == "Network.requestWillBeSent":
            self.requested.append(message["params"]["request"]["url"])
        elif method == "Log.entryAdded":
            self.problems.append(message["params"]["entry"]["text"])
        elif method == "Runtime.exceptionThrown":
            self.problems.append(str(message["params"]["exceptionDetails"].get("text")))

    async def open(self, address: str) -> float:
        """Open an address, and return after how many milliseconds it was loaded, as the browser measured it."""
        await self.call("Page.navigate", url=address)
        await self._until(lambda each: each.get("method") == "Page.loadEventFired")
        return float(await self.run("performance.timing.loadEventStart - performance.timing.navigationStart"))

    async def run(self, expression: str) -> Any:  # noqa: ANN401 - any value of the page
        """Evaluate an expression in the page, and return its value; the page's own policy does not apply to it."""
        found = await self.call("Runtime.evaluate", expression=expression, awaitPromise=True, returnByValue=True)
        assert "exceptionDetails" not in found, found["exceptionDetails"]
        return found["result"].get("value")

    async def settled(self, expression: str) -> None:
        """Wait until an expression is true in the page, which may change meanwhile."""
        for _ in range(round(_PATIENCE / _PAUSE)):
            with suppress(AssertionError):  # a page that is being replaced answers with an error
                if (await self.call("Runtime.evaluate", expression=expression))["result"].get("value"):
                    return
            await asyncio.sleep(_PAUSE)
        raise AssertionError(f"{expression} is not true: {await self.run('document.body.innerText')}")

    async def appear(self, theme: str, width: int = 1280, height: int = 900) -> None:
        """Let the page be light or dark, in a window of this size."""
        await self.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": theme}])
        await self.call(
            "Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False
        )

    async def picture(self, form: str = "png", quality: int | None = None) -> bytes:
        """Return the window as a picture, a PNG unless another form is asked for."""
        wanted = {} if quality is None else {"quality": quality}
        return base64.b64decode((await self.call("Page.captureScreenshot", format=form, **wanted))["data"])

    async def print(self) -> bytes:
        """Return the page as a PDF, as the browser prints it."""
        printed = await self.call("Page.printToPDF", preferCSSPageSize=True, printBackground=False)
        return base64.b64decode(printed["data"])

    async def violations(self) -> list[str]:
        """Return the serious violations that axe-core finds in the page."""
        await self.run(_content(AXE))
        found = await self.run("axe.run().then(found => found.violations)")
        return [
            f"{each['id']}: {each['help']}: {each['nodes'][0]['html'][:120]}"
            for each in found
            if each["impact"] in ("serious", "critical")
        ]


@asynccontextmanager
async def chromium() -> AsyncIterator[Page]:
    """Start Chromium with an empty profile, and end it when the block ends."""
    assert PROGRAM is not None
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        options = ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run")
        quiet = ("--hide-scrollbars", "--disable-background-networking", "--disable-component-update", "--disable-sync")
        process = await asyncio.create_subprocess_exec(
            PROGRAM,
            *options,
            *quiet,
            "--remote-debugging-port=0",
            f"--user-data-dir={folder}",
            "about:blank",
            stdout=asyncio.subprocess.DEVNULL,
            stderr=asyncio.subprocess.DEVNULL,
        )
        try:
            port = await _port(Path(folder) / "DevToolsActivePort")
            async with aiohttp.ClientSession() as session:
                async with session.get(f"http://127.0.0.1:{port}/json/list") as answer:
                    tab = next(each for each in await answer.json() if each["type"] == "page")
                async with session.ws_connect(tab["webSocketDebuggerUrl"], max_msg_size=0) as socket:
                    page = Page(socket)
                    for each in ("Page", "Network", "Log", "Runtime"):
                        await page.call(f"{each}.enable")
                    yield page
        finally:
            process.terminate()
            await process.wait()


async def _port(file: Path) -> str:
    async with asyncio.timeout(_PATIENCE):
        while "\n" not in (found := _content(file)):  # noqa: ASYNC110 - another process writes the file
            await asyncio.sleep(0.1)
    return found.split("\n", 1)[0]


def _content(file: Path) -> str:
    return file.read_text() if file.exists() else ""
