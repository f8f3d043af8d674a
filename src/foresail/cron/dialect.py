"""The two cron dialects that Kubernetes and Velero use."""

import enum


class Dialect(enum.Enum):
    """The Go library whose rules apply to a schedule.

    `ROBFIG` is robfig/cron v3.0.1: CronJobs, and Velero up to 1.18.2.
    `GOCRON` is netresearch/go-cron v0.15.0: Velero from 1.18.3 on.
    """

    ROBFIG = "robfig"
    GOCRON = "go-cron"

    @property
    def requires_both_day_fields(self) -> bool:
        """Whether a date must match day-of-month and day-of-week if neither is a star."""
        return self is Dialect.GOCRON
