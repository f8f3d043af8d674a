"""The stores of the primers controller, and lookups across them."""

from collections.abc import Iterator

from foresail.kube.store import Store
from foresail.plan import Key, Kind
from foresail.primers.annotated import annotated_primer, records_a_small_quota
from foresail.primers.buffer_store import BufferStore
from foresail.primers.cluster_rows import NodeRow, PriorityRow, QuotaRow
from foresail.primers.held_count import HeldCount
from foresail.primers.metrics import PrimerMetrics
from foresail.primers.observe import Target
from foresail.primers.reasons import Reason
from foresail.primers.rows import (
    CronJobRow,
    JobRow,
    PlaceholderRow,
    PodRow,
    PrimerRow,
    annotation_key,
    primers_of,
)
from foresail.primers.settings import Settings


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
        """Return the Primers for a CronJob, the one that primes it first; its annotations come last."""
        named = self.primers.by("cron_job", row.key)
        selecting = self.primers.by("cron_job", Key(row.key.namespace, ""))
        primers = primers_of(row.key.name, row.labels, (*named, *selecting))
        own = self.annotated_primer(row)
        return primers if own is None else [*primers, own]

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
