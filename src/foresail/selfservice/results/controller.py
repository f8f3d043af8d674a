"""The controller of the results of requests that ended: events to keys, views, and background reads."""

import asyncio
import logging
import ssl
from collections.abc import Awaitable, Callable, Iterable, Iterator
from datetime import datetime
from typing import Any, NamedTuple

from foresail.api.velero_files import MOST_BYTES
from foresail.bucket import DownloadError, download, trusting
from foresail.kube.background_reads import BackgroundReads
from foresail.kube.execute import Result
from foresail.kube.reflector import Change
from foresail.plan import Key, PartKey, Plan
from foresail.selfservice.requests.state import ClusterState, FamilyState
from foresail.selfservice.requests.status import SUCCEEDED, UNKNOWN
from foresail.selfservice.results.decide import decide, has_results, is_over
from foresail.selfservice.results.file import lines_about
from foresail.selfservice.results.restored import restored_items
from foresail.selfservice.results.view import Found, ResultsView, Wanted
from foresail.selfservice.rows.requests import RequestRow
from foresail.selfservice.rows.velero import DownloadRequestRow

_log = logging.getLogger(__name__)

_SECONDS = 30.0

Fetch = Callable[[Wanted], Awaitable[Found]]


async def fetch(wanted: Wanted) -> Found:
    """Read the results, and keep what the tenant may see; a list that cannot be read does not hide the cause."""
    results = Read(b"{}")
    listed = Read(b"{}")
    try:
        tls = trusting(wanted.authority)
        if wanted.url:
            results = await _read(wanted.url, tls)
        if wanted.list_url:
            listed = await _read(wanted.list_url, tls)
        return await asyncio.to_thread(_found, wanted, results, listed)
    except DownloadError as error:
        return Found(problem=str(error))
    except Exception as error:  # noqa: BLE001 - whatever one file does to us must not end the work on all others
        _log.warning("reading results for namespace %s failed: %s", wanted.namespace, type(error).__name__)
        return Found(problem="internal error, see the operator's log")


class Read(NamedTuple):
    """A file, or why it could not be read."""

    content: bytes = b""
    problem: str = ""


async def _read(url: str, tls: ssl.SSLContext) -> Read:
    try:
        pieces = [piece async for piece in download(url, most=MOST_BYTES, seconds=_SECONDS, tls=tls)]
    except DownloadError as error:
        return Read(problem=str(error))
    return Read(b"".join(pieces))


def _found(wanted: Wanted, results: Read, listed: Read) -> Found:
    if results.problem:
        return Found(problem=results.problem)
    lines = None
    restored = None
    problem = listed.problem
    if wanted.url:
        lines = lines_about(wanted.namespace, results.content)
    if wanted.list_url and not problem:
        restored = restored_items(wanted.namespace, listed.content, results.content)
    if not problem and ((wanted.url and lines is None) or (wanted.list_url and restored is None)):
        problem = "not in Velero's format"
    return Found(lines, problem, restored)


class Results:
    """The results that are being read, and the DownloadRequests for them."""

    view = ResultsView
    decide = staticmethod(decide)

    def __init__(self, cluster: ClusterState, background_reads: BackgroundReads[Any, Any]) -> None:
        self._cluster = cluster
        self._background_reads = background_reads
        self._families = {_part(family.family.kind.plural): family for family in cluster.families}

    @property
    def parts(self) -> Iterable[str]:
        """The kinds of requests, each under its own name."""
        return self._families

    def key(self, request: PartKey) -> PartKey:
        """Return the key under which the results of a request are reconciled, from the key of the request."""
        return PartKey(request.namespace, request.name, _part(request.part))

    # Events to keys

    def keys_for_request(self, family: FamilyState, change: Change[RequestRow]) -> Iterator[Key]:
        """Return the key of the results, if the request has ended or a DownloadRequest is left of it."""
        row = change.new or change.old
        reported = row.status.condition(SUCCEEDED) if row is not None else None
        request = family.key(change.key)
        has_ended = reported is not None and reported.status != UNKNOWN and has_results(family.family, reported.reason)
        if has_ended or self._answers(request):
            yield self.key(request)

    def keys_for_answer(self, change: Change[DownloadRequestRow]) -> Iterator[Key]:
        """Return the key of the results for a DownloadRequest."""
        row = change.new or change.old
        if row is not None and row.results_of is not None:
            yield self.key(row.results_of)

    # Views

    def observe(self, key: PartKey, _: datetime) -> ResultsView | None:
        """Collect the view of the results of a request; None if the request cannot be decoded."""
        cluster = self._cluster
        family = self._families[key.part]
        at = key.object
        request = family.requests.get(at)
        answers = self._answers(family.key(at))
        if request is None:
            if not answers or at in family.requests.unread:
                return None
            return ResultsView(key, family.family, None, cluster.velero_namespace, answers=answers)
        row, backup = cluster.velero_rows(family, request)
        return ResultsView(
            key=key,
            family=family.family,
            request=request,
            velero_namespace=cluster.velero_namespace,
            namespace=cluster.namespace(key.namespace),
            velero=row,
            backup=backup,
            answers=answers,
            authority=cluster.authority_of(backup),
            read_result=self._background_reads.result(key),
        )

    def settled(self, key: PartKey, view: ResultsView | None, plan: Plan, _: Result, _now: datetime) -> Iterable[Key]:
        """Forget what was read if no decision needs it any more."""
        if view is None or (not plan.reads and is_over(view)):
            self._background_reads.forget(key)
        return ()

    def _answers(self, request: PartKey) -> tuple[DownloadRequestRow, ...]:
        return tuple(self._cluster.download_requests.by("results of", request))


def _part(plural: str) -> str:
    return f"results/{plural}"
