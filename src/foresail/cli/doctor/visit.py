"""`foresail doctor`: gather evidence, print the findings, and return 1 if there is a problem."""

import argparse
import json
import os
import sys
from collections.abc import Sequence

from foresail.cli.access.cluster import Cluster, on_cluster, settle_namespace
from foresail.cli.doctor.checks import findings
from foresail.cli.doctor.evidence import gather
from foresail.cli.doctor.finding import Finding, Grade
from foresail.cli.doctor.team import is_team, read_team, team_findings
from foresail.cli.output.messages import hint
from foresail.cli.output.terminal import GREEN, RED, YELLOW, painted

_COLOURS = {Grade.GOOD: GREEN, Grade.WARNING: YELLOW, Grade.PROBLEM: RED}


def run_doctor(args: argparse.Namespace) -> int:
    """Run the command: for the cluster, or for the namespace of a team that may read no more."""
    found, scope = on_cluster(args, lambda cluster: _examined(cluster, args))
    if args.output == "json":
        print(json.dumps([_data(finding) for finding in found], indent=2))
    else:
        print(shown(found))
        print(summary(found), file=sys.stderr)
    if scope:
        hint(f"this is about namespace {scope}; to check the cluster, you must be allowed to list Velero's Backups")
    return 1 if any(finding.grade is Grade.PROBLEM for finding in found) else 0


async def _examined(cluster: Cluster, args: argparse.Namespace) -> tuple[list[Finding], str]:
    """Return the findings, and the namespace if they are about one."""
    velero_namespace = args.namespace or os.environ.get("VELERO_NAMESPACE") or "velero"
    if not await is_team(cluster, velero_namespace):
        return findings(await gather(cluster, velero_namespace, args.service_account)), ""
    settle_namespace(args)
    return team_findings(await read_team(cluster, args.namespace)), str(args.namespace)


def shown(found: Sequence[Finding]) -> str:
    """Return the findings, each with what to do about it."""
    width = max((len(finding.about) for finding in found), default=0)
    lines = []
    for finding in found:
        grade = painted(finding.grade.value.upper().ljust(7), _COLOURS[finding.grade], sys.stdout)
        lines.append(f"{grade}   {finding.about.ljust(width)}   {finding.says}")
        if finding.fix:
            lines.append(f"{'':10}{'':{width}}   fix: {finding.fix}")
    return "\n".join(lines)


def summary(found: Sequence[Finding]) -> str:
    """Return how many are how bad."""
    bad, doubtful = (sum(finding.grade is grade for finding in found) for grade in (Grade.PROBLEM, Grade.WARNING))
    if not bad and not doubtful:
        return "No problems found."
    return f"Problems: {bad}. Warnings: {doubtful}."


def _data(finding: Finding) -> dict[str, str]:
    return {"grade": finding.grade.value, "about": finding.about, "says": finding.says, "fix": finding.fix}
