"""The words of `foresail report`; what it does is imported only when it is used."""

import argparse
from typing import TYPE_CHECKING

from foresail.cli.options.connection import add_cluster, add_velero_namespace
from foresail.cli.options.objective import add_objective
from foresail.cli.options.parser import examples

if TYPE_CHECKING:
    from foresail.cli.options.parser import CommandParser


def add_report(commands: "argparse._SubParsersAction[CommandParser]") -> None:
    """Add `foresail report` to the command line."""
    one = commands.add_parser(
        "report",
        help="write coverage, next runs, failed runs, restore checks and gaps as one HTML file",
        description="Writes one HTML file with the coverage of each namespace, the worst RPO, the next runs, the failed"
        " runs, the last restore checks, and each gap with a command."
        " An administrator's has all namespaces, a tenant's their own."
        " Changes nothing in the cluster.",
        epilog=examples(
            "foresail report --html report.html",
            "foresail report --html report.html --rpo 26h --zone Europe/Berlin",
            "foresail report --html shop.html -n shop",
        ),
    )
    one.set_defaults(run=_run)
    one.add_argument("--html", metavar="FILE", required=True, help="the file to write; - writes to standard output")
    where = one.add_mutually_exclusive_group()
    where.add_argument("-A", "--all-namespaces", action="store_true", help="every namespace but those of the system")
    where.add_argument(
        "-n",
        "--namespace",
        metavar="NAMESPACE",
        help="only this one (default: all, or that of the context if you may not list all)",
    )
    add_velero_namespace(one)
    add_objective(one)
    one.add_argument("--zone", default="UTC", help="time zone of the calendar (%(default)s)")
    add_cluster(one)


def _run(args: argparse.Namespace) -> int:
    from foresail.cli.report.report import run_report  # noqa: PLC0415 - the rest of the command starts without it

    return run_report(args)
