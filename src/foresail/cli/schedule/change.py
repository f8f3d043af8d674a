"""`foresail schedule pause`, `unpause` and `delete`: small changes of Schedules that exist."""

import argparse
import sys
from collections.abc import Sequence
from typing import Any

import msgspec

from foresail.api import velero
from foresail.cli.errors import CommandError
from foresail.cli.schedule.cluster import Cluster, on_cluster
from foresail.cli.schedule.hints import hint, say_who_fires, say_who_manages
from foresail.cli.schedule.requests import Request, shown
from foresail.cli.schedule.sight import Sight, sights_of
from foresail.cli.schedule.words import as_text
from foresail.kube.clock import now


def pause(chosen: argparse.Namespace) -> int:
    """Pause the chosen Schedules."""
    return on_cluster(chosen, lambda cluster: _set_paused(cluster, chosen, paused=True))


def unpause(chosen: argparse.Namespace) -> int:
    """Unpause the chosen Schedules; what spec.skipImmediately says stays unless the option says otherwise."""
    return on_cluster(chosen, lambda cluster: _set_paused(cluster, chosen, paused=False))


def delete(chosen: argparse.Namespace) -> int:
    """Delete the chosen Schedules, after asking."""
    return on_cluster(chosen, lambda cluster: _delete(cluster, chosen))


def pause_body(*, paused: bool, skip: bool | None) -> dict[str, Any]:
    """Return the merge patch that pauses or unpauses; without a value for it, the stored skipImmediately stays."""
    spec: dict[str, Any] = {"paused": paused}
    if skip is not None:
        spec["skipImmediately"] = skip
    return {"spec": spec}


async def _set_paused(cluster: Cluster, chosen: argparse.Namespace, *, paused: bool) -> int:
    sights = await _found(cluster, chosen)
    word = "paused" if paused else "unpaused"
    changed = [each for each in sights if each.schedule.paused is not paused]
    for each in sights:
        if each.schedule.paused is paused:
            kept = "" if chosen.skip_immediately is None else ", and spec.skipImmediately was left as it is"
            print(f"Schedule {each.schedule.key.name} is already {word}, skip{kept}", file=sys.stderr)
    body = pause_body(paused=paused, skip=chosen.skip_immediately)
    requests = [Request("PATCH", velero.SCHEDULE, each.schedule.key, body) for each in changed]
    say_who_manages(changed)
    if chosen.dry_run:
        print(shown(requests, chosen.output))
        return 0
    for request in requests:
        made = await cluster.merge(request.kind, request.key, body)
        _say(chosen, made, f"Schedule {request.key.name} {word} successfully")
    if not paused:
        say_who_fires(changed)
    return 0


async def _delete(cluster: Cluster, chosen: argparse.Namespace) -> int:
    sights = await _found(cluster, chosen)
    say_who_manages(sights)
    if chosen.dry_run:
        print(shown([Request("DELETE", velero.SCHEDULE, each.schedule.key) for each in sights], chosen.output))
        return 0
    if sights and not chosen.confirm:
        _ask(sights)
    for each in sights:
        schedule = each.schedule
        await cluster.delete(velero.SCHEDULE, schedule.key, schedule.uid)
        _say(chosen, each.content, f"Schedule deleted: {schedule.key.name}")
        if schedule.owns_backups and each.seen.backups:
            hint(f"useOwnerReferencesInBackup: the Backups of {schedule.key.name} are deleted with it")
    return 0


async def _found(cluster: Cluster, chosen: argparse.Namespace) -> list[Sight]:
    if not (chosen.names or chosen.selector or chosen.all):
        raise CommandError("no Schedule is named", "give names, -l SELECTOR or --all")
    sights = await sights_of(cluster, chosen, now())
    if not sights:
        print("No schedules found", file=sys.stderr)
    return sights


def _ask(sights: Sequence[Sight]) -> None:
    names = ", ".join(str(each.schedule.key) for each in sights)
    if not sys.stdin.isatty():
        raise CommandError(f"nobody confirms that these Schedules are deleted: {names}", "add --confirm")
    print(f"Delete {names}? [y/N] ", end="", file=sys.stderr, flush=True)
    if sys.stdin.readline().strip().lower() not in ("y", "yes"):
        raise CommandError(f"nothing was deleted; still there: {names}")


def _say(chosen: argparse.Namespace, made: msgspec.Raw | dict[str, Any], text: str) -> None:
    if chosen.output == "table":
        print(text, file=sys.stderr)
        return
    content = made if isinstance(made, dict) else msgspec.json.decode(made, type=dict[str, Any])
    print(as_text([content], chosen.output))
