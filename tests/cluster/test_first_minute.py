"""A new user with the README alone: gaps from one file, an installation, and a team that gets back a deleted object.

The clock runs from the downloaded file on. The file is built before, and nothing of this repository is on the path.
"""

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from testbed import Cluster
from testbed.build import program
from testbed.site import Options
from testbed.velero import revalidate
from tests.cluster.kubelet import kubelet
from tests.cluster.tenants import Eventually

ROOT = Path(__file__).parents[2]
MANIFESTS = ROOT / "examples" / "manifests"
IMAGE = "example.com/foresail:0.1.0"
GAPS, INSTALLED, BACK = 60.0, 300.0, 60.0
Figure = Callable[[str], None]
pytestmark = [pytest.mark.full, pytest.mark.timeout(1200)]


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    """A cluster with a Velero that has never seen Foresail."""
    with Cluster.create(f"pytest-{os.getpid()}-first", Options(velero="velero"), owned=True) as found:
        found.restart_velero()
        yield found


@pytest.fixture(scope="module")
def published(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The file of a release."""
    folder = tmp_path_factory.mktemp("release")
    build = [sys.executable, "-m", "hatchling", "build", "--target", "wheel", "--directory", str(folder)]
    subprocess.run(build, cwd=ROOT, capture_output=True, check=True)
    (wheel,) = folder.glob("*.whl")
    subprocess.run(
        [sys.executable, "-m", "release.pyz", str(wheel), str(folder / "foresail.pyz")], cwd=ROOT, check=True
    )
    return folder / "foresail.pyz"


def test_gaps_an_installation_and_an_object_that_is_back_each_in_their_time(
    cluster: Cluster, published: Path, tmp_path: Path, eventually: Eventually, figure: Figure
) -> None:
    cluster.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shop"}})
    cluster.kubectl("create", "rolebinding", "team", "--clusterrole=edit", "--user=team", "--namespace=shop")
    environment = {"HOME": str(tmp_path), "PATH": "/usr/bin:/bin", "KUBECONFIG": str(cluster.kubeconfig)}

    def foresail(*words: str) -> "subprocess.CompletedProcess[str]":
        command = [sys.executable, str(tmp_path / "foresail.pyz"), *words]
        return subprocess.run(command, env=environment, capture_output=True, text=True, check=False)

    began = time.monotonic()
    shutil.copy(published, tmp_path / "foresail.pyz")  # the download, without the network
    seen = foresail("coverage", "-A")
    gaps = time.monotonic() - began
    assert seen.returncode == 0, seen.stderr
    assert "NoSchedule" in seen.stdout
    assert "Foresail is not installed" in seen.stderr
    assert gaps < GAPS

    nodes = tmp_path / "nodes"
    nodes.mkdir()
    with kubelet(cluster, nodes):
        began = time.monotonic()
        done = foresail("install", "--self-service", "--image", IMAGE)
        assert done.returncode == 0, done.stderr
        cluster.kubectl("label", "namespace", "shop", "foresail.dev/self-service=enabled")
        revalidate(cluster.site)  # Velero has no pods here: its validations show that it runs
        eventually(lambda: foresail("doctor").returncode == 0, INSTALLED)
        installed = time.monotonic() - began
        assert installed < INSTALLED

        team = [str(program("kube", "kubectl")), f"--kubeconfig={cluster.user_kubeconfig('team')}", "--namespace=shop"]

        def kubectl(*words: str) -> str:
            return subprocess.run([*team, *words], capture_output=True, text=True, check=True, timeout=120).stdout

        kubectl("create", "configmap", "settings", "--from-literal=currency=EUR")
        began = time.monotonic()
        for manifest, wanted in (("nonadminbackup", "nab/before-upgrade"), ("nonadminrestore", "nar/bring-back")):
            kubectl("apply", f"--filename={MANIFESTS / f'{manifest}.yaml'}")
            kubectl("wait", "--for=condition=Succeeded", wanted, "--timeout=100s")
            if manifest == "nonadminbackup":
                kubectl("delete", "configmap", "settings")
        assert kubectl("get", "configmap", "settings", "--output=jsonpath={.data.currency}") == "EUR"
        back = time.monotonic() - began
        assert back < BACK
        applied = cluster.kubectl("apply", f"--filename={MANIFESTS}").splitlines()
        assert len(applied) == len(list(MANIFESTS.iterdir())), "every kind has an example that is taken"
    figure(f"gaps in {gaps:.0f} s, installed and doctor green in {installed:.0f} s, backup and restore in {back:.0f} s")
