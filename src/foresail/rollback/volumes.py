"""The volumes of a Rollback: which claims are replaced, what uses them, and how their old volumes come back.

    marked and set to Retain → what uses the claims is stopped → the claims are deleted → Velero restores them

The undo goes the other way: the restored claim is deleted, a claim like the old one is created, and the old volume's
`claimRef` changes from the UID of the old claim to that of the new one. It is never empty, so no other claim can take
the volume. What a write to a volume depends on is on the volume itself: its mark, and the namespace and name in its
`claimRef`. A tenant can write neither, whatever the status of a Rollback says.
"""

from collections.abc import Callable, Iterator
from collections.abc import Set as AbstractSet
from datetime import datetime

import msgspec

from foresail.api import core
from foresail.api.instants import stamp
from foresail.api.marks import KEPT_VOLUME, ROLLBACK_UID
from foresail.api.rollback import KeptVolume, Stopped
from foresail.plan import Create, Delete, Key, Patch
from foresail.rollback.kinds import STATEFUL_SET, STOPPED, SUSPENDED_BY, full_name
from foresail.rollback.view import ClaimSeen, Findings, PodSeen, RequestSeen, RollbackRow, VolumeSeen, Workload

RETAIN, RELEASED = "Retain", "Released"


class Record(msgspec.Struct, frozen=True):
    """What the annotation on an old volume has: whose it is, its former reclaim policy, and its claim."""

    reclaim_policy: str  # the first, so that the fence of the operator's token can read it
    rollback: str  # as namespace/name
    until: str  # when it is released if nothing is known of the Rollback any more
    is_done: bool = False  # the Rollback was complete: once it is deleted, the volume is released
    claim: msgspec.Raw = msgspec.Raw(b"{}")  # labels, annotations and spec

    @property
    def key(self) -> Key:
        """The Rollback."""
        namespace, _, name = self.rollback.partition("/")
        return Key(namespace, name)


_record = msgspec.json.Decoder(Record)


def record_of(volume: VolumeSeen) -> Record | None:
    """Return the record on a volume; None if it has none."""
    try:
        return _record.decode(volume.record) if volume.record else None
    except msgspec.DecodeError:
        return None


# The safety backup


def missing_data(row: RollbackRow, seen: RequestSeen) -> str:
    """Return what a complete safety backup lacks of the volumes to be replaced; empty if it has all."""
    names = {volume.claim for volume in row.status.volumes}
    if not names:
        return ""
    left_out = seen.volumes_left_out.all_claims if seen.volumes_left_out is not None else frozenset()
    if left_out is None or names & left_out or seen.moved < len(names):
        lost = ", ".join(sorted(names & (left_out or names))) or ", ".join(sorted(names))
        return f"it has not the data of {lost}"
    return ""


# The old volumes


def old_volumes(row: RollbackRow, findings: Findings) -> dict[str, VolumeSeen]:
    """Return the marked volumes of the Rollback by the name of their claim, as far as they are this namespace's."""
    recorded = {kept.volume for kept in row.status.volumes}
    return {
        volume.claim.name: volume
        for volume in findings.storage.volumes
        if volume.name in recorded and volume.rollback_uid == row.uid and volume.claim.namespace == row.key.namespace
    }


def to_keep(row: RollbackRow, findings: Findings, until: datetime) -> tuple[Patch, ...] | str:
    """Return the writes that mark the volumes and set them to Retain, or why one is not the recorded one."""
    claims = {claim.name: claim for claim in findings.storage.claims}
    volumes = {volume.name: volume for volume in findings.storage.volumes}
    writes: list[Patch] = []
    for kept in row.status.volumes:
        claim, volume = claims.get(kept.claim), volumes.get(kept.volume)
        if claim is None or volume is None or not _is_recorded(row, kept, claim, volume):
            return f"claim {kept.claim} is not bound to volume {kept.volume} any more"
        if volume.rollback_uid != row.uid:
            writes.append(_keep(row, claim, volume, until))
        elif volume.reclaim_policy != RETAIN:
            writes.append(Patch(core.VOLUME, Key("", volume.name), {"spec": {_POLICY: RETAIN}}, volume.version))
    return tuple(writes)


_POLICY = "persistentVolumeReclaimPolicy"


def _is_recorded(row: RollbackRow, kept: KeptVolume, claim: ClaimSeen, volume: VolumeSeen) -> bool:
    """Whether claim and volume are bound to each other, and both are those of the plan."""
    is_claim = claim.uid == kept.claim_uid and claim.volume == volume.name and claim.is_bound
    is_volume = volume.uid == kept.volume_uid and not volume.is_terminating and volume.rollback_uid in ("", row.uid)
    at = Key(row.key.namespace, claim.name)
    return is_claim and is_volume and volume.claim == at and volume.claim_uid == claim.uid and not claim.is_terminating


def _keep(row: RollbackRow, claim: ClaimSeen, volume: VolumeSeen, until: datetime) -> Patch:
    body = msgspec.Raw(claim.body.encode() or b"{}")
    record = Record(volume.reclaim_policy, str(row.key), stamp(until), claim=body)
    metadata = {
        "uid": volume.uid,
        "labels": {ROLLBACK_UID: row.uid},
        "annotations": {KEPT_VOLUME: msgspec.json.encode(record).decode()},
    }
    return Patch(core.VOLUME, Key("", volume.name), {"metadata": metadata, "spec": {_POLICY: RETAIN}}, volume.version)


def complete(row: RollbackRow, findings: Findings, until: datetime) -> tuple[Patch, ...]:
    """Return the writes that record the deadline on the old volumes of a Rollback that is complete."""
    records = {volume: record_of(volume) for volume in old_volumes(row, findings).values()}
    return tuple(
        _record_on(volume, msgspec.structs.replace(record, until=stamp(until), is_done=True))
        for volume, record in records.items()
        if record is not None
    )


def _record_on(volume: VolumeSeen, record: Record) -> Patch:
    annotations = {KEPT_VOLUME: msgspec.json.encode(record).decode()}
    body = {"metadata": {"uid": volume.uid, "annotations": annotations}}
    return Patch(core.VOLUME, Key("", volume.name), body, volume.version)


def release(volume: VolumeSeen, record: Record) -> Patch:
    """Return the write that gives a volume its former reclaim policy back, and takes the mark away."""
    metadata = {"uid": volume.uid, "labels": {ROLLBACK_UID: None}, "annotations": {KEPT_VOLUME: None}}
    body = {"metadata": metadata, "spec": {_POLICY: record.reclaim_policy}}
    return Patch(core.VOLUME, Key("", volume.name), body, volume.version)


def to_release(row: RollbackRow, findings: Findings) -> tuple[Patch, ...]:
    """Return the writes that end the keeping of volumes whose claims have them again."""
    records = [(volume, record_of(volume)) for volume in old_volumes(row, findings).values()]
    return tuple(release(volume, record) for volume, record in records if record is not None)


# What uses the claims


def stopped(workload: Workload) -> Stopped:
    """Return what is recorded of a workload before it is stopped."""
    return Stopped(workload.resource, workload.name, workload.uid, workload.value)


def users(row: RollbackRow, findings: Findings) -> tuple[Workload, ...]:
    """Return the workloads that use the claims to be replaced, and are not stopped by this Rollback."""
    names = {volume.claim for volume in row.status.volumes}
    return tuple(
        workload
        for workload in findings.storage.workloads
        if workload.resource in STOPPED and workload.is_active and not names.isdisjoint(workload.claims)
    )


def unrecorded(row: RollbackRow, findings: Findings) -> tuple[Stopped, ...]:
    """Return what uses the claims, and whose value is not recorded."""
    known = {(record.uid, record.former) for record in row.status.stopped if not record.resumed}
    return tuple(stopped(workload) for workload in users(row, findings) if (workload.uid, workload.value) not in known)


def stop(row: RollbackRow, workload: Workload) -> Patch:
    """Return the write that stops a workload, with a mark: whoever replaces the object takes that away."""
    return _set(row, workload, mark=row.uid, value=True if workload.resource in SUSPENDED_BY else 0)


def to_start(row: RollbackRow, findings: Findings, *, restored: bool = True) -> tuple[Patch, ...]:
    """Return the writes that give workloads their size back; what was restored from a backup has that of the backup.

    If the restored are left out, it is because they do not fit the old data: they are still as in the backup.
    """
    recorded = {record.uid: record for record in row.status.stopped if not record.resumed}
    marked = [
        workload
        for workload in findings.storage.workloads
        if workload.stopped_by == row.uid and workload.uid in recorded
        if restored or not row.status.velero_restore or workload.restored_by != row.status.velero_restore
    ]
    return tuple(_start(row, workload, recorded[workload.uid]) for workload in marked)


def _start(row: RollbackRow, workload: Workload, record: Stopped) -> Patch:
    if workload.is_active:
        return _set(row, workload, mark=None)
    value = msgspec.json.decode(record.former) if record.former else None
    return _set(row, workload, mark=None, value=value)


_UNCHANGED = object()


def _set(row: RollbackRow, workload: Workload, *, mark: str | None, value: object = _UNCHANGED) -> Patch:
    body: dict[str, object] = {"metadata": {"uid": workload.uid, "annotations": {ROLLBACK_UID: mark}}}
    if value is not _UNCHANGED:
        body["spec"] = {SUSPENDED_BY.get(workload.resource, "replicas"): value}
    return Patch(STOPPED[workload.resource], Key(row.key.namespace, workload.name), body, workload.version)


def in_use(row: RollbackRow, findings: Findings) -> str:
    """Return a pod that uses a claim to be replaced; empty if none does."""
    names = {volume.claim for volume in row.status.volumes}
    return next((pod.name for pod in findings.storage.pods if not names.isdisjoint(pod.claims)), "")


def unready(row: RollbackRow, findings: Findings) -> str:
    """Return a workload that was stopped and is not ready yet; empty if all are."""
    uids = {record.uid for record in row.status.stopped}
    waiting = (
        workload
        for workload in findings.storage.workloads
        if workload.uid in uids and workload.is_active and not workload.is_ready
    )
    return next((f"{workload.resource}/{workload.name}" for workload in waiting), "")


# The claims


def old_claims(row: RollbackRow, findings: Findings) -> tuple[ClaimSeen, ...]:
    """Return the claims to be replaced that still exist."""
    uids = {volume.claim_uid for volume in row.status.volumes}
    return tuple(claim for claim in findings.storage.claims if claim.uid in uids)


def to_delete(row: RollbackRow, findings: Findings) -> tuple[Delete, ...]:
    """Return the deletion of the claims to be replaced whose volumes stay: marked, theirs, and set to Retain."""
    kept = old_volumes(row, findings)
    return tuple(
        _delete(row, claim)
        for claim in old_claims(row, findings)
        if not claim.is_terminating and _stays(kept.get(claim.name), claim)
    )


def _stays(volume: VolumeSeen | None, claim: ClaimSeen) -> bool:
    return (
        volume is not None
        and volume.reclaim_policy == RETAIN
        and volume.claim_uid == claim.uid
        and not volume.is_terminating
        and claim.volume == volume.name
    )


def _delete(row: RollbackRow, claim: ClaimSeen) -> Delete:
    return Delete(core.CLAIM, Key(row.key.namespace, claim.name), claim.uid, claim.version)


def not_restored(row: RollbackRow, findings: Findings) -> str:
    """Return a claim that has no new volume from the restore; empty if all have one."""
    return _without(row, findings, lambda claim: claim.restored_by == row.status.velero_claims_restore)


def deleted_since(row: RollbackRow, findings: Findings) -> str:
    """Return a claim that was restored and is not there any more, or is an empty one of a StatefulSet; empty if none.

    Who has the volume now is not asked of the label of the restore: a later restore may change it.
    """
    return _without(
        row,
        findings,
        lambda claim: not claim.is_terminating and (bool(claim.restored_by) or not _is_empty(row, findings, claim)),
    )


def _without(row: RollbackRow, findings: Findings, is_right: Callable[[ClaimSeen], bool]) -> str:
    """Return a claim that has no new volume, or is not the right one; empty if there is none."""
    claims = {claim.name: claim for claim in findings.storage.claims}
    for kept in row.status.volumes:
        claim = claims.get(kept.claim)
        is_new = claim is not None and claim.uid != kept.claim_uid and claim.volume not in ("", kept.volume)
        if claim is None or not is_new or not claim.is_bound or not is_right(claim):
            return kept.claim
    return ""


# The undo


def lasting_pods(findings: Findings, names: AbstractSet[str]) -> Iterator[PodSeen]:
    """Yield the pods that use these claims, and that go with nothing that can be stopped."""
    users = (workload for workload in findings.storage.workloads if not names.isdisjoint(workload.claims))
    stoppable = {workload.uid for workload in users if workload.resource in STOPPED}
    for pod in findings.storage.pods:
        if not names.isdisjoint(pod.claims) and pod.owner not in stoppable:
            yield pod


def cannot_swap(row: RollbackRow, findings: Findings) -> str:
    """Return what would keep old volumes from being bound again; empty if nothing does."""
    kept = old_volumes(row, findings)
    claims = {claim.name: claim for claim in findings.storage.claims}
    for recorded in row.status.volumes:
        volume, claim = kept.get(recorded.claim), claims.get(recorded.claim)
        if volume is None or volume.is_terminating or record_of(volume) is None:
            return f"volume {recorded.volume} of claim {recorded.claim} is not as the Rollback left it"
        if claim is not None and not _may_be_replaced(row, findings, claim):
            return _neither(claim)
    pods = lasting_pods(findings, {recorded.claim for recorded in row.status.volumes})
    return next((f"pod {pod.name} uses a claim to be replaced, and nothing stops it: delete it" for pod in pods), "")


def swap(row: RollbackRow, findings: Findings) -> tuple[Create | Delete | Patch, ...] | str:
    """Return the next writes that bind the old volumes again, or what they wait for; nothing if all are bound."""
    waits = ""
    was_marked = any(step.name == "Replacing" for step in row.status.steps)
    kept = old_volumes(row, findings)
    claims = {claim.name: claim for claim in findings.storage.claims}
    for recorded in row.status.volumes:
        volume, claim = kept.get(recorded.claim), claims.get(recorded.claim)
        if claim is not None and not claim.is_terminating and _has_old(claim, recorded):
            continue
        if volume is None and not was_marked:
            continue  # and so its claim was never deleted by the Rollback
        if volume is None:
            waits = waits or f"volume {recorded.volume} of claim {recorded.claim} is not as the Rollback left it"
            continue
        next_write = _back(row, findings, claim, volume)
        if isinstance(next_write, str):
            waits = waits or next_write
        elif next_write is not None:
            return (next_write,)
    return waits or _created(row, findings)


def _has_old(claim: ClaimSeen, kept: KeptVolume) -> bool:
    """Whether a claim was never deleted, or has its old volume again."""
    return claim.uid == kept.claim_uid or (claim.is_bound and claim.volume == kept.volume)


def _back(
    row: RollbackRow, findings: Findings, claim: ClaimSeen | None, volume: VolumeSeen
) -> Create | Delete | Patch | str | None:
    """Return the next write for one old volume, or what it waits for; None if its claim has it."""
    if claim is None:
        return _create(row, volume)
    if claim.is_terminating:
        return f"claim {claim.name} is still being deleted"
    if claim.rollback_uid != row.uid or claim.volume != volume.name:
        return _replace(row, findings, claim)
    if volume.claim_uid != claim.uid:
        return _give(volume, claim) if volume.phase == RELEASED else f"volume {volume.name} is not {RELEASED} yet"
    return None if claim.is_bound else f"claim {claim.name} is not bound yet"


def _replace(row: RollbackRow, findings: Findings, claim: ClaimSeen) -> Delete | str:
    """Return the deletion of a claim in place of the old one: restored data stays in the backup."""
    return _delete(row, claim) if _may_be_replaced(row, findings, claim) else _neither(claim)


def _may_be_replaced(row: RollbackRow, findings: Findings, claim: ClaimSeen) -> bool:
    return _is_restored(row, findings, claim) or _is_empty(row, findings, claim)


def _neither(claim: ClaimSeen) -> str:
    return f"claim {claim.name} is neither the old nor the restored one: delete it"


def _is_empty(row: RollbackRow, findings: Findings, claim: ClaimSeen) -> bool:
    """Whether a StatefulSet that was scaled up meanwhile has created a claim in place of the old one."""
    sets = (workload for workload in findings.storage.workloads if workload.resource == full_name(STATEFUL_SET))
    return _is_new(row, claim) and any(claim.name in workload.claims for workload in sets)


def _is_new(row: RollbackRow, claim: ClaimSeen) -> bool:
    return claim.created is not None and claim.created > row.created


def _is_restored(row: RollbackRow, findings: Findings, claim: ClaimSeen) -> bool:
    seen = findings.claims_restore
    name = row.status.velero_claims_restore or (seen.velero_name if seen is not None else "")
    return bool(name) and claim.restored_by == name


def _create(row: RollbackRow, volume: VolumeSeen) -> Create | str:
    """Return a claim like the old one, for its volume: it waits until that is given to it."""
    record = record_of(volume)
    if record is None:
        return f"the mark of volume {volume.name} cannot be read"
    old = msgspec.json.decode(record.claim, type=_Body)
    body = {
        "metadata": {"labels": old.labels, "annotations": old.annotations},
        "spec": {**old.spec, "volumeName": volume.name},
    }
    return Create(core.CLAIM, Key(row.key.namespace, volume.claim.name), body, {ROLLBACK_UID: row.uid})


class _Body(msgspec.Struct, frozen=True):
    labels: dict[str, str] = {}
    annotations: dict[str, str] = {}
    spec: dict[str, object] = {}


def _give(volume: VolumeSeen, claim: ClaimSeen) -> Patch:
    """Return the write that gives an old volume to the claim that was created for it."""
    body = {"metadata": {"uid": volume.uid}, "spec": {"claimRef": {"uid": claim.uid, "resourceVersion": None}}}
    return Patch(core.VOLUME, Key("", volume.name), body, volume.version)


def _created(row: RollbackRow, findings: Findings) -> tuple[Delete, ...]:
    """Return the deletion of claims that the restore has created, and that were not there before."""
    old = {volume.claim for volume in row.status.volumes}
    new = (claim for claim in findings.storage.claims if claim.name not in old and _is_new(row, claim))
    return tuple(
        _delete(row, claim) for claim in new if _is_restored(row, findings, claim) and not claim.is_terminating
    )
