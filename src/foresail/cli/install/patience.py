"""Waiting for something in the cluster, with a word about it now and then, and an end."""

import asyncio
import sys
from collections.abc import Awaitable, Callable
from datetime import datetime, timedelta

from foresail.cli.errors import CommandError
from foresail.kube.clock import now

STOPPED = "Stopped. Completed steps stay, unless undone above; run the same command to continue."
"""The message if the user stops the command while it waits."""

_PAUSE = 0.5
_REPORT_EVERY = timedelta(seconds=30)


class Patience:
    """How long one command may wait, all in all."""

    def __init__(self, until: datetime) -> None:
        self._until, self._whole = until, until - now()

    def at_least(self, least: timedelta) -> "Patience":
        """Return one that has this much left from now on, or as much as this one had at first if that is less."""
        return Patience(max(self._until, now() + min(least, self._whole)))

    async def wait(self, what: str, holds: Callable[[], Awaitable[bool]], otherwise: CommandError) -> None:
        """Return when it holds; raise the error if the time is over before."""
        reported: datetime | None = None
        while not await holds():
            instant = now()
            if instant >= self._until:
                raise otherwise
            if reported is None or instant - reported >= _REPORT_EVERY:
                left = int((self._until - instant).total_seconds())
                print(f"waiting until {what}; {left} s left", file=sys.stderr, flush=True)
                reported = instant
            await asyncio.sleep(_PAUSE)
