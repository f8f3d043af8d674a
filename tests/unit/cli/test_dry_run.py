"""`--dry-run=client` sends nothing; `--dry-run=server` lets the API server try the write and store nothing."""

import json
from pathlib import Path
from typing import Any

import pytest

from foresail.api.marks import KEPT
from foresail.cli.main import main
from tests.unit.cli.canned import canned

BACKUPS = "/apis/oadp.openshift.io/v1alpha1/namespaces/shop/nonadminbackups"
RESTORE = "/apis/oadp.openshift.io/v1alpha1/namespaces/shop/nonadminrestores/daily"
SCHEDULE = "/apis/velero.io/v1/namespaces/shop/schedules/daily"
VELERO_BACKUP = "/apis/velero.io/v1/namespaces/shop/backups/daily"
PRIMER = "/apis/foresail.dev/v1alpha1/namespaces/shop/primers/daily"
MADE = {
    "apiVersion": "oadp.openshift.io/v1alpha1",
    "kind": "NonAdminBackup",
    "metadata": {"name": "daily", "namespace": "shop", "uid": "7", "creationTimestamp": "2026-11-01T00:00:00Z"},
}


def test_a_server_dry_run_creates_with_dry_run_all_and_shows_what_the_server_made_of_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with canned(tmp_path, {BACKUPS: MADE}) as server:
        words = ["backup", "create", "daily", "-n", "shop", f"--kubeconfig={server.kubeconfig}", "-o", "json"]
        assert main([*words, "--dry-run=server"]) == 0
    sent = [query for asked, query in zip(server.asked, server.queries, strict=True) if asked == f"POST {BACKUPS}"]
    assert sent == [{"dryRun": ["All"]}]
    said = capsys.readouterr()
    assert json.loads(said.out)["metadata"]["uid"] == "7"
    assert "NonAdminBackup shop/daily would be created (server dry run)." in said.err


@pytest.mark.parametrize("option", ["--dry-run", "--dry-run=client"])
def test_a_client_dry_run_needs_no_cluster(option: str, capsys: pytest.CaptureFixture[str]) -> None:
    for words in (["backup", "create", "daily"], ["schedule", "create", "daily", "--schedule", "0 3 * * *"]):
        assert main([*words, "-n", "shop", "--kubeconfig=missing", option, "-o", "json"]) == 0
        assert json.loads(capsys.readouterr().out)["metadata"]["name"] == "daily"


@pytest.mark.parametrize(
    ("words", "path", "sent"),
    [
        (["schedule", "pause", "daily"], SCHEDULE, {"spec": {"paused": True}}),
        (["schedule", "delete", "daily"], SCHEDULE, None),
        (["backup", "delete", "daily"], f"{BACKUPS}/daily", {"metadata": {"uid": "7"}, "spec": {"deleteBackup": True}}),
        (["backup", "pin", "daily"], VELERO_BACKUP, {"metadata": {"annotations": KEPT}}),
        (["restore", "delete", "daily"], RESTORE, None),
        (["primer", "suspend", "daily"], PRIMER, {"spec": {"suspend": True}}),
        (["primer", "delete", "daily"], PRIMER, None),
    ],
    ids=lambda given: " ".join(given[:2]) if isinstance(given, list) else "",
)
def test_changes_can_be_tried_by_the_client_and_by_the_server(
    words: list[str], path: str, sent: dict[str, Any] | None, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    stored = {**MADE, "spec": {"schedule": "0 3 * * *"}}
    with canned(tmp_path, {path: stored}) as server:
        command = [*words, "-n", "shop", f"--kubeconfig={server.kubeconfig}"]
        assert main([*command, "--dry-run=client", "-o", "json"]) == 0
        assert server.writes == []
        method = "DELETE" if sent is None else "PATCH"
        body = {} if sent is None else {"body": sent}
        assert json.loads(capsys.readouterr().out) == [{"method": method, "path": path, **body}]
        assert main([*command, "--dry-run=server"]) == 0
    assert capsys.readouterr().err.rstrip().endswith("(server dry run)")
    (write,) = [each for each in server.writes if "selfsubjectreviews" not in each]
    assert write == f"{method} {path}"
    if sent is None:
        assert server.bodies[write]["dryRun"] == ["All"]
    else:
        assert server.queries[server.asked.index(write)] == {"dryRun": ["All"]}


def test_an_unknown_dry_run_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["schedule", "create", "daily", "--schedule", "0 3 * * *", "--dry-run=maybe"])
    assert ended.value.code == 2
    assert "--dry-run: 'maybe' is not one of client, server" in capsys.readouterr().err
