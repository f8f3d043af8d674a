"""Whether a Primer that does not exist yet would hold anything, by the operator's own rules."""

import argparse
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any

import msgspec

from foresail.api.instants import stamp
from foresail.api.primer import Primer
from foresail.cli.access.cluster import Cluster
from foresail.cli.errors import CommandError
from foresail.cli.primer.snapshot import read_snapshot
from foresail.kube.clock import now
from foresail.kube.failures import Failure
from foresail.plan import Key
from foresail.primers.controller import Primers
from foresail.primers.reads import dry_run_with
from foresail.primers.reasons import Reason
from foresail.primers.rows import primer_row
from foresail.primers.rules import Verdict, judge
from foresail.primers.view import DryRunRequest, PrimerView, Target

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
        problems = [Problem(each.message, each.hint, is_final=False) for each in problems]
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
