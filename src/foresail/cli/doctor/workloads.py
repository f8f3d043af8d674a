"""What runs: the pods of Velero, of its node agents and of the operators, and why some do not."""

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

import msgspec

from foresail.api.apps import NODE_AGENT, Container, DaemonSet, Deployment, ObservedDeployment, is_server
from foresail.api.core import CONFIG_MAP, STORAGE_CLASS
from foresail.api.pod_problems import ObservedPod, first_problem, restarts
from foresail.api.pods import POD
from foresail.cli.access.cluster import Cluster
from foresail.cli.access.together import all_of
from foresail.cli.doctor.finding import Finding, problem, warning
from foresail.cli.options.selectors import shown_selector
from foresail.plan import Key
from foresail.reporting import some
from foresail.scope.node_agent import config_name, ignores_delayed_binding
from foresail.scope.resource_policies import PolicyError, policies_of
from foresail.scope.server import server_flags
from foresail.tenancy.volume_policies import VOLUME_POLICIES

_MOST_PODS = 100  # that are read of one Deployment or DaemonSet
_STARTS_WITHIN = timedelta(minutes=2)
_HASH = "pod-template-hash"


@dataclass(frozen=True, slots=True)
class Workload:
    """A Deployment or DaemonSet with its pods."""

    kind: str
    key: Key
    desired: int
    ready: int
    pods: tuple[ObservedPod, ...] = ()
    selector: str = ""
    failure: str = ""  # why its controller creates no pods, or gave up on its rollout
    is_processed: bool = True  # its controller has seen its last change
    created: datetime | None = None
    scaled: datetime | None = None  # when somebody last set the replicas, if the API server tells

    def __str__(self) -> str:
        """Return its kind and name."""
        return f"{self.kind} {self.key}"

    @property
    def count(self) -> str:
        """How many pods are ready."""
        return f"{self.ready} of {self.desired} pods are ready"


@dataclass(frozen=True, slots=True)
class Trouble:
    """Why a workload does not run as it should, and what to do."""

    says: str
    fix: str
    is_down: bool = False  # none of its pods is ready
    is_mild: bool = False  # it runs, or may do so in a moment


def deployment_workload(wire: ObservedDeployment, pods: Iterable[ObservedPod] = ()) -> Workload:
    """Return a Deployment with its pods; those tell sooner than its status which are ready."""
    listed = tuple(pod for pod in pods if not pod.is_over)
    status = wire.status
    conditions = {condition.type: condition for condition in status.conditions or ()}
    refused = conditions.get("ReplicaFailure")
    progress = conditions.get("Progressing")
    failure = refused.message if refused is not None and refused.status == "True" else ""
    if not failure and progress is not None and progress.reason == "ProgressDeadlineExceeded":
        failure = "its rollout has exceeded its deadline"
    return Workload(
        "Deployment",
        Key(wire.metadata.namespace, wire.metadata.name),
        desired=wire.spec.replicas,
        ready=sum(observed_pod.is_ready for observed_pod in listed) if listed else status.ready_replicas,
        pods=listed,
        selector=shown_selector(wire.spec.selector),
        failure=failure,
        is_processed=status.observed_generation >= wire.metadata.generation,
        created=wire.metadata.creation_timestamp,
        scaled=wire.metadata.scaled,
    )


def agent_workload(wire: DaemonSet, pods: Iterable[ObservedPod] = ()) -> Workload:
    """Return a DaemonSet with some of its pods."""
    listed = tuple(pod for pod in pods if not pod.is_over)
    key = Key(wire.metadata.namespace, wire.metadata.name)
    status = wire.status
    selector = shown_selector(wire.spec.selector)
    return Workload("DaemonSet", key, status.desired_number_scheduled, status.number_ready, listed, selector)


async def read_deployment(cluster: Cluster, wire: ObservedDeployment) -> Workload:
    """Read the pods of a Deployment."""
    return deployment_workload(wire, await _read_pods(cluster, wire.metadata.namespace, wire.spec.selector))


async def read_agent(cluster: Cluster, wire: DaemonSet) -> Workload:
    """Read pods of a DaemonSet if some are not ready: it has as many as there are nodes."""
    if wire.status.number_ready >= wire.status.desired_number_scheduled:
        return agent_workload(wire)
    return agent_workload(wire, await _read_pods(cluster, wire.metadata.namespace, wire.spec.selector))


async def _read_pods(cluster: Cluster, namespace: str, selector: dict[str, object]) -> list[ObservedPod]:
    if not selector:
        return []
    items = await cluster.first_page(POD, namespace, shown_selector(selector), _MOST_PODS)
    return [msgspec.json.decode(raw, type=ObservedPod) for raw in items]


def trouble(work: Workload, now: datetime) -> Trouble | None:
    """Return why a workload does not run as it should; None if it does."""
    if not work.desired:
        return _scaled_down(work) if work.kind == "Deployment" else None
    is_down = not work.ready
    see = f"kubectl describe pods -n {work.key.namespace} -l {work.selector}"
    unready = [pod for pod in work.pods if not pod.is_ready]
    cause = first_problem(unready)
    if cause:
        previous = _is_of_another_template(work.pods, unready)
        rest = "; the rollout failed, and the previous pods still run" if previous else ""
        mild = not is_down and not previous
        return Trouble(f"{work.count}: {cause}{rest}", _fix(work, cause, see), is_down=is_down, is_mild=mild)
    if work.failure:
        return Trouble(f"{work.count}: {work.failure}", see, is_down=is_down)
    if work.ready >= work.desired:
        unsteady = next(filter(None, (restarts(pod, now) for pod in work.pods)), "")
        return Trouble(unsteady, _fix(work, "CrashLoopBackOff", see), is_mild=True) if unsteady else None
    return _too_few(work, unready, see, now)


def _too_few(work: Workload, unready: Collection[ObservedPod], see: str, now: datetime) -> Trouble:
    """Return why pods are missing that have no problem of their own."""
    is_down = not work.ready
    if not work.is_processed:
        says = f"{work.count}: no controller has processed its last change"
        return Trouble(says, "check that kube-controller-manager runs", is_down=is_down, is_mild=True)
    is_young = any(_age(pod, now) < _STARTS_WITHIN for pod in unready)
    why = "its pods are not ready" if unready else "it has no pods"
    if is_young:
        why = "its pods start"
    return Trouble(f"{work.count}: {why}", see, is_down=is_down, is_mild=is_young or not is_down)


def _scaled_down(work: Workload) -> Trouble:
    fix = f"kubectl scale deployment {work.key.name} -n {work.key.namespace} --replicas=1"
    return Trouble("it is scaled to 0 replicas", fix, is_down=True)


def _fix(work: Workload, cause: str, see: str) -> str:
    where = f"{work.kind.lower()}/{work.key.name} -n {work.key.namespace}"
    if "CrashLoopBackOff" in cause or "last exit code" in cause:
        return f"kubectl logs {where} --all-pods --previous --tail=20"
    if "Image" in cause:
        return f"correct the image, or go back: kubectl rollout undo {where}"
    return see


def _is_of_another_template(pods: Iterable[ObservedPod], unready: Iterable[ObservedPod]) -> bool:
    """Return whether pods of another template than those that are not ready are ready."""
    ready = {_template(pod) for pod in pods if pod.is_ready}
    return bool(ready) and not ready & {_template(pod) for pod in unready}


def _template(pod: ObservedPod) -> str:
    return (pod.metadata.labels or {}).get(_HASH, "")


def _age(pod: ObservedPod, now: datetime) -> timedelta:
    return now - (pod.metadata.creation_timestamp or now)


SNAPSHOTS = "volumesnapshots.snapshot.storage.k8s.io"
_WAITS = "WaitForFirstConsumer"


class _StorageClass(msgspec.Struct, frozen=True, rename="camel"):
    metadata: dict[str, Any]
    volume_binding_mode: str = ""


class _ConfigMap(msgspec.Struct, frozen=True):
    data: dict[str, str] | None = None


@dataclass(frozen=True, slots=True)
class VolumeData:
    """Whether Velero makes snapshots by CSI, and the classes whose restored claims its node agent waits for."""

    has_csi: bool = True
    waiting_classes: tuple[str, ...] = ()


async def read_volume_data(
    cluster: Cluster, namespace: str, deployments: Iterable[Deployment], sets: Iterable[DaemonSet]
) -> VolumeData:
    """Return the flags of Velero's server, and read the configuration of the node agent."""
    servers = [
        container for one in deployments if one.metadata.namespace == namespace for container in _containers(one)
    ]
    flags = [server_flags(_words(server)) for server in servers if is_server(server)]
    agents = [words for one in sets for container in _containers(one) if NODE_AGENT in (words := _words(container))]
    classes: tuple[str, ...] = ()
    if agents and not await _is_delay_ignored(cluster, Key(namespace, config_name(agents))):
        storage_classes = [
            msgspec.json.decode(raw, type=_StorageClass) for raw in await cluster.listed(STORAGE_CLASS, "")
        ]
        classes = tuple(
            sorted(
                storage_class.metadata["name"]
                for storage_class in storage_classes
                if storage_class.volume_binding_mode == _WAITS
            )
        )
    return VolumeData(all(flag.has_csi for flag in flags), classes)


async def read_changed_policies(cluster: Cluster, namespace: str) -> tuple[str, ...]:
    """Return the ConfigMaps of the chart with volume policies that are missing, or not as the chart has them."""
    config_maps = await all_of(
        cluster.if_there(CONFIG_MAP, Key(namespace, name), _ConfigMap) for name in VOLUME_POLICIES
    )
    named = dict(zip(VOLUME_POLICIES, config_maps, strict=True))
    return tuple(name for name, config in named.items() if config is None or not _is_as_in_chart(name, config))


def _is_as_in_chart(name: str, config: _ConfigMap) -> bool:
    try:
        return policies_of(config.data) == VOLUME_POLICIES[name]
    except PolicyError:
        return False


def changed_policies(names: Sequence[str], namespace: str) -> Iterator[Finding]:
    """Report the volume policies that do not keep Velero from the files of tenants' pods."""
    if names:
        says = f"ConfigMap {some(names)} in namespace {namespace} is missing or changed: teams' backups rely on it"
        yield problem("volumes", says, "install it again: foresail install --self-service, or helm upgrade foresail")


async def _is_delay_ignored(cluster: Cluster, key: Key) -> bool:
    """Whether the node agent's configuration says that a restored claim needs no pod."""
    config = await cluster.if_there(CONFIG_MAP, key, _ConfigMap) if key.name else None
    return config is not None and ignores_delayed_binding(config.data)


def _containers(of: Deployment | DaemonSet) -> list[Container]:
    return of.spec.template.spec.containers


def _words(container: Container) -> list[str]:
    return [*container.command, *container.args]


def volume_findings(data: VolumeData | None, namespace: str) -> Iterator[Finding]:
    """Report what keeps the data of tenants' volumes out of backups, or lets a tenant block restores of others."""
    if data is None:
        return
    if not data.has_csi:
        says = "Velero runs without the feature EnableCSI: Backups with snapshotMoveData complete without the data"
        fix = f"add --features=EnableCSI to Deployment velero and DaemonSet node-agent in namespace {namespace}"
        yield warning("volumes", says, fix)
    if data.waiting_classes:
        says = (
            f"a restored claim of {some(data.waiting_classes)} without a pod keeps a node agent from other restores"
            " for 30 minutes"
        )
        fix = 'set "restorePVC": {"ignoreDelayBinding": true} in the ConfigMap of --node-agent-configmap'
        yield warning("volumes", says, fix)
