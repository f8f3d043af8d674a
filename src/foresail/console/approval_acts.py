"""Decisions about what waits: storage locations of teams, backups to adopt, and deletions by retention.

Each is about what the viewer has seen: a digest or a UID in the form, which must still be that of the cluster.
"""

import argparse
from collections.abc import Mapping, Sequence
from datetime import datetime
from shlex import join
from typing import Any

import msgspec

from foresail.api import velero
from foresail.api.nonadmin import NON_ADMIN_LOCATION_REQUEST, NON_ADMIN_SCHEDULE
from foresail.cli.access.cluster import Cluster
from foresail.cli.location.request import APPROVE, decision_on
from foresail.cli.output.words import counted
from foresail.cli.schedule import retention
from foresail.cli.schedule.snapshot import evaluate_selected
from foresail.cli.tenant.adopt import SeenAdoption, approving, select_one
from foresail.cli.tenant.adoptable import Scope, read_adoptable
from foresail.cli.tenant.schedule import retention as own_retention
from foresail.cli.tenant.schedule.snapshot import decode
from foresail.console.acts import Act, Choice, Fields
from foresail.deletion import list_digest
from foresail.plan import Key, Kind

_MOST_NAMED = 10
_LONGEST = 100
_NOTHING = "Nothing waits for an approval here now."


async def location(cluster: Cluster, velero_namespace: str, key: Key, verb: str, fields: Fields) -> Act:
    """Return the decision about the request of a team for a storage location."""
    seen = fields.get("request", "")
    made = await decision_on(cluster, velero_namespace, key, verb, seen=seen)
    word = verb.capitalize()
    words = ["foresail", "location", "request", verb, key.name, "-n", key.namespace]
    effect = "Backups of the team may go there from then on" if verb == APPROVE else "No backup of the team goes there"
    return Act(
        f"{word} location {key}",
        f"{effect}: {made.about}.",
        f"{word} {key}",
        NON_ADMIN_LOCATION_REQUEST,
        made.at,
        made.body,
        join(words),
        ("policies",),
        creates=False,
        choices=(_seen("request", seen),),
        place=("approvals", "location", key.namespace, key.name, verb),
    )


async def adoption(cluster: Cluster, scope: Scope, name: str, fields: Fields, now: datetime) -> Act:
    """Return the approval with which a Velero Backup is given back to its namespace."""
    given = {field: fields.get(field, "") for field in ("uid", "namespace", "record")}
    seen = SeenAdoption(given["uid"], given["namespace"], given["record"])
    chosen = select_one(await read_adoptable(cluster, scope, now), name, seen)
    owner = chosen.view.owner
    return Act(
        f"Adopt backup {name}",
        f"Gives Velero Backup {name} back to namespace {owner.namespace} as NonAdminBackup {owner.name}. "
        f"Its record is {chosen.record}.",
        f"Approve {name}",
        velero.BACKUP,
        chosen.view.backup.key,
        approving(chosen),
        join(["foresail", "backup", "adopt", owner.name, "-n", owner.namespace]),
        ("policies",),
        creates=False,
        choices=tuple(_seen(field, value) for field, value in given.items()),
        place=("approvals", "backup", name, APPROVE),
    )


async def deletion(cluster: Cluster, velero_namespace: str, name: str, fields: Fields, now: datetime) -> Act:
    """Return the approval of what the retention of a Schedule would delete."""
    args = argparse.Namespace(names=[name], selector="", all_namespaces=False, namespace=velero_namespace)
    (schedule,) = await evaluate_selected(cluster, args, now)
    waiting = retention.waiting_of(schedule)
    retained = schedule.verdict.retained
    seen = fields.get("list", retained.list_digest if retained is not None else "")[:_LONGEST]
    return _deletion(
        f"Approve deletions of Schedule {name}",
        waiting,
        velero.SCHEDULE,
        schedule.schedule.key,
        retention.approving(schedule, seen) if waiting else {},
        ["foresail", "schedule", "retention", name, "--approve", seen, "-n", velero_namespace],
        after=("policies",),
        choices=(_seen("list", seen),),
        typed=name,
        place=("approvals", "deletion", name, APPROVE),
    )


async def own_deletion(cluster: Cluster, key: Key, fields: Fields) -> Act:
    """Return the approval of what the retention of a team's schedule would delete."""
    schedule = decode(await cluster.read(NON_ADMIN_SCHEDULE, key, msgspec.Raw))
    asked = own_retention.asked_for(await own_retention.runs_of(cluster, schedule))
    seen = fields.get("list", list_digest(asked) if asked else "")[:_LONGEST]
    return _deletion(
        f"Approve deletions of schedule {key.name}",
        [deletion.name for deletion in asked],
        NON_ADMIN_SCHEDULE,
        key,
        own_retention.approving(schedule, asked, seen) if asked else {},
        ["foresail", "backup", "schedule", "retention", key.name, "--approve", seen, "-n", key.namespace],
        after=("ns", key.namespace),
        choices=(_seen("list", seen),),
        place=("ns", key.namespace, "schedule", key.name, APPROVE),
        typed=key.namespace,
        is_stamped=True,
    )


def _deletion(
    title: str,
    names: Sequence[str],
    kind: Kind,
    key: Key,
    body: Mapping[str, Any],
    words: list[str],
    **more: Any,  # noqa: ANN401 - the fields of an Act
) -> Act:
    named = ", ".join(names[:_MOST_NAMED]) + (f" and {len(names) - _MOST_NAMED} more" if names[_MOST_NAMED:] else "")
    number = counted(len(names), "backup")
    return Act(
        title,
        f"Deletes {number} with their data, after the grace period: {named}." if names else _NOTHING,
        f"Delete {number}",
        kind,
        key,
        dict(body),
        join(words),
        creates=False,
        problem="" if names else _NOTHING,
        **more,
    )


def _seen(name: str, value: str) -> Choice:
    return Choice(name, "", value, is_hidden=True)
