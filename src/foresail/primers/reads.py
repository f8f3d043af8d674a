"""Background reads about a CronJob: what its pod is after admission, and where its volumes can be reached."""

from collections.abc import Awaitable, Callable
from datetime import datetime
from typing import Any, Protocol, TypeVar

import msgspec

from foresail.api import batch, pods
from foresail.api.core import CLAIM, VOLUME, Claim, Volume
from foresail.kube.failures import Cause, Failure
from foresail.plan import Body, Key, Kind
from foresail.primers.rows import CronJobRow
from foresail.primers.shape import Shape, shape_of, shares, with_requests
from foresail.primers.view import DryRunRequest, VolumeLookup

T = TypeVar("T")
DRY_RUN_NAME = "foresail-dry-run"
_REFUSALS = (Cause.FORBIDDEN, Cause.INVALID, Cause.UNREADABLE)
_LONGEST_REFUSAL = 500  # a webhook can answer with any length


DryRun = Callable[[DryRunRequest], Awaitable[Shape | Failure]]


class DryRunResult(msgspec.Struct, frozen=True):
    """What the API server answered to a dry run: the pod after admission, a refusal, or nothing that helps."""

    request: DryRunRequest
    at: datetime
    admitted: Shape | None = None
    refused: str = ""

    def is_about(self, cron: CronJobRow, resources: tuple[tuple[str, str], ...]) -> bool:
        """Whether it still counts: a refusal may have a cause that the shape does not show, such as privileges."""
        if self.request.template != cron.shape or self.request.resources != resources:
            return False
        return self.admitted is not None or self.request.generation == cron.generation

    @property
    def is_final(self) -> bool:
        """Whether the API server has answered; otherwise another dry run follows soon."""
        return self.admitted is not None or bool(self.refused)


def dry_run_result(request: DryRunRequest, answer: Shape | Failure, at: datetime) -> DryRunResult:
    """Return the result of a dry run."""
    if not isinstance(answer, Failure):
        return DryRunResult(request, at, admitted=answer)
    words = answer.message if len(answer.message) <= _LONGEST_REFUSAL else f"{answer.message[:_LONGEST_REFUSAL]}…"
    return DryRunResult(request, at, refused=words or answer.cause.value if answer.cause in _REFUSALS else "")


class Reads(Protocol):
    """Reads single objects; the client does."""

    async def get(self, kind: Kind, key: Key, of: type[T]) -> T | Failure:
        """Read one object."""


class DryRunClient(Reads, Protocol):
    """Reads objects and runs dry runs; the client does."""

    async def create_dry_run(self, kind: Kind, key: Key, body: Body, of: type[T]) -> T | Failure:
        """Return what an object would be, without creating it."""


def dry_run_with(client: DryRunClient) -> DryRun:
    """Return the function that runs this background read."""

    async def dry_run(request: DryRunRequest) -> Shape | Failure:
        cron = await client.get(batch.CRON_JOB, request.cron_job, batch.CronJob)
        if isinstance(cron, Failure):
            return cron
        template = msgspec.json.decode(cron.spec.job_template.spec.template, type=dict[str, Any])
        if request.resources:
            template["spec"] = _with_resources(template["spec"], with_requests(request.template, request.resources))
        body = {"apiVersion": "v1", "kind": "Pod", **template}
        body["metadata"] = {
            **template.get("metadata", {}),
            "name": DRY_RUN_NAME,
            "namespace": request.cron_job.namespace,
        }
        pod = await client.create_dry_run(pods.POD, Key(request.cron_job.namespace, DRY_RUN_NAME), body, pods.Pod)
        if isinstance(pod, Failure):
            return pod
        try:
            return shape_of(pod.spec)
        except ValueError as problem:
            return Failure(Cause.UNREADABLE, f"the pod after admission cannot be read: {problem}")

    return dry_run


def _with_resources(spec: dict[str, Any], shape: Shape) -> dict[str, Any]:
    """Return a pod spec in which the containers request what a placeholder of this shape would."""
    first = {name: value for name, value in spec["containers"][0].items() if name != "ports"}  # two may not have one
    containers = [
        {**first, "name": f"hold-{index}", "resources": {"requests": requests, "limits": limits}}
        for index, (requests, limits) in enumerate(shares(shape))
    ]
    others = {name: value for name, value in spec.items() if name != "resources"}
    return {**others, "initContainers": [], "containers": containers}


async def no_dry_run(request: DryRunRequest) -> Shape | Failure:
    """Return the template as it is, without a client."""
    return request.template


Volumes = tuple[bytes, ...]
"""A node selector, in JSON, for each volume that is not everywhere."""


LocateVolumes = Callable[[VolumeLookup], Awaitable[Volumes | None]]


def locate_volumes_with(client: Reads) -> LocateVolumes:
    """Return the function that runs this background read; it returns None if the API server did not answer."""

    async def locate_volumes(lookup: VolumeLookup) -> Volumes | None:
        selectors = [await _selector(client, Key(lookup.namespace, name)) for name in lookup.claims]
        return None if None in selectors else tuple(selector for selector in selectors if selector)

    return locate_volumes


async def _selector(client: Reads, key: Key) -> bytes | None:
    """Return a node selector for the volume of a claim; empty if none, None if the API server did not answer."""
    claim = await client.get(CLAIM, key, Claim)
    if isinstance(claim, Failure):
        return _nothing(claim)
    if not claim.spec.volume_name:
        return b""
    volume = await client.get(VOLUME, Key("", claim.spec.volume_name), Volume)
    if isinstance(volume, Failure):
        return _nothing(volume)
    owner = volume.spec.claim_ref
    affinity = volume.spec.node_affinity
    # Whoever makes a claim may name any volume in it, so the volume must name the claim as well.
    if owner is None or owner.uid != claim.metadata.uid or affinity is None:
        return b""
    text = bytes(affinity.required)
    return b"" if text == b"null" else text


def _nothing(failure: Failure) -> bytes | None:
    return b"" if failure.cause is Cause.NOT_FOUND else None


async def no_volume_lookup(_search: VolumeLookup) -> Volumes | None:
    """Return no answer: without a client, the template is used as it is."""
    return None
