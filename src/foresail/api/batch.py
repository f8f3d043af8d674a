"""Wire types of CronJobs and Jobs: schedule, pod template and outcome."""

from datetime import datetime

import msgspec

from foresail.api.metadata import Metadata
from foresail.plan import Kind

CRON_JOB = Kind("batch", "v1", "cronjobs", "CronJob")
JOB = Kind("batch", "v1", "jobs", "Job")

SCHEDULED_AT = "batch.kubernetes.io/cronjob-scheduled-timestamp"
"""On a Job of a CronJob: the instant at which it was due."""

JOB_NAME_LABEL = "batch.kubernetes.io/job-name"
JOB_UID_LABEL = "batch.kubernetes.io/controller-uid"
"""On each pod of a Job."""


class Owner(msgspec.Struct, frozen=True):
    """An owner reference."""

    kind: str = ""
    name: str = ""
    uid: str = ""
    controller: bool = False


class OwnedMetadata(Metadata, frozen=True, rename="camel"):
    """Metadata with the owners."""

    owner_references: list[Owner] | None = None

    @property
    def controller(self) -> Owner | None:
        """The controller of the object."""
        return next((reference for reference in self.owner_references or () if reference.controller), None)


class CronJobMetadata(OwnedMetadata, frozen=True, rename="camel"):
    """Metadata with the generation."""

    generation: int = 0


class JobTemplateSpec(msgspec.Struct, frozen=True, rename="camel"):
    """Parallelism and pod template of a Job; the template is passed on undecoded."""

    parallelism: int | None = None
    completions: int | None = None
    template: msgspec.Raw = msgspec.Raw(b"{}")


class JobTemplate(msgspec.Struct, frozen=True):
    """A Job template."""

    spec: JobTemplateSpec = JobTemplateSpec()


class CronJobSpec(msgspec.Struct, frozen=True, rename="camel"):
    """The spec of a CronJob."""

    schedule: str = ""
    time_zone: str | None = None
    suspend: bool | None = None
    concurrency_policy: str = "Allow"
    starting_deadline_seconds: int | None = None
    job_template: JobTemplate = JobTemplate()


class CronJobStatus(msgspec.Struct, frozen=True, rename="camel"):
    """The status of a CronJob."""

    last_schedule_time: datetime | None = None


class CronJob(msgspec.Struct, frozen=True):
    """A CronJob."""

    metadata: CronJobMetadata
    spec: CronJobSpec = CronJobSpec()
    status: CronJobStatus = CronJobStatus()


class JobCondition(msgspec.Struct, frozen=True):
    """A condition of a Job."""

    type: str = ""
    status: str = ""


class JobStatus(msgspec.Struct, frozen=True, rename="camel"):
    """The status of a Job."""

    start_time: datetime | None = None
    completion_time: datetime | None = None
    conditions: list[JobCondition] | None = None


class Job(msgspec.Struct, frozen=True):
    """A Job."""

    metadata: OwnedMetadata
    status: JobStatus = JobStatus()
