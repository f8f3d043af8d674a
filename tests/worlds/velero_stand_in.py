"""Velero's backup controllers in a world: a Backup goes through its phases, ends when it is told to, and expires.

A stand-in, because the real ones cannot be made to take an hour, or a year, in virtual time. What it knows of Velero
is the order of the phases, that spec and status are one object, and that a question for the version is answered.
"""

import asyncio
from collections.abc import Callable
from datetime import datetime, timedelta
from functools import partial

from foresail.api import velero
from foresail.api.instants import stamp
from foresail.plan import Key, Kind
from tests.worlds.documents import Document
from tests.worlds.history import Happening
from tests.worlds.world import World

QUEUED, READY, BEGUN = 0.05, 0.1, 0.15  # seconds after the creation
ANSWERED, FORGOTTEN = 0.2, 60.0  # seconds after a question
REMOVED = 86_400.0  # seconds after a deletion that was begun and failed

Ending = Callable[[Document, datetime], tuple[datetime, str]]
"""Says of a Backup, and the instant at which it was made, when it ends and how."""


Deleting = Callable[[str], str | None]
"""Says of the name of a Backup what its deletion fails with; None if Velero is killed amid it."""


def in_a_moment(_: Document, made: datetime) -> tuple[datetime, str]:
    """End well after a second."""
    return made + timedelta(seconds=1), velero.COMPLETED


class StandIn:
    """Works on every Backup and every question of one world, from now on."""

    def __init__(
        self, world: World, *, version: str = "v1.18.3", ending: Ending = in_a_moment, ttl: timedelta | None = None
    ) -> None:
        self.ending = ending
        self.deleting: Deleting = lambda _: ""
        self.is_running = True  # a Backup that is made while it does not run stays in the phase New
        self._world = world
        self._version = version
        self._ttl = ttl
        world.history.listeners.append(self._heard)

    def _heard(self, happening: Happening) -> None:
        if happening.before is not None or happening.after is None or not self.is_running:
            return
        if happening.kind == velero.BACKUP:
            self._work_on(happening.key, happening.after)
        elif happening.kind == velero.STATUS_REQUEST:
            answer = {"phase": "Processed", "serverVersion": self._version}
            self._later(ANSWERED, partial(self._patch, velero.STATUS_REQUEST, happening.key, answer))
            self._later(FORGOTTEN, partial(self._world.delete, velero.STATUS_REQUEST, happening.key))
        elif happening.kind == velero.DELETE_REQUEST:
            self._delete(happening.key, Key(happening.key.namespace, happening.after["spec"]["backupName"]))

    def _delete(self, request: Key, backup: Key) -> None:
        error = self.deleting(backup.name)
        self._later(BEGUN, partial(self._patch, velero.DELETE_REQUEST, request, {"phase": "InProgress"}))
        self._later(BEGUN, partial(self._patch, velero.BACKUP, backup, {"phase": "Deleting"}))
        if error == "":
            self._later(ANSWERED, partial(self._world.delete, velero.BACKUP, backup))
            self._later(ANSWERED, partial(self._world.delete, velero.DELETE_REQUEST, request))
            return
        if error is not None:
            failed = {"phase": "Processed", "errors": [error]}
            self._later(ANSWERED, partial(self._patch, velero.DELETE_REQUEST, request, failed))
        self._later(REMOVED, partial(self._world.delete, velero.DELETE_REQUEST, request))

    def _work_on(self, key: Key, backup: Document) -> None:
        made = self._world.clock()
        end, phase = self.ending(backup, made)
        for seconds, then in ((QUEUED, "Queued"), (READY, "ReadyToStart"), (BEGUN, "InProgress")):
            self._later(seconds, partial(self._patch, velero.BACKUP, key, {"phase": then}))
        lasts = max((end - made).total_seconds(), BEGUN)
        ended = {"phase": phase, "completionTimestamp": stamp(end)}
        self._later(lasts, partial(self._patch, velero.BACKUP, key, ended))
        if self._ttl is not None:
            self._later(lasts + self._ttl.total_seconds(), partial(self._world.delete, velero.BACKUP, key))

    def _patch(self, kind: Kind, key: Key, status: Document) -> None:
        self._world.merge(kind, key, {"status": status}, "velero")  # gone meanwhile: nothing to be done

    @staticmethod
    def _later(seconds: float, work: Callable[[], object]) -> None:
        asyncio.get_running_loop().call_later(seconds, work)
