"""What the buttons change: the writes of `backup create`, `restore create` and `backup schedule pause`."""

from datetime import datetime
from typing import Any

from foresail.api.nonadmin import NON_ADMIN_SCHEDULE
from foresail.cli.access.cluster import Cluster
from foresail.cli.access.self_service import require
from foresail.cli.errors import CommandError
from foresail.cli.restore_plan.planning import RestorePlan
from foresail.cli.schedule.change import pause_body
from foresail.cli.tenant.new_request import restore_name, stamped
from foresail.cli.tenant.only import check_only, write_as_caller, writes_digest, writes_of
from foresail.cli.tenant.selection import read_request
from foresail.cli.tenant.tenant_request import TenantRequest
from foresail.console.acts import create_once
from foresail.plan import Key
from foresail.selfservice.families import BACKUPS, RESTORES


async def back_up_now(cluster: Cluster, namespace: str, now: datetime) -> Key:
    """Create a backup of a whole namespace, and return its name."""
    await require(cluster, BACKUPS.kind, namespace)
    key = Key(namespace, f"console-{now:%Y%m%d%H%M%S}")
    kind: dict[str, Any] = {"apiVersion": BACKUPS.kind.api_version, "kind": BACKUPS.kind.name}
    body = {**kind, "metadata": {"name": key.name, "namespace": namespace}, "spec": {"backupSpec": {}}}
    await create_once(cluster, BACKUPS.kind, key, await stamped(cluster, body), now)
    return key


async def restore(cluster: Cluster, backup: Key, uid: str, policy: str, at: datetime) -> Key:
    """Create a restore of the backup that the viewer has seen then, and return its name."""
    await require(cluster, RESTORES.kind, backup.namespace)
    request = await read_request(cluster, BACKUPS, backup)
    check_seen(request, uid)
    key = Key(backup.namespace, restore_name(backup.name, at))
    kind: dict[str, Any] = {"apiVersion": RESTORES.kind.api_version, "kind": RESTORES.kind.name}
    body = {
        **kind,
        "metadata": {"name": key.name, "namespace": key.namespace},
        "spec": {"restoreSpec": restore_fields(backup.name, policy)},
    }
    await create_once(cluster, RESTORES.kind, key, await stamped(cluster, body), at)
    return key


def check_seen(backup: TenantRequest, uid: str) -> None:
    """Refuse a backup that was replaced since the viewer has seen it."""
    if backup.request.metadata.uid != uid:
        raise CommandError(f"NonAdminBackup {backup.key} is another one than you have seen", "plan the restore again")


def restore_fields(backup: str, policy: str) -> dict[str, str]:
    """Return the restoreSpec of a copy: the plan and the restore have the same."""
    return {"backupName": backup, "existingResourcePolicy": policy}  # a default of the policy may be the other one


async def restore_picked(cluster: Cluster, plan: RestorePlan, seen: str) -> list[str]:
    """Write the ticked objects as the viewer, if the plan is still the one that was seen; return what was done."""
    check_only(plan)
    writes = writes_of(plan)
    if not writes or writes_digest(writes) != seen:
        problem = "the objects have changed since you saw the plan, so nothing was restored"
        raise CommandError(problem, "plan the restore again")
    done = list[str]()
    await write_as_caller(cluster, writes, done.append)
    return done


async def set_paused(cluster: Cluster, key: Key, uid: str, *, paused: bool) -> None:
    """Pause or unpause the schedule with that UID."""
    if not uid:  # the API server would take any
        raise CommandError(f"{NON_ADMIN_SCHEDULE.name} {key}: the form has no UID", "open the page of the namespace")
    body = {"metadata": {"uid": uid}, **pause_body(paused=paused, skip=None)}
    await cluster.merge(NON_ADMIN_SCHEDULE, key, await stamped(cluster, body))
