"""Why a pod of the operator does not run, in the words of the kubelet or the scheduler."""

from typing import Any

import msgspec
import pytest

from foresail.cli.install.rollout import PodOnTheWire, pod_problem


@pytest.mark.parametrize(
    ("status", "problem"),
    [
        ({}, ""),
        ({"containerStatuses": [{"state": {"running": {}}}]}, ""),
        ({"containerStatuses": [{"state": {"waiting": {"reason": "ContainerCreating"}}}]}, ""),
        (
            {"containerStatuses": [{"state": {"waiting": {"reason": "ErrImagePull", "message": "not found"}}}]},
            "pod a: ErrImagePull: not found",
        ),
        ({"containerStatuses": [{"state": {"terminated": {"reason": "Error", "exitCode": 1}}}]}, "pod a: Error"),
        (
            {"conditions": [{"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "full"}]},
            "pod a: Unschedulable: full",
        ),
        ({"conditions": [{"type": "PodScheduled", "status": "True"}]}, ""),
    ],
)
def test_a_pod_that_does_not_run_is_named_with_its_reason(status: dict[str, Any], problem: str) -> None:
    assert pod_problem(msgspec.convert({"metadata": {"name": "a"}, "status": status}, PodOnTheWire)) == problem
