"""The labels of what a check makes."""

from foresail.api.marks import CHECK_LABEL, NOT_BACKED_UP
from foresail.proof.checks.observe import CheckRow

EXCLUDED = {NOT_BACKED_UP: "true"}
"""On each object in a sandbox, never on its namespace.

While a namespace has it, Velero leaves cluster-scoped objects out of other Backups.
"""


def own_labels(check: CheckRow) -> dict[str, str]:
    """Return the label by which an object of a check is found."""
    return {CHECK_LABEL: check.uid}


def labels_in_sandbox(check: CheckRow) -> dict[str, str]:
    """Return the labels of an object that the operator creates in a sandbox."""
    return {**own_labels(check), **EXCLUDED}
