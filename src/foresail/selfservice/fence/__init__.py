"""What the ServiceAccount of self-service writes, as its fence holds it to."""

from foresail.api.fence import NAMESPACE, SPEC, Fence, events, lease, matches, quoted
from foresail.api.marks import FACTS, SELF_SERVICE_LEASE
from foresail.kube.events import EVENT
from foresail.kube.lease import LEASE
from foresail.selfservice.families import BACKUPS, RESTORES
from foresail.selfservice.fence import locations, namespaces, requests, velero
from foresail.selfservice.rows.locations import ORIGIN_NAMESPACE

_ORIGINS = {
    "backups": BACKUPS.origin_namespace,
    "restores": RESTORES.origin_namespace,
    "backupstoragelocations": ORIGIN_NAMESPACE,
    "secrets": ORIGIN_NAMESPACE,
    "nonadminbackupstoragelocationrequests": ORIGIN_NAMESPACE,
}
_KEYS = "{" + ", ".join(f"{quoted(kind)}: {quoted(key)}" for kind, key in _ORIGINS.items()) + "}"


def _is_reachable(name: str) -> str:
    """Return whether self-service may act in a namespace, by the values of the chart."""
    is_matched = (
        f'pattern.endsWith("*") ? {name}.startsWith(pattern.substring(0, pattern.size() - 1)) : {name} == pattern'
    )
    return (
        f"{matches(name, NAMESPACE)} && !variables.excludedNamespaces.exists(pattern, {is_matched})"
        f" && (variables.namespaces.size() == 0 || variables.namespaces.exists(pattern, {is_matched}))"
    )


FENCE = Fence(
    SELF_SERVICE_LEASE,
    "selfService.enabled",
    "The token of self-service, fenced: Velero acts as cluster administrator, so the shape of what it is given\n"
    "is held here. Written by `make fences` from src/foresail/selfservice/fence: change that.",
    (
        *velero.RULES,
        *requests.RULES,
        *locations.RULES,
        *namespaces.RULES,
        events(EVENT),
        lease(LEASE, SELF_SERVICE_LEASE, (FACTS,)),
    ),
    {
        "allowsHooks": "{{ .Values.selfService.hooks }}",
        "allowsUpdates": "{{ .Values.selfService.updateExisting }}",
        "allowsOtherNamespaces": "{{ .Values.selfService.otherNamespaces }}",
        "allowsFromProtection": "{{ .Values.selfService.fromProtection }}",
        "allowsContents": "{{ .Values.selfService.downloadContents }}",
        "resourcePolicies": "{{ toJson .Values.selfService.resourcePolicies }}",
        "resourceModifiers": "{{ toJson .Values.selfService.resourceModifiers }}",
        "endpoints": "{{ toJson .Values.selfService.locations.endpoints }}",
        "namespaces": "{{ toJson .Values.selfService.namespaces }}",
        "excludedNamespaces": '{{ include "foresail.excludedNamespaces" . }}',
        "origin": f'variables.kind in {_KEYS} ? variables.annotations[?{_KEYS}[variables.kind]].orValue("")'
        " : request.namespace",
        "isReachable": _is_reachable("variables.origin"),
        "target": f'{SPEC}[?"namespaceMapping"][?variables.origin].orValue("")',
        "isTargetReachable": _is_reachable("variables.target"),
    },
)
