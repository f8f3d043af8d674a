"""What `foresail coverage --fix` does about a volume that is left out: never what stops the schedule."""

import json
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from foresail.cli.main import main
from foresail.kube.clock import now
from tests.unit.cli.canned import canned
from tests.unit.cli.test_coverage import FORBIDDEN, answers, deployment, listed, mounting, named

NAMESPACE = "/api/v1/namespaces/lab"
OWN = "/apis/oadp.openshift.io/v1alpha1/namespaces/lab"
REVIEWS = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
SNAPSHOTS = {"spec": {"template": {"backupSpec": {"snapshotVolumes": True}}}}
FILES = {"spec": {"template": {"backupSpec": {"defaultVolumesToFsBackup": True}}}}
ADVICE = "# NonAdminSchedule lab/mine: ask a cluster administrator"


def labelled(files: str | None) -> dict[str, Any]:
    lab = named("lab")
    lab["metadata"]["labels"] = {"foresail.dev/file-system-backup": files} if files else {}
    return lab


def team(template: dict[str, Any], files: str | None, *, left_out: bool) -> dict[str, Any]:
    """Return what a team may read: a running pod mounts the claim, and the last backup may have left it out."""
    mine = named(
        "mine",
        "lab",
        spec={"schedule": "0 3 * * *", "template": {"backupSpec": template}},
        status={"nextRun": "2099-01-01T03:00:00Z"},
    )
    mine["metadata"]["uid"] = "of-mine"
    incomplete = {"type": "DataIncomplete", "status": "True", "reason": "VolumesLeftOut", "message": "in any words"}
    started = (now() - timedelta(hours=3)).isoformat()
    made = {"name": "v", "status": {"phase": "Completed", "startTimestamp": started, "progress": {"itemsBackedUp": 3}}}
    status = {"phase": "Created", "veleroBackup": made, "conditions": [incomplete] if left_out else []}
    if left_out:
        status["volumesLeftOut"] = {"count": 1, "claims": ["data"]}
    request = named("mine-1", "lab", spec={"backupSpec": template}, status=status)
    request["metadata"] |= {"uid": "of-mine-1", "annotations": {"foresail.dev/schedule-uid": "of-mine"}}
    claim = named("data", "lab", spec={"volumeName": "pv"}, status={"phase": "Bound"})

    def review(_: str, sent: dict[str, Any]) -> dict[str, Any]:
        return {"status": {"allowed": sent["spec"]["resourceAttributes"]["namespace"] == "lab"}}

    return {
        REVIEWS: review,
        "/api/v1/namespaces": FORBIDDEN,
        NAMESPACE: labelled(files),
        f"{NAMESPACE}/persistentvolumeclaims": listed(claim),
        f"{NAMESPACE}/pods": listed(mounting("lab")),
        f"{OWN}/nonadminschedules": listed(mine),
        f"{OWN}/nonadminschedules/mine": mine,
        f"{OWN}/nonadminbackups": listed(request),
    }


def fixed(folder: Path, cluster: dict[str, Any]) -> Any:  # noqa: ANN401
    """Return the patch of the schedule by `coverage --fix`; None if there was none."""
    with canned(folder, cluster) as server:
        main(["coverage", "-n", "lab", "--fix", "--confirm", "--kubeconfig", str(server.kubeconfig)])
    return server.bodies.get(f"PATCH {OWN}/nonadminschedules/mine")


@pytest.mark.parametrize(
    ("template", "files", "left_out", "patch", "is_advised"),
    [
        pytest.param({"snapshotVolumes": False}, "refused", False, SNAPSHOTS, False, id="snapshots are off"),
        pytest.param({"snapshotVolumes": False}, "allowed", False, SNAPSHOTS, False, id="snapshots before files"),
        pytest.param({}, "refused", True, None, True, id="no snapshot, files refused"),
        pytest.param({}, None, True, None, True, id="no snapshot, unknown whether files are allowed"),
        pytest.param({}, "allowed", True, FILES, False, id="no snapshot, files allowed"),
        pytest.param({"excludedResources": ["persistentvolumeclaims"]}, "allowed", False, None, False, id="a filter"),
    ],
)
def test_a_team_gets_only_a_patch_that_the_policy_is_known_to_allow(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    template: dict[str, Any],
    files: str | None,
    left_out: bool,
    patch: dict[str, Any] | None,
    is_advised: bool,
) -> None:
    assert fixed(tmp_path, team(template, files, left_out=left_out)) == patch
    assert (ADVICE in capsys.readouterr().err) is is_advised


@pytest.mark.parametrize(
    ("backup", "template", "files", "patch"),
    [
        pytest.param({}, {}, "refused", None, id="files refused"),
        pytest.param({"fileSystem": "Allowed"}, {}, "allowed", FILES, id="files allowed"),
        pytest.param(
            {"fileSystem": "Allowed", "required": {"defaultVolumesToFsBackup": False}},
            {},
            "allowed",
            None,
            id="another value required",
        ),
        pytest.param({}, {"snapshotVolumes": False}, "refused", SNAPSHOTS, id="snapshots are off"),
        pytest.param({"required": {"snapshotVolumes": False}}, {}, "refused", None, id="snapshots refused"),
    ],
)
def test_an_administrator_does_not_stop_the_schedule_of_a_team_either(
    tmp_path: Path, backup: dict[str, Any], template: dict[str, Any], files: str, patch: dict[str, Any] | None
) -> None:
    cluster = answers()
    path = "/apis/oadp.openshift.io/v1alpha1/nonadminschedules"
    (mine,) = cluster[path]["items"]
    mine["spec"]["template"]["backupSpec"] = template
    kind = "awsElasticBlockStore" if "snapshotVolumes" in str((template, backup)) else "nfs"
    policies = {"foresail-skip-volumes": "skip", "foresail-snapshot-volumes": "snapshot"}
    cluster |= {
        "/api/v1/namespaces": listed(labelled(files)),
        "/api/v1/persistentvolumeclaims": listed(named("data", "lab", spec={"volumeName": "pv"})),
        "/api/v1/persistentvolumes": listed(named("pv", spec={kind: {}})),
        "/api/v1/pods": listed(mounting("lab")),
        "/apis/apps/v1/namespaces/velero/deployments": listed(deployment()),
        "/apis/foresail.dev/v1alpha1/selfservicepolicies": listed(
            named("tenants", spec={"namespaceSelector": {}, "backup": backup})
        ),
        f"{OWN}/nonadminschedules/mine": mine,
        **{
            f"/api/v1/namespaces/velero/configmaps/{name}": named(
                name, "velero", data={"policy": json.dumps({"version": "v1", "volumePolicies": [_always(action)]})}
            )
            for name, action in policies.items()
        },
    }
    assert fixed(tmp_path, cluster) == patch


def _always(action: str) -> dict[str, Any]:
    return {"conditions": {}, "action": {"type": action}}
