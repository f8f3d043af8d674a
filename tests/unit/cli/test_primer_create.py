"""`foresail primer create`: without a cluster, and refused where it would hold nothing."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from foresail.cli.main import main
from tests.unit.cli.canned import canned
from tests.unit.cli.cron_jobs import METADATA, PRIMERS, CronJob, answers

RULES = [CronJob("report"), CronJob("often", "*/5 * * * *"), CronJob("idle", requests={}), CronJob("off", suspend=True)]
OTHER = {"metadata": {**METADATA, "name": "other", "uid": "1"}, "spec": {"cronJob": "report", "warmUp": "5m"}}


def create(
    folder: Path, *arguments: str, primers: tuple[dict[str, Any], ...] = (), more: dict[str, Any] | None = None
) -> tuple[int, bool]:
    """Run the command; return its exit code, and whether a Primer was created."""
    with canned(folder, {**answers(*RULES, primers=primers), **(more or {})}) as server:
        code = main(["primer", "create", *arguments, f"--kubeconfig={server.kubeconfig}", "-n", "reports"])
        return code, f"POST {PRIMERS}" in server.writes


@pytest.mark.parametrize("namespace", [[], ["-n", "shop"]])
@pytest.mark.parametrize("flags", [["-o", "yaml"], ["-o", "json"], ["--dry-run"]])
def test_a_manifest_needs_no_cluster(
    flags: list[str],
    namespace: list[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "none"))
    monkeypatch.setenv("HOME", str(tmp_path))
    assert main(["primer", "create", "report", "--warm-up", "10m", *flags, *namespace]) == 0
    metadata = {"name": "report", **({"namespace": "shop"} if namespace else {})}
    assert yaml.safe_load(capsys.readouterr().out) == {
        "apiVersion": "foresail.dev/v1alpha1",
        "kind": "Primer",
        "metadata": metadata,
        "spec": {"warmUp": "10m", "cronJob": "report"},
    }


def test_a_primer_that_holds_something_is_created_without_a_warning(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert create(tmp_path, "report", "--warm-up=10m") == (0, True)
    said = capsys.readouterr().err
    assert said == "Primer reports/report created; see `foresail primer get report -n reports`\n"


@pytest.mark.parametrize(
    ("arguments", "problem", "hint"),
    [
        (["raport"], "NoCronJob: CronJob reports/raport does not exist", "did you mean report?"),
        (["zzz"], "NoCronJob: CronJob reports/zzz does not exist", "create the CronJob first"),
        (["often"], "NeedsAllowStanding: capacity would be held for 100 % of the time", "add --allow-standing"),
        (["idle"], "NothingToReserve: the pods of CronJob idle request nothing", "set resources.requests"),
        (["report", "--method=CapacityBuffer"], "BufferNotServed", "use --method Auto"),
        (["nothing", "-l", "tier in (often,idle)"], "", "--force"),
    ],
)
def test_a_primer_that_would_hold_nothing_is_refused_unless_forced(
    arguments: list[str], problem: str, hint: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert create(tmp_path, *arguments, "--warm-up=10m") == (1, False)
    said = capsys.readouterr().err
    assert f"error: Primer reports/{arguments[0]} would hold no capacity: {problem}" in said
    assert hint in said.partition("hint: ")[2]
    assert create(tmp_path, *arguments, "--warm-up=10m", "--force") == (0, True)
    assert f"warning: {problem}" in capsys.readouterr().err


def test_a_second_primer_for_a_cron_job_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert create(tmp_path, "report", "--warm-up=10m", primers=(OTHER,)) == (1, False)
    assert "PrimedByAnother: Primer other is for CronJob report too" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "warning"),
    [
        (["off"], "Suspended: CronJob off is suspended"),
        (["some", "-l", "tier in (report,idle)"], "NothingToReserve: the pods of CronJob idle request nothing"),
        (["none", "-l", "tier=missing"], "NoCronJob: no CronJob in namespace reports has these labels"),
        (["report", "--warm-up=7h"], "WarmUpTooLong"),
    ],
)
def test_what_may_pass_or_concerns_a_part_is_a_warning(
    arguments: list[str], warning: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert create(tmp_path, "--warm-up=10m", *arguments) == (0, True)
    assert f"warning: {warning}" in capsys.readouterr().err


def test_a_standing_reservation_that_is_allowed_is_created(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert create(tmp_path, "often", "--warm-up=10m", "--allow-standing") == (0, True)
    assert "warning" not in capsys.readouterr().err


def test_requests_that_admission_adds_are_found_by_a_dry_run(tmp_path: Path) -> None:
    limited = CronJob("idle", requests={"cpu": "100m"})
    pod = {"metadata": {**METADATA, "name": "x"}, "spec": {"containers": [limited.container]}, "status": {}}
    found = {
        "/apis/batch/v1/namespaces/reports/cronjobs/idle": CronJob("idle", requests={}).body,
        "/api/v1/namespaces/reports/pods": {"metadata": {"resourceVersion": "1"}, "items": [], **pod},
    }
    assert create(tmp_path, "idle", "--warm-up=10m", more=found) == (0, True)


def test_without_the_rights_to_check_a_primer_is_created_with_a_warning(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with canned(tmp_path, {PRIMERS: {"metadata": {}, "items": []}}) as server:
        where = [f"--kubeconfig={server.kubeconfig}", "-n", "reports"]
        assert main(["primer", "create", "report", "--warm-up=10m", *where]) == 0
        assert f"POST {PRIMERS}" in server.writes
    assert "warning: cannot check Primer reports/report: " in capsys.readouterr().err
