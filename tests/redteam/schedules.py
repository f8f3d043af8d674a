"""Attacks through NonAdminSchedules: forged runs, squatted names, floods, and somebody else's identity."""

import http.client
from datetime import datetime
from typing import Any

from foresail.api import marks
from foresail.selfservice.rows.schedules import run_name
from tests.redteam.attack import attack
from tests.redteam.world import HOSTILE, NAB, NAS, VELERO, VICTIM, World, body_of, path, reason, until

MANY = 200  # schedules of a flood, of which the policy lets ten run
_EVERY = "@every 2h"
_LIE = {marks.REQUESTER: "system:admin", marks.REQUESTER_GROUPS: "system:masters"}


def _spec(text: str = _EVERY, **backup: Any) -> dict[str, Any]:  # noqa: ANN401 - JSON
    return {"schedule": text, "template": {"backupSpec": backup}}


def _judged(world: World, name: str, text: str = _EVERY, **backup: Any) -> str:  # noqa: ANN401 - JSON
    """Create a schedule, return the reason that the operator gives, and delete it again: ten may run."""
    world.ask(NAS, name, _spec(text, **backup))
    found = reason(world.decided(NAS, name))
    world.hostile.delete(path(NAS, HOSTILE, name))
    return found


def _runs(world: World) -> set[str]:
    found = world.admin.items(path(NAB, HOSTILE))
    return {each["metadata"]["name"] for each in found if marks.SLOT in each["metadata"].get("annotations", {})}


@attack
def schedule_forge_the_marks_of_a_run(world: World) -> list[str]:
    """Create a NonAdminBackup with the annotations and labels by which a run is recognised."""
    found = []
    for key in (marks.SCHEDULE_UID, marks.SLOT):
        for where in ("annotations", "labels"):
            body = body_of(NAB, "run", {"backupSpec": {"includedNamespaces": ["x"]}}, **{where: {key: "x"}})
            answer = world.hostile.create(path(NAB, HOSTILE), body)
            found += [f"{where} {key}: {answer.code}"] if answer.code < http.client.BAD_REQUEST else []
    return found


@attack
def schedule_forge_the_marks_of_a_schedule(world: World) -> list[str]:
    """Create a schedule with reserved labels and annotations."""
    answers = {key: world.ask(NAS, "marked", _spec(), labels={key: "x"}) for key in (marks.SLOT, marks.REQUEST_UID)}
    return [f"{key}: {each.code}" for key, each in answers.items() if each.code < http.client.BAD_REQUEST]


@attack
def schedule_in_the_name_of_an_administrator(world: World) -> list[str]:
    """Create a schedule, and change one, in the name of an administrator."""
    world.ask(NAS, "liar", _spec(), annotations=_LIE)
    world.ask(NAS, "honest", _spec())
    for name in ("liar", "honest"):
        world.hostile.patch(path(NAS, HOSTILE, name), {"metadata": {"annotations": _LIE}})
    stored = {name: world.request(NAS, name).get("metadata", {}).get("annotations", {}) for name in ("liar", "honest")}
    for name in stored:
        world.hostile.delete(path(NAS, HOSTILE, name))
    return [
        f"{name} is an administrator's" for name, each in stored.items() if each.get(marks.REQUESTER) == "system:admin"
    ]


@attack
def schedule_backups_of_another_namespace(world: World) -> list[str]:
    """Name the victim's namespace in the template of a schedule."""
    found = _judged(world, "theirs", includedNamespaces=[VICTIM])
    return [] if found == "InvalidScheduleSpec" else [f"it was {found}"]


@attack
def schedule_with_somebody_elses_labels(world: World) -> list[str]:
    """Put labels into the template by which Velero's objects and Schedules are recognised."""
    labels = {"openshift.io/oadp-nab-origin-nacuuid": "x", "velero.io/schedule-name": "nightly"}
    found = _judged(world, "labelled", metadata={"labels": labels})
    return [] if found != "ScheduleAccepted" else [f"it was {found}"]


@attack
def schedule_in_other_namespaces(world: World) -> list[str]:
    """Create a schedule in the victim's and in Velero's namespace."""
    answers = {name: world.ask(NAS, "away", _spec(), namespace=name) for name in (VICTIM, VELERO)}
    return [f"{name}: {each.code}" for name, each in answers.items() if each.code < http.client.BAD_REQUEST]


@attack
def schedule_every_second(world: World) -> list[str]:
    """Ask for a run each second, each minute, and for two runs close together."""
    found = {text: _judged(world, "often", text) for text in ("@every 1s", "* * * * *", "0,1 * * * *")}
    return [f"{text} was {why}" for text, why in found.items() if why != "PolicyViolation"]


@attack
def schedule_by_an_enormous_expression(world: World) -> list[str]:
    """Send an expression of half a megabyte, and long ones that are just short enough to be read."""
    answer = world.ask(NAS, "enormous", _spec("0," * 250_000 + "0 * * * *"))
    found = [f"it was stored: {answer.code}"] if answer.code < http.client.BAD_REQUEST else []
    for number in range(5):
        _judged(world, f"long-{number}", ",".join(["0-59/1"] * 140) + f" {number} * * *")
    return found + ([] if _judged(world, "short") == "ScheduleAccepted" else ["others are not served any more"])


@attack
def schedule_hundreds(world: World) -> list[str]:
    """Create hundreds of schedules, of which the policy lets ten run."""
    names = [f"flood-{number:03}" for number in range(MANY)]
    for name in names:
        world.ask(NAS, name, _spec())
    reasons = [reason(world.decided(NAS, name)) for name in names]
    for name in names:
        world.hostile.delete(path(NAS, HOSTILE, name))
    accepted = reasons.count("ScheduleAccepted")
    return [f"{accepted} were accepted"] if accepted > 10 else []


@attack
def schedule_squat_the_next_run(world: World) -> list[str]:
    """Create a NonAdminBackup with the name of the next run, so that it is taken for that run."""
    world.ask(NAS, "squatted", _spec("0 0 1 1 *"))
    until(lambda: world.request(NAS, "squatted").get("status", {}).get("nextRun"), 60, "the next run is planned")
    slot = datetime.fromisoformat(world.request(NAS, "squatted")["status"]["nextRun"])
    world.ask(NAB, run_name("squatted", slot), {"backupSpec": {"includedNamespaces": ["x"]}})
    world.decided(NAB, run_name("squatted", slot))
    recent = world.request(NAS, "squatted").get("status", {}).get("recentBackups", [])
    world.hostile.delete(path(NAS, HOSTILE, "squatted"))
    return [f"it is shown as a run: {recent}"] if recent else []


@attack
def schedule_with_a_forged_status(world: World) -> list[str]:
    """Write when a schedule ran last, so that a run is due at once."""
    world.ask(NAS, "status", _spec())
    world.decided(NAS, "status")
    status = {"status": {"lastBackup": "2020-01-01T00:00:00Z"}}
    answer = world.hostile.patch(path(NAS, HOSTILE, "status", "status"), status)
    world.hostile.patch(path(NAS, HOSTILE, "status"), status)
    stored = world.request(NAS, "status").get("status", {}).get("lastBackup")
    world.hostile.delete(path(NAS, HOSTILE, "status"))
    return [f"it was written: {answer.code}, {stored}"] if stored else []


@attack
def schedule_flapping(world: World) -> list[str]:
    """Pause, skip and edit a schedule again and again, while it is reconciled; no run is due."""
    before = _runs(world)
    world.ask(NAS, "flapping", _spec())
    for number in range(60):
        change = {
            "skipImmediately": bool(number % 2),
            "paused": number % 3 == 0,
            "schedule": f"@every {2 + number % 2}h",
        }
        world.hostile.patch(path(NAS, HOSTILE, "flapping"), {"spec": change})
    world.decided(NAS, "flapping")
    world.hostile.delete(path(NAS, HOSTILE, "flapping"))
    return sorted(_runs(world) - before)


@attack
def schedule_take_over_a_run(world: World) -> list[str]:
    """Remove the marks from a run, and put the marks of a run on a request that was refused."""
    world.ask(NAB, "later-run", {"backupSpec": {"includedNamespaces": ["x"]}})
    forged = {"metadata": {"annotations": {marks.SCHEDULE_UID: "x", marks.SLOT: "2026-01-01T00:00:00Z"}}}
    world.hostile.patch(path(NAB, HOSTILE, "later-run"), forged)
    stored = world.request(NAB, "later-run").get("metadata", {}).get("annotations", {})
    return ["it carries the marks of a run"] if marks.SLOT in stored else []
