"""`foresail check create`: a RestoreCheck that will be served, or the reason why it would not be."""

import argparse
import sys
from typing import Any

import msgspec

from foresail.api.metadata import SpecMetadata
from foresail.api.restore_check import RESTORE_CHECK, RestoreCheck, RestoreCheckSpec
from foresail.cli.access.cluster import Cluster, may, on_cluster
from foresail.cli.check.checks import BLOCKED, condition, read_check, read_checks
from foresail.cli.errors import CommandError, UsageError
from foresail.cli.policy.usage import own_policy
from foresail.cli.tenant.new_request import check_name
from foresail.cli.verbs import answer, create_object, is_printed, print_object
from foresail.kube.clock import now
from foresail.plan import Key
from foresail.proof.checks.reasons import Reason
from foresail.proof.checks.rows import check_row
from foresail.proof.checks.rules import expression
from foresail.proof.checks.tenants import refusal
from foresail.proof.checks.view import Tenant
from foresail.slots.expression import Unusable
from foresail.tenancy.namespaces import NamespaceRow

_REFUSED = (Reason.NOT_ALLOWED, Reason.QUOTA_EXCEEDED, Reason.INVALID_SCHEDULE)
"""Reasons for which no wait helps."""


def create(args: argparse.Namespace) -> int:
    """Create a RestoreCheck, or print the manifest, which needs no cluster."""
    args.namespace = args.namespace or args.velero_namespace
    check_name(RESTORE_CHECK, args.name)
    cron = expression(args.schedule) if args.schedule else None
    if isinstance(cron, Unusable):
        raise UsageError(
            f"--schedule: {cron.message}", "correct it; foresail cron explain shows what an expression means"
        )
    body = check_object(args)
    if is_printed(args):
        print_object(args, body)
        return 0
    return on_cluster(args, lambda cluster: _create(cluster, args, body))


def check_object(args: argparse.Namespace) -> dict[str, Any]:
    """Return the RestoreCheck that the options describe: of an administrator, or of a tenant."""
    is_administrators = args.namespace == args.velero_namespace
    if is_administrators and not args.from_schedule:
        problem = f"a RestoreCheck in namespace {args.namespace} needs --from-schedule"
        raise UsageError(problem, "name a Schedule: foresail schedule get; or name a tenant's namespace with -n")
    backups: dict[str, Any] = {"nonAdminBackups": {}}
    if args.from_schedule:
        backups = {"schedule" if is_administrators else "nonAdminSchedule": args.from_schedule}
    return {
        "apiVersion": RESTORE_CHECK.api_version,
        "kind": RESTORE_CHECK.name,
        "metadata": {"name": args.name, "namespace": args.namespace},
        "spec": {"backups": backups, **({"schedule": args.schedule} if args.schedule else {})},
    }


async def _create(cluster: Cluster, args: argparse.Namespace, body: dict[str, Any]) -> int:
    key = Key(args.namespace, args.name)
    await _refuse(cluster, args, body)
    await create_object(cluster, args, RESTORE_CHECK, body)
    if not args.dry_run:
        print(f"{RESTORE_CHECK.name} {key} created.{await _answer(cluster, key)}", file=sys.stderr)
    return 0


async def _refuse(cluster: Cluster, args: argparse.Namespace, body: dict[str, Any]) -> None:
    """Raise why the operator would not serve a tenant's check, by its own rule; a tenant may not read the policy."""
    if args.namespace == args.velero_namespace:
        return
    try:
        policy = await own_policy(cluster, args)
    except CommandError:
        return  # the operator answers
    rank = 0
    if await may(cluster, "list", RESTORE_CHECK, args.namespace):
        checks = await read_checks(cluster, args.namespace)
        rank = sum("deletionTimestamp" not in check["metadata"] for check in checks)
    metadata = SpecMetadata(name=args.name, namespace=args.namespace, creation_timestamp=now())
    spec = msgspec.convert(body["spec"], RestoreCheckSpec)
    row = check_row(RestoreCheck(metadata, spec), args.velero_namespace)
    rules = policy.spec.restore_checks if policy is not None else None
    refused = refusal(row, Tenant(NamespaceRow("", {}, is_terminating=False), rules, rank))
    if refused is not None:
        reason, message = refused
        raise CommandError(
            f"{RESTORE_CHECK.name} {row.key} is not created: {reason.value}: {message}", _hint(args, reason)
        )


def _hint(args: argparse.Namespace, reason: Reason) -> str:
    command = f"foresail policy usage -n {args.namespace} names the policy, whose spec.restoreChecks decides"
    return f"{BLOCKED[reason]}; {command}"


async def _answer(cluster: Cluster, key: Key) -> str:
    """Return what the operator answers to a new check; raise its refusal."""

    async def ask() -> str:
        ready = condition(await read_check(cluster, key), "Ready")
        reason = ready.get("reason")
        if reason in _REFUSED:
            problem = f"{RESTORE_CHECK.name} {key} was created, but does not run: {reason}: {ready.get('message')}"
            raise CommandError(problem, BLOCKED[Reason(reason)])
        return f" {ready.get('message')}." if ready else ""

    command = f"foresail check explain {key.name} -n {key.namespace}"
    return await answer(ask, f" The operator has not answered yet. See its status with {command}")
