"""Flux's own controllers install and upgrade Foresail, and apply a team's namespace while that is rolled back."""

import json
import re
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from testbed import Cluster, Options
from testbed.build import build
from testbed.flux import COMPONENTS
from testbed.ports import Port
from tests.cluster import operators, tenants
from tests.cluster.buckets import put_object
from tests.cluster.conftest import created
from tests.cluster.operators import CHART
from tests.cluster.rollbacks import ENDED, FLAGS, Home, allow, config, deployment, service
from tests.cluster.tenants import VELERO, Eventually, arrive
from tests.cluster.test_tenant_cli import Foresail

pytestmark = pytest.mark.full  # the controllers are built first: ten minutes, once

HELM, KUSTOMIZE = "helm.toolkit.fluxcd.io", "kustomize.toolkit.fluxcd.io"
_NEXT = "0.1.1"
_ASKED = "reconcile.fluxcd.io/requestedAt"


@pytest.fixture(scope="module")
def flux() -> Iterator[Cluster]:
    """Velero, a node, and Flux."""
    build(list(COMPONENTS.values()), lambda _: None)
    yield from created("flux", Options(velero="velero", nodes=1, flux=True))


def source(cluster: Cluster, bucket: str, namespace: str) -> dict[str, Any]:
    """Return a bucket as Flux reads it, and put the keys beside it."""
    words = dict(re.findall(r"aws_(access_key_id|secret_access_key)=(\S+)", keys_of(cluster)))
    cluster.apply(
        {
            "apiVersion": "v1",
            "kind": "Secret",
            "metadata": {"name": bucket, "namespace": namespace},
            "stringData": {"accesskey": words["access_key_id"], "secretkey": words["secret_access_key"]},
        }
    )
    return {
        "apiVersion": "source.toolkit.fluxcd.io/v1",
        "kind": "Bucket",
        "metadata": {"name": bucket, "namespace": namespace},
        "spec": {
            "interval": "5s",
            "provider": "generic",
            "bucketName": bucket,
            "endpoint": f"127.0.0.1:{cluster.site.port(Port.S3)}",
            "insecure": True,
            "secretRef": {"name": bucket},
        },
    }


def keys_of(cluster: Cluster) -> str:
    """Return the file with the keys of the S3 server."""
    return (cluster.site.folder / "s3" / "credentials").read_text()


def put(cluster: Cluster, bucket: str, key: str, content: str) -> None:
    """Put an object into a bucket."""
    put_object(cluster.site.folder / "s3", bucket, key, content.encode())


def release(name: str, chart: str, values: dict[str, Any], after: str = "") -> dict[str, Any]:
    """Return a HelmRelease in Velero's namespace, whose live objects must stay as the chart has them."""
    spec: dict[str, Any] = {
        "interval": "10s",
        "timeout": "3m",
        "chart": {
            "spec": {
                "chart": f"./{chart}",
                "sourceRef": {"kind": "Bucket", "name": "charts"},
                "reconcileStrategy": "Revision",
            }
        },
        "driftDetection": {"mode": "warn"},
        "values": values,
    }
    if after:
        spec["dependsOn"] = [{"name": after}]
    metadata = {"name": name, "namespace": VELERO}
    return {"apiVersion": f"{HELM}/v2", "kind": "HelmRelease", "metadata": metadata, "spec": spec}


def is_released(cluster: Cluster, name: str, version: str) -> bool:
    """Whether a release has that version of its chart, and all of it is there."""
    body = cluster.get("helmrelease", name, f"--namespace={VELERO}")
    history = body.get("status", {}).get("history", [{}])
    ready = tenants.condition(body.get("status", {}), "Ready")[0] == "True"
    observed = body.get("status", {}).get("observedGeneration") == body["metadata"]["generation"]
    return ready and observed and str(history[0].get("chartVersion", "")).startswith(version)


def test_flux_installs_and_upgrades_foresail_and_sees_no_drift(
    flux: Cluster, eventually: Eventually, tmp_path: Path
) -> None:
    for chart in ("foresail-crds", "foresail"):
        for file in sorted((CHART.parent / chart).rglob("*")):
            if file.is_file():
                put(flux, "charts", str(file.relative_to(CHART.parent)), file.read_text())
    values: dict[str, Any] = {"selfService": {"enabled": True}}
    began = time.monotonic()
    flux.apply(source(flux, "charts", VELERO))
    flux.apply(release("foresail-crds", "foresail-crds", {}), release("foresail", "foresail", values, "foresail-crds"))
    eventually(lambda: is_released(flux, "foresail", "0.1.0"), 300)
    print(f"installed by Flux in {time.monotonic() - began:.0f} s")

    newer = re.sub(r"(?m)^version: .*$", f"version: {_NEXT}", (CHART / "Chart.yaml").read_text())
    put(flux, "charts", "foresail/Chart.yaml", newer)
    began = time.monotonic()
    flux.apply(release("foresail", "foresail", {**values, "rollback": {"enabled": True}}, "foresail-crds"))
    eventually(lambda: is_released(flux, "foresail", _NEXT), 300)
    print(f"upgraded by Flux in {time.monotonic() - began:.0f} s")
    assert flux.get("deployment", "foresail-rollback", f"--namespace={VELERO}")["status"]["availableReplicas"]

    with tenants.operator(flux, tmp_path / "self-service.log"), operators.running(flux, tmp_path, *FLAGS):
        shop = arrive(flux, "bakery", eventually)  # the operators work, and label what they need
        shop.back_up("first", snapshotVolumes=False)
        shop.wait("nonadminbackup/first", "--for=jsonpath={.status.veleroBackup.status.phase}=Completed")
        time.sleep(25)  # two reconciles of Flux
        events = flux.get("events", f"--namespace={VELERO}")["items"]
        assert [event["message"] for event in events if event["reason"] == "DriftDetected"] == []
        assert is_released(flux, "foresail", _NEXT)


class Git:
    """What a team commits: a bucket that Flux applies to its namespace."""

    def __init__(self, home: Home) -> None:
        self._home = home

    def commit(self, *objects: dict[str, Any]) -> None:
        """Replace these objects."""
        for body in objects:
            key = f"{body['kind'].lower()}-{body['metadata']['name']}.yaml"
            put(self._home.cluster, "app", key, json.dumps(body))

    def sync(self) -> None:
        """Ask Flux to look now."""
        for kind in ("bucket", "kustomization"):
            words = ("annotate", kind, "app", f"{_ASKED}={time.monotonic()}", "--overwrite")
            self._home.cluster.kubectl(*words, f"--namespace={self._home.name}")

    def follow(self) -> None:
        """Let Flux apply it."""
        home = self._home
        home.cluster.apply(source(home.cluster, "app", home.name))
        spec = {
            "interval": "5s",
            "path": "./",
            "prune": True,
            "targetNamespace": home.name,
            "sourceRef": {"kind": "Bucket", "name": "app"},
        }
        body = {"apiVersion": f"{KUSTOMIZE}/v1", "kind": "Kustomization"}
        home.cluster.apply({**body, "metadata": {"name": "app", "namespace": home.name}, "spec": spec})

    @property
    def is_suspended(self) -> bool:
        """Whether Flux leaves the namespace alone."""
        body = self._home.cluster.get("kustomization", "app", f"--namespace={self._home.name}")
        return bool(body["spec"].get("suspend"))


def test_flux_that_applies_again_changes_nothing_during_a_rollback_and_is_resumed(
    flux: Cluster, eventually: Eventually, tmp_path: Path
) -> None:
    if not flux.listed(f"/apis/{HELM}/v2/namespaces/{VELERO}/helmreleases"):
        tenants.install(flux, rollback=True)
    allow(flux)
    with ExitStack() as stack:
        stack.enter_context(tenants.operator(flux, tmp_path / "self-service.log"))
        stack.enter_context(operators.running(flux, tmp_path, *FLAGS))
        home = Home(flux, arrive(flux, "shop", eventually))
        home.team.kubectl("config", "set-context", "--current", f"--namespace={home.name}")
        flux.apply(may_edit_kustomizations())
        git = Git(home)
        good = (deployment("web", "web:1", 2), service("web"), config("limits", cpu="1", memory="1Gi"))
        git.commit(*good)
        git.follow()
        eventually(lambda: home.state().get("configmaps/limits", {}).get("data") == good[2]["data"], 120)
        home.back_up("before")
        before = home.state()
        git.commit(deployment("web", "web:broken", 5), config("limits", cpu="64"))
        git.sync()
        eventually(lambda: home.state()["configmaps/limits"]["data"] == {"cpu": "64"}, 120)

        dora = Foresail(home.team)
        shown = dora.done("rollback", "create", "--to", "before", "--dry-run").out
        assert "app" in shown, shown
        dora.done("rollback", "create", "back", "--to", "before", "--confirm")
        seen: list[tuple[str, bool, bool]] = []

        def is_over() -> bool:
            git.sync()  # Flux tries on and on
            phase, state = home.phase("back"), home.state()
            seen.append((phase, git.is_suspended, state == before))
            if phase == "Restoring":
                git.commit(*good)  # the team takes its commit back meanwhile
            return phase in ENDED

        eventually(is_over, 300)
        assert home.phase("back") == "Completed", home.condition("back")
        restored = [as_it_was for phase, _, as_it_was in seen if phase in ("Comparing", "Starting")]
        assert all(restored), seen
        assert any(suspended for _, suspended, _ in seen), seen
        assert not git.is_suspended
        git.sync()
        flux.kubectl("wait", "kustomization/app", "--for=condition=Ready", "--timeout=60s", f"--namespace={home.name}")
        assert home.state() == before


def may_edit_kustomizations() -> dict[str, Any]:
    """Return what Flux's own installation gives to whoever may edit a namespace."""
    verbs = ["get", "list", "watch", "create", "update", "patch", "delete"]
    return {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRole",
        "metadata": {"name": "flux-edit", "labels": {"rbac.authorization.k8s.io/aggregate-to-edit": "true"}},
        "rules": [{"apiGroups": [KUSTOMIZE], "resources": ["kustomizations"], "verbs": verbs}],
    }
