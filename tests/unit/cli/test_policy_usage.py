"""`foresail policy usage`: the use of quotas by namespace, the fullest first."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from foresail.cli.access.operators import OPERATORS
from foresail.cli.main import main
from foresail.selfservice.families import BACKUPS, RESTORES, Family
from tests.unit.cli.canned import Canned, canned
from tests.unit.cli.test_coverage import REVIEWS
from tests.unit.cli.test_policy_get import ACCEPTED, Capture, made, namespace, policy

WEB = policy("web", {"team": "web"}, priority=5, quotas={"stored": 4, "active": 2, "restores": {"stored": 9}})
EVERYONE = policy("everyone")
META = {"resourceVersion": "7"}


def started(of: dict[str, Any], at: str) -> dict[str, Any]:
    return {**of, "status": {**of["status"], "startTimestamp": at}}


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Canned]:
    velero, tenants = "/apis/velero.io/v1/namespaces/velero", "/apis/oadp.openshift.io/v1alpha1"
    backups = [
        started(made(BACKUPS, "shop", "b1", "Completed"), "2026-01-01T00:00:00Z"),
        started(made(BACKUPS, "shop", "b2", "InProgress"), "2026-03-01T00:00:00Z"),
        made(BACKUPS, "bank", "b4", "Completed"),
    ]
    spaces = [namespace(each, team="web") for each in ("bank", "shop", "zoo")]
    spaces += [namespace("lab"), namespace("velero"), namespace("ops")]
    lists: dict[str, list[Any]] = {
        "/apis/foresail.dev/v1alpha1/selfservicepolicies": [EVERYONE, WEB],
        "/api/v1/namespaces": spaces,
        "/apis/apps/v1/deployments": [{"metadata": {"name": "foresail", "namespace": "ops"}}],
        f"{velero}/backups": backups,
        f"{velero}/restores": [made(RESTORES, "shop", "r1", "Completed")],
        f"{tenants}/nonadminbackups": [ACCEPTED],
        f"{tenants}/nonadminrestores": [],
        f"{tenants}/namespaces/shop/nonadminbackups": [ACCEPTED],
    }
    answers: dict[str, Any] = {path: {"metadata": META, "items": items} for path, items in lists.items()}
    answers |= {f"/api/v1/namespaces/{each['metadata']['name']}": each for each in spaces}
    answers[REVIEWS] = {"status": {"allowed": True}}
    with canned(tmp_path, answers) as found:
        yield found


def of_shop(family: Family, name: str, phase: str) -> dict[str, Any]:
    mirror = {"nacuuid": f"v-{name}", "name": f"v-{name}", "status": {"phase": phase}}
    return {"metadata": {"name": name, "namespace": "shop"}, "status": {family.reference: mirror}}


@pytest.mark.parametrize("may_read_policy", [True, False])
def test_a_tenant_reads_the_use_of_the_own_namespace(tmp_path: Path, capsys: Capture, *, may_read_policy: bool) -> None:
    waiting = {"metadata": {"name": "waits", "namespace": "shop"}, "status": {"phase": "New"}}
    backups = [of_shop(BACKUPS, "a", "Completed"), of_shop(BACKUPS, "b", "InProgress"), ACCEPTED, waiting]
    own = "/apis/oadp.openshift.io/v1alpha1/namespaces/shop"

    def review(_: str, sent: dict[str, Any]) -> dict[str, Any]:
        asked = sent["spec"]["resourceAttributes"]
        is_policy = asked["resource"] in ("selfservicepolicies", "namespaces")
        return {"status": {"allowed": may_read_policy if is_policy else asked["namespace"] == "shop"}}

    answers: dict[str, Any] = {
        REVIEWS: review,
        "/apis/foresail.dev/v1alpha1/selfservicepolicies": {"metadata": META, "items": [EVERYONE, WEB]},
        "/api/v1/namespaces/shop": namespace("shop", team="web"),
        f"{own}/nonadminbackups": {"metadata": META, "items": backups},
        f"{own}/nonadminrestores": {"metadata": META, "items": [of_shop(RESTORES, "r", "Completed")]},
    }
    with canned(tmp_path, answers) as server:
        assert run(server, "-n", "shop") == 0
    said = capsys.readouterr()
    row = said.out.splitlines()[1].split()
    left_out = "what Velero has without a request in this namespace, and backups deleted by force"
    assert f"hint: not counted in namespace shop: {left_out}" in said.err
    reads = [each.removeprefix("GET ") for each in server.asked if each.startswith("GET ")]
    assert set(reads) <= set(answers)
    if may_read_policy:
        assert row[:12] == ["shop", "web", "100%", "3", "of", "4", "2", "of", "2", "1", "of", "9"]
    else:
        assert row[:6] == ["shop", "<unknown>", "-", "3", "2", "1"]
        assert "the quotas of namespace shop are unknown: you may not list selfservicepolicies" in said.err
        assert reads == [f"{own}/nonadminbackups", f"{own}/nonadminrestores"]


def run(server: Canned, *words: str) -> int:
    return main(["policy", "usage", *words, "--kubeconfig", str(server.kubeconfig)])


def test_all_namespaces_are_sorted_by_how_close_they_are_to_a_limit(server: Canned, capsys: Capture) -> None:
    assert run(server, "-A") == 0
    header, *rows = capsys.readouterr().out.splitlines()
    assert header.split() == ["NAMESPACE", "POLICY", "USED", "BACKUPS", "ACTIVE", "RESTORES", "NEWEST"]
    assert [row.split()[:3] for row in rows] == [
        ["shop", "web", "100%"],
        ["bank", "web", "25%"],
        ["lab", "everyone", "-"],
        ["zoo", "web", "0%"],
    ]
    assert rows[0].split()[3:9] == ["3", "of", "4", "2", "of", "2"]
    assert server.writes == []


def test_the_output_is_bounded_and_says_so(server: Canned, capsys: Capture) -> None:
    assert run(server, "-A", "--limit", "1") == 0
    said = capsys.readouterr()
    assert len(said.out.splitlines()) == 2
    assert said.err == "3 more namespaces; list all with --limit 0\n"
    assert run(server, "-A", "--limit", "0") == 0
    assert len(capsys.readouterr().out.splitlines()) == 5


def test_programs_get_numbers_and_instants_of_one_namespace(server: Canned, capsys: Capture) -> None:
    assert run(server, "-n", "shop", "-o", "json") == 0
    assert json.loads(capsys.readouterr().out) == [
        {
            "namespace": "shop",
            "policy": "web",
            "fullest": 1.0,
            "quotas": {
                "stored": {"used": 3, "limit": 4},
                "active": {"used": 2, "limit": 2},
                "restores.stored": {"used": 1, "limit": 9},
                "restores.active": {"used": 0, "limit": None},
            },
            "oldestBackup": "2026-01-01T00:00:00Z",
            "newestBackup": "2026-03-01T00:00:00Z",
        }
    ]
    assert run(server, "-n", "velero", "-o", "wide") == 0
    assert capsys.readouterr().out.splitlines()[1].split()[:3] == ["velero", "<none>", "-"]


def test_requests_are_listed_in_the_one_namespace_only(server: Canned) -> None:
    assert run(server, "-n", "shop") == 0
    tenants = "/apis/oadp.openshift.io/v1alpha1"
    assert f"GET {tenants}/namespaces/shop/nonadminbackups" in server.asked
    assert f"GET {tenants}/nonadminbackups" not in server.asked


def test_namespace_of_the_context_is_named_with_the_way_to_all(server: Canned, capsys: Capture) -> None:
    assert run(server) == 0
    said = capsys.readouterr()
    assert said.out.splitlines()[1].split()[:2] == ["default", "<none>"]
    expected = "hint: only namespace default, that of your kube context, is shown; -A shows all with a policy\n"
    assert said.err == expected
    assert run(server, "-n", "shop") == 0
    assert capsys.readouterr().err == ""


def test_namespace_of_the_operator_is_found_by_its_deployment(server: Canned, capsys: Capture) -> None:
    assert run(server, "-A", "-o", "json") == 0
    shown = [each["namespace"] for each in json.loads(capsys.readouterr().out)]
    assert "ops" not in shown, "the operator runs there, so no policy applies"
    assert {"labelSelector": [OPERATORS], "limit": ["500"]} in server.queries
    assert run(server, "-A", "-o", "json", "--operator-namespace", "zoo") == 0
    shown = [each["namespace"] for each in json.loads(capsys.readouterr().out)]
    assert "ops" in shown
    assert "zoo" not in shown


def test_without_the_right_to_list_deployments_the_option_is_named(tmp_path: Path, capsys: Capture) -> None:
    lists = {
        "/apis/foresail.dev/v1alpha1/selfservicepolicies": [EVERYONE],
        "/api/v1/namespaces": [namespace("lab")],
    }
    with canned(tmp_path, {path: {"metadata": META, "items": items} for path, items in lists.items()}) as cluster:
        assert run(cluster, "-A") == 0
    said = capsys.readouterr().err
    assert "hint: the operator's namespace is not known (" in said
    assert "specify it with --operator-namespace" in said


def test_one_namespace_and_all_of_them_exclude_each_other(server: Canned, capsys: Capture) -> None:
    assert run(server, "-A", "-n", "shop") == 2
    assert "-n and -A exclude each other" in capsys.readouterr().err
