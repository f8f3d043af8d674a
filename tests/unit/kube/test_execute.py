"""The executor asks before each single write."""

import asyncio
from collections import Counter
from pathlib import Path

import pytest

from foresail.kube.execute import Executor, Outcome
from foresail.kube.failures import Cause
from foresail.plan import Key, Kind, Patch, Plan
from tests.unit.kube.nowhere import nowhere

THING = Kind("runtime.foresail.dev", "v1", "things", "Thing")
ACTION = Patch(THING, Key("ns", "a"), {"spec": {}})


@pytest.mark.parametrize(
    ("leads", "outcome", "cause", "sent"),
    [
        pytest.param(False, Outcome.REQUEUE, Cause.NOT_LEADING, 0, id="a follower sends nothing"),
        pytest.param(True, Outcome.FAILED, Cause.UNREACHABLE, 1, id="a leader does"),
    ],
)
def test_only_a_leader_writes(tmp_path: Path, leads: bool, outcome: Outcome, cause: Cause, sent: int) -> None:
    async def run() -> None:
        async with nowhere(tmp_path) as client:
            executor = Executor(client, may_write=lambda: leads)
            result = await executor.execute(Plan((ACTION, ACTION)))
            assert (result.outcome, result.action) == (outcome, ACTION)
            assert result.failure is not None
            assert result.failure.cause is cause
            assert executor.writes == Counter({("Thing", "patch"): sent} if sent else {})

    asyncio.run(run())
