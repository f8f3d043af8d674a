"""Which condition of a storage location `foresail location get` shows as the cause."""

from pathlib import Path

import msgspec
import pytest

from foresail.api.marks import REQUEST_UID
from foresail.api.nonadmin import Location
from foresail.cli.location.get import problem
from foresail.cli.main import main
from tests.gitops.recorded import recorded
from tests.unit.cli.canned import canned


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("location-available", None),
        ("location-pending", "BslSpecApprovalPending"),
        ("location-rejected", "BslSpecRejected"),
        ("location-refused-while-pending", "BslSpecValidation"),
        ("location-without-credentials", "SecretSyncFailed"),
    ],
)
def test_the_cause_is_the_first_in_the_order_of_decisions(name: str, reason: str | None) -> None:
    found = problem(msgspec.json.decode(msgspec.json.encode(recorded(name)), type=Location))
    assert (found.reason if found is not None else None) == reason


@pytest.mark.parametrize(
    ("command", "path", "says"),
    [
        (
            ["location", "request", "get"],
            "/apis/oadp.openshift.io/v1alpha1/namespaces/velero/nonadminbackupstoragelocationrequests",
            ["No location requests found in any namespace", "hint: a location has none before the operator may read"],
        ),
        (
            ["location", "get", "-n", "shop"],
            "/apis/oadp.openshift.io/v1alpha1/namespaces/shop/nonadminbackupstoragelocations",
            ["No locations found in namespace shop"],
        ),
    ],
    ids=["requests", "locations"],
)
def test_an_empty_list_says_so(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], command: list[str], path: str, says: list[str]
) -> None:
    reviews = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
    none = {"metadata": {"resourceVersion": "1"}, "items": []}
    with canned(tmp_path, {path: none, reviews: {"status": {"allowed": False}}}) as server:
        assert main([*command, "--kubeconfig", str(server.kubeconfig)]) == 0
    lines = capsys.readouterr().err.splitlines()
    assert [line.startswith(text) for line, text in zip(lines, says, strict=True)] == [True] * len(says)


def test_a_location_whose_secret_is_unreadable_is_listed_without_a_request(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    group = "/apis/oadp.openshift.io/v1alpha1"
    held, asked = recorded("location-without-credentials"), recorded("location-pending")
    asked["metadata"] |= {"name": "asked", "namespace": "shop", "uid": "asked-uid"}
    held["metadata"] |= {"name": "held", "namespace": "shop", "uid": "held-uid"}
    request = {
        "metadata": {"name": "r", "annotations": {REQUEST_UID: "asked-uid"}},
        "status": {
            "phase": "Pending",
            "nonAdminBackupStorageLocation": {"name": "asked", "namespace": "shop", "requestedSpec": {}},
        },
    }
    rest = {"metadata": {"resourceVersion": "1"}}
    reviews = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
    answers = {
        f"{group}/namespaces/velero/nonadminbackupstoragelocationrequests": {**rest, "items": [request]},
        f"{group}/nonadminbackupstoragelocations": {**rest, "items": [held, asked]},
        reviews: {"status": {"allowed": True}},
    }
    with canned(tmp_path, answers) as server:
        assert main(["location", "request", "get", "--kubeconfig", str(server.kubeconfig)]) == 0
        shown = capsys.readouterr()
        assert main(["location", "request", "get", "-o", "name", "--kubeconfig", str(server.kubeconfig)]) == 0
        names = capsys.readouterr().out.split()
    rows = [line.split() for line in shown.out.splitlines()]
    assert [row[:2] for row in rows[1:]] == [["shop", "asked"], ["shop", "held"]]
    assert (rows[0][-1], rows[2][-1]) == ("WHY", "SecretSyncFailed")
    assert "not requested" in shown.out
    assert "foresail location describe held -n shop" in shown.err
    assert len(names) == 1, "programs get requests alone"
