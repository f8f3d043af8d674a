"""`foresail version`: of the command alone, and of what a cluster runs."""

import json
from pathlib import Path
from typing import Any

import pytest

from foresail import __version__
from foresail.cli.main import main
from foresail.cli.version import Running
from tests.unit.cli.canned import canned


def deployment(name: str, container: dict[str, Any], labels: dict[str, str]) -> dict[str, Any]:
    metadata = {"name": name, "namespace": "velero", "labels": labels}
    return {"metadata": metadata, "spec": {"template": {"spec": {"containers": [container]}}}}


DEPLOYMENTS = "/apis/apps/v1/namespaces/velero/deployments"
SERVER = {"name": "velero", "image": "velero/velero:v1.18.3", "command": ["/velero"], "args": ["server"]}
OPERATOR = {"name": "foresail", "image": "example.com:5000/foresail:0.1.0@sha256:00"}
FOUND = [
    deployment("velero", SERVER, {}),
    deployment("foresail-schedules", OPERATOR, {"app.kubernetes.io/name": "foresail-schedules"}),
    deployment("other", {"name": "a", "image": "a"}, {}),
]


def test_the_versions_are_those_of_the_images_that_the_cluster_runs(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with canned(tmp_path, {DEPLOYMENTS: {"metadata": {}, "items": FOUND}}) as server:
        assert main(["version", f"--kubeconfig={server.kubeconfig}", "-o", "json"]) == 0
        assert json.loads(capsys.readouterr().out) == {
            "client": {"version": __version__},
            "operator": [{"deployment": "velero/foresail-schedules", "image": OPERATOR["image"], "version": "0.1.0"}],
            "velero": [{"deployment": "velero/velero", "image": "velero/velero:v1.18.3", "version": "v1.18.3"}],
        }
        assert main(["version", f"--kubeconfig={server.kubeconfig}"]) == 0
    lines = [line.split("   ")[0].strip() for line in capsys.readouterr().out.splitlines()]
    assert lines == ["PROGRAM", "client", "operator", "velero"]


def test_missing_objects_are_reported(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with canned(tmp_path, {DEPLOYMENTS: {"metadata": {}, "items": []}}) as server:
        assert main(["version", f"--kubeconfig={server.kubeconfig}"]) == 0
    assert "operator   none" in capsys.readouterr().out


def test_without_a_cluster_the_client_is_shown_all_the_same(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["version", "--kubeconfig", str(tmp_path / "none"), "-o", "json"]) == 3
    said = capsys.readouterr()
    assert json.loads(said.out) == {"client": {"version": __version__}}
    assert said.err.startswith("error: there is no kubeconfig at ")
    assert main(["version", "--client", "-o", "yaml"]) == 0
    assert capsys.readouterr().out == f"client:\n  version: {__version__}\n"


@pytest.mark.parametrize(
    ("image", "version"),
    [("a", "unknown"), ("a:1", "1"), ("host:5000/a", "unknown"), ("host:5000/b/a:v2@sha256:0", "v2")],
)
def test_a_version_is_the_tag_of_the_image(image: str, version: str) -> None:
    assert Running("a/b", image).version == version
