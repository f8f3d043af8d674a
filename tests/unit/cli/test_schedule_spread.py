"""Other minutes for Schedules that start together."""

import json
import shlex
from collections import Counter
from datetime import timedelta

import pytest
import yaml

from foresail.cli.schedule.calendar import fires_of
from foresail.cli.schedule.spread import Candidate, minute_of, patch_command, print_moves, spread, with_minute
from tests.unit.cli.made_up import NOW, schedule_wire, seen


def candidates(texts: dict[str, str]) -> list[Candidate]:
    found = []
    for name, text in texts.items():
        evaluated = seen(schedule_wire(text, name))
        fires = frozenset(fires_of(evaluated, NOW, NOW + timedelta(days=7), NOW))
        found.append(Candidate(evaluated.schedule.key, text, fires))
    return found


def after(texts: dict[str, str], most: int = 1) -> dict[str, str]:
    moved = {each.key.name: each.after for each in spread(candidates(texts), most)}
    return {name: moved.get(name, text) for name, text in texts.items()}


def most_together(texts: dict[str, str]) -> int:
    return max(Counter(fire for each in candidates(texts) for fire in each.fires).values())


def test_schedules_that_start_together_get_minutes_of_their_own_in_the_same_hour() -> None:
    texts = {f"app-{number}": "0 3 * * *" for number in range(12)}
    assert most_together(texts) == 12
    found = after(texts)
    assert most_together(found) == 1
    assert all(text.split()[1:] == ["3", "*", "*", "*"] for text in found.values())
    assert sorted(int(text.split()[0]) for text in found.values()) == list(range(12))


def test_whatever_fires_most_often_stays_and_others_move_as_little_as_possible() -> None:
    texts = {"hourly": "30 * * * *", "nightly": "30 3 * * *"}
    assert after(texts) == {"hourly": "30 * * * *", "nightly": "31 3 * * *"}


def test_a_limit_above_one_moves_only_what_is_too_many() -> None:
    found = after({f"app-{number}": "0 3 * * *" for number in range(5)}, most=2)
    assert most_together(found) == 2
    assert sum(text != "0 3 * * *" for text in found.values()) == 3


def test_what_has_no_single_minute_stays() -> None:
    texts = {"a": "*/5 * * * *", "b": "*/5 * * * *", "c": "@every 5m"}
    assert after(texts) == texts
    several = ("7 3 * * *", "@daily", "*/5 * * * *", "@every 1h", "0,30 * * * *")
    assert [minute_of(text) for text in several] == [7, 0, None, None, None]


def test_a_zone_and_a_descriptor_are_kept_in_meaning() -> None:
    assert with_minute("CRON_TZ=Europe/Berlin 0 3 * * *", 7) == "CRON_TZ=Europe/Berlin 7 3 * * *"
    assert with_minute("@weekly", 7) == "7 0 * * 0"


def test_nothing_is_proposed_where_nothing_piles_up() -> None:
    assert spread(candidates({"a": "0 3 * * *", "b": "1 3 * * *"}), 1) == []
    assert spread([], 1) == []


def test_more_schedules_than_minutes_share_them_evenly() -> None:
    found = after({f"app-{number:03}": "0 3 * * *" for number in range(130)})
    assert most_together(found) == 3


def test_moves_are_printed_as_a_table_as_objects_and_as_commands(capsys: pytest.CaptureFixture[str]) -> None:
    moves = spread(candidates({"a": "0 3 * * *", "b": "0 3 * * *"}), 1)
    print_moves(moves, "table")
    header, row = capsys.readouterr().out.splitlines()
    assert header.split() == ["SCHEDULE", "NOW", "PROPOSED", "TOGETHER", "THEN"]
    assert row.split() == ["velero/a", *["0", "3", "*", "*", "*"], *["1", "3", "*", "*", "*"], "2", "1"]
    print_moves(moves, "yaml")
    made = yaml.safe_load(capsys.readouterr().out)
    assert (made["kind"], made["metadata"]["name"], made["spec"]) == ("Schedule", "a", {"schedule": "1 3 * * *"})
    *words, patch = shlex.split(patch_command(moves[0]))
    assert words == ["kubectl", "patch", "schedules.velero.io", "a", "-n", "velero", "--type=merge", "-p"]
    assert json.loads(patch) == {"spec": {"schedule": "1 3 * * *"}}
