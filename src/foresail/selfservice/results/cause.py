"""The cause of a failure in the message of the condition `Succeeded`.

The message itself records that the results were read: it begins with the outcome, and the cause follows.
"""

import msgspec

from foresail.plan import Key
from foresail.selfservice.families import Family
from foresail.selfservice.requests.outcome import beginning, cut
from foresail.selfservice.requests.status import NewCondition
from foresail.selfservice.results.file import Lines

MOST_BYTES = 2048


def explained(condition: NewCondition, cause: str) -> NewCondition:
    """Return the condition with its cause, in at most 2 KiB."""
    message = beginning(condition) + cause if cause else condition.message
    return msgspec.structs.replace(condition, message=cut(message, MOST_BYTES))


def told_first(condition: NewCondition, summary: str) -> NewCondition:
    """Return the condition with what a restore did after its outcome, unless that is too long."""
    longer = msgspec.structs.replace(condition, message=beginning(condition) + summary)
    return longer if beginning(longer).startswith(longer.message) else condition


def reported_cause(lines: Lines, condition: NewCondition, family: Family, key: Key) -> str:
    """Return the cause from Velero's results, and the command that shows more."""
    begin = "Velero reports: "
    end = _where_more(lines, family, key)
    room = MOST_BYTES - sum(len(each.encode()) for each in (beginning(condition), begin, end))
    shown = cut("; ".join(lines.own), room)
    return f"{begin}{shown}{end}" if shown else end.removeprefix("; ")


def unreadable(problem: str, family: Family, key: Key) -> str:
    """Report that the cause could not be read, and the command that shows it."""
    return f"Velero's results could not be read ({problem}). Read the log with {_command(family, key)}"


def _where_more(lines: Lines, family: Family, key: Key) -> str:
    if not lines.own and not lines.others:
        return "Velero's results do not mention it. Read the log with " + _command(family, key)
    left = [f"{lines.more} more"] if lines.more else []
    if lines.others:
        left.append(f"{lines.others} {'error' if lines.others == 1 else 'errors'} without a namespace")
    command = f"{_command(family, key)} --results"
    return f"; {' and '.join(left)}. Read all with {command}" if left else ""


def _command(family: Family, key: Key) -> str:
    return f"foresail {family.word} logs {key.name} -n {key.namespace}"
