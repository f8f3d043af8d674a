"""The rights in examples/fleet-cronjob.yaml are those that its command needs: all of them, and no others."""

import re
import shlex
from pathlib import Path
from typing import Any

import pytest
import yaml

from foresail.cli.main import main, parser
from tests.unit.cli.canned import canned
from tests.unit.cli.test_coverage import VELERO, answers, listed

EXAMPLE = Path(__file__).parents[3] / "examples" / "fleet-cronjob.yaml"
OBJECTS = {each["kind"]: each for each in yaml.safe_load_all(EXAMPLE.read_text())}
REQUEST = re.compile(r"GET /(?:api|apis/([\w.-]+))/\w+(?:/namespaces/([\w-]+))?/(\w+)(/[\w-]+)?")
Right = tuple[str, str, str, str]
"""A verb, an API group, a resource, and a namespace; empty for all."""


def rights(kind: str, namespace: str) -> set[Right]:
    """Return what a role of the example allows."""
    return {
        (verb, group, resource, namespace)
        for rule in OBJECTS[kind]["rules"]
        for verb in rule["verbs"]
        for group in rule["apiGroups"]
        for resource in rule["resources"]
    }


def asked(request: str) -> Right:
    """Return the right that a request needs."""
    found = REQUEST.fullmatch(request)
    assert found is not None, request
    group, namespace, resource, name = found.groups(default="")
    return "get" if name else "list", group, resource, namespace


def command() -> list[str]:
    """Return the words of the command that the CronJob runs, without the name of the program."""
    pod: dict[str, Any] = OBJECTS["CronJob"]["spec"]["jobTemplate"]["spec"]["template"]["spec"]
    (container,) = pod["containers"]
    program, *words = shlex.split(container["command"][2].partition(" > ")[0])
    assert program == "foresail"
    return words


def test_the_command_needs_just_the_rights_of_the_example(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = answers(resourcePolicy={"kind": "configmap", "name": "rules"})
    (policy,) = found["/apis/foresail.dev/v1alpha1/schedulepolicies"]["items"]
    policy["spec"]["retention"] = {"keepLast": 3}
    found |= {f"{VELERO}/deletebackuprequests": listed(), f"{VELERO}/restores": listed()}
    with canned(tmp_path, found) as server:
        assert main([*command(), "--kubeconfig", str(server.kubeconfig)]) == 0
    assert "foresail_namespace_objective_seconds{" in capsys.readouterr().out
    everywhere = rights("ClusterRole", "")
    needed = {right for right in map(asked, server.asked) if (*right[:3], "") not in everywhere - {right}}
    assert needed == everywhere | rights("Role", "velero")


def test_both_roles_are_bound_to_the_account_of_the_pods() -> None:
    account = OBJECTS["ServiceAccount"]["metadata"]
    subject = {"kind": "ServiceAccount", **account}
    for kind in ("ClusterRole", "Role"):
        binding = OBJECTS[f"{kind}Binding"]
        assert binding["subjects"] == [subject]
        assert (binding["roleRef"]["kind"], binding["roleRef"]["name"]) == (kind, OBJECTS[kind]["metadata"]["name"])
    pod = OBJECTS["CronJob"]["spec"]["jobTemplate"]["spec"]["template"]["spec"]
    assert pod["serviceAccountName"] == account["name"]
    assert parser().parse_args(command()).rpo
