"""Requests of one namespace that come together share one read of its pods; a pod with a hook is found each time."""

import asyncio
from collections.abc import Mapping
from typing import TypeVar

import msgspec
import pytest

from foresail.api.pods import POD
from foresail.kube.failures import Failure
from foresail.plan import Body, Key, Kind
from foresail.selfservice.access import reader
from foresail.selfservice.access.observe import PodCheck, PodsChecked
from foresail.selfservice.access.reader import AccessReader

T = TypeVar("T")
HOOKED: dict[str, object] = {"metadata": {"name": "web", "annotations": {"pre.hook.backup.velero.io/command": "sleep"}}}


class Server:
    """Lists the pods of a namespace, and counts how often."""

    def __init__(self) -> None:
        self.pods: list[dict[str, object]] = []
        self.lists: list[str] = []

    async def create(self, kind: Kind, key: Key, body: Body, of: type[T]) -> T | Failure:
        raise NotImplementedError

    async def discover(self, of: type[T]) -> T | Failure:
        raise NotImplementedError

    async def page(
        self, kind: Kind, namespace: str, parameters: Mapping[str, str], of: type[T], *, metadata_only: bool = False
    ) -> T | Failure:
        assert kind == POD
        assert metadata_only
        assert parameters["limit"]
        self.lists.append(namespace)
        return msgspec.convert({"metadata": {}, "items": self.pods}, of)


def test_requests_of_one_namespace_share_a_read_for_a_while(monkeypatch: pytest.MonkeyPatch) -> None:
    async def story() -> None:
        server = Server()
        checks = AccessReader(server)
        for namespace in ("red", "red", "blue"):
            assert await checks.run(PodCheck(namespace)) == PodsChecked()
        assert server.lists == ["red", "blue"]
        monkeypatch.setattr(reader, "_PODS_SECONDS", 0.0)
        await checks.run(PodCheck("red"))
        assert server.lists == ["red", "blue", "red"]

    asyncio.run(story())


def test_a_pod_with_a_hook_is_read_again_each_time() -> None:
    async def story() -> None:
        server = Server()
        server.pods = [HOOKED]
        checks = AccessReader(server)
        for _ in range(2):
            assert await checks.run(PodCheck("red")) == PodsChecked("web", "pre.hook.backup.velero.io/command")
        server.pods = []
        assert await checks.run(PodCheck("red")) == PodsChecked()
        assert server.lists == ["red"] * 3

    asyncio.run(story())
