"""What a thief would write instead: each control, changed in one respect."""

import copy
from collections.abc import Callable, Iterator
from dataclasses import replace

from tests.stolen_token import rollbacks
from tests.stolen_token.bodies import (
    ADMINISTRATORS,
    CHECKS,
    GOLD,
    HOOKED,
    HOOKS,
    IMAGE,
    NIGHTLY,
    OLD_RUN,
    OTHER,
    OTHERS_LOCATION,
    POINT,
    PROTECTION,
    ROLLBACK,
    SCHEDULES,
    SELF_SERVICE,
    SHOP,
    SYSTEM,
    TENANTS,
    UID,
    UNLISTED,
    UUID,
    VELERO,
    Json,
    Write,
    admission,
    deletion,
    download,
    event,
    group,
    lease,
    location,
    retention,
    run_of,
    secret,
    tenants_backup,
    tenants_restore,
)

_PLUGIN = {"velero.io/plugin-config": "", "velero.io/change-image-name": "RestoreItemAction"}
_OWNER = {"apiVersion": "v1", "kind": "ConfigMap", "name": "x", "uid": UID}
_EXEC = {"exec": {"command": ["/bin/sh", "-c", "id"]}}
_ANYWHERE = {"resources": [{"name": "x", "includedNamespaces": ["kube-system"], "pre": [_EXEC]}]}
_INIT = {
    "resources": [
        {
            "name": "x",
            "includedNamespaces": [SHOP],
            "postHooks": [{"init": {"initContainers": [{"name": "x", "image": "x"}]}}],
        }
    ]
}
_BACKUP_FIELDS: dict[str, list[object]] = {
    "includedNamespaces": [["*"], [], [SHOP, OTHER], ["kube-system"], [OTHER]],
    "excludedNamespaces": [["x"]],
    "includedResources": [["secrets"]],
    "includeClusterResources": [True],
    "includedClusterScopedResources": [["*"]],
    "excludedClusterScopedResources": [[]],
    "hooks": [HOOKS, _ANYWHERE, {"resources": [{"name": "x", "includedNamespaces": [SHOP], "pre": [_EXEC]}]}],
    "resourcePolicy": [{"kind": "configmap", "name": "administrators"}],
    "storageLocation": [OTHERS_LOCATION, "default"],
    "metadata": [{"labels": {"velero.io/schedule-name": NIGHTLY}}],
    "defaultVolumesToRestic": [True],
}
_HARMLESS_BACKUP_FIELDS: dict[str, list[object]] = {
    "snapshotVolumes": [False],
    "labelSelector": [{"matchLabels": {"a": "b"}}],
    "orderedResources": [{"pods": f"{SHOP}/a"}],
    "uploaderConfig": [{"parallelFilesUpload": 2}],
}
_RESTORE_FIELDS: dict[str, list[object]] = {
    "backupName": [NIGHTLY, "", "nightly-20260101000000"],
    "scheduleName": [NIGHTLY],
    "includedNamespaces": [["*"], [], [SHOP, OTHER], ["kube-system"], [OTHER]],
    "namespaceMapping": [{SHOP: OTHER}, {SHOP: "kube-system"}],
    "includeClusterResources": [True],
    "excludedResources": [[], ["secrets"]],
    "restoreStatus": [{"includedResources": ["*"]}],
    "existingResourcePolicy": ["update"],
    "resourceModifier": [
        {"kind": "configmap", "name": "administrators"},
        {"kind": "configmap", "name": "check-0123456789-modifiers"},
    ],
    "resourcePolicy": [{"kind": "configmap", "name": "administrators"}],
    "hooks": [_INIT, {"resources": [{"name": "x", "includedNamespaces": [SHOP], "postHooks": [_EXEC]}]}],
    "restorePVs": [True],
}
_POD_FIELDS: dict[str, list[object]] = {
    "hostNetwork": [True],
    "hostPID": [True],
    "hostIPC": [True],
    "nodeName": ["node"],
    "serviceAccountName": ["velero", "controller"],
    "automountServiceAccountToken": [True],
    "priorityClassName": ["system-cluster-critical", "system-node-critical"],
    "initContainers": [[{"name": "x", "image": "x"}]],
    "volumes": [
        [{"name": "x", "hostPath": {"path": "/"}}],
        [{"name": "x", "secret": {"secretName": "x"}}],
        [{"name": "x", "projected": {"sources": [{"serviceAccountToken": {"path": "token"}}]}}],
        [{"name": "x", "persistentVolumeClaim": {"claimName": "data"}}],
    ],
    "securityContext": [{}, {"runAsNonRoot": True, "sysctls": [{"name": "x", "value": "1"}]}],
}
_CONTAINER_FIELDS: dict[str, list[object]] = {
    "image": ["thief:1", IMAGE],
    "command": [["/bin/sh", "-c", "id"], ["foresail", "hold", "1", "2"], ["foresail", "operator", "7"]],
    "args": [["x"]],
    "env": [[{"name": "x", "valueFrom": {"secretKeyRef": {"name": "x", "key": "x"}}}]],
    "envFrom": [[{"secretRef": {"name": "x"}}]],
    "lifecycle": [{"postStart": {"exec": {"command": ["id"]}}}],
    "livenessProbe": [{"exec": {"command": ["id"]}}],
    "securityContext": [
        {"privileged": True},
        {},
        {"allowPrivilegeEscalation": False, "capabilities": {"add": ["SYS_ADMIN"]}},
    ],
}


_ABOUT = {POINT: "about the backup of a class", "-claims-": "of claims", "snapshotMoveData": "of volumes"}
"""What tells apart the controls of one kind, by a word in their bodies."""


def mutations(control: Write) -> Iterator[Write]:
    """Return a control in every respect changed that a thief could try."""
    about = next((text for word, text in _ABOUT.items() if word in str(control.body)), "")
    for write in _mutations(control):
        yield replace(write, shape=f"{about}, {write.shape}") if about else write


def _mutations(control: Write) -> Iterator[Write]:
    if control.verb == "create":
        yield from _new(control)
    elif control.verb == "patch":
        yield from _changed(control)
    yield from _special(control)


def _new(control: Write) -> Iterator[Write]:
    for shape, change in (
        ("with a label of others", {"labels": {"example.com/other": "x"}}),
        ("with the labels of a Velero plugin", {"labels": _PLUGIN}),
        ("with an annotation of others", {"annotations": {"example.com/other": "x"}}),
        ("with another annotation of ours", {"annotations": {"foresail.dev/other": "x"}}),
        ("with the record of a tenant", {"annotations": {"openshift.io/oadp-nab-origin-namespace": OTHER}}),
        ("with hooks in annotations", {"annotations": {"pre.hook.backup.velero.io/command": '["id"]'}}),
    ):
        body = copy.deepcopy(control.body)
        for part, words in change.items():
            body["metadata"][part] = {**body["metadata"].get(part, {}), **words}
        yield replace(control, body=body, shape=shape)
    changes: list[tuple[str, Json]] = [
        ("with a finalizer", {"finalizers": ["example.com/hold"]}),
        ("with another owner", {"ownerReferences": [_OWNER]}),
        ("without labels", {"labels": {}}),
        ("without annotations", {"annotations": {}}),
    ]
    for shape, metadata in changes:
        body = copy.deepcopy(control.body)
        body["metadata"] |= metadata
        if (
            metadata.items() != {each: {} for each in metadata}.items()
            or next(iter(metadata)) in control.body["metadata"]
        ):
            yield replace(control, body=body, shape=shape)
    renamed = copy.deepcopy(control.body)
    renamed["metadata"]["name"] = "stolen"
    yield replace(control, name="stolen", body=renamed, shape="with another name")
    if isinstance(control.body.get("spec"), dict):
        yield _with(control, {"foresailUnknown": True}, "with an unknown field")
        for key in control.body["spec"]:
            body = copy.deepcopy(control.body)
            del body["spec"][key]
            yield replace(control, body=body, shape=f"without spec.{key}")
    body = {**copy.deepcopy(control.body), "status": {"phase": "Completed"}}
    yield replace(control, body=body, shape="with a status")


def _with(control: Write, change: Json, shape: str) -> Write:
    body = copy.deepcopy(control.body)
    body["spec"] = {**body["spec"], **change}
    return replace(control, body=body, shape=shape)


def _changed(control: Write) -> Iterator[Write]:
    for shape, body in (
        ("a label of others", {"metadata": {"labels": {"example.com/other": "x"}}}),
        ("the labels of a Velero plugin", {"metadata": {"labels": _PLUGIN}}),
        ("an annotation of others", {"metadata": {"annotations": {"example.com/other": "x"}}}),
        ("another annotation of ours", {"metadata": {"annotations": {"foresail.dev/request-uid": "other"}}}),
        ("the requester", {"metadata": {"annotations": {"foresail.dev/requester": "thief"}}}),
        ("a finalizer of others", {"metadata": {"finalizers": ["example.com/hold"]}}),
        ("an owner", {"metadata": {"ownerReferences": [_OWNER]}}),
        ("the spec", {"spec": {"paused": True, "suspend": True, "ttl": "1h0m0s", "schedule": "* * * * *"}}),
        ("hooks in the spec", {"spec": {"hooks": HOOKS, "template": {"hooks": HOOKS}, "backupSpec": {"ttl": "1h"}}}),
    ):
        yield replace(control, body=body, shape=f"changing {shape}")


def _fields(control: Write, table: dict[str, list[object]]) -> Iterator[Write]:
    for key, values in table.items():
        for number, value in enumerate(values):
            yield _with(control, {key: value}, f"with another spec.{key}{f' ({number + 1})' if number else ''}")


def _pods(control: Write, *path: str) -> Iterator[Write]:
    for table, is_container in ((_POD_FIELDS, False), (_CONTAINER_FIELDS, True)):
        for key, values in table.items():
            for number, value in enumerate(values):
                body = copy.deepcopy(control.body)
                pod = body
                for part in path:
                    pod = pod[part]
                (pod["containers"][0] if is_container else pod)[key] = value
                if body != control.body:
                    shape = f"whose {'container' if is_container else 'pod'} has another {key}"
                    yield replace(control, body=body, shape=f"{shape}{f' ({number + 1})' if number else ''}")


Mutations = Callable[[Write], Iterator[Write]]


def _special(control: Write) -> Iterator[Write]:
    """Return what only some kinds have."""
    rows = ((control.token, control.verb, control.resource), ("", control.verb, control.resource))
    for row in rows:
        if row in _OF_KINDS:
            yield from _OF_KINDS[row](control)
    if control.verb == "delete":
        yield from _deletions(control)
    if control.token == ROLLBACK:
        yield from rollbacks.mutations(control)


def _tenants_backups(control: Write) -> Iterator[Write]:
    yield from _fields(control, {**_BACKUP_FIELDS, **_HARMLESS_BACKUP_FIELDS})
    for name in (SYSTEM, "kube-system", VELERO, "openshift-ingress"):
        body = tenants_backup(f"{name}-new-{UUID}", name)
        yield replace(control, name=body["metadata"]["name"], body=body, shape=f"of namespace {name}")
    body = tenants_backup(f"{OTHER}-new-{UUID}", OTHER)
    yield replace(control, name=body["metadata"]["name"], body=body, shape="of another tenant")


def _runs(control: Write) -> Iterator[Write]:
    if "hooks" in control.body["spec"]:
        return
    yield from _fields(control, {**_BACKUP_FIELDS, **_HARMLESS_BACKUP_FIELDS})
    for schedule in (UNLISTED, NIGHTLY):
        body = run_of(schedule, {"hooks": HOOKS})
        shape = f"with hooks, of Schedule {schedule}, which is not listed"
        yield replace(control, name=body["metadata"]["name"], body=body, shape=shape)
    body = run_of(HOOKED, {"hooks": _ANYWHERE})
    yield replace(control, name=body["metadata"]["name"], body=body, shape="with other hooks than its Schedule")
    yield replace(control, name=TENANTS, body=tenants_backup(), shape="as the backup of a tenant")


def _tenants_restores(control: Write) -> Iterator[Write]:
    yield from _fields(control, _RESTORE_FIELDS)
    for name in (SYSTEM, "kube-system", VELERO):
        body = tenants_restore(f"{name}-new-{UUID}", name)
        yield replace(control, name=body["metadata"]["name"], body=body, shape=f"into namespace {name}")
    body = tenants_restore(f"{OTHER}-new-{UUID}", OTHER)
    yield replace(control, name=body["metadata"]["name"], body=body, shape="into another tenant's namespace")


def _restores_of_checks(control: Write) -> Iterator[Write]:
    yield from _fields(control, _RESTORE_FIELDS)


def _deletions_of_backups(control: Write) -> Iterator[Write]:
    for name in (NIGHTLY, "any"):
        body = deletion(name) if control.token == SELF_SERVICE else retention(name)
        yield replace(control, name=body["metadata"]["name"], body=body, shape=f"for the administrator's backup {name}")
    if control.token == SCHEDULES:
        body = copy.deepcopy(control.body)
        body["metadata"]["ownerReferences"][0]["name"] = OLD_RUN
        yield replace(control, body=body, shape="with another Backup as its owner")
        yield replace(control, name=f"{TENANTS}-retention", body=retention(TENANTS), shape="for the backup of a tenant")


def _downloads(control: Write) -> Iterator[Write]:
    for kind in ("BackupContents", "BackupVolumeSnapshots", "CSIBackupVolumeSnapshotContents"):
        body = copy.deepcopy(control.body)
        body["spec"]["target"]["kind"] = kind
        yield replace(control, body=body, shape=f"for {kind}")
    if control.token == SELF_SERVICE:
        yield replace(control, body=download("BackupLog", NIGHTLY), shape="for the administrator's backup")


def _events(control: Write) -> Iterator[Write]:
    body = {**event(control.namespace), "reportingController": "kubelet"}
    yield replace(control, body=body, shape="in another's name")


def _leases(control: Write) -> Iterator[Write]:
    yield replace(control, name="velero", body=lease("velero"), shape="of others")


def _secrets(control: Write) -> Iterator[Write]:
    body = {**secret(f"{SHOP}-new-{UUID}"), "type": "kubernetes.io/service-account-token"}
    yield replace(control, body=body, shape="with a token")
    more = secret(f"{SHOP}-new-{UUID}")
    more["data"]["other"] = "eA=="
    yield replace(control, body=more, shape="with other keys")


def _approvals(control: Write) -> Iterator[Write]:
    yield _with(control, {"approvalDecision": "approve"}, "that is approved")


def _sandboxes(control: Write) -> Iterator[Write]:
    yield replace(control, body=_privileged(control.body), shape="without Pod Security")


def _network_policies(control: Write) -> Iterator[Write]:
    yield _with(control, {"egress": [{}]}, "that opens the sandbox")
    yield from _elsewhere(control)


def _elsewhere(control: Write) -> Iterator[Write]:
    yield replace(control, namespace=SHOP, shape="in the namespace of a tenant")


def _config_maps(control: Write) -> Iterator[Write]:
    body = copy.deepcopy(control.body)
    body["metadata"]["name"] = "change-image-name"
    yield replace(control, name="change-image-name", body=body, shape="with the name of a plugin's settings")
    yield replace(control, body={**control.body, "data": {"x": "y"}}, shape="with other keys")


def _volumes(control: Write) -> Iterator[Write]:
    yield replace(control, name="tenants", shape="of a tenant's volume")
    yield replace(control, body={"spec": {"persistentVolumeReclaimPolicy": "Retain"}}, shape="to Retain")


def _changed_secrets(control: Write) -> Iterator[Write]:
    yield replace(control, name="cloud-credentials", shape="of Velero's own Secret")


def _changed_locations(control: Write) -> Iterator[Write]:
    yield replace(control, name="default", shape="of the administrator's location")
    bucket = {"spec": {"objectStorage": {"bucket": "thief"}}}
    yield replace(control, body=bucket, shape="to another bucket")


def _changed_schedules(control: Write) -> Iterator[Write]:
    template = {"includedNamespaces": ["kube-system"]}
    for field, value in (("schedule", "* * * * *"), ("paused", False), ("template", template)):
        yield replace(control, body={"spec": {field: value}}, shape=f"changing spec.{field}")


def _groups(control: Write) -> Iterator[Write]:
    template = control.body["spec"]["template"]
    for field, values in {**_BACKUP_FIELDS, **_HARMLESS_BACKUP_FIELDS}.items():
        for number, value in enumerate(values):
            shape = f"with another template.{field}{f' ({number + 1})' if number else ''}"
            yield _with(control, {"template": {**template, field: value}}, shape)
    patterns = {"template": {**template, "includedNamespaces": ["team-*"]}}
    many = {"template": {**template, "includedNamespaces": [f"n{number}" for number in range(101)]}}
    yield _with(control, patterns, "of namespaces by a pattern")
    yield _with(control, many, "of 101 namespaces")
    yield _with(control, {"paused": True}, "that is paused")
    yield replace(control, name=f"{NIGHTLY}-1", body=group(f"{NIGHTLY}-1"), shape="named after another class")
    yield replace(control, name=f"{GOLD}-x", body=group(f"{GOLD}-x"), shape="without a number")
    body = group()
    del body["metadata"]["annotations"]
    yield replace(control, body=body, shape="without the mark of a class")


def _changed_groups(control: Write) -> Iterator[Write]:
    yield replace(control, name=NIGHTLY, shape="of the administrator")
    for shape, template in (
        ("to all namespaces", {"includedNamespaces": None}),
        ("to namespaces by a pattern", {"includedNamespaces": ["*"]}),
        ("to hooks", {"hooks": HOOKS}),
        ("to the location of a tenant", {"storageLocation": OTHERS_LOCATION}),
        ("to the objects of the cluster", {"includeClusterResources": True}),
    ):
        yield replace(control, body={"spec": {"template": template}}, shape=shape)
    yield replace(control, body={"spec": {"paused": True}}, shape="to a pause")
    yield replace(control, body={"status": {"lastBackup": "2026-01-01T00:00:00Z"}}, shape="changing the status")
    mark = {"metadata": {"annotations": {"foresail.dev/protection-class": None}}}
    yield replace(control, body=mark, shape="taking its mark away")


def _deleted_groups(control: Write) -> Iterator[Write]:
    yield replace(control, name=NIGHTLY, shape="of the administrator")


def _protections(control: Write) -> Iterator[Write]:
    body = {**control.body, "metadata": {**control.body["metadata"], "name": "second"}}
    yield replace(control, name="second", body=body, shape="beside the one")


def _changed_classes(control: Write) -> Iterator[Write]:
    changes: list[tuple[str, Json]] = [
        ("the schedule", {"schedule": "* * * * *"}),
        ("who may restore", {"restore": {"byTenants": False}}),
    ]
    for shape, spec in changes:
        yield replace(control, body={"spec": spec}, shape=f"changing {shape}")


def _changed_namespaces(control: Write) -> Iterator[Write]:
    for value in ("allowed", "other"):
        yield replace(control, body={"metadata": {"labels": admission(value)}}, shape=f"to {value}")
    for label, value in (
        ("foresail.dev/self-service", "disabled"),
        ("pod-security.kubernetes.io/enforce", "privileged"),
        ("velero.io/exclude-from-backup", "true"),
    ):
        yield replace(control, body={"metadata": {"labels": {label: value}}}, shape=f"changing label {label}")
    yield replace(control, name="kube-system", shape="of kube-system")


def _changed_runs(control: Write) -> Iterator[Write]:
    for name, whose in ((TENANTS, "a tenant"), (ADMINISTRATORS, "the administrator, made by hand")):
        yield replace(control, name=name, shape=f"of {whose}")
    marks: tuple[tuple[str, Json], ...] = (
        ("the pin", {"annotations": {"foresail.dev/pinned": "true"}}),
        ("the slot", {"annotations": {"foresail.dev/slot": "2024-01-01T00:00:00Z"}}),
        ("the UID of its Schedule", {"annotations": {"foresail.dev/schedule-uid": "other"}}),
        ("the name of its Schedule", {"labels": {"velero.io/schedule-name": HOOKED}}),
        ("its storage location in a label", {"labels": {"velero.io/storage-location": OTHERS_LOCATION}}),
    )
    for what, metadata in marks:
        yield replace(control, body={"metadata": metadata}, shape=f"changing {what}")
    for field, value in (("phase", "Failed"), ("expiration", "2020-01-01T00:00:00Z")):
        yield replace(control, body={"status": {field: value}}, shape=f"changing status.{field}")


def _deleted_runs(control: Write) -> Iterator[Write]:
    yield replace(control, name=OLD_RUN, shape="that has not failed")
    yield replace(control, name=TENANTS, shape="of a tenant")


def _withdrawn(control: Write) -> Iterator[Write]:
    yield replace(control, name=TENANTS, shape="of a tenant")


def _changed_backups(control: Write) -> Iterator[Write]:
    yield replace(control, name=OLD_RUN, shape="of the administrator's backup")
    yield replace(control, body={"status": {"phase": "Completed"}}, shape="changing the phase")


def _changed_cron_jobs(control: Write) -> Iterator[Write]:
    container = {"name": "x", "image": "thief"}
    pods = {"template": {"spec": {"containers": [container]}}}
    yield replace(control, body={"spec": {"jobTemplate": {"spec": pods}}}, shape="changing its pods")


def _privileged(body: Json) -> Json:
    found = copy.deepcopy(body)
    found["metadata"]["labels"]["pod-security.kubernetes.io/enforce"] = "privileged"
    return found


def _locations(control: Write) -> Iterator[Write]:
    for shape, change in (
        ("that is the default", {"default": True}),
        ("that Velero syncs", {"backupSyncPeriod": "1m0s"}),
        ("with Velero's credentials", {"credential": {"name": "cloud-credentials", "key": "cloud"}}),
        ("in another folder", {"objectStorage": {"bucket": "mine", "prefix": OTHER}}),
        ("of another provider", {"provider": "azure"}),
        ("with a profile of Velero's", {"config": {"profile": "default", "credentialsFile": "/x"}}),
        ("at another endpoint", {"config": {"checksumAlgorithm": "", "s3Url": "https://thief.example.com"}}),
    ):
        yield _with(control, change, shape)
    for name in (SYSTEM, "kube-system", VELERO, OTHER):
        body = location(f"{name}-new-{UUID}", name)
        yield replace(control, name=body["metadata"]["name"], body=body, shape=f"for namespace {name}")


def _bindings(control: Write) -> Iterator[Write]:
    yield replace(control, namespace=SHOP, shape="in the namespace of a tenant")
    other = copy.deepcopy(control.body)
    other["roleRef"]["name"] = "cluster-admin"
    yield replace(control, body=other, shape="of another role")
    thief = copy.deepcopy(control.body)
    thief["subjects"] = [{"kind": "User", "apiGroup": "rbac.authorization.k8s.io", "name": "thief"}]
    yield replace(control, body=thief, shape="for somebody else")


_FOREIGN = {
    "backups": (VELERO, ADMINISTRATORS),
    "restores": (VELERO, ADMINISTRATORS),
    "deletebackuprequests": (VELERO, ADMINISTRATORS),
    "downloadrequests": (VELERO, ADMINISTRATORS),
    "backupstoragelocations": (VELERO, "default"),
    "nonadminbackupstoragelocationrequests": (VELERO, ADMINISTRATORS),
    "pods": (SHOP, "web"),
    "cronjobs": (SHOP, "report"),
    "podtemplates": (SHOP, "foreign"),
    "capacitybuffers": (SHOP, "foreign"),
    "namespaces": ("", OTHER),
    "configmaps": (VELERO, ADMINISTRATORS),
}


def _deletions(control: Write) -> Iterator[Write]:
    if control.resource in _FOREIGN:
        namespace, name = _FOREIGN[control.resource]
        yield replace(control, namespace=namespace, name=name, shape="that is not its own")


_OF_KINDS: dict[tuple[str, str, str], Mutations] = {
    (SELF_SERVICE, "create", "backups"): _tenants_backups,
    (SCHEDULES, "create", "backups"): _runs,
    (SELF_SERVICE, "create", "restores"): _tenants_restores,
    (CHECKS, "create", "restores"): _restores_of_checks,
    ("", "create", "deletebackuprequests"): _deletions_of_backups,
    ("", "create", "downloadrequests"): _downloads,
    ("", "create", "events"): _events,
    ("", "create", "leases"): _leases,
    ("", "create", "backupstoragelocations"): _locations,
    ("", "create", "secrets"): _secrets,
    ("", "create", "nonadminbackupstoragelocationrequests"): _approvals,
    ("", "create", "pods"): lambda control: _pods(control, "spec"),
    ("", "create", "cronjobs"): lambda control: _pods(control, "spec", "jobTemplate", "spec", "template", "spec"),
    ("", "create", "podtemplates"): lambda control: _pods(control, "template", "spec"),
    ("", "create", "namespaces"): _sandboxes,
    ("", "create", "networkpolicies"): _network_policies,
    ("", "create", "resourcequotas"): _elsewhere,
    ("", "create", "rolebindings"): _bindings,
    ("", "create", "configmaps"): _config_maps,
    ("", "patch", "persistentvolumes"): _volumes,
    ("", "patch", "secrets"): _changed_secrets,
    ("", "patch", "backupstoragelocations"): _changed_locations,
    (SCHEDULES, "patch", "schedules"): _changed_schedules,
    (PROTECTION, "create", "schedules"): _groups,
    (PROTECTION, "patch", "schedules"): _changed_groups,
    (PROTECTION, "delete", "schedules"): _deleted_groups,
    (PROTECTION, "create", "protections"): _protections,
    (PROTECTION, "patch", "protectionclasses/status"): _changed_classes,
    (SELF_SERVICE, "patch", "backups"): _changed_backups,
    (SELF_SERVICE, "patch", "namespaces"): _changed_namespaces,
    (SCHEDULES, "patch", "backups"): _changed_runs,
    (SCHEDULES, "delete", "backups"): _deleted_runs,
    (SCHEDULES, "delete", "deletebackuprequests"): _withdrawn,
    ("", "patch", "cronjobs"): _changed_cron_jobs,
}
