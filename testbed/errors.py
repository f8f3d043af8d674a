"""The one error that the testbed raises on purpose."""


class TestbedError(Exception):
    """Says what went wrong, with which thing, and what to do about it."""

    __test__ = False  # the name starts with "Test", and pytest would collect it

    def __init__(self, problem: str, hint: str) -> None:
        super().__init__(f"{problem}\nhint: {hint}")
        self.problem = problem
        self.hint = hint
