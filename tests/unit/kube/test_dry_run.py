"""What a dry run shows of a Plan."""

import asyncio
from datetime import UTC, datetime

from foresail.kube.dry_run import DryRun
from foresail.kube.execute import Outcome
from foresail.plan import Apply, Create, Delete, DeleteLabelled, JsonPatch, Key, Kind, Note, Patch, Plan

THING = Kind("examples.foresail.dev", "v1", "things", "Thing")
KEY = Key("red", "one")


def shown(plan: Plan) -> list[str]:
    said: list[str] = []
    result = asyncio.run(DryRun(said.append).execute(plan))
    assert result.outcome is Outcome.DONE
    return said


def test_each_write_and_each_event_is_a_line_and_the_requeue_is_the_last() -> None:
    plan = Plan(
        actions=(
            Create(THING, KEY, {"spec": {"size": 1}}, {}),
            Apply(THING, KEY, {"spec": {}}),
            Delete(THING, KEY, "u-1"),
            DeleteLabelled(THING, Key("red", ""), "made-by", "x"),
            Patch(THING, KEY, {"spec": {"size": 2}}),
            JsonPatch(THING, KEY, ({"op": "remove", "path": "/metadata/finalizers/1"},), "7"),
        ),
        status=Patch(THING, KEY, {"status": {"phase": "Ready"}}, "7", "status"),
        notes=(Note(THING, KEY, "u-1", "Grown", "It has grown."),),
        wake_at=datetime(2026, 11, 15, 3, tzinfo=UTC),
    )
    assert shown(plan) == [
        'create Thing red/one: {"spec":{"size":1}}',
        'apply Thing red/one: {"spec":{}}',
        "delete Thing red/one: uid u-1",
        "delete all Thing red: made-by=x",
        'patch Thing red/one: {"spec":{"size":2}}',
        'patch Thing red/one: [{"op":"remove","path":"/metadata/finalizers/1"}]',
        'patch status of Thing red/one: {"status":{"phase":"Ready"}}',
        "emit Grown for Thing red/one: It has grown.",
        "reconcile again at 2026-11-15T03:00:00+00:00",
    ]


def test_a_plan_to_do_nothing_is_not_shown() -> None:
    assert shown(Plan(wake_at=datetime(2026, 11, 15, 3, tzinfo=UTC))) == []
