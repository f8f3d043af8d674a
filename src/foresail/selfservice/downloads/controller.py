"""NonAdminDownloadRequests: what is known of them, which events concern them, and what a decision about one sees."""

from collections.abc import Iterator
from typing import Any

from foresail.api.requests import NON_ADMIN_DOWNLOAD_REQUEST
from foresail.kube.background_reads import BackgroundReads
from foresail.kube.reflector import Change
from foresail.kube.store import Store
from foresail.plan import Key
from foresail.selfservice.downloads.decide import family_of
from foresail.selfservice.downloads.observe import DownloadRow, DownloadView
from foresail.selfservice.families import Family
from foresail.selfservice.rows.download_requests import DownloadRequestRow
from foresail.selfservice.state.cluster import ClusterState


class Downloads:
    """The store of NonAdminDownloadRequests."""

    kind = NON_ADMIN_DOWNLOAD_REQUEST

    def __init__(self, cluster: ClusterState, background_reads: BackgroundReads[Any, Any]) -> None:
        self._cluster = cluster
        self._background_reads = background_reads
        self.requests = Store[DownloadRow](
            {
                "open in": lambda row: [] if row.url else [row.key.namespace],
                "open about": lambda row: [] if row.url else [_about(row)],
            }
        )

    def key(self, key: Key) -> Key:
        """Return the key under which a request is reconciled."""
        return Key(key.namespace, f"{self.kind.plural}/{key.name}")

    # Events to keys

    def keys_for_request(self, change: Change[DownloadRow]) -> Iterator[Key]:
        """Return the key of a request that has changed."""
        yield self.key(change.key)

    def keys_for_answer(self, change: Change[DownloadRequestRow]) -> Iterator[Key]:
        """Return the request that a DownloadRequest was made for."""
        row = change.new or change.old
        if row is not None and row.owner is not None:
            yield self.key(row.owner)

    def keys_about(self, family: Family, key: Key) -> Iterator[Key]:
        """Return those that have no URL yet and wait for one of a backup or a restore."""
        return (self.key(row.key) for row in self.requests.by("open about", (family.word, key)))

    def open_keys(self) -> Iterator[Key]:
        """Return those of all namespaces that have no URL yet."""
        return (self.key(row.key) for row in self.requests.rows() if not row.url)

    def open_keys_in(self, namespace: str) -> Iterator[Key]:
        """Return those of a namespace that have no URL yet."""
        return (self.key(row.key) for row in self.requests.by("open in", namespace))

    # What a decision sees

    def observe(self, key: Key) -> DownloadView | None:
        """Collect what is known about a download; of one that cannot be read, nothing."""
        cluster, request = self._cluster, self.requests.get(key)
        answers = tuple(cluster.download_requests.by("for", key))
        if request is None:
            is_deleted = key not in self.requests.unread
            return DownloadView(None, cluster.velero_namespace, answers=answers) if is_deleted and answers else None
        family = cluster.of(family_of(request.target.kind))
        about = family.requests.get(Key(key.namespace, request.target.name))
        row, backup = cluster.velero_rows(family, about) if about is not None else (None, None)
        policy = cluster.policy(key.namespace)
        return DownloadView(
            request=request,
            velero_namespace=cluster.velero_namespace,
            namespace=cluster.namespace(key.namespace),
            about=about,
            velero=row,
            backup=backup,
            answers=answers,
            has_policy=policy is not None,
            allows_contents=policy is not None and policy.spec.downloads.contents == "Allowed",
            reserved=cluster.reserved,
            read_result=self._background_reads.result(self.key(key)),
        )


def _about(row: DownloadRow) -> tuple[str, Key]:
    return family_of(row.target.kind).word, Key(row.key.namespace, row.target.name)
