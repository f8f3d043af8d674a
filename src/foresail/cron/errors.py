"""The one exception of the cron engine."""


class CronError(ValueError):
    """A text that is no schedule: says what is wrong, in which field and column, and what is allowed."""

    def __init__(
        self, problem: str, *, text: str, allowed: str, field: str | None = None, column: int | None = None
    ) -> None:
        self.problem = problem
        self.text = text
        self.allowed = allowed
        self.field = field
        self.column = column
        place = f"{field}: " if field else ""
        where = f" (column {column})" if column is not None else ""
        super().__init__(f"{place}{problem}{where}; allowed: {allowed}")
