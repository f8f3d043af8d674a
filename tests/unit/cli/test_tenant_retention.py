"""What a tenant sees of deletions by `keepLast`: when a backup goes, how to keep it, and how to approve a list."""

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec
import pytest

from foresail.api.marks import DELETE_AFTER, DELETE_REASON, KEPT, PINNED, RETENTION_APPROVED, SCHEDULE_UID, SLOT
from foresail.api.policy import SelfServicePolicy
from foresail.cli.main import main
from foresail.cli.policy.reach import problems
from foresail.cli.tenant.delete import request_for
from foresail.cli.tenant.describe import described
from foresail.cli.tenant.get import request_table
from foresail.cli.tenant.tenant_request import TenantRequest, decode_request
from foresail.deletion import approved
from foresail.selfservice.families import BACKUPS
from tests.unit.cli.canned import canned
from tests.unit.cli.test_tenant_schedule import wire

Capture = pytest.CaptureFixture[str]
NOW = datetime(2026, 11, 15, 12, 0, 30, tzinfo=UTC)
API = "/apis/oadp.openshift.io/v1alpha1/namespaces/shop"
BACKUPS_PATH, SCHEDULE = f"{API}/nonadminbackups", f"{API}/nonadminschedules/nightly"
WHY = "keepLast 1 keeps newer ones"
TIMED = {DELETE_REASON: WHY, DELETE_AFTER: "2026-11-16T03:00:00Z"}


def backup(day: int, **annotations: str) -> dict[str, Any]:
    name = f"nightly-202611{day:02}030000"
    marks = {SCHEDULE_UID: "7b7c", SLOT: f"2026-11-{day:02}T03:00:00Z", **annotations}
    metadata = {"name": name, "namespace": "shop", "uid": f"uid-{day}", "annotations": marks}
    created = {"creationTimestamp": f"2026-11-{day:02}T03:00:00Z"}
    velero = {"name": "v", "namespace": "velero", "status": {"phase": "Completed"}}
    return {"metadata": {**metadata, **created}, "spec": {}, "status": {"phase": "Created", "veleroBackup": velero}}


def seen(content: dict[str, Any]) -> TenantRequest:
    return decode_request(BACKUPS, json.dumps(content).encode())


def test_get_and_describe_show_when_a_backup_goes() -> None:
    marked, asked = seen(backup(13, **TIMED)), seen(backup(12, **{DELETE_REASON: WHY}))
    wide = request_table([marked, asked], NOW, wide=True)
    assert f"deleted after 2026-11-16T03:00:00Z: {WHY}" in wide
    assert f"waits for approval: {WHY}" in wide
    assert "deleted after 2026-11-16T03:00:00Z" in request_table([marked], NOW, wide=False)
    text = described(marked, NOW)
    assert f"{WHY}. To keep it: foresail backup keep nightly-20261113030000" in text
    assert "not announced" in described(seen(backup(14)), NOW)
    assert "never by keepLast" in described(seen(backup(14, **{PINNED: "true"})), NOW)


def test_keep_takes_a_deletion_back_and_undo_lets_it_happen(tmp_path: Path, capsys: Capture) -> None:
    path = f"{BACKUPS_PATH}/nightly-20261113030000"
    with canned(tmp_path, {path: backup(13, **TIMED)}) as server:
        where = [f"--kubeconfig={server.kubeconfig}", "-n", "shop"]
        assert main(["backup", "keep", "nightly-20261113030000", *where]) == 0
        assert server.bodies[f"PATCH {path}"] == {"metadata": {"uid": "uid-13", "annotations": KEPT}}
        assert main(["backup", "keep", "nightly-20261113030000", "--undo", *where]) == 0
        assert server.bodies[f"PATCH {path}"] == {"metadata": {"uid": "uid-13", "annotations": {PINNED: None}}}
    assert "NonAdminBackup nightly-20261113030000 kept" in capsys.readouterr().err


def test_delete_ends_that_a_backup_is_kept() -> None:
    request = request_for(seen(backup(14, **{PINNED: "true"})), force=False)
    assert request.body == {
        "metadata": {"uid": "uid-14", "annotations": {PINNED: None}},
        "spec": {"deleteBackup": True},
    }


def test_a_list_is_shown_and_approved_by_its_digest(tmp_path: Path, capsys: Capture) -> None:
    items = [backup(15), backup(14, **TIMED), *(backup(day, **{DELETE_REASON: WHY}) for day in (12, 13))]
    asking = wire()
    asking["status"]["observed"] = {"record": '{"schedule": "0 3 * * *", "asks": "keepLast 1"}'}
    with canned(tmp_path, {BACKUPS_PATH: {"metadata": {}, "items": items}, SCHEDULE: asking}) as server:
        command = ["backup", "schedule", "retention", "nightly", f"--kubeconfig={server.kubeconfig}", "-n", "shop"]
        assert main(command) == 0
        text = capsys.readouterr().out
        assert "keeps 1 and deletes 3 backups" in text
        assert f"waits for approval: {WHY}" in text
        assert main([*command, "-o", "json"]) == 0
        (data,) = json.loads(capsys.readouterr().out)
        assert data["list"] in text
        assert main([*command, "--approve", "another"]) == 1
        assert not server.writes
        assert main([*command, "--approve", data["list"]]) == 0
    annotations = server.bodies[f"PATCH {SCHEDULE}"]["metadata"]["annotations"]
    assert len(approved(annotations[RETENTION_APPROVED], "keepLast 1")) == 2
    assert not approved(annotations[RETENTION_APPROVED], "keepLast 2")
    assert "deletion of 2 backups approved" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("age", "interval", "is_found"), [("720h", "1h", True), ("720h", "24h", True), ("168h", "24h", False)]
)
def test_a_policy_whose_runs_are_too_young_to_make_room_is_found(age: str, interval: str, *, is_found: bool) -> None:
    schedules = {"keepLast": 7, "maximum": 1, "minimumInterval": interval}
    spec = {"namespaceSelector": {}, "quotas": {"stored": 10}, "schedules": schedules, "deletion": {"minimumAge": age}}
    policy = msgspec.convert({"metadata": {"name": "p"}, "spec": spec}, SelfServicePolicy)
    assert any("minimumAge" in text for text in problems(policy, None, None, {})) == is_found


@pytest.mark.parametrize(
    ("stored", "schedules", "good", "count"),
    [
        (1, {"keepLast": 3}, 0, 1),
        (2, {"keepLast": 3, "maximum": 1}, 0, 1),
        (3, {"keepLast": 3, "maximum": 1}, 0, 0),
        (2, {"keepLast": 1, "maximum": 1}, 0, 1),
        (3, {"keepLast": 1, "maximum": 1}, 0, 0),
        (4, {"keepLast": 3, "maximum": 1}, 3, 1),
        (5, {"keepLast": 3, "maximum": 1}, 3, 0),
        (6, {"keepLast": 3, "maximum": 3}, 0, 1),
        (5, {"keepLast": 3}, 0, 1),
        (20, {"keepLast": 7, "maximum": 3}, 0, 0),
        (1, {"maximum": 3}, 0, 0),
        (1, {"keepLast": 3, "maximum": 0}, 0, 0),
    ],
)
def test_policies_whose_schedules_would_stop_at_the_quota_are_found(
    stored: int, schedules: dict[str, int], good: int, count: int
) -> None:
    spec = {"namespaceSelector": {}, "quotas": {"stored": stored}, "schedules": schedules}
    body = {"metadata": {"name": "p"}, "spec": {**spec, "deletion": {"keepLastGood": good}}}
    policy = msgspec.convert(body, SelfServicePolicy)
    assert len([text for text in problems(policy, None, None, {}) if "quotas.stored" in text]) == count
