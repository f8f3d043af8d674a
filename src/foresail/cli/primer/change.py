"""`foresail primer create`, `suspend`, `resume` and `delete`."""

import argparse
import sys
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any

import msgspec

from foresail.api.instants import stamp
from foresail.api.primer import PRIMER, Primer
from foresail.cli.access.cluster import Cluster, on_namespace
from foresail.cli.cron.words import minutes_of
from foresail.cli.errors import CommandError, UnreachableError, UsageError
from foresail.cli.options.parser import SERVER
from foresail.cli.options.selectors import read_selector
from foresail.cli.options.shared import is_table
from foresail.cli.output.objects import Request, as_text
from foresail.cli.primer.selection import as_document, check_selection, key_of, selected_primers
from foresail.cli.primer.snapshot import read_snapshot
from foresail.cli.verbs import are_shown, confirm, outcome, print_object
from foresail.kube.clock import now
from foresail.kube.failures import Failure
from foresail.plan import Key
from foresail.primers.controller import Primers
from foresail.primers.reads import dry_run_with
from foresail.primers.reasons import Reason
from foresail.primers.rows import primer_row
from foresail.primers.rules import Verdict, judge
from foresail.primers.view import DryRunRequest, PrimerView, Target


def suspend(args: argparse.Namespace) -> int:
    """Make Primers hold nothing."""
    check_selection(args, everything=False)
    return on_namespace(args, lambda cluster: _set(cluster, args, suspended=True))


def resume(args: argparse.Namespace) -> int:
    """Make Primers hold capacity again."""
    check_selection(args, everything=False)
    return on_namespace(args, lambda cluster: _set(cluster, args, suspended=False))


async def _set(cluster: Cluster, args: argparse.Namespace, *, suspended: bool) -> int:
    items = await selected_primers(cluster, args)
    body = {"spec": {"suspend": suspended}}
    if are_shown(args, [Request("PATCH", PRIMER, key_of(item), body) for item in items]):
        return 0
    done = outcome(args, "suspended" if suspended else "resumed")
    changed = []
    for item in items:
        key = key_of(item)
        changed.append(as_document(await cluster.merge(PRIMER, key, body, dry_run=bool(args.dry_run))))
        print(f"Primer {key} {done}", file=sys.stderr)
    if changed and not is_table(args.output):
        print(as_text(changed, args.output))
    return 0


def delete(args: argparse.Namespace) -> int:
    """Delete the selected Primers, after confirmation."""
    check_selection(args, everything=False)
    return on_namespace(args, lambda cluster: _delete(cluster, args))


async def _delete(cluster: Cluster, args: argparse.Namespace) -> int:
    items = await selected_primers(cluster, args)
    if are_shown(args, [Request("DELETE", PRIMER, key_of(item)) for item in items]):
        return 0
    confirm(args, (f"Primer {key_of(item)}" for item in items))
    done = outcome(args, "deleted", "deleted; its capacity is released")
    for item in items:
        await cluster.delete(PRIMER, key_of(item), item["metadata"]["uid"], dry_run=bool(args.dry_run))
        print(f"Primer {key_of(item)} {done}", file=sys.stderr)
    if items and not is_table(args.output):
        print(as_text(items, args.output))
    return 0


_PASSES = (Reason.SUSPENDED, Reason.QUOTA_TOO_SMALL, Reason.TOO_MANY_PLACEHOLDERS)
"""What blocks a CronJob only for now."""

_OF_THE_OPERATOR = (Reason.TOO_LONG, Reason.NO_HOLD_IMAGE)
"""What depends on the operator's settings, which the command line does not know."""

_ANYWAY = "or add --force to create it anyway"
_HINTS: dict[str, str] = {
    Reason.STANDING: f"add --allow-standing, shorten --warm-up, {_ANYWAY}",
    Reason.NOTHING_TO_RESERVE: f"set resources.requests in the CronJob's pod template, {_ANYWAY}",
    Reason.TAKEN: "delete the other Primer with `foresail primer delete`, or choose another CronJob",
    Reason.INEXACT: f"use --method Placeholder, {_ANYWAY}",
    Reason.BUFFER_NOT_SERVED: f"use --method Auto, {_ANYWAY}",
}


@dataclass(frozen=True, slots=True)
class Problem:
    """Why no capacity would be held for a CronJob, and what to do."""

    message: str
    hint: str
    is_final: bool = True  # it does not end by itself


async def problems_of(cluster: Cluster, body: dict[str, Any], args: argparse.Namespace) -> list[Problem]:
    """Return why a Primer would hold nothing: one problem for each CronJob, final only if all of them are."""
    known = await read_snapshot(cluster, args)
    row = primer_row(msgspec.convert(_as_created(body), Primer))
    if row.key in known.state.primers:
        return []  # the API server refuses it
    known.state.primers.put(row.key, row)
    view = known.observe(row.key, now())
    if view is None:
        return []
    if not view.targets:
        return [_no_cron_job(known, view)]
    verdicts = [await _verdict(cluster, view, target) for target in view.targets]
    problems = [problem for verdict in verdicts if (problem := problem_of(verdict)) is not None]
    if len(problems) < len(verdicts):
        problems = [Problem(problem.message, problem.hint, is_final=False) for problem in problems]
    return problems


def problem_of(verdict: Verdict) -> Problem | None:
    """Return what is wrong with one CronJob; None if capacity would be held for it."""
    because = verdict.because
    if because is None:
        return None
    hint = _HINTS.get(because.reason, f"correct it, {_ANYWAY}")
    is_final = because.reason not in (*_PASSES, *_OF_THE_OPERATOR)
    return Problem(f"{because.reason}: {because.message.rstrip('.')}", hint, is_final)


async def _verdict(cluster: Cluster, view: PrimerView, target: Target) -> Verdict:
    """Evaluate the rules; if the pods request nothing, ask the API server what admission would add."""
    verdict = judge(view, target, now())
    template = target.cron.shape
    if verdict.because is None or verdict.because.reason is not Reason.NOTHING_TO_RESERVE or template is None:
        return verdict
    admitted = await dry_run_with(cluster.client)(DryRunRequest(target.cron.key, target.cron.uid, template))
    if isinstance(admitted, Failure):
        return verdict
    return judge(view, msgspec.structs.replace(target, admitted=admitted, is_dry_run_done=True), now())


def _no_cron_job(known: Primers, view: PrimerView) -> Problem:
    primer = view.primer
    namespace = view.primer.key.namespace
    if primer.selector is not None:
        message = f"{Reason.NO_CRON_JOB}: no CronJob in namespace {namespace} has these labels"
        return Problem(message, "it holds capacity as soon as there is one", is_final=False)
    names = [job.key.name for job in known.state.cron_jobs.by("namespace", namespace)]
    near = get_close_matches(primer.cron_job, names, n=1)
    meant = f"did you mean {near[0]}? Specify it with --cron-job" if near else "create the CronJob first"
    key = Key(namespace, primer.cron_job)
    return Problem(f"{Reason.NO_CRON_JOB}: CronJob {key} does not exist", f"{meant}, {_ANYWAY}")


def _as_created(body: dict[str, Any]) -> dict[str, Any]:
    return {**body, "metadata": {**body["metadata"], "uid": "new", "creationTimestamp": stamp(now())}}


def refuse(key: Key, problems: list[Problem]) -> None:
    """Raise the first problem if no CronJob of a Primer would have capacity."""
    if problems and all(problem.is_final for problem in problems):
        raise CommandError(f"Primer {key} would hold no capacity: {problems[0].message}", problems[0].hint)


def create(args: argparse.Namespace) -> int:
    """Create a Primer, or print it; printing needs no cluster."""
    if args.cron_job and args.selector:
        raise UsageError("--cron-job and -l cannot be combined", "specify one of them")
    if args.dry_run != SERVER and (args.dry_run or args.output not in ("table", "wide", "name")):
        print_object(args, body_of(args))
        return 0
    return on_namespace(args, lambda cluster: _create(cluster, args))


def body_of(args: argparse.Namespace) -> dict[str, Any]:
    """Return the Primer that the options describe; without a namespace if none is given."""
    minutes_of(args.warm_up)
    spec: dict[str, Any] = {"warmUp": int(args.warm_up) if args.warm_up.isdecimal() else args.warm_up}
    if args.selector:
        spec["selector"] = read_selector(args.selector)
    else:
        spec["cronJob"] = args.cron_job or args.name
    given = {"method": args.method, "releaseAfter": args.release_after}
    spec |= {name: value for name, value in given.items() if value}
    if args.allow_standing:
        spec["allowStanding"] = True
    metadata = {"name": args.name, **({"namespace": args.namespace} if args.namespace else {})}
    return {"apiVersion": PRIMER.api_version, "kind": PRIMER.name, "metadata": metadata, "spec": spec}


async def _create(cluster: Cluster, args: argparse.Namespace) -> int:
    body = body_of(args)
    key = Key(args.namespace, args.name)
    await _check(cluster, key, body, args)
    made = await cluster.create(PRIMER, key, body, dry_run=args.dry_run == SERVER)
    if not is_table(args.output):
        print(as_text([as_document(made)], args.output))
    done = "created (server dry run)" if args.dry_run else "created; see `foresail primer get {} -n {}`"
    print(f"Primer {key} {done.format(key.name, key.namespace)}", file=sys.stderr)
    return 0


async def _check(cluster: Cluster, key: Key, body: dict[str, Any], args: argparse.Namespace) -> None:
    """Refuse a Primer that would hold nothing, unless it is forced; warn of what may pass."""
    try:
        problems = await problems_of(cluster, body, args)
    except UnreachableError:
        raise
    except CommandError as error:  # who may create a Primer need not be allowed to read all that the rules need
        print(f"warning: cannot check Primer {key}: {error.problem}", file=sys.stderr)
        return
    if not args.force:
        refuse(key, problems)
    for problem in problems:
        print(f"warning: {problem.message}", file=sys.stderr)
