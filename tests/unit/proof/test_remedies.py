"""What closes the gap of a claim that is left out: what would save its data, and what its owner may set."""

from dataclasses import replace
from typing import Any

import pytest

from foresail.proof.reasons import Gap, Reason, Remedy
from foresail.proof.view import ClaimRow, CoverageView, ScheduleRow
from foresail.scope.server import ServerFlags
from tests.unit.proof.test_coverage import claim, judged, namespaces, run, schedule

POD = {
    "metadata": {"name": "db"},
    "spec": {
        "nodeName": "worker",
        "volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": "data"}}],
        "containers": [{"volumeMounts": [{"name": "v"}]}],
    },
    "status": {"phase": "Running"},
}
NFS = {"spec": {"nfs": {}, "capacity": {"storage": "1Gi"}}}


def gap(row: ClaimRow, by: ScheduleRow, *, has_run: bool = False) -> Gap:
    """Return the gap of a claim that a schedule leaves out, or its last run although it should not have."""
    runs = (replace(run(by, 1), has_snapshots=False),) if has_run else ()
    server = ServerFlags(snapshot_providers=frozenset({"aws", "other"}))
    view = CoverageView(namespaces("shop"), (row,), (by,), runs, server=server)
    (left_out,) = [gap for gap in judged(view)["shop"].all_gaps() if gap.reason is Reason.VOLUME_LEFT_OUT]
    return left_out


@pytest.mark.parametrize(
    ("fields", "volume", "pods", "expected"),
    [
        pytest.param({"snapshotVolumes": False}, {}, (), Remedy.SNAPSHOTS, id="snapshots are off"),
        pytest.param({"snapshotVolumes": False}, {}, (POD,), Remedy.SNAPSHOTS, id="snapshots before files"),
        pytest.param({"snapshotVolumes": False}, NFS, (POD,), Remedy.FILE_SYSTEM, id="no snapshot is possible"),
        pytest.param({}, NFS, (POD,), Remedy.FILE_SYSTEM, id="a running pod mounts it"),
        pytest.param({}, NFS, (), Remedy.TEMPLATE, id="no pod mounts it"),
        pytest.param(
            {"excludedResources": ["persistentvolumeclaims"]}, {}, (POD,), Remedy.TEMPLATE, id="filters leave it out"
        ),
    ],
)
def test_the_remedy_is_the_first_field_that_would_save_the_data(
    fields: dict[str, Any], volume: dict[str, Any], pods: tuple[dict[str, Any], ...], expected: Remedy
) -> None:
    row = replace(claim("shop"), pods=pods)
    row = replace(row, volume=volume or row.volume)
    assert gap(row, schedule("nightly", **fields)).remedy is expected


def test_where_a_snapshot_was_due_and_not_made_only_files_help() -> None:
    nightly = schedule("nightly")
    assert gap(replace(claim("shop"), pods=(POD,)), nightly, has_run=True).remedy is Remedy.FILE_SYSTEM
    assert gap(claim("shop"), nightly, has_run=True).remedy is Remedy.ADMINISTRATOR


def test_what_the_policy_refuses_is_no_remedy() -> None:
    mounted = replace(claim("shop"), pods=(POD,))
    off = schedule("nightly", snapshotVolumes=False)
    assert gap(mounted, replace(off, refused=frozenset({Remedy.FILE_SYSTEM}))).remedy is Remedy.SNAPSHOTS
    assert gap(mounted, replace(off, refused=frozenset({Remedy.SNAPSHOTS}))).remedy is Remedy.FILE_SYSTEM
    both = frozenset({Remedy.SNAPSHOTS, Remedy.FILE_SYSTEM})
    assert gap(mounted, replace(off, refused=both)).remedy is Remedy.ADMINISTRATOR
