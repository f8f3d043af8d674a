"""Faults that are planted by hand, to see that the model finds them: `python -m bench.deletion_worlds --plant NAME`."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime, timedelta
from typing import Any
from unittest.mock import patch

import msgspec

from foresail import deletion, deletion_writes
from foresail.backups import Quality
from foresail.deletion import Ledger
from foresail.kube import connect
from foresail.retention import Copy
from foresail.schedules import decide as schedule_plans
from foresail.schedules import retention
from foresail.schedules import rules as schedule_rules
from foresail.schedules.observe import BackupRow
from foresail.selfservice.requests import delete, doubts, protection, state
from foresail.selfservice.schedules import decide as tenant_plans
from foresail.selfservice.schedules import keep_last
from foresail.slots.observed import Observed

_mark = deletion_writes.mark
_ledger_of = retention.ledger_of
_with_first_run = retention.with_first_run
_doubts = retention._doubts  # noqa: SLF001 - a part of it is left out
_skew_since = connect.skew_since


def _without_version(*args: Any) -> Any:  # noqa: ANN401 - those of the original
    kind, backup, uid, _, at, why = args
    return _mark(kind, backup, uid, "", at, why)


def _without_rules_forgotten(observed: Any) -> Ledger:  # noqa: ANN401 - the same
    return _ledger_of(observed) if observed is not None and observed.retention else Ledger()


def _whatever_the_rules(annotation: str | None, _: str) -> frozenset[str]:
    return frozenset((annotation or "").split()[1:])


def _readable(view: Any, now: datetime) -> Iterator[str]:  # noqa: ANN401 - the same
    return _doubts(msgspec.structs.replace(view, unread_policies=()), now)


def _without_begins(observed: Observed, view: Any, **_: bool) -> Observed:  # noqa: ANN401 - the same
    return _with_first_run(observed, view)


def _never(_: Any) -> datetime:  # noqa: ANN401 - the same
    return datetime.max.replace(tzinfo=UTC)


def _by_slot(row: Any) -> datetime:  # noqa: ANN401 - the same
    started: datetime = row.slot or row.created
    return started


def _remembered() -> Callable[..., timedelta]:
    """Return the rule that takes the skew at the last answer for that of now."""
    known: dict[datetime, timedelta] = {}

    def skew(answered: datetime, since: timedelta, clock: datetime) -> timedelta:
        return known.setdefault(answered, _skew_since(answered, since, clock))

    return skew


Fault = tuple[object, str, object]

FAULTS: dict[str, tuple[Fault, ...]] = {
    "last": ((deletion, "protected", lambda *_: frozenset()),),
    "grace": ((deletion, "_is_due", lambda *_: True),),
    "breaker": ((deletion, "is_mass_deletion", lambda *_, **__: False),),
    "clock": ((deletion, "operators_doubts", lambda *_: ()), (state, "operators_doubts", lambda *_: ())),
    "version": ((deletion_writes, "mark", _without_version),),
    "marks": ((schedule_plans, "abandon", lambda _: retention.Step()),),
    "stale": ((deletion, "_is_stale", lambda *_: False),),
    "ledger": ((schedule_rules, "ledger_of", _without_rules_forgotten),),
    "approval": ((deletion, "approved", _whatever_the_rules),),
    "new": ((retention, "_may_take_effect", lambda *_: True),),
    "allowance": ((deletion, "_PUSHES_OUT", tuple(Quality)),),
    "expiring": ((deletion, "EXPIRES_SOON", timedelta(days=-36500)),),
    "skew": ((connect, "skew_since", None),),
    "unread": ((retention, "_doubts", _readable), (doubts, "unread", lambda *_, **__: iter(()))),
    "withdraw": ((retention, "_withdrawn", lambda *_: iter(())),),
    "data": ((deletion, "has_own_data", lambda *_, **__: True), (delete, "has_own_data", lambda *_, **__: True)),
    "others": ((retention, "_is_made_for", lambda *_: True),),
    "by hand": ((retention, "by_hand_since", _never),),
    "early": ((retention, "_doubts_about_times", lambda *_: iter(())),),
    "behind": ((BackupRow, "started", property(_by_slot)), (Copy, "made", property(lambda copy: copy.started))),
    "room": ((tenant_plans, "_makes_room", lambda *_: False),),
    "due": ((tenant_plans, "_has_due", lambda *_: False),),
    "slot by hand": ((schedule_rules, "with_first_run", _without_begins),),
    "held": ((protection, "in_use", lambda *_: None),),
    "again": ((delete, "in_use", lambda *_: None),),
    "requested": ((protection, "is_by_rule", lambda _: False),),
    "last good": (
        (keep_last, "is_among_the_last", lambda *_: False),
        (protection, "is_among_the_last", lambda *_: False),
    ),
}
"""What is patched, by the name of the fault; docs/contributing/worlds.md says what each one is."""


@contextmanager
def planted(name: str) -> Iterator[None]:
    """Plant a fault for a while."""
    with ExitStack() as stack:
        for where, attribute, fault in FAULTS[name]:
            stack.enter_context(patch.object(where, attribute, _remembered() if fault is None else fault))
        yield
