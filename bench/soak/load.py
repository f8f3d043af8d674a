"""What tenants do during the hour: they ask for backups, delete some, and restore a few."""

import asyncio
import random
from collections.abc import Awaitable, Callable, Sequence
from datetime import timedelta
from functools import partial
from typing import Any, TypeVar

import msgspec

from bench import MeasurementError
from bench.soak.filling import Named, request
from bench.soak.program import CREATE, DELETE, FORCE, RESTORE, Wish, namespace, wishes
from bench.soak.seen import Asked, Seen
from foresail.api.nonadmin import NON_ADMIN_BACKUP, NON_ADMIN_RESTORE
from foresail.api.velero import COMPLETED
from foresail.kube.client import Client
from foresail.kube.clock import now
from foresail.kube.failures import Cause, Failure
from foresail.plan import Key

_PASSING = (Cause.UNREACHABLE, Cause.SERVER, Cause.TOO_MANY, Cause.CONFLICT, Cause.EXPIRED)
_FIELDS = {DELETE: "deleteBackup", FORCE: "forceDeleteBackup"}
_TRIES = 20
T = TypeVar("T")


class _Found(msgspec.Struct):
    status: dict[str, Any] = {}


async def load(client: Client, seen: Seen) -> None:
    """Do everything that tenants do, each at its instant; one that meets a fault is tried until it is done."""
    chance = random.Random(seen.seed)  # noqa: S311 - chance, not secrecy
    for wish in wishes(seen.seed, seen.numbers):
        due = seen.begins + timedelta(seconds=wish.at)
        await asyncio.sleep(max((due - now()).total_seconds(), 0.0))
        if wish.verb == CREATE:
            await _create(client, seen, wish, chance)
        elif wish.verb == RESTORE:
            await _restore(client, seen, chance)
        else:
            await _want_gone(client, seen, wish.verb, chance)


async def _create(client: Client, seen: Seen, wish: Wish, chance: random.Random) -> None:
    key = Key(namespace(chance.randrange(seen.numbers.namespaces)), f"live-{wish.number:04}")
    made = await _until_done(partial(client.create, NON_ADMIN_BACKUP, key, request(key), Named))
    if made is None:  # an attempt before had done it
        made = await _until_done(partial(client.get, NON_ADMIN_BACKUP, key, Named))
    if made is None:
        raise MeasurementError(f"NonAdminBackup {key} is not there")
    seen.asked.append(Asked(key.namespace, key.name, made.metadata.uid, live=True))


async def _want_gone(client: Client, seen: Seen, verb: str, chance: random.Random) -> None:
    """Delete a backup of this hour, or by force one of any time: of those before, the bucket knows nothing."""
    some = _free(seen, is_live=verb == DELETE or chance.random() < 0.5)
    if not some:
        return
    one = chance.choice(some)
    one.wanted = verb
    key, body = Key(one.namespace, one.name), {"spec": {_FIELDS[verb]: True}}
    await _until_done(partial(client.merge, NON_ADMIN_BACKUP, key, body, msgspec.Raw))


async def _restore(client: Client, seen: Seen, chance: random.Random) -> None:
    """Restore a backup that is complete."""
    some = _free(seen, is_live=True)
    for one in chance.sample(some, min(len(some), _TRIES)):
        found = await _until_done(partial(client.get, NON_ADMIN_BACKUP, Key(one.namespace, one.name), _Found))
        if found is None or found.status.get("veleroBackup", {}).get("status", {}).get("phase") != COMPLETED:
            continue
        one.restore = f"back-{one.name}"
        key = Key(one.namespace, one.restore)
        body = {
            "apiVersion": NON_ADMIN_RESTORE.api_version,
            "kind": NON_ADMIN_RESTORE.name,
            "metadata": {"name": key.name, "namespace": key.namespace},
            "spec": {"restoreSpec": {"backupName": one.name}},
        }
        await _until_done(partial(client.create, NON_ADMIN_RESTORE, key, body, msgspec.Raw))
        return


def _free(seen: Seen, *, is_live: bool) -> Sequence[Asked]:
    return [each for each in seen.asked if each.live == is_live and not each.wanted and not each.restore]


async def _until_done(ask: Callable[[], Awaitable[T | Failure]]) -> T | None:
    """Ask until it is done; None if it had been done before, or if there is no such thing."""
    while True:
        answer = await ask()
        if not isinstance(answer, Failure):
            return answer
        if answer.cause in (Cause.ALREADY_EXISTS, Cause.NOT_FOUND):
            return None
        if answer.cause not in _PASSING:
            raise MeasurementError(f"a tenant was refused: {answer}")
        await asyncio.sleep(1)
