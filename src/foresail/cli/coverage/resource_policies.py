"""Reads the resource policies that specs refer to."""

from collections.abc import Iterable, Mapping
from dataclasses import replace

from foresail.api.core import CONFIG_MAP, ConfigMap
from foresail.api.specs import BackupSpec
from foresail.cli.access.cluster import Cluster
from foresail.cli.errors import CommandError, UnreachableError
from foresail.plan import Key
from foresail.proof.view import ScheduleRow
from foresail.scope.policies import Policies, PolicyError, config_map_of, merged, policies_of
from foresail.scope.releases import Release


class UnreadError(PolicyError):
    """Why a resource policy could not be read."""


Found = Mapping[str, Policies | PolicyError | None]
"""By the name of the ConfigMap, empty for specs without: the policies, or why Velero refuses them or nobody read them.
"""


async def read_resource_policies(
    cluster: Cluster, namespace: str, specs: Iterable[BackupSpec], release: Release, global_policies: str
) -> Found:
    """Return the policies of these specs, with those of the server for all backups; name those that may not be read."""
    names = dict.fromkeys(map(config_map_of, specs))
    own = {name: await _read_or_refused(cluster, Key(namespace, name), release) if name else None for name in names}
    if not global_policies:
        return own
    for_all = await _read_or_refused(cluster, Key(namespace, global_policies), release)
    return {name: _with_global(each, for_all) for name, each in own.items()}


def _with_global(
    own: Policies | PolicyError | None, for_all: Policies | PolicyError | None
) -> Policies | PolicyError | None:
    if isinstance(own, PolicyError) or for_all is None:
        return own
    if isinstance(for_all, UnreadError):
        return for_all
    if isinstance(for_all, PolicyError):
        return PolicyError(f"the global volume policies: {for_all}")
    return merged(own, for_all)


async def _read_or_refused(cluster: Cluster, key: Key, release: Release) -> Policies | PolicyError | None:
    """Return the policies of a ConfigMap, or why Velero refuses them or they may not be read."""
    try:
        return await _read(cluster, key, release)
    except PolicyError as error:
        return error
    except UnreachableError:
        raise
    except CommandError as error:
        return UnreadError(f"the policies in ConfigMap {key.name} cannot be read: {error.problem}")


async def _read(cluster: Cluster, key: Key, release: Release) -> Policies:
    config_map = await cluster.if_there(CONFIG_MAP, key, ConfigMap)
    if config_map is None:
        raise PolicyError(f"ConfigMap {key.name} does not exist")
    return policies_of(config_map.data, release)


def with_policies(row: ScheduleRow, found: Found) -> ScheduleRow:
    """Return a schedule with its resource policy, or why Velero refuses that."""
    policy = found.get(config_map_of(row.spec))
    if isinstance(policy, UnreadError):
        return replace(row, policy_unread=str(policy))
    if isinstance(policy, PolicyError):
        return replace(row, policy_problem=str(policy))
    return replace(row, policies=policy)
