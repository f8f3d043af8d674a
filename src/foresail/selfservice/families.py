"""The two kinds of request, and in what they differ: names of kinds, fields and labels, and the words about them."""

import msgspec

from foresail.api import nonadmin, velero
from foresail.plan import Key, Kind, PartKey
from foresail.selfservice.reasons import Reason
from foresail.tenancy import records


class Family(msgspec.Struct, frozen=True):
    """A tenant's kind and the Velero kind for it."""

    word: str  # as people call it
    kind: Kind
    velero: Kind
    finalizer: str
    short: str  # in labels and annotations
    reference: str  # the field of the status that mirrors Velero's object
    transfers: str  # the field that counts what the data mover moves
    volumes: str  # the field that counts what is copied from the file systems of pods
    movement_label: str  # on the movement of a volume, with the name of the Velero Backup or Restore
    invalid: Reason
    accepted: Reason
    scheduled: Reason
    not_found: Reason

    @property
    def nacuuid_label(self) -> str:
        """The label with the name of Velero's object, on that object."""
        return f"openshift.io/oadp-{self.short}-origin-nacuuid"

    @property
    def origin_name(self) -> str:
        """The annotation with the name of the tenant's object."""
        return records.origin_name(self.short)

    @property
    def origin_namespace(self) -> str:
        """The annotation with the tenant's namespace."""
        return records.origin_namespace(self.short)

    def queue_key(self, key: Key) -> PartKey:
        """Return the key under which a request is reconciled: the two kinds may have the same names."""
        return PartKey(key.namespace, key.name, self.kind.plural)


BACKUPS = Family(
    word="backup",
    kind=nonadmin.NON_ADMIN_BACKUP,
    velero=velero.BACKUP,
    finalizer="nonadminbackup.oadp.openshift.io/finalizer",
    short="nab",
    reference="veleroBackup",
    transfers="dataMoverDataUploads",
    volumes="fileSystemPodVolumeBackups",
    movement_label=velero.BACKUP_NAME_LABEL,
    invalid=Reason.INVALID_BACKUP_SPEC,
    accepted=Reason.BACKUP_ACCEPTED,
    scheduled=Reason.BACKUP_SCHEDULED,
    not_found=Reason.VELERO_BACKUP_NOT_FOUND,
)
RESTORES = Family(
    word="restore",
    kind=nonadmin.NON_ADMIN_RESTORE,
    velero=velero.RESTORE,
    finalizer="nonadminrestore.oadp.openshift.io/finalizer",
    short="nar",
    reference="veleroRestore",
    transfers="dataMoverDataDownloads",
    volumes="fileSystemPodVolumeRestores",
    movement_label=velero.RESTORE_NAME_LABEL,
    invalid=Reason.INVALID_RESTORE_SPEC,
    accepted=Reason.RESTORE_ACCEPTED,
    scheduled=Reason.RESTORE_SCHEDULED,
    not_found=Reason.VELERO_RESTORE_NOT_FOUND,
)
FAMILIES = (BACKUPS, RESTORES)
