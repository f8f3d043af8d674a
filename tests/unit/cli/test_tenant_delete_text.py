"""What `foresail backup delete` says about the data of a backup."""

from typing import Any

import pytest

from foresail.cli.tenant.delete import is_in_own_bucket


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
