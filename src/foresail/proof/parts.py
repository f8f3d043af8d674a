"""Which part of a namespace a schedule or a backup takes: all objects or some, and into whose bucket."""

from dataclasses import dataclass
from enum import IntEnum

import msgspec

from foresail.api.specs import BackupSpec
from foresail.proof.observe import BackupRow, ScheduleRow
from foresail.scope.policies import Policies, config_map_of

_NOBODY_MISSES = frozenset(
    (
        "ev",
        "events",
        "events.events.k8s.io",
        "*.oadp.openshift.io",  # self-service excludes requests
        "volumesnapshots.snapshot.storage.k8s.io",  # Velero excludes these two itself
        "volumesnapshotcontents.snapshot.storage.k8s.io",
    )
)
"""Kinds that a complete backup may leave out."""

_encoder = msgspec.json.Encoder(order="sorted")


class Rank(IntEnum):
    """How much a backup proves: the lower, the more. Where there is a lower one, the others do not count."""

    ALL_OBJECTS = 0
    SOME_OBJECTS = 1
    TENANTS_BUCKET = 2  # which the tenant can empty


@dataclass(frozen=True, slots=True)
class Part:
    """What is taken of a namespace; those that choose the same objects are equal."""

    rank: Rank = Rank.ALL_OBJECTS
    objects: bytes = b""
    """The filters; empty if all objects are taken."""


COMPLETE = Part()


def part_of(row: ScheduleRow | BackupRow, policies: Policies | None, *, knows_policies: bool = True) -> Part:
    """Return which part a schedule or a backup takes; a resource policy that nobody could read may filter objects."""
    objects = _objects(row.spec, policies, knows_policies=knows_policies)
    if row.is_in_tenants_bucket:
        return Part(Rank.TENANTS_BUCKET, objects)
    return Part(Rank.SOME_OBJECTS, objects) if objects else COMPLETE


def _objects(spec: BackupSpec, policies: Policies | None, *, knows_policies: bool) -> bytes:
    included = {*(spec.included_resources or ()), *(spec.included_namespace_scoped_resources or ())}
    excluded = {*(spec.excluded_resources or ()), *(spec.excluded_namespace_scoped_resources or ())} - _NOBODY_MISSES
    filters: list[object] = [
        [] if "*" in included else sorted(included - _NOBODY_MISSES or included),
        sorted(excluded),
        spec.label_selector,
        spec.or_label_selectors or None,
        config_map_of(spec) if not knows_policies or _has_filters(policies) else "",
    ]
    return _encoder.encode(filters) if any(each is not None and each not in ([], "") for each in filters) else b""


def _has_filters(policies: Policies | None) -> bool:
    return bool(policies and (policies.include_exclude_policy or policies.namespaced_filter_policies))
