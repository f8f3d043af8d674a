"""Which items a restore takes from a backup, in Velero's order, and why it leaves out the others."""

from collections.abc import Sequence
from dataclasses import dataclass

from foresail.api.selectors import selects
from foresail.api.specs import RestoreSpec
from foresail.proof.restore_plan.items import Item, Served
from foresail.scope.globs import matches

FIRST = (
    "customresourcedefinitions.apiextensions.k8s.io",
    "namespaces",
    "storageclasses.storage.k8s.io",
    "volumesnapshotclasses.snapshot.storage.k8s.io",
    "volumesnapshotcontents.snapshot.storage.k8s.io",
    "volumesnapshots.snapshot.storage.k8s.io",
    "datauploads.velero.io",
    "persistentvolumes",
    "persistentvolumeclaims",
    "clusterroles.rbac.authorization.k8s.io",
    "roles.rbac.authorization.k8s.io",
    "serviceaccounts",
    "clusterrolebindings.rbac.authorization.k8s.io",
    "rolebindings.rbac.authorization.k8s.io",
    "secrets",
    "configmaps",
    "limitranges",
    "priorityclasses.scheduling.k8s.io",
    "pods",
    "replicasets.apps",
    "clusterclasses.cluster.x-k8s.io",
    "endpoints",
    "services",
)
LAST = (
    "clusterbootstraps.run.tanzu.vmware.com",
    "clusters.cluster.x-k8s.io",
    "clusterresourcesets.addons.cluster.x-k8s.io",
    "apps.kappctrl.k14s.io",
    "packageinstalls.packaging.carvel.dev",
)
"""Velero's default order of resources; those between are in the order of their names."""

NEVER_RESTORED = (
    "nodes",
    "events",
    "events.events.k8s.io",
    "backups.velero.io",
    "restores.velero.io",
    "resticrepositories.velero.io",
    "csinodes.storage.k8s.io",
    "volumeattachments.storage.k8s.io",
    "backuprepositories.velero.io",
)
ALWAYS_RESTORED = frozenset({"datauploads.velero.io"})

_RANK = {name: rank for rank, name in enumerate(FIRST)}
_LAST_RANK = {name: rank for rank, name in enumerate(LAST)}


@dataclass(frozen=True, slots=True)
class Selection:
    """The items that a restore takes, in order, and the others with the reason."""

    taken: tuple[Item, ...]
    left_out: tuple[tuple[Item, str], ...]


class Filters:
    """The filters of a restore, with the names of kinds as the cluster's discovery completes them."""

    def __init__(self, spec: RestoreSpec, served: Served) -> None:
        self._spec = spec
        self._included = [served.full_name(name) for name in spec.included_resources or ()]
        self._excluded = [served.full_name(name) for name in (*(spec.excluded_resources or ()), *NEVER_RESTORED)]
        self._namespaces = spec.included_namespaces or ()
        self._other_namespaces = spec.excluded_namespaces or ()

    @property
    def takes_every_namespace(self) -> bool:
        """Whether no filter limits the namespaces."""
        return not self._other_namespaces and set(self._namespaces) <= {"*"}

    def resource_problem(self, resource: str) -> str:
        """Return why no item of a resource is restored; empty if they are."""
        if resource in ALWAYS_RESTORED:
            return ""
        if matches(self._excluded, resource):
            is_never = resource in NEVER_RESTORED
            return f"Velero never restores {resource}" if is_never else f"the restore excludes {resource}"
        if self._included and not matches(self._included, resource):
            return f"the restore does not include {resource}"
        return ""

    def scope_problem(self, resource: str, namespace: str, *, is_brought_along: bool = False) -> str:
        """Return why nothing of a namespace, or nothing cluster-scoped, is restored; empty if it is."""
        if namespace:
            is_taken = resource in ALWAYS_RESTORED or self._takes(namespace)
            return "" if is_taken else f"the restore does not include the namespace {namespace}"
        if self._spec.include_cluster_resources is False:
            return "the restore excludes cluster-scoped items"
        if self._spec.include_cluster_resources is None and not (self.takes_every_namespace or is_brought_along):
            return "cluster-scoped, and the restore is limited to namespaces"
        return ""

    def label_problem(self, item: Item) -> str:
        """Return why the labels of an item keep it out; empty if they do not."""
        if item.key.resource in ALWAYS_RESTORED:
            return ""
        one = self._spec.label_selector
        several = self._spec.or_label_selectors
        if one is not None and not selects(one, item.labels):
            return "its labels do not match the selector"
        if several and not any(selects(selector, item.labels) for selector in several):
            return "its labels match none of the selectors"
        return ""

    def _takes(self, namespace: str) -> bool:
        if matches(self._other_namespaces, namespace):
            return False
        return not self._namespaces or matches(self._namespaces, namespace)


def select(items: Sequence[Item], filters: Filters) -> Selection:
    """Return the items that a restore takes, in Velero's order."""
    taken: list[Item] = []
    left_out: list[tuple[Item, str]] = []
    for item in sorted(items, key=lambda item: (rank(item.key.resource), item.key)):
        key = item.key
        why = filters.resource_problem(key.resource) or filters.scope_problem(key.resource, key.namespace)
        why = why or ("" if item.problem else filters.label_problem(item))
        if why:
            left_out.append((item, why))
        else:
            taken.append(item)
    return Selection(tuple(taken), tuple(left_out))


def rank(resource: str) -> tuple[int, int, str]:
    """Return the place of a resource in Velero's order."""
    if resource in _RANK:
        return 0, _RANK[resource], resource
    if resource in _LAST_RANK:
        return 2, _LAST_RANK[resource], resource
    return 1, 0, resource
