"""How the operator reads results: whatever is behind a URL, something comes back, and never the URL."""

import asyncio
import gzip
from typing import Any

import pytest

from foresail.selfservice.results.controller import fetch
from foresail.selfservice.results.file import Lines
from foresail.selfservice.results.observe import Found, Wanted
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
