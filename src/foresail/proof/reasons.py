"""Why a namespace or a claim is not covered: words that appear in `foresail coverage`."""

from collections.abc import Iterable
from datetime import timedelta
from enum import StrEnum

import msgspec

OVERDUE = timedelta(minutes=10)
"""How long after its planned time a run may be missing before nobody seems to run the schedule."""


class Reason(StrEnum):
    """The words; programs know them, so they do not change."""

    NO_SCHEDULE = "NoSchedule"
    """No Schedule and no NonAdminSchedule covers the namespace. Create one, or label the namespace
    `velero.io/exclude-from-backup=true`.
    """

    NO_OWN_SCHEDULE = "NoOwnSchedule"
    """The namespace has no NonAdminSchedule. A team may not see whether a Schedule of administrators covers it. Create
    one with `foresail backup schedule create`, or ask an administrator.
    """

    PAUSED = "SchedulePaused"
    """Every schedule that counts for the namespace, or saves the claim, is paused. Resume one with
    `foresail schedule unpause`.
    """

    NOT_RUNNING = "ScheduleNotRunning"
    """No run of a schedule that covers the namespace starts until someone acts. The message has the cause of each;
    `foresail schedule explain` and `foresail backup schedule explain` show the next step.
    """

    NOBODY_RUNS = "NobodyRuns"
    """Neither Velero's schedule controller nor Foresail's operator runs the schedules of the namespace. `foresail
    doctor` shows the next step.
    """

    RUNNER_UNKNOWN = "RunnerUnknown"
    """No Deployment or pod is recognised as a Velero server, so it is unknown whether anything runs the schedules.
    `foresail doctor` shows the next step.
    """

    VELERO_NOT_READY = "VeleroNotReady"
    """No pod of the Velero server is ready, so no schedule runs and nothing can be restored. `foresail doctor` shows
    why.
    """

    AGENT_NOT_READY = "NodeAgentNotReady"
    """The data of the claim is copied or moved by Velero's node agents, and none is ready, so runs partially fail.
    `foresail doctor` shows why.
    """

    LOCATION_UNAVAILABLE = "LocationUnavailable"
    """The storage location of the schedule, or of the newest good backup, is missing or not Available, so Velero can
    neither back up nor restore there. `velero backup-location get` shows it.
    """

    ORIGIN_UNKNOWN = "OriginUnknown"
    """The only good backups of the namespace came from a bucket, and nothing shows that this cluster made them. The
    next run settles it.
    """

    REFUSED = "SpecRefused"
    """Velero refuses the template of the schedule or its resource policy, or crashes on it. Correct it."""

    PARTIAL_RUNS = "RunsNotComplete"
    """The last runs failed or partially failed. Read the errors with `velero backup describe`."""

    EMPTY = "BackupEmpty"
    """The last run backed up no object. Compare the included namespaces of the schedule with those of the cluster."""

    SHRUNK = "BackupShrunk"
    """The last run has at least 90 % fewer objects than the one before it. Check what was deleted."""

    NAMESPACE_ABSENT = "NamespaceAbsent"
    """A schedule names a namespace that does not exist, so each of its runs partially fails. Correct the list."""

    VOLUME_LEFT_OUT = "VolumeLeftOut"
    """No schedule saves the data of the claim. The message has the reason for each of them."""

    POLICY_UNREAD = "PolicyUnread"
    """You may not read the resource policy of a schedule, so it is unknown whether it saves the data of the claim."""

    OBJECTIVE_MISSED = "ObjectiveMissed"
    """The newest good backup of the namespace, or with the data of the claim, is older than the objective, or there is
    none.
    """

    RUNS_MISSED = "RunsMissed"
    """There is no objective, and the newest good backup of the namespace, or with the data of the claim, is older than
    the last three times at which the schedule was due.
    """

    NO_GOOD_BACKUP = "NoGoodBackup"
    """There is no good backup of the namespace, or none with the data of the claim, and nothing else is wrong: the
    first run is still to come. Start it now if you do not want to wait.
    """


STOPS_BACKUPS = frozenset({Reason.VELERO_NOT_READY, Reason.LOCATION_UNAVAILABLE})
"""With one of these a backup that is made now fails, or waits: what they name comes first."""


class Remedy(StrEnum):
    """What would save the data of a claim that is left out; two are fields of a template to set to true."""

    SNAPSHOTS = "snapshotVolumes"
    FILE_SYSTEM = "defaultVolumesToFsBackup"
    TEMPLATE = "Template"
    """Nothing but another template, or another pod: a filter or a volume policy leaves the claim out."""

    ADMINISTRATOR = "Administrator"
    """Nothing that the owner of the schedule may set: snapshots of the storage, or leave to copy files."""


class Gap(msgspec.Struct, frozen=True):
    """Something that is not covered: a word for programs and a sentence for people."""

    reason: Reason
    message: str
    schedule: str = ""
    """The title of the schedule that the gap is about; empty if it is about none."""

    backup: str = ""
    """The name of the backup that the gap is about; empty if it is about none."""

    remedy: Remedy = Remedy.TEMPLATE
    """Of a claim that is left out: what would save its data."""


def is_late(gaps: Iterable[Gap]) -> bool:
    """Whether one of the gaps is a missed objective."""
    return any(gap.reason is Reason.OBJECTIVE_MISSED for gap in gaps)
