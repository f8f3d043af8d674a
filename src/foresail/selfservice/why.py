"""Why it failed, as a part of the condition `Succeeded`: what its message begins with, and what is said after that.

The message itself is the record that the results were read: it begins with what the status comes to, and goes on.
"""

import msgspec

from foresail.api.nonadmin import Condition
from foresail.plan import Key
from foresail.selfservice.families import Family
from foresail.selfservice.results_file import Lines
from foresail.selfservice.status import Said

MOST_BYTES = 2048
_LONGEST_BEGINNING = 768
_THEN = ". "


def beginning(said: Said) -> str:
    """Return with what a message begins that goes on with the cause."""
    return cut(said.message, _LONGEST_BEGINNING) + _THEN


def kept(before: Condition | None, said: Said) -> Said:
    """Return what is to be said, with the cause if that stands there already."""
    if before is None or (before.status, before.reason) != (said.status, said.reason.value):
        return said
    if not before.message.startswith(beginning(said)):
        return said
    return msgspec.structs.replace(said, message=before.message)


def explained(said: Said, cause: str) -> Said:
    """Return what is to be said, with its cause; at most 2 KiB, whatever the cause."""
    return msgspec.structs.replace(said, message=cut(beginning(said) + cause, MOST_BYTES))


def told(lines: Lines, said: Said, family: Family, key: Key) -> str:
    """Return the cause in the words of Velero's results, and where there is more."""
    begin = "Velero says: "
    end = _where_more(lines, family, key)
    room = MOST_BYTES - sum(len(each.encode()) for each in (beginning(said), begin, end))
    shown = cut("; ".join(lines.own), room)
    return f"{begin}{shown}{end}" if shown else end.removeprefix("; ")


def unreadable(problem: str, family: Family, key: Key) -> str:
    """Return that the cause could not be read, and how the tenant can ask for it."""
    return f"Velero's results could not be read, for {problem}: read the log with {_command(family, key)}"


def _where_more(lines: Lines, family: Family, key: Key) -> str:
    if not lines.own and not lines.others:
        return "Velero's results have no line about it: read the log with " + _command(family, key)
    left = [f"{lines.more} more"] if lines.more else []
    if lines.others:
        left.append(f"{lines.others} {'error' if lines.others == 1 else 'errors'} without a namespace")
    command = f"{_command(family, key)} --results"
    return f"; {' and '.join(left)}: read all with {command}" if left else ""


def _command(family: Family, key: Key) -> str:
    return f"foresail {family.word} logs {key.name} -n {key.namespace}"


def cut(text: str, most: int) -> str:
    """Return a text of at most so many bytes."""
    data = text.encode(errors="replace")
    return text if len(data) <= most else data[: max(most - 3, 0)].decode(errors="ignore") + "..."
