"""Names of new requests: valid before they are sent, and generated for restores."""

import argparse
import re
from datetime import datetime

from foresail.cli.errors import UsageError
from foresail.plan import Kind
from foresail.selfservice.families import BACKUPS, Family

_LONGEST = 253
_VALID = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
_STAMP = "-%Y%m%d%H%M%S"


def settle_name(family: Family, args: argparse.Namespace, instant: datetime) -> None:
    """Check the name of a new request; name a restore after its backup and the time if none is given."""
    if args.name is None and family is not BACKUPS:
        args.name = restore_name(args.from_backup, instant)
    if args.name is None:
        raise UsageError("no NAME is given", f"foresail {family.word} create NAME")
    check_name(family.kind, args.name)


def check_name(kind: Kind, name: str) -> None:
    """Refuse a name that the API server would refuse."""
    problem = problem_with_name(name)
    if problem is not None:
        raise UsageError(f"{kind.name} {name}: {problem}", advice_for_name(name))


def restore_name(backup: str, instant: datetime) -> str:
    """Return the name of a restore: its backup and the time."""
    suffix = f"{instant:{_STAMP}}"
    return f"{backup[: _LONGEST - len(suffix)]}{suffix}"


def problem_with_name(name: str) -> str | None:
    """Return why the API server would refuse a name; None if it would not."""
    if len(name) > _LONGEST:
        return f"the name has {len(name)} characters"
    return None if _VALID.fullmatch(name) else "the name is not valid"


def advice_for_name(name: str) -> str:
    """Return what a valid name has, and one that is like this name."""
    better = re.sub(r"[^a-z0-9.]+", "-", name.lower())[:_LONGEST].strip("-.")
    such = f", such as {better}" if better and problem_with_name(better) is None and better != name else ""
    return f"use at most {_LONGEST} lowercase letters, digits, - and .{such}"
