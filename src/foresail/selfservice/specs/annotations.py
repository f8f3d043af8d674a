"""Velero's annotations on tenants' objects: they make Velero run commands, wait, copy files, or restore a status.

Admission policies refuse them on new objects. What is in old backups is removed by a resource modifier of ours; a pod
from before the policies is refused when it is to be backed up.
"""

import re
from collections.abc import Mapping
from typing import Any

from foresail.scope.volumes import file_system_annotation
from foresail.selfservice.reasons import Reason, Refused
from foresail.selfservice.specs import file_system
from foresail.tenancy.policies import PolicyRow

MODIFIER = "foresail-remove-velero-annotations"
"""The ConfigMap in Velero's namespace with the resource modifier; the chart creates it."""

MOST_POD_BYTES = 64 << 20
"""Metadata of a namespace's pods that is read before a backup: 3,000 pods with 21 KiB each."""

_BACKUP_HOOK = re.compile(r"(?:[a-z]+\.)?hook\.backup\.velero\.io/.*")


def are_refused(policy: PolicyRow | None) -> bool:
    """Whether a policy refuses Velero's annotations."""
    return policy is not None and policy.spec.velero_annotations == "Refused"


def removed(spec: dict[str, Any], policy: PolicyRow) -> dict[str, Any] | Refused:
    """Return the spec of a restore with our resource modifier; Velero takes only one."""
    if not are_refused(policy):
        return spec
    if spec.get("resourceModifier"):
        text = "spec.restoreSpec.resourceModifier would replace the modifier that removes Velero's annotations; remove"
        more = (
            f"it, or ask a cluster administrator to set veleroAnnotations: Allowed in SelfServicePolicy {policy.name}"
        )
        return Refused(Reason.POLICY_VIOLATION, f"{text} {more}")
    return {**spec, "resourceModifier": {"kind": "configmap", "name": MODIFIER}}


def backup_hook(annotations: Mapping[str, str]) -> str | None:
    """Return the annotation by which Velero runs a command in a pod while it backs it up; None if there is none."""
    return next((annotation for annotation in sorted(annotations) if _BACKUP_HOOK.fullmatch(annotation)), None)


def refused_on_pod(annotations: Mapping[str, str], *, hooks: bool, files: bool) -> str | None:
    """Return the annotation by which a pod makes Velero run a command or copy its files; None if there is none."""
    hook = backup_hook(annotations) if hooks else None
    return hook or (file_system_annotation(annotations) if files else None)


def too_many_pods(namespace: str, policy: PolicyRow) -> Refused:
    """Return why a namespace is not backed up whose pods are too large to check."""
    text = f"The pods of namespace {namespace} have more than {MOST_POD_BYTES >> 20} MiB of metadata, the most that"
    more = f"SelfServicePolicy {policy.name} checks for hooks; shrink or delete pods, then try again in a minute"
    return Refused(Reason.POLICY_VIOLATION, f"{text} {more}")


def refused_pod(pod: str, annotation: str, policy: PolicyRow) -> Refused:
    """Return why a namespace with such a pod is not backed up."""
    if file_system_annotation({annotation: pod}) is not None:
        return file_system.chosen_by_pod(pod, annotation, policy)
    text = f"Pod {pod} has annotation {annotation}, which SelfServicePolicy {policy.name} does not allow"
    return Refused(Reason.POLICY_VIOLATION, f"{text}; remove it from the pod, then create the backup again")
