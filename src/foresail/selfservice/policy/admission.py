"""The labels by which admission policies select a namespace: set while a SelfServicePolicy selects it, else removed.

Whoever removes them again and again is not fought: the next write waits, longer each time, and an Event reports it.
Requests of the namespace wait until the labels are observed.
"""

from datetime import datetime, timedelta

import msgspec

from foresail.api.core import NAMESPACE
from foresail.plan import Key, Level, Note, Patch, Plan, Subject
from foresail.selfservice.reasons import Reason
from foresail.tenancy.namespaces import AdmissionLabels, NamespaceRow

WORD = "admission"
"""The controller of these labels."""

PAUSES = (timedelta(seconds=10), timedelta(minutes=1), timedelta(minutes=10))
"""How long a label that someone else changed back stays as it is, by the number of times; the last pause repeats."""

FORGOTTEN = timedelta(hours=1)
"""After which a label that is missing again counts as missing for the first time."""


class LabelWrite(msgspec.Struct, frozen=True):
    """The last write of the labels of a namespace, and how many writes before it someone else undid."""

    labels: AdmissionLabels
    at: datetime
    undone: int = 0


class AdmissionView(msgspec.Struct, frozen=True):
    """A namespace, the labels that it should have, and what was last written."""

    name: str
    namespace: NamespaceRow
    labels: AdmissionLabels
    last: LabelWrite | None = None


def missing_label(namespace: NamespaceRow, labels: AdmissionLabels) -> str:
    """Return the first label that a namespace should have and has not, as `key=value`; empty if it has both."""
    actual = namespace.admission.by_key()
    return next((f"{key}={value}" for key, value in labels.by_key().items() if actual[key] != value), "")


def decide(view: AdmissionView, now: datetime) -> Plan:
    """Set or remove the labels of a namespace, or wait because someone else has just changed them back."""
    row = view.namespace
    if row.is_terminating or row.admission == view.labels:
        return Plan()
    undone = times_undone(view, now)
    if undone and view.last is not None:
        due = view.last.at + PAUSES[min(undone, len(PAUSES)) - 1]
        if now < due:
            return Plan(notes=(_undone(view),), wake_at=due)
    labels = {key: value or None for key, value in view.labels.by_key().items()}
    key = Key("", view.name)
    write = Patch(NAMESPACE, key, {"metadata": {"uid": row.uid, "labels": labels}})
    return Plan((write,), subject=Subject(NAMESPACE, key, row.uid))


def times_undone(view: AdmissionView, now: datetime) -> int:
    """Return how often in a row someone else has changed the same labels back after we wrote them."""
    last = view.last
    if last is None or last.labels != view.labels or now > last.at + FORGOTTEN:
        return 0
    return last.undone + 1


def _undone(view: AdmissionView) -> Note:
    label = missing_label(view.namespace, view.labels) or ", ".join(view.labels.by_key())
    text = (
        f"Someone else changed the labels of namespace {view.name}: {label} is missing or left over. The operator sets"
        " it again later; requests wait. Let the tool that manages the namespace ignore it."
    )
    return Note(
        NAMESPACE, Key("", view.name), view.namespace.uid, Reason.NAMESPACE_UNLABELLED.value, text, Level.WARNING
    )
