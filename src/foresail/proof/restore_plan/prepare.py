"""Each item as Velero would send it to the API server, in order, with the items that others bring along."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from foresail.api.specs import RestoreHookRule, RestoreSpec
from foresail.proof.restore_plan.actions import Settings, act, ambiguous_action, is_rewritten, new_storage_classes
from foresail.proof.restore_plan.compare import labelled, stripped
from foresail.proof.restore_plan.dependencies import (
    SNAPSHOT_CLASSES,
    SNAPSHOT_CONTENTS,
    SNAPSHOTS,
    Dependency,
    dependencies,
)
from foresail.proof.restore_plan.items import Document, Item, ItemKey, Served, at, mapping, metadata
from foresail.proof.restore_plan.modifiers import Modifiers, modified_target
from foresail.proof.restore_plan.refusals import By
from foresail.proof.restore_plan.selection import Filters, select

_INIT_HOOK = "init.hook.restore.velero.io/container-image"
_API_SERVICES = "apiservices.apiregistration.k8s.io"
_AUTOMANAGED = "kube-aggregator.kubernetes.io/automanaged"
_MIRROR = "kubernetes.io/config.mirror"
_TOKEN = "kubernetes.io/service-account-token"  # noqa: S105 - a type of Secret
_TOKEN_INFIX = "-token-"  # noqa: S105 - between the name of a ServiceAccount and a random end
_BINDING_ANNOTATIONS = ("pv.kubernetes.io/bind-completed", "pv.kubernetes.io/bound-by-controller")
_CSI = {
    SNAPSHOTS: "velero.io/csi, which gives it another name in each restore",
    SNAPSHOT_CONTENTS: "velero.io/csi, which gives it another name in each restore",
    SNAPSHOT_CLASSES: "velero.io/csi",
}
_COMPARED = ("pods", "persistentvolumeclaims")  # an existing one differs, whatever a plugin changes
_NEW_VOLUME = {
    "PodVolumeBackup": "a new volume is provisioned for its file-system backup",
    "CSISnapshot": "a new volume is provisioned from its snapshot",
}


Accounts = Mapping[str, frozenset[str] | None]
"""The ServiceAccounts that exist in each namespace; None where the caller may not list them."""


@dataclass(frozen=True, slots=True)
class Step:
    """What happens to one item: the object to create, or why nothing or nothing predictable happens."""

    item: ItemKey
    target: ItemKey
    body: Document = field(default_factory=dict, hash=False, compare=False)
    not_restored: str = ""
    problem: str = ""
    """Why Velero cannot even send it."""
    problem_by: By = By.BACKUP
    unpredictable: str = ""
    """Why nobody knows what happens to it."""
    warning: str = ""
    is_rewritten: bool = False
    """Whether Velero takes no existing object for the same."""
    new_storage_classes: tuple[str, ...] = ()
    """The storage classes that a ConfigMap gives it: Velero fails the item if one does not exist."""


@dataclass(frozen=True, slots=True)
class Preparation:
    """The steps of a restore in order, the items that filters leave out, and the namespaces that it needs."""

    steps: tuple[Step, ...]
    left_out: tuple[tuple[ItemKey, str], ...]
    namespaces: Mapping[str, Document]
    """The object of each target namespace, as Velero would create it if it does not exist."""
    backed_up: frozenset[str] = frozenset()
    """The target namespaces whose object is an item of the backup."""


@dataclass(frozen=True, slots=True)
class Backup:
    """A backup's items, how its volumes were backed up, and which pods have file-system backups of volumes."""

    name: str
    items: Sequence[Item]
    volume_methods: Mapping[str, str] = field(default_factory=dict)
    """The backup method of each PersistentVolume; empty for one that was skipped."""
    pods_with_data: frozenset[tuple[str, str]] = frozenset()
    claims_with_snapshots: frozenset[tuple[str, str]] = frozenset()
    has_volumes: bool = True
    """Whether the file about its volumes exists and can be read."""


def prepare(
    backup: Backup,
    settings: Settings,
    served: Served,
    modifiers: Modifiers | None = None,
    accounts: Accounts | None = None,
) -> Preparation:
    """Return what a restore would send."""
    filters = Filters(settings.spec, served)
    selection = select(backup.items, filters)
    walk = _Walk(backup, settings, filters, modifiers or Modifiers(), accounts or {})
    for item in selection.taken:
        walk.visit(item)
    taken = {step.item for step in walk.steps.values()} | set(walk.sources.values())
    left_out = tuple((item.key, why) for item, why in selection.left_out if item.key not in taken)
    return Preparation(tuple(walk.steps.values()), left_out, walk.namespaces, frozenset(walk.sources))


def token_namespaces(backup: Backup, spec: RestoreSpec, served: Served) -> set[str]:
    """Return the namespaces whose ServiceAccounts decide whether tokens of the backup are restored."""
    filters = Filters(spec, served)
    namespaces = {item.key.namespace for item in backup.items if _is_token(item)}
    return {namespace for namespace in namespaces if not filters.scope_problem("secrets", namespace)}


class _Walk:
    """Velero's way through the items: each once, those that an item brings along before itself."""

    def __init__(
        self,
        backup: Backup,
        settings: Settings,
        filters: Filters,
        modifiers: Modifiers,
        accounts: Accounts,
    ) -> None:
        self.steps: dict[ItemKey, Step] = {}
        self.namespaces: dict[str, Document] = {}
        self.sources: dict[str, ItemKey] = {}
        self._backup = backup
        self._items = {item.key: item for item in backup.items}
        self._settings = settings
        self._filters = filters
        self._modifiers = modifiers
        self._accounts = {(namespace, name) for namespace, names in accounts.items() for name in names or ()}
        self._unlisted = frozenset(namespace for namespace, names in accounts.items() if names is None)
        self._provisioned: set[str] = set()

    def visit(self, item: Item) -> None:
        """Add the steps of an item."""
        key = item.key
        if key.resource == "namespaces":
            self._need_namespace(key.name)
            return
        target = ItemKey(key.resource, self._mapped(key.namespace), key.name)
        if target in self.steps:
            return
        if key.namespace:
            self._need_namespace(key.namespace)
        if item.problem:
            self.steps[target] = Step(key, target, problem=item.problem)
            return
        why = self._not_restored(item)
        if why:
            self.steps[target] = Step(key, target, not_restored=why)
            return
        for other in self._brought_along(item):
            self.visit(other)
        self.steps[target] = self._step(item, target)
        if key.resource == "serviceaccounts":
            self._accounts.add((target.namespace, target.name))

    def _step(self, item: Item, target: ItemKey) -> Step:
        ambiguous = ambiguous_action(item.key.resource, self._settings)
        if ambiguous:
            problem = f"more than one ConfigMap configures velero.io/{ambiguous}"
            return Step(item.key, target, problem=problem, problem_by=By.PLUGIN_CONFIG)
        if _is_token(item) and item.key.namespace in self._unlisted:
            reason = f"Velero skips the tokens of ServiceAccounts; you may not list those of {item.key.namespace}"
            return Step(item.key, target, unpredictable=reason)
        plugin = self._plugin(item)
        unpredictable = f"changed by {plugin}" if plugin else ""
        if plugin and item.key.resource not in _COMPARED:
            return Step(item.key, target, unpredictable=unpredictable)
        body = stripped(item.copied())
        if item.key.resource == "persistentvolumes":
            self._keep_volume(body)
        classes = new_storage_classes(item.key.resource, body, self._settings)
        act(item.key.resource, body, self._settings)
        rewritten = is_rewritten(item.key.resource, body, self._settings)
        if item.key.resource == "persistentvolumeclaims":
            self._release_claim(body)
        modified = self._modifiers.applied(item.key.resource, body)
        if modified.is_unpredictable:
            return Step(item.key, target, unpredictable="changed by a resource modifier with a strategic merge patch")
        if modified.body.get("kind") != body.get("kind"):
            return Step(item.key, target, unpredictable="a resource modifier changes its kind")
        target = modified_target(target, body, modified.body)
        body = modified.body
        if target.namespace:
            body = {**body, "metadata": {**metadata(body), "namespace": target.namespace}}
        # Velero reports a modifier that fails, and creates the item all the same.
        body = labelled(body, self._backup.name[:63], "foresail-plan")
        return Step(
            item.key,
            target,
            body,
            unpredictable=unpredictable,
            warning=modified.problem,
            is_rewritten=rewritten,
            new_storage_classes=classes,
        )

    def _not_restored(self, item: Item) -> str:
        resource = item.key.resource
        body = item.body
        if resource == "persistentvolumes":
            return self._volume_not_restored(item)
        phase = at(body, "status", "phase")
        rules = (
            (resource == "pods" and phase in ("Failed", "Succeeded"), "the pod has completed"),
            (resource == "jobs.batch" and bool(at(body, "status", "completionTime")), "the job has completed"),
            (resource == "pods" and _MIRROR in item.annotations, "a mirror pod: the kubelet creates it"),
            (resource == "datauploads.velero.io", "Velero only reads it, for the data of its claim"),
            (resource == _API_SERVICES and _AUTOMANAGED in item.labels, "Kubernetes manages this APIService"),
            (
                _is_token(item) and self._is_made_for_account(item.key),
                "Kubernetes creates this token for its ServiceAccount",
            ),
        )
        return next((reason for is_met, reason in rules if is_met), "")

    def _volume_not_restored(self, item: Item) -> str:
        method = self._backup.volume_methods.get(item.key.name, "")
        if method == "NativeSnapshot":
            return ""
        why = _NEW_VOLUME.get(method, "")
        if not why and at(item.body, "spec", "persistentVolumeReclaimPolicy") == "Delete":
            why = "a new, empty volume is provisioned: it has no snapshot and its reclaim policy is Delete"
        if why:
            self._provisioned.add(item.key.name)
        return why

    def _is_made_for_account(self, key: ItemKey) -> bool:
        return any(
            namespace == key.namespace and key.name.startswith(f"{name}{_TOKEN_INFIX}")
            for namespace, name in self._accounts
        )

    def _brought_along(self, item: Item) -> list[Item]:
        needed = [dependency for dependency in dependencies(item) if dependency.key in self._items]
        return [self._items[dependency.key] for dependency in needed if not self._is_filtered(dependency)]

    def _is_filtered(self, dependency: Dependency) -> bool:
        key = dependency.key
        if dependency.is_forced:
            return key.resource in (SNAPSHOTS, SNAPSHOT_CONTENTS) and self._settings.spec.restore_pvs is False
        why = self._filters.resource_problem(key.resource)
        return bool(why or self._filters.scope_problem(key.resource, key.namespace, is_brought_along=True))

    def _plugin(self, item: Item) -> str:
        key = item.key
        if key.resource == "persistentvolumes" and self._backup.volume_methods.get(key.name) == "NativeSnapshot":
            return "the volume snapshotter"
        if key.resource in _CSI:
            return _CSI[key.resource]
        place = (key.namespace, key.name)
        if key.resource == "persistentvolumeclaims" and place in self._backup.claims_with_snapshots:
            return "velero.io/csi-pvc-restorer"
        if key.resource != "pods":
            return ""
        if place in self._backup.pods_with_data:
            return "velero.io/pod-volume-restore"
        has_hook = any(
            restore_resource_hook.init is not None
            for hook in self._hooks()
            for restore_resource_hook in hook.post_hooks or ()
        )
        return "velero.io/init-restore-hook" if has_hook or _INIT_HOOK in item.annotations else ""

    def _hooks(self) -> tuple[RestoreHookRule, ...]:
        hooks = self._settings.spec.hooks
        return (hooks.resources or ()) if hooks is not None else ()

    def _keep_volume(self, body: Document) -> None:
        claim = mapping(at(body, "spec", "claimRef"))
        if claim.get("namespace") in self._settings.namespaces:
            claim["namespace"] = self._settings.namespaces[claim["namespace"]]
        _unbind(body)

    def _release_claim(self, body: Document) -> None:
        name = at(body, "spec", "volumeName")
        if name:
            _unbind(body)
        if name in self._provisioned:
            mapping(body.get("spec")).pop("volumeName", None)

    def _need_namespace(self, name: str) -> None:
        target = self._mapped(name)
        if target in self.namespaces:
            return
        item = self._items.get(ItemKey("namespaces", "", name))
        if item is not None:
            self.sources[target] = item.key
        source = item.copied() if item is not None and not item.problem else {}
        about = {field: metadata(source)[field] for field in ("labels", "annotations") if field in metadata(source)}
        body: Document = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": target, **about}}
        if isinstance(source.get("spec"), dict):
            body["spec"] = source["spec"]
        self.namespaces[target] = body

    def _mapped(self, namespace: str) -> str:
        return self._settings.namespaces.get(namespace, namespace)


def _is_token(item: Item) -> bool:
    is_token = item.key.resource == "secrets" and item.body.get("type") == _TOKEN
    return is_token and _TOKEN_INFIX in item.key.name


def _unbind(body: Document) -> None:
    claim = mapping(at(body, "spec", "claimRef"))
    for name in ("uid", "resourceVersion"):
        claim.pop(name, None)
    for name in _BINDING_ANNOTATIONS:
        mapping(metadata(body).get("annotations")).pop(name, None)
