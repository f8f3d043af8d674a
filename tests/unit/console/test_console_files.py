"""Files of Velero in the console: logs and contents, which a form asks for."""

import gzip
import json
from pathlib import Path

import pytest

from foresail.cli.tenant.held import HeldKind
from foresail.cli.tenant.logs import end_of_log
from foresail.console import read
from foresail.console.restore_pages import MOST_LOG, contents, log
from tests.unit.console.test_console import XSS, Browser, browse, everything
from tests.unit.console.test_console_restore import SITE, bucket, copies, with_bucket
from tests.unit.console.test_report import REVIEWS, Outline


def test_a_log_is_cut_at_the_start_of_a_line() -> None:
    assert end_of_log(b"one\ntwo\nthree\n", 100) == "one\ntwo\nthree\n"
    assert end_of_log(b"one\ntwo\nthree\n", 8) == "three\n"
    assert end_of_log(b"\xff", 8) == "\ufffd"


def test_hostile_files_change_no_element_and_are_bounded() -> None:
    copy = copies(3)[0]
    assert Outline(log(SITE, copy, XSS)).tags == Outline(log(SITE, copy, "word")).tags
    kind, hostile = HeldKind("A", "b", "v1", ("c",)), HeldKind(XSS, XSS, XSS, (XSS,) * 9000)
    assert Outline(contents(SITE, copy, [hostile])).tags == Outline(contents(SITE, copy, [kind])).tags
    assert len(contents(SITE, copy, [hostile] * 9000).encode()) < 4 << 20
    assert len(log(SITE, copy, "&" * MOST_LOG).encode()) < 4 << 20


def test_a_tenant_reads_the_log_and_what_is_in_a_backup(tmp_path: Path) -> None:
    async def walk(browser: Browser) -> None:
        await browser.sign_in()
        page = (await browser.get("/ns/shop/backup/copy")).text
        assert "Show the log" in page
        assert "Show what is in it" in page
        shown = (await browser.post("/ns/shop/backup/copy/log", browser.own)).text
        assert "level=info msg=done" in shown
        texts = Outline((await browser.post("/ns/shop/backup/copy/contents", browser.own)).text).texts
        assert {"ConfigMap", "a, b", "2 objects of 1 kinds."} <= set(texts)
        assert [each.split()[0] for each in browser.changes] == ["POST", "DELETE"] * 2

    held = json.dumps({"v1/ConfigMap": ["shop/a", "shop/b"]}).encode()
    with bucket(gzip.compress(b"level=info msg=done\n"), gzip.compress(held)) as url:
        browse(tmp_path, walk, with_bucket(url))


@pytest.mark.parametrize(
    ("file", "limit", "command"),
    [("log", "LARGEST_LOG", "foresail backup logs"), ("contents", "LARGEST_CONTENTS", "foresail backup contents")],
)
def test_a_file_that_is_too_large_for_the_console_is_read_by_the_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, file: str, limit: str, command: str
) -> None:
    monkeypatch.setattr(read, limit, 3)

    async def walk(browser: Browser) -> None:
        await browser.sign_in()
        answer = await browser.post(f"/ns/shop/backup/copy/{file}", browser.own)
        assert "larger than" in answer.text
        assert f"run {command} copy -n shop" in answer.text

    with bucket(gzip.compress(b"level=info msg=done\n")) as url:
        browse(tmp_path, walk, with_bucket(url))


def test_files_are_not_offered_to_who_may_not_ask_for_them(tmp_path: Path) -> None:
    async def walk(browser: Browser) -> None:
        await browser.sign_in()
        page = (await browser.get("/ns/shop/backup/first")).text
        assert "Show the log" not in page

    browse(tmp_path, walk, {**everything(), REVIEWS: {"status": {"allowed": False}}})
