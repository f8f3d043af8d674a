"""Attacks on rollbacks: forged status, labels and requesters, others' backups and plans, missing rights, floods."""

import http.client
import itertools
import time
from collections.abc import Callable, Mapping
from datetime import timedelta
from functools import partial

from foresail.api.instants import instant
from foresail.kube.clock import now
from tests.cluster.rollbacks import ENDED
from tests.redteam.attack import listed
from tests.redteam.rollback_world import MINE, OWN, ROLLBACKS, SHUT, UNPRUNED, RolledWorld, phase_of, spoil
from tests.redteam.world import CLOSED, HOSTILE, NAB, NAR, VICTIM, Caller, Json, World, body_of, changes, path, until

_numbers = itertools.count(1)
_FLOOD = 30
_UID = "00000000-0000-4000-8000-000000000000"


def _rolled(world: World) -> RolledWorld:
    assert isinstance(world, RolledWorld)
    return world


def _who(world: RolledWorld, name: str) -> Caller:
    found: Caller = getattr(world, name)
    return found


def _asked(world: RolledWorld, who: str, spec: Json, space: str = HOSTILE, **metadata: object) -> Json:
    """Create a Rollback, wait for its end, delete it, and return how it was; empty if the API server refused it."""
    name = f"try-{next(_numbers)}"
    answer = _who(world, who).create(path(ROLLBACKS, space), body_of(ROLLBACKS, name, spec, **metadata))
    if answer.code != http.client.CREATED:
        return {}
    until(lambda: phase_of(world.rollback(name, space)) in ENDED, 120, f"Rollback {name} ends")
    found = world.rollback(name, space)
    world.admin.delete(path(ROLLBACKS, space, name))
    return found


# What must be refused


def _served(who: str, spec: Json, space: str, metadata: Json, any_world: World) -> list[str]:
    """Return what a Rollback that must be refused has come to, and what it has changed."""
    world = _rolled(any_world)
    before = world.contents(space)
    found = _asked(world, who, spec, space, **metadata)
    served = [f"it is {phase_of(found)}"] if phase_of(found) not in ("", "Refused") else []
    return [*served, *changes(before, world.contents(space))]


_PLAIN: Json = {"to": OWN}
_REFUSED: Mapping[str, tuple[str, str, Json, str, Json]] = {
    "to_a_backup_of_the_victim": (
        "roll back to a backup that only the victim has",
        "hostile",
        {"to": "treasure"},
        HOSTILE,
        {},
    ),
    "to_a_path_of_the_victim": (
        "name a backup of the victim by a path",
        "hostile",
        {"to": f"../{VICTIM}/treasure"},
        HOSTILE,
        {},
    ),
    "in_the_namespace_of_the_victim": ("create a Rollback for the victim", "hostile", _PLAIN, VICTIM, {}),
    "with_the_plan_of_another": (
        "run another plan than was shown",
        "hostile",
        {**_PLAIN, "planDigest": "0" * 64},
        HOSTILE,
        {},
    ),
    "without_update": ("change objects that the requester may not update", "eve", _PLAIN, HOSTILE, {}),
    "without_update_of_one_kind": ("the same with one kind", "eve", {**_PLAIN, "only": ["configmaps"]}, HOSTILE, {}),
    "without_delete": ("delete what the requester may not", "eve", {**_PLAIN, "prune": True}, HOSTILE, {}),
    "without_prune_in_the_policy": (
        "delete where the policy does not allow it",
        "hostile",
        {**_PLAIN, "prune": True},
        UNPRUNED,
        {},
    ),
    "without_enabled_in_the_policy": ("roll back where the policy does not allow it", "hostile", _PLAIN, SHUT, {}),
    "without_a_policy": ("roll back where there is no policy", "hostile", _PLAIN, CLOSED, {}),
    "of_pods": ("restore pods in place", "hostile", {**_PLAIN, "only": ["pods"]}, HOSTILE, {}),
    "of_claims": ("restore claims in place", "hostile", {**_PLAIN, "only": ["persistentvolumeclaims"]}, HOSTILE, {}),
    "of_volumes": (
        "replace volumes, which the policy does not allow",
        "hostile",
        {**_PLAIN, "volumes": "All"},
        HOSTILE,
        {},
    ),
    "of_replica_sets": (
        "restore what Deployments own",
        "hostile",
        {**_PLAIN, "only": ["replicasets.apps"]},
        HOSTILE,
        {},
    ),
    "dry_and_undone": ("undo a dry run", "hostile", {**_PLAIN, "dryRun": True, "undo": True}, HOSTILE, {}),
    "undone_before_it_begins": ("undo what has not begun", "hostile", {**_PLAIN, "undo": True}, HOSTILE, {}),
    "as_if_velero_restored_it": (
        "replay a Rollback as a restore of Velero brings it back",
        "hostile",
        _PLAIN,
        HOSTILE,
        {"labels": {"velero.io/restore-name": "x"}},
    ),
    "in_the_name_of_the_victim": (
        "let the steps be authorised for the victim",
        "hostile",
        _PLAIN,
        VICTIM,
        {"annotations": {"foresail.dev/requester": "vic"}},
    ),
    "as_in_progress": (
        "open the namespace for the operator before there is a plan",
        "hostile",
        _PLAIN,
        HOSTILE,
        {"labels": {"foresail.dev/rollback-in-progress": "true"}},
    ),
}
_DRY = partial(_served, "hostile", {**_PLAIN, "dryRun": True}, HOSTILE, {})

for _name, (_tries, _by, _spec, _space, _meta) in _REFUSED.items():
    listed(__name__, f"rollback_{_name}", f"Tries to {_tries}.", partial(_served, _by, _spec, _space, _meta), _DRY)


# Who asks


def _named_as(who: str, space: str, annotations: Json, any_world: World) -> list[str]:
    """Return whether a Rollback is in the name of the victim, or of a mighty group."""
    found = _asked(_rolled(any_world), who, {**_PLAIN, "dryRun": True}, space, annotations=annotations)
    notes = found.get("metadata", {}).get("annotations", {})
    groups = notes.get("foresail.dev/requester-groups", "").split("\n")
    named = [f"requester {notes['foresail.dev/requester']}"] if notes.get("foresail.dev/requester") == "vic" else []
    return [*named, *(group for group in groups if group == "system:masters")]


for _key, _text in (("requester", "vic"), ("requester-groups", "system:masters")):
    listed(
        __name__,
        f"rollback_forged_{_key}_of_a_new_one",
        f"Tries to create a Rollback with another {_key}.",
        partial(_named_as, "hostile", HOSTILE, {f"foresail.dev/{_key}": _text}),
        partial(_named_as, "victim", VICTIM, {}),
    )


# What is forged


def _value(found: Json, where: tuple[str, ...]) -> object:
    at: object = found
    for key in where:
        at = at.get(key) if isinstance(at, dict) else None
    return at


def _forged(who: str, sub: str, sort: str, where: tuple[str, ...], value: object, any_world: World) -> list[str]:
    """Return whether somebody could set a field of a Rollback that has ended; it is set back."""
    world = _rolled(any_world)
    target = path(ROLLBACKS, HOSTILE, MINE, sub)
    body: object = value
    for key in reversed(where):
        body = {key: body}
    before = world.rollback(MINE)
    caller = world.token if who == "token" else _who(world, who)
    if sort == "put":
        body = {**before, **body} if isinstance(body, dict) else body
        caller.send("PUT", target, body)
    elif sort == "apply":
        kind = {"apiVersion": "foresail.dev/v1alpha1", "kind": "Rollback"}
        caller.patch(
            f"{target}?fieldManager=mine&force=true", {**kind, **(body if isinstance(body, dict) else {})}, sort
        )
    else:
        caller.patch(target, body, sort)
    after = world.rollback(MINE)
    if _value(after, where) == _value(before, where):
        return []
    undo: object = _value(before, where)
    for key in reversed(where):
        undo = {key: undo}
    world.token.patch(target, undo)
    return [f"{'.'.join(where)} is {_value(after, where)}"]


_STATUS: Mapping[str, tuple[tuple[str, ...], object]] = {
    "phase": (("status", "phase"), "Completed"),
    "pruned": (("status", "pruned"), [{"kind": "configmaps", "name": "settings", "uid": _UID}]),
    "stopped": (("status", "stopped"), [{"kind": "scaledobjects.keda.sh", "name": "x", "uid": _UID}]),
    "velero_restore": (("status", "veleroRestore"), "x"),
    "safety_backup": (("status", "safetyBackup"), OWN),
    "undo_until": (("status", "undoUntil"), "2099-01-01T00:00:00Z"),
    "requester": (("status", "requester"), "vic"),
    "plan": (("status", "plan", "digest"), "0" * 64),
}
for _name, (_where, _to) in _STATUS.items():
    for _sort in ("merge", "apply", "put"):
        listed(
            __name__,
            f"rollback_forged_status_{_name}_by_{_sort}",
            f"Tries to say of a Rollback what the operator must believe: {'.'.join(_where)}.",
            partial(_forged, "hostile", "status", _sort, _where, _to),
            partial(_forged, "token", "status", "merge", _where, _to),
        )
_LABEL = ("metadata", "labels", "foresail.dev/rollback-in-progress")
for _sort in ("merge", "apply"):
    listed(
        __name__,
        f"rollback_forged_label_by_{_sort}",
        "Tries to let admission believe that a Rollback is in progress.",
        partial(_forged, "hostile", "", _sort, _LABEL, "true"),
        partial(_forged, "token", "", "merge", _LABEL, "true"),
    )
for _key, _text in (("requester", "vic"), ("requester-groups", "system:masters")):
    listed(
        __name__,
        f"rollback_forged_{_key}",
        f"Tries to change the {_key} of a Rollback without asking for anything.",
        partial(_forged, "hostile", "", "merge", ("metadata", "annotations", f"foresail.dev/{_key}"), _text),
        partial(_named_as, "victim", VICTIM, {}),
    )


def _changed(field: str, value: object, any_world: World) -> list[str]:
    """Return whether the spec of a Rollback could be changed after its plan was shown."""
    return _forged("hostile", "", "merge", ("spec", field), value, any_world)


def _chosen(field: str, value: object, any_world: World) -> list[str]:
    """Return whether a new Rollback has that field: the rightful way."""
    found = _asked(_rolled(any_world), "hostile", {**_PLAIN, "dryRun": True, field: value})
    return [f"{field} is {value}"] if _value(found, ("spec", field)) == value else []


_FIELDS: tuple[tuple[str, object], ...] = (
    ("to", "treasure"),
    ("prune", True),
    ("only", ["secrets"]),
    ("keepOldVolumes", "9000h"),
)
for _field, _given in _FIELDS:
    listed(
        __name__,
        f"rollback_changed_spec_{_field}".lower(),
        f"Tries to change {_field} after the plan was shown.",
        partial(_changed, _field, _given),
        partial(_chosen, _field, _given),
    )


# What is the victim's


def _answered(who: str, act: Callable[[Caller], int], any_world: World) -> list[str]:
    code = act(_who(_rolled(any_world), who))
    return [f"the API server answered {code}"] if code < http.client.BAD_REQUEST else []


_ITS = path(ROLLBACKS, VICTIM, MINE)
_ON_VICTIM: Mapping[str, Callable[[Caller], int]] = {
    "get": lambda who: who.send("GET", _ITS).code,
    "list": lambda who: who.send("GET", path(ROLLBACKS, VICTIM)).code,
    "undo": lambda who: who.patch(_ITS, {"metadata": {"labels": {"x": "y"}}}).code,
    "delete": lambda who: who.delete(f"{_ITS}?dryRun=All").code,
    "delete_all": lambda who: who.delete(f"{path(ROLLBACKS, VICTIM)}?dryRun=All").code,
}
for _name, _act in _ON_VICTIM.items():
    listed(
        __name__,
        f"rollback_{_name}_of_the_victim",
        f"Tries to {_name} Rollbacks of the victim.",
        partial(_answered, "hostile", _act),
        partial(_answered, "victim", _act),
    )


# Names that clash, time without end, owners, floods


def _run(world: RolledWorld, name: str, meanwhile: Callable[[Json], None], **spec: object) -> Json:
    """Run a Rollback, with something done as soon as its UID is known, and return how it ended."""
    spoil(world, HOSTILE)
    answer = world.hostile.create(
        path(ROLLBACKS, HOSTILE), body_of(ROLLBACKS, name, {**_PLAIN, "only": ["configmaps"], **spec})
    )
    meanwhile(answer.json())

    def has_ended() -> bool:
        found = world.rollback(name)
        return not found or phase_of(found) in ENDED

    until(has_ended, 180, f"Rollback {name} ends")
    return world.rollback(name)


def _clash(kind: str, infix: str, any_world: World, *, is_taken: bool) -> list[str]:
    """Return whether a Rollback takes an object for its own that somebody else has created under the name."""
    world = _rolled(any_world)
    specs = {NAB: {"backupSpec": {"snapshotVolumes": False}}, NAR: {"restoreSpec": {"backupName": OWN}}}

    def take(made: Json) -> None:
        name = f"{made['metadata']['name']}-{infix}-{made['metadata']['uid'][:8]}"
        if is_taken:
            world.hostile.create(path(kind, HOSTILE), body_of(kind, name, specs[kind]))

    name = f"clash-{next(_numbers)}"
    found = _run(world, name, take)
    world.admin.delete(path(ROLLBACKS, HOSTILE, name))
    return [f"it is {phase_of(found)}"] if phase_of(found) == "Completed" else []


for _kind, _infix in ((NAB, "before"), (NAR, "restore")):
    listed(
        __name__,
        f"rollback_takes_a_foreign_{_infix}",
        f"Tries to let a Rollback take another {_kind} for its own.",
        partial(_clash, _kind, _infix, is_taken=True),
        partial(_clash, _kind, _infix, is_taken=False),
    )


def _kept(asked: str, most: timedelta, any_world: World) -> list[str]:
    world = _rolled(any_world)
    name = f"kept-{next(_numbers)}"
    status = _run(world, name, lambda _: None, keepOldVolumes=asked).get("status", {})
    world.admin.delete(path(ROLLBACKS, HOSTILE, name))
    end = instant(status.get("undoUntil", ""))
    return [f"it can be undone until {end}"] if end is not None and end > now() + most else []


listed(
    __name__,
    "rollback_kept_without_end",
    "Tries to keep what an undo needs for a year, where the policy allows a day.",
    partial(_kept, "8760h", timedelta(hours=25)),
    partial(_kept, "2h", timedelta(hours=1)),
)


def _owned(owners: list[Json], any_world: World) -> list[str]:
    """Return what is left of a Rollback that Kubernetes deletes with its owner; without one, what it brings back."""
    world = _rolled(any_world)
    name = f"owned-{next(_numbers)}"

    def own(made: Json) -> None:
        target = path(ROLLBACKS, HOSTILE, made["metadata"]["name"])
        world.hostile.patch(target, {"metadata": {"ownerReferences": owners}})

    _run(world, name, own)
    world.admin.delete(path(ROLLBACKS, HOSTILE, name))
    until(lambda: not world.rollback(name), 120, "the Rollback is deleted")
    settings = (world.admin.get(path("configmaps", HOSTILE, "settings")) or {})["data"]["of"]
    if not owners:
        return ["settings came back"] if settings == HOSTILE else []
    labels = (world.admin.get(path("namespaces", name=HOSTILE)) or {})["metadata"]["labels"]
    left = [label for label in labels if "rollback" in label]
    return [*left, *([f"settings are {settings}"] if settings not in (HOSTILE, "spoilt") else [])]


_NOBODY: list[Json] = [{"apiVersion": "v1", "kind": "ConfigMap", "name": "nobody", "uid": _UID}]
listed(
    __name__,
    "rollback_owned_by_nobody",
    "Tries to let Kubernetes delete a Rollback midway, because its owner does not exist.",
    partial(_owned, _NOBODY),
    partial(_owned, []),
)


def _flood(number: int, most: int, any_world: World) -> list[str]:
    """Return how many Rollbacks of one namespace ran at a time, and whether the victim's waited for them."""
    world = _rolled(any_world)
    names = [f"flood-{next(_numbers)}" for _ in range(number)]
    for name in names:
        world.hostile.create(path(ROLLBACKS, HOSTILE), body_of(ROLLBACKS, name, {**_PLAIN, "only": ["configmaps"]}))
    theirs = f"theirs-{next(_numbers)}"
    world.victim.create(path(ROLLBACKS, VICTIM), body_of(ROLLBACKS, theirs, {**_PLAIN, "dryRun": True}))
    together, deadline = 0, time.monotonic() + 90
    while time.monotonic() < deadline and phase_of(world.rollback(theirs, VICTIM)) not in ENDED:
        phases = [phase_of(each) for each in world.admin.items(path(ROLLBACKS, HOSTILE))]
        together = max(together, sum(phase not in ("", "New", *ENDED) for phase in phases))
        time.sleep(0.2)
    is_late = phase_of(world.rollback(theirs, VICTIM)) != "Planned"
    world.admin.delete(path(ROLLBACKS, VICTIM, theirs))
    for name in names:
        world.admin.delete(path(ROLLBACKS, HOSTILE, name))
    until(lambda: not any(world.rollback(name) for name in names), 240, "the flood is over")
    late = ["the victim's plan took more than 90 s"] if is_late else []
    return [*late, *([f"{together} ran at a time"] if together > most else [])]


listed(
    __name__,
    "rollback_flood",
    f"Tries to ask for {_FLOOD} Rollbacks at once.",
    partial(_flood, _FLOOD, 1),
    partial(_flood, 1, 0),
)
