"""`foresail location get` and `describe`: whether each location is approved and can be used, and what to do."""

import argparse
import sys
from collections.abc import Sequence
from datetime import datetime
from typing import Any

import msgspec

from foresail.api.nonadmin import NON_ADMIN_LOCATION, Condition, Location
from foresail.cli.access.cluster import Cluster, on_cluster, settle_namespace
from foresail.cli.options.shared import is_table
from foresail.cli.output.objects import as_text
from foresail.cli.output.table import aligned, table
from foresail.cli.output.words import short
from foresail.cli.tenant.advice import advice_for, capital
from foresail.kube.clock import now
from foresail.plan import Key

_APPROVED = "ClusterAdminApproved"
_ORDER = ("Accepted", _APPROVED, "SecretSynced", "BackupStorageLocationSynced")


class Shown(msgspec.Struct, frozen=True):
    """A location, decoded and as it came."""

    location: Location
    content: dict[str, Any]


def get(args: argparse.Namespace) -> int:
    """Print the locations."""
    locations = _found(args)
    if not is_table(args.output):
        print(as_text([shown_location.content for shown_location in locations], args.output))
    elif locations:
        header = ("NAME", "APPROVED", "PHASE", "VELERO", "BUCKET", "AGE", "WHY")
        rows = [_cells(shown_location.location, now()) for shown_location in locations]
        first = ("NAMESPACE",) if args.all_namespaces else ()
        shown = [
            (shown_location.location.metadata.namespace, *row) if first else row
            for shown_location, row in zip(locations, rows, strict=True)
        ]
        print(table((*first, *header), shown))
    else:
        where = f"namespace {args.namespace}" if args.namespace else "any namespace"
        print(f"No locations found in {where}", file=sys.stderr)
    return 0


def describe(args: argparse.Namespace) -> int:
    """Print the locations with their conditions and the next step."""
    print("\n\n".join(_described(shown.location) for shown in _found(args)))
    return 0


def location_spec(location: Location) -> dict[str, Any]:
    """Return what the tenant asks for."""
    return msgspec.json.decode(location.spec.backup_storage_location_spec, type=dict[str, Any])


def problem(location: Location) -> Condition | None:
    """Return the first condition that is False, in the order in which the operator decides."""
    wrong = (condition for condition in location.status.conditions or () if condition.status == "False")
    return min(
        wrong,
        key=lambda condition: _ORDER.index(condition.type) if condition.type in _ORDER else len(_ORDER),
        default=None,
    )


def _found(args: argparse.Namespace) -> Sequence[Shown]:
    if args.all_namespaces:
        args.namespace = ""
    else:
        settle_namespace(args)
    return on_cluster(args, lambda cluster: _read(cluster, args))


async def _read(cluster: Cluster, args: argparse.Namespace) -> list[Shown]:
    kind = NON_ADMIN_LOCATION
    if args.names:
        raw = [await cluster.read(kind, Key(args.namespace, name), msgspec.Raw) for name in args.names]
    else:
        raw = await cluster.listed(kind, args.namespace)
    locations = [_shown(item) for item in raw]
    return sorted(locations, key=lambda shown: (shown.location.metadata.namespace, shown.location.metadata.name))


def _shown(raw: msgspec.Raw) -> Shown:
    kind = {"apiVersion": NON_ADMIN_LOCATION.api_version, "kind": NON_ADMIN_LOCATION.name}
    content = msgspec.json.decode(raw, type=dict[str, Any])
    return Shown(msgspec.json.decode(raw, type=Location), {**kind, **content})


def _cells(location: Location, at: datetime) -> tuple[str, ...]:
    created = location.metadata.creation_timestamp
    held = problem(location)
    return (
        location.metadata.name,
        _status(location, _APPROVED),
        location.status.phase or "New",
        _velero_phase(location),
        str(location_spec(location).get("objectStorage", {}).get("bucket", "")),
        short(at - created) if created else "n/a",
        held.reason if held is not None else "",
    )


def _described(location: Location) -> str:
    spec = location_spec(location)
    meta = location.metadata
    stored = spec.get("objectStorage", {})
    lines = [
        f"Name:\t{meta.name}",
        f"Namespace:\t{meta.namespace}",
        f"Phase:\t{location.status.phase or 'New'}",
        f"Velero:\t{_velero_phase(location)}",
        f"Bucket:\t{stored.get('bucket', '')}, folder {meta.namespace}/{stored.get('prefix') or ''}",
        f"Secret:\t{spec.get('credential', {}).get('name', '')}",
    ]
    lines += [
        f"{condition.type}:\t{condition.status}, {condition.reason}: {condition.message}"
        for condition in location.status.conditions or ()
    ]
    held = problem(location)
    if held is not None:
        step = advice_for(held.reason).next_step.format(
            name=meta.name, namespace=meta.namespace, word="location", kind="nabsl"
        )
        lines.append(f"Next step:\t{capital(step)}")
    return aligned(lines)


def _status(location: Location, kind: str) -> str:
    return next(
        (condition.status for condition in location.status.conditions or () if condition.type == kind), "Unknown"
    )


def _velero_phase(location: Location) -> str:
    made = location.status.velero_backup_storage_location
    document = msgspec.json.decode(made.status, type=dict[str, Any]) if made is not None else {}
    return str(document.get("phase") or "<none>")
