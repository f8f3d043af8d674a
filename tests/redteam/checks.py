"""Attacks through RestoreChecks: backups of others, a forged status, floods, and sandboxes that stay."""

import http.client
from typing import Any

from foresail.api.marks import CHECK_LABEL
from foresail.api.nonadmin import SYNCED_FROM
from tests.redteam.attack import attack
from tests.redteam.world import (
    CHECKED,
    NAB,
    NIGHTLY,
    RESTORE_CHECKS,
    VELERO,
    VICTIM,
    World,
    body_of,
    path,
    reason,
    until,
)

MANY = 100
_OWN: dict[str, Any] = {"nonAdminBackups": {}}
_KEPT = ("-evidence", "-start")


def _ask(world: World, name: str, **spec: Any) -> int:  # noqa: ANN401 - JSON
    """Create a RestoreCheck as the hostile tenant, and return the code of the answer."""
    return world.ask(RESTORE_CHECKS, name, {"backups": _OWN, **spec}, CHECKED).code


def _back_up(world: World) -> None:
    """Have a good backup of the own namespace."""
    if not world.request(NAB, "good", CHECKED):
        world.ask(NAB, "good", {"backupSpec": {"snapshotVolumes": False}}, CHECKED)
    world.finished(NAB, "good", CHECKED)


def _ready(world: World, name: str) -> str:
    return reason(world.request(RESTORE_CHECKS, name, CHECKED), "Ready")


def _sandboxes(world: World) -> list[str]:
    found = world.admin.items(path("namespaces"))
    return [each["metadata"]["name"] for each in found if CHECK_LABEL in each["metadata"].get("labels", {})]


def _left(world: World) -> list[str]:
    """Return what checks have left beside evidence and counted starts."""
    found = _sandboxes(world)
    for plural in ("restores", "downloadrequests"):
        found += [each["metadata"]["name"] for each in world.velero(plural) if _is_of_check(each)]
    maps = [each["metadata"]["name"] for each in world.admin.items(path("configmaps", VELERO)) if _is_of_check(each)]
    return found + [each for each in maps if not each.endswith(_KEPT)]


def _is_of_check(found: dict[str, Any]) -> bool:
    return CHECK_LABEL in found["metadata"].get("labels", {})


def _clear(world: World) -> None:
    world.hostile.delete(path(RESTORE_CHECKS, CHECKED))
    until(lambda: not _left(world), 120, "every sandbox is removed")


@attack
def check_backups_of_the_administrator(world: World) -> list[str]:
    """Name a Velero Schedule, or select Velero Backups, in a RestoreCheck."""
    chosen: list[dict[str, Any]] = [{"schedule": NIGHTLY}, {"selector": {}}, {**_OWN, "schedule": NIGHTLY}]
    codes = [_ask(world, "theirs", backups=each) for each in chosen]
    _ask(world, "changed")
    target = path(RESTORE_CHECKS, CHECKED, "changed")
    for each in chosen[:2]:
        patch = [{"op": "replace", "path": "/spec/backups", "value": each}]
        codes.append(world.hostile.patch(target, patch, "json").code)
    _clear(world)
    return [f"{each}" for each in codes if each < http.client.BAD_REQUEST]


@attack
def check_in_other_namespaces(world: World) -> list[str]:
    """Create a RestoreCheck in the victim's and in Velero's namespace."""
    spec = {"backups": _OWN}
    answers = {name: world.ask(RESTORE_CHECKS, "away", spec, namespace=name) for name in (VICTIM, VELERO)}
    return [f"{name}: {each.code}" for name, each in answers.items() if each.code < http.client.BAD_REQUEST]


@attack
def check_a_backup_of_the_victim(world: World) -> list[str]:
    """Claim the victim's Velero Backup by the label of an adopted NonAdminBackup, and check it."""
    theirs = [each["metadata"]["name"] for each in world.made_for("backups", VICTIM)]
    assert theirs, "the victim has no backup, so nothing can be taken"
    for number, name in enumerate(theirs):
        world.ask(NAB, f"claimed-{number}", {"backupSpec": {}}, CHECKED, labels={SYNCED_FROM: name})
    _ask(world, "claims", namespaces=[VICTIM])
    _ask(world, "claims-all")
    until(lambda: _ready(world, "claims") and _ready(world, "claims-all"), 60, "both checks are judged")
    until(lambda: _ready(world, "claims-all") != "Running", 120, "a check ends")
    checked = [world.request(RESTORE_CHECKS, each, CHECKED).get("status", {}) for each in ("claims", "claims-all")]
    used = [each.get("last", each.get("run", {})).get("backup", "") for each in checked]
    for number in range(len(theirs)):
        world.hostile.delete(path(NAB, CHECKED, f"claimed-{number}"))
    _clear(world)
    return [f"{each} was restored" for each in used if each in theirs]


@attack
def check_forge_the_status(world: World) -> list[str]:
    """Write the status of a RestoreCheck, with it and by the subresource."""
    run = {"id": "0123456789", "backup": NIGHTLY, "backupUid": "x", "started": "2026-01-01T00:00:00Z"}
    body = {**body_of(RESTORE_CHECKS, "forged", {"backups": _OWN, "suspend": True}), "status": {"run": run}}
    world.hostile.create(path(RESTORE_CHECKS, CHECKED), body)
    code = world.hostile.patch(path(RESTORE_CHECKS, CHECKED, "forged", "status"), {"status": {"run": run}}).code
    found = world.request(RESTORE_CHECKS, "forged", CHECKED).get("status", {})
    _clear(world)
    is_written = code < http.client.BAD_REQUEST or "run" in found
    return ["the status was written"] if is_written else []


@attack
def check_flood(world: World) -> list[str]:
    """Create 100 RestoreChecks at once, delete them while they run, and do it again."""
    _back_up(world)
    found = []
    for _ in range(2):
        for number in range(MANY):
            _ask(world, f"flood-{number:03}")
        until(lambda: all(_ready(world, f"flood-{number:03}") for number in range(MANY)), 120, "all are judged")
        served = [each for each in range(MANY) if _ready(world, f"flood-{each:03}") != "QuotaExceeded"]
        found += [f"{len(served)} are served"] if len(served) > 2 else []
        _clear(world)
    maps = [each["metadata"]["name"] for each in world.admin.items(path("configmaps", VELERO)) if _is_of_check(each)]
    starts = [each for each in maps if each.endswith("-start")]
    return found + ([f"{len(starts)} starts in ten minutes"] if len(starts) > 2 else [])
