"""Which volumes of a namespace a complete backup has left out.

Whose data was copied or moved is known claim by claim; of snapshots Velero's status has only how many there are. So
the number is right, and the claims are named where no snapshot was taken. It is asked once, when the backup ends: a
claim that comes later is not missed, and one that goes is not forgotten.
"""

from typing import NamedTuple

from foresail.api import velero
from foresail.api.nonadmin import VolumesLeftOut
from foresail.selfservice.reasons import Reason
from foresail.selfservice.requests.observe import RequestView
from foresail.selfservice.requests.status import DATA_INCOMPLETE, SUCCEEDED, TRUE, NewCondition
from foresail.selfservice.rows.velero import glimpse

MOST_NAMES = 20
"""Claims that the status names; the sentence names fewer."""

_NAMED = 5


class LeftOut(NamedTuple):
    """What is reported of left-out volumes: to people, and to programs."""

    condition: NewCondition
    volumes: VolumesLeftOut


def is_newly_complete(view: RequestView) -> bool:
    """Whether a backup is complete and its request does not say so yet."""
    row = view.velero
    succeeded = view.request.status.condition(SUCCEEDED)
    if view.request.adopted:
        return False  # the volumes of today say nothing about those of then
    return row is not None and row.phase == velero.COMPLETED and (succeeded is None or succeeded.status != TRUE)


def volumes_left_out(view: RequestView, mirror: str) -> LeftOut | None:
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
    names = () if snapshots else tuple(sorted(claim.name for claim in missing))
    whole = f"{len(there)} volume{'' if len(there) == 1 else 's'}"
    were = "was" if number == 1 else "were"
    text = f"Completed, but {number} of {whole} {were} not backed up{_named(names)}"
    condition = NewCondition(DATA_INCOMPLETE, TRUE, Reason.VOLUMES_LEFT_OUT, text)
    return LeftOut(condition, VolumesLeftOut(number, names[:MOST_NAMES]))


def _named(names: tuple[str, ...]) -> str:
    more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    return f": {', '.join(names[:_NAMED])}{more}" if names else ""
