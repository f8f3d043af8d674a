"""How Velero saves and restores the data of tenants' volumes: by snapshots, and by the worker of its node agent."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec

from foresail.api.apps import Container, DaemonSet, Deployment, is_server
from foresail.api.core import CONFIG_MAP, STORAGE_CLASS
from foresail.cli.access.cluster import Cluster
from foresail.cli.access.together import all_of
from foresail.cli.doctor.finding import Finding, problem, some, warning
from foresail.cli.doctor.workloads import AGENT
from foresail.plan import Key
from foresail.scope.policies import PolicyError, policies_of
from foresail.scope.server import flag_value, server_flags
from foresail.tenancy.volume_policies import VOLUME_POLICIES

SNAPSHOTS = "volumesnapshots.snapshot.storage.k8s.io"
_CONFIG = "--node-agent-configmap"
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
    agents = [words for one in sets for container in _containers(one) if AGENT in (words := _words(container))]
    classes: tuple[str, ...] = ()
    if agents and not await _is_delay_ignored(cluster, Key(namespace, flag_value(agents[0], _CONFIG))):
        found = [msgspec.json.decode(raw, type=_StorageClass) for raw in await cluster.listed(STORAGE_CLASS, "")]
        classes = tuple(
            sorted(
                storage_class.metadata["name"] for storage_class in found if storage_class.volume_binding_mode == _WAITS
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
    for text in (config.data or {}).values() if config is not None else ():
        try:
            settings = msgspec.json.decode(text)
        except msgspec.DecodeError:
            continue
        restored = settings.get("restorePVC") if isinstance(settings, dict) else None
        if isinstance(restored, dict) and restored.get("ignoreDelayBinding") is True:
            return True
    return False


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
