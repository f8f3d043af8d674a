"""`foresail backup logs`: what is asked for, when there is no hope, what is printed, and what to do about a cause."""

import json
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from foresail.api.nonadmin import Condition
from foresail.cli.errors import CommandError
from foresail.cli.main import main, parser
from foresail.cli.tenant.describe import described
from foresail.cli.tenant.files import WHAT_TO_DO, body, remark, request_name, verdict, what_to_do
from foresail.cli.tenant.logs import as_lines, wanted_file
from foresail.cli.tenant.tenant_request import decode_request
from foresail.cli.tenant.wait import is_explained
from foresail.cli.tenant.wait import verdict as verdict_of
from foresail.plan import Key
from foresail.selfservice.families import BACKUPS, RESTORES, Family
from tests.unit.cli.canned import canned
from tests.unit.cli.test_tenant import NOW, condition, wire, with_velero

ABOUT = Key("shop", "daily")


@pytest.mark.parametrize(
    ("family", "words", "kind"),
    [
        (BACKUPS, ["backup", "logs", "daily"], "BackupLog"),
        (BACKUPS, ["backup", "logs", "daily", "--results"], "BackupResults"),
        (RESTORES, ["restore", "logs", "daily"], "RestoreLog"),
        (RESTORES, ["restore", "logs", "daily", "--results"], "RestoreResults"),
    ],
)
def test_the_request_names_the_file(family: Family, words: list[str], kind: str) -> None:
    made = body(Key("shop", "x"), wanted_file(family, parser().parse_args([*words, "--namespace", "shop"])))
    assert made["spec"] == {"target": {"kind": kind, "name": "daily"}}
    assert made["metadata"] == {"name": "x", "namespace": "shop"}


def test_no_two_requests_have_one_name_and_every_name_can_be_one() -> None:
    assert request_name("daily") != request_name("daily")
    assert len(request_name("d" * 253)) <= 253
    assert "." not in request_name("a" * 199 + ".b")[199:]


def test_there_is_hope_until_it_is_refused_or_velero_is_silent() -> None:
    waits = Condition("Processed", "False", "Waiting", "it is InProgress")
    assert verdict(None, BACKUPS, ABOUT) is None
    assert verdict(waits, BACKUPS, ABOUT) is None
    silent = verdict(Condition("Processed", "False", "VeleroSilent", "Velero is silent"), BACKUPS, ABOUT)
    assert str(silent) == (
        "error: NonAdminBackup shop/daily: Velero is silent\n"
        "hint: ask a cluster administrator whether Velero is running"
    )
    gone = verdict(Condition("NonAdminBackupNotAvailable", "True", "Error", "gone"), BACKUPS, ABOUT)
    assert str(gone) == ("error: NonAdminBackup shop/daily: gone\nhint: see foresail backup explain daily -n shop")


def test_a_waiting_request_reports_what_it_waits_for() -> None:
    waits = Condition("Processed", "False", "Waiting", "it is InProgress")
    assert remark(waits, timedelta(0), BACKUPS, ABOUT) == "it is InProgress"
    assert remark(None, timedelta(seconds=1), BACKUPS, ABOUT) == ""
    assert remark(None, timedelta(seconds=30), BACKUPS, ABOUT).startswith("The operator has not processed it yet")
    with pytest.raises(
        CommandError, match=r"file of NonAdminBackup shop/daily: no operator has seen it for 1m\nhint: ask"
    ):
        remark(None, timedelta(minutes=1), BACKUPS, ABOUT)


CAUSES = {
    "the bucket cannot be reached": "the bucket must be reachable from here",
    "the bucket's certificate is not trusted": "pass its CA certificate in PEM with --cacert FILE",
    "the bucket takes longer than 600 s": "try again, or run the command closer to the bucket",
    "the bucket answers 404": "for example because it was restarted; create another backup",
    "the bucket answers 403": "try again; the download URL expires after a few minutes",
    "it is larger than 16 MiB": "download it with curl from the URL of a NonAdminDownloadRequest",
    "it is not a gzip file": "try again, or ask a cluster administrator",
    "it ends in the middle": "try again, or ask a cluster administrator",
}


@pytest.mark.parametrize("cause", CAUSES)
def test_every_cause_has_what_to_do(cause: str) -> None:
    assert CAUSES[cause] in what_to_do(cause, BACKUPS, ABOUT)


@pytest.mark.parametrize("word", WHAT_TO_DO)
def test_every_hint_is_met_by_a_cause(word: str) -> None:
    assert any(word in cause for cause in CAUSES)


def test_results_are_a_table_errors_first() -> None:
    results = {
        "warnings": {"namespaces": {"shop": [" resource: /pods name: /web message: /Skip\x1b[31m error: /no agent"]}},
        "errors": {"velero": [" name: /web message: /Error backing up item error: /no agent"], "cluster": ["late"]},
    }
    assert as_lines(json.dumps(results).encode()).splitlines() == [
        "LEVEL     WHERE     WHAT",
        "error     cluster   late",
        "error     velero    web: Error backing up item: no agent",
        "warning   shop      pods web: Skip [31m: no agent",
    ]
    assert as_lines(b'{"errors": {}}') == "No errors and no warnings."
    for other in (b"[]", b'{"errors": {"cluster": ["\xff"]}}', b"[" * 9_000):
        with pytest.raises(CommandError, match="not in Velero's format"):
            as_lines(other)


def test_a_wait_stays_for_the_cause_of_a_failure_and_for_nothing_else() -> None:
    assert is_explained(with_velero("Completed"))
    assert is_explained(with_velero("InProgress"))
    assert is_explained(with_velero("FailedValidation"))
    failed = with_velero("Failed", errors=1)
    assert not is_explained(failed)
    content = failed.content
    conditions = content["status"]["conditions"]
    said = condition("Succeeded", "False", "Failed", f"{conditions[2]['message']}. Velero reports: no agent")
    conditions[2] = said
    assert is_explained(decode_request(failed.family, json.dumps(content).encode()))


def test_a_file_of_authorities_that_is_none_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["backup", "logs", "daily", "-n", "shop", "--cacert", "/dev/null/none"]) == 1
    assert "hint: pass a file with PEM certificates" in capsys.readouterr().err


PATH = "/apis/oadp.openshift.io/v1alpha1/namespaces/shop/nonadminbackups/daily"
WAITS = {"phase": "New", "conditions": [condition("Accepted", "False", "LocationUnavailable", "no location x")]}
RUNS = {"phase": "Created", "veleroBackup": {"name": "b", "status": {"phase": "InProgress"}}}
REFUSED = {"phase": "BackingOff", "conditions": [condition("Accepted", "False", "PolicyViolation", "too long")]}
REJECTED = {
    "phase": "Created",
    "veleroBackup": {"name": "b", "status": {"phase": "FailedValidation"}},
    "conditions": [condition("Succeeded", "False", "FailedValidation", "Backup rejected by Velero: no location x")],
}
NEVER = [
    (WAITS, "has no {} yet, because it has not finished: no location x"),
    (RUNS, "has no {} yet, because it has not finished"),
    (REFUSED, "has no {}: too long"),
    (REJECTED, "has no {}: Backup rejected by Velero: no location x"),
]


@pytest.mark.parametrize(("status", "told"), NEVER, ids=["waits", "runs", "refused", "rejected"])
@pytest.mark.parametrize(
    ("command", "word"),
    [
        (["backup", "logs", "daily"], "log"),
        (["backup", "logs", "daily", "--results"], "results"),
        (["backup", "contents", "daily"], "list of contents"),
        (["restore", "plan", "--from-backup", "daily"], "contents"),
    ],
    ids=["logs", "results", "contents", "plan"],
)
def test_a_file_that_is_not_there_is_an_error_at_once(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], status: dict[str, Any], told: str, command: list[str], word: str
) -> None:
    with canned(tmp_path, {PATH: wire(status=status)}) as server:
        assert main([*command, "-n", "shop", "--kubeconfig", str(server.kubeconfig)]) == 1
        assert server.writes == []
    error, advice = capsys.readouterr().err.splitlines()[-2:]
    assert error == f"error: NonAdminBackup shop/daily {told.format(word)}"
    assert advice.startswith("hint: ")
    assert ("--follow" in advice) == ("yet" in told and command[1] == "logs")


def test_follow_waits_for_what_can_still_come_and_for_nothing_else(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for status, is_asked in ((RUNS, True), (REFUSED, False)):
        with canned(tmp_path, {PATH: wire(status=status)}) as server:
            command = ["backup", "logs", "daily", "--follow", "-n", "shop", "--kubeconfig", str(server.kubeconfig)]
            assert main(command) == 1, "the canned server makes no NonAdminDownloadRequest"
            assert bool(server.writes) == is_asked
    assert "too long" in capsys.readouterr().err


RESTARTED = 'found a backup with status "InProgress" during the server starting, mark it as "Failed"'


def test_what_failed_because_velero_was_restarted_says_so_everywhere_and_sends_nobody_in_a_circle(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    backup = with_velero("Failed", failureReason=RESTARTED)
    cause = "Velero was restarted while it ran; create it again"
    text = described(backup, NOW)
    assert [line.partition(":")[2].strip() for line in text.splitlines() if line.startswith("Cause:")] == [cause]
    assert "server starting" not in text.partition("Spec:")[0]
    assert text.endswith("Next: Velero was restarted while it worked on the backup. Create another backup")
    assert is_explained(backup), "there are no results to wait for"
    assert (
        str(verdict_of(backup))
        == f"error: NonAdminBackup shop/daily: Backup failed: {cause}\nhint: create another backup"
    )
    with canned(tmp_path, {PATH: json.loads(bytes(backup.raw))}) as server:
        assert main(["backup", "logs", "daily", "-n", "shop", "--kubeconfig", str(server.kubeconfig)]) == 1
        assert server.writes == []
    assert f"NonAdminBackup shop/daily has no log: Backup failed: {cause}" in capsys.readouterr().err


@pytest.mark.parametrize("word", ["describe", "logs"])
def test_no_advice_about_a_file_leads_back_to_where_it_came_from(word: str) -> None:
    assert word not in what_to_do("the bucket answers 404", BACKUPS, ABOUT)
