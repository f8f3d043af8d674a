"""The two cron dialects that Kubernetes and Velero use, and the error for what neither allows."""

import enum


class CronError(ValueError):
    """An invalid schedule: the problem, its field and column, and what is allowed."""

    def __init__(
        self, problem: str, *, text: str, allowed: str, field: str | None = None, column: int | None = None
    ) -> None:
        self.problem = problem
        self.text = text
        self.allowed = allowed
        self.field = field
        self.column = column
        prefix = f"{field}: " if field else ""
        where = f" (column {column})" if column is not None else ""
        super().__init__(f"{prefix}{problem}{where}; allowed: {allowed}")


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
