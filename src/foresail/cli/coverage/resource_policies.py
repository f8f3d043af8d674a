"""Reads the resource policies that specs refer to."""

from collections.abc import Iterable, Mapping
from dataclasses import replace

import msgspec

from foresail.api.specs import BackupSpec
from foresail.cli.access.cluster import Cluster
from foresail.cli.errors import CommandError
from foresail.cli.output.messages import hint
from foresail.plan import Key, Kind
from foresail.proof.observe import ScheduleRow
from foresail.scope.policies import Policies, PolicyError, config_map_of, policies_of
from foresail.scope.releases import Release

_CONFIG_MAP = Kind("", "v1", "configmaps", "ConfigMap")

Found = Mapping[str, Policies | PolicyError]
"""By the name of the ConfigMap: the policies, or why Velero refuses them."""


class _ConfigMap(msgspec.Struct, frozen=True):
    data: dict[str, str] | None = None


async def read_resource_policies(
    cluster: Cluster, namespace: str, specs: Iterable[BackupSpec], release: Release
) -> Found:
    """Return the policies of these specs; name those that may not be read."""
    found: dict[str, Policies | PolicyError] = {}
    for name in dict.fromkeys(filter(None, map(config_map_of, specs))):
        try:
            found[name] = await _read(cluster, Key(namespace, name), release)
        except PolicyError as error:
            found[name] = error
        except CommandError as error:
            hint(f"the policies in ConfigMap {name} are not judged: {error.problem}")
    return found


async def _read(cluster: Cluster, key: Key, release: Release) -> Policies:
    config_map = await cluster.if_there(_CONFIG_MAP, key, _ConfigMap)
    if config_map is None:
        raise PolicyError(f"ConfigMap {key.name} does not exist")
    return policies_of(config_map.data, release)


def with_policies(row: ScheduleRow, found: Found) -> ScheduleRow:
    """Return a schedule with its resource policy, or why Velero refuses that."""
    policy = found.get(config_map_of(row.spec))
    if isinstance(policy, PolicyError):
        return replace(row, policy_problem=str(policy))
    return replace(row, policies=policy)
