"""The objects of a check with depth Data: sandboxes in which pods may start, the canary, and the assertion."""

import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field

from foresail.api import core
from foresail.api.marks import CHECK_DEPTH, SANDBOX_ROLE
from foresail.api.pods import POD, RESOURCE_QUOTA
from foresail.api.restore_check import Assertion
from foresail.plan import Create, Key
from foresail.proof.checks.contents import Place
from foresail.proof.checks.rows import EXCLUDED, CheckRow, labels_in_sandbox
from foresail.proof.checks.view import DataSettings

MOST_PODS, MOST_CLAIMS = 100, 50
"""In one sandbox."""

_CANARY_SECONDS = 300
Body = Mapping[str, object]


def canary_name(run: str) -> str:
    """Return the name of the canary; no object of the backup has it."""
    return f"foresail-canary-{run}"


def assertion_name(run: str) -> str:
    """Return the name of the pod of the assertion."""
    return f"foresail-assertion-{run}"


@dataclass(frozen=True, slots=True)
class Bounds:
    """What a sandbox where pods start may take."""

    objects: Mapping[str, str]
    free_classes: Collection[str]
    """Storage classes with a volume that any claim could take: Velero would write into it, whoever's it is."""


def fence(check: CheckRow, settings: DataSettings, key: Key, bounds: Bounds, mark: Mapping[str, str]) -> list[Create]:
    """Return the network policy, the operator's own rights and the quota of a sandbox where pods start.

    Pods of one sandbox reach each other, so that an application can become ready, and nothing else.
    """
    labels = labels_in_sandbox(check)
    hard = {
        **bounds.objects,
        **{f"{name}.storageclass.storage.k8s.io/persistentvolumeclaims": "0" for name in bounds.free_classes if name},
        "pods": str(MOST_PODS),
        "persistentvolumeclaims": str(MOST_CLAIMS),
        "requests.storage": check.spec.storage,
        "services.loadbalancers": "0",
        "services.nodeports": "0",
    }
    inside: list[Body] = [{"podSelector": {}}]
    closed = {
        "podSelector": {},
        "policyTypes": ["Ingress", "Egress"],
        "ingress": [{"from": inside}],
        "egress": [{"to": inside}],
    }
    account = settings.account
    rights = {
        "metadata": {"labels": labels},
        "roleRef": {"apiGroup": core.ROLE_BINDING.group, "kind": "ClusterRole", "name": SANDBOX_ROLE},
        "subjects": [{"kind": "ServiceAccount", "name": account.name, "namespace": account.namespace}],
    }
    return [
        Create(core.NETWORK_POLICY, key, {"metadata": {"labels": labels}, "spec": closed}, mark),
        Create(core.ROLE_BINDING, key, rights, mark),
        Create(RESOURCE_QUOTA, key, {"metadata": {"labels": labels}, "spec": {"hard": hard}}, mark),
    ]


def namespace_labels() -> dict[str, str]:
    """Return the labels of a sandbox in which pods start."""
    return {CHECK_DEPTH: "Data"}


def canary(
    settings: DataSettings, labels: Mapping[str, str], key: Key, outside: str, mark: Mapping[str, str]
) -> Create:
    """Return the pod that tries to get out of a sandbox before anything of the backup is in it."""
    targets = [f"bucket={outside}"] if outside else []
    targets += [f"{target}={target}" for target in settings.targets]
    container = {"name": "canary", "image": settings.canary_image, "args": ["canary", *targets]}
    body = _pod(labels, container, _CANARY_SECONDS)
    return Create(POD, key, body, mark)


def assertion(wanted: Assertion, labels: Mapping[str, str], key: Key, mark: Mapping[str, str], seconds: int) -> Create:
    """Return the pod that runs the user's command once."""
    container = {"name": "assertion", "image": wanted.image, "command": [*wanted.command]}
    return Create(POD, key, _pod(labels, container, seconds, wanted.run_as_user), mark)


def _pod(labels: Mapping[str, str], container: Body, seconds: int, user: int | None = None) -> Body:
    """Return a pod that meets the restricted Pod Security Standard, runs once and has no token.

    It names no user of ours: OpenShift's restricted-v2 refuses a fixed one. A quota of the backup may ask for limits.
    """
    chosen = {} if user is None else {"runAsUser": user}
    restricted = {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}}
    resources = {"requests": {"cpu": "10m", "memory": "64Mi"}, "limits": {"cpu": "1", "memory": "512Mi"}}
    return {
        "metadata": {"labels": {**labels}},
        "spec": {
            "restartPolicy": "Never",
            "automountServiceAccountToken": False,
            "activeDeadlineSeconds": seconds,
            "terminationGracePeriodSeconds": 1,
            "securityContext": {"runAsNonRoot": True, **chosen, "seccompProfile": {"type": "RuntimeDefault"}},
            "containers": [
                {
                    **container,
                    "securityContext": restricted,
                    "resources": resources,
                    "terminationMessagePolicy": "FallbackToLogsOnError",
                }
            ],
        },
    }


# Resource modifiers

_NEW_VOLUME = {"volumeName": None, "dataSource": None, "dataSourceRef": None}


@dataclass(frozen=True, slots=True)
class ClaimRule:
    """What is changed of some claims."""

    patch: Body
    conditions: Mapping[str, object] = field(default_factory=dict)


def claim_rules(claims: Iterable[Place], moved: Collection[Place]) -> list[ClaimRule]:
    """Return what is changed of claims: each gets a new volume, by the selector that Velero gives it or by none.

    Velero fills a volume with moved data, and a selector for its label is how the claim finds it.
    """
    if not moved:
        return [ClaimRule({"spec": {**_NEW_VOLUME, "selector": None}})]
    others: defaultdict[str, list[str]] = defaultdict(list)
    for namespace, name in claims:
        if (namespace, name) not in moved:
            others[namespace].append(name)
    rules = [ClaimRule({"spec": _NEW_VOLUME})]
    for namespace, names in sorted(others.items()):
        pattern = f"^({'|'.join(map(re.escape, sorted(names)))})$"
        conditions = {"namespaces": [namespace], "resourceNameRegex": pattern}
        rules.append(ClaimRule({"spec": {"selector": None}}, conditions))
    return rules


def patches() -> Iterable[tuple[str, object]]:
    """Return what is changed of objects that start something, as resource and merge patch."""
    plain = {"automountServiceAccountToken": False, "priorityClassName": None, "priority": None}
    template = {"metadata": {"annotations": None, "finalizers": None, "labels": EXCLUDED}, "spec": plain}
    yield "pods", {"spec": plain}
    for resource in ("deployments.apps", "statefulsets.apps", "replicasets.apps", "replicationcontrollers"):
        yield resource, {"spec": {"template": template}}
    yield "serviceaccounts", {"automountServiceAccountToken": False}
