"""Writes that the API server rejects for their content: retries do not help, so users get an Event."""

import re

from foresail.kube.failures import Cause, Failure
from foresail.plan import Action, Apply, Create, Delete, Level, Note, Subject

WRITE_REFUSED = "WriteRefused"
_REFUSALS = (Cause.INVALID, Cause.FORBIDDEN)
_DIGIT = re.compile(r"\d")
_TERMINATING = "because it is being terminated"  # of a namespace: nothing to correct, and no Event could be created


def is_refusal(failure: Failure) -> bool:
    """Whether a write was rejected for its content; a terminating namespace rejects every new object."""
    return failure.cause in _REFUSALS and _TERMINATING not in failure.message


def refusal_note(subject: Subject | None, action: Action, failure: Failure | None) -> Note | None:
    """Return the Event about a rejected write; None if the failure is transient or the namespace terminates."""
    if failure is None or not is_refusal(failure):
        return None
    text = (
        f"The API server refused to {_verb(action)} {action.kind.name} {action.key}: {failure.message} "
        "The operator retries; correct what the message names."
    )
    about = subject or Subject(action.kind, action.key, "")
    return Note(about.kind, about.key, about.uid, WRITE_REFUSED, text, Level.WARNING, _pattern(text))


def _pattern(text: str) -> str:
    """Return a text without request IDs, times and ports: a webhook's answer has others at each retry."""
    return " ".join("#" if _DIGIT.search(word) else word for word in text.split())


def _verb(action: Action) -> str:
    match action:
        case Create():
            return "create"
        case Apply():
            return "apply"
        case Delete():
            return "delete"
        case _:
            return "patch"
