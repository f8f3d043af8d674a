"""What recurs, as the rules read it, and what is remembered of it between two reconciles."""

from datetime import datetime
from typing import Protocol

import msgspec

from foresail.api.instants import instant
from foresail.cron import Dialect


class Recurring(Protocol):
    """A Schedule of any kind: its expression, its switches, and the times that its status records."""

    @property
    def created(self) -> datetime:
        """When it was created."""

    @property
    def text(self) -> str:
        """The cron expression."""

    @property
    def paused(self) -> bool:
        """Whether `spec.paused` is true."""

    @property
    def skip(self) -> bool | None:
        """`spec.skipImmediately`."""

    @property
    def phase(self) -> str:
        """The phase; empty before the first reconcile."""

    @property
    def last_backup(self) -> datetime | None:
        """The slot of the last run."""

    @property
    def last_skipped(self) -> datetime | None:
        """When `skipImmediately` was last applied."""


class Observed(msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=False):
    """What was last observed of a Schedule, as far as later decisions depend on it."""

    schedule: str
    paused: str = ""  # when the pause was observed; empty if it is not paused
    consumed: bool = False  # skipImmediately was true and has been applied since the last pause
    since: str = ""  # when an edit of the expression was observed: nothing before it is due
    dialect: str = ""  # in which it was read, UNKNOWN at first; only for expressions on which the two differ
    ignored: bool = False  # skipImmediately was set again without a pause, and that was reported
    zone: str = ""  # of the policy; nothing before a change of it is due
    retention: str = ""  # the digest of the rules by which Backups were deleted
    asks: str = ""  # the digest of the rules that wait for an approval
    ended: str = ""  # the slot whose failed run is not repeated, because the Schedule was paused meanwhile
    repeated: str = ""  # the slot that gets no further attempt: one succeeded, or a Backup of the slot was deleted
    deletions: dict[str, int] = {}  # how many Backups were deleted lately, by the hour of their deletion
    deleted_runs: dict[str, int] = {}  # how many of these were made lately, by the hour of their start
    deleting: str = ""  # the UID of the Backup that was deleted last
    first: str = ""  # since when what has a name of Velero's is by hand: its last run, before the first of Foresail
    ahead: str = ""  # a recorded time in the future that was cleared: it counts again once it has passed

    @property
    def paused_since(self) -> datetime | None:
        """The instant at which the pause was observed."""
        return instant(self.paused)

    @property
    def edited(self) -> datetime | None:
        """The instant at which the last edit of the expression was observed."""
        return instant(self.since)

    @property
    def read_by(self) -> Dialect | None:
        """The dialect in which the expression was read."""
        return next((dialect for dialect in Dialect if dialect.value == self.dialect), None)


_decoder = msgspec.json.Decoder(Observed)


def observed_in(text: str) -> Observed | None:
    """Return what a record says that was observed last; None if it cannot be decoded."""
    try:
        return _decoder.decode(text)
    except (msgspec.DecodeError, RecursionError):
        return None
