"""A packed file behind a URL: bounded in size and time, from that one place only, and no error tells where."""

import asyncio
import gzip
import ssl
import time
import zlib
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import ClassVar

import pytest
from hypothesis import given
from hypothesis import strategies as st

from foresail.bucket import DownloadError, Unpacker, download, trusting
from testbed.pki import make_authority
from tests.unit.served import served

MIB = 1 << 20
Answer = tuple[int, bytes]


class Bucket(BaseHTTPRequestHandler):
    """Answers each path with what the test has put there."""

    files: ClassVar[dict[str, Answer]] = {}
    asked: ClassVar[list[str]] = []
    pause: ClassVar[float] = 0.0

    def do_GET(self) -> None:
        self.asked.append(self.path)
        time.sleep(self.pause)
        code, body = self.files.get(self.path.partition("?")[0], (404, b""))
        self.send_response(code)
        self.send_header("Content-Length", str(len(body)))
        if code == 302:
            self.send_header("Location", "/elsewhere")
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def bucket() -> Iterator[str]:
    Bucket.files, Bucket.asked, Bucket.pause = {"/elsewhere": (200, gzip.compress(b"elsewhere"))}, [], 0.0
    with served(Bucket) as server:
        yield f"http://127.0.0.1:{server.server_port}"


async def whole(url: str, most: int = MIB, seconds: float = 30.0, authority: str = "") -> bytes:
    tls = trusting(authority)
    return b"".join([each async for each in download(url, most=most, seconds=seconds, tls=tls)])


def read(url: str, seconds: float = 30.0) -> bytes:
    return asyncio.run(whole(url, seconds=seconds))


def test_a_file_comes_unpacked_and_its_address_goes_as_it_is(bucket: str) -> None:
    Bucket.files["/log.gz"] = (200, gzip.compress(b"one\n") + gzip.compress(b"two\n"))
    signed = "/log.gz?X-Amz-Credential=a&X-Amz-Security-Token=b%2Bc%3D&x-id=GetObject"
    assert read(bucket + signed) == b"one\ntwo\n"
    assert len(Bucket.asked) == 1
    assert "b%2Bc" in Bucket.asked[0]


@pytest.mark.parametrize(
    ("answer", "text"),
    [
        ((404, b""), "the bucket answers 404"),
        ((403, b"<Error/>"), "the bucket answers 403"),
        ((302, b""), "the bucket answers 302"),
        ((200, b"<html>sign in</html>"), "it is not a gzip file"),
        ((200, b""), "it ends in the middle"),
        ((200, gzip.compress(b"x" * 5000)[:20]), "it ends in the middle"),
        ((200, gzip.compress(bytes(2 * MIB))), "it is larger than 1 MiB"),
        ((200, gzip.compress(bytes(256 * MIB), 1)), "it is larger than 1 MiB"),
        ((200, gzip.compress(b"") * 60_000), "it is larger than 1 MiB"),
    ],
    ids=["gone", "expired", "redirect", "page", "empty", "cut off", "large", "bomb", "many small ones"],
)
def test_what_is_not_the_file_is_an_error_without_the_address(bucket: str, answer: Answer, text: str) -> None:
    Bucket.files["/secret"] = answer
    with pytest.raises(DownloadError) as error:
        read(f"{bucket}/secret?signature=s3cr3t")
    assert str(error.value) == text
    assert [each.partition("?")[0] for each in Bucket.asked] == ["/secret"]


def test_a_bucket_that_takes_its_time_is_not_waited_for(bucket: str) -> None:
    Bucket.pause = 3.0
    with pytest.raises(DownloadError, match=r"the bucket takes longer than 0.2 s"):
        read(f"{bucket}/slow", seconds=0.2)


@pytest.mark.parametrize("url", ["http://127.0.0.1:1/s3cr3t", "file:///etc/passwd", "gopher://x/s3cr3t", "", "s3cr3t"])
def test_an_address_that_leads_nowhere_is_an_error_without_it(url: str) -> None:
    with pytest.raises(DownloadError, match=r"^the bucket cannot be reached$"):
        read(url)


def test_a_bucket_with_an_authority_of_its_own_is_trusted_if_that_is_known(tmp_path: Path) -> None:
    make_authority(tmp_path / "pki")
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(tmp_path / "pki" / "server.crt", tmp_path / "pki" / "server.key")
    packed = gzip.compress(b"log")

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\nConnection: close\r\n\r\n" % len(packed) + packed)
        await writer.drain()
        writer.close()

    async def story() -> None:
        server = await asyncio.start_server(answer, "127.0.0.1", 0, ssl=tls)
        url = f"https://127.0.0.1:{server.sockets[0].getsockname()[1]}/log.gz"
        assert await whole(url, authority=(tmp_path / "pki" / "ca.crt").read_text()) == b"log"
        with pytest.raises(DownloadError, match=r"^the bucket's certificate is not trusted$"):
            await whole(url)
        server.close()
        await server.wait_closed()

    asyncio.run(story())


def test_an_authority_that_is_none_is_an_error() -> None:
    for text in ("nonsense", "-----BEGIN CERTIFICATE-----\nbm9uc2Vuc2U=\n-----END CERTIFICATE-----\n"):
        with pytest.raises(DownloadError, match="cannot be read"):
            trusting(text)


@given(data=st.binary(max_size=300_000), sizes=st.lists(st.integers(1, 5000), min_size=1, max_size=5))
def test_whatever_pieces_a_file_comes_in_it_comes_out_whole(data: bytes, sizes: list[int]) -> None:
    unpacker, packed, found, turn = Unpacker(MIB), gzip.compress(data), b"", 0
    while packed:
        size = sizes[turn % len(sizes)]
        found += b"".join(unpacker.pieces(packed[:size]))
        packed, turn = packed[size:], turn + 1
    unpacker.end()
    assert found == data


def test_a_bomb_never_comes_out_in_large_pieces() -> None:
    unpacker = Unpacker(64 * MIB)
    bomb = zlib.compress(bytes(32 * MIB), 1, wbits=31)
    assert max(len(each) for each in unpacker.pieces(bomb)) <= 64 * 1024
