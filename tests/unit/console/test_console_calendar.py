"""The calendar of the console: what a SchedulePolicy that is not applied would change."""

import html
import re
from datetime import timedelta
from pathlib import Path
from typing import Any

import msgspec
import pytest

from foresail.api import velero
from foresail.cli.errors import CommandError
from foresail.cli.policy.preview import MOST_SCHEDULES, MOST_SLOTS, both_fates, preview
from foresail.cli.schedule.simulation import Span, simulated
from foresail.cli.schedule.snapshot import EvaluatedSchedule, NamespaceSnapshot, evaluate
from foresail.cron import Dialect
from foresail.schedules.observe import VeleroServer, schedule_row
from foresail.schedules.settings import Settings
from tests.unit.cli.made_up import schedule_wire
from tests.unit.cli.test_schedule_under_policy import ANSWERS, POLICY
from tests.unit.console.test_console import XSS, Browser, browse, everything, of_tenant
from tests.unit.console.test_report import NOW, REVIEWS, Outline
from tests.unit.schedules.rows import AVAILABLE

PREVIEW = "/calendar/preview"
ALIASES = "a: &a [x]\nb: [*a, *a]\n"


def answers() -> dict[str, Any]:
    return {**everything(), **ANSWERS}


def test_an_administrator_sees_the_week_without_and_with_a_policy(tmp_path: Path) -> None:
    async def walk(browser: Browser) -> None:
        await browser.sign_in()
        page = (await browser.get("/calendar")).text
        assert "What a SchedulePolicy would change" in page
        assert "kind: SchedulePolicy" in page
        answer = await browser.post(PREVIEW, {**browser.own, "manifest": POLICY})
        texts = Outline(answer.text).texts
        assert "These policies would apply to 1 of 2 Schedules." in texts
        assert "Each Backup is taken to need no time, so waiting for concurrency is not shown." in texts
        row = texts[texts.index("velero/web") :]
        assert (row[1], row[2], row[3][-9:], row[4][-9:]) == ("-", "nights", "12:00:00Z", "22:00:00Z")
        without, with_them = answer.text.split('id="with"')
        assert "In the same minute" in without  # both at noon
        assert "In the same minute" not in with_them
        assert browser.changes == []

    browse(tmp_path, walk, answers())


def test_the_example_of_the_form_is_a_policy(tmp_path: Path) -> None:
    async def walk(browser: Browser) -> None:
        await browser.sign_in()
        page = (await browser.get("/calendar")).text
        example = page.partition('spellcheck="false">')[2].partition("</textarea>")[0]
        answer = await browser.post(PREVIEW, {**browser.own, "manifest": example})
        assert "would apply to 2 of 2 Schedules" in answer.text

    browse(tmp_path, walk, answers())


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "the form has no SchedulePolicy"),
        (POLICY.replace("2h", "2x"), "SchedulePolicy nights in the form"),
        ("a: [", "the form is neither YAML nor JSON"),
        (ALIASES, "YAML aliases"),
        ("at: 2026-99-99", "the form has a value that cannot be read"),
    ],
)
def test_a_text_that_is_no_policy_is_refused_with_its_reason(tmp_path: Path, text: str, problem: str) -> None:
    async def walk(browser: Browser) -> None:
        await browser.sign_in()
        answer = await browser.post(PREVIEW, {**browser.own, "manifest": text})
        assert (answer.status, problem in answer.text) == (400, True), answer.text

    browse(tmp_path, walk, answers())


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (f"priority: {'1' * 9000}", "a value that cannot be read"),
        (f'{{"priority": {"1" * 9000}}}', "a value that cannot be read"),
        ("a: !!int ''", "a value that cannot be read"),
        ("a: !!bool x", "a value that cannot be read"),
        ("a: !!timestamp x", "a value that cannot be read"),
        ("{items: [" * 1000 + "]}" * 1000, "the form has no SchedulePolicy"),
        ('{"items": [' * 1000 + "]}" * 1000, "the form has no SchedulePolicy"),
        (POLICY.replace("2h", "745h"), "from 1m to 744h"),
    ],
)
def test_values_that_no_reader_takes_are_refused_too(text: str, problem: str) -> None:
    with pytest.raises(CommandError, match=problem):
        preview(text, [], "UTC", NOW)


def test_very_many_schedules_are_not_simulated() -> None:
    with pytest.raises(CommandError, match="are not simulated here"):
        preview(POLICY, [None] * (MOST_SCHEDULES + 1), "UTC", NOW)  # type: ignore[list-item]


def evaluated(*expressions: str) -> list[EvaluatedSchedule]:
    """Return Schedules that the policy selects."""
    known = NamespaceSnapshot(VeleroServer(Dialect.ROBFIG), {}, (AVAILABLE,), "", Settings())
    labels = {"labels": {"tier": "web"}}
    contents = [schedule_wire(text, f"s{number}", metadata=labels) for number, text in enumerate(expressions)]
    return [
        evaluate(schedule_row(msgspec.json.decode(msgspec.json.encode(each), type=velero.Schedule)), each, known, NOW)
        for each in contents
    ]


@pytest.mark.parametrize(("number", "days"), [(1, 7), (5, 4)])
def test_only_the_days_whose_slots_can_be_simulated_are_shown(number: int, days: int) -> None:
    """A Schedule at every third minute has 480 slots a day, and as many with the policy."""
    found = preview(POLICY, evaluated(*["*/3 * * * *"] * number), "UTC", NOW, timedelta(hours=1))
    assert found.days == days
    assert ("of 7 days are simulated" in found.assumptions) is (days < 7)
    assert 0 < sum(found.without.runs.values()) <= MOST_SLOTS / 2
    assert len(found.reach.changes) == number


def test_more_slots_in_a_day_than_are_simulated_are_refused_before_the_simulation() -> None:
    with pytest.raises(CommandError, match="not even one day is simulated") as refused:
        preview(POLICY, evaluated(*["* * * * *"] * 8), "UTC", NOW)
    assert refused.value.hint == "run foresail schedule simulate --policy FILE"


def test_simulation_ends_when_its_time_is_over() -> None:
    with pytest.raises(CommandError, match="takes longer than 0s"):
        preview(POLICY, evaluated("0 * * * *"), "UTC", NOW, timedelta())


def test_time_is_checked_at_every_step_of_one_schedule() -> None:
    (each,) = evaluated("0 * * * *")
    steps = list[None]()
    simulated(each.view, NOW, Span(NOW, NOW + timedelta(days=1)), timedelta(), lambda: steps.append(None))
    assert len(steps) >= 24


def test_schedule_that_the_policies_do_not_change_is_simulated_once() -> None:
    (each,) = evaluated("0 * * * *")
    span = Span(NOW, NOW + timedelta(days=1))
    without, with_them = both_fates((each, each), NOW, span)
    assert without is with_them


def test_a_tenant_is_offered_no_preview_and_reads_nothing_by_it(tmp_path: Path) -> None:
    async def walk(browser: Browser) -> None:
        await browser.sign_in()
        assert "What a SchedulePolicy would change" not in (await browser.get("/calendar")).text
        asked = len(browser.server.asked)
        answer = await browser.post(PREVIEW, {**browser.own, "manifest": POLICY})
        assert (answer.status, "you may not read" in answer.text) == (403, True)
        assert browser.server.asked[asked:] == []

    browse(tmp_path, walk, {**of_tenant(), REVIEWS: {"status": {"allowed": False}}})


def test_markup_in_a_policy_changes_no_element(tmp_path: Path) -> None:
    async def walk(browser: Browser) -> None:
        await browser.sign_in()
        found = [await browser.post(PREVIEW, {**browser.own, "manifest": f"{POLICY}# {word}"}) for word in ("a", XSS)]
        assert Outline(found[0].text).tags == Outline(found[1].text).tags

    browse(tmp_path, walk, answers())


def test_a_policy_can_be_previewed_again_and_again(tmp_path: Path) -> None:
    async def walk(browser: Browser) -> None:
        await browser.sign_in()
        text = POLICY.replace("\n", "\r\n")  # as browsers send the lines of a text area
        for _ in range(3):
            answer = await browser.post(PREVIEW, {**browser.own, "manifest": text})
            assert answer.status == 200
            (area,) = re.findall(r"<textarea[^>]*>(.*?)</textarea>", answer.text, re.DOTALL)
            assert html.unescape(area) == POLICY
            text = html.unescape(area).replace("\n", "\r\n")

    browse(tmp_path, walk, answers())


def test_a_policy_that_is_refused_stays_in_the_form(tmp_path: Path) -> None:
    async def walk(browser: Browser) -> None:
        await browser.sign_in()
        answer = await browser.post(PREVIEW, {**browser.own, "manifest": "kind: Nothing\r\n"})
        assert answer.status == 400
        assert "kind: Nothing\n</textarea>" in answer.text

    browse(tmp_path, walk, answers())
