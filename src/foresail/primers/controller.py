"""The controller of Primers: what it watches, how events map to keys, and which `decide` it calls."""

from collections.abc import Iterable
from datetime import datetime

import msgspec

from foresail.api import batch, pods
from foresail.api.capacity_buffers import capacity_buffer
from foresail.api.marks import PRIMER_LABEL
from foresail.api.primer import PRIMER, Primer
from foresail.kube.background_reads import BackgroundReads
from foresail.kube.clock import now
from foresail.kube.controller import Informer
from foresail.kube.execute import Result
from foresail.kube.failures import Failure
from foresail.kube.reflector import WatchSpec
from foresail.plan import Key, Kind, Plan
from foresail.primers.bookkeeping import Bookkeeping
from foresail.primers.decide import decide, due_read
from foresail.primers.metrics import PrimerMetrics
from foresail.primers.observe import Observer
from foresail.primers.reads import DryRun, LocateVolumes, Volumes, no_dry_run, no_volume_lookup
from foresail.primers.rows import (
    cron_job_row,
    job_row,
    node_row,
    placeholder_row,
    pod_row,
    primer_row,
    priority_row,
    quota_row,
)
from foresail.primers.shape import Shape
from foresail.primers.state import EventKeys, PrimerState
from foresail.primers.view import DryRunRequest, PrimerView, Settings, VolumeLookup

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
        self.metrics = PrimerMetrics()
        self.state = PrimerState(settings, buffer_kind, self.metrics)
        self.background_reads = BackgroundReads[DryRunRequest | VolumeLookup, Shape | Volumes | Failure](self._run_read)
        self._dry_run = dry_run
        self._locate_volumes = locate_volumes
        self._books = Bookkeeping(self.state, self.metrics)
        self._keys = EventKeys(self.state)
        self._observer = Observer(self.state, self._books)

    @property
    def informers(self) -> tuple[Informer, ...]:
        """Primers, CronJobs, their Jobs and pods, placeholders, and what decides where pods may run."""
        state = self.state
        keys = self._keys
        books = self._books
        of_jobs = batch.JOB_NAME_LABEL
        ours = f"{PRIMER_LABEL},!{batch.JOB_NAME_LABEL}"
        cron_jobs = WatchSpec(batch.CRON_JOB, batch.CronJob, cron_job_row)
        placeholders = WatchSpec(pods.POD, pods.Pod, placeholder_row, labels=ours)
        quotas = WatchSpec(pods.RESOURCE_QUOTA, pods.ResourceQuota, quota_row)
        priorities = WatchSpec(pods.PRIORITY_CLASS, pods.PriorityClass, priority_row)
        return (
            Informer(WatchSpec(PRIMER, Primer, primer_row), state.primers, keys.for_primer, books.learn_primer),
            Informer(cron_jobs, state.cron_jobs, keys.for_cron_job, books.learn_cron_job),
            Informer(WatchSpec(batch.JOB, batch.Job, job_row), state.jobs, keys.for_job),
            Informer(WatchSpec(pods.POD, pods.Pod, pod_row, labels=of_jobs), state.pods, keys.for_pod),
            Informer(placeholders, state.placeholders, keys.for_placeholder, books.learn_placeholder),
            Informer(WatchSpec(pods.NODE, pods.Node, node_row), state.nodes, keys.for_node),
            Informer(quotas, state.quotas, keys.for_quota, books.learn_quota),
            Informer(priorities, state.priorities, keys.for_priority),
            *state.buffers.informers(state.keys_by_uid, state.quota_blocked_keys),
        )

    def observe(self, key: Key, _now: datetime) -> PrimerView | None:
        """Collect what is known about a Primer."""
        return self._observer.observe(key)

    def decide(self, view: PrimerView, now: datetime) -> Plan:
        """Return the Plan, with the first background read that is due: its result brings about the next one."""
        reads = (due_read(view, target, now) for target in view.targets)
        first = next((read for read in reads if read is not None), None)
        return msgspec.structs.replace(decide(view, now), reads=() if first is None else (first,))

    def begin(self, key: Key, _view: PrimerView, plan: Plan, _now: datetime) -> Iterable[Key]:
        """Expect what a Plan creates before the store shows it."""
        self._books.expect(key, plan)
        return ()

    def settled(self, key: Key, view: PrimerView | None, plan: Plan, result: Result, _now: datetime) -> Iterable[Key]:
        """Take in what became of a Plan; forget a Primer that is deleted."""
        if view is None:
            self._books.forget(key)
            self.background_reads.forget(key)
            return ()
        return (key,) if self._books.learn_result(key, view, plan, result) else ()

    async def _run_read(self, read: DryRunRequest | VolumeLookup) -> Shape | Volumes | Failure:
        if isinstance(read, DryRunRequest):
            shape = await self._dry_run(read)
            self._books.learn_dry_run(read, shape, (self.background_reads.clock or now)())
            return shape
        return self._books.learn_volumes(read, await self._locate_volumes(read))
