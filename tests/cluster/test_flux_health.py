"""The health expressions for Flux, judged by the CEL of a real API server on recorded objects.

Flux evaluates them on the object itself, `status` and `metadata` being its fields; an admission policy evaluates them
here on a field of a record, and says what each came to by refusing it.
"""

import re
from typing import Any

import pytest

from testbed import Cluster
from testbed.api import request
from tests.cluster.tenants import Eventually
from tests.gitops.recorded import EXPECTED, health_expressions, recorded

GROUP = "tested.foresail.dev"
ORDER = (("inProgress", "InProgress"), ("failed", "Failed"), ("current", "Current"))
DEFINITION = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": f"records.{GROUP}"},
    "spec": {
        "group": GROUP,
        "names": {"kind": "Record", "plural": "records"},
        "scope": "Namespaced",
        "versions": [
            {
                "name": "v1",
                "served": True,
                "storage": True,
                "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}},
            }
        ],
    },
}


def policy(number: int, version: str, kind: str, expressions: dict[str, str]) -> list[dict[str, Any]]:
    """Return a policy that answers for every record of a kind which of the expressions holds, and its binding."""
    name = f"health-{number}.{GROUP}"
    answer = "'none'"
    for field, word in reversed(ORDER):
        if field in expressions:
            text = re.sub(r"(?<![.\w'])(status|metadata)\b", r"object.recorded.\1", expressions[field])
            answer = f"({text}) ? '{word}' : {answer}"
    spec = {
        "failurePolicy": "Fail",
        "matchConstraints": {
            "resourceRules": [
                {"apiGroups": [GROUP], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["records"]}
            ]
        },
        "matchConditions": [
            {"name": "kind", "expression": f"object.recorded.kind == '{kind}'"},
            {"name": "version", "expression": f"object.recorded.apiVersion == '{version}'"},
        ],
        "variables": [{"name": "health", "expression": answer}],
        "validations": [{"expression": "variables.health == ''", "messageExpression": "'health: ' + variables.health"}],
    }
    kinds = ("ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding")
    specs = (spec, {"policyName": name, "validationActions": ["Deny"]})
    return [
        {"apiVersion": "admissionregistration.k8s.io/v1", "kind": each, "metadata": {"name": name}, "spec": one}
        for each, one in zip(kinds, specs, strict=True)
    ]


@pytest.fixture(scope="module")
def judge(cluster: Cluster, eventually: Eventually) -> Cluster:
    cluster.apply(DEFINITION)
    cluster.wait_for_kinds()
    for number, ((version, kind), expressions) in enumerate(health_expressions().items()):
        cluster.apply(*policy(number, version, kind, expressions))
    for name in ("backup-complete", "restore-complete", "primer-ready", "schedule-enabled"):
        eventually(lambda name=name: health(cluster, recorded(name)) == "Current", 120)  # type: ignore[misc]
    return cluster


def health(cluster: Cluster, body: dict[str, Any]) -> str:
    """Return what Flux would take an object for, by its order: generation, then the expressions."""
    seen = body.get("status", {}).get("observedGeneration")
    if seen is not None and seen != body["metadata"]["generation"]:
        return "InProgress"
    record = {"apiVersion": f"{GROUP}/v1", "kind": "Record", "metadata": {"name": "one"}, "recorded": body}
    url = f"{cluster.server}/apis/{GROUP}/v1/namespaces/default/records?dryRun=All"
    said = request("POST", url, cluster.site.admin_trust, record).text
    if "no such key: status" in said:
        return "waits"
    found = re.search(r"health: (\w+)", said)
    if found is None:
        return said or "no policy is in force yet"
    return "InProgress" if found[1] == "none" else found[1]


@pytest.mark.parametrize("name", EXPECTED)
def test_flux_takes_each_recorded_object_for_what_it_is(judge: Cluster, name: str) -> None:
    assert health(judge, recorded(name)) == EXPECTED[name][1]
