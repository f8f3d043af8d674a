"""Results of failed requests: events to keys, views, and background reads."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterator
from typing import Any

from foresail.api.velero_files import MOST_BYTES
from foresail.bucket import DownloadError, download, trusting
from foresail.kube.background_reads import BackgroundReads
from foresail.kube.reflector import Change
from foresail.plan import Key
from foresail.selfservice.requests.status import FALSE, SUCCEEDED
from foresail.selfservice.results.decide import FAILED
from foresail.selfservice.results.file import lines_about
from foresail.selfservice.results.observe import Found, ResultsView, Wanted
from foresail.selfservice.rows.download_requests import DownloadRequestRow
from foresail.selfservice.rows.requests import RequestRow
from foresail.selfservice.state.cluster import ClusterState

_log = logging.getLogger(__name__)

WORD = "results"
"""The prefix of the keys of results."""

_SECONDS = 30.0

Fetch = Callable[[Wanted], Awaitable[Found]]


async def fetch(wanted: Wanted) -> Found:
    """Read the results, and keep the lines that the tenant may see."""
    try:
        tls = trusting(wanted.authority)
        pieces = [each async for each in download(wanted.url, most=MOST_BYTES, seconds=_SECONDS, tls=tls)]
        lines = await asyncio.to_thread(lines_about, wanted.namespace, b"".join(pieces))
    except DownloadError as error:
        return Found(problem=str(error))
    except Exception as error:  # noqa: BLE001 - whatever one file does to us must not end the work on all others
        _log.warning("reading results for namespace %s failed: %s", wanted.namespace, type(error).__name__)
        return Found(problem="internal error, see the operator's log")
    return Found(lines) if lines is not None else Found(problem="not in Velero's format")


class Results:
    """The results that are being read, and the DownloadRequests for them."""

    def __init__(self, cluster: ClusterState, background_reads: BackgroundReads[Any, Any]) -> None:
        self._cluster = cluster
        self._background_reads = background_reads

    def key(self, request: Key) -> Key:
        """Return the key under which the results of a request are reconciled, from the key of the request."""
        return Key(request.namespace, f"{WORD}/{request.name}")

    # Events to keys

    def keys_for_request(self, request: Key, change: Change[RequestRow]) -> Iterator[Key]:
        """Return the key of the results, if the request has failed or a DownloadRequest is left of it."""
        row = change.new or change.old
        reported = row.status.condition(SUCCEEDED) if row is not None else None
        has_failed = reported is not None and reported.status == FALSE and reported.reason in FAILED
        if has_failed or self._answers(request):
            yield self.key(request)

    def keys_for_answer(self, change: Change[DownloadRequestRow]) -> Iterator[Key]:
        """Return the key of the results for a DownloadRequest."""
        row = change.new or change.old
        if row is not None and row.results_of is not None:
            yield self.key(row.results_of)

    # Views

    def observe(self, key: Key, request_key: Key) -> ResultsView | None:
        """Collect the view of the results of a request; None if the request cannot be decoded."""
        cluster = self._cluster
        plural, _, name = request_key.name.partition("/")
        family, at = cluster.of_plural(plural), Key(request_key.namespace, name)
        request, answers = family.requests.get(at), self._answers(request_key)
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
            namespace=cluster.namespace(request_key.namespace),
            velero=row,
            backup=backup,
            answers=answers,
            authority=cluster.authority_of(backup),
            read_result=self._background_reads.result(key),
        )

    def _answers(self, request: Key) -> tuple[DownloadRequestRow, ...]:
        return tuple(self._cluster.download_requests.by("results of", request))
