"""Reads the pods in sandboxes; in other namespaces the operator may not."""

from collections.abc import Awaitable, Callable

import msgspec

from foresail.api.pod_problems import ObservedPod
from foresail.api.pods import POD
from foresail.kube.failures import Failure
from foresail.kube.pages import PageReader, read_pages
from foresail.kube.reflector import Page
from foresail.proof.checks.pod_rows import PodRow, Pods, PodsFound, pod_row

_MOST = 500  # pods of one sandbox
_pod = msgspec.json.Decoder(ObservedPod)
ReadPods = Callable[[Pods], Awaitable[PodsFound]]
"""Reads the pods of sandboxes."""


class SandboxReader:
    """Reads the pods of the sandboxes of one run."""

    def __init__(self, server: PageReader) -> None:
        self._server = server

    async def run(self, query: Pods) -> PodsFound:
        """Return the pods, or why they cannot be read; a new sandbox needs a moment until it may be read."""
        rows: list[PodRow] = []
        for _, sandbox in query.sandboxes:
            own: list[PodRow] = []
            async for page in read_pages(self._server, POD, sandbox, Page):
                if isinstance(page, Failure):
                    return PodsFound(problem=f"the pods in {sandbox} cannot be read: {page.cause.value}")
                own += [pod_row(_pod.decode(raw)) for raw in page.items or ()]
                if len(own) >= _MOST:
                    break
            rows += own[:_MOST]
        return PodsFound(tuple(rows))
