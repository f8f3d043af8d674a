"""Every field of Velero's BackupSpec and RestoreSpec, and what becomes of it when a tenant writes it.

Velero acts with the rights of a cluster administrator, so a field without a rule is a way in: a test
reads the CRDs of a real Velero and fails if a field is not in these tables, or is no longer in Velero.
A path stands for everything below it, unless something below it has a line of its own; a second test fails if our
types and Velero's CRDs differ in any field, at any depth, so that nothing new slips in below a path.
"""

from enum import Enum


class Treatment(Enum):
    """What we do with a field."""

    FORCED = "we write it ourselves; a tenant may leave it out or write the very same"
    REFUSED = 'a tenant cannot set it, whatever the policy says; empty values (null, "", false) are accepted'
    SWITCHED = "the policy says whether a tenant may set it at all"
    BOUNDED = "a tenant may set it between the policy's minimum and maximum"
    LISTED = "a tenant may set it to what the policy's list allows"
    SETTABLE = "a tenant may set it freely; the policy may have a default or a required value"
    CHECKED = (
        "passed on once it was checked: it can only narrow what is taken, or change how; what must stay out is added"
    )
    TRANSLATED = "names an object of the tenant's; Velero gets the name of the object that we made for it"


FORCED, REFUSED, SWITCHED = Treatment.FORCED, Treatment.REFUSED, Treatment.SWITCHED
BOUNDED, LISTED, SETTABLE = Treatment.BOUNDED, Treatment.LISTED, Treatment.SETTABLE
CHECKED, TRANSLATED = Treatment.CHECKED, Treatment.TRANSLATED

BACKUP_FIELDS = {
    "metadata": CHECKED,  # labels: not velero.io/*, openshift.io/*, foresail.dev/*: by these, objects are recognised
    "includedNamespaces": FORCED,  # the tenant's own, and only that
    "excludedNamespaces": REFUSED,
    "includedResources": CHECKED,
    "excludedResources": CHECKED,  # our additions: what no tenant's backup holds
    "includedClusterScopedResources": REFUSED,
    "excludedClusterScopedResources": CHECKED,
    "includedNamespaceScopedResources": CHECKED,
    "excludedNamespaceScopedResources": CHECKED,
    "includeClusterResources": REFUSED,  # true; false may stand
    "labelSelector": CHECKED,
    "orLabelSelectors": CHECKED,
    "orderedResources": CHECKED,  # objects of the tenant's namespace
    "hooks": SWITCHED,
    "hooks.resources[].includedNamespaces": FORCED,
    "hooks.resources[].excludedNamespaces": REFUSED,
    "hooks.resources[].pre[].exec.timeout": BOUNDED,
    "hooks.resources[].post[].exec.timeout": BOUNDED,
    "storageLocation": LISTED,
    "volumeSnapshotLocations": LISTED,
    "ttl": BOUNDED,
    "snapshotVolumes": SETTABLE,
    "snapshotMoveData": SETTABLE,
    "defaultVolumesToFsBackup": SWITCHED,  # backup.fileSystem
    "defaultVolumesToRestic": REFUSED,  # an old name of the one above, which would let it past a required value
    "volumeGroupSnapshotLabelKey": LISTED,  # groups volumes by a label of their claims
    "datamover": LISTED,
    "resourcePolicy": LISTED,  # a ConfigMap of Velero's namespace
    "csiSnapshotTimeout": BOUNDED,
    "itemOperationTimeout": BOUNDED,
    "uploaderConfig": SETTABLE,
    "uploaderConfig.parallelFilesUpload": BOUNDED,
}

RESTORE_FIELDS = {
    "backupName": TRANSLATED,
    "scheduleName": REFUSED,
    "includedNamespaces": FORCED,
    "excludedNamespaces": REFUSED,
    "includedResources": CHECKED,  # the kinds that the policy lets come back
    "excludedResources": CHECKED,  # our additions: what no tenant's restore brings back
    "namespaceMapping": SWITCHED,  # to one namespace, where the requester could create what comes back
    "labelSelector": CHECKED,
    "orLabelSelectors": CHECKED,
    "restorePVs": SETTABLE,
    "restoreStatus": REFUSED,  # a status that a tenant may not write
    "preserveNodePorts": SETTABLE,
    "includeClusterResources": REFUSED,  # true; false may stand, and is the most that we would write
    "hooks": SWITCHED,
    "hooks.resources[].includedNamespaces": FORCED,
    "hooks.resources[].excludedNamespaces": REFUSED,
    "hooks.resources[].postHooks[].exec.execTimeout": BOUNDED,
    "hooks.resources[].postHooks[].exec.waitTimeout": BOUNDED,
    "hooks.resources[].postHooks[].init": REFUSED,  # a container of any rights, created by Velero
    "existingResourcePolicy": LISTED,
    "itemOperationTimeout": BOUNDED,
    "resourceModifier": LISTED,  # a ConfigMap of Velero's namespace
    "resourcePolicy": LISTED,  # the same
    "uploaderConfig": SETTABLE,
    "uploaderConfig.parallelFilesDownload": BOUNDED,
}
