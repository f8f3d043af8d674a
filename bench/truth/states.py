"""The table: states of namespaces as objects of Kubernetes and Velero, and what is true of each.

It uses nothing of Foresail's code. What is true follows from the objects: is there a good copy of everything, recent
enough, readable now, and will there be another one?
"""

from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

Body = dict[str, Any]
VELERO = "velero"
SAFE, NOT_SAFE, EXCLUDED = "safe", "not safe", "excluded"
OBJECTIVE = "26h"
STRICT = "1m"
_DAILY = "0 3 * * *"
_FAR = "2099-01-01T00:00:00Z"
_OBJECTS: Body = {"snapshotVolumes": False}
_SKIPPED: Body = {"resourcePolicy": {"kind": "configmap", "name": "skip-all"}}
_WITHOUT_VOLUMES: Body = {"excludedResources": ["persistentvolumeclaims", "persistentvolumes"]}
_FILES: Body = {"defaultVolumesToFsBackup": True}
NFS: Body = {"nfs": {"server": "n.example", "path": "/"}}
"""A volume of which Velero makes no snapshot."""


@dataclass(frozen=True)
class Run:
    """A Backup that is written with its status, so that no run takes time; so many seconds ago it started."""

    name: str
    seconds: float = 10
    phase: str = "Completed"
    items: int = 20
    snapshots: int = 0
    uid: str | None = None  # of the Schedule that it names; None for that of the namespace's own Schedule
    location: str = "default"
    is_by_hand: bool = False


@dataclass(frozen=True)
class State:
    """A namespace with what is in it, and what is true of it."""

    name: str
    truth: str
    template: Body | None = field(default_factory=dict)  # of its Schedule; None for no Schedule
    schedule: Body = field(default_factory=dict)  # further fields of its Schedule
    second: Body | None = None  # the template of a second Schedule
    second_schedule: Body = field(default_factory=dict)
    runs: tuple[Run, ...] = (Run("1"),)
    claims: tuple[Body, ...] = ()
    late_claims: tuple[Body, ...] = ()  # created after the runs
    labels: Body = field(default_factory=dict)
    objective: str = OBJECTIVE
    is_schedule_fine: bool | None = None  # what `schedule get` must say; None if that is not judged
    is_recreated: bool = False  # the namespace is deleted and created again after its runs


@dataclass(frozen=True)
class TeamState:
    """A namespace of a team with NonAdminSchedules and NonAdminBackups, and what is true of it."""

    name: str
    truth: str
    has_policy: bool = True
    schedule: Body | None = field(default_factory=lambda: {"schedule": _DAILY})
    backup: Body | None = field(default_factory=dict)  # its spec; None for no backup
    has_claim: bool = False
    shown: str = "Completed"  # what `backup get` must say of the backup
    is_schedule_fine: bool = True


def claim(name: str = "data", **more: Any) -> Body:  # noqa: ANN401 - JSON
    """Return a claim that is bound to a volume with native snapshots."""
    return {"name": name, "bound": True, "labels": {}, **more}


STATES = (
    # Healthy ones
    State("a-calm", SAFE, is_schedule_fine=True),
    State("a-two-runs", SAFE, runs=(Run("1", 35), Run("2")), is_schedule_fine=True),
    State("a-pattern", SAFE, {"includedNamespaces": ["a-pat*"]}),
    State("a-more-namespaces", SAFE, {"includedNamespaces": ["a-more-namespaces", "a-calm"]}),
    State("a-second-runs", SAFE, schedule={"paused": True}, second={}, runs=(Run("1", 35), Run("second-1"))),
    State("a-running", SAFE, runs=(Run("1", 35), Run("2", phase="InProgress"))),
    State("a-volume", SAFE, claims=(claim(),), runs=(Run("1", snapshots=1),)),
    State("a-two-volumes", SAFE, claims=(claim("one"), claim("two")), runs=(Run("1", snapshots=2),)),
    State("a-volume-out", SAFE, claims=(claim(labels={"velero.io/exclude-from-backup": "true"}),)),
    State("a-volume-pending", SAFE, claims=(claim(bound=False),)),
    State("a-files", SAFE, _FILES, claims=(claim(source=NFS, is_mounted=True),)),
    State("a-failed-before", SAFE, runs=(Run("1", 35, "Failed"), Run("2"))),
    State("a-shrunk-for-good", SAFE, runs=(Run("1", 35, items=100), Run("2", 20, items=5), Run("3", items=5))),
    State("a-no-objective", SAFE, objective=""),
    State("a-events-out", SAFE, {"excludedResources": ["events"]}),
    State("a-excluded", EXCLUDED, None, runs=(), labels={"velero.io/exclude-from-backup": "true"}),
    # Nothing backs it up
    State("b-no-schedule", NOT_SAFE, None, runs=()),
    State("b-by-hand-only", NOT_SAFE, None, runs=(Run("1", is_by_hand=True),)),
    State("b-not-included", NOT_SAFE, {"includedNamespaces": ["zz-*"]}, runs=()),
    State("b-cluster-kinds-only", NOT_SAFE, {"includedResources": ["clusterroles"]}, runs=()),
    State("b-no-backup-yet", NOT_SAFE, runs=(), is_schedule_fine=True),
    State("b-no-backup-no-objective", NOT_SAFE, runs=(), objective=""),
    State("b-first-run", NOT_SAFE, runs=(Run("1", phase="InProgress"),)),
    # The next run does not come
    State("c-paused", NOT_SAFE, schedule={"paused": True}, is_schedule_fine=False),
    State("c-both-paused", NOT_SAFE, schedule={"paused": True}, second={}, second_schedule={"paused": True}),
    State("c-never-fires", NOT_SAFE, schedule={"schedule": "0 3 31 2 *"}, is_schedule_fine=False),
    State("c-invalid-cron", NOT_SAFE, schedule={"schedule": "every night"}, is_schedule_fine=False),
    State("c-location-missing", NOT_SAFE, {"storageLocation": "nowhere"}, is_schedule_fine=False),
    State("c-location-broken", NOT_SAFE, {"storageLocation": "broken"}, is_schedule_fine=False),
    State("c-location-read-only", NOT_SAFE, {"storageLocation": "archive"}, is_schedule_fine=False),
    State("c-policy-missing", NOT_SAFE, {"resourcePolicy": {"kind": "configmap", "name": "no-such-rules"}}),
    State("c-policy-invalid", NOT_SAFE, {"resourcePolicy": {"kind": "configmap", "name": "bad-rules"}}),
    State("c-selector-empty", NOT_SAFE, {"labelSelector": {}}),
    # The runs are no good
    State("d-failed", NOT_SAFE, runs=(Run("1", phase="Failed"),)),
    State("d-failed-after-good", NOT_SAFE, runs=(Run("1", 35), Run("2", phase="Failed"))),
    State("d-partial", NOT_SAFE, runs=(Run("1", phase="PartiallyFailed"),)),
    State("d-partial-after-good", NOT_SAFE, runs=(Run("1", 35), Run("2", phase="PartiallyFailed"))),
    State("d-refused-by-velero", NOT_SAFE, runs=(Run("1", phase="FailedValidation"),)),
    State("d-empty", NOT_SAFE, runs=(Run("1", items=0),)),
    State("d-empty-after-good", NOT_SAFE, runs=(Run("1", 35), Run("2", items=0))),
    State("d-shrunk", NOT_SAFE, runs=(Run("1", 35, items=100), Run("2", items=5))),
    State("d-being-deleted", NOT_SAFE, runs=(Run("1", phase="Deleting"),)),
    State("d-objective-missed", NOT_SAFE, objective=STRICT),
    State("d-late-by-hand-too", NOT_SAFE, runs=(Run("1", 35), Run("2", 20, is_by_hand=True)), objective=STRICT),
    State("d-other-cluster", NOT_SAFE, runs=(Run("1", uid="00000000-0000-0000-0000-000000000001"),)),
    State("d-unknown-cluster", NOT_SAFE, runs=(Run("1", uid=""),)),
    State("d-future", NOT_SAFE, runs=(Run("1", -7200),)),
    State("d-bucket-lost", NOT_SAFE, runs=(Run("1", location="lost"),)),
    State("d-bucket-broken", NOT_SAFE, runs=(Run("1", location="broken"),)),
    State("d-older-than-namespace", NOT_SAFE, is_recreated=True),
    # The data is missing
    State("e-volume-not-wanted", NOT_SAFE, _OBJECTS, claims=(claim(),)),
    State("e-volume-no-snapshot", NOT_SAFE, claims=(claim(),)),
    State("e-volume-skipped", NOT_SAFE, _SKIPPED, claims=(claim(),)),
    State("e-volume-new", NOT_SAFE, late_claims=(claim(),), runs=(Run("1", snapshots=1),)),
    State("e-volume-kind-out", NOT_SAFE, _WITHOUT_VOLUMES, claims=(claim(),)),
    State("e-volume-nfs", NOT_SAFE, claims=(claim(source=NFS),)),
    State(
        "e-data-paused", NOT_SAFE, _OBJECTS, second={}, second_schedule={"paused": True},
        claims=(claim(),), runs=(Run("1"), Run("second-1", 35, snapshots=1)),
    ),
    State("e-files-no-pod", NOT_SAFE, {**_FILES, **_OBJECTS}, claims=(claim(source=NFS),)),
    State("e-volume-objective", NOT_SAFE, _OBJECTS, second={}, claims=(claim(),), runs=(Run("1"),)),
)  # fmt: skip

TEAMS = (
    TeamState("t-calm", SAFE),
    TeamState("t-volume-left-out", NOT_SAFE, has_claim=True, shown="Incomplete"),
    TeamState("t-paused", NOT_SAFE, schedule={"schedule": _DAILY, "paused": True}, is_schedule_fine=False),
    TeamState("t-too-often", NOT_SAFE, schedule={"schedule": "*/5 * * * *"}, is_schedule_fine=False),
    TeamState("t-never-fires", NOT_SAFE, schedule={"schedule": "0 3 31 2 *"}, is_schedule_fine=False),
    TeamState("t-no-schedule", NOT_SAFE, schedule=None),
    TeamState("t-nothing", NOT_SAFE, schedule=None, backup=None),
    TeamState("t-no-backup-yet", NOT_SAFE, backup=None),
    TeamState("t-refused", NOT_SAFE, backup={"storageLocation": "nowhere"}, shown=""),
    TeamState("t-no-policy", NOT_SAFE, has_policy=False, shown="", is_schedule_fine=False),
)


UP, DOWN = "up", "down"
NOT_DOWN = "not down"
"""It works; that this is unknown is no lie."""


@dataclass(frozen=True)
class Fault:
    """Something that is wrong with the whole cluster for a while, and which namespaces are not safe meanwhile."""

    name: str
    truth: str  # of a-calm, and of t-calm unless `team` says otherwise
    team: str = ""
    volume: str = ""  # of a-volume, if that differs
    files: str = ""  # of a-files, whose data a node agent copies, if that differs
    is_schedule_fine: bool | None = None  # of a-calm: whether its runs start; None if that is not judged
    is_own_schedule_fine: bool | None = True  # of the schedule in t-calm
    doctor: str = ""  # what doctor must not call good, if anything
    # What the header of the console must say of Velero, and of the operators to an administrator and to a team.
    velero: str = UP
    operators: str = UP
    own_operator: str = UP


FAULTS = (
    Fault("healthy", SAFE, is_schedule_fine=True),
    Fault("pod-of-velero-ready", SAFE, is_schedule_fine=True),
    # The chart has installed the operator of Schedules, and none of its replicas works: Velero fires them in its place.
    Fault("velero-controller-on", SAFE, is_schedule_fine=True, operators=DOWN),
    Fault("snapshot-location-gone", SAFE, volume=NOT_SAFE),
    Fault("agent-absent", SAFE, files=NOT_SAFE),
    *(
        Fault(name, NOT_SAFE, is_schedule_fine=False, is_own_schedule_fine=False, doctor="velero", velero=DOWN)
        for name in ("pods-not-ready", "wrong-image", "scaled-to-0", "validated-long-ago")
    ),
    # Velero works outside of Deployments, as its validations prove; who runs Schedules is not known.
    Fault("no-deployment", NOT_SAFE, team=SAFE, doctor="velero", velero=NOT_DOWN),
    Fault("server-not-recognised", NOT_SAFE, team=SAFE, doctor="velero", velero=NOT_DOWN),
    Fault("controllers-off", NOT_SAFE, team=SAFE, is_schedule_fine=False, doctor="schedules", operators=DOWN),
    # What a team reads of Velero, the operator of self-service publishes.
    Fault(
        "self-service-off", SAFE, team=NOT_SAFE, is_own_schedule_fine=False, velero=NOT_DOWN, operators=DOWN,
        own_operator=DOWN,
    ),
    Fault("bucket-gone", NOT_SAFE, is_schedule_fine=False, is_own_schedule_fine=False, doctor="locations"),
    Fault("wrong-keys", NOT_SAFE, is_schedule_fine=False, is_own_schedule_fine=False, doctor="locations"),
    # Velero takes the location that is named default if none is marked so.
    Fault("no-default-location", SAFE, is_schedule_fine=True, doctor="locations"),
    # Whether the ConfigMap is there, a team may not see; coverage says to it that this is unknown.
    Fault("global-policy-missing", NOT_SAFE, is_own_schedule_fine=None),
)  # fmt: skip


def schedules_of(state: State) -> list[Body]:
    """Return the Schedules of a namespace."""
    found = []
    for suffix, template, more in (
        ("", state.template, state.schedule),
        ("-second", state.second, state.second_schedule),
    ):
        if template is not None:
            labels = {"objective": {OBJECTIVE: "day", STRICT: "strict"}.get(state.objective, "none")}
            spec = {"schedule": _DAILY, **more, "template": {"includedNamespaces": [state.name], **template}}
            metadata = {"name": f"{state.name}{suffix}", "namespace": VELERO, "labels": labels}
            found.append({"apiVersion": "velero.io/v1", "kind": "Schedule", "metadata": metadata, "spec": spec})
    return found


def backup_of(state: State, run: Run, uids: dict[str, str], now: datetime) -> Body:
    """Return a Backup as Velero would have left it."""
    started = now - timedelta(seconds=run.seconds)
    is_second = run.name.startswith("second")
    schedule = f"{state.name}-second" if is_second else state.name
    template = (state.second if is_second else state.template) or {}
    uid = uids.get(schedule, "") if run.uid is None else run.uid
    times = {"startTimestamp": _stamp(started)}
    if run.phase != "InProgress":
        times["completionTimestamp"] = _stamp(started + timedelta(seconds=2))
    spec = {
        "includedNamespaces": [state.name],
        **template,
        "storageLocation": template.get("storageLocation", run.location),
    }
    if run.location != "default":
        spec["storageLocation"] = run.location
    return {
        "apiVersion": "velero.io/v1",
        "kind": "Backup",
        "metadata": {
            "name": f"{state.name}-{run.name}",
            "namespace": VELERO,
            "labels": {} if run.is_by_hand else {"velero.io/schedule-name": schedule},
            "annotations": {"foresail.dev/schedule-uid": uid} if uid and not run.is_by_hand else {},
        },
        "spec": spec,
        "status": {
            "phase": run.phase,
            "expiration": _FAR,
            "progress": {"itemsBackedUp": run.items, "totalItems": run.items},
            "volumeSnapshotsCompleted": run.snapshots,
            "volumeSnapshotsAttempted": run.snapshots,
            **times,
        },
    }


def claims_of(namespace: str, claims: tuple[Body, ...]) -> list[Body]:
    """Return claims with their volumes."""
    found = list[Body]()
    for each in claims:
        volume = f"{namespace}-{each['name']}"
        spec = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}, "storageClassName": ""}
        metadata = {"name": each["name"], "namespace": namespace, "labels": each["labels"]}
        if each["bound"]:
            spec["volumeName"] = volume
            source = each.get("source") or {"awsElasticBlockStore": {"volumeID": f"aws://zone/{volume}"}}
            reference = {"namespace": namespace, "name": each["name"]}
            found.append(
                {
                    "apiVersion": "v1",
                    "kind": "PersistentVolume",
                    "metadata": {"name": volume},
                    "spec": {
                        "capacity": {"storage": "1Gi"},
                        "accessModes": ["ReadWriteOnce"],
                        "claimRef": reference,
                        "storageClassName": "",
                        "persistentVolumeReclaimPolicy": "Retain",
                        **source,
                    },
                }
            )
        found.append({"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": metadata, "spec": spec})
    return found


def pods_of(namespace: str, claims: tuple[Body, ...]) -> list[Body]:
    """Return a pod for each claim that one mounts."""
    return [
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": f"uses-{each['name']}", "namespace": namespace},
            "spec": {
                "volumes": [{"name": "data", "persistentVolumeClaim": {"claimName": each["name"]}}],
                "containers": [
                    {"name": "app", "image": "example.com/app:1", "volumeMounts": [{"name": "data", "mountPath": "/d"}]}
                ],
            },
        }
        for each in claims
        if each.get("is_mounted")
    ]


def node_agent() -> Body:
    """Return the DaemonSet that copies files, as a fake kubelet runs it."""
    labels = {"name": "node-agent"}
    container = {"name": "node-agent", "image": "velero/velero:v1.18.3", "args": ["node-agent", "server"]}
    spec = {
        "selector": {"matchLabels": labels},
        "template": {"metadata": {"labels": labels}, "spec": {"containers": [container]}},
    }
    metadata = {"name": "node-agent", "namespace": VELERO}
    return {"apiVersion": "apps/v1", "kind": "DaemonSet", "metadata": metadata, "spec": spec}


def surroundings(s3: Body) -> list[Body]:
    """Return what the states need beside their namespaces: locations, policies and rules for volumes."""
    places = {
        "broken": ({"bucket": "no-such-bucket"}, ""),
        "archive": ({"bucket": "velero", "prefix": "archive"}, "ReadOnly"),
    }
    found: list[Body] = [
        _velero(
            "BackupStorageLocation", name, {**s3, "objectStorage": storage, **({"accessMode": mode} if mode else {})}
        )
        for name, (storage, mode) in places.items()
    ]
    found.append(_velero("VolumeSnapshotLocation", "default", {"provider": "aws", "config": {"region": "test"}}))
    for name, rpo in (("day", OBJECTIVE), ("strict", STRICT)):
        spec = {"selector": {"matchLabels": {"objective": name}}, "objective": {"rpo": rpo}}
        found.append(
            {"apiVersion": "foresail.dev/v1alpha1", "kind": "SchedulePolicy", "metadata": {"name": name}, "spec": spec}
        )
    texts = {
        "skip-all": "version: v1\nvolumePolicies:\n- conditions: {}\n  action:\n    type: skip\n",
        "bad-rules": "version: v7\n",
    }
    for name, text in texts.items():
        metadata = {"name": name, "namespace": VELERO}
        found.append({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"policy": text}})
    selector = {"matchLabels": {"truth.example/team": "yes"}}
    spec = {"namespaceSelector": selector, "schedules": {"minimumInterval": "1h", "maximum": 3}}
    found.append(
        {
            "apiVersion": "foresail.dev/v1alpha1",
            "kind": "SelfServicePolicy",
            "metadata": {"name": "truth"},
            "spec": spec,
        }
    )
    return found


def _velero(kind: str, name: str, spec: Body) -> Body:
    return {"apiVersion": "velero.io/v1", "kind": kind, "metadata": {"name": name, "namespace": VELERO}, "spec": spec}


def _stamp(at: datetime) -> str:
    return f"{at.astimezone(UTC):%Y-%m-%dT%H:%M:%SZ}"
