"""The labels of namespaces for admission: which events concern them, and what was last written."""

from collections.abc import Iterable, Iterator
from datetime import datetime

from foresail.api.selectors import selects
from foresail.kube.execute import Outcome, Result
from foresail.kube.reflector import Change
from foresail.plan import Key, PartKey, Plan
from foresail.selfservice.policy.admission import FORGOTTEN, WORD, AdmissionView, LabelWrite, decide, times_undone
from foresail.selfservice.requests.state import ClusterState
from foresail.tenancy.namespaces import NamespaceRow
from foresail.tenancy.policies import PolicyRow


class NamespaceLabels:
    """The controller of these labels: maps changes of namespaces and policies to namespaces where they may be wrong."""

    view = AdmissionView
    decide = staticmethod(decide)
    parts = (WORD,)

    def __init__(self, cluster: ClusterState) -> None:
        self._cluster = cluster
        self._written: dict[str, LabelWrite] = {}  # by the name of the namespace

    def namespace_deleted(self, name: str) -> None:
        """Forget a namespace."""
        self._written.pop(name, None)

    def keys_for_namespace(self, change: Change[NamespaceRow]) -> Iterator[Key]:
        """Return a namespace whose labels have changed."""
        old = change.old
        new = change.new
        if old is None or new is None or (old.labels, old.admission) != (new.labels, new.admission):
            yield _key(change.key.name)

    def keys_for_policy(self, change: Change[PolicyRow]) -> Iterator[Key]:
        """Return the namespaces that a policy selects, or selected before it was changed."""
        rows = [row for row in (change.old, change.new) if row is not None]
        if len(rows) > 1 and _choice(rows[0]) == _choice(rows[1]):
            return
        for key in self._cluster.namespaces:
            namespace = self._cluster.namespaces.get(key)
            if namespace is not None and any(selects(row.spec.namespace_selector, namespace.labels) for row in rows):
                yield _key(key.name)

    def observe(self, key: PartKey, _: datetime) -> AdmissionView | None:
        """Collect what is known about the labels of a namespace."""
        name = key.name
        namespace = self._cluster.namespace(name)
        if namespace is None:
            return None
        return AdmissionView(name, namespace, self._cluster.admission_labels(name, namespace), self._written.get(name))

    def settled(
        self, _: PartKey, view: AdmissionView | None, plan: Plan, result: Result, now: datetime
    ) -> Iterable[Key]:
        """Remember what was written."""
        if view is not None and plan.actions and result.outcome is Outcome.DONE:
            self._remember(view, now)
        return ()

    def _remember(self, view: AdmissionView, now: datetime) -> None:
        self._written.pop(view.name, None)
        self._written[view.name] = LabelWrite(view.labels, now, times_undone(view, now))
        oldest = next(iter(self._written))
        if now > self._written[oldest].at + FORGOTTEN:
            del self._written[oldest]


def _choice(policy: PolicyRow) -> tuple[object, ...]:
    spec = policy.spec
    return spec.namespace_selector, spec.velero_annotations, spec.backup.file_system


def _key(name: str) -> PartKey:
    return PartKey(name, name, WORD)
