"""Who refused an item: what the API server's answer to a dry run means."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from http import HTTPStatus
from typing import Any


class By(Enum):
    """Who refuses an item."""

    RBAC = "RBAC"
    QUOTA = "quota"
    LIMITS = "limit range"
    POD_SECURITY = "Pod Security"
    ADMISSION_POLICY = "admission policy"
    WEBHOOK = "webhook"
    ADMISSION = "admission"
    SCHEMA = "schema"
    MISSING_KIND = "missing kind"
    MISSING_CLASS = "missing class"
    NAMESPACE = "namespace"
    MODIFIER = "resource modifier"
    BACKUP = "backup"
    PLUGIN_CONFIG = "plugin configuration"
    SERVER = "API server"


@dataclass(frozen=True, slots=True)
class Answer:
    """What the API server answered to a dry run; an empty reason and code 0 stand for accepted."""

    code: int = 0
    reason: str = ""
    message: str = ""
    result: Mapping[str, Any] | None = None  # the object as it would be, of a patch

    @property
    def is_accepted(self) -> bool:
        """Whether the API server would do it."""
        return self.code == 0 and not self.message


_MESSAGES = (
    (r"admission webhook|failed calling webhook", By.WEBHOOK),
    (r"ValidatingAdmissionPolicy|MutatingAdmissionPolicy", By.ADMISSION_POLICY),
    (r"exceeded quota|must specify .* for:|failed quota|status unknown for quota", By.QUOTA),
    (r"violates PodSecurity", By.POD_SECURITY),
    (r"no PriorityClass with name|RuntimeClass .* not found|runtimeclass.* not found", By.MISSING_CLASS),
    (r"(maximum|minimum) \S+ usage per|limit to request ratio|No limit is specified", By.LIMITS),
    (r"because it is being terminated|namespaces \"[^\"]*\" not found", By.NAMESPACE),
    (r"attempting to grant RBAC permissions not currently held", By.RBAC),
    (r"is forbidden: User \"[^\"]*\" cannot ", By.RBAC),
    (r"the server could not find the requested resource|404 page not found|no matches for kind", By.MISSING_KIND),
)
_ACCOUNT = re.compile(r"error looking up service account ([^/\s]+)/([^:\s]+):")
_PRIORITY_CLASS = re.compile(r"no PriorityClass with name (\S+) was found")
_NO_DRY_RUN = re.compile(r"admission webhook \"([^\"]*)\" does not support dry run")
_BY_CODE = {
    HTTPStatus.BAD_REQUEST: By.SCHEMA,
    HTTPStatus.UNPROCESSABLE_ENTITY: By.SCHEMA,
    HTTPStatus.FORBIDDEN: By.ADMISSION,
    HTTPStatus.NOT_FOUND: By.MISSING_KIND,
}
_NO_JUDGEMENT = (
    0,  # no answer at all
    HTTPStatus.TOO_MANY_REQUESTS,
    HTTPStatus.INTERNAL_SERVER_ERROR,
    HTTPStatus.BAD_GATEWAY,
    HTTPStatus.SERVICE_UNAVAILABLE,
    HTTPStatus.GATEWAY_TIMEOUT,
)


def refused_by(answer: Answer) -> By:
    """Return who refused."""
    for pattern, by in _MESSAGES:
        if re.search(pattern, answer.message):
            return by
    return _BY_CODE.get(HTTPStatus(answer.code), By.SERVER) if answer.code in set(HTTPStatus) else By.SERVER


def is_unanswered(answer: Answer) -> bool:
    """Whether nobody judged the item: the API server was unreachable, overloaded or broken."""
    return not answer.is_accepted and answer.code in _NO_JUDGEMENT and refused_by(answer) is By.SERVER


def missing_account(answer: Answer) -> str:
    """Return the ServiceAccount that a pod was refused for; empty if that is not why."""
    match = _ACCOUNT.search(answer.message)
    return match.group(2) if match else ""


def missing_priority_class(answer: Answer) -> str:
    """Return the PriorityClass that a pod was refused for; empty if that is not why."""
    match = _PRIORITY_CLASS.search(answer.message)
    return match.group(1) if match else ""


def webhook_without_dry_run(answer: Answer) -> str:
    """Return the webhook that takes no dry runs; empty if none is to blame."""
    match = _NO_DRY_RUN.search(answer.message)
    return match.group(1) if match else ""
