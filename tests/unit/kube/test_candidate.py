"""When a candidate takes, keeps and leaves a Lease: tables, and two candidates that chance sets against each other."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from heapq import heappop, heappush
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from foresail.kube.candidate import AcquireLease, Candidate, LeaseTiming, ReadLease, Record, Wait

THEIRS = Record("b", "t1", 3, "t0", 10, "7")
MINE = Record("a", "m1", 3, "t0", 10, "7")


def leader(sent: float = 100.0) -> Candidate:
    return Candidate("a").after_read(None, sent).before_write("m1").after_write(MINE, sent, sent + 0.1)


def follower(now: float = 100.0) -> Candidate:
    return Candidate("a").after_read(THEIRS, now)


def test_while_the_lease_can_be_read_and_not_written_no_more_than_the_latest_stamps_are_kept() -> None:
    candidate, now = leader(), 101.0
    for number in range(10_000):
        candidate = (
            candidate.before_write(f"late-{number}").after_failure(now, overtaken=False).after_read(MINE, now + 1)
        )
        assert candidate.owns(MINE), "what the Lease says is ours as long as it says so"
        now += 2
    assert len(candidate.own_renewals) <= 66
    assert candidate.owns(replace(MINE, renewed="late-9936")), "it was sent two minutes ago and may yet arrive"
    assert not candidate.owns(replace(MINE, renewed="late-9000"))


@pytest.mark.parametrize(
    ("candidate", "now", "move"),
    [
        pytest.param(Candidate("a"), 100.0, ReadLease(), id="it begins with a look"),
        pytest.param(Candidate("a").after_read(None, 100.0), 100.0, AcquireLease(None), id="no Lease: create it"),
        pytest.param(follower(), 100.25, Wait(0.75), id="someone holds it: wait for the next look"),
        pytest.param(follower(), 101.0, ReadLease(), id="then look again"),
        pytest.param(
            follower().after_read(THEIRS, 109.5), 109.75, Wait(0.25), id="wait no longer than until it runs out"
        ),
        pytest.param(
            follower().after_read(THEIRS, 109.5), 110.0, AcquireLease(THEIRS), id="unchanged for its duration: take it"
        ),
        pytest.param(
            follower().after_read(replace(THEIRS, renewed="t2"), 109.5), 110.0, Wait(0.5), id="renewed: it counts anew"
        ),
        pytest.param(
            follower().after_read(replace(THEIRS, version="8"), 109.5),
            110.0,
            AcquireLease(replace(THEIRS, version="8")),
            id="a label is no sign of life",
        ),
        pytest.param(
            Candidate("a").after_read(replace(THEIRS, duration=30), 100.0),
            129.5,
            ReadLease(),
            id="the holder's own promise counts",
        ),
        pytest.param(
            Candidate("a").after_read(replace(THEIRS, holder=""), 100.0),
            100.0,
            AcquireLease(replace(THEIRS, holder="")),
            id="released: take it at once",
        ),
        pytest.param(
            Candidate("a").after_read(MINE, 100.0),
            100.0,
            AcquireLease(MINE),
            id="our own from before a restart: at once",
        ),
        pytest.param(
            follower().after_read(replace(THEIRS, holder="a"), 100.0),
            100.0,
            Wait(1.0),
            id="a second process of our name, begun later, has it",
        ),
        pytest.param(follower().after_read(None, 101.0), 102.0, ReadLease(), id="deleted: its holder keeps its time"),
        pytest.param(
            follower().after_read(None, 109.5),
            110.0,
            AcquireLease(replace(THEIRS, version="")),
            id="and not a moment more",
        ),
        pytest.param(leader(), 100.5, Wait(0.5), id="a leader waits between renewals"),
        pytest.param(leader(), 101.0, AcquireLease(MINE), id="and renews without a look"),
        pytest.param(leader().after_failure(103.0, overtaken=False), 103.5, Wait(0.5), id="after no answer it waits"),
        pytest.param(leader().after_failure(103.0, overtaken=False), 104.0, ReadLease(), id="and looks"),
        pytest.param(leader().after_failure(106.5, overtaken=False), 106.5, Wait(0.5), id="but notices the deadline"),
        pytest.param(
            leader().after_failure(103.0, overtaken=True), 103.0, ReadLease(), id="overtaken, it looks at once"
        ),
        pytest.param(
            leader()
            .before_write("m2")
            .after_failure(103.0, overtaken=False)
            .after_read(replace(MINE, renewed="m2", version="8"), 104.0),
            104.0,
            AcquireLease(replace(MINE, renewed="m2", version="8")),
            id="its own renewal had arrived after all",
        ),
    ],
)
def test_what_it_does_next(candidate: Candidate, now: float, move: object) -> None:
    assert candidate.next_step(now) == move


def test_it_leads_from_before_the_write_was_sent_until_the_deadline_and_not_a_moment_more() -> None:
    slow = Candidate("a").after_read(None, 99.0).before_write("m1").after_write(MINE, 100.0, 106.0)
    assert slow.is_leader(106.999)
    assert not slow.is_leader(107.0)


@pytest.mark.parametrize(
    "found", [THEIRS, replace(MINE, holder=""), replace(MINE, renewed="not ours")], ids=["taken", "freed", "namesake"]
)
def test_it_steps_down_once_it_sees_that_it_lost_the_lease(found: Record) -> None:
    assert not leader().after_failure(101.0, overtaken=True).after_read(found, 101.1).is_leader(101.1)


def test_a_deleted_lease_is_created_again_by_its_leader() -> None:
    candidate = leader().after_failure(101.0, overtaken=False).after_read(None, 102.0)
    assert candidate.is_leader(102.0)
    assert candidate.next_step(102.0) == AcquireLease(replace(MINE, version=""))


def test_a_renewal_without_an_answer_never_makes_a_leader() -> None:
    candidate = (
        Candidate("a")
        .after_read(None, 100.0)
        .before_write("m1")
        .after_failure(102.0, overtaken=False)
        .after_read(MINE, 103.0)
    )
    assert not candidate.is_leader(103.0)
    assert candidate.next_step(103.0) == AcquireLease(MINE)


@pytest.mark.parametrize(("duration", "deadline", "retry"), [(7, 7, 1), (10, 2, 1), (10, 7, 0)])
def test_terms_that_could_not_work_are_refused(duration: int, deadline: float, retry: float) -> None:
    with pytest.raises(ValueError, match="the duration must exceed the deadline"):
        LeaseTiming(duration, deadline, retry)


@dataclass
class Process:
    """A candidate with a clock of its own; what was meant for an earlier life of it does not reach it."""

    candidate: Candidate
    ahead: float
    life: int = 0
    asks: int = 0
    led: int = 0


class World:
    """One server and two processes, in virtual time: messages are late or lost, processes pause, die and release."""

    def __init__(self, chance: Random, trouble: float) -> None:
        self.chance, self.trouble = chance, trouble
        self.now, self.count = 1000.0, 0
        self.lease: Record | None = None
        self.processes = [Process(Candidate("a"), -300.0), Process(Candidate("b"), 5000.0)]
        self.agenda: list[tuple[float, int, Callable[[], object]]] = []
        for process in self.processes:
            self.after(0.0, partial(self.turn, process, 0))

    def run(self, seconds: float) -> None:
        end = self.now + seconds
        while self.agenda[0][0] < end:
            self.now, _, act = heappop(self.agenda)
            act()
            assert not all(each.candidate.is_leader(self.now + each.ahead) for each in self.processes), "both lead"

    def after(self, seconds: float, act: Callable[[], object]) -> None:
        self.count += 1
        heappush(self.agenda, (self.now + seconds, self.count, act))

    def delay(self) -> float:
        """Return how long a message or a pause takes: nearly nothing, or in trouble anything up to a minute."""
        if self.chance.random() > self.trouble:
            return 0.01
        return self.chance.choice([0.5, 1.0, 2.0, 3.0, 5.0, 6.9, 8.0, 11.0, 20.0, 60.0])

    def turn(self, process: Process, life: int) -> None:
        if process.life != life:
            return
        here, mine = self.now + process.ahead, process.candidate
        if self.chance.random() < self.trouble / 20:
            self.end(process)
            return
        move = mine.next_step(here)
        if isinstance(move, Wait):
            self.after(move.seconds + self.delay(), partial(self.turn, process, life))
            return
        record = None
        if isinstance(move, AcquireLease):
            self.count += 1
            process.candidate = mine.before_write(str(self.count))
            record = Record(mine.identity, str(self.count), 0, "", mine.timing.duration, "")
        process.asks += 1
        ask = (life, process.asks)
        replacing = move.replacing if isinstance(move, AcquireLease) else None
        pause = self.delay()  # between the look at the clock and the sending
        self.after(pause + self.delay(), lambda: self.arrive(process, ask, here, record, replacing))
        self.after(
            pause + mine.timing.request_timeout + self.delay(), lambda: self.give_up(process, ask)
        )  # late too, if paused

    def end(self, process: Process) -> None:
        """Let the process be killed, or release and end; it comes back under the same name."""
        seen = process.candidate.observed
        if process.candidate.is_leader(self.now + process.ahead) and seen is not None and self.chance.random() < 0.5:
            self.count += 1
            freed = replace(seen, holder="", renewed=str(self.count))
            self.after(self.delay(), lambda: self.write(freed, seen))
        process.life += 1
        process.candidate = Candidate(process.candidate.identity)
        self.after(self.delay(), partial(self.turn, process, process.life))

    def write(self, record: Record, replacing: Record | None) -> Record | None:
        """Do what the API server does: write only over what is still there."""
        before = self.lease
        if (before.version if before else "") != (replacing.version if replacing else ""):
            return None
        self.count += 1
        self.lease = replace(record, version=str(self.count))
        return self.lease

    def arrive(
        self, process: Process, ask: tuple[int, int], sent: float, record: Record | None, replacing: Record | None
    ) -> None:
        found = self.lease if record is None else self.write(record, replacing)
        if self.chance.random() < self.trouble / 2:
            return  # the answer is lost

        def answer() -> None:
            here, mine = self.now + process.ahead, process.candidate
            if record is None:
                process.candidate = mine.after_read(found, here)
            elif found is None:
                process.candidate = mine.after_failure(here, overtaken=True)
            else:
                process.candidate = mine.after_write(found, sent, here)
                process.led += 1

        self.after(self.delay(), lambda: self.take(process, ask, answer))

    def give_up(self, process: Process, ask: tuple[int, int]) -> None:
        def after_failure() -> None:
            process.candidate = process.candidate.after_failure(self.now + process.ahead, overtaken=False)

        self.take(process, ask, after_failure)

    def take(self, process: Process, ask: tuple[int, int], act: Callable[[], None]) -> None:
        """Let a process take what became of its request, unless it has given up on it or is another one by now."""
        if ask == (process.life, process.asks):
            process.asks += 1
            act()
            self.turn(process, process.life)


@pytest.mark.repeats
@given(seed=st.integers(0, 2**32), trouble=st.sampled_from([0.05, 0.15, 0.3, 0.5]))
@settings(max_examples=300, deadline=None, derandomize=True)
def test_two_rivals_never_lead_at_the_same_time_whatever_is_lost_late_paused_or_killed(
    seed: int, trouble: float
) -> None:
    World(Random(seed), trouble).run(600.0)  # noqa: S311 - chance, not secrecy


def test_two_candidates_both_become_leader_at_some_time() -> None:
    world = World(Random(1), 0.15)  # noqa: S311
    world.run(600.0)
    assert all(process.led > 10 for process in world.processes)


def test_after_the_leaders_death_the_follower_leads_within_its_duration_and_one_retry() -> None:
    lease = replace(THEIRS, version="1")
    for killed_after in (0.0, 0.3, 0.99):
        candidate, now = Candidate("a").after_read(lease, 0.0), killed_after
        last = replace(lease, renewed="last", version="2")  # the leader's last breath
        while not isinstance(move := candidate.next_step(now), AcquireLease):
            if isinstance(move, Wait):
                now += move.seconds
            else:
                candidate = candidate.after_read(last, now)
        assert 10.0 <= now - killed_after <= 11.0


def test_a_lease_that_is_older_than_before_ends_leadership_for_good() -> None:
    candidate = leader()
    assert (candidate.newest, candidate.is_rewound) == (7, False)
    overtaken = candidate.after_failure(101.0, overtaken=True)
    restored = overtaken.after_read(replace(MINE, version="3"), 101.1)
    assert restored.is_rewound
    assert not restored.is_leader(101.1)
    created = overtaken.after_read(None, 101.1).before_write("m2").after_write(replace(MINE, version="4"), 101.2, 101.3)
    assert created.is_rewound, "the restored state had no Lease"
    assert not overtaken.after_read(replace(MINE, version="8"), 101.1).is_rewound
    assert not overtaken.after_read(MINE, 101.1).is_rewound


def test_a_follower_notices_a_restored_state_too() -> None:
    assert follower().after_read(replace(THEIRS, version="6"), 101.0).is_rewound
