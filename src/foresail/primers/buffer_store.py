"""The stores of CapacityBuffers and PodTemplates of Primers, and what is learned from them."""

from collections.abc import Callable, Container, Iterable, Iterator, Mapping
from datetime import UTC, datetime
from typing import NamedTuple

from foresail.api.capacity_buffers import POD_TEMPLATE, CapacityBuffer, StoredTemplate
from foresail.api.marks import PRIMER_LABEL
from foresail.kube.controller import Informer
from foresail.kube.reflector import Change, WatchSpec
from foresail.kube.store import Store
from foresail.plan import Create, Key, Kind
from foresail.primers.buffer_rows import (
    BufferedPods,
    BufferRow,
    BufferSupport,
    TemplateRow,
    buffer_row,
    expected_pods,
    template_row,
)
from foresail.primers.cluster_rows import NodeRow
from foresail.primers.held_count import HeldCount
from foresail.primers.metrics import PrimerMetrics
from foresail.primers.observe import Target
from foresail.primers.rows import PrimerRow

KeysFor = Callable[[str], Iterable[Key]]
"""Returns the keys of the Primer with that UID, or of those that a quota blocks in that namespace."""

_LONG_AGO = datetime.min.replace(tzinfo=UTC)


class BufferSet(NamedTuple):
    """Buffers, and their PodTemplates."""

    buffers: tuple[BufferRow, ...]
    templates: tuple[TemplateRow, ...]

    def of_cron_job(self, cron_job_uid: str) -> "BufferSet":
        """Return those for one CronJob."""
        return self._matching(lambda uid: uid == cron_job_uid)

    def strays(self, cron_job_uids: Container[str]) -> "BufferSet":
        """Return those for no CronJob of these."""
        return self._matching(lambda uid: uid not in cron_job_uids)

    def _matching(self, matches: Callable[[str], bool]) -> "BufferSet":
        buffers = (row for row in self.buffers if matches(row.target_uid))
        return BufferSet(tuple(buffers), tuple(row for row in self.templates if matches(row.target_uid)))


class BufferStore:
    """Everything that a controller knows of buffers."""

    def __init__(self, kind: Kind, metrics: PrimerMetrics, held: HeldCount) -> None:
        self.kind = kind
        self.buffers = Store[BufferRow](
            {
                "primer": lambda row: [row.primer_uid],
                "namespace": lambda row: [row.key.namespace] if row.is_live else [],
            }
        )
        self.templates = Store[TemplateRow]({"primer": lambda row: [row.primer_uid]})
        self._expected: dict[Key, tuple[BufferedPods, ...]] = {}  # by Primer: the store may not show them yet
        self._metrics, self._held = metrics, held
        self._answered: datetime | None = None
        self._unanswered: datetime | None = None

    def informers(self, keys_for: KeysFor, quota_blocked: KeysFor) -> tuple[Informer, ...]:
        """Return what is watched: only what is ours."""

        def keys(change: Change[BufferRow] | Change[TemplateRow]) -> Iterator[Key]:
            row = change.new or change.old
            if row is not None:
                yield from keys_for(row.primer_uid)

        def buffer_keys(change: Change[BufferRow]) -> Iterator[Key]:
            yield from keys(change)
            if _is_live(change.old) and not _is_live(change.new):
                yield from quota_blocked(change.key.namespace)

        buffers = WatchSpec(self.kind, CapacityBuffer, buffer_row, labels=PRIMER_LABEL, optional=True)
        templates = WatchSpec(POD_TEMPLATE, StoredTemplate, template_row, labels=PRIMER_LABEL)
        return (
            Informer(buffers, self.buffers, buffer_keys, self._learn_buffer),
            Informer(templates, self.templates, keys, self._learn_template),
        )

    def support(self, primer: PrimerRow) -> BufferSupport:
        """Return whether the cluster has buffers, and an autoscaler that answers them, as this Primer is to see it."""
        unanswered = max(_unanswered(primer, self._unanswered), default=None)
        return BufferSupport(self.kind, self.buffers.is_served, self._answered, unanswered)

    def learn_primer(self, row: PrimerRow) -> None:
        """Take in when an autoscaler has not answered, as the status of a Primer records it."""
        self._unanswered = max(_unanswered(row, self._unanswered), default=None)

    def _learn_buffer(self, change: Change[BufferRow]) -> Iterable[Key]:
        new = change.new
        if new is not None and new.ready == "True" and (self._answered is None or new.created > self._answered):
            self._answered = new.created
        self._held.learn(change.old, new)
        self._measure(change)
        return ()

    def _learn_template(self, change: Change[TemplateRow]) -> Iterable[Key]:
        """Measure the buffer of a PodTemplate also if it was observed before it."""
        row = self.buffers.get(change.key)
        if row is not None and change.old is None:
            self._measure(Change(row.key, row, row, initial=change.initial))
        return ()

    def learn_owner(self, uid: str, *, initial: bool) -> None:
        """Measure the buffers of a Primer or a CronJob also if they were observed before it."""
        for row in self.buffers.by("primer", uid):
            self._measure(Change(row.key, row, row, initial=initial))

    def _measure(self, change: Change[BufferRow]) -> None:
        row = change.new or change.old
        template = self.templates.get(change.key)
        if row is not None:
            requests = template.requests if template is not None else None
            self._metrics.learn_buffer(change, requests, is_owned=self._held.is_owned(row))

    def of_primer(self, primer: PrimerRow) -> BufferSet:
        """Return what was created for a Primer, in its own namespace: marks elsewhere are forged."""
        here = primer.key.namespace
        buffers = (row for row in self.buffers.by("primer", primer.uid) if row.key.namespace == here)
        templates = (row for row in self.templates.by("primer", primer.uid) if row.key.namespace == here)
        return BufferSet(tuple(buffers), tuple(templates))

    def count(self, index: str, value: str) -> int:
        """Return how many buffers and PodTemplates an index has under a value."""
        return self.buffers.count(index, value) + self.templates.count(index, value)

    def in_namespace(self, primer: Key) -> tuple[BufferedPods, ...]:
        """Return what counts against the quotas of a namespace beside its pods, except what this Primer creates.

        Each of its Plans decides that again.
        """
        live = (_buffered(row, self.templates.get(row.key)) for row in self.buffers.by("namespace", primer.namespace))
        others = (pods for key, made in self._expected.items() if key != primer for pods in made)
        return (*live, *(pods for pods in others if self._is_to_come(pods, primer.namespace)))

    def _is_to_come(self, expected: BufferedPods, namespace: str) -> bool:
        return expected.key.namespace == namespace and expected.key not in self.buffers

    def expect(self, primer: Key, creations: Iterable[Create]) -> None:
        """Count the buffers that a Plan creates before the store shows them, instead of those of the Plan before."""
        made = list(creations)
        pods_to_come = (
            expected_pods(create, made)
            for create in made
            if create.kind == self.kind and create.key not in self.buffers
        )
        expected = tuple(_known(pods, self.templates.get(pods.key)) for pods in pods_to_come)
        if expected:
            self._expected[primer] = expected
        else:
            self._expected.pop(primer, None)

    def expected_keys(self, action: Create) -> Iterable[Key]:
        """Return a key for each pod that a creation is to hold room for, until the store shows the buffer."""
        if action.kind != self.kind or action.key in self.buffers:
            return ()
        spec = action.body.get("spec")
        count = spec.get("replicas", 0) if isinstance(spec, dict) else 0
        return (Key(action.key.namespace, f"{action.key.name}/{number}") for number in range(count))


def _is_live(row: BufferRow | None) -> bool:
    return row is not None and row.is_live


def _buffered(row: BufferRow, template: TemplateRow | None) -> BufferedPods:
    return _known(BufferedPods(row.key, row.replicas, None), template)


def _known(pods: BufferedPods, template: TemplateRow | None) -> BufferedPods:
    if pods.requests is not None or template is None:
        return pods
    return BufferedPods(pods.key, pods.count, template.requests, template.limits)


def _unanswered(row: PrimerRow, known: datetime | None) -> list[datetime]:
    recorded = (job.buffer_unanswered for job in row.status.cron_jobs)
    return [instant for instant in (known, *recorded) if instant is not None]


def pools_to_explain(primer: PrimerRow, targets: Iterable[Target], nodes: Mapping[str, NodeRow]) -> set[str]:
    """Return the pools in which runs have begun, but are not recorded yet, that a buffer held capacity for."""
    primed = primer.status.cron_jobs
    held = {each.uid: each.warming.fire for each in primed if each.warming is not None and each.warming.buffer}
    measured = {each.uid: each.start_delays[-1].fire for each in primed if each.start_delays}
    new = [
        target for target in targets if held.get(target.cron.uid, _LONG_AGO) > measured.get(target.cron.uid, _LONG_AGO)
    ]
    return {nodes[pod.node].pool for each in new for pod in each.pods if pod.began and pod.node in nodes}
