"""The bare limit: the four writes for each NonAdminBackup, and its Event, in a plain loop with the same watches.

What is written comes from the decisions themselves, made before the first write is sent.

python -m bench.selfservice.bare KUBECONFIG [NAMESPACE]
"""

import asyncio
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import msgspec

from bench import MeasurementError
from bench.draining import drained
from bench.operator import NAMESPACE
from bench.reading import everything
from foresail.api import core, nonadmin
from foresail.api.policy import SELF_SERVICE_POLICY, SelfServicePolicy
from foresail.kube.client import Client
from foresail.kube.clock import now
from foresail.kube.connect import connect
from foresail.kube.events import Events
from foresail.kube.failures import Failure
from foresail.kube.loop import WORKERS
from foresail.plan import Body, Create, JsonPatch, Note, Patch, Plan
from foresail.selfservice.controller import SelfService
from foresail.selfservice.families import BACKUPS
from foresail.selfservice.queue.window import Position
from foresail.selfservice.requests.decide import decide
from foresail.selfservice.requests.view import RequestView
from foresail.selfservice.rows.requests import RequestRow, request_row
from foresail.tenancy.namespaces import NamespaceRow, namespace_row
from foresail.tenancy.policies import PolicyRow, policy_for, policy_row


class _Version(msgspec.Struct):
    resource_version: str = msgspec.field(name="resourceVersion")


class _Answer(msgspec.Struct):
    metadata: _Version


@dataclass(frozen=True, slots=True)
class _Writes:
    accepted: Patch
    finalizer: JsonPatch
    backup: Create
    created: Patch
    notes: tuple[Note, ...]


def _writes(wire: dict[str, Any], seen: RequestView) -> _Writes:
    """Return what the operator writes for a request: decided once as it is, once as the first write leaves it."""
    accepted = decide(seen, now()).status
    if accepted is None:
        raise MeasurementError(f"{seen.request.key} is not accepted")
    then = msgspec.structs.replace(seen, request=_row({**wire, "status": accepted.body["status"]}))
    plan: Plan = decide(then, now())
    match plan.actions, plan.status:
        case (JsonPatch() as finalizer, Create() as backup), Patch() as created:
            return _Writes(accepted, finalizer, backup, created, plan.notes)
        case _:
            raise MeasurementError(f"{seen.request.key} is not made")


def _row(wire: dict[str, Any]) -> RequestRow:
    return request_row(msgspec.json.decode(msgspec.json.encode(wire), type=nonadmin.Request), BACKUPS)


def _versioned(body: Body, version: str) -> Body:
    metadata = body.get("metadata")
    known = metadata if isinstance(metadata, dict) else {}
    return {**body, "metadata": {**known, "resourceVersion": version}}


def _addressed(create: Create) -> Body:
    metadata = create.body["metadata"]
    known = metadata if isinstance(metadata, dict) else {}
    named = {**known, "name": create.key.name, "namespace": create.key.namespace, "annotations": dict(create.mark)}
    return {**create.body, "apiVersion": create.kind.api_version, "kind": create.kind.name, "metadata": named}


async def _write(client: Client, left: Iterator[_Writes], emit: Callable[[Note], None]) -> None:
    for each in left:
        first, kind, key = each.accepted, each.accepted.kind, each.accepted.key
        body = _versioned(first.body, first.resource_version or "")
        answer = await client.merge(kind, key, body, _Answer, first.subresource)
        version = _must_succeed(answer).metadata.resource_version
        guard = {"op": "replace", "path": "/metadata/resourceVersion", "value": version}
        _must_succeed(await client.json_patch(kind, key, (guard, *each.finalizer.operations), _Answer))
        _must_succeed(await client.create(each.backup.kind, each.backup.key, _addressed(each.backup), _Answer))
        _must_succeed(await client.merge(kind, key, each.created.body, _Answer, each.created.subresource))
        for note in each.notes:
            emit(note)


def _must_succeed(answer: _Answer | Failure) -> _Answer:
    if isinstance(answer, Failure):
        raise MeasurementError(f"a write of the bare loop was refused: {answer}")
    return answer


async def _known(client: Client) -> tuple[dict[str, NamespaceRow], list[PolicyRow]]:
    namespaces, _ = await everything(client, core.NAMESPACE, core.Namespace)
    policies, _ = await everything(client, SELF_SERVICE_POLICY, SelfServicePolicy)
    return {each.metadata.name: namespace_row(each) for each in namespaces}, [policy_row(each) for each in policies]


async def main(kubeconfig: str, only: str = "") -> None:
    """Write as the controller does, in the same order, with as many workers."""
    connection = await connect(kubeconfig)
    async with Client(connection) as client, Client(connection) as apart:
        namespaces, policies = await _known(client)
        found, _ = await everything(client, BACKUPS.kind, dict[str, Any], namespace=only)
        writes = []
        for place, wire in enumerate(found):
            row = _row(wire)
            namespace = namespaces[row.key.namespace]
            policy = policy_for(row.key.namespace, namespace.labels, policies, ())
            seen = RequestView(BACKUPS, row, NAMESPACE, namespace, policy, position=Position(place + 1))
            writes.append(_writes(wire, seen))
        left = iter(writes)
        events = Events(apart, "foresail", "bare", now)
        telling = asyncio.create_task(events.run())
        async with drained(client, SelfService(NAMESPACE).informers), asyncio.TaskGroup() as group:
            for _ in range(WORKERS):
                group.create_task(_write(client, left, events.emit))
        telling.cancel()


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
