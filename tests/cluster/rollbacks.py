"""A team's namespace on a real cluster, with both operators: backed up, spoilt, and judged by what is in it."""

import json
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from testbed import Cluster
from testbed.errors import TestbedError
from tests.cluster import operators, tenants
from tests.cluster.tenants import Tenant

FLAGS = ("--schedules=false", "--rollback", "--lease-name=foresail-rollback")
KINDS = ("configmaps", "deployments.apps", "services", "secrets")
ENDED = ("Planned", "Refused", "Completed", "Undone")
State = dict[str, dict[str, Any]]
"""What users write into each object, by its kind and name."""

_POLICY = {"spec": {"rollback": {"enabled": True, "prune": True}}}
_SECRET = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "password"}, "stringData": {"key": "kept"}}
_GIVEN = frozenset({"clusterIP", "clusterIPs"})  # another one for a Service that is created again
_NOTES = ("velero.io/", "deployment.kubernetes.io/")  # of Velero and of the controllers of Kubernetes


@contextmanager
def serving(cluster: Cluster, folder: Path) -> Iterator[operators.Operator]:
    """Install both charts with rollbacks, let the policy allow them, and run both operators."""
    tenants.install(cluster, rollback=True)
    allow(cluster)
    with ExitStack() as stack:
        stack.enter_context(tenants.operator(cluster, folder / "self-service.log"))
        yield stack.enter_context(operators.running(cluster, folder, *FLAGS))


def allow(cluster: Cluster) -> None:
    """Let the default policy allow Rollbacks."""
    patch = f"--patch={json.dumps(_POLICY)}"
    cluster.kubectl("patch", "selfservicepolicy", "foresail-default", "--type=merge", patch)


def deployment(name: str, image: str, replicas: int = 1) -> dict[str, Any]:
    """Return a Deployment."""
    labels = {"app": name}
    pod = {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "only", "image": image}]}}
    spec = {"replicas": replicas, "selector": {"matchLabels": labels}, "template": pod}
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name}, "spec": spec}


def config(name: str, **data: str) -> dict[str, Any]:
    """Return a ConfigMap."""
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": data}


def service(name: str) -> dict[str, Any]:
    """Return a Service."""
    spec = {"selector": {"app": name}, "ports": [{"port": 80}]}
    return {"apiVersion": "v1", "kind": "Service", "metadata": {"name": name}, "spec": spec}


@dataclass(frozen=True)
class Home:
    """A team's namespace."""

    cluster: Cluster
    team: Tenant

    @property
    def name(self) -> str:
        """The namespace."""
        return self.team.namespace

    def furnish(self) -> None:
        """Create what is backed up."""
        for body in (deployment("web", "web:1", 2), service("web"), config("limits", cpu="1", memory="1Gi"), _SECRET):
            self.team.kubectl("apply", "--filename=-", body=body)

    def back_up(self, name: str) -> None:
        """Take a backup, and wait until it is complete."""
        self.team.back_up(name, snapshotVolumes=False)
        self.team.wait(f"nonadminbackup/{name}", "--for=jsonpath={.status.veleroBackup.status.phase}=Completed")

    def spoil(self) -> None:
        """Change, break, add and delete something."""
        for body in (config("limits", cpu="64"), deployment("web", "web:broken", 5), deployment("canary", "canary:1")):
            self.team.kubectl("apply", "--filename=-", body=body)
        self.team.kubectl("apply", "--filename=-", body=config("added", by="the upgrade"))
        for lost in ("service/web", "secret/password"):
            self.team.kubectl("delete", lost, "--ignore-not-found")

    def state(self) -> State:
        """Return what is in the namespace."""
        found = {}
        for kind in KINDS:
            for body in self.cluster.get(kind, f"--namespace={self.name}")["items"]:
                meta = body["metadata"]
                if meta["name"] != "kube-root-ca.crt" and "deletionTimestamp" not in meta:
                    found[f"{kind}/{meta['name']}"] = _written(body)
        return found

    def ask(self, name: str, **spec: Any) -> None:  # noqa: ANN401 - JSON
        """Create a Rollback as the team does without our command line."""
        body = {"apiVersion": "foresail.dev/v1alpha1", "kind": "Rollback", "metadata": {"name": name}, "spec": spec}
        self.team.kubectl("create", "--filename=-", body=self.named(body))

    def named(self, body: dict[str, Any]) -> dict[str, Any]:
        """Return a body with the requester, where the API server does not set it."""
        notes = {"annotations": {"foresail.dev/requester": self.team.requester}} if self.team.requester else {}
        return {**body, "metadata": {**body.get("metadata", {}), **notes}}

    def undo(self, name: str) -> None:
        """Ask for the undo."""
        patch = json.dumps(self.named({"spec": {"undo": True}}))
        self.team.kubectl("patch", "rollback", name, "--type=merge", f"--patch={patch}")

    def status(self, name: str) -> dict[str, Any]:
        """Return the status of a Rollback; nothing if it is not there."""
        try:
            found: dict[str, Any] = self.cluster.get("rollback", name, f"--namespace={self.name}").get("status", {})
        except TestbedError:
            return {}
        return found

    def phase(self, name: str) -> str:
        """Return its phase."""
        return str(self.status(name).get("phase", ""))

    def condition(self, name: str) -> tuple[str, str, str]:
        """Return the status, the reason and the message of its condition."""
        return tenants.condition(self.status(name), "Succeeded")


def _written(body: dict[str, Any]) -> dict[str, Any]:
    meta = body["metadata"]
    parts: dict[str, Any] = {key: body[key] for key in ("data", "spec") if key in body}
    if "spec" in parts:
        parts["spec"] = {key: value for key, value in parts["spec"].items() if key not in _GIVEN}
    for part in ("labels", "annotations"):
        kept = {key: text for key, text in meta.get(part, {}).items() if not key.startswith(_NOTES)}
        parts |= {part: kept} if kept else {}
    return parts
