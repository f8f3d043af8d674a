"""What becomes of a Plan in each situation that its actions can meet."""

from collections.abc import Callable

import pytest

from foresail.kube.execute import Executor, Outcome
from foresail.kube.failures import failure
from foresail.plan import Action, Apply, Create, Delete, JsonPatch, Key, Patch, Plan
from tests.cluster.things import THING
from tests.worlds import virtual_time
from tests.worlds.documents import Document
from tests.worlds.virtual_time import WallClock
from tests.worlds.visitor import Visitor
from tests.worlds.world import Definition, World, done

KEY, ABSENT = Key("default", "a"), Key("default", "absent")
MARK = {"foresail.dev/owner": "us"}
HOLD = {"op": "add", "path": "/metadata/finalizers", "value": ["foresail.dev/hold"]}
OTHER = "00000000-0000-0000-0000-000000000000"


def create(mark: dict[str, str]) -> Create:
    return Create(THING, KEY, {"spec": {"size": 1}}, mark)


CASES: list[tuple[str, Document, Callable[[Document], Action], Outcome]] = [
    ("ours is there", {"annotations": MARK}, lambda _: create(MARK), Outcome.DONE),
    ("someone else's is there", {}, lambda _: create(MARK), Outcome.REFUSED),
    ("another's mark is there", {"annotations": {"foresail.dev/owner": "x"}}, lambda _: create(MARK), Outcome.REFUSED),
    ("without a mark nothing is ours", {}, lambda _: create({}), Outcome.REFUSED),
    ("fresh", {}, lambda found: Patch(THING, KEY, {"spec": {"size": 2}}, found["resourceVersion"]), Outcome.DONE),
    ("stale", {}, lambda _: Patch(THING, KEY, {"spec": {"size": 2}}, "1"), Outcome.REQUEUE),
    ("another of that name", {}, lambda _: Patch(THING, KEY, {"metadata": {"uid": OTHER}}), Outcome.REQUEUE),
    ("stale status", {}, lambda _: Patch(THING, KEY, {"status": {"x": 1}}, "1", "status"), Outcome.REQUEUE),
    ("fresh item", {}, lambda found: JsonPatch(THING, KEY, (HOLD,), found["resourceVersion"]), Outcome.DONE),
    ("stale item", {}, lambda _: JsonPatch(THING, KEY, (HOLD,), "1"), Outcome.REQUEUE),
    ("gone", {}, lambda _: Patch(THING, ABSENT, {"spec": {"size": 2}}), Outcome.REQUEUE),
    ("owned otherwise", {}, lambda _: Apply(THING, KEY, {"spec": {"size": 2}}), Outcome.REQUEUE),
    ("owned by nobody", {}, lambda _: Apply(THING, KEY, {"spec": {"colour": "red"}}), Outcome.DONE),
    ("that very one", {}, lambda found: Delete(THING, KEY, found["uid"]), Outcome.DONE),
    ("another of its name", {}, lambda _: Delete(THING, KEY, OTHER), Outcome.DONE),
    ("deleted already", {}, lambda _: Delete(THING, ABSENT, OTHER), Outcome.DONE),
    ("nowhere", {}, lambda _: Create(THING, Key("nowhere", "a"), {}, MARK), Outcome.REQUEUE),
    ("no name", {}, lambda _: Create(THING, Key("default", "No Name"), {}, MARK), Outcome.FAILED),
]


@pytest.mark.parametrize(("metadata", "action", "expected"), [case[1:] for case in CASES], ids=[c[0] for c in CASES])
def test_a_plan_stops_where_continuing_would_be_wrong(
    metadata: Document, action: Callable[[Document], Action], expected: Outcome
) -> None:
    async def run() -> tuple[Outcome, list[str]]:
        world = World(WallClock(), Definition(THING))
        body = {"metadata": {"name": KEY.name, **metadata}, "spec": {"size": 1}}
        found = done(world.create(THING, body, "somebody", KEY.namespace))
        visitor = Visitor(world)
        after = Create(THING, Key("default", "after"), {}, MARK)
        result = await Executor(visitor).execute(Plan((action(found["metadata"]), after)))
        assert (result.action is None) is (result.outcome is Outcome.DONE)
        return result.outcome, [key.name for key in world.history.present(THING) if key != KEY]

    outcome, made = virtual_time.run(run())
    assert (outcome, made) == (expected, ["after"] if expected is Outcome.DONE else [])


def test_a_conflict_of_a_delete_that_is_not_about_its_uid_is_decided_again() -> None:
    terminating = 'Operation cannot be fulfilled on namespaces "a": The system is ensuring all content is removed'

    async def run() -> Outcome:
        world = World(WallClock(), Definition(THING))
        world.delete = lambda *_: failure(409, "Conflict", terminating)  # type: ignore[method-assign]
        return (await Executor(Visitor(world)).execute(Plan((Delete(THING, KEY, OTHER),)))).outcome

    assert virtual_time.run(run()) is Outcome.REQUEUE


def test_a_write_whose_answer_is_lost_has_failed_and_the_plan_goes_no_further() -> None:
    async def run() -> tuple[Outcome, int]:
        world = World(WallClock(), Definition(THING))
        visitor = Visitor(world, lost_answers=1)
        result = await Executor(visitor).execute(Plan((create(MARK), Create(THING, ABSENT, {}, MARK))))
        return result.outcome, len(visitor.writes)

    assert virtual_time.run(run()) == (Outcome.FAILED, 1)


def test_what_is_created_carries_its_mark_from_the_first_moment() -> None:
    async def run() -> Document:
        world = World(WallClock(), Definition(THING))
        await Executor(Visitor(world)).execute(Plan((create(MARK),)))
        return done(world.get(THING, KEY))

    made = virtual_time.run(run())
    assert made["metadata"]["annotations"] == MARK
