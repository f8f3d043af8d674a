"""Background reads: the lists and results that Velero stores, what the API server serves, and pods in sandboxes."""

import asyncio
import logging
import socket
from collections.abc import Awaitable, Callable
from typing import Protocol, TypeVar
from urllib.parse import urlsplit

import msgspec
from msgspec.structs import replace

from foresail.api.authorization import Discovery
from foresail.api.pod_problems import ObservedPod
from foresail.api.pods import POD
from foresail.api.velero_files import MOST_BYTES
from foresail.bucket import DownloadError, MissingFileError, TooLargeError, download, trusting
from foresail.kube.failures import Failure
from foresail.kube.pages import Page, PageReader, read_pages
from foresail.proof.checks.contents import contents_of, saved_claims
from foresail.proof.checks.judge import judge
from foresail.proof.checks.kinds import Served, served_kinds
from foresail.proof.checks.rows import PodRow, Pods, PodsFound, pod_row
from foresail.proof.checks.view import Files, FilesFound

_log = logging.getLogger(__name__)
_SECONDS = 60.0
T = TypeVar("T")

Fetch = Callable[[str, str], Awaitable[bytes]]
"""Returns the file at a URL, with an additional CA certificate in PEM."""


ReadFiles = Callable[[Files], Awaitable[FilesFound]]
"""Reads the files of a run."""


class Discovers(Protocol):
    """What is asked of the API server."""

    async def discover(self, of: type[T]) -> T | Failure:
        """List the resources outside the core group."""

    async def version(self, of: type[T]) -> T | Failure:
        """Read the version of the API server."""


class _Version(msgspec.Struct, frozen=True, rename="camel"):
    git_version: str = ""


async def fetch(url: str, authority: str) -> bytes:
    """Read a file from the bucket."""
    pieces = download(url, most=MOST_BYTES, seconds=_SECONDS, tls=trusting(authority))
    return b"".join([piece async for piece in pieces])


async def address(url: str) -> str:
    """Return the address of a bucket as host:port, which a pod without DNS can try; empty if it is not found."""
    parts = urlsplit(url)
    port = parts.port or (80 if parts.scheme == "http" else 443)
    try:
        addresses = await asyncio.get_running_loop().getaddrinfo(parts.hostname or "", port, type=socket.SOCK_STREAM)
    except OSError:
        return ""
    host = addresses[0][4][0] if addresses else ""
    return f"[{host}]:{port}" if ":" in str(host) else f"{host}:{port}"


class FileReader:
    """Reads the files of a run and compares them."""

    def __init__(self, server: Discovers | None, fetch: Fetch = fetch) -> None:
        self._server = server
        self._fetch = fetch

    async def run(self, query: Files) -> FilesFound:
        """Return what the files say, or why they cannot be read."""
        if self._server is None:
            return FilesFound(problem="the API server did not answer")
        discovery = await self._server.discover(Discovery)
        if isinstance(discovery, Failure):
            return FilesFound(problem=f"the API server did not list its resources: {discovery.cause.value}")
        urls = (query.contents, query.restored, query.results, query.volumes)
        try:
            *files, volumes = [await self._fetch(url, query.authority) if url else None for url in urls]
            files_found = await asyncio.to_thread(compared, query, served_kinds(discovery), *files)
            files_found = with_volumes(files_found, volumes)
        except (MissingFileError, TooLargeError) as error:
            return FilesFound(problem=str(error), is_final=True)
        except DownloadError as error:
            return FilesFound(problem=str(error))
        except Exception as error:  # noqa: BLE001 - whatever one file does to us must not end the work on all others
            _log.warning("reading the files of run %s failed: %s", query.run, type(error).__name__)
            return FilesFound(problem="internal error, see the operator's log", is_final=True)
        if query.wanted.has_data:
            files_found = replace(files_found, outside=await address(query.contents))
        version = await self._server.version(_Version)  # of the evidence only: a check does not fail without it
        return files_found if isinstance(version, Failure) else replace(files_found, kubernetes=version.git_version)


def with_volumes(files_found: FilesFound, volumes: bytes | None) -> FilesFound:
    """Add which claims have their data in the backup, if that was asked for."""
    if volumes is None or files_found.problem:
        return files_found
    claims = saved_claims(volumes)
    if claims is None:
        return FilesFound(problem="its list of volumes is not in Velero's format", is_final=True)
    return replace(files_found, claims=claims)


def compared(
    query: Files, served: Served, contents: bytes | None, restored: bytes | None, results: bytes | None
) -> FilesFound:
    """Return what the backup has and, once the restore has ended, the verdict."""
    saved = contents_of(contents or b"", query.wanted, served, query.classes)
    if saved is None:
        return FilesFound(problem="not in Velero's format", is_final=True)
    if not query.phase:
        return FilesFound(saved)
    verdict = judge(saved, dict(query.sandboxes), query.phase, restored, results)
    return FilesFound(verdict=verdict, problem="" if verdict else "not in Velero's format", is_final=verdict is None)


_MOST = 500  # pods of one sandbox
_pod = msgspec.json.Decoder(ObservedPod)
ReadPods = Callable[[Pods], Awaitable[PodsFound]]
"""Reads the pods of sandboxes."""


class SandboxReader:
    """Reads the pods of the sandboxes of one run."""

    def __init__(self, server: PageReader) -> None:
        self._server = server

    async def run(self, query: Pods) -> PodsFound:
        """Return the pods, or why they cannot be read; a new sandbox needs a moment until it may be read."""
        rows: list[PodRow] = []
        for _, sandbox in query.sandboxes:
            own: list[PodRow] = []
            async for page in read_pages(self._server, POD, sandbox, Page):
                if isinstance(page, Failure):
                    return PodsFound(problem=f"the pods in {sandbox} cannot be read: {page.cause.value}")
                own += [pod_row(_pod.decode(raw)) for raw in page.items or ()]
                if len(own) >= _MOST:
                    break
            rows += own[:_MOST]
        return PodsFound(tuple(rows))
