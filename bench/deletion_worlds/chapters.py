"""What a world lives through on purpose, once amid its chaos: each is a fault that there once was."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

from bench.deletion_worlds.model import DAY, HOUR, MINUTE, Copy, Origin

if TYPE_CHECKING:
    from collections.abc import Callable

    from bench.deletion_worlds.cluster import ClusterWorld

MANY = 24
"""Runs after which a deletion of more than ten of them can ask."""


def tell(number: int, world: ClusterWorld) -> None:
    """Live through one of them, in turn."""
    world.calm_down()
    CHAPTERS[number % len(CHAPTERS)](world)
    world.calm_down()
    world.reconcile(kills=False)


def _grow(world: ClusterWorld, runs: int, outcome: str = "Completed") -> None:
    """Let runs end in a phase."""
    world.outcome = outcome
    for _ in range(runs):
        world.advance(world.interval)
        world.reconcile(kills=False)
    world.outcome = ""


def _own(world: ClusterWorld) -> list[Copy]:
    """Return the runs of the schedule that has most of them, the oldest first."""
    runs = [copy for copy in world.copies.values() if copy.origin is Origin.RUN and not copy.is_removed]
    of_each = [[copy for copy in runs if copy.schedule == name] for name in world.judges]
    most: list[Copy] = max(of_each, key=len)
    return sorted(most, key=lambda copy: copy.slot)


def _good(world: ClusterWorld) -> int:
    return sum(copy.phase == "Completed" for copy in _own(world))


def _give_up(world: ClusterWorld, count: int, grace: str, runs: int = 10) -> int:
    """Let rules be in effect that have just given up some old runs; return how many they keep."""
    world.keep_only(60)
    _grow(world, runs)
    number = max(_good(world), 2)
    world.keep_only(number, grace)
    world.reconcile(kills=False)
    left = max(number - count, 1)
    world.keep_only(left, grace)
    world.reconcile(kills=False)
    return left


def suspended(world: ClusterWorld) -> None:
    """Let rules cease to apply amid a grace period, and come back."""
    _give_up(world, 1, "24h")
    world.set_rules(applies=False)
    world.reconcile(kills=False)
    world.advance(14 * HOUR)
    world.set_rules(applies=True)
    world.reconcile(kills=False)
    world.advance(14 * HOUR)
    world.reconcile(kills=False)


def came_due_unseen(world: ClusterWorld) -> None:
    """Let rules cease to apply while no operator runs, and others come in their place."""
    left = _give_up(world, 1, "24h")
    world.is_operator_up = False
    world.set_rules(applies=False)
    world.advance(10 * DAY)
    world.keep_only(left - 1 or 1, "72h")
    world.return_rules(is_edited=False)
    world.is_operator_up = True
    world.reconcile(kills=False)


def whittled(world: ClusterWorld) -> None:
    """Let rules keep ever fewer, and none apply between them."""
    world.keep_only(60)
    _grow(world, MANY)
    world.set_paused(paused=True)
    world.advance(2 * DAY)
    number = _good(world)
    while number > MANY // 3:
        world.keep_only(number)
        world.reconcile(kills=False)
        number -= number // 5
        world.keep_only(number)
        world.reconcile(kills=False)
        world.set_rules(applies=False)
        world.reconcile(kills=False)
        world.set_rules(applies=True)


def stricter(world: ClusterWorld) -> None:
    """Let new rules give up fewer than ten, and most of what there is."""
    world.keep_only(60)
    _grow(world, 8)
    world.set_paused(paused=True)
    world.keep_only(3, "24h")
    world.reconcile(kills=False)
    world.advance(DAY)
    world.reconcile(kills=False)


def approved_before(world: ClusterWorld) -> None:
    """Let an approval outlive its rules, and others give the same Backups up."""
    world.keep_only(60)
    _grow(world, MANY)
    world.keep_only(2, "24h")
    world.reconcile(kills=False)
    world.approve()
    world.keep_only(60)
    world.reconcile(kills=False)
    world.advance(3 * DAY)
    world.keep_only(3)
    world.reconcile(kills=False)


def turnover_after_approval(world: ClusterWorld) -> None:
    """Approve a list, and let the runs go on."""
    world.keep_only(60)
    _grow(world, MANY)
    world.keep_only(3)
    world.reconcile(kills=False)
    world.approve()
    world.reconcile(kills=False)
    _grow(world, 3)


def failing(world: ClusterWorld) -> None:
    """Let a day of runs fail, and then unpin the others."""
    world.keep_only(60)
    _grow(world, 8 if world.interval > HOUR else MANY)
    pinned = _own(world)
    for copy in pinned:
        world.change(copy, is_pinned=True)
    world.keep_only(1)
    world.reconcile(kills=False)
    world.approve()
    _grow(world, DAY // world.interval, "Failed")
    for copy in pinned:
        if copy.name in world.copies:
            world.change(copy, is_pinned=False)
    world.reconcile(kills=False)


def clock_is_set(world: ClusterWorld) -> None:
    """Set the clock amid a grace period, and let the API server not have answered since."""
    _give_up(world, 1, "72h")
    world.set_paused(paused=True)  # a run in the future is another reason for doubt
    world.offset = 4 * DAY
    world.reconcile(kills=False)


def short_lived(world: ClusterWorld) -> None:
    """Let the newest good ones expire soon, or have expired."""
    _give_up(world, 60, "0s", runs=3)
    world.approve()
    world.reconcile(kills=False)
    _grow(world, 1)
    world.lives = world.chance.choice((30 * MINUTE, 50 * MINUTE))
    _grow(world, 2)


def protected(world: ClusterWorld) -> None:
    """Let a policy protect the newest good ones, and no later run live as long as these."""
    world.keep_only(2)
    world.protect(4)
    world.approve()
    _grow(world, 6)
    world.lives = 20 * DAY
    _grow(world, 5)


def etcd_went_back(world: ClusterWorld) -> None:
    """Let slots run again under names that the bucket has, and newer runs let these go."""
    _give_up(world, 0, "0s", runs=2)
    world.saved.clear()
    world.save()
    _grow(world, 2)
    world.go_back(is_velero_late=True)
    world.keep_only(1)
    _grow(world, 4)
    world.approve()
    world.reconcile(kills=False)


def quota_is_full(world: ClusterWorld) -> None:
    """Reach the quota while old runs of each schedule are announced."""
    _give_up(world, 2, "72h")
    world.fill_quota()
    _grow(world, 2)


def meddled(world: ClusterWorld) -> None:
    """Pin a Backup, restore it or edit the rules just before Velero is asked, and take that back."""
    world.meddling = world.chance.choice(("pin", "restore", "rules"))
    _give_up(world, 2, "0s")
    world.meddling = ""
    for _ in range(4):
        world.advance(timedelta())
        world.reconcile(kills=False)
    _end_in_doubt(world)


def rejected(world: ClusterWorld) -> None:
    """Let Velero reject a deletion, and then a restore read the Backup."""
    world.meddling = "reject"
    _give_up(world, 2, "0s")
    world.advance(MINUTE)
    world.meddling, world.is_available = "", True
    world.restored = frozenset(request.backup for request in world.requests.values())
    world.reconcile(kills=False)
    world.advance(HOUR)
    world.reconcile(kills=False)


def _end_in_doubt(world: ClusterWorld) -> None:
    """Take back what keeps Backups, while something else is not certain."""
    world.unread = world.chance.choice(("policy", "restore"))
    world.restored = frozenset()
    world.set_rules(applies=True)
    for copy in world.copies.values():
        world.change(copy, is_pinned=False)
    world.advance(HOUR)
    world.reconcile(kills=False)


def unreadable(world: ClusterWorld) -> None:
    """Let a policy be unreadable when a grace period ends."""
    _give_up(world, 1, "24h")
    world.unread = "policy"
    world.advance(2 * DAY)
    world.reconcile(kills=False)


CHAPTERS: tuple[Callable[[ClusterWorld], None], ...] = (
    suspended,
    came_due_unseen,
    whittled,
    stricter,
    approved_before,
    turnover_after_approval,
    failing,
    clock_is_set,
    short_lived,
    protected,
    etcd_went_back,
    quota_is_full,
    meddled,
    rejected,
    unreadable,
)
