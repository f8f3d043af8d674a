"""The two ways of a volume's data into a backup: moved from a CSI snapshot, or copied from the files of a pod."""

from dataclasses import dataclass
from typing import Any

import pytest

from testbed import Cluster
from testbed.node.csi import CLASS
from tests.cluster.tenants import allow_file_system

_VELERO = "namespaces/velero"


@dataclass(frozen=True)
class DataPath:
    """How the data of a volume gets into a backup, and which class of volumes can go that way."""

    name: str
    storage_class: str | None
    option: str
    field: str
    transfers: str
    """Where the API server has the objects by which Velero copies the data of a backup."""

    @property
    def template(self) -> dict[str, Any]:
        """What a Schedule's template says."""
        return {self.field: True}

    def is_moving(self, cluster: Cluster) -> bool:
        """Whether Velero has begun to copy the data of a volume, and has not ended."""
        phases = {each.get("status", {}).get("phase", "New") for each in cluster.listed(self.transfers)}
        return bool(phases - {"Completed", "Failed", "Canceled"})

    def allow(self, cluster: Cluster, namespace: str) -> None:
        """Let the tenants of a namespace use it: files are refused unless a policy allows them."""
        if self is FILES:
            allow_file_system(namespace, cluster)


SNAPSHOTS = DataPath(
    "snapshots", CLASS, "--snapshot-move-data", "snapshotMoveData", f"/apis/velero.io/v2alpha1/{_VELERO}/datauploads"
)
FILES = DataPath(
    "files",
    None,
    "--default-volumes-to-fs-backup",
    "defaultVolumesToFsBackup",
    f"/apis/velero.io/v1/{_VELERO}/podvolumebackups",
)
PATHS = (SNAPSHOTS, FILES)


def on_both_paths(fixture: str, *, sampled: bool = False) -> pytest.MarkDecorator:
    """Return the mark of a test that has one fixture for each path; CI runs that of snapshots, if it is sampled."""
    marks = {SNAPSHOTS: [pytest.mark.sample] if sampled else []}
    cases = [pytest.param(path, id=path.name, marks=marks.get(path, [])) for path in PATHS]
    return pytest.mark.parametrize(fixture, cases, indirect=True)
