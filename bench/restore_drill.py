"""A cluster with Velero on which RestoreChecks run: objects, backups, their files in the bucket, and results."""

import gzip
import io
import json
import subprocess
import tarfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from http import HTTPStatus
from pathlib import Path
from typing import Any

from bench import MeasurementError
from foresail.api.restore_check import SANDBOX_PREFIX
from testbed import Cluster, TestbedError
from testbed.audit import Request
from testbed.build import program

CHARTS = Path(__file__).parents[1] / "charts"
LABEL = "foresail.dev/restore-check"
API = "foresail.dev/v1alpha1"
GROUP = "drill.example.com"
_PATIENCE = 600.0
Body = dict[str, Any]


def install(cluster: Cluster, *more: str) -> None:
    """Install both charts with restore checks as the only capability, and more values."""
    for chart, values in (
        ("foresail-crds", "veleroNamespace=velero"),
        ("foresail", ",".join(("proof.restoreChecks=true,schedules.enabled=false", *more))),
    ):
        command = [str(program("helm", "helm")), "template", "foresail", str(CHARTS / chart), "--namespace=velero"]
        settings = [f"--set={values}"] if chart == "foresail" else []
        rendered = subprocess.run([*command, *settings], capture_output=True, text=True, check=True).stdout
        cluster.kubectl("apply", "--server-side", "--force-conflicts", "--filename=-", text=rendered)
        cluster.wait_for_kinds()


@dataclass(frozen=True, slots=True)
class Drill:
    """A cluster on which checks run."""

    cluster: Cluster

    # Backups

    def make(self, namespace: str, *objects: Body) -> None:
        """Create a namespace with objects."""
        self.cluster.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}})
        if objects:
            placed = [{**each, "metadata": {"namespace": namespace, **each["metadata"]}} for each in objects]
            self.cluster.apply(*placed)

    def back_up(self, name: str, *words: str, ends: str = "Completed", snapshots: bool = False) -> None:
        """Back up with Velero, labelled with the name of the backup, with or without snapshots of volumes."""
        flags = (f"--snapshot-volumes={str(snapshots).lower()}", f"--labels=drill={name}", "--wait")
        self.cluster.velero("backup", "create", name, *words, *flags)
        phase = self.cluster.get("backups.velero.io", name, "--namespace=velero")["status"]["phase"]
        if phase != ends:
            raise MeasurementError(f"Backup {name} is {phase}")

    def file(self, backup: str, suffix: str) -> Path:
        """Return a file of a backup in the bucket."""
        return self.cluster.site.bucket / "backups" / backup / f"{backup}{suffix}"

    def add_to_list(self, backup: str, gvk: str, *places: str) -> None:
        """Pretend that a backup has more objects than its archive."""
        file = self.file(backup, "-resource-list.json.gz")
        lists = json.loads(gzip.decompress(file.read_bytes()))
        lists.setdefault(gvk, []).extend(places)
        file.write_bytes(gzip.compress(json.dumps(lists).encode()))

    def add_to_archive(self, backup: str, resource: str, body: Body) -> None:
        """Add an object that this cluster would refuse, as if another cluster had taken it."""
        namespace, name = body["metadata"]["namespace"], body["metadata"]["name"]
        self.rewrite(backup, f"resources/{resource}/namespaces/{namespace}/{name}.json", json.dumps(body).encode())
        api = body["apiVersion"]
        self.add_to_list(backup, f"{api}/{body['kind']}", f"{namespace}/{name}")

    def rewrite(self, backup: str, path: str, text: bytes) -> None:
        """Replace or add a file in the archive of a backup."""
        archive = self.file(backup, ".tar.gz")
        files = {}
        with tarfile.open(archive) as old:
            for each in old.getmembers():
                content = old.extractfile(each)
                if content is not None:
                    files[each.name] = content.read()
        with tarfile.open(archive, "w:gz") as new:
            for name, data in {**files, path: text}.items():
                entry = tarfile.TarInfo(name)
                entry.size = len(data)
                new.addfile(entry, io.BytesIO(data))

    # Checks

    def ask(self, name: str, backup: str, **spec: object) -> None:
        """Create a RestoreCheck of one backup."""
        chosen = {"selector": {"matchLabels": {"drill": backup}}}
        body = {"backups": chosen, "deadline": "5m", **spec}
        self.cluster.apply(
            {"apiVersion": API, "kind": "RestoreCheck", "metadata": {"name": name, "namespace": "velero"}, "spec": body}
        )

    def result(self, name: str) -> Body | None:
        """Return the last result of a check."""
        found: Body = self.cluster.get("restorechecks", name, "--namespace=velero")
        last: Body | None = found.get("status", {}).get("last")
        return last

    def check(self, backup: str, **spec: object) -> Body:
        """Check a backup and return the result."""
        self.ask(backup, backup, **spec)
        wait(lambda: self.result(backup) is not None, f"the check of {backup}")
        return self.result(backup) or {}

    def check_without_backup(self, name: str) -> Body:
        """Ask for a check that finds no good backup, and return why it is not ready."""
        self.ask(name, name)
        wait(lambda: self.condition(name)["status"] == "False", f"the condition of {name}")
        found = self.condition(name)
        return {"result": "NotReady", "reason": found["reason"], "message": found["message"]}

    def condition(self, name: str) -> Body:
        """Return the condition Ready of a check."""
        found = self.cluster.get("restorechecks", name, "--namespace=velero")["status"]["conditions"]
        return next(each for each in found if each["type"] == "Ready")

    def forget(self, name: str) -> None:
        """Delete a RestoreCheck."""
        self.cluster.kubectl("delete", "restorecheck", name, "--namespace=velero")

    def sandboxes(self) -> list[str]:
        """Return the sandboxes that exist."""
        return [each["metadata"]["name"] for each in self.cluster.get("namespaces", f"--selector={LABEL}")["items"]]

    def leftovers(self) -> list[str]:
        """Return what checks have left beside their evidence."""
        found = self.sandboxes()
        names = [each["metadata"]["name"] for each in self.cluster.get("namespaces")["items"]]
        found += [each for each in names if each.startswith(SANDBOX_PREFIX) and each not in found]
        for kind in ("restores.velero.io", "downloadrequests.velero.io", "configmaps"):
            items = self.cluster.get(kind, "--namespace=velero", f"--selector={LABEL}")["items"]
            rest = [each["metadata"]["name"] for each in items]
            found += [f"{kind}/{each}" for each in rest if not each.endswith("-evidence")]
        for each in self.cluster.get("persistentvolumes")["items"]:
            if each["spec"].get("claimRef", {}).get("namespace", "").startswith(SANDBOX_PREFIX):
                found.append(f"persistentvolumes/{each['metadata']['name']}")
        return found

    def pods(self) -> list[str]:
        """Return the pods that exist in sandboxes."""
        found = [each["metadata"] for each in self.cluster.get("pods", "--all-namespaces")["items"]]
        names = [f"{each['namespace']}/{each['name']}" for each in found]
        return [each for each in names if each.startswith(SANDBOX_PREFIX)]

    def created(self) -> list[Request]:
        """Return what was created in sandboxes so far, whether or not it still exists."""

        def is_in_sandbox(each: Request) -> bool:
            is_created = each.verb == "create" and each.code == HTTPStatus.CREATED
            return is_created and each.is_write and each.namespace.startswith(SANDBOX_PREFIX)

        return self.cluster.audit_where(is_in_sandbox)

    # kubectl

    def problem(self, *arguments: str, text: str | None = None) -> str:
        """Return why a kubectl command of a cluster administrator fails; empty if it does not."""
        try:
            self.cluster.kubectl(*arguments, text=text)
        except TestbedError as error:
            return error.problem
        return ""

    def is_refused(self, message: str, *arguments: str, text: str | None = None) -> bool:
        """Whether the API server refuses a command with that message; another problem is no refusal."""
        return message in self.problem(*arguments, text=text)


# Objects


def config_map(name: str, **labels: str) -> Body:
    """Return a ConfigMap."""
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "labels": labels}, "data": {"a": "b"}}


def usual() -> tuple[Body, ...]:
    """Return what a usual namespace has."""
    pods = {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [{"name": "web", "image": "web:1"}]}}
    of_web = {"matchLabels": {"app": "web"}}
    return (
        config_map("settings"),
        {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "password"}, "stringData": {"a": "b"}},
        {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "web"}},
        {
            "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"},
            "spec": {"replicas": 2, "selector": of_web, "template": pods},
        },
        {
            "apiVersion": "v1", "kind": "Service", "metadata": {"name": "web"},
            "spec": {"selector": {"app": "web"}, "ports": [{"port": 80}]},
        },
        {
            "apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": {"name": "web"},
            "spec": {"minAvailable": 1, "selector": of_web},
        },
    )  # fmt: skip


def widgets(*, required: str = "", version: str = "v1") -> Body:
    """Return a custom resource definition; with a field that every object must have."""
    spec: Body = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    if required:
        spec["required"] = [required]
    schema = {"type": "object", "properties": {"spec": spec}}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"widgets.{GROUP}"},
        "spec": {
            "group": GROUP,
            "names": {"plural": "widgets", "kind": "Widget"},
            "scope": "Namespaced",
            "versions": [{"name": version, "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}],
        },
    }


def widget(name: str, version: str = "v1") -> Body:
    """Return a custom resource."""
    return {"apiVersion": f"{GROUP}/{version}", "kind": "Widget", "metadata": {"name": name}, "spec": {"size": 1}}


def define(drill: Drill, definition: Body) -> None:
    """Define a kind, wait until it is served, and let Velero discover it: it looks every five minutes only."""
    drill.cluster.apply(definition)
    wait(lambda: not drill.problem("get", f"widgets.{GROUP}", "--all-namespaces"), "the kind Widget")
    drill.cluster.restart_velero()


def undefine(drill: Drill) -> None:
    """Delete the kind, and let Velero notice it: its backups would partially fail."""
    drill.cluster.kubectl("delete", "customresourcedefinition", f"widgets.{GROUP}")
    drill.cluster.restart_velero()


def wait(holds: Callable[[], bool], what: str) -> None:
    """Wait until something holds."""
    until = time.monotonic() + _PATIENCE
    while True:
        try:
            if holds():
                return
        except (TestbedError, LookupError):
            pass
        if time.monotonic() > until:
            raise MeasurementError(f"waited {_PATIENCE:g} s for {what}")
        time.sleep(0.3)
