"""Why a pod does not run, in the words of the kubelet or the scheduler."""

from collections.abc import Iterable, Iterator
from datetime import datetime, timedelta

import msgspec

from foresail.api.metadata import Metadata
from foresail.api.pods import FAILED, SUCCEEDED, ContainerStatus, PodStatus

_STARTING = frozenset({"", "ContainerCreating", "PodInitializing"})
_PULLS = frozenset({"ErrImagePull", "ImagePullBackOff", "ErrImageNeverPull", "InvalidImageName"})
_LONGEST = 200  # characters of a message
_RESTARTS = 2
_LATELY = timedelta(minutes=10)


class _Container(msgspec.Struct, frozen=True):
    image: str = ""


class _Spec(msgspec.Struct, frozen=True):
    containers: tuple[_Container, ...] = ()


class ObservedPod(msgspec.Struct, frozen=True):
    """As much of a pod as tells what it runs, and why it does not run."""

    metadata: Metadata
    spec: _Spec = _Spec()
    status: PodStatus = PodStatus()

    @property
    def is_ready(self) -> bool:
        """Whether all its containers are ready."""
        return any(
            condition.type == "Ready" and condition.status == "True" for condition in self.status.conditions or ()
        )

    @property
    def is_over(self) -> bool:
        """Whether it is being deleted, or has ended: another pod replaces it."""
        return self.metadata.deletion_timestamp is not None or self.status.phase in (SUCCEEDED, FAILED)

    @property
    def image(self) -> str:
        """The image of its first container."""
        return next((container.image for container in self.spec.containers), "")


def pod_problem(pod: ObservedPod) -> str:
    """Return why a pod does not run, with its name; empty if it runs or starts."""
    cause = next(_causes(pod.status), "")
    return f"pod {pod.metadata.name}: {cause}" if cause else ""


def _causes(status: PodStatus) -> Iterator[str]:
    for container in _containers(status):
        waiting = container.state.waiting
        ended = container.state.terminated
        if waiting is not None and waiting.reason not in _STARTING:
            last = container.last_state.terminated
            if last is not None and waiting.reason == "CrashLoopBackOff":
                yield f"{waiting.reason}, {_exit(last.exit_code, last.reason, last.message)}"
            else:
                yield _joined(_with_image(waiting.reason, waiting.message, container.image), waiting.message)
        elif ended is not None and ended.exit_code:
            yield _exit(ended.exit_code, ended.reason, ended.message)
    for condition in status.conditions or ():
        if condition.type == "PodScheduled" and condition.status == "False":
            yield _joined(condition.reason, condition.message)


def waiting_word(status: PodStatus) -> str:
    """Return why a pod is not ready, as one word of Kubernetes, also while it starts; empty if nothing tells."""
    waits = [container.state.waiting.reason for container in _containers(status) if container.state.waiting is not None]
    failing = [
        condition.reason for condition in status.conditions or () if condition.status == "False" and condition.reason
    ]
    return next((text for text in (status.reason, *waits, *failing) if text), "")


def restarts(pod: ObservedPod, now: datetime) -> str:
    """Return how a pod that runs has ended lately, if more than once; empty if it has not."""
    for container in _containers(pod.status):
        last = container.last_state.terminated
        if last is None or last.finished_at is None or container.restart_count < _RESTARTS:
            continue
        if now - last.finished_at < _LATELY:
            cause = _exit(last.exit_code, last.reason, last.message)
            return f"pod {pod.metadata.name} has restarted {container.restart_count} times: {cause}"
    return ""


def first_problem(pods: Iterable[ObservedPod]) -> str:
    """Return why one of the pods does not run, with its name; empty if nothing tells."""
    return next((problem for pod in pods if (problem := pod_problem(pod))), "")


def previous_image(pods: Iterable[ObservedPod], image: str) -> str:
    """Return the image of a Ready pod that has another one than this; empty if there is no such pod."""
    return next((pod.image for pod in pods if pod.is_ready and pod.image not in ("", image)), "")


def _containers(status: PodStatus) -> list[ContainerStatus]:
    return [*(status.init_container_statuses or ()), *(status.container_statuses or ())]


def _with_image(reason: str, message: str, image: str) -> str:
    return f"{reason} of {image}" if image and reason in _PULLS and image not in message else reason


def _exit(code: int, reason: str, message: str) -> str:
    why = f" ({reason})" if reason and reason != "Error" else ""
    return _joined(f"last exit code {code}{why}", message)


def _joined(reason: str, message: str) -> str:
    line = " ".join("".join(letter if letter.isprintable() else " " for letter in message).split())
    shown = line if len(line) <= _LONGEST else f"{line[: _LONGEST - 1]}…"
    return f"{reason}: {shown}" if shown else reason
