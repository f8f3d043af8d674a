"""`foresail rollback get`: the step that each Rollback is at, and until when it can be undone."""

import argparse
import sys
from collections.abc import Sequence
from datetime import datetime

from foresail.cli.options.shared import is_table
from foresail.cli.output.objects import as_text
from foresail.cli.output.table import fitted, table, terminal_width
from foresail.cli.output.words import in_words, moment, short
from foresail.cli.rollback.rollbacks import Seen, read_selected
from foresail.kube.clock import now
from foresail.rollback.reasons import Reason

_SHORT = ("NAME", "TO", "PHASE", "AGE", "UNDO UNTIL", "WHY")
_WIDE = ("SAFETY BACKUP", "REQUESTER", "MESSAGE")
_SILENT = ("", Reason.COMPLETED, Reason.IN_PROGRESS, Reason.PLANNED)
"""Reasons that say no more than the phase."""


def get(args: argparse.Namespace) -> int:
    """Print the selected Rollbacks."""
    rollbacks = read_selected(args)
    if not is_table(args.output):
        print(as_text([seen.content for seen in rollbacks], args.output))
    elif rollbacks:
        width = terminal_width(sys.stdout)
        print(rollback_table(rollbacks, now(), width, wide=args.output == "wide", with_namespace=args.all_namespaces))
    return 0


def rollback_table(
    rollbacks: Sequence[Seen], at: datetime, width: int | None, *, wide: bool, with_namespace: bool
) -> str:
    """Return a row for each Rollback; the short table fits the width."""
    header = [*(("NAMESPACE",) if with_namespace else ()), *_SHORT, *(_WIDE if wide else ())]
    rows = [
        [
            *((seen.key.namespace,) if with_namespace else ()),
            *short_cells(seen, at),
            *(_wide_cells(seen) if wide else ()),
        ]
        for seen in rollbacks
    ]
    return table(header, rows) if wide else fitted(header, rows, width, ("NAME", "TO", "NAMESPACE", "WHY"))


def short_cells(seen: Seen, at: datetime) -> tuple[str, ...]:
    """Return the cells of the short table."""
    status = seen.status
    created = seen.rollback.metadata.creation_timestamp
    until = status.undo_until if status.phase == "Completed" else None
    return (
        seen.key.name,
        seen.spec.to,
        status.phase,
        short(at - created) if created is not None else "n/a",
        "-" if until is None or until < at else moment(until, at),
        "" if seen.reason in _SILENT else in_words(seen.reason),
    )


def _wide_cells(seen: Seen) -> tuple[str, ...]:
    return seen.status.safety_backup or "-", seen.status.requester or "-", seen.message
