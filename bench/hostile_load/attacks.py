"""What the hostile tenant does: each attack prepares a namespace, then repeats a step as fast as its pause allows."""

import http.client
import json
from collections.abc import Callable
from dataclasses import dataclass

from bench.console import HOST
from bench.hostile_load.scene import Scene
from bench.writing import create_all
from foresail.plan import Key, Kind
from testbed.api import Answer
from tests.redteam.world import NAB, NAR, NAS, RESTORE_CHECKS, Caller, Json, body_of, condition, path, until

_CONFIG_MAP = Kind("", "v1", "configmaps", "ConfigMap")
_MEGABYTE = "x" * 1_000_000
_LONG = ".".join(["x" * 60] * 4)  # the prefix of a name, nearly as long as may be
_HOOK = {
    "pre.hook.backup.velero.io/command": '["/bin/sh","-c","sleep 36000"]',
    "pre.hook.backup.velero.io/timeout": "9999h",
}
_SPARE = 20  # objects of a churn that are there at a time
_PODS, _FINALIZERS = 310, 2_300
_FAT_BACKUPS = 22
_VIEWERS = 8

Step = Callable[[Caller, int], Answer | None]
"""One step with the number of its turn; what the API server answered, if that is counted."""


@dataclass(frozen=True)
class Attack:
    """How a step is made, by how many hands it is repeated, and with which pause."""

    prepare: Callable[[Scene, str], Step]
    hands: int = 1
    pause: float = 0.0
    policy: Json | None = None  # instead of the chart's


def finalizers(number: int) -> list[str]:
    """Return so many finalizers, which are stored twice: the record of who manages which field has them too."""
    return [f"{_LONG}/{'y' * 50}-{turn:06}" for turn in range(number)]


def backup(space: str, caller: Caller, number: int) -> Answer:
    """Ask for a backup, and delete an earlier one, so that quotas do not end the attack."""
    caller.delete(path(NAB, space, f"b-{number - _SPARE}"))
    return caller.create(path(NAB, space), body_of(NAB, f"b-{number}", {"backupSpec": {}}))


def flood(scene: Scene, space: str) -> Step:
    """Create NonAdminBackups, up to thousands at a time."""
    most = scene.scaled(5_000, 500)

    def step(caller: Caller, number: int) -> Answer:
        if number >= most:
            caller.delete(path(NAB, space, f"b-{number - most}"))
        return caller.create(path(NAB, space), body_of(NAB, f"b-{number}", {"backupSpec": {}}))

    return step


def fat_pods(scene: Scene, space: str) -> Step:
    """Create pods with 1.3 MB of finalizers each, and ask for backups of them."""
    caller = scene.hostile()
    spec = {"containers": [{"name": "only", "image": "only"}], "nodeSelector": {"no": "node"}}
    for number in range(scene.scaled(_PODS, 200)):
        body = {**body_of("Pod", f"fat-{number}", finalizers=finalizers(_FINALIZERS)), "spec": spec}
        _must(caller.create(path("pods", space), body))
    return lambda hostile, number: backup(space, hostile, number)


def big_config(scene: Scene, space: str) -> Step:
    """Create 120 ConfigMaps of 1 MB, and ask for backups of them."""
    caller = scene.hostile()
    for number in range(120):
        _must(
            caller.create(
                path("configmaps", space), {**body_of("ConfigMap", f"big-{number}"), "data": {"x": _MEGABYTE}}
            )
        )
    return lambda hostile, number: backup(space, hostile, number)


def large_restore(scene: Scene, space: str) -> Step:
    """Back up thousands of objects once; delete and restore them again and again."""
    many = scene.scaled(10_000, 3_000)
    names = [f"many-{number}" for number in range(many)]
    head = {"apiVersion": "v1", "kind": "ConfigMap", "data": {"a": "b"}}
    create_all(
        scene.cluster,
        _CONFIG_MAP,
        ((Key(space, name), {**head, "metadata": {"name": name, "namespace": space}}) for name in names),
    )
    scene.hostile().create(path(NAB, space), body_of(NAB, "many", {"backupSpec": {}}))
    until(lambda: _outcome(scene.admin, NAB, space, "many"), 300, f"a backup of {many} objects ends")

    def step(caller: Caller, number: int) -> Answer:
        caller.delete(path("configmaps", space))
        answer = caller.create(path(NAR, space), body_of(NAR, f"r-{number}", {"restoreSpec": {"backupName": "many"}}))
        until(lambda: _outcome(caller, NAR, space, f"r-{number}"), 600, "a large restore ends")
        return answer

    return step


def hooks(scene: Scene, space: str) -> Step:
    """Send pods and CronJobs with hooks, small ones, and ones that cost an admission policy more than its budget."""
    template = {"spec": {"restartPolicy": "Never", "containers": [{"name": "only", "image": "only"}]}}
    hooked = {"metadata": {"annotations": _HOOK}, **template}
    spec = {"schedule": "0 0 1 1 *", "suspend": True, "jobTemplate": {"spec": {"template": template}}}
    padding = {f"{number:0990}": "" for number in range(1_000)}
    caller = scene.hostile()
    for number in range(4):
        caller.create(path("cronjobs", space), {**body_of("CronJob", f"c-{number}", managedFields=[{}]), "spec": spec})

    def step(hostile: Caller, number: int) -> Answer:
        if number % 2:
            pod = {**body_of("Pod", f"p-{number}", annotations=_HOOK), "spec": template["spec"]}
            return hostile.create(path("pods", space), pod)
        fat = {"spec": {"jobTemplate": {"metadata": {"annotations": padding}, "spec": {"template": hooked}}}}
        change = {"metadata": {"managedFields": [{}]}, **fat}
        return hostile.patch(path("cronjobs", space, f"c-{number // 2 % 4}"), change)

    return step


def viewers(scene: Scene, space: str) -> Step:
    """Create NonAdminBackups of 1.4 MB, and look at them in the console with eight tokens at once."""
    caller = scene.hostile()
    for number in range(_FAT_BACKUPS):
        body = body_of(
            NAB, f"x-{number}", {"backupSpec": {"includedNamespaces": ["x"]}}, finalizers=finalizers(_FINALIZERS)
        )
        _must(caller.create(path(NAB, space), body))
    tokens = []
    for number in range(_VIEWERS):
        scene.cluster.kubectl("create", "serviceaccount", f"viewer-{number}", f"--namespace={space}")
        account = f"--serviceaccount={space}:viewer-{number}"
        scene.cluster.kubectl(
            "create", "rolebinding", f"viewer-{number}", "--clusterrole=edit", account, f"--namespace={space}"
        )
        tokens.append(scene.cluster.service_account_token(space, f"viewer-{number}"))
    pages = (f"/foresail/ns/{space}", "/foresail/", "/foresail/calendar")

    def step(_hostile: Caller, number: int) -> Answer:
        wire = http.client.HTTPConnection("127.0.0.1", scene.console_port, timeout=60)
        headers = {"Host": HOST, "Authorization": f"Bearer {tokens[number % _VIEWERS]}"}
        headers["Cookie"] = f"__Host-foresail-namespace={space}"
        try:
            wire.request("GET", pages[number // _VIEWERS % len(pages)], headers=headers)
            answer = wire.getresponse()
            answer.read()
        finally:
            wire.close()
        return Answer(answer.status, "")

    return step


def checks(scene: Scene, space: str) -> Step:
    """Create RestoreChecks and delete them again, twenty at a time."""
    scene.hostile().create(path(NAB, space), body_of(NAB, "good", {"backupSpec": {"snapshotVolumes": False}}))
    until(lambda: _outcome(scene.admin, NAB, space, "good"), 120, "the backup that is checked ends")

    def step(caller: Caller, number: int) -> Answer:
        caller.delete(path(RESTORE_CHECKS, space, f"k-{number - _SPARE}"))
        spec: Json = {"backups": {"nonAdminBackups": {}}}
        return caller.create(path(RESTORE_CHECKS, space), body_of(RESTORE_CHECKS, f"k-{number}", spec))

    return step


def schedules(scene: Scene, space: str) -> Step:
    """Create NonAdminSchedules that run each minute, where the policy allows that, and edit them."""
    most = scene.scaled(1_000, 100)

    def step(caller: Caller, number: int) -> Answer:
        spec = {"schedule": "* * * * *", "template": {"backupSpec": {"ttl": "1h"}}}
        if number < most:
            return caller.create(path(NAS, space), body_of(NAS, f"s-{number}", spec))
        return caller.patch(path(NAS, space, f"s-{number % most}"), {"spec": {"paused": bool(number // most % 2)}})

    return step


ATTACKS: dict[str, Attack] = {
    "flood": Attack(flood, hands=2),
    "fat-pods": Attack(fat_pods, pause=1.0),
    "big-config": Attack(big_config, pause=2.0),
    "large-restore": Attack(large_restore, pause=0.5),
    "hooks": Attack(hooks, hands=4),
    "viewers": Attack(viewers, hands=_VIEWERS),
    "checks": Attack(checks, policy={"restoreChecks": {"maximum": 2, "minimumInterval": "1m"}}),
    "schedules": Attack(schedules, policy={"schedules": {"minimumInterval": "1m", "maximum": 1_000}}),
}


def _outcome(caller: Caller, plural: str, space: str, name: str) -> str:
    found = caller.get(path(plural, space, name)) or {}
    reached = condition(found.get("status", {}), "Succeeded")
    refused = condition(found.get("status", {}), "Accepted") == "False"
    return "refused" if refused else reached if reached in {"True", "False"} else ""


def _must(answer: Answer) -> None:
    """Go on if something was created, or was refused by a policy that is there to refuse it."""
    if answer.code >= http.client.INTERNAL_SERVER_ERROR:
        raise RuntimeError(json.dumps(answer.text[:300]))
