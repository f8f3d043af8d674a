"""The watch at servers that no API server can be made to be: each refuses the same thing for ever."""

import asyncio
import json
from collections.abc import Mapping
from types import TracebackType
from typing import Any, Self

import msgspec
import pytest

from foresail.kube.failures import Failure, failure
from foresail.kube.reflector import Interest, Reflector
from foresail.kube.store import Store
from foresail.kube.watch import Watch
from foresail.plan import Kind
from tests.worlds import virtual_time

THING = Kind("example.dev", "v1", "things", "Thing")
_GONE = failure(410, "Expired", "too old resource version")
_BOOKMARK = {"metadata": {"resourceVersion": "5", "annotations": {"k8s.io/initial-events-end": "true"}}}


class Wire(msgspec.Struct):
    pass


class Said:
    """A stream of some lines, which then ends."""

    def __init__(self, *lines: dict[str, Any]) -> None:
        self._left = [json.dumps(line).encode() + b"\n" for line in lines]

    async def read(self) -> bytes:
        return self._left.pop(0) if self._left else b""

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None
    ) -> None:
        pass


class Forgetful:
    """Lists whenever asked, as a stream or in pages, and has forgotten that place when asked to go on from it."""

    def __init__(self, *, streams: bool) -> None:
        self.lists = 0
        self._streams = streams

    async def stream(self, _: Kind, __: str, parameters: Mapping[str, str], **___: object) -> Said | Failure:
        if "sendInitialEvents" not in parameters:
            return _GONE
        if not self._streams:
            return failure(500, "InternalError", "no streams today")
        self.lists += 1
        gone = {"code": 410, "reason": "Expired", "message": "too old"}
        return Said({"type": "BOOKMARK", "object": _BOOKMARK}, {"type": "ERROR", "object": gone})

    async def page(self, _: Kind, __: str, ___: Mapping[str, str], of: type[Any], **____: object) -> object:
        self.lists += 1
        return msgspec.json.decode(b'{"metadata": {"resourceVersion": "5"}, "items": []}', type=of)


@pytest.mark.parametrize("streams", [True, False])
def test_a_server_that_forgets_at_once_is_listed_less_and_less_often(*, streams: bool) -> None:
    server = Forgetful(streams=streams)
    interest = Interest(THING, Wire, lambda _: 0)
    watch = Watch(server, Reflector(interest, Store[int](), lambda _: None, lambda _: None))  # type: ignore[arg-type]

    async def run() -> None:
        running = asyncio.create_task(watch.run())
        await asyncio.sleep(600)
        running.cancel()

    virtual_time.run(run())
    assert watch.reflector.synced
    assert 30 < server.lists < 120  # every 7.5 to 12.5 s, after a few quick ones
