"""What is kept of a Backup: its labels are there for selectors, and in memory once for all that have the same."""

import msgspec
import pytest

from foresail.api import velero
from foresail.proof.checks.rows import BackupRow, backup_row


def row(name: str, **labels: str) -> BackupRow:
    metadata = {"name": name, "namespace": "velero", "uid": f"{name}-uid", "labels": labels}
    return backup_row(msgspec.json.decode(msgspec.json.encode({"metadata": metadata}), type=velero.Backup))


@pytest.mark.parametrize("labels", [{}, {"team": "red", "empty": ""}, {"team": "red", "of": "first"}])
def test_a_backup_has_its_labels_also_those_with_its_own_name(labels: dict[str, str]) -> None:
    assert row("first", **labels).labels == labels


def test_backups_whose_labels_differ_by_their_names_share_them() -> None:
    first, other = row("first", team="red", of="first"), row("other", team="red", of="other")
    assert first.shared_labels is other.shared_labels
    assert other.labels == {"team": "red", "of": "other"}
    assert row("first", team="red", of="other").labels == {"team": "red", "of": "other"}
