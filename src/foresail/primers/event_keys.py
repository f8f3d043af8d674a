"""Map events to keys: which Primers are reconciled when an object changes. Nothing here changes state."""

from collections.abc import Iterable, Iterator

from foresail.kube.reflector import Change
from foresail.plan import Key
from foresail.primers.cluster_rows import NodeRow, PriorityRow, QuotaRow
from foresail.primers.rows import CronJobRow, JobRow, PlaceholderRow, PodRow, PrimerRow, annotation_key
from foresail.primers.state import PrimerState


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
