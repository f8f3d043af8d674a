"""The next slots of Schedules, for a process that does not run them: self-service hands over nothing into a slot."""

from datetime import datetime

from foresail.api import velero
from foresail.kube.controller import Informer
from foresail.plan import Plan
from foresail.schedules.controller import Schedules
from foresail.schedules.observe import ScheduleView
from foresail.schedules.rules import Verdict
from foresail.schedules.velero_server import VeleroView

_FOR_RETENTION = (velero.DELETE_REQUEST, velero.RESTORE)


class Forecast(Schedules):
    """Decides as the controller of Schedules does, and writes nothing but the request for Velero's version."""

    name = "schedule-forecast"

    @property
    def informers(self) -> tuple[Informer, ...]:
        """What the time of a run depends on: not what only the deletion of Backups depends on."""
        return tuple(informer for informer in super().informers if informer.spec.kind not in _FOR_RETENTION)

    def decide(self, view: ScheduleView | VeleroView, now: datetime) -> Plan:
        """Return the decision without its writes and Events: the operator of Schedules makes those."""
        plan = super().decide(view, now)
        if isinstance(view, VeleroView):
            return plan
        verdict = plan.claim(Verdict)
        return Plan(wake_at=plan.wake_at, claims=() if verdict is None else (verdict,))
