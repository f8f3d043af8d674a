"""Which condition of a storage location `foresail location get` shows as the cause."""

from pathlib import Path

import msgspec
import pytest

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
    with canned(tmp_path, {path: {"metadata": {"resourceVersion": "1"}, "items": []}}) as server:
        assert main([*command, "--kubeconfig", str(server.kubeconfig)]) == 0
    lines = capsys.readouterr().err.splitlines()
    assert [line.startswith(text) for line, text in zip(lines, says, strict=True)] == [True] * len(says)
