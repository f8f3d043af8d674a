"""What would save the data of a claim that is left out; `cli/coverage/closing_commands.py` words it as a command."""

from collections.abc import Callable

import msgspec

from foresail.api.specs import BackupSpec
from foresail.proof.reasons import Remedy
from foresail.proof.view import ScheduleRow
from foresail.scope.resource_policies import Policies, config_map_of
from foresail.scope.volumes import Method
from foresail.tenancy.volume_policies import SNAPSHOTS, VOLUME_POLICIES

MethodOf = Callable[[BackupSpec, Policies | None], Method]
"""How a spec, with its resource policy, saves the data of the claim."""


def remedy_for(schedule: ScheduleRow, method_of: MethodOf, *, has_failed: bool = False) -> Remedy:
    """Return the first field that would save the data; `has_failed` means that a snapshot was due and not made.

    Snapshots come first: that they are off is the cause itself, and no other claim is saved in another way then.
    """
    helping = [remedy for remedy in (Remedy.SNAPSHOTS, Remedy.FILE_SYSTEM) if _helps(remedy, schedule, method_of)]
    allowed = [remedy for remedy in helping if remedy not in schedule.refused]
    if allowed:
        return allowed[0]
    return Remedy.ADMINISTRATOR if helping or has_failed else Remedy.TEMPLATE


def _helps(remedy: Remedy, schedule: ScheduleRow, method_of: MethodOf) -> bool:
    spec, is_own = schedule.spec, config_map_of(schedule.spec) in VOLUME_POLICIES  # written by the operator
    if remedy is Remedy.SNAPSHOTS:
        snapshots = msgspec.structs.replace(spec, snapshot_volumes=True)
        policies = VOLUME_POLICIES[SNAPSHOTS] if is_own else schedule.policies
        return spec.snapshot_volumes is False and method_of(snapshots, policies) is Method.SNAPSHOT
    files = msgspec.structs.replace(spec, default_volumes_to_fs_backup=True)
    return method_of(files, None if is_own else schedule.policies) is Method.FILE_SYSTEM
