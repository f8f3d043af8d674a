"""The fair order: shares by weight and cost, ranks that agree with it, a restart that changes little, no starvation."""

import json
import random
import time
from collections import Counter
from datetime import UTC, datetime, timedelta
from itertools import permutations
from typing import Any

import msgspec
import pytest

from foresail.api.instants import stamp
from foresail.kube.reflector import Change
from foresail.plan import Key
from foresail.selfservice.controller import SelfService
from foresail.selfservice.queue.fair_queue import FairQueue, PastHandOver
from foresail.selfservice.queue.window import Limits, Window
from foresail.selfservice.rows.requests import Status
from foresail.selfservice.rows.velero import VeleroRow
from foresail.tenancy.namespaces import NamespaceRow
from tests.unit.selfservice.policies import policy
from tests.unit.selfservice.requests.test_decide import accepted, backup, request

BEGIN = datetime(2030, 1, 1, tzinfo=UTC)


def filled(**counts: int) -> FairQueue:
    queue = FairQueue()
    for namespace, count in counts.items():
        for number in range(count):
            queue.enter(f"{namespace}-{number:05}", Key(namespace, f"{number:05}"), BEGIN + timedelta(seconds=number))
    return queue


def drained(queue: FairQueue, count: int) -> list[str]:
    found = []
    for _ in range(count):
        (name,) = queue.first(1)
        namespace = queue.key(name).namespace
        queue.leave(name)
        queue.pay(namespace)
        found.append(namespace)
    return found


def test_equal_namespaces_take_turns_and_weights_count() -> None:
    assert Counter(drained(filled(a=200, b=200, c=200, d=200, e=200), 200)) == dict.fromkeys("abcde", 40)
    queue = filled(a=200, b=200)
    queue.set_weight("b", 2)
    assert Counter(drained(queue, 150)) == {"a": 50, "b": 100}


def test_a_namespace_pays_for_long_backups() -> None:
    queue = filled(slow=100, fast=100)
    queue.note_duration("slow", BEGIN, 90)
    queue.note_duration("fast", BEGIN, 10)
    assert Counter(drained(queue, 50)) == {"slow": 5, "fast": 45}


def test_what_was_charged_while_no_duration_was_known_is_corrected() -> None:
    queue, served = filled(first=100), Counter[str]()
    for number in range(60):
        if number == 4:
            for place in range(100):
                queue.enter(f"late-{place}", Key("late", f"{place}"), BEGIN)
        (name,) = queue.first(1)
        namespace = queue.key(name).namespace
        queue.leave(name)
        queue.pay(namespace, name)
        queue.note_duration(namespace, BEGIN, 2)
        queue.settle(namespace, name, 2)
        served[namespace] += number >= 4
    assert served == {"first": 28, "late": 28}


def test_a_namespace_that_was_idle_saves_up_nothing() -> None:
    queue = filled(a=100)
    drained(queue, 50)
    for number in range(50):
        queue.enter(f"b-{number}", Key("b", f"{number}"), BEGIN)
    assert Counter(drained(queue, 20)) == {"a": 10, "b": 10}


@pytest.mark.parametrize("seed", range(20))
def test_ranks_are_the_order_in_which_requests_go(seed: int) -> None:
    chance = random.Random(seed)  # noqa: S311 - a seeded one
    queue = filled(**{name: chance.randint(1, 9) for name in "abcdefg"})
    for name in "abcdefg":
        queue.set_weight(name, chance.randint(1, 3))
        if chance.random() < 0.7:
            queue.note_duration(name, BEGIN, chance.choice([1, 5, 60, 600]))
    drained(queue, 3)
    order = queue.first(len(queue))
    ranks = {name: queue.rank(queue.key(name).namespace, queue._keys[name][1]) for name in order}  # noqa: SLF001
    assert [ranks[name] for name in order] == list(range(len(order)))


@pytest.mark.parametrize("seed", range(10))
def test_a_restart_takes_nobody_far_from_its_share(seed: int) -> None:
    """Hand-overs are replayed from the creation times and durations of Velero objects."""
    chance = random.Random(seed)  # noqa: S311 - a seeded one
    counts, served, now, past = dict.fromkeys("abcde", 400), Counter[str](), BEGIN, list[PastHandOver]()
    queue = filled(**counts)
    for number in range(300):
        if chance.random() < 0.05:  # the process dies
            queue = FairQueue()
            for namespace, count in counts.items():
                for place in range(served[namespace], count):
                    name = f"{place:05}"
                    queue.enter(f"{namespace}-{name}", Key(namespace, name), BEGIN + timedelta(seconds=place))
            for each in chance.sample(past, len(past)):
                queue.recall(each)
                queue.note_duration(each.namespace, each.at, each.seconds)
        (namespace,) = drained(queue, 1)
        served[namespace] += 1
        seconds = chance.choice([9, 10, 11])
        past.append(PastHandOver(now, f"{number:05}", namespace, seconds, now + timedelta(seconds=seconds)))
        queue.note_duration(namespace, now, seconds)
        now += timedelta(seconds=seconds)
    assert max(served.values()) - min(served.values()) <= 6, served


def test_hand_overs_before_a_pause_do_not_count_after_a_restart() -> None:
    queue = filled(a=10, b=10)
    for number in range(50):
        at = BEGIN + timedelta(seconds=10 * number)
        queue.recall(PastHandOver(at, f"{number}", "a", 10, at + timedelta(seconds=10)))
    later = BEGIN + timedelta(days=1)
    queue.recall(PastHandOver(later, "z", "b", 10, later + timedelta(seconds=10)))
    assert Counter(drained(queue, 10)) == {"a": 5, "b": 5}


def test_a_week_of_random_load_starves_no_namespace() -> None:
    """One request at a time for a week; nobody waits much longer than a fair share of the load asks for."""
    chance = random.Random(7)  # noqa: S311 - a seeded one
    queue, now, end = FairQueue(), 0.0, 7 * 86_400.0
    namespaces = [f"tenant-{number:02}" for number in range(30)]
    asked: dict[str, float] = {}
    waits: dict[str, list[float]] = {name: [] for name in namespaces}
    arrivals = sorted(
        (chance.uniform(0, end), namespace)
        for place, namespace in enumerate(namespaces)
        for _ in range(3_000 if place == 0 else chance.randint(20, 200))  # one of them asks without end
    )
    number = 0
    while number < len(arrivals) or queue:
        if not queue:
            now = max(now, arrivals[number][0])
            queue.rest()
        while number < len(arrivals) and arrivals[number][0] <= now:
            at, namespace = arrivals[number]
            name = f"{namespace}-{number:06}"
            asked[name] = at
            queue.enter(name, Key(namespace, name), BEGIN + timedelta(seconds=at))
            number += 1
        (name,) = queue.first(1)
        namespace = queue.key(name).namespace
        queue.leave(name)
        queue.pay(namespace)
        waits[namespace].append(now - asked[name])
        seconds = chance.expovariate(1 / 90)
        queue.note_duration(namespace, BEGIN + timedelta(seconds=now), seconds)
        now += seconds
    assert sum(map(len, waits.values())) == len(arrivals), "everybody was served"
    modest = [wait for name in namespaces[1:] for wait in waits[name]]
    assert max(modest) < 3 * 3600, "the one that asks without end delays nobody else for long"
    assert max(waits[namespaces[0]]) > max(modest)


@pytest.mark.timed
def test_ten_thousand_requests_cost_little_to_rank() -> None:
    queue = filled(**{f"n{number:03}": 20 for number in range(500)})
    begun = time.process_time()
    for name in list(queue)[::10]:
        queue.rank(queue.key(name).namespace, (BEGIN, name))
    assert time.process_time() - begun < 5


def queued(**counts: int) -> Window:
    window = Window(lambda: 1)
    enter(window, **counts)
    return window


def enter(window: Window, **counts: int) -> None:
    for namespace, count in counts.items():
        for number in range(count):
            window.enter(f"{namespace}-{number:05}", Key(namespace, f"{number:05}"), BEGIN + timedelta(seconds=number))


def handed_over(window: Window, count: int) -> list[str]:
    found = []
    for _ in range(count):
        (name,) = window.next_names()
        key = window.queue.key(name)
        window.hand_over(name, key.namespace, BEGIN)
        row = backup(key=Key("velero", name), owner=key, created=BEGIN, mirror="{}")
        window.observe(row, None, initial=False)  # it ended at once
        found.append(key.namespace)
    return found


def test_a_request_that_is_set_aside_keeps_no_share_for_newcomers() -> None:
    window = queued(stuck=1, a=300, b=300)
    window.set_aside("stuck-00000")
    handed_over(window, 200)
    enter(window, c=300)
    assert Counter(handed_over(window, 120)) == {"a": 40, "b": 40, "c": 40}


def test_a_creation_that_failed_costs_nothing() -> None:
    window = queued(a=20, b=20)
    for _ in range(8):
        window.hand_over("a-00000", "a", BEGIN)
        window.release("a-00000", Key("a", "00000"), BEGIN)
    window.enter("a-00000", Key("a", "00000"), BEGIN)
    assert Counter(handed_over(window, 10)) == {"a": 5, "b": 5}


def test_a_hand_over_is_charged_once() -> None:
    queue = filled(a=20, b=20)
    for _ in range(3):
        queue.pay("a", "seen late")
    assert Counter(drained(queue, 11)) == {"a": 5, "b": 6}


def read(service: SelfService, store: Any, key: Key, row: Any) -> None:  # noqa: ANN401 - rows of any kind
    """Let a controller read a row that was there when it started."""
    (one,) = [each for each in service.informers if each.store is store]
    store.put(key, row)
    one.learn(Change(key, None, row, initial=True))


@pytest.mark.parametrize("order", list(permutations(range(3))), ids=str)
def test_weights_are_known_after_a_restart_whatever_is_read_first(order: tuple[int, ...]) -> None:
    service = SelfService("velero", limits=Limits(lambda: 2))
    waiting = request(status=accepted(timedelta(hours=1)))
    rows = [
        (service.cluster.namespaces, Key("", "red"), NamespaceRow("ns-uid", {}, is_terminating=False)),
        (service.cluster.policies, Key("", "heavy"), policy("heavy", weight=4)),
        (service.cluster.backups.requests, waiting.key, waiting),
    ]
    for number in order:
        read(service, *rows[number])
    queue = service.cluster.backups.window.queue
    enter(service.cluster.backups.window, red=20, blue=20)
    assert Counter(drained(queue, 20)) == {"red": 16, "blue": 4}


def made(name: str, begin: int, end: int | None = None, *, is_scheduled: bool = False) -> VeleroRow:
    """Return a Velero Backup, of the namespace before the dash, that began and ended so many seconds after BEGIN."""
    status = {"startTimestamp": stamp(BEGIN + timedelta(seconds=begin))}
    if end is not None:
        status["completionTimestamp"] = stamp(BEGIN + timedelta(seconds=end))
    return backup(
        key=Key("velero", name),
        created=BEGIN + timedelta(seconds=begin),
        owner=None if is_scheduled else Key(name.partition("-")[0], name),
        phase="InProgress" if end is None else "Completed",
        mirror=json.dumps(status),
        is_scheduled=is_scheduled,
    )


BUSY = [made(f"{'b' if number % 3 else 'a'}-{number:02}", 60 * number, 60 * number + 60) for number in range(30)]
WAITING = request(status=accepted(timedelta(hours=1)), created=BEGIN)


def shares(queue: FairQueue) -> dict[str, float]:
    """Return how many backups of a minute each namespace was charged for."""
    queue.replay()
    return {name: start / (720_720 * 60_000) for name, start in queue._starts.items()}  # noqa: SLF001


@pytest.mark.parametrize("is_running", [False, True], ids=["idle", "running"])
@pytest.mark.parametrize("requests_first", [False, True], ids=["velero", "requests"])
@pytest.mark.parametrize("seed", range(4))
def test_shares_after_a_restart_do_not_depend_on_what_is_read_first(
    is_running: bool, requests_first: bool, seed: int
) -> None:
    service = SelfService("velero", limits=Limits(lambda: 2))
    rows = [*BUSY, made("c-run", 1800)] if is_running else list(BUSY)
    random.Random(seed).shuffle(rows)  # noqa: S311 - a seeded one
    store = service.cluster.backups.velero
    reads = [(store, row.key, row) for row in rows]
    done = request(status=Status(phase="Created", position=0), key=Key("red", "done"))
    asked = [(service.cluster.backups.requests, row.key, row) for row in (done, WAITING)]
    for each in asked + reads if requests_first else reads + asked:
        read(service, *each)
    assert shares(service.cluster.backups.window.queue) == ({"a": 18, "b": 20} | ({"c": 20} if is_running else {}))


def test_what_ran_before_anybody_waited_does_not_count_after_a_restart() -> None:
    window = Window(lambda: 1)
    for row in BUSY:
        window.observe(row, None, initial=True)
    for namespace in "ab":
        for number in range(10):
            window.enter(f"{namespace}-new-{number}", Key(namespace, f"{number}"), BEGIN + timedelta(days=1))
    assert Counter(drained(window.queue, 10)) == {"a": 5, "b": 5}


def test_a_hand_over_that_is_read_again_is_charged_once() -> None:
    window = queued(a=20, b=20)
    window.hand_over("a-00000", "a", BEGIN)
    window.observe(made("a-00000", 0), None, initial=True)
    assert shares(window.queue) == {"a": 1}


def every_minute(after: datetime) -> datetime:
    return (after + timedelta(minutes=1)).replace(second=0, microsecond=0)


def is_blocked(window: Window, seconds: float) -> bool:
    return window.turn("x-00000", "x", "backup", BEGIN + timedelta(seconds=seconds)).is_blocked


def waiting_for_a_slot() -> Window:
    window = Window(lambda: 2, every_minute)
    enter(window, x=1)
    return window


def test_nobody_waits_longer_than_an_hour_for_a_slot() -> None:
    window = waiting_for_a_slot()
    window.observe(made("nightly", 600, 650, is_scheduled=True), None, initial=True)
    window.hand_over("other", "y", BEGIN + timedelta(seconds=660))
    window.leave("other")
    assert is_blocked(window, 700)
    assert not is_blocked(window, 4300)


def test_one_goes_after_each_run_though_schedules_overlap() -> None:
    window = waiting_for_a_slot()
    first, second = (made(name, 5, is_scheduled=True) for name in ("hourly", "nightly"))
    for row in (first, second):
        window.observe(row, None, initial=False)
    assert is_blocked(window, 10)
    assert window.observe(made("hourly", 5, 30, is_scheduled=True), first, initial=False)
    assert not is_blocked(window, 31)
    window.hand_over("other", "y", BEGIN + timedelta(seconds=31))
    window.leave("other")
    assert is_blocked(window, 32), "one"
    assert window.observe(made("nightly", 5, 40, is_scheduled=True), second, initial=False)
    window.observe(made("y-runs", 31), None, initial=False)
    assert is_blocked(window, 41), "a slot is delayed by one at most"


def test_a_scheduled_run_that_is_deleted_frees_a_turn() -> None:
    window = waiting_for_a_slot()
    window.observe(made("nightly", 5, is_scheduled=True), None, initial=False)
    assert window.remove("nightly")
    assert not is_blocked(window, 10)


@pytest.mark.parametrize(("source", "names"), [("", []), ("a-backup", ["red-2"])], ids=["backups", "restores"])
def test_backups_that_velero_does_not_survive_bar_their_namespace_and_restores_do_not(
    source: str, names: list[str]
) -> None:
    window = Window(lambda: 1)
    for number in range(2):
        running = made(f"red-{number}", 10 * number)
        window.observe(running, None, initial=False)
        mirror = json.dumps({"failureReason": "found it during the server starting"})
        ended = msgspec.structs.replace(running, phase="Failed", mirror=mirror, source=source)
        window.observe(ended, running, initial=False)
    window.enter("red-2", Key("red", "red-2"), BEGIN)
    assert window.next_names() == names


def charges(window: Window) -> tuple[dict[str, int], dict[str, int]]:
    return window.queue._charged, {each: start for each, start in window.queue._starts.items() if start}  # noqa: SLF001


def test_a_request_that_is_deleted_during_its_hand_over_keeps_its_turn_until_its_object_is_seen_or_lost() -> None:
    window = Window(lambda: 1)
    enter(window, red=1, blue=1)
    (name,) = window.next_names()
    namespace = window.queue.key(name).namespace
    window.hand_over(name, namespace, BEGIN)
    assert not window.leave(name)
    assert (window.room, window.next_names()) == (0, []), "its creation is under way"
    assert window.expire(BEGIN + timedelta(hours=1))
    assert window.room == 1
    assert charges(window) == ({}, {}), "what never ran costs nothing"


@pytest.mark.parametrize("is_over", [False, True], ids=["waits again", "deleted"])
def test_a_creation_that_fails_costs_nothing_and_its_request_waits_again_unless_it_is_deleted(is_over: bool) -> None:
    window = Window(lambda: 1)
    enter(window, red=1, blue=1)
    (name,) = window.next_names()
    key = window.queue.key(name)
    window.hand_over(name, key.namespace, BEGIN)
    if is_over:
        window.leave(name)
    assert window.release(name, key, BEGIN, is_over=is_over)
    assert (name in window.queue, window.room) == (not is_over, 1)
    assert charges(window) == ({}, {})
    assert name not in window.next_names()


def test_an_object_that_appears_after_it_was_given_up_is_paid_for() -> None:
    window = Window(lambda: 1)
    enter(window, red=2, blue=2)
    window.hand_over("red-00000", "red", BEGIN)
    window.expire(BEGIN + timedelta(hours=1))
    window.observe(made("red-00000", 0), None, initial=False)
    assert list(window.queue._charged) == ["red-00000"]  # noqa: SLF001
    assert window.room == 0
