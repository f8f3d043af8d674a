"""A hostile tenant with the role `edit` against the operator's memory, and what others notice of it.

The tenant patches its requests with 1 MB of finalizers or spec each time, and creates requests with specs of 1 MB.
What the API server refuses counts as sent. Meanwhile other tenants create their first request.
"""

import asyncio
import itertools
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import Any

import msgspec

from bench import MeasurementError
from bench.operator import operator
from bench.selfservice.world import FLAGS, world
from foresail.api.nonadmin import NON_ADMIN_BACKUP, NON_ADMIN_RESTORE
from foresail.api.specs import MOST_ENTRIES
from foresail.kube.client import Client
from foresail.kube.connect import connect
from foresail.kube.failures import Cause, Failure
from foresail.plan import Body, Key, Kind
from foresail.selfservice.rows.requests import LARGEST_SPEC
from testbed import Cluster
from testbed.control_plane import CONTROLLER_MANAGER
from tests.cluster import tenants

HOSTILE = "hostile"
NEIGHBOURS = 5
_CALM = 5  # first requests before the attack
_TARGETS = 8
_AT_ONCE = 1  # requests that the tenant has in flight; with more of them it is the API server that is measured
_SHOWN_EVERY = 100  # requests
_LONGEST = 300.0
_QUIET_SECONDS = 5.0
_PREFIX = ".".join(["x" * 60] * 4)  # of a finalizer, as long as may be: few long texts are less work for the API server
_FIRST = "first"
_REFUSED = {"includedNamespaces": ["kube-system"]}


class _Condition(msgspec.Struct):
    type: str
    status: str


class _Status(msgspec.Struct):
    conditions: list[_Condition] = []


class _Found(msgspec.Struct):
    status: _Status = msgspec.field(default_factory=_Status)


@dataclass
class Attack:
    """What is sent, and what came of it."""

    cluster: Cluster
    hostile: Path  # the tenant's kubeconfig
    neighbours: dict[str, Path]  # by namespace
    memory: Callable[[], float]  # MiB that the operator holds
    sent: int = 0
    refused: int = 0
    first_requests: list[float] = field(default_factory=list)
    calm_requests: list[float] = field(default_factory=list)
    creations: list[float] = field(default_factory=list)  # seconds of each first request at the API server alone

    def run(self, patches: int, specs: int) -> dict[str, object]:
        """Attack, and return the figures."""
        return asyncio.run(self._run(patches, specs))

    async def _run(self, patches: int, specs: int) -> dict[str, object]:
        async with Client(await connect(str(self.hostile))) as client:
            await self._targets(client)
            for number in range(_CALM):
                namespace = next(iter(self.neighbours))
                self.calm_requests.append(await self._first_request(namespace, f"calm-{number}"))
            before = await self._settled()
            begun = time.monotonic()
            await self._send(client, patches, specs)
            seconds = time.monotonic() - begun
            after = await self._settled()
            await self._all(client, _kept(specs))
            kept = await self._settled()
        delay = max(self.first_requests) - median(self.calm_requests)
        return {
            "hostile_patches": patches,
            "hostile_specs": specs,
            "hostile_refused_by_api_server": self.refused,
            "hostile_s": round(seconds, 1),
            "hostile_rss_before_mib": round(before, 1),
            "hostile_rss_growth_mib": round(after - before, 1),
            "hostile_rss_growth_kept_mib": round(kept - before, 1),
            "hostile_delay_s": round(delay, 3),
            "hostile_api_server_s": [round(each, 3) for each in self.creations],
            "hostile_calm_s": [round(each, 3) for each in self.calm_requests],
            "hostile_first_requests_s": [round(each, 3) for each in self.first_requests],
        }

    async def _targets(self, client: Client) -> None:
        for number in range(_TARGETS):
            key = _target(number)
            answer = await client.create(NON_ADMIN_BACKUP, key, _backup(key, _REFUSED), msgspec.Raw)
            if isinstance(answer, Failure):
                raise MeasurementError(f"{key}: {answer}")

    async def _send(self, client: Client, patches: int, specs: int) -> None:
        async with asyncio.TaskGroup() as group:
            group.create_task(self._neighbours(patches + specs))
            await self._all(client, itertools.chain(_patches(patches), _creations(specs)))

    async def _all(self, client: Client, left: Iterator["_Write"]) -> None:
        async def work() -> None:
            for each in left:
                answer = await each.send(client)
                self.sent += 1
                if not self.sent % _SHOWN_EVERY:
                    print(f"{self.sent} sent, {self.refused} refused, {self.memory():.1f} MiB", flush=True)
                if isinstance(answer, Failure):
                    if answer.cause not in (Cause.INVALID, Cause.FORBIDDEN, Cause.OTHER, Cause.SERVER):
                        raise MeasurementError(f"{each.key}: {answer}")
                    self.refused += 1

        async with asyncio.TaskGroup() as group:
            for _ in range(_AT_ONCE):
                group.create_task(work())

    async def _neighbours(self, total: int) -> None:
        """Let each neighbour create its first request, spread over the attack."""
        for number, namespace in enumerate(self.neighbours, 1):
            while self.sent < total * number / (len(self.neighbours) + 1):  # noqa: ASYNC110 - a count, not an event
                await asyncio.sleep(0.05)
            self.first_requests.append(await self._first_request(namespace, _FIRST))

    async def _first_request(self, namespace: str, name: str) -> float:
        """Create a request as a neighbour; return the seconds until it is accepted."""
        key = Key(namespace, name)
        async with Client(await connect(str(self.neighbours[namespace]))) as client:
            await client.get(NON_ADMIN_BACKUP, key, _Found)  # the connection is made before
            begun = time.monotonic()
            answer = await client.create(NON_ADMIN_BACKUP, key, _backup(key, {}), msgspec.Raw)
            if isinstance(answer, Failure):
                raise MeasurementError(f"{key}: {answer}")
            if name == _FIRST:
                self.creations.append(time.monotonic() - begun)
            while time.monotonic() < begun + _LONGEST:
                found = await client.get(NON_ADMIN_BACKUP, key, _Found)
                if isinstance(found, _Found) and any(
                    each.type == "Accepted" and each.status == "True" for each in found.status.conditions
                ):
                    return time.monotonic() - begun
                await asyncio.sleep(0.01)
        raise MeasurementError(f"{key} is not accepted after {_LONGEST:g} s")

    async def _settled(self) -> float:
        """Return what the operator holds once every request has its answer."""
        async with Client(await connect(str(self.cluster.kubeconfig))) as client:
            deadline = time.monotonic() + _LONGEST
            for kind in (NON_ADMIN_BACKUP, NON_ADMIN_RESTORE):
                while not await _is_answered(client, kind):
                    if time.monotonic() > deadline:
                        raise MeasurementError(f"not every {kind.name} is answered after {_LONGEST:g} s")
                    await asyncio.sleep(0.5)
        await asyncio.sleep(_QUIET_SECONDS)
        return self.memory()


async def _is_answered(client: Client, kind: Kind) -> bool:
    """Tell whether each request of the hostile tenant has a condition; read in small pages, for they are large."""
    token = ""
    while True:
        parameters = {"limit": "20", **({"continue": token} if token else {})}
        page = await client.page(kind, HOSTILE, parameters, _Page)
        if isinstance(page, Failure):
            raise MeasurementError(f"{kind.name}: {page}")
        if not all(each.status.conditions for each in page.items):
            return False
        token = page.metadata.token
        if not token:
            return True


class _ListMetadata(msgspec.Struct):
    token: str = msgspec.field(default="", name="continue")


class _Page(msgspec.Struct):
    metadata: _ListMetadata
    items: list[_Found] = []


# What is sent


@dataclass(frozen=True, slots=True)
class _Write:
    kind: Kind
    key: Key
    body: Body
    is_patch: bool = False

    async def send(self, client: Client) -> msgspec.Raw | Failure:
        if self.is_patch:
            return await client.merge(self.kind, self.key, self.body, msgspec.Raw)
        return await client.create(self.kind, self.key, self.body, msgspec.Raw)


def _patches(count: int) -> Iterator[_Write]:
    """Return patches of 1 MB, in turn of finalizers and of the spec: both together are larger than an object may be."""
    for number in range(count):
        key, turn = _target(number % _TARGETS), number // _TARGETS
        if turn % 2:
            metadata: Body = {"finalizers": None}
            spec: Body = _large(number)
        else:
            finalizers = [f"{_PREFIX}/{number:08}-{each:050}" for each in range(3_200)]
            # Without the record of who manages which field, which has every finalizer once more.
            metadata = {"finalizers": finalizers, "managedFields": [{}]}
            spec = dict.fromkeys(_large(0))
        yield _Write(NON_ADMIN_BACKUP, key, {"metadata": metadata, "spec": {"backupSpec": spec}}, is_patch=True)


def _creations(count: int) -> Iterator[_Write]:
    """Return requests with specs of 1 MB, every tenth larger than the definition takes."""
    for number in range(count):
        spec = _large(number) if number % 10 else {"includedResources": ["x" * 2_000] * MOST_ENTRIES}
        if number % 2:
            key = Key(HOSTILE, f"restore-{number}")
            whole: dict[str, Any] = {"backupName": "none", **spec}
            body = _object(NON_ADMIN_RESTORE, key, {"restoreSpec": whole})
            yield _Write(NON_ADMIN_RESTORE, key, body)
        else:
            key = Key(HOSTILE, f"backup-{number}")
            yield _Write(NON_ADMIN_BACKUP, key, _backup(key, spec))


def _kept(count: int) -> Iterator[_Write]:
    """Return requests with the largest specs that the operator keeps, and refuses."""
    for number in range(count):
        key = Key(HOSTILE, f"kept-{number}")
        names = [f"{number:08}-{each:053}" for each in range(LARGEST_SPEC // 65 - 8)]
        yield _Write(NON_ADMIN_BACKUP, key, _backup(key, {**_REFUSED, "includedResources": names}))


def _large(number: int) -> dict[str, list[str]]:
    names = [f"{number:08}-{each:0990}" for each in range(MOST_ENTRIES)]
    return {"includedResources": names, "excludedResources": names}


def _target(number: int) -> Key:
    return Key(HOSTILE, f"target-{number}")


def _backup(key: Key, spec: Body) -> Body:
    return _object(NON_ADMIN_BACKUP, key, {"backupSpec": spec})


def _object(kind: Kind, key: Key, spec: Body) -> Body:
    metadata = {"name": key.name, "namespace": key.namespace}
    return {"apiVersion": kind.api_version, "kind": kind.name, "metadata": metadata, "spec": spec}


def arrive(cluster: Cluster) -> tuple[Path, dict[str, Path]]:
    """Make the hostile tenant and its neighbours; return their kubeconfigs."""

    def eventually(holds: Callable[[], object], seconds: float) -> None:
        deadline = time.monotonic() + seconds
        while not holds():
            if time.monotonic() > deadline:
                raise MeasurementError("the role edit has not got our rules")
            time.sleep(0.2)

    names = [HOSTILE, *(f"neighbour-{number}" for number in range(NEIGHBOURS))]
    found = {name: tenants.arrive(cluster, name, eventually).kubeconfig for name in names}
    return found.pop(HOSTILE), found


def hostile(patches: int, specs: int) -> dict[str, object]:
    """Measure what a hostile tenant does to the operator's memory and to its neighbours."""
    with world() as cluster:
        cluster.fault.start(CONTROLLER_MANAGER)  # it puts our rules into the role edit
        kubeconfig, neighbours = arrive(cluster)
        with operator(cluster, *FLAGS, settled="selfservice") as process:
            return Attack(cluster, kubeconfig, neighbours, process.memory_mib).run(patches, specs)
