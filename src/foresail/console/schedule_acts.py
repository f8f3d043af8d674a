"""Create and change schedules: those of teams, and Velero's."""

import json
from collections.abc import Mapping
from datetime import datetime
from shlex import join
from typing import Any

import msgspec

from foresail.api import velero
from foresail.api.marks import PROTECTION_CLASS
from foresail.api.nonadmin import NON_ADMIN_SCHEDULE
from foresail.cli.access.cluster import Cluster
from foresail.cli.coverage.closing_commands import nightly
from foresail.cli.schedule.change import pause_request
from foresail.cli.schedule.snapshot import row_of
from foresail.cli.tenant.new_request import problem_with_name
from foresail.console.acts import (
    LONGEST_CRON,
    LONGEST_NAME,
    Act,
    Choice,
    Fields,
    object_of,
    replaced,
    runs_of,
    runs_under_policies,
    seen,
)
from foresail.console.template_fields import names_in, template_of
from foresail.plan import Key, Kind
from foresail.reporting import merge_patch

WHEN = "When, as a cron expression"
_MOST_NAMESPACES = 2_000


def own_schedule(namespace: str, fields: Fields, now: datetime) -> Act:
    """Return a new NonAdminSchedule."""
    text = fields.get("name", "nightly")
    name = text[:LONGEST_NAME]
    cron = fields.get("schedule", nightly(namespace))[:LONGEST_CRON]
    template = template_of(fields)
    runs, problem = runs_of(cron, now)
    wrong = problem_with_name(text)
    key = Key(namespace, name)
    words = ["foresail", "backup", "schedule", "create", name, "--schedule", cron, *template.options]
    return Act(
        f"Create a schedule for {namespace}",
        "Creates a NonAdminSchedule of this namespace; the policy of the namespace sets its limits.",
        "Create the schedule",
        NON_ADMIN_SCHEDULE,
        key,
        object_of(NON_ADMIN_SCHEDULE, key, {"schedule": cron, "template": {"backupSpec": dict(template.spec)}}),
        join([*words, "-n", namespace]),
        ("ns", namespace),
        choices=(Choice("name", "Name", name), Choice("schedule", WHEN, cron), *template.choices),
        runs=runs,
        is_stamped=True,
        problem=f"name: {wrong}" if wrong is not None else problem or template.problem,
        place=("ns", namespace, "schedule"),
    )


async def change_own_schedule(cluster: Cluster, key: Key, fields: Fields, now: datetime) -> Act:
    """Return a change of a NonAdminSchedule: when it runs, and what it backs up."""
    schedule = await cluster.read(NON_ADMIN_SCHEDULE, key, dict[str, Any])
    spec = _mapping(schedule.get("spec"))
    before = _mapping(_mapping(spec.get("template")).get("backupSpec"))
    cron = fields.get("schedule", str(spec.get("schedule", "")))[:LONGEST_CRON]
    template = template_of(fields, before)
    runs, problem = runs_of(cron, now)
    wanted = {**spec, "schedule": cron, "template": {**_mapping(spec.get("template")), "backupSpec": template.spec}}
    uid = fields.get("uid", str(schedule["metadata"].get("uid", "")))
    return change(
        NON_ADMIN_SCHEDULE,
        key,
        schedule,
        merge_patch(spec, wanted),
        (Choice("schedule", WHEN, cron), *template.choices, seen(uid)),
        title=f"Change schedule {key.name}",
        after=("ns", key.namespace),
        place=("ns", key.namespace, "schedule", key.name, "edit"),
        runs=runs,
        is_stamped=True,
        problem=problem or template.problem,
    )


async def velero_schedule(
    cluster: Cluster, velero_namespace: str, namespace: str, fields: Fields, now: datetime
) -> Act:
    """Return a new Schedule of Velero, of one namespace or more."""
    wanted = fields.get("name", f"{namespace}-nightly")
    name = wanted[:LONGEST_NAME]
    cron = fields.get("schedule", nightly(namespace))[:LONGEST_CRON]
    text = fields.get("namespaces", namespace)[:_MOST_NAMESPACES]
    names = names_in(text)
    template = template_of(fields)
    key = Key(velero_namespace, name)
    spec = {"schedule": cron, "template": {"includedNamespaces": names, **template.spec}}
    body = object_of(velero.SCHEDULE, key, spec)
    wrong = problem_with_name(wanted)
    problem = f"name: {wrong}" if wrong is not None else template.problem or _problem_of(names)
    runs = None
    if not problem:
        runs, problem = await runs_under_policies(cluster, body, now)
    words = ["foresail", "schedule", "create", name, "--schedule", cron, f"--include-namespaces={','.join(names)}"]
    return Act(
        "Create a Schedule",
        "Creates a Schedule of Velero.",
        "Create the Schedule",
        velero.SCHEDULE,
        key,
        body,
        join([*words, *template.options, "-n", velero_namespace]),
        ("ns", namespace),
        choices=(
            Choice("name", "Name", name),
            Choice("schedule", WHEN, cron),
            Choice("namespaces", "Namespaces", text),
            *template.choices,
        ),
        runs=runs,
        problem=problem,
        place=("ns", namespace, "new-schedule"),
    )


async def change_velero_schedule(
    cluster: Cluster, velero_namespace: str, place: Key, fields: Fields, now: datetime
) -> Act:
    """Return a change of a Schedule; `place` has the namespace whose page follows, and the Schedule."""
    key = Key(velero_namespace, place.name)
    schedule = await cluster.read(velero.SCHEDULE, key, dict[str, Any])
    metadata = _mapping(schedule.get("metadata"))
    spec = _mapping(schedule.get("spec"))
    before = _mapping(spec.get("template"))
    cron = fields.get("schedule", str(spec.get("schedule", "")))[:LONGEST_CRON]
    template = template_of(fields, before)
    wanted = {**spec, "schedule": cron, "template": template.spec}
    of_class = str(_mapping(metadata.get("annotations")).get(PROTECTION_CLASS, ""))
    uid = fields.get("uid", str(metadata.get("uid", "")))
    problem = template.problem
    if of_class:
        problem = f"the operator keeps this Schedule for ProtectionClass {of_class}: change the class instead"
    runs = None
    if not problem:
        runs, problem = await runs_under_policies(cluster, {**schedule, "spec": wanted}, now)
    return change(
        velero.SCHEDULE,
        key,
        schedule,
        merge_patch(spec, wanted),
        (Choice("schedule", WHEN, cron), *template.choices, seen(uid)),
        title=f"Change Schedule {key.name}",
        after=("ns", place.namespace),
        place=("ns", place.namespace, "change-schedule", key.name),
        runs=runs,
        problem=problem,
    )


async def unpause(cluster: Cluster, velero_namespace: str, place: Key, now: datetime) -> Act:
    """Return the change that lets a paused Schedule run again."""
    key = Key(velero_namespace, place.name)
    raw = await cluster.read(velero.SCHEDULE, key, msgspec.Raw)
    schedule = msgspec.json.decode(raw, type=dict[str, Any])
    spec = _mapping(schedule.get("spec"))
    request = pause_request(row_of(raw), paused=False, skip=None)
    runs, problem = await runs_under_policies(cluster, {**schedule, "spec": {**spec, "paused": False}}, now)
    uid = str(_mapping(schedule.get("metadata")).get("uid", ""))
    body = request.body or {}
    return Act(
        f"Unpause {place.name}",
        f"Lets Schedule {place.name} run again. A run that is due now starts at once, unless the Schedule skips it.",
        "Unpause it",
        velero.SCHEDULE,
        key,
        {**body, "metadata": {**body.get("metadata", {}), "uid": uid}},
        join(["foresail", "schedule", "unpause", place.name, "-n", velero_namespace]),
        ("ns", place.namespace),
        creates=False,
        runs=runs,
        problem=problem if spec.get("paused") else f"Schedule {place.name} is not paused",
        place=("ns", place.namespace, "unpause", place.name),
    )


def change(
    kind: Kind,
    key: Key,
    current: Mapping[str, Any],
    patch: dict[str, Any],
    choices: tuple[Choice, ...],
    *,
    problem: str,
    **more: Any,  # noqa: ANN401 - the fields of an Act
) -> Act:
    """Return the merge patch of the very object that the viewer has seen."""
    uid = str(_mapping(current.get("metadata")).get("uid", ""))
    seen_uid = next(choice.value for choice in choices if choice.is_hidden)
    problem = replaced(kind, key, uid, seen_uid) or problem or ("" if patch else "Nothing differs from what is there.")
    where = ("-n", key.namespace) if kind.namespaced else ()
    words = ["kubectl", "patch", f"{kind.plural}.{kind.group}", key.name, *where, "--type", "merge"]
    return Act(
        does=f"Changes {kind.name} {key}; backups that exist stay.",
        label="Save the change",
        kind=kind,
        key=key,
        body={"metadata": {"uid": uid}, "spec": patch},
        command=join([*words, "-p", json.dumps({"spec": patch}, separators=(",", ":"))]),
        creates=False,
        choices=choices,
        problem=problem,
        **more,
    )


def _problem_of(namespaces: list[str]) -> str:
    if not namespaces:
        return "namespaces: name at least one"
    wrong = next((name for name in namespaces if problem_with_name(name) is not None), "")
    return f"namespaces: {wrong[:100]!r} is not the name of a namespace" if wrong else ""


def _mapping(value: object) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}
