"""Lines out of the chunks of a stream, whatever their size."""

LONGEST = 16 << 20  # several times the largest object that the API server takes


class Lines:
    """Collects chunks and gives back whole lines; one that is longer than the bound is left out."""

    __slots__ = ("_longest", "_pending", "_size")

    def __init__(self, longest: int = LONGEST) -> None:
        self._longest = longest
        self._pending: list[bytes] = []
        self._size = 0

    def feed(self, chunk: bytes) -> list[bytes]:
        """Return the lines that this chunk completes, without their ends."""
        *ends, rest = chunk.split(b"\n")
        lines = [line for line in map(self._whole, ends) if line]
        self._hold(rest)
        return lines

    def _whole(self, end: bytes) -> bytes:
        """Return the line that this part completes; nothing if it was too long."""
        if not self._size and len(end) <= self._longest:
            return end  # the common case: the whole line came in one chunk
        self._hold(end)
        line = b"".join(self._pending)
        self._pending.clear()
        self._size = 0
        return line

    def _hold(self, part: bytes) -> None:
        self._size += len(part)
        if self._size > self._longest:
            self._pending.clear()
        elif part:
            self._pending.append(part)
