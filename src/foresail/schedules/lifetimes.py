"""Whether the Backups of a Schedule live until the next one: else a run that fails leaves a time without any."""

from dataclasses import dataclass
from datetime import datetime, timedelta

import msgspec

from foresail.api import velero
from foresail.cron import Schedule
from foresail.cron.duration import length_of
from foresail.schedules.policies import retention_rules
from foresail.slots.interval import longest_run_gap
from foresail.slots.policy_timing import PolicyRow
from foresail.slots.starts import Timing

_template = msgspec.json.Decoder(velero.Template)


@dataclass(frozen=True, slots=True)
class ShortLife:
    """How long Backups live, and how far apart runs are at most, which is no less."""

    ttl: timedelta
    gap: timedelta


def short_life(
    template: bytes,
    default: timedelta | None,
    cron: Schedule,
    at: datetime,
    timing: Timing | None,
    policy: PolicyRow | None,
) -> ShortLife | None:
    """Return how long Backups live if that is no longer than the time between two runs; None if they do, or unknown.

    Rules of retention decide instead of the ttl of a template; without either, Velero's default does.
    """
    if retention_rules(policy, "UTC") is not None:
        return None
    written = _template.decode(template).ttl
    ttl = (length_of(written) if isinstance(written, str) else None) or default
    gap = longest_run_gap(cron, cron.next(at) or at, timing)
    return ShortLife(ttl, gap) if ttl is not None and gap is not None and ttl <= gap else None
