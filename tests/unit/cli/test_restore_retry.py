"""`foresail restore retry`: which restores can be asked for again, and what is written."""

from pathlib import Path
from typing import Any

import pytest

from foresail.cli.main import main
from tests.unit.cli.canned import canned

PATH = "/apis/oadp.openshift.io/v1alpha1/namespaces/shop/nonadminrestores/"


def restore(reason: str = "PolicyViolation", phase: str = "BackingOff", **status: Any) -> dict[str, Any]:  # noqa: ANN401
    condition = {"type": "Accepted", "status": "False", "reason": reason, "observedGeneration": 3}
    return {
        "metadata": {"name": "undo", "namespace": "shop", "uid": "7", "resourceVersion": "40", "generation": 3},
        "spec": {"restoreSpec": {"backupName": "daily"}},
        "status": {"phase": phase, "conditions": [condition], **status},
    }


def answers(found: dict[str, Any], generation: int = 4) -> dict[str, Any]:
    def answer(_: str, sent: dict[str, Any]) -> dict[str, Any]:
        return {**found, "metadata": {**found["metadata"], "generation": generation}} if sent else found

    return {f"{PATH}undo": answer}


@pytest.mark.parametrize("reason", ["PolicyViolation", "NoPolicy", "AccessDenied", "Expired", "AddedLater"])
def test_a_refused_or_expired_restore_is_asked_for_again(
    reason: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with canned(tmp_path, answers(restore(reason))) as server:
        assert main(["restore", "retry", "undo", "-n", "shop", f"--kubeconfig={server.kubeconfig}"]) == 0
    sent = server.bodies[f"PATCH {PATH}undo"]
    assert sent["metadata"] == {"uid": "7", "resourceVersion": "40"}, "only the restore that was read"
    assert sent["spec"].keys() == {"retriedAt"}
    assert "NonAdminRestore shop/undo retried." in capsys.readouterr().err


@pytest.mark.parametrize(
    ("found", "problem", "hint"),
    [
        (
            restore("QuotaExceeded", "New"),
            "was not refused and has not expired",
            "foresail restore explain undo -n shop",
        ),
        (restore("Expired", "Created"), "runs a restore once", "foresail restore create --from-backup daily -n shop"),
        (restore(phase="Deleting"), "is being deleted", "create another restore"),
    ],
    ids=["waits", "was in Velero", "is being deleted"],
)
def test_what_cannot_be_retried_is_left_alone(
    found: dict[str, Any], problem: str, hint: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with canned(tmp_path, answers(found)) as server:
        assert main(["restore", "retry", "undo", "-n", "shop", f"--kubeconfig={server.kubeconfig}"]) == 1
    assert server.writes == []
    said = capsys.readouterr().err
    assert problem in said
    assert hint in said


def test_none_is_retried_if_one_cannot_be(tmp_path: Path) -> None:
    with canned(tmp_path, {**answers(restore()), f"{PATH}other": restore("QuotaExceeded", "New")}) as server:
        assert main(["restore", "retry", "undo", "other", "-n", "shop", f"--kubeconfig={server.kubeconfig}"]) == 1
    assert server.writes == []


def test_an_api_server_that_drops_the_field_is_noticed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with canned(tmp_path, answers(restore(), generation=3)) as server:
        assert main(["restore", "retry", "undo", "-n", "shop", f"--kubeconfig={server.kubeconfig}"]) == 1
    assert "does not know spec.retriedAt" in capsys.readouterr().err


def test_describe_says_until_when_a_restore_waits(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    waits = restore("QuotaExceeded", "New", startingDeadline="2026-11-18T09:00:00Z")
    over = restore("Expired", startingDeadline="2026-11-18T09:00:00Z")
    for found, is_shown in ((waits, True), (over, False)):
        with canned(tmp_path, {f"{PATH}undo": found}) as server:
            assert main(["restore", "describe", "undo", "-n", "shop", f"--kubeconfig={server.kubeconfig}"]) == 0
        assert ("Waits Until:" in capsys.readouterr().out) is is_shown
