"""What is known of downloads, and whom a change concerns: a part of the controller of self-service."""

from collections.abc import Iterator

from foresail.api import velero
from foresail.api.requests import NON_ADMIN_DOWNLOAD_REQUEST
from foresail.kube.reflector import Change
from foresail.kube.store import Store
from foresail.plan import Key
from foresail.selfservice.access.observe import PREFIXES
from foresail.selfservice.downloads.decide import family_of
from foresail.selfservice.downloads.observe import AnswerRow, DownloadRow
from foresail.selfservice.families import Family


class Downloads:
    """NonAdminDownloadRequests, and the DownloadRequests that were made for them."""

    kind = NON_ADMIN_DOWNLOAD_REQUEST
    velero = velero.DOWNLOAD_REQUEST

    def __init__(self) -> None:
        self.requests = Store[DownloadRow](
            {
                "open here": lambda row: [] if row.url else [row.key.namespace],
                "open about": lambda row: [] if row.url else [_about(row)],
            }
        )
        self.answers = Store[AnswerRow](
            {
                "for": lambda row: [row.owner] if row.owner is not None else [],
                "results of": lambda row: [row.results_of] if row.results_of is not None else [],
                "contents of": lambda row: [row.target.name] if _is_about_contents(row) else [],
            }
        )

    def key(self, key: Key) -> Key:
        """Return the key under which a request is looked at."""
        return Key(key.namespace, f"{self.kind.plural}/{key.name}")

    def of_request(self, change: Change[DownloadRow]) -> Iterator[Key]:
        """Return whom the change of a request concerns."""
        yield self.key(change.key)

    def of_answer(self, change: Change[AnswerRow]) -> Iterator[Key]:
        """Return whom an answer of Velero's concerns."""
        row = change.new or change.old
        if row is not None and row.owner is not None:
            yield self.key(row.owner)

    def about(self, family: Family, key: Key) -> Iterator[Key]:
        """Return those that have no URL yet and wait for one of a backup or a restore."""
        return (self.key(row.key) for row in self.requests.by("open about", (family.word, key)))

    def unanswered(self) -> Iterator[Key]:
        """Return those of all namespaces that have no URL yet."""
        return (self.key(row.key) for row in self.requests.rows() if not row.url)

    def here(self, namespace: str) -> Iterator[Key]:
        """Return those of a namespace that have no URL yet."""
        return (self.key(row.key) for row in self.requests.by("open here", namespace))


def _is_about_contents(row: AnswerRow) -> bool:
    prefix = PREFIXES.get(row.target.kind)
    return prefix is not None and row.key.name.startswith(prefix) and row.owner is None


def _about(row: DownloadRow) -> tuple[str, Key]:
    return family_of(row.target.kind).word, Key(row.key.namespace, row.target.name)
