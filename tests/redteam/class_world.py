"""The cluster of the attacks on protection by label: a class whose group holds the hostile tenant and the victim.

The hostile tenant may edit its namespaces, label them, write Protections, and use the classes silver and bronze.
"""

import json
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from foresail.api.marks import NAMESPACE_UIDS, PROTECTION_CLASS
from testbed import Cluster, Options
from tests.cluster import operators, tenants
from tests.redteam.world import (
    CLOSED,
    HOSTILE,
    NEIGHBOUR,
    NIGHTLY,
    REBORN,
    VELERO,
    VICTIM,
    Caller,
    Json,
    World,
    body_of,
    config,
    given,
    may_edit,
    namespace,
    path,
    until,
    user,
)
from tests.selfservice_invariant import breaches_of_restore

GOLD, SOLO, SHUT, SILVER, BRONZE, BASIC = "gold", "solo", "shut", "silver", "bronze", "basic"
"""The classes of the group, of the victim alone, that lets no team restore, the two for which labels may flap, and the
default."""

FLAPPING, EXEMPT, UNNAMED = "flapping", "exempt", "unnamed"
_PROTECTION = ("--schedules=false", "--protection", "--lease-name=foresail-protection")
_NEVER = "0 0 29 2 *"
_NOW = "* * * * *"
_MEMBERS = {GOLD: (HOSTILE, VICTIM, REBORN), SOLO: (NEIGHBOUR,), SHUT: (CLOSED,)}
PLAIN: Json = {"containers": [{"name": "only", "image": "only"}]}


class ClassWorld(World):
    """A world in which restores from the backups of a class are no breach if they are of the own namespace."""

    def breaches(self) -> dict[str, list[str]]:
        """Return what is wrong with the Velero objects that were made for tenants, by name."""
        found = {}
        for each in self.velero("restores"):
            space = each["metadata"].get("annotations", {}).get("openshift.io/oadp-nar-origin-namespace")
            source = each["spec"].get("backupName", "")
            if not space:
                continue
            spec = given(each)  # Velero fills in the name of the Schedule
            wrong = breaches_of_restore(spec, space, source, self.policy(space))
            wrong += [] if source.startswith(f"{space}-") else self._of_class(spec, space, source)
            if wrong:
                found[f"Restore {each['metadata']['name']}"] = wrong
        return found

    def _of_class(self, spec: Json, space: str, source: str) -> Iterator[str]:
        backup = self.admin.get(path("backups", VELERO, source)) or {}
        notes = backup.get("metadata", {}).get("annotations", {})
        now = (self.admin.get(path("namespaces", name=space)) or {}).get("metadata", {}).get("uid", "gone")
        open_to_all = self.admin.get(path("protectionclasses", name=notes.get(PROTECTION_CLASS, "x"))) or {}
        if json.loads(notes.get(NAMESPACE_UIDS) or "{}").get(space) != now:
            yield f"restores {source}, which was not taken of this {space}"
        if not open_to_all.get("spec", {}).get("restore", {}).get("byTenants"):
            yield f"restores {source} of a class that lets no team restore"
        if spec.get("includedNamespaces") != [space] or spec.get("namespaceMapping"):
            yield "restores other namespaces, or into one"
        if "pods" not in spec.get("excludedResources", []):
            yield "restores pods"

    @property
    def groups(self) -> dict[str, list[str]]:
        """Return the namespaces of each Schedule."""
        found = self.velero("schedules")
        return {each["metadata"]["name"]: each["spec"]["template"].get("includedNamespaces", []) for each in found}

    def point(self, of: str) -> str:
        """Return the newest backup of a class."""
        found = [each for each in self.velero("backups") if each["metadata"]["name"].startswith(f"{of}-1-")]
        return max(str(each["metadata"]["name"]) for each in found)

    def protection(self, space: str) -> Json:
        """Return the status of a Protection; empty if there is none."""
        found: Json = (self.admin.get(path("protections", space, "protection")) or {}).get("status", {})
        return found


def classify(
    cluster: Cluster, name: str, schedule: str = _NEVER, *, by_tenants: bool = True, default: bool = False
) -> None:
    """Write a class."""
    spec = {
        "schedule": schedule,
        "template": {"ttl": "720h", "snapshotVolumes": False},
        "restore": {"byTenants": by_tenants},
        "default": default,
    }
    cluster.apply(
        {"apiVersion": "foresail.dev/v1alpha1", "kind": "ProtectionClass", "metadata": {"name": name}, "spec": spec}
    )


@contextmanager
def classed(folder: Path) -> Iterator[World]:
    """Build the cluster with everybody in it, let each class take a backup, and take the cluster down at the end."""
    with Cluster.create("redteam-protection", Options(velero="velero"), owned=True) as cluster, ExitStack() as stack:
        _before(cluster)
        tenants.install(cluster, schedules=True, protection=True)
        admin = Caller(cluster.server, cluster.site.admin_trust)
        log = folder / "operator.log"
        stack.enter_context(operators.running(cluster, folder, "--record-namespaces"))
        keeper = stack.enter_context(operators.running(cluster, folder, *_PROTECTION))
        process = stack.enter_context(tenants.operator(cluster, log, 0))
        people = [user(cluster, name) for name in ("mallory", "vic", "by")]
        world = ClassWorld(cluster, admin, people[0], people[1], process, log, people[2], keeper.pid)
        _furnish(world)
        yield world


def _before(cluster: Cluster) -> None:
    """Create the namespaces, and what was in them before any admission policy looked."""
    for name in (HOSTILE, REBORN, CLOSED, FLAPPING, EXEMPT, UNNAMED):
        cluster.apply(namespace(name), may_edit(name, "mallory"), config(name))
    for name in (VICTIM, NEIGHBOUR):
        cluster.apply(namespace(name), may_edit(name, "vic"), config(name))
    cluster.apply(
        {**body_of("Secret", "crown-jewels", namespace=VICTIM), "stringData": {"password": "victims-password"}},
        _claim("jewels", VICTIM),
        _grasping_pod(),
    )


def _claim(name: str, space: str) -> Json:
    spec = {
        "accessModes": ["ReadWriteOnce"],
        "resources": {"requests": {"storage": "1Mi"}},
        "storageClassName": "none",
        "volumeName": f"of-{name}",
    }
    return {**body_of("PersistentVolumeClaim", name, spec, namespace=space), "apiVersion": "v1"}


def _grasping_pod() -> Json:
    """Return a pod whose claim is a path to the victim's in the archive, and that demands what it names."""
    names = {"restore.velero.io/must-include-additional-items": "true"}
    volume = {"name": "theirs", "persistentVolumeClaim": {"claimName": f"../{VICTIM}/jewels"}}
    return {**body_of("Pod", "grasping", namespace=HOSTILE, annotations=names), "spec": {**PLAIN, "volumes": [volume]}}


def _furnish(world: ClassWorld) -> None:
    cluster = world.cluster
    cluster.apply(_labels_and_classes(), _bound_to_mallory(), *(_writes_protections(name) for name in (HOSTILE,)))
    cluster.apply(may_edit(HOSTILE, "mallory", "writes-protections"), _asks_only(), may_edit(HOSTILE, "eve", "asks"))
    for name in (GOLD, SOLO, SHUT, SILVER, BRONZE):
        classify(cluster, name)
    classify(cluster, BASIC, default=True)
    for name, spaces in _MEMBERS.items():
        for space in spaces:
            cluster.kubectl("label", "namespace", space, f"foresail.dev/protection={name}")
    cluster.kubectl("label", "namespace", FLAPPING, f"foresail.dev/protection={SILVER}")
    exempted = ("foresail.dev/protection-reason=test", "foresail.dev/protection-until=2030-01-01")
    cluster.kubectl("annotate", "namespace", EXEMPT, *exempted)
    cluster.kubectl("label", "namespace", EXEMPT, "foresail.dev/protection=none")
    until(lambda: world.groups.get("gold-1") == sorted(_MEMBERS[GOLD]), 30, "the group of three is there")
    for name in _MEMBERS:
        classify(cluster, name, _NOW)
    until(lambda: all(_has_run(world, name) for name in _MEMBERS), 180, "each class has a backup")
    for name in _MEMBERS:
        classify(cluster, name, by_tenants=name != SHUT)
    until(lambda: world.protection(VICTIM).get("points"), 30, "the Protection lists a point")
    cluster.velero("backup", "create", NIGHTLY, f"--include-namespaces={HOSTILE},{VICTIM}", "--wait")


def _has_run(world: ClassWorld, name: str) -> bool:
    found = [each for each in world.velero("backups") if each["metadata"]["name"].startswith(f"{name}-1-")]
    # Velero refuses the path in the pod of the hostile tenant, so the backup of that group is PartiallyFailed.
    return any(each.get("status", {}).get("phase") in ("Completed", "PartiallyFailed") for each in found)


def _labels_and_classes() -> Json:
    spaces = [HOSTILE, FLAPPING, EXEMPT, UNNAMED, REBORN]
    rules = [
        {"apiGroups": [""], "resources": ["namespaces"], "verbs": ["create"]},
        {
            "apiGroups": [""],
            "resources": ["namespaces", "namespaces/status", "namespaces/finalize"],
            "verbs": ["get", "patch", "update"],
            "resourceNames": spaces,
        },
        {
            "apiGroups": ["foresail.dev"],
            "resources": ["protectionclasses"],
            "verbs": ["use", "get"],
            "resourceNames": [SILVER, BRONZE],
        },
    ]
    return _role("ClusterRole", "labels", rules)


def _role(kind: str, name: str, rules: list[Json], **metadata: str) -> Json:
    group = "rbac.authorization.k8s.io/v1"
    return {"apiVersion": group, "kind": kind, "metadata": {"name": name, **metadata}, "rules": rules}


def _bound_to_mallory() -> Json:
    group = "rbac.authorization.k8s.io"
    return {
        "apiVersion": f"{group}/v1",
        "kind": "ClusterRoleBinding",
        "metadata": {"name": "mallory-labels"},
        "roleRef": {"apiGroup": group, "kind": "ClusterRole", "name": "labels"},
        "subjects": [{"apiGroup": group, "kind": "User", "name": "mallory"}],
    }


def _writes_protections(_: str) -> Json:
    rules = [{"apiGroups": ["foresail.dev"], "resources": ["protections", "protections/status"], "verbs": ["*"]}]
    return _role("ClusterRole", "writes-protections", rules)


def _asks_only() -> Json:
    rules = [{"apiGroups": ["oadp.openshift.io"], "resources": ["nonadminrestores"], "verbs": ["*"]}]
    return _role("ClusterRole", "asks", rules)
