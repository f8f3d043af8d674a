"""What decides about one Primer: its CronJobs, their runs, what is held for them, and the administrator's settings."""

from datetime import datetime, timedelta

import msgspec

from foresail.plan import Key
from foresail.primers.buffer_rows import BufferedPods, BufferRow, BufferSupport, TemplateRow
from foresail.primers.rows import CronJobRow, JobRow, NodeRow, PlaceholderRow, PodRow, PrimerRow, PriorityRow, QuotaRow
from foresail.primers.shape import Shape


class Settings(msgspec.Struct, frozen=True):
    """What an administrator has set for all Primers."""

    zone: str = "UTC"  # of kube-controller-manager, for CronJobs that name no zone
    max_warm_up: timedelta = timedelta(hours=6)
    max_per_namespace: int = 50
    max_in_cluster: int = 2_000
    pause_image: str = "pause"
    hold_image: str = ""  # of the Jobs of primer CronJobs; without one there are none
    hold_command: tuple[str, ...] = ("foresail", "hold")  # gets the seconds as its last argument
    priority_class: str = "foresail-placeholder"
    namespaces: frozenset[str] = frozenset()  # in which capacity may be held; in every one if empty
    annotated_cron_jobs: bool = False  # prime CronJobs with the annotation foresail.dev/warm-up
    image_volumes: bool | None = None  # pull the target's images too; None: where every node can
    labels: tuple[tuple[str, str], ...] = ()
    annotations: tuple[tuple[str, str], ...] = ()

    def allows(self, namespace: str) -> bool:
        """Whether capacity may be held in a namespace."""
        return not self.namespaces or namespace in self.namespaces

    def allows_annotations(self, namespace: str) -> bool:
        """Whether CronJobs of a namespace may be primed by annotations."""
        return self.annotated_cron_jobs and self.allows(namespace)


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
            return next((priority for priority in self.priorities if priority.name == name), None)
        return next((priority for priority in self.priorities if priority.is_default), None)


class DryRunRequest(msgspec.Struct, frozen=True):
    """The CronJob, its pod template, and what its Primer requests instead: another value is another request."""

    cron_job: Key
    uid: str
    template: Shape
    generation: int = 0
    resources: tuple[tuple[str, str], ...] = ()  # spec.template.resources of the Primer


class VolumeLookup(msgspec.Struct, frozen=True):
    """The claims of a CronJob to look up, and the fire: each fire is another lookup."""

    namespace: str
    uid: str
    claims: tuple[str, ...]
    fire: datetime
