"""The cluster that is attacked: Velero, both charts, the operator, a hostile tenant, a victim and an administrator.

Everybody uses real credentials: certificates for people, tokens for ServiceAccounts. Attacks speak plain HTTP, so that
no client refuses on the server's behalf.
"""

import hashlib
import http.client
import json
import ssl
import tarfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from subprocess import Popen
from typing import Any
from urllib.parse import urlencode, urlsplit

from bench.restore_checks import FLAGS
from foresail.api.policy import OPT_IN_LABEL, OPT_IN_VALUE
from testbed import Cluster, Options
from testbed.api import Answer, trust
from testbed.pki import client_certificate
from tests.cluster import tenants
from tests.cluster.operators import running
from tests.selfservice_invariant import breaches_of_backup, breaches_of_restore

Json = dict[str, Any]

VELERO = tenants.VELERO
HOSTILE, VICTIM = "hostile", "victim"
FIELDS = "fields"
"""A second namespace of the hostile tenant, where a policy allows hooks and sets no tight quota."""

CLOSED = "closed"
"""A third one, which no policy matches."""

SCARCE, PROTECTED, IDLE = "scarce", "protected", "idle"
"""More of the hostile tenant's namespaces: a quota of one, protected backups, and no restores."""

LOADED, BYSTANDER = "loaded", "bystander"
"""The hostile tenant's namespace for attacks on memory and time, and that of somebody who asks meanwhile."""

CHECKED = "checked"
"""The hostile tenant's namespace whose policy allows RestoreChecks."""

LOCATED, NEIGHBOUR, REBORN = "located", "neighbour", "reborn"
"""The hostile tenant's namespace with a bucket, the victim's, and one that is deleted and created again."""

MINE = "mine"
"""The approved location of each of the two, in the bucket that `bucket_of` returns."""

NAB, NAR, NADR = "nonadminbackups", "nonadminrestores", "nonadmindownloadrequests"
NAS, NABSL, NABSLR = "nonadminschedules", "nonadminbackupstoragelocations", "nonadminbackupstoragelocationrequests"
NIGHTLY = "nightly"
TREASURE = "treasure"
OLD = "old"
"""The hostile tenant's backup of everything that was in the namespace before self-service came."""

OPERATOR = f"system:serviceaccount:{VELERO}:foresail-self-service"
EXCEPTIONS = "policyexceptions"
RESTORE_CHECKS = "restorechecks"
_GROUPS = {
    "oadp.openshift.io/v1alpha1": (NAB, NAR, NADR, NAS, NABSL, NABSLR),
    "velero.io/v1": (
        *("backups", "restores", "deletebackuprequests", "downloadrequests", "backupstoragelocations"),
        *("podvolumebackups", "podvolumerestores", "backuprepositories", "schedules"),
    ),
    "foresail.dev/v1alpha1": ("selfservicepolicies", RESTORE_CHECKS, "protections", "protectionclasses", "rollbacks"),
    "rbac.authorization.k8s.io/v1": ("roles", "rolebindings", "clusterroles", "clusterrolebindings"),
    "apps/v1": ("deployments", "statefulsets", "daemonsets", "replicasets"),
    "batch/v1": ("jobs", "cronjobs"),
    "coordination.k8s.io/v1": ("leases",),
    "scheduling.k8s.io/v1": ("priorityclasses",),
    "apiextensions.k8s.io/v1": ("customresourcedefinitions",),
    "admissionregistration.k8s.io/v1": (
        "validatingadmissionpolicies",
        "validatingadmissionpolicybindings",
        "mutatingadmissionpolicies",
        "mutatingadmissionpolicybindings",
    ),
    "security.example.com/v1": (EXCEPTIONS,),
    "snapshot.storage.k8s.io/v1": ("volumesnapshots", "volumesnapshotcontents", "volumesnapshotclasses"),
    "storage.k8s.io/v1": ("storageclasses",),
    "velero.io/v2alpha1": ("datauploads", "datadownloads"),
}
_ROOTS = {plural: f"/apis/{group}" for group, plurals in _GROUPS.items() for plural in plurals}
_BUSY = 3
_PATCHES = {
    "merge": "application/merge-patch+json",
    "strategic": "application/strategic-merge-patch+json",
    "json": "application/json-patch+json",
    "apply": "application/apply-patch+yaml",
}

WIDE: Json = {
    "backup": {"hooks": {"allowed": True, "timeout": {"maximum": "2m"}}},
    "restore": {"hooks": {"allowed": True, "timeout": {"maximum": "2m"}}},
    "quotas": {"stored": 1000, "active": 1000, "restores": {"active": 1000, "stored": 1000, "history": 1000}},
}
POLICIES: Mapping[str, Json] = {
    FIELDS: WIDE,
    SCARCE: {"quotas": {"stored": 1, "active": 1, "restores": {"active": 1, "stored": 2}}},
    PROTECTED: {"deletion": {"minimumAge": "24h", "keepLastGood": 1}},
    IDLE: {"quotas": {"stored": 1, "active": 1, "restores": {"active": 0, "stored": 0}}},
    LOCATED: {"adoption": "Automatic", "locations": {"allowed": True}},
    NEIGHBOUR: {"locations": {"allowed": True}},
    REBORN: {"adoption": "Automatic"},
    CHECKED: {"restoreChecks": {"maximum": 2, "minimumInterval": "10m"}},
    LOADED: {"restoreChecks": {"maximum": 2, "minimumInterval": "10m"}},
}
"""The policies beside the chart's default, each for the namespace of its name."""


def path(plural: str, namespace: str = "", name: str = "", sub: str = "") -> str:
    """Return the path of a collection, an object or a subresource."""
    parts = [_ROOTS.get(plural, "/api/v1")]
    parts += [f"namespaces/{namespace}"] if namespace else []
    return "/".join([*parts, plural, *([name] if name else []), *([sub] if sub else [])])


class Caller:
    """Somebody with credentials who sends requests to the API server."""

    def __init__(self, server: str, context: ssl.SSLContext, token: str = "") -> None:
        parts = urlsplit(server)
        self._host, self._port = parts.hostname or "", parts.port
        self._context = context
        self._headers = {"Authorization": f"Bearer {token}"} if token else {}
        self._connection = self._connect()

    def _connect(self) -> http.client.HTTPSConnection:
        return http.client.HTTPSConnection(self._host, self._port, timeout=60, context=self._context)

    def send(
        self, method: str, target: str, body: object = None, sort: str = "application/json", **headers: str
    ) -> Answer:
        """Send one request and return the answer, whatever its code."""
        text = body if isinstance(body, str) else json.dumps(body)
        named = {key.replace("_", "-"): value for key, value in headers.items()}
        content = None if body is None else text.encode()
        sent = (method, target, content, {"Content-Type": sort, **self._headers, **named})
        try:
            return self._sent(*sent)
        except (http.client.HTTPException, OSError):  # it was idle for too long
            self._connection.close()
            self._connection = self._connect()
            return self._sent(*sent)

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()

    def _sent(self, method: str, target: str, content: bytes | None, headers: dict[str, str]) -> Answer:
        self._connection.request(method, target, content, headers)
        reply = self._connection.getresponse()
        return Answer(reply.status, reply.read().decode(errors="replace"))

    def get(self, target: str) -> Json | None:
        """Return an object or a list, or None if there is none or it may not be read."""
        answer = self.send("GET", target)
        found: Json | None = answer.json() if answer.code == http.client.OK else None
        return found

    def items(self, target: str) -> list[Json]:
        """Return the objects of a collection; none if it may not be read."""
        return list((self.get(target) or {}).get("items", []))

    def create(self, target: str, body: object, **headers: str) -> Answer:
        """Create an object."""
        return self.send("POST", target, body, **headers)

    def patch(self, target: str, body: object, sort: str = "merge", **headers: str) -> Answer:
        """Change an object by a patch."""
        return self.send("PATCH", target, body, _PATCHES[sort], **headers)

    def delete(self, target: str, **query: str) -> Answer:
        """Delete an object or a collection."""
        return self.send("DELETE", target + (f"?{urlencode(query)}" if query else ""))


def body_of(plural: str, name: str, spec: object = None, **metadata: object) -> Json:
    """Return one of our objects, or any other, as it is sent."""
    kinds = {
        NAB: "NonAdminBackup",
        NAR: "NonAdminRestore",
        NADR: "NonAdminDownloadRequest",
        NAS: "NonAdminSchedule",
        NABSL: "NonAdminBackupStorageLocation",
        NABSLR: "NonAdminBackupStorageLocationRequest",
        RESTORE_CHECKS: "RestoreCheck",
        "rollbacks": "Rollback",
    }
    velero = {"backups": "Backup", "restores": "Restore", "downloadrequests": "DownloadRequest"}
    kind = kinds.get(plural) or velero.get(plural, plural)
    version = _ROOTS.get(plural, "/api/v1").removeprefix("/apis/").removeprefix("/api/")
    found: Json = {"apiVersion": version, "kind": kind, "metadata": {"name": name, **metadata}}
    return found if spec is None else {**found, "spec": spec}


def until(holds: Callable[[], object], seconds: float, what: str) -> None:
    """Wait until something holds; otherwise the attack proves nothing and counts as broken.

    The seconds are those of an idle machine: CI runs four parts of the tests beside the attacks.
    """
    seconds *= _BUSY
    deadline = time.monotonic() + seconds
    while not holds():
        if time.monotonic() > deadline:
            raise TimeoutError(f"not within {seconds:g} s: {what}")
        time.sleep(0.1)


def empty(admin: Caller, plural: str, namespace: str, seconds: float = 120, grace: str = "0") -> None:
    """Delete all objects of a kind in a namespace, with the finalizers of attacks, which begin with x."""
    target = path(plural, namespace)
    admin.delete(target, gracePeriodSeconds=grace)

    def is_empty() -> bool:
        found = admin.items(f"{target}?limit=10")
        for item in found:
            held = item["metadata"].get("finalizers", [])
            kept = [finalizer for finalizer in held if not finalizer.startswith("x")]
            if len(kept) < len(held):
                admin.patch(f"{target}/{item['metadata']['name']}", {"metadata": {"finalizers": kept or None}})
        return not found

    until(is_empty, seconds, f"{plural} of namespace {namespace} are gone")


@dataclass(frozen=True)
class World:
    """The cluster, and everybody in it."""

    cluster: Cluster
    admin: Caller
    hostile: Caller
    victim: Caller
    operator: Popen[bytes]
    log: Path
    bystander: Caller
    checks: int  # the process of the replica for RestoreChecks
    home: str = HOSTILE  # where objects other than requests are created

    # What a tenant does

    def ask(self, plural: str, name: str, spec: object, namespace: str = HOSTILE, **metadata: object) -> Answer:
        """Create a request as the hostile tenant."""
        return self.hostile.create(path(plural, namespace), body_of(plural, name, spec, **metadata))

    def request(self, plural: str, name: str, namespace: str = HOSTILE) -> Json:
        """Return a request as the administrator sees it; empty if there is none."""
        return self.admin.get(path(plural, namespace, name)) or {}

    def decided(self, plural: str, name: str, namespace: str = HOSTILE, seconds: float = 60) -> Json:
        """Wait until the operator has refused a request, let it wait or handed it to Velero, and return it."""

        def has_decision() -> bool:
            found = self.request(plural, name, namespace)
            return not found or bool(found.get("status", {}).get("conditions"))

        until(has_decision, seconds, f"the operator decides about {plural} {namespace}/{name}")
        return self.request(plural, name, namespace)

    def finished(self, plural: str, name: str, namespace: str = HOSTILE, seconds: float = 120) -> Json:
        """Wait until a request has ended or was refused for good, and return it."""

        def has_ended() -> bool:
            found = self.request(plural, name, namespace)
            status = found.get("status", {})
            ended = condition(status, "Succeeded") in {"True", "False"}
            return not found or ended or status.get("phase") == "BackingOff"

        until(has_ended, seconds, f"{plural} {namespace}/{name} ends")
        return self.request(plural, name, namespace)

    def approved(self, who: Caller, space: str, name: str) -> str:
        """Create a location as somebody, let the administrator approve it, and return the name of Velero's."""
        answer = who.create(path(NABSL, space), body_of(NABSL, name, location_spec(self.cluster, space)))
        if answer.code != http.client.CREATED:
            raise RuntimeError(f"no location {space}/{name}: {answer.text}")
        until(lambda: self._velero_name(space, name), 60, f"location {space}/{name} is accepted")
        made = self._velero_name(space, name)
        target = path(NABSLR, VELERO, made)
        until(lambda: (self.admin.get(target) or {}).get("status"), 60, f"location {space}/{name} waits for approval")
        self.admin.patch(target, {"spec": {"approvalDecision": "approve"}})
        until(lambda: self.is_available(made), 60, f"location {space}/{name} is available")
        return made

    def _velero_name(self, space: str, name: str) -> str:
        made = self.request(NABSL, name, space).get("status", {}).get("veleroBackupStorageLocation", {})
        return str(made.get("name", ""))

    def is_available(self, location: str) -> bool:
        """Tell whether Velero can use a location."""
        found = self.admin.get(path("backupstoragelocations", VELERO, location)) or {}
        return bool(found.get("status", {}).get("phase") == "Available")

    # What the administrator sees

    def velero(self, plural: str) -> list[Json]:
        """Return Velero's objects of a kind."""
        return self.admin.items(path(plural, VELERO))

    def made_for(self, plural: str, namespace: str, name: str = "") -> list[Json]:
        """Return the Velero Backups or Restores with the record of a namespace, and of a request if it is named."""
        family = "nar" if plural == "restores" else "nab"
        found = []
        for each in self.velero(plural):
            notes = each["metadata"].get("annotations", {})
            own = notes.get(f"openshift.io/oadp-{family}-origin-namespace") == namespace
            if own and name in {"", notes.get(f"openshift.io/oadp-{family}-origin-name")}:
                found.append(each)
        return found

    def contents(self, velero_backup: str) -> dict[str, set[str]]:
        """Return the names of the objects that a Velero Backup holds, by kind."""
        held: dict[str, set[str]] = {}
        with tarfile.open(self.cluster.site.bucket / "backups" / velero_backup / f"{velero_backup}.tar.gz") as tarball:
            for each in tarball.getnames():
                if each.startswith("resources/") and each.endswith(".json"):
                    held.setdefault(each.split("/")[1], set()).add(PurePosixPath(each).stem)
        return held

    def memory(self, of: str = "VmRSS") -> float:
        """Return the operator's resident memory in MiB, or its peak (VmHWM)."""
        status = Path(f"/proc/{self.operator.pid}/status").read_text()
        return next(int(line.split()[1]) for line in status.splitlines() if line.startswith(of)) / 1024

    @contextmanager
    def velero_stopped(self) -> Iterator[None]:
        """Stop Velero until the block ends: whatever is handed over stays in its queue."""
        self.cluster.fault.stop("velero")
        try:
            yield
        finally:
            self.cluster.fault.cont("velero")

    # What belongs to others

    def belongings(self) -> dict[str, str]:
        """Return a fingerprint of each object that the hostile tenant must not change."""
        found: dict[str, str] = {}
        for plural, space in ((plural, space) for plural in _OF_VICTIM for space in (VICTIM, NEIGHBOUR)):
            for each in self.admin.items(path(plural, space)):
                found[f"{space}/{plural}/{each['metadata']['name']}"] = _fingerprint(each)
        for plural in _OF_CLUSTER:
            for each in self.admin.items(path(plural)):
                found[f"{plural}/{each['metadata']['name']}"] = _fingerprint(each)
        for plural in _OF_VELERO:
            for each in self.admin.items(path(plural, VELERO)):
                if not _is_hostiles(each) and _concerns_others(plural, each):
                    found[f"{VELERO}/{plural}/{each['metadata']['name']}"] = _fingerprint(each)
        return found

    def breaches(self) -> dict[str, list[str]]:
        """Return what is wrong with the Velero objects that were made for tenants, by name."""
        found = {}
        for each in self.velero("backups"):
            namespace = each["metadata"].get("annotations", {}).get("openshift.io/oadp-nab-origin-namespace")
            if namespace and (wrong := breaches_of_backup(given(each), namespace, self.policy(namespace))):
                found[f"Backup {each['metadata']['name']}"] = wrong
        for each in self.velero("restores"):
            namespace = each["metadata"].get("annotations", {}).get("openshift.io/oadp-nar-origin-namespace")
            if not namespace:
                continue
            source = each["spec"].get("backupName", "")
            wrong = breaches_of_restore(each["spec"], namespace, source, self.policy(namespace))
            own = {one["metadata"]["name"] for one in self.made_for("backups", namespace)}
            others = {one["metadata"]["name"] for one in self.velero("backups")} - own
            if source in others or not source.startswith(f"{namespace}-"):  # its own may be deleted since
                wrong.append(f"restores {source}, which was not made for {namespace}")
            if wrong:
                found[f"Restore {each['metadata']['name']}"] = wrong
        return found

    def policy(self, namespace: str) -> Json:
        """Return the spec of the policy that holds in a namespace, with the locations that were made for it."""
        found = POLICIES.get(namespace) or self.default_policy()
        own = [each["metadata"]["name"] for each in self.velero("backupstoragelocations") if _origin(each) == namespace]
        return {**found, "backup": {**found.get("backup", {}), "allowed": {"storageLocations": own}}} if own else found

    def default_policy(self) -> Json:
        """Return the spec of the chart's policy."""
        found: Json = (self.admin.get(path("selfservicepolicies", name="foresail-default")) or {}).get("spec", {})
        return found


_OF_VICTIM = (
    "configmaps", "secrets", "serviceaccounts", "rolebindings", "roles", "services", "pods", NAB, NAR, NADR, NABSL
)  # fmt: skip
_OF_CLUSTER = (
    "selfservicepolicies",
    "validatingadmissionpolicies",
    "validatingadmissionpolicybindings",
    "mutatingadmissionpolicies",
    "mutatingadmissionpolicybindings",
    "clusterroles",
    "clusterrolebindings",
    "customresourcedefinitions",
    "priorityclasses",
)
_OF_VELERO = ("backups", "restores", "deletebackuprequests", "downloadrequests", "backupstoragelocations", "secrets")
_VOLATILE = {"managedFields", "resourceVersion", "generation"}


_FILLED_IN_BY_VELERO = {"scheduleName", "storageLocation", "volumeGroupSnapshotLabelKey"}


def given(found: Json) -> Json:
    """Return the spec of a Velero object as the operator wrote it, without what Velero filled in later."""
    ours = {
        name.removeprefix("f:")
        for each in found["metadata"].get("managedFields", [])
        if not each["manager"].startswith("velero")
        for name in each["fieldsV1"].get("f:spec", {})
    }
    filled_in = {key for key, value in found["spec"].items() if key in _FILLED_IN_BY_VELERO or value == {}} - ours
    return {key: value for key, value in found["spec"].items() if key not in filled_in}


def changes(before: Mapping[str, str], after: Mapping[str, str]) -> list[str]:
    """Return what was done to the belongings of others between two looks."""
    found = [f"{name} is gone" for name in before.keys() - after.keys()]
    found += [f"{name} is new" for name in after.keys() - before.keys()]
    found += [f"{name} was changed" for name in before.keys() & after.keys() if before[name] != after[name]]
    return sorted(found)


def _fingerprint(found: Json) -> str:
    meta = {key: value for key, value in found["metadata"].items() if key not in _VOLATILE}
    rest = {key: value for key, value in found.items() if key not in {"metadata", "status", "aggregationRule"}}
    phase = found.get("status", {}).get("phase", "") if isinstance(found.get("status"), dict) else ""
    if found["metadata"]["name"] in {"edit", "view", "admin"}:
        rest = {}  # the controller manager aggregates them
    text = json.dumps([meta, rest, phase], sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()


def _is_hostiles(found: Json) -> bool:
    return _origin(found) not in {"", VICTIM, NEIGHBOUR, VELERO}


def _origin(found: Json) -> str:
    notes = found["metadata"].get("annotations", {})
    return next((value for key, value in notes.items() if key.endswith("-origin-namespace")), "")


def _concerns_others(plural: str, found: Json) -> bool:
    """Tell whether an object of Velero's namespace without a record has to do with somebody else's backup."""
    if plural != "downloadrequests":
        return True
    name = found["spec"]["target"]["name"]
    return bool(name == NIGHTLY or name.startswith(f"{VICTIM}-"))


def condition(status: Json, name: str) -> str:
    """Return the status of a condition."""
    return tenants.condition(status, name)[0]


def reason(found: Json, name: str = "Accepted") -> str:
    """Return the reason of a condition of a request."""
    return tenants.condition(found.get("status", {}), name)[1]


# How it is built


@contextmanager
def attacked(folder: Path) -> Iterator[World]:
    """Build the cluster with everybody in it, and take it down when the block ends."""
    with Cluster.create("redteam", Options(velero="velero", nodes=1), owned=True) as cluster:
        _before_self_service(cluster)
        tenants.install(cluster, schedules=True, locations=True, checks=True, hooks=True)
        for name, spec in POLICIES.items():
            cluster.apply(policy_for(name, _with_servers(cluster, name, spec)))
        admin = Caller(cluster.server, cluster.site.admin_trust)
        log = folder / "operator.log"
        _open_buckets(cluster)
        with (
            running(cluster, folder, *FLAGS, "--tenant-checks") as checking,
            tenants.operator(cluster, log, 0, "--tenant-locations") as process,
        ):
            hostile, victim, bystander = (_user(cluster, name) for name in ("mallory", "vic", "by"))
            world = World(cluster, admin, hostile, victim, process, log, bystander, checking.pid)
            _furnish(world)
            yield world


def user(cluster: Cluster, name: str, groups: Sequence[str] = ()) -> Caller:
    """Return a person with a certificate."""
    certificate = client_certificate(cluster.site.pki, name, groups)
    return Caller(cluster.server, trust(cluster.site.pki / "ca.crt", certificate))


def _user(cluster: Cluster, name: str) -> Caller:
    return user(cluster, name)


def account(cluster: Cluster, namespace: str, name: str) -> Caller:
    """Return a ServiceAccount with a token."""
    token = cluster.service_account_token(namespace, name)
    return Caller(cluster.server, trust(cluster.site.pki / "ca.crt"), token)


def namespace(name: str, *, opted_in: bool = True) -> Json:
    """Return a namespace."""
    labels = {OPT_IN_LABEL: OPT_IN_VALUE} if opted_in else {}
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": labels}}


def may_edit(name: str, who: str, role: str = "edit") -> Json:
    """Return the RoleBinding by which a person gets a role in a namespace."""
    return {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "RoleBinding",
        "metadata": {"name": f"{who}-{role}", "namespace": name},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": role},
        "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": who}],
    }


def policy_for(name: str, spec: Json) -> Json:
    """Return a policy for the namespace of its name."""
    selector = {"matchLabels": {"kubernetes.io/metadata.name": name}}
    body = {"apiVersion": "foresail.dev/v1alpha1", "kind": "SelfServicePolicy", "metadata": {"name": name}}
    return {**body, "spec": {"namespaceSelector": selector, **spec}}


def endpoint(cluster: Cluster) -> str:
    """Return the S3 server by a name, for an address is refused."""
    spec = cluster.get("backupstoragelocation", "default", f"--namespace={VELERO}")["spec"]
    url: str = spec["config"]["s3Url"]
    return url.replace("127.0.0.1", "localhost")


def bucket_of(cluster: Cluster, name: str) -> Path:
    """Return the bucket of a namespace: a folder of the S3 server."""
    return cluster.site.bucket.parent / f"bucket-of-{name}"


def _with_servers(cluster: Cluster, name: str, spec: Json) -> Json:
    """Return the spec of a policy that allows the bucket of its namespace on the S3 server, if it allows any."""
    if "locations" not in spec:
        return spec
    allowed = {"endpoints": [endpoint(cluster)], "buckets": [bucket_of(cluster, name).name]}
    return {**spec, "locations": {**spec["locations"], **allowed}}


def _open_buckets(cluster: Cluster) -> None:
    """Give two namespaces buckets and keys that the operator may read, sign records, and sync often."""
    keys = (cluster.site.folder / "s3" / "credentials").read_text()
    for name in (LOCATED, NEIGHBOUR):
        bucket_of(cluster, name).mkdir()
        cluster.apply(
            {**body_of("Secret", "keys", namespace=name), "stringData": {"cloud": keys}}, *reads(name, "keys")
        )
    tenants.foresail(cluster, "recovery-key", "create")
    often = {"spec": {"backupSyncPeriod": "3s", "validationFrequency": "5s"}}
    where = (f"--namespace={VELERO}", "--type=merge", f"--patch={json.dumps(often)}")
    cluster.kubectl("patch", "backupstoragelocation", "default", *where)


def reads(name: str, secret: str) -> tuple[Json, Json]:
    """Return the Role and the RoleBinding by which the operator reads one Secret of a namespace."""
    group, label = "rbac.authorization.k8s.io", f"location-{secret}"
    meta = {"name": label, "namespace": name}
    rule = {"apiGroups": [""], "resources": ["secrets"], "resourceNames": [secret], "verbs": ["get"]}
    role = {"apiVersion": f"{group}/v1", "kind": "Role", "metadata": meta, "rules": [rule]}
    bound = {
        "apiVersion": f"{group}/v1",
        "kind": "RoleBinding",
        "metadata": meta,
        "roleRef": {"apiGroup": group, "kind": "Role", "name": label},
        "subjects": [{"kind": "ServiceAccount", "namespace": VELERO, "name": "foresail-self-service"}],
    }
    return role, bound


def location_spec(cluster: Cluster, space: str, **changes: Any) -> Json:  # noqa: ANN401 - JSON
    """Return the spec of a location in the bucket of a namespace."""
    spec = {
        "provider": "aws",
        "objectStorage": {"bucket": bucket_of(cluster, space).name, "prefix": "velero"},
        "credential": {"name": "keys", "key": "cloud"},
        "config": {"region": "us-east-1", "s3ForcePathStyle": "true", "s3Url": endpoint(cluster)},
        **changes,
    }
    return {"backupStorageLocationSpec": spec}


def _before_self_service(cluster: Cluster) -> None:
    """Create the namespaces, and what tenants had in them before any admission policy looked."""
    cluster.apply(namespace(BYSTANDER), may_edit(BYSTANDER, "by"))
    for name in (HOSTILE, FIELDS, SCARCE, PROTECTED, IDLE, LOCATED, REBORN, CHECKED, LOADED):
        cluster.apply(namespace(name), may_edit(name, "mallory"), config(name))
    cluster.apply(namespace(CLOSED, opted_in=False), may_edit(CLOSED, "mallory"))
    for name in (VICTIM, NEIGHBOUR):
        cluster.apply(namespace(name), may_edit(name, "vic"), config(name))
    cluster.apply(
        {**body_of("Secret", "crown-jewels", namespace=VICTIM), "stringData": {"password": "victims-password"}},
        {**body_of("ConfigMap", "admins", namespace=VELERO), "data": {"rules.yaml": "version: v1"}},
    )
    _old_objects(cluster)


def config(name: str) -> Json:
    """Return a ConfigMap that tells whose namespace it is in."""
    return {**body_of("ConfigMap", "settings", namespace=name), "data": {"of": name}}


def _old_objects(cluster: Cluster) -> None:
    cluster.apply(_exception_kind())
    cluster.wait_for_kinds()
    exception = {"apiVersion": "security.example.com/v1", "kind": "PolicyException"}
    cluster.apply(
        {**exception, "metadata": {"name": "allow-root", "namespace": HOSTILE}, "spec": {"privileged": True}},
        volume("node-root"),
        claim("root", "node-root"),
        sleeper("sleeper"),
        balancer("front"),
        may_edit(HOSTILE, "ghost", "admin"),
        body_of("ServiceAccount", "robot", namespace=HOSTILE),
        {
            "apiVersion": "rbac.authorization.k8s.io/v1",
            "kind": "ClusterRoleBinding",
            "metadata": {"name": "robot"},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "view"},
            "subjects": [{"kind": "ServiceAccount", "namespace": HOSTILE, "name": "robot"}],
        },
    )
    status = json.dumps({"status": {"loadBalancer": {"ingress": [{"ip": "203.0.113.7"}]}}})
    where = ("service", "front", f"--namespace={HOSTILE}")
    cluster.kubectl("patch", *where, "--subresource=status", "--type=merge", f"--patch={status}")


def _exception_kind() -> Json:
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    names = {"plural": EXCEPTIONS, "singular": "policyexception", "kind": "PolicyException"}
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
    spec = {"group": "security.example.com", "names": names, "scope": "Namespaced", "versions": [version]}
    meta = {"name": f"{EXCEPTIONS}.security.example.com"}
    kind = "CustomResourceDefinition"
    return {"apiVersion": "apiextensions.k8s.io/v1", "kind": kind, "metadata": meta, "spec": spec}


def volume(name: str) -> Json:
    """Return a volume that is a folder of the node and stays when its claim is deleted."""
    spec = {
        "capacity": {"storage": "1Gi"},
        "accessModes": ["ReadWriteOnce"],
        "persistentVolumeReclaimPolicy": "Retain",
        "storageClassName": "",
        "hostPath": {"path": "/"},
        "claimRef": {"namespace": HOSTILE, "name": "root"},
    }
    return {**body_of("PersistentVolume", name), "spec": spec}


def claim(name: str, of: str) -> Json:
    """Return a claim to a certain volume."""
    resources = {"requests": {"storage": "1Gi"}}
    spec = {"accessModes": ["ReadWriteOnce"], "storageClassName": "", "volumeName": of, "resources": resources}
    return {**body_of("PersistentVolumeClaim", name, namespace=HOSTILE), "spec": spec}


def sleeper(name: str) -> Json:
    """Return a pod that never runs, with a hook that Velero waits for after a restore."""
    notes = {
        "post.hook.restore.velero.io/command": '["/bin/true"]',
        "post.hook.restore.velero.io/container": "only",
        "post.hook.restore.velero.io/wait-timeout": "9999h",
    }
    spec = {"containers": [{"name": "only", "image": "only"}], "nodeSelector": {"no": "node"}}
    return {**body_of("Pod", name, namespace=HOSTILE, annotations=notes), "spec": spec}


def balancer(name: str) -> Json:
    """Return a Service whose status Velero is told to restore."""
    spec = {"type": "LoadBalancer", "ports": [{"port": 80}], "selector": {"app": "front"}}
    notes = {"velero.io/restore-status": "true"}
    return {**body_of("Service", name, namespace=HOSTILE, annotations=notes), "spec": spec}


def _furnish(world: World) -> None:
    """Make the backups that attacks are about, and take away what only the old one still holds."""
    target = path(NAB, HOSTILE)
    until(lambda: world.hostile.get(target) is not None, 120, "the built-in role edit has our rules")
    canary = body_of(NAB, "canary", {"backupSpec": {}}, labels={"foresail.dev/canary": "x"})
    until(
        lambda: world.hostile.create(f"{target}?dryRun=All", canary).code >= 400, 60, "admission policies are in force"
    )
    world.cluster.velero("backup", "create", NIGHTLY, f"--include-namespaces={VICTIM}", "--wait")
    for who, space in ((world.hostile, LOCATED), (world.victim, NEIGHBOUR)):
        world.approved(who, space, MINE)
    wanted: tuple[tuple[Caller, str, str, Json], ...] = (
        (world.victim, TREASURE, VICTIM, {}),
        (world.victim, TREASURE, NEIGHBOUR, {"storageLocation": MINE}),
        (world.hostile, OLD, HOSTILE, {}),
        (world.hostile, OLD, LOCATED, {}),
        (world.hostile, "own", FIELDS, {}),
    )
    for who, name, space, spec in wanted:  # one after the other: Velero looks at its queue once in a minute
        answer = who.create(path(NAB, space), body_of(NAB, name, {"backupSpec": spec}))
        if answer.code != http.client.CREATED:
            raise RuntimeError(f"no backup {space}/{name} to attack with: {answer.text}")
        world.finished(NAB, name, space)
    gone = (
        path("pods", HOSTILE, "sleeper"),
        path("services", HOSTILE, "front"),
        path(EXCEPTIONS, HOSTILE, "allow-root"),
        path("rolebindings", HOSTILE, "ghost-admin"),
        path("persistentvolumeclaims", HOSTILE, "root"),
        path("persistentvolumes", name="node-root"),
    )
    for each in gone:
        world.admin.delete(each)
    until(lambda: not any(world.admin.get(each) for each in gone), 60, "the old objects are deleted")
