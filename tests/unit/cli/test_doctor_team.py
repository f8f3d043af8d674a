"""The doctor of a team answers in a few lines about its own namespace."""

import json
from collections.abc import Mapping
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from foresail.api.marks import FACTS, SELF_SERVICE_LEASE
from foresail.cli.main import main
from foresail.kube.clock import now
from tests.unit.cli.canned import canned

OADP = "/apis/oadp.openshift.io/v1alpha1/namespaces/shop"
LEASE_OF_VELERO = f"/apis/coordination.k8s.io/v1/namespaces/velero/leases/{SELF_SERVICE_LEASE}"
REVIEW = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
SERVED = {"metadata": {"name": "shop", "labels": {"foresail.dev/velero-annotations": "refused"}}}


def condition(kind: str, status: str, reason: str, message: str) -> dict[str, Any]:
    return {"type": kind, "status": status, "reason": reason, "message": message, "lastTransitionTime": ""}


def request(name: str, minutes: int = 1, phase: str = "", *conditions: dict[str, Any]) -> dict[str, Any]:
    metadata = {"name": name, "namespace": "shop", "uid": name, "creationTimestamp": timedelta(minutes=-minutes)}
    return {"metadata": metadata, "spec": {}, "status": {"phase": phase, "conditions": list(conditions)}}


def schedule(name: str, minutes: int, *conditions: dict[str, Any]) -> dict[str, Any]:
    one = request(name, 60, "Created", *conditions)
    due = {"nextRun": timedelta(minutes=minutes)}
    return {**one, "spec": {"schedule": "0 3 * * *"}, "status": {**one["status"], **due}}


def timed(value: Any) -> Any:  # noqa: ANN401 - JSON
    """Return an answer with times of this moment: the tests may run long after they were collected."""
    if isinstance(value, timedelta):
        return (now() + value - timedelta(seconds=5)).isoformat()
    if isinstance(value, list):
        return [timed(one) for one in value]
    return {key: timed(one) for key, one in value.items()} if isinstance(value, dict) else value


def lease(**facts: Any) -> dict[str, Any]:  # noqa: ANN401 - JSON
    """Return the Lease that a living operator renews, with what it publishes."""
    metadata = {"name": SELF_SERVICE_LEASE, "annotations": {FACTS: json.dumps(facts)}}
    spec = {"holderIdentity": "replica", "renewTime": timedelta(), "leaseDurationSeconds": 60}
    return {LEASE_OF_VELERO: {"metadata": metadata, "spec": spec}}


def dead_lease() -> dict[str, Any]:
    """Return the Lease of an operator that was killed: nobody renews it."""
    spec = {"holderIdentity": "replica", "renewTime": timedelta(minutes=-5), "leaseDurationSeconds": 60}
    return {LEASE_OF_VELERO: {"metadata": {"name": SELF_SERVICE_LEASE}, "spec": spec}}


NOBODY = "no replica of Foresail's operator runs, so no request of namespace shop is served"


def lists(
    backups: list[Any] | None = None, restores: list[Any] | None = None, schedules: list[Any] | None = None
) -> dict[str, Any]:
    kinds = {"nonadminbackups": backups, "nonadminrestores": restores, "nonadminschedules": schedules}
    return {f"{OADP}/{kind}": {"metadata": {}, "items": items or []} for kind, items in kinds.items()}


def examine(
    folder: Path, capsys: pytest.CaptureFixture[str], answers: Mapping[str, Any], *, allowed: bool = False
) -> tuple[int, list[tuple[str, str, str]], str]:
    """Return the exit code, the findings and what is said beside them, for somebody without rights in the cluster."""
    review = {"kind": "SelfSubjectAccessReview", "status": {"allowed": allowed}}
    with canned(folder, {"/version": {}, REVIEW: review, **timed(dict(answers))}) as server:
        code = main(["doctor", f"--kubeconfig={server.kubeconfig}", "-n", "shop", "-o", "json"])
    printed = capsys.readouterr()
    found = [(each["grade"], each["about"], each["says"]) for each in json.loads(printed.out)]
    return code, found, printed.err


NAMESPACE = {"/api/v1/namespaces/shop": SERVED}
ACCEPTED = condition("Accepted", "True", "BackupAccepted", "")
WAITS = condition("Succeeded", "Unknown", "Waiting", "Velero has not started it")
QUOTA = condition("Accepted", "False", "QuotaExceeded", "2 of 2 backups are stored")
NO_POLICY = condition("Accepted", "False", "NoPolicy", "no policy")
INVALID = condition("Accepted", "False", "PolicyViolation", "it runs too often")


@pytest.mark.parametrize(
    ("answers", "code", "expected"),
    [
        pytest.param(
            {**lists(), **NAMESPACE},
            0,
            [("good", "self-service", "it is enabled in namespace shop, which has no request yet")],
            id="served, and no request",
        ),
        pytest.param(
            lists(),
            0,
            [
                (
                    "warning",
                    "self-service",
                    "namespace shop has no request, so it is unknown whether self-service is enabled",
                )
            ],
            id="nothing is known",
        ),
        pytest.param(
            {**lists(), "/api/v1/namespaces/shop": {"metadata": {"name": "shop"}}},
            1,
            [("problem", "self-service", "self-service is not enabled in namespace shop")],
            id="not enabled",
        ),
        pytest.param(
            lists([request("a", 5, "New", NO_POLICY)]),
            1,
            [("problem", "self-service", "self-service is not enabled in namespace shop")],
            id="not enabled, as a request says",
        ),
        pytest.param(
            {**lists([request("a", 5), request("b", 3)], [request("c", 1)]), **NAMESPACE},
            1,
            [("problem", "self-service", "no operator has processed backup a, backup b for up to 5 min")],
            id="nobody serves",
        ),
        pytest.param(
            {**lists(schedules=[schedule("nightly", -30)]), **NAMESPACE},
            1,
            [("problem", "self-service", "the last planned run of schedule nightly has not started")],
            id="nobody runs the schedules",
        ),
        pytest.param(
            {
                **lists([request("a", 2, "New", QUOTA), request("b", 2, "Created", ACCEPTED, WAITS)]),
                **NAMESPACE,
            },
            0,
            [
                ("good", "self-service", "the operator has processed every request of namespace shop: 2"),
                ("warning", "requests", "backup a waits: 2 of 2 backups are stored"),
                ("good", "requests", "1 is running or waiting for a turn"),
            ],
            id="one waits for a quota, and one for its turn",
        ),
        pytest.param(
            {**lists([request("b", 25, "Created", ACCEPTED, WAITS)]), **NAMESPACE},
            0,
            [
                ("good", "self-service", "the operator has processed every request of namespace shop: 1"),
                ("warning", "requests", "Velero has not started backup b for up to 25 min"),
            ],
            id="Velero does not start it",
        ),
        pytest.param(
            {
                **lists([request("b", 2, "Created", ACCEPTED, WAITS)]),
                **NAMESPACE,
                **lease(veleroProblem="Deployment velero has 0 of 1 pods ready"),
            },
            1,
            [
                ("good", "self-service", "the operator has processed every request of namespace shop: 1"),
                ("problem", "velero", "Deployment velero has 0 of 1 pods ready"),
                ("warning", "requests", "1 waits or ran when Velero stopped"),
            ],
            id="Velero does not run",
        ),
        pytest.param(
            {**lists(), **NAMESPACE, **lease(locations=[{"name": "default", "phase": "Unavailable", "default": True}])},
            1,
            [
                ("good", "self-service", "it is enabled in namespace shop, which has no request yet"),
                (
                    "problem",
                    "locations",
                    "BackupStorageLocation default is Unavailable, so no backup starts there",
                ),
            ],
            id="the bucket is gone",
        ),
        pytest.param(
            {**lists([request("a", 1)]), **NAMESPACE},
            0,
            [("warning", "self-service", "backup a is new, and no operator has processed it yet")],
            id="a request that is new",
        ),
        pytest.param(
            {**lists([request("a", 1)]), **NAMESPACE, **dead_lease()},
            1,
            [("problem", "self-service", NOBODY)],
            id="no operator runs, and a request is new",
        ),
        pytest.param(
            {**lists([request("b", 2, "Created", ACCEPTED, WAITS)]), **NAMESPACE, **dead_lease()},
            1,
            [
                ("problem", "self-service", NOBODY),
                ("warning", "requests", "1 waits or ran when the operator stopped"),
            ],
            id="no operator runs, and Velero is not blamed",
        ),
        pytest.param(
            {**lists(schedules=[schedule("often", 30, INVALID)]), **NAMESPACE},
            0,
            [
                ("good", "self-service", "the operator has processed every request of namespace shop: 1"),
                ("warning", "schedules", "schedule often does not run: it runs too often"),
            ],
            id="a schedule is refused",
        ),
        pytest.param(
            {},
            1,
            [
                (
                    "problem",
                    "access",
                    "namespace shop is not checked: the cluster does not serve nonadminbackups.oadp.openshift.io",
                )
            ],
            id="no kinds",
        ),
    ],
)
def test_a_team_gets_a_short_answer(
    answers: Mapping[str, Any],
    code: int,
    expected: list[tuple[str, str, str]],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    found = examine(tmp_path, capsys, answers)
    assert found[:2] == (code, expected)
    assert "this is about namespace shop" in found[2]


def test_an_administrator_is_not_taken_for_a_team(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    _, found, beside = examine(tmp_path, capsys, lists(), allowed=True)
    assert {"clock", "zones", "velero"} <= {about for _, about, _ in found}
    assert "this is about" not in beside
