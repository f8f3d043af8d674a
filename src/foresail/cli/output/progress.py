"""How far a Backup or Restore is, as a bar that grows in place on a terminal, and as lines elsewhere."""

import asyncio
import sys
from collections.abc import Awaitable, Callable
from typing import TextIO

import msgspec

from foresail.api import velero
from foresail.cli.access.cluster import Cluster
from foresail.cli.output.table import terminal_width
from foresail.cli.output.words import Throughput, Transfer, transfer_text
from foresail.kube.clock import now
from foresail.plan import Key

_WIDTH = 30
_NARROW = 10
_PAUSE = 0.5


class Progress(msgspec.Struct, frozen=True, rename="camel"):
    """How many items there are, and how many are done."""

    total_items: int = 0
    items_backed_up: int = 0


class Status(msgspec.Struct, frozen=True, rename="camel"):
    """How far a Backup is, and what went wrong."""

    phase: str = ""
    progress: Progress | None = None
    queue_position: int = 0
    errors: int = 0
    warnings: int = 0
    failure_reason: str = ""
    validation_errors: list[str] | None = None


class Backup(msgspec.Struct, frozen=True):
    """A Backup under way."""

    status: Status = Status()


async def ended(cluster: Cluster, key: Key, show: Callable[[Status], Awaitable[None]]) -> Status:
    """Return the last status of a Backup, having shown each one before it."""
    while True:
        backup = await cluster.read(velero.BACKUP, key, Backup)
        await show(backup.status)
        if backup.status.phase in velero.TERMINAL:
            return backup.status
        await asyncio.sleep(_PAUSE)


def bar(status: Status, transfer: Transfer | None = None, rate: float | None = None) -> str:
    """Return the phase and the share of items that are backed up; while data of volumes is moved, the share of that."""
    phase = status.phase or "New"
    progress = status.progress
    if phase == "Queued" and status.queue_position:
        is_next = status.queue_position == 1
        return f"{phase}, next to run" if is_next else f"{phase}, position {status.queue_position} in the queue"
    if transfer is not None and transfer.is_moving:
        share = "" if transfer.waiting else f"{_share(transfer.bytes_done, transfer.total_bytes, _NARROW)}  "
        return f"{share}{transfer_text(transfer, rate)}  {phase}"
    if progress is None or not progress.total_items:
        return phase
    done = min(progress.items_backed_up, progress.total_items)
    return f"{_share(done, progress.total_items, _WIDTH)}  {done} of {progress.total_items} items  {phase}"


def _share(done: int, total: int, width: int) -> str:
    filled = width * done // total
    return f"{'█' * filled}{'░' * (width - filled)} {100 * done // total:3} %"


class Line:
    """A line that is written over on a terminal, and followed by the next one elsewhere."""

    def __init__(self, stream: TextIO | None = None) -> None:
        self._stream = stream or sys.stderr
        self._last = ""

    @property
    def is_overwritten(self) -> bool:
        """Whether each text replaces the one before it."""
        return self._stream.isatty()

    def show(self, text: str) -> None:
        """Show a text; the same one is not shown twice."""
        width = terminal_width(self._stream)
        text = text if width is None else text[: max(width - 1, 0)]  # a line that turns could not be overwritten
        if text == self._last:
            return
        if self.is_overwritten:
            print(f"\r{text:<{len(self._last)}}", end="", file=self._stream, flush=True)
        else:
            print(text, file=self._stream, flush=True)
        self._last = text

    def settle(self, text: str) -> None:
        """Let a text stay, in place of what is shown on a terminal."""
        over = self._last if self.is_overwritten else ""
        print(f"\r{text:<{len(over)}}" if over else text, file=self._stream, flush=True)
        self._last = ""

    def close(self) -> None:
        """Leave the line."""
        if self._last and self.is_overwritten:
            print(file=self._stream)


class Bar:
    """Shows one status after another; the same one is not shown twice."""

    def __init__(self, stream: TextIO | None = None) -> None:
        self._line = Line(stream)
        self._throughput = Throughput()

    def show(self, status: Status, transfer: Transfer | None = None) -> None:
        """Show a status: over the one before on a terminal, below it elsewhere."""
        self._line.show(bar(status, transfer, self._throughput.observe(transfer, now())))

    def close(self) -> None:
        """Leave the line."""
        self._line.close()
