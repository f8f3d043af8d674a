"""What self-service writes on Namespaces: the two labels by which admission policies select them."""

from foresail.api import core
from foresail.api.fence import (
    LABELS,
    OLD_STATUS,
    STATUS,
    UNCHANGED_SPEC,
    UPDATE,
    Condition,
    Rule,
    quoted,
    same,
    unchanged,
    words,
)
from foresail.api.marks import FILE_SYSTEM_LABEL, VELERO_ANNOTATIONS_LABEL
from foresail.tenancy.policies import ALLOWED, REFUSED

_KEYS = (VELERO_ANNOTATIONS_LABEL, FILE_SYSTEM_LABEL)
_VALUES = f"{words(_KEYS)}.all(key, {LABELS}[?key].orValue({quoted(REFUSED)}) in {words((REFUSED, ALLOWED))})"

RULES = (
    Rule(
        core.NAMESPACE,
        UPDATE,
        (
            *unchanged(labels=_KEYS),
            UNCHANGED_SPEC,
            Condition(same(STATUS, OLD_STATUS), "it changes no status"),
            Condition(_VALUES, "the labels for admission are refused or allowed"),
        ),
    ),
)
