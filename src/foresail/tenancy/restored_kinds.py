"""Which kinds of objects no restore of a tenant brings back: what nobody may, and what the policy refuses."""

from collections.abc import Collection
from fnmatch import fnmatchcase

from foresail.api.nonadmin import NEVER_BACKED_UP
from foresail.api.policy import REFUSED_KINDS, RestoredKinds
from foresail.api.specs import Names

EVERYTHING = "*"

NEVER_RESTORED = (
    *NEVER_BACKED_UP,
    "*.velero.io",
    "*.admissionregistration.k8s.io",
    "*.apiextensions.k8s.io",
    "*.apiregistration.k8s.io",
    "*.certificates.k8s.io",
    "clusterrolebindings.authorization.openshift.io",
    "clusterrolebindings.rbac.authorization.k8s.io",
    "clusterroles.authorization.openshift.io",
    "clusterroles.rbac.authorization.k8s.io",
    "csidrivers.storage.k8s.io",
    "csinodes.storage.k8s.io",
    "events",
    "events.events.k8s.io",
    "flowschemas.flowcontrol.apiserver.k8s.io",
    "ingressclasses.networking.k8s.io",
    "nodes",
    "priorityclasses.scheduling.k8s.io",
    "prioritylevelconfigurations.flowcontrol.apiserver.k8s.io",
    "runtimeclasses.node.k8s.io",
    "securitycontextconstraints.security.openshift.io",
    "storageclasses.storage.k8s.io",
    "virtualmachineclusterinstancetypes.instancetype.kubevirt.io",
    "virtualmachineclusterpreferences.instancetype.kubevirt.io",
    "volumeattachments.storage.k8s.io",
    "volumesnapshotclasses.snapshot.storage.k8s.io",
)
"""What no restore of a tenant brings back, whatever the policy says.

Velero restores nothing without a namespace for a restore of one namespace, unless something else brings it along; the
kinds without a namespace stand here for that case.
"""

REFUSED_BY_OTHER_NAMES = (
    "csistoragecapacities.storage.k8s.io",
    "endpoints",
    "endpointslices.discovery.k8s.io",
    "rolebindingrestrictions.authorization.openshift.io",
    "rolebindings.authorization.openshift.io",
    "roles.authorization.openshift.io",
)
"""Left out with REFUSED_KINDS: the same rights under OpenShift's names, and what the `edit` role may not write."""


def left_out_kinds(kinds: RestoredKinds) -> Names:
    """Return the kinds that a restore leaves out, some of them as patterns, in lower case."""
    return joined(NEVER_RESTORED, _refused(RestoredKinds(_lower(kinds.allowed), _lower(kinds.refused))))


def _lower(kinds: Names | None) -> Names | None:
    return None if kinds is None else tuple(kind.lower() for kind in kinds)


def _refused(kinds: RestoredKinds) -> Names:
    """Return the refused kinds; the other names of the same rights stay refused whatever list the policy has."""
    wanted = kinds.allowed or ()
    chosen = tuple(kind for kind in REFUSED_KINDS if kind not in wanted) if kinds.refused is None else kinds.refused
    return joined(chosen, tuple(kind for kind in REFUSED_BY_OTHER_NAMES if kind not in wanted))


def is_among(name: str, those: Collection[str]) -> bool:
    """Return whether a list of kinds or patterns has a kind, also by its short name."""
    return name != EVERYTHING and any(
        fnmatchcase(name, pattern) or name == pattern.partition(".")[0] for pattern in those
    )


def joined(some: Names, more: Names) -> Names:
    """Return the names of both, each once."""
    return tuple(dict.fromkeys((*some, *more)))


def brings_back(resource: str, kinds: RestoredKinds) -> bool:
    """Whether restores under a policy bring objects of a kind back, by its plural.group."""
    plural = resource.partition(".")[0]
    allowed = kinds.allowed is None or any(kind.lower() in (resource, plural) for kind in kinds.allowed)
    return allowed and not is_among(resource, left_out_kinds(kinds))


def brings_back_kind(group: str, kind: str, kinds: RestoredKinds) -> bool:
    """Whether restores under a policy bring objects of a kind back, as lists of backups name kinds: not by plurals."""
    word = kind.lower()
    plurals = (word, f"{word}s", f"{word}es", *((f"{word[:-1]}ies",) if word.endswith("y") else ()))
    resources = [f"{plural}.{group}" if group else plural for plural in plurals]
    never = left_out_kinds(kinds)
    if any(is_among(resource, never) for resource in resources):
        return False
    return kinds.allowed is None or any(brings_back(resource, kinds) for resource in resources)
