"""Live updates of the console: a stream that reports changes and has no word of the cluster."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from foresail.cli.tenant.tenant_request import decode_request
from foresail.console import guard, live
from foresail.console.turns import MOST_STREAMS
from foresail.console.web.assets import SCRIPT
from foresail.selfservice.families import RESTORES
from tests.unit.console.test_console import Browser, browse, browsing, everything
from tests.unit.console.test_report import REVIEWS, TENANTS

RESTORE = f"{TENANTS}/nonadminrestores/r"


def a_restore(done: int) -> dict[str, Any]:
    """Return a restore that is under way, or complete with 8 of 8."""
    phase = "Completed" if done == 8 else "InProgress"
    velero = {"phase": phase, "progress": {"totalItems": 8, "itemsRestored": done}}
    kind = {"apiVersion": "oadp.openshift.io/v1alpha1", "kind": "NonAdminRestore"}
    metadata = {"name": "r", "namespace": "shop", "uid": "u", "resourceVersion": str(done)}
    status = {"phase": "Created", "veleroRestore": {"name": "v", "status": velero}}
    return {**kind, "metadata": metadata, "spec": {"restoreSpec": {}}, "status": status}


def seen(done: int) -> str:
    return live.digest([decode_request(RESTORES, json.dumps(a_restore(done)).encode())])


@asynccontextmanager
async def following(browser: Browser, path: str) -> AsyncIterator[asyncio.StreamReader]:
    host, port = browser.console.address.split(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    lines = (
        f"GET {browser.base}{path} HTTP/1.1",
        f"Host: {browser.console.address}",
        f"Cookie: {guard.COOKIE}={browser.cookie}",
    )
    writer.write(("\r\n".join(lines) + "\r\n\r\n").encode())
    try:
        yield reader
    finally:
        writer.close()


async def until(reader: asyncio.StreamReader, text: bytes) -> bytes:
    return await asyncio.wait_for(reader.readuntil(text), 30)


def test_a_digest_is_another_one_for_each_version() -> None:
    assert seen(3) == seen(3)
    assert seen(3) != seen(4)
    assert live.digest([]) != seen(3)


def test_a_change_is_reported_once_and_without_a_word_of_the_cluster(tmp_path: Path) -> None:
    answers = {**everything(), RESTORE: a_restore(3)}

    async def walk(browser: Browser) -> None:
        await browser.sign_in()
        async with following(browser, f"/live/ns/shop/restore/r?seen={seen(3)}") as reader:
            head = await until(reader, b": alive")
            assert b"text/event-stream" in head
            assert b"Content-Security-Policy" in head
            assert b"changed" not in head
            answers[RESTORE] = a_restore(4)
            sent = await until(reader, b"event: changed")
            assert b"shop" not in head + sent
            await until(reader, b": alive")
        assert browser.changes == []

    browse(tmp_path, walk, answers)


def test_one_object_is_followed_by_one_request_each_time(tmp_path: Path) -> None:
    async def walk(browser: Browser) -> None:
        await browser.sign_in()
        async with following(browser, f"/live/ns/shop/restore/r?seen={seen(3)}") as reader:
            await until(reader, b": alive")
            asked = len(browser.server.asked)
            await until(reader, b": alive")
            assert set(browser.server.asked[asked:]) == {f"GET {RESTORE}"}

    browse(tmp_path, walk, {**everything(), RESTORE: a_restore(3)})


def test_a_list_that_is_slow_to_read_is_read_less_often() -> None:
    assert live.pause(30, is_one=True) == live.ONE
    assert live.pause(0.5, is_one=False) == live.MANY
    assert live.pause(30, is_one=False) == 300


def test_what_changed_before_the_stream_began_is_reported_at_once(tmp_path: Path) -> None:
    async def walk(browser: Browser) -> None:
        await browser.sign_in()
        for path in ("/live?seen=x", "/live/ns/shop?seen=x", f"/live/ns/shop/restore/r?seen={seen(2)}"):
            async with following(browser, path) as reader:
                await until(reader, b"event: changed")

    browse(tmp_path, walk, {**everything(), RESTORE: a_restore(3)})


def test_the_pages_name_what_they_show(tmp_path: Path) -> None:
    answers = {**everything(), RESTORE: a_restore(3)}

    async def walk(browser: Browser) -> None:
        await browser.sign_in()
        page = (await browser.get("/ns/shop/restore/r")).text
        assert f'data-live="{browser.base}/live/ns/shop/restore/r?seen={seen(3)}"' in page
        assert "Reload" in page
        for path in ("/", "/queue", "/ns/shop"):
            address = (await browser.get(path)).text.split('data-live="')[1].split('"')[0]
            async with following(browser, address.removeprefix(browser.base)) as reader:
                assert b"changed" not in await until(reader, b": alive")
        assert "data-live" not in (await browser.get("/ns/shop/restore")).text  # a form is not renewed
        answers[RESTORE] = a_restore(8)
        assert "data-live" not in (await browser.get("/ns/shop/restore/r")).text  # nor what has ended

    browse(tmp_path, walk, answers)


def test_a_stream_of_what_the_viewer_may_not_read_is_refused(tmp_path: Path) -> None:
    async def walk(browser: Browser) -> None:
        await browser.sign_in()
        assert (await browser.get("/live/ns/shop/restore/r")).status == 403

    browse(tmp_path, walk, {**everything(), RESTORE: a_restore(3), REVIEWS: {"status": {"allowed": False}}})


def test_a_stream_whose_reads_fail_ends_and_is_not_answered_twice(tmp_path: Path) -> None:
    answers = everything()

    async def walk(browser: Browser) -> None:
        await browser.sign_in()
        async with following(browser, "/live/ns/shop?seen=x") as reader:
            await until(reader, b"event: changed")
            answers[REVIEWS] = {"status": 7}
            rest = await until(reader, b"\r\n0\r\n\r\n")
            assert b"HTTP/1.1" not in rest
            assert b"failed" not in rest

    browse(tmp_path, walk, answers)


def test_streams_are_bounded_and_end_with_the_console(tmp_path: Path) -> None:
    async def walk() -> None:
        async with browsing(tmp_path, {**everything(), RESTORE: a_restore(3)}) as browser:
            await browser.sign_in()
            path = f"/live/ns/shop/restore/r?seen={seen(3)}"
            followers = [following(browser, path) for _ in range(MOST_STREAMS)]
            readers = [await each.__aenter__() for each in followers]
            for each in readers:
                await until(each, b": alive")
            assert (await browser.get(path)).status == 503
        for each in readers:  # ended by the console, not cut off by aiohttp
            assert (await asyncio.wait_for(each.read(), 30)).endswith(b"\r\n0\r\n\r\n")
        for follower in followers:
            await follower.__aexit__(None, None, None)

    asyncio.run(walk())


def test_a_browser_that_leaves_at_once_is_no_error(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    async def walk(browser: Browser) -> None:
        await browser.sign_in()
        for _ in range(3):
            host, port = browser.console.address.split(":")
            _, writer = await asyncio.open_connection(host, int(port))
            lines = (f"GET {browser.base}/live/ns/shop HTTP/1.1", f"Host: {browser.console.address}")
            writer.write(("\r\n".join((*lines, f"Cookie: {guard.COOKIE}={browser.cookie}")) + "\r\n\r\n").encode())
            await writer.drain()
            writer.transport.abort()
        assert (await browser.get("/ns/shop")).status == 200

    browse(tmp_path, walk)
    assert "error" not in capsys.readouterr().err


def test_the_script_writes_no_markup_and_the_policy_allows_no_other() -> None:
    assert not any(each in SCRIPT for each in ("innerHTML", "eval", "document.write", "insertAdjacent", "http"))
    policy = guard.HEADERS["Content-Security-Policy"]
    assert "unsafe" not in policy
    assert "script-src 'self'" in policy
