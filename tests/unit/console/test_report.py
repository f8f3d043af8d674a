"""`foresail report`: figures of what coverage and the calendar found, as one file that runs and fetches nothing."""

import shlex
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from html.parser import HTMLParser
from pathlib import Path
from typing import Any, Literal

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from docs.external_assets import external_assets
from foresail.api.restore_check import CheckResult
from foresail.api.specs import BackupSpec
from foresail.cli.coverage.closing_commands import closing_command, nightly
from foresail.cli.cron.load import Timetable
from foresail.cli.main import main, parser
from foresail.console.report.figures import Figures, LastCheck, calendar_load, failed_runs, last_checks, upcoming_runs
from foresail.console.report.page import report_page
from foresail.plan import Key
from foresail.proof.claims import ClaimCoverage
from foresail.proof.coverage import NamespaceCoverage
from foresail.proof.reasons import Gap, Reason
from foresail.proof.view import BackupRow
from foresail.safety.verdict import Verdict
from foresail.scope.volumes import Method
from tests.unit.cli.canned import canned
from tests.unit.cli.test_coverage import FORBIDDEN, SELF_SERVICE_LEASE, answers, deployment, listed, named

NOW = datetime(2026, 11, 16, 12, 0, tzinfo=UTC)
REVIEWS = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
TENANTS = "/apis/oadp.openshift.io/v1alpha1/namespaces/shop"


class Outline(HTMLParser):
    """Collects the elements, their attributes' names and the text of a page."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.texts: list[str] = []
        self.feed(page)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(f"{tag} {sorted(name for name, _ in attrs)}")

    def handle_data(self, data: str) -> None:
        self.texts.append(data)


def timetable(name: str, *hours: int) -> Timetable:
    def fires(start: datetime, end: datetime) -> list[datetime]:
        days = [NOW.replace(hour=0) + timedelta(days=number) for number in range(9)]
        found = (day + timedelta(hours=hour) for day in days for hour in hours)
        return [each for each in found if start <= each < end]

    return Timetable(Key("velero", name), fires)


def backup(name: str, phase: str, age: timedelta, schedule: str = "", failure: str = "") -> BackupRow:
    return BackupRow(name, phase, BackupSpec(), NOW - age, 7, schedule, failure)


def figures(word: str = "plain") -> Figures:
    """Return figures with the same word in every field that somebody in the cluster can write to."""
    gaps = tuple(Gap(reason, f"message {word}", word, word) for reason in Reason)
    claims = (ClaimCoverage(word, Method.NONE, (), (Gap(Reason.VOLUME_LEFT_OUT, word, f"{word}/{word}"),)),)
    good = backup(word, "Completed", timedelta(hours=3), schedule=word)
    runs = [timetable(f"{word}-a", 3), timetable(f"{word}-b", 3, 15)]
    return Figures(
        namespace=word,
        velero_namespace=word,
        instant=NOW,
        namespaces=(NamespaceCoverage(word, (word,), good, NOW, claims, gaps), NamespaceCoverage("calm")),
        load=calendar_load(runs, NOW.date(), "UTC", NOW),
        upcoming=upcoming_runs(runs, NOW),
        failed=(backup(word, word, timedelta(hours=1), schedule=word, failure=word),),
        objective=timedelta(hours=26),
        checks=(check(word, "Fail", word), LastCheck(word, word, problem=word)),
    )


def check(name: str, result: Literal["Pass", "Fail"], word: str, seconds: int | None = 95) -> LastCheck:
    """Return a RestoreCheck that ended an hour ago."""
    last = CheckResult(word, word, word, NOW, NOW - timedelta(hours=1), result, word, word, 1, 7, 6)
    return LastCheck(name, word, msgspec.structs.replace(last, restore_seconds=seconds))


HOSTILE = st.one_of(
    st.text(min_size=1, max_size=30),
    st.sampled_from(
        (
            "<script>alert(1)</script>",
            "</style><script>x</script>",
            '"><img src=x onerror=alert(1)>',
            "' onmouseover='alert(1)",
            "</title><svg onload=alert(1)>",
            "<!-- ",
            "]]>",
            "&lt;b&gt;",
            "javascript:alert(1)",
            "\ud800\udfff",
            "a\u202eb\x00c\x1b[31m",
        )
    ),
).filter(lambda each: "/" not in each or "<" in each)


@pytest.mark.repeats
@settings(max_examples=150, deadline=None)
@given(HOSTILE)
def test_no_string_of_a_cluster_changes_the_elements_of_the_page(word: str) -> None:
    page = report_page(figures(word))
    assert Outline(page).tags == Outline(report_page(figures("wor/d" if "/" in word else "word"))).tags
    assert not any(each in page for each in "\x00\x1b\u202e\ud800")
    page.encode()


def test_the_page_fetches_nothing_and_runs_nothing() -> None:
    page = report_page(figures("<script src=//x.example></script>"))
    assert external_assets("report.html", page) == []
    assert "<script" not in page
    assert "url(" not in page
    assert "default-src &#x27;none&#x27;" in page


def test_the_tiles_answer_what_is_protected_and_what_is_the_worst() -> None:
    found = replace(
        figures(), namespaces=(NamespaceCoverage("calm", newest_good=backup("b", "Completed", timedelta(hours=5))),)
    )
    shown = " ".join(Outline(report_page(found)).texts)
    assert "1 of 1" in shown
    assert "5h calm" in shown
    assert "No gaps found." in shown
    assert "in 3h velero/plain-b" in shown
    worse = " ".join(Outline(report_page(figures())).texts)
    assert "no backup calm has no good backup" in worse
    assert "0 of 2" in worse, "calm has no gap, and no good backup either"


def test_the_last_checks_are_shown_with_their_duration_and_result() -> None:
    found = replace(figures(), checks=(check("a", "Fail", "ItemsRefused"), check("b", "Pass", "Complete", None)))
    shown = " ".join(Outline(report_page(found)).texts)
    assert "Restore checks 1 of 2 passed last time" in shown
    assert "95s" in shown.partition("ItemsRefused")[2]
    assert "6 of 7" in shown


@pytest.mark.parametrize(
    ("results", "says", "mood"),
    [
        ((None,), "Restore checks none yet 1 without a result", "tile"),
        (("Pass", None), "Restore checks 1 of 1 passed last time, 1 without a result", "tile"),
        (("Pass",), "Restore checks 1 of 1 passed last time", "tile good"),
        (("Fail", None), "Restore checks 0 of 1 passed last time, 1 without a result", "tile bad"),
    ],
)
def test_a_check_that_was_never_due_is_neither_red_nor_green(
    results: tuple[Literal["Pass", "Fail"] | None, ...], says: str, mood: str
) -> None:
    checks = tuple(
        check(f"c{number}", result, "Complete") if result else LastCheck(f"c{number}", problem="Waiting")
        for number, result in enumerate(results)
    )
    page = report_page(replace(figures(), checks=checks))
    assert says in " ".join(Outline(page).texts)
    assert f'<div class="{mood}"><dt>Restore checks</dt>' in page


def test_a_report_without_checks_says_so_and_one_that_may_not_list_them_does_not() -> None:
    nothing = "There is no RestoreCheck"
    assert nothing in report_page(replace(figures(), checks=()))
    assert nothing not in report_page(replace(figures(), checks=None))
    assert "#checks" not in report_page(replace(figures(), checks=None))


def test_failed_checks_come_first_and_one_that_cannot_be_decoded_hides_no_other() -> None:
    spec = {"backups": {"schedule": "nightly"}}
    ended = {"id": "1", "backup": "n-1", "backupUid": "u", "started": stamp(), "completed": stamp(), "message": "m"}
    good = named("a", "velero", spec=spec, status={"last": {**ended, "result": "Pass", "reason": "Complete"}})
    bad = named("b", "velero", spec=spec, status={"last": {**ended, "result": "Fail", "reason": "ItemsRefused"}})
    waits = {
        "type": "Ready",
        "status": "False",
        "reason": "NoBackup",
        "message": "No backup",
        "lastTransitionTime": stamp(),
    }
    fresh = named("c", "velero", spec=spec, status={"conditions": [waits]})
    broken = named("d", "velero", spec={"backups": 7})
    found = last_checks([msgspec.Raw(msgspec.json.encode(each)) for each in (good, fresh, broken, bad)])
    assert [(each.name, each.has_failed, each.problem.partition(":")[0]) for each in found] == [
        ("b", True, ""),
        ("a", False, ""),
        ("c", False, "No backup"),
        ("d", False, "cannot be decoded"),
    ]


def test_a_namespace_that_nobody_wants_a_backup_of_does_not_count() -> None:
    found = replace(figures(), namespaces=(NamespaceCoverage("out", is_excluded=True),))
    assert found.safety.verdict is Verdict.EXCLUDED
    assert (found.counted, found.safe, found.worst, found.without_backup) == ([], 0, None, [])
    assert "Excluded" in report_page(found)


def test_the_next_runs_of_all_schedules_are_in_order() -> None:
    found = upcoming_runs([timetable("night", 3), timetable("noon", 13)], NOW)
    assert [(each.schedule, each.at.hour) for each in found[:3]] == [
        ("velero/noon", 13),
        ("velero/night", 3),
        ("velero/noon", 13),
    ]


def test_only_runs_that_failed_in_the_last_days_are_shown_the_newest_first() -> None:
    found = failed_runs(
        [
            backup("old", "Failed", timedelta(days=8)),
            backup("partial", "PartiallyFailed", timedelta(days=2)),
            backup("good", "Completed", timedelta(hours=1)),
            BackupRow("refused", "FailedValidation", BackupSpec(), created=NOW - timedelta(hours=2)),
            BackupRow("new", "New", BackupSpec()),
        ],
        NOW,
    )
    assert [each.name for each in found] == ["refused", "partial"]


OF_VELERO = (
    Reason.NOBODY_RUNS,
    Reason.RUNNER_UNKNOWN,
    Reason.VELERO_NOT_READY,
    Reason.AGENT_NOT_READY,
    Reason.LOCATION_UNAVAILABLE,
)


@pytest.mark.parametrize("reason", list(Reason))
@pytest.mark.parametrize("schedule", ["", "nightly", "shop/nightly"])
@pytest.mark.parametrize("is_tenant", [True, False])
def test_the_command_of_each_gap_is_one_that_the_command_line_knows(
    reason: Reason, schedule: str, is_tenant: bool
) -> None:
    line = closing_command("shop", Gap(reason, "m", schedule, "nightly-1"), "velero", NOW, is_tenant=is_tenant)
    if line.startswith("# ask a cluster administrator"):
        assert is_tenant
        assert reason is Reason.LOCATION_UNAVAILABLE
        return
    words = shlex.split(line)
    assert words[0] in ("foresail", "kubectl", "velero")
    is_of_team = "/" in schedule or (is_tenant and not schedule)
    is_of_velero = not is_tenant and reason in OF_VELERO
    assert words[words.index("-n") + 1] == ("shop" if is_of_team and not is_of_velero else "velero")
    if words[0] == "foresail":
        assert parser().parse_args(words[1:]).run is not None


def test_no_new_schedule_is_offered_where_the_bucket_cannot_be_reached() -> None:
    """With --fix a team would have created one, and no gap would have closed."""
    gap = Gap(Reason.LOCATION_UNAVAILABLE, "m", backup="by-hand")
    line = closing_command("shop", gap, "velero", NOW, is_tenant=True)
    assert line == "# ask a cluster administrator why the storage location of backup by-hand is not available"


def test_a_velero_that_does_not_run_is_for_the_doctor_whoever_made_the_schedule() -> None:
    gap = Gap(Reason.VELERO_NOT_READY, "m", "shop/nightly")
    assert closing_command("shop", gap, "velero", NOW, is_tenant=False) == "foresail doctor -n velero"
    assert closing_command("shop", gap, "velero", NOW, is_tenant=True).startswith("foresail backup schedule explain")


def test_a_name_from_a_schedule_cannot_end_the_command() -> None:
    line = closing_command("a; rm -rf ~", Gap(Reason.NO_SCHEDULE, "m"), "velero", NOW, is_tenant=False)
    assert "'a; rm -rf ~'" in line


@pytest.fixture
def run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Callable[..., tuple[int, str, str]]:
    def command(found: dict[str, Any], *options: str) -> tuple[int, str, str]:
        file = tmp_path / "report.html"
        with canned(tmp_path, found) as server:
            code = main(["report", "--kubeconfig", str(server.kubeconfig), "--html", str(file), *options])
            assert {each for each in server.writes if not each.endswith("reviews")} == set()
        return code, file.read_text() if file.exists() else "", capsys.readouterr().err

    return command


def of_administrator() -> dict[str, Any]:
    velero = "/apis/velero.io/v1/namespaces/velero"
    found = answers()
    for each in found[f"{velero}/schedules"]["items"]:
        each["metadata"] |= {"uid": "u"}
    return {**found, REVIEWS: {"status": {"allowed": True}}}


def test_an_administrator_gets_every_namespace(run: Callable[..., tuple[int, str, str]]) -> None:
    code, page, err = run(of_administrator(), "--rpo", "26h")
    shown = " ".join(Outline(page).texts)
    assert code == 0, err
    assert "All namespaces" in shown
    assert all(each in shown for each in ("bank", "lab", "gone", "nightly-1", "VolumeLeftOut"))
    assert f"foresail schedule create bank-daily --schedule '{nightly('bank')}' --include-namespaces bank -n" in shown
    assert "velero/nightly" in shown
    assert "lab/mine" in shown
    assert err.endswith("All namespaces, 1 of 4 safe\n")
    assert "There is no RestoreCheck" in shown


DEPLOYMENTS = "/apis/apps/v1/namespaces/velero/deployments"
NOT_READY = {DEPLOYMENTS: listed({**deployment(), "status": {}})}
NO_LOCATION = {"/apis/velero.io/v1/namespaces/velero/backupstoragelocations": listed()}


@pytest.mark.parametrize(
    ("replaced", "namespace"),
    [
        (NOT_READY, ()),
        (NOT_READY, ("-n", "shop")),
        (NO_LOCATION, ()),
        (NO_LOCATION, ("-n", "shop")),
        ({DEPLOYMENTS: listed()}, ("-n", "shop")),
    ],
)
def test_no_next_run_is_promised_that_nothing_starts(
    run: Callable[..., tuple[int, str, str]], replaced: dict[str, Any], namespace: tuple[str, ...]
) -> None:
    assert _next_run(run(of_administrator(), *namespace)[1]) != "n/a"
    assert _next_run(run({**of_administrator(), **replaced}, *namespace)[1]) == "n/a"


def _next_run(page: str) -> str:
    """Return what the tile about the next run shows."""
    texts = Outline(page).texts
    return texts[texts.index("Next run") + 1]


@pytest.mark.parametrize(("namespace", "is_shown"), [((), True), (("-n", "bank"), False), (("-n", "gone"), False)])
def test_checks_of_other_schedules_are_not_in_the_report_of_a_namespace(
    run: Callable[..., tuple[int, str, str]], namespace: tuple[str, ...], *, is_shown: bool
) -> None:
    ended = {"id": "1", "backup": "n-1", "backupUid": "u", "started": stamp(), "completed": stamp(), "message": "m"}
    status = {"last": {**ended, "result": "Pass", "reason": "Complete", "restoreSeconds": 7}}
    check = named("proof", "velero", spec={"backups": {"schedule": "elsewhere"}}, status=status)
    found = {**of_administrator(), "/apis/foresail.dev/v1alpha1/namespaces/velero/restorechecks": listed(check)}
    _, page, err = run(found, *namespace)
    assert ("proof" in page) is is_shown
    assert ("1 of 1 restore checks passed" in err) is is_shown


def test_the_checks_of_a_tenant_are_in_the_report_of_their_namespace_only(
    run: Callable[..., tuple[int, str, str]],
) -> None:
    own = named("own", "lab", spec={"backups": {"nonAdminBackups": {}}})
    checks = "/apis/foresail.dev/v1alpha1/namespaces/lab/restorechecks"
    found = {**of_administrator(), checks: listed(own)}
    assert "lab/own" in Outline(run(found, "-n", "lab")[1]).texts
    assert "lab/own" not in Outline(run(found, "-n", "bank")[1]).texts
    assert "lab/own" not in Outline(run(found)[1]).texts, "a tenant writes nothing into the report of the cluster"


def test_one_namespace_has_only_its_own_schedules(run: Callable[..., tuple[int, str, str]]) -> None:
    shown = " ".join(Outline(run(of_administrator(), "-n", "lab")[1]).texts)
    assert "Namespace lab" in shown
    assert "bank" not in shown
    assert "velero/nightly" not in shown


def test_a_tenants_schedule_that_cannot_be_decoded_hides_no_other(run: Callable[..., tuple[int, str, str]]) -> None:
    found = of_administrator()
    path = "/apis/oadp.openshift.io/v1alpha1/nonadminschedules"
    for number, spec in enumerate(({"schedule": 7}, {"schedule": "@daily", "template": {"backupSpec": {"ttl": []}}})):
        found[path]["items"].append(named(f"bad{number}", "lab", spec=spec))
    code, page, err = run(found)
    assert code == 0
    assert "lab/mine" in page
    assert "NonAdminSchedule lab/bad0 cannot be decoded" in err


def test_a_tenant_gets_their_own_namespace(run: Callable[..., tuple[int, str, str]]) -> None:
    template = {"schedule": "0 3 * * *", "template": {"backupSpec": {}}}
    schedule = named("nightly", "shop", spec=template, status={"nextRun": "2099-01-01T03:00:00Z"})
    schedule["metadata"]["uid"] = "u1"
    made = {"name": "v", "status": {"phase": "PartiallyFailed", "errors": 2, "startTimestamp": stamp()}}
    failed = named("nightly-1", "shop", spec={"backupSpec": {}}, status={"phase": "Created", "veleroBackup": made})
    failed["metadata"]["annotations"] = {"foresail.dev/schedule-uid": "u1"}
    found = {
        REVIEWS: {"status": {"allowed": False}},
        SELF_SERVICE_LEASE: FORBIDDEN,
        f"{TENANTS}/nonadminschedules": listed(schedule),
        f"{TENANTS}/nonadminbackups": listed(failed),
    }
    code, page, err = run(found, "-n", "shop")
    shown = " ".join(Outline(page).texts)
    assert code == 0, err
    assert "Schedules of administrators may cover it as well" in shown
    assert "RunsNotComplete" in shown
    assert "foresail backup explain nightly-1 -n shop" in shown
    assert "2 errors" in shown


@pytest.mark.parametrize("count", [0, 1])
def test_a_tenant_gets_the_checks_of_their_own_namespace(run: Callable[..., tuple[int, str, str]], count: int) -> None:
    def review(_: str, sent: dict[str, Any]) -> dict[str, Any]:
        asked = sent["spec"]["resourceAttributes"]
        return {"status": {"allowed": (asked["resource"], asked["namespace"]) == ("restorechecks", "shop")}}

    refused = {"type": "Ready", "status": "False", "reason": "NotAllowed", "message": "not enabled here"}
    refused["lastTransitionTime"] = stamp()
    own = named("own", "shop", spec={"backups": {"nonAdminBackups": {}}}, status={"conditions": [refused]})
    found = {
        REVIEWS: review,
        f"{TENANTS}/nonadminschedules": listed(),
        f"{TENANTS}/nonadminbackups": listed(),
        "/apis/foresail.dev/v1alpha1/namespaces/shop/restorechecks": listed(*[own] * count),
    }
    code, page, err = run(found, "-n", "shop")
    texts = Outline(page).texts
    assert code == 0, err
    assert ({"shop/own", "not enabled here"} <= set(texts)) is (count == 1)
    assert ("There is no RestoreCheck in this namespace." in texts) is (count == 0)


def test_a_tenant_cannot_have_all_namespaces(run: Callable[..., tuple[int, str, str]]) -> None:
    code, page, err = run({REVIEWS: {"status": {"allowed": False}}}, "-A")
    assert (code, page) == (1, "")
    assert "you may not list namespaces" in err


def test_wrong_options_are_wrong_usage(run: Callable[..., tuple[int, str, str]]) -> None:
    assert run({}, "--zone", "Nowhere/Else")[0] == 2
    assert run({}, "--rpo", "soon")[0] == 2


def test_a_file_that_cannot_be_written_is_an_error(run: Callable[..., tuple[int, str, str]]) -> None:
    code, _, err = run(of_administrator(), "--html", "/nonexistent/report.html")
    assert code == 1
    assert "cannot write /nonexistent/report.html" in err


def stamp() -> str:
    from foresail.kube.clock import now  # noqa: PLC0415 - the command reads the real clock

    return (now() - timedelta(hours=2)).strftime("%Y-%m-%dT%H:%M:%SZ")
