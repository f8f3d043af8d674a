"""Shifts a schedule some minutes earlier, as expressions that Kubernetes and Velero can run."""

from foresail.cron.shift.shifter import AHEAD, MAX_MINUTES, InexactCause, Shifted, ZonedExpression, shift

__all__ = ["AHEAD", "MAX_MINUTES", "InexactCause", "Shifted", "ZonedExpression", "shift"]
