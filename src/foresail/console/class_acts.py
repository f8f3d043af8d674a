"""Create and change ProtectionClasses: each form shows what the class would do, by the preview of the command line."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import msgspec

from foresail.api.marks import EXEMPT
from foresail.api.protection import (
    LONGEST_CLASS,
    MOST_TOGETHER,
    PROTECTION_CLASS,
    ProtectionClass,
    ProtectionClassSpec,
)
from foresail.cli.access.cluster import Cluster, may_all
from foresail.cli.coverage.closing_commands import nightly
from foresail.cli.errors import CommandError, UnreachableError
from foresail.cli.protection.preview import Snapshot, effects, groups_of, needed, read_snapshot, schedule_of
from foresail.cli.tenant.new_request import problem_with_name
from foresail.console.acts import (
    LONGEST_CRON,
    LONGEST_NAME,
    Act,
    Choice,
    Fields,
    Runs,
    runs_of,
    runs_under_policies,
    seen,
)
from foresail.console.schedule_acts import WHEN, change
from foresail.console.template_fields import Template, template_of
from foresail.plan import Key
from foresail.reporting import merge_patch

_NO_YES = (("no", "no"), ("yes", "yes"))
_DEFAULTS = ProtectionClassSpec(schedule="@daily")
_NUMBER = re.compile(r"[0-9]{1,3}")
_AFTER = ("protection",)
_UNREAD = (
    "What it would do is not shown: you may not list namespaces, policies, Deployments, and Velero's Schedules and"
    " Backups."
)


@dataclass(frozen=True, slots=True)
class _Form:
    """What the fields say: the spec of a class, the fields again, and why they cannot be used."""

    spec: dict[str, Any]
    choices: tuple[Choice, ...]
    problem: str


@dataclass(frozen=True, slots=True)
class _Foreseen:
    """What a class would do, when the first of its Schedules runs, and why it cannot be used."""

    effects: tuple[tuple[str, str], ...] = ()
    runs: Runs | None = None
    problem: str = ""


async def new_class(cluster: Cluster, velero_namespace: str, fields: Fields, now: datetime) -> Act:
    """Return a new ProtectionClass."""
    text = fields.get("name", "nightly")
    name = text[:LONGEST_NAME]
    snapshot = await _snapshot(cluster, velero_namespace, now)
    form = _form_of({"schedule": nightly(name), **fields}, {}, snapshot)
    choices = (Choice("name", "Name", name), *form.choices)
    form = _Form(form.spec, choices, _name_problem(text, snapshot) or form.problem)
    foreseen = await _foreseen(cluster, snapshot, name, form, now)
    kind = {"apiVersion": PROTECTION_CLASS.api_version, "kind": PROTECTION_CLASS.name}
    return Act(
        "Create a ProtectionClass",
        "The operator keeps Velero Schedules for the namespaces of the class, which name it in a label.",
        "Create the class",
        PROTECTION_CLASS,
        Key("", name),
        {**kind, "metadata": {"name": name}, "spec": form.spec},
        "foresail protection preview -f FILE; kubectl create -f FILE",
        _AFTER,
        choices=form.choices,
        runs=foreseen.runs,
        effects=foreseen.effects,
        problem=foreseen.problem,
        place=("protection", "new-class"),
    )


async def change_class(cluster: Cluster, velero_namespace: str, name: str, fields: Fields, now: datetime) -> Act:
    """Return a change of a ProtectionClass."""
    key = Key("", name)
    current = await cluster.read(PROTECTION_CLASS, key, dict[str, Any])
    before: dict[str, Any] = current.get("spec") or {}
    snapshot = await _snapshot(cluster, velero_namespace, now)
    form = _form_of(fields, before, snapshot)
    foreseen = await _foreseen(cluster, snapshot, name, form, now)
    uid = fields.get("uid", str(current["metadata"].get("uid", "")))
    return change(
        PROTECTION_CLASS,
        key,
        current,
        merge_patch(before, form.spec),
        (*form.choices, seen(uid)),
        title=f"Change ProtectionClass {name}",
        after=_AFTER,
        place=("protection", "class", name),
        runs=foreseen.runs,
        effects=foreseen.effects,
        problem=foreseen.problem,
    )


async def _snapshot(cluster: Cluster, velero_namespace: str, now: datetime) -> Snapshot | str:
    """Return what a preview is made from, or why there is none."""
    if not await may_all(cluster, "list", needed(velero_namespace)):
        return _UNREAD
    try:
        return await read_snapshot(cluster, velero_namespace, now)
    except UnreachableError:
        raise
    except CommandError as error:
        return f"What it would do is not known: {error.sentence}"


async def _foreseen(cluster: Cluster, snapshot: Snapshot | str, name: str, form: _Form, now: datetime) -> _Foreseen:
    """Return what the class of a form would do, by the operator's own rules."""
    runs, problem = runs_of(form.spec["schedule"], now)
    if form.problem or problem:
        return _Foreseen(problem=form.problem or problem)
    if isinstance(snapshot, str):
        return _Foreseen((("", snapshot),), runs)
    try:
        given = msgspec.convert({"metadata": {"name": name}, "spec": form.spec}, ProtectionClass)
        known = snapshot.with_class(given)
        told = tuple(effects(known, name, now))
    except CommandError as error:
        return _Foreseen(problem=error.sentence)
    except msgspec.ValidationError as error:
        return _Foreseen(problem=f"the class cannot be used: {error}")
    groups = groups_of(known, name, now)
    if not groups:
        return _Foreseen(told, runs)
    schedule = schedule_of(known, name, *min(groups.items()))
    runs, problem = await runs_under_policies(cluster, schedule, now)
    return _Foreseen(told, runs, problem)


def _form_of(fields: Fields, before: Mapping[str, Any], snapshot: Snapshot | str) -> _Form:
    """Return what the fields describe, on top of the spec of a class that is changed."""
    stored = _stored(before)
    texts = {name: fields.get(name, text).strip()[:LONGEST_CRON] for name, text in stored.items()}
    template = template_of(fields, before.get("template") or {})
    policies = _policies(snapshot, stored["policy"])
    choices = (
        Choice("schedule", WHEN, texts["schedule"]),
        Choice("policy", "SchedulePolicy", texts["policy"], policies, is_required=False),
        Choice("together", f"Namespaces in one backup, 1 to {MOST_TOGETHER}", texts["together"]),
        Choice("default", "For namespaces that name no class", texts["default"], _NO_YES),
        Choice("restores", "Teams may restore from its backups", texts["restores"], _NO_YES),
        *template.choices,
    )
    values = {
        "schedule": ("schedule", texts["schedule"]),
        "policy": ("schedulePolicy", texts["policy"] or None),
        "together": ("namespacesPerBackup", _number(texts["together"])),
        "default": ("default", texts["default"] == "yes"),
        "restores": ("restore", {**(before.get("restore") or {}), "byTenants": texts["restores"] == "yes"}),
    }
    changes = dict(value for name, value in values.items() if texts[name] != stored[name])
    if template.spec != (before.get("template") or {}):
        changes["template"] = dict(template.spec)
    spec = {name: value for name, value in {**before, **changes}.items() if value is not None}
    return _Form({"schedule": "", **spec}, choices, _problem(texts, policies, template))


def _stored(spec: Mapping[str, Any]) -> dict[str, str]:
    """Return the fields as a class has them, with the defaults of the API server."""
    restore = spec.get("restore") or {}
    return {
        "schedule": str(spec.get("schedule", "")),
        "policy": str(spec.get("schedulePolicy") or ""),
        "together": str(spec.get("namespacesPerBackup", _DEFAULTS.namespaces_per_backup)),
        "default": _word(spec.get("default", _DEFAULTS.default)),
        "restores": _word(restore.get("byTenants", _DEFAULTS.restore.by_tenants)),
    }


def _number(text: str) -> int:
    """Return how many namespaces share a backup; 0 if a text is no such number."""
    number = int(text) if _NUMBER.fullmatch(text) else 0
    return number if number <= MOST_TOGETHER else 0


def _problem(texts: Mapping[str, str], policies: tuple[tuple[str, str], ...], template: Template) -> str:
    """Return which field cannot be used, and why; empty if all can."""
    policy = texts["policy"]
    if policy and problem_with_name(policy) is not None:
        return f"policy: {policy[:100]!r} is not the name of a SchedulePolicy"
    if policies and policy not in dict(policies):
        return f"policy: there is no SchedulePolicy {policy}"
    if not _number(texts["together"]):
        return f"namespaces in one backup: write a number from 1 to {MOST_TOGETHER}"
    if not {texts["default"], texts["restores"]} <= {"no", "yes"}:
        return "default and restores: choose no or yes"
    return template.problem


def _name_problem(name: str, snapshot: Snapshot | str) -> str:
    """Return why a class cannot have a name; empty if it can."""
    wrong = problem_with_name(name)
    if wrong is not None:
        return f"name: {wrong}"
    if len(name) > LONGEST_CLASS or name == EXEMPT:
        return f"name: write at most {LONGEST_CLASS} characters, and not {EXEMPT}, which means an exemption"
    is_taken = isinstance(snapshot, Snapshot) and name in snapshot.classes.rows
    return f"name: ProtectionClass {name} exists; change that, or choose another name" if is_taken else ""


def _policies(snapshot: Snapshot | str, before: str) -> tuple[tuple[str, str], ...]:
    """Return the SchedulePolicies to choose from; none if they are not known, and the viewer writes a name."""
    if isinstance(snapshot, str):
        return ()
    names = sorted({policy.name for policy in snapshot.policies} | ({before} if before else set()))
    return (("", "the one that selects its Schedules"), *((name, name) for name in names))


def _word(value: object) -> str:
    return "yes" if value else "no"
