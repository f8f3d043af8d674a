"""What a backup has, by the lists that Velero stores beside it, and which kinds of that a check restores.

No object itself is read. The files come from a bucket and may hold anything.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Container, Iterable, Sequence
from hashlib import sha256

import msgspec

from foresail.api.authorization import Discovery
from foresail.api.restore_check import SANDBOX_NAME
from foresail.api.velero_files import named_lists, volume_infos
from foresail.proof.checks.reasons import Problem, Reason

RESTORED = {
    ("", "ConfigMap"): "configmaps",
    ("", "LimitRange"): "limitranges",
    ("", "PodTemplate"): "podtemplates",
    ("", "ReplicationController"): "replicationcontrollers",
    ("", "ResourceQuota"): "resourcequotas",
    ("", "Secret"): "secrets",
    ("", "Service"): "services",
    ("", "ServiceAccount"): "serviceaccounts",
    ("apps", "ControllerRevision"): "controllerrevisions.apps",
    ("apps", "DaemonSet"): "daemonsets.apps",
    ("apps", "Deployment"): "deployments.apps",
    ("apps", "ReplicaSet"): "replicasets.apps",
    ("apps", "StatefulSet"): "statefulsets.apps",
    ("autoscaling", "HorizontalPodAutoscaler"): "horizontalpodautoscalers.autoscaling",
    ("batch", "CronJob"): "cronjobs.batch",
    ("batch", "Job"): "jobs.batch",
    ("policy", "PodDisruptionBudget"): "poddisruptionbudgets.policy",
    ("rbac.authorization.k8s.io", "Role"): "roles.rbac.authorization.k8s.io",
    ("rbac.authorization.k8s.io", "RoleBinding"): "rolebindings.rbac.authorization.k8s.io",
}
"""The built-in kinds of a namespace that start nothing in a fenced sandbox."""

LEFT_OUT = (
    "pods",
    "persistentvolumeclaims",
    "endpoints",
    "events",
    "events.events.k8s.io",
    "endpointslices.discovery.k8s.io",
    "ingresses.networking.k8s.io",
    "networkpolicies.networking.k8s.io",
)
"""Built-in kinds that would start something, reach out or open the fence, or that controllers derive."""

NETWORK_GROUPS = (
    "cilium.io",
    "crd.antrea.io",
    "crd.projectcalico.org",
    "policy.networking.k8s.io",
    "projectcalico.org",
)
"""Policies of network plugins, which may open the fence after the canary: depth Data restores none of them."""

POD = ("", "Pod")
CLAIM = ("", "PersistentVolumeClaim")
WITH_DATA = {POD: "pods", CLAIM: "persistentvolumeclaims"}
"""What depth Data restores too."""

COMPLETED_ARE_SKIPPED = (("batch", "Job"), POD)
"""Velero does not restore Jobs and pods that have completed, and the list of a backup does not say which have."""


def restored(*, has_data: bool) -> dict[tuple[str, str], str]:
    """Return the built-in kinds that a check restores, with their resources."""
    return {**RESTORED, **WITH_DATA} if has_data else RESTORED


def left_out(*, has_data: bool) -> tuple[str, ...]:
    """Return the built-in kinds that a check leaves out."""
    return tuple(kind for kind in LEFT_OUT if not (has_data and kind in WITH_DATA.values()))


class Served(msgspec.Struct, frozen=True):
    """The kinds that the API server serves outside the core group: `apps/v1/Deployment` with their resource."""

    resources: dict[str, str]
    unknown_groups: frozenset[str] = frozenset()
    """Groups whose API server did not answer discovery."""

    def has(self, gvk: str) -> bool:
        """Whether a kind is served in that version; one of a group that cannot be discovered counts as served."""
        group = group_of(gvk)
        return not group or gvk in self.resources or group in self.unknown_groups


def served_kinds(discovery: Discovery) -> Served:
    """Return what discovery lists."""
    names: dict[str, str] = {}
    unknown: set[str] = set()
    for group in discovery.items or ():
        name = group.metadata.name
        for version in group.versions or ():
            if version.freshness == "Stale":
                unknown.add(name)
            for resource in version.resources or ():
                if resource.response_kind is not None:
                    names[f"{name}/{version.version}/{resource.response_kind.kind}"] = f"{resource.resource}.{name}"
    return Served(names, frozenset(unknown))


def group_of(gvk: str) -> str:
    """Return the group of `apps/v1/Deployment`; empty for `v1/Pod`."""
    return gvk.rpartition("/")[0].rpartition("/")[0]


def kind_of(gvk: str) -> tuple[str, str]:
    """Return group and kind of `apps/v1/Deployment`."""
    return group_of(gvk), gvk.rpartition("/")[2]


_DEFINITIONS = "apiextensions.k8s.io/v1/CustomResourceDefinition"
_CLAIMS = "v1/PersistentVolumeClaim"
_VOLUMES = "v1/PersistentVolume"
_STORAGE_CLASS = ("storage.k8s.io", "StorageClass")
_LONGEST_NAME = 253
_SHOWN = 3
_LONGEST_ENDING = 3
"""Letters after the stem of a plural, such as `ies`: more would take `certificaterequests` for Certificate."""

_NAMESPACE = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")  # Velero reads `*` as all

Lists = dict[str, list[str]]


class Item(msgspec.Struct, frozen=True, order=True):
    """An object of a backup."""

    gvk: str
    namespace: str
    name: str

    def __str__(self) -> str:
        return f"{self.gvk.rpartition('/')[2]} {self.namespace}/{self.name}"


class Wanted(msgspec.Struct, frozen=True):
    """What a check is to look at: all namespaces if none are named, and these custom resources."""

    namespaces: tuple[str, ...] = ()
    custom: tuple[str, ...] = ()
    has_data: bool = False


class Contents(msgspec.Struct, frozen=True):
    """What the sandbox must take of a backup."""

    expected: tuple[Item, ...] = ()
    optional: tuple[Item, ...] = ()
    """Objects that Velero restores only in some states, which the list does not have."""
    not_checked: int = 0
    not_served: int = 0
    problems: tuple[Problem, ...] = ()
    digest: str = ""
    custom: tuple[str, ...] = ()
    """The listed custom resources that it has and this cluster serves: Velero hangs on others that it has cached."""
    has_volumes: bool = True
    """Whether it has PersistentVolumes."""

    @property
    def namespaces(self) -> tuple[str, ...]:
        """The namespaces with something to restore."""
        return tuple(sorted(self.objects))

    @property
    def objects(self) -> Counter[str]:
        """How many objects to restore each of these namespaces has."""
        return Counter(item.namespace for item in (*self.expected, *self.optional))


def lists_of(file: bytes) -> Lists | None:
    """Return names by kind; None if the file is not of Velero's shape."""
    lists = named_lists(file)
    if lists is None:
        return None
    too_long = any(len(name) > 2 * _LONGEST_NAME + 20 for names in lists.values() for name in names)
    return None if too_long or any(len(kind) > 2 * _LONGEST_NAME for kind in lists) else lists


def contents_of(file: bytes, wanted: Wanted, served: Served, classes: Sequence[str] = ()) -> Contents | None:
    """Return what the sandbox must take of a backup; None if the list is not of Velero's shape."""
    lists = lists_of(file)
    if lists is None:
        return None
    if not _has_valid_namespaces(lists):
        return None
    expected: list[Item] = []
    optional: list[Item] = []
    problems: list[Problem] = []
    not_checked = not_served = 0
    custom: set[str] = set()
    kinds = _Kinds(lists, wanted, served)
    for gvk, names in sorted(_in_one_version(lists, served).items()):
        own = _own_items(gvk, names)
        not_checked += len(names) - len(own)
        items = [item for item in own if not wanted.namespaces or item.namespace in wanted.namespaces]
        if items and kinds.is_unserved(gvk):
            problems.append(_not_served(gvk, items))
            not_served += len(items)
        elif kinds.is_restored(gvk):
            (optional if kind_of(gvk) in COMPLETED_ARE_SKIPPED else expected).extend(items)
            custom |= kinds.listed(gvk)
        else:
            not_checked += len(items)
    problems += _missing_classes(lists, wanted, classes)
    problems += _missing_namespaces(wanted, {item.namespace for item in (*expected, *optional)})
    return Contents(
        tuple(expected),
        tuple(optional),
        not_checked,
        not_served,
        tuple(problems),
        sha256(file).hexdigest(),
        tuple(sorted(custom)),
        has_volumes=bool(lists.get(_VOLUMES)),
    )


def _has_valid_namespaces(lists: Lists) -> bool:
    places = (place for names in lists.values() for place in names if "/" in place)
    return all(_NAMESPACE.fullmatch(place.partition("/")[0]) for place in places)


def _own_items(gvk: str, names: Iterable[str]) -> list[Item]:
    """Return the objects in namespaces, except those in sandboxes of checks that ran during the backup."""
    items = (_item(gvk, name) for name in names if "/" in name)
    return [item for item in items if not SANDBOX_NAME.fullmatch(item.namespace)]


def _missing_namespaces(wanted: Wanted, namespaces: Container[str]) -> list[Problem]:
    return [
        Problem(Reason.NAMESPACE_MISSING, f"the backup has no object of namespace {name}")
        for name in wanted.namespaces
        if name not in namespaces
    ]


class _Kinds:
    """What a check does with the kinds of a backup, by what this cluster serves."""

    def __init__(self, lists: Lists, wanted: Wanted, served: Served) -> None:
        self._wanted = wanted
        self._served = served
        self._restored = restored(has_data=wanted.has_data)
        self._left_out = left_out(has_data=wanted.has_data)
        self._resources = {kind_of(gvk): resource for gvk, resource in served.resources.items()}
        stems = {_stem(gvk) for gvk in lists if gvk not in served.resources}
        self._guessed = _by_stem(stems, set(wanted.custom).difference(served.resources.values()))
        self._defined = _by_stem(stems, lists.get(_DEFINITIONS, ()))

    def listed(self, gvk: str) -> set[str]:
        """Return the custom resources of the check that a kind is, or may be if it is not served."""
        if self._wanted.has_data and group_of(gvk) in NETWORK_GROUPS:
            return set()
        resource = self._resource(gvk)
        return {resource}.intersection(self._wanted.custom) if resource else self._guessed.get(_stem(gvk), set())

    def is_unserved(self, gvk: str) -> bool:
        """Whether objects of a kind cannot be restored, because this cluster does not serve it."""
        return not self._served.has(gvk) and (bool(self.listed(gvk)) or _stem(gvk) not in self._defined)

    def is_restored(self, gvk: str) -> bool:
        """Whether the sandbox takes objects of a kind."""
        is_chosen = kind_of(gvk) in self._restored or bool(self.listed(gvk))
        return is_chosen and self._resource(gvk) not in self._left_out

    def _resource(self, gvk: str) -> str:
        kind = kind_of(gvk)
        return self._restored.get(kind) or self._served.resources.get(gvk) or self._resources.get(kind, "")


def _in_one_version(lists: Lists, served: Served) -> Lists:
    """Return each object once: Velero may list it in every version of its kind, and restores it in one.

    A version that this cluster serves comes first.
    """
    versions = Counter(map(kind_of, lists))
    taken: defaultdict[tuple[str, str], set[str]] = defaultdict(set)
    once: Lists = {}
    for gvk in sorted(lists, key=lambda gvk: (not served.has(gvk), gvk)):
        kind = kind_of(gvk)
        names = lists[gvk]
        if versions[kind] > 1:
            names = [name for name in names if name not in taken[kind]]
            taken[kind].update(names)
        if names:
            once[gvk] = names
    return once


def included_resources(custom: Sequence[str], *, has_data: bool) -> list[str]:
    """Return what the restore includes: nothing beyond this list reaches the sandbox."""
    excluded = left_out(has_data=has_data)
    return sorted({*restored(has_data=has_data).values(), *(kind for kind in custom if kind not in excluded)})


def _item(gvk: str, place: str) -> Item:
    namespace, _, name = place.partition("/")
    return Item(gvk, namespace, name)


def _by_stem(stems: Container[tuple[str, str]], names: Iterable[str]) -> dict[tuple[str, str], set[str]]:
    """Return names, given as plural.group, by those of the stems that they may have."""
    by_stem: defaultdict[tuple[str, str], set[str]] = defaultdict(set)
    for name in names:
        plural, _, group = name.partition(".")
        plural = plural.replace("-", "")
        for ending in range(min(_LONGEST_ENDING, len(plural)) + 1):
            stem = (group, plural[: len(plural) - ending])
            if stem in stems:
                by_stem[stem].add(name)
    return by_stem


def _stem(gvk: str) -> tuple[str, str]:
    """Return the group and the stem of a kind whose plural the cluster does not report: `polic` of Policy."""
    group, kind = kind_of(gvk)
    return group, kind.lower()[:-1]


def _missing_classes(lists: Lists, wanted: Wanted, classes: Sequence[str]) -> list[Problem]:
    """Return the problem of a backup with claims if the cluster has none of the storage classes that it lists.

    The list does not say which class a claim uses: while one of them exists, it may be that one.
    """
    claims = [_item(_CLAIMS, name) for name in lists.get(_CLAIMS, ())]
    if not any(not wanted.namespaces or claim.namespace in wanted.namespaces for claim in claims):
        return []
    listed = {name for gvk, names in lists.items() if kind_of(gvk) == _STORAGE_CLASS for name in names}
    if not listed or listed.intersection(classes):
        return []
    shown = ", ".join(sorted(listed)[:_SHOWN])
    return [Problem(Reason.STORAGE_CLASS_MISSING, f"this cluster has no StorageClass {shown}, which the backup lists")]


def _not_served(gvk: str, items: Sequence[Item]) -> Problem:
    shown = ", ".join(f"{item.namespace}/{item.name}" for item in items[:_SHOWN])
    more = f" and {len(items) - _SHOWN} more" if len(items) > _SHOWN else ""
    return Problem(Reason.KIND_NOT_SERVED, f"this cluster does not serve {gvk}, which the backup has: {shown}{more}")


_FILES, _SNAPSHOT = "PodVolumeBackup", "CSISnapshot"
_GOOD = ("", "succeeded")
Place = tuple[str, str]
"""Namespace and name of a claim."""


class _Info(msgspec.Struct, frozen=True):
    name: str = msgspec.field(default="", name="pvcName")
    namespace: str = msgspec.field(default="", name="pvcNamespace")
    method: str = msgspec.field(default="", name="backupMethod")
    is_moved: bool = msgspec.field(default=False, name="snapshotDataMoved")
    skipped: bool = False
    result: str = ""

    @property
    def place(self) -> Place:
        return self.namespace, self.name


class SavedClaims(msgspec.Struct, frozen=True):
    """The claims whose data is in the bucket: copied from files, or moved from snapshots."""

    files: tuple[Place, ...] = ()
    moved: tuple[Place, ...] = ()


_infos = msgspec.json.Decoder(list[_Info] | None)


def saved_claims(file: bytes) -> SavedClaims | None:
    """Return the claims whose data can be restored into a sandbox; None if the list is not of Velero's shape."""
    infos = volume_infos(file, _infos)
    if infos is None:
        return None
    good = [info for info in infos if not info.skipped and info.result in _GOOD]
    return SavedClaims(
        tuple(sorted(item.place for item in good if item.method == _FILES)),
        tuple(sorted(item.place for item in good if item.method == _SNAPSHOT and item.is_moved)),
    )
