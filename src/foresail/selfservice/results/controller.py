"""What is known of the results of failed backups and restores, whom a change concerns, and how they are read."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterator

from foresail.bucket import DownloadError, download, trusting
from foresail.kube.reflector import Change
from foresail.kube.store import Store
from foresail.plan import Key
from foresail.selfservice.downloads.observe import AnswerRow
from foresail.selfservice.requests.status import FALSE, SUCCEEDED
from foresail.selfservice.results import decide as results
from foresail.selfservice.results.file import MOST_BYTES, lines_about
from foresail.selfservice.results.observe import Found, Wanted
from foresail.selfservice.rows.locations import LocationRow
from foresail.selfservice.rows.requests import RequestRow

_log = logging.getLogger(__name__)

WORD = "results"
_SECONDS = 30.0

Fetch = Callable[[Wanted], Awaitable[Found]]


async def fetch(wanted: Wanted) -> Found:
    """Read the results, and keep of them what the tenant may know."""
    try:
        tls = trusting(wanted.authority)
        pieces = [each async for each in download(wanted.url, most=MOST_BYTES, seconds=_SECONDS, tls=tls)]
        lines = await asyncio.to_thread(lines_about, wanted.namespace, b"".join(pieces))
    except DownloadError as error:
        return Found(problem=str(error))
    except Exception as error:  # noqa: BLE001 - whatever one file does to us must not end the work on all others
        _log.warning("reading results for namespace %s failed: %s", wanted.namespace, type(error).__name__)
        return Found(problem="the operator could not")
    return Found(lines) if lines is not None else Found(problem="they are not as Velero writes them")


class Results:
    """The results that are being read, and the DownloadRequests for them."""

    def __init__(self, answers: Store[AnswerRow]) -> None:
        self.locations = Store[LocationRow]()
        self._answers = answers

    def key(self, asked: Key) -> Key:
        """Return the key under which the results of a request are looked at, from the key of that request's looks."""
        return Key(asked.namespace, f"{WORD}/{asked.name}")

    def answers(self, asked: Key) -> tuple[AnswerRow, ...]:
        """Return the DownloadRequests for the results of a request."""
        return tuple(self._answers.by("results of", asked))

    def of_request(self, asked: Key, change: Change[RequestRow]) -> Iterator[Key]:
        """Return whom a change of a request concerns: those that have failed, and those of which something is left."""
        row = change.new or change.old
        stands = row.status.condition(SUCCEEDED) if row is not None else None
        if (stands is not None and stands.status == FALSE and stands.reason in results.FAILED) or self.answers(asked):
            yield self.key(asked)

    def of_answer(self, change: Change[AnswerRow]) -> Iterator[Key]:
        """Return whom an answer of Velero's concerns."""
        row = change.new or change.old
        if row is not None and row.results_of is not None:
            yield self.key(row.results_of)
