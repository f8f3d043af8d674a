"""A made-up cluster behind a canned API server: what the pictures of the console show."""

import json
from datetime import datetime, timedelta
from typing import Any
from urllib.parse import quote

from foresail.api.crds import DEFINITIONS, definition
from foresail.api.instants import stamp
from foresail.api.marks import CHECK_LABEL, NAMESPACE_UID, PROTECTION, REQUEST_UID
from foresail.cli.access.operators import OPERATOR_LABEL
from foresail.kube.clock import now
from foresail.selfservice.families import BACKUPS, RESTORES
from tests.unit.cli.test_coverage import listed, named
from tests.unit.console.test_console import GROUP, SERVED, everything
from tests.unit.console.test_console_restore import MAPS, Answers, with_bucket
from tests.unit.console.test_report import TENANTS

VELERO = "/apis/velero.io/v1/namespaces/velero"
OWN = "/apis/foresail.dev/v1alpha1"
CONTENTS = ("banner", "feature-flags", "prices", "settings", "tax-rates", "texts")
"""The ConfigMaps of the copy that is restored."""

_UID = "0f8fad5b"  # as the names of Backups end, by the UID of their Schedule
_TEAMS = ("bank", "billing", "games", "lab", "mail", "maps", "photos", "search", "shop", "travel")
_CLASS_OF = {team: "gold" if team in ("bank", "billing", "mail", "shop") else "silver" for team in _TEAMS[:-1]}
_KIND = {"apiVersion": "oadp.openshift.io/v1alpha1", "kind": "NonAdminBackup"}


def made_up_cluster(bucket: str) -> Answers:
    """Return ten namespaces with schedules, backups, requests, policies, checks and Primers; some have gaps."""
    at = now().replace(microsecond=0)
    found = {**everything(), **with_bucket(bucket), **_velero(at), **_tenants(at), **_policies(at), **_proof(at)}
    return Answers({**found, **_rollbacks(at), **_protection(at)})


def _ago(at: datetime, **length: float) -> str:
    return stamp(at - timedelta(**length))


def _velero(at: datetime) -> dict[str, Any]:
    """Return namespaces with volumes, nightly Schedules and a week of their Backups."""
    spaces = [named(each) | {"metadata": {"name": each, "uid": f"uid-of-{each}"}} for each in _TEAMS]
    for each in spaces:
        of_class = _CLASS_OF.get(each["metadata"]["name"])
        labels = {**SERVED, **({PROTECTION: of_class} if of_class else {})}
        each["metadata"] |= {"creationTimestamp": "2026-01-01T00:00:00Z", "labels": labels}
    schedules, backups = [], []
    for number, team in enumerate(_TEAMS[:-1]):  # nobody backs up the last one
        cron = "0 2 * * *" if number % 3 else f"{number * 5} {number % 4} * * *"
        template = {"includedNamespaces": [team], "snapshotVolumes": team != "photos"}
        schedule = named(f"{team}-nightly", "velero", spec={"schedule": cron, "template": template})
        schedule["metadata"] |= {"uid": f"uid-of-{team}-nightly"}
        schedule["status"] = {"phase": "Enabled", "lastBackup": stamp(at - timedelta(minutes=1))}
        schedules.append(schedule)
        for day in range(7):
            failed = team == "mail" and day < 3
            started = at - timedelta(days=day, hours=7, minutes=number)
            status: dict[str, Any] = {
                "phase": "PartiallyFailed" if failed else "Completed",
                "startTimestamp": stamp(started),
            }
            status |= {"completionTimestamp": stamp(started + timedelta(minutes=4)), "progress": {"itemsBackedUp": 214}}
            status |= {"errors": 2} if failed else {}
            status |= {"volumeSnapshotsCompleted": 1} if team != "photos" else {}
            backup = named(f"{team}-nightly-{started:%Y%m%d%H%M%S}-{_UID}", "velero", spec=template, status=status)
            backup["metadata"]["labels"]["velero.io/schedule-name"] = f"{team}-nightly"
            backups.append(backup)
    claims = [named("data", each, spec={"volumeName": f"pv-{each}"}, status={"phase": "Bound"}) for each in _TEAMS[::2]]
    volumes = [
        named(f"pv-{each}", spec={"capacity": {"storage": "8Gi"}, "awsElasticBlockStore": {"volumeID": each}})
        for each in _TEAMS[::2]
    ]
    location = named("default", "velero", spec={"default": True}, status={"phase": "Available"})
    return {
        "/api/v1/namespaces": listed(*spaces),
        "/api/v1/namespaces/shop": next(each for each in spaces if each["metadata"]["name"] == "shop"),
        "/api/v1/persistentvolumeclaims": listed(*claims),
        "/api/v1/namespaces/shop/persistentvolumeclaims": listed(*(each for each in claims if _is_of(each, "shop"))),
        "/api/v1/persistentvolumes": listed(*volumes),
        f"{VELERO}/schedules": listed(*schedules),
        **{f"{VELERO}/schedules/{each['metadata']['name']}": each for each in schedules},
        f"{VELERO}/backups": listed(*backups, *(_velero_copy(at, day) for day in range(5))),
        f"{VELERO}/backupstoragelocations": listed(location),
        **_surroundings(),
    }


def _surroundings() -> dict[str, Any]:
    """Return what the doctor looks at besides: Velero's Deployment, our kinds and Leases."""
    server = {"name": "velero", "image": "velero/velero:v1.18.3", "args": ["server", "--disable-controllers=schedule"]}
    deployment = named("velero", "velero", spec={"replicas": 1, "template": {"spec": {"containers": [server]}}})
    labels = {OPERATOR_LABEL: "velero"}  # the canned server knows no selectors
    deployment["metadata"] |= {"uid": "uid-of-velero", "generation": 1, "labels": labels}
    deployment["status"] = {
        "observedGeneration": 1,
        "replicas": 1,
        "updatedReplicas": 1,
        "availableReplicas": 1,
        "readyReplicas": 1,
    }

    def held(path: str, _: object) -> dict[str, Any]:  # it is renewed for as long as pictures are taken
        spec = {"holderIdentity": "foresail-0", "renewTime": stamp(now()), "leaseDurationSeconds": 15}
        return named(path.rpartition("/")[2], "velero", spec=spec)

    kinds = [named(f"{each}.velero.io", spec={"versions": []}) for each in ("backups", "schedules", "restores")]
    leases = "/apis/coordination.k8s.io/v1/namespaces/velero/leases"
    return {
        "/apis/apps/v1/deployments": listed(deployment),
        "/apis/apps/v1/namespaces/velero/deployments": listed(deployment),
        "/apis/apiextensions.k8s.io/v1/customresourcedefinitions": listed(*map(definition, DEFINITIONS), *kinds),
        f"/api/v1/namespaces?limit=500&labelSelector={quote(CHECK_LABEL, safe='')}": listed(),
        "/api/v1/events": listed(),
        f"{VELERO}/deletebackuprequests": listed(),
        **{f"{leases}/{each}": held for each in ("foresail-schedules", "foresail-primers")},
        "/apis/authentication.k8s.io/v1/selfsubjectreviews": {"status": {"userInfo": {"username": "kim"}}},
        "/version": {"major": "1", "minor": "36", "gitVersion": "v1.36.0"},
    }


def _is_of(each: dict[str, Any], namespace: str) -> bool:
    return bool(each["metadata"]["namespace"] == namespace)


def _velero_copy(at: datetime, day: int) -> dict[str, Any]:
    """Return the Velero Backup of a copy of the shop."""
    found = named(f"shop-copy-{day}", "velero", spec={"includedNamespaces": ["shop"]}, status=_status(at, day))
    owner = {BACKUPS.origin_namespace: "shop", BACKUPS.origin_name: f"nightly-{day}"}
    record = {REQUEST_UID: f"uid-of-nightly-{day}", NAMESPACE_UID: "uid-of-shop"}
    found["metadata"] |= {"annotations": {**owner, **record} if day else owner}  # the first one is to be adopted
    found["metadata"]["labels"][BACKUPS.nacuuid_label] = f"shop-copy-{day}"
    return found


def _status(at: datetime, day: int) -> dict[str, Any]:
    started = at - timedelta(days=day, hours=5)
    done = {"totalItems": 41, "itemsBackedUp": 41}
    times = {"startTimestamp": stamp(started), "completionTimestamp": stamp(started + timedelta(minutes=2))}
    expires = stamp(started + timedelta(days=7))
    return {"phase": "Completed", **times, "progress": done, "expiration": expires, "volumeSnapshotsCompleted": 1}


def _request(name: str, namespace: str, created: str, **status: Any) -> dict[str, Any]:  # noqa: ANN401 - JSON
    found = named(name, namespace, spec={"backupSpec": {}}, status={"phase": "Created", **status})
    found["metadata"] |= {"uid": f"uid-of-{name}", "resourceVersion": "7", "creationTimestamp": created}
    return found


def _tenants(at: datetime) -> dict[str, Any]:
    """Return a tenant's copies, one backup that runs and some that wait."""
    accepted = {"type": "Accepted", "status": "True", "reason": "BackupAccepted", "message": "accepted"}
    accepted["lastTransitionTime"] = _ago(at, minutes=3)
    ended = {"type": "VeleroSucceeded", "status": "True", "reason": "BackupCompleted", "message": "41 items"}
    copies = [
        _request(
            f"nightly-{day}",
            "shop",
            _ago(at, days=day, hours=5),
            conditions=[accepted, ended],
            veleroBackup={"nacuuid": f"shop-copy-{day}", "name": f"shop-copy-{day}", "status": _status(at, day)},
        )
        for day in range(5)
    ]
    progress = {"totalItems": 214, "itemsBackedUp": 96}
    runs = {"phase": "InProgress", "startTimestamp": _ago(at, minutes=1), "progress": progress}
    handed = {"type": "Queued", "status": "True", "reason": "BackupScheduled", "message": "Velero Backup created"}
    handed["lastTransitionTime"] = _ago(at, minutes=2)
    running = _request(
        "before-upgrade",
        "shop",
        _ago(at, minutes=2),
        conditions=[accepted, handed],
        veleroBackup={"nacuuid": "shop-before-upgrade", "name": "shop-before-upgrade", "status": runs},
        queueInfo={"estimatedQueuePosition": 1},
        dataMoverDataUploads={"total": 1, "inProgress": 1, "bytesDone": 5 << 30, "totalBytes": 8 << 30},
    )
    turn = {"type": "Queued", "status": "False", "reason": "WaitingForTurn", "message": "2 requests are before it"}
    waiting = [
        _request(name, space, _ago(at, minutes=1), conditions=[accepted, turn], queueInfo={"estimatedQueuePosition": n})
        for n, (name, space) in enumerate((("release-12", "bank"), ("release-13", "bank"), ("weekly", "lab")), 2)
    ]
    schedule = named("nightly", "shop", spec={"schedule": "0 4 * * *", "template": {"backupSpec": {}}})
    schedule["metadata"] |= {"uid": "uid-of-nightly"}
    schedule["status"] = {"nextRun": stamp((at + timedelta(days=1)).replace(hour=4, minute=0, second=0))}
    restored = {"phase": "Completed", "startTimestamp": _ago(at, hours=30), "completionTimestamp": _ago(at, hours=29.9)}
    restore = _request("undo", "shop", _ago(at, hours=30), veleroRestore={"name": "shop-undo", "status": restored})
    restore["spec"] = {"restoreSpec": {"backupName": "nightly-2"}}
    return {
        f"{TENANTS}/nonadminbackups": listed(running, *copies),
        f"{GROUP}/nonadminbackups": listed(running, *waiting, *copies),
        f"{TENANTS}/nonadminbackups/before-upgrade": {**_KIND, **running},
        f"{GROUP}/namespaces/bank/nonadminbackups/release-12": {**_KIND, **waiting[0]},
        **{f"{TENANTS}/nonadminbackups/{each['metadata']['name']}": {**_KIND, **each} for each in copies},
        f"{TENANTS}/nonadminschedules": listed(schedule),
        f"{TENANTS}/nonadminschedules/nightly": schedule,
        f"{GROUP}/nonadminschedules": listed(schedule),
        f"{TENANTS}/nonadminrestores": listed(restore),
        f"{GROUP}/nonadminrestores": listed(restore),
        **{f"{MAPS}/{each}": _config_map(each, "new") for each in CONTENTS[2:4]},
        MAPS: listed(*(_config_map(each, "old" if each in CONTENTS[:2] else "new") for each in CONTENTS[:4])),
    }


def _config_map(name: str, value: str) -> dict[str, Any]:
    metadata = {"name": name, "namespace": "shop", "resourceVersion": "7"}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"a": value}}


def _policies(at: datetime) -> dict[str, Any]:
    """Return policies, a request for a storage location, and a Velero Restore."""
    quotas = {"stored": 20, "active": 2, "restores": {"stored": 10, "active": 1}}
    restore = {"allowed": {"existingResourcePolicies": ["update"]}}
    rollback = {"enabled": True, "prune": True}
    web: dict[str, Any] = {
        "metadata": {"name": "web"},
        "spec": {"namespaceSelector": {}, "weight": 3, "quotas": quotas, "restore": restore, "rollback": rollback},
    }
    web["metadata"]["creationTimestamp"] = _ago(at, days=40)
    nights = {"metadata": {"name": "nights"}, "spec": {"selector": {"names": ["maps-nightly"]}, "priority": 4}}
    asked: dict[str, Any] = {"name": "mine", "namespace": "shop", "requestHash": "4be1c7", "nacuuid": "shop-mine"}
    storage = {"bucket": "shop-archive", "prefix": "velero"}
    asked["requestedSpec"] = {"provider": "aws", "objectStorage": storage, "config": {"region": "eu-central-1"}}
    request = named("shop-mine", "velero", status={"phase": "Pending", "nonAdminBackupStorageLocation": asked})
    undone = named("shop-undo", "velero", spec={}, status={"phase": "Completed"})
    undone["metadata"]["annotations"] = {RESTORES.origin_namespace: "shop"}
    return {
        f"{OWN}/selfservicepolicies": listed(web),
        f"{OWN}/schedulepolicies": listed(nights),
        f"{GROUP}/namespaces/velero/nonadminbackupstoragelocationrequests": listed(request),
        f"{VELERO}/restores": listed(undone),
    }


def _rollbacks(at: datetime) -> dict[str, Any]:
    """Return a rollback that restores, one that can be undone, and a plan."""
    kind = {"apiVersion": "foresail.dev/v1alpha1", "kind": "Rollback"}
    texts = {"existing": ["configmaps/prices", "configmaps/settings", "deployments.apps/web"]}
    texts |= {"created": ["configmaps/tax-rates", "secrets/db"], "extra": ["configmaps/rogue"]}
    texts |= {"leftOut": ["pods", "jobs.batch"], "suspended": ["horizontalpodautoscalers.autoscaling/web"]}
    plan: dict[str, Any] = {group: {"count": len(names), "names": names} for group, names in texts.items()}
    plan["digest"] = "4be1c7" + "0" * 58

    def step(name: str, began: float, ended: float | None, message: str) -> dict[str, Any]:
        found = {"name": name, "started": _ago(at, seconds=began), "message": message}
        return found if ended is None else {**found, "finished": _ago(at, seconds=ended)}

    def one(name: str, phase: str, reason: str, message: str, ago: float, *steps: Any, **more: Any) -> dict[str, Any]:  # noqa: ANN401
        condition = {"type": "Succeeded", "status": "Unknown", "reason": reason, "message": message}
        condition["lastTransitionTime"] = _ago(at, seconds=ago)
        spec = {"to": "nightly-2", **more.pop("spec", {})}
        status = {"phase": phase, "plan": plan, "requester": "kim", "conditions": [condition], "steps": steps, **more}
        found = {**kind, **named(name, "shop", spec=spec, status=status)}
        found["metadata"] |= {"uid": f"uid-of-{name}", "creationTimestamp": _ago(at, seconds=ago)}
        return found

    steps = (
        step("Planning", 95, 91, ""),
        step("SafetyBackup", 91, 38, "NonAdminBackup back-safety is complete: 41 items"),
        step("Suspending", 38, 37, "horizontalpodautoscalers.autoscaling/web"),
        step("Restoring", 37, None, "3 of 5 objects"),
    )
    stopped = [{"kind": "horizontalpodautoscalers.autoscaling", "name": "web", "uid": "u", "former": "2"}]
    made = {"safetyBackup": "back-safety", "stopped": stopped}
    runs = one("before-noon", "Restoring", "InProgress", "the restore runs", 95, *steps, **made)
    done = one(
        "monday", "Completed", "Completed", "5 objects are as in the backup", 90_000,
        step("Planning", 90_000, 89_996, ""), step("Restoring", 89_996, 89_842, "5 of 5 objects"),
        safetyBackup="monday-safety",
        undoUntil=stamp(at + timedelta(hours=20)),
    )  # fmt: skip
    dry = one("plan-1", "Planned", "Planned", "nothing was changed", 30, spec={"dryRun": True})
    path, every = f"{OWN}/namespaces/shop/rollbacks", (runs, done, dry)
    return {
        f"{OWN}/rollbacks": listed(*every),
        path: listed(*every),
        **{f"{path}/{each['metadata']['name']}": each for each in every},
    }


def _protection(at: datetime) -> dict[str, Any]:
    """Return two classes, and what protects two namespaces."""
    since = {"lastTransitionTime": _ago(at, days=3)}
    ready = {"type": "Ready", "status": "True", "reason": "Ready", "message": "", **since}
    classes = [
        named(name, spec={"schedule": cron}, status={"namespaces": number, "schedules": 1, "conditions": [ready]})
        for name, cron, number in (("gold", "0 */4 * * *", 4), ("silver", "0 2 * * *", 5))
    ]
    rows = (("shop", "True", "Protected", "gold"), ("travel", "False", "NoClass", ""))
    protections = []
    for space, truth, reason, of_class in rows:
        condition = {"type": "Protected", "status": truth, "reason": reason, "message": "", **since}
        status = {"class": of_class, "nextRun": stamp(at + timedelta(hours=3)), "conditions": [condition]}
        protections.append(named("protection", space, status=status))
    for each in classes:
        each["metadata"]["uid"] = f"uid-of-{each['metadata']['name']}"
    return {
        f"{OWN}/protectionclasses": listed(*classes),
        **{f"{OWN}/protectionclasses/{each['metadata']['name']}": each for each in classes},
        f"{OWN}/protections": listed(*protections),
    }


def _proof(at: datetime) -> dict[str, Any]:
    """Return two RestoreChecks with the records of earlier runs, a tenant's, and two Primers."""
    checks = list[dict[str, Any]]()
    records = list[dict[str, Any]]()
    for name, result, reason, seconds in (
        ("shop-proof", "Pass", "Complete", 31),
        ("mail-proof", "Fail", "ItemsRefused", 48),
    ):
        is_good = result == "Pass"
        last: dict[str, Any] = {"result": result, "reason": reason, "backup": f"{name[:4]}-nightly", "itemsFound": 140}
        last |= {
            "id": "1",
            "backupUid": "u",
            "itemsExpected": 140 if is_good else 141,
            "restoreSeconds": seconds,
            "evidence": f"{name}-1",
        }
        last |= {"started": _ago(at, hours=6), "completed": _ago(at, hours=5.9)}
        last["message"] = "all objects are there" if is_good else "Service web: refused by a webhook"
        check = named(name, "velero", spec={"backups": {"schedule": f"{name[:4]}-nightly"}}, status={"last": last})
        check["metadata"] |= {"uid": f"uid-of-{name}", "creationTimestamp": _ago(at, days=20)}
        checks.append(check)
        for run in range(1, 6):
            record: dict[str, Any] = {
                "result": result if run == 1 else "Pass",
                "reason": reason if run == 1 else "Complete",
            }
            record |= {"restoreSeconds": seconds - 3 * run, "started": _ago(at, days=run), "backup": last["backup"]}
            record |= (
                {} if is_good else {"problems": [{"reason": reason, "message": last["message"]}], "problemCount": 1}
            )
            one: dict[str, Any] = {"metadata": {"name": f"{name}-{run}", "labels": {CHECK_LABEL: f"uid-of-{name}"}}}
            records.append({**one, "data": {"record.json": json.dumps(record)}})
    own = named("own", "shop", spec={"backups": {"nonAdminSchedule": "nightly"}}, status=checks[0]["status"])
    place, maps = f"{OWN}/namespaces/velero/restorechecks", "/api/v1/namespaces/velero/configmaps"
    delays: list[dict[str, Any]] = [
        {"fire": _ago(at, hours=30), "seconds": 94, "warm": False},
        {"fire": _ago(at, hours=6), "seconds": 2, "warm": True},
    ]
    primers = []
    for name, space, cold in (("reports", "bank", 94), ("thumbnails", "photos", 61)):
        jobs = [
            {"name": name, "uid": "u", "dutyCyclePercent": 1, "startDelays": [delays[0] | {"seconds": cold}, delays[1]]}
        ]
        status = {"nextFire": stamp(at + timedelta(hours=5)), "matched": 1, "cronJobs": jobs}
        primers.append(named(name, space, spec={"cronJob": name, "warmUp": "10m"}, status=status))
    return {
        place: listed(*checks),
        f"{OWN}/restorechecks": listed(*checks, own),
        f"{OWN}/namespaces/shop/restorechecks": listed(own),
        **{f"{place}/{each['metadata']['name']}": each for each in checks},
        maps: listed(*(each for each in records if each["metadata"]["name"].startswith("mail"))),
        **{f"{maps}/{each['metadata']['name']}": each for each in records},
        f"{OWN}/primers": listed(*primers),
    }
