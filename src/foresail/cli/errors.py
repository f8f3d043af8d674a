"""The errors that end a command: what happened, to what, and what to do; and the exit codes."""

PROBLEM, USAGE, UNREACHABLE, INTERRUPTED = 1, 2, 3, 130
"""Exit codes: a problem was found or a request refused, wrong usage, no API server, Ctrl-C."""


class CommandError(Exception):
    """Ends the command with exit code 1 after printing itself on standard error."""

    code = PROBLEM

    def __init__(self, problem: str, hint: str | None = None) -> None:
        super().__init__(problem)
        self.problem = problem
        self.hint = hint

    @property
    def sentence(self) -> str:
        """What happened and what to do, for a page."""
        return f"{self.problem}. {self.hint or ''}".strip()

    def __str__(self) -> str:
        return f"error: {self.problem}" + (f"\nhint: {self.hint}" if self.hint else "")


class UsageError(CommandError):
    """Ends the command with exit code 2: an option or argument has a value that makes no sense."""

    code = USAGE


class NotAllowedError(CommandError):
    """The caller may not do it; the hint has the permission that is missing."""


class NotFoundError(CommandError):
    """The object does not exist."""


class ExistsError(CommandError):
    """There is an object of that name already."""


class TooLargeError(CommandError):
    """A file is larger than what is read of it here."""


class UnreachableError(CommandError):
    """Ends the command with exit code 3: no kubeconfig, no credentials, or no answer from the API server."""

    code = UNREACHABLE


class UnauthorizedError(UnreachableError):
    """The API server answers, and does not accept the credentials."""
