"""The entry point of the `foresail` command: one parser, one exit code."""

import argparse
from collections.abc import Sequence

from foresail import __version__


def parser() -> argparse.ArgumentParser:
    """Return the parser of the whole command line."""
    top = argparse.ArgumentParser(
        prog="foresail",
        description="Makes Velero backups self-service, punctual and pre-warmed.",
        epilog="No subcommand works yet: this release is the ground floor that they will stand on.",
    )
    top.add_argument("--version", action="version", version=f"foresail {__version__}")
    return top


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit code."""
    top = parser()
    top.parse_args(arguments)
    top.print_help()
    return 0
