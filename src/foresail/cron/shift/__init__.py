"""Shifts a schedule some minutes earlier, as expressions that Kubernetes and Velero can run."""

from foresail.cron.shift.result import InexactCause, Shifted, ZonedExpression
from foresail.cron.shift.shifter import AHEAD, MAX_MINUTES, shift

__all__ = ["AHEAD", "MAX_MINUTES", "InexactCause", "Shifted", "ZonedExpression", "shift"]
