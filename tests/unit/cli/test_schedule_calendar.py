"""The week of all Schedules: how high they pile up, in the terminal and as SVG."""

from datetime import date, timedelta
from xml.etree import ElementTree as ET

import pytest

from foresail.cli.cron.load import Load, load_of, pile_line, week_lines
from foresail.cli.cron.svg import load_picture
from foresail.cli.schedule.calendar import timetable
from foresail.cli.schedule.snapshot import EvaluatedSchedule
from tests.unit.cli.made_up import NOW, schedule_wire, seen

SVG = "{http://www.w3.org/2000/svg}"


def named(name: str, text: str, namespace: str = "velero") -> EvaluatedSchedule:
    return seen(schedule_wire(text, name, metadata={"namespace": namespace}))


def load(*evaluated: EvaluatedSchedule, first: date = date(2026, 11, 16), days: int = 7, zone: str = "UTC") -> Load:
    return load_of(
        [timetable(each, NOW) for each in evaluated],
        [first + timedelta(days=number) for number in range(days)],
        zone,
        NOW,
    )


def test_a_half_hour_shows_the_most_runs_that_start_at_once_in_it() -> None:
    found = load(named("a", "0 3 * * *"), named("b", "0 3 * * *"), named("c", "20 3 * * 1"), named("d", "* 9 * * 1"))
    lines = list(week_lines(found))
    assert lines[0] == "4 schedules: the most runs that start in one minute of each half hour, in UTC"
    assert lines[1] == "            0     3     6     9     12    15    18    21"
    assert lines[2] == "Mon 16 Nov  ······2···········11····························  63 runs"
    assert lines[3] == "Tue 17 Nov  ······2·········································  2 runs"


def test_ten_or_more_at_once_are_seen_and_named() -> None:
    found = load(*(named(f"app-{number:02}", "0 0 * * *") for number in range(12)), named("late", "0 23 * * *"))
    lines = list(week_lines(found))
    assert lines[2].startswith("Mon 16 Nov  #·")
    assert "# ten or more; the most is 12" in lines
    assert lines[-1] == "  every day at 00:00: 12 (app-00, app-01, app-02, app-03, app-04, app-05 and 6 more)"


def test_a_pile_up_of_one_day_names_the_day() -> None:
    found = load(named("a", "5 1 16 * *"), named("b", "5 1 * * *"))
    assert [pile_line(each) for each in found.piles] == ["Mon 16 Nov at 01:05: 2 (a, b)"]


@pytest.mark.parametrize(
    ("first", "second", "said"),
    [
        ("0 * * * *", "0 * * * *", ["every full hour: 2 (a, b)"]),
        ("15 * * * *", "15 * * * *", ["every hour at :15: 2 (a, b)"]),
        ("*/30 * * * *", "*/30 * * * *", ["every 30 minutes: 2 (a, b)"]),
        ("0 */6 * * *", "0 */3 * * *", ["every 6 hours from 00:00: 2 (a, b)"]),
        ("0 8-18 * * *", "0 * * * *", ["every hour from 08:00 to 18:00: 2 (a, b)"]),
        ("0 1,2,7,9,20 * * *", "0 * * * *", ["every day at 01:00, 02:00, 07:00 and 2 more times: 2 (a, b)"]),
        ("0 1,5 * * 1-5", "0 * * * *", ["5 days from Mon 16 Nov at 01:00, 05:00: 2 (a, b)"]),
    ],
)
def test_pile_ups_of_the_same_schedules_are_one_line(first: str, second: str, said: list[str]) -> None:
    found = load(named("a", first), named("b", second))
    assert [pile_line(each) for each in found.piles] == said


def test_a_larger_pile_up_does_not_break_the_line_of_a_smaller_one() -> None:
    found = load(*(named(name, "0 * * * *") for name in "abcd"), named("nightly", "0 0 * * *"))
    assert [pile_line(each) for each in found.piles] == [
        "every day at 00:00: 5 (a, b, c, d, nightly)",
        "every full hour: 4 (a, b, c, d)",
    ]


def test_a_minute_of_a_larger_pile_up_is_not_counted_again_in_a_smaller_one() -> None:
    found = load(
        named("hourly", "0 * * * *"),
        named("often", "*/5 * * * *"),
        named("nightly", "0 3 * * *"),
        named("w", "0 0 * * 0"),
    )
    assert [pile_line(each) for each in found.piles] == [
        "every day at 03:00: 3 (hourly, nightly, often)",
        "Sun 22 Nov at 00:00: 3 (hourly, often, w)",
        "6 days from Mon 16 Nov at 00:00: 2 (hourly, often)",
        "every hour from 01:00 to 23:00: 2 (hourly, often)",
    ]


def test_one_schedule_is_one_schedule() -> None:
    found = load(named("a", "0 3 * * *"))
    assert next(week_lines(found)).startswith("1 schedule: the most runs")
    assert "1 schedule: the most runs" in load_picture(found, [])


def test_today_is_bold_and_no_other_day(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("foresail.cli.cron.load.painted", lambda text, colour, _: f"<{colour}>{text}</>")
    found = load(named("a", "0 3 * * *"), first=date(2026, 11, 14))
    bold = [line for line in week_lines(found) if line.startswith("<1>")]
    assert len(bold) == 1
    assert bold[0].startswith("<1>Sun 15 Nov</>")
    picture = ET.fromstring(load_picture(found, []))  # noqa: S314 - we drew it
    heavy = [each.text for each in picture.iter(f"{SVG}text") if each.get("font-weight") == "600"]
    assert heavy[1:] == ["Sun 15 Nov"]


def test_schedules_of_the_same_name_in_two_namespaces_pile_up_too() -> None:
    found = load(named("a", "0 3 * * 1"), named("a", "0 3 * * 1", "velero-2"))
    assert found.piles[0].names == ("velero-2/a", "velero/a")


def test_a_schedule_that_counts_from_its_last_run_is_followed_from_there() -> None:
    found = load(named("a", "@every 24h"), days=2)
    assert found.peaks == {(date(2026, 11, 16), 6): 1, (date(2026, 11, 17), 6): 1}


def test_an_hour_that_the_clock_shows_twice_counts_both_and_one_that_it_skips_is_empty() -> None:
    autumn = load(named("a", "* * * * *"), first=date(2027, 10, 31), days=1, zone="Europe/Berlin")
    assert autumn.runs == {date(2027, 10, 31): 25 * 60}
    spring = load(named("a", "0 3 * * *"), first=date(2027, 3, 28), days=1, zone="Europe/Berlin")
    assert "Sun 28 Mar  ····  ····1····" in list(week_lines(spring))[2]


def test_the_picture_has_a_bar_for_each_half_hour_with_runs_and_the_pile_ups_in_words() -> None:
    found = load(named("a<b", "0 3 * * *"), named("c", "0 3 * * 1"))
    picture = ET.fromstring(load_picture(found, [pile_line(each) for each in found.piles]))  # noqa: S314 - we drew it
    bars = [each.findtext(f"{SVG}title") for each in picture.iter(f"{SVG}rect") if each.find(f"{SVG}title") is not None]
    assert bars == ["2", "1", "1", "1", "1", "1", "1"]
    texts = [each.text for each in picture.iter(f"{SVG}text")]
    assert "Mon 16 Nov at 03:00: 2 (a<b, c)" in texts


def test_a_week_without_runs_is_drawn_too() -> None:
    found = load()
    assert found.most == 0
    assert load_picture(found, []).endswith("</svg>\n")
    assert list(week_lines(found))[-1].endswith("  0 runs")
