"""The view of one Primer that decisions depend on: its CronJobs, their runs, and what is held for them."""

from datetime import datetime

import msgspec

from foresail.primers.buffer_rows import BufferedPods, BufferRow, BufferSupport, TemplateRow
from foresail.primers.cluster_rows import NodeRow, PriorityRow, QuotaRow
from foresail.primers.rows import CronJobRow, JobRow, PlaceholderRow, PodRow, PrimerRow
from foresail.primers.settings import Settings
from foresail.primers.shape import Shape


class VolumeLocations(msgspec.Struct, frozen=True):
    """From which nodes the volumes of claims can be reached, as looked up for a fire: node selectors in JSON."""

    claims: tuple[str, ...]
    fire: datetime
    volumes: tuple[bytes, ...] = ()


class Target(msgspec.Struct, frozen=True):
    """One CronJob of a Primer, with its runs and with what is held for it."""

    cron: CronJobRow
    jobs: tuple[JobRow, ...] = ()
    pods: tuple[PodRow, ...] = ()
    placeholders: tuple[PlaceholderRow, ...] = ()
    primer_cron_jobs: tuple[CronJobRow, ...] = ()  # primer CronJobs
    primer_jobs: tuple[JobRow, ...] = ()
    primer_pods: tuple[PodRow, ...] = ()
    buffers: tuple[BufferRow, ...] = ()
    templates: tuple[TemplateRow, ...] = ()  # of buffers
    taken_by: str = ""  # the name of an older Primer that is for this CronJob too
    admitted: Shape | None = None  # a pod of this template after admission, by a dry run
    is_dry_run_done: bool = False  # the API server has answered, a refusal included
    dry_run_at: datetime | None = None  # when the last dry run was
    resources: tuple[tuple[str, str], ...] = ()  # of the Primer, if a buffer may hold them: only a dry run checks them
    refused: str = ""  # the message with which it refused such a pod
    volume_locations: VolumeLocations | None = None  # where its volumes are, by a lookup


class PrimerView(msgspec.Struct, frozen=True):
    """Everything that a decision about one Primer depends on, but the time."""

    primer: PrimerRow
    targets: tuple[Target, ...] = ()
    stray_placeholders: tuple[PlaceholderRow, ...] = ()  # ours, of CronJobs that it is not for any more
    stray_primer_cron_jobs: tuple[CronJobRow, ...] = ()
    stray_buffers: tuple[BufferRow, ...] = ()
    stray_templates: tuple[TemplateRow, ...] = ()
    buffers: BufferSupport = BufferSupport()
    quotas: tuple[QuotaRow, ...] = ()
    priorities: tuple[PriorityRow, ...] = ()
    nodes: dict[str, NodeRow] = {}
    is_autopilot: bool = False  # all nodes of the cluster are those of GKE Autopilot
    held_in_namespace: int = 0  # by placeholders and buffers in the namespace, in pods, of all Primers
    held_in_cluster: int = 0
    namespace_placeholders: tuple[
        PlaceholderRow, ...
    ] = ()  # those of the namespace, if it has a quota: each awaits a pod as large
    namespace_buffers: tuple[
        BufferedPods, ...
    ] = ()  # of all live and expected buffers of the namespace, if it has a quota
    losses: dict[str, str] = {}  # by the UID of a CronJob, why its last placeholder was lost
    refused: dict[str, str] = {}  # by the name of an object, the message with which the API server refused it
    annotated: CronJobRow | None = None  # whose annotations are read as a Primer
    images_refused: str = ""  # the message that refused image volumes here, until an Event has reported it
    is_off_unreported: bool = False  # annotations are not allowed, and no Event has reported it
    settings: Settings = Settings()

    def priority(self, name: str) -> PriorityRow | None:
        """Return the priority of pods that name that class, or none."""
        if name:
            return next((each for each in self.priorities if each.name == name), None)
        return next((each for each in self.priorities if each.is_default), None)
