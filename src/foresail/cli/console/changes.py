"""What the buttons change: the writes of `foresail backup create` and `foresail backup schedule pause`."""

from datetime import datetime
from typing import Any

from foresail.api.requests import NON_ADMIN_SCHEDULE
from foresail.cli.access.cluster import Cluster
from foresail.cli.schedule.change import pause_body
from foresail.cli.tenant.requester import stamped
from foresail.plan import Key
from foresail.selfservice.families import BACKUPS


async def back_up_now(cluster: Cluster, namespace: str, now: datetime) -> Key:
    """Create a backup of a whole namespace, and return its name."""
    key = Key(namespace, f"console-{now:%Y%m%d%H%M%S}")
    kind: dict[str, Any] = {"apiVersion": BACKUPS.kind.api_version, "kind": BACKUPS.kind.name}
    body = {**kind, "metadata": {"name": key.name, "namespace": namespace}, "spec": {"backupSpec": {}}}
    await cluster.create(BACKUPS.kind, key, await stamped(cluster, body))
    return key


async def set_paused(cluster: Cluster, key: Key, uid: str, *, paused: bool) -> None:
    """Pause or unpause the schedule with that UID."""
    body = {"metadata": {"uid": uid}, **pause_body(paused=paused, skip=None)}
    await cluster.merge(NON_ADMIN_SCHEDULE, key, await stamped(cluster, body))
