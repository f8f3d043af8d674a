"""How long Velero waits for the snapshots of a tenant's backup.

It waits for one after the other, and everybody's backups wait meanwhile. A limit for one snapshot limits nothing: a
claim whose snapshot never comes costs the whole time, and a tenant can have many.
"""

from collections.abc import Mapping
from datetime import timedelta
from typing import Any

from foresail.cron.duration import length_of
from foresail.selfservice.reasons import Reason, Refused
from foresail.tenancy.policies import PolicyRow

VELEROS_OWN = "10m"
"""How long Velero waits for a snapshot unless it is told otherwise."""

BUDGET = timedelta(hours=1)
"""How long Velero may wait for all snapshots of a backup."""

SHORTEST = timedelta(seconds=30)
"""Less is no time for a snapshot: the backup is refused then."""

_FIELD = "csiSnapshotTimeout"


def is_bounded(policy: PolicyRow) -> bool:
    """Whether the budget holds; an administrator who requires a timeout has decided otherwise."""
    return policy.spec.backup.required.csi_snapshot_timeout is None


def within_budget(spec: dict[str, Any], claims: int, policy: PolicyRow) -> dict[str, Any] | Refused:
    """Return the spec of a backup with a timeout that leaves each claim its share, or why there is none."""
    if spec.get("snapshotVolumes") is False or not is_bounded(policy) or not claims:
        return spec
    share = BUDGET // claims
    if share < SHORTEST:
        most = BUDGET // SHORTEST
        text = f"The namespace has {claims:,} volume claims, and Velero waits for at most {most} snapshots"
        more = "set snapshotVolumes: false, exclude persistentvolumeclaims, or ask for a required csiSnapshotTimeout"
        return Refused(Reason.POLICY_VIOLATION, f"{text}; {more}")
    asked = length_of(spec.get(_FIELD) or VELEROS_OWN)
    if asked is not None and timedelta() < asked <= share:
        return spec
    return {**spec, _FIELD: f"{share // timedelta(seconds=1)}s"}


def shortened(asked: Mapping[str, Any], bounded: Mapping[str, Any], claims: int) -> str:
    """Return what a tenant reads of a timeout that is not as asked for; empty if it is."""
    after = bounded.get(_FIELD)
    before = asked.get(_FIELD)
    if after == before:
        return ""
    text = f"Velero waits at most {after} for each snapshot instead of {before or VELEROS_OWN}"
    return f"{text}, because the {claims:,} volume claims of the namespace get one hour together"
