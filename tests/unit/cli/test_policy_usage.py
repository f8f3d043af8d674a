"""`foresail policy usage`: the use of quotas by namespace, the fullest first."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from foresail.cli.main import main
from foresail.selfservice.families import BACKUPS, RESTORES
from tests.unit.cli.canned import Canned, canned
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
    spaces = [namespace(each, team="web") for each in ("bank", "shop", "zoo")] + [namespace("lab"), namespace("velero")]
    lists: dict[str, list[Any]] = {
        "/apis/foresail.dev/v1alpha1/selfservicepolicies": [EVERYONE, WEB],
        "/api/v1/namespaces": spaces,
        f"{velero}/backups": backups,
        f"{velero}/restores": [made(RESTORES, "shop", "r1", "Completed")],
        f"{tenants}/nonadminbackups": [ACCEPTED],
        f"{tenants}/nonadminrestores": [],
    }
    answers: dict[str, Any] = {path: {"metadata": META, "items": items} for path, items in lists.items()}
    with canned(tmp_path, answers) as found:
        yield found


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


def test_one_namespace_and_all_of_them_exclude_each_other(server: Canned, capsys: Capture) -> None:
    assert run(server, "-A", "-n", "shop") == 2
    assert "-n and -A exclude each other" in capsys.readouterr().err
