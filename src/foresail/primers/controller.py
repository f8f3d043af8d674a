"""The controller of Primers: what it watches, which keys a change concerns, and what it remembers."""

from collections.abc import Iterable, Iterator
from dataclasses import replace
from datetime import datetime

from msgspec import structs

from foresail.api import batch, pods
from foresail.api.capacity_buffers import capacity_buffer
from foresail.api.marks import PRIMER_LABEL
from foresail.api.primer import PRIMER, Primer
from foresail.kube.background_reads import BackgroundReads
from foresail.kube.clock import now
from foresail.kube.controller import Informer
from foresail.kube.execute import Outcome, Result
from foresail.kube.failures import Cause, Failure
from foresail.kube.reflector import Change, WatchSpec
from foresail.kube.store import Store
from foresail.plan import Create, Key, Kind, Plan
from foresail.primers.admission_dry_run import DryRun, DryRunRequest, DryRunResult, dry_run_result, no_dry_run
from foresail.primers.annotated import annotated_primer, has_request_changed, recorded_status, records_a_small_quota
from foresail.primers.autoscalers import AUTOPILOT, STANDARD
from foresail.primers.buffer_store import BufferSet, BufferStore, pools_to_explain
from foresail.primers.cluster_rows import NodeRow, PriorityRow, QuotaRow, node_row, priority_row, quota_row
from foresail.primers.decide import decide
from foresail.primers.due_reads import due_read
from foresail.primers.held_count import HeldCount
from foresail.primers.image_volumes import ImageVolumes
from foresail.primers.metrics import PrimerMetrics
from foresail.primers.observe import (
    CronJobRow,
    JobRow,
    PlaceholderRow,
    PodRow,
    PrimerRow,
    PrimerView,
    Settings,
    Target,
    VolumeLocations,
    annotated_cron_job,
    annotation_key,
    cron_job_row,
    job_row,
    placeholder_row,
    pod_row,
    primer_row,
    primers_of,
)
from foresail.primers.reasons import Loss, Reason
from foresail.primers.refusals import Refusals
from foresail.primers.shape import Shape
from foresail.primers.volume_lookup import LocateVolumes, VolumeLookup, Volumes, no_volume_lookup

_PREEMPTION = "PreemptionByScheduler"
_BUFFER = capacity_buffer()


class Primers:
    """Holds capacity for CronJobs before they fire, in every namespace."""

    name = "primers"

    def __init__(
        self,
        settings: Settings,
        dry_run: DryRun = no_dry_run,
        locate_volumes: LocateVolumes = no_volume_lookup,
        buffer_kind: Kind = _BUFFER,
    ) -> None:
        self.settings = settings
        self.background_reads = BackgroundReads[DryRunRequest | VolumeLookup, Shape | Volumes | Failure](self._run_read)
        self._dry_run, self._locate_volumes = dry_run, locate_volumes
        self._volume_locations: dict[str, VolumeLocations] = {}  # by a CronJob
        self._dry_runs: dict[str, DryRunResult] = {}  # by a CronJob
        self.primers = Store[PrimerRow](
            {
                "uid": lambda row: [row.uid],
                "cron_job": lambda row: [Key(row.key.namespace, row.cron_job)],  # an empty name where one selects
                "quota_blocked": lambda row: [row.key.namespace] if _is_short_of_quota(row) else [],
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
        self.jobs = Store[JobRow | None]({"cron_job": lambda row: [row.cron_job_uid] if row else []})
        self.pods = Store[PodRow](
            {"job": lambda row: [row.job_uid], "node": lambda row: [row.node] if row.node else []}
        )
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
        self.metrics = PrimerMetrics()
        self._held = HeldCount(settings.max_per_namespace)
        self.buffers = BufferStore(buffer_kind, self.metrics)
        self.image_volumes = ImageVolumes()
        self._settings = {each: structs.replace(settings, image_volumes=each) for each in (False, True)}
        self._job_uids: dict[str, Key] = {}  # of Jobs that a CronJob made
        self._losses: dict[str, str] = {}  # by the UID of a CronJob
        self._reported_off = set[str]()  # UIDs of CronJobs whose annotations are not allowed, which an Event has told
        self._refusals = Refusals()
        self._expected: dict[Key, set[Key]] = {}  # by Primer: placeholders to be made that the store does not show yet

    @property
    def informers(self) -> tuple[Informer, ...]:
        """Primers, CronJobs, their Jobs and pods, placeholders, and what decides where pods may be."""
        of_jobs, ours = batch.JOB_NAME_LABEL, f"{PRIMER_LABEL},!{batch.JOB_NAME_LABEL}"
        return (
            Informer(WatchSpec(PRIMER, Primer, primer_row), self.primers, self._keys_for_primer, self._learn_primer),
            Informer(
                WatchSpec(batch.CRON_JOB, batch.CronJob, cron_job_row),
                self.cron_jobs,
                self._keys_for_cron_job,
                self._learn_cron_job,
            ),
            Informer(WatchSpec(batch.JOB, batch.Job, job_row), self.jobs, self._keys_for_job, self._learn_job),
            Informer(WatchSpec(pods.POD, pods.Pod, pod_row, labels=of_jobs), self.pods, self._keys_for_pod),
            Informer(
                WatchSpec(pods.POD, pods.Pod, placeholder_row, labels=ours),
                self.placeholders,
                self._keys_for_placeholder,
                self._learn_placeholder,
            ),
            Informer(WatchSpec(pods.NODE, pods.Node, node_row), self.nodes, self._keys_for_node),
            Informer(
                WatchSpec(pods.RESOURCE_QUOTA, pods.ResourceQuota, quota_row),
                self.quotas,
                self._keys_for_quota,
                self._learn_quota,
            ),
            Informer(WatchSpec(pods.PRIORITY_CLASS, pods.PriorityClass, priority_row), self.priorities, _no_keys),
            *self.buffers.informers(self._keys_by_uid, self._short_of_quota),
        )

    # What is learned from a change

    def _learn_primer(self, change: Change[PrimerRow]) -> Iterable[Key]:
        self.metrics.learn_primer(change)
        self._learn_owner(change)
        if change.new is not None:
            self.buffers.learn_primer(change.new)
        if _is_spec_changed(change):
            self._refusals.forget(change.key)
            if change.old is not None and change.new is not None:
                self._forget_refused_pods(self._selected_cron_jobs(change.new))
        return ()

    def _learn_cron_job(self, change: Change[CronJobRow]) -> Iterable[Key]:
        self._learn_owner(change)
        if change.old is not None and change.new is None:
            for known in (self._losses, self._dry_runs, self._volume_locations):
                known.pop(change.old.uid, None)
            self._reported_off.discard(change.old.uid)
        if has_request_changed(change.old, change.new):
            self._refusals.forget(annotation_key(change.key))
            self._forget_refused_pods([change.new] if change.new is not None else ())
        old, new = (self._annotated(row) for row in (change.old, change.new))
        if old is not None or new is not None:
            self.metrics.learn_state(Change(annotation_key(change.key), old, new, change.initial))
        return ()

    def _learn_owner(self, change: Change[PrimerRow] | Change[CronJobRow]) -> None:
        """Count the placeholders of a Primer or a CronJob also if they were seen before it."""
        self._held.learn_owner(change.key.namespace, change.old, change.new)
        if change.old is None and change.new is not None:
            for row in self.placeholders.by("primer", change.new.uid):
                again = Change(row.key, row, row, initial=change.initial)
                self.metrics.learn_placeholder(again, is_owned=self._held.is_owned(row))

    def _learn_job(self, change: Change[JobRow | None]) -> Iterable[Key]:
        if change.old is not None:
            self._job_uids.pop(change.old.uid, None)
        if change.new is not None:
            self._job_uids[change.new.uid] = change.key
        return ()

    def _learn_placeholder(self, change: Change[PlaceholderRow]) -> Iterable[Key]:
        old, new = change.old, change.new
        self._held.learn_placeholder(old, new)
        row = new or old
        if row is None:
            return ()
        self.metrics.learn_placeholder(change, is_owned=self._held.is_owned(row))
        if old is not None and (new is None or new.is_terminating) and self.cron_jobs.by("uid", row.target_uid):
            self._losses[row.target_uid] = _loss(row).value
        for key in self._keys_by_uid(row.primer_uid):
            self._expected.get(key, set()).discard(change.key)
        return ()

    def _learn_quota(self, change: Change[QuotaRow]) -> Iterable[Key]:
        """Forget what a quota refused when it is another one: those Primers try again."""
        if change.old is not None and change.new is not None and change.old.hard == change.new.hard:
            return ()
        freed = self._refusals.forget_namespace(change.key.namespace)
        rows = self._forget_refused_pods(self.cron_jobs.by("namespace", change.key.namespace))
        return [*freed, *(key for row in rows for key in self._primers_for(row))]

    def _forget_refused_pods(self, rows: Iterable[CronJobRow]) -> list[CronJobRow]:
        """Forget which of these CronJobs have pods that admission refused, and return them: it is asked again."""
        refused = [row for row in rows if row.uid in self._dry_runs and self._dry_runs[row.uid].refused]
        for row in refused:
            del self._dry_runs[row.uid]
        return refused

    # Which keys a change concerns

    def _keys_for_primer(self, change: Change[PrimerRow]) -> Iterator[Key]:
        yield change.key
        if _is_spec_changed(change):
            for row in (change.old, change.new):  # of two for one CronJob the older one primes it: the other too
                if row is not None:
                    yield from (each.queue_key for each in self._competing_primers(row))

    def _keys_for_cron_job(self, change: Change[CronJobRow]) -> Iterator[Key]:
        for row in (change.old, change.new):
            if row is not None:
                yield from self._primers_for(row)
                # Its annotations may be gone while what was made for them is still there.
                stores = (self.placeholders, self.cron_jobs, self.buffers)
                if row.annotated is not None or any(store.count("primer", row.uid) for store in stores):
                    yield annotation_key(row.key)

    def _keys_for_job(self, change: Change[JobRow | None]) -> Iterator[Key]:
        for row in (change.old, change.new):
            if row is not None:
                yield from self._by_cron_job_uid(row.cron_job_uid)

    def _keys_for_pod(self, change: Change[PodRow]) -> Iterator[Key]:
        row = change.new or change.old
        key = self._job_uids.get(row.job_uid) if row is not None else None
        job = self.jobs.get(key) if key is not None else None
        if job is not None:
            yield from self._by_cron_job_uid(job.cron_job_uid)

    def _keys_for_placeholder(self, change: Change[PlaceholderRow]) -> Iterator[Key]:
        row = change.new or change.old
        if row is not None:
            yield from self._keys_by_uid(row.primer_uid)

    def _keys_for_node(self, change: Change[NodeRow]) -> Iterator[Key]:
        if change.old is None or change.new is None or change.old.is_terminating == change.new.is_terminating:
            return
        for row in self.placeholders.by("node", change.key.name):
            yield from self._keys_by_uid(row.primer_uid)

    def _keys_for_quota(self, change: Change[QuotaRow]) -> Iterator[Key]:
        if change.old != change.new:
            yield from self._short_of_quota(change.key.namespace)

    def _short_of_quota(self, namespace: str) -> Iterator[Key]:
        yield from (each.key for each in self.primers.by("quota_blocked", namespace))
        yield from (annotation_key(each.key) for each in self.cron_jobs.by("quota_blocked", namespace))

    def _primers_for(self, row: CronJobRow) -> Iterator[Key]:
        if row.primer_uid:
            yield from self._keys_by_uid(row.primer_uid)
        else:
            yield from (each.queue_key for each in self.primers_for(row))

    def _keys_by_uid(self, uid: str) -> Iterator[Key]:
        """Yield the key of a Primer by its UID, or that of the annotations of a CronJob by the CronJob's."""
        yield from (each.key for each in self.primers.by("uid", uid))
        yield from (annotation_key(each.key) for each in self.cron_jobs.by("uid", uid))

    def primers_for(self, row: CronJobRow) -> list[PrimerRow]:
        """Return the Primers that are for a CronJob, the one that primes it first; its annotations come last."""
        named = self.primers.by("cron_job", row.key)
        selecting = self.primers.by("cron_job", Key(row.key.namespace, ""))
        found = primers_of(row.key.name, row.labels, (*named, *selecting))
        own = self._annotated(row)
        return found if own is None else [*found, own]

    def _competing_primers(self, primer: PrimerRow) -> Iterator[PrimerRow]:
        for row in self._selected_cron_jobs(primer):
            yield from self.primers_for(row)

    def _by_cron_job_uid(self, uid: str) -> Iterator[Key]:
        for row in self.cron_jobs.by("uid", uid):
            yield from self._primers_for(row)

    # What a decision sees, which one, and what is remembered of it

    def observe(self, key: Key, _now: datetime) -> PrimerView | None:
        """Collect what is known about a Primer."""
        cron_job = annotated_cron_job(key)
        annotated = self.cron_jobs.get(cron_job) if cron_job is not None else None
        primer = annotated_primer(annotated, self.settings) if annotated is not None else self.primers.get(key)
        if primer is None:
            return None
        quotas, here = self.quotas.by("namespace", key.namespace), key.namespace
        mine = [row for row in self.placeholders.by("primer", primer.uid) if row.key.namespace == key.namespace]
        primer_cron_jobs = [
            row for row in self.cron_jobs.by("primer", primer.uid) if row.key.namespace == key.namespace
        ]
        is_off_unreported = annotated is not None and self._is_off_unreported(annotated)
        made = self.buffers.of_primer(primer)
        is_left = bool(mine or primer_cron_jobs or any(made))
        if primer.is_withdrawn and not (is_left or is_off_unreported or self._is_recorded(annotated)):
            return None
        targets = [self._target(primer, row, mine, primer_cron_jobs, made) for row in self._selected_cron_jobs(primer)]
        uids = {each.cron.uid for each in targets}
        names = {row.node for row in mine} | {pod.node for each in targets for pod in each.pods}
        nodes = {name: row for name in names if (row := self.nodes.get(Key("", name))) is not None}
        pools = pools_to_explain(primer, targets, nodes)
        nodes |= {row.name: row for pool in pools for row in self.nodes.by("pool", pool)}
        return PrimerView(
            primer=primer,
            targets=tuple(targets),
            stray_placeholders=tuple(row for row in mine if row.target_uid not in uids),
            stray_primer_cron_jobs=tuple(row for row in primer_cron_jobs if row.target_uid not in uids),
            stray_buffers=made.strays(uids).buffers,
            stray_templates=made.strays(uids).templates,
            buffers=self.buffers.support(primer),
            quotas=tuple(quotas),
            priorities=tuple(self.priorities.rows()),
            nodes=nodes,
            is_autopilot=bool(self.nodes.count("mode", AUTOPILOT)) and not self.nodes.count("mode", STANDARD),
            held_in_namespace=self._held.in_namespace(here)
            + self.buffers.held_in_namespace(here)
            + self._expected_by_others(key, here),
            held_in_cluster=self._held.in_cluster + self.buffers.held_in_cluster() + self._expected_by_others(key),
            namespace_placeholders=tuple(self.placeholders.by("namespace", key.namespace)) if quotas else (),
            namespace_buffers=self.buffers.in_namespace(key) if quotas else (),
            losses={uid: self._losses[uid] for uid in uids if uid in self._losses},
            refused=self._refusals.of(key),
            annotated=annotated,
            images_refused=self.image_volumes.unreported_refusal(key.namespace),
            is_off_unreported=is_off_unreported,
            settings=self._settings[self._pulls_images(key.namespace)],
        )

    def _pulls_images(self, namespace: str) -> bool:
        """Whether placeholders of a namespace pull images: if it is so set, or else if every node can."""
        wanted = self.settings.image_volumes
        if wanted is None:
            wanted = bool(self.nodes.count("pulls", True)) and not self.nodes.count("pulls", False)
        return wanted and self.image_volumes.are_accepted(namespace)

    def decide(self, view: PrimerView, now: datetime) -> Plan:
        """Say what is to be done, and what to ask the API server for meanwhile."""
        reads = (due_read(view, target, now) for target in view.targets)
        first = next((each for each in reads if each is not None), None)  # what it brings wakes us for the next
        return replace(decide(view, now), reads=() if first is None else (first,))

    def begin(self, key: Key, _seen: PrimerView, plan: Plan, _now: datetime) -> Iterable[Key]:
        """Let what a Plan makes count before the store shows it; what a Plan before it was to make counts no more."""
        creates = [each for each in plan.actions if isinstance(each, Create)]
        makes = {each.key for each in creates if each.kind == pods.POD and each.key not in self.placeholders}
        self.buffers.expect(key, creates)
        makes |= {place for each in creates for place in self.buffers.made_by(each)}
        if makes:
            self._expected[key] = makes
        else:
            self._expected.pop(key, None)
        return ()

    def settled(self, key: Key, view: PrimerView | None, plan: Plan, result: Result, _now: datetime) -> Iterable[Key]:
        """Forget a Primer that is gone; take in what was refused for what it is, which is said and not tried again."""
        if view is None:
            self._refusals.forget(key)
            self._expected.pop(key, None)
            self.buffers.expect(key, ())
            self.background_reads.forget(key)
            return ()
        action, failure = result.action, result.failure
        if result.outcome is Outcome.DONE:
            self.image_volumes.learn_creations(key.namespace, plan.actions)
        if result.outcome is Outcome.DONE and view.annotated is not None:
            if view.is_off_unreported:
                self._reported_off.add(view.primer.uid)
            if plan.status is not None:  # as it was decided: what is in the cluster, the CronJob's owner can change
                self.metrics.learn_status(view.primer.status, recorded_status(plan.status, view.primer.uid))
        if failure is None or not (action is None or isinstance(action, Create)):
            return ()
        self._expected.pop(key, None)
        self.buffers.expect(key, ())
        if action is None or failure.cause not in (Cause.FORBIDDEN, Cause.INVALID):
            return ()
        if self.image_volumes.learn_refusal(action, failure.message):
            return (key,)
        self.metrics.count_refusal(key, failure.cause)
        self._refusals.add(key, action, failure.message, {each.cron.uid for each in view.targets})
        return (key,)

    def _expected_by_others(self, primer: Key, namespace: str | None = None) -> int:
        """Return how many placeholders other Primers are to make, in one namespace or in all."""
        others = ((key, makes) for key, makes in self._expected.items() if key != primer)
        return sum(len(makes) for key, makes in others if namespace in (None, key.namespace))

    async def _run_read(self, request: DryRunRequest | VolumeLookup) -> Shape | Volumes | Failure:
        if isinstance(request, DryRunRequest):
            found = await self._dry_run(request)
            if self.cron_jobs.by("uid", request.uid):  # else it went meanwhile
                asked = (self.background_reads.clock or now)()
                self._dry_runs[request.uid] = dry_run_result(request, found, asked)
            return found
        volumes, before = await self._locate_volumes(request), self._volume_locations.get(request.uid)
        if volumes is None:  # it cannot be told now: they are where they were
            volumes = before.volumes if before is not None and before.claims == request.claims else ()
        if self.cron_jobs.by("uid", request.uid):
            self._volume_locations[request.uid] = VolumeLocations(request.claims, request.fire, volumes)
        return volumes

    def _is_off_unreported(self, row: CronJobRow) -> bool:
        """Whether a CronJob has an annotation that is not allowed, and no Event has told that since the start."""
        asks = row.annotated is not None and row.annotated.warm_up is not None
        return asks and not self.settings.allows_annotations(row.key.namespace) and row.uid not in self._reported_off

    def _annotated(self, row: CronJobRow | None) -> PrimerRow | None:
        """Return the Primer that the annotations of a CronJob mean; None if they mean none."""
        primer = annotated_primer(row, self.settings) if row is not None and row.annotated is not None else None
        return None if primer is None or primer.is_withdrawn else primer

    def _is_recorded(self, row: CronJobRow | None) -> bool:
        """Whether a record is to be removed from a CronJob; where annotations are not allowed, it may not be."""
        if row is None or row.annotated is None or not row.annotated.record:
            return False
        return self.settings.allows_annotations(row.key.namespace)

    def _selected_cron_jobs(self, primer: PrimerRow) -> list[CronJobRow]:
        if primer.is_withdrawn:
            return []
        if primer.selector is None:
            row = self.cron_jobs.get(Key(primer.key.namespace, primer.cron_job))
            return [row] if row is not None and not row.primer_uid and not row.is_terminating else []
        rows = self.cron_jobs.by("namespace", primer.key.namespace)
        return [row for row in rows if not row.is_terminating and primer.matches(row.key.name, row.labels)]

    def _target(
        self,
        primer: PrimerRow,
        cron: CronJobRow,
        mine: Iterable[PlaceholderRow],
        primer_cron_jobs: Iterable[CronJobRow],
        made: BufferSet,
    ) -> Target:
        first = self.primers_for(cron)
        own = tuple(row for row in primer_cron_jobs if row.target_uid == cron.uid)
        ran = self.runs(cron)
        told = self._dry_runs.get(cron.uid)
        told = told if told is not None and told.is_about(cron) else None
        primer_jobs = [job for row in own for job in self._jobs_of(row)]
        return Target(
            cron=cron,
            jobs=ran.jobs,
            pods=ran.pods,
            placeholders=tuple(row for row in mine if row.target_uid == cron.uid),
            primer_cron_jobs=own,
            primer_jobs=tuple(primer_jobs),
            primer_pods=tuple(pod for job in primer_jobs for pod in self.pods.by("job", job.uid)),
            buffers=made.of_cron_job(cron.uid).buffers,
            templates=made.of_cron_job(cron.uid).templates,
            taken_by=first[0].key.name if first and first[0].uid != primer.uid else "",
            admitted=told.admitted if told else None,
            is_dry_run_done=told is not None and told.is_final,
            asked=told.asked if told else None,
            refused=told.refused if told else "",
            volume_locations=self._volume_locations.get(cron.uid),
        )

    def runs(self, cron: CronJobRow) -> Target:
        """Return a CronJob with its runs alone."""
        jobs = self._jobs_of(cron)
        return Target(cron, tuple(jobs), tuple(pod for job in jobs for pod in self.pods.by("job", job.uid)))

    def _jobs_of(self, cron: CronJobRow) -> list[JobRow]:
        return [row for row in self.jobs.by("cron_job", cron.uid) if row is not None]


def _is_spec_changed(change: Change[PrimerRow]) -> bool:
    old, new = change.old, change.new
    return old is None or new is None or old.generation != new.generation


def _no_keys(_change: Change[PriorityRow]) -> Iterable[Key]:
    return ()  # read when a decision is due


def _is_short_of_quota(row: PrimerRow) -> bool:
    return any(each.reason == Reason.QUOTA_TOO_SMALL.value for each in row.status.cron_jobs)


def _loss(row: PlaceholderRow) -> Loss:
    if row.disrupted == _PREEMPTION:
        return Loss.PREEMPTED
    return Loss.DISRUPTED if row.node else Loss.NEVER_SCHEDULED
