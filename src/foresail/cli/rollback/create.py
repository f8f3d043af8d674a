"""`foresail rollback create`: the operator's plan, a question, and a Rollback of exactly that plan."""

import argparse
import secrets
import sys
from datetime import datetime
from typing import Any

from foresail.api.rollback import ENDED, LONGEST_NAME, ROLLBACK
from foresail.cli.access.cluster import Cluster, on_namespace
from foresail.cli.access.self_service import require
from foresail.cli.errors import CommandError, NotFoundError, UsageError
from foresail.cli.options.parser import SERVER
from foresail.cli.options.shared import is_table
from foresail.cli.options.values import deadline, read_list
from foresail.cli.output.messages import confirm, hint, interruptible
from foresail.cli.output.objects import as_text
from foresail.cli.output.words import counted
from foresail.cli.policy.usage import own_policy
from foresail.cli.restore_plan.dry_runs import served_kinds
from foresail.cli.rollback.advice import next_step
from foresail.cli.rollback.arguments import VOLUMES
from foresail.cli.rollback.plan import Differences, Fields, find_differences, plan_text
from foresail.cli.rollback.rollbacks import Seen, decode
from foresail.cli.rollback.steps import follow
from foresail.cli.tenant.contents import kinds_served
from foresail.cli.tenant.create import check_exists, settle_namespace_if_known
from foresail.cli.tenant.files import Access, access_of
from foresail.cli.tenant.new_request import check_name, stamped
from foresail.cli.verbs import is_printed, print_name, print_object
from foresail.kube.clock import now
from foresail.plan import Key
from foresail.proof.restore_plan.items import Served, ServedKind
from foresail.rollback.reasons import Reason
from foresail.selfservice.access.discovery import BUILT_IN, CORE

_STAMP = "-%Y%m%d%H%M%S"
_NOTHING = "nothing was changed"
_USUAL = Served(
    ServedKind(kind.group, kind.plural, kind.kind, kind.is_namespaced, aliases=kind.aliases)
    for kind in (*CORE, *BUILT_IN)
)
_POLICIES = '"restore":{"allowed":{"existingResourcePolicies":["none","update"]}}'
_ENABLE = f'{{"spec":{{"rollback":{{"enabled":true}},{_POLICIES}}}}}'


def create(args: argparse.Namespace) -> int:
    """Create a Rollback, print its plan, or print the manifest, which needs no cluster."""
    if args.plan_digest and args.dry_run == SERVER:
        raise UsageError("--plan-digest and --dry-run exclude each other", "a dry run shows the digest; run it then")
    args.name = args.name or rollback_name(args.to, now())
    check_name(ROLLBACK, args.name)
    if len(args.name) > LONGEST_NAME:
        problem = f"{ROLLBACK.name} {args.name}: the name has {len(args.name)} characters"
        raise UsageError(problem, f"use at most {LONGEST_NAME}: its backup and its restores are named after it")
    until = deadline(args.timeout)
    if is_printed(args):
        settle_namespace_if_known(args)
        print_object(args, rollback_object(args, usual_kinds(read_list(args.only))))
        return 0
    access = access_of(args)
    text = "Stopped waiting. A Rollback that was created goes on in the cluster; see foresail rollback get."
    return interruptible(lambda: on_namespace(args, lambda cluster: _create(cluster, args, until, access)), text)


def rollback_name(backup: str, at: datetime) -> str:
    """Return the name of a Rollback: its backup and the time."""
    suffix = f"{at:{_STAMP}}"
    return f"{backup[: LONGEST_NAME - len(suffix)].rstrip('.-')}{suffix}"


def rollback_object(args: argparse.Namespace, only: list[str]) -> dict[str, Any]:
    """Return the Rollback that the options describe."""
    namespace = {"namespace": args.namespace} if args.namespace is not None else {}
    spec: dict[str, Any] = {
        "to": args.to,
        **({"only": only} if only else {}),
        "volumes": VOLUMES[args.volumes],
        "prune": args.prune,
        **({"planDigest": args.plan_digest} if args.plan_digest else {}),
    }
    kind = {"apiVersion": ROLLBACK.api_version, "kind": ROLLBACK.name}
    return {**kind, "metadata": {"name": args.name, **namespace}, "spec": spec}


def volumes_option(volumes: str) -> str:
    """Return what --volumes takes for a value of the API."""
    return next(word for word, value in VOLUMES.items() if value == volumes)


def usual_kinds(words: list[str]) -> list[str]:
    """Return the kinds as the API has them, without a cluster: those of every cluster by any name, others as given."""
    return sorted({_USUAL.full_name(word) for word in words})


def full_kinds(words: list[str], served: Served) -> list[str]:
    """Return the kinds as the API has them, such as deployments.apps; refuse those that the cluster does not serve."""
    kinds = []
    for word in words:
        kind = served.kind(served.full_name(word))
        if kind is None:
            raise CommandError(f"--only: the cluster does not serve {word}", "list them: kubectl api-resources")
        if not kind.is_namespaced:
            raise CommandError(f"--only: {word} have no namespace, so no Rollback has them", "leave them out")
        kinds.append(kind.resource)
    return sorted(set(kinds))


async def _create(cluster: Cluster, args: argparse.Namespace, until: datetime | None, access: Access) -> int:
    await require(cluster, ROLLBACK, args.namespace)
    await check_policy(cluster, args)
    await check_exists(cluster, Key(args.namespace, args.to))
    words = read_list(args.only)
    body = rollback_object(args, full_kinds(words, served_kinds(await kinds_served(cluster))) if words else [])
    fields: Fields | None = None
    if not args.plan_digest:
        body["spec"]["planDigest"], fields = await _agreed(cluster, args, body, until, access)
    if args.dry_run:
        return 0
    key = Key(args.namespace, args.name)
    made = await cluster.create(ROLLBACK, key, await stamped(cluster, body))
    print_name(args, made)
    print(f"{ROLLBACK.name} {key} created.", file=sys.stderr)
    if args.wait:
        return report(await follow(cluster, key, until, lambda seen: seen.has_ended), fields)
    print(f"Follow it with foresail rollback describe {key.name} -n {key.namespace}", file=sys.stderr)
    return 0


async def check_policy(cluster: Cluster, args: argparse.Namespace) -> None:
    """Refuse what the policy does not allow, for those who may read it; others are told by the operator's plan."""
    try:
        policy = await own_policy(cluster, args)
    except CommandError:
        return
    if policy is None:
        return  # self-service is enabled, and the operator knows by which policy
    rules = policy.spec.rollback
    name = f"SelfServicePolicy {policy.metadata.name}"
    patch = f"kubectl patch selfservicepolicy {policy.metadata.name} --type=merge -p"
    if not rules.enabled:
        problem = f"rollback is not enabled in namespace {args.namespace}: {name} does not have rollback.enabled"
        raise CommandError(f"{problem}; {_NOTHING}", f"a cluster administrator runs {patch} '{_ENABLE}'")
    if args.prune and not rules.prune:
        problem = f"--prune is not allowed in namespace {args.namespace}: {name} does not have rollback.prune"
        allow = f'{patch} \'{{"spec":{{"rollback":{{"prune":true}}}}}}\''
        raise CommandError(f"{problem}; {_NOTHING}", f"leave it out, or a cluster administrator runs {allow}")


async def _agreed(
    cluster: Cluster, args: argparse.Namespace, body: dict[str, Any], until: datetime | None, access: Access
) -> tuple[str, Fields | None]:
    """Show the operator's plan, ask, and return its digest and the fields that differ, if they are known."""
    seen = await _planned(cluster, args.namespace, body, until)
    plan = seen.status.plan
    if seen.status.phase != "Planned" or plan is None:
        raise CommandError(f"{_name(args)}: {seen.message}; {_NOTHING}", next_step(seen, now()))
    found = Differences()
    if args.dry_run or not plan.in_the_way:
        found = await find_differences(cluster, args.namespace, seen.spec, access)
    if args.dry_run and not is_table(args.output):
        print(as_text([seen.content], args.output), flush=True)
    else:
        out = sys.stdout if is_table(args.output) else sys.stderr
        print(plan_text(seen.spec, plan, found.fields), file=out, flush=True)
    obstacles = plan.in_the_way or [f"{name} cannot be changed back: {why}" for name, why in found.refused.items()]
    if obstacles:
        others = "".join(f"\n  {obstacle}" for obstacle in obstacles[1:])
        remedy = "do what is named" if plan.in_the_way else "delete it, or name other kinds with --only"
        raise CommandError(f"{_name(args)} cannot begin: {obstacles[0]}{others}", f"{_NOTHING}; {remedy}")
    if args.dry_run:
        hint(f"to do exactly this: {again(args, plan.digest)}")
        return plan.digest, found.fields
    _ask(args)
    return plan.digest, found.fields


def _name(args: argparse.Namespace) -> str:
    return f"a Rollback of namespace {args.namespace} to {args.to}"


def again(args: argparse.Namespace, digest: str) -> str:
    """Return the command that runs the plan of a dry run."""
    only = f" --only {','.join(read_list(args.only))}" if args.only else ""
    volumes = f" --volumes {args.volumes}" if VOLUMES[args.volumes] != "None" else ""
    more = f"{only}{volumes}{' --prune' if args.prune else ''}"
    return f"foresail rollback create --to {args.to} -n {args.namespace}{more} --plan-digest {digest} --wait"


def _ask(args: argparse.Namespace) -> None:
    if not args.confirm:
        question = f"Roll namespace {args.namespace} back to {args.to}? It is backed up first."
        confirm(question, f"roll back without confirmation (no terminal); {_NOTHING}", _NOTHING)


async def _planned(cluster: Cluster, namespace: str, body: dict[str, Any], until: datetime | None) -> Seen:
    """Let the operator make the plan, by a dry run that is deleted again."""
    key = Key(namespace, f"plan-{secrets.token_hex(4)}")
    asked = {
        **body,
        "metadata": {"name": key.name, "namespace": namespace},
        "spec": {**body["spec"], "dryRun": True},
    }
    made = decode(await cluster.create(ROLLBACK, key, await stamped(cluster, asked)))
    try:
        return await follow(cluster, key, until, lambda seen: seen.status.phase in ENDED)
    finally:
        await _forget(cluster, key, made.uid)


async def _forget(cluster: Cluster, key: Key, uid: str) -> None:
    """Delete the dry run; one that cannot be deleted is named, and is no reason to fail."""
    try:
        await cluster.delete(ROLLBACK, key, uid)
    except NotFoundError:
        return
    except CommandError as error:
        hint(f"delete the dry run {key.name} yourself: {error.problem}")


def report(seen: Seen, fields: Fields | None = None) -> int:
    """Report how a Rollback has ended: 0 if everything is as in the backup; otherwise raise what is not.

    `fields` are those that differed before, by the object: Velero also writes what differs in its labels alone.
    """
    if seen.status.phase != "Completed" or seen.reason == Reason.NOT_COMPARED:
        raise CommandError(f"{seen}: {seen.message}", next_step(seen, now()))
    print(f"{seen}: {seen.message}", file=sys.stderr)
    if fields is not None:
        differed = (
            f"{counted(len(fields), 'object')} that {'exists' if len(fields) == 1 else 'exist'} differed in fields"
        )
        print(f"Before, {differed}. Others were written for Velero's labels alone.", file=sys.stderr)
    hint(next_step(seen, now()))
    return 0
