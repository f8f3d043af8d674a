"""When the first and the last write were sent, and how many there were; bare loop and runtime use the same."""

from time import monotonic


class Stopwatch:
    """Called before each write."""

    def __init__(self) -> None:
        self.writes = 0
        self._first = self._last = 0.0

    def __call__(self) -> None:
        """Note that a write is about to be sent."""
        self._last = monotonic()
        self._first = self._first or self._last
        self.writes += 1

    @property
    def facts(self) -> dict[str, float]:
        """The number of writes, and the seconds between the first and the last."""
        return {"writes": self.writes, "seconds": self._last - self._first}
