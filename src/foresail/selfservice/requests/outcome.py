"""The outcome of a request, from Velero's status, and which volumes of a namespace a complete backup has left out.

Whose data was copied or moved is known claim by claim; of snapshots Velero's status has only how many there are. So
the number is right, and the claims are named where no snapshot was taken. It is asked once, when the backup ends: a
claim that comes later is not missed, and one that goes is not forgotten.
"""

import re
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from foresail.api import velero
from foresail.api.nonadmin import Condition, VolumesLeftOut
from foresail.reporting import some
from foresail.selfservice.families import RESTORES, Family
from foresail.selfservice.reasons import Reason
from foresail.selfservice.requests.status import DATA_INCOMPLETE, FALSE, SUCCEEDED, TRUE, UNKNOWN, NewCondition
from foresail.selfservice.rows.requests import RequestRow
from foresail.selfservice.rows.velero import glimpse

if TYPE_CHECKING:  # a command imports this module, and none of what a view is made of
    from foresail.selfservice.requests.view import RequestView

_LONGEST_BEGINNING = 768

_THEN = ". "

RESTARTED = "Velero was restarted while it ran; create it again"
"""The cause of what Velero found unfinished at its start; it has stored no log and no results about it."""

_FOUND_AT_START = re.compile(r'found a (?:backup|restore) with status "\w*" during the server starting, .*', re.DOTALL)

_NAMESPACES = ("namespaces", "namespace", "ns")


class _LeftOut(msgspec.Struct, frozen=True, rename="camel"):
    excluded_cluster_scoped_resources: tuple[str, ...] | None = None


_ENDED = {
    velero.COMPLETED: (TRUE, Reason.COMPLETED, "{} completed"),
    velero.PARTIALLY_FAILED: (FALSE, Reason.PARTIALLY_FAILED, "{} partially failed"),
    velero.FAILED: (FALSE, Reason.FAILED, "{} failed"),
    velero.FAILED_VALIDATION: (FALSE, Reason.FAILED_VALIDATION, "{} rejected by Velero"),
}


def outcome(family: Family, mirror: str) -> NewCondition | None:
    """Return the condition for Velero's status; None while it has no outcome."""
    reported = glimpse(mirror)
    word = family.word
    if reported.phase == "Deleting":
        return None  # the outcome was known before
    if reported.phase in velero.WAITING:
        return NewCondition(SUCCEEDED, UNKNOWN, Reason.WAITING, f"Waiting for Velero to start the {word}")
    if reported.phase not in _ENDED:
        return NewCondition(SUCCEEDED, UNKNOWN, Reason.RUNNING, f"{word.capitalize()} is {reported.phase}")
    status, reason, text = _ENDED[reported.phase]
    errors = reported.errors if isinstance(reported.errors, int) else 0
    hooks = reported.hook_status.hooks_failed if reported.hook_status is not None else 0
    is_restored = family is RESTORES and reported.phase == velero.COMPLETED  # its warnings say what it left
    warnings = 0 if is_restored else reported.warnings
    numbers = ((errors, "error"), (warnings, "warning"), (hooks, "failed hook"))
    counts = ", ".join(filter(None, (_counted(*number) for number in numbers)))
    causes = "; ".join(filter(None, (cause_in_words(reported.failure_reason), *(reported.validation_errors or ()))))
    details = "; ".join(filter(None, (counts, causes)))
    message = text.format(word.capitalize()) + (f": {details}" if details else "")
    return NewCondition(SUCCEEDED, status, reason, message)


def cause_in_words(failure_reason: str) -> str:
    """Return the reason that Velero gives for a failure, in the words of users if it has one of its own."""
    return RESTARTED if _FOUND_AT_START.fullmatch(failure_reason) else failure_reason


def has_files(condition: NewCondition) -> bool:
    """Whether Velero has stored files about something that ended like this."""
    return not condition.message.endswith(RESTARTED)


def nothing_backed_up(mirror: str, spec: str) -> NewCondition | None:
    """Report a complete backup without any requested object: at most the Namespace, which Velero counts."""
    reported = glimpse(mirror)
    if reported.phase != velero.COMPLETED or reported.progress is None or reported.progress.total_items > 1:
        return None
    if reported.progress.total_items and not _holds_namespace(spec):
        return None
    text = "Completed, but nothing was backed up: no object in the namespace matches the backup spec"
    return NewCondition(DATA_INCOMPLETE, TRUE, Reason.NOTHING_BACKED_UP, text)


def _holds_namespace(spec: str) -> bool:
    """Whether Velero includes the Namespace itself."""
    left_out = msgspec.json.decode(spec, type=_LeftOut).excluded_cluster_scoped_resources or ()
    return not any(fnmatchcase(name, pattern) for pattern in left_out for name in _NAMESPACES)


def has_ended(request: RequestRow) -> bool:
    """Whether the outcome of a request is reported."""
    succeeded = request.status.condition(SUCCEEDED)
    return succeeded is not None and succeeded.status != UNKNOWN


def is_waiting(request: RequestRow) -> bool:
    """Whether Velero had not begun with the object of a request when it was last observed."""
    succeeded = request.status.condition(SUCCEEDED)
    return succeeded is None or succeeded.reason == Reason.WAITING


def beginning(condition: NewCondition) -> str:
    """Return the beginning of a message that continues with the cause."""
    return cut(condition.message, _LONGEST_BEGINNING) + _THEN


def kept(before: Condition | None, condition: NewCondition) -> NewCondition:
    """Return the condition to report, with the cause if the current one already has it."""
    if before is None or (before.status, before.reason) != (condition.status, condition.reason.value):
        return condition
    if not before.message.startswith(beginning(condition)):
        return condition
    return msgspec.structs.replace(condition, message=before.message)


def cut(text: str, most: int) -> str:
    """Return a text of at most so many bytes."""
    data = text.encode(errors="replace")
    return text if len(data) <= most else data[: max(most - 3, 0)].decode(errors="ignore") + "..."


def _counted(number: int, word: str) -> str:
    return f"{number} {word}{'' if number == 1 else 's'}" if number else ""


MOST_NAMES = 20
"""Claims that the status names; the sentence names fewer."""


class LeftOut(NamedTuple):
    """What is reported of left-out volumes: to people, and to programs."""

    condition: NewCondition
    volumes: VolumesLeftOut


def is_newly_complete(view: "RequestView") -> bool:
    """Whether a backup is complete and its request does not say so yet."""
    row = view.velero
    succeeded = view.request.status.condition(SUCCEEDED)
    if view.request.adopted:
        return False  # the volumes of today say nothing about those of then
    return row is not None and row.phase == velero.COMPLETED and (succeeded is None or succeeded.status != TRUE)


def volumes_left_out(view: "RequestView", mirror: str) -> LeftOut | None:
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
    return f": {some(names)}" if names else ""
