"""Who has asked for something, as admission has recorded it, and whose permissions never count."""

import sys
from collections.abc import Iterable, Mapping

from foresail.api.marks import REQUESTER, REQUESTER_GROUPS

_LONGEST_USER = 1 << 10
_LONGEST_GROUPS = 16 << 10
"""Characters of the annotations that name a requester."""

_SERVICE_ACCOUNT = "system:serviceaccount:"


def requester_of(annotations: Mapping[str, str]) -> tuple[str, tuple[str, ...]]:
    """Return the user who asked and that user's groups; a text that is too long counts as none."""
    user = _short(_LONGEST_USER, annotations.get(REQUESTER, ""))
    groups = _short(_LONGEST_GROUPS, annotations.get(REQUESTER_GROUPS, ""))
    return sys.intern(user), tuple(sys.intern(group) for group in groups.split("\n") if group)


def is_system_account(user: str, reserved: Iterable[str]) -> bool:
    """Whether a user is an account of the control plane or of a namespace that no policy reaches."""
    is_kubernetes = user.startswith(f"{_SERVICE_ACCOUNT}kube-") or user == "system:kube-controller-manager"
    return is_kubernetes or any(user.startswith(f"{_SERVICE_ACCOUNT}{namespace}:") for namespace in reserved)


def _short(most: int, text: str) -> str:
    return text if len(text) <= most else ""
