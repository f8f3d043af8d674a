"""Lives of Rollbacks: each story with each fault at each step, and with deaths of the operator at its writes."""

import asyncio
import random
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from foresail.api import core
from foresail.api.nonadmin import NON_ADMIN_RESTORE
from foresail.api.policy import SELF_SERVICE_POLICY
from foresail.api.rollback import ROLLBACK
from foresail.plan import Key
from foresail.rollback.kinds import HELM_RELEASE, KUSTOMIZATION
from tests.worlds import virtual_time
from tests.worlds.garbage import NAMESPACE
from tests.worlds.history import Happening
from tests.worlds.process import Moment
from tests.worlds.rollback_scene import KEY, NAME, SHOP, Judged, RollbackScene
from tests.worlds.rollback_storage import VOLUME_FAULTS, StorageScene

STEPS = ("Planning", "SafetyBackup", "Suspending", "Restoring", "Pruning", "Comparing", "Resuming", "Undoing")
VOLUME_STEPS = (*STEPS[:3], "Stopping", "Replacing", *STEPS[3:])
LONG = 2400.0
"""Seconds of a life: longer than any fault, the longest pause between attempts, and what a step waits for."""

_TIDIES = 20
"""Seconds after the end of a Rollback in which the operator, started again if it dies, takes away what it needed."""

Fault = Callable[[RollbackScene], None]


@dataclass(frozen=True)
class Story:
    """What is asked for."""

    name: str
    prunes: bool = False
    only: tuple[str, ...] | None = None
    undo_after: bool = False  # asked for once the Rollback is complete
    dry: bool = False
    volumes: str = ""

    def scene(self) -> RollbackScene:
        """Return the shop of this story."""
        dry = {"dryRun": True} if self.dry else {}
        if self.volumes:
            return StorageScene(prunes=self.prunes, only=self.only, volumes=self.volumes, **dry)
        return RollbackScene(prunes=self.prunes, only=self.only, **dry)


STORIES = (
    Story("plain"),
    Story("pruned", prunes=True),
    Story("some kinds", only=("configmaps",)),
    Story("undone", undo_after=True),
    Story("pruned and undone", prunes=True, undo_after=True),
    Story("dry run", dry=True),
)

VOLUME_STORIES = (
    Story("volumes", volumes="All"),
    Story("volumes undone", volumes="All", undo_after=True),
    Story("data", volumes="Data"),
    Story("data undone", volumes="Data", undo_after=True),
    Story("volumes and some kinds", volumes="All", only=("configmaps",), undo_after=True),
    Story("volumes pruned", volumes="All", prunes=True, undo_after=True),
)


# What goes wrong, and is well again after a while unless nothing could be


def _later(scene: RollbackScene, seconds: float, do: Callable[[], object]) -> None:
    asyncio.get_running_loop().call_later(seconds, lambda: do() if scene.process is not None else None)


def bucket_away(scene: RollbackScene) -> None:
    scene.line.is_away = True
    _later(scene, 120.0, lambda: setattr(scene.line, "is_away", False))


def quota_full(scene: RollbackScene) -> None:
    scene.line.over_quota = 1


def ends_halfway(scene: RollbackScene) -> None:
    scene.line.fails_halfway = 1


def ends_halfway_twice(scene: RollbackScene) -> None:
    scene.line.fails_halfway = 2


def nothing_listed(scene: RollbackScene) -> None:
    scene.line.forgets = True


def permissions_revoked(scene: RollbackScene) -> None:
    scene.line.is_refused = True
    _later(scene, 150.0, lambda: setattr(scene.line, "is_refused", False))


def may_not_suspend(scene: RollbackScene) -> None:
    scene.forbidden |= {("patch", "kustomizations.kustomize.toolkit.fluxcd.io")}


def may_not_delete(scene: RollbackScene) -> None:
    scene.forbidden |= {("delete", "configmaps")}
    _later(scene, 300.0, scene.forbidden.clear)


def policy_gone(scene: RollbackScene) -> None:
    scene.world.delete(SELF_SERVICE_POLICY, Key("", "all"))


def namespace_deleted(scene: RollbackScene) -> None:
    scene.world.delete(NAMESPACE, Key("", SHOP))


def second_rollback(scene: RollbackScene) -> None:
    if Key(SHOP, "second") not in scene.world.history.present(ROLLBACK):
        scene.ask("second", dryRun=True)


def team_scales(scene: RollbackScene) -> None:
    scene.judge.touched.add(("Deployment", "worker"))
    scene.deploy("worker", "worker:1", 7)


def team_creates(scene: RollbackScene) -> None:
    scene.judge.touched.add(("ConfigMap", "meanwhile"))
    scene.configure("meanwhile", {"by": "dora"})


def flux_resumed(scene: RollbackScene) -> None:
    scene.world.merge(KUSTOMIZATION, Key(SHOP, "apps"), {"spec": {"suspend": None}}, "somebody")


def release_deleted(scene: RollbackScene) -> None:
    scene.world.delete(HELM_RELEASE, Key(SHOP, "chart"))
    scene.formerly = {where: value for where, value in scene.formerly.items() if where[1] != "chart"}


def undo_asked(scene: RollbackScene) -> None:
    scene.undo()


def rollback_deleted(scene: RollbackScene) -> None:
    scene.world.delete(ROLLBACK, KEY)


def restore_deleted(scene: RollbackScene) -> None:
    for key in list(scene.world.history.present(NON_ADMIN_RESTORE)):
        scene.world.delete(NON_ADMIN_RESTORE, key)


def finalizer_stays(scene: RollbackScene) -> None:
    key = Key(SHOP, "added")
    if key in scene.world.history.present(core.CONFIG_MAP):
        scene.world.merge(core.CONFIG_MAP, key, {"metadata": {"finalizers": ["example.com/never"]}}, "somebody")
        gone = {"metadata": {"finalizers": None}}
        _later(scene, 200.0, lambda: scene.world.merge(core.CONFIG_MAP, key, gone, "somebody"))


def writes_refused(scene: RollbackScene) -> None:
    for visitor in scene.visitors:
        visitor.unsent_writes += 3


def answers_lost(scene: RollbackScene) -> None:
    for visitor in scene.visitors:
        visitor.lost_answers += 2


def watches_late(scene: RollbackScene) -> None:
    scene.weather.lag = 4.0
    _later(scene, 60.0, lambda: setattr(scene.weather, "lag", 0.0))


FAULTS: tuple[Fault | None, ...] = (
    None,
    bucket_away,
    quota_full,
    ends_halfway,
    ends_halfway_twice,
    nothing_listed,
    permissions_revoked,
    may_not_suspend,
    may_not_delete,
    policy_gone,
    namespace_deleted,
    second_rollback,
    team_scales,
    team_creates,
    flux_resumed,
    release_deleted,
    undo_asked,
    rollback_deleted,
    restore_deleted,
    finalizer_stays,
    writes_refused,
    answers_lost,
    watches_late,
)


@dataclass(frozen=True)
class Case:
    """One life."""

    story: Story
    fault: Fault | None = None
    at: str = "Restoring"  # the phase in which the fault comes
    deaths: tuple[Moment, ...] = ()

    def __str__(self) -> str:
        fault = "" if self.fault is None else f", {self.fault.__name__} in {self.at}"
        return f"{self.story.name}{fault}" + "".join(f", dies {death}" for death in self.deaths)


@dataclass(frozen=True)
class Lived:
    """How a life went."""

    judged: Judged
    phase: str
    reason: str
    writes: int
    deaths: int


def lived(case: Case, prepare: Callable[[RollbackScene], None] = lambda _: None) -> Lived:
    """Live through a case and judge it."""
    return virtual_time.run(_life(case, prepare))


async def _life(case: Case, prepare: Callable[[RollbackScene], None]) -> Lived:
    story = case.story
    scene = story.scene()
    prepare(scene)
    others = [asyncio.create_task(scene.line.work()), asyncio.create_task(scene.flux())]
    if isinstance(scene, StorageScene):
        others.append(asyncio.create_task(scene.kubernetes()))
    left = list(case.deaths)
    _arm(scene, case)
    scene.start(left.pop(0) if left else None)
    scene.ask()
    undone, ended = False, 0
    for second in range(int(LONG)):
        await asyncio.sleep(1.0)
        assert scene.process is not None
        if scene.process.died:
            scene.deaths += 1
            await scene.process.kill()
            scene.start(left.pop(0) if left else None)
        if story.undo_after and not undone and scene.phase == "Completed":
            undone = True
            scene.undo()
        ends = ("Undone", "Refused", "Planned", *(() if story.undo_after else ("Completed",)))
        ended += second > 20 and (scene.phase in ends or KEY not in _rollbacks(scene))
        if ended > _TIDIES:
            break
    judged = scene.judge.end()
    result = Lived(judged, scene.phase, scene.reason, len(scene.writes), scene.deaths)
    await scene.end()
    for task in others:
        task.cancel()
    return result


def _rollbacks(scene: RollbackScene) -> list[Key]:
    return list(scene.world.history.present(ROLLBACK))


def _arm(scene: RollbackScene, case: Case) -> None:
    """Let the fault come as soon as the Rollback is in the phase."""
    come = False

    def heard(happening: Happening) -> None:
        nonlocal come
        fault = case.fault
        if fault is None or come or happening.kind != ROLLBACK or happening.key.name != NAME:
            return
        if (happening.after or {}).get("status", {}).get("phase") == case.at:
            come = True
            asyncio.get_running_loop().call_soon(fault, scene)

    scene.world.history.listeners.append(heard)


def every_case() -> Iterator[Case]:
    """Yield each story with each fault at each step, without deaths."""
    yield from _cases(STORIES, FAULTS, STEPS)


def every_volume_case() -> Iterator[Case]:
    """Yield the same of the stories in which volumes are replaced."""
    yield from _cases(VOLUME_STORIES, (*FAULTS, *VOLUME_FAULTS), VOLUME_STEPS)


def _cases(stories: Iterable[Story], faults: Iterable[Fault | None], steps: tuple[str, ...]) -> Iterator[Case]:
    for story in stories:
        for fault in faults:
            for at in steps if fault is not None else ("",):
                yield Case(story, fault, at)


def some_cases(number: int, seed: int, cases: tuple[Case, ...] = ()) -> Iterator[Case]:
    """Yield cases with one to three deaths, the same for the same seed."""
    dice = random.Random(seed)  # noqa: S311 - a story, not a secret
    among = cases or tuple(every_case())
    for _ in range(number):
        case = dice.choice(among)
        deaths = tuple(
            Moment(after=dice.random() < 0.5, write=dice.randrange(1, 48 if index == 0 else 24))
            for index in range(dice.choice((1, 1, 2, 3)))
        )
        yield Case(case.story, case.fault, case.at, deaths)
