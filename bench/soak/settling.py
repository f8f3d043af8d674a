"""The end: until everything is in order again, and nothing of the Primers is left."""

import time
from datetime import timedelta

from bench.primers.waiting import holds_within
from bench.soak import judge
from bench.soak.final import read_all
from bench.soak.hour import Hour
from bench.soak.record import Record
from bench.soak.seen import Final, Seen
from foresail.api.instants import stamp
from foresail.kube.clock import now
from testbed import Cluster
from tests.cluster import primers

_EVERY = 10.0
_DOCTORS_TIME = timedelta(minutes=11)  # it calls a Backup stuck that has not begun after ten
_LET_GO = 180.0
_ORDER = (
    judge.one_for_each_slot,
    judge.one_for_each_request,
    judge.true_mirror,
    judge.nothing_left,
    judge.primed_once,
)


def settle(cluster: Cluster, hour: Hour, record: Record, seen: Seen) -> None:
    """Wait until all is in order, or must have been; and until the doctor has named each Backup that is stuck."""
    last = max([seen.ends, *(each.back for each in seen.faults if each.back is not None)])
    limit = last + timedelta(seconds=judge.SETTLED)
    while True:
        seen.final = _read(cluster, record)
        copy = record.copy()
        open_ends = [each(copy) for each in _ORDER if not each(copy).kept]
        unfinished = judge.unfinished_backups(copy)
        if not open_ends and not unfinished:
            seen.settled = (now() - last).total_seconds()
            break
        is_named = judge.nothing_unnamed(copy).kept
        if now() >= limit and (is_named or now() >= limit + _DOCTORS_TIME):
            break
        words = "; ".join(f"{each.about}: {each.says}" for each in open_ends)
        print(f"{stamp(now())} not in order yet: {len(unfinished)} unfinished Backups; {words}", flush=True)
        if now() >= limit:
            hour.ask_the_doctor()
        hour.wait(now() + timedelta(seconds=_EVERY if now() < limit else 60.0))
    _let_primers_go(cluster, seen.final)


def _read(cluster: Cluster, record: Record) -> Final:
    client = record.client
    if client is None:
        raise RuntimeError("the record has not begun")
    return record.call(lambda: read_all(client, cluster))


def _let_primers_go(cluster: Cluster, final: Final) -> None:
    """Delete all Primers: what they hold goes with them."""
    began = time.monotonic()
    cluster.kubectl("delete", "primers", "--all", "--all-namespaces", "--wait=false")
    holds_within(lambda: not primers.placeholders(cluster), _LET_GO)
    final.placeholders = len(primers.placeholders(cluster))
    print(
        f"{final.placeholders} placeholders {time.monotonic() - began:.0f} s after the Primers were deleted", flush=True
    )
