"""Everything that was seen of a soak: written to a file, so that it can be judged again."""

from datetime import datetime
from pathlib import Path
from typing import Any

import msgspec

from bench.soak.program import Numbers

Instants = list[tuple[datetime, str]]
"""What was said, and when."""


class Made(msgspec.Struct):
    """A Velero Backup, from its creation on."""

    name: str
    schedule: str  # the UID of the Schedule
    slot: str
    request: str  # the UID of the tenant's request
    created: datetime
    phases: Instants = []
    started: datetime | None = None  # as Velero says
    gone: datetime | None = None

    @property
    def is_synced(self) -> bool:
        """Whether Velero itself made the object, from what it found in the bucket: the backup is older than it."""
        return self.started is not None and self.started < self.created


class Held(msgspec.Struct):
    """A placeholder."""

    name: str
    target: str  # the UID of the CronJob
    fire: str
    created: datetime
    gone: datetime | None = None


class Said(msgspec.Struct):
    """An Event of Foresail's."""

    at: datetime
    kind: str
    name: str
    namespace: str
    reason: str
    note: str


class Fault(msgspec.Struct):
    """Something that was killed, and where that was seen."""

    kind: str
    at: datetime
    back: datetime | None = None
    seen: list[str] = []


class Life(msgspec.Struct):
    """One process of the operator: what it held, at which instant."""

    name: str
    samples: list[tuple[float, float]] = []  # seconds of its life, MiB
    peak: float = 0.0
    end: str = ""
    led: float | None = None  # seconds of its life when it was first seen to lead


class Asked(msgspec.Struct):
    """A NonAdminBackup, and what its tenant wanted of it in the end."""

    namespace: str
    name: str
    uid: str
    live: bool = False
    wanted: str = ""  # "", "delete" or "force"
    restore: str = ""  # the name of a NonAdminRestore


class Thing(msgspec.Struct):
    """An object at the end: who it is, and what its status says."""

    namespace: str
    name: str
    uid: str
    status: dict[str, Any] = {}
    annotations: dict[str, str] = {}


class Final(msgspec.Struct):
    """What was there in the end."""

    at: datetime
    requests: list[Thing] = []
    backups: list[Thing] = []
    restore_requests: list[Thing] = []
    restores: list[Thing] = []
    deletions: list[Thing] = []
    primers: list[Thing] = []
    bucket: list[str] = []  # the names of Backups of which the bucket has something
    placeholders: int = 0  # after the Primers were deleted


class Stuck(msgspec.Struct):
    """What `foresail doctor` said about a Backup that Velero does not finish."""

    at: datetime
    says: str
    mended: bool


class Seen(msgspec.Struct):
    """All of it."""

    numbers: Numbers
    seed: int
    begins: datetime
    ends: datetime
    schedules: dict[str, str] = {}  # the UIDs of those that fire, by name
    cron_jobs: dict[str, str] = {}  # UIDs, by name
    asked: list[Asked] = []
    made: dict[str, Made] = {}  # by UID
    held: dict[str, Held] = {}
    said: list[Said] = []
    locations: Instants = []
    leaders: Instants = []
    faults: list[Fault] = []
    lives: list[Life] = []
    stuck: list[Stuck] = []
    gaps: int = 0  # of the watches by which all this was seen
    settled: float | None = None  # seconds after the last fault, or after the end if that was later
    final: Final | None = None

    def write(self, file: Path) -> None:
        """Keep it."""
        file.write_bytes(msgspec.json.encode(self))


def read(file: Path) -> Seen:
    """Return what was kept."""
    return msgspec.json.decode(file.read_bytes(), type=Seen)
