"""What `foresail schedule get`, `describe` and `explain` show of Schedules, in situations of every kind."""

import argparse
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from foresail.api.schedule_policy import Concurrency, Objective, Retry, SchedulePolicySpec, ScheduleSelector
from foresail.cli.access.operators import Lease, LeaseSpec, leader
from foresail.cli.access.refused_writes import RefusedWrite
from foresail.cli.main import main, parser
from foresail.cli.output.objects import as_text
from foresail.cli.output.table import aligned
from foresail.cli.output.words import moment, runs
from foresail.cli.schedule.create import first_run
from foresail.cli.schedule.explain import as_data, chain_of, explained
from foresail.cli.schedule.get import described, schedule_table, veleros_lines
from foresail.cli.schedule.snapshot import EvaluatedSchedule
from foresail.cron import Dialect
from foresail.plan import Key
from foresail.safety.velero_pods import VeleroState
from foresail.schedules.observe import LocationRow, VeleroServer, location_of
from foresail.slots.policy_timing import PolicyRow
from tests.unit.cli.canned import canned
from tests.unit.cli.made_up import LOCATION, NOW, UID, at, backup, schedule_wire, seen

Capture = pytest.CaptureFixture[str]
BROKEN = LocationRow(Key("velero", "default"), is_default=True, is_read_only=False, phase="Unavailable", message="403")

BY_VELERO = VeleroServer(Dialect.GOCRON, "v1.18.3", has_schedule_controller=True, is_recognised=True)


def parsed(*words: str) -> argparse.Namespace:
    return parser().parse_args(["schedule", *words])


def cells(evaluated: EvaluatedSchedule, *words: str) -> dict[str, str]:
    lines = schedule_table([evaluated], NOW, parsed("get", *words), None).splitlines()
    header = [word.strip() for word in lines[0].split("   ") if word.strip()]
    starts = [len(before) for before in (lines[0].split(f"   {word}")[0] for word in header)]
    starts = [0, *(start + 3 for start in starts[1:])]
    ends = [*starts[1:], None]
    return {word: lines[1][start:end].strip() for word, start, end in zip(header, starts, ends, strict=True)}


def test_the_table_has_when_it_ran_and_runs_and_why_it_waits() -> None:
    assert cells(seen(schedule_wire(), [backup("daily-1")])) == {
        "NAME": "daily",
        "SCHEDULE": "0 3 * * *",
        "LAST RUN": "Completed 9h ago",
        "NEXT RUN": "in 14h",
        "WAITING": "",
    }
    held = cells(seen(schedule_wire("0 * * * *"), [backup("daily-1", "Queued")]))
    assert (held["LAST RUN"], held["NEXT RUN"], held["WAITING"]) == ("9h ago", "due 30s ago", "Busy")
    assert cells(seen(schedule_wire(spec={"paused": True})))["WAITING"] == "Paused"
    assert cells(seen(schedule_wire("nonsense", status={"lastBackup": None})))["LAST RUN"] == "n/a"


def test_a_run_that_velero_does_not_finish_because_it_is_down_is_not_called_busy() -> None:
    held = seen(schedule_wire("0 * * * *"), [backup("daily-1", "New")])
    assert held.known is not None
    down = replace(held, known=replace(held.known, velero=VeleroState("0 of 1 pods of velero are ready")))
    assert cells(down)["WAITING"] == "VeleroNotReady"
    assert cells(down, "-o", "wide")["WAITING"] == "VeleroNotReady: 0 of 1 pods of velero are ready"
    explanation = explained(down, NOW)
    assert "blocked: Velero does not run" in explanation
    arrow = next(line for line in explanation.splitlines() if "0 of 1 pods of velero are ready" in line)
    assert arrow.startswith("→ blocks")


@pytest.mark.parametrize(
    ("surroundings", "told"),
    [
        ({"operator": ""}, "blocked: nothing runs it"),
        ({"locations": [BROKEN]}, "blocked: location unavailable"),
        ({"operator": "", "server": BY_VELERO}, "the next run is at "),
        ({}, "the next run is at "),
    ],
    ids=["nothing runs it", "its bucket is gone", "Velero runs it", "the operator runs it"],
)
def test_explain_promises_a_run_only_if_something_starts_it(surroundings: dict[str, Any], told: str) -> None:
    evaluated = seen(schedule_wire(), **surroundings)
    lines = explained(evaluated, NOW).splitlines()
    assert lines[0].startswith(f"Schedule velero/daily: {told}")
    is_blocked = told.startswith("blocked")
    assert any("blocks" in line or "would block" in line for line in lines[1:]) is is_blocked
    assert bool(cells(evaluated)["WAITING"]) is is_blocked, "what schedule get says"


def test_the_table_fits_80_columns_and_never_loses_why_one_waits() -> None:
    name = "nightly-backup-of-the-whole-shop-and-its-databases"
    evaluated = seen(
        schedule_wire("*/30 8-18 1,15 * 1-5", name=name), [backup("b", "PartiallyFailed")], locations=[BROKEN]
    )
    header, row = schedule_table([evaluated], NOW, parsed("get"), 80).splitlines()
    assert max(len(header), len(row)) <= 80
    assert row.endswith("   LocationUnavailable")
    assert row.startswith("nightly-")
    assert name in schedule_table([evaluated], NOW, parsed("get"), None)


def test_what_would_block_the_next_run_is_shown_before_it_is_due() -> None:
    evaluated = seen(schedule_wire(), locations=[BROKEN])
    assert evaluated.verdict.due is None
    shown = cells(evaluated)
    assert (shown["NEXT RUN"], shown["WAITING"]) == ("in 14h", "LocationUnavailable")
    (line,) = [line for line in described(evaluated, NOW).splitlines() if line.startswith("Waiting:")]
    assert "not yet; the next run would be blocked by LocationUnavailable: BackupStorageLocation velero/default" in line
    assert as_data(evaluated, NOW)["nextRunBlockedBy"]["reason"] == "LocationUnavailable"
    assert as_data(seen(schedule_wire()), NOW)["nextRunBlockedBy"] is None
    with_both = VeleroServer(None, has_schedule_controller=True)
    assert cells(seen(schedule_wire(), server=with_both))["WAITING"] == "VeleroSchedules"
    assert cells(seen(schedule_wire(), server=with_both, operator=""))["WAITING"] == ""  # Velero fires them
    assert cells(seen(schedule_wire(), [backup("b", "InProgress")]))["WAITING"] == ""  # it ends before the next run


def test_schedules_are_shown_in_the_order_in_which_they_are_named(tmp_path: Path, capsys: Capture) -> None:
    path, meta = "/apis/velero.io/v1/namespaces/velero", {"resourceVersion": "7"}
    paused = {name: schedule_wire(name=name, spec={"paused": True}) for name in "cab"}
    answers: dict[str, Any] = {f"{path}/schedules/{name}": wire for name, wire in paused.items()}
    answers[f"{path}/schedules"] = {"metadata": meta, "items": list(paused.values())}
    empty = (f"{path}/backups", f"{path}/backupstoragelocations", "/apis/apps/v1/namespaces/velero/deployments")
    answers |= {each: {"metadata": meta, "items": []} for each in empty}
    with canned(tmp_path, answers) as server:
        for names, order in ((("c", "a", "b"), "cab"), ((), "abc")):
            assert main(["schedule", "explain", *names, "--kubeconfig", str(server.kubeconfig)]) == 0
            lines = capsys.readouterr().out.splitlines()
            assert "".join(line[16] for line in lines if line.startswith("Schedule velero/")) == order


def test_the_wide_table_has_veleros_columns_first_and_then_ours() -> None:
    shown = cells(seen(schedule_wire(), [backup("daily-1")]), "-o", "wide")
    assert {name: shown[name] for name in list(shown)[:10]} == {
        "NAME": "daily",
        "STATUS": "Enabled",
        "CREATED": "2026-11-14 10:00:00 +0000 UTC",
        "SCHEDULE": "0 3 * * *",
        "BACKUP TTL": "0s",
        "LAST BACKUP": "9h ago",
        "SELECTOR": "<none>",
        "PAUSED": "false",
        "NEXT RUN": "2026-11-16 03:00 UTC (in 14h)",
        "LAST RESULT": "Completed",
    }


def test_a_blocked_run_shows_since_when_it_is_due_and_why() -> None:
    running = backup("daily-1", "Queued")
    shown = cells(seen(schedule_wire("0 * * * *"), [running]), "-o", "wide")
    assert shown["NEXT RUN"] == "2026-11-15 12:00 UTC (30s ago)"
    assert shown["LAST RESULT"] == "n/a"
    assert shown["WAITING"] == "Busy: Backup velero/daily-1 is Queued; the next run starts when it finishes."


def test_the_wide_table_tells_where_to_and_what_was_skipped() -> None:
    wire = schedule_wire(spec={"skipImmediately": False}, status={"lastSkipped": "2026-11-15T11:00:30Z"})
    shown = cells(seen(wire), "-o", "wide")
    assert (shown["LOCATION"], shown["SKIP IMMEDIATELY"], shown["LAST SKIPPED"]) == ("default", "false", "60m ago")


def policy(**spec: Any) -> tuple[PolicyRow, ...]:  # noqa: ANN401 - any field
    return (PolicyRow(Key("", "gold"), SchedulePolicySpec(ScheduleSelector(), **spec)),)


def test_the_wide_table_shows_which_policy_applies() -> None:
    assert cells(seen(schedule_wire(), policies=policy()), "-o", "wide")["POLICY"] == "gold"
    assert cells(seen(schedule_wire()), "-o", "wide")["POLICY"] == "<none>"


def test_the_wide_table_and_explain_show_attempts_and_when_the_next_one_starts() -> None:
    name = f"daily-20261115030000-{UID[:8]}"
    failed = backup(name, "Failed", completed=NOW)
    found = seen(schedule_wire(), [failed], policies=policy(retry=Retry(2)))
    assert cells(found, "-o", "wide")["ATTEMPTS"].startswith("1 of 3, next 2026-11-15 12:05")
    assert "1 of 3 attempts made" in explained(found, NOW)
    assert as_data(found, NOW)["attempts"]["made"] == 1
    assert cells(seen(schedule_wire(), [failed]), "-o", "wide")["ATTEMPTS"] == "n/a"
    over = seen(schedule_wire(), [failed, backup(f"{name}-r1")], policies=policy(retry=Retry(2)))
    assert cells(over, "-o", "wide")["ATTEMPTS"] == "2 of 3"


def test_the_wide_table_shows_the_age_of_the_newest_good_backup_beside_the_objective() -> None:
    good = backup("daily-1")
    met = seen(schedule_wire(), [good], policies=policy(objective=Objective("25h")))
    assert cells(met, "-o", "wide")["OBJECTIVE"] == "9h of 25h"
    missed = seen(schedule_wire(), [good], policies=policy(objective=Objective("8h")))
    assert cells(missed, "-o", "wide")["OBJECTIVE"] == "9h of 8h, exceeded"
    assert cells(seen(schedule_wire(), [good]), "-o", "wide")["OBJECTIVE"] == "n/a"


def test_explain_shows_whether_the_group_has_room() -> None:
    limit = policy(concurrency=Concurrency(1))
    room = explained(seen(schedule_wire(), policies=limit), NOW)
    assert "its group has room for a Backup" in room
    assert "0 of 1 in SchedulePolicy gold" in room


def test_namespaces_and_labels_are_columns_if_they_are_asked_for() -> None:
    wire = schedule_wire(metadata={"labels": {"example.com/team": "web", "a": "b"}})
    shown = cells(seen(wire), "-A", "-L", "example.com/team", "--show-labels")
    assert (shown["NAMESPACE"], shown["TEAM"], shown["LABELS"]) == ("velero", "web", "a=b,example.com/team=web")


@pytest.mark.parametrize(
    ("wire", "surroundings", "reason", "rule"),
    [
        (schedule_wire(spec={"paused": True}), {}, "Paused", "it is not paused"),
        (schedule_wire("0 0 30 2 *"), {}, "NeverFires", "its expression is valid and fires"),
        (schedule_wire("nonsense"), {}, "InvalidSchedule", "its expression is valid and fires"),
        (schedule_wire(name="x" * 64), {}, "NameTooLong", "its name fits in a label"),
        (
            schedule_wire("0 3 1 * 1"),
            {"server": VeleroServer(None)},
            "DialectUnknown",
            "Velero's cron dialect is known",
        ),
        (
            schedule_wire("0 * * * *"),
            {"server": VeleroServer(None, has_schedule_controller=True), "locations": [BROKEN]},
            "VeleroSchedules",
            "Velero's own schedule controller is off",
        ),
        (schedule_wire("0 * * * *"), {"backups": [backup("b", "New")]}, "Busy", "no Backup of it runs"),
        (
            schedule_wire("0 * * * *"),
            {"locations": [BROKEN]},
            "LocationUnavailable",
            "its storage location is available",
        ),
        (schedule_wire(), {}, None, "a run is due"),
        (schedule_wire("0 * * * *"), {"operator": ""}, None, "Foresail's operator runs"),
    ],
)
def test_explain_marks_the_rule_that_blocks_a_schedule(
    wire: dict[str, Any], surroundings: dict[str, Any], reason: str | None, rule: str
) -> None:
    evaluated = seen(wire, **surroundings)
    marked = [line for line in explained(evaluated, NOW).splitlines() if line.startswith("→")]
    assert len(marked) == 1
    assert rule in marked[0]
    assert as_data(evaluated, NOW)["reason"] == reason
    assert [step.rule for step in chain_of(evaluated, NOW) if step.answer in ("blocks", "waits")] == [rule]


def test_a_second_skip_without_a_pause_is_shown_as_ignored() -> None:
    observed = '{"schedule":"0 3 * * *","consumed":true,"ignored":true}'
    wire = schedule_wire(spec={"skipImmediately": True}, metadata={"annotations": {"foresail.dev/observed": observed}})
    evaluated = seen(wire)
    said = "skipImmediately was applied since the last pause, so it is ignored until the next unpause."
    assert any(line.startswith("Skip Immediately:") and said in line for line in described(evaluated, NOW).splitlines())
    assert any("nothing is skipped" in line and said in line for line in explained(evaluated, NOW).splitlines())
    assert "ignored" not in explained(seen(schedule_wire(spec={"skipImmediately": False})), NOW)


def test_explain_names_a_write_that_the_api_server_refused() -> None:
    words = "The API server refused to create Backup velero/daily-1: spec.ttl: Invalid value."
    evaluated = replace(seen(schedule_wire("0 * * * *")), refused=RefusedWrite(at("2026-11-15T12:00:01"), words))
    first, *rest = explained(evaluated, NOW).splitlines()
    assert first == "Schedule velero/daily: blocked: write refused"
    (marked,) = [line for line in rest if line.startswith("→")]
    assert "the API server accepts its writes" in marked
    assert words in marked
    data = as_data(evaluated, NOW)
    assert (data["reason"], data["message"]) == ("WriteRefused", words)


def test_where_nothing_tells_the_dialect_what_the_operator_noted_counts() -> None:
    noted = {"annotations": {"foresail.dev/observed": '{"schedule":"0 3 1 * 1","dialect":"go-cron"}'}}
    evaluated = seen(schedule_wire("0 3 1 * 1", metadata=noted), server=VeleroServer(None))
    assert evaluated.blocked_by is None
    assert evaluated.verdict.upcoming == at("2027-02-01T03:00:00")  # a Monday that is the first of its month
    assert "Dialect:           go-cron (recorded by the operator)" in described(evaluated, NOW)


def test_explain_says_what_would_hold_a_run_that_is_not_due() -> None:
    steps = {step.rule: step.answer for step in chain_of(seen(schedule_wire(), locations=[BROKEN]), NOW)}
    assert steps["a run is due"] == "waits"
    assert steps["its storage location is available"] == "would block"


def test_describe_goes_on_where_velero_stops() -> None:
    text = described(seen(schedule_wire("0 * * * *"), [backup("daily-1"), backup("by-hand", slot=None)]), NOW)
    veleros, ours = text.split("\nNext Run:")
    assert veleros.startswith("Name:         daily\nNamespace:    velero\nLabels:       <none>\n")
    assert veleros.rstrip().endswith("Last Backup:  2026-11-15 03:00:00 +0000 UTC")
    assert "Missed:            8 runs since 2026-11-15 03:00:00 +0000 UTC; one late run at most follows" in ours
    assert "Dialect:           go-cron (Velero v1.18.3)" in ours
    assert [line.split()[0] for line in ours.split("Last Backups:\n")[1].splitlines()] == ["NAME", "daily-1", "by-hand"]
    assert "<by hand>" in ours


def test_describe_says_who_manages_a_schedule_and_why_it_was_refused() -> None:
    wire = schedule_wire(
        "nonsense",
        metadata={"labels": {"app.kubernetes.io/managed-by": "Helm"}},
        status={"phase": "FailedValidation", "validationErrors": ["first", "second"]},
    )
    text = described(seen(wire), NOW)
    assert "Validation errors:  first\n                    second\n" in text
    assert "Managed By:        Helm" in text
    assert "Waiting:           InvalidSchedule: invalid schedule" in text


def test_hooks_and_filters_are_laid_out_as_velero_lays_them_out() -> None:
    hook = {"name": "db", "pre": [{"exec": {"command": ["sync", "now"], "onError": "Fail", "timeout": "30s"}}]}
    template = {
        "includedResources": ["pods"],
        "hooks": {"resources": [hook]},
        "orderedResources": {"pods": "n/b", "configmaps": "n/a"},
        "resourcePolicy": {"kind": "configmap", "name": "p"},
        "uploaderConfig": {"parallelFilesUpload": 4},
        "defaultVolumesToFsBackup": True,
    }
    text = aligned(list(veleros_lines(seen(schedule_wire(spec={"template": template})))))
    assert "Resource policies:\n  Type:  configmap\n  Name:  p\n" in text
    assert "Uploader config:\n  Parallel files upload:  4\n" in text
    assert "  Resources:\n    Included:        pods\n    Excluded:        <none>\n    Cluster-scoped:  auto\n" in text
    assert "        Pre Exec Hook:\n          Container:  \n          Command:    sync now\n" in text
    assert "  OrderedResources:\n    configmaps: n/a\n    pods: n/b\n" in text
    assert "  File System Backup (Default):  true\n" in text


def test_columns_are_as_wide_as_their_widest_cell_among_lines_that_follow_each_other() -> None:
    assert aligned(["a:\t1", "long:\t2", "", "b:\t3", "no column"]) == "a:     1\nlong:  2\n\nb:  3\nno column"


def test_one_object_is_printed_alone_and_several_as_a_list_without_managed_fields() -> None:
    one = schedule_wire(metadata={"managedFields": [{}]})
    assert "managedFields" not in as_text([one], "yaml")
    assert as_text([one], "json").startswith('{\n  "apiVersion": "velero.io/v1"')
    assert '"kind": "List"' in as_text([one, one], "json")
    assert as_text([one, one], "name") == "schedule.velero.io/daily\nschedule.velero.io/daily"
    assert "&id" not in as_text([one, one], "yaml")


def test_an_instant_is_shown_with_its_distance() -> None:
    assert moment(at("12:00:35"), NOW) == "2026-11-15 12:00:35 UTC (in 5s)"
    assert moment(at("10:00:00"), NOW) == "2026-11-15 10:00 UTC (120m ago)"


def test_runs_are_counted_up_to_a_hundred() -> None:
    assert [runs(each) for each in (1, 99, 100)] == ["one run", "99 runs", "100 runs or more"]


def test_the_operator_runs_while_it_renews_its_lease() -> None:
    assert leader(None, NOW) == ""
    assert leader(Lease(LeaseSpec("pod-1", at("12:00:20"))), NOW) == "pod-1"
    assert leader(Lease(LeaseSpec("pod-1", at("11:59:00"))), NOW) == ""
    assert leader(Lease(LeaseSpec(None, at("12:00:20"))), NOW) == ""


def test_the_location_that_is_meant_is_the_one_named_or_the_default_one() -> None:
    other = LocationRow(Key("velero", "other"), is_default=False, is_read_only=False, phase="Available", message="")
    plain = LocationRow(Key("velero", "default"), is_default=False, is_read_only=False, phase="Available", message="")
    assert location_of("other", [LOCATION, other]) == other
    assert location_of("", [other, LOCATION]) == LOCATION
    assert location_of("", [other, plain]) == plain
    assert location_of("gone", [LOCATION]) is None


NIGHTS = PolicyRow(Key("", "nights"), SchedulePolicySpec(selector=ScheduleSelector(), time_zone="America/New_York"))


@pytest.mark.parametrize(
    ("operator", "is_on", "next_run"),
    [
        ("foresail-0", False, "2026-11-16 08:00 UTC"),
        ("", True, "2026-11-16 03:00 UTC"),
        ("", False, "n/a"),
    ],
    ids=["Foresail fires", "Velero fires", "nobody fires"],
)
def test_the_next_run_is_that_of_whoever_fires(operator: str, is_on: bool, next_run: str) -> None:
    server = VeleroServer(Dialect.GOCRON, "v1.18.3", has_schedule_controller=is_on)
    schedule = schedule_wire(status={"lastBackup": "2026-11-15T08:00:00Z"})
    shown = cells(seen(schedule, server=server, operator=operator, policies=(NIGHTS,)), "-o", "wide")
    assert shown["NEXT RUN"].startswith(next_run)


@pytest.mark.parametrize(
    ("schedule", "first"),
    [
        (
            schedule_wire(status={"lastBackup": "2026-11-15T08:00:00Z"}),
            " It runs first at 2026-11-16 08:00 UTC (in 19h), by SchedulePolicy nights.",
        ),
        (schedule_wire(spec={"paused": True}), " It does not run: it is paused; to resume it: foresail"),
    ],
)
def test_a_new_schedule_is_promised_the_time_of_its_policy(schedule: dict[str, Any], first: str) -> None:
    assert first_run(seen(schedule, policies=(NIGHTS,)), NOW).startswith(first)
