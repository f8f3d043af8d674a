"""Reads a packed file from a bucket behind a signed URL: only from there, for so long, and at most so much of it.

Whoever has such a URL can read the file, so no error names it.
"""

import ssl
import zlib
from collections.abc import AsyncIterator, Iterator
from http import HTTPStatus

import aiohttp

_GZIP = 31  # zlib expects a gzip header and the largest window
_PIECE = 64 * 1024
_CONNECT = 10.0  # seconds


class DownloadError(Exception):
    """Why a file could not be read, in a few words without its address."""


class MissingFileError(DownloadError):
    """The bucket has no such file."""


class TooLargeError(DownloadError):
    """The file is larger than allowed."""


class Unpacker:
    """Unpacks gzip piece by piece; what would become larger than allowed ends there, however small it came."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._packed = self._unpacked = 0
        self._inflate = zlib.decompressobj(_GZIP)
        self._is_whole = False

    def pieces(self, packed: bytes) -> Iterator[bytes]:
        """Return what comes out of the next packed bytes, at most 64 KiB at a time."""
        self._packed = self._bounded(self._packed + len(packed))
        while packed:
            piece = b"-"
            while packed or len(piece) == _PIECE:
                piece = self._inflated(packed)
                packed = self._inflate.unconsumed_tail
                if piece:
                    self._unpacked = self._bounded(self._unpacked + len(piece))
                    yield piece
            self._is_whole = self._inflate.eof
            if self._is_whole:
                packed = self._inflate.unused_data  # another packed piece may follow the first
                self._inflate = zlib.decompressobj(_GZIP)

    def end(self) -> None:
        """Finish: there is no more input."""
        if not self._is_whole:
            raise DownloadError("it ends in the middle")

    def _inflated(self, packed: bytes) -> bytes:
        try:
            return self._inflate.decompress(packed, _PIECE)
        except zlib.error:
            raise DownloadError("it is not a gzip file") from None

    def _bounded(self, size: int) -> int:
        if size > self._most:
            raise TooLargeError(f"it is larger than {self._most >> 20} MiB")
        return size


async def download(url: str, *, most: int, seconds: float, tls: ssl.SSLContext) -> AsyncIterator[bytes]:
    """Yield a file unpacked, piece by piece; a redirect is an answer like any other that is not the file."""
    unpacker = Unpacker(most)
    try:
        async with (
            aiohttp.ClientSession(
                connector=aiohttp.TCPConnector(ssl=tls),
                timeout=aiohttp.ClientTimeout(total=seconds, sock_connect=_CONNECT),
                headers={"Accept-Encoding": "identity"},
                auto_decompress=False,
            ) as session,
            session.get(url, allow_redirects=False) as reply,
        ):
            if reply.status == HTTPStatus.NOT_FOUND:
                raise MissingFileError(f"the bucket answers {reply.status}")
            if reply.status != HTTPStatus.OK:
                raise DownloadError(f"the bucket answers {reply.status}")
            async for packed in reply.content.iter_chunked(_PIECE):
                for piece in unpacker.pieces(packed):
                    yield piece
        unpacker.end()
    except TimeoutError:
        raise DownloadError(f"the bucket takes longer than {seconds:g} s") from None
    except aiohttp.ClientSSLError:
        raise DownloadError("the bucket's certificate is not trusted") from None
    except (aiohttp.ClientError, OSError, ValueError):
        raise DownloadError("the bucket cannot be reached") from None


def trusting(authority: str = "") -> ssl.SSLContext:
    """Return the trusted CAs: those of this machine, and one more in PEM."""
    context = ssl.create_default_context()
    context.verify_flags &= ~ssl.VERIFY_X509_STRICT  # as with Velero; Python from 3.13 on refuses many a private CA
    if authority:
        try:
            context.load_verify_locations(cadata=authority)
        except (ssl.SSLError, ValueError):
            raise DownloadError("the certificate authority of the bucket cannot be read") from None
    return context
