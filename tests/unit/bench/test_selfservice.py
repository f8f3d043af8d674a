"""What the benchmark of self-service makes of what it sees: lags, rates and writes for each request."""

from datetime import UTC, datetime, timedelta

from bench.selfservice.line import far_writes, most_per_second, near_lags
from bench.selfservice.speed import writes_per_request
from foresail.selfservice.queue.positions import NEAR
from testbed.audit import Request

BEGUN = datetime(2026, 1, 1, tzinfo=UTC)
STATUS = "nonadminbackups.oadp.openshift.io/status"


def asked(name: str, seconds: float, resource: str = STATUS, verb: str = "patch") -> Request:
    at = BEGUN + timedelta(seconds=seconds)
    return Request("operator", verb, "", resource, "red", name, 200, at, ended=True)


def test_a_rate_is_the_highest_over_any_stretch() -> None:
    assert most_per_second([], 5.0) == 0
    assert most_per_second([0.0, 0.5, 0.9, 1.0, 1.1], 1.0) == 4
    assert most_per_second([each / 20 for each in range(400)], 5.0) == 20


def test_near_ones_count_from_the_step_to_the_first_position_that_is_low_enough() -> None:
    names = ["a", "b", "c", "d"]
    seen = {
        ("c", 2): BEGUN + timedelta(seconds=0.5),  # after the first step, c is the second
        ("d", 1): BEGUN + timedelta(seconds=3.0),  # d was told both steps at once
        ("c", 1): BEGUN + timedelta(seconds=2.0),
    }
    lags, missing = near_lags(names, [BEGUN, BEGUN + timedelta(seconds=1)], seen)
    assert (lags, missing) == ([0.5, 2.0, 3.0], 0)
    assert near_lags(names, [BEGUN], {}) == ([0.0], 2)


def test_a_write_is_far_by_the_steps_before_it() -> None:
    names = [str(number) for number in range(NEAR + 3)]
    steps = [BEGUN + timedelta(seconds=1)]
    last, near = str(NEAR + 1), str(NEAR)
    writes = [asked(last, 0.5), asked(last, 2.0), asked(near, 0.5), asked(near, 2.0)]
    assert far_writes(names, steps, writes) == [asked(last, each).at.timestamp() for each in (0.5, 0.5, 2.0)]


def test_only_what_is_written_of_requests_and_backups_counts_for_them() -> None:
    found = [
        asked("a", 1),
        asked("a", 2, "nonadminbackups.oadp.openshift.io"),
        asked("b", 3, "backups.velero.io", "create"),
        asked("c", 4, "events.events.k8s.io", "create"),
        asked("", 5, "nonadminbackups.oadp.openshift.io", "watch"),
        asked("foresail", 6, "leases.coordination.k8s.io"),
    ]
    assert writes_per_request(found, 1) == (3.0, 1.0)
