"""A death before and after every write of self-service, alone and in pairs: whoever comes next makes it good.

Never two Velero objects for one request, never one without its request, never a finalizer that holds what is over.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence

import pytest

from foresail.api import velero
from foresail.api.nonadmin import NON_ADMIN_BACKUP, NON_ADMIN_RESTORE
from foresail.plan import Key
from tests.worlds import virtual_time
from tests.worlds.process import Moment
from tests.worlds.tenancy import Tenancy

KEPT, FORCED, DELETED, PLAIN, WRONG = (Key("red", name) for name in ("kept", "forced", "deleted", "plain", "wrong"))
RESTORED, REMOVED = Key("red", "restored"), Key("red", "removed")
Story = Callable[[Tenancy], Awaitable[None]]


async def whole(tenancy: Tenancy) -> None:
    """Walk along every path once."""
    for key in (KEPT, FORCED, DELETED, PLAIN):
        tenancy.back_up(key)
    tenancy.back_up(WRONG, includedNamespaces=["blue"])
    await tenancy.settle(40)
    tenancy.restore(RESTORED, "kept")
    tenancy.restore(REMOVED, "kept")
    await tenancy.settle(40)
    tenancy.edit(FORCED, forceDeleteBackup=True)
    tenancy.edit(DELETED, deleteBackup=True)
    tenancy.delete(PLAIN)
    tenancy.delete(REMOVED, NON_ADMIN_RESTORE)
    await tenancy.settle(60)
    assert tenancy.condition(KEPT, "Succeeded")[0] == "True"
    assert tenancy.condition(RESTORED, "Succeeded", NON_ADMIN_RESTORE)[0] == "True"
    assert tenancy.request(FORCED) is tenancy.request(DELETED) is None
    assert tenancy.request(REMOVED, NON_ADMIN_RESTORE) is None
    assert tenancy.status(PLAIN)["phase"] == "Deleting", "a plain delete waits, as it should"
    assert tenancy.status(WRONG)["phase"] == "BackingOff"
    assert len(tenancy.velero_objects()) == 2
    assert len(tenancy.velero_objects(velero.RESTORE)) == 1


async def made_and_deleted(tenancy: Tenancy) -> None:
    tenancy.back_up(KEPT)
    await tenancy.settle(40)
    tenancy.edit(KEPT, deleteBackup=True)
    await tenancy.settle(60)
    assert tenancy.request(KEPT) is None
    assert tenancy.velero_objects() == {}


async def made_and_taken_for_running(tenancy: Tenancy) -> None:
    """Delete a backup that Velero takes for one that runs until it ends it once more."""
    tenancy.back_up(KEPT)
    await tenancy.settle(40)
    tenancy.taken_for_running |= tenancy.velero_objects().keys()
    tenancy.edit(KEPT, deleteBackup=True)
    await tenancy.settle(100)
    assert tenancy.request(KEPT) is None
    assert tenancy.velero_objects() == tenancy.velero_objects(velero.DELETE_REQUEST) == {}


async def just_made(tenancy: Tenancy, count: int) -> None:
    """Wait until so many Velero Backups are there: the request of the last does not say so yet."""
    while len(tenancy.velero_objects()) < count:  # noqa: ASYNC110 - the world has no event for it
        await asyncio.sleep(0.001)


async def changed_their_mind_at_once(tenancy: Tenancy) -> None:
    """Force a deletion while the backup is being made."""
    tenancy.back_up(KEPT)
    await just_made(tenancy, 1)
    tenancy.edit(KEPT, forceDeleteBackup=True)
    await tenancy.settle(60)
    assert tenancy.request(KEPT) is None
    assert tenancy.velero_objects() == {}


async def left(tenancy: Tenancy) -> None:
    """Delete the namespace while backups are being made and deleted in it."""
    for key in (KEPT, DELETED):
        tenancy.back_up(key)
    await tenancy.settle(40)
    tenancy.edit(DELETED, deleteBackup=True)
    tenancy.back_up(PLAIN)
    await just_made(tenancy, 3)
    tenancy.delete_namespace("red")
    await tenancy.settle(60)
    assert tenancy.request(KEPT) is tenancy.request(PLAIN) is None


async def crowded(tenancy: Tenancy) -> None:
    """Ask for six backups where two may be under way at once."""
    for number in range(6):
        tenancy.back_up(Key("red", f"b{number}"))
    for _ in range(600):
        await tenancy.settle(0.1)
        phases = [each.get("status", {}).get("phase", "") for each in tenancy.velero_objects().values()]
        assert sum(phase in velero.WAITING for phase in phases) <= 2
    assert len(tenancy.velero_objects()) == 6


def deaths(story: Story, moments: Sequence[Moment], workers: int = 1) -> int:
    """Live through a story with these deaths in it, check how it ends, and return how many of them came."""

    async def live() -> int:
        tenancy = Tenancy({"active": 2} if story is crowded else None)
        running = asyncio.create_task(tenancy.keep_running(list(moments), workers))
        working = asyncio.create_task(tenancy.velero_works())
        await story(tenancy)
        tenancy.check()
        unmarked = [
            name
            for name in tenancy.orphans()
            if "foresail.dev/orphaned" not in tenancy.velero_objects()[name]["metadata"]["annotations"]
        ]
        assert unmarked == []
        for task in (running, working):
            task.cancel()
        await asyncio.gather(running, working, return_exceptions=True)
        await tenancy.stop()
        return tenancy.deaths

    return virtual_time.run(live())


def writes_of(story: Story) -> int:
    """Return how many writes a story takes if nobody dies in it."""
    for number in range(1, 200):
        if not deaths(story, [Moment(after=True, write=number)]):
            return number - 1
    raise AssertionError("it never ends")


@pytest.mark.repeats
@pytest.mark.parametrize(
    "story", [whole, made_and_deleted, made_and_taken_for_running, changed_their_mind_at_once, left, crowded]
)
@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
def test_a_death_at_any_write_is_made_good(story: Story, after: bool, figure: Callable[[str], None]) -> None:
    number = 0
    while deaths(story, [Moment(after=after, write=number + 1)]):
        number += 1
    assert number >= 5
    name = getattr(story, "__name__", "")
    figure(f"self-service, {name}: {number} deaths {'after' if after else 'before'} a write")


@pytest.mark.repeats
def test_two_deaths_in_a_row_at_any_two_writes_are_made_good(figure: Callable[[str], None]) -> None:
    count = writes_of(made_and_deleted)
    came = 0
    for first in range(1, count + 1):
        for second in range(1, count + 2 - first):
            came += deaths(made_and_deleted, [Moment(after=True, write=first), Moment(after=False, write=second)])
            came += deaths(made_and_deleted, [Moment(after=False, write=first), Moment(after=True, write=second)])
    assert came >= count * (count - 1)
    figure(f"self-service: {came} deaths in pairs")


@pytest.mark.repeats
@pytest.mark.parametrize("lag", [0.0, 0.5, 3.0, 8.0])
def test_watches_that_lag_behind_leave_nothing_behind(lag: float) -> None:
    """Whatever a tenant does while the operator sees only the past: one Velero object at most, and none in the end."""

    async def live(pause: float, flag: str) -> None:
        tenancy = Tenancy()
        tenancy.weather.lag = lag
        running = asyncio.create_task(tenancy.keep_running([], 16))
        working = asyncio.create_task(tenancy.velero_works())
        await tenancy.settle(1)
        tenancy.back_up(KEPT)
        await asyncio.sleep(pause)
        tenancy.edit(KEPT, NON_ADMIN_BACKUP, **{flag: True})
        await tenancy.settle(300)
        tenancy.check()
        assert tenancy.request(KEPT) is None
        assert tenancy.velero_objects() == {}
        for task in (running, working):
            task.cancel()
        await asyncio.gather(running, working, return_exceptions=True)
        await tenancy.stop()

    for flag in ("forceDeleteBackup", "deleteBackup"):
        for steps in range(6):
            virtual_time.run(live(0.002 + steps * max(lag, 0.02) / 2, flag))
