"""Failures of requests to the API server: values, not exceptions; and the Event about a write that it rejects."""

import re
from enum import Enum

import msgspec

from foresail.plan import Action, Apply, Create, Delete, DeleteLabelled, Level, Note, Subject


class Cause(Enum):
    """What a caller can act on."""

    NOT_FOUND = "NotFound"
    ALREADY_EXISTS = "AlreadyExists"
    CONFLICT = "Conflict"
    EXPIRED = "Expired"
    INVALID = "Invalid"
    FORBIDDEN = "Forbidden"
    UNAUTHORIZED = "Unauthorized"
    TOO_MANY = "TooManyRequests"
    SERVER = "ServerError"
    UNREACHABLE = "Unreachable"
    UNREADABLE = "Unreadable"
    TOO_LARGE = "TooLarge"  # the answer has more bytes than are read of it
    NOT_LEADING = "NotLeading"  # no request was sent: another replica may be writing
    OTHER = "Other"


INITIALIZING_SECONDS = 1.0
"""The longest pause before a kind is read again whose storage is initializing."""

_INITIALIZING = "storage is (re)initializing"


class Failure(msgspec.Struct, frozen=True):
    """Why a request failed, with the server's message if there is one."""

    cause: Cause
    message: str
    code: int = 0
    reason: str = ""  # the server's reason, such as NamespaceTerminating
    retry_after: float | None = None

    @property
    def is_initializing(self) -> bool:
        """Whether the API server is filling its cache of a kind, as after the creation of its definition.

        It is soon ready. Its Retry-After grows to 30 s with the time that this has taken.
        """
        return self.cause is Cause.TOO_MANY and _INITIALIZING in self.message

    def __str__(self) -> str:
        return f"{self.cause.value}: {self.message}" + (f" ({self.code})" if self.code else "")


class Status(msgspec.Struct):
    """An error as the API server sends it: the body of an answer, or an event of a watch."""

    code: int = 0
    reason: str = ""
    message: str = ""


_BY_REASON = {"AlreadyExists": Cause.ALREADY_EXISTS, "Expired": Cause.EXPIRED, "Gone": Cause.EXPIRED}
_BY_CODE = {
    400: Cause.INVALID,
    401: Cause.UNAUTHORIZED,
    403: Cause.FORBIDDEN,
    404: Cause.NOT_FOUND,
    409: Cause.CONFLICT,
    410: Cause.EXPIRED,
    422: Cause.INVALID,
    429: Cause.TOO_MANY,
}
_SERVER_ERRORS = 500


def failure(code: int, reason: str, message: str, retry_after: float | None = None) -> Failure:
    """Return the failure for a status of the API server."""
    cause = _BY_REASON.get(reason) or _BY_CODE.get(code)
    if cause is None:
        cause = Cause.SERVER if code >= _SERVER_ERRORS else Cause.OTHER
    return Failure(cause, message, code, reason, retry_after)


def unreachable(problem: BaseException) -> Failure:
    """Return the failure of a request that got no answer."""
    return Failure(Cause.UNREACHABLE, str(problem) or type(problem).__name__)


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
    return Note(about.kind, about.key, about.uid, WRITE_REFUSED, text, Level.WARNING, pattern(text))


def pattern(text: str) -> str:
    """Return a text without request IDs, times and ports: an answer has others at each retry."""
    return " ".join("#" if _DIGIT.search(word) else word for word in text.split())


def _verb(action: Action) -> str:
    match action:
        case Create():
            return "create"
        case Apply():
            return "apply"
        case Delete() | DeleteLabelled():
            return "delete"
        case _:
            return "patch"
