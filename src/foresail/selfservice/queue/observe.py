"""What a decision sees of the queue: the position of a request, and whether it may be handed over."""

from datetime import datetime

import msgspec


class Position(msgspec.Struct, frozen=True):
    """The position of a request in the queue, and when to report it if nothing else is reported."""

    number: int | None = None
    report_at: datetime | None = None  # None: at once


class Turn(msgspec.Struct, frozen=True):
    """Whether a request may be handed over to Velero now, and if not, what it waits for."""

    is_blocked: bool = False
    message: str = ""
    until: datetime | None = None  # when to reconcile again; None if an event does
