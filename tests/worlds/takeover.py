"""A follower takes over after every event and around every write of a long history, for each capability.

The old leader is killed, or loses the lead for a while.

Afterwards each key is in the queue, has a timer, or has a reason that its status or its verdict states; and the end
is that of a life without a takeover. `python -m tests.worlds.takeover` tries every point, the tests a sample.
"""

import asyncio
import json
import re
import sys
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

from foresail.api.marks import CHECK, CHECK_NAMESPACE, CHECK_RUN
from foresail.api.nonadmin import NON_ADMIN_BACKUP, NON_ADMIN_RESTORE, NON_ADMIN_SCHEDULE
from foresail.kube.loop import Loop
from foresail.plan import Key, Plan
from foresail.primers.controller import Primers
from foresail.primers.view import PrimerView
from foresail.proof.checks.controller import RestoreChecks
from foresail.proof.checks.view import CheckView
from foresail.schedules.controller import Schedules
from foresail.schedules.observe import ScheduleView as ScheduleSeen
from foresail.schedules.rules import Verdict
from foresail.schedules.velero_server import VeleroView
from foresail.selfservice.controller import SelfService
from foresail.selfservice.downloads.view import DownloadView
from foresail.selfservice.garbage.dangling import DanglingView
from foresail.selfservice.requests.view import RequestView
from foresail.selfservice.results import decide as results
from foresail.selfservice.results.view import ResultsView
from foresail.selfservice.schedules.rules import Verdict as TenantVerdict
from foresail.selfservice.schedules.view import ScheduleView
from foresail.tenancy.records import nacuuid_of
from tests.worlds import virtual_time
from tests.worlds.documents import Document
from tests.worlds.history import Happening
from tests.worlds.primer_scene import PrimerScene
from tests.worlds.process import Moment, Process, Turnover
from tests.worlds.schedule_scene import ScheduleScene
from tests.worlds.tenancy import Tenancy
from tests.worlds.tenant_checks import TenantScene as CheckedScene
from tests.worlds.tenant_schedules import TenantScene
from tests.worlds.virtual_time import BEGINNING
from tests.worlds.world import World

PINNED = "velero/velero@sha256:0123456789abcdef"
DIFFERS = "*/10 * 1 * 4"  # both days in one dialect, either in the other
_WORKERS = 4
_FIRST_LOOK = 5.0  # seconds after a takeover
_PAUSE = 20.0  # seconds without the lead
_MOMENT = timedelta(seconds=1)
_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:(?!00Z)\d\d(\.\d+)?Z")  # those of slots are whole minutes
_UID_OR_RUN = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}|\b[0-9a-f]{10}\b")
_NOT_COMPARED = ("resourceVersion", "creationTimestamp", "generation", "uid", "managedFields")
Scene = Any  # ScheduleScene, PrimerScene or Tenancy


@dataclass(frozen=True, slots=True)
class Point:
    """When the follower takes over: after the n-th event, or before or after the n-th write of the leader.

    The leader is killed there; of a `pause`, after the n-th event too, it loses the lead and has it again later.
    """

    when: str
    number: int

    def __str__(self) -> str:
        return f"{self.when} {self.number}"


@dataclass
class Ended:
    """How a life ended."""

    state: dict[str, str]
    events: int = 0
    writes: int = 0
    came: bool = False  # whether there was a takeover
    stuck: set[str] = field(default_factory=set)


@dataclass(frozen=True)
class Life:
    """A history of one capability: its world, what people do, its keys, and why a key may wait without a timer."""

    name: str
    make: Callable[[], Scene]
    story: Callable[[Scene], Awaitable[None]]
    keys: Callable[[Any], Iterable[Key]]
    reason: Callable[[Any, Plan], str]


# Lives


async def scheduled(scene: ScheduleScene) -> None:
    """Fire, pause, skip, edit, hold, roll Velero out, delete: half an hour of it."""
    scene.make("plain", "*/10 * * * *")
    scene.make("skips", "*/10 * * * *", skipImmediately=True)
    scene.make("differs", DIFFERS)
    scene.make("edited", "5 * * * *")
    scene.make("wrong", "no expression")
    edits: list[tuple[int, Callable[[], object]]] = [
        (60, lambda: scene.write("plain", paused=True)),
        (570, lambda: scene.locate("Unavailable")),
        (660, lambda: scene.locate("Available")),
        (720, lambda: scene.write("plain", paused=False)),
        (780, lambda: scene.write("edited", schedule="*/10 * * * *")),
        (840, lambda: scene.by_hand("skips", "manual")),
        (900, lambda: scene.write("wrong", schedule="*/15 * * * *")),
        (960, lambda: scene.world.delete(*_at(scene, "edited"))),
    ]
    for second, edit in edits:
        await scene.until(BEGINNING + timedelta(seconds=second + 0.5))
        edit()
    await scene.until(BEGINNING + timedelta(minutes=31))


def _at(scene: ScheduleScene, name: str) -> tuple[Any, Key]:
    kind = next(each for each in scene.world.kinds if each.name == "Schedule")
    return kind, Key("velero", name)


async def primed(scene: PrimerScene) -> None:
    """Prime two CronJobs through fires, a suspension, a lost placeholder and a deletion."""
    scene.make_cron_job("daily", "*/10 * * * *", job={"parallelism": 2})
    scene.make_cron_job("other", "*/15 * * * *")
    scene.prime("daily", "5m")
    scene.prime("other")
    scene.prime("nothing")
    await scene.until(BEGINNING + timedelta(minutes=12.3))
    scene.change_primer("other", suspend=True)
    await scene.until(BEGINNING + timedelta(minutes=14.3))
    scene.change_primer("other", suspend=False)
    await scene.until(BEGINNING + timedelta(minutes=16.3))
    pods = next(each for each in scene.world.kinds if each.name == "Pod")
    for name in scene.placeholders[:1]:
        scene.world.delete(pods, Key("reports", name))
    await scene.until(BEGINNING + timedelta(minutes=22.3))
    scene.change_cron_job("daily", suspend=True)
    primers = next(each for each in scene.world.kinds if each.name == "Primer")
    scene.world.delete(primers, Key("reports", "other"))
    await scene.until(BEGINNING + timedelta(minutes=31))


async def served(tenancy: Tenancy) -> None:
    """Back up, restore, download, fail, wait for a turn, and delete in every way."""
    kept, forced, deleted, plain, wrong = (Key("red", name) for name in ("kept", "forced", "deleted", "plain", "wrong"))
    restored, removed = Key("red", "restored"), Key("red", "removed")
    work = asyncio.create_task(tenancy.velero_works())
    for key in (kept, forced, deleted, plain):
        tenancy.back_up(key)
    tenancy.back_up(wrong, includedNamespaces=["blue"])
    await tenancy.settle(40)
    tenancy.restore(restored, "kept")
    tenancy.restore(removed, "kept")
    tenancy.download(Key("red", "log"), "BackupLog", "kept")
    await tenancy.settle(40)
    tenancy.outcome = {"phase": "Failed"}
    tenancy.back_up(Key("blue", "failed"))
    await tenancy.settle(40)
    tenancy.outcome = {"phase": "Completed"}
    tenancy.edit(forced, forceDeleteBackup=True)
    tenancy.edit(deleted, deleteBackup=True)
    tenancy.delete(plain)
    tenancy.delete(removed, NON_ADMIN_RESTORE)
    await tenancy.settle(60)
    tenancy.delete_namespace("blue")
    await tenancy.settle(100)
    work.cancel()


async def served_on_schedule(scene: TenantScene) -> None:
    """Run, pause, skip, edit, refuse, exceed the policy, delete: half an hour of tenants' schedules."""
    work = asyncio.create_task(scene.velero_works())
    plain, skips, edited, wrong, extra = (Key("red", name) for name in ("plain", "skips", "edited", "wrong", "extra"))
    scene.schedule(plain, "*/5 * * * *")
    scene.schedule(skips, "*/10 * * * *", skipImmediately=True)
    scene.schedule(edited, "3 * * * *")
    scene.schedule(wrong, "no expression")
    await scene.until(BEGINNING + timedelta(seconds=30.5))
    scene.schedule(extra, "*/10 * * * *")
    edits: list[tuple[int, Callable[[], object]]] = [
        (390, lambda: scene.edit(plain, NON_ADMIN_SCHEDULE, paused=True)),
        (630, lambda: scene.edit(plain, NON_ADMIN_SCHEDULE, paused=False)),
        (690, lambda: scene.edit(edited, NON_ADMIN_SCHEDULE, schedule="*/10 * * * *")),
        (750, lambda: scene.edit(skips, NON_ADMIN_SCHEDULE, skipImmediately=True)),
        (810, lambda: scene.edit(wrong, NON_ADMIN_SCHEDULE, schedule="*/15 * * * *")),
        (930, lambda: scene.delete(edited, NON_ADMIN_SCHEDULE)),
    ]
    for second, edit in edits:
        await scene.until(BEGINNING + timedelta(seconds=second + 0.5))
        edit()
    await scene.until(BEGINNING + timedelta(minutes=31.5))
    work.cancel()


async def checked(scene: CheckedScene) -> None:
    """Pass, fail and keep, wait for a turn, ask again, delete: half an hour of checks of everybody."""
    own, theirs = Key("red", "own"), Key("blue", "own")
    scene.make_check(keepFailed="1m")
    scene.ask(own)
    scene.back_up("nightly-1")
    await asyncio.sleep(60)
    scene.back_up_own("monday", "red")
    scene.back_up_own("monday", "blue")
    scene.ask(theirs)
    await asyncio.sleep(60)
    scene.lost = {"red/settings"}
    scene.back_up("nightly-2")
    await asyncio.sleep(120)
    scene.lost = set()
    scene.check_now("again")
    scene.ask(Key("red", "second"), suspend=True)
    await asyncio.sleep(60)
    scene.delete_check(theirs)
    await asyncio.sleep(1500)


def _check_keys(controller: RestoreChecks) -> Iterable[Key]:
    return controller.state.checks


def _why_no_check(seen: CheckView, _: Plan) -> str:
    ready = next((each for each in seen.check.status.conditions if each.type == "Ready"), None) if seen.check else None
    return ready.reason if ready is not None else ""


def schedule_keys(controller: Schedules) -> Iterator[Key]:
    yield from controller.schedules
    yield Key("", "velero")


def why_no_schedule(seen: ScheduleSeen | VeleroView, plan: Plan) -> str:
    if isinstance(seen, VeleroView):
        return "" if all(row.is_rolled_out for row in seen.servers) else "Velero is being rolled out"
    verdict = plan.claim(Verdict)
    assert verdict is not None
    because = verdict.refused or verdict.blocked_by
    return "paused" if seen.schedule.paused else because.reason.value if because is not None else ""


def primer_keys(controller: Primers) -> Iterable[Key]:
    return controller.state.primers


def why_no_primer(seen: PrimerView, _: Plan) -> str:
    return "" if seen.targets else "no CronJob"


def request_keys(controller: SelfService) -> Iterator[Key]:
    for side in controller.cluster.families:
        for key in side.requests:
            yield side.key(key)
            yield controller.results.key(side.key(key))
        yield from controller.dangling.keys(side, (row for row in side.velero.rows() if row.is_waiting))
    yield from map(controller.downloads.key, controller.downloads.requests)
    yield from map(controller.schedules.key, controller.schedules.schedules)


def _why_no_request(seen: RequestView | DownloadView | ResultsView | DanglingView, _: Plan) -> str:
    if isinstance(seen, DanglingView):
        return "its namespace is there"
    if isinstance(seen, ResultsView):
        is_complete = seen.velero is not None and seen.velero.phase not in results.FAILED  # and ended long ago
        return "nothing to explain" if results.is_over(seen) or seen.answers or is_complete else ""
    if seen.request is None:
        return "deleted"
    if isinstance(seen, DownloadView):
        return "Velero is asked" if seen.answers else seen.request.status.phase
    return " ".join(each.reason for each in seen.request.status.conditions)


def why_no_tenant_schedule(
    seen: ScheduleView | RequestView | DownloadView | ResultsView | DanglingView, plan: Plan
) -> str:
    if not isinstance(seen, ScheduleView):
        return _why_no_request(seen, plan)
    verdict = plan.claim(TenantVerdict)
    assert verdict is not None
    because = verdict.refused or verdict.blocked_by
    return "paused" if seen.schedule.paused else because.reason.value if because is not None else ""


LIVES = (
    Life("restore checks", CheckedScene, checked, _check_keys, _why_no_check),
    Life("schedules", lambda: ScheduleScene(image=PINNED), scheduled, schedule_keys, why_no_schedule),
    Life("primers", PrimerScene, primed, primer_keys, why_no_primer),
    Life("selfservice", lambda: Tenancy(window=2, restore_window=1), served, request_keys, _why_no_request),
    Life(
        "tenant schedules",
        lambda: TenantScene(maximum=4, keepLast=2, gracePeriod="0s"),
        served_on_schedule,
        request_keys,
        why_no_tenant_schedule,
    ),
)


# One life


def live(life: Life, point: Point | None = None) -> Ended:
    """Live through a history with one takeover in it, or none, and say how it ended."""
    return virtual_time.run(_live(life, point))


async def _live(life: Life, point: Point | None) -> Ended:
    scene, ended, dying = life.make(), Ended({}), list[asyncio.Task[None]]()
    ours, theirs, later = Turnover(is_leader=True), Turnover(), asyncio.get_running_loop().call_later
    is_aimed = point is not None and point.when in ("before", "after")
    dies = Moment(after=point.when == "after", write=point.number) if point is not None and is_aimed else None
    is_pause = point is not None and point.when == "pause"
    leader = scene.follow(ours, _WORKERS) if is_pause else scene.start(dies, _WORKERS)
    follower = scene.follow(theirs, _WORKERS)

    def look(at: Process) -> None:
        ended.stuck |= set(stuck(at.loop, life))

    def give_back() -> None:
        theirs.follow()
        ours.lead()
        later(_FIRST_LOOK, look, leader)

    def take_over() -> None:
        ended.came = True
        theirs.lead()
        if is_pause:
            ours.follow()
            later(_PAUSE, give_back)
        else:
            leader.visitor.dead = True
            dying.append(asyncio.create_task(leader.kill()))
        later(_FIRST_LOOK, look, follower)

    def heard(_: Happening) -> None:
        ended.events += 1
        if point in (Point("event", ended.events), Point("pause", ended.events)):
            take_over()

    leader.on_death = take_over
    scene.world.history.listeners.append(heard)
    await life.story(scene)
    look(follower if theirs.is_leader else leader)
    ended.writes, ended.state = len(leader.visitor.writes), state(scene.world)
    await asyncio.gather(*(dying or [leader.kill()]), follower.kill())
    return ended


def stuck(loop: Loop[Any], life: Life) -> Iterator[str]:
    """Return the keys about which nobody will ever decide again though there is something to decide."""
    queue, controller, now = loop.queue, loop.controller, loop._now()  # noqa: SLF001 - all of it is looked into
    waiting = (queue._live, queue._initial, queue._working, queue._again, queue._backoffs._due)  # noqa: SLF001
    reading = loop.background_reads.requested if loop.background_reads is not None else []
    for key in life.keys(controller):
        seen = None if any(key in each for each in waiting) else controller.observe(key, now)
        if seen is None:
            continue
        plan, timer = controller.decide(seen, now), queue._instants._due.get(key)  # noqa: SLF001
        soon = max(plan.wake_at, now) + _MOMENT if plan.wake_at is not None else None
        if soon is not None and (timer is None or timer > soon):
            yield f"{key} waits for {plan.wake_at}, and its timer is {timer}"
        elif timer is None and (plan.writes or (plan.reads and key not in reading)):
            yield f"{key} is to be written about, and nobody looks at it"
        elif timer is None and soon is None and key not in reading and not life.reason(seen, plan):
            yield f"{key} has no timer, and nothing says why"


def state(world: World) -> dict[str, str]:
    """Return all objects, without what may differ between two lives that come to the same end."""
    known = names(world.history.happenings)
    found = {}
    for kind in world.kinds:
        for key, document in world.history.present(kind).items():
            metadata = {name: value for name, value in document["metadata"].items() if name not in _NOT_COMPARED}
            text = json.dumps({**document, "metadata": metadata, **_in_order(document)}, sort_keys=True)
            found[named(f"{kind.name} {key}", known)] = _TIME.sub("…", named(text, known))
    return found


def _in_order(document: Document) -> Document:
    """Return the status with its conditions by their type: their order means nothing."""
    status = document.get("status", {})
    if "conditions" not in status:
        return {}
    return {"status": {**status, "conditions": sorted(status["conditions"], key=lambda each: str(each["type"]))}}


def names(happenings: Sequence[Happening]) -> dict[str, str]:
    """Return a name for each UID: of which object it is, in the order in which its name was used."""
    known: dict[str, str] = {}
    for one in happenings:
        uid = (one.after or one.gone)["metadata"]["uid"]
        known.setdefault(uid, named(f"<{one.kind.name} {one.key}>", known))
        annotations = (one.after or one.gone)["metadata"].get("annotations", {})
        run = annotations.get(CHECK_RUN)
        if run is not None and run not in known:  # it follows from the UIDs of the check and of the backup
            check = f"{annotations.get(CHECK_NAMESPACE, '')}/{annotations[CHECK]}"
            number = sum(name.endswith(f"of {check}>") for name in known.values())
            known[run] = f"<run {number} of {check}>"
        if one.kind in (NON_ADMIN_BACKUP, NON_ADMIN_RESTORE):
            velero_name = nacuuid_of(
                one.key.namespace, one.key.name, uid
            )  # ends with a UUID that follows from this one
            known.setdefault(velero_name[-36:], f"<of {one.kind.name} {one.key}>")
    return known


def named(text: str, known: dict[str, str]) -> str:
    """Return a text with names in the place of UIDs."""
    return _UID_OR_RUN.sub(lambda found: known.get(found[0], found[0]), text)


# All points


def points(whole: Ended) -> list[Point]:
    """Return every point of a history at which a follower can take over."""
    events = [Point(when, number) for when in ("event", "pause") for number in range(1, whole.events + 1)]
    return events + [Point(when, number) for when in ("before", "after") for number in range(1, whole.writes + 1)]


def faults(life: Life, point: Point, whole: Ended) -> list[str]:
    """Return what is wrong after a takeover at a point: keys that are stuck, and objects that end differently."""
    ended = live(life, point)
    found = [f"{life.name}, {point}: {each}" for each in sorted(ended.stuck)]
    for name in sorted(whole.state.keys() | ended.state.keys()):
        before, after = whole.state.get(name), ended.state.get(name)
        if before != after:
            found.append(f"{life.name}, {point}: {name} is\n    {after}\n  and not\n    {before}")
    if not ended.came:
        found.append(f"{life.name}, {point}: nobody took over")
    return found


def main() -> int:
    """Try every point of every life; the last line is one JSON object."""
    tried = wrong = 0
    for life in LIVES:
        whole = live(life)
        print(f"{life.name}: {whole.events} events, {whole.writes} writes", flush=True)
        for point in points(whole):
            found = faults(life, point, whole)
            tried, wrong = tried + 1, wrong + bool(found)
            for each in found:
                print(each, flush=True)
    print(json.dumps({"points": tried, "stuck": wrong}))
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main())
