"""`foresail location request`: what tenants ask for, and the administrator's decision.

A request is found by namespace and name, and by the UID of the location that has both now: never by a name alone.
"""

import argparse
import re
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import msgspec

from foresail.api.marks import REQUEST_UID
from foresail.api.nonadmin import NON_ADMIN_LOCATION, NON_ADMIN_LOCATION_REQUEST, Approval, Location, RequestedLocation
from foresail.cli.access.cluster import Cluster, may, on_cluster
from foresail.cli.errors import CommandError
from foresail.cli.location.get import location_spec, problem
from foresail.cli.options.shared import is_table
from foresail.cli.output.messages import hint
from foresail.cli.output.objects import as_text
from foresail.cli.output.table import table
from foresail.plan import Key

APPROVE, REJECT = "approve", "reject"
_USER = re.compile(r"//[^/]*@")  # in front of a host: a name and a password
_REASONS = {APPROVE: "openshift.io/oadp-approval-reason", REJECT: "openshift.io/oadp-rejection-reason"}


def get(args: argparse.Namespace) -> int:
    """Print the requests of all tenants, or of the namespace of -n, and the locations that have none yet."""
    requested, unrequested = on_cluster(args, lambda cluster: _read(cluster, args))
    if not is_table(args.output):
        kind = {"apiVersion": NON_ADMIN_LOCATION_REQUEST.api_version, "kind": NON_ADMIN_LOCATION_REQUEST.name}
        print(as_text([{**kind, **msgspec.json.decode(raw, type=dict[str, Any])} for raw, _ in requested], args.output))
        return 0
    rows = [(*request_cells(request), "") for _, request in requested]
    rows += [unrequested_cells(location, in_full=args.output == "wide") for location in unrequested]
    if rows:
        print(table(("NAMESPACE", "NAME", "PHASE", "DECISION", "BUCKET", "REQUEST", "WHY"), rows), flush=True)
    else:
        where = f"namespace {args.namespace}" if args.namespace else "any namespace"
        print(f"No location requests found in {where}", file=sys.stderr)
    if unrequested:
        first = unrequested[0].metadata
        command = f"foresail location describe {first.name} -n {first.namespace}"
        hint(f"what has no request yet cannot be approved; see {command}")
    elif not rows:
        hint("a location has none before the operator may read its Secret; see foresail location get -A")
    return 0


async def _read(
    cluster: Cluster, args: argparse.Namespace
) -> tuple[list[tuple[msgspec.Raw, Approval]], list[Location]]:
    namespace = args.namespace or ""
    every = await read_requests(cluster, args.velero_namespace)
    unrequested = (
        await read_unrequested(cluster, namespace, [request for _, request in every]) if is_table(args.output) else []
    )
    return [pair for pair in every if not namespace or asked_for(pair[1]).namespace == namespace], unrequested


async def read_unrequested(cluster: Cluster, namespace: str, requests: Iterable[Approval]) -> list[Location]:
    """Return the locations without a request for approval, as far as the user may list locations."""
    if not await may(cluster, "list", NON_ADMIN_LOCATION, namespace):
        return []
    asked = {(request.metadata.annotations or {}).get(REQUEST_UID) for request in requests}
    raw = await cluster.listed_if_known(NON_ADMIN_LOCATION, namespace)
    locations = [msgspec.json.decode(item, type=Location) for item in raw]
    unrequested = [
        location
        for location in locations
        if location.metadata.uid not in asked and not location.metadata.deletion_timestamp
    ]
    return sorted(unrequested, key=lambda location: (location.metadata.namespace, location.metadata.name))


def unrequested_cells(location: Location, *, in_full: bool) -> tuple[str, ...]:
    """Return the cells of a location that has no request yet, and why it has none."""
    meta = location.metadata
    held = problem(location)
    why = "no operator has processed it" if not location.status.phase else ""
    if held is not None:
        why = f"{held.reason}: {held.message}" if in_full else held.reason
    bucket = str(location_spec(location).get("objectStorage", {}).get("bucket", ""))
    return (meta.namespace, meta.name, location.status.phase or "New", "not requested", bucket, "-", why)


def approve(args: argparse.Namespace) -> int:
    """Approve what is requested now, and nothing that comes later."""
    return on_cluster(args, lambda cluster: _decide(cluster, args, APPROVE))


def reject(args: argparse.Namespace) -> int:
    """Reject a request, or withdraw an approval."""
    return on_cluster(args, lambda cluster: _decide(cluster, args, REJECT))


async def read_requests(cluster: Cluster, velero_namespace: str) -> list[tuple[msgspec.Raw, Approval]]:
    """Return the requests of all tenants, as they came and decoded."""
    raw = await cluster.listed(NON_ADMIN_LOCATION_REQUEST, velero_namespace)
    pairs = [(item, msgspec.json.decode(item, type=Approval)) for item in raw]
    return sorted(pairs, key=lambda pair: (asked_for(pair[1]).namespace, asked_for(pair[1]).name))


async def _decide(cluster: Cluster, args: argparse.Namespace, decision: str) -> int:
    key = Key(args.namespace, args.name)
    print(await decide(cluster, args.velero_namespace, key, decision, reason=args.reason or ""), file=sys.stderr)
    return 0


@dataclass(frozen=True, slots=True)
class Decision:
    """The write that approves or rejects what was read, and what that is in words."""

    at: Key  # of the request
    body: dict[str, Any]
    about: str


async def decide(cluster: Cluster, velero_namespace: str, key: Key, decision: str, *, reason: str = "") -> str:
    """Approve or reject a request, and return what was done."""
    made = await decision_on(cluster, velero_namespace, key, decision, reason=reason)
    if not await cluster.merged_if_same(NON_ADMIN_LOCATION_REQUEST, made.at, made.body):
        raise _changed(made.at)
    word = "approved" if decision == APPROVE else "rejected"
    return f"{NON_ADMIN_LOCATION.name} {key} {word}: {made.about}."


async def decision_on(
    cluster: Cluster, velero_namespace: str, key: Key, decision: str, *, reason: str = "", seen: str | None = None
) -> Decision:
    """Return what approves or rejects a request; `seen` is the request that the decision is about."""
    location = await cluster.read(NON_ADMIN_LOCATION, key, Location)
    made = location.status.velero_backup_storage_location
    if made is None or not made.name:
        raise CommandError(
            f"{NON_ADMIN_LOCATION.name} {key} has not asked for approval yet",
            f"see why with foresail location describe {key.name} -n {key.namespace}",
        )
    at = Key(velero_namespace, made.name)
    approval = await cluster.read(NON_ADMIN_LOCATION_REQUEST, at, Approval)
    asked = asked_for(approval)
    is_its = (approval.metadata.annotations or {}).get(REQUEST_UID) == location.metadata.uid
    if not is_its or (asked.namespace, asked.name) != (key.namespace, key.name):
        raise CommandError(f"{NON_ADMIN_LOCATION_REQUEST.name} {at} is not of {key}", "check it with kubectl describe")
    if seen is not None and seen != asked.request_hash:
        raise _changed(at)
    spec = {"approvalDecision": decision, "approvedRequest": asked.request_hash if decision == APPROVE else ""}
    metadata: dict[str, Any] = {"resourceVersion": approval.metadata.resource_version}
    if reason:
        metadata["annotations"] = {_REASONS[decision]: reason}
    bucket = msgspec.json.decode(asked.requested_spec, type=dict[str, Any]).get("objectStorage", {}).get("bucket")
    return Decision(at, {"metadata": metadata, "spec": spec}, f"bucket {bucket}, request {asked.request_hash[:12]}")


def _changed(at: Key) -> CommandError:
    return CommandError(
        f"{NON_ADMIN_LOCATION_REQUEST.name} {at} has changed meanwhile", "see what it asks for now, then try again"
    )


def asked_for(approval: Approval) -> RequestedLocation:
    """Return what a tenant asks for."""
    return approval.status.non_admin_backup_storage_location or RequestedLocation()


def request_cells(approval: Approval) -> tuple[str, ...]:
    """Return the cells of the table."""
    asked = asked_for(approval)
    spec = msgspec.json.decode(asked.requested_spec, type=dict[str, Any])
    return (
        asked.namespace,
        asked.name,
        approval.status.phase or "Pending",
        approval.spec.approval_decision or "pending",
        str(spec.get("objectStorage", {}).get("bucket", "")),
        asked.request_hash[:12],
    )


def requested(approval: Approval) -> list[str]:
    """Return where the requested location leads and how it is reached; the reference to credentials is left out."""
    spec = msgspec.json.decode(asked_for(approval).requested_spec, type=dict[str, Any])
    storage, config = (
        part if isinstance(part := spec.get(field), dict) else {} for field in ("objectStorage", "config")
    )
    facts = {
        "provider": spec.get("provider", ""),
        "bucket": storage.get("bucket", ""),
        "prefix": storage.get("prefix") or "none",
        "CA": "set" if storage.get("caCert") else "none",
        **{f"config.{key}": _USER.sub("//…@", str(value)) for key, value in sorted(config.items())},
        **{key: spec[key] for key in ("accessMode", "default") if spec.get(key)},
    }
    return [f"{name}: {value}" for name, value in facts.items()]
