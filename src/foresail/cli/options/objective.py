"""The option for the objective: how old the newest good backup may be."""

import argparse
from datetime import timedelta

from foresail.cli.options.values import read_length


def add_objective(to: argparse._ActionsContainer) -> None:
    """Add `--rpo`."""
    to.add_argument("--rpo", metavar="DURATION", help="objective: how old the newest good backup may be, such as 26h")


def read_objective(args: argparse.Namespace) -> timedelta | None:
    """Return the objective; None if none is given."""
    return timedelta(microseconds=read_length(args.rpo, "--rpo") / 1000) if args.rpo else None
