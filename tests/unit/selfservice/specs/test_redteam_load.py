"""The checks of the red team's part load see growth and an end, and a load that was noticed is tried alone."""

import subprocess
import sys
from typing import cast

import pytest

from tests.redteam import load_watch
from tests.redteam.attack import Attack
from tests.redteam.load_watch import MOST_GROWTH, Peak, run_batches
from tests.redteam.score import Score
from tests.redteam.world import World

WORLD = cast("World", None)
HOG = "import sys; sys.stdin.readline(); held = 'x' * ({} << 20); print(flush=True); sys.stdin.readline()"


@pytest.mark.parametrize(("mebibytes", "is_noticed"), [(0, False), (int(MOST_GROWTH) + 8, True)])
def test_growth_beyond_the_bound_is_noticed(mebibytes: int, *, is_noticed: bool) -> None:
    command = [sys.executable, "-c", HOG.format(mebibytes)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0) as process:
        assert process.stdin
        assert process.stdout
        peak = Peak(process.pid, "it")
        process.stdin.write(b"\n")
        process.stdout.readline()
        assert bool(peak.achieved()) == is_noticed
        process.kill()
        process.wait()
        assert peak.achieved() == ["it has ended"]


def made(name: str, achieved: list[str]) -> Attack:
    """Return an attack that achieves something whenever it is tried alone."""
    return Attack(name, "Try it.", lambda _: list(achieved))


def test_what_was_noticed_in_a_batch_is_tried_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(load_watch, "BATCHES", {"calm": {"a": None, "b": None}, "loud": {"c": None, "d": None}})
    noticed = {"calm": [], "loud": ["the operator held much"]}
    monkeypatch.setattr(load_watch, "_together", lambda _world, batch, _loads, _score: noticed[batch])
    alone: list[str] = []

    def run_each(_world: World, wanted: list[Attack], score: Score) -> None:
        for one in wanted:
            alone.append(one.name)
            score.add(one.name, one.act(WORLD))

    monkeypatch.setattr(load_watch, "run_each", run_each)
    score = Score()
    attacks = [made(name, ["it did"] if name == "d" else []) for name in "abcde"]
    run_batches(WORLD, attacks, score)
    assert alone == ["c", "d", "e"], "e is in no batch"
    assert score.succeeded == {"d": ["it did"]}
    assert score.attacks == 5


def test_a_batch_of_one_load_is_not_tried_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(load_watch, "BATCHES", {"one": {"a": None}})
    monkeypatch.setattr(load_watch, "_together", lambda *_: ["it grew"])
    monkeypatch.setattr(load_watch, "run_each", lambda _world, wanted, _score: wanted and pytest.fail("tried twice"))
    score = Score()
    run_batches(WORLD, [made("a", [])], score)
    assert score.succeeded == {"a": ["it grew"]}
