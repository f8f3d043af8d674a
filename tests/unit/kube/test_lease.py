"""What the Lease tells beside its holder: it is as fresh as the Lease, and costs no write of its own."""

import asyncio
from typing import TYPE_CHECKING, Any, cast

import msgspec

from foresail.kube.candidate import LeaseTiming
from foresail.kube.clock import now
from foresail.kube.failures import Cause, Failure
from foresail.kube.lease import Leadership
from foresail.plan import Key

if TYPE_CHECKING:
    from foresail.kube.client import Client

TIMING = LeaseTiming(1, 0.5, 0.1)


class Server:
    """An API server with at most one Lease."""

    def __init__(self) -> None:
        self.lease: dict[str, Any] = {}
        self.writes: list[dict[str, Any]] = []

    def _answer(self, of: Any) -> Any:  # noqa: ANN401 - as the client
        return msgspec.convert(self.lease, of)

    async def get(self, _kind: object, _key: object, of: Any) -> Any:  # noqa: ANN401
        return self._answer(of) if self.lease else Failure(Cause.NOT_FOUND, "none")

    async def create(self, kind: object, key: object, body: dict[str, Any], of: Any) -> Any:  # noqa: ANN401
        return await self.merge(kind, key, body, of)

    async def merge(self, _kind: object, _key: object, body: dict[str, Any], of: Any) -> Any:  # noqa: ANN401
        self.writes.append(body)
        version = str(len(self.writes))
        known = self.lease.get("metadata", {}).get("annotations", {}) | body["metadata"].get("annotations", {})
        self.lease = {"metadata": {"resourceVersion": version, "annotations": known}, "spec": body["spec"]}
        return self._answer(of)


async def renewed(server: Server, annotations: dict[str, str], times: int) -> None:
    """Lead until the Lease was written so many times, and release it."""
    leadership = Leadership(cast("Client", server), Key("velero", "l"), "me", now, TIMING, lambda: dict(annotations))
    running = asyncio.create_task(leadership.run())
    while len(server.writes) < times:
        await asyncio.sleep(0.01)
        if annotations and len(server.writes) == 3:
            annotations["seen"] = "1"
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)
    await leadership.release()


def test_a_renewal_writes_what_is_true_then_if_it_differs() -> None:
    server = Server()
    asyncio.run(renewed(server, {"seen": "0"}, 5))
    seen = [body["metadata"].get("annotations", {}).get("seen") for body in server.writes]
    assert seen[:2] == [None, "0"], "the fence of the token admits only a Lease without annotations"
    assert "1" in seen[3:]
    assert sum(each is not None for each in seen) == 2
    holders = [body["spec"]["holderIdentity"] for body in server.writes]
    assert holders == ["me"] * (len(holders) - 1) + [""], "each write is a renewal, or the release"


def test_what_somebody_else_wrote_is_written_again() -> None:
    server = Server()
    asyncio.run(renewed(server, {"seen": "0"}, 2))
    server.lease["metadata"]["annotations"] = {"seen": "forged"}
    server.writes.clear()
    asyncio.run(renewed(server, {"seen": "0"}, 1))
    assert server.lease["metadata"]["annotations"]["seen"] == "0"


def test_without_anything_to_tell_the_metadata_stays_as_it_was() -> None:
    server = Server()
    asyncio.run(renewed(server, {}, 2))
    assert all("annotations" not in body["metadata"] for body in server.writes)
