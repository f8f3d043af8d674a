"""What must hold of every spec that Velero gets on behalf of a tenant, field by field.

It touches nothing outside the tenant's namespace but PersistentVolumes and VolumeSnapshotContents, which come with the
tenant's own claims. It shares no code with what makes the specs: it is written from how Velero reads them. What lists
of kinds mean is worked out by trying every kind of `CLUSTER_SCOPED` and `NAMESPACED` on them, as Velero does.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any

Spec = Mapping[str, Any]
Rule = Callable[[Any, str, Spec], Iterator[str]]
"""What is wrong with the value of a field, given the namespace and the policy's part for backups or restores."""

CLUSTER_SCOPED = (
    "persistentvolumes",
    "namespaces",
    "nodes",
    "componentstatuses",
    "clusterroles.rbac.authorization.k8s.io",
    "clusterrolebindings.rbac.authorization.k8s.io",
    "customresourcedefinitions.apiextensions.k8s.io",
    "priorityclasses.scheduling.k8s.io",
    "storageclasses.storage.k8s.io",
    "validatingwebhookconfigurations.admissionregistration.k8s.io",
    "apiservices.apiregistration.k8s.io",
    "securitycontextconstraints.security.openshift.io",
    "volumesnapshotclasses.snapshot.storage.k8s.io",
    "volumesnapshotcontents.snapshot.storage.k8s.io",
    "selfservicepolicies.foresail.dev",
    "widgets.example.com",  # a kind that nobody has thought of
)
MAY_COME_ALONG = {"persistentvolumes", "namespaces", "volumesnapshotcontents.snapshot.storage.k8s.io"}

REMOVES_ANNOTATIONS = "foresail-remove-velero-annotations"
"""The chart's resource modifier, which every restore gets unless the policy allows Velero's annotations."""

COPY_NO_FILES = ("foresail-snapshot-volumes", "foresail-skip-volumes")
"""The chart's volume policies, one of which a backup gets unless it has another or the policy allows to copy files."""

REQUESTS = ("nonadminbackups.oadp.openshift.io", "nonadminrestores.oadp.openshift.io")
VELEROS = ("backups.velero.io", "schedules.velero.io", "backupstoragelocations.velero.io")
RIGHTS_AND_LIMITS = (
    "roles.rbac.authorization.k8s.io",
    "rolebindings.rbac.authorization.k8s.io",
    "resourcequotas",
    "limitranges",
    "networkpolicies.networking.k8s.io",
)
NAMESPACED = (*REQUESTS, *VELEROS, *RIGHTS_AND_LIMITS, "pods", "secrets", "deployments.apps", "gadgets.example.com")

BROUGHT_ALONG_BY_VELERO = (
    "clusterroles.rbac.authorization.k8s.io",
    "clusterrolebindings.rbac.authorization.k8s.io",
    "customresourcedefinitions.apiextensions.k8s.io",
    "priorityclasses.scheduling.k8s.io",
    "storageclasses.storage.k8s.io",
    "volumesnapshotclasses.snapshot.storage.k8s.io",
)
"""The kinds without a namespace that an object of a tenant can bring along when it is restored."""


def breaches_of_backup(spec: Spec, namespace: str, policy: Spec) -> list[str]:
    """Return what is wrong with the spec of a Velero Backup; nothing, and it may be created."""
    found = list(_each_field(spec, BACKUP, namespace, policy.get("backup", {})))
    needed = ["includedNamespaces", "excludedNamespaceScopedResources", "excludedClusterScopedResources"]
    if policy.get("backup", {}).get("fileSystem") != "Allowed":
        needed += ["defaultVolumesToFsBackup", "resourcePolicy"]
    found += [f"{field} is missing" for field in needed if field not in spec]
    included = spec.get("includedNamespaceScopedResources") or []
    excluded = spec.get("excludedNamespaceScopedResources") or []
    left_out = spec.get("excludedClusterScopedResources") or []
    found += _velero_refuses(included, excluded)
    found += [f"{kind} comes along" for kind in CLUSTER_SCOPED if not _matches(kind, left_out) and not _may_come(kind)]
    found += [f"{kind} is backed up" for kind in REQUESTS if _is_taken(kind, included, excluded)]
    if "labelSelector" in spec and "orLabelSelectors" in spec:
        found.append("both sorts of label selector")
    return found


def breaches_of_restore(spec: Spec, namespace: str, velero_backup: str, policy: Spec) -> list[str]:
    """Return what is wrong with the spec of a Velero Restore; nothing, and it may be created."""
    rules = policy.get("restore", {})
    found = list(_each_field(spec, RESTORE, namespace, rules))
    needed = ("includedNamespaces", "excludedResources", "backupName")
    found += [f"{field} is missing" for field in needed if field not in spec]
    if spec.get("backupName") != velero_backup:
        found.append("restores another backup")
    included, excluded = spec.get("includedResources") or [], spec.get("excludedResources") or []
    found += _velero_refuses(included, excluded)
    if "*" in excluded:
        found.append("Velero refuses * among the excluded")
    refused = rules.get("kinds", {}).get("refused", RIGHTS_AND_LIMITS)
    allowed = rules.get("kinds", {}).get("allowed")
    never = [*REQUESTS, *VELEROS, *BROUGHT_ALONG_BY_VELERO]
    never += [kind for kind in refused if "refused" in rules.get("kinds", {}) or kind not in (allowed or [])]
    found += [f"{kind} comes back" for kind in never if _is_taken(kind, included, excluded)]
    if allowed is not None:
        others = [kind for kind in NAMESPACED if kind not in allowed]
        found += [f"{kind} comes back" for kind in others if _is_taken(kind, included, excluded)]
    if "labelSelector" in spec and "orLabelSelectors" in spec:
        found.append("both sorts of label selector")
    return found


# How Velero reads its lists of kinds


def _is_taken(kind: str, included: list[str], excluded: list[str]) -> bool:
    return not _matches(kind, excluded) and (not included or "*" in included or _matches(kind, included))


def _matches(kind: str, entries: list[str]) -> bool:
    for each in sorted(entries):
        if re.search(r"[\[\]{}\\!?,]", each):
            return False  # Velero stops at the first entry that it cannot read: the others count for nothing
        # An entry without a group is a name that Velero looks up; with one it is a pattern.
        if fnmatchcase(kind, each) or kind.partition(".")[0] == each:
            return True
    return False


def _velero_refuses(included: list[str], excluded: list[str]) -> Iterator[str]:
    if "*" in included and len(set(included)) > 1:
        yield "Velero refuses * beside names"
    if "*" in excluded and (len(set(excluded)) > 1 or included):
        yield "Velero refuses * beside names, or beside anything included"
    if set(included) & set(excluded):
        yield "Velero refuses what is both included and excluded"


def _may_come(kind: str) -> bool:
    return kind in MAY_COME_ALONG


# The rules, one for each sort of value


def _each_field(spec: Spec, rules: Mapping[str, Rule], namespace: str, policy: Spec) -> Iterator[str]:
    for field, value in spec.items():
        if field not in rules:
            yield f"{field} is a field that nobody has thought of"
            continue
        for breach in rules[field](value, namespace, policy):
            yield f"{field}: {breach}"


def _absent(value: Any, _namespace: str, _policy: Spec) -> Iterator[str]:  # noqa: ANN401 - JSON
    yield f"must not be there, and is {value!r}"


def _own_namespace(value: Any, namespace: str, _policy: Spec) -> Iterator[str]:  # noqa: ANN401
    if value != [namespace]:
        yield f"is {value!r}"


def _names(value: Any, _namespace: str, _policy: Spec) -> Iterator[str]:  # noqa: ANN401
    """Names of kinds, and families of them; nothing that Velero would stumble over, and not more than it can bear."""
    if not isinstance(value, list) or len(value) > 400:
        yield f"is {value!r:.80}"
        return
    for each in value:
        if not re.fullmatch(r"\*|\*\.\*|(\*\.)?[a-z0-9]([-a-z0-9.]*[a-z0-9])?", each):
            yield f"has {each!r:.80}"


def _yes_or_no(value: Any, _namespace: str, _policy: Spec) -> Iterator[str]:  # noqa: ANN401
    if not isinstance(value, bool):
        yield f"is {value!r:.80}"


def _copies_no_files(value: Any, _namespace: str, policy: Spec) -> Iterator[str]:  # noqa: ANN401
    if not isinstance(value, bool) or (value and policy.get("fileSystem") != "Allowed"):
        yield f"is {value!r:.80}"


def _false(value: Any, _namespace: str, _policy: Spec) -> Iterator[str]:  # noqa: ANN401
    if value is not False:
        yield f"is {value!r:.80}"


def _own_labels(value: Any, _namespace: str, _policy: Spec) -> Iterator[str]:  # noqa: ANN401
    if set(value) != {"labels"}:
        yield f"has {set(value)}"
    for key in value.get("labels", {}):
        if re.search(r"(^|\.)(velero\.io|openshift\.io|foresail\.dev|k8s\.io|kubernetes\.io)/", key):
            yield f"has {key}"


def _ordered_objects(value: Any, namespace: str, _policy: Spec) -> Iterator[str]:  # noqa: ANN401
    for kind, objects in value.items():
        if not re.fullmatch(r"[A-Za-z0-9][-A-Za-z0-9.]*", kind):
            yield f"has kind {kind!r:.80}"
        for each in objects.split(","):
            if each.split("/")[:-1] != [namespace]:
                yield f"has {each!r:.80}"


def _selector(value: Any, _namespace: str, _policy: Spec) -> Iterator[str]:  # noqa: ANN401
    """A selector narrows; all that is asked is that Velero can read it."""
    if set(value) - {"matchLabels", "matchExpressions"}:
        yield f"has {set(value)}"
    for each in value.get("matchExpressions", []):
        takes_values = {"In": True, "NotIn": True, "Exists": False, "DoesNotExist": False}.get(each["operator"])
        if takes_values is None or bool(each.get("values")) is not takes_values:
            yield f"has {each!r:.80}"


def _selectors(value: Any, namespace: str, policy: Spec) -> Iterator[str]:  # noqa: ANN401
    if not value or len(value) > 400:
        yield f"has {len(value)} selectors"
    for each in value:
        yield from _selector(each, namespace, policy)


def _listed(field: str, listed: str, always: tuple[str, ...] = ()) -> Rule:
    def rule(value: Any, _namespace: str, policy: Spec) -> Iterator[str]:  # noqa: ANN401
        named = value["name"] if isinstance(value, dict) else value
        if isinstance(value, dict) and (value["kind"].lower() != "configmap" or value.get("apiGroup")):
            yield f"is {value!r:.80}"
        for each in named if isinstance(named, list) else [named]:
            if each not in (*policy.get("allowed", {}).get(listed, []), *always) and not _is_set_by(
                policy, field, value
            ):
                yield f"is {each!r:.80}"

    return rule


def _is_set_by(policy: Spec, field: str, value: object) -> bool:
    """Whether the administrator wrote it; then it is no matter of ours."""
    return value in (policy.get("required", {}).get(field), policy.get("defaults", {}).get(field))


def _bounded(field: str, ours: float) -> Rule:
    def rule(value: Any, _namespace: str, policy: Spec) -> Iterator[str]:  # noqa: ANN401
        bounds = policy.get(field, {})
        if _is_set_by(policy, field, value):
            return
        most = seconds(bounds["maximum"]) if "maximum" in bounds else ours
        least = seconds(bounds["minimum"]) if "minimum" in bounds else 0
        if not least <= seconds(value) <= most:
            yield f"is {value!r}"

    return rule


def seconds(duration: str) -> float:
    """Return the length of a duration; anything that is none is endless."""
    if not re.fullmatch(r"0|([0-9.]+(h|m|s|ms|us|ns))+", duration):
        return float("inf")
    units = {"h": 3600, "m": 60, "s": 1, "ms": 1e-3, "us": 1e-6, "ns": 1e-9}
    return sum(float(number) * units[unit] for number, unit in re.findall(r"([0-9.]+)(h|ms|us|ns|m|s)", duration))


def _uploader(number: str) -> Rule:
    def rule(value: Any, _namespace: str, policy: Spec) -> Iterator[str]:  # noqa: ANN401
        if _is_set_by(policy, "uploaderConfig", value):
            return
        if set(value) - {number, "writeSparseFiles"}:
            yield f"has {set(value)}"
        if not 0 <= value.get(number, 0) <= policy.get("parallelFiles", 64):
            yield f"is {value!r}"

    return rule


def _hooks(groups: tuple[str, ...], timeouts: tuple[str, ...]) -> Rule:
    def rule(value: Any, namespace: str, policy: Spec) -> Iterator[str]:  # noqa: ANN401
        if not policy.get("hooks", {}).get("allowed"):
            yield "the policy allows none"
        most = seconds(policy.get("hooks", {}).get("timeout", {}).get("maximum", "10m"))
        if set(value) != {"resources"}:
            yield f"has {set(value)}"
        for each in value.get("resources", []):
            known = {"name", "includedNamespaces", "includedResources", "excludedResources", "labelSelector", *groups}
            if set(each) - known:
                yield f"has {set(each)}"
            if each.get("includedNamespaces") != [namespace]:
                yield f"is for {each.get('includedNamespaces')!r}"
            for listing in ("includedResources", "excludedResources"):
                yield from _names(each.get(listing, []), namespace, policy)
            for hook in (hook for group in groups for hook in each.get(group, [])):
                yield from _hook(hook, timeouts, most)

    return rule


def _hook(hook: Spec, timeouts: tuple[str, ...], most: float) -> Iterator[str]:
    if set(hook) != {"exec"}:
        yield f"has {set(hook)}"
        return
    if set(hook["exec"]) - {"command", "container", "onError", "waitForReady", *timeouts}:
        yield f"has {set(hook['exec'])}"
    for timeout in timeouts:
        if not 0 < seconds(hook["exec"].get(timeout, "0")) <= most:
            yield f"{timeout} is {hook['exec'].get(timeout)!r}"


def _name(value: Any, _namespace: str, _policy: Spec) -> Iterator[str]:  # noqa: ANN401
    if not isinstance(value, str):
        yield f"is {value!r:.80}"


def _time_to_live(value: Any, namespace: str, policy: Spec) -> Iterator[str]:  # noqa: ANN401
    if policy.get("ttl", {}).get("maximum") == value:
        return  # so it is where a tenant names none
    yield from _bounded("ttl", seconds("999999h"))(value, namespace, policy)


BACKUP: Mapping[str, Rule] = {
    "metadata": _own_labels,
    "includedNamespaces": _own_namespace,
    "excludedNamespaces": _absent,
    "includedResources": _absent,  # Velero's older lists: what they let along is not what we mean
    "excludedResources": _absent,
    "includeClusterResources": _absent,
    "includedClusterScopedResources": _absent,  # would take every PersistentVolume of the cluster
    "excludedClusterScopedResources": _names,
    "includedNamespaceScopedResources": _names,
    "excludedNamespaceScopedResources": _names,
    "labelSelector": _selector,
    "orLabelSelectors": _selectors,
    "orderedResources": _ordered_objects,
    "hooks": _hooks(("pre", "post"), ("timeout",)),
    "storageLocation": _listed("storageLocation", "storageLocations"),
    "volumeSnapshotLocations": _listed("volumeSnapshotLocations", "volumeSnapshotLocations"),
    "ttl": _time_to_live,
    "snapshotVolumes": _yes_or_no,
    "snapshotMoveData": _yes_or_no,
    "defaultVolumesToFsBackup": _copies_no_files,
    "defaultVolumesToRestic": _absent,
    "volumeGroupSnapshotLabelKey": _listed("volumeGroupSnapshotLabelKey", "volumeGroupSnapshotLabelKeys"),
    "datamover": _listed("datamover", "datamovers", ("velero",)),
    "resourcePolicy": _listed("resourcePolicy", "resourcePolicies", COPY_NO_FILES),
    "csiSnapshotTimeout": _bounded("csiSnapshotTimeout", seconds("10m")),
    "itemOperationTimeout": _bounded("itemOperationTimeout", seconds("24h")),
    "uploaderConfig": _uploader("parallelFilesUpload"),
}

RESTORE: Mapping[str, Rule] = {
    "backupName": _name,
    "scheduleName": _absent,
    "includedNamespaces": _own_namespace,
    "excludedNamespaces": _absent,
    "includedResources": _names,
    "excludedResources": _names,
    "namespaceMapping": _absent,
    "labelSelector": _selector,
    "orLabelSelectors": _selectors,
    "restorePVs": _yes_or_no,
    "restoreStatus": _absent,
    "preserveNodePorts": _yes_or_no,
    "includeClusterResources": _false,  # absent, Velero restores of such kinds only what comes along
    "hooks": _hooks(("postHooks",), ("execTimeout", "waitTimeout")),
    "existingResourcePolicy": _listed("existingResourcePolicy", "existingResourcePolicies", ("none",)),
    "itemOperationTimeout": _bounded("itemOperationTimeout", seconds("24h")),
    "resourceModifier": _listed("resourceModifier", "resourceModifiers", (REMOVES_ANNOTATIONS,)),
    "resourcePolicy": _listed("resourcePolicy", "resourcePolicies"),
    "uploaderConfig": _uploader("parallelFilesDownload"),
}


# What a restore brings back, given the contents of the backup and the rights of whoever asked


@dataclass(frozen=True)
class Held:
    """A kind of object that a backup holds."""

    name: str  # as plural.group
    is_namespaced: bool = True


@dataclass(frozen=True)
class HeldVolume:
    """A PersistentVolume that a backup holds."""

    name: str
    reclaim: str
    method: str = ""  # how its data was backed up; empty if it was not


Rights = Callable[[str, str], bool]
"""Whether the requester has a verb on a kind; the verb `create` on persistentvolumes counts in the whole cluster."""

_RESTORED_WITH_CLAIMS = ("persistentvolumes", "volumesnapshots.", "volumesnapshotcontents.")
_NEW_VOLUME = ("PodVolumeBackup", "CSISnapshot")
_RBAC_VERBS = {
    "roles.rbac.authorization.k8s.io": (("escalate", "roles.rbac.authorization.k8s.io"),),
    "rolebindings.rbac.authorization.k8s.io": (
        ("bind", "roles.rbac.authorization.k8s.io"),
        ("bind", "clusterroles.rbac.authorization.k8s.io"),
    ),
}


def breaches_of_contents(
    spec: Spec, held: Iterable[Held], volumes: Iterable[HeldVolume], may: Rights, policy: Spec
) -> list[str]:
    """Return which objects the Velero Restore would create that the requester could not have created."""
    rules = policy.get("restore", {})
    included, excluded = spec.get("includedResources") or [], spec.get("excludedResources") or []
    taken = [each for each in held if _is_taken(each.name, included, excluded)]
    found = []
    if rules.get("authorization", "Requester") == "Requester":
        if not included or "*" in included:
            found.append("every kind comes back, those that the requester may not create among them")
        found += [breach for each in taken for breach in _not_creatable(each, taken, spec, may)]
    if rules.get("volumes", "BackedUp") == "BackedUp" and _brings_claims(taken):
        as_they_were = [each.name for each in volumes if _comes_as_it_was(each, spec)]
        may_anyway = rules.get("authorization", "Requester") == "Requester" and may("create", "persistentvolumes")
        found += [] if may_anyway else [f"volume {name} comes back as it was" for name in as_they_were]
    return found


def _not_creatable(kind: Held, taken: list[Held], spec: Spec, may: Rights) -> Iterator[str]:
    if kind.name.startswith(_RESTORED_WITH_CLAIMS) and any(each.name == "persistentvolumeclaims" for each in taken):
        return
    if not kind.is_namespaced:
        if kind.name not in MAY_COME_ALONG:
            yield f"{kind.name} has no namespace and comes back"
        return
    verbs = [("create", kind.name)]
    verbs += [("update", kind.name)] if spec.get("existingResourcePolicy") == "update" else []
    verbs += _RBAC_VERBS.get(kind.name, ())
    yield from (f"{kind.name} comes back without the right to {verb} {of}" for verb, of in verbs if not may(verb, of))


def _brings_claims(taken: list[Held]) -> bool:
    return any(each.name in {"persistentvolumeclaims", "pods"} for each in taken)


def _comes_as_it_was(volume: HeldVolume, spec: Spec) -> bool:
    """Whether Velero would create the volume as the backup has it, the node's folder or the disk of another in it."""
    if volume.method in _NEW_VOLUME:
        return False
    if volume.method == "NativeSnapshot":
        return spec.get("restorePVs") is False
    return volume.reclaim != "Delete"
