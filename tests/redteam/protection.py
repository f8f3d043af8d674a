"""Attacks on protection by label: labels and annotations, forged Protections and classes, floods.

Who labels a namespace without `use` on its class lowers nothing; nobody but the operator says what protects it.
"""

import http.client
import itertools
import os
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import cast

from tests.redteam.attack import controlled_by, listed
from tests.redteam.class_world import BRONZE, EXEMPT, FLAPPING, GOLD, SILVER, SOLO, ClassWorld, classify
from tests.redteam.protection_labels import EXCLUDE, LABEL, REASON, UNTIL
from tests.redteam.world import HOSTILE, VELERO, VICTIM, Caller, Json, World, body_of, path, until

_FLOOD = 300
_PROTECTION = "protection"


def _space(name: str) -> str:
    return path("namespaces", name=name)


def _metadata(labels: Json | None = None, annotations: Json | None = None) -> Json:
    return {"metadata": {"labels": labels or {}, "annotations": annotations or {}}}


# Exemptions


def _exemption(world: World) -> Json:
    found: Json = (world.admin.get(_space(EXEMPT)) or {})["metadata"]["annotations"]
    return {key: found.get(key) for key in (REASON, UNTIL)}


def _prolonged(who: str, annotations: Json, world: World) -> list[str]:
    before = _exemption(world)
    getattr(world, who).patch(_space(EXEMPT), _metadata(None, annotations))
    after = _exemption(world)
    world.admin.patch(_space(EXEMPT), _metadata(None, before))
    return [f"{key} was {before[key]} and is {after[key]}" for key in before if before[key] != after[key]]


@controlled_by(partial(_prolonged, "admin", {UNTIL: "2099-01-01"}))
def protection_prolong_an_exemption(world: World) -> list[str]:
    """Set a later date for an exemption that an administrator has granted."""
    return _prolonged("hostile", {UNTIL: "2099-01-01"}, world)


@controlled_by(partial(_prolonged, "admin", {REASON: "mine"}))
def protection_change_the_reason_of_an_exemption(world: World) -> list[str]:
    """Replace the reason that an administrator has accepted."""
    return _prolonged("hostile", {REASON: "mine"}, world)


# Forged Protections and classes


@contextmanager
def _without_admission(world: World) -> Iterator[None]:
    """Let everybody write Protections for a moment, to see that a forged one is noticed."""
    target = path("validatingadmissionpolicybindings", name="foresail-protections")
    binding = world.admin.get(target) or {}
    world.admin.delete(target)
    time.sleep(2)  # until the API server no longer enforces it
    try:
        yield
    finally:
        kept = {key: binding["metadata"][key] for key in ("name", "labels") if key in binding["metadata"]}
        world.admin.create(path("validatingadmissionpolicybindings"), {**binding, "metadata": kept})
        time.sleep(2)


_FORGED: dict[str, tuple[str, Json]] = {
    "point": (
        "add a backup of the victim to its points",
        {"status": {"points": [{"backup": "solo-1-x", "started": "2026-01-01T00:00:00Z", "good": True}]}},
    ),
    "verdict": (
        "say that the namespace is not protected",
        {
            "status": {
                "conditions": [
                    {
                        "type": "Protected",
                        "status": "False",
                        "reason": "Forged",
                        "message": "x",
                        "lastTransitionTime": "2026-01-01T00:00:00Z",
                    }
                ]
            }
        },
    ),
    "class": ("name another class", {"status": {"class": BRONZE}}),
    "label": ("let backups take it, to restore an old one later", {"metadata": {"labels": {EXCLUDE: "false"}}}),
    "uid": ("say of which namespace it is", {"metadata": {"annotations": {"foresail.dev/namespace-uid": "x"}}}),
    "finalizer": ("let nobody delete it", {"metadata": {"finalizers": ["example.com/hold"]}}),
    "owner": (
        "let Kubernetes delete it again and again",
        {"metadata": {"ownerReferences": [{"apiVersion": "v1", "kind": "ConfigMap", "name": "x", "uid": "x"}]}},
    ),
}


def _by_patch(sort: str, who: Caller, found: Json, change: Json) -> object:
    kind = {"apiVersion": found["apiVersion"], "kind": found["kind"]} if sort == "apply" else {}
    query = "?fieldManager=mine&force=true" if sort == "apply" else ""
    return who.patch(path("protections", HOSTILE, _PROTECTION) + query, {**kind, **change}, sort)


def _by_operations(who: Caller, _: Json, change: Json) -> object:
    steps = [
        {"op": "add", "path": f"/{part}/{key}", "value": value}
        for part, texts in change.items()
        for key, value in texts.items()
    ]
    return who.patch(path("protections", HOSTILE, _PROTECTION), steps, "json")


def _replaced(found: Json, change: Json) -> Json:
    return {**found, **{part: {**found.get(part, {}), **texts} for part, texts in change.items()}}


def _by_replacement(who: Caller, found: Json, change: Json) -> object:
    return who.send("PUT", path("protections", HOSTILE, _PROTECTION), _replaced(found, change))


def _by_another(who: Caller, found: Json, change: Json) -> object:
    wanted = _replaced({key: found[key] for key in ("apiVersion", "kind", "status")}, change)
    wanted["metadata"] = {**change.get("metadata", {}), "name": "second"}
    return who.create(path("protections", HOSTILE), wanted)


_WAYS: dict[str, Callable[[Caller, Json, Json], object]] = {
    "a_merge_patch": partial(_by_patch, "merge"),
    "apply": partial(_by_patch, "apply"),
    "a_json_patch": _by_operations,
    "a_replacement": _by_replacement,
    "a_second_one": _by_another,
}


def _forge(way: str, what: str, who: Caller, world: World) -> list[str]:
    before = _protections(world)
    found = world.admin.get(path("protections", HOSTILE, _PROTECTION)) or {}
    _WAYS[way](who, found, _FORGED[what][1])
    after = _protections(world)  # one with an owner that does not exist may be gone already
    return [f"{name} differs" for name in sorted({*before, *after}) if before.get(name) != after.get(name)]


def _forge_as_tenant(way: str, what: str, world: World) -> list[str]:
    return _forge(way, what, world.hostile, world)


def _protections(world: World) -> dict[str, str]:
    """Return the Protections of the hostile tenant's namespace as texts, without what the API server counts."""
    found = world.admin.items(path("protections", HOSTILE))
    counted = ("resourceVersion", "generation", "managedFields")
    return {
        each["metadata"]["name"]: str(
            {**each, "metadata": {key: text for key, text in each["metadata"].items() if key not in counted}}
        )
        for each in found
    }


def _clean(world: World) -> None:
    for name in (_PROTECTION, "second"):
        target = path("protections", HOSTILE, name)
        world.admin.patch(target, {"metadata": {"finalizers": None}})
        world.admin.delete(target)


_noticed: dict[int, dict[tuple[str, str], list[str]]] = {}


def _all_forged(world: World) -> dict[tuple[str, str], list[str]]:
    """Forge everything while nobody is refused and no operator puts it right, and return what was noticed."""
    found = {}
    with _without_admission(world):
        for pair in itertools.product(_WAYS, _FORGED):
            with _standing_still(world):
                found[pair] = _forge(*pair, world.hostile, world)
                _clean(world)
            until(lambda: cast("ClassWorld", world).protection(HOSTILE).get("class") == GOLD, 30, "it is written again")
    return found


def _forge_without_admission(way: str, what: str, world: World) -> list[str]:
    if id(world) not in _noticed:
        _noticed[id(world)] = _all_forged(world)
    return _noticed[id(world)][way, what]


for _way, (_what, (_tries, _)) in itertools.product(_WAYS, _FORGED.items()):
    listed(
        __name__,
        f"protection_forge_a_{_what}_by_{_way}",
        f"Write the Protection by {_way.replace('_', ' ')}: {_tries}.",
        partial(_forge_as_tenant, _way, _what),
        partial(_forge_without_admission, _way, _what),
    )


def _kept_away(world: World) -> list[str]:
    """Delete a Protection while the operator that writes it stands still."""
    with _standing_still(world):
        world.admin.delete(path("protections", HOSTILE, _PROTECTION))
        time.sleep(3)
        found = [] if cast("ClassWorld", world).protection(HOSTILE) else ["it stays away"]
    until(lambda: cast("ClassWorld", world).protection(HOSTILE), 60, "the operator writes it again")
    return found


@contextmanager
def _standing_still(world: World) -> Iterator[None]:
    os.kill(world.checks, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(world.checks, signal.SIGCONT)


@controlled_by(_kept_away)
def protection_delete_the_protection(world: World) -> list[str]:
    """Delete one's Protection, so that nobody sees what protects the namespace."""
    before = cast("ClassWorld", world).protection(HOSTILE)
    world.hostile.delete(path("protections", HOSTILE, _PROTECTION))

    def is_back() -> bool:
        return cast("ClassWorld", world).protection(HOSTILE).get("points") == before.get("points")

    until(is_back, 30, "the operator writes it again")
    return []


@controlled_by(_kept_away)
def protection_delete_the_collection(world: World) -> list[str]:
    """Delete all Protections of the namespace at once, and write one of one's own into the gap."""
    for _ in range(20):
        world.hostile.delete(path("protections", HOSTILE))
        kind = {"apiVersion": "foresail.dev/v1alpha1", "kind": "Protection", "metadata": {"name": _PROTECTION}}
        world.hostile.create(path("protections", HOSTILE), {**kind, "status": {"class": BRONZE}})
    until(lambda: cast("ClassWorld", world).protection(HOSTILE).get("class"), 30, "a Protection is there")
    found = cast("ClassWorld", world).protection(HOSTILE)["class"]
    return [f"it names {found}"] if found != GOLD else []


_READ = {
    "the_protection_of_the_victim": path("protections", VICTIM, _PROTECTION),
    "the_protections_of_the_victim": path("protections", VICTIM),
    "the_protections_of_all": path("protections"),
    "the_versions_of_all": f"{path('protections')}?watch=true&timeoutSeconds=1",
    "the_table_of_all": f"{path('protections')}?limit=500",
    "a_class_of_others": path("protectionclasses", name=SOLO),
    "the_classes": path("protectionclasses"),
    "the_backups_of_classes": path("backups", VELERO),
    "the_schedules_of_classes": path("schedules", VELERO),
}


def _read(target: str, who: str, world: World) -> list[str]:
    answer = getattr(world, who).send("GET", target)
    return [f"it is read: {answer.code}"] if answer.code < http.client.BAD_REQUEST else []


for _name, _target in _READ.items():
    listed(
        __name__,
        f"protection_read_{_name}",
        f"Read {_name.replace('_', ' ')}, which names namespaces of others.",
        partial(_read, _target, "hostile"),
        partial(_read, _target, "admin"),
    )


def _class_changed(who: str, world: World) -> list[str]:
    """Open a class that lets no team restore."""
    target = path("protectionclasses", name="shut")
    getattr(world, who).patch(target, {"spec": {"restore": {"byTenants": True}}})
    found = (world.admin.get(target) or {}).get("spec", {}).get("restore", {}).get("byTenants")
    classify(world.cluster, "shut", by_tenants=False)
    return ["the class is open"] if found else []


@controlled_by(partial(_class_changed, "admin"))
def protection_open_a_class(world: World) -> list[str]:
    """Set restore.byTenants of a class, as somebody who may use classes."""
    return _class_changed("hostile", world)


def _class_gone(who: str, name: str, world: World) -> list[str]:
    getattr(world, who).delete(path("protectionclasses", name=name))
    found = world.admin.get(path("protectionclasses", name=name))
    return [] if found is not None else [f"{name} is gone"]


def _spare_class_gone(world: World) -> list[str]:
    classify(world.cluster, "spare")
    return _class_gone("admin", "spare", world)


@controlled_by(_spare_class_gone)
def protection_delete_a_class(world: World) -> list[str]:
    """Delete a class, as somebody who may use it and as somebody who may not."""
    return [*_class_gone("hostile", SILVER, world), *_class_gone("hostile", GOLD, world)]


@controlled_by(_spare_class_gone)
def protection_delete_a_class_in_use_as_administrator(world: World) -> list[str]:
    """Let an administrator delete a class by mistake while namespaces are in it."""
    return _class_gone("admin", GOLD, world)


def _schedule_changed(who: str, world: World) -> list[str]:
    target = path("schedules", "velero", "gold-1")
    getattr(world, who).patch(target, {"spec": {"template": {"includedNamespaces": [HOSTILE]}}})
    found = (world.admin.get(target) or {})["spec"]["template"]["includedNamespaces"]
    until(lambda: VICTIM in cast("ClassWorld", world).groups["gold-1"], 30, "the operator puts the group right")
    return [] if VICTIM in found else ["the victim is in no Schedule"]


@controlled_by(partial(_schedule_changed, "admin"))
def protection_take_the_victim_out_of_the_group(world: World) -> list[str]:
    """Write the Schedule of the group without the victim."""
    return _schedule_changed("hostile", world)


# Floods


def _told_late(world: World, seconds: float) -> list[str]:
    """Return whether a change of the victim's protection is reported too late."""
    began = time.monotonic()
    target = path("protections", VICTIM, _PROTECTION)
    world.admin.delete(target)
    while world.admin.get(target) is None:
        if time.monotonic() - began > seconds:
            return [f"nothing was told of the victim within {seconds:g} s"]
        time.sleep(0.1)
    return []


def _stalled(world: World) -> list[str]:
    with _standing_still(world):
        found = _told_late(world, 5)
    until(lambda: cast("ClassWorld", world).protection(VICTIM), 60, "the operator goes on")
    return found


def _memory(world: World) -> float:
    with open(f"/proc/{world.checks}/status") as status:  # noqa: PTH123 - of the kernel
        return next(int(line.split()[1]) for line in status if line.startswith("VmRSS")) / 1024


@controlled_by(_stalled)
def protection_flood_of_label_changes(world: World) -> list[str]:
    """Change the class of a namespace three hundred times between two classes of which one has the use."""
    before = _memory(world)
    for number in range(_FLOOD):
        world.hostile.patch(_space(FLAPPING), _metadata({LABEL: (SILVER, BRONZE)[number % 2]}))
    found = _told_late(world, 15)
    grown = _memory(world) - before
    found += [f"the operator takes {grown:.0f} MiB more"] if grown > 64 else []
    places = [name for name, members in cast("ClassWorld", world).groups.items() if FLAPPING in members]
    return found + ([] if places else ["the namespace is in no Schedule"])


@controlled_by(_stalled)
def protection_flood_of_other_labels(world: World) -> list[str]:
    """Change three hundred labels and annotations that say nothing of protection."""
    for number in range(_FLOOD):
        world.hostile.patch(_space(HOSTILE), _metadata({"team": f"t{number}"}, {"note": "x" * 1000 + str(number)}))
    found = _told_late(world, 15)
    world.admin.patch(_space(HOSTILE), _metadata({"team": None}, {"note": None}))
    return found


@controlled_by(_stalled)
def protection_flood_of_deletions(world: World) -> list[str]:
    """Delete one's Protection a hundred times while the operator writes it again."""
    for _ in range(100):
        world.hostile.delete(path("protections", HOSTILE, _PROTECTION))
    return _told_late(world, 15)


@controlled_by(_stalled)
def protection_flood_of_namespaces(world: World) -> list[str]:
    """Create and delete sixty namespaces in a class of which one has the use."""
    names = [f"flood-{number}" for number in range(60)]
    for name in names:
        body = {**body_of("Namespace", name, labels={LABEL: SILVER}), "apiVersion": "v1"}
        world.hostile.create(path("namespaces"), body)
    found = _told_late(world, 20)
    for name in names:
        world.admin.delete(_space(name))
    until(lambda: not any(world.admin.get(_space(name)) for name in names), 120, "the namespaces are gone")
    return found


@controlled_by(_stalled)
def protection_a_reason_of_a_quarter_megabyte(world: World) -> list[str]:
    """Write a quarter of a megabyte into the annotations that an exemption has."""
    world.hostile.patch(_space(FLAPPING), _metadata(None, {REASON: "x" * 200_000, UNTIL: "x" * 50_000}))
    found = _told_late(world, 15)
    size = len(str(cast("ClassWorld", world).protection(FLAPPING)))
    world.admin.patch(_space(FLAPPING), _metadata(None, {REASON: None, UNTIL: None}))
    return found + ([f"its Protection has {size:,} characters"] if size > 20_000 else [])
