"""`foresail doctor`: gather evidence, print the findings, and return 1 if there is a problem."""

import argparse
import json
import sys
from collections.abc import Sequence

from foresail.cli.access.cluster import on_cluster
from foresail.cli.doctor.checks import findings
from foresail.cli.doctor.evidence import gather
from foresail.cli.doctor.finding import Finding, Grade
from foresail.cli.output.terminal import GREEN, RED, YELLOW, painted

_COLOURS = {Grade.GOOD: GREEN, Grade.WARNING: YELLOW, Grade.PROBLEM: RED}


def run_doctor(args: argparse.Namespace) -> int:
    """Run the command."""
    seen = on_cluster(args, lambda cluster: gather(cluster, args.namespace, args.service_account))
    found = findings(seen)
    if args.output == "json":
        print(json.dumps([_data(each) for each in found], indent=2))
    else:
        print(shown(found))
        print(summary(found), file=sys.stderr)
    return 1 if any(each.grade is Grade.PROBLEM for each in found) else 0


def shown(found: Sequence[Finding]) -> str:
    """Return the findings, each with what to do about it."""
    width = max((len(each.about) for each in found), default=0)
    lines = []
    for each in found:
        grade = painted(each.grade.value.upper().ljust(7), _COLOURS[each.grade], sys.stdout)
        lines.append(f"{grade}   {each.about.ljust(width)}   {each.says}")
        if each.fix:
            lines.append(f"{'':10}{'':{width}}   fix: {each.fix}")
    return "\n".join(lines)


def summary(found: Sequence[Finding]) -> str:
    """Return how many are how bad."""
    bad, doubtful = (sum(each.grade is grade for each in found) for grade in (Grade.PROBLEM, Grade.WARNING))
    if not bad and not doubtful:
        return "No problems found."
    return f"Problems: {bad}. Warnings: {doubtful}."


def _data(each: Finding) -> dict[str, str]:
    return {"grade": each.grade.value, "about": each.about, "says": each.says, "fix": each.fix}
