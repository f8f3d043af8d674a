"""SchedulePolicies of a file, before they are applied: which Schedules they reach, and what changes."""

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from foresail.api.instants import stamp
from foresail.cli.main import main
from foresail.kube.clock import now
from foresail.slots.policy_timing import timing_under
from tests.unit.cli.canned import canned
from tests.unit.cli.made_up import schedule_wire
from tests.unit.schedules.test_policies import policy

Capture = pytest.CaptureFixture[str]
VELERO = "/apis/velero.io/v1/namespaces/velero"
POLICY = """
apiVersion: foresail.dev/v1alpha1
kind: SchedulePolicy
metadata: {name: nights}
spec:
  selector: {matchLabels: {tier: web}}
  windows: {allowed: [{schedule: "0 22 * * *", duration: 2h}]}
"""
NOON = (now() - timedelta(hours=12)).replace(hour=12, minute=0, second=0, microsecond=0)
JUST_RAN = {"lastBackup": stamp(NOON)}  # the last slot: nothing is due, whenever the test runs
WEB = schedule_wire("0 12 * * *", "web", metadata={"labels": {"tier": "web"}}, status=JUST_RAN)
BATCH = schedule_wire("0 12 * * *", "batch", status=JUST_RAN)
LOCATION = {"metadata": {"name": "default", "namespace": "velero"}, "spec": {"default": True}}
SERVER_ARGS = ["server", "--disable-controllers=schedule"]
SERVER = {
    "metadata": {"name": "velero", "namespace": "velero"},
    "spec": {"template": {"spec": {"containers": [{"image": "velero/velero:v1.18.3", "args": SERVER_ARGS}]}}},
}
ANSWERS = {
    f"{VELERO}/schedules": {"metadata": {"resourceVersion": "1"}, "items": [WEB, BATCH]},
    f"{VELERO}/backups": {"metadata": {"resourceVersion": "1"}, "items": []},
    f"{VELERO}/backupstoragelocations": {
        "metadata": {"resourceVersion": "1"},
        "items": [{**LOCATION, "status": {"phase": "Available"}}],
    },
    "/apis/apps/v1/namespaces/velero/deployments": {"metadata": {"resourceVersion": "1"}, "items": [SERVER]},
    "/apis/foresail.dev/v1alpha1/schedulepolicies": {"metadata": {"resourceVersion": "1"}, "items": []},
}


def run(folder: Path, *words: str, text: str = POLICY) -> int:
    (folder / "policy.yaml").write_text(text)
    with canned(folder, ANSWERS) as server:
        return main([*words, "--kubeconfig", str(server.kubeconfig)])


def test_policy_test_shows_the_schedules_that_it_reaches_and_how_their_week_changes(
    tmp_path: Path, capsys: Capture
) -> None:
    assert run(tmp_path, "policy", "test", "-f", str(tmp_path / "policy.yaml"), "-o", "json") == 0
    printed = capsys.readouterr()
    (found,) = json.loads(printed.out)
    assert (found["schedule"], found["now"], found["then"]) == ("velero/web", None, "nights")
    assert found["nextStartNow"].endswith("T12:00:00Z")
    assert found["nextStartThen"].endswith("T22:00:00Z")
    assert found["runsThen"] in (6, 7)
    assert found["moved"] >= 5
    assert "1 of 2 Schedules" in printed.err


def test_another_zone_moves_every_run(tmp_path: Path, capsys: Capture) -> None:
    policy = {"apiVersion": "foresail.dev/v1alpha1", "kind": "SchedulePolicy", "metadata": {"name": "gold"}}
    text = json.dumps({**policy, "spec": {"selector": {"names": ["web"]}, "timeZone": "Asia/Tokyo"}})
    assert run(tmp_path, "policy", "test", "-f", str(tmp_path / "policy.yaml"), "-o", "json", text=text) == 0
    (found,) = json.loads(capsys.readouterr().out)
    assert found["moved"] >= 7 - 1  # the run that is due now may stay


def test_simulation_compares_without_and_with_the_policy_and_draws_both_calendars(
    tmp_path: Path, capsys: Capture
) -> None:
    assert run(tmp_path, "schedule", "simulate", "--policy", str(tmp_path / "policy.yaml")) == 0
    without, _, with_them = capsys.readouterr().out.partition("with ")
    assert without.startswith("without ")
    for text in (without, with_them):
        assert "velero/web" in text
        assert "the most runs that start in one minute of each half hour" in text
    assert "in the same minute" in without  # both at noon
    assert "in the same minute" not in with_them


def test_simulation_of_a_policy_is_data_for_programs(tmp_path: Path, capsys: Capture) -> None:
    assert run(tmp_path, "schedule", "simulate", "--policy", str(tmp_path / "policy.yaml"), "-o", "json") == 0
    (found,) = json.loads(capsys.readouterr().out)
    starts = {name: {each["at"][11:] for each in found[name] if each["name"] == "web"} for name in found}
    assert starts["with"] == {"22:00:00Z"}
    assert "12:00:00Z" in starts["without"]


def test_simulation_counts_the_runs_that_wait_in_the_group_of_a_new_policy(tmp_path: Path, capsys: Capture) -> None:
    limited = """
apiVersion: foresail.dev/v1alpha1
kind: SchedulePolicy
metadata: {name: one-at-a-time}
spec:
  selector: {}
  concurrency: {max: 1}
"""
    words = ("schedule", "simulate", "--policy", str(tmp_path / "policy.yaml"), "--backups-take", "45m")
    until = f"{NOON + timedelta(days=31):%Y-%m-%d}"  # half a day after the last slot
    assert run(tmp_path, *words, "--until", until, text=limited) == 0
    without, _, with_them = capsys.readouterr().out.partition("with ")
    counts = {
        name: [line.split()[1:5] for line in text.splitlines() if line.startswith("velero/")][:2]
        for name, text in (("without", without), ("with", with_them))
    }
    assert counts["without"] == [["30", "30", "0", "0"]] * 2
    assert counts["with"] == [["30", "30", "0", "0"], ["30", "0", "30", "0"]], "web waits for batch, day after day"
    assert "runs 45m late" in with_them


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (POLICY.replace("2h", "2x"), "$.spec.windows.allowed[0].duration"),
        (POLICY.replace("0 22 * * *", "61 22 * * *"), "spec.windows.allowed[0]: invalid schedule"),
        (POLICY + "---" + POLICY, "has SchedulePolicy nights twice"),
        (POLICY + "  objectiv: {rpo: 1h}\n", "spec.objectiv does not exist; did you mean objective?"),
        (POLICY + "  retention: {keepLast: 2, dayly: 3}\n", "spec.retention.dayly does not exist; did you mean daily?"),
        (POLICY.replace("duration:", "length: 1h, duration:"), "spec.windows.allowed[0].length does not exist"),
        ("kind: Pod", "has no SchedulePolicy"),
    ],
)
def test_policy_that_cannot_be_used_is_named_with_the_cause(
    tmp_path: Path, capsys: Capture, text: str, problem: str
) -> None:
    assert run(tmp_path, "schedule", "simulate", "--policy", str(tmp_path / "policy.yaml"), text=text) != 0
    assert problem in capsys.readouterr().err


def test_offset_of_a_schedule_is_the_same_before_the_policy_is_applied() -> None:
    first, second = (timing_under(policy(name, spread={"within": "2h"}), "velero/web", "UTC") for name in "ab")
    assert first == second


def test_policy_that_cannot_be_read_is_named_and_breaks_nothing(tmp_path: Path, capsys: Capture) -> None:
    odd = {"metadata": {"name": "odd"}, "spec": {"selector": {}, "timeZone": 7}}
    policies = {"metadata": {"resourceVersion": "1"}, "items": [odd]}
    answers = {**ANSWERS, "/apis/foresail.dev/v1alpha1/schedulepolicies": policies}
    with canned(tmp_path, answers) as server:
        assert main(["schedule", "get", "--kubeconfig", str(server.kubeconfig)]) == 0
    printed = capsys.readouterr()
    assert "web" in printed.out
    assert "SchedulePolicy odd is not considered, because it cannot be read" in printed.err


WEEKDAYS = """
apiVersion: foresail.dev/v1alpha1
kind: SchedulePolicy
metadata: {name: weekdays}
spec:
  selector: {}
  spread: {within: 2h}
  windows: {allowed: [{schedule: "0 22 * * 1-5", duration: 2h}], outside: Delay}
  objective: {rpo: 25h}
"""


@pytest.mark.parametrize("command", [("policy", "test", "-f"), ("schedule", "simulate", "--policy")], ids=" ".join)
def test_an_objective_that_will_be_missed_is_said(tmp_path: Path, capsys: Capture, command: tuple[str, ...]) -> None:
    assert run(tmp_path, *command, str(tmp_path / "policy.yaml"), text=WEEKDAYS) == 0
    hints = [line for line in capsys.readouterr().err.splitlines() if line.startswith("hint: ")]
    missed = [line for line in hints if "will miss the objective of SchedulePolicy weekdays: 3d between" in line]
    assert len(missed) == 2
    assert all("and objective.rpo is 1d1h" in line for line in missed)
    assert run(tmp_path, *command, str(tmp_path / "policy.yaml")) == 0
    assert "will miss" not in capsys.readouterr().err


WORKDAYS = """
apiVersion: foresail.dev/v1alpha1
kind: SchedulePolicy
metadata: {name: workdays}
spec:
  selector: {}
  windows: {allowed: [{schedule: "0 12 * * 1-5", duration: 2h}], outside: Skip}
"""


@pytest.mark.parametrize("command", [("policy", "test", "-f"), ("schedule", "simulate", "--policy")], ids=" ".join)
def test_a_policy_under_which_backups_do_not_live_until_the_next_run_is_said(
    tmp_path: Path, capsys: Capture, command: tuple[str, ...]
) -> None:
    weekly = schedule_wire("0 12 * * *", "web", status=JUST_RAN)
    weekly["spec"]["template"] = {"ttl": "48h0m0s"}
    answers = {**ANSWERS, f"{VELERO}/schedules": {"metadata": {"resourceVersion": "1"}, "items": [weekly]}}
    file = tmp_path / "policy.yaml"
    for text, is_said in ((WORKDAYS, True), (WORKDAYS.replace("1-5", "*"), False)):
        file.write_text(text)
        with canned(tmp_path, answers) as server:
            assert main([*command, str(file), "--kubeconfig", str(server.kubeconfig)]) == 0
        said = "Schedule velero/web: Velero deletes each Backup after 2d, and runs are up to 3d apart"
        assert (said in capsys.readouterr().err) is is_said


def test_runs_that_wait_for_an_opening_are_simulated_after_it_each_with_its_delay(
    tmp_path: Path, capsys: Capture
) -> None:
    """Both Schedules are due at noon, and the window opens at ten in the evening."""
    policy_file = str(tmp_path / "policy.yaml")
    assert run(tmp_path, "schedule", "simulate", "--policy", policy_file, "-o", "json", text=WEEKDAYS) == 0
    starts = {each["at"][11:19] for each in json.loads(capsys.readouterr().out)[0]["with"] if each["at"]}
    delays = (
        timing_under(policy("weekdays", spread={"within": "2h"}), f"velero/{name}", "UTC") for name in ("web", "batch")
    )
    ten = datetime(2026, 1, 1, 22, tzinfo=UTC)
    assert starts == {f"{ten + delay.offset % timedelta(hours=2):%H:%M:%S}" for delay in delays if delay is not None}
