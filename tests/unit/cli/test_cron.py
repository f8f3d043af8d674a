"""`foresail cron` as a user types it: what stands on standard output, on standard error, and the exit code."""

import io
import json
import os
import re
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import pytest

from foresail.cli.main import main
from tests.machine_speed import cost_beside_plain_python

BERLIN = ("--zone", "Europe/Berlin")


@dataclass(frozen=True)
class Said:
    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:  # noqa: ANN401 - JSON is any
        return json.loads(self.out)


class Cron:
    def __init__(self, capsys: pytest.CaptureFixture[str]) -> None:
        self._capsys = capsys

    def __call__(self, *words: str) -> Said:
        code = main(["cron", *words])
        said = self._capsys.readouterr()
        return Said(code, said.out, said.err)


@pytest.fixture
def cron(capsys: pytest.CaptureFixture[str]) -> Cron:
    return Cron(capsys)


def test_next_lists_wall_time_and_utc_across_a_night_without_half_past_two(cron: Cron) -> None:
    said = cron("next", "30 2 * * *", *BERLIN, "--after", "2027-03-27", "--count", "2")
    assert said == Said(
        0,
        "FIRE (Europe/Berlin)       UTC                    IN\n"
        "Sat 2027-03-27 02:30 +01   2027-03-27T01:30:00Z   2 h 30 min\n"
        "Mon 2027-03-29 02:30 +02   2027-03-29T00:30:00Z   2 d 1 h\n",
        "",
    )


def test_next_without_an_instant_starts_now_and_counts_five(cron: Cron) -> None:
    assert len(cron("next", "* * * * *").out.splitlines()) == 6


def test_next_as_json_names_what_was_asked(cron: Cron) -> None:
    said = cron("next", "CRON_TZ=Asia/Tokyo @daily", "--after", "2026-01-01T00:00:00Z", "--count", "1", "-o", "json")
    assert said.json == {
        "schedule": "CRON_TZ=Asia/Tokyo @daily",
        "dialect": "robfig",
        "timeZone": "Asia/Tokyo",
        "fires": ["2026-01-01T15:00:00Z"],
    }


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (["0 0 31 2 *"], "'0 0 31 2 *' never fires: none of its months has such a day"),
        ([", * * * *"], "', * * * *' never fires: the minute field is an empty list"),
        (["@manual", "--dialect", "go-cron"], "'@manual' never fires: @manual runs only when triggered by hand"),
        (
            ["0 0 13 1 5", "--dialect", "go-cron", "--after", "2028-02-01"],
            "'0 0 13 1 5' does not fire after 2028-02-01T00:00:00Z: the search ends after five years",
        ),
    ],
)
def test_next_of_what_never_fires_ends_with_code_1_and_the_reason(cron: Cron, words: list[str], why: str) -> None:
    assert cron("next", *words) == Said(1, "", f"error: {why}\n")


def test_a_wrong_field_is_pointed_at_and_the_hint_says_what_is_allowed(cron: Cron) -> None:
    said = cron("next", "0 3 * * MON-FRY")
    assert said.code == 1
    assert said.err.splitlines()[1:3] == ["  0 3 * * MON-FRY", "          ^"]
    assert said.err.startswith("error: day-of-week: 'FRY' is not a value of this field")
    assert "hint: allowed: 0-6 or SUN-SAT" in said.err


def test_a_text_that_cannot_be_shown_is_not_pointed_into(cron: Cron) -> None:
    said = cron("next", "0 3 * * \x1b[31m")
    assert said.code == 1
    assert "\x1b" not in said.err


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        (["next", "0 3 * * *", "--after", "yesterday"], "'yesterday' is not a date or time"),
        (["next", "0 3 * * *", "--zone", "Mars/Olympus"], "'Mars/Olympus' is not a time zone"),
        (["between", "0 3 * * *", "2026-01-02", "2026-01-01"], "'2026-01-01' is not after '2026-01-02'"),
        (["shift", "0 3 * * *", "90s"], "'90s' is not a lead time"),
        (["shift", "0 3 * * *", "soon"], "'soon' is not a lead time"),
        (["diff-dialects"], "specify either an expression or -f FILE"),
        (["diff-dialects", "-f", "no/such/file"], "cannot read no/such/file"),
        (["calendar", *["* * * * *"] * 27], "27 schedules do not fit into one picture"),
        (["calendar", "* * * * *", "--svg", "no/such/folder/x.svg"], "cannot write no/such/folder/x.svg"),
    ],
)
def test_what_cannot_be_done_is_named_with_its_cause(cron: Cron, words: list[str], problem: str) -> None:
    said = cron(*words)
    assert (said.code, said.out) == (1 if problem.startswith("cannot ") else 2, "")
    assert problem in said.err


def test_a_count_below_one_is_refused(cron: Cron) -> None:
    with pytest.raises(SystemExit):
        cron("next", "0 3 * * *", "--count", "0")


def test_previous_lists_the_newest_first(cron: Cron) -> None:
    said = cron("previous", "0 3 * * *", "--before", "2026-01-03T03:00:00Z", "--count", "2", "-o", "json")
    assert said.json["fires"] == ["2026-01-02T03:00:00Z", "2026-01-01T03:00:00Z"]


def test_between_includes_the_start_and_not_the_end(cron: Cron) -> None:
    said = cron("between", "0 * * * *", "2026-01-01T01:00", "2026-01-01T03:00", "-o", "json")
    assert said.json["fires"] == ["2026-01-01T01:00:00Z", "2026-01-01T02:00:00Z"]


def test_shift_prints_the_expressions_and_says_that_they_are_exact(cron: Cron) -> None:
    assert cron("shift", "0 0 1 * *", "10m") == Said(0, "SCHEDULE     TIME ZONE\n50 0 1 * *   Etc/GMT-1\n", "exact\n")


def test_shift_as_json_has_the_promised_shape(cron: Cron) -> None:
    said = cron("shift", "0 0 * * 5", "10", "-o", "json").json
    assert {key: said[key] for key in ("exact", "schedules", "reason")} == {
        "exact": True,
        "schedules": [{"schedule": "50 23 * * 4", "timeZone": "UTC"}],
        "reason": None,
    }


def test_shift_in_a_zone_with_summer_time_says_on_which_dates_it_is_wrong(cron: Cron) -> None:
    said = cron("shift", "0 3 * * *", "30m", *BERLIN, "--at", "2026-11-15")
    assert said.out == "SCHEDULE     TIME ZONE\n30 2 * * *   Europe/Berlin\n"
    assert said.err.startswith("not exact: ")
    assert "on 2027-03-28, 2027-10-31, 2028-03-26, 2028-10-29, 2029-03-25, 2029-10-28 and 4 more dates" in said.err
    assert "\nhint: " in said.err


def test_shift_as_json_counts_what_it_does_not_list(cron: Cron) -> None:
    said = cron("shift", "* 2 29 2 *", "72h", "--at", "2026-11-15", "-o", "json").json
    assert said["exact"] is False
    assert said["spurious"]["count"] > len(said["spurious"]["first"]) == 100


def test_explain_says_the_words_the_fields_the_fires_and_the_oddities(cron: Cron) -> None:
    said = cron("explain", "45 20 2-31 * 0", *BERLIN, "--at", "2027-03-27")
    assert said.code == 0
    assert re.search(r"^day of month +2-31 +2-31$", said.out, re.MULTILINE)
    assert "next fire  Sat 2027-03-27 20:45 +01" in said.out
    assert "note: both day fields are limited" in said.out
    assert "note: Velero 1.18.3 reads it differently" in said.out


def test_explain_as_json_has_every_value_of_every_field(cron: Cron) -> None:
    said = cron("explain", "*/20 1,2 * * *", "--at", "2027-01-01", "-o", "json").json
    assert said["fields"]["minute"] == [0, 20, 40]
    assert said["fields"]["hour"] == [1, 2]
    assert said["next"][0] == "2027-01-01T01:00:00Z"
    assert said["notes"] == []


def test_explain_of_an_interval_has_no_fields(cron: Cron) -> None:
    said = cron("explain", "@every 90m", "--at", "2027-01-01", "-o", "json").json
    assert said["fields"] == {}
    assert said["notes"] == ["it counts from the creation of its object or from its last run, not from the clock"]


@pytest.mark.parametrize(
    ("words", "note"),
    [
        (["30 2 * * *", *BERLIN], "clocks change on Sun 2027-03-28: no fire at 02:30"),
        (["30 2 * * *", *BERLIN], "clocks change on Sun 2027-10-31: two fires at 02:30"),
        (["30 2 * * *", *BERLIN, "--dialect", "go-cron"], "no fire at 02:30, an additional fire at 03:30"),
        (["* * * * *", *BERLIN], "no fire at 02:00, 02:01, 02:02 and 57 more times"),
        (["TZ=Europe/Berlin 0 3 * * *"], "CronJobs refuse a time zone in the schedule"),
        (["*/60 * * * *"], "Velero 1.18.3 reads it differently from earlier releases: refused after the upgrade"),
        (
            ["0 0 29 2 1", "--dialect", "go-cron", "--at", "2029-01-01"],
            "it does not fire within five years of 2029-01-01T00:00:00Z, which controllers treat as never",
        ),
    ],
)
def test_check_warns_of_what_one_may_not_expect(cron: Cron, words: list[str], note: str) -> None:
    at = [] if "--at" in words else ["--at", "2027-01-01"]
    said = cron("check", *words, *at)
    assert said.code == 0
    assert said.out.startswith("valid: ")
    assert note in said.err


def test_check_of_what_never_fires_fails(cron: Cron) -> None:
    assert cron("check", "0 0 30 2 *").code == 1
    said = cron("check", "0 0 30 2 *", "-o", "json")
    assert said.code == 1
    assert said.json["neverFires"] == "none of its months has such a day"


@pytest.mark.parametrize(
    ("words", "out"),
    [
        (["0 3 * * *"], "same\n"),
        (
            ["45 20 2-31 * 0", "--at", "2027-01-01"],
            (
                "other days: day-of-month and day-of-week must both match; until then one of them is enough\n"
                "gone  Sat 2027-01-02 20:45 +00\n"
                "gone  Mon 2027-01-04 20:45 +00\n"
                "gone  Tue 2027-01-05 20:45 +00\n"
                "gone  and 1516 more within five years\n"
            ),
        ),
        (
            ["30 2 * * *", *BERLIN, "--at", "2027-01-01"],
            (
                "other fires when clocks change: a time that the clock in Europe/Berlin jumps over is not skipped\n"
                "new   Sun 2027-03-28 03:30 +02\n"
                "new   Sun 2028-03-26 03:30 +02\n"
                "new   Sun 2029-03-25 03:30 +02\n"
                "new   and 2 more within five years\n"
            ),
        ),
    ],
)
def test_diff_dialects_of_one_expression(cron: Cron, words: list[str], out: str) -> None:
    assert cron("diff-dialects", *words) == Said(0, out, "")


LIST = {
    "apiVersion": "v1",
    "kind": "List",
    "items": [
        {"kind": "Schedule", "metadata": {"namespace": "velero", "name": "daily"}, "spec": {"schedule": "0 3 * * *"}},
        {"kind": "Schedule", "metadata": {"namespace": "velero", "name": "odd"}, "spec": {"schedule": "0 3 */2 * 1"}},
        {"kind": "Schedule", "metadata": {"namespace": "velero", "name": "week"}, "spec": {"schedule": "0 3 * * 7"}},
        {"kind": "Schedule", "metadata": {"namespace": "velero", "name": "broken"}, "spec": {"schedule": "never"}},
        {
            "kind": "CronJob",
            "metadata": {"name": "gap"},
            "spec": {"schedule": "30 2 * * *", "timeZone": "Europe/Berlin"},
        },
        {"kind": "Pod", "metadata": {"name": "not-scheduled"}},
    ],
}
EXPECTED = [
    ("velero/daily", "same", False),
    ("velero/odd", "other days", True),
    ("velero/week", "accepted only after the upgrade", True),
    ("velero/broken", "refused before and after", False),
    ("default/gap", "other fires when clocks change", True),
]


def test_diff_dialects_reads_what_kubectl_prints(cron: Cron, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.StringIO(json.dumps(LIST)))
    said = cron("diff-dialects", "-f", "-", "-o", "json")
    assert [(each["name"], each["change"], each["changes"]) for each in said.json] == EXPECTED


def test_diff_dialects_reads_a_file_of_yaml_documents(cron: Cron, tmp_path: Path) -> None:
    file = tmp_path / "schedules.yaml"
    file.write_text("---\n".join(json.dumps(item, indent=1) + "\n" for item in LIST["items"]))
    said = cron("diff-dialects", "-f", str(file), "-o", "json")
    assert [(each["name"], each["change"], each["changes"]) for each in said.json] == EXPECTED
    table = cron("diff-dialects", "-f", str(file))
    assert table.err == "4 of 5 schedules change or are refused (within five years)\n"
    assert [line.split()[0] for line in table.out.splitlines()[1:]] == [
        name for name, how, _ in EXPECTED if how != "same"
    ]


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        ("a: [", "is neither YAML nor JSON"),
        (
            "kind: Schedule\nmetadata: {name: x}\nspec: {schedule: 5}",
            "Schedule default/x: spec.schedule is not a string",
        ),
        ("kind: CronJob\nspec: {schedule: '* * * * *', timeZone: Nowhere}", "default/?: time zone: 'Nowhere'"),
        ("kind: CronJob\nspec: {schedule: '* * * * *', timeZone: 5}", "default/?: spec.timeZone is not a string"),
        ("kind: CronJob\nmetadata: 7\nspec: {schedule: 5}", "CronJob default/?: spec.schedule is not a string"),
    ],
)
def test_a_file_with_something_wrong_in_it_is_named(cron: Cron, tmp_path: Path, content: str, problem: str) -> None:
    file = tmp_path / "x.yaml"
    file.write_text(content)
    said = cron("diff-dialects", "-f", str(file))
    assert (said.code, said.out) == (1, "")
    assert problem in said.err


def test_the_calendar_of_a_week_shows_the_hour_that_does_not_exist_as_nothing(cron: Cron) -> None:
    said = cron("calendar", "30 2 * * *", "*/15 9-10 * * 1-5", *BERLIN, "--from", "2027-03-26", "--weeks", "1")
    lines = said.out.splitlines()
    assert lines[0] == "A  30 2 * * *   6 fires"
    assert lines[4] == "            0     3     6     9     12    15    18    21"
    assert lines[5] == "Fri 26 Mar  ·····A············BBBB··························"
    assert lines[7] == "Sun 28 Mar  ····  ··········································"


def test_the_calendar_marks_a_half_hour_that_several_schedules_share(cron: Cron) -> None:
    said = cron("calendar", "0 3 * * *", "10 3 * * *", "--from", "2027-01-01", "--weeks", "1")
    assert said.out.splitlines()[-1] == "# several schedules in the same half hour"
    assert "Fri 01 Jan  ······#···" in said.out


def test_the_calendar_of_a_month_counts_the_fires_of_each_day(cron: Cron) -> None:
    said = cron("calendar", "0 3 * * *", "0 */8 1 * *", "--from", "2027-02-10", "--months", "1")
    assert said.out.splitlines()[4:7] == [
        "February 2027",
        "Mo    Tu    We    Th    Fr    Sa    Su",
        " 1:4   2:1   3:1   4:1   5:1   6:1   7:1",
    ]


@pytest.mark.parametrize("span", [("--weeks", "2"), ("--months", "2")])
def test_the_calendar_as_svg_is_well_formed_whatever_the_schedule_contains(cron: Cron, span: tuple[str, str]) -> None:
    said = cron("calendar", "0 3 * * *", "TZ=UTC * * * * *", *BERLIN, "--from", "2027-10-25", *span, "--svg", "-")
    picture = ET.fromstring(said.out)  # noqa: S314 - we drew it
    texts = ["".join(text.itertext()) for text in picture.iter("{http://www.w3.org/2000/svg}text")]
    assert any(text.startswith("TZ=UTC * * * * *") for text in texts)


def test_a_week_as_svg_has_one_mark_for_each_fire_and_a_yellow_hour_in_autumn(cron: Cron, tmp_path: Path) -> None:
    file = tmp_path / "x.svg"
    cron("calendar", "0 */6 * * *", *BERLIN, "--from", "2027-10-29", "--weeks", "1", "--svg", str(file))
    fills = [rect.get("fill") for rect in ET.parse(file).iter("{http://www.w3.org/2000/svg}rect")]  # noqa: S314 - ours
    assert fills.count("#0072b2") == 1 + 7 * 4  # the legend, and four fires a day
    assert fills.count("#fff2b3") == 1


def test_a_closed_pipe_is_no_error() -> None:
    command = f"{sys.executable} -m foresail cron between '* * * * *' 2026-01-01 2026-03-01 | head -n 1"
    done = subprocess.run(["bash", "-c", f"set -o pipefail; {command}"], capture_output=True, text=True, check=False)  # noqa: S607
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.timed
def test_an_answer_from_a_cold_start_costs_less_than_two_plain_programs(figure: Callable[[str], None]) -> None:
    script = Path(sys.executable).with_name("foresail")
    # As installed: with bytecode, which an install writes and a developer's environment may forbid.
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    command = [str(script), "cron", "next", "0 3 * * *"]
    own, plain = cost_beside_plain_python(
        lambda: subprocess.run(command, stdout=subprocess.DEVNULL, env=environment, check=True)
    )
    figure(
        f"`foresail cron next '0 3 * * *'` from a cold start: {own * 1000:.0f} ms of CPU, best of five; "
        f"{own / plain:.1f} times that of a program that only imports what speaks TLS"
    )
    assert own < 2 * plain
