"""The cluster, the limited processes, the hostile tenant and the normal one."""

import os
import ssl
import sys
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from yaml import safe_load

from bench import MeasurementError
from bench.console import HOST
from bench.hostile_load.containers import Container, Own, Startable, Velero, mebibytes
from bench.hostile_load.neighbour import NORMAL, Neighbour
from bench.memory_group import MemoryGroup
from bench.processes import free_port
from testbed import Cluster, Options
from testbed.api import trust
from testbed.pki import client_certificate
from tests.cluster import tenants
from tests.redteam.world import NAB, VELERO, Caller, Json, body_of, empty, may_edit, namespace, path, until, user

MALLORY = "mallory"
_VALUES = Path(__file__).parents[2] / "charts" / "foresail" / "values.yaml"
_EMPTY_SECONDS = 300
_OURS = "app.kubernetes.io/part-of=foresail"
_NORMAL_QUOTAS = {"stored": 1000, "active": 3, "restores": {"active": 3, "stored": 1000, "history": 20}}


@dataclass(frozen=True)
class Scene:
    """Everything that an attack needs."""

    cluster: Cluster
    admin: Caller
    containers: dict[str, Container]
    neighbour: Neighbour
    certificate: ssl.SSLContext  # the hostile tenant's: made once, for two threads would write its files at once
    console_port: int
    size: float

    def scaled(self, full: int, least: int) -> int:
        """Return how many of something there are at this size."""
        return max(round(full * self.size), least)

    def hostile(self) -> Caller:
        """Return the hostile tenant with a connection of its own."""
        return Caller(self.cluster.server, self.certificate)

    def open(self, name: str, policy: Json | None = None) -> None:
        """Give the hostile tenant a namespace, maybe with a policy other than the chart's."""
        self.cluster.apply(namespace(name), may_edit(name, MALLORY))
        if policy is not None:
            self.cluster.apply(policy_for(name, policy))

    def close(self, name: str) -> None:
        """Delete a namespace with all that is in it, finalizers or not.

        Backups go with it: those that were deleted without `deleteBackup` wait for that while their namespace stays.
        """
        for plural in ("pods", "cronjobs", "restorechecks", "nonadminschedules"):
            empty(self.admin, plural, name, _EMPTY_SECONDS)
        self.admin.delete(path("namespaces", name=name))
        self.admin.delete(path("selfservicepolicies", name=name))


def policy_for(name: str, spec: Json) -> Json:
    """Return a policy for one namespace."""
    selector = {"matchLabels": {"kubernetes.io/metadata.name": name}}
    body = {"apiVersion": "foresail.dev/v1alpha1", "kind": "SelfServicePolicy", "metadata": {"name": name}}
    return {**body, "spec": {"namespaceSelector": selector, **spec}}


@contextmanager
def scene(size: float) -> Iterator[Scene]:
    """Bring all of it up, and take it down again."""
    name = f"hostile-load-{os.getpid()}"
    with (
        tempfile.TemporaryDirectory() as folder,
        Cluster.create(name, Options(velero="velero"), owned=True) as cluster,  # no attack needs a pod that runs
        ExitStack() as stack,
    ):
        tenants.install(cluster, schedules=True, checks=True)
        cluster.apply(namespace(NORMAL), may_edit(NORMAL, "norma"), policy_for(NORMAL, {"quotas": _NORMAL_QUOTAS}))
        port, server = free_port(), cluster.get("deployment", "velero", f"--namespace={VELERO}")
        starts = {**_own(cluster, Path(folder), port), "velero": (_limit(server), Velero(cluster))}
        containers = {}
        for label, (limit, program) in starts.items():
            group = stack.enter_context(MemoryGroup(f"foresail-{name}-{label}", limit))
            containers[label] = stack.enter_context(Container(label, limit, group, program))
        neighbour = Neighbour(user(cluster, "norma"))
        admin = Caller(cluster.server, cluster.site.admin_trust)
        until(lambda: neighbour.caller.get(path(NAB, NORMAL)) is not None, 120, "the role edit has our rules")
        until(lambda: _is_stamped(neighbour.caller), 60, "admission policies are in force")
        neighbour.prepare()
        certificate = trust(cluster.site.pki / "ca.crt", client_certificate(cluster.site.pki, MALLORY, ()))
        yield Scene(cluster, admin, containers, neighbour, certificate, port, size)


def _is_stamped(caller: Caller) -> bool:
    canary = body_of(NAB, "canary", {"backupSpec": {}}, labels={"foresail.dev/canary": "x"})
    return caller.create(f"{path(NAB, NORMAL)}?dryRun=All", canary).code >= 400


def _own(cluster: Cluster, folder: Path, port: int) -> dict[str, tuple[float, Startable]]:
    """Return our containers with their limits: those of the chart's Deployments, and its console."""
    found: dict[str, tuple[float, Startable]] = {}
    for deployment in cluster.get("deployments", f"--namespace={VELERO}", f"--selector={_OURS}")["items"]:
        label, pod = deployment["metadata"]["name"], deployment["spec"]["template"]["spec"]
        kubeconfig = cluster.service_account_kubeconfig(VELERO, pod["serviceAccountName"])
        here = [f"--kubeconfig={kubeconfig}", "--host=127.0.0.1", "--port=0", f"--identity={label}"]
        command = [sys.executable, "-m", "foresail", *pod["containers"][0]["args"], *here, "--log-level=warning"]
        found[label] = _limit(deployment), Own(command, folder / f"{label}.log")
    values: dict[str, Any] = safe_load(_VALUES.read_text())
    command = [sys.executable, "-m", "foresail", "console", "--in-cluster", f"--public-url=https://{HOST}"]
    command += [f"--api-server={cluster.server}", f"--certificate-authority={cluster.site.pki / 'ca.crt'}"]
    command += ["--address=127.0.0.1", f"--port={port}"]
    console = mebibytes(values["console"]["resources"]["limits"]["memory"])
    return {**found, "console": (console, Own(command, folder / "console.log"))}


def _limit(deployment: Json) -> float:
    """Return the memory limit of a Deployment's container; that of Velero is what `velero install` gives it."""
    limits = deployment["spec"]["template"]["spec"]["containers"][0]["resources"].get("limits", {})
    if "memory" not in limits:
        raise MeasurementError(f"Deployment {deployment['metadata']['name']} has no memory limit")
    return mebibytes(limits["memory"])
