"""What a pod of a run would be after admission: asked of the API server by a creation that it only rehearses.

Until the first run has been seen, the template alone does not tell what a LimitRange or an injected sidecar adds.
"""

from collections.abc import Awaitable, Callable
from datetime import datetime
from typing import Any, Protocol, TypeVar

import msgspec

from foresail.api import batch, pods
from foresail.kube.failures import Cause, Failure
from foresail.plan import Body, Key, Kind
from foresail.primers.observe import CronJobRow
from foresail.primers.shape import Shape, shape_of

T = TypeVar("T")
_NAME = "foresail-rehearsal"
_REFUSALS = (Cause.FORBIDDEN, Cause.INVALID, Cause.UNREADABLE)
_LONGEST_REFUSAL = 500  # a webhook can write any number of words


class Wish(msgspec.Struct, frozen=True):
    """Whose pod is asked about, and what its template says: a change of it is another wish."""

    cron_job: Key
    uid: str
    template: Shape
    generation: int = 0


Rehearse = Callable[[Wish], Awaitable[Shape | Failure]]


class Answer(msgspec.Struct, frozen=True):
    """What the API server answered to a dry run: the pod after admission, a refusal, or nothing that helps."""

    wish: Wish
    asked: datetime
    admitted: Shape | None = None
    refused: str = ""

    def is_about(self, cron: CronJobRow) -> bool:
        """Whether it still counts: a refusal may have a cause that the shape does not show, such as privileges."""
        if self.wish.template != cron.shape:
            return False
        return self.admitted is not None or self.wish.generation == cron.generation

    @property
    def is_final(self) -> bool:
        """Whether the API server has answered; otherwise it is asked again soon."""
        return self.admitted is not None or bool(self.refused)


def answer(wish: Wish, found: Shape | Failure, asked: datetime) -> Answer:
    """Return what is kept of a dry run."""
    if not isinstance(found, Failure):
        return Answer(wish, asked, admitted=found)
    words = found.message if len(found.message) <= _LONGEST_REFUSAL else f"{found.message[:_LONGEST_REFUSAL]}…"
    return Answer(wish, asked, refused=words or found.cause.value if found.cause in _REFUSALS else "")


class Asks(Protocol):
    """Who can ask the API server; the client is one."""

    async def get(self, kind: Kind, key: Key, of: type[T]) -> T | Failure:
        """Read one object."""

    async def create_dry_run(self, kind: Kind, key: Key, body: Body, of: type[T]) -> T | Failure:
        """Ask what an object would be, without creating it."""


def rehearsing(client: Asks) -> Rehearse:
    """Return the function that runs this background read."""

    async def rehearse(wish: Wish) -> Shape | Failure:
        cron = await client.get(batch.CRON_JOB, wish.cron_job, batch.CronJob)
        if isinstance(cron, Failure):
            return cron
        template = msgspec.json.decode(cron.spec.job_template.spec.template, type=dict[str, Any])
        body = {"apiVersion": "v1", "kind": "Pod", **template}
        body["metadata"] = {**template.get("metadata", {}), "name": _NAME, "namespace": wish.cron_job.namespace}
        pod = await client.create_dry_run(pods.POD, Key(wish.cron_job.namespace, _NAME), body, pods.Pod)
        if isinstance(pod, Failure):
            return pod
        try:
            return shape_of(pod.spec)
        except ValueError as problem:
            return Failure(Cause.UNREADABLE, f"the pod after admission cannot be read: {problem}")

    return rehearse


async def nothing(wish: Wish) -> Shape | Failure:
    """Return the template as it is, where nobody can be asked."""
    return wish.template
