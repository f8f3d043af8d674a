"""Self-service as an administrator installs it and a tenant meets it: both charts, the operator, users with `edit`."""

import asyncio
import json
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from foresail.api.marks import REQUESTER, SELF_SERVICE_LEASE
from foresail.api.policy import OPT_IN_LABEL, OPT_IN_VALUE
from foresail.kube.client import Client
from foresail.kube.connect import connect
from foresail.kube.failures import Failure
from foresail.plan import Key, Kind
from testbed import Cluster
from testbed.build import program
from tests.cluster.history import recorded
from tests.cluster.versions import sets_requester

CHARTS = Path(__file__).parents[2] / "charts"
API = "oadp.openshift.io/v1alpha1"
VELERO = "velero"
SELF_SERVICE = "selfService.enabled=true,selfService.requesterStamp=Always"
_UNSTAMPED = "selfService.enabled=true,selfService.requesterStamp=Never"  # before Kubernetes 1.36
Eventually = Callable[[Callable[[], object], float], None]
_REQUESTS = ("nonadminbackups", "nonadminrestores")
_ORDER = ("", "New", "BackingOff", "Created", "Deleting")
_TRIED = {"apiVersion": API, "kind": "NonAdminBackup", "metadata": {"name": "tried"}, "spec": {"backupSpec": {}}}
_MAY_BACK_UP = ("auth", "can-i", "create", "nonadminbackups.oadp.openshift.io")


def install(  # noqa: PLR0913 - one for each switch of the chart
    cluster: Cluster,
    *,
    schedules: bool = False,
    contents: bool = False,
    locations: bool = False,
    checks: bool = False,
    hooks: bool = False,
    resource_policies: str = "",
    protection: bool = False,
    rollback: bool = False,
    rollback_volumes: bool = False,
    primers: bool = False,
) -> None:
    """Install both charts with self-service on."""
    install_kinds(cluster)
    values = {
        "schedules.enabled": schedules,
        "selfService.downloadContents": contents,
        "selfService.locations.enabled": locations,
        "proof.restoreChecks": checks,
        "selfService.hooks": hooks,
        "protection.enabled": protection,
        "rollback.enabled": rollback or rollback_volumes,
        "rollback.volumes": rollback_volumes,
        "selfService.fromProtection": protection,
        "primers.enabled": primers,
        **({"primers.pauseImage": "pause"} if primers else {}),
        **({"selfService.resourcePolicies": f"{{{resource_policies}}}"} if resource_policies else {}),
    }
    switches = ",".join(f"{name}={str(value).lower()}" for name, value in values.items())
    stamped = SELF_SERVICE if sets_requester(cluster) else _UNSTAMPED
    chart = _rendered("foresail", f"--set={stamped},{switches}")
    cluster.kubectl("apply", "--server-side", "--force-conflicts", "--filename=-", text=chart)


def install_kinds(cluster: Cluster) -> None:
    """Install the chart with the definitions."""
    cluster.kubectl("apply", "--server-side", "--force-conflicts", "--filename=-", text=_rendered("foresail-crds"))
    cluster.wait_for_kinds()


def foresail(cluster: Cluster, *words: str) -> str:
    """Run the command line as the administrator, and return what it prints."""
    command = [sys.executable, "-m", "foresail", *words, f"--kubeconfig={cluster.kubeconfig}"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=300, cwd=CHARTS.parent)
    assert done.returncode == 0, done.stderr
    return done.stdout


@contextmanager
def operator(cluster: Cluster, log: Path, behind: float = 0, *flags: str) -> Iterator["subprocess.Popen[bytes]"]:
    """Run the operator as the chart's ServiceAccount until the block ends, maybe with a clock that is behind."""
    kubeconfig = cluster.service_account_kubeconfig(VELERO, SELF_SERVICE_LEASE)
    program = ["tests.cluster.late_clock", str(behind)] if behind else ["foresail"]
    command = [sys.executable, "-m", *program, "operator", "run", f"--kubeconfig={kubeconfig}"]
    command += ["--port=0", "--host=127.0.0.1", "--identity=tested", "--schedules=false", "--self-service", *flags]
    with (
        phases_in_order(cluster),
        log.open("ab") as file,
        subprocess.Popen(command, stderr=file, cwd=CHARTS.parent) as process,
    ):
        try:
            yield process
            assert process.poll() is None, log.read_text()
            process.send_signal(signal.SIGTERM)
            assert process.wait(60) == 0, log.read_text()
        finally:
            process.kill()


def written_by_operator(
    kubeconfig: Path, kind: Kind, key: Key, body: Mapping[str, Any], subresource: str = ""
) -> Failure | None:
    """Merge into an object as the operator does, which may not read single ones as kubectl would; or say why not."""

    async def write() -> Failure | None:
        async with Client(await connect(str(kubeconfig))) as client:
            answer = await client.merge(kind, key, body, dict[str, Any], subresource)
        return answer if isinstance(answer, Failure) else None

    return asyncio.run(write())


@contextmanager
def phases_in_order(cluster: Cluster) -> Iterator[None]:
    """Write down every phase of every request until the block ends, and see that none was ever left for an earlier."""
    with ExitStack() as watching:
        records = [watching.enter_context(recorded(cluster, f"/apis/{API}/{kind}")) for kind in _REQUESTS]
        yield
    for states in records:
        seen: dict[str, list[str]] = {}
        for each in states:
            meta = each["metadata"]
            name = f"{meta['namespace']}/{meta['name']}/{meta['uid']}"
            seen.setdefault(name, []).append(each.get("status", {}).get("phase", ""))
        for name, phases in seen.items():
            assert phases == sorted(phases, key=_ORDER.index), f"{name} went back: {phases}"


@dataclass(frozen=True)
class Tenant:
    """A user with the built-in role `edit` in one namespace, and nothing else."""

    kubeconfig: Path
    namespace: str
    requester: str = ""  # the name that requests must carry, where the API server does not set it

    def kubectl(self, *words: str, body: object = None) -> str:
        """Run kubectl in the tenant's namespace; an error of it is an error of the test."""
        command = [str(program("kube", "kubectl")), f"--kubeconfig={self.kubeconfig}", "--cache-dir=/dev/null"]
        text = json.dumps(self._named(body)) if body is not None else None
        done = subprocess.run(
            [*command, f"--namespace={self.namespace}", *words],
            input=text,
            capture_output=True,
            text=True,
            check=False,
            timeout=600,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    def back_up(self, name: str, **spec: Any) -> None:  # noqa: ANN401 - JSON
        self._create("NonAdminBackup", name, {"backupSpec": spec})

    def restore(self, name: str, backup: str) -> None:
        self._create("NonAdminRestore", name, {"restoreSpec": {"backupName": backup}})

    def download(self, name: str, target: str, of: str) -> None:
        self._create("NonAdminDownloadRequest", name, {"target": {"kind": target, "name": of}})

    def wants(self, name: str, **spec: Any) -> None:  # noqa: ANN401 - JSON
        patch = self._named({"apiVersion": API, "spec": spec})
        self.kubectl("patch", "nonadminbackup", name, "--type=merge", f"--patch={json.dumps(patch)}")

    def _named(self, body: object) -> object:
        """Return a request with the requester, unless it names one already or none is needed."""
        if not self.requester or not isinstance(body, dict):
            return body
        if "items" in body:
            return {**body, "items": [self._named(each) for each in body["items"]]}
        if body["apiVersion"] != API:
            return body
        meta = body.get("metadata", {})
        return {**body, "metadata": {**meta, "annotations": {REQUESTER: self.requester, **meta.get("annotations", {})}}}

    def wait(self, target: str, *words: str, seconds: int = 240) -> None:
        """Wait long enough for a deletion that Velero refused: it is asked again after half a minute, then a minute."""
        try:
            self.kubectl("wait", target, f"--timeout={seconds}s", *words)
        except AssertionError as error:
            shown = self.kubectl("get", target, "--output=yaml", "--ignore-not-found")
            raise AssertionError(f"{error}\n{shown}") from None

    def status(self, target: str) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self.kubectl("get", target, "--output=json")).get("status", {})
        return found

    def names(self, kind: str) -> list[str]:
        return self.kubectl("get", kind, "--output=name").split()

    def _create(self, kind: str, name: str, spec: object) -> None:
        body = {"apiVersion": API, "kind": kind, "metadata": {"name": name}, "spec": spec}
        self.kubectl("create", "--filename=-", body=body)


def person(cluster: Cluster, user: str, namespace: str) -> Tenant:
    """Return a user in a namespace, who names itself in requests if the API server does not."""
    return Tenant(cluster.user_kubeconfig(user), namespace, "" if sets_requester(cluster) else user)


def tenant(cluster: Cluster, namespace: str) -> Tenant:
    """Make a namespace with something in it, and a tenant that may edit there."""
    labels = {OPT_IN_LABEL: OPT_IN_VALUE}
    cluster.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace, "labels": labels}})
    user = f"tenant-of-{namespace}"
    cluster.kubectl("create", "rolebinding", user, "--clusterrole=edit", f"--user={user}", f"--namespace={namespace}")
    found = person(cluster, user, namespace)
    found.kubectl("create", "configmap", "settings", "--from-literal=currency=EUR")
    return found


def as_velero(cluster: Cluster, namespace: str) -> Tenant:
    """Return Velero, who may write what tenants may not, such as objects that are older than the chart."""
    return Tenant(cluster.service_account_kubeconfig(VELERO, "velero"), namespace)


def arrive(cluster: Cluster, namespace: str, eventually: Eventually) -> Tenant:
    """Return a tenant, once the built-in role has our rules and the API server sets who asked."""
    found = tenant(cluster, namespace)

    def may() -> bool:
        try:
            tried = found.kubectl("create", "--dry-run=server", "--output=json", "--filename=-", body=_TRIED)
            return found.kubectl(*_MAY_BACK_UP).strip() == "yes" and REQUESTER in tried
        except AssertionError:
            return False

    eventually(may, 120)
    return found


def quotas(namespace: str, cluster: Cluster, **numbers: int) -> None:
    """Let the namespace of that name have so many backups."""
    selector = {"matchLabels": {"kubernetes.io/metadata.name": namespace}}
    spec = {"namespaceSelector": selector, "quotas": numbers}
    meta = {"name": f"quotas-of-{namespace}"}
    body = {"apiVersion": "foresail.dev/v1alpha1", "kind": "SelfServicePolicy", "metadata": meta, "spec": spec}
    cluster.apply(body)


def allow_annotations(namespace: str, cluster: Cluster) -> None:
    """Let Velero act on the annotations of the pods of that namespace."""
    selector = {"matchLabels": {"kubernetes.io/metadata.name": namespace}}
    spec = {"namespaceSelector": selector, "veleroAnnotations": "Allowed"}
    meta = {"name": f"annotations-of-{namespace}"}
    cluster.apply({"apiVersion": "foresail.dev/v1alpha1", "kind": "SelfServicePolicy", "metadata": meta, "spec": spec})


def allow_file_system(namespace: str, cluster: Cluster, **rules: Any) -> None:  # noqa: ANN401 - JSON
    """Let Velero copy files from and to the pods of that namespace."""
    selector = {"matchLabels": {"kubernetes.io/metadata.name": namespace}}
    spec = {"namespaceSelector": selector, "backup": {"fileSystem": "Allowed"}, **rules}
    meta = {"name": f"files-of-{namespace}"}
    cluster.apply({"apiVersion": "foresail.dev/v1alpha1", "kind": "SelfServicePolicy", "metadata": meta, "spec": spec})


def create(tenant: Tenant, names: list[str], spec: dict[str, Any]) -> None:
    """Create several requests with one call."""
    items = [
        {"apiVersion": API, "kind": "NonAdminBackup", "metadata": {"name": name}, "spec": {"backupSpec": spec}}
        for name in names
    ]
    tenant.kubectl("create", "--filename=-", body={"apiVersion": "v1", "kind": "List", "items": items})


def condition(status: dict[str, Any], name: str) -> tuple[str, str, str]:
    """Return the status, the reason and the message of a condition."""
    for each in status.get("conditions", []):
        if each["type"] == name:
            return each["status"], each["reason"], each["message"]
    return "", "", ""


def allow_contents(cluster: Cluster, namespace: str) -> None:
    """Let the namespace of that name download the contents of its backups."""
    selector = {"matchLabels": {"kubernetes.io/metadata.name": namespace}}
    spec = {"namespaceSelector": selector, "downloads": {"contents": "Allowed"}}
    meta = {"name": f"contents-of-{namespace}"}
    cluster.apply({"apiVersion": "foresail.dev/v1alpha1", "kind": "SelfServicePolicy", "metadata": meta, "spec": spec})


def of_namespace(cluster: Cluster, kind: str, namespace: str) -> Sequence[dict[str, Any]]:
    """Return the Velero objects that were made for a namespace."""
    items: list[dict[str, Any]] = cluster.get(f"{kind}.velero.io", f"--namespace={VELERO}")["items"]
    family = "nab" if kind != "restores" else "nar"
    key = f"openshift.io/oadp-{family}-origin-namespace"
    return [each for each in items if each["metadata"].get("annotations", {}).get(key) == namespace]


def in_bucket(cluster: Cluster, name: str) -> list[str]:
    """Return what the bucket has of a Velero Backup."""
    return [path for path in cluster.bucket_objects() if path.startswith(f"backups/{name}/")]


def _rendered(chart: str, *words: str) -> str:
    command = [str(program("helm", "helm")), "template", "foresail", str(CHARTS / chart), "--namespace=velero", *words]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout
