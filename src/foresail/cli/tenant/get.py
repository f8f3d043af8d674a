"""`foresail backup get` and `foresail restore get`: how far each is, its place in the queue, and why it waits."""

import argparse
from collections.abc import Sequence
from datetime import datetime

from foresail.api.instants import instant
from foresail.cli.output.objects import as_text
from foresail.cli.output.table import table
from foresail.cli.output.times import moment, short
from foresail.cli.tenant.asked import Asked
from foresail.cli.tenant.place import looked_at
from foresail.kube.clock import now
from foresail.selfservice.families import BACKUPS

_COMMON = ("REQUEST", "VELERO", "QUEUE", "ERRORS")
_WIDE = ("WARNINGS", "STARTED", "ENDED", "VELERO NAME")


def get(chosen: argparse.Namespace) -> int:
    """Print the chosen requests."""
    found = looked_at(chosen)
    if chosen.output not in ("table", "wide"):
        print(as_text([each.content for each in found], chosen.output))
    elif found:
        print(request_table(found, now(), wide=chosen.output == "wide"))
    return 0


def request_table(found: Sequence[Asked], at: datetime, *, wide: bool) -> str:
    """Return the table: backups with when they expire, restores with what they restore from."""
    is_backup = found[0].family is BACKUPS
    own = ("EXPIRES",) if is_backup else ("BACKUP",)
    header = ("NAME", *_COMMON, *own, "AGE", *(_WIDE if wide else ()), "WHY")
    rows = []
    for each in found:
        velero, created = each.velero, each.request.metadata.creation_timestamp
        rows.append(
            (
                each.key.name,
                each.phase or "New",
                velero.phase or "<none>",
                str(each.position) if each.made.name else "",
                str(velero.errors),
                until(velero.expiration, at) if is_backup else str(each.spec.get("backupName") or "<none>"),
                short(at - created) if created else "n/a",
                *(_wide_cells(each, at) if wide else ()),
                why(each, in_full=wide),
            )
        )
    return table(header, rows)


def why(each: Asked, *, in_full: bool) -> str:
    """Return why there is no complete backup or restore yet: a word, or that and the operator's message."""
    holding = each.holding
    if holding is None:
        return ""
    return f"{holding.reason}: {holding.message}" if in_full else holding.reason


def until(text: str | None, at: datetime) -> str:
    """Return an instant of a status, with how far away it is."""
    found = instant(text) if text else None
    return moment(found, at) if found else "n/a"


def _wide_cells(each: Asked, at: datetime) -> tuple[str, ...]:
    velero = each.velero
    started, ended = until(velero.start_timestamp, at), until(velero.completion_timestamp, at)
    return str(velero.warnings), started, ended, each.made.name or "<none>"
