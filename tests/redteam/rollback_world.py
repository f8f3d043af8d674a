"""The cluster of the attacks on rollbacks: a hostile tenant, one of its colleagues with few rights, and a victim.

The colleague eve may ask for Rollbacks in the hostile namespace, and only read and create ConfigMaps there.
"""

import json
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from testbed import Cluster, Options
from tests.cluster import operators, rollbacks, tenants
from tests.redteam.world import (
    CLOSED,
    HOSTILE,
    NAB,
    VICTIM,
    Caller,
    Json,
    World,
    account,
    body_of,
    config,
    may_edit,
    namespace,
    path,
    policy_for,
    until,
    user,
)

UNPRUNED, SHUT = "unpruned", "shut"
"""More of the hostile tenant's namespaces: a policy without rollback.prune, and one without rollback.enabled."""

OWN, MINE = "own", "mine"
"""A backup in each namespace, and a dry run that is to be forged."""

ROLLBACKS = "rollbacks"
_UPDATES: Json = {"restore": {"allowed": {"existingResourcePolicies": ["none", "update"]}}}
_RULES = (
    {"apiGroups": ["oadp.openshift.io", "foresail.dev"], "resources": ["*"], "verbs": ["*"]},
    {"apiGroups": [""], "resources": ["configmaps"], "verbs": ["get", "list", "create"]},
)
_KINDS = ("configmaps", "deployments", "services", "serviceaccounts", "secrets")


class RolledWorld(World):
    """A world with rollbacks."""

    @property
    def eve(self) -> Caller:
        """The colleague with few rights."""
        return self.bystander

    @property
    def token(self) -> Caller:
        """The operator of rollbacks itself, for controls."""
        return account(self.cluster, "velero", "foresail-rollback")

    def contents(self, space: str) -> dict[str, str]:  # type: ignore[override]
        """Return what is in the objects of a namespace."""
        found = {}
        for plural in _KINDS:
            for each in self.admin.items(path(plural, space)):
                parts = {part: each.get(part) for part in ("data", "spec", "type")}
                found[f"{plural}/{each['metadata']['name']}"] = json.dumps(parts, sort_keys=True)
        return found

    def rollback(self, name: str, space: str = HOSTILE) -> Json:
        """Return a Rollback as the administrator sees it; empty if there is none."""
        return self.admin.get(path(ROLLBACKS, space, name)) or {}

    def belongings(self) -> dict[str, str]:
        """Return what the hostile tenant must not change, the victim's Rollbacks among it."""
        mine = {
            f"{VICTIM}/{ROLLBACKS}/{each['metadata']['name']}": json.dumps([each["spec"], each.get("status")])
            for each in self.admin.items(path(ROLLBACKS, VICTIM))
        }
        of_victim = {f"{VICTIM}/{key}": text for key, text in self.contents(VICTIM).items()}
        return {**super().belongings(), **mine, **of_victim}


def phase_of(found: Json) -> str:
    """Return the phase of a Rollback."""
    return str(found.get("status", {}).get("phase", ""))


@contextmanager
def rolled(folder: Path) -> Iterator[World]:
    """Build the cluster with everybody in it, and take it down when the block ends."""
    with Cluster.create("redteam-rollback", Options(velero="velero"), owned=True) as cluster, ExitStack() as stack:
        for name in (HOSTILE, UNPRUNED, SHUT, CLOSED):
            cluster.apply(namespace(name, opted_in=name != CLOSED), may_edit(name, "mallory"), config(name))
        cluster.apply(namespace(VICTIM), may_edit(VICTIM, "vic"), config(VICTIM), *few_rights())
        tenants.install(cluster, rollback=True)
        rollbacks.allow(cluster)
        cluster.apply(
            policy_for(UNPRUNED, {**_UPDATES, "rollback": {"enabled": True}}),
            policy_for(SHUT, {**_UPDATES}),
        )
        log = folder / "operator.log"
        process = stack.enter_context(tenants.operator(cluster, log))
        rolling = stack.enter_context(operators.running(cluster, folder, *rollbacks.FLAGS))
        people = [user(cluster, name) for name in ("mallory", "vic", "eve")]
        admin = Caller(cluster.server, cluster.site.admin_trust)
        world = RolledWorld(cluster, admin, people[0], people[1], process, log, people[2], rolling.pid)
        _furnish(world)
        yield world


def few_rights() -> tuple[Json, Json]:
    """Return the Role and RoleBinding of the colleague eve."""
    group = "rbac.authorization.k8s.io"
    meta = {"name": "few", "namespace": HOSTILE}
    role = {"apiVersion": f"{group}/v1", "kind": "Role", "metadata": meta, "rules": [*_RULES]}
    bound = {
        "apiVersion": f"{group}/v1",
        "kind": "RoleBinding",
        "metadata": meta,
        "roleRef": {"apiGroup": group, "kind": "Role", "name": "few"},
        "subjects": [{"apiGroup": group, "kind": "User", "name": "eve"}],
    }
    return role, bound


def _furnish(world: RolledWorld) -> None:
    until(lambda: world.hostile.get(path(ROLLBACKS, HOSTILE)) is not None, 120, "the built-in role edit has our rules")
    canary = body_of(NAB, "canary", {"backupSpec": {}}, labels={"foresail.dev/canary": "x"})
    target = f"{path(NAB, HOSTILE)}?dryRun=All"
    until(lambda: world.hostile.create(target, canary).code >= 400, 60, "admission policies are in force")
    for who, space in (
        (world.hostile, HOSTILE),
        (world.hostile, UNPRUNED),
        (world.hostile, SHUT),
        (world.victim, VICTIM),
    ):
        who.create(path(NAB, space), body_of(NAB, OWN, {"backupSpec": {"snapshotVolumes": False}}))
        world.finished(NAB, OWN, space)
    world.victim.create(path(NAB, VICTIM), body_of(NAB, "treasure", {"backupSpec": {"snapshotVolumes": False}}))
    world.finished(NAB, "treasure", VICTIM)
    for space in (HOSTILE, UNPRUNED, SHUT):
        spoil(world, space)
    for who, space in ((world.hostile, HOSTILE), (world.victim, VICTIM)):
        who.create(path(ROLLBACKS, space), body_of(ROLLBACKS, MINE, {"to": OWN, "dryRun": True}))
        until(lambda space=space: phase_of(world.rollback(MINE, space)) == "Planned", 120, "a plan")  # type: ignore[misc]


def spoil(world: World, space: str) -> None:
    """Change and add something since the backup."""
    world.admin.patch(path("configmaps", space, "settings"), {"data": {"of": "spoilt"}})
    world.admin.create(path("configmaps", space), {**body_of("ConfigMap", "added"), "data": {"new": "yes"}})
