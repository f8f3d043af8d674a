"""The controller of Rollbacks: what it watches, how changes map to keys, and which `decide` it calls."""

from collections.abc import Awaitable, Callable, Iterable, Iterator
from datetime import datetime

from foresail.api import core
from foresail.api.marks import ROLLBACK_UID
from foresail.api.policy import SELF_SERVICE_POLICY, SelfServicePolicy
from foresail.api.rollback import ROLLBACK, Rollback
from foresail.kube.background_reads import BackgroundReads
from foresail.kube.controller import Informer
from foresail.kube.execute import Outcome, Result
from foresail.kube.reflector import Change, WatchSpec
from foresail.plan import Key, Plan
from foresail.rollback import rules
from foresail.rollback.decide import decide
from foresail.rollback.kept import keep_or_release
from foresail.rollback.metrics import RollbackMetrics
from foresail.rollback.rows import MarkedVolume, kept_row, rollback_row
from foresail.rollback.state import RollbackState
from foresail.rollback.view import Findings, KeptRow, KeptView, RollbackRow, RollbackView, Survey
from foresail.tenancy.namespaces import NamespaceRow, namespace_row
from foresail.tenancy.policies import ChartLimits, PolicyRow, policy_row

ReadSurvey = Callable[[Survey], Awaitable[Findings]]
"""Reads what a decision about a Rollback needs, live."""


class Rollbacks:
    """Brings namespaces back to a backup, in place, and undoes that."""

    name = "rollback"

    def __init__(
        self,
        velero_namespace: str,
        read_survey: ReadSurvey,
        never: Iterable[str] = (),
        chart: ChartLimits | None = None,
    ) -> None:
        self.state = RollbackState(velero_namespace, never, chart or ChartLimits())
        self.background_reads = BackgroundReads[Survey, Findings](read_survey, concurrency=8)
        self.metrics = RollbackMetrics(self.state.rollbacks)

    @property
    def informers(self) -> tuple[Informer, ...]:
        """Rollbacks, namespaces, policies and old volumes; everything else is read live while a Rollback runs."""
        state = self.state
        rollbacks = WatchSpec(ROLLBACK, Rollback, rollback_row)
        volumes = WatchSpec(core.VOLUME, MarkedVolume, kept_row, labels=ROLLBACK_UID)
        namespaces = WatchSpec(core.NAMESPACE, core.Namespace, namespace_row)
        policies = WatchSpec(SELF_SERVICE_POLICY, SelfServicePolicy, lambda wire: policy_row(wire, state.chart))
        return (
            Informer(rollbacks, state.rollbacks, self._for_rollback),
            Informer(namespaces, state.namespaces, self._for_namespace),
            Informer(policies, state.policies, self._for_policy),
            Informer(volumes, state.kept, self._for_volume),
        )

    def _for_rollback(self, change: Change[RollbackRow]) -> Iterator[Key]:
        """Return a Rollback, and those that wait for its end, or can no longer be undone because of it."""
        yield change.key
        yield from self._volumes_of(change)
        was_first = change.old is not None and (rules.is_in_progress(change.old) or change.old.status.phase == "New")
        is_over = change.new is None or not (rules.is_in_progress(change.new) or change.new.status.phase == "New")
        old = change.old.status.restore_started if change.old is not None else None
        begins = change.new is not None and change.new.status.restore_started != old
        if (was_first and is_over) or begins:
            yield from self._waiting(change.key.namespace)

    def _volumes_of(self, change: Change[RollbackRow]) -> Iterator[Key]:
        row = change.new or change.old
        return (Key("", volume.volume) for volume in row.status.volumes) if row is not None else iter(())

    def _for_volume(self, change: Change[KeptRow]) -> Iterator[Key]:
        yield change.key

    def _for_namespace(self, change: Change[NamespaceRow]) -> Iterator[Key]:
        if change.old != change.new:
            yield from (row.key for row in self.state.rollbacks.by("namespace", change.key.name))

    def _for_policy(self, change: Change[PolicyRow]) -> Iterator[Key]:
        if change.old != change.new:
            yield from (row.key for row in self.state.rollbacks.rows() if row.status.phase == "New")

    def _waiting(self, namespace: str) -> Iterator[Key]:
        rows = self.state.rollbacks.by("namespace", namespace)
        return (row.key for row in rows if row.status.phase in ("New", "Completed"))

    def observe(self, key: Key, _now: datetime) -> RollbackView | KeptView | None:
        """Collect what is known about a Rollback, or a volume that one keeps; None if it is deleted."""
        read = self.background_reads.result(key)
        return self.state.view(key, read) if key.namespace else self.state.kept_view(key, read)

    def decide(self, view: RollbackView | KeptView, now: datetime) -> Plan:
        """Return the Plan."""
        return keep_or_release(view, now) if isinstance(view, KeptView) else decide(view, now)

    def settled(
        self, key: Key, view: RollbackView | KeptView | None, plan: Plan, result: Result, _now: datetime
    ) -> Iterable[Key]:
        """Forget a survey after a write: what it says is of before.

        If nothing could be written, it stays: what is refused for ever is then tried again after longer and longer.
        """
        if view is None or (plan.writes and (result.outcome is not Outcome.FAILED or result.written)):
            self.background_reads.forget(key)
        return (key,) if plan.actions and result.outcome is Outcome.DONE else ()
