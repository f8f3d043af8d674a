"""Which claims have their data in a backup."""

import json

from foresail.proof.checks.contents import SavedClaims, saved_claims

FILES = {"pvcName": "data", "pvcNamespace": "red", "backupMethod": "PodVolumeBackup", "result": "succeeded"}
MOVED = {**FILES, "pvcName": "moved", "backupMethod": "CSISnapshot", "snapshotDataMoved": True}


def test_only_files_and_moved_data_that_succeeded_count() -> None:
    others = [
        {**MOVED, "pvcName": "snapshot", "snapshotDataMoved": False, "result": ""},
        {**FILES, "pvcName": "skipped", "skipped": True},
        {**FILES, "pvcName": "failed", "result": "failed"},
        {**MOVED, "pvcName": "failed", "result": "failed"},
    ]
    found = saved_claims(json.dumps([FILES, MOVED, *others]).encode())
    assert found == SavedClaims((("red", "data"),), (("red", "moved"),))


def test_a_backup_without_volumes_has_none() -> None:
    assert saved_claims(b"null") == saved_claims(b"[]") == SavedClaims()


def test_what_velero_would_not_write_is_no_list() -> None:
    assert saved_claims(b"{") is None
    assert saved_claims(b'[{"pvcName": 1}]') is None
    assert saved_claims(b"[" * 100_000) is None
