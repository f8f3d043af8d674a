"""Attacks on rollbacks of volumes: by the operator's stolen token, by a team, and by a colleague with few rights."""

import http.client
import itertools
import time
from collections.abc import Callable, Mapping
from functools import partial

from foresail.api.marks import KEPT_VOLUME, ROLLBACK_FINALIZER, ROLLBACK_IN_PROGRESS, ROLLBACK_UID
from tests.cluster.rollbacks import ENDED
from tests.redteam.attack import listed
from tests.redteam.node_world import claim, claim_spec, thing
from tests.redteam.rollback_volumes_world import (
    BAD,
    DATA,
    FILE,
    GOOD,
    HELD,
    KEPT,
    MARK,
    SAVED,
    SPARE,
    VolumesWorld,
    complete,
    record,
    release,
)
from tests.redteam.rollback_world import OWN, ROLLBACKS, phase_of
from tests.redteam.world import CLOSED, HOSTILE, VICTIM, Caller, Json, World, body_of, changes, path, until

_numbers = itertools.count(1)
_OTHER = "33333333-3333-4333-8333-333333333333"
_DRY = "?dryRun=All"
_VOLUMES: Json = {"to": OWN, "volumes": "All", "only": ["configmaps"]}
_LONG = 600


def _of(world: World) -> VolumesWorld:
    assert isinstance(world, VolumesWorld)
    return world


def _answered(code: int) -> list[str]:
    return [f"the API server answered {code}"] if code < http.client.BAD_REQUEST else []


# The token: on volumes of the victim, where no Rollback is in progress

_TRUE = {"metadata": record("Delete"), "spec": {"persistentVolumeReclaimPolicy": "Retain"}}
_GIVE: Json = {"spec": {"claimRef": {"uid": _OTHER, "resourceVersion": None}}}
_NO_MARK: Json = {"labels": {ROLLBACK_UID: None}, "annotations": {KEPT_VOLUME: None}}
_RELEASE: Json = {"metadata": _NO_MARK, "spec": {"persistentVolumeReclaimPolicy": "Delete"}}
_LATER: Json = {
    "metadata": {"annotations": {KEPT_VOLUME: record("Retain")["annotations"][KEPT_VOLUME].replace("2099", "2098")}}
}


def _on_volume(name: str, body: Json, any_world: World) -> list[str]:
    """Return whether the token may change a volume like that; an empty name is the victim's volume in use."""
    world = _of(any_world)
    target = path("persistentvolumes", name=name or world.volume(DATA, VICTIM)["metadata"]["name"])
    return _answered(world.token.patch(target + _DRY, body).code)


_CHANGES: Mapping[str, tuple[str, str, Json, str, Json]] = {
    "with_another_record": (
        "record another reclaim policy than a volume has",
        "",
        {**_TRUE, "metadata": record("Retain")},
        "",
        _TRUE,
    ),
    "without_a_record": (
        "mark a volume without a record",
        "",
        {"metadata": {"labels": {ROLLBACK_UID: MARK}}, "spec": _TRUE["spec"]},
        "",
        _TRUE,
    ),
    "without_retain": ("mark a volume that is deleted with its claim", "", {"metadata": record("Delete")}, "", _TRUE),
    "and_give_it_away": (
        "mark a volume in use and take it from its claim",
        "",
        {**_TRUE, "spec": {**_TRUE["spec"], **_GIVE["spec"]}},
        "",
        _TRUE,
    ),
    "with_another_label": (
        "set another label",
        "",
        {**_TRUE, "metadata": {**record("Delete"), "labels": {ROLLBACK_UID: MARK, "x": "y"}}},
        "",
        _TRUE,
    ),
    "with_another_capacity": (
        "change the capacity of a volume",
        "",
        {**_TRUE, "spec": {**_TRUE["spec"], "capacity": {"storage": "9Mi"}}},
        "",
        _TRUE,
    ),
    "with_a_finalizer": (
        "keep a volume from being deleted",
        "",
        {**_TRUE, "metadata": {**record("Delete"), "finalizers": ["example.com/never"]}},
        "",
        _TRUE,
    ),
    "that_is_in_use": ("take a marked volume in use from its claim", HELD, _GIVE, KEPT, _GIVE),
    "to_any_claim": (
        "let any claim of that name have a volume",
        KEPT,
        {"spec": {"claimRef": {"uid": None}}},
        KEPT,
        _GIVE,
    ),
    "to_everybody": ("let any claim have a volume", KEPT, {"spec": {"claimRef": None}}, KEPT, _GIVE),
    "to_another_name": (
        "give a volume to another claim",
        KEPT,
        {"spec": {"claimRef": {"uid": _OTHER, "name": DATA}}},
        KEPT,
        _GIVE,
    ),
    "to_another_namespace": (
        "give a volume to another namespace",
        KEPT,
        {"spec": {"claimRef": {"uid": _OTHER, "namespace": HOSTILE}}},
        KEPT,
        _GIVE,
    ),
    "for_another_rollback": (
        "take over the volume of another Rollback",
        KEPT,
        {"metadata": {"labels": {ROLLBACK_UID: _OTHER}}},
        KEPT,
        _GIVE,
    ),
    "with_another_policy": (
        "release a volume that is retained so that it is deleted",
        SAVED,
        _RELEASE,
        SAVED,
        {**_RELEASE, "spec": {"persistentVolumeReclaimPolicy": "Retain"}},
    ),
    "with_the_mark": (
        "let a volume be deleted while it is kept",
        KEPT,
        {"spec": {"persistentVolumeReclaimPolicy": "Delete"}},
        KEPT,
        _RELEASE,
    ),
    "with_a_new_record": ("change what was recorded", SAVED, {"metadata": record("Delete")}, SAVED, _LATER),
}
for _name, (_tries, _which, _body, _rightful, _right) in _CHANGES.items():
    listed(
        __name__,
        f"token_changes_a_volume_{_name}",
        f"Tries to {_tries}, with the token of the operator.",
        partial(_on_volume, _which, _body),
        partial(_on_volume, _rightful, _right),
    )


def _sent(who: str, act: Callable[[Caller], int], any_world: World) -> list[str]:
    caller: Caller = getattr(_of(any_world), who)
    return _answered(act(caller))


_CLAIM_BODY = claim("new", claim_spec("none", volumeName=KEPT), annotations={ROLLBACK_UID: MARK})
_WHERE_NOTHING_RUNS: Mapping[str, Callable[[Caller], int]] = {
    "delete_a_claim": lambda who: who.send("DELETE", path("persistentvolumeclaims", VICTIM, DATA) + _DRY).code,
    "create_a_claim": lambda who: who.create(path("persistentvolumeclaims", VICTIM) + _DRY, _CLAIM_BODY).code,
    "stop_a_deployment": lambda who: (
        who.patch(path("deployments", VICTIM, "db") + _DRY, {"spec": {"replicas": 0}}).code
    ),
    "delete_a_volume": lambda who: who.send("DELETE", path("persistentvolumes", name=KEPT) + _DRY).code,
    "create_a_volume": lambda who: (
        who.create(
            path("persistentvolumes") + _DRY,
            thing(
                "v1",
                "PersistentVolume",
                "new",
                {"capacity": {"storage": "8Mi"}, "accessModes": ["ReadWriteOnce"], "hostPath": {"path": "/"}},
            ),
        ).code
    ),
}
_AS_VICTIM_MAY = {"delete_a_claim", "create_a_claim", "stop_a_deployment"}
for _name, _act in _WHERE_NOTHING_RUNS.items():
    listed(
        __name__,
        f"token_may_{_name}",
        f"Tries to {_name.replace('_', ' ')} of the victim, with the token of the operator and no Rollback.",
        partial(_sent, "token", _act),
        partial(_sent, "victim" if _name in _AS_VICTIM_MAY else "admin", _act),
    )


# The team: what must not begin


def _asked(world: VolumesWorld, spec: Json, who: str = "hostile") -> Json:
    """Create a Rollback, wait for its end, delete it, and return how it was."""
    name = f"vol-{next(_numbers)}"
    caller: Caller = getattr(world, who)
    answer = caller.create(path(ROLLBACKS, HOSTILE), body_of(ROLLBACKS, name, spec))
    if answer.code != http.client.CREATED:
        return {}
    until(lambda: phase_of(world.rollback(name)) in ENDED, _LONG, f"Rollback {name} ends")
    found = world.rollback(name)
    world.admin.delete(path(ROLLBACKS, HOSTILE, name))
    until(lambda: not world.rollback(name), 60, f"Rollback {name} is deleted")
    return found


def _begun(arrange: Callable[[VolumesWorld], Callable[[], object]], spec: Json, any_world: World) -> list[str]:
    """Return what a Rollback that must be refused has come to, and what it has changed."""
    world = _of(any_world)
    tidy = arrange(world)
    before = {**world.contents(HOSTILE), "file": world.file().read_text(), "replicas": str(world.replicas())}
    try:
        found = _asked(world, spec)
        after = {**world.contents(HOSTILE), "file": world.file().read_text(), "replicas": str(world.replicas())}
    finally:
        tidy()
    served = [f"it is {phase_of(found)}"] if phase_of(found) not in ("", "Refused") else []
    return [*served, *changes(before, after)]


def _nothing(_world: VolumesWorld) -> Callable[[], object]:
    return lambda: None


def _without_kept(world: VolumesWorld) -> Callable[[], object]:
    release(world)
    return lambda: None


def _of_the_victim(world: VolumesWorld) -> Callable[[], object]:
    """Let a claim of the backup name the victim's volume."""
    release(world)
    stolen = world.volume(SPARE, VICTIM)["metadata"]["name"]
    _replace_spare(world, claim(SPARE, claim_spec(volumeName=stolen)))
    return lambda: _replace_spare(world, claim(SPARE))


def _replace_spare(world: VolumesWorld, body: Json) -> None:
    target = path("persistentvolumeclaims", HOSTILE)
    world.hostile.delete(f"{target}/{SPARE}")
    until(lambda: world.admin.get(f"{target}/{SPARE}") is None, 60, "the claim is deleted")
    assert world.hostile.create(target, body).code == http.client.CREATED
    if "volumeName" not in body["spec"]:
        until(lambda: world.volume(SPARE), 60, "the claim is bound")


def _patched_spare(world: VolumesWorld, metadata: Json, undone: Json) -> Callable[[], object]:
    release(world)
    target = path("persistentvolumeclaims", HOSTILE, SPARE)
    assert world.hostile.patch(target, {"metadata": metadata}).code == http.client.OK
    return lambda: world.hostile.patch(target, {"metadata": undone})


def _owned_by(kind: str, name: str, world: VolumesWorld) -> Callable[[], object]:
    """Let the spare claim be deleted with another object."""
    plural = f"{kind.lower()}s"
    world.hostile.create(path(plural, HOSTILE), {**thing("v1", kind, name), "data": {"x": "y"}})
    uid = (world.admin.get(path(plural, HOSTILE, name)) or {})["metadata"]["uid"]
    owners = [{"apiVersion": "v1", "kind": kind, "name": name, "uid": uid}]
    tidy = _patched_spare(world, {"ownerReferences": owners}, {"ownerReferences": None})

    def undo() -> None:
        tidy()
        world.hostile.delete(path(plural, HOSTILE, name))

    return undo


def _with_finalizer(world: VolumesWorld) -> Callable[[], object]:
    return _patched_spare(world, {"finalizers": ["x/never", "kubernetes.io/pvc-protection"]}, _PROTECTED)


_PROTECTED: Json = {"finalizers": ["kubernetes.io/pvc-protection"]}


def _large(world: VolumesWorld) -> Callable[[], object]:
    return _patched_spare(world, {"annotations": {"x": "x" * 100_000}}, {"annotations": {"x": None}})


def _bare_pod(world: VolumesWorld) -> Callable[[], object]:
    release(world)
    volumes = [{"name": SPARE, "persistentVolumeClaim": {"claimName": SPARE}}]
    spec = {"containers": [{"name": "x", "image": "missing:1"}], "volumes": volumes}
    world.hostile.create(path("pods", HOSTILE), thing("v1", "Pod", "bare", spec))

    def undo() -> None:
        world.hostile.delete(path("pods", HOSTILE, "bare"), gracePeriodSeconds="0")
        until(lambda: world.admin.get(path("pods", HOSTILE, "bare")) is None, 60, "the pod is gone")

    return undo


def _kept_already(world: VolumesWorld) -> Callable[[], object]:
    complete(world)
    return lambda: None


_ONLY_PRUNE: Json = {"to": OWN, "prune": True}
_MUST_NOT_BEGIN: Mapping[str, tuple[str, Callable[[VolumesWorld], Callable[[], object]], Json]] = {
    "of_the_victim": ("roll back a claim that names the volume of the victim", _of_the_victim, _VOLUMES),
    "of_an_owner": (
        "replace a claim that another object owns",
        partial(_owned_by, "ConfigMap", "owner"),
        _VOLUMES,
    ),
    "deleted_with_an_owner": (
        "let prune delete a claim with its owner, and its data with it",
        partial(_owned_by, "ConfigMap", "owner"),
        _ONLY_PRUNE,
    ),
    "with_a_finalizer": ("replace a claim that does not go", _with_finalizer, _VOLUMES),
    "too_large_to_record": ("replace a claim that no annotation can hold", _large, _VOLUMES),
    "of_a_bare_pod": ("replace a claim that a pod of nobody uses", _bare_pod, _VOLUMES),
    "with_the_plan_without": (
        "run with volumes what was shown without",
        _without_kept,
        {**_VOLUMES, "planDigest": "0" * 64},
    ),
    "kept_already": ("keep more old volumes than of one Rollback", _kept_already, _VOLUMES),
}
_PLANNED = partial(_begun, _without_kept, {**_VOLUMES, "dryRun": True})
for _name, (_tries, _arrange, _spec) in _MUST_NOT_BEGIN.items():
    listed(
        __name__,
        f"rollback_of_volumes_{_name}",
        f"Tries to {_tries}.",
        partial(_begun, _arrange, _spec),
        _PLANNED,
    )


def _may_not(spec: Json, who: str, any_world: World) -> list[str]:
    world = _of(any_world)
    release(world)
    found = _asked(world, spec, who)
    return [f"it is {phase_of(found)}"] if phase_of(found) not in ("", "Refused") else []


listed(
    __name__,
    "rollback_of_volumes_without_rights",
    "Tries to replace claims that the requester may neither delete nor create.",
    partial(_may_not, _VOLUMES, "eve"),
    partial(_may_not, {**_VOLUMES, "dryRun": True}, "hostile"),
)


# The old volumes of a Rollback that is complete


def _old_volume(world: VolumesWorld) -> str:
    return str(complete(world)["status"]["volumes"][0]["volume"])


def _on_old_volume(who: str, body: Json, any_world: World) -> list[str]:
    world = _of(any_world)
    caller: Caller = getattr(world, who)
    return _answered(caller.patch(path("persistentvolumes", name=_old_volume(world)) + _DRY, body).code)


for _name, _body in (
    ("release", _RELEASE),
    ("keep_for_ever", {"metadata": _NO_MARK}),
    ("give", {"spec": {"claimRef": None}}),
):
    listed(
        __name__,
        f"old_volume_{_name}",
        f"Tries to {_name.replace('_', ' ')} the old volume of a Rollback, as the team.",
        partial(_on_old_volume, "hostile", _body),
        partial(_on_old_volume, "admin", _body),
    )


def _taken(space: str, name: str, any_world: World) -> list[str]:
    """Return whether a claim gets an old volume that it names; a free volume is for whoever names it."""
    world = _of(any_world)
    volume = _old_volume(world) if name != "free" else "free"
    spec = {"capacity": {"storage": "8Mi"}, "accessModes": ["ReadWriteOnce"], "storageClassName": "none"}
    if name == "free":
        body = thing("v1", "PersistentVolume", "free", {**spec, "hostPath": {"path": "/nowhere/free"}})
        world.admin.create(path("persistentvolumes"), body)
    found = world.admin.get(path("persistentvolumes", name=volume)) or {}
    target = path("persistentvolumeclaims", space)
    who = world.admin if space == CLOSED else world.hostile
    who.create(target, claim(name, claim_spec(found["spec"]["storageClassName"], volumeName=volume)))
    deadline, is_bound = time.monotonic() + 20, False
    while time.monotonic() < deadline and not is_bound:
        is_bound = (world.admin.get(f"{target}/{name}") or {}).get("status", {}).get("phase") == "Bound"
        time.sleep(1)
    world.admin.delete(f"{target}/{name}")
    return ["the claim is bound to it"] if is_bound else []


listed(
    __name__,
    "old_volume_by_another_claim",
    "Tries to bind the old volume of a Rollback to another claim.",
    partial(_taken, HOSTILE, "thief"),
    partial(_taken, HOSTILE, "free"),
)


def _undo(world: VolumesWorld, who: str, *, undo: bool = True) -> int:
    caller: Caller = getattr(world, who)
    return caller.patch(path(ROLLBACKS, HOSTILE, "done"), {"spec": {"undo": undo}}).code


def _undone_by(who: str, any_world: World) -> list[str]:
    """Return whether somebody could have a complete Rollback undone; what was asked for in vain is taken back."""
    world = _of(any_world)
    complete(world)
    before = (world.file().read_text(), world.volume(DATA)["metadata"]["name"])
    assert _undo(world, who) == http.client.OK
    deadline = time.monotonic() + (30 if who == "eve" else _LONG)
    while time.monotonic() < deadline and phase_of(world.rollback("done")) == "Completed":
        time.sleep(1)
    if who != "eve":
        until(lambda: phase_of(world.rollback("done")) == "Undone", _LONG, "the undo ends")
        world.ready()
    else:
        _undo(world, "hostile", undo=False)
    after = (world.file().read_text(), world.volume(DATA)["metadata"]["name"])
    return [f"{before} is {after} by now"] if after != before else []


listed(
    __name__,
    "undo_of_volumes_without_rights",
    "Tries to have volumes of a complete Rollback exchanged, without the rights to touch a claim.",
    partial(_undone_by, "eve"),
    partial(_undone_by, "hostile"),
)


# While one runs

_seen: dict[str, list[str]] = {}
_NAME, _REQUESTER = "attacked", "foresail.dev/requester"


def _during(world: VolumesWorld) -> dict[str, list[str]]:
    """Run a Rollback once; attack it while its claims are gone, let eve call it off, and return what was achieved."""
    if _seen:
        return _seen
    release(world)
    world.ready()
    world.file().write_text(BAD)
    target, spec = path(ROLLBACKS, HOSTILE, _NAME), {**_VOLUMES}
    world.hostile.create(path(ROLLBACKS, HOSTILE), body_of(ROLLBACKS, _NAME, spec))
    until(lambda: phase_of(world.rollback(_NAME)) in ("Replacing", *ENDED), _LONG, "its claims are replaced")
    found = world.rollback(_NAME)
    assert phase_of(found) == "Replacing", found
    left = [each for each in found["metadata"]["finalizers"] if each != ROLLBACK_FINALIZER]
    for name, body in (
        ("finalizer", {"metadata": {"finalizers": left or None}}),
        ("label", {"metadata": {"labels": {ROLLBACK_IN_PROGRESS: None}}}),
        ("spec", {"spec": {"to": "other"}}),
    ):
        _seen[name] = _answered(world.hostile.patch(target + _DRY, body).code)
    answer = world.hostile.patch(target + _DRY, {"metadata": {"annotations": {_REQUESTER: "vic"}}})
    is_vics = answer.code == http.client.OK and answer.json()["metadata"]["annotations"][_REQUESTER] == "vic"
    _seen["requester"] = ["the requester is vic"] if is_vics else []  # the API server may set it back
    _seen["namespace"] = _answered(
        world.hostile.patch(
            path("namespaces", name=HOSTILE) + _DRY, {"metadata": {"labels": {ROLLBACK_IN_PROGRESS: None}}}
        ).code
    )
    for name, act in (
        ("token_claim", partial(_token_creates, world)),
        ("token_deployment", partial(_changes_pods, world.token)),
        ("token_config", partial(_deletes_settings, world.token)),
    ):
        _seen[name] = _answered(act())
    assert world.eve.patch(target, {"spec": {"undo": True}}).code == http.client.OK
    asked = world.rollback(_NAME)["metadata"]["annotations"][_REQUESTER]
    _seen["requester_of_the_undo"] = [f"the requester is {asked}"] if asked != "mallory" else []
    _seen["taken_back"] = _answered(world.hostile.patch(target, {"spec": {"undo": False}}).code)
    until(lambda: phase_of(world.rollback(_NAME)) in ENDED, _LONG, "the undo ends")
    ended = phase_of(world.rollback(_NAME))
    world.ready()
    worse = [] if ended == "Undone" else [f"it is {ended}"]
    worse += [] if world.file().read_text() == BAD else ["the old data is not back"]
    worse += [] if world.replicas() == 1 else ["the database has not its size"]
    _seen["worse"] = worse
    return _seen


_IMAGE: Json = {"spec": {"template": {"metadata": {"labels": {"x": "y"}}}}}


def _changes_pods(who: Caller) -> int:
    return who.patch(path("deployments", HOSTILE, "db") + _DRY, _IMAGE).code


def _deletes_settings(who: Caller) -> int:
    return who.send("DELETE", path("configmaps", HOSTILE, "settings") + _DRY).code


def _token_creates(world: VolumesWorld) -> int:
    body = claim(
        "new", claim_spec(volumeName="any"), annotations={ROLLBACK_UID: world.rollback(_NAME)["metadata"]["uid"]}
    )
    return world.token.create(path("persistentvolumeclaims", HOSTILE) + _DRY, body).code


def _in_run(name: str, any_world: World) -> list[str]:
    return _during(_of(any_world))[name]


def _noticed(name: str, any_world: World) -> list[str]:
    """Return what an administrator, or the rightful requester, achieves with the same."""
    world = _of(any_world)
    _during(world)
    acts: Mapping[str, Callable[[], list[str]]] = {
        "worse": lambda: [] if complete(world)["status"]["phase"] != "Completed" or _is_bad(world) else [GOOD],
        "requester_of_the_undo": lambda: _requester_of(world, "eve"),
        "token_config": lambda: _answered(_deletes_settings(world.hostile)),
        "token_deployment": lambda: _answered(_changes_pods(world.hostile)),
        "token_claim": lambda: _answered(
            world.hostile.create(path("persistentvolumeclaims", HOSTILE) + _DRY, claim("new")).code
        ),
        "namespace": lambda: _answered(
            world.admin.patch(path("namespaces", name=HOSTILE) + _DRY, {"metadata": {"labels": {"x": "y"}}}).code
        ),
    }
    return acts[name]() if name in acts else _labelled(world)


def _labelled(world: VolumesWorld) -> list[str]:
    """Return whether the team may change anything of a Rollback: a label of its own."""
    name = f"vol-{next(_numbers)}"
    world.hostile.create(path(ROLLBACKS, HOSTILE), body_of(ROLLBACKS, name, {**_VOLUMES, "dryRun": True}))
    answer = world.hostile.patch(path(ROLLBACKS, HOSTILE, name), {"metadata": {"labels": {"x": "y"}}})
    world.admin.delete(path(ROLLBACKS, HOSTILE, name))
    return _answered(answer.code)


def _is_bad(world: VolumesWorld) -> bool:
    return (world.file().parent / FILE).read_text() == BAD


def _requester_of(world: VolumesWorld, who: str) -> list[str]:
    """Return in whose name a Rollback is that somebody asks for."""
    name = f"vol-{next(_numbers)}"
    caller: Caller = getattr(world, who)
    caller.create(path(ROLLBACKS, HOSTILE), body_of(ROLLBACKS, name, {**_VOLUMES, "dryRun": True}))
    asked = world.rollback(name)["metadata"]["annotations"][_REQUESTER]
    world.admin.delete(path(ROLLBACKS, HOSTILE, name))
    return [f"the requester is {asked}"] if asked == who else []


for _name, _tries in (
    ("finalizer", "remove the finalizer of a Rollback that runs, so that nobody gives the claims back"),
    ("label", "hide a Rollback that runs from admission"),
    ("spec", "change the backup of a Rollback that runs"),
    ("requester", "change the requester of a Rollback that runs"),
    ("namespace", "close the namespace for the operator while its claims are gone"),
    ("token_claim", "create a claim that no Rollback has replaced, with the operator's token"),
    ("token_deployment", "change the pods of what a Rollback stops, with the operator's token"),
    ("token_config", "delete what is not listed, with the operator's token"),
    ("requester_of_the_undo", "become the requester of a Rollback that runs, by calling it off"),
    ("taken_back", "take back an undo that has begun"),
    ("worse", "leave a team without data or workloads, by calling its Rollback off without any rights"),
):
    listed(
        __name__,
        f"while_volumes_are_replaced_{_name}",
        f"Tries to {_tries}.",
        partial(_in_run, _name),
        partial(_noticed, _name),
    )
