"""Why a pod does not run, in the words of Kubernetes, and the image that ran before."""

from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
import pytest

from foresail.api.pod_problems import ObservedPod, pod_problem, previous_image, restarts

NOW = datetime(2026, 11, 15, 12, tzinfo=UTC)
CRASHED = {"exitCode": 137, "reason": "OOMKilled", "finishedAt": "2026-11-15T11:59:00Z"}


def pod(status: dict[str, Any]) -> ObservedPod:
    return msgspec.convert({"metadata": {"name": "a"}, "status": status}, ObservedPod)


@pytest.mark.parametrize(
    ("status", "problem"),
    [
        ({}, ""),
        ({"containerStatuses": [{"state": {"running": {}}}]}, ""),
        ({"containerStatuses": [{"state": {"waiting": {"reason": "ContainerCreating"}}}]}, ""),
        (
            {"containerStatuses": [{"state": {"waiting": {"reason": "ErrImagePull", "message": "not\x1b[1m found"}}}]},
            "pod a: ErrImagePull: not [1m found",
        ),
        (
            {"containerStatuses": [{"image": "v:9", "state": {"waiting": {"reason": "ImagePullBackOff"}}}]},
            "pod a: ImagePullBackOff of v:9",
        ),
        (
            {
                "containerStatuses": [
                    {"image": "v:9", "state": {"waiting": {"reason": "ImagePullBackOff", "message": 'pulling "v:9"'}}}
                ]
            },
            'pod a: ImagePullBackOff: pulling "v:9"',
        ),
        (
            {
                "containerStatuses": [
                    {
                        "state": {"waiting": {"reason": "CrashLoopBackOff", "message": "back-off 5m0s restarting"}},
                        "lastState": {"terminated": CRASHED},
                    }
                ]
            },
            "pod a: CrashLoopBackOff, last exit code 137 (OOMKilled)",
        ),
        (
            {
                "initContainerStatuses": [
                    {"state": {"terminated": {"reason": "Completed", "exitCode": 0}}},
                    {"image": "plugin:9", "state": {"waiting": {"reason": "ErrImagePull"}}},
                ],
                "containerStatuses": [{"state": {"waiting": {"reason": "PodInitializing"}}}],
            },
            "pod a: ErrImagePull of plugin:9",
        ),
        (
            {"containerStatuses": [{"state": {"terminated": {"reason": "Error", "exitCode": 1, "message": "no key"}}}]},
            "pod a: last exit code 1: no key",
        ),
        (
            {"conditions": [{"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "full"}]},
            "pod a: Unschedulable: full",
        ),
        ({"conditions": [{"type": "PodScheduled", "status": "True"}]}, ""),
    ],
)
def test_a_pod_that_does_not_run_is_named_with_its_reason(status: dict[str, Any], problem: str) -> None:
    assert pod_problem(pod(status)) == problem


def test_a_long_message_is_cut() -> None:
    waiting = {"reason": "ErrImagePull", "message": "x" * 1000}
    assert len(pod_problem(pod({"containerStatuses": [{"state": {"waiting": waiting}}]}))) < 250


@pytest.mark.parametrize(
    ("count", "ended", "said"),
    [
        (5, NOW - timedelta(minutes=1), "pod a has restarted 5 times: last exit code 137 (OOMKilled)"),
        (1, NOW - timedelta(minutes=1), ""),
        (5, NOW - timedelta(minutes=11), ""),
    ],
)
def test_a_pod_that_runs_between_two_crashes_is_no_good_pod(count: int, ended: datetime, said: str) -> None:
    last = {"terminated": {**CRASHED, "finishedAt": ended.isoformat()}}
    status = {"containerStatuses": [{"state": {"running": {}}, "lastState": last, "restartCount": count}]}
    assert pod_problem(pod(status)) == ""
    assert restarts(pod(status), NOW) == said


def pod_of(image: str, ready: str) -> ObservedPod:
    status = {"conditions": [{"type": "PodScheduled", "status": "True"}, {"type": "Ready", "status": ready}]}
    return msgspec.convert(
        {"metadata": {"name": "a"}, "spec": {"containers": [{"image": image}]}, "status": status}, ObservedPod
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
def test_the_previous_image_is_that_of_a_ready_pod(pods: list[ObservedPod], image: str) -> None:
    assert previous_image(pods, "new") == image
