"""Attacks on the labels that choose a class: each way to write a namespace, with each thing that it could say.

Every pair is an attack on a namespace of a class that its caller may not use; its control is the same write by an
administrator. Whoever the hostile tenant pretends to be, or gives rights to in its own namespace, is tried too.
"""

import http.client
import itertools
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from tests.redteam.attack import controlled_by, listed
from tests.redteam.class_world import EXEMPT, SILVER, SOLO, UNNAMED
from tests.redteam.world import HOSTILE, NAB, NAR, Caller, Json, World, path, until, user

LABEL, REASON, UNTIL = (f"foresail.dev/protection{end}" for end in ("", "-reason", "-until"))
EXCLUDE = "velero.io/exclude-from-backup"
EXEMPTED = {REASON: "x", UNTIL: "2030-01-01"}
_KEYS = (("labels", LABEL), ("labels", EXCLUDE), ("annotations", REASON), ("annotations", UNTIL))
_numbers = itertools.count()


@dataclass(frozen=True)
class Says:
    """What a namespace would say after the write; None takes a key away."""

    tries: str
    labels: Json
    annotations: Json


SAYINGS = {
    "an_exemption": Says("label the own namespace none, with a reason and a date", {LABEL: "none"}, EXEMPTED),
    "no_class": Says("take the label of the class away", {LABEL: None}, {}),
    "an_unknown_class": Says("name a class that does not exist", {LABEL: "glod"}, {}),
    "none_in_capitals": Says("label it None, as if that were the exemption", {LABEL: "None"}, EXEMPTED),
    "nothing": Says("set the label to an empty text", {LABEL: ""}, {}),
    "a_lower_class": Says("leave the class for one of which one has the use", {LABEL: SILVER}, {}),
    "the_class_of_others": Says("join the group of the victim, without its use", {LABEL: SOLO}, {}),
    "the_exclusion": Says("set the label by which Velero refuses each backup of the group", {EXCLUDE: "true"}, {}),
    "both": Says("change to a class of which one has the use, and be excluded", {LABEL: SILVER, EXCLUDE: "true"}, {}),
}

Way = Callable[[Caller, Json, str, Says], object]
"""How somebody writes it: given the namespace as it is, and the path."""


def _metadata(says: Says) -> Json:
    return {"labels": says.labels, "annotations": says.annotations}


def _patched(sort: str, who: Caller, _: Json, target: str, says: Says) -> object:
    return who.patch(target, {"metadata": _metadata(says)}, sort)


def _by_json_patch(who: Caller, found: Json, target: str, says: Says) -> object:
    return who.patch(target, _operations(found, says), "json")


def _operations(found: Json, says: Says) -> list[Json]:
    known = found["metadata"]
    steps: list[Json] = (
        [] if known.get("annotations") else [{"op": "add", "path": "/metadata/annotations", "value": {}}]
    )
    for part, wanted in _metadata(says).items():
        for key, text in wanted.items():
            at = f"/metadata/{part}/{key.replace('/', '~1')}"
            steps.append({"op": "remove", "path": at} if text is None else {"op": "add", "path": at, "value": text})
    return steps


def _by_moving(who: Caller, found: Json, target: str, says: Says) -> object:
    """Write each text to another key first, and move it from there within the same patch."""
    steps: list[Json] = []
    for step in _operations(found, says):
        if step["op"] == "remove" or step["path"].count("/") == 2:
            steps.append(step)
        else:
            beside = f"{step['path']}-x"
            steps += [{**step, "path": beside}, {"op": "move", "from": beside, "path": step["path"]}]
    return who.patch(target, steps, "json")


def _by_apply(who: Caller, found: Json, target: str, says: Says) -> object:
    body = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": found["metadata"]["name"], **_metadata(says)}}
    return who.patch(f"{target}?fieldManager=mine&force=true", body, "apply")


def _by_replacing(who: Caller, found: Json, target: str, says: Says) -> object:
    parts = {part: {**found["metadata"].get(part, {}), **wanted} for part, wanted in _metadata(says).items()}
    kept = {part: {key: text for key, text in texts.items() if text is not None} for part, texts in parts.items()}
    return who.send("PUT", target, {**found, "metadata": {**found["metadata"], **kept}})


def _in_steps(who: Caller, _: Json, target: str, says: Says) -> object:
    """Write one key at a time, annotations first."""
    for part in ("annotations", "labels"):
        for key, text in getattr(says, part).items():
            who.patch(target, {"metadata": {part: {key: text}}})
    return None


WAYS: dict[str, Way] = {
    "a_merge_patch": partial(_patched, "merge"),
    "a_strategic_patch": partial(_patched, "strategic"),
    "a_json_patch": _by_json_patch,
    "moves_in_a_json_patch": _by_moving,
    "apply": _by_apply,
    "a_replacement": _by_replacing,
    "steps": _in_steps,
}
_SUBRESOURCES = {"": WAYS, "status": WAYS, "finalize": {"a_replacement": WAYS["a_replacement"]}}


def lowered(before: Json, after: Json) -> list[str]:
    """Return what of the protection of a namespace has changed; without the label none, annotations say nothing."""
    found = differing(before, after)
    is_exempt = after["metadata"].get("labels", {}).get(LABEL) == "none"
    return [text for text in found if is_exempt or not text.startswith((f"{REASON} ", f"{UNTIL} "))]


def differing(before: Json, after: Json) -> list[str]:
    """Return which labels and annotations of protection have changed."""
    told = [(key, *(each["metadata"].get(part, {}).get(key) for each in (before, after))) for part, key in _KEYS]
    return [f"{key} was {old} and is {new}" for key, old, new in told if old != new]


def put_back(world: World, before: Json) -> None:
    """Let an administrator restore what a namespace says of its protection."""
    texts: Json = {"labels": {}, "annotations": {}}
    for part, key in _KEYS:
        texts[part][key] = before["metadata"].get(part, {}).get(key)
    world.admin.patch(path("namespaces", name=before["metadata"]["name"]), {"metadata": texts})


def tried(way: Way, sub: str, says: Says, who: Caller, world: World, name: str = HOSTILE) -> list[str]:
    """Write a namespace, return what has changed of its protection, and put it back."""
    target = path("namespaces", name=name)
    before = world.admin.get(target) or {}
    way(who, before, f"{target}/{sub}" if sub else target, says)
    after = world.admin.get(target) or {}
    if differing(before, after):
        put_back(world, before)
    return lowered(before, after)


def _of_hostile(way: Way, sub: str, says: Says, world: World) -> list[str]:
    return tried(way, sub, says, world.hostile, world)


def _of_admin(way: Way, sub: str, says: Says, world: World) -> list[str]:
    return tried(way, sub, says, world.admin, world)


def _is_possible(way: str, says: Says) -> bool:
    """Whether the way has such an effect at all: applying takes nothing away that another manager has written."""
    return way != "apply" or None not in says.labels.values()


for (_sub, _ways), (_name, _says) in itertools.product(_SUBRESOURCES.items(), SAYINGS.items()):
    for _title, _way in _ways.items():
        if _is_possible(_title, _says):
            listed(
                __name__,
                f"protection_say_{_name}_by_{_title}{f'_of_{_sub}' if _sub else ''}",
                f"Write to {_sub or 'the namespace'} by {_title.replace('_', ' ')}: {_says.tries}.",
                partial(_of_hostile, _way, _sub, _says),
                partial(_of_admin, _way, _sub, _says),
            )


# Namespaces of the default class, which no label names


def _leaves(who: str, way: Way, sub: str, space: str, world: World) -> list[str]:
    return tried(way, sub, SAYINGS["a_lower_class"], getattr(world, who), world, space)


for _space, (_sub, _ways) in itertools.product((UNNAMED, EXEMPT), _SUBRESOURCES.items()):
    for _title, _way in _ways.items():
        listed(
            __name__,
            f"protection_leave_the_default_class_from_{_space}_by_{_title}{f'_of_{_sub}' if _sub else ''}",
            f"Write to {_sub or 'the namespace'} by {_title.replace('_', ' ')}: leave the default for a lower class.",
            partial(_leaves, "hostile", _way, _sub, _space),
            partial(_leaves, "admin", _way, _sub, _space),
        )


# Namespaces that are born so


def _posted(who: Caller, name: str, says: Says) -> object:
    metadata = {"name": name, **_metadata(says)}
    return who.create(path("namespaces"), {"apiVersion": "v1", "kind": "Namespace", "metadata": metadata})


def _generated(who: Caller, name: str, says: Says) -> object:
    metadata = {"generateName": name, **_metadata(says)}
    return who.create(path("namespaces"), {"apiVersion": "v1", "kind": "Namespace", "metadata": metadata})


def _applied(who: Caller, name: str, says: Says) -> object:
    return _by_apply(who, {"metadata": {"name": name}}, path("namespaces", name=name), says)


_BIRTHS = {"a_post": _posted, "a_generated_name": _generated, "apply": _applied}
_BORN = ("an_exemption", "the_class_of_others", "the_exclusion", "both")


def _born(birth: Callable[[Caller, str, Says], object], says: Says, who: str, world: World) -> list[str]:
    """Create a namespace that says so, and return whether it exists."""
    name = f"born{next(_numbers)}"
    birth(getattr(world, who), name, says)
    names = [each["metadata"]["name"] for each in world.admin.items(path("namespaces"))]
    found = [each for each in names if each.startswith(name)]
    for each in found:
        world.admin.delete(path("namespaces", name=each))
    return [f"{each} was created" for each in found]


for (_title, _birth), _name in itertools.product(_BIRTHS.items(), _BORN):
    listed(
        __name__,
        f"protection_be_born_with_{_name}_by_{_title}",
        f"Create a namespace by {_title.replace('_', ' ')}: {SAYINGS[_name].tries}.",
        partial(_born, _birth, SAYINGS[_name], "hostile"),
        partial(_born, _birth, SAYINGS[_name], "admin"),
    )


# Whoever the tenant pretends to be

_AS: dict[str, Json] = {
    "an_administrator": {"Impersonate_User": "system:admin"},
    "a_master": {"Impersonate_User": "mallory", "Impersonate_Group": "system:masters"},
    "the_operator": {"Impersonate_User": "system:serviceaccount:velero:foresail-protection"},
    "velero": {"Impersonate_User": "system:serviceaccount:velero:velero"},
    "a_robot_of_the_namespace": {"Impersonate_User": f"system:serviceaccount:{HOSTILE}:default"},
    "itself_with_more": {"Impersonate_User": "mallory", "Impersonate_Extra_scopes": "foresail.dev/use"},
}
_CHOSEN = ("an_exemption", "no_class", "a_lower_class", "the_exclusion")


def _pretended(headers: Json, says: Says, who: str, world: World) -> list[str]:
    target = path("namespaces", name=HOSTILE)
    before = world.admin.get(target) or {}
    getattr(world, who).patch(target, {"metadata": _metadata(says)}, "merge", **headers)
    after = world.admin.get(target) or {}
    if differing(before, after):
        put_back(world, before)
    return lowered(before, after)


_MASTER = {"Impersonate_User": "somebody", "Impersonate_Group": "system:masters"}
for (_title, _headers), _name in itertools.product(_AS.items(), _CHOSEN):
    listed(
        __name__,
        f"protection_say_{_name}_as_{_title}",
        f"Pretend to be {_title.replace('_', ' ')}: {SAYINGS[_name].tries}.",
        partial(_pretended, _headers, SAYINGS[_name], "hostile"),
        partial(_pretended, _MASTER, SAYINGS[_name], "admin"),
    )


# Rights that the tenant has or gives in its own namespace: a class belongs to the cluster

_RBAC = "rbac.authorization.k8s.io"
_USE = {"apiGroups": ["foresail.dev"], "resources": ["protectionclasses"], "verbs": ["use"]}


def _role(kind: str, name: str, rules: list[Json]) -> Json:
    return {"apiVersion": f"{_RBAC}/v1", "kind": kind, "metadata": {"name": name}, "rules": rules}


def _binding(kind: str, name: str, of: str, to: str) -> Json:
    return {
        "apiVersion": f"{_RBAC}/v1",
        "kind": kind,
        "metadata": {"name": name},
        "roleRef": {"apiGroup": _RBAC, "kind": of, "name": name},
        "subjects": [{"apiGroup": _RBAC, "kind": "User", "name": to}],
    }


def _owner(world: World) -> Caller:
    """Return somebody who may do everything in the namespace of the hostile tenant, and label it."""
    rules = [{"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]}]
    world.admin.create(path("roles", HOSTILE), _role("Role", "owner", rules))
    world.admin.create(path("rolebindings", HOSTILE), _binding("RoleBinding", "owner", "Role", "olga"))
    labels = {**_binding("ClusterRoleBinding", "labels", "ClusterRole", "olga"), "metadata": {"name": "olga-labels"}}
    world.admin.create(path("clusterrolebindings"), labels)
    owner = user(world.cluster, "olga")
    mark = {"metadata": {"labels": {"seen": str(next(_numbers))}}}
    until(lambda: owner.get(path("roles", HOSTILE)), 20, "the owner has rights")
    until(lambda: owner.patch(path("namespaces", name=HOSTILE), mark).code == http.client.OK, 20, "and may label it")
    return owner


def _as_owner(kinds: tuple[str, str], says: Says, world: World, *, is_admin: bool = False) -> list[str]:
    """Give oneself the verb use by a role of this kind and a binding of that, and label the namespace."""
    owner = _owner(world)
    giver = world.admin if is_admin else owner
    role, binding = (f"{kind.lower()}s" for kind in kinds)
    where = ["" if kind.startswith("Cluster") else HOSTILE for kind in kinds]
    name = f"use{next(_numbers)}"
    giver.create(path(role, where[0]), _role(kinds[0], name, [_USE]))
    giver.create(path(binding, where[1]), _binding(kinds[1], name, kinds[0], "olga"))
    time.sleep(1)  # the API server learns of roles by watches
    try:
        return _waited(world, owner, says) if is_admin else tried(WAYS["a_merge_patch"], "", says, owner, world)
    finally:
        for plural, space in ((role, where[0]), (binding, where[1])):
            world.admin.delete(path(plural, space, name))
        world.admin.delete(path("clusterrolebindings", name="olga-labels"))


def _waited(world: World, owner: Caller, says: Says) -> list[str]:
    found: list[str] = []

    def succeeds() -> bool:
        found[:] = tried(WAYS["a_merge_patch"], "", says, owner, world)
        return bool(found)

    until(succeeds, 20, "the rights are in force")
    return found


_GIVEN = (("Role", "RoleBinding"), ("ClusterRole", "RoleBinding"), ("ClusterRole", "ClusterRoleBinding"))
for _kinds, _name in itertools.product(_GIVEN, _CHOSEN):
    listed(
        __name__,
        f"protection_say_{_name}_with_a_{_kinds[0]}_in_a_{_kinds[1]}",
        f"Give oneself the verb use by a {_kinds[0]} and a {_kinds[1]}, as owner: {SAYINGS[_name].tries}.",
        partial(_as_owner, _kinds, SAYINGS[_name]),
        partial(_as_owner, _GIVEN[-1], SAYINGS[_name], is_admin=True),
    )


# Velero writes what it restores with the rights of a cluster administrator


def _old_label(world: World) -> list[str]:
    """Back up a namespace in a class of its choice, let an administrator raise it, and restore the old namespace."""
    space, target = "flapping", path("namespaces", name="flapping")
    world.hostile.patch(target, {"metadata": {"labels": {LABEL: SILVER}}})
    name = f"l{next(_numbers)}"
    world.ask(NAB, name, {"backupSpec": {"snapshotVolumes": False}}, space)
    world.finished(NAB, name, space)
    world.admin.patch(target, {"metadata": {"labels": {LABEL: "gold"}}})
    before = world.admin.get(target) or {}
    spec = {"restoreSpec": {"backupName": name, "existingResourcePolicy": "update", "includeClusterResources": True}}
    for number, restore in enumerate((spec, {"restoreSpec": {"backupName": name, "existingResourcePolicy": "update"}})):
        answer = world.ask(NAR, f"{name}-{number}", restore, space)
        if answer.code < http.client.BAD_REQUEST:
            world.finished(NAR, f"{name}-{number}", space)
    found = lowered(before, world.admin.get(target) or {})
    world.admin.patch(target, {"metadata": {"labels": {LABEL: SILVER}}})
    return found


def _relabelled(world: World) -> list[str]:
    return tried(WAYS["a_merge_patch"], "", SAYINGS["an_unknown_class"], world.admin, world, "flapping")


@controlled_by(_relabelled)
def protection_restore_an_old_label(world: World) -> list[str]:
    """Let Velero write the label of a lower class from an old backup, over the one that an administrator has set."""
    return _old_label(world)
