"""What `foresail schedule` says beside its answers, and what it would send."""

import argparse
import io

import pytest

from foresail.api import velero
from foresail.cli.access.cluster import refusal
from foresail.cli.errors import CommandError
from foresail.cli.main import main, parser
from foresail.cli.output.messages import GREEN, confirm_deletion, painted
from foresail.cli.output.progress import Bar, Progress, Status, bar
from foresail.cli.schedule.change import pause_body
from foresail.cli.schedule.hints import manager_of, who_fires
from foresail.cli.schedule.run import backup_object, report_result
from foresail.kube.failures import Cause, Failure
from foresail.plan import Key
from tests.unit.cli.made_up import NOW, UID, schedule_wire, seen


def parsed(*words: str) -> argparse.Namespace:
    return parser().parse_args(["schedule", *words])


@pytest.mark.parametrize(
    ("labels", "annotations", "manager"),
    [
        ({}, {}, ""),
        ({}, {"argocd.argoproj.io/tracking-id": "shop:velero.io/Schedule:velero/daily"}, "Argo CD (Application shop)"),
        ({"argocd.argoproj.io/instance": "shop"}, {}, "Argo CD (Application shop)"),
        (
            {"kustomize.toolkit.fluxcd.io/name": "apps", "kustomize.toolkit.fluxcd.io/namespace": "flux-system"},
            {},
            "Flux (Kustomization flux-system/apps)",
        ),
        (
            {"helm.toolkit.fluxcd.io/name": "shop", "app.kubernetes.io/managed-by": "Helm"},
            {"meta.helm.sh/release-name": "shop"},
            "Flux (HelmRelease /shop)",
        ),
        (
            {"app.kubernetes.io/managed-by": "Helm"},
            {"meta.helm.sh/release-name": "shop"},
            "Helm (release shop in namespace velero)",
        ),
        ({"app.kubernetes.io/managed-by": "Helm"}, {}, "Helm"),
        ({"app.kubernetes.io/instance": "shop"}, {}, ""),
    ],
)
def test_whoever_else_keeps_an_object_is_recognised(
    labels: dict[str, str], annotations: dict[str, str], manager: str
) -> None:
    wire = schedule_wire(metadata={"labels": labels, "annotations": annotations})
    assert manager_of(seen(wire).schedule) == manager


@pytest.mark.parametrize(
    ("has_schedule_controller", "operator", "said"),
    [
        (False, "pod", ""),
        (True, "pod", "so Foresail's operator does not fire"),
        (True, "", "Velero fires these Schedules"),
        (False, "", "nothing fires Schedules in velero"),
    ],
)
def test_it_is_reported_if_the_operator_is_not_the_only_one_to_fire(
    has_schedule_controller: bool, operator: str, said: str
) -> None:
    text = who_fires("velero", has_schedule_controller=has_schedule_controller, operator=operator)
    assert said in text
    assert bool(said) == bool(text)


def test_a_plain_unpause_leaves_the_stored_field_alone() -> None:
    assert pause_body(paused=False, skip=None) == {"spec": {"paused": False}}
    assert pause_body(paused=False, skip=True) == {"spec": {"paused": False, "skipImmediately": True}}


def test_a_backup_by_hand_is_made_like_a_scheduled_one_but_has_no_slot() -> None:
    wire = schedule_wire(
        metadata={
            "labels": {"team": "web", "argocd.argoproj.io/instance": "shop"},
            "annotations": {"foresail.dev/observed": "{}", "note": "x"},
        },
        spec={"paused": True, "template": {"ttl": "72h", "resourcePolicy": {"kind": "ConfigMap", "name": "p"}}},
    )
    body = backup_object(seen(wire).schedule, parsed("run", "daily", "--labels", "by=hand"), NOW)
    assert body["metadata"] == {
        "name": "daily-20261115120030-0123abcd-run",
        "namespace": "velero",
        "labels": {"team": "web", "by": "hand", "velero.io/schedule-name": "daily"},
        "annotations": {"note": "x"},
    }
    assert body["spec"] == {"ttl": "72h", "resourcePolicy": {"kind": "configmap", "name": "p"}}
    assert UID.startswith("0123abcd")


def test_the_label_that_makes_a_schedule_busy_cannot_be_taken_away() -> None:
    words = parsed("run", "daily", "--backup-name", "mine", "--labels", "velero.io/schedule-name=other")
    metadata = backup_object(seen(schedule_wire()).schedule, words, NOW)["metadata"]
    assert metadata["labels"] == {"velero.io/schedule-name": "daily"}
    assert metadata["name"] == "mine"


@pytest.mark.parametrize(
    ("status", "text"),
    [
        (Status(), "New"),
        (Status("Queued", queue_position=3), "Queued, position 3 in the queue"),
        (Status("InProgress"), "InProgress"),
        (Status("InProgress", Progress(200, 50)), "███████░░░░░░░░░░░░░░░░░░░░░░░  25 %  50 of 200 items  InProgress"),
        (Status("Completed", Progress(7, 9)), "██████████████████████████████ 100 %  7 of 7 items  Completed"),
    ],
)
def test_progress_is_a_bar(status: Status, text: str) -> None:
    assert bar(status) == text


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_colours_are_for_terminals_that_want_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NO_COLOR", raising=False)
    assert painted("ok", GREEN, Terminal()) == "\033[32mok\033[0m"
    assert painted("ok", GREEN, io.StringIO()) == "ok"
    monkeypatch.setenv("NO_COLOR", "1")
    assert painted("ok", GREEN, Terminal()) == "ok"


@pytest.mark.parametrize(("answer", "deletes"), [("y\n", True), ("yes\n", True), ("\n", False), ("no\n", False)])
def test_whoever_sits_at_a_terminal_is_asked_before_schedules_are_deleted(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], answer: str, deletes: bool
) -> None:
    monkeypatch.setattr("sys.stdin", Terminal(answer))
    if deletes:
        confirm_deletion(["Schedule velero/daily"])
    else:
        with pytest.raises(CommandError, match="nothing was deleted: Schedule velero/daily"):
            confirm_deletion(["Schedule velero/daily"])
    assert capsys.readouterr().err == "Delete Schedule velero/daily? [y/N] "


def test_the_bar_grows_in_place_on_a_terminal_and_line_by_line_elsewhere() -> None:
    terminal, file = Terminal(), io.StringIO()
    for stream in (terminal, file):
        progress = Bar(stream)
        for status in (Status("Queued", queue_position=1), Status("InProgress"), Status("InProgress")):
            progress.show(status)
        progress.close()
    assert terminal.getvalue() == "\rQueued, next to run\rInProgress         \n"
    assert file.getvalue() == "Queued, next to run\nInProgress\n"


@pytest.mark.parametrize(
    ("status", "problem"),
    [
        (Status("PartiallyFailed", errors=2), "Backup velero/b is PartiallyFailed with 2 errors"),
        (Status("FailedValidation", validation_errors=["no location"]), "is FailedValidation: no location"),
        (Status("Failed", failure_reason="disk full"), "is Failed: disk full"),
    ],
)
def test_a_backup_that_does_not_complete_is_an_error(status: Status, problem: str) -> None:
    with pytest.raises(CommandError) as refused:
        report_result(Key("velero", "b"), status)
    assert problem in refused.value.problem
    assert refused.value.hint == "see velero backup logs b"


@pytest.mark.parametrize(
    ("cause", "verb", "key", "problem", "hint"),
    [
        (
            Cause.FORBIDDEN,
            "list",
            Key("velero", ""),
            "schedules in namespace velero: you may not list schedules.velero.io in namespace velero",
            "a Role in velero must allow {apiGroups: ['velero.io'], resources: [schedules], verbs: [list]}",
        ),
        (
            Cause.FORBIDDEN,
            "list",
            Key("", ""),
            "schedules in all namespaces: you may not list schedules.velero.io in all namespaces",
            "a ClusterRole must allow {apiGroups: ['velero.io'], resources: [schedules], verbs: [list]}",
        ),
        (
            Cause.NOT_FOUND,
            "get",
            Key("velero", "x"),
            "Schedule velero/x does not exist",
            "foresail schedule get -A",
        ),
        (Cause.NOT_FOUND, "list", Key("velero", ""), "the cluster does not serve schedules.velero.io", "Velero"),
        (Cause.ALREADY_EXISTS, "create", Key("velero", "x"), "Schedule velero/x already exists", "another name"),
        (Cause.UNREACHABLE, "get", Key("velero", "x"), "the API server does not answer: said", "--kubeconfig"),
        (
            Cause.INVALID,
            "patch",
            Key("velero", "x"),
            "Schedule velero/x: cannot patch it: said",
            "see foresail schedule get x -n velero -o yaml",
        ),
    ],
)
def test_a_refusal_names_the_object_the_cause_and_what_to_do(
    cause: Cause, verb: str, key: Key, problem: str, hint: str
) -> None:
    error = refusal(Failure(cause, "said"), verb, velero.SCHEDULE, key)
    assert error.problem == problem
    assert hint in (error.hint or "")


def test_without_a_cluster_the_error_says_how_to_name_one(
    tmp_path: object, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("KUBECONFIG", f"{tmp_path}/none")
    assert main(["schedule", "get", "--kubeconfig", f"{tmp_path}/none"]) == 3
    said = capsys.readouterr()
    assert said.out == ""
    assert "error: there is no kubeconfig at" in said.err
    assert "hint: specify a kubeconfig" in said.err
