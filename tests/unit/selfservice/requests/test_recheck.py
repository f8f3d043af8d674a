"""When access is checked again for a restore that was denied."""

from datetime import UTC, datetime, timedelta

from foresail.selfservice.requests.authorization import RECHECK_PAUSES, recheck_times

SINCE = datetime(2026, 1, 1, tzinfo=UTC)


def test_checks_come_after_a_minute_and_then_later_each_time_up_to_ten_minutes() -> None:
    at, found = SINCE, []
    for _ in range(8):
        at = recheck_times(SINCE, at)[1]
        found.append((at - SINCE) // timedelta(minutes=1))
    assert found == [1, 3, 7, 15, 25, 35, 45, 55]


def test_the_last_and_the_next_check_surround_every_instant() -> None:
    for seconds in range(0, 7200, 7):
        now = SINCE + timedelta(seconds=seconds)
        last, later = recheck_times(SINCE, now)
        assert later > now
        assert later - now <= RECHECK_PAUSES[-1]
        assert last is None or (last <= now and recheck_times(SINCE, last) == (last, later))


def test_a_clock_behind_the_refusal_waits() -> None:
    assert recheck_times(SINCE, SINCE - timedelta(hours=1)) == (None, SINCE + RECHECK_PAUSES[0])
