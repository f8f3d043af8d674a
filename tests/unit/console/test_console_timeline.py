"""The time line: where points are drawn, what they lead to, and that nothing is complete without evidence."""

import json
import re
from dataclasses import replace
from datetime import datetime, timedelta

import pytest

from foresail.api.specs import BackupSpec
from foresail.backups import Quality
from foresail.cli.cron.load import Timetable
from foresail.cli.tenant.tenant_request import decode_request
from foresail.console.layout import Site
from foresail.console.pages import velero_section
from foresail.console.points import points_of
from foresail.console.report.figures import MOST_RUNS, Run, planned_runs, runs_of
from foresail.console.report.page import coverage_cells
from foresail.console.report.standing import evidence, row_of
from foresail.console.report.worth import Worth, worth_of
from foresail.console.timeline import SPANS, Point, What, marks_of, time_line, window_of
from foresail.origin import Origin
from foresail.plan import Key
from foresail.proof.claims import ClaimCoverage
from foresail.proof.coverage import NamespaceCoverage
from foresail.proof.view import BackupRow
from foresail.scope.volumes import Method
from foresail.selfservice.families import BACKUPS, RESTORES
from tests.unit.cli.test_tenant import condition, wire
from tests.unit.console.test_console import XSS, copy_of
from tests.unit.console.test_console_restore import decoded
from tests.unit.console.test_report import NOW, Outline, figures

SITE = Site("mount", "secret", "shop", is_administrator=False)
DAY = timedelta(days=1)


def at(days: float) -> datetime:
    return NOW + days * DAY


def run(
    name: str = "r", quality: Quality = Quality.GOOD, schedule: str = "nightly", *, lacks_data: bool = False
) -> Run:
    return Run(name, at(-1), quality, lacks_data, "2 errors" if quality is Quality.PARTIAL else "", schedule)


def claim(*schedules: str) -> ClaimCoverage:
    return ClaimCoverage("data", Method.SNAPSHOT if schedules else Method.NONE, schedules)


SAVED = NamespaceCoverage("shop", ("nightly",), claims=(claim("nightly"),))
LEFT_OUT = NamespaceCoverage("shop", ("nightly",), claims=(claim(),))
EMPTY = NamespaceCoverage("shop", ("nightly",))
UNKNOWN = replace(SAVED, unknown=("how Velero saves volumes",))


@pytest.mark.parametrize(
    ("found", "coverage", "worth"),
    [
        (run(), SAVED, Worth.COMPLETE),
        (run(), EMPTY, Worth.COMPLETE),
        (run(schedule=""), EMPTY, Worth.COMPLETE),
        (run(schedule=""), SAVED, Worth.UNJUDGED),
        (run(), UNKNOWN, Worth.UNJUDGED),
        (run(), None, Worth.UNJUDGED),
        (run(), LEFT_OUT, Worth.LACKING),
        (run(lacks_data=True), SAVED, Worth.LACKING),
        (run(quality=Quality.SHRUNK), SAVED, Worth.LACKING),
        (run(quality=Quality.EMPTY), SAVED, Worth.LACKING),
        (run(quality=Quality.PARTIAL), SAVED, Worth.LACKING),
        (run(quality=Quality.FAILED), SAVED, Worth.FAILED),
    ],
)
def test_a_backup_is_complete_only_with_evidence(found: Run, coverage: NamespaceCoverage | None, worth: Worth) -> None:
    assert worth_of(found, coverage)[0] is worth


def test_a_good_backup_names_the_data_that_it_lacks() -> None:
    lacking = replace(claim("nightly"), lacking=(frozenset({"r"}),))
    found = replace(SAVED, claims=(lacking,))
    assert worth_of(run(), found) == (Worth.LACKING, "without the data of data")
    assert worth_of(run(lacks_data=True), found) == (Worth.LACKING, "without the data of data")
    assert worth_of(run("older"), found) == (Worth.COMPLETE, "")
    many = tuple(replace(lacking, name=f"data-{number}") for number in range(9))
    assert worth_of(run(), replace(SAVED, claims=many))[1].endswith(" more")


def test_a_backup_from_before_a_claim_says_so_and_is_as_complete_as_it_was() -> None:
    young = replace(claim("nightly"), created=at(-0.5))
    found = replace(SAVED, claims=(young,))
    assert worth_of(run(), found) == (Worth.COMPLETE, "made before claim data existed")
    newest = BackupRow("r", "Completed", BackupSpec(), at(-1), 10, "nightly")
    seen = replace(figures(), namespaces=(replace(found, newest_good=newest),), checks=())
    assert "(r, made before claim data existed)." in evidence(seen)[0]
    shown = replace(seen, velero=(newest,), runs={"nightly": (run(),)})
    assert "made before claim data existed" in str(velero_section(SITE, "shop", shown))
    (point,) = [point for point in points_of(shown, [], []) if point.name == "r"]
    assert (point.what, point.note) == (What.COMPLETE, "made before claim data existed")
    assert row_of((seen.namespaces[0], seen.safety), shown).newest.endswith(", made before claim data existed")
    assert "made before claim data existed" in str(coverage_cells(seen.namespaces[0], seen)[2])


def test_a_backup_that_counts_for_nothing_is_not_complete() -> None:
    recreated = replace(SAVED, created=at(-0.5))
    assert worth_of(run(), recreated) == (Worth.UNJUDGED, "made before the namespace was created")
    for origin, note in (
        (Origin.ELSEWHERE, "another cluster made it"),
        (Origin.UNKNOWN, "nothing shows that this cluster made it"),
    ):
        row = BackupRow("r", "Completed", BackupSpec(), at(-1), 10, "nightly", origin=origin)
        (found,) = runs_of([row], {}, MOST_RUNS)["nightly"]
        assert worth_of(found, SAVED) == (Worth.UNJUDGED, note)


def test_a_run_that_velero_refused_is_among_the_last_ones() -> None:
    refused = BackupRow("b-9", "FailedValidation", BackupSpec(), None, None, "nightly", "no bucket", created=at(9))
    assert [(run.name, run.started, run.quality) for run in runs_of([refused], {}, MOST_RUNS)["nightly"]] == [
        ("b-9", at(9), Quality.FAILED)
    ]


def test_a_completed_backup_without_the_data_of_a_volume_says_so_in_the_list() -> None:
    good = BackupRow("r", "Completed", BackupSpec(), at(-1), 10, "nightly")
    seen = replace(figures(), namespaces=(LEFT_OUT,), velero=(good,), runs={"nightly": (run(),)})
    section = str(velero_section(SITE, "shop", seen))
    assert 'warn">Completed' in section
    assert "its schedule does not save the data of data" in section
    whole = str(velero_section(SITE, "shop", replace(seen, namespaces=(SAVED,))))
    assert "warn" not in whole


def test_runs_are_judged_by_their_schedules_and_the_last_are_kept() -> None:
    def row(number: int, phase: str = "Completed", items: int = 10) -> BackupRow:
        return BackupRow(f"b-{number:02}", phase, BackupSpec(), at(number - 30), items, "nightly")

    rows = [row(number) for number in range(20)]
    found = runs_of([*rows, row(20, "Failed"), row(21, items=1)], {"b-19": at(3)}, MOST_RUNS)["nightly"]
    assert [one.name for one in found] == [f"b-{number:02}" for number in range(8, 22)]
    assert [one.quality for one in found[-3:]] == [Quality.GOOD, Quality.FAILED, Quality.SHRUNK]
    assert found[-3].goes == at(3)


def test_planned_runs_are_in_order_and_bounded() -> None:
    def every(hours: int, name: str) -> Timetable:
        step = timedelta(hours=hours)
        return Timetable(Key("velero", name), lambda start, _: (start + step * number for number in range(1, 999)))

    found = planned_runs([every(5, "a"), every(7, "b")], NOW)
    assert len(found) == 60
    assert [one.at for one in found] == sorted(one.at for one in found)


def test_points_that_would_touch_are_one_with_the_worst_of_them() -> None:
    window = window_of("week", "", NOW)
    points = [Point(at(-1 + n / 1000), what, f"p{n}") for n, what in enumerate((What.COMPLETE, What.FAILED))]
    (mark,) = marks_of(points, window)
    assert (mark.what, len(mark.points)) == (What.FAILED, 2)
    apart = [Point(at(-1), What.COMPLETE, "a"), Point(at(-3), What.COMPLETE, "b")]
    assert [one.points[0].name for one in marks_of(apart, window)] == ["b", "a"]
    around = [Point(at(-0.01), What.COMPLETE, "was"), Point(at(0.01), What.PLANNED, "will be")]
    assert len(marks_of(around, window)) == 2, "what was is never one with what will be"
    assert marks_of([Point(at(-40), What.COMPLETE, "old")], window) == []


@pytest.mark.parametrize("span", [*SPANS, "", "<script>"])
@pytest.mark.parametrize("days", ["", "0", "-400", "99999", "1e9", "-", "x"])
def test_every_length_of_time_can_be_drawn(span: str, days: str) -> None:
    points = [Point(at(number / 3), What.COMPLETE, f"p{number}", ("ns", "shop")) for number in range(-900, 30)]
    page = time_line(SITE, ("ns", "shop"), points, window_of(span, days, NOW))
    assert len(page) < 60_000
    assert "<script" not in page


def test_every_point_is_reached_by_keyboard_and_described() -> None:
    backups = [decoded(copy_of("copy", day=2))]
    window = window_of("week", str((datetime(2026, 11, 3, tzinfo=NOW.tzinfo) - NOW).days), NOW)
    page = time_line(SITE, ("",), points_of(figures(), backups, []), window)
    assert 'href="/mount/ns/shop/backup/copy" aria-label="copy: ended, not judged' in page
    texts = Outline(page).texts
    assert {"The same as a table", "copy", "years", "earlier"} <= set(texts)


def test_what_was_refused_is_not_called_failed() -> None:
    refused = [condition("Accepted", "False", "PolicyViolation", "the policy does not allow it")]
    backup = wire(status={"phase": "BackingOff", "conditions": refused})
    restore = wire(RESTORES, status={"phase": "BackingOff", "conditions": refused})
    of_backup = points_of(figures(), [decode_request(BACKUPS, json.dumps(backup).encode())], [])
    of_restore = points_of(figures(), [], [decode_request(RESTORES, json.dumps(restore).encode())])
    told = [(point.what, point.note) for point in (*of_backup, *of_restore) if point.name == "daily"]
    assert told == [
        (What.REFUSED, "the policy does not allow it"),
        (What.RESTORE_REFUSED, "the policy does not allow it"),
    ]


def test_what_retention_deletes_is_on_the_time_line() -> None:
    body = copy_of("copy")
    body["status"]["veleroBackup"]["status"]["expiration"] = (NOW + 9 * DAY).isoformat()
    body["metadata"]["annotations"] = {
        "foresail.dev/delete-after": (NOW + 2 * DAY).isoformat(), "foresail.dev/delete-reason": "keepLast: 7",
    }  # fmt: skip
    (goes,) = [point for point in points_of(figures(), [decoded(body)], []) if point.what is What.DELETED]
    assert (goes.at, goes.note) == (NOW + 2 * DAY, "keepLast: 7")
    body["metadata"]["annotations"]["foresail.dev/pinned"] = "true"
    assert not [point for point in points_of(figures(), [decoded(body)], []) if point.what is What.DELETED]


def test_markup_in_names_is_text() -> None:
    point = Point(at(-1), What.FAILED, XSS, ("ns", XSS), XSS)
    page = time_line(SITE, ("",), [point], window_of("week", "", NOW))
    assert "<script" not in page
    assert "<img" not in page


def test_no_name_of_a_day_is_cut_off_at_an_end_of_the_time_line() -> None:
    for minutes in range(0, 24 * 60, 90):
        window = window_of("week", "", NOW + timedelta(minutes=minutes))
        drawn = time_line(Site("mount", "secret", "shop", is_administrator=True), ("ns", "shop"), [], window)
        places = [float(x) for x in re.findall(r'<text x="([\d.]+)" y="13"', drawn)]
        assert len(places) >= 8
        assert all(26 <= x <= 1000 - 26 for x in places)
