"""`foresail check get`, `run` and `explain`."""

import argparse
import asyncio
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

import msgspec

from foresail.api.core import CONFIG_MAP
from foresail.api.instants import instant, stamp
from foresail.api.marks import CHECK_LABEL, CHECK_NOW
from foresail.api.restore_check import RESTORE_CHECK
from foresail.cli.access.cluster import Cluster, on_cluster
from foresail.cli.access.together import in_thread
from foresail.cli.errors import CommandError, UsageError
from foresail.cli.options.parser import CLIENT
from foresail.cli.options.shared import is_table
from foresail.cli.options.values import deadline
from foresail.cli.output.messages import interruptible
from foresail.cli.output.objects import Request, as_text, shown
from foresail.cli.output.table import aligned, fitted, table, terminal_width
from foresail.cli.output.words import counted, short
from foresail.kube.clock import now
from foresail.plan import Key
from foresail.proof.checks.reasons import Reason

_PAUSE = 2.0
_SETTLED = timedelta(seconds=5)  # until then a condition may be older than the request
_UNSERVED = timedelta(minutes=1)

BLOCKED = {
    Reason.NOT_ALLOWED: "ask a cluster administrator",
    Reason.QUOTA_EXCEEDED: "delete a RestoreCheck, or ask a cluster administrator",
    Reason.NO_BACKUP: "correct spec.backups, or wait until the Schedule has a Completed Backup",
    Reason.DATA_DISABLED: "set proof.data.enabled in the chart's values, or spec.depth to Objects",
    Reason.INVALID_SCHEDULE: "correct spec.schedule",
    Reason.SUSPENDED: "set spec.suspend to false",
}
"""Reasons why a requested check does not start, and what to do."""

_WAITS = (Reason.TOO_SOON, Reason.WAITING_FOR_TURN, Reason.SANDBOX_TERMINATING)
"""Reasons why it does not start yet."""


@dataclass(frozen=True)
class Progress:
    """How far a requested check is."""

    has_ended: bool = False
    has_begun: bool = False
    text: str = ""
    """Why it has not begun yet."""


def condition(check: Mapping[str, Any], kind: str) -> Mapping[str, Any]:
    """Return a condition of a check; empty if it has none of this type."""
    conditions = (check.get("status") or {}).get("conditions") or ()
    return next((item for item in conditions if item["type"] == kind), {})


def progress(key: Key, check: Mapping[str, Any], request: str, waited: timedelta) -> Progress:
    """Return how far a check is, this long after the request; raise the reason if it cannot start."""
    status = check.get("status") or {}
    if status.get("handledRequest") == request:
        return Progress(has_ended=not status.get("run"), has_begun=True)
    ready = condition(check, "Ready")
    reason = ready.get("reason")
    message = str(ready.get("message", ""))
    if reason in BLOCKED and waited >= _SETTLED:
        raise CommandError(f"check {key} does not start: {message}", BLOCKED[reason])
    if reason in _WAITS:
        return Progress(text=f"{message}.")
    if not status.get("run") and waited >= _UNSERVED:
        raise CommandError(
            f"check {key} does not start: no operator has seen the request for a minute",
            "see with kubectl get pods -n VELERO_NAMESPACE whether Deployment foresail-checks runs",
        )
    return Progress()


async def wait_for_result(
    cluster: Cluster, key: Key, request: str, before: Mapping[str, Any], until: datetime | None
) -> int:
    """Wait for the result of the run that serves a request; return 0 for a pass, raise the problem if not."""
    began = now()
    said = ""
    own = ""
    earlier = {before.get("id")}
    while True:
        document = await cluster.read(RESTORE_CHECK, key, dict[str, Any])
        status = document.get("status") or {}
        last = status.get("last") or {}
        run = (status.get("run") or {}).get("id", "")
        step = progress(key, document, request, now() - began) if not own else Progress(has_begun=True)
        if step.has_begun:
            own = own or run
        else:
            earlier |= {last.get("id"), run}
        if step.has_ended or (own and run != own):
            is_own = last.get("id") == own if own else _is_since(last, request) and last.get("id") not in earlier
            return report_result(key, last if is_own else {})
        _report_wait(key, step, said, until)
        said = step.text
        await asyncio.sleep(_PAUSE)


def _report_wait(key: Key, step: Progress, said: str, until: datetime | None) -> None:
    """Print why a check has not begun yet, once; raise that the time is over."""
    if step.text and step.text != said:
        print(step.text, file=sys.stderr)
    if until is not None and now() >= until:
        state = "running" if step.has_begun else "not started"
        hint = f"see foresail check explain {key.name} -n {key.namespace}"
        raise CommandError(f"check {key}: timed out; it is {state}", hint)


def _is_since(last: Mapping[str, Any], request: str) -> bool:
    """Whether a run that was never seen running started after the request, whose value is its time."""
    started = instant(str(last.get("started", "")))
    requested = instant(request)
    return started is not None and requested is not None and started >= requested


def report_result(key: Key, last: Mapping[str, Any]) -> int:
    """Return 0 if a check has passed; otherwise say why not."""
    if last.get("result") == "Pass":
        print(f"Check {key} passed: {last.get('message')}.", file=sys.stderr)
        return 0
    cause = f"{last.get('reason', 'NoResult')}: {last.get('message', 'its Backup was deleted')}"
    raise CommandError(f"check {key} failed: {cause}", f"see foresail check explain {key.name} -n {key.namespace}")


_SHORT = ("NAME", "RESULT", "REASON", "BACKUP", "FOUND", "SECONDS", "CHECKED", "PASSED", "STATUS")

Check = Mapping[str, Any]
CheckCells = tuple[Key, tuple[str, ...]]
"""A RestoreCheck with the cells of the short table."""


class _Evidence(msgspec.Struct, frozen=True):
    data: dict[str, str] | None = None


def get(args: argparse.Namespace) -> int:
    """Print RestoreChecks with their last results."""
    if args.names and args.all_namespaces:
        raise UsageError(f"RestoreCheck {args.names[0]}: names cannot be combined with -A", "specify -n NAMESPACE")
    items = on_cluster(args, lambda cluster: _read(cluster, args))
    if not is_table(args.output):
        print(as_text(items, args.output))
    elif items:
        width = terminal_width(sys.stdout)
        is_wide = args.output == "wide"
        print(check_table(items, now(), wide=is_wide, width=width, with_namespace=args.all_namespaces))
    else:
        place = "" if args.all_namespaces else f" in namespace {args.namespace}"
        print(f"No RestoreChecks found{place}", file=sys.stderr)
    return 0


def run(args: argparse.Namespace) -> int:
    """Start a check and, with --wait, wait for its result."""
    text = "Stopped waiting. The check continues in the cluster."
    return interruptible(lambda: on_cluster(args, lambda cluster: _run(cluster, args)), text)


def explain(args: argparse.Namespace) -> int:
    """Print the last result with everything that was found."""
    print(on_cluster(args, lambda cluster: _explain(cluster, args)))
    return 0


def check_table(
    checks: Sequence[Check], at: datetime, *, wide: bool, width: int | None, with_namespace: bool = False
) -> str:
    """Return a row for each check."""
    header = (*(("NAMESPACE",) if with_namespace else ()), *_SHORT, *(("MESSAGE",) if wide else ()))
    rows = [
        (
            *((check["metadata"]["namespace"],) if with_namespace else ()),
            *check_cells(check, at),
            *((_last(check).get("message", ""),) if wide else ()),
        )
        for check in checks
    ]
    return table(header, rows) if wide else fitted(header, rows, width, ("BACKUP", "NAME", "NAMESPACE"))


def check_cells(check: Check, at: datetime) -> tuple[str, ...]:
    """Return the cells of the short table."""
    last = _last(check)
    return (
        check["metadata"]["name"],
        last.get("result", "-"),
        last.get("reason", "-"),
        last.get("backup", "-"),
        f"{last.get('itemsFound', 0)}/{last.get('itemsExpected', 0)}" if last else "-",
        str(last.get("restoreSeconds", "-")),
        _age(last.get("completed"), at),
        _age((check.get("status") or {}).get("lastPassed"), at),
        condition(check, "Ready").get("reason", "-"),
    )


def explained(check: Check, record: Mapping[str, Any]) -> str:
    """Return a check in words: its state, its last result and each problem."""
    lines = [f"{name}:\t{value}" for name, value in facts(check)]
    bad = [f"  {reason}: {message}" if reason else f"  {message}" for reason, message in problems(check, record)]
    return aligned(lines) + ("\nProblems:\n" + "\n".join(bad) if bad else "")


def facts(check: Check) -> list[tuple[str, str]]:
    """Return the state of a check and its last result, each with its name."""
    last = _last(check)
    ready = condition(check, "Ready")
    rows = [
        ("Name", str(check["metadata"]["name"])),
        ("Status", f"{ready.get('reason', 'not served yet')}: {ready.get('message', 'no operator has seen it')}"),
    ]
    if last:
        sandboxes = counted(last.get("namespaces", 0), "sandbox", "sandboxes")
        rows += [
            ("Result", f"{last['result']} ({last['reason']})"),
            ("Backup", str(last["backup"])),
            ("Checked", f"{last['started']} to {last['completed']}"),
            ("Restore", f"{last.get('restoreSeconds', '-')} s into {sandboxes}"),
            ("Objects", f"{_counts(last)}{_not_checked(last.get('itemsNotChecked', 0))}"),
            *_data_facts(last),
            ("Evidence", f"ConfigMap {last.get('evidence', '-')} in Velero's namespace"),
        ]
    return rows


def _not_checked(number: int) -> str:
    """Return how many objects were not compared, and which those are; empty if there are none."""
    return f"; {number} not checked: cluster-scoped, or of kinds that a sandbox does not take" if number else ""


def _data_facts(last: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Return what only a check with depth Data found."""
    rows = []
    if "fence" in last:
        reached = f": a pod reached {', '.join(last['reached'])}" if last.get("reached") else ""
        rows.append(("Fence", ("NOT ENFORCED" if last["fence"] == "NotEnforced" else "enforced") + reached))
    if "podsReady" in last:
        after = f" after {last['readySeconds']} s" if "readySeconds" in last else ""
        rows.append(("Pods", f"{last['podsReady']} ready{after}"))
    if "assertionExitCode" in last:
        rows.append(("Assertion", f"exit code {last['assertionExitCode']}"))
    return rows


def problems(check: Check, record: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Return each problem of the last result with its reason; how many are left out comes last, without one."""
    last = _last(check)
    listed = record.get("problems") or last.get("problems") or ()
    pairs = [(str(item.get("reason")), str(item.get("message"))) for item in listed]
    if last and not pairs and last["result"] == "Fail":
        pairs = [(str(last["reason"]), str(last["message"]))]
    more = record.get("problemCount", 0) - len(pairs)
    return [*pairs, ("", f"and {more} more")] if more > 0 else pairs


async def _read(cluster: Cluster, args: argparse.Namespace) -> list[dict[str, Any]]:
    if args.names:
        return [await read_check(cluster, Key(args.namespace, name)) for name in args.names]
    return await read_checks(cluster, "" if args.all_namespaces else args.namespace)


async def _run(cluster: Cluster, args: argparse.Namespace) -> int:
    key = Key(args.namespace, args.name)
    until = deadline(args.timeout)
    before = await cluster.read(RESTORE_CHECK, key, dict[str, Any])
    if (before.get("spec") or {}).get("suspend"):
        raise CommandError(f"RestoreCheck {key} is suspended", "set spec.suspend to false")
    value = stamp(now())
    body = {"metadata": {"annotations": {CHECK_NOW: value}}}
    if args.dry_run == CLIENT:
        print(shown([Request("PATCH", RESTORE_CHECK, key, body)], "yaml"))
        return 0
    await cluster.merge(RESTORE_CHECK, key, body, dry_run=bool(args.dry_run))
    print(f"Check {key} {'would be requested (server dry run)' if args.dry_run else 'requested'}.", file=sys.stderr)
    if args.dry_run or not args.wait:
        return 0
    return await wait_for_result(cluster, key, value, _last(before), until)


async def _explain(cluster: Cluster, args: argparse.Namespace) -> str:
    check = await read_check(cluster, Key(args.namespace, args.name))
    evidence = "" if is_of_tenant(check) else await read_evidence(cluster, args.namespace, check)
    return explained(check, read_record(evidence))


async def read_check(cluster: Cluster, key: Key) -> dict[str, Any]:
    """Read one RestoreCheck."""
    return await cluster.read(RESTORE_CHECK, key, dict[str, Any])


async def read_checks(cluster: Cluster, namespace: str) -> list[dict[str, Any]]:
    """Read all RestoreChecks of a namespace, or of the cluster if that is empty."""
    return [msgspec.json.decode(raw) for raw in await cluster.listed(RESTORE_CHECK, namespace)]


async def read_check_rows(cluster: Cluster, namespace: str, at: datetime) -> list[CheckCells]:
    """Read the cells of all RestoreChecks of a namespace, or of the cluster; of tenants there may be many."""
    items = await cluster.listed(RESTORE_CHECK, namespace)
    return await in_thread(lambda: [_row(msgspec.json.decode(raw), at) for raw in items])


def _row(check: Check, at: datetime) -> CheckCells:
    meta = check["metadata"]
    return Key(meta["namespace"], meta["name"]), check_cells(check, at)


async def read_evidence(cluster: Cluster, velero_namespace: str, check: Check) -> str:
    """Return the record of the last run as it was written; empty if there is none."""
    name = _last(check).get("evidence", "")
    evidence = await cluster.if_there(CONFIG_MAP, Key(velero_namespace, name), _Evidence) if name else None
    return (evidence.data or {}).get("record.json", "") if evidence is not None else ""


async def read_history(cluster: Cluster, velero_namespace: str, check: Check) -> list[dict[str, Any]]:
    """Return the records of the runs whose evidence is kept, the newest first."""
    labels = f"{CHECK_LABEL}={check['metadata']['uid']}"
    listed = await cluster.listed(CONFIG_MAP, velero_namespace, labels)
    maps = [msgspec.json.decode(raw, type=_Evidence) for raw in listed]
    items = [read_record((evidence.data or {}).get("record.json", "")) for evidence in maps]
    return sorted(filter(None, items), key=lambda item: str(item.get("started", "")), reverse=True)


def is_of_tenant(check: Check) -> bool:
    """Whether a check is of a tenant: its evidence is in Velero's namespace, which tenants cannot read."""
    chosen = (check.get("spec") or {}).get("backups") or {}
    return "nonAdminSchedule" in chosen or "nonAdminBackups" in chosen


def read_record(text: str) -> dict[str, Any]:
    """Return a record decoded; empty if it cannot be."""
    try:
        return msgspec.json.decode(text or "{}", type=dict[str, Any])
    except msgspec.DecodeError:
        return {}


def _counts(last: Mapping[str, Any]) -> str:
    return f"{last.get('itemsFound', 0)} of {last.get('itemsExpected', 0)} found"


def _last(check: Check) -> Mapping[str, Any]:
    return (check.get("status") or {}).get("last") or {}


def _age(text: str | None, at: datetime) -> str:
    moment = instant(text) if text else None
    return short(at - moment) if moment is not None else "-"
