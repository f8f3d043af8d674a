"""The tiers of schedules and backups: which part of a namespace one takes, all or some, and into whose bucket."""

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from enum import IntEnum

import msgspec

from foresail.api.nonadmin import NEVER_BACKED_UP
from foresail.api.specs import BackupSpec
from foresail.proof.view import BackupRow, ScheduleRow
from foresail.scope.resource_policies import Policies, config_map_of

_LEFT_OUT_BY_ALL = (
    ("events", "event", "ev"),
    ("events.events.k8s.io",),
    NEVER_BACKED_UP,
    ("volumesnapshots.snapshot.storage.k8s.io", "volumesnapshots", "vs"),  # Velero excludes these two itself
    ("volumesnapshotcontents.snapshot.storage.k8s.io", "volumesnapshotcontents", "vsc"),
)
_CLUSTER_SCOPED = (
    ("namespaces", "namespace", "ns"),
    ("nodes", "node", "no"),
    ("persistentvolumes", "persistentvolume", "pv"),
    ("storageclasses.storage.k8s.io", "storageclasses", "storageclass", "sc"),
    ("csidrivers.storage.k8s.io", "csidrivers", "csidriver"),
    ("csinodes.storage.k8s.io", "csinodes", "csinode"),
    ("volumeattachments.storage.k8s.io", "volumeattachments", "volumeattachment"),
    ("customresourcedefinitions.apiextensions.k8s.io", "customresourcedefinitions", "crds", "crd"),
    ("apiservices.apiregistration.k8s.io", "apiservices", "apiservice"),
    ("clusterroles.rbac.authorization.k8s.io", "clusterroles", "clusterrole"),
    ("clusterrolebindings.rbac.authorization.k8s.io", "clusterrolebindings", "clusterrolebinding"),
    ("priorityclasses.scheduling.k8s.io", "priorityclasses", "priorityclass", "pc"),
    ("ingressclasses.networking.k8s.io", "ingressclasses", "ingressclass"),
    ("runtimeclasses.node.k8s.io", "runtimeclasses", "runtimeclass"),
    ("certificatesigningrequests.certificates.k8s.io", "certificatesigningrequests", "csr"),
    ("mutatingwebhookconfigurations.admissionregistration.k8s.io", "mutatingwebhookconfigurations"),
    ("validatingwebhookconfigurations.admissionregistration.k8s.io", "validatingwebhookconfigurations"),
)
_NOBODY_MISSES = frozenset(name for kinds in (_LEFT_OUT_BY_ALL, _CLUSTER_SCOPED) for names in kinds for name in names)
"""What a complete backup of a namespace may leave out, by all names of the kinds."""

_encoder = msgspec.json.Encoder(order="sorted")


class Tier(IntEnum):
    """How much a backup proves: the best first. Where there is a better one, the others do not count."""

    ALL_OBJECTS = 0
    SOME_OBJECTS = 1
    TENANTS_BUCKET = 2  # which the tenant can empty


@dataclass(frozen=True, slots=True)
class Part:
    """What is taken of a namespace; those that choose the same objects are equal."""

    tier: Tier = Tier.ALL_OBJECTS
    objects: bytes = b""
    """The filters; empty if all objects are taken."""


COMPLETE = Part()


def part_of(row: ScheduleRow | BackupRow, policies: Policies | None, *, knows_policies: bool = True) -> Part:
    """Return which part a schedule or a backup takes; a resource policy that nobody could read may filter objects."""
    objects = _objects(row.spec, policies, knows_policies=knows_policies)
    if row.is_in_tenants_bucket:
        return Part(Tier.TENANTS_BUCKET, objects)
    return Part(Tier.SOME_OBJECTS, objects) if objects else COMPLETE


def those_that_count(schedules: Iterable[ScheduleRow]) -> dict[Part, list[ScheduleRow]]:
    """Return the schedules of the best tier, the only ones that count, by the part of a namespace that they take."""
    parts = {row.title: part_of(row, row.policies, knows_policies=not row.policy_unread) for row in schedules}
    tier = min(part.tier for part in parts.values())
    groups: dict[Part, list[ScheduleRow]] = defaultdict(list)
    for row in schedules:
        if parts[row.title].tier is tier:
            groups[parts[row.title]].append(row)
    return groups


def _objects(spec: BackupSpec, policies: Policies | None, *, knows_policies: bool) -> bytes:
    included = _names(spec.included_resources, spec.included_namespace_scoped_resources)
    excluded = _names(spec.excluded_resources, spec.excluded_namespace_scoped_resources) - _NOBODY_MISSES
    filters: list[object] = [
        [] if "*" in included else sorted(included - _NOBODY_MISSES or included),
        sorted(excluded),
        spec.label_selector,
        spec.or_label_selectors or None,
        config_map_of(spec) if not knows_policies or _has_filters(policies) else "",
    ]
    return _encoder.encode(filters) if any(value is not None and value not in ([], "") for value in filters) else b""


def _names(*lists: tuple[str, ...] | None) -> set[str]:
    return {name.lower() for names in lists for name in names or ()}


def _has_filters(policies: Policies | None) -> bool:
    """Whether a resource policy leaves objects of namespaces out; a filter for one namespace counts for all."""
    lists = policies.include_exclude_policy if policies else None
    included = _names(lists.included_namespace_scoped_resources) if lists else set()
    excluded = _names(lists.excluded_namespace_scoped_resources) - _NOBODY_MISSES if lists else set()
    is_filtered = bool(policies and policies.namespaced_filter_policies)
    return is_filtered or bool(excluded) or bool(included and "*" not in included)
