"""Protect a namespace: the label that puts it into a ProtectionClass, or without classes a Schedule of its own."""

from datetime import datetime
from shlex import join
from typing import Any

import msgspec

from foresail.api import velero
from foresail.api.core import NAMESPACE
from foresail.api.marks import EXEMPT, PROTECTION
from foresail.api.metadata import Named
from foresail.api.protection import PROTECTION_CLASS
from foresail.cli.access.cluster import Cluster, may, may_all
from foresail.cli.coverage.closing_commands import daily_name, nightly
from foresail.cli.errors import CommandError, UnreachableError
from foresail.cli.output.words import counted
from foresail.cli.protection.preview import needed, schedule_with
from foresail.console.acts import LONGEST_CRON, Act, Choice, Fields, Runs, object_of, runs_under_policies
from foresail.plan import Key


async def protect(cluster: Cluster, velero_namespace: str, namespace: str, fields: Fields, now: datetime) -> Act:
    """Return what protects a namespace from now on."""
    classes = list[str]()
    if await may(cluster, "list", PROTECTION_CLASS):
        raws = await cluster.listed_if_known(PROTECTION_CLASS)
        classes = sorted(msgspec.json.decode(raw, type=Named).metadata.name for raw in raws)
    if not classes:
        return await _daily(cluster, Key(velero_namespace, namespace), fields, now)
    name = fields.get("class", classes[0])
    is_class = name in classes and name != EXEMPT
    does, runs = f"Puts the namespace into ProtectionClass {name}.", None
    if is_class:
        does, runs = await _foreseen(cluster, velero_namespace, name, namespace, now)
    return Act(
        f"Protect namespace {namespace}",
        does,
        "Protect it",
        NAMESPACE,
        Key("", namespace),
        {"metadata": {"labels": {PROTECTION: name}}},
        join(["foresail", "protection", "set", name, "-n", namespace]),
        ("ns", namespace),
        creates=False,
        choices=(Choice("class", "Protection class", name, tuple((one, one) for one in classes)),),
        runs=runs,
        problem="" if is_class else f"there is no ProtectionClass {name}",
        place=("ns", namespace, "protect"),
    )


async def _foreseen(
    cluster: Cluster, velero_namespace: str, name: str, namespace: str, now: datetime
) -> tuple[str, Runs | None]:
    """Return which Schedule would take the namespace, and when it runs, as far as the viewer may know it."""
    does = f"Puts the namespace into ProtectionClass {name}: the operator keeps its Schedules."
    if not await may_all(cluster, "list", needed(velero_namespace)):
        return does, None
    try:
        schedule = await schedule_with(cluster, velero_namespace, name, namespace, now)
    except UnreachableError:
        raise
    except CommandError as error:
        return f"{does} Which of them is not known: {error.problem}.", None
    others = len(schedule["spec"]["template"]["includedNamespaces"]) - 1
    beside = f", with {counted(others, 'other namespace')}" if others else ""
    runs, problem = await runs_under_policies(cluster, schedule, now)
    text = f"{does} Schedule {schedule['metadata']['name']} backs it up{beside}."
    return f"{text} It does not run: {problem}" if problem else text, runs


async def _daily(cluster: Cluster, place: Key, fields: Fields, now: datetime) -> Act:
    """Return a Schedule of one namespace; `place` has Velero's namespace and the one to protect."""
    velero_namespace, namespace = place.namespace, place.name
    cron = fields.get("schedule", nightly(namespace))[:LONGEST_CRON]
    name = daily_name(namespace)
    key = Key(velero_namespace, name)
    template: dict[str, Any] = {"includedNamespaces": [namespace]}
    body = object_of(velero.SCHEDULE, key, {"schedule": cron, "template": template})
    runs, problem = await runs_under_policies(cluster, body, now)
    words = ["foresail", "schedule", "create", name, "--schedule", cron, "--include-namespaces", namespace]
    return Act(
        f"Protect namespace {namespace}",
        f"Creates Schedule {name}, which backs up the whole namespace with Velero's defaults for volumes.",
        "Create the Schedule",
        velero.SCHEDULE,
        key,
        body,
        join([*words, "-n", velero_namespace]),
        ("ns", namespace),
        choices=(Choice("schedule", "When, as a cron expression", cron),),
        runs=runs,
        problem=problem,
        place=("ns", namespace, "protect"),
    )
