"""The controller of NonAdminDownloadRequests: what is known of them, and which events concern them."""

from collections.abc import Iterable, Iterator
from datetime import datetime
from typing import Any

from foresail.api.nonadmin import NON_ADMIN_DOWNLOAD_REQUEST
from foresail.kube.background_reads import BackgroundReads
from foresail.kube.execute import Outcome, Result
from foresail.kube.reflector import Change
from foresail.kube.store import Store
from foresail.plan import Key, PartKey, Plan
from foresail.selfservice.downloads.decide import MOST_UNANSWERED, PROCESSED, decide, family_of, is_over
from foresail.selfservice.downloads.view import Asks, DownloadRow, DownloadView
from foresail.selfservice.families import Family
from foresail.selfservice.reasons import Reason
from foresail.selfservice.requests.rules import UNSEEN
from foresail.selfservice.requests.state import ClusterState
from foresail.selfservice.rows.velero import DownloadRequestRow


class Downloads:
    """The store of NonAdminDownloadRequests."""

    view = DownloadView
    decide = staticmethod(decide)
    kind = NON_ADMIN_DOWNLOAD_REQUEST
    parts = (kind.plural,)

    def __init__(self, cluster: ClusterState, background_reads: BackgroundReads[Any, Any]) -> None:
        self._cluster = cluster
        self._background_reads = background_reads
        self._asked: dict[str, dict[Key, datetime]] = {}  # by namespace: asked for, and until when it need not be seen
        self.requests = Store[DownloadRow](
            {
                "in": lambda row: [row.key.namespace],
                "open in": lambda row: [] if row.url else [row.key.namespace],
                "open about": lambda row: [] if row.url else [_about(row)],
                "queued in": lambda row: [row.key.namespace] if _is_queued(row) else [],
            }
        )

    def key(self, key: Key) -> PartKey:
        """Return the key under which a request is reconciled."""
        return PartKey(key.namespace, key.name, self.kind.plural)

    # Events to keys

    def keys_for_request(self, change: Change[DownloadRow]) -> Iterator[Key]:
        """Return the key of a request that has changed."""
        yield self.key(change.key)

    def keys_for_answer(self, change: Change[DownloadRequestRow]) -> Iterator[Key]:
        """Return the request that a DownloadRequest was made for, and those that an answer makes room for."""
        old = change.old
        new = change.new
        row = new or old
        if row is None or row.owner is None:
            return
        yield self.key(row.owner)
        if old is not None and not old.url and (new is None or new.url):
            queued = self.requests.by("queued in", row.owner.namespace)
            yield from (self.key(download.key) for download in queued[:MOST_UNANSWERED])

    def keys_about(self, family: Family, key: Key) -> Iterator[Key]:
        """Return those that have no URL yet and wait for one of a backup or a restore."""
        return (self.key(row.key) for row in self.requests.by("open about", (family.word, key)))

    def open_keys(self) -> Iterator[Key]:
        """Return those of all namespaces that have no URL yet."""
        return (self.key(row.key) for row in self.requests.rows() if not row.url)

    def open_keys_in(self, namespace: str) -> Iterator[Key]:
        """Return those of a namespace that have no URL yet."""
        return (self.key(row.key) for row in self.requests.by("open in", namespace))

    # What Velero was asked for and is not observed yet

    def begin(self, _: PartKey, view: DownloadView, plan: Plan, now: datetime) -> Iterable[Key]:
        """Count a file as asked for before the request is written."""
        asked = plan.claim(Asks)
        if view.request is not None and asked is not None:
            namespace = view.request.key.namespace
            self._asked[namespace] = {**self._unseen(namespace, now), asked.key: now + UNSEEN}
        return ()

    def settled(
        self, key: PartKey, view: DownloadView | None, plan: Plan, result: Result, now: datetime
    ) -> Iterable[Key]:
        """Forget what is observed, or was not asked for after all; return who may ask instead."""
        if view is None or (not plan.reads and is_over(view)):
            self._background_reads.forget(key)
        self._forget_seen(key.namespace, now)
        return self._release(view, plan) if view is not None and result.outcome is not Outcome.DONE else ()

    def _forget_seen(self, namespace: str, now: datetime) -> None:
        """Forget what was asked for and is observed, or is of a namespace without downloads."""
        unseen = self._unseen(namespace, now) if self.requests.by("in", namespace) else {}
        if unseen:
            self._asked[namespace] = unseen
        else:
            self._asked.pop(namespace, None)

    def _release(self, view: DownloadView, plan: Plan) -> Iterator[Key]:
        """Forget a file that was not asked for after all; return who may ask instead."""
        asked = plan.claim(Asks)
        if view.request is not None and asked is not None:
            namespace = view.request.key.namespace
            self._asked.get(namespace, {}).pop(asked.key, None)
            yield from (self.key(download.key) for download in self.requests.by("queued in", namespace)[:1])

    def _unanswered(self, namespace: str, now: datetime) -> int:
        rows = self._cluster.download_requests
        return len(rows.by("unanswered in", namespace)) + len(self._unseen(namespace, now))

    def _unseen(self, namespace: str, now: datetime) -> dict[Key, datetime]:
        asked = self._asked.get(namespace, {})
        rows = self._cluster.download_requests
        return {key: until for key, until in asked.items() if until > now and key not in rows}

    # What a decision sees

    def observe(self, part_key: PartKey, now: datetime) -> DownloadView | None:
        """Collect what is known about a download; of one that cannot be read, nothing."""
        key = part_key.object
        cluster = self._cluster
        request = self.requests.get(key)
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
            unanswered=self._unanswered(key.namespace, now),
            allows_contents=policy is not None and policy.spec.downloads.contents == "Allowed",
            reserved=cluster.reserved,
            read_result=self._background_reads.result(part_key),
        )


def _is_queued(row: DownloadRow) -> bool:
    stands = row.status.condition(PROCESSED)
    return not row.url and stands is not None and stands.reason == Reason.WAITING_FOR_TURN


def _about(row: DownloadRow) -> tuple[str, Key]:
    return family_of(row.target.kind).word, Key(row.key.namespace, row.target.name)
