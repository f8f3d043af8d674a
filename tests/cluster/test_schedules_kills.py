"""The operator is killed again and again, at random instants and right before or after a write: no slot runs twice."""

import random
import time
from collections import Counter
from collections.abc import Iterator
from datetime import timedelta
from http import HTTPStatus
from pathlib import Path

import pytest

from foresail.kube.clock import now
from testbed import Cluster
from tests.cluster.operators import USER, Operator, running
from tests.cluster.schedules import (
    FULL,
    Eventually,
    Figure,
    backups,
    created,
    instant_of,
    quick_velero,
    schedule,
    show,
    shown,
    slot,
    velero_at_rest,
)

KILLS = 200 if FULL else 15
PERIOD = timedelta(seconds=5)
MINUTE = timedelta(minutes=1)
EVERY = [f"every-{number}" for number in range(10)]
CALENDAR = [f"minute-{number}" for number in range(5)]
UNREADY = 0.25  # the share of random kills that do not wait until the process has begun its work
AIM_SECONDS = 20.0  # by then a process that was to kill itself at a write has come to it, or never will


@pytest.fixture
def resting(schedule_cluster: Cluster) -> Iterator[Cluster]:
    with velero_at_rest(schedule_cluster) as cluster:
        yield cluster


def killed_at_random(operator: Operator, chance: random.Random) -> str:
    if chance.random() < UNREADY:
        operator.begin()
    else:
        operator.start()
    time.sleep(chance.uniform(0, PERIOD.total_seconds()))
    operator.kill()
    return "at random"


def killed_at_a_write(operator: Operator, chance: random.Random) -> str:
    """Let it kill itself; a process that comes to no such write in time is killed like the others, and counted so."""
    side = chance.choice(("before", "after"))
    process = operator.begin(FORESAIL_TEST_KILL=f"{side}:{chance.randint(1, 8)}")
    deadline = time.monotonic() + AIM_SECONDS
    while process.poll() is None and time.monotonic() < deadline:
        time.sleep(0.05)
    met = process.poll() is not None
    operator.kill()
    return f"{side} a write" if met else "at random"


@pytest.mark.full
def test_however_often_it_is_killed_no_slot_has_two_backups_and_none_is_left_behind(
    resting: Cluster, tmp_path: Path, eventually: Eventually, figure: Figure
) -> None:
    cluster = resting
    chance = random.Random(6)  # noqa: S311 - chance, not secrecy
    begun = now()
    kinds: Counter[str] = Counter()
    cluster.apply(*(schedule(name, f"@every {PERIOD.seconds}s") for name in EVERY))
    cluster.apply(*(schedule(name, "* * * * *") for name in CALENDAR))
    with quick_velero(cluster), running(cluster, tmp_path) as operator:
        operator.kill()
        for number in range(KILLS):
            kill = killed_at_a_write if number % 2 else killed_at_random
            kinds[kill(operator, chance)] += 1
        operator.start()
        eventually(lambda: all(is_up_to_date(cluster, name, PERIOD) for name in EVERY), 240)
        eventually(lambda: all(is_up_to_date(cluster, name, MINUTE) for name in CALENDAR), 240)
    made = backups(cluster)
    for name, item in shown(cluster).items():
        found = [slot(each) for each in made if each["metadata"]["labels"]["velero.io/schedule-name"] == name]
        assert len(found) == len(set(found)), name
        if name in EVERY:  # on the grid from its creation: neither a drift nor a slot of its own for a late run
            assert all((each - created(item)) % PERIOD == timedelta() for each in found), name
        else:
            assert all((each.second, each.microsecond) == (0, 0) for each in found), name
    asked = [each for each in cluster.audit(USER) if each.resource == "backups.velero.io" and each.at >= begun]
    answers = Counter(each.code for each in asked if each.verb == "create")
    # A request whose sender was killed before the answer is noted as timed out, whether it was done or not.
    cut_off = answers[HTTPStatus.GATEWAY_TIMEOUT]
    assert answers[HTTPStatus.CREATED] <= len(made) <= answers[HTTPStatus.CREATED] + cut_off
    times = ", ".join(f"{count} {how}" for how, count in sorted(kinds.items()))
    figure(
        f"{KILLS} kills ({times}): {len(made)} Backups, no slot twice, {cut_off} kills while a Backup was being made"
    )


def is_up_to_date(cluster: Cluster, name: str, period: timedelta) -> bool:
    last = instant_of(show(cluster, name), "lastBackup")
    return last is not None and now() - last < period + timedelta(seconds=4)
