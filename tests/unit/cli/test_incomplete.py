"""A complete backup that lacks data is amber: in lists, under --fail-on incomplete, and where a copy is chosen."""

from pathlib import Path
from typing import Any

import pytest

from foresail.cli.main import main
from foresail.cli.tenant.tenant_request import restorable
from foresail.console.layout import Search
from foresail.console.pages import requests_table, status_badge
from foresail.console.restore_pages import Copies, choose
from tests.unit.cli.canned import canned
from tests.unit.console.test_console import copy_of
from tests.unit.console.test_console_restore import SITE, copies, decoded
from tests.unit.console.test_report import NOW

PATH = "/apis/oadp.openshift.io/v1alpha1/namespaces/shop/nonadminbackups"
MESSAGE = "Completed, but 1 of 1 volume was not backed up: ledger"


def lacking(name: str, day: int = 9, reason: str = "VolumesLeftOut") -> dict[str, Any]:
    body = copy_of(name, day=day)
    found = [
        {"type": "Succeeded", "status": "True", "reason": "Completed", "message": "Backup completed"},
        {"type": "DataIncomplete", "status": "True", "reason": reason, "message": MESSAGE},
    ]
    body["status"]["conditions"] = found
    return body


def test_lists_show_that_a_backup_lacks_data(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with canned(tmp_path, {PATH: {"items": [lacking("third")], "metadata": {}}}) as server:
        assert main(["backup", "get", "-n", "shop", f"--kubeconfig={server.kubeconfig}"]) == 0
    row = capsys.readouterr().out.splitlines()[1].split(maxsplit=5)
    assert row[1] == "Incomplete"
    assert " ".join(row).endswith("volumes left out")
    backup = decoded(lacking("third"))
    assert "warn" in status_badge(backup)
    page = requests_table(SITE, "Backups", [backup], NOW)
    assert "good" not in page
    assert MESSAGE in page


@pytest.mark.parametrize(
    ("reason", "option", "code"),
    [
        ("VolumesLeftOut", [], 0),
        ("VolumesLeftOut", ["--fail-on=incomplete"], 1),
        ("KindsNotServed", ["--fail-on=incomplete"], 1),
        ("NothingBackedUp", [], 1),
    ],
)
def test_a_wait_fails_on_what_a_backup_lacks(
    reason: str, option: list[str], code: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with canned(tmp_path, {f"{PATH}/third": lacking("third", reason=reason)}) as server:
        command = ["backup", "wait", "third", "-n", "shop", f"--kubeconfig={server.kubeconfig}", *option]
        assert main(command) == code
    assert (f"error: NonAdminBackup shop/third: {MESSAGE}" in capsys.readouterr().err) is bool(code)


def test_a_copy_that_lacks_data_is_never_chosen_before_the_viewer_has() -> None:
    found = restorable([*copies(3), decoded(lacking("newest"))], NOW)
    page = choose(SITE, "shop", Copies(found, may_restore=True, may_plan=True), "", Search(), NOW)
    assert 'value="copy-3" checked' in page
    assert MESSAGE in page
    page = choose(SITE, "shop", Copies(found[:1], may_restore=True, may_plan=True), "", Search(), NOW)
    assert 'name="backup" value="newest" required' in page
    page = choose(SITE, "shop", Copies(found, may_restore=True, may_plan=True), "newest", Search(), NOW)
    assert 'value="newest" checked' in page, "the viewer has"
