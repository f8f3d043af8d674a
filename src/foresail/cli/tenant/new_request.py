"""What every new request needs: a valid name, kinds that the cluster serves, and the name of the requester."""

import argparse
import re
from collections.abc import Collection, Iterable, Mapping
from datetime import datetime
from typing import Any

import msgspec

from foresail.api.marks import REQUESTER, REQUESTER_GROUPS
from foresail.cli.access.cluster import Cluster
from foresail.cli.errors import CommandError, UsageError
from foresail.cli.output.messages import hint
from foresail.plan import Kind
from foresail.selfservice.access.discovery import (
    ApiResource,
    api_resources,
    cluster_scoped_names,
    not_served,
    unserved_names,
)
from foresail.selfservice.families import BACKUPS, Family
from foresail.selfservice.specs.kinds import COME_ALONG

_LONGEST = 253
_VALID = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
_STAMP = "-%Y%m%d%H%M%S"


def settle_name(family: Family, args: argparse.Namespace, instant: datetime) -> None:
    """Check the name of a new request; name a restore after its backup and the time if none is given."""
    if args.name is None and family is not BACKUPS:
        args.name = restore_name(args.from_backup or args.from_protection, instant)
    if args.name is None:
        raise UsageError("no NAME is given", f"foresail {family.word} create NAME")
    check_name(family.kind, args.name)


def check_name(kind: Kind, name: str) -> None:
    """Refuse a name that the API server would refuse."""
    problem = problem_with_name(name)
    if problem is not None:
        raise UsageError(f"{kind.name} {name}: {problem}", advice_for_name(name))


def restore_name(backup: str, instant: datetime) -> str:
    """Return the name of a restore: its backup and the time."""
    suffix = f"{instant:{_STAMP}}"
    return f"{backup[: _LONGEST - len(suffix)]}{suffix}"


def problem_with_name(name: str) -> str | None:
    """Return why the API server would refuse a name; None if it would not."""
    if len(name) > _LONGEST:
        return f"the name has {len(name)} characters"
    return None if _VALID.fullmatch(name) else "the name is not valid"


def advice_for_name(name: str) -> str:
    """Return what a valid name has, and one that is like this name."""
    better = re.sub(r"[^a-z0-9.]+", "-", name.lower())[:_LONGEST].strip("-.")
    such = f", such as {better}" if better and problem_with_name(better) is None and better != name else ""
    return f"use at most {_LONGEST} lowercase letters, digits, - and .{such}"


_INCLUDED = ("includedResources", "includedNamespaceScopedResources")
_EXCLUDED = ("excludedResources", "excludedNamespaceScopedResources", "excludedClusterScopedResources")


async def check_kinds(cluster: Cluster, family: Family, body: dict[str, Any]) -> None:
    """Refuse a request all of whose kinds are unknown to the cluster; name those of others on standard error."""
    spec: dict[str, Any] = body["spec"][f"{family.word}Spec"]
    if not any(spec.get(field) for field in (*_INCLUDED, *_EXCLUDED)):
        return
    discovery = await cluster.discovered()
    if discovery is not None:
        judge(family, spec, api_resources(discovery))


def judge(family: Family, spec: dict[str, Any], served: Collection[ApiResource]) -> None:
    """Raise or print what is wrong with the names of kinds in a spec."""
    included = _names(spec, _INCLUDED)
    unknown = unserved_names(included, served)
    clusters = cluster_scoped_names(included, served)
    if unknown and len(unknown) == len(included):
        text = f"the cluster serves none of the kinds to include: {not_served(unknown, served)}"
        raise CommandError(text, "list the kinds that it serves with kubectl api-resources --namespaced")
    if clusters and len(unknown) + len(clusters) == len(included):  # Velero would include every kind instead
        text = f"--include-resources has only cluster-scoped kinds: {', '.join(clusters)}"
        raise CommandError(text, "include namespaced kinds; volumes are included with persistentvolumeclaims")
    excluded = unserved_names(_names(spec, _EXCLUDED), served)
    left_out = [name for name in clusters if name.lower() not in COME_ALONG]
    for names, effect in ((unknown, f"not in the {family.word}"), (excluded, "excluded without effect")):
        if names:
            hint(f"{effect} (not served by the cluster): {not_served(names, served)}")
    if left_out:
        hint(f"not in the {family.word} (cluster-scoped): {', '.join(left_out)}")


def _names(spec: dict[str, Any], fields: Iterable[str]) -> list[str]:
    return [name for field in fields for name in spec.get(field) or ()]


_REVIEW = Kind("authentication.k8s.io", "v1", "selfsubjectreviews", "SelfSubjectReview", namespaced=False)


class User(msgspec.Struct, frozen=True):
    """Who makes the requests, as the API server knows them."""

    username: str = ""
    groups: tuple[str, ...] = ()


class _Status(msgspec.Struct, frozen=True, rename="camel"):
    user_info: User = User()


class _Review(msgspec.Struct, frozen=True):
    status: _Status = _Status()


async def stamped(cluster: Cluster, body: Mapping[str, Any]) -> dict[str, Any]:
    """Return a request, or a change of one, with the annotations that name the current user."""
    metadata = body.get("metadata", {})
    annotations = {**metadata.get("annotations", {}), **await _stamp(cluster)}
    return {**body, "metadata": {**metadata, "annotations": annotations}} if annotations else dict(body)


async def current_user(cluster: Cluster) -> User | None:
    """Ask the API server who the user is; None if it does not answer."""
    raw = await cluster.reviewed(_REVIEW, {"apiVersion": _REVIEW.api_version, "kind": _REVIEW.name})
    return None if raw is None else msgspec.json.decode(raw, type=_Review).status.user_info


async def _stamp(cluster: Cluster) -> dict[str, str]:
    """Return the annotations; without an answer, leave them to the API server."""
    user = await current_user(cluster)
    return {} if user is None else {REQUESTER: user.username, REQUESTER_GROUPS: "\n".join(user.groups)}
