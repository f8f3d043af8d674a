"""Volumes of sandboxes: each is deleted with its sandbox, whatever its class or Velero says, and in no backup.

A StorageClass may keep released volumes, and Velero gives a restored one the reclaim policy of the original.
Only a volume that was provisioned for a claim of the sandbox is one: another may have somebody's data on it.
"""

from foresail.api.core import VOLUME, ClaimReference, Volume
from foresail.api.metadata import Metadata
from foresail.api.restore_check import SANDBOX_NAME
from foresail.plan import Key, Keyed, Patch, Plan
from foresail.proof.checks.rows import EXCLUDED

_DELETE, _AVAILABLE = "Delete", "Available"
PROVISIONED_BY = "pv.kubernetes.io/provisioned-by"
"""The annotation of volumes that a provisioner has made; it names them by the UID of their claim."""


FILLED = "velero.io/dynamic-pv-restore"
"""The label of volumes that Velero fills: namespace and name of the claim, and a random end.

It is cut after 57 characters; the name of a sandbox has 32.
"""


class VolumeRow(Keyed, frozen=True):
    """A PersistentVolume: its version only if it must change, so that others take no memory."""

    version: str = ""
    taken_by: str = ""  # the sandbox whose claim has it, if it was not provisioned for that claim
    free_class: str | None = None  # its storage class, if any claim of that class could take it


def volume_row(wire: Volume) -> VolumeRow:
    """Return what is kept of a volume."""
    spec = wire.spec
    meta = wire.metadata
    key = Key("", meta.name)
    claim = spec.claim_ref
    if claim is None and wire.status.phase == _AVAILABLE:
        return VolumeRow(key, free_class=spec.storage_class_name)
    if claim is None or SANDBOX_NAME.fullmatch(claim.namespace) is None:
        return VolumeRow(key)
    if PROVISIONED_BY not in (meta.annotations or {}) or not (_is_made_for(claim, meta) or _is_filled_for(claim, meta)):
        return VolumeRow(key, taken_by=claim.namespace)
    is_done = spec.persistent_volume_reclaim_policy == _DELETE and (meta.labels or {}).items() >= EXCLUDED.items()
    must_change = not is_done and meta.deletion_timestamp is None
    return VolumeRow(key, meta.resource_version if must_change else "")


def _is_made_for(claim: ClaimReference, volume: Metadata) -> bool:
    """Whether a provisioner has made a volume for a claim."""
    return bool(claim.uid) and volume.name.endswith(claim.uid)


def _is_filled_for(claim: ClaimReference, volume: Metadata) -> bool:
    """Whether Velero has had a volume made for a restore into the sandbox, and has filled it with moved data."""
    return (volume.labels or {}).get(FILLED, "").startswith(f"{claim.namespace}.")


def decide_volume(row: VolumeRow) -> Plan:
    """Let the cluster delete a volume of a sandbox when its claim is deleted, and Velero not back it up."""
    if not row.version:
        return Plan()
    body = {"metadata": {"labels": EXCLUDED}, "spec": {"persistentVolumeReclaimPolicy": _DELETE}}
    return Plan((Patch(VOLUME, row.key, body, row.version),))
