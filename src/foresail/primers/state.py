"""The stores of the primers controller, lookups across them, and which Primers an event concerns."""

from collections import Counter
from collections.abc import Callable, Container, Iterable, Iterator, Mapping
from datetime import UTC, datetime
from typing import NamedTuple, Protocol, TypeVar

from foresail.api.capacity_buffers import POD_TEMPLATE, CapacityBuffer, StoredTemplate
from foresail.api.marks import PRIMER_LABEL
from foresail.kube.controller import Informer
from foresail.kube.reflector import Change, WatchSpec
from foresail.kube.store import Store
from foresail.plan import Create, Key, Kind
from foresail.primers.annotated import annotated_primer, records_a_small_quota
from foresail.primers.buffer_rows import (
    BufferedPods,
    BufferRow,
    BufferSupport,
    TemplateRow,
    buffer_row,
    expected_pods,
    template_row,
)
from foresail.primers.metrics import PrimerMetrics
from foresail.primers.reasons import Reason
from foresail.primers.rows import (
    CronJobRow,
    JobRow,
    NodeRow,
    PlaceholderRow,
    PodRow,
    PrimerRow,
    PriorityRow,
    QuotaRow,
    annotation_key,
)
from foresail.primers.rules import primers_of
from foresail.primers.view import Settings, Target

_Counted = TypeVar("_Counted")
_Holding = PlaceholderRow | BufferRow


class Owner(NamedTuple):
    """A Primer, or a CronJob with annotations: its namespace and its UID."""

    namespace: str
    uid: str


class _Owning(Protocol):
    @property
    def uid(self) -> str: ...


class HeldCount:
    """Counts the pods of placeholders and buffers with known owners, by namespace and in the cluster.

    Anyone who may create them in a namespace can forge one. So no namespace counts for more than its own limit.
    """

    def __init__(self, max_per_namespace: int) -> None:
        self.in_cluster = 0
        self._max_per_namespace = max_per_namespace
        self._in_namespace: Counter[str] = Counter()
        self._by_owner: Counter[Owner] = Counter()
        self._owners = set[Owner]()

    def in_namespace(self, namespace: str) -> int:
        """Return for how many pods capacity is held in a namespace."""
        return self._in_namespace[namespace]

    def learn(self, old: _Holding | None, new: _Holding | None) -> None:
        """Take in the change of a placeholder or of a buffer."""
        for row, sign in ((old, -1), (new, 1)):
            held = _held_by(row) if row is not None else 0
            if row is not None and held:
                owner = _owner_of(row)
                _add(self._by_owner, owner, sign * held)
                if owner in self._owners:
                    self._count(owner.namespace, sign * held)

    def learn_owner(self, namespace: str, old: _Owning | None, new: _Owning | None) -> None:
        """Take in the change of a Primer or of a CronJob."""
        if old is not None and new is not None and old.uid == new.uid:
            return
        if old is not None and (owner := Owner(namespace, old.uid)) in self._owners:
            self._owners.discard(owner)
            self._count(namespace, -self._by_owner[owner])
        if new is not None and (owner := Owner(namespace, new.uid)) not in self._owners:
            self._owners.add(owner)
            self._count(namespace, self._by_owner[owner])

    def is_owned(self, row: _Holding) -> bool:
        """Whether the owner of a placeholder or of a buffer is known in its namespace."""
        return _owner_of(row) in self._owners

    def _count(self, namespace: str, change: int) -> None:
        before = min(self._in_namespace[namespace], self._max_per_namespace)
        _add(self._in_namespace, namespace, change)
        self.in_cluster += min(self._in_namespace[namespace], self._max_per_namespace) - before


def _owner_of(row: _Holding) -> Owner:
    """Return the owner by the mark."""
    return Owner(row.key.namespace, row.primer_uid)


def _held_by(row: _Holding) -> int:
    """Return for how many pods a row holds capacity; none without a whole mark."""
    if not (row.primer_uid and row.target_uid) or row.fire is None:
        return 0
    if isinstance(row, BufferRow):
        return row.replicas if row.is_live else 0
    return int(row.holds)


def _add(counter: Counter[_Counted], key: _Counted, change: int) -> None:
    counter[key] += change
    if not counter[key]:
        del counter[key]


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
        self._metrics = metrics
        self._held = held
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
    held = {
        cron_job.uid: cron_job.warming.fire
        for cron_job in primed
        if cron_job.warming is not None and cron_job.warming.buffer
    }
    measured = {cron_job.uid: cron_job.start_delays[-1].fire for cron_job in primed if cron_job.start_delays}
    new = [
        target for target in targets if held.get(target.cron.uid, _LONG_AGO) > measured.get(target.cron.uid, _LONG_AGO)
    ]
    return {nodes[pod.node].pool for target in new for pod in target.pods if pod.began and pod.node in nodes}


class PrimerState:
    """Everything that is watched for Primers, as rows."""

    def __init__(self, settings: Settings, buffer_kind: Kind, metrics: PrimerMetrics) -> None:
        self.settings = settings
        self.primers = Store[PrimerRow](
            {
                "uid": lambda row: [row.uid],
                "cron_job": lambda row: [Key(row.key.namespace, row.cron_job)],  # an empty name if it has a selector
                "quota_blocked": lambda row: [row.key.namespace] if _is_quota_blocked(row) else [],
            }
        )
        self.cron_jobs = Store[CronJobRow](
            {
                "namespace": lambda row: [] if row.primer_uid else [row.key.namespace],
                "uid": lambda row: [row.uid],
                "primer": lambda row: [row.primer_uid] if row.primer_uid else [],
                "quota_blocked": lambda row: [row.key.namespace] if records_a_small_quota(row) else [],
            }
        )
        self.jobs = Store[JobRow | None](
            {
                "uid": lambda row: [row.uid] if row else [],
                "cron_job": lambda row: [row.cron_job_uid] if row else [],
            }
        )
        self.pods = Store[PodRow]({"job": lambda row: [row.job_uid]})
        self.placeholders = Store[PlaceholderRow](
            {
                "namespace": lambda row: [row.key.namespace],
                "primer": lambda row: [row.primer_uid],
                "node": lambda row: [row.node] if row.node else [],
            }
        )
        self.nodes = Store[NodeRow](
            {
                "mode": lambda row: [row.gke_mode] if row.gke_mode else [],
                "pool": lambda row: [row.pool] if row.pool else [],
                "pulls": lambda row: [] if row.is_unwarmable else [row.pulls_images],
            }
        )
        self.quotas = Store[QuotaRow]({"namespace": lambda row: [row.key.namespace]})
        self.priorities = Store[PriorityRow]()
        self.held = HeldCount(settings.max_per_namespace)
        self.buffers = BufferStore(buffer_kind, metrics, self.held)

    def primers_for(self, row: CronJobRow) -> list[PrimerRow]:
        """Return the Primers for a CronJob, the one that primes it first."""
        named = self.primers.by("cron_job", row.key)
        selecting = self.primers.by("cron_job", Key(row.key.namespace, ""))
        return primers_of(row.key.name, row.labels, (*named, *selecting), self.annotated_primer(row))

    def annotated_primer(self, row: CronJobRow | None) -> PrimerRow | None:
        """Return the Primer that the annotations of a CronJob mean; None if they mean none."""
        primer = annotated_primer(row, self.settings) if row is not None and row.annotated is not None else None
        return None if primer is None or primer.is_withdrawn else primer

    def selected_cron_jobs(self, primer: PrimerRow) -> list[CronJobRow]:
        """Return the CronJobs that a Primer names or selects."""
        if primer.is_withdrawn:
            return []
        if primer.selector is None:
            row = self.cron_jobs.get(Key(primer.key.namespace, primer.cron_job))
            return [row] if row is not None and not row.primer_uid and not row.is_terminating else []
        rows = self.cron_jobs.by("namespace", primer.key.namespace)
        return [row for row in rows if not row.is_terminating and primer.matches(row.key.name, row.labels)]

    def runs(self, cron: CronJobRow) -> Target:
        """Return a CronJob with its runs alone."""
        jobs = self.jobs_of(cron)
        return Target(cron, tuple(jobs), tuple(pod for job in jobs for pod in self.pods.by("job", job.uid)))

    def jobs_of(self, cron: CronJobRow) -> list[JobRow]:
        """Return the Jobs of a CronJob."""
        return [row for row in self.jobs.by("cron_job", cron.uid) if row is not None]

    def keys_by_uid(self, uid: str) -> Iterator[Key]:
        """Yield the key of the Primer with a UID, or of the annotations of the CronJob with that UID."""
        yield from (primer.key for primer in self.primers.by("uid", uid))
        yield from (annotation_key(job.key) for job in self.cron_jobs.by("uid", uid))

    def quota_blocked_keys(self, namespace: str) -> Iterator[Key]:
        """Yield the keys of what a quota blocks in a namespace."""
        yield from (primer.key for primer in self.primers.by("quota_blocked", namespace))
        yield from (annotation_key(job.key) for job in self.cron_jobs.by("quota_blocked", namespace))

    def keys_for_cron_job(self, row: CronJobRow) -> Iterator[Key]:
        """Yield the keys of what primes a CronJob; of a primer CronJob, its owner's."""
        if row.primer_uid:
            yield from self.keys_by_uid(row.primer_uid)
        else:
            yield from (primer.queue_key for primer in self.primers_for(row))


def _is_quota_blocked(row: PrimerRow) -> bool:
    return any(job.reason == Reason.QUOTA_TOO_SMALL.value for job in row.status.cron_jobs)


class EventKeys:
    """Maps events about Primers, and about everything that they depend on, to the Primers."""

    def __init__(self, state: PrimerState) -> None:
        self._state = state

    def for_primer(self, change: Change[PrimerRow]) -> Iterator[Key]:
        """Yield the Primer, and those for the same CronJobs: of two, the older one primes it."""
        yield change.key
        if is_spec_changed(change):
            for row in (change.old, change.new):
                if row is not None:
                    yield from (primer.queue_key for primer in self._competing_primers(row))

    def for_cron_job(self, change: Change[CronJobRow]) -> Iterator[Key]:
        """Yield what primes a CronJob."""
        state = self._state
        for row in (change.old, change.new):
            if row is not None:
                yield from state.keys_for_cron_job(row)
                # Its annotations may be deleted while what was made for them still exists.
                stores = (state.placeholders, state.cron_jobs, state.buffers)
                if row.annotated is not None or any(store.count("primer", row.uid) for store in stores):
                    yield annotation_key(row.key)

    def for_job(self, change: Change[JobRow | None]) -> Iterator[Key]:
        """Yield what primes the CronJob of a Job."""
        for row in (change.old, change.new):
            if row is not None:
                yield from self._for_cron_job_uid(row.cron_job_uid)

    def for_pod(self, change: Change[PodRow]) -> Iterator[Key]:
        """Yield what primes the CronJob of a pod."""
        row = change.new or change.old
        for job in self._state.jobs.by("uid", row.job_uid) if row is not None else ():
            if job is not None:
                yield from self._for_cron_job_uid(job.cron_job_uid)

    def for_placeholder(self, change: Change[PlaceholderRow]) -> Iterator[Key]:
        """Yield the owner of a placeholder."""
        row = change.new or change.old
        if row is not None:
            yield from self._state.keys_by_uid(row.primer_uid)

    def for_node(self, change: Change[NodeRow]) -> Iterator[Key]:
        """Yield the owners of the placeholders on a node that begins or ceases to terminate."""
        if change.old is None or change.new is None or change.old.is_terminating == change.new.is_terminating:
            return
        for row in self._state.placeholders.by("node", change.key.name):
            yield from self._state.keys_by_uid(row.primer_uid)

    def for_quota(self, change: Change[QuotaRow]) -> Iterator[Key]:
        """Yield what a quota of the namespace blocks."""
        if change.old != change.new:
            yield from self._state.quota_blocked_keys(change.key.namespace)

    def for_priority(self, _change: Change[PriorityRow]) -> Iterable[Key]:
        """Return nothing: priority classes are read when a decision is due."""
        return ()

    def _competing_primers(self, primer: PrimerRow) -> Iterator[PrimerRow]:
        for row in self._state.selected_cron_jobs(primer):
            yield from self._state.primers_for(row)

    def _for_cron_job_uid(self, uid: str) -> Iterator[Key]:
        for row in self._state.cron_jobs.by("uid", uid):
            yield from self._state.keys_for_cron_job(row)


def is_spec_changed(change: Change[PrimerRow]) -> bool:
    """Whether a Primer is new, deleted, or has another spec."""
    old = change.old
    new = change.new
    return old is None or new is None or old.generation != new.generation
