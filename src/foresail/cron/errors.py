"""The only exception of the cron engine."""


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
