"""Reads the pods in sandboxes; in other namespaces the operator may not."""

from collections.abc import Awaitable, Callable, Mapping
from typing import Protocol, TypeVar

from foresail.api.pods import POD
from foresail.kube.failures import Failure
from foresail.plan import Kind
from foresail.proof.checks.pod_rows import PodList, PodRow, Pods, PodsFound, pod_row

T = TypeVar("T")
_MOST = "500"
ReadPods = Callable[[Pods], Awaitable[PodsFound]]
"""Reads the pods of sandboxes."""


class Lists(Protocol):
    """What is asked of the API server."""

    async def page(self, kind: Kind, namespace: str, parameters: Mapping[str, str], of: type[T]) -> T | Failure:
        """Read one page of a list."""


class SandboxReader:
    """Reads the pods of the sandboxes of one run."""

    def __init__(self, server: Lists) -> None:
        self._server = server

    async def run(self, query: Pods) -> PodsFound:
        """Return the pods, or why they cannot be read; a new sandbox needs a moment until it may be read."""
        rows: list[PodRow] = []
        for _, sandbox in query.sandboxes:
            found = await self._server.page(POD, sandbox, {"limit": _MOST}, PodList)
            if isinstance(found, Failure):
                return PodsFound(problem=f"the pods in {sandbox} cannot be read: {found.cause.value}")
            rows += [pod_row(each) for each in found.items or ()]
        return PodsFound(tuple(rows))
