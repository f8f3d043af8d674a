"""Which kinds of objects a tenant's backup holds, and which a tenant's restore brings back.

Velero reads the entries of these lists as patterns, and it stops at the first that it cannot read: one stray bracket
in a list of exclusions, and every exclusion after it is void. So a tenant writes names here, never patterns.
"""

import re
from collections.abc import Collection

import msgspec

from foresail.api.nonadmin import NEVER_BACKED_UP
from foresail.api.policy import RestoredKinds
from foresail.api.specs import BackupSpec, Names
from foresail.selfservice.specs.values import Refusal, Violation, few_enough, shown
from foresail.tenancy.restored_kinds import EVERYTHING, is_among, joined, left_out_kinds

CLUSTER_SCOPED_LEFT_OUT = ("*.*", "componentstatuses", "nodes")
"""Of the kinds without a namespace, all but PersistentVolumes and the Namespace itself.

Every kind outside the core group has a dot in its name, so this is a list of what is allowed. Velero lists nothing
without a namespace for such a backup; what is left out here would come along with something else, such as the
ClusterRoles of a ServiceAccount. VolumeSnapshotContents of the backup's own snapshots come along all the same.
"""

_CLAIMS = ("persistentvolumeclaims", "persistentvolumeclaim", "pvc")
COME_WITH_CLAIMS = (
    "persistentvolumes",
    "volumesnapshots.snapshot.storage.k8s.io",
    "volumesnapshotcontents.snapshot.storage.k8s.io",
)
"""What Velero restores a claim from: restored with it, and not asked about."""

NEED_TRUST = ("pods", "persistentvolumeclaims", *COME_WITH_CLAIMS)
"""What Velero would create as it is in the bucket though no tenant could: pods admitted as Velero, and any volume."""

_NEED_TRUST_BY_ALL_NAMES = frozenset(
    (
        *NEED_TRUST,
        *("pod", "po", "pvc", "persistentvolumeclaim", "pv", "persistentvolume"),
        *("volumesnapshots", "volumesnapshot", "vs", "volumesnapshotcontents", "volumesnapshotcontent", "vsc"),
    )
)

COME_ALONG = (
    *("persistentvolumes", "persistentvolume", "pv", "namespaces", "namespace", "ns"),
    *("volumesnapshotcontents", "volumesnapshotcontents.snapshot.storage.k8s.io"),
)
"""Cluster-scoped kinds that Velero backs up with what needs them."""

_NAME = re.compile(r"[A-Za-z0-9]([-A-Za-z0-9.]{0,251}[A-Za-z0-9])?")


def without_trust(included: Collection[str]) -> list[str]:
    """Return the kinds of a list that come back from a bucket that its tenant can rewrite."""
    return [kind for kind in included if kind.lower() not in _NEED_TRUST_BY_ALL_NAMES]


class BackedUp(msgspec.Struct, frozen=True):
    """The kinds of a backup, in the newer of Velero's two ways to say it."""

    included: Names | None
    excluded: Names
    cluster_scoped_excluded: Names


def backed_up(spec: BackupSpec, path: str) -> BackedUp:
    """Return the kinds of a backup; what is written in the older way is said in the newer one."""
    older = spec.included_resources or spec.excluded_resources or spec.include_cluster_resources is not None
    newer = (
        spec.included_namespace_scoped_resources
        or spec.excluded_namespace_scoped_resources
        or spec.excluded_cluster_scoped_resources
    )
    if older and newer:
        text = f"{path} mixes includedResources, excludedResources or includeClusterResources with the"
        raise Refusal(
            f"{text} cluster-scoped or namespace-scoped resource lists; Velero accepts only one style, so remove one"
        )
    if newer:
        where = f"{path}.includedNamespaceScopedResources"
        included = names(where, spec.included_namespace_scoped_resources)
        excluded = names(f"{path}.excludedNamespaceScopedResources", spec.excluded_namespace_scoped_resources)
        cluster_scoped = names(f"{path}.excludedClusterScopedResources", spec.excluded_cluster_scoped_resources)
    else:
        where = f"{path}.includedResources"
        included = _without_what_comes_along(where, names(where, spec.included_resources))
        excluded = names(f"{path}.excludedResources", spec.excluded_resources)
        # Of each list Velero leaves out what has the other scope, and only Velero knows which kind has which.
        cluster_scoped = (EVERYTHING,) if spec.include_cluster_resources is False else excluded
    _contradiction(path, included, excluded)
    for kind in included:
        if is_among(kind, NEVER_BACKED_UP):
            raise Violation(f"{where} contains {kind}, which self-service never backs up; remove it")
    everything = EVERYTHING in cluster_scoped
    return BackedUp(
        included=included or None,
        excluded=joined(excluded, NEVER_BACKED_UP),
        cluster_scoped_excluded=(EVERYTHING,) if everything else joined(cluster_scoped, CLUSTER_SCOPED_LEFT_OUT),
    )


def restored(
    included: Names | None, excluded: Names | None, kinds: RestoredKinds, path: str, policy: str
) -> tuple[Names | None, Names]:
    """Return the kinds that a restore brings back, and those that it leaves out."""
    where = f"{path}.includedResources"
    asked = names(where, included)
    unwanted = names(f"{path}.excludedResources", excluded)
    _contradiction(path, asked, unwanted)
    kinds = RestoredKinds(_of_policy(kinds.allowed, policy), _of_policy(kinds.refused, policy))
    never = left_out_kinds(kinds)
    for kind in asked:
        if is_among(kind, never):
            raise Violation(
                f"{where} contains {kind}, which SelfServicePolicy {policy} does not allow to restore; remove it"
            )
    if kinds.allowed is not None:
        asked = _of_the_allowed(asked, tuple(kind for kind in kinds.allowed if not is_among(kind, never)), path, policy)
        asked = tuple(kind for kind in asked if kind not in unwanted)
        if not asked:
            raise Refusal(f"nothing is left to restore; change {path}.excludedResources")
    left_out = joined(unwanted, never)
    if any(kind in _CLAIMS for kind in asked):
        asked = joined(asked, tuple(kind for kind in COME_WITH_CLAIMS if not is_among(kind, left_out)))
    return asked or None, left_out


def names(path: str, entries: Names | None) -> Names:
    """Return the names of kinds in lower case, each once; a star is the only one, and only where it means something."""
    few_enough(path, entries)
    kinds_named = tuple(
        dict.fromkeys(entry.lower() for entry in entries or () if _NAME.fullmatch(entry) or entry == EVERYTHING)
    )
    for entry in entries or ():
        if entry != EVERYTHING and not _NAME.fullmatch(entry):
            text = f"{path} contains {shown(entry)}, which is not a resource name"
            raise Refusal(f"{text}; write names such as deployments.apps, without wildcards")
    if EVERYTHING not in kinds_named:
        return kinds_named
    if len(kinds_named) > 1:
        raise Refusal(f"{path} contains * and names; remove the * or the names")
    if "excluded" in path and "ClusterScoped" not in path:
        raise Refusal(f"{path} excludes everything; list the kinds to exclude")
    return kinds_named


def _of_policy(entries: Names | None, policy: str) -> Names | None:
    """Return the names that an administrator wrote; one that Velero cannot read would void those after it."""
    for entry in entries or ():
        if not _NAME.fullmatch(entry.removeprefix("*.")):
            text = f"restore.kinds of SelfServicePolicy {policy} contains {shown(entry)}, which is not a resource name"
            raise Violation(f"{text}; ask a cluster administrator to correct it")
    return None if entries is None else tuple(entry.lower() for entry in entries)


def _of_the_allowed(asked: Names, allowed: Names, path: str, policy: str) -> Names:
    if not allowed:
        raise Violation(
            f"SelfServicePolicy {policy} allows no kind to be restored; ask a cluster administrator to allow some"
        )
    if not asked or EVERYTHING in asked:
        return allowed
    named: list[str] = []
    for kind in asked:
        meant = [allowed_kind for allowed_kind in allowed if kind in (allowed_kind, allowed_kind.partition(".")[0])]
        if not meant:
            text = (
                f"{path}.includedResources contains {kind}, which SelfServicePolicy {policy} does not allow to restore"
            )
            raise Violation(f"{text}; choose from {shown(', '.join(allowed))}")
        named += meant
    return tuple(dict.fromkeys(named))


def _without_what_comes_along(path: str, included: Names) -> Names:
    left = tuple(kind for kind in included if kind not in COME_ALONG)
    if included and not left:
        raise Refusal(f"{path} includes no namespaced kind; add one (volumes are included with their claims)")
    return left


def _contradiction(path: str, included: Names, excluded: Names) -> None:
    both = [kind for kind in included if kind in excluded]
    if both:
        raise Refusal(f"{path} both includes and excludes {both[0]}; remove one")
