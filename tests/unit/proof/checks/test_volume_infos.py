"""Which claims have their data in a backup."""

import json

from foresail.proof.checks.volume_infos import claims_with_files

FILES = {"pvcName": "data", "pvcNamespace": "red", "backupMethod": "PodVolumeBackup", "result": "succeeded"}


def test_only_a_file_system_backup_that_succeeded_counts() -> None:
    others = [
        {**FILES, "pvcName": "snapshot", "backupMethod": "CSISnapshot"},
        {**FILES, "pvcName": "skipped", "skipped": True},
        {**FILES, "pvcName": "failed", "result": "failed"},
    ]
    assert claims_with_files(json.dumps([FILES, *others]).encode()) == (("red", "data"),)


def test_a_backup_without_volumes_has_none() -> None:
    assert claims_with_files(b"null") == claims_with_files(b"[]") == ()


def test_what_velero_would_not_write_is_no_list() -> None:
    assert claims_with_files(b"{") is None
    assert claims_with_files(b'[{"pvcName": 1}]') is None
    assert claims_with_files(b"[" * 100_000) is None
