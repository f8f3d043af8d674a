"""How long Velero may wait for the snapshots of one backup, all claims together.

Velero waits for one snapshot after the other, and everybody's backups wait meanwhile. A limit for each is none for all:
a claim whose snapshot never comes costs the whole time, and a tenant can have many.
"""

from datetime import timedelta
from typing import Any

from foresail.cron.duration import length_of
from foresail.selfservice.reasons import Reason, Refused
from foresail.tenancy.policies import PolicyRow

VELEROS_SNAPSHOT = "10m"
"""How long Velero waits for a snapshot unless it is told otherwise."""

BUDGET = timedelta(hours=1)
"""How long Velero may wait for all snapshots of a backup."""

SHORTEST = timedelta(seconds=30)
"""Less is no time for a snapshot: the backup is refused then."""

_FIELD = "csiSnapshotTimeout"


def are_bounded(policy: PolicyRow) -> bool:
    """Whether the budget holds; an administrator who requires a timeout has decided otherwise."""
    return policy.spec.backup.required.csi_snapshot_timeout is None


def within_budget(spec: dict[str, Any], claims: int, policy: PolicyRow) -> dict[str, Any] | Refused:
    """Return the spec of a backup with a timeout that leaves each claim its share, or why there is none."""
    if spec.get("snapshotVolumes") is False or not are_bounded(policy) or not claims:
        return spec
    share = BUDGET // claims
    if share < SHORTEST:
        text = (
            f"The namespace has {claims:,} volume claims, and Velero waits for at most {BUDGET // SHORTEST} snapshots"
        )
        more = "set snapshotVolumes: false, exclude persistentvolumeclaims, or ask for a required csiSnapshotTimeout"
        return Refused(Reason.POLICY_VIOLATION, f"{text}; {more}")
    asked = length_of(spec.get(_FIELD) or VELEROS_SNAPSHOT)
    if asked is not None and timedelta() < asked <= share:
        return spec
    return {**spec, _FIELD: f"{share // timedelta(seconds=1)}s"}
