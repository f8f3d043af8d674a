"""What the soak makes of what it has seen: each promise is found kept and found broken."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from itertools import takewhile
from pathlib import Path
from typing import Any

import msgspec
import pytest

from bench.soak import evidence, judge
from bench.soak.final import in_bucket
from bench.soak.judge import Verdict
from bench.soak.memory import LEADING, slope, slopes, taken_by_leading
from bench.soak.program import (
    KINDS,
    LEADER,
    MOST_BACKUPS,
    WARM_UP,
    blows,
    fire_minutes,
    fires,
    firing,
    numbers,
    resting,
    slots,
    wishes,
)
from bench.soak.seen import Asked, Fault, Final, Held, Life, Made, Said, Seen, Stuck, Thing, read
from foresail.api.instants import stamp
from foresail.api.marks import REQUEST_UID
from foresail.cron import fires_after, parse

BEGINS = datetime(2026, 1, 1, 12, 0, tzinfo=UTC)
NUMBERS = msgspec.structs.replace(numbers(0.01, 12), every=2)
ENDS = BEGINS + timedelta(minutes=12)
SECOND = timedelta(seconds=1)
SLOTS = slots(0, NUMBERS, BEGINS, ENDS)
FIRES = fires(0, NUMBERS, BEGINS, ENDS)


def made(slot: datetime, **other: Any) -> Made:  # noqa: ANN401 - any field
    ended = [(slot + SECOND, ""), (slot + 9 * SECOND, "Completed")]
    return Made(
        **{"name": "b", "schedule": "s", "slot": stamp(slot), "request": "", "created": slot, "phases": ended, **other}
    )


def served(request: str, **other: Any) -> Made:  # noqa: ANN401 - any field
    return Made("red-b", "", "", request, **{"created": BEGINS + SECOND, "phases": [(BEGINS, "Completed")], **other})


def held(fire: datetime, name: str = "job-warm-0-1", **other: Any) -> Held:  # noqa: ANN401 - any field
    return Held(name, "c", stamp(fire), **{"created": fire - WARM_UP, "gone": fire + SECOND, **other})


def a_soak() -> Seen:
    """Return a small soak in which everything went well."""
    status = {"phase": "Completed", "progress": {"totalItems": 2}}
    request = Thing("red", "b", "n", {"veleroBackup": {"name": "red-b", "status": status}})
    backup = Thing("velero", "red-b", "v", {**status, "queuePosition": 0}, {REQUEST_UID: "n"})
    return Seen(
        NUMBERS,
        1,
        BEGINS,
        ENDS,
        schedules={"often": "s"},
        cron_jobs={"job": "c"},
        asked=[Asked("red", "b", "n", live=True)],
        made={**{f"b{number}": made(slot) for number, slot in enumerate(SLOTS)}, "v": served("n")},
        held={f"p{number}": held(fire) for number, fire in enumerate(FIRES)},
        faults=[Fault(LEADER, ENDS - 90 * SECOND, ENDS - 80 * SECOND, ["the Lease went to another"])],
        lives=[Life("replica-1", [(float(at), 90.0) for at in range(0, 1500, 10)], 95.0, "killed")],
        settled=12.0,
        final=Final(ENDS, [request], [backup]),
    )


def final(seen: Seen) -> Final:
    assert seen.final is not None
    return seen.final


def test_a_soak_in_which_all_went_well_keeps_every_promise() -> None:
    assert [each.about for each in judge.verdicts(a_soak()) if not each.kept] == []
    assert len(SLOTS) == 6
    assert FIRES


# Each line breaks one thing, and the promise that it breaks must say so.


def _second_backup(seen: Seen) -> None:
    seen.made["again"] = made(SLOTS[0])


def _no_backup(seen: Seen) -> None:
    del seen.made["b3"]


def _backup_for_no_slot(seen: Seen) -> None:
    seen.made["odd"] = made(SLOTS[0] + timedelta(minutes=1))


def _second_for_a_request(seen: Seen) -> None:
    seen.made["w"] = served("n")


def _none_for_a_request(seen: Seen) -> None:
    del seen.made["v"]


def _nobodys(seen: Seen) -> None:
    seen.made["w"] = served("stranger")


def _wrong_mirror(seen: Seen) -> None:
    final(seen).backups[0].status["phase"] = "Failed"


def _mirror_of_anothers(seen: Seen) -> None:
    final(seen).backups[0].annotations[REQUEST_UID] = "m"


def _lost_request(seen: Seen) -> None:
    final(seen).requests.clear()


def _restore_without_restore(seen: Seen) -> None:
    final(seen).restore_requests.append(Thing("red", "r", "q"))


def _deleted_and_there(seen: Seen) -> None:
    seen.asked[0].wanted = "delete"


def _deleted_and_in_the_bucket(seen: Seen) -> None:
    seen.asked[0].wanted = "delete"
    seen.final = Final(ENDS, bucket=["red-b"])


def _forced_and_there(seen: Seen) -> None:
    seen.asked[0].wanted = "force"
    final(seen).requests.clear()


def _placeholder_twice(seen: Seen) -> None:
    seen.held["again"] = held(FIRES[0])


def _no_placeholder(seen: Seen) -> None:
    del seen.held["p0"]


def _late_placeholder(seen: Seen) -> None:
    seen.held["p0"] = held(FIRES[0], created=FIRES[0] - WARM_UP + 40 * SECOND)


def _placeholder_that_stays(seen: Seen) -> None:
    seen.held["p0"].gone = FIRES[0] + timedelta(minutes=9)


def _placeholder_left(seen: Seen) -> None:
    final(seen).placeholders = 1


def _too_many(seen: Seen) -> None:
    seen.made |= {f"x{number}": served("n") for number in range(MOST_BACKUPS)}


def _unfinished(seen: Seen) -> None:
    final(seen).backups[0].status["phase"] = "ReadyToStart"


def _unseen_fault(seen: Seen) -> None:
    seen.faults[0].seen = []


def _no_fault_at_all(seen: Seen) -> None:
    seen.faults.clear()


def _died(seen: Seen) -> None:
    seen.lives[0].end = "ended by itself with 1"


def _grew(seen: Seen) -> None:
    seen.lives[0].samples = [(float(at), 90.0 + at / 100) for at in range(0, 1500, 10)]


def _peaked(seen: Seen) -> None:
    seen.lives[0].peak = 500.0


def _settled_late(seen: Seen) -> None:
    seen.settled = 400.0


def _never_settled(seen: Seen) -> None:
    seen.settled = None


@pytest.mark.parametrize(
    ("spoil", "promise"),
    [
        (_second_backup, judge.one_for_each_slot),
        (_no_backup, judge.one_for_each_slot),
        (_backup_for_no_slot, judge.one_for_each_slot),
        (_second_for_a_request, judge.one_for_each_request),
        (_none_for_a_request, judge.one_for_each_request),
        (_nobodys, judge.one_for_each_request),
        (_wrong_mirror, judge.true_mirror),
        (_mirror_of_anothers, judge.true_mirror),
        (_lost_request, judge.true_mirror),
        (_restore_without_restore, judge.true_mirror),
        (_deleted_and_there, judge.nothing_left),
        (_deleted_and_in_the_bucket, judge.nothing_left),
        (_forced_and_there, judge.nothing_left),
        (_placeholder_twice, judge.primed_once),
        (_no_placeholder, judge.primed_once),
        (_late_placeholder, judge.primed_once),
        (_placeholder_that_stays, judge.primed_once),
        (_placeholder_left, judge.primed_once),
        (_too_many, judge.few_enough),
        (_unfinished, judge.nothing_unnamed),
        (_unseen_fault, judge.every_fault_seen),
        (_no_fault_at_all, judge.every_fault_seen),
        (_died, judge.every_replica_lived),
        (_grew, judge.memory_flat),
        (_peaked, judge.memory_flat),
        (_settled_late, judge.settled_in_time),
        (_never_settled, judge.settled_in_time),
    ],
)
def test_a_promise_that_is_broken_is_found_broken(
    spoil: Callable[[Seen], None], promise: Callable[[Seen], Verdict]
) -> None:
    seen = a_soak()
    spoil(seen)
    assert not promise(seen).kept


# What excuses


def test_a_slot_without_a_backup_is_excused_by_an_event_that_says_it_was_missed() -> None:
    seen = a_soak()
    _no_backup(seen)
    note = (
        f"one run was missed since {stamp(SLOTS[2])}: the operator was down or the runs were blocked. One late run for"
    )
    seen.said = [Said(SLOTS[4], "Schedule", "often", "velero", "Missed", f"{note} {stamp(SLOTS[4])}.")]
    found = judge.one_for_each_slot(seen)
    assert found.kept
    assert found.figures["slots_missed_and_said"] == 1
    seen.said[0].name = "another"
    assert not judge.one_for_each_slot(seen).kept


def test_a_slot_without_a_backup_is_excused_by_the_one_before_it_that_did_not_end() -> None:
    seen = a_soak()
    _no_backup(seen)
    seen.made["b2"].phases[-1] = (SLOTS[4] + SECOND, "Completed")
    assert judge.one_for_each_slot(seen).figures["slots_missed_and_seen"] == 1
    seen.made["b2"].phases[-1] = (SLOTS[4] - 20 * SECOND, "Completed")
    assert not judge.one_for_each_slot(seen).kept


def test_the_last_slot_may_still_be_blocked_with_a_reason() -> None:
    seen = a_soak()
    del seen.made["b5"]
    seen.said = [Said(SLOTS[5] + SECOND, "Schedule", "often", "velero", "Busy", "Backup b4 is InProgress")]
    assert judge.one_for_each_slot(seen).kept


def test_a_backup_that_velero_synced_from_the_bucket_is_no_duplicate() -> None:
    seen = a_soak()
    seen.asked[0].wanted = "force"
    seen.made["w"] = served("n", created=BEGINS + timedelta(minutes=5), started=BEGINS)
    assert judge.one_for_each_request(seen).kept
    final(seen).requests.clear()
    found = judge.nothing_left(seen)
    assert found.kept
    assert found.figures["synced_back"] == 1


def test_a_placeholder_is_created_again_once_its_loss_is_reported() -> None:
    seen = a_soak()
    seen.held["again"] = held(FIRES[0], "job-warm-0-2")
    seen.said = [Said(FIRES[0], "Primer", "job", "red", "Lost", "what was held was lost")]
    assert judge.primed_once(seen).kept


def test_a_fire_that_was_not_primed_is_excused_by_the_status_of_its_primer() -> None:
    seen = a_soak()
    _no_placeholder(seen)
    delays = [{"fire": stamp(FIRES[0]), "seconds": 3, "warm": False}]
    final(seen).primers = [Thing("red", "job", "p", {"cronJobs": [{"uid": "c", "startDelays": delays}]})]
    assert judge.primed_once(seen).figures["fires_unprimed_and_said"] == 1


def test_a_warm_up_may_be_late_after_an_outage() -> None:
    seen = a_soak()
    _late_placeholder(seen)
    seen.faults.append(Fault(LEADER, FIRES[0] - WARM_UP - SECOND, FIRES[0] - WARM_UP + SECOND))
    assert judge.primed_once(seen).kept


def test_a_backup_that_the_doctor_names_is_counted_and_not_held_against_foresail() -> None:
    seen = a_soak()
    _unfinished(seen)
    seen.stuck = [
        Stuck(ENDS, "Backup red-b has been ReadyToStart for 11 min: Velero loses these on restart", mended=True)
    ]
    found = judge.nothing_unnamed(seen)
    assert found.kept
    assert found.figures == {"stuck": 1, "stuck_and_mended": 1, "unfinished": 1}


def test_short_lives_are_not_judged_by_their_slope() -> None:
    seen = a_soak()
    seen.lives[0].samples = [(float(at), 50.0 + at) for at in range(0, 900, 10)]
    assert judge.memory_flat(seen).kept


# Figures


def test_a_slope_is_taken_while_a_life_is_warm_and_for_each_role() -> None:
    assert slope([]) == 0.0
    warm = [(float(at), 10.0 if at < 600 else 80.0 + at / 3600) for at in range(0, 3600, 10)]
    assert dict(slopes(warm, None)) == {"following": pytest.approx(1.0)}
    assert dict(slopes(warm, 5.0)) == {"leading": pytest.approx(1.0)}
    led = [(at, held if at < 1500 else held + 5.0 + min(at - 1500, 600.0) / 300) for at, held in warm]
    assert dict(slopes(led, 1500.0)) == {"following": pytest.approx(1.0), "leading": pytest.approx(1.0)}
    assert taken_by_leading(led, 1500.0) == pytest.approx(7.0, abs=0.2)
    assert taken_by_leading(led, None) is None
    assert taken_by_leading(led, 5.0) is None, "it was not warm before"
    assert taken_by_leading(led, 3500.0) is None, "it did not live long enough after"


def test_a_leader_that_grows_all_the_time_breaks_the_promise_whenever_it_became_leader() -> None:
    for led in (5.0, 1500.0):
        seen = a_soak()
        seen.lives[0].samples = [(float(at), 80.0 + at / 3600 * 12) for at in range(0, 3600, 10)]
        seen.lives[0].led = led
        assert not judge.memory_flat(seen).kept, led


def test_what_leading_takes_has_a_bound_of_its_own() -> None:
    seen = a_soak()
    for more, kept in ((LEADING - 1, True), (LEADING + 1, False)):
        seen.lives[0].samples = [(float(at), 80.0 if at <= 900 else 80.0 + more) for at in range(0, 3600, 10)]
        seen.lives[0].led = 900.0
        found = judge.memory_flat(seen)
        assert found.kept is kept
        assert found.figures["rss_taken_by_leading_mib"] == {"replica-1": more}


def test_the_bucket_has_something_of_those_backups_whose_folder_has_a_file() -> None:
    paths = ["backups/one/velero-backup.json", "backups/one/x.gz", "backups/two/x.gz", "restores/three/x", "note"]
    assert in_bucket(paths) == ["one", "two"]


def test_a_kept_soak_is_read_as_it_was(tmp_path: Path) -> None:
    a_soak().write(tmp_path / "seen.json")
    assert read(tmp_path / "seen.json") == a_soak()


# What is to happen


def test_slots_and_fires_are_those_of_the_expressions() -> None:
    of = numbers(1, 60)
    ends = BEGINS + timedelta(hours=1)
    for number in range(0, of.firing, 7):
        assert slots(number, of, BEGINS, ends) == _by_engine(firing(number, of)[1], BEGINS, ends)
    for number in range(0, of.cron_jobs, 41):
        minutes = ",".join(map(str, fire_minutes(number, of, BEGINS)))
        assert fires(number, of, BEGINS, ends) == _by_engine(f"{minutes} * * * *", BEGINS + WARM_UP, ends)


def _by_engine(text: str, begins: datetime, ends: datetime) -> list[datetime]:
    return list(takewhile(lambda at: at <= ends, fires_after(parse(text), begins)))


def test_a_schedule_that_rests_has_no_slot_for_hours() -> None:
    for number in range(0, 2_000, 13):
        assert _by_engine(resting(number, BEGINS)[1], BEGINS, BEGINS + timedelta(hours=3)) == []


def test_no_more_is_asked_of_velero_than_agreed() -> None:
    of = numbers(1, 60)
    due = sum(len(slots(number, of, BEGINS, BEGINS + timedelta(hours=1))) for number in range(of.firing))
    assert (of.namespaces, of.schedules, of.requests, of.cron_jobs) == (1_000, 2_000, 5_000, 500)
    assert due + of.live <= MOST_BACKUPS


def test_every_kind_is_killed_every_few_minutes_and_the_last_replicas_live_long() -> None:
    found = blows(7, 60)
    kinds = [each.kind for each in found]
    assert all(kinds.count(kind) >= 3 for kind in KINDS)
    assert sum(each.after + each.away for each in found) < 3600
    ends = [sum(each.after + each.away for each in found[: number + 1]) for number in range(len(found))]
    assert max(end for end, kind in zip(ends, kinds, strict=True) if kind == LEADER) < 3600 - 1200
    assert found == blows(7, 60)
    assert {each.kind for each in blows(7, 8)} == set(KINDS)


def test_tenants_change_their_minds_only_about_what_they_asked_for() -> None:
    of = numbers(1, 60)
    found = wishes(7, of)
    assert len(found) == of.live + of.deleted + of.forced + of.restores
    assert list(found) == sorted(found, key=lambda each: each.at)
    assert max(each.at for each in found) <= 3540


# Where faults are seen


def test_a_fault_is_seen_in_metrics_and_events() -> None:
    leader = 'leader_election_master_status{name="foresail"}'
    before = {"a": {leader: 1.0, 'foresail_watch_restarts_total{kind="Pod"}': 2.0}}
    after = {"a": {leader: 1.0, 'foresail_watch_restarts_total{kind="Pod"}': 5.0}}
    assert list(evidence.watches_restarted(before, after)) == ["foresail_watch_restarts_total of a rose by 3"]
    assert list(evidence.watches_restarted(after, after)) == []
    waits = {"a": {'foresail_selfservice_waiting{namespace="red"}': 2.0}}
    assert list(evidence.requests_wait(before, waits)) == ["foresail_selfservice_waiting rose from 0 to 2"]
    assert list(evidence.requests_wait(waits, waits)) == []
    waits = {"a": {'foresail_schedules_waiting_backups{namespace="velero"}': 3.0}}
    assert list(evidence.requests_wait(before, waits)) == ["foresail_schedules_waiting_backups rose from 0 to 3"]
    gone, there = ({"a": {'foresail_backup_location_available{location="default"}': held}} for held in (0.0, 1.0))
    assert list(evidence.location_away(gone)) == ['foresail_backup_location_available{location="default"} is 0']
    assert list(evidence.location_away(there)) == []
    seen = a_soak()
    assert list(evidence.lead_moved(seen, BEGINS, after)) == []
    seen.leaders = [(BEGINS - SECOND, "b"), (BEGINS + 10 * SECOND, "a")]
    assert list(evidence.lead_moved(seen, BEGINS, after)) == [
        "the Lease went to a after 10.0 s",
        "leader_election_master_status of a is 1",
    ]
    seen.said = [Said(BEGINS, "Schedule", "often", "velero", "LocationUnavailable", "away")]
    assert list(evidence.said_since(seen, BEGINS, "LocationUnavailable")) == [
        f"1 Events LocationUnavailable, the first at {stamp(BEGINS)}"
    ]
    assert list(evidence.said_since(seen, BEGINS + SECOND, "LocationUnavailable")) == []


def test_a_forced_request_may_stay_while_its_data_is_in_the_bucket_if_it_says_so() -> None:
    seen = a_soak()
    seen.asked[0].wanted = "force"
    assert not judge.nothing_left(seen).kept
    final(seen).requests[0].status["conditions"] = [{"type": "Deleting", "reason": "ForceDeleted"}]
    seen.made["w"] = served("n", created=BEGINS + timedelta(minutes=5), started=BEGINS)
    assert judge.nothing_left(seen).kept
