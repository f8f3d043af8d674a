"""What a pod of a run would be after admission: asked of the API server by a creation that it only rehearses.

Until the first run has been seen, the template alone does not tell what a LimitRange or an injected sidecar adds.
"""

from collections.abc import Awaitable, Callable
from typing import Any, Protocol, TypeVar

import msgspec

from foresail.api import batch, pods
from foresail.kube.failures import Failure
from foresail.plan import Body, Key, Kind
from foresail.primers.shape import Shape, shape_of

T = TypeVar("T")
_NAME = "foresail-rehearsal"


class Wish(msgspec.Struct, frozen=True):
    """Whose pod is asked about, and what its template says: a change of it is another wish."""

    cron_job: Key
    uid: str
    template: Shape


Rehearse = Callable[[Wish], Awaitable[Shape | None]]


class Asks(Protocol):
    """Who can ask the API server; the client is one."""

    async def get(self, kind: Kind, key: Key, of: type[T]) -> T | Failure:
        """Read one object."""

    async def create_dry_run(self, kind: Kind, key: Key, body: Body, of: type[T]) -> T | Failure:
        """Ask what an object would be, without creating it."""


def rehearsing(client: Asks) -> Rehearse:
    """Return the function that runs this background read; on None the template is used as it is."""

    async def rehearse(wish: Wish) -> Shape | None:
        cron = await client.get(batch.CRON_JOB, wish.cron_job, batch.CronJob)
        if isinstance(cron, Failure):
            return None
        template = msgspec.json.decode(cron.spec.job_template.spec.template, type=dict[str, Any])
        body = {"apiVersion": "v1", "kind": "Pod", **template}
        body["metadata"] = {**template.get("metadata", {}), "name": _NAME, "namespace": wish.cron_job.namespace}
        pod = await client.create_dry_run(pods.POD, Key(wish.cron_job.namespace, _NAME), body, pods.Pod)
        try:
            return None if isinstance(pod, Failure) else shape_of(pod.spec)
        except ValueError:
            return None

    return rehearse


async def nothing(_wish: Wish) -> Shape | None:
    """Tell nothing: where nobody can be asked, the template has to do."""
    return None
