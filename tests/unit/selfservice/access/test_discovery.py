"""Which resource a name means, and what a misspelt one probably meant."""

import pytest

from foresail.cli.errors import CommandError
from foresail.cli.tenant.new_request import judge
from foresail.selfservice.access.discovery import ApiResource, closest, not_served, unserved_names
from foresail.selfservice.families import BACKUPS

SERVED = (
    ApiResource("apps", "deployments", "Deployment", aliases=("deployment", "deploy")),
    ApiResource("apps", "statefulsets", "StatefulSet", aliases=("statefulset", "sts")),
    ApiResource("networking.k8s.io", "ingresses", "Ingress", aliases=("ingress", "ing")),
    ApiResource("rbac.authorization.k8s.io", "clusterroles", "ClusterRole", is_namespaced=False),
)


@pytest.mark.parametrize(
    "name",
    ["deployments", "deploy", "Deployments", "deployments.apps", "ingresses.networking", "cm", "clusterroles", "*"],
)
def test_every_name_that_velero_understands_is_served(name: str) -> None:
    assert unserved_names([name], SERVED) == ()


@pytest.mark.parametrize("name", ["deploymnts", "deployments.app.example", "pods.apps", "nope", "deployments.v1.apps"])
def test_any_other_name_is_not(name: str) -> None:
    assert unserved_names([name], SERVED) == (name,)


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("deploymnts", "deployments.apps"),
        ("confgimaps", "configmaps"),
        ("Secert", "secrets"),
        ("statefullsets.apps", "statefulsets.apps"),
        ("clusterrole", ""),
        ("xyzzy", ""),
    ],
)
def test_a_misspelt_name_is_corrected(name: str, meant: str) -> None:
    assert closest(name, SERVED) == meant


def test_suggestions_are_named_beside_the_names() -> None:
    assert not_served(["deploymnts", "xyzzy"], SERVED) == "deploymnts (did you mean deployments.apps?), xyzzy"


def test_a_request_of_unknown_kinds_alone_is_an_error_and_of_some_a_hint(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(CommandError, match=r"serves none of the kinds to include: deploymnts \(did you mean"):
        judge(BACKUPS, {"includedResources": ["deploymnts"]}, SERVED)
    judge(BACKUPS, {"includedResources": ["deploymnts", "pods"], "excludedResources": ["secrts"]}, SERVED)
    said = capsys.readouterr().err
    assert "hint: not in the backup (not served by the cluster): deploymnts (did you mean deploy" in said
    assert "hint: excluded without effect (not served by the cluster): secrts (did you mean secrets?)" in said
    judge(BACKUPS, {"includedResources": ["*"], "excludedResources": ["sts"]}, SERVED)
    assert capsys.readouterr().err == ""
