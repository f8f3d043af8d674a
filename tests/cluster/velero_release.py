"""Velero's Deployment as a release of Helm's, by a chart with the one value of Velero's own chart that concerns us."""

import json
import subprocess
from pathlib import Path
from typing import Any

from testbed import Cluster
from testbed.build import program

_ARGUMENTS = """\
{{- with .Values.configuration.disableControllers -}}
  {{- append $.Values.arguments (printf "--disable-controllers=%s" .) | toJson -}}
{{- else -}}
  {{- toJson .Values.arguments -}}
{{- end -}}"""
_HERE = "ARGUMENTS"


def helm(cluster: Cluster, *words: str) -> None:
    """Run Helm in Velero's namespace."""
    command = [str(program("helm", "helm")), *words, "--namespace=velero", f"--kubeconfig={cluster.kubeconfig}"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


class Release:
    """The release `velero`: Helm keeps the Deployment that is there, and changes it as somebody's values say."""

    def __init__(self, cluster: Cluster, folder: Path) -> None:
        self._cluster, self._chart = cluster, folder / "chart"
        (self._chart / "templates").mkdir(parents=True)
        found = cluster.get("deployment", "velero", "--namespace=velero")
        container = found["spec"]["template"]["spec"]["containers"][0]
        values = {"arguments": container["args"], "configuration": {"disableControllers": ""}}
        container["args"] = _HERE
        manifest = json.dumps(_bare(found), indent=2).replace(f'"{_HERE}"', _ARGUMENTS)
        self._write("Chart.yaml", json.dumps({"apiVersion": "v2", "name": "velero", "version": "1.0.0"}))
        self._write("values.yaml", json.dumps(values))
        self._write("templates/deployment.yaml", manifest)
        self._upgrade("--install", "--take-ownership")

    def change(self, values: str) -> None:
        """Bring these values into the cluster, as whoever keeps the release would."""
        self._write("changed.yaml", values)
        self._upgrade(f"--values={self._chart / 'changed.yaml'}")

    def _upgrade(self, *words: str) -> None:
        helm(self._cluster, "upgrade", "velero", str(self._chart), "--force-conflicts", *words)

    def _write(self, name: str, text: str) -> None:
        (self._chart / name).write_text(text)


def _bare(deployment: dict[str, Any]) -> dict[str, Any]:
    metadata = {name: deployment["metadata"][name] for name in ("name", "namespace", "labels")}
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": metadata, "spec": deployment["spec"]}
