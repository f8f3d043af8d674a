"""The plan of a Rollback for volumes: which claims it replaces, what it stops for that, and what is in the way."""

from collections.abc import Collection, Iterable, Iterator, Mapping

import msgspec

from foresail.api.policy import RollbackPolicy
from foresail.api.rollback import MOST_VOLUMES, KeptVolume, RollbackSpec, Stopped
from foresail.rollback.kinds import CLAIMS, STOPPED
from foresail.rollback.view import ClaimSeen, Findings, RequestSeen, Workload
from foresail.rollback.volumes import lasting_pods, stopped

CLAIM_KIND = "/PersistentVolumeClaim"
MOST_OF_CLAIM = 64 << 10
"""Characters of a claim that its old volume has in an annotation, of which an object has 256 KiB at most."""

_OTHERWISE = "leave out spec.volumes, or choose a backup with snapshotMoveData"


class PlannedVolumes(msgspec.Struct, frozen=True):
    """What a Rollback does with volumes, and what keeps it from that."""

    kept: tuple[KeptVolume, ...] = ()
    stopped: tuple[Stopped, ...] = ()
    has_claims: bool = False  # whether the backup has a claim with its data
    in_the_way: tuple[str, ...] = ()


def plan_volumes(
    spec: RollbackSpec,
    policy: RollbackPolicy,
    findings: Findings,
    contents: Mapping[str, tuple[str, ...]],
    keeping: str,
) -> PlannedVolumes:
    """Return what happens to the volumes of a namespace."""
    if spec.volumes == "None":
        return PlannedVolumes()
    with_data, unknown = _with_data(contents.get(CLAIM_KIND, ()), findings.to)
    claims = [claim for claim in findings.storage.claims if claim.name in with_data]
    kept = tuple(KeptVolume(claim.name, claim.volume, claim.uid, _volume_uid(findings, claim)) for claim in claims)
    users = [workload for workload in findings.storage.workloads if not set(workload.claims).isdisjoint(with_data)]
    active = [workload for workload in users if workload.is_active]
    ways = (
        *_against_policy(spec, policy, keeping, is_empty=not with_data and not unknown),
        *unknown,
        *_against_claims(findings, claims),
        *_against_users(findings, claims, users),
        *_against_rights(findings, active),
        *_against_number(claims),
    )
    return PlannedVolumes(kept, tuple(map(stopped, active)), bool(with_data), ways)


def _against_policy(spec: RollbackSpec, policy: RollbackPolicy, keeping: str, *, is_empty: bool) -> Iterator[str]:
    if policy.volumes == "None":
        yield "rollback.volumes of the SelfServicePolicy is None: leave out spec.volumes"
    if keeping:
        yield f"volume {keeping} of this namespace is still kept: delete its Rollback to release it, or wait"
    if spec.volumes == "Data" and is_empty:
        yield "the backup has no claim with its data"


def _against_number(claims: Collection[ClaimSeen]) -> Iterator[str]:
    if len(claims) > MOST_VOLUMES:
        yield f"{len(claims)} claims are to be replaced: a Rollback replaces {MOST_VOLUMES} at most"


def _with_data(claims: Collection[str], to: RequestSeen | None) -> tuple[frozenset[str], list[str]]:
    """Return the claims whose data the backup has, and why that is not known."""
    if to is None or not claims:
        return frozenset(), []
    if to.copied:
        text = (
            f"the backup has the files of {to.copied} volumes: a Rollback brings back volumes of moved snapshots only"
        )
        return frozenset(), [f"{text}; {_OTHERWISE}"]
    left_out = to.volumes_left_out.all_claims if to.volumes_left_out is not None else frozenset()
    if left_out is None:
        return frozenset(), ["the backup does not name all claims whose data it has not; leave out spec.volumes"]
    with_data = frozenset(claims) - left_out
    if len(with_data) != to.moved:
        text = f"the backup has {len(with_data)} claims and the moved data of {to.moved}"
        return frozenset(), [f"{text}; {_OTHERWISE}"]
    return with_data, []


def _volume_uid(findings: Findings, claim: ClaimSeen) -> str:
    return next((volume.uid for volume in findings.storage.volumes if volume.name == claim.volume), "")


def _against_claims(findings: Findings, claims: Iterable[ClaimSeen]) -> Iterator[str]:
    volumes = {volume.name: volume for volume in findings.storage.volumes}
    for claim in claims:
        volume = volumes.get(claim.volume)
        if claim.is_terminating:
            yield f"claim {claim.name} is being deleted"
        elif not claim.is_bound or volume is None or volume.claim_uid != claim.uid:
            yield f"claim {claim.name} is not bound to a volume of its own; wait until it is Bound"
        elif volume.rollback_uid or volume.is_terminating:
            yield f"volume {volume.name} of claim {claim.name} is kept by another Rollback, or being deleted"
        yield from _against_claim(findings, claim)


def _against_claim(findings: Findings, claim: ClaimSeen) -> Iterator[str]:
    """Yield why a claim could not be deleted, restored, or created again as it was."""
    if claim.finalizers:
        yield f"claim {claim.name} has finalizer {claim.finalizers[0]}: it would not go when it is deleted"
    if claim.owner:
        yield f"claim {claim.name} belongs to {claim.owner}, to which it could not be given back"
    if len(claim.body) > MOST_OF_CLAIM:
        yield f"claim {claim.name} has more than {MOST_OF_CLAIM >> 10} KiB of labels and annotations"
    if not claim.storage_class:
        yield f"claim {claim.name} names no StorageClass, so it could not be created again as it is"
    if claim.storage_class in findings.storage.no_classes:
        yield f"claim {claim.name} has StorageClass {claim.storage_class}, which does not exist"
    if claim.storage_class in findings.storage.late_classes:
        text = f"claim {claim.name} has StorageClass {claim.storage_class}, whose volumes wait for a pod"
        yield f'{text}; have "restorePVC": {{"ignoreDelayBinding": true}} set for Velero\'s node agent'


def _against_users(findings: Findings, claims: Collection[ClaimSeen], users: Collection[Workload]) -> Iterator[str]:
    """Yield what uses the claims and cannot be stopped."""
    for workload in users:
        if workload.resource not in STOPPED:
            yield f"{workload.resource}/{workload.name} uses a claim to be replaced, and cannot be stopped"
        elif workload.owner and workload.is_active:
            yield f"{workload.resource}/{workload.name} is controlled by {workload.owner}, which would start it again"
        if workload.deletes_claims:
            yield f"{workload.resource}/{workload.name} deletes its claims when it is scaled: set whenScaled to Retain"
    for pod in lasting_pods(findings, {claim.name for claim in claims}):
        owner = f" of {pod.owner_name}" if pod.owner_name else ""
        yield f"pod {pod.name}{owner} uses a claim to be replaced, and nothing stops it: delete it first"


def _against_rights(findings: Findings, active: Iterable[Workload]) -> Iterator[str]:
    for workload in active:
        if ("patch", workload.resource) in findings.denied:
            yield f"{workload.resource}/{workload.name} is to be stopped, and the requester may not patch it"
    for verb in ("delete", "create"):
        if (verb, CLAIMS) in findings.denied:
            yield f"claims are to be replaced, and the requester may not {verb} {CLAIMS}"
