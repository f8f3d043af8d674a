"""How the operator reads results: whatever is behind a URL, something comes back, and never the URL."""

import asyncio
import gzip
from typing import Any

import pytest

from foresail.selfservice.results.controller import fetch
from foresail.selfservice.results.file import Lines
from foresail.selfservice.results.view import Found, Wanted
from tests.unit.served import served
from tests.unit.test_bucket import Bucket

OWN = b'{"errors": {"namespaces": {"shop": ["it is full"], "bank": ["secret"]}}}'


@pytest.mark.parametrize(
    ("answer", "found"),
    [
        ((200, gzip.compress(OWN)), Found(Lines(("it is full",), others=1))),
        ((200, gzip.compress(b"[]")), Found(problem="not in Velero's format")),
        ((200, gzip.compress(bytes(64 << 20), 1)), Found(problem="it is larger than 16 MiB")),
        ((404, b""), Found(problem="the bucket answers 404")),
    ],
    ids=["results", "another shape", "bomb", "gone"],
)
def test_what_is_behind_a_url(answer: tuple[int, bytes], found: Found) -> None:
    Bucket.files, Bucket.pause = {"/results.gz": answer}, 0.0
    with served(Bucket) as server:
        url = f"http://127.0.0.1:{server.server_port}/results.gz?signature=s3cr3t"
        assert asyncio.run(fetch(Wanted(url, "", "shop"))) == found


def test_an_authority_that_cannot_be_read_is_a_problem() -> None:
    found = asyncio.run(fetch(Wanted("https://bucket/x", "nonsense", "shop")))
    assert found == Found(problem="the certificate authority of the bucket cannot be read")


def test_an_error_of_ours_ends_one_reading_and_no_more(caplog: pytest.LogCaptureFixture) -> None:
    url: Any = 7  # nothing that Velero could say
    assert asyncio.run(fetch(Wanted(url, "", "shop"))) == Found(problem="internal error, see the operator's log")
    assert "reading results for namespace shop failed: TypeError" in caplog.text


LIST = b'{"v1/ConfigMap": ["shop/settings(failed)", "shop/gone(created)", "bank/other(created)"]}'
WARNED = b'{"warnings": {"namespaces": {"shop": ["could not restore, ConfigMap:settings already exists."]}}}'


@pytest.mark.parametrize(
    ("files", "found"),
    [
        ({"results": WARNED, "list": LIST}, (1, 1, "")),
        ({"list": LIST}, (1, 0, "")),
        ({"results": WARNED}, (None, None, "the bucket answers 404")),
        ({"results": WARNED, "list": b"[]"}, (None, None, "not in Velero's format")),
    ],
    ids=["both", "no warnings", "no list", "a list of another shape"],
)
def test_what_a_restore_did_is_read_from_two_files(
    files: dict[str, bytes], found: tuple[int | None, int | None, str]
) -> None:
    Bucket.files = {f"/{name}.gz": (200, gzip.compress(content)) for name, content in files.items()}
    Bucket.pause = 0.0
    with served(Bucket) as server:
        begin = f"http://127.0.0.1:{server.server_port}"
        url = f"{begin}/results.gz" if "results" in files else ""
        answer = asyncio.run(fetch(Wanted(url, "", "shop", f"{begin}/list.gz")))
    items = answer.restored
    assert (items and items.created.count, items and items.left.count, answer.problem) == found
    assert (answer.lines is not None) == ("results" in files)
