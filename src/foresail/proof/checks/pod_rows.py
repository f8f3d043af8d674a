"""What is read of the pods in sandboxes: whether they are ready, and how a container ended."""

from datetime import datetime

import msgspec

from foresail.api.pod_problems import ObservedPod, waiting_word
from foresail.api.pods import FAILED, SUCCEEDED
from foresail.plan import Key, Keyed
from foresail.proof.checks.judge import Verdict

_LONGEST_MESSAGE = 300


class PodRow(Keyed, frozen=True):
    """A pod in a sandbox."""

    phase: str = ""
    is_ready: bool = False
    is_terminating: bool = False
    exit_code: int | None = None
    message: str = ""  # the end of the log of a container that failed
    waits: str = ""  # why it is not ready, as one word of Kubernetes
    created: datetime | None = None

    @property
    def has_ended(self) -> bool:
        """Whether nothing in it runs any more."""
        return self.exit_code is not None or self.phase in (SUCCEEDED, FAILED)


def pod_row(wire: ObservedPod) -> PodRow:
    """Return what is kept of a pod; what its containers wrote is cut and made printable."""
    meta = wire.metadata
    status = wire.status
    ended = [
        container_status.state.terminated
        for container_status in status.container_statuses or ()
        if container_status.state.terminated is not None
    ]
    return PodRow(
        key=Key(meta.namespace, meta.name),
        phase=status.phase,
        is_ready=wire.is_ready,
        is_terminating=meta.deletion_timestamp is not None,
        exit_code=ended[0].exit_code if ended and status.phase in (SUCCEEDED, FAILED) else None,
        message=_printable(ended[0].message) if ended else "",
        waits=_printable(waiting_word(status))[:64],
        created=meta.creation_timestamp,
    )


class Pods(msgspec.Struct, frozen=True):
    """The sandboxes whose pods are to be read, and what the steps before have found out."""

    run: str
    sandboxes: tuple[tuple[str, str], ...]  # the namespace of the backup, and its sandbox
    outside: str = ""  # the address of the bucket, for the canary
    verdict: Verdict | None = None  # on the restore, once it has ended
    kubernetes: str = ""  # the version of this cluster


class PodsFound(msgspec.Struct, frozen=True):
    """The pods, or why they cannot be read now."""

    pods: tuple[PodRow, ...] = ()
    problem: str = ""


def _printable(text: str) -> str:
    """Return the end of a text in one line: a container may write anything."""
    line = " ".join("".join(each if each.isprintable() else " " for each in text).split())
    return line[-_LONGEST_MESSAGE:]
