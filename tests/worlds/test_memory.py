"""What is kept of objects that are gone: nothing, neither by the replica that leads nor by one that never did."""

import asyncio
from collections import Counter, deque
from collections.abc import Awaitable, Callable, Iterator
from typing import Any

import msgspec
import pytest

from foresail.api import batch, core, velero
from foresail.api.apps import DEPLOYMENT
from foresail.api.nonadmin import NON_ADMIN_DOWNLOAD_REQUEST, NON_ADMIN_RESTORE
from foresail.api.primer import PRIMER
from foresail.plan import Key, Kind
from foresail.primers.controller import Primers
from foresail.primers.reads import Volumes
from foresail.primers.shape import Shape
from foresail.primers.view import DryRunRequest, VolumeLookup
from foresail.schedules.controller import Schedules
from foresail.selfservice.controller import SelfService
from tests.worlds import primer_scene, schedule_scene, virtual_time
from tests.worlds.garbage import NAMESPACE
from tests.worlds.primer_scene import PrimerScene
from tests.worlds.process import CALM, Process
from tests.worlds.schedule_scene import ScheduleScene
from tests.worlds.tenancy import VELERO, Tenancy
from tests.worlds.visitor import Visitor
from tests.worlds.world import done

FIRST, MORE = 9, 4  # of Velero's answers, the last eight are kept
MINUTE = 60.0
_CONTAINERS = (dict, set, frozenset, list, deque)
Round = Callable[[int], Awaitable[None]]


class Never:
    """Follows for ever."""

    async def until_leader(self) -> None:
        await asyncio.Event().wait()

    async def until_follower(self) -> None:
        """Return at once: it never led."""


def kept(thing: object) -> Counter[str]:
    """Return how much is in all containers that our code holds on to, by the way to each."""
    found: Counter[str] = Counter()
    seen: set[int] = set()

    def walk(what: object, way: str) -> None:
        if id(what) in seen or isinstance(what, msgspec.Struct):
            return
        seen.add(id(what))
        if isinstance(what, asyncio.Queue):
            found[way] += what.qsize()
        elif isinstance(what, _CONTAINERS):
            found[way] += len(what)
            for each in what.values() if isinstance(what, dict) else what:
                walk(each, f"{way}[]")
        elif type(what).__module__.startswith("foresail."):
            for name, value in _attributes(what):
                walk(value, f"{way}.{name}")

    walk(thing, "loop")
    for way in [each for each in found if each.endswith("._order")]:
        del found[way]  # it may hold some that count no more; how many has a test of its own
    return found


def _attributes(what: object) -> Iterator[tuple[str, object]]:
    slots = [name for each in type(what).__mro__ for name in getattr(each, "__slots__", ())]
    for name in (*getattr(what, "__dict__", {}), *slots):
        yield name, getattr(what, name, None)


async def grown(leader: Process, follower: Process, life: Round) -> dict[str, Any]:
    """Return what has become more by lives that are over, after as many before them."""
    for number in range(FIRST):
        await life(number)
    before = [kept(each.loop) for each in (leader, follower)]
    for number in range(FIRST, FIRST + MORE):
        await life(number)
    after = [kept(each.loop) for each in (leader, follower)]
    for each in (leader, follower):
        await each.kill()
    both = zip(("leads", "follows"), before, after, strict=True)
    return {f"{who} {way}": more for who, old, new in both for way, more in (new - old).items()}


def follower_of(leader: Process, controller: Any) -> Process:  # noqa: ANN401 - any
    visitor = leader.visitor
    own = Visitor(visitor.world, weather=visitor.weather, role=visitor.role)
    return Process(own, controller, election=Never(), timing=CALM)


def test_deleted_schedules_and_backups_leave_nothing_in_memory() -> None:
    async def live() -> dict[str, int]:
        scene = ScheduleScene()
        leader = scene.start()

        async def life(number: int) -> None:
            name, at = f"s{number}", Key(schedule_scene.HOME, "velero")
            scene.make(name, "*/10 * * * *")
            rollout = done(scene.world.merge(DEPLOYMENT, at, {"spec": {"replicas": number + 2}}, "admin"))
            status = {"observedGeneration": rollout["metadata"]["generation"]}
            done(scene.world.merge(DEPLOYMENT, at, {"status": status}, "kube", "status"))
            await asyncio.sleep(25 * MINUTE)
            first = min(scene.world.history.present(velero.BACKUP))
            done(scene.world.delete(velero.BACKUP, first))
            await asyncio.sleep(MINUTE)
            done(scene.world.delete(velero.SCHEDULE, Key(schedule_scene.HOME, name)))
            await asyncio.sleep(MINUTE)
            for key in list(scene.world.history.present(velero.BACKUP)):
                done(scene.world.delete(velero.BACKUP, key))
            await asyncio.sleep(60 * MINUTE)

        return await grown(leader, follower_of(leader, Schedules(schedule_scene.HOME, scene.settings)), life)

    assert virtual_time.run(live()) == {}


@pytest.mark.parametrize("kinds", [(PRIMER, batch.CRON_JOB), (batch.CRON_JOB, PRIMER)], ids=["Primer", "CronJob"])
def test_deleted_primers_and_cronjobs_leave_nothing_in_memory(kinds: tuple[Kind, Kind]) -> None:
    async def live() -> dict[str, int]:
        scene = PrimerScene()
        leader = scene.start()

        async def life(number: int) -> None:
            key = Key(primer_scene.HOME, f"c{number}")
            scene.make_cron_job(key.name, "*/10 * * * *")
            scene.prime(key.name)
            await asyncio.sleep((19 - scene.clock().minute % 10) * MINUTE)
            assert scene.placeholders != []
            for kind in kinds:
                done(scene.world.delete(kind, key))
                await asyncio.sleep(MINUTE / 2)
            await asyncio.sleep(60 * MINUTE)
            assert scene.placeholders == []

        return await grown(leader, follower_of(leader, Primers(scene.settings)), life)

    assert virtual_time.run(live()) == {}


def test_a_cron_job_deleted_during_a_read_leaves_nothing_in_memory() -> None:
    async def live() -> dict[str, int]:
        scene = PrimerScene()
        asked: list[DryRunRequest | VolumeLookup] = []

        async def dry_run(request: DryRunRequest) -> Shape:
            asked.append(request)
            await asyncio.sleep(5)
            return request.template

        async def locate_volumes(lookup: VolumeLookup) -> Volumes:
            asked.append(lookup)
            await asyncio.sleep(5)
            return ()

        scene.dry_run, scene.locate_volumes = dry_run, locate_volumes
        leader = scene.start()

        async def life(number: int) -> None:
            key = Key(primer_scene.HOME, f"c{number}")
            await asyncio.sleep((13 - scene.clock().minute % 10) * MINUTE)
            mounts = {"name": "data", "persistentVolumeClaim": {"claimName": "data"}}
            scene.make_cron_job(key.name, "*/10 * * * *", pod={"volumes": [mounts]})
            scene.prime(key.name, "9m", allowStanding=True)
            await asyncio.sleep(7 if number % 2 else 1)
            assert isinstance(asked[-1], VolumeLookup if number % 2 else DryRunRequest)
            for kind in (batch.CRON_JOB, PRIMER):
                done(scene.world.delete(kind, key))
            await asyncio.sleep(60 * MINUTE)

        return await grown(leader, follower_of(leader, Primers(scene.settings)), life)

    assert virtual_time.run(live()) == {}


@pytest.mark.repeats
def test_deleted_requests_and_namespaces_leave_nothing_in_memory() -> None:
    async def live() -> dict[str, int]:
        tenancy = Tenancy()
        leader = tenancy.start()
        work = asyncio.create_task(tenancy.velero_works())

        async def life(number: int) -> None:
            space = f"n{number}"
            labels = {"foresail.dev/self-service": "enabled"}
            done(tenancy.world.create(NAMESPACE, {"metadata": {"name": space, "labels": labels}}, "admin"))
            done(tenancy.world.create(core.CLAIM, {"metadata": {"name": "data"}}, "tenant", space))
            tenancy.outcome = {"phase": velero.COMPLETED}
            tenancy.back_up(Key(space, "good"))
            tenancy.back_up(Key(space, "kept"))
            tenancy.back_up(Key(space, "wrong"), includedNamespaces=["kube-system"])
            await tenancy.settle()
            tenancy.restore(Key(space, "back"), "good")
            tenancy.download(Key(space, "log"), "BackupLog", "good")
            await tenancy.settle()
            tenancy.outcome = {"phase": "Failed"}
            tenancy.back_up(Key(space, "failed"))
            await tenancy.settle()
            tenancy.delete(Key(space, "back"), NON_ADMIN_RESTORE)
            tenancy.delete(Key(space, "log"), NON_ADMIN_DOWNLOAD_REQUEST)
            tenancy.delete(Key(space, "failed"))
            tenancy.edit(Key(space, "good"), deleteBackup=True)
            await tenancy.settle()
            tenancy.delete_namespace(space)
            await tenancy.settle()
            for kind in (velero.BACKUP, velero.RESTORE, velero.DOWNLOAD_REQUEST):
                for name in tenancy.velero_objects(kind):
                    done(tenancy.world.delete(kind, Key(VELERO, name)))
            await asyncio.sleep(60 * MINUTE)

        found = await grown(leader, follower_of(leader, SelfService(VELERO)), life)
        work.cancel()
        return found

    assert virtual_time.run(live()) == {}
