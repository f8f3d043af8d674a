"""The words of `foresail coverage`; what it does is imported only when it is used."""

import argparse
from typing import TYPE_CHECKING

from foresail.cli.options.parser import examples
from foresail.cli.options.shared import add_cluster, add_objective, add_velero_namespace

if TYPE_CHECKING:
    from foresail.cli.options.parser import CommandParser


def add_coverage(commands: "argparse._SubParsersAction[CommandParser]") -> None:
    """Add `foresail coverage` to the command line."""
    one = commands.add_parser(
        "coverage",
        help="show which namespaces and volumes are backed up, and why one is not",
        description="Shows for each namespace whether it is safe, and for it and each claim which schedules cover it,"
        " the newest good backup, the next run and the gaps. Works without a running operator and changes nothing,"
        " unless --fix is confirmed. If you may not list Velero's objects, only NonAdminSchedules and NonAdminBackups"
        " of your namespace count.",
        epilog=examples(
            "foresail coverage -A",
            "foresail coverage -n shop -o wide",
            "foresail coverage -A --rpo 26h --fail-on gaps",
            "foresail coverage -A --fix",
            "foresail coverage -A -o json",
            "foresail coverage -A -o metrics",
            "foresail coverage --manifests clusters/prod --fail-on gaps",
        ),
    )
    one.set_defaults(run=_run)
    where = one.add_mutually_exclusive_group()
    where.add_argument("-A", "--all-namespaces", action="store_true", help="every namespace but those of the system")
    where.add_argument("-n", "--namespace", metavar="NAMESPACE", help="(default: the namespace of the context)")
    add_velero_namespace(one)
    add_objective(one)
    one.add_argument(
        "--fail-on",
        choices=["gaps", "not-safe"],
        help="exit with code 1 if there are gaps, or unless each namespace is safe",
    )
    one.add_argument(
        "--manifests",
        metavar="DIR",
        help="judge the Namespaces in these files by the ProtectionClass that their label names, without a cluster",
    )
    one.add_argument("--fix", action="store_true", help="run the commands that close gaps, once confirmed")
    one.add_argument("--confirm", action="store_true", help="with --fix: do not ask")
    outputs = ["table", "wide", "json", "metrics"]
    one.add_argument(
        "-o", "--output", choices=outputs, default="table", help="metrics: Prometheus' text format (%(default)s)"
    )
    add_cluster(one)


def _run(args: argparse.Namespace) -> int:
    if args.manifests:
        from foresail.cli.coverage.manifests import run_manifests

        return run_manifests(args)
    from foresail.cli.coverage.show import run_coverage

    return run_coverage(args)
