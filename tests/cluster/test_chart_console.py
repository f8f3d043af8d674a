"""The console of the chart: off by default, without rights or a token of its own, reached by whom the values name."""

import json
from typing import Any

import pytest

from foresail.api.marks import LEASES
from foresail.cli.main import main
from testbed import Cluster
from tests.cluster.operators import CHART
from tests.cluster.test_chart import EVERYTHING, helm, objects, prepared, rendered, try_out

__all__ = ["prepared"]  # a fixture
ON = ("console.enabled=true", "console.publicUrl=https://console.example.com")
NAME = "foresail-console"
SIDECAR = (
    "console.targetPort=proxy",
    "console.sidecars[0].name=proxy",
    "console.sidecars[0].image=registry.example.com/oauth2-proxy:v7",
    "console.sidecars[0].ports[0].name=proxy",
    "console.sidecars[0].ports[0].containerPort=4180",
)


def own(*switches: str) -> dict[str, dict[str, Any]]:
    """Return the objects of the console by their kinds."""
    return {each["kind"]: each for each in objects(*switches) if each["metadata"]["name"] == NAME}


def pod(*switches: str) -> dict[str, Any]:
    found: dict[str, Any] = own(*ON, *switches)["Deployment"]["spec"]["template"]["spec"]
    return found


def test_it_is_off_by_default() -> None:
    assert NAME not in rendered()


def test_its_account_has_no_rights_and_no_token_reaches_the_pod() -> None:
    found = objects(*EVERYTHING)
    bindings = [each for each in found if each["kind"].endswith("Binding")]
    assert len(bindings) > 3
    assert not any(NAME in json.dumps(each.get("subjects")) for each in bindings)
    assert not any(NAME in each["metadata"]["name"] for each in found if "Role" in each["kind"])
    assert own(*ON)["ServiceAccount"]["automountServiceAccountToken"] is False
    spec = pod("console.bucketCA=bucket")
    assert (spec["automountServiceAccountToken"], spec["serviceAccountName"]) == (False, NAME)
    assert [set(each) for each in spec["volumes"]] == [{"name", "configMap"}] * 2
    assert "env" not in spec["containers"][0]


def test_the_account_of_an_operator_is_refused() -> None:
    for name in LEASES:
        words = [f"--set={each}" for each in (*ON, f"console.serviceAccount.name={name}")]
        done = helm("template", "foresail", str(CHART), *words)
        assert "must differ from console.serviceAccount.name" in done.stderr


@pytest.mark.parametrize(
    ("wrong", "named"),
    [
        ("console.publicUrl=", "console.publicUrl"),
        ("console.publicUrl=http://console.example.com", "publicUrl"),
        ("console.publicUrl=https://example.com/console", "publicUrl"),
        ("console.tokenHeader=X-Forwarded-User", "tokenHeader"),
        ("console.extraArgs={kubeconfig}", "extraArgs"),
        ("console.enable=true", "enable"),
    ],
)
def test_a_misspelt_or_unsafe_value_is_refused_by_its_name(wrong: str, named: str) -> None:
    done = helm("template", "foresail", str(CHART), *(f"--set={each}" for each in (*ON, wrong)))
    assert done.returncode != 0
    assert named in done.stderr


def test_the_arguments_are_those_that_the_console_takes(capsys: pytest.CaptureFixture[str]) -> None:
    """It reads them all, and fails only because the file is missing that the pod would have."""
    for switches in ((), ("console.tokenHeader=X-Forwarded-Access-Token", "console.extraArgs={--rpo=26h}")):
        assert main(pod(*switches)["containers"][0]["args"]) == 2
        assert "/etc/foresail/kubernetes/ca.crt" in capsys.readouterr().err


def test_nobody_reaches_it_but_whom_the_values_name() -> None:
    closed = own(*ON)["NetworkPolicy"]["spec"]
    assert (closed["policyTypes"], closed.get("ingress")) == (["Ingress"], None)
    peers = [{"podSelector": {"matchLabels": {"app": "ingress"}}}]
    opened = own(*ON, *SIDECAR, "console.from[0].podSelector.matchLabels.app=ingress")["NetworkPolicy"]["spec"]
    assert opened["ingress"] == [{"from": peers, "ports": [{"port": "proxy"}]}]  # and not the port of the console
    assert "NetworkPolicy" not in own(*ON, "networkPolicy.enabled=false")


def test_a_proxy_in_the_same_pod_is_what_the_service_leads_to() -> None:
    assert [each["name"] for each in pod(*SIDECAR)["containers"]] == ["console", "proxy"]
    assert own(*ON, *SIDECAR)["Service"]["spec"]["ports"][0]["targetPort"] == "proxy"


def test_the_api_server_takes_it_and_its_pods_run_where_only_restricted_ones_may(prepared: Cluster) -> None:
    try_out(prepared, rendered(*ON, *SIDECAR, "console.bucketCA=bucket"))
    spec = pod()
    assert "runAsUser" not in json.dumps(spec)  # OpenShift chooses one
    body = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "tried", "namespace": "velero"}}
    text = json.dumps({**body, "spec": {**spec, "serviceAccountName": "default"}})
    prepared.kubectl("create", "--dry-run=server", "--validate=strict", "--filename=-", text=text)
