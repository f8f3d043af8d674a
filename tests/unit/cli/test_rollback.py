"""`foresail rollback`: the plan that is shown and recorded, the steps while it runs, and what to do next."""

import json
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from io import StringIO
from pathlib import Path
from typing import Any

import msgspec
import pytest

from foresail.api.rollback import NamedGroup, RollbackPlan, RollbackSpec, RollbackStatus
from foresail.cli.errors import CommandError
from foresail.cli.main import main
from foresail.cli.output.progress import Line
from foresail.cli.restore_plan.planning import RestorePlan
from foresail.cli.rollback.advice import next_step
from foresail.cli.rollback.create import rollback_name, usual_kinds
from foresail.cli.rollback.describe import described
from foresail.cli.rollback.get import rollback_table
from foresail.cli.rollback.plan import Differences, differences_of, plan_text, summary
from foresail.cli.rollback.rollbacks import Seen, decode
from foresail.cli.rollback.steps import Shown, remark, rows
from foresail.cli.rollback.undo import check
from foresail.proof.restore_plan.compare import Change
from foresail.proof.restore_plan.decide import Outcome, Verdict
from foresail.proof.restore_plan.items import ItemKey
from foresail.proof.restore_plan.refusals import By
from tests.unit.cli.canned import Canned, canned

NOW = datetime(2026, 11, 19, 7, tzinfo=UTC)
GROUP = "/apis/foresail.dev/v1alpha1/namespaces/shop/rollbacks"
BACKUP = "/apis/oadp.openshift.io/v1alpha1/namespaces/shop/nonadminbackups/daily"
REVIEW = "/apis/authentication.k8s.io/v1/selfsubjectreviews"
DIGEST = "0123456789abcdef" * 4
PLAN: dict[str, Any] = {
    "digest": DIGEST,
    "created": {"count": 1, "names": ["configmaps/gone"]},
    "existing": {"count": 2, "names": ["configmaps/settings", "deployments.apps/web"]},
    "extra": {"count": 1, "names": ["deployments.apps/surprise"]},
    "suspended": {"count": 1, "names": ["kustomizations.kustomize.toolkit.fluxcd.io/shop"]},
}
CONDITION = {
    "type": "Succeeded",
    "status": "True",
    "reason": "Completed",
    "message": "as in the backup",
    "lastTransitionTime": "2026-11-19T06:50:00Z",
}
STEPS = [
    {
        "name": "Planning",
        "started": "2026-11-19T06:59:00Z",
        "finished": "2026-11-19T06:59:04Z",
        "message": "",
    },
    {"name": "SafetyBackup", "started": "2026-11-19T06:59:04Z", "message": "Waiting for safety backup x"},
]


def content(phase: str = "Completed", reason: str = "Completed", **status: Any) -> dict[str, Any]:  # noqa: ANN401
    condition = {**CONDITION, "reason": reason, "message": status.pop("message", CONDITION["message"])}
    return {
        "apiVersion": "foresail.dev/v1alpha1",
        "kind": "Rollback",
        "metadata": {
            "name": "back",
            "namespace": "shop",
            "uid": "7",
            "creationTimestamp": "2026-11-19T06:00:00Z",
        },
        "spec": {"to": "daily", **status.pop("spec", {})},
        "status": {"phase": phase, "conditions": [condition] if reason else [], **status},
    }


def seen(*words: str, **status: Any) -> Seen:  # noqa: ANN401
    return decode(json.dumps(content(*words, **status)).encode())


# The plan


def plan(**spec: Any) -> str:  # noqa: ANN401
    fields = {"deployments.apps/web": ("spec.replicas", "spec.template")}
    return plan_text(RollbackSpec("daily", **spec), msgspec.convert(PLAN, RollbackPlan), fields)


def test_the_plan_has_each_object_with_what_happens_to_it() -> None:
    header, *lines = [line.split("   ") for line in plan().splitlines()]
    assert header[0] == "PLAN"
    assert [(line[0], line[-1].strip()) for line in lines] == [
        ("create", "configmaps/gone"),
        ("change", "spec.replicas, spec.template"),
        ("unchanged", "1 object"),
        ("keep, not in the backup", "deployments.apps/surprise"),
        ("suspend meanwhile", "kustomizations.kustomize.toolkit.fluxcd.io/shop"),
    ]


def test_nothing_is_taken_away_from_a_service_account() -> None:
    groups = RollbackPlan(existing=NamedGroup(1, ("serviceaccounts/web",)))
    text = plan_text(RollbackSpec("daily"), groups, {"serviceaccounts/web": ("imagePullSecrets",)})
    assert text.splitlines()[1].split() == ["add", "to", "serviceaccounts/web", "imagePullSecrets"]


def test_an_object_that_is_not_in_the_backup_is_deleted_only_with_prune() -> None:
    assert "delete" not in plan()
    assert "delete" in plan(prune=True)


def test_without_the_fields_nothing_is_called_unchanged() -> None:
    text = plan_text(RollbackSpec("daily"), msgspec.convert(PLAN, RollbackPlan), None)
    assert "unchanged" not in text
    assert "change if differing" in text


def test_objects_that_the_status_does_not_name_are_counted() -> None:
    groups = RollbackPlan(created=NamedGroup(51, ("configmaps/a",)), existing=NamedGroup(60, ("configmaps/b",)))
    text = plan_text(RollbackSpec("daily"), groups, {})
    assert "and 50 more" in text
    assert "59 more objects" in text
    assert summary(RollbackSpec("daily"), groups) == "51 created, 60 changed back if they differ"


def test_kinds_are_named_as_the_api_has_them() -> None:
    assert usual_kinds(["deployments", "cm", "widgets.example.com"]) == [
        "configmaps",
        "deployments.apps",
        "widgets.example.com",
    ]


def test_a_name_leaves_room_for_the_names_of_its_backup_and_restores() -> None:
    assert rollback_name("a" * 60, NOW) == "a" * 25 + "-20261119070000"


# While it runs


class Terminal(StringIO):
    def isatty(self) -> bool:
        return True


def test_a_step_that_runs_shows_its_time_and_one_that_ended_stays() -> None:
    out = Terminal()
    shown = Shown(out)
    status = msgspec.convert({"phase": "SafetyBackup", "steps": STEPS}, RollbackStatus)
    at = datetime(2026, 11, 19, 6, 59, 9, tzinfo=UTC)
    shown.show(status, at)
    shown.show(status, at + timedelta(seconds=1))
    text = out.getvalue()
    assert text.count("planning") == 1
    assert "     5s  Waiting for safety backup x" in text
    assert "     6s  Waiting for safety backup x" in text


def test_without_a_terminal_a_step_that_runs_is_printed_once() -> None:
    out = StringIO()
    shown = Shown(out)
    status = msgspec.convert({"phase": "SafetyBackup", "steps": STEPS}, RollbackStatus)
    for seconds in range(5):
        shown.show(status, NOW + timedelta(seconds=seconds))
    assert len(out.getvalue().splitlines()) == 2


def test_the_step_before_an_undo_that_nobody_asked_for_has_failed() -> None:
    undoing = {"name": "Undoing", "started": "2026-11-19T06:59:09Z"}
    failed = {**STEPS[1], "finished": "2026-11-19T06:59:09Z", "message": "the quota is full"}
    steps = {"phase": "Undoing", "steps": [STEPS[0], failed, undoing]}
    status = msgspec.convert({**steps, "failure": "the quota is full"}, RollbackStatus)
    assert [row[0] for row in rows(status, NOW)] == ["ok", "failed", "runs"]
    assert [row[0] for row in rows(msgspec.convert(steps, RollbackStatus), NOW)] == ["ok", "ok", "runs"]


def test_a_text_that_stays_covers_the_one_before() -> None:
    out = Terminal()
    line = Line(out)
    line.show("a long text")
    line.settle("short")
    assert out.getvalue() == "\ra long text\rshort      \n"


def test_who_waits_is_told_what_for() -> None:
    assert remark(seen("New", "Waiting", message="Rollback x comes first"), timedelta()) == "Rollback x comes first"
    assert remark(seen("New", ""), timedelta(seconds=20)).startswith("the operator has not seen it yet")
    with pytest.raises(CommandError, match="no operator has seen it for 2m"):
        remark(seen("New", ""), timedelta(minutes=3))


# What to do next


@pytest.mark.parametrize(
    ("found", "advice"),
    [
        (seen(undoUntil="2026-11-20T07:00:00Z"), "undo it until 2026-11-20 07:00 UTC (in 24h)"),
        (seen(undoUntil="2026-11-18T07:00:00Z", safetyBackup="back-before-7"), "--from-backup back-before-7"),
        (seen("Refused", "RollbackDisabled"), "spec.rollback.enabled"),
        (seen("Refused", "BackupUnusable"), "foresail backup get -n shop"),
        (seen("Refused", "SafetyBackupFailed", safetyBackup="s"), "foresail backup describe s -n shop"),
        (seen("Refused", "AddedLater"), "do what the message says"),
        (seen("Completed", "NotCompared", undoUntil="2026-11-20T07:00:00Z"), "foresail backup diff daily -n shop"),
        (seen("Undone", "Failed"), "do what the message says"),
        (seen("Undone", "Undone"), "there is nothing to do"),
        (seen("Undoing", "UndoWaits"), "the operator tries again"),
        (seen("Undoing", "InProgress"), "foresail rollback describe back -n shop"),
        (seen("Restoring", "InProgress"), "foresail rollback undo back -n shop"),
        (seen("New", "Waiting"), "foresail rollback get -n shop"),
        (seen("Planned", "Planned"), "kubectl delete rollback back -n shop"),
    ],
)
def test_every_end_has_a_next_step(found: Seen, advice: str) -> None:
    assert advice in next_step(found, NOW)


def test_a_description_has_the_plan_the_steps_and_what_is_suspended() -> None:
    stopped = [{"kind": "deployments.apps", "name": "web", "uid": "1", "former": "3", "resumed": True}]
    pruned = [{"kind": "configmaps", "name": "new", "uid": "2"}]
    volumes = [{"claim": "data", "volume": "pv-1", "keptUntil": "2026-11-20T07:00:00Z"}]
    text = described(
        seen(
            plan={**PLAN, "inTheWay": ["ask first"]},
            steps=STEPS,
            stopped=stopped,
            pruned=pruned,
            volumes=volumes,
            undoUntil="2026-11-20T07:00:00Z",
        ),
        NOW,
    )
    for line in (
        "Undo Until:     2026-11-20 07:00 UTC (in 24h)",
        "In the way: ask first",
        "deployments.apps/web   3        yes",
        "Deleted: 1 object",
        "data    pv-1     2026-11-20 07:00 UTC (in 24h)",
        "Next: undo it until",
    ):
        assert line in text
    rows_of_steps = [line.split() for line in text.partition("Steps:\n")[2].splitlines()[1:3]]
    assert [row[:3] for row in rows_of_steps] == [["ok", "planning", "4s"], ["runs", "safety", "backup"]]


def test_the_table_has_the_phase_and_until_when_it_can_be_undone() -> None:
    found = [seen(undoUntil="2026-11-20T07:00:00Z"), seen("Refused", "BackupUnusable", message="it failed")]
    header, good, bad = rollback_table(found, NOW, None, wide=True, with_namespace=True).splitlines()
    assert header.split()[:4] == ["NAMESPACE", "NAME", "TO", "PHASE"]
    assert "2026-11-20 07:00 UTC (in 24h)" in good
    assert "backup unusable" in bad
    assert bad.endswith("it failed")


# On a cluster


def server(planned: Mapping[str, Any], ended: Mapping[str, Any], *, backup: bool = True) -> dict[str, Any]:
    """Answer as an API server whose operator makes this plan, and ends a Rollback like this."""

    def create(_: str, sent: dict[str, Any]) -> dict[str, Any]:
        name = sent["metadata"]["name"]
        answer = planned if sent["spec"].get("dryRun") else ended
        made = {**answer, "metadata": {**answer["metadata"], "name": name}}
        answers[f"{GROUP}/{name}"] = made
        return made

    answers: dict[str, Any] = {GROUP: create, REVIEW: {"status": {"userInfo": {"username": "ann", "groups": ["a"]}}}}
    if backup:
        answers[BACKUP] = {"metadata": {"name": "daily", "namespace": "shop"}}
    return answers


PLANNED = content("Planned", "Planned", plan=PLAN)
ENDED = content(steps=STEPS[:1], undoUntil="2999-01-01T00:00:00Z")


def run(folder: Path, answers: dict[str, Any], *words: str) -> tuple[int, Canned]:
    with canned(folder, answers) as api:
        code = main(["rollback", *words, "-n", "shop", f"--kubeconfig={api.kubeconfig}"])
    return code, api


def test_what_was_shown_is_what_is_asked_for(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, api = run(tmp_path, server(PLANNED, ENDED), "create", "back", "--to=daily", "--confirm", "--wait")
    assert code == 0
    sent = api.bodies[f"POST {GROUP}"]
    assert sent["spec"] == {"to": "daily", "volumes": "None", "prune": False, "planDigest": DIGEST}
    assert sent["metadata"]["annotations"]["foresail.dev/requester"] == "ann"
    captured = capsys.readouterr()
    assert "configmaps/gone" in captured.out
    assert "Rollback shop/back created." in captured.err
    assert "planning" in captured.err
    assert "hint: undo it until 2999-01-01" in captured.err


def test_the_dry_run_is_deleted_again(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, api = run(tmp_path, server(PLANNED, ENDED), "create", "--to=daily", "--dry-run")
    assert code == 0
    assert [each.split()[0] for each in api.writes if GROUP in each] == ["POST", "DELETE"]
    assert api.bodies[f"POST {GROUP}"]["spec"]["dryRun"] is True
    said = capsys.readouterr().err
    assert f"foresail rollback create --to daily -n shop --plan-digest {DIGEST} --wait" in said


def test_the_command_after_a_dry_run_has_its_volumes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ("create", "--to=daily", "--volumes=all", "--prune", "--dry-run")
    assert run(tmp_path, server(PLANNED, ENDED), *words)[0] == 0
    again = f"foresail rollback create --to daily -n shop --volumes all --prune --plan-digest {DIGEST} --wait"
    assert again in capsys.readouterr().err


def test_a_plan_that_was_seen_is_run_without_another(tmp_path: Path) -> None:
    code, api = run(tmp_path, server(PLANNED, ENDED), "create", "back", "--to=daily", f"--plan-digest={DIGEST}")
    assert code == 0
    assert [each for each in api.writes if GROUP in each] == [f"POST {GROUP}"]
    assert api.bodies[f"POST {GROUP}"]["spec"]["planDigest"] == DIGEST


def test_without_an_answer_nothing_is_asked_for(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, api = run(tmp_path, server(PLANNED, ENDED), "create", "back", "--to=daily")
    assert code == 2
    assert [each for each in api.writes if each == f"POST {GROUP}"] == [f"POST {GROUP}"], "the dry run alone"
    assert "refusing to roll back without confirmation (no terminal); nothing was changed" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("planned", "problem", "hint"),
    [
        (
            content("Refused", "RollbackDisabled", message="No SelfServicePolicy has rollback.enabled"),
            "No SelfServicePolicy has rollback.enabled; nothing was changed",
            "set spec.rollback.enabled",
        ),
        (
            content("Planned", "Planned", plan={**PLAN, "inTheWay": ["Application a/b syncs", "and another"]}),
            "cannot begin: Application a/b syncs\n  and another",
            "nothing was changed",
        ),
    ],
)
def test_what_cannot_begin_is_not_asked_for(
    planned: dict[str, Any], problem: str, hint: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, api = run(tmp_path, server(planned, ENDED), "create", "back", "--to=daily", "--confirm")
    assert code == 1
    assert api.bodies[f"POST {GROUP}"]["spec"]["dryRun"] is True
    said = capsys.readouterr().err
    assert problem in said
    assert hint in said


def test_the_end_tells_what_differed_from_what_velero_wrote_for_its_labels_alone(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    async def find(*_: object) -> Differences:
        return Differences({"configmaps/settings": ("data.mode",)})

    monkeypatch.setattr("foresail.cli.rollback.create.find_differences", find)
    assert run(tmp_path, server(PLANNED, ENDED), "create", "back", "--to=daily", "--confirm", "--wait")[0] == 0
    told = capsys.readouterr()
    assert "data.mode" in told.out, "the plan names the fields, without a question too"
    assert "Before, 1 object that exists differed in fields. Others were written for Velero's labels" in told.err


def test_what_can_never_be_changed_back_is_in_the_way_before_anything_is_written(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    async def find(*_: object) -> Differences:
        return Differences({}, {"configmaps/sealed": "data: Forbidden: field is immutable"})

    monkeypatch.setattr("foresail.cli.rollback.create.find_differences", find)
    code, api = run(tmp_path, server(PLANNED, ENDED), "create", "back", "--to=daily", "--confirm")
    assert code == 1
    assert [write for write in api.writes if write == f"POST {GROUP}"] == [f"POST {GROUP}"], "the dry run alone"
    said = capsys.readouterr().err
    assert "cannot begin: configmaps/sealed cannot be changed back: data: Forbidden: field is immutable" in said
    assert "nothing was changed; delete it, or name other kinds with --only" in said


def test_a_dry_run_says_which_fields_change_and_what_nobody_could_change() -> None:
    def verdict(name: str, outcome: Outcome, by: By | None = None, *paths: str) -> Verdict:
        changes = tuple(Change(path, "a", "b") for path in paths)
        return Verdict(ItemKey("configmaps", "shop", name), outcome, "no", by, changes)

    verdicts = (
        verdict("edited", Outcome.UPDATE, None, "data.a", "data.b"),
        verdict("noted", Outcome.UPDATE),
        verdict("sealed", Outcome.REFUSED, By.SCHEMA, "data.a"),
        verdict("full", Outcome.REFUSED, By.QUOTA),
        verdict("mine", Outcome.REFUSED, By.RBAC, "data.a"),
        verdict("left", Outcome.NOT_RESTORED, None, "data.a"),
    )
    found = differences_of(RestorePlan("daily", verdicts))
    assert found.fields == {
        "configmaps/edited": ("data.a", "data.b"),
        "configmaps/sealed": ("data.a",),
        "configmaps/mine": ("data.a",),
    }
    assert found.refused == {"configmaps/sealed": "no", "configmaps/full": "no"}


def test_a_backup_that_does_not_exist_is_named_before_anything_is_written(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    backups = BACKUP.removesuffix("/daily")
    answers = {**server(PLANNED, ENDED, backup=False), backups: {"metadata": {}, "items": []}}
    code, api = run(tmp_path, answers, "create", "--to=daily", "--confirm")
    assert code == 1
    assert api.writes == [each for each in api.writes if GROUP not in each]
    assert "NonAdminBackup daily does not exist in namespace shop" in capsys.readouterr().err


def test_a_rollback_that_failed_is_a_failure(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    failed = content("Undone", "Failed", message="the quota is full. Everything is as it was before")
    code, _ = run(tmp_path, server(PLANNED, failed), "create", "back", "--to=daily", "--confirm", "--wait")
    assert code == 1
    assert "error: Rollback shop/back: the quota is full. Everything is as it was before" in capsys.readouterr().err


def test_a_rollback_that_could_not_be_compared_is_not_called_good(tmp_path: Path) -> None:
    unknown = content("Completed", "NotCompared", undoUntil="2999-01-01T00:00:00Z")
    code, _ = run(tmp_path, server(PLANNED, unknown), "create", "back", "--to=daily", "--confirm", "--wait")
    assert code == 1


def test_an_undo_is_asked_for_by_one_field_as_the_user(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    undone = content("Undone", "Undone", message="everything is as it was before")

    def answer(_: str, sent: dict[str, Any]) -> dict[str, Any]:
        if sent:
            answers[f"{GROUP}/back"] = undone
        return ENDED

    answers: dict[str, Any] = {f"{GROUP}/back": answer, REVIEW: {"status": {"userInfo": {"username": "bob"}}}}
    code, api = run(tmp_path, answers, "undo", "back", "--confirm", "--wait")
    assert code == 0
    sent = api.bodies[f"PATCH {GROUP}/back"]
    assert sent["spec"] == {"undo": True}
    assert sent["metadata"]["uid"] == "7"
    assert sent["metadata"]["annotations"]["foresail.dev/requester"] == "bob"
    assert "everything is as it was before" in capsys.readouterr().err


def test_an_undo_names_what_it_takes_away_for_good(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    volumes = [{"claim": name, "volume": f"pv-{name}"} for name in ("data", "cache")]
    completed = content(plan=PLAN, volumes=volumes, undoUntil="2999-01-01T00:00:00Z")
    answers = {f"{GROUP}/back": completed}
    assert run(tmp_path, answers, "undo", "back")[0] != 0, "nobody has confirmed it"
    told = capsys.readouterr().err
    assert (
        "what was written since to the volumes of data, cache, and what the rollback has created: configmaps/gone"
        in told
    )
    assert "To keep it, take a backup first." in told


@pytest.mark.parametrize(
    ("found", "problem"),
    [
        (seen(undoUntil="2026-11-18T07:00:00Z"), "could be undone until 2026-11-18 07:00"),
        (seen("Refused", "InTheWay"), "has changed nothing"),
        (seen("Planned", "Planned"), "has changed nothing"),
        (seen("Undone", "Undone"), "is undone already"),
    ],
)
def test_what_cannot_be_undone_is_left_alone(found: Seen, problem: str) -> None:
    with pytest.raises(CommandError, match=problem):
        check(found, NOW)


def test_a_manifest_needs_no_cluster(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["rollback", "create", "back", "--to=daily", "-n=shop", "-o=json", "--kubeconfig=missing"]) == 0
    made = json.loads(capsys.readouterr().out)
    assert made["metadata"] == {"name": "back", "namespace": "shop"}


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--volumes=some",), "--volumes: 'some' is not one of none"),
        (("--dry-run", f"--plan-digest={DIGEST}"), "exclude each other"),
    ],
)
def test_what_the_api_does_not_accept_is_refused_here(
    words: tuple[str, ...], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    try:
        code = main(["rollback", "create", "--to=daily", *words, "--kubeconfig=missing"])
    except SystemExit as ended:
        code = int(ended.code or 0)
    assert code == 2
    assert said in capsys.readouterr().err


def test_a_long_name_is_refused_before_the_api_server_does(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["rollback", "create", "a" * 41, "--to=daily", "--kubeconfig=missing"]) == 2
    assert "use at most 40" in capsys.readouterr().err
