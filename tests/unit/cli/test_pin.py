"""`foresail backup pin` and `unpin`: what is written, and what is left alone."""

from pathlib import Path
from typing import Any

import pytest

from foresail.api.marks import KEPT
from foresail.cli.main import main
from tests.unit.cli.canned import canned

PATH = "/apis/velero.io/v1/namespaces/velero/backups/"


def backup(phase: str = "Completed", **annotations: str) -> dict[str, Any]:
    found = {f"foresail.dev/{name}": value for name, value in annotations.items()}
    return {"metadata": {"name": "a", "namespace": "velero", "annotations": found}, "status": {"phase": phase}}


def test_pin_writes_the_annotation_and_unpin_removes_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with canned(tmp_path, {f"{PATH}a": backup(), f"{PATH}b": backup(pinned="true")}) as server:
        where = f"--kubeconfig={server.kubeconfig}"
        assert main(["backup", "pin", "a", "b", "a", where]) == 0
        assert server.writes == [f"PATCH {PATH}a"]
        assert server.bodies[f"PATCH {PATH}a"] == {"metadata": {"annotations": KEPT}}
        said = capsys.readouterr().err
        assert "Backup a pinned" in said
        assert "Backup b is already pinned, skip" in said
        assert main(["backup", "unpin", "b", where]) == 0
    assert server.bodies[f"PATCH {PATH}b"] == {"metadata": {"annotations": {"foresail.dev/pinned": None}}}


def test_nothing_is_pinned_if_one_name_is_wrong(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with canned(tmp_path, {f"{PATH}a": backup()}) as server:
        assert main(["backup", "pin", "a", "missing", f"--kubeconfig={server.kubeconfig}"]) == 1
    assert server.writes == []
    assert "missing" in capsys.readouterr().err


def test_a_backup_that_is_being_deleted_is_pinned_with_a_hint(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with canned(tmp_path, {f"{PATH}a": backup("Deleting")}) as server:
        assert main(["backup", "pin", "a", f"--kubeconfig={server.kubeconfig}"]) == 0
    assert "Velero is deleting Backup a already" in capsys.readouterr().err
