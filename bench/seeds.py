"""Which random worlds an oracle lives through, by its command line: a part of them, and from which seed on."""

import argparse
import os
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class SeedOptions:
    """What the command line of an oracle says; `args` has the options of its own."""

    seeds: range
    args: argparse.Namespace


def seed_parser(description: str | None) -> argparse.ArgumentParser:
    """Return a parser with `--size`, which is $SIZE if absent, and `--first`."""
    parser = argparse.ArgumentParser(description=description)
    size = float(os.environ.get("SIZE") or 1)
    parser.add_argument("--size", type=float, default=size, help="the part of the full size, such as 0.1")
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    return parser


def read_seeds(most: int, parser: argparse.ArgumentParser, words: Sequence[str] | None = None) -> SeedOptions:
    """Return the seeds of a run: at least one, and all of them with `--size 1`."""
    args = parser.parse_args(words)
    count = max(round(most * args.size), 1)
    return SeedOptions(range(args.first, args.first + count), args)
