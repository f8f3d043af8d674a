"""What the background read of a check returns: the contents, and the version of the cluster if it can be read."""

import asyncio
from typing import TypeVar

import msgspec
import pytest

from foresail.kube.failures import Cause, Failure
from foresail.proof.checks.kinds import Wanted
from foresail.proof.checks.reads import FileReader
from foresail.proof.checks.view import Files

T = TypeVar("T")


class Server:
    """An API server that serves nothing outside the core group."""

    def __init__(self, version: str) -> None:
        self._version = version

    async def discover(self, of: type[T]) -> T | Failure:
        return msgspec.convert({"items": []}, of)

    async def version(self, of: type[T]) -> T | Failure:
        if not self._version:
            return Failure(Cause.UNREACHABLE, "GET /version: no answer")
        return msgspec.convert({"gitVersion": self._version}, of)


async def fetch(_url: str, _authority: str) -> bytes:
    return b'{"v1/ConfigMap": ["red/settings"]}'


@pytest.mark.parametrize("version", ["v1.36.0", ""])
def test_the_version_of_the_cluster_is_noted_and_a_check_does_not_need_it(version: str) -> None:
    found = asyncio.run(FileReader(Server(version), fetch).run(Files("run", "url", Wanted())))
    assert found.contents is not None
    assert [str(each) for each in found.contents.expected] == ["ConfigMap red/settings"]
    assert (found.problem, found.kubernetes) == ("", version)
