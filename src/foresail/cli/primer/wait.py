"""`foresail primer wait`: until capacity is held for the next fire, or until the next run has started."""

import argparse
import asyncio
import sys
from datetime import datetime, timedelta

from foresail.api.instants import instant, stamp
from foresail.api.primer import BY_CRON_JOB
from foresail.cli.access.cluster import Cluster, on_namespace
from foresail.cli.errors import CommandError
from foresail.cli.options.values import deadline
from foresail.cli.output.messages import hint, interruptible
from foresail.cli.primer.get import condition
from foresail.cli.primer.selection import Document, in_primers_form, key_of, selected
from foresail.kube.clock import now
from foresail.plan import Key
from foresail.primers.reasons import Reason
from foresail.primers.status import READY, WARMING

WARM, FIRED = "warm", "fired"
_PAUSE = 1.0
_UNSEEN_AFTER = timedelta(seconds=15)
_PASSES = (Reason.QUOTA_TOO_SMALL, Reason.TOO_MANY_PLACEHOLDERS, Reason.REFUSED)
_NEVER_RUNS = (Reason.NO_CRON_JOB, Reason.INVALID, Reason.NEVER_FIRES)


def wait(args: argparse.Namespace) -> int:
    """Wait for the named Primers; exit code 1 if one cannot get there or the time is over."""
    return interruptible(
        lambda: on_namespace(args, lambda cluster: _wait(cluster, args)),
        "Stopped waiting. The Primers continue in the cluster.",
    )


async def _wait(cluster: Cluster, args: argparse.Namespace) -> int:
    since = now()
    until = deadline(args.timeout)
    waiting = [Key(args.namespace, name) for name in args.names]
    remarks: dict[Key, str] = {}
    while True:
        for key in tuple(waiting):
            primer = await _read(cluster, key)
            ended = outcome(primer, args.event, since, now())
            if isinstance(ended, CommandError):
                raise ended
            if ended is not None:
                print(f"Primer {key}: {ended}", file=sys.stderr)
                waiting.remove(key)
                continue
            news = remark(primer, now() - since)
            if news != remarks.get(key, ""):
                hint(f"Primer {key}: {news}")
                remarks[key] = news
        if not waiting:
            return 0
        if until is not None and now() >= until:
            raise _timed_out(waiting, args.event)
        await asyncio.sleep(_PAUSE)


async def _read(cluster: Cluster, key: Key) -> Document:
    """Return a Primer, or a CronJob that is primed by annotations in the form of one."""
    (document,) = await selected(cluster, argparse.Namespace(namespace=key.namespace, names=[key.name], selector=None))
    return in_primers_form(document, now())


def outcome(primer: Document, event: str, since: datetime, at: datetime) -> CommandError | str | None:
    """Return how the waiting ended: in words, as an error if it cannot end well, None if it continues."""
    text = _warm(primer, at) if event == WARM else _fired(primer, since)
    return text or _blocked(primer, event)


def remark(primer: Document, waited: timedelta) -> str:
    """Return what someone who waits should know; empty if there is nothing."""
    status = primer.get("status", {})
    if not status:
        return (
            "the operator has not processed it yet; check the operator with `foresail doctor`"
            if waited > _UNSEEN_AFTER
            else ""
        )
    ready = condition(primer, READY)
    if ready.get("status") == "False":
        return f"{ready['reason']}: {ready['message']}"
    begins = instant(status.get("nextWarmUp") or "")
    fire = instant(status.get("nextFire") or "")
    return f"next warm-up {stamp(begins)}, next fire {stamp(fire)}" if begins and fire else ""


def _warm(primer: Document, at: datetime) -> str | None:
    """Return for which fire capacity is held on nodes; method CronJob reports only that its warm-up has begun."""
    status = primer.get("status", {})
    for cron in status.get("cronJobs", ()):
        warming = cron.get("warming") or {}
        fire = instant(warming.get("fire", ""))
        if fire and fire > at and warming.get("made") and warming.get("provisioned") is not None:
            where = f"by CapacityBuffer {warming['buffer']}" if warming.get("buffer") else f"on {_nodes(warming)}"
            return f"warm for CronJob {cron['name']} at {stamp(fire)} {where}"
    fire = instant(status.get("nextFire") or "")
    is_warming = condition(primer, WARMING).get("status") == "True"
    if primer["spec"].get("method") == BY_CRON_JOB and is_warming and fire and fire > at:
        return f"the warm-up for {stamp(fire)} has begun"
    return None


def _nodes(warming: Document) -> str:
    return ", ".join(warming.get("nodes", ())) or "its nodes"


def _fired(primer: Document, since: datetime) -> str | None:
    for cron in primer.get("status", {}).get("cronJobs", ()):
        for item in cron.get("startDelays", ()):
            fire = instant(item["fire"])
            if fire and fire > since:
                word = "warm" if item["warm"] else "cold"
                return f"CronJob {cron['name']} fired at {stamp(fire)} and started after {item['seconds']} s, {word}"
    return None


def _blocked(primer: Document, event: str) -> CommandError | None:
    """Return why what is waited for does not come by itself; only a status of the present spec counts."""
    status = primer.get("status", {})
    key = key_of(primer)
    ready = condition(primer, READY)
    is_old = "observedGeneration" in status and status["observedGeneration"] < primer["metadata"].get("generation", 0)
    if is_old or ready.get("status") != "False":
        return None
    reasons = {item.get("reason") or "" for item in status.get("cronJobs", ())} or {ready["reason"]}
    passes = {
        reason
        for reason in reasons
        if not reason or reason in _PASSES or (event == FIRED and reason not in _NEVER_RUNS)
    }
    if passes:
        return None
    problem = f"Primer {key} is {ready['reason']}: {ready['message']}"
    return CommandError(problem, f"see every rule with foresail primer explain {key.name} -n {key.namespace}")


def _timed_out(waiting: list[Key], event: str) -> CommandError:
    first = waiting[0]
    what = "has not fired yet" if event == FIRED else "is not warm yet"
    problem = f"timed out: Primer {', '.join(map(str, waiting))} {what}"
    return CommandError(problem, f"see why with foresail primer describe {first.name} -n {first.namespace}")
