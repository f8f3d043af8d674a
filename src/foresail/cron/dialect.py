"""The two cron dialects that clusters speak, and where they part."""

import enum


class Dialect(enum.Enum):
    """Whose rules a schedule is read by.

    `ROBFIG` is robfig/cron v3.0.1: CronJobs, and Velero up to 1.18.2.
    `GOCRON` is netresearch/go-cron v0.15.0: Velero from 1.18.3 on.
    """

    ROBFIG = "robfig"
    GOCRON = "go-cron"
