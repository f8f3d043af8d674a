"""Make the plan of a rollback, roll back exactly as planned, and undo it."""

import argparse
from datetime import datetime
from shlex import join

from foresail.api.rollback import LONGEST_NAME, ROLLBACK
from foresail.cli.access.cluster import Cluster
from foresail.cli.errors import CommandError
from foresail.cli.output.words import counted
from foresail.cli.restore_plan.dry_runs import served_kinds
from foresail.cli.rollback.advice import lost_by_undo
from foresail.cli.rollback.create import again, check_policy, full_kinds, rollback_name, rollback_object, volumes_option
from foresail.cli.rollback.plan import summary
from foresail.cli.rollback.rollbacks import Seen, read
from foresail.cli.rollback.undo import check, undo_body
from foresail.cli.tenant.adoptable import Scope
from foresail.cli.tenant.contents import kinds_served
from foresail.cli.tenant.create import check_exists
from foresail.cli.tenant.new_request import problem_with_name
from foresail.console.acts import Act, Choice, Fields
from foresail.console.rollback_pages import path_of
from foresail.console.template_fields import names_in
from foresail.plan import Key

_NO, _YES = "no", "yes"
_LONGEST_KINDS = 2_000
_STAMP = "plan-{:%Y%m%d%H%M%S}"


async def plan(cluster: Cluster, scope: Scope, namespace: str, fields: Fields, now: datetime) -> Act:
    """Return a dry run: the operator makes the plan, and changes nothing."""
    to = fields.get("to", "").strip()
    kinds = fields.get("kinds", "")[:_LONGEST_KINDS]
    prune = fields.get("prune", _NO)
    wrong = problem_with_name(to)
    problem = f"backup: {wrong}" if wrong is not None else ""
    if prune not in (_NO, _YES):
        problem = "delete: choose yes or no"
    args = _args(scope, Key(namespace, _STAMP.format(now)), to[:253], prune=prune == _YES)
    only = list[str]()
    if not problem:
        only, problem = await _checked(cluster, args, names_in(kinds))
    body = rollback_object(args, only)
    body["spec"]["dryRun"] = True
    words = ["foresail", "rollback", "create", "--to", args.to, *_options(only, prune == _YES), "--dry-run"]
    key = Key(namespace, args.name)
    return Act(
        f"Plan a rollback of {namespace}",
        "Lets the operator make the plan, which the next page shows. Nothing is changed yet.",
        "Make the plan",
        ROLLBACK,
        key,
        body,
        join([*words, "-n", namespace]),
        path_of(key),
        choices=(
            Choice("to", "Back to backup", args.to),
            Choice("kinds", "Only these kinds (empty: all)", kinds, is_required=False),
            Choice("prune", "Delete what is not in it", prune, ((_NO, "no"), (_YES, "yes, except Secrets and claims"))),
        ),
        is_stamped=True,
        problem=problem,
        place=("ns", namespace, "new-rollback"),
    )


async def run(cluster: Cluster, scope: Scope, key: Key, fields: Fields, now: datetime) -> Act:
    """Return the Rollback of exactly the plan that a dry run has made."""
    seen = await read(cluster, key)
    made = seen.status.plan
    if not seen.spec.dry_run or seen.status.phase != "Planned" or made is None:
        raise CommandError(f"{seen} is no plan that can be run", "make a new plan")
    args = _args(scope, Key(key.namespace, rollback_name(seen.spec.to, now)), seen.spec.to, prune=seen.spec.prune)
    args.plan_digest = made.digest
    args.volumes = volumes_option(seen.spec.volumes)
    args.only = list(seen.spec.only or ())
    body = rollback_object(args, args.only)
    wanted = fields.get("digest", made.digest)
    barred = f"it cannot begin: {made.in_the_way[0]}" if made.in_the_way else ""
    changed = "the plan is another one than you have seen" if wanted != made.digest else ""
    created = Key(key.namespace, args.name)
    return Act(
        f"Roll {key.namespace} back to {seen.spec.to}",
        f"{summary(seen.spec, made).capitalize()}. The namespace is backed up first, so that this can be undone.",
        f"Roll back {key.namespace}",
        ROLLBACK,
        created,
        body,
        again(args, made.digest),
        path_of(created),
        choices=(Choice("digest", "", wanted, is_hidden=True),),
        is_stamped=True,
        problem=barred or changed,
        typed=key.namespace,
        place=(*path_of(key), "run"),
    )


async def undo(cluster: Cluster, key: Key, now: datetime) -> Act:
    """Return the edit that undoes a Rollback."""
    seen = await read(cluster, key)
    deleted = f", with {counted(len(seen.status.pruned), 'deleted object')}" if seen.status.pruned else ""
    return Act(
        f"Undo rollback {key.name}",
        f"Brings {key.namespace} back to how it was before the rollback{deleted}. {lost_by_undo(seen)}",
        f"Undo {key.name}",
        ROLLBACK,
        key,
        undo_body(seen),
        join(["foresail", "rollback", "undo", key.name, "-n", key.namespace]),
        path_of(key),
        creates=False,
        is_stamped=not seen.runs,
        problem=_why_not(seen, now),
        typed=key.namespace,
        place=(*path_of(key), "undo"),
    )


def _why_not(seen: Seen, now: datetime) -> str:
    """Return why a Rollback cannot be undone; empty if it can."""
    try:
        check(seen, now)
    except CommandError as error:
        return error.sentence
    return "It is being undone already." if seen.spec.undo else ""


async def _checked(cluster: Cluster, args: argparse.Namespace, kinds: list[str]) -> tuple[list[str], str]:
    """Return the kinds as the API has them, or why the operator would refuse the plan."""
    try:
        await check_policy(cluster, args)
        await check_exists(cluster, Key(args.namespace, args.to))
        return (full_kinds(kinds, served_kinds(await kinds_served(cluster))) if kinds else []), ""
    except CommandError as error:
        return [], error.sentence


def _args(scope: Scope, key: Key, to: str, *, prune: bool) -> argparse.Namespace:
    """Return the options of `foresail rollback create`."""
    return argparse.Namespace(
        name=key.name[:LONGEST_NAME],
        namespace=key.namespace,
        to=to,
        volumes="none",
        prune=prune,
        plan_digest=None,
        only=[],
        names=[],
        all_namespaces=False,
        velero_namespace=scope.velero_namespace,
        operator_namespace=scope.operator_namespace,
    )


def _options(only: list[str], prune: bool) -> list[str]:  # noqa: FBT001 - as the form has it
    return [*(["--only", ",".join(only)] if only else []), *(["--prune"] if prune else [])]
