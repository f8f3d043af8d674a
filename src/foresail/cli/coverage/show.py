"""`foresail coverage`: read the cluster, judge it and print the result."""

import argparse
import json
import sys
from collections import Counter
from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from typing import Any

from foresail.api.schedule_policy import SCHEDULE_POLICY
from foresail.cli.access.cluster import Cluster, on_cluster, settle_namespace
from foresail.cli.coverage.fix import Outage, first_backups, fixes, run_fixes, text_of
from foresail.cli.coverage.metrics import metrics
from foresail.cli.coverage.own_snapshot import is_administrator, not_all_namespaces, read_own_view
from foresail.cli.coverage.snapshot import read_view
from foresail.cli.errors import CommandError, UnreachableError
from foresail.cli.options.shared import read_objective
from foresail.cli.output.messages import hint
from foresail.cli.output.table import fitted, table, terminal_width
from foresail.cli.output.words import ago, compact, moment
from foresail.kube.clock import now
from foresail.proof.claims import ClaimCoverage
from foresail.proof.coverage import NamespaceCoverage, judge
from foresail.proof.reasons import Gap
from foresail.proof.safety import count_safe, safety_of
from foresail.proof.view import CoverageView
from foresail.safety.verdict import Verdict

SYSTEM = frozenset({"kube-system", "kube-public", "kube-node-lease"})
"""Namespaces that -A leaves out, as it does Velero's own; -n shows each of them."""

_HEADER = ("NAMESPACE", "VERDICT", "COVERED BY", "NEWEST GOOD BACKUP", "OBJECTIVE", "NEXT RUN", "VOLUMES", "GAPS")
_WIDE = ("NAMESPACE", "VERDICT", "CLAIM", "COVERED BY", "METHOD", "NEWEST GOOD BACKUP", "OBJECTIVE", "NEXT RUN", "GAP")
_MAY_COVER_TOO = "Schedules of administrators, which you may not list, may cover it as well"
_NEXT_STEP = """\
Foresail is not installed, and nothing above needs it. `foresail install --dry-run` shows what it would add:
  by default         one Backup for each time of a Schedule, the reason when it waits, retention, alerts
  --self-service     teams back up and restore their own namespaces
  --restore-checks   backups are restored into a sandbox and compared"""
_SHRINKS = ("COVERED BY", "NEWEST GOOD BACKUP", "NAMESPACE")


def run_coverage(args: argparse.Namespace) -> int:
    """Run the command."""
    if not args.all_namespaces:
        settle_namespace(args)
    objective = read_objective(args)
    instant = now()
    view, is_tenant, is_installed = on_cluster(args, lambda cluster: _read(cluster, args, objective, instant))
    coverages = selected(judge(view, instant), "" if args.all_namespaces else args.namespace, args.velero_namespace)
    if args.output == "json":
        print(json.dumps(document(coverages, objective, instant), indent=2))
    elif args.output == "metrics":
        print(metrics(coverages, instant))
    else:
        print(coverage_table(coverages, instant, wide=args.output == "wide", width=terminal_width(sys.stdout)))
        print(summary(coverages), file=sys.stderr)
        outage = Outage(view.velero_down, view.default_location_problem)
        listed = fixes(coverages, args.velero_namespace, instant, is_tenant=is_tenant, outage=outage)
        if args.fix:
            first = first_backups(coverages, args.velero_namespace, instant, is_tenant=is_tenant, outage=outage)
            return run_fixes(args, listed, first, outage)
        if listed:
            print(text_of(listed), file=sys.stderr)
        if not is_installed:
            print(_NEXT_STEP, file=sys.stderr)
    return int(_has_failed(coverages, args.fail_on))


def _has_failed(coverages: Iterable[NamespaceCoverage], fail_on: str | None) -> bool:
    if fail_on == "gaps":
        return any(coverage.all_gaps() for coverage in coverages)
    return fail_on == "not-safe" and not all(safety_of(coverage).verdict.is_fine for coverage in coverages)


async def _read(
    cluster: Cluster, args: argparse.Namespace, objective: timedelta | None, instant: datetime
) -> tuple[CoverageView, bool, bool]:
    """Read the cluster, or a tenant's own namespace; return also whether it is the latter, and has Foresail's kinds."""
    try:
        view = await read_view(cluster, args.velero_namespace, objective, instant)
        return view, False, await cluster.knows(SCHEDULE_POLICY)
    except UnreachableError:
        raise
    except CommandError:
        if await is_administrator(cluster, args.velero_namespace):
            raise
    if args.all_namespaces:
        raise not_all_namespaces(args.velero_namespace)
    hint(f"only NonAdminSchedules and NonAdminBackups of namespace {args.namespace} count; {_MAY_COVER_TOO}")
    return await read_own_view(cluster, args.namespace, args.velero_namespace, objective, instant), True, True


def selected(coverages: Iterable[NamespaceCoverage], namespace: str, velero_namespace: str) -> list[NamespaceCoverage]:
    """Return the namespaces to show: one, or all but those of the system."""
    if not namespace:
        return [coverage for coverage in coverages if coverage.name not in SYSTEM and coverage.name != velero_namespace]
    chosen = [coverage for coverage in coverages if coverage.name == namespace]
    if not chosen:
        raise CommandError(f"namespace {namespace} does not exist", "name an existing namespace with -n, or use -A")
    return chosen


def coverage_table(coverages: Sequence[NamespaceCoverage], instant: datetime, *, wide: bool, width: int | None) -> str:
    """Return a line for each namespace; the wide table has one for each claim and gap too."""
    if wide:
        return table(_WIDE, [line for coverage in coverages for line in _wide_lines(coverage, instant)])
    return fitted(_HEADER, [_line(coverage, instant) for coverage in coverages], width, _SHRINKS)


def _line(coverage: NamespaceCoverage, instant: datetime) -> tuple[str, ...]:
    return (
        coverage.name,
        safety_of(coverage).verdict.value,
        _schedules(coverage),
        *_when(coverage, instant),
        f"{coverage.claims_saved}/{coverage.claims_wanted}" if coverage.claims_wanted else "none",
        ",".join(dict.fromkeys(gap.reason.value for gap in coverage.all_gaps())) or "none",
    )


def _wide_lines(coverage: NamespaceCoverage, instant: datetime) -> Iterable[tuple[str, ...]]:
    safety = safety_of(coverage)
    gaps = [_text(gap) for gap in coverage.gaps] or [safety.message if safety.verdict is Verdict.UNKNOWN else ""]
    yield coverage.name, safety.verdict.value, "", _schedules(coverage), "", *_when(coverage, instant), gaps[0]
    for gap in gaps[1:]:
        yield coverage.name, "", "", "", "", "", "", "", gap
    for claim in coverage.claims:
        text = "; ".join(map(_text, claim.gaps))
        schedules = ",".join(claim.schedules) or ("<none>" if claim.is_wanted else "<no data>")
        yield coverage.name, "", claim.name, schedules, claim.method.value, *_when(claim, instant), text


def _schedules(coverage: NamespaceCoverage) -> str:
    return "<excluded>" if coverage.is_excluded else ",".join(coverage.covered_by) or "<none>"


def _when(coverage: NamespaceCoverage | ClaimCoverage, instant: datetime) -> tuple[str, str, str]:
    """Return the cells of the newest good backup, the objective and the next run."""
    backup = coverage.newest_good
    note = coverage.newest_note if isinstance(coverage, NamespaceCoverage) else ""
    return (
        f"{backup.name} ({ago(backup.started, instant)}{note})" if backup else "<none>",
        compact(coverage.objective) if coverage.objective else "n/a",
        moment(coverage.next_run, instant) if coverage.next_run else "n/a",
    )


def _text(gap: Gap) -> str:
    return f"{gap.reason.value}: {gap.message}"


def summary(coverages: Sequence[NamespaceCoverage]) -> str:
    """Return how many namespaces are safe, and how many have each other verdict; of a single one, why."""
    counted = [coverage for coverage in coverages if not coverage.is_excluded]
    if len(counted) == 1:
        safety = safety_of(counted[0])
        return f"{safety.verdict.value}: {safety.message}."
    verdicts = Counter(safety_of(namespace_coverage).verdict for namespace_coverage in counted)
    others = [
        f"{verdicts[verdict]} {verdict.value}"
        for verdict in Verdict
        if verdict is not Verdict.SAFE and verdicts[verdict]
    ]
    return ", ".join([f"{verdicts[Verdict.SAFE]} of {len(counted)} namespaces are safe", *others]) + "."


def document(coverages: Sequence[NamespaceCoverage], objective: timedelta | None, instant: datetime) -> dict[str, Any]:
    """Return the result for programs."""
    return {
        "time": instant.isoformat(),
        "objectiveSeconds": objective.total_seconds() if objective else None,
        "gaps": sum(len(coverage.all_gaps()) for coverage in coverages),
        "safe": count_safe(coverages),
        "namespaces": [_data(coverage, instant) for coverage in coverages],
    }


def _data(coverage: NamespaceCoverage, instant: datetime) -> dict[str, Any]:
    safety = safety_of(coverage)
    return {
        "namespace": coverage.name,
        "verdict": safety.verdict.value,
        "message": safety.message,
        "unknown": list(coverage.unknown),
        "excluded": coverage.is_excluded,
        **_protection(coverage, instant),
        "newestGoodBackupWithout": list(coverage.left_out),
        "newestGoodBackupBefore": list(coverage.newer_than_newest),
        "claims": [
            {"name": claim.name, "method": claim.method.value, "saved": claim.is_saved, **_protection(claim, instant)}
            for claim in coverage.claims
        ],
    }


def _protection(coverage: NamespaceCoverage | ClaimCoverage, instant: datetime) -> dict[str, Any]:
    backup = coverage.newest_good
    newest = None
    if backup is not None and backup.started is not None:
        age = (instant - backup.started).total_seconds()
        newest = {"name": backup.name, "started": backup.started.isoformat(), "ageSeconds": age}
    return {
        "schedules": list(coverage.schedules),
        "newestGoodBackup": newest,
        "objectiveSeconds": coverage.objective.total_seconds() if coverage.objective else None,
        "nextRun": coverage.next_run.isoformat() if coverage.next_run else None,
        "gaps": _gaps(coverage.gaps),
    }


def _gaps(gaps: Iterable[Gap]) -> list[dict[str, str]]:
    return [{"reason": gap.reason.value, "message": gap.message} for gap in gaps]
