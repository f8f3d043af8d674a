"""What `foresail cron` answers where there is no fire, no exact shift or no valid schedule: text and exit code."""

import os
import re
import subprocess
import sys

import pytest

from foresail.kube.clock import now
from tests.unit.cli.test_cron import BERLIN, Cron, Said


@pytest.fixture
def cron(capsys: pytest.CaptureFixture[str]) -> Cron:
    return Cron(capsys)


def test_check_of_an_invalid_schedule_as_json_says_so_and_fails(cron: Cron) -> None:
    said = cron("check", "0 3 * * 8", "-o", "json")
    assert (said.code, said.err) == (1, "")
    assert said.json == {
        "schedule": "0 3 * * 8",
        "dialect": "robfig",
        "timeZone": "UTC",
        "valid": False,
        "problem": "day-of-week: '8' is above 6",
        "allowed": "0-6 or SUN-SAT, * or ?, ranges a-b, steps /n, lists a,b",
        "column": 9,
        "neverFires": None,
        "notes": [],
    }
    assert cron("check", "0 3 * * 1", "-o", "json").json["valid"] is True


def test_shift_of_an_interval_is_an_error(cron: Cron) -> None:
    said = cron("shift", "@every 1h", "10m")
    assert (said.code, said.out) == (1, "")
    assert said.err.startswith("error: '@every 1h' cannot be shifted: it counts from")
    assert "\nhint: " in said.err
    as_json = cron("shift", "@every 1h", "10m", "-o", "json")
    assert (as_json.code, as_json.json["exact"], as_json.json["schedules"]) == (1, False, [])


def test_an_inexact_shift_prints_the_nearest_and_fails(cron: Cron) -> None:
    said = cron("shift", "0 3 * * *", "30m", *BERLIN, "--at", "2026-11-15")
    assert said.code == 1
    assert said.out.startswith("SCHEDULE ")
    assert cron("shift", "0 3 * * *", "30m", *BERLIN, "--at", "2026-11-15", "-o", "json").code == 1


@pytest.mark.parametrize("form", ["table", "json"])
def test_between_fails_as_next_does_if_a_schedule_never_fires(cron: Cron, form: str) -> None:
    never = cron("between", "0 0 31 2 *", "2026-01-01", "2026-02-01", "-o", form)
    assert never == cron("next", "0 0 31 2 *", "-o", form)
    assert (never.code, never.out) == (1, "")


def test_between_says_where_there_is_no_fire(cron: Cron) -> None:
    said = cron("between", "0 3 1 * *", "2026-01-02", "2026-01-30")
    assert said == Said(0, "", "no fire in this period; the next one is Sun 2026-02-01 03:00 +00\n")
    assert cron("between", "0 3 1 * *", "2026-01-02", "2026-01-30", "-o", "json").json["fires"] == []


@pytest.mark.parametrize(
    ("text", "noted"),
    [
        ("*/5 0-23 1-31 1-12 0-6", ""),
        ("0 3 1,15 * 1", "both day fields are limited"),
        ("0 3 1-31 * 1", "one day field allows every day, and one match is enough: it fires every day"),
        ("0 3 1 * 0-6", "one day field allows every day, and one match is enough: it fires every day"),
        ("0 3 * * 1", ""),
    ],
)
def test_explain_notes_day_fields_only_where_they_surprise(cron: Cron, text: str, noted: str) -> None:
    notes = [note for note in cron("explain", text, "-o", "json").json["notes"] if "day field" in note]
    assert len(notes) == (1 if noted else 0)
    assert not noted or notes[0].startswith(noted)


def test_a_count_that_is_no_number_is_named(cron: Cron, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        cron("next", "0 3 * * *", "--count", "x")
    assert ended.value.code == 2
    assert capsys.readouterr().err.startswith("error: --count: 'x' is not a whole number of at least 1\n")


@pytest.mark.parametrize("words", [["calendar", "0 3 * * *"], ["explain", "0 3 * * *"], ["calendar", "Ä"]])
def test_a_stream_for_ascii_gets_ascii(words: list[str]) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "foresail", "cron", *words],
        env={**os.environ, "PYTHONIOENCODING": "ascii"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert "Traceback" not in done.stderr
    assert (done.stdout + done.stderr).isascii()
    if words == ["calendar", "0 3 * * *"]:
        assert "......A....." in done.stdout


def test_bold_means_today_in_a_picture(cron: Cron) -> None:
    today = cron("calendar", "0 3 * * *", "--svg", "-").out
    bold = re.findall(r'font-weight="600"[^>]*>([^<]*)<', today)
    assert bold == [f"{now():%a %d %b}"]
    assert 'font-weight="600"' not in cron("calendar", "0 3 * * *", "--from", "2020-01-01", "--svg", "-").out
