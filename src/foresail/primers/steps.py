"""What a method returns: the writes for one CronJob, what to record and report, and when to reconcile next."""

from datetime import datetime

import msgspec

from foresail.api.primer import Primed, Warming
from foresail.plan import Action
from foresail.primers.observe import PrimerView
from foresail.reporting import Because

UNREADABLE = (ValueError, ArithmeticError, RecursionError, msgspec.MsgspecError)
"""What values that a tenant has written can raise."""


class Steps(msgspec.Struct, frozen=True):
    """What to do for one CronJob."""

    actions: tuple[Action, ...] = ()
    wakes: tuple[datetime, ...] = ()
    warming: Warming | None = None  # for the status
    is_warming: bool = False
    because: Because | None = None  # why nothing is held, found out only now
    events: tuple[Because, ...] = ()
    warm_nodes: tuple[tuple[datetime, tuple[str, ...]], ...] = ()  # for a fire, where capacity was held
    cold_because: tuple[
        tuple[datetime, str], ...
    ] = ()  # for a fire, why its run was not warm, if the nodes do not show it
    refused: datetime | None = None  # when the autoscaler or the API server refused the CapacityBuffer of this CronJob
    unanswered: datetime | None = None  # when an autoscaler should have answered a CapacityBuffer


def recorded_primed(view: PrimerView, uid: str) -> Primed | None:
    """Return what the status has recorded of a CronJob."""
    return next((job for job in view.primer.status.cron_jobs if job.uid == uid), None)
