"""The volume policies of tenants' backups from whose pods Velero must not copy files.

A volume policy that matches decides alone: Velero reads neither the annotations of pods nor its own default. So a
policy for all volumes holds whatever a pod gets between the operator's check and Velero's read. The chart creates the
ConfigMaps in Velero's namespace.
"""

from foresail.scope.resource_policies import Action, Policies, VolumePolicy

SNAPSHOTS = "foresail-snapshot-volumes"
"""The ConfigMap by which Velero snapshots all volumes, as it does without a policy."""

NO_VOLUMES = "foresail-skip-volumes"
"""The ConfigMap by which Velero leaves all volumes out, as with `snapshotVolumes: false`."""

VOLUME_POLICIES = {
    SNAPSHOTS: Policies("v1", (VolumePolicy(Action("snapshot")),)),
    NO_VOLUMES: Policies("v1", (VolumePolicy(Action("skip")),)),
}
"""What the ConfigMaps hold."""


def volume_policy(*, snapshots: bool | None) -> str:
    """Return the ConfigMap for a backup by its `snapshotVolumes`."""
    return NO_VOLUMES if snapshots is False else SNAPSHOTS
