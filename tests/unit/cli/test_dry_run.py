"""`--dry-run=client` sends nothing; `--dry-run=server` lets the API server try the creation and store nothing."""

import json
from pathlib import Path

import pytest

from foresail.cli.main import main
from tests.unit.cli.canned import canned

BACKUPS = "/apis/oadp.openshift.io/v1alpha1/namespaces/shop/nonadminbackups"
MADE = {
    "apiVersion": "oadp.openshift.io/v1alpha1",
    "kind": "NonAdminBackup",
    "metadata": {"name": "daily", "namespace": "shop", "uid": "7"},
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


def test_an_unknown_dry_run_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["schedule", "create", "daily", "--schedule", "0 3 * * *", "--dry-run=maybe"])
    assert ended.value.code == 2
    assert "--dry-run: 'maybe' is not one of client, server" in capsys.readouterr().err
