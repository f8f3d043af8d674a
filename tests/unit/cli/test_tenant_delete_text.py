"""What `foresail backup delete` and `restore delete` say about data, and about what still runs."""

from typing import Any

import pytest

from foresail.cli.tenant.delete import is_in_own_bucket, what_happens
from foresail.selfservice.families import BACKUPS, RESTORES, Family
from tests.unit.cli.test_tenant import seen


def backup(asked: str | None, made: str | None) -> dict[str, Any]:
    spec = {"backupSpec": {"storageLocation": asked} if asked else {}}
    shown = {"spec": {"storageLocation": made}} if made else {}
    return {"spec": spec, "status": {"veleroBackup": shown}}


@pytest.mark.parametrize(
    ("content", "is_own"),
    [
        (backup("mine", "shop-mine-1b4e28ba"), True),
        (backup("archive", "archive"), False),
        (backup(None, "default"), False),
        (backup("mine", None), False),
        ({}, False),
        ({"spec": {"backupSpec": None}, "status": {"veleroBackup": None}}, False),
    ],
)
def test_a_backup_is_in_an_own_bucket_if_velero_s_location_has_another_name(
    content: dict[str, Any], *, is_own: bool
) -> None:
    assert is_in_own_bucket(content) is is_own


@pytest.mark.parametrize(
    ("family", "phase", "text"),
    [
        (BACKUPS, "Completed", ", including its data"),
        (BACKUPS, "Queued", ", including its data"),
        (BACKUPS, "InProgress", ", including its data, when it has finished: Velero cannot stop it"),
        (BACKUPS, "Finalizing", ", including its data, when it has finished: Velero cannot stop it"),
        (RESTORES, "Completed", "; restored objects stay"),
        (RESTORES, "", "; restored objects stay"),
        (RESTORES, "InProgress", "; Velero goes on restoring and cannot be stopped, and restored objects stay"),
    ],
)
def test_a_deletion_of_what_runs_says_that_it_stops_nothing(family: Family, phase: str, text: str) -> None:
    each = seen(family, status={"phase": "Created", family.reference: {"name": "v", "status": {"phase": phase}}})
    assert what_happens(each, force=False) == text


def test_a_deletion_that_keeps_the_data_says_both() -> None:
    made = {"name": "v", "status": {"phase": "InProgress"}}
    each = seen(status={"phase": "Created", "veleroBackup": made})
    stays = "; its data stays in the bucket, when it has finished: Velero cannot stop it"
    assert what_happens(each, force=True) == stays
