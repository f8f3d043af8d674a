"""The charts as OCI artifacts: packaged as for a release, pushed to a registry, and installed from there.

The cluster has no node, so nothing runs the pods; `test_install.py` does that with the same manifests.
"""

import json
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from foresail import __version__
from testbed import Cluster, Options
from testbed.build import program
from testbed.node.images import serve_registry
from tests.node.nodes import CHECKOUT, IMAGE

CHARTS = ("foresail-crds", "foresail")
REPOSITORY, TAG = IMAGE.rsplit(":", 1)


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    """A cluster that has never seen Foresail."""
    with Cluster.create(f"pytest-{os.getpid()}-oci", Options(velero="velero"), owned=True) as found:
        yield found


@pytest.fixture
def registry(tmp_path: Path) -> Iterator[str]:
    """A registry on loopback, which no other test uses."""
    with serve_registry(tmp_path / "registry", tmp_path) as address:
        yield f"oci://{address}/charts"


def helm(cluster: Cluster, *words: str) -> str:
    """Run Helm as the administrator, with nothing of the user's own settings; it must succeed."""
    home = cluster.folder / "helm"
    settings = {f"HELM_{kind}_HOME": str(home / kind.lower()) for kind in ("CACHE", "CONFIG", "DATA")}
    environment = {**os.environ, **settings, "KUBECONFIG": str(cluster.kubeconfig)}
    command = [str(program("helm", "helm")), *words]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False, timeout=300)
    assert done.returncode == 0, done.stderr
    return done.stdout + done.stderr


def test_both_charts_are_pushed_installed_upgraded_and_removed(cluster: Cluster, registry: str, tmp_path: Path) -> None:
    make = ["make", "charts", f"HELM={program('helm', 'helm')}", f"DIST={tmp_path}"]
    subprocess.run(make, cwd=CHECKOUT, check=True, capture_output=True)
    for chart in CHARTS:
        pushed = helm(cluster, "push", str(tmp_path / f"{chart}-{__version__}.tgz"), registry, "--plain-http")
        assert f"/charts/{chart}:{__version__}" in pushed
        assert "Digest: sha256:" in pushed

    where = ("--namespace=velero", "--plain-http", f"--version={__version__}")
    image = f"--set=image.repository={REPOSITORY},image.tag={TAG}"
    helm(cluster, "install", "foresail-crds", f"{registry}/foresail-crds", *where)
    cluster.wait_for_kinds()
    notes = helm(
        cluster, "install", "foresail", f"{registry}/foresail", *where, image, "--set=selfService.enabled=true"
    )
    assert "On: schedules, self-service." in notes
    assert deployed(cluster) == (IMAGE, 2)
    assert "foresail-default" in cluster.kubectl("get", "selfservicepolicies", "--output=name")

    helm(cluster, "upgrade", "foresail", f"{registry}/foresail", *where, "--reuse-values", "--set=replicas=1")
    assert deployed(cluster) == (IMAGE, 1)
    releases = json.loads(helm(cluster, "list", "--namespace=velero", "--output=json"))
    assert {each["chart"] for each in releases} == {f"{chart}-{__version__}" for chart in CHARTS}
    for name in reversed(CHARTS):
        helm(cluster, "uninstall", name, "--namespace=velero")
    assert "foresail" not in cluster.kubectl("get", "deployments", "--namespace=velero", "--output=name")


def deployed(cluster: Cluster) -> tuple[str, int]:
    """Return the operator's image and how many replicas it has."""
    spec = cluster.get("deployment", "foresail-schedules", "--namespace=velero")["spec"]
    return spec["template"]["spec"]["containers"][0]["image"], spec["replicas"]
