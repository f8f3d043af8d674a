"""The kinds that a cluster serves, and which of them a name in a spec means."""

from collections.abc import Iterable
from dataclasses import dataclass, field

NAMESPACES = "namespaces"
PODS = "pods"
CLAIMS = "persistentvolumeclaims"
VOLUMES = "persistentvolumes"
SERVICE_ACCOUNTS = "serviceaccounts"
PRIORITY_CLASSES = "priorityclasses.scheduling.k8s.io"
CLUSTER_ROLES = "clusterroles.rbac.authorization.k8s.io"
CLUSTER_ROLE_BINDINGS = "clusterrolebindings.rbac.authorization.k8s.io"
DEFINITIONS = "customresourcedefinitions.apiextensions.k8s.io"
BACKED_UP_VERBS = frozenset({"list", "create", "get", "delete"})
"""Velero backs up the kinds that have all of these verbs."""

SHARED_KINDS = ((frozenset({"", "events.k8s.io"}), "events"),)
"""Kinds that two groups serve with the same objects; Velero takes the first included one."""


@dataclass(frozen=True, slots=True)
class ResourceKind:
    """A kind as discovery lists it."""

    group: str
    name: str
    kind: str
    namespaced: bool
    singular: str = ""
    short_names: tuple[str, ...] = ()

    @property
    def full_name(self) -> str:
        """Its name with the group, as in `deployments.apps`."""
        return f"{self.name}.{self.group}" if self.group else self.name


@dataclass(frozen=True, slots=True)
class Discovery:
    """The kinds of a cluster that Velero can back up, in the order of its groups, and those that it cannot."""

    kinds: tuple[ResourceKind, ...]
    others: tuple[ResourceKind, ...] = ()
    _resolved: dict[str, ResourceKind | None] = field(default_factory=dict, compare=False, repr=False)

    def resolve(self, name: str) -> ResourceKind | None:
        """Return the kind that a name such as `deploy`, `Deployment` or `deployments.apps` means."""
        if name not in self._resolved:
            resource, _, group = name.partition(".")
            self._resolved[name] = self._find(resource, group)
        return self._resolved[name]

    def resolve_plain(self, resource: str) -> ResourceKind | None:
        """Return the kind that a name without a group means; dots in it mean nothing."""
        return self._find(resource, "")

    def _find(self, resource: str, group: str) -> ResourceKind | None:
        resource = self._expanded(resource, group).lower()
        named = [kind for kind in (*self.kinds, *self.others) if resource in (kind.name, kind.singular)]
        if group:
            exact = [kind for kind in named if kind.group == group]
            named = exact or [kind for kind in named if kind.group.startswith(group)]
        kind = min(named, key=self._group_order, default=None)
        return kind if kind in self.kinds else None

    def _expanded(self, resource: str, group: str) -> str:
        """Return the name that a short name stands for; as in Velero, the group of the kind is not added."""
        short = [kind for kind in self.kinds if resource in kind.short_names]
        exact = [kind for kind in short if not group or group == kind.group]
        matching = exact or [kind for kind in short if kind.group.startswith(group)]
        return matching[0].name if matching else resource

    def _group_order(self, kind: ResourceKind) -> int:
        groups = [kind.group for kind in self.kinds]
        return groups.index(kind.group) if kind.group in groups else len(groups)


def kinds_of(lists: Iterable[tuple[str, Iterable[dict[str, object]]]]) -> Discovery:
    """Return the kinds of discovery's lists of the preferred versions: pairs of a group and its resources."""
    kinds: list[ResourceKind] = []
    others: list[ResourceKind] = []
    for group, resources in lists:
        for resource in resources:
            name = str(resource["name"])
            kind = str(resource.get("kind", ""))
            if "/" in name:
                continue
            short = resource.get("shortNames")
            verbs = resource.get("verbs")
            row = ResourceKind(
                group,
                name,
                kind,
                bool(resource.get("namespaced")),
                str(resource.get("singularName") or kind.lower()),
                tuple(map(str, short)) if isinstance(short, list) else (),
            )
            backed_up = isinstance(verbs, list) and BACKED_UP_VERBS.issubset(verbs)
            (kinds if backed_up else others).append(row)
    return Discovery(tuple(kinds), tuple(others))


STANDARD_KINDS = Discovery(
    (
        ResourceKind("", NAMESPACES, "Namespace", namespaced=False, singular="namespace", short_names=("ns",)),
        ResourceKind(
            "", CLAIMS, "PersistentVolumeClaim", namespaced=True, singular="persistentvolumeclaim", short_names=("pvc",)
        ),
        ResourceKind(
            "", VOLUMES, "PersistentVolume", namespaced=False, singular="persistentvolume", short_names=("pv",)
        ),
        ResourceKind("", PODS, "Pod", namespaced=True, singular="pod", short_names=("po",)),
    )
)
"""The kinds that decide whether the data of a claim is saved; every cluster serves them."""
