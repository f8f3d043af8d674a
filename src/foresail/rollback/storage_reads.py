"""The live survey of storage: claims, their volumes, and what uses them, in one namespace."""

import re
from collections.abc import Awaitable, Callable, Iterable

import msgspec

from foresail.api import apps, batch, core
from foresail.api.batch import OwnedMetadata
from foresail.api.marks import ROLLBACK_UID
from foresail.api.pods import POD, PodSpec
from foresail.plan import Key, Kind
from foresail.rollback.kinds import STATEFUL_SET, full_name
from foresail.rollback.rows import RESTORED_BY, MarkedVolume, volume_seen
from foresail.rollback.view import ClaimSeen, PodSeen, Storage, Survey, Workload
from foresail.scope.node_agent import config_name, ignores_delayed_binding

REPLICA_SET = Kind("apps", "v1", "replicasets", "ReplicaSet")
WORKLOADS = (apps.DEPLOYMENT, STATEFUL_SET, apps.DAEMON_SET, batch.CRON_JOB)

_OF_KUBERNETES = frozenset({"kubernetes.io/pvc-protection"})
_OF_CLUSTER = re.compile(r"^((pv|volume|volume\.beta)\.kubernetes\.io/|kubectl\.kubernetes\.io/last-applied)")
_WAITS = "WaitForFirstConsumer"

List = Callable[[Kind, str], Awaitable[list[msgspec.Raw] | None]]
"""Returns the objects of a kind in a namespace; None if the kind is not served."""

One = Callable[[Kind, Key], Awaitable[msgspec.Raw | None]]
"""Returns one object; None if it does not exist."""


class _Bound(msgspec.Struct, frozen=True):
    phase: str = ""


class _ClaimMetadata(OwnedMetadata, frozen=True, rename="camel"):
    finalizers: tuple[str, ...] = ()


class _Claim(msgspec.Struct, frozen=True):
    metadata: _ClaimMetadata
    spec: dict[str, object] = {}
    status: _Bound = _Bound()


class _Class(msgspec.Struct, frozen=True, rename="camel"):
    volume_binding_mode: str = ""


class _Pod(msgspec.Struct, frozen=True):
    metadata: OwnedMetadata
    spec: PodSpec = PodSpec()


class _Template(msgspec.Struct, frozen=True):
    spec: PodSpec = PodSpec()


class _Owned(msgspec.Struct, frozen=True):
    metadata: OwnedMetadata


class _Retention(msgspec.Struct, frozen=True, rename="camel"):
    when_scaled: str = ""


class _JobSpec(msgspec.Struct, frozen=True):
    template: _Template = _Template()


class _JobTemplate(msgspec.Struct, frozen=True):
    spec: _JobSpec = _JobSpec()


class _WorkloadSpec(msgspec.Struct, frozen=True, rename="camel"):
    replicas: int = 1
    suspend: bool | None = None
    template: _Template = _Template()
    job_template: _JobTemplate = _JobTemplate()
    volume_claim_templates: tuple[_Owned, ...] = ()
    persistent_volume_claim_retention_policy: _Retention = _Retention()


class _WorkloadStatus(msgspec.Struct, frozen=True, rename="camel"):
    ready_replicas: int = 0


class _Workload(msgspec.Struct, frozen=True):
    metadata: OwnedMetadata
    spec: _WorkloadSpec = _WorkloadSpec()
    status: _WorkloadStatus = _WorkloadStatus()


class _Config(msgspec.Struct, frozen=True):
    metadata: OwnedMetadata
    data: dict[str, str] | None = None


_claim = msgspec.json.Decoder(_Claim)
_config = msgspec.json.Decoder(_Config)
_daemons = msgspec.json.Decoder(apps.DaemonSet)
_volume = msgspec.json.Decoder(MarkedVolume)
_class = msgspec.json.Decoder(_Class)
_pod = msgspec.json.Decoder(_Pod)
_owned = msgspec.json.Decoder(_Owned)
_workload = msgspec.json.Decoder(_Workload)


async def read_storage(query: Survey, one: One, listed: List, velero_namespace: str) -> Storage:
    """Return the claims of a namespace, their volumes, and what uses them."""
    namespace = query.key.namespace
    claims = [_claim_seen(_claim.decode(raw)) for raw in await listed(core.CLAIM, namespace) or ()]
    names = sorted({claim.volume for claim in claims if claim.volume} | set(query.kept))
    volumes = [await one(core.VOLUME, Key("", name)) for name in names]
    workloads = [
        _workload_seen(kind, _workload.decode(raw), claims)
        for kind in WORKLOADS
        for raw in await listed(kind, namespace) or ()
    ]
    late, missing = await _classes(claims, one)
    if late and await _is_delay_ignored(velero_namespace, listed):
        late = ()
    return Storage(
        claims=tuple(claims),
        volumes=tuple(volume_seen(_volume.decode(raw)) for raw in volumes if raw is not None),
        workloads=tuple(workloads),
        pods=await _pods(namespace, listed),
        late_classes=late,
        no_classes=missing,
    )


async def _is_delay_ignored(velero_namespace: str, listed: List) -> bool:
    """Whether Velero binds a restored claim itself, by the configuration of its node agent."""
    sets = [_daemons.decode(raw) for raw in await listed(apps.DAEMON_SET, velero_namespace) or ()]
    containers = [container for each in sets for container in each.spec.template.spec.containers]
    agents = [words for one in containers if apps.NODE_AGENT in (words := [*one.command, *one.args])]
    name = config_name(agents)
    configs = [_config.decode(raw) for raw in await listed(core.CONFIG_MAP, velero_namespace) or ()] if name else []
    return any(config.metadata.name == name and ignores_delayed_binding(config.data) for config in configs)


async def _classes(claims: Iterable[ClaimSeen], one: One) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the StorageClasses of claims whose volumes wait for a pod, and those that do not exist."""
    classes = {name: await one(core.STORAGE_CLASS, Key("", name)) for name in {claim.storage_class for claim in claims}}
    late = [
        name for name, raw in classes.items() if raw is not None and _class.decode(raw).volume_binding_mode == _WAITS
    ]
    return tuple(sorted(late)), tuple(sorted(name for name, raw in classes.items() if raw is None and name))


async def _pods(namespace: str, listed: List) -> tuple[PodSeen, ...]:
    """Return the pods that use claims; the owner of one that a ReplicaSet has started is the Deployment."""
    sets = [_owned.decode(raw).metadata for raw in await listed(REPLICA_SET, namespace) or ()]
    owners = {replica_set.uid: replica_set.controller.uid for replica_set in sets if replica_set.controller is not None}
    pods = [_pod.decode(raw) for raw in await listed(POD, namespace) or ()]
    return tuple(_pod_seen(pod, owners) for pod in pods if _claims_of(pod.spec))


def _pod_seen(pod: _Pod, owners: dict[str, str]) -> PodSeen:
    controller = pod.metadata.controller
    uid = controller.uid if controller is not None else ""
    name = f"{controller.kind} {controller.name}" if controller is not None else ""
    return PodSeen(pod.metadata.name, _claims_of(pod.spec), owners.get(uid, uid), name)


def _claims_of(spec: PodSpec) -> tuple[str, ...]:
    sources = (volume.persistent_volume_claim for volume in spec.volumes or ())
    return tuple(source.claim_name for source in sources if source is not None)


def _claim_seen(wire: _Claim) -> ClaimSeen:
    meta, spec = wire.metadata, wire.spec
    annotations = {name: text for name, text in (meta.annotations or {}).items() if not _OF_CLUSTER.match(name)}
    rollback_uid = annotations.pop(ROLLBACK_UID, "")
    labels = {name: text for name, text in (meta.labels or {}).items() if name != RESTORED_BY}
    body = {"labels": labels, "annotations": annotations, "spec": spec}
    owners = meta.owner_references or ()
    return ClaimSeen(
        meta.name,
        meta.uid,
        meta.resource_version,
        volume=str(spec.get("volumeName") or ""),
        storage_class=str(spec.get("storageClassName") or ""),
        is_bound=wire.status.phase == "Bound",
        is_terminating=meta.deletion_timestamp is not None,
        finalizers=tuple(finalizer for finalizer in meta.finalizers if finalizer not in _OF_KUBERNETES),
        owner=next((f"{owner.kind} {owner.name}" for owner in owners if owner.kind != STATEFUL_SET.name), ""),
        created=meta.creation_timestamp,
        restored_by=(meta.labels or {}).get(RESTORED_BY, ""),
        rollback_uid=rollback_uid,
        body=msgspec.json.encode(body).decode(),
    )


def _workload_seen(kind: Kind, wire: _Workload, claims: Iterable[ClaimSeen]) -> Workload:
    meta, spec = wire.metadata, wire.spec
    is_cron_job, is_everywhere = kind == batch.CRON_JOB, kind == apps.DAEMON_SET
    template = spec.job_template.spec.template if is_cron_job else spec.template
    of_templates = [f"{claim.metadata.name}-{meta.name}-" for claim in spec.volume_claim_templates]
    own = [claim.name for claim in claims for start in of_templates if _is_numbered(claim.name, start)]
    if is_cron_job:
        value, is_active = "" if spec.suspend is None else str(spec.suspend).lower(), not spec.suspend
    else:
        value, is_active = str(spec.replicas), is_everywhere or spec.replicas > 0
    controller = meta.controller
    return Workload(
        full_name(kind),
        meta.name,
        meta.uid,
        meta.resource_version,
        value=value,
        is_active=is_active,
        is_ready=is_cron_job or is_everywhere or wire.status.ready_replicas >= spec.replicas,
        stopped_by=(meta.annotations or {}).get(ROLLBACK_UID, ""),
        restored_by=(meta.labels or {}).get(RESTORED_BY, ""),
        claims=tuple(dict.fromkeys((*_claims_of(template.spec), *own))),
        owner=f"{controller.kind} {controller.name}" if controller is not None else "",
        deletes_claims=spec.persistent_volume_claim_retention_policy.when_scaled == "Delete",
    )


def _is_numbered(name: str, start: str) -> bool:
    return name.startswith(start) and name[len(start) :].isdecimal()
