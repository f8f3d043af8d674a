"""Which volumes of a namespace a complete backup has left out.

Whose data was copied or moved is known claim by claim; of snapshots Velero's status has only how many there are. So
the number is right, and the claims are named where no snapshot was taken. It is asked once, when the backup ends: a
claim that comes later is not missed, and one that goes is not forgotten.
"""

import re

from foresail.api import velero
from foresail.selfservice.reasons import Reason
from foresail.selfservice.requests.observe import RequestView
from foresail.selfservice.requests.status import DATA_INCOMPLETE, SUCCEEDED, TRUE, NewCondition
from foresail.selfservice.rows.claims import ClaimRow
from foresail.selfservice.rows.velero import glimpse

_NAMED = 5
_LEFT_OUT = re.compile(r"not backed up: ([^ ,;]+(?:, [^ ,;]+)*)(?:;|$)")


def is_newly_complete(view: RequestView) -> bool:
    """Whether a backup is complete and its request does not say so yet."""
    row = view.velero
    succeeded = view.request.status.condition(SUCCEEDED)
    if view.request.adopted:
        return False  # the volumes of today say nothing about those of then
    return row is not None and row.phase == velero.COMPLETED and (succeeded is None or succeeded.status != TRUE)


def volumes_left_out(view: RequestView, mirror: str) -> NewCondition | None:
    """Report volumes of the namespace that are not in a backup; None if all are, as far as known."""
    status = glimpse(mirror)
    began = status.start_timestamp
    there = [claim for claim in view.claims if claim.is_bound and (began is None or claim.created <= began)]
    missing = [row for row in there if row.uid not in view.saved]
    snapshots = status.volume_snapshots_completed
    if not view.transfers:  # what was moved was a snapshot before that
        snapshots += status.csi_volume_snapshots_completed
    number = len(missing) - snapshots
    if number <= 0:
        return None
    names = "" if snapshots else f": {_named(missing)}"
    whole = f"{len(there)} volume{'' if len(there) == 1 else 's'}"
    were = "was" if number == 1 else "were"
    text = f"Completed, but {number} of {whole} {were} not backed up{names}"
    return NewCondition(DATA_INCOMPLETE, TRUE, Reason.VOLUMES_LEFT_OUT, text)


def claims_left_out(message: str) -> frozenset[str] | None:
    """Return the claims that such a message names; None if it does not name all of them."""
    names = _LEFT_OUT.search(message)
    return frozenset(names[1].split(", ")) if names is not None else None


def _named(claims: list[ClaimRow]) -> str:
    names = sorted(claim.name for claim in claims)
    more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    return ", ".join(names[:_NAMED]) + more
