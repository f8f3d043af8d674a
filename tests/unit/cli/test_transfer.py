"""How far the data of volumes is, in figures."""

import io
from datetime import UTC, datetime, timedelta
from math import inf, isfinite
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from foresail.cli.main import main
from foresail.cli.output.progress import Bar, Status, bar
from foresail.cli.output.words import RECENT, Throughput, Transfer, remaining, size, transfer_of, transfer_text
from foresail.cli.tenant.describe import described
from foresail.cli.tenant.get import request_table, why
from foresail.cli.tenant.tenant_request import TenantRequest
from foresail.cli.tenant.wait import progress_of
from foresail.console.pages import data_bar
from foresail.selfservice.families import BACKUPS, RESTORES, Family
from tests.unit.cli.canned import canned
from tests.unit.cli.made_up import schedule_wire
from tests.unit.cli.test_schedule_messages import Terminal
from tests.unit.cli.test_tenant import condition, seen

MIB, GIB = 1 << 20, 1 << 30
NOW = datetime(2026, 11, 18, 12, tzinfo=UTC)


def at(seconds: float) -> datetime:
    return NOW + timedelta(seconds=seconds)


@pytest.mark.parametrize(
    ("count", "text"),
    [
        (0, "0 B"),
        (7, "7 B"),
        (1023, "1023 B"),
        (1023.9, "1 KiB"),
        (1024, "1 KiB"),
        (1536, "1.5 KiB"),
        (1023 * MIB, "1023 MiB"),
        (1.66 * GIB, "1.66 GiB"),
        (28 * MIB, "28 MiB"),
        (12.34 * MIB, "12.3 MiB"),
        (100 * MIB, "100 MiB"),
        (5000 * (1 << 50), "5000 PiB"),
    ],
)
def test_a_size_is_in_the_largest_unit_that_it_fills(count: float, text: str) -> None:
    assert size(count) == text


def test_the_counts_of_a_status_add_up() -> None:
    moved = {"total": 2, "inProgress": 1, "completed": 1, "bytesDone": GIB, "totalBytes": 2 * GIB}
    copied = {"total": 2, "new": 1, "prepared": 1}
    assert transfer_of(moved, copied) == Transfer(GIB, 2 * GIB, waiting=2)
    assert transfer_of(moved, None) == Transfer(GIB, 2 * GIB)
    assert transfer_of({"totalBytes": 5}) == Transfer(0, 5)


@pytest.mark.parametrize("counts", [None, {}, {"total": 2}, {"bytesDone": 4}, {"bytesDone": -4, "totalBytes": 3}])
def test_without_bytes_there_is_nothing_to_show(counts: dict[str, int] | None) -> None:
    assert transfer_of(counts) is None


def test_the_line_has_bytes_throughput_and_the_time_left() -> None:
    transfer = Transfer(int(0.8 * GIB), int(1.66 * GIB))
    assert transfer_text(transfer) == "0.8 of 1.66 GiB"
    assert transfer_text(transfer, 28 * MIB) == "0.8 of 1.66 GiB, 28 MiB/s, 31s left"


def test_no_time_is_promised_while_the_size_of_a_volume_is_unknown() -> None:
    assert transfer_text(Transfer(GIB, 2 * GIB, waiting=1), 28 * MIB) == "1 of at least 2 GiB, 28 MiB/s"


def test_the_throughput_is_that_between_changes_that_were_seen_to_come() -> None:
    meter = Throughput()
    assert meter.observe(Transfer(9 * MIB, GIB), at(0)) is None
    assert meter.observe(Transfer(10 * MIB, GIB), at(1)) is None, "the first figure may be of long before"
    assert meter.observe(Transfer(10 * MIB, GIB), at(5)) is None
    assert meter.observe(Transfer(110 * MIB, GIB), at(11)) == 10 * MIB
    assert meter.observe(Transfer(110 * MIB, GIB), at(16)) == 10 * MIB, "Velero reports every ten seconds"


def test_the_throughput_is_that_of_the_last_changes() -> None:
    meter = Throughput()
    slow = [meter.observe(Transfer(second * MIB, GIB), at(second)) for second in range(0, 100, 10)]
    assert slow[-1] == MIB
    fast = [meter.observe(Transfer((5 * second - 360) * MIB, GIB), at(second)) for second in range(100, 160, 10)]
    assert fast[-1] == 5 * MIB


def test_data_that_does_not_move_has_no_throughput() -> None:
    meter = Throughput()
    for second in (0, 10, 20):
        meter.observe(Transfer(second * MIB, GIB), at(second))
    assert meter.observe(Transfer(20 * MIB, GIB), at(45)) == MIB
    assert meter.observe(Transfer(20 * MIB, GIB), at(21) + RECENT) is None


def test_another_transfer_begins_anew() -> None:
    meter = Throughput()
    for second in (0, 10, 20):
        meter.observe(Transfer(second * MIB, GIB), at(second))
    assert meter.observe(Transfer(MIB, GIB), at(30)) is None
    assert meter.observe(None, at(40)) is None
    assert meter.observe(Transfer(5 * MIB, GIB), at(50)) is None


_ANY = st.builds(Transfer, st.integers(0, 1 << 63), st.integers(1, 1 << 63), waiting=st.integers(0, 3)) | st.none()


@given(st.lists(st.tuples(_ANY, st.floats(-10, 100)), max_size=20))
def test_whatever_is_observed_gives_a_line(observed: list[tuple[Transfer | None, float]]) -> None:
    meter = Throughput()
    now = NOW
    for transfer, seconds in observed:
        now += timedelta(seconds=seconds)
        rate = meter.observe(transfer, now)
        assert rate is None or (isfinite(rate) and rate > 0)
        if transfer is not None:
            assert transfer_text(transfer, rate)


def test_an_absurd_time_is_not_shown() -> None:
    assert remaining(Transfer(0, 1 << 62), 1e-9) is None
    assert remaining(Transfer(0, 1), inf) == timedelta(0)


# Where it is shown


MOVING = {"total": 3, "completed": 1, "inProgress": 2, "bytesDone": int(0.8 * GIB), "totalBytes": int(1.66 * GIB)}


def running(family: Family = BACKUPS, phase: str = "InProgress", **counts: Any) -> TenantRequest:  # noqa: ANN401 - JSON
    """Return a request of which Velero has begun the items, and moves the data of volumes."""
    mirror = {"phase": phase, "progress": {"totalItems": 29}}
    said = condition("Succeeded", "Unknown", "Running", f"{family.word.capitalize()} is {phase}")
    return seen(
        family,
        status={"phase": "Created", family.reference: {"name": "v", "status": mirror}, "conditions": [said], **counts},
    )


def test_the_bar_is_about_bytes_while_data_is_moved_and_about_items_before_and_after() -> None:
    each = running(fileSystemPodVolumeBackups=MOVING)
    transfer = each.transfer
    assert bar(progress_of(each), transfer, 28 * MIB) == (
        "████░░░░░░  48 %  0.8 of 1.66 GiB, 28 MiB/s, 31s left  InProgress"
    )
    assert "0 of 29 items" in bar(progress_of(each))
    assert "0 of 29 items" in bar(progress_of(each), Transfer(GIB, GIB), 28 * MIB)


def test_no_share_is_shown_of_a_total_that_is_not_known() -> None:
    assert bar(Status("InProgress"), Transfer(GIB, 2 * GIB, waiting=1)) == "1 of at least 2 GiB  InProgress"


def test_a_restore_shows_its_bytes_too() -> None:
    assert running(RESTORES, dataMoverDataDownloads=MOVING).transfer == Transfer(int(0.8 * GIB), int(1.66 * GIB))
    assert running(RESTORES, fileSystemPodVolumeRestores=MOVING).transfer is not None


def test_bytes_that_an_operator_has_left_in_a_status_are_not_shown_once_it_has_ended() -> None:
    assert running(phase="Completed", dataMoverDataUploads=MOVING).transfer is None


def test_lists_and_details_have_the_bytes() -> None:
    each = running(fileSystemPodVolumeBackups=MOVING)
    assert why(each, in_full=False) == "0.8 of 1.66 GiB"
    assert why(each, in_full=True) == "Running: Backup is InProgress, 0.8 of 1.66 GiB"
    assert "0.8 of 1.66 GiB" in request_table([each], NOW, wide=False)
    lines = [" ".join(line.split()) for line in described(each, NOW).splitlines()]
    assert "Data: 0.8 of 1.66 GiB" in lines
    assert "Volumes Copied: 1 completed, 2 inProgress, 3 total" in lines
    assert "0.8 of 1.66 GiB" in str(data_bar(Transfer(int(0.8 * GIB), int(1.66 * GIB))))


def test_a_line_never_turns_on_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "30")
    terminal, file = Terminal(), io.StringIO()
    for stream in (terminal, file):
        Bar(stream).show(Status("WaitingForPluginOperations"), Transfer(1, 2 * GIB))
    assert len(terminal.getvalue()) == 30  # a return, and one column less than it has
    assert file.getvalue() == "░░░░░░░░░░   0 %  0 of 2 GiB  WaitingForPluginOperations\n"


# A Velero Backup, for its administrator

VELEROS = "/apis/velero.io/v1/namespaces/velero"
UPLOADS = "/apis/velero.io/v2alpha1/namespaces/velero/datauploads"
FORBIDDEN = {"kind": "Status", "reason": "Forbidden", "message": "no", "code": 403}


def copy(name: str, phase: str, bytes_done: int, total_bytes: int) -> dict[str, Any]:
    """Return a PodVolumeBackup as the API server lists it."""
    status = {"phase": phase, "progress": {"bytesDone": bytes_done, "totalBytes": total_bytes}}
    labels = {"velero.io/backup-name": "b"}
    return {"metadata": {"name": name, "namespace": "velero", "uid": name, "labels": labels}, "status": status}


@pytest.mark.parametrize("copies", [True, False])
def test_the_wait_for_a_run_has_bytes_if_they_may_be_read(
    *, copies: bool, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def backup(phase: str) -> dict[str, Any]:
        status = {"phase": phase, "progress": {"totalItems": 4, "itemsBackedUp": 1}}
        return {"metadata": {"name": "b", "namespace": "velero"}, "status": status}

    items = [copy("data", "InProgress", GIB, 2 * GIB), copy("logs", "Completed", 0, 0)]
    states = map(backup, ("New", "InProgress", "InProgress", "Completed"))
    answers = {
        f"{VELEROS}/backups/b": lambda *_: next(states),
        f"{VELEROS}/schedules/daily": schedule_wire(),
        f"{VELEROS}/backups": lambda _, sent: sent or {"metadata": {}, "items": []},
        f"{VELEROS}/podvolumebackups": {"metadata": {}, "items": items} if copies else FORBIDDEN,
        UPLOADS: FORBIDDEN,
    }
    words = ["schedule", "run", "daily", "-n", "velero", "--backup-name", "b", "--wait"]
    with canned(tmp_path, answers) as server:
        assert main([*words, "--kubeconfig", str(server.kubeconfig)]) == 0
    shown = "█████░░░░░  50 %  1 of 2 GiB  InProgress" if copies else "1 of 4 items  InProgress"
    assert shown in capsys.readouterr().err
    assert server.asked.count(f"GET {UPLOADS}") == 1
    assert sum(each.get("labelSelector") == ["velero.io/backup-name=b"] for each in server.queries) == 2
