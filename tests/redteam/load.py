"""Attacks on the memory and the time of our processes: large objects, many objects, many changes, expensive specs.

Each takes seconds, and is judged by `load_watch`: what our processes hold, and how long another tenant waits.
"""

import http.client
import json
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress

from bench.console import HOST
from bench.console import console as console_of
from foresail.api.specs import MOST_ENTRIES
from testbed.api import Answer
from tests.redteam.attack import attack
from tests.redteam.load_watch import CONTROLS, Control, Load, Peak, under_load
from tests.redteam.world import (
    LOADED,
    NAB,
    NABSL,
    NADR,
    NAR,
    NAS,
    RESTORE_CHECKS,
    Caller,
    Json,
    World,
    body_of,
    empty,
    may_edit,
    path,
    user,
)

PVC, PODS, CRONJOBS = "persistentvolumeclaims", "pods", "cronjobs"
_FEW, _MANY = 3, 40
_PREFIX = ".".join(["x" * 60] * 4)  # of a name, nearly as long as may be
_TEXT = "x" * 1_000
_ENTRIES = MOST_ENTRIES - 12
_HOOK = {"pre.hook.backup.velero.io/command": '["/bin/true"]'}
_REFUSED: Json = {"backupSpec": {"includedNamespaces": ["x"]}}
_CLAIM: Json = {
    "accessModes": ["ReadWriteOnce"],
    "storageClassName": "none",
    "resources": {"requests": {"storage": "1Gi"}},
}
_SPECS: Mapping[str, Json] = {
    NAB: _REFUSED,
    NAR: {"restoreSpec": {"backupName": "none"}},
    NADR: {"target": {"kind": "BackupLog", "name": "none"}},
    NAS: {"schedule": "0 0 1 1 *", "paused": True, "template": {"backupSpec": {}}},
    NABSL: {"backupStorageLocationSpec": {"provider": "aws", "objectStorage": {"bucket": "x"}}},
    RESTORE_CHECKS: {"backups": {"nonAdminBackups": {}}, "suspend": True},
    PVC: _CLAIM,
}
_METADATA, _PODS, _NUMBERS = under_load("metadata"), under_load("pods"), under_load("numbers")
_COSTLY, _ADMISSION = under_load("specs"), under_load("admission")
CONTROLS["metadata"] = Control(reads=[path(plural, LOADED) for plural in _SPECS])
CONTROLS["pods"] = Control(reads=[path(PODS, LOADED)])
CONTROLS["numbers"] = Control(is_stalled=True)
CONTROLS["specs"] = Control(reads=[path(plural, LOADED) for plural in (NAB, NAR, NAS, RESTORE_CHECKS)])
_KINDS = {PVC: "PersistentVolumeClaim", PODS: "Pod", CRONJOBS: "CronJob"}


def _object(plural: str, name: str, spec: object, **metadata: object) -> Json:
    found = body_of(plural, name, spec, **metadata)
    return {**found, "kind": _KINDS.get(plural, found["kind"])}


def _send(world: World, plural: str, name: str, spec: object, **metadata: object) -> Answer:
    """Create an object as the hostile tenant."""
    return world.hostile.create(path(plural, LOADED), _object(plural, name, spec, **metadata))


def _clear(world: World, *plurals: str) -> None:
    """Delete every object of some kinds, and wait until they are gone."""
    for plural in plurals:
        empty(world.admin, plural, LOADED)


# Large metadata of each kind that a tenant may write and one of our processes watches or lists


def finalizers(number: int) -> list[str]:
    """Return so many long finalizers, which are stored twice: the record of managed fields has them too."""
    return [f"{_PREFIX}/{'y' * 50}-{turn:06}" for turn in range(number)]


def _labels() -> Json:
    return {f"{_PREFIX}/{turn:060}": "z" * 63 for turn in range(1_500)}


def _owners() -> list[Json]:
    owner = {"apiVersion": "example.com/v1", "kind": "Owner"}
    return [{**owner, "name": f"{turn:0700}", "uid": f"{turn:036}"} for turn in range(600)]


METADATA: Mapping[str, Callable[[], Json]] = {
    "finalizers": lambda: {"finalizers": finalizers(1_400)},
    "labels": lambda: {"labels": _labels()},
    "owners": lambda: {"ownerReferences": _owners()},
    "annotations": lambda: {"annotations": {f"x/{turn}": "a" * 25_000 for turn in range(10)}},
}


def _fat(plural: str, sort: str) -> Load:
    def load(world: World) -> Iterator[None]:
        metadata = METADATA[sort]()
        code = _send(world, plural, sort, _SPECS[plural], **metadata).code
        assert code in {http.client.CREATED, http.client.FORBIDDEN, http.client.UNPROCESSABLE_ENTITY}, code
        yield
        _clear(world, plural)

    load.__name__ = f"load_{sort}_of_{plural}"
    load.__doc__ = f"Create {plural} with as many {sort} as the API server takes."
    return load


for _plural in _SPECS:
    _METADATA(_fat(_plural, "finalizers"))
for _plural in (NAB, RESTORE_CHECKS, PVC):
    _METADATA(_fat(_plural, "labels"))
for _plural in (NAB, NAS, RESTORE_CHECKS):
    _METADATA(_fat(_plural, "owners"))
for _plural in (NAB, NAR, PVC):
    _METADATA(_fat(_plural, "annotations"))


@_METADATA
def load_managed_fields(world: World) -> Iterator[None]:
    """Apply one request in the name of hundreds of managers, each with a record of its own."""
    for number in range(_MANY):
        body = _object(NAB, "managed", _REFUSED, labels={f"{_PREFIX}/{turn}": "a" for turn in range(20)})
        target = f"{path(NAB, LOADED, 'managed')}?force=true&fieldManager={'m' * 100}{number}"
        world.hostile.patch(target, body, "apply")
    yield
    _clear(world, NAB)


@_PODS
def load_pods_before_a_backup(world: World) -> Iterator[None]:
    """Create pods with finalizers of 1.3 MB, and ask for a backup of them."""
    spec = {"containers": [{"name": "only", "image": "only"}], "nodeSelector": {"no": "node"}}
    for number in range(8):
        _send(world, PODS, f"fat-{number}", spec, finalizers=finalizers(2_300))
    _send(world, NAB, "fat", {"backupSpec": {"includedResources": ["services"]}})
    world.decided(NAB, "fat", LOADED)
    yield
    world.hostile.patch(path(NAB, LOADED, "fat"), {"spec": {"forceDeleteBackup": True}})
    _clear(world, PODS, NAB)


# Many objects, and many changes


def _number(plural: str, count: int, spec: Json) -> Load:
    def load(world: World) -> Iterator[None]:
        for number in range(count):
            _send(world, plural, f"many-{number}", spec)
        yield
        _clear(world, plural)

    load.__name__ = f"load_many_{plural}"
    load.__doc__ = f"Create {count} {plural} at once."
    return load


_NUMBERS(_number(NAB, 2 * _MANY, _SPECS[NAB]))
for _plural in (NAR, NADR, NAS, NABSL, RESTORE_CHECKS, PVC):
    _NUMBERS(_number(_plural, _MANY, _SPECS[_plural]))


def _churn(plural: str) -> Load:
    def load(world: World) -> Iterator[None]:
        for number in range(_MANY):
            _send(world, plural, f"churn-{number}", _SPECS[plural])
            world.hostile.delete(path(plural, LOADED, f"churn-{number}"))
        yield
        _clear(world, plural)

    load.__name__ = f"load_churn_of_{plural}"
    load.__doc__ = f"Create {plural} and delete each at once."
    return load


for _plural in (NAB, NAS, RESTORE_CHECKS, PVC):
    _NUMBERS(_churn(_plural))


@_NUMBERS
def load_edits_of_one_request(world: World) -> Iterator[None]:
    """Change the spec of one request hundreds of times, so that each change is judged anew."""
    _send(world, NAB, "edited", _REFUSED)
    for number in range(2 * _MANY):
        world.hostile.patch(path(NAB, LOADED, "edited"), {"spec": {"backupSpec": {"ttl": f"{number + 1}h"}}})
    yield
    _clear(world, NAB)


@_NUMBERS
def load_edits_of_one_schedule(world: World) -> Iterator[None]:
    """Change the expression of one schedule hundreds of times."""
    _send(world, NAS, "edited", _SPECS[NAS])
    for number in range(_MANY):
        world.hostile.patch(path(NAS, LOADED, "edited"), {"spec": {"schedule": f"{number % 60} 0 29 2 {number % 7}"}})
    yield
    _clear(world, NAS)


@_NUMBERS
def load_deletion_of_collections(world: World) -> Iterator[None]:
    """Fill the namespace and delete the whole collection, again and again."""
    for turn in range(5):
        for number in range(_FEW):
            _send(world, NAB, f"gone-{turn}-{number}", _REFUSED)
        world.hostile.delete(path(NAB, LOADED))
    yield
    _clear(world, NAB)


@_NUMBERS
def load_status(world: World) -> Iterator[None]:
    """Write a megabyte into the status of a request, with it and by the subresource."""
    _send(world, NAB, "status", _REFUSED)
    status = {
        "status": {"conditions": [{"type": _TEXT, "message": "x" * 30_000, "status": "True", "reason": "X"}] * 30}
    }
    for _ in range(5):
        world.hostile.patch(path(NAB, LOADED, "status", "status"), status)
        world.hostile.patch(path(NAB, LOADED, "status"), status)
    yield
    _clear(world, NAB)


@_NUMBERS
def load_watches(world: World) -> Iterator[None]:
    """Hold many watches open while the namespace changes."""
    watchers = [user(world.cluster, "mallory") for _ in range(20)]
    threads = [threading.Thread(target=_watch, args=(each,)) for each in watchers]
    for thread in threads:
        thread.start()
    for number in range(_MANY):
        _send(world, NAB, f"watched-{number}", _REFUSED)
    yield
    for thread in threads:
        thread.join()
    _clear(world, NAB)


def _watch(caller: Caller) -> None:
    with suppress(OSError, http.client.HTTPException):
        caller.send("GET", f"{path(NAB, LOADED)}?watch=true&timeoutSeconds=5")


# Specs that are expensive to judge


def _specs(name: str, text: str, plural: str, specs: Callable[[], list[Json]]) -> None:
    def load(world: World) -> Iterator[None]:
        for number, spec in enumerate(specs()):
            _send(world, plural, f"{name.replace('_', '-')}-{number}", spec)
        yield
        _clear(world, plural)

    load.__name__, load.__doc__ = name, text
    _COSTLY(load)


def _backup(**fields: object) -> Json:
    return {"backupSpec": fields}


def _schedule(expression: str) -> Json:
    return {"schedule": expression, "template": {"backupSpec": {}}}


_specs(
    "load_schedules_that_never_run",
    "Create schedules for the 30th of February, in several zones, so that a search for the next run goes on.",
    NAS,
    lambda: [
        _schedule(f"{zone}{number % 60} 0 30 2 *") for number in range(30) for zone in ("", "CRON_TZ=Asia/Tokyo ")
    ],
)
_specs(
    "load_schedules_that_run_rarely",
    "Create schedules for the 29th of February in combination with weekdays and odd minutes.",
    NAS,
    lambda: [_schedule(f"{number} 23 29 2 {number % 7}") for number in range(40)],
)
_specs(
    "load_schedules_with_long_expressions",
    "Create schedules whose expressions are as long as may be, with thousands of fires to be judged.",
    NAS,
    lambda: [_schedule(",".join(["0-59/1"] * 140) + f" {number % 24} * * *") for number in range(20)],
)
_specs(
    "load_schedules_of_every_second",
    "Create schedules with intervals of a second and of nanoseconds.",
    NAS,
    lambda: [_schedule(f"@every {number + 1}{unit}") for number in range(15) for unit in ("s", "ns", "ms")],
)
_specs(
    "load_selectors",
    "Create requests with selectors of hundreds of expressions with hundreds of values.",
    NAB,
    lambda: (
        [
            _backup(
                labelSelector={
                    "matchExpressions": [
                        {"key": f"{_PREFIX}/{turn}", "operator": "In", "values": ["v" * 60] * 20} for turn in range(400)
                    ]
                }
            )
        ]
        * _FEW
    ),
)
_specs(
    "load_alternative_selectors",
    "Create requests with hundreds of alternative selectors.",
    NAB,
    lambda: [_backup(orLabelSelectors=[{"matchLabels": {f"k{turn}": "v" * 60}} for turn in range(_ENTRIES)])] * _FEW,
)
_specs(
    "load_patterns",
    "Create requests with patterns that would take a naive matcher forever.",
    NAB,
    lambda: [_backup(includedResources=["*a" * 500 + "b"] * _ENTRIES)] * _FEW,
)
_specs(
    "load_lists_of_kinds",
    "Create requests with the longest lists of kinds, included and excluded.",
    NAB,
    lambda: [_backup(includedResources=[_TEXT] * _ENTRIES, excludedResources=[_TEXT] * _ENTRIES)] * _FEW,
)
_specs(
    "load_ordered_resources",
    "Create requests with hundreds of orders of kinds, each naming many objects.",
    NAB,
    lambda: [_backup(orderedResources={f"kind{turn}": "x/y," * 250 for turn in range(_ENTRIES)})] * _FEW,
)
_specs(
    "load_texts_of_unicode",
    "Create requests with characters of four bytes, and with ones that JSON escapes.",
    NAB,
    lambda: [
        _backup(includedResources=[text] * _ENTRIES) for text in ("\U0001f600" * 500, "\u0001" * 150, "\u202e" * 300)
    ],
)
_specs(
    "load_lists_of_restores",
    "Create restores with the longest lists of kinds and mappings.",
    NAR,
    lambda: (
        [
            {
                "restoreSpec": {
                    "backupName": "none",
                    "includedResources": [_TEXT] * _ENTRIES,
                    "namespaceMapping": {f"n{turn}": "m" * 60 for turn in range(_ENTRIES)},
                }
            }
        ]
        * _FEW
    ),
)
_specs(
    "load_checks_of_many_kinds",
    "Create RestoreChecks with the longest lists of namespaces and kinds.",
    RESTORE_CHECKS,
    lambda: (
        [
            {
                **_SPECS[RESTORE_CHECKS],
                "namespaces": [f"n{turn:060}" for turn in range(count)],
                "customResources": [f"k{turn:050}.example.com" for turn in range(count)],
            }
            for count in (10, 100, 500)
        ]
        * 4
    ),
)


@_COSTLY
def load_nesting(world: World) -> Iterator[None]:
    """Nest thousands of levels below a field without a schema, in many objects."""
    root = {"name": "root", "image": "root", "deep": "%"}
    hooks = {"resources": [{"name": "hook", "postHooks": [{"init": {"initContainers": [root]}}]}]}
    for number in range(_FEW):
        text = json.dumps(body_of(NAR, f"deep-{number}", {"restoreSpec": {"backupName": "any", "hooks": hooks}}))
        deep = '{"a":' * 5_000 + "1" + "}" * 5_000
        world.hostile.send("POST", path(NAR, LOADED), text.replace('"%"', deep))
    yield
    _clear(world, NAR)


@_COSTLY
def load_long_names(world: World) -> Iterator[None]:
    """Create requests whose names are as long as may be."""
    for number in range(_MANY):
        _send(world, NAB, f"{'n' * 60}.{'n' * 60}.{'n' * 60}.{number:060}", _REFUSED)
    yield
    _clear(world, NAB)


@_COSTLY
def load_bodies_that_are_refused(world: World) -> Iterator[None]:
    """Send bodies that are too large, or no JSON."""
    for number in range(10):
        world.hostile.send("POST", path(NAB, LOADED), "[" * 100_000)
        _send(world, NAB, f"large-{number}", _backup(includedResources=["x" * 3_500_000]))
    yield
    _clear(world, NAB)


# What admission judges


@_ADMISSION
def load_hooks(world: World) -> Iterator[None]:
    """Send pods with hooks, which admission refuses, as fast as one connection can."""
    spec = {"containers": [{"name": "only", "image": "only"}]}
    for number in range(_MANY):
        _send(world, PODS, f"hooked-{number}", spec, annotations=_HOOK)
    yield
    _clear(world, PODS)


@_ADMISSION
def load_cron_jobs_that_cost_admission(world: World) -> Iterator[None]:
    """Send CronJobs with a thousand keys of a thousand characters, with and without hooks."""
    template = {"spec": {"restartPolicy": "Never", "containers": [{"name": "only", "image": "only"}]}}
    padding = {f"{turn:0900}": "" for turn in range(1_000)}
    for number in range(6):
        annotations = {**padding, **(_HOOK if number % 2 else {})}
        job = {"metadata": {"annotations": annotations}, "spec": {"template": template}}
        _send(world, CRONJOBS, f"costly-{number}", {"schedule": "0 0 1 1 *", "suspend": True, "jobTemplate": job})
    yield
    _clear(world, CRONJOBS)


# The console


def _console(world: World, pages: tuple[str, ...], viewers: int) -> list[str]:
    """Let some viewers look at pages of the namespace at once, and return what the console had of it."""
    tokens = []
    for number in range(viewers):
        name = f"viewer-{number}"
        subject = {"kind": "ServiceAccount", "namespace": LOADED, "name": name}
        world.cluster.apply(
            body_of("ServiceAccount", name, namespace=LOADED), {**may_edit(LOADED, name), "subjects": [subject]}
        )
        tokens.append(world.cluster.service_account_token(LOADED, name))
    with console_of(world.cluster) as process:
        peak = Peak(process.pid, "the console")
        threads = [threading.Thread(target=_view, args=(process.port, token, pages)) for token in tokens]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return peak.achieved()


def _view(port: int, token: str, pages: tuple[str, ...]) -> None:
    headers = {"Host": HOST, "Authorization": f"Bearer {token}", "Cookie": f"__Host-foresail-namespace={LOADED}"}
    for page in pages:
        wire = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
        with suppress(OSError, http.client.HTTPException):
            wire.request("GET", f"/foresail{page}", headers=headers)
            wire.getresponse().read()
        wire.close()


@attack
def load_console_with_large_backups(world: World) -> list[str]:
    """Look with several tokens at NonAdminBackups of a megabyte each."""
    for number in range(3 * _FEW):
        _send(world, NAB, f"large-{number}", _REFUSED, finalizers=finalizers(2_000))
    found = _console(world, (f"/ns/{LOADED}", "/", "/calendar"), 4)
    _clear(world, NAB)
    return found


@attack
def load_console_with_many_searches(world: World) -> list[str]:
    """Look with several tokens at pages with searches of thousands of characters."""
    for number in range(_MANY):
        _send(world, NAB, f"many-{number}", _REFUSED)
    found = _console(world, tuple(f"/ns/{LOADED}?q={'%C3%A9' * 1_000}&page={turn}" for turn in range(10)), 4)
    _clear(world, NAB)
    return found
