"""The words of `foresail doctor`; what it does is imported only when it is used."""

import argparse
from typing import TYPE_CHECKING

from foresail.cli.options.parser import examples
from foresail.cli.options.shared import add_velero_and_cluster

if TYPE_CHECKING:
    from foresail.cli.options.parser import CommandParser


def add_doctor(commands: "argparse._SubParsersAction[CommandParser]") -> None:
    """Add `foresail doctor` to the command line."""
    one = commands.add_parser(
        "doctor",
        help="find problems of Velero and Foresail in a cluster",
        description="Checks Velero and Foresail in a cluster, and reports each problem with its cause and fix. Works"
        " without a running operator and changes nothing. If you may not read Velero's Backups, it checks your own"
        " namespace: whether self-service works there, and why requests wait. Exit code 1 if there is a problem.",
        epilog=examples("foresail doctor", "foresail doctor -n backup", "foresail doctor -o json"),
    )
    add_velero_and_cluster(one, "a team's own, or Velero's")
    one.set_defaults(run=_run, namespace=None)  # a team's own is that of its kube context
    one.add_argument(
        "--service-account",
        metavar="NAMESPACE/NAME",
        help="ServiceAccount of the operator whose permissions are checked (default: that of its Deployment)",
    )
    one.add_argument("-o", "--output", choices=["table", "json"], default="table", help="(%(default)s)")


def _run(args: argparse.Namespace) -> int:
    from foresail.cli.doctor.visit import run_doctor

    return run_doctor(args)
