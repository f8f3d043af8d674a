"""The charts as OCI artifacts: packaged as for a release, pushed to a registry, and installed from there in pods."""

import json
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from foresail import __version__
from testbed import Cluster, Options
from testbed.build import program
from testbed.node import network
from tests.node.nodes import CHECKOUT, IMAGE, foresail

CHARTS = ("foresail-crds", "foresail")
REPOSITORY, TAG = IMAGE.rsplit(":", 1)


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    """A cluster with a real node that has never seen Foresail; its registry has the image of this checkout."""
    options = Options(velero="velero", node=True)
    with Cluster.create(f"pytest-{os.getpid()}-oci", options, owned=True) as found:
        found.build_image(CHECKOUT, IMAGE)
        yield found


def helm(cluster: Cluster, *words: str) -> str:
    """Run Helm as the administrator, with nothing of the user's own settings; it must succeed."""
    home = cluster.folder / "helm"
    settings = {f"HELM_{kind}_HOME": str(home / kind.lower()) for kind in ("CACHE", "CONFIG", "DATA")}
    environment = {**os.environ, **settings, "KUBECONFIG": str(cluster.kubeconfig)}
    command = [str(program("helm", "helm")), *words]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False, timeout=400)
    assert done.returncode == 0, done.stderr
    return done.stdout + done.stderr


def test_both_charts_are_pushed_installed_upgraded_and_removed(cluster: Cluster, tmp_path: Path) -> None:
    registry = f"oci://{network.node_address(cluster.site)}:{network.REGISTRY_PORT}/charts"
    make = ["make", "charts", f"HELM={program('helm', 'helm')}", f"DIST={tmp_path}"]
    subprocess.run(make, cwd=CHECKOUT, check=True, capture_output=True)
    for chart in CHARTS:
        pushed = helm(cluster, "push", str(tmp_path / f"{chart}-{__version__}.tgz"), registry, "--plain-http")
        assert f"/charts/{chart}:{__version__}" in pushed
        assert "Digest: sha256:" in pushed

    where = ("--namespace=velero", "--plain-http", f"--version={__version__}", "--wait", "--timeout=300s")
    image = (f"--set=image.repository={REPOSITORY},image.tag={TAG}",)
    helm(cluster, "install", "foresail-crds", f"{registry}/foresail-crds", *where)
    notes = helm(cluster, "install", "foresail", f"{registry}/foresail", *where, *image)
    assert "foresail doctor" in notes
    cluster.kubectl("rollout", "status", "deployment/foresail", "--namespace=velero", "--timeout=120s")
    assert "problem" not in foresail(cluster, "doctor", "-o", "json")

    helm(cluster, "upgrade", "foresail", f"{registry}/foresail", *where, *image, "--set=replicas=1")
    releases = json.loads(helm(cluster, "list", "--namespace=velero", "--output=json"))
    assert {each["chart"] for each in releases} == {f"{chart}-{__version__}" for chart in CHARTS}
    assert {each["status"] for each in releases} == {"deployed"}
    for name in reversed(CHARTS):
        helm(cluster, "uninstall", name, "--namespace=velero", "--wait")
    assert "foresail" not in cluster.kubectl("get", "deployments", "--namespace=velero", "--output=name")
