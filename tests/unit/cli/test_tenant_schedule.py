"""`foresail backup schedule`: what is sent, what is shown, and which rule blocks."""

import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import yaml

from foresail.cli.main import main
from foresail.cli.tenant.schedule.calendar import timetable
from foresail.cli.tenant.schedule.explain import as_data, explained
from foresail.cli.tenant.schedule.get import described, schedule_table
from foresail.cli.tenant.schedule.snapshot import TenantSchedule, decode
from foresail.cli.tenant.stalled import Stalled
from tests.unit.cli.canned import canned

Capture = pytest.CaptureFixture[str]
NOW = datetime(2026, 11, 15, 12, 0, 30, tzinfo=UTC)
LIST = "/apis/oadp.openshift.io/v1alpha1/namespaces/shop/nonadminschedules"
ONE = f"{LIST}/nightly"


def condition(kind: str, status: str, reason: str, message: str = "because") -> dict[str, Any]:
    said = {"type": kind, "status": status, "reason": reason, "message": message}
    return {**said, "lastTransitionTime": "2026-11-15T11:00:31Z", "observedGeneration": 1}


ACCEPTED = condition("Accepted", "True", "ScheduleAccepted", "schedule accepted")
READY = condition("Ready", "True", "Scheduled", "The next run starts at status.nextRun")


def wire(*conditions: dict[str, Any], **given: Any) -> dict[str, Any]:  # noqa: ANN401 - JSON
    run = {"name": "nightly-20261115030000", "phase": "Completed", "startTimestamp": "2026-11-15T03:00:01Z"}
    status = {
        "phase": "Created",
        "conditions": list(conditions),
        "nextRun": "2026-11-16T03:10:00Z",
        "lastBackup": "2026-11-15T03:10:00Z",
        "recentBackups": [run],
    }
    return {
        "apiVersion": "oadp.openshift.io/v1alpha1",
        "kind": "NonAdminSchedule",
        "metadata": {
            "name": "nightly",
            "namespace": "shop",
            "uid": "7b7c",
            "generation": 1,
            "creationTimestamp": "2026-11-01T11:00:30Z",
        },
        "spec": {"schedule": "0 3 * * *", "template": {"backupSpec": {"ttl": "24h"}}, **given.get("spec", {})},
        "status": given.get("status", status),
    }


def seen(*conditions: dict[str, Any], **given: Any) -> TenantSchedule:  # noqa: ANN401 - JSON
    return decode(json.dumps(wire(*conditions, **given)).encode())  # type: ignore[arg-type]


def test_the_table_shows_the_last_and_the_next_run() -> None:
    text = schedule_table([seen(ACCEPTED, READY)], NOW, None, wide=False, with_namespace=True)
    header, row = text.splitlines()
    assert header.split() == ["NAMESPACE", "NAME", "SCHEDULE", "LAST", "RUN", "NEXT", "RUN", "WAITING"]
    assert row.split() == ["shop", "nightly", "0", "3", "*", "*", "*", "Completed", "8h", "ago", "in", "15h"]


def test_the_wide_table_says_why_nothing_runs() -> None:
    busy = condition("Ready", "False", "Busy", "NonAdminBackup nightly-1 is InProgress")
    text = schedule_table([seen(ACCEPTED, busy)], NOW, None, wide=True, with_namespace=False)
    assert "Busy: NonAdminBackup nightly-1 is InProgress" in text


def test_explain_marks_the_first_rule_that_blocks_and_names_the_next_step() -> None:
    refused = condition("Accepted", "False", "PolicyViolation", "too often")
    lines = explained(seen(refused), NOW).splitlines()
    assert lines[0] == "NonAdminSchedule shop/nightly: blocked: policy violation"
    assert [line for line in lines if line.startswith("→")] == [
        "→ blocks       the policy of the namespace allows it  too often"
    ]
    assert lines[-1].startswith("Next: The policy of namespace shop does not allow this backup schedule")
    assert "kubectl edit nonadminschedule nightly" in lines[-1]


def test_explain_says_that_velero_starts_nothing() -> None:
    down = replace(seen(ACCEPTED, READY), stalled=Stalled(velero="0 of 1 pods of velero are ready"))
    lines = explained(down, NOW).splitlines()
    assert lines[0] == "NonAdminSchedule shop/nightly: blocked: Velero starts nothing now"
    assert [line.split() for line in lines if line.startswith("→")] == [
        ["→", "blocks", "Velero", "starts", "backups", "0", "of", "1", "pods", "of", "velero", "are", "ready"]
    ]
    assert lines[-1].startswith("Next: Velero starts nothing now. Ask a cluster administrator to run foresail doctor")


@pytest.mark.parametrize(
    ("schedule", "instant", "because"),
    [
        (replace(seen(ACCEPTED, READY), stalled=Stalled("no replica runs")), NOW, "no replica runs"),
        (seen(ACCEPTED, READY), NOW + timedelta(days=1), "its run of 2026-11-16T03:10:00Z did not start, so"),
    ],
    ids=["no Lease is renewed", "its run is overdue"],
)
def test_explain_says_that_no_operator_runs_it(schedule: TenantSchedule, instant: datetime, because: str) -> None:
    lines = explained(schedule, instant).splitlines()
    assert lines[0] == "NonAdminSchedule shop/nightly: blocked: no operator runs it"
    assert next(" ".join(line.split()) for line in lines if line.startswith("→")).startswith(
        f"→ blocks an operator runs it {because}"
    )
    assert lines[-1].startswith("Next: No operator runs for namespace shop now. Ask a cluster administrator to run")


@pytest.mark.parametrize(
    ("stalled", "word"),
    [
        (Stalled("no replica runs"), "NobodyRuns"),
        (Stalled(velero="0 of 1 pods are ready"), "VeleroNotReady"),
        (Stalled(locations={"": "BackupStorageLocation default is Unavailable"}), "LocationUnavailable"),
        (Stalled(locations={"": "", "other": "it is Unavailable"}), ""),
    ],
)
def test_what_stops_every_schedule_is_in_the_list_and_in_explain(stalled: Stalled, word: str) -> None:
    schedule = replace(seen(ACCEPTED, READY), stalled=stalled)
    row = schedule_table([schedule], NOW, None, wide=False, with_namespace=False).splitlines()[1]
    assert row.endswith(word or "in 15h")
    assert ("n/a" in row) is bool(word)
    lines = explained(schedule, NOW).splitlines()
    assert ("blocked: " in lines[0]) is bool(word)
    assert any(line.startswith("→") for line in lines) is bool(word)


@pytest.mark.parametrize("has_backup", [True, False])
def test_where_the_operator_has_no_lease_a_backup_tells_where_velero_is(
    tmp_path: Path, capsys: Capture, *, has_backup: bool
) -> None:
    made = {"metadata": {"name": "a", "namespace": "shop"}, "status": {"veleroBackup": {"namespace": "velero"}}}
    backups = {"metadata": {}, "items": [made] if has_backup else []}
    answers = {ONE: wire(ACCEPTED, READY), LIST.replace("schedules", "backups"): backups}
    with canned(tmp_path, answers) as server:
        main(["backup", "schedule", "explain", "nightly", "-n", "shop", f"--kubeconfig={server.kubeconfig}"])
    printed = capsys.readouterr().out
    assert ("no replica of Foresail's operator runs" in printed) is has_backup
    assert ("not checked  Velero starts backups" in printed) is True


def test_explain_of_a_schedule_that_runs_names_its_next_run() -> None:
    text = explained(seen(ACCEPTED, READY), NOW)
    assert "the next run is at 2026-11-16 03:10 UTC" in text
    assert "→" not in text
    found = as_data(seen(ACCEPTED, READY), NOW)
    assert found["nextRun"] == "2026-11-16T03:10:00Z"
    assert {each["answer"] for each in found["steps"]} == {"ok"}


def test_an_expression_that_cannot_be_read_blocks_before_anything_else() -> None:
    text = explained(seen(spec={"schedule": "61 * * * *"}, status={}), NOW)
    assert "→ blocks       its expression is valid and fires" in text


def test_describe_has_the_template_the_runs_and_the_conditions() -> None:
    text = described(seen(ACCEPTED, READY), NOW)
    for part in ("Schedule:", "ttl: 24h", "nightly-20261115030000", "ScheduleAccepted", "Next: The next run starts"):
        assert part in text


def test_the_calendar_delays_runs_as_the_operator_reports() -> None:
    found = timetable(seen(ACCEPTED, READY))
    assert found is not None
    day = datetime(2026, 11, 17, tzinfo=UTC)
    assert [f"{each:%d %H:%M}" for each in found.fires(day, day.replace(day=19))] == ["17 03:10", "18 03:10"]
    assert timetable(seen(spec={"paused": True})) is None


def test_create_prints_the_manifest_without_a_cluster(capsys: Capture) -> None:
    words = ["backup", "schedule", "create", "nightly", "--schedule", "0 3 * * *", "--ttl", "72h", "-n", "shop"]
    assert main([*words, "--skip-immediately", "-o", "yaml", "--kubeconfig", "/nowhere"]) == 0
    assert yaml.safe_load(capsys.readouterr().out) == {
        "apiVersion": "oadp.openshift.io/v1alpha1",
        "kind": "NonAdminSchedule",
        "metadata": {"name": "nightly", "namespace": "shop"},
        "spec": {
            "schedule": "0 3 * * *",
            "template": {"backupSpec": {"ttl": "72h0m0s"}},
            "skipImmediately": True,
        },
    }


@pytest.mark.parametrize(
    ("name", "text", "problem"),
    [
        ("nightly", "61 * * * *", "--schedule: "),
        ("nightly", "0 0 30 2 *", "never fires"),
        ("Nightly", "@daily", "the name is not valid"),
    ],
)
def test_create_refuses_what_would_never_run(name: str, text: str, problem: str, capsys: Capture) -> None:
    assert main(["backup", "schedule", "create", name, "--schedule", text, "-n", "shop"]) != 0
    assert problem in capsys.readouterr().err


def test_create_sends_the_schedule_and_says_when_the_operator_runs_it_first(tmp_path: Path, capsys: Capture) -> None:
    answers = {LIST: wire(), ONE: wire(ACCEPTED, READY), "/apis": {"groups": []}, "/api": {"versions": []}}
    with canned(tmp_path, answers) as server:
        words = ["backup", "schedule", "create", "nightly", "--schedule", "@daily", "-n", "shop"]
        assert main([*words, "--kubeconfig", str(server.kubeconfig)]) == 0
    assert "NonAdminSchedule shop/nightly created. It runs first at 2026-11-16 03:10 UTC" in capsys.readouterr().err
    assert server.bodies[f"POST {LIST}"]["spec"]["schedule"] == "@daily"


def test_create_of_a_schedule_that_the_policy_refuses_is_an_error(tmp_path: Path, capsys: Capture) -> None:
    refused = wire(condition("Accepted", "False", "PolicyViolation", "too often"))
    with canned(tmp_path, {LIST: wire(), ONE: refused, "/apis": {"groups": []}, "/api": {"versions": []}}) as server:
        words = ["backup", "schedule", "create", "nightly", "--schedule", "*/5 * * * *", "-n", "shop"]
        assert main([*words, "--kubeconfig", str(server.kubeconfig)]) == 1
    error, advice = capsys.readouterr().err.splitlines()[-2:]
    assert error == "error: NonAdminSchedule shop/nightly was created, but does not run: too often"
    assert "kubectl edit nonadminschedule nightly -n shop" in advice


def test_pause_and_unpause_change_the_spec_and_nothing_else(tmp_path: Path, capsys: Capture) -> None:
    with canned(tmp_path, {ONE: wire(ACCEPTED, READY)}) as server:
        where = ["-n", "shop", "--kubeconfig", str(server.kubeconfig)]
        assert main(["backup", "schedule", "pause", "nightly", *where]) == 0
        assert server.bodies[f"PATCH {ONE}"]["spec"] == {"paused": True}
        assert "NonAdminSchedule shop/nightly paused" in capsys.readouterr().err
        assert main(["backup", "schedule", "unpause", "nightly", *where]) == 0
        assert "is already unpaused, skip" in capsys.readouterr().err
        assert main(["backup", "schedule", "pause", "nightly", "--skip-immediately", "--dry-run", *where]) == 0
        assert "skipImmediately: true" in capsys.readouterr().out


def test_delete_asks_and_says_that_backups_stay(tmp_path: Path, capsys: Capture) -> None:
    with canned(tmp_path, {ONE: wire()}) as server:
        where = ["-n", "shop", "--kubeconfig", str(server.kubeconfig)]
        assert main(["backup", "schedule", "delete", *where]) == 1
        assert "specify names, -l SELECTOR or --all" in capsys.readouterr().err
        assert main(["backup", "schedule", "delete", "nightly", "--dry-run", *where]) == 0
        assert main(["backup", "schedule", "delete", "nightly", "--confirm", *where]) == 0
        assert server.writes == [f"DELETE {ONE}"]
        assert "its backups stay until they expire" in capsys.readouterr().err


def test_get_describe_and_explain_read_the_namespace(tmp_path: Path, capsys: Capture) -> None:
    items = {"metadata": {"resourceVersion": "7"}, "items": [wire(ACCEPTED, READY)]}
    with canned(tmp_path, {LIST: items}) as server:
        where = ["-n", "shop", "--kubeconfig", str(server.kubeconfig)]
        for words in (["get"], ["get", "-o", "wide"], ["describe"], ["explain"], ["calendar", "--from", "2026-11-16"]):
            assert main(["backup", "schedule", *words, *where]) == 0
            assert "nightly" in (said := capsys.readouterr()).out or "1 schedule:" in said.out
        assert main(["backup", "schedule", "get", "-o", "name", *where]) == 0
        assert capsys.readouterr().out == "nonadminschedule.oadp.openshift.io/nightly\n"
        assert main(["backup", "schedule", "get", "x", "-l", "a=b", *where]) == 1
        assert "names cannot be combined" in capsys.readouterr().err


def test_an_empty_namespace_is_said_to_be_empty(tmp_path: Path, capsys: Capture) -> None:
    with canned(tmp_path, {LIST: {"metadata": {"resourceVersion": "7"}, "items": []}}) as server:
        assert main(["backup", "schedule", "get", "-n", "shop", "--kubeconfig", str(server.kubeconfig)]) == 0
    assert "No schedules found in namespace shop" in capsys.readouterr().err
