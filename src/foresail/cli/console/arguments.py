"""The words of `foresail console`; what it does is imported only when it is used."""

import argparse
from typing import TYPE_CHECKING

from foresail.cli.options.connection import add_cluster, add_velero_namespace
from foresail.cli.options.objective import add_objective
from foresail.cli.options.parser import examples
from foresail.cli.options.values import whole_number

if TYPE_CHECKING:
    from foresail.cli.options.parser import CommandParser


def add_console(commands: "argparse._SubParsersAction[CommandParser]") -> None:
    """Add `foresail console` to the command line."""
    one = commands.add_parser(
        "console",
        help="serve the same answers to your own browser, with your own rights",
        description="Serves pages on 127.0.0.1 to your own browser until Ctrl-C. Every request to the API server is"
        " made with your kubeconfig. Nothing is installed in the cluster.",
        epilog=examples(
            "foresail console", "foresail console -n shop --no-browser", "foresail console --rpo 26h --port 8080"
        ),
    )
    one.set_defaults(run=_run)
    one.add_argument("-n", "--namespace", metavar="NAMESPACE", help="(default: the namespace of the context)")
    add_velero_namespace(one)
    add_objective(one)
    one.add_argument("--zone", default="UTC", help="time zone of the calendar (%(default)s)")
    one.add_argument("--port", type=whole_number, default=0, metavar="N", help="(default: a free one)")
    one.add_argument("--cacert", metavar="FILE", help="additional CA certificates for the bucket, in PEM")
    one.add_argument(
        "--operator-namespace", default="foresail", metavar="NAMESPACE", help="Foresail's (default: foresail)"
    )
    one.add_argument("--no-browser", action="store_true", help="print the URL only")
    add_cluster(one)


def _run(args: argparse.Namespace) -> int:
    from foresail.cli.console.server import run_console  # noqa: PLC0415 - the rest of the command starts without it

    return run_console(args)
