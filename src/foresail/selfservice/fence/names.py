"""How names and labels tell whose an object in Velero's namespace is."""

from foresail.api import nonadmin
from foresail.api.fence import LABELS, NAME, all_of, only, quoted, value

OURS = "[0-9a-f]{8}-[0-9a-f]{4}-5[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}"
"""The UUID at the end of a name that this controller gave."""

OF_TENANT = "-[0-9a-f]{8}-[0-9a-f]{4}-[45][0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}$"
"""The end of a name of a tenant's object, by this controller or the other one."""

_STEM = 20  # characters of a namespace that are in every name, however long it is


def is_of(name: str, origin: str) -> str:
    """Return whether the name of a Velero object can be of a tenant's namespace."""
    short = f'{name}.startsWith({origin} + "-")'
    return f"({origin}.size() > {_STEM} ? {name}.startsWith({origin}.substring(0, {_STEM})) : {short})"


def labels(label: str, more: tuple[str, ...] = ()) -> str:
    """Return whether an object has the labels of every object of a tenant, one with its own name, and some others."""
    fixed = [f"{LABELS}[?{quoted(key)}] == optional.of({quoted(text)})" for key, text in nonadmin.LABELS.items()]
    return all_of(only(LABELS, (*nonadmin.LABELS, label, *more)), *fixed, f"{value(LABELS, label)} == {NAME}")
