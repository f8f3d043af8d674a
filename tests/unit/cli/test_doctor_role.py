"""The ClusterRole in the docs allows what the doctor reads, and nothing else."""

import re
from argparse import Namespace
from pathlib import Path
from typing import Any

import yaml

from foresail.api.crds import DEFINITIONS
from foresail.cli.access.cluster import on_cluster
from foresail.cli.doctor.evidence import gather
from foresail.cli.doctor.workloads import SNAPSHOTS
from tests.unit.cli.canned import canned

PAGE = Path(__file__).parents[3] / "docs" / "operations.md"
REQUEST = re.compile(r"(\w+) /(?:api|apis/([^/]+))/[^/]+/(?:namespaces/[^/]+/)?([^/]+)(/[^/]+)?")
FREE = {("authorization.k8s.io", "selfsubjectaccessreviews", "create")}
"""What everybody may ask."""

Asked = set[tuple[str, str, str]]  # group, resource and verb


class Everything(dict[str, Any]):
    """Answers what is not written down with an empty list."""

    def get(self, path: str, _: object = None) -> Any:  # noqa: ANN401
        return super().get(path, {"metadata": {}, "items": []})


def deployment(name: str, *args: str) -> dict[str, Any]:
    metadata = {"name": name, "namespace": "velero", "labels": {"app.kubernetes.io/name": name}}
    container = {"image": "velero/velero:v1.18.3", "args": list(args)}
    selector = {"matchLabels": {"app": name}}
    status = {"desiredNumberScheduled": 2}
    return {
        "metadata": metadata,
        "spec": {"selector": selector, "template": {"spec": {"containers": [container]}}},
        "status": status,
    }


def read(folder: Path, *operators: dict[str, Any]) -> Asked:
    names = [f"{each.kind.plural}.{each.kind.group}" for each in DEFINITIONS]
    definitions = [{"metadata": {"name": each}, "spec": {}} for each in (*names, "backups.velero.io", SNAPSHOTS)]
    answers = Everything(
        {
            "/apis/apiextensions.k8s.io/v1/customresourcedefinitions": {"metadata": {}, "items": definitions},
            "/apis/apps/v1/deployments": {"metadata": {}, "items": [deployment("velero", "server"), *operators]},
            "/apis/apps/v1/namespaces/velero/daemonsets": {
                "metadata": {},
                "items": [deployment("node-agent", "node-agent", "--node-agent-configmap=agents")],
            },
            "/apis/velero.io/v1/namespaces/velero/backupstoragelocations": {
                "metadata": {},
                "items": [
                    {
                        "metadata": {
                            "name": "a",
                            "annotations": {
                                "openshift.io/oadp-nabsl-origin-namespace": "shop",
                                "openshift.io/oadp-nabsl-origin-name": "a",
                            },
                        }
                    }
                ],
            },
        }
    )
    with canned(folder, answers) as server:
        args = Namespace(kubeconfig=str(server.kubeconfig), context=None)
        on_cluster(args, lambda cluster: gather(cluster, "velero", None))
    parts = [match for each in server.asked if (match := REQUEST.fullmatch(each)) is not None]
    verbs = {"GET": ("list", "get"), "POST": ("create", "create")}
    return {(each[2] or "", each[3], verbs[each[1]][each[4] is not None]) for each in parts}


def documented() -> Asked:
    text = PAGE.read_text().partition("name: foresail-doctor\n")
    block = text[0].rpartition("```yaml\n")[2] + text[1] + text[2].partition("```")[0]
    rules = yaml.safe_load(block)["rules"]
    return {
        (group, resource, verb)
        for rule in rules
        for group in rule["apiGroups"]
        for resource in rule["resources"]
        for verb in rule["verbs"]
    }


def test_the_role_in_the_docs_allows_what_the_doctor_reads_and_nothing_else(tmp_path: Path) -> None:
    flags = ("--self-service", "--primers", "--restore-checks", "--protection", "--rollback")
    full = read(tmp_path, deployment("foresail-self-service", *flags))
    bare = read(tmp_path)
    asked = (full | bare) - FREE
    assert asked == documented(), (sorted(asked - documented()), sorted(documented() - asked))
