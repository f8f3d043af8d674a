"""An upgrade of the kinds by the real Helm, and back, while there are objects of them: none is lost or changed."""

import shutil
import subprocess
import time
from concurrent.futures import ThreadPoolExecutor
from http import HTTPStatus
from pathlib import Path
from typing import Any

import yaml

from testbed import Cluster
from testbed.api import request
from testbed.build import program
from tests.cluster.schedules import FULL, Eventually, Figure
from tests.cluster.tenants import API, CHARTS

COUNT = 1_000 if FULL else 50
NAMES = [f"backup-{number}" for number in range(COUNT)]
PATH = f"/apis/{API}/namespaces/default/nonadminbackups"
RULE = {"rule": "!has(self.spec.note) || self.spec.note != ''", "message": "spec.note must say something"}


def helm(cluster: Cluster, *words: str) -> None:
    done = subprocess.run(
        [str(program("helm", "helm")), *words, "--namespace=default", f"--kubeconfig={cluster.kubeconfig}"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    cluster.wait_for_kinds()


def with_a_field_and_a_rule(folder: Path) -> Path:
    """Return a copy of the chart whose NonAdminBackups have one field and one rule more."""
    chart = shutil.copytree(CHARTS / "foresail-crds", folder / "foresail-crds")
    file = chart / "templates" / "nonadminbackups.yaml"
    definition = yaml.safe_load(file.read_text())
    schema = definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    schema["properties"]["spec"]["properties"]["note"] = {"type": "string"}
    schema["x-kubernetes-validations"] = [*schema.get("x-kubernetes-validations", []), RULE]
    file.write_text(yaml.safe_dump(definition))
    return chart


def nab(name: str, **spec: str) -> dict[str, Any]:
    spec_of_all = {"backupSpec": {"includedResources": ["configmaps"]}, **spec}
    return {"apiVersion": API, "kind": "NonAdminBackup", "metadata": {"name": name}, "spec": spec_of_all}


def send(cluster: Cluster, method: str, path: str, body: object) -> tuple[int, dict[str, Any]]:
    answer = request(method, f"{cluster.server}{path}", cluster.site.admin_trust, body)
    return answer.code, answer.json()


def listed(cluster: Cluster) -> list[dict[str, Any]]:
    """Return all of them; while a definition changes, the API server asks to try again."""
    while True:
        code, found = send(cluster, "GET", PATH, None)
        if code == HTTPStatus.OK:
            items: list[dict[str, Any]] = found["items"]
            return items
        assert code in (HTTPStatus.TOO_MANY_REQUESTS, HTTPStatus.SERVICE_UNAVAILABLE), found
        time.sleep(0.5)


def make(cluster: Cluster, name: str) -> None:
    """Make one as the operator leaves it: accepted, with a status."""
    code, made = send(cluster, "POST", PATH, nab(name))
    assert code == HTTPStatus.CREATED, made
    made["status"] = {"phase": "Created", "veleroBackup": {"nacuuid": f"default-{name}"}}
    code, made = send(cluster, "PUT", f"{PATH}/{name}/status", made)
    assert code == HTTPStatus.OK, made


def test_an_upgrade_with_a_new_field_and_rule_and_the_way_back_lose_nothing(
    doomed_cluster: Cluster, tmp_path: Path, eventually: Eventually, figure: Figure
) -> None:
    cluster = doomed_cluster
    helm(cluster, "install", "kinds", str(CHARTS / "foresail-crds"))
    with ThreadPoolExecutor(8) as threads:
        list(threads.map(lambda name: make(cluster, name), NAMES))
    before = listed(cluster)
    assert len(before) == COUNT

    helm(cluster, "upgrade", "kinds", str(with_a_field_and_a_rule(tmp_path)))
    assert listed(cluster) == before
    empty = nab("empty", note="")
    eventually(lambda: RULE["message"] in send(cluster, "POST", f"{PATH}?dryRun=All", empty)[1].get("message", ""), 60)
    code, made = send(cluster, "POST", PATH, nab("noted", note="before the fair"))
    assert (code, made["spec"]["note"]) == (HTTPStatus.CREATED, "before the fair")
    old = {**before[0], "status": {**before[0]["status"], "phase": "Deleting"}}
    code, written = send(cluster, "PUT", f"{PATH}/{before[0]['metadata']['name']}/status", old)
    assert (code, written["status"]["phase"]) == (HTTPStatus.OK, "Deleting"), "what was there before can be worked on"
    after = listed(cluster)

    helm(cluster, "rollback", "kinds", "1")
    back = listed(cluster)
    assert [each["metadata"]["uid"] for each in back] == [each["metadata"]["uid"] for each in after]
    others = [each for each in after if each["metadata"]["name"] != "noted"]
    assert [each for each in back if each["metadata"]["name"] != "noted"] == others

    helm(cluster, "uninstall", "kinds")
    assert len(listed(cluster)) == COUNT + 1, "the kinds outlive their chart"
    figure(f"an upgrade of the kinds and back among {COUNT} NonAdminBackups: none lost, none changed")
