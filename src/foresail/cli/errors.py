"""The one error that ends a command: what happened, to what, and what to do."""


class CommandError(Exception):
    """Ends the command with exit code 1 after printing itself on standard error."""

    def __init__(self, problem: str, hint: str | None = None) -> None:
        super().__init__(problem)
        self.problem = problem
        self.hint = hint

    def __str__(self) -> str:
        return f"error: {self.problem}" + (f"\nhint: {self.hint}" if self.hint else "")
