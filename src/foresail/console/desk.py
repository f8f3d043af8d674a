"""Which act an address means: the one place that knows all of them."""

from collections.abc import Mapping
from datetime import datetime

from foresail.cli.access.cluster import Cluster
from foresail.cli.tenant.adoptable import Scope
from foresail.console import (
    approval_acts,
    backup_acts,
    cancel_acts,
    class_acts,
    protect_acts,
    rollback_acts,
    schedule_acts,
)
from foresail.console.acts import Act, Fields, check_now, run_now
from foresail.plan import Key

Place = Mapping[str, str]
"""The parts of an address."""


def addresses(namespace: str, name: str) -> tuple[str, ...]:
    """Return the addresses of all acts; `act` in them says which it is."""
    own = f"ns/{namespace}"
    return (
        f"{own}/{{act:protect|schedule|back-up|new-schedule|new-rollback}}",
        f"{own}/{{act:run|unpause|change-schedule}}/{name}",
        f"{own}/{{act:check}}/{name}/run",
        f"{own}/{{act:schedule}}/{name}/{{verb:edit|approve}}",
        f"{own}/{{act:rollback}}/{name}/{{verb:run|undo}}",
        f"{own}/{{act:cancel}}/{{verb:backup|restore}}/{name}",
        f"approvals/{{act:location}}/{namespace}/{name}/{{verb:approve|reject}}",
        f"approvals/{{act:backup|deletion}}/{name}/approve",
        "protection/{act:new-class}",
        f"protection/{{act:class}}/{name}",
    )


class Desk:
    """Makes the acts of one viewer; what it reads is read with the viewer's own rights."""

    def __init__(self, cluster: Cluster, scope: Scope) -> None:
        self._cluster = cluster
        self._scope = scope
        self._velero = scope.velero_namespace

    async def act(self, place: Place, fields: Fields, at: datetime) -> Act:
        """Return the act that an address and the fields of a form mean."""
        if "namespace" not in place:
            return await self._of_cluster(place, fields, at)
        if "name" not in place:
            return await self._of_namespace(place["act"], place["namespace"], fields, at)
        return await self._of_object(place, Key(place["namespace"], place["name"]), fields, at)

    async def _of_object(self, place: Place, key: Key, fields: Fields, at: datetime) -> Act:
        match place["act"]:
            case "cancel":
                return await cancel_acts.cancel(self._cluster, place["verb"], key, fields)
            case "check":
                return await check_now(self._cluster, key, at)
            case "location":
                return await approval_acts.location(self._cluster, self._velero, key, place["verb"], fields)
            case "rollback" | "schedule" as word:
                return await self._of_team(word, place["verb"], key, fields, at)
            case word:
                return await self._of_velero(word, key, fields, at)

    async def _of_velero(self, word: str, key: Key, fields: Fields, at: datetime) -> Act:
        match word:
            case "run":
                return await run_now(self._cluster, self._velero, key, at)
            case "unpause":
                return await schedule_acts.unpause(self._cluster, self._velero, key, at)
            case _:
                return await schedule_acts.change_velero_schedule(self._cluster, self._velero, key, fields, at)

    async def _of_team(self, word: str, verb: str, key: Key, fields: Fields, at: datetime) -> Act:
        match word, verb:
            case "rollback", "run":
                return await rollback_acts.run(self._cluster, self._scope, key, fields, at)
            case "rollback", _:
                return await rollback_acts.undo(self._cluster, key, at)
            case _, "edit":
                return await schedule_acts.change_own_schedule(self._cluster, key, fields, at)
            case _:
                return await approval_acts.own_deletion(self._cluster, key, fields)

    async def _of_cluster(self, place: Place, fields: Fields, at: datetime) -> Act:
        match place["act"]:
            case "new-class":
                return await class_acts.new_class(self._cluster, self._velero, fields, at)
            case "class":
                return await class_acts.change_class(self._cluster, self._velero, place["name"], fields, at)
            case "backup":
                return await approval_acts.adoption(self._cluster, self._scope, place["name"], fields, at)
            case _:
                return await approval_acts.deletion(self._cluster, self._velero, place["name"], fields, at)

    async def _of_namespace(self, word: str, namespace: str, fields: Fields, at: datetime) -> Act:
        match word:
            case "protect":
                return await protect_acts.protect(self._cluster, self._velero, namespace, fields, at)
            case "back-up":
                return await backup_acts.back_up(self._cluster, self._velero, namespace, fields, at)
            case "new-schedule":
                return await schedule_acts.velero_schedule(self._cluster, self._velero, namespace, fields, at)
            case "new-rollback":
                return await rollback_acts.plan(self._cluster, self._scope, namespace, fields, at)
            case _:
                return schedule_acts.own_schedule(namespace, fields, at)
