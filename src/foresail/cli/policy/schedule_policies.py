"""SchedulePolicies: to which Schedules each applies, by the rules of the operator, and how it is shown."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import msgspec

from foresail.api import velero
from foresail.api.instants import instant
from foresail.api.schedule_policy import SCHEDULE_POLICY, SchedulePolicy, SchedulePolicySpec
from foresail.api.selectors import precedence
from foresail.cli.access.cluster import Cluster
from foresail.cli.errors import CommandError
from foresail.cli.options.selectors import shown_selector
from foresail.cli.output.messages import hint
from foresail.cli.output.objects import document
from foresail.cli.output.table import aligned, fitted, table
from foresail.cli.output.words import short
from foresail.cli.schedule.snapshot import EvaluatedSchedule
from foresail.schedules.policies import problem_with
from foresail.slots.policy_timing import PolicyRow, policy_for, policy_row

_any = msgspec.json.Decoder(dict[str, Any])
_SHORT = ("NAME", "PRIORITY", "SCHEDULES", "ZONE", "RETENTION", "RPO", "AGE")
_WIDE = ("SPREAD", "WINDOWS", "DEADLINE", "MAX", "RETRIES", "SELECTOR")
_SHOWN = ("selector", "priority")
_UNKNOWN = "n/a"


@dataclass(frozen=True, slots=True)
class AppliedSchedulePolicy:
    """A SchedulePolicy, and the Schedules to which it applies."""

    content: dict[str, Any]
    policy: PolicyRow | None  # None if it cannot be decoded
    problem: str  # why it cannot be decoded or used; empty if it can
    schedules: tuple[str, ...] | None  # None if they could not be read

    @property
    def kind(self) -> str:
        """Its kind."""
        return SCHEDULE_POLICY.name

    @property
    def name(self) -> str:
        """Its name."""
        return str(self.content["metadata"]["name"])

    @property
    def priority(self) -> int | None:
        """Its priority; None if it cannot be decoded."""
        return self.policy.spec.priority if self.policy is not None else None


async def read_schedule_policies(
    cluster: Cluster, evaluated: Iterable[EvaluatedSchedule]
) -> list[AppliedSchedulePolicy]:
    """Read all SchedulePolicies, the highest priority first, with those of the evaluated Schedules that each has."""
    schedules: dict[str, list[str]] = {}
    for schedule in evaluated:
        if schedule.view.policy is not None:
            schedules.setdefault(schedule.view.policy.name, []).append(schedule.schedule.key.name)
    return _by_priority(await cluster.listed_if_known(SCHEDULE_POLICY), schedules)


async def read_with_schedules(cluster: Cluster, namespace: str) -> list[AppliedSchedulePolicy]:
    """Read all SchedulePolicies, the highest priority first, with the Schedules of Velero's namespace."""
    try:
        every = await cluster.listed_if_known(SCHEDULE_POLICY)
    except CommandError as error:
        hint(f"SchedulePolicies are not shown: {error.problem}")
        return []
    return _by_priority(every, await _schedules_by_policy(cluster, namespace, every) if every else {})


async def _schedules_by_policy(
    cluster: Cluster, namespace: str, policies: Iterable[msgspec.Raw]
) -> dict[str, list[str]] | None:
    try:
        schedules = await cluster.listed(velero.SCHEDULE, namespace)
    except CommandError as error:
        hint(f"to which Schedules they apply is unknown: {error.problem}")
        return None
    rows = [row for row in (_decoded(_any.decode(policy))[0] for policy in policies) if row is not None]
    by_policy: dict[str, list[str]] = {}
    for schedule in schedules:
        metadata = _any.decode(schedule)["metadata"]
        applies = policy_for(metadata["name"], metadata.get("labels") or {}, rows)
        if applies is not None:
            by_policy.setdefault(applies.name, []).append(metadata["name"])
    return by_policy


def _by_priority(
    listed: Iterable[msgspec.Raw], schedules: Mapping[str, Sequence[str]] | None
) -> list[AppliedSchedulePolicy]:
    """Return each SchedulePolicy with its Schedules; one that cannot be decoded hides no other."""
    policies: list[AppliedSchedulePolicy] = []
    for raw in listed:
        content = {
            "apiVersion": SCHEDULE_POLICY.api_version,
            "kind": SCHEDULE_POLICY.name,
            **_any.decode(raw),
        }
        policy, problem = _decoded(content)
        applies = schedules.get(content["metadata"]["name"], ()) if schedules is not None else None
        policies.append(
            AppliedSchedulePolicy(content, policy, problem, tuple(sorted(applies)) if applies is not None else None)
        )
    return sorted(policies, key=lambda row: precedence(row.priority or 0, row.name))


def _decoded(content: dict[str, Any]) -> tuple[PolicyRow | None, str]:
    """Return a policy as the rules see it, and why it cannot be read or used."""
    try:
        row = policy_row(msgspec.convert(content, SchedulePolicy))
    except msgspec.ValidationError as error:
        return None, f"cannot be read: {error}"
    problem = problem_with(row)
    return row, f"cannot be used: {problem}" if problem else ""


def schedule_policy_table(
    policies: Sequence[AppliedSchedulePolicy], at: datetime, prefix: str, *, wide: bool, width: int | None
) -> str:
    """Return a row for each policy: its priority, to how many Schedules it applies, and what it sets."""
    rows = [(prefix + cells[0], *cells[1:]) for cells in (_cells(policy, at, wide=wide) for policy in policies)]
    header = (*_SHORT, *_WIDE) if wide else _SHORT
    return table(header, rows) if wide else fitted(header, rows, width, ("RETENTION", "NAME"))


def _cells(policy: AppliedSchedulePolicy, at: datetime, *, wide: bool) -> tuple[str, ...]:
    created = instant(str(policy.content["metadata"].get("creationTimestamp") or ""))
    age = short(at - created) if created else _UNKNOWN
    schedules = _UNKNOWN if policy.schedules is None else str(len(policy.schedules))
    if policy.policy is None:
        return (policy.name, _UNKNOWN, schedules, *(["-"] * 3), age, *(["-"] * len(_WIDE) if wide else ()))
    spec = policy.policy.spec
    rpo = spec.objective.rpo if spec.objective else "-"
    cells = (policy.name, str(spec.priority), schedules, spec.time_zone or "-", _retention_text(spec), rpo, age)
    return (*cells, *_wide_cells(policy, spec)) if wide else cells


def _wide_cells(policy: AppliedSchedulePolicy, spec: SchedulePolicySpec) -> tuple[str, ...]:
    windows = len((*(spec.windows.allowed or ()), *(spec.windows.excluded or ()))) if spec.windows else 0
    return (
        spec.spread.within if spec.spread else "-",
        str(windows or "-"),
        spec.starting_deadline or "-",
        str(spec.concurrency.max) if spec.concurrency else "-",
        str(spec.retry.attempts) if spec.retry else "-",
        _selector_text(policy),
    )


def _retention_text(spec: SchedulePolicySpec) -> str:
    """Return the rules of retention in one line."""
    if spec.retention is None:
        return "-"
    rules: dict[str, Any] = msgspec.to_builtins(spec.retention)
    return ", ".join(f"{name} {value}" for name, value in rules.items() if value and (name, value) != ("keepGood", 1))


def _selector_text(policy: AppliedSchedulePolicy) -> str:
    """Return which Schedules a policy selects."""
    selector = (policy.content.get("spec") or {}).get("selector") or {}
    names = selector.get("names")
    labels = shown_selector(selector) if {"matchLabels", "matchExpressions"} & selector.keys() else ""
    parts = [f"name in ({','.join(names)})" if names is not None else "", labels]
    return ",".join(filter(None, parts)) or "every Schedule"


def schedule_policy_described(policy: AppliedSchedulePolicy, tenants: Sequence[str]) -> str:
    """Return a policy with its spec, the SelfServicePolicies that use it, and the Schedules to which it applies."""
    lines = [
        f"Name:\t{policy.name}",
        f"Kind:\t{policy.kind}",
        f"Priority:\t{_UNKNOWN if policy.priority is None else policy.priority}",
        f"Selector:\t{_selector_text(policy)}",
        f"SelfServicePolicies:\t{', '.join(tenants) or '<none>'}",
        *([f"Problem:\t{policy.problem}"] if policy.problem else []),
        "",
    ]
    return f"{aligned(lines)}\n{rules_text(policy.content, _SHOWN)}\n\n{_schedules_text(policy.schedules)}"


def rules_text(content: Mapping[str, Any], shown: Collection[str]) -> str:
    """Return the spec of a policy of either kind, without the fields that are shown before it."""
    rules = {name: value for name, value in (content.get("spec") or {}).items() if name not in shown}
    return "\n  ".join(("Rules:", *(document(rules, "yaml").splitlines() if rules else ["{}"])))


def _schedules_text(schedules: Sequence[str] | None) -> str:
    if not schedules:
        return f"Schedules:  {'<none>' if schedules is not None else _UNKNOWN}"
    return "\n  ".join(("Schedules:", *schedules))
