"""Why a pod of the operator does not run, and the command that goes back to the previous image."""

from typing import Any

import msgspec
import pytest

from foresail.cli.install.rollout import PodOnTheWire, pod_problem, previous_image
from foresail.cli.install.start import way_back


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


def pod_of(image: str, ready: str) -> PodOnTheWire:
    status = {"conditions": [{"type": "PodScheduled", "status": "True"}, {"type": "Ready", "status": ready}]}
    return msgspec.convert(
        {"metadata": {"name": "a"}, "spec": {"containers": [{"image": image}]}, "status": status}, PodOnTheWire
    )


@pytest.mark.parametrize(
    ("pods", "image"),
    [
        ([], ""),
        ([pod_of("new", "False"), pod_of("old", "True")], "old"),
        ([pod_of("new", "True"), pod_of("old", "False")], ""),
        ([pod_of("new", "False"), pod_of("bad", "False"), pod_of("old", "True")], "old"),
    ],
)
def test_the_previous_image_is_that_of_a_ready_pod(pods: list[PodOnTheWire], image: str) -> None:
    assert previous_image(pods, "new") == image


def test_the_way_back_is_a_whole_command() -> None:
    assert way_back("backup", "old") == "; to go back: foresail install -n backup --image old"
    assert way_back("backup", "") == ""
