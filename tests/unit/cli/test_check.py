"""`foresail check`: tables and explanations of RestoreChecks, from objects as the API server returns them."""

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from foresail.cli.check.checks import Progress, check_table, explained, progress, report_result
from foresail.cli.errors import CommandError
from foresail.cli.main import main
from foresail.plan import Key
from tests.unit.cli.canned import canned

NOW = datetime(2026, 11, 16, 7, tzinfo=UTC)
LAST = {
    "result": "Fail",
    "reason": "ItemsRefused",
    "message": "ConfigMap shop/a: refused",
    "backup": "nightly-1",
    "started": "2026-11-16T06:00:00Z",
    "completed": "2026-11-16T06:01:00Z",
    "namespaces": 1,
    "itemsExpected": 7,
    "itemsFound": 6,
    "itemsNotChecked": 2,
    "restoreSeconds": 3,
    "evidence": "check-0123456789-evidence",
}
READY = {"type": "Ready", "status": "True", "reason": "Waiting", "message": "Waiting for the next run"}
CHECK = {
    "metadata": {"name": "nightly"},
    "status": {"last": LAST, "lastPassed": "2026-11-15T07:00:00Z", "conditions": [READY]},
}


def test_the_table_has_the_last_result_and_when_a_check_last_passed() -> None:
    header, row = check_table([CHECK], NOW, wide=False, width=None).splitlines()
    assert header.split() == ["NAME", "RESULT", "REASON", "BACKUP", "FOUND", "SECONDS", "CHECKED", "PASSED", "STATUS"]
    assert row.split() == ["nightly", "Fail", "ItemsRefused", "nightly-1", "6/7", "3", "59m", "24h", "Waiting"]


def test_a_check_that_no_operator_has_seen_has_no_result() -> None:
    fresh = {"metadata": {"name": "nightly"}}
    assert check_table([fresh], NOW, wide=True, width=None).splitlines()[1].split() == ["nightly", *["-"] * 8]
    assert "not served yet: no operator has seen it" in explained(fresh, {})


def test_an_explanation_lists_every_problem_of_the_evidence() -> None:
    problems = [{"reason": "ItemsRefused", "message": "ConfigMap shop/a: refused"}]
    text = explained(CHECK, {"problems": problems, "problemCount": 3})
    assert "6 of 7 found; 2 not checked: cluster-scoped, or of kinds" in text
    assert text.endswith("Problems:\n  ItemsRefused: ConfigMap shop/a: refused\n  and 2 more")


def test_an_explanation_of_a_tenant_s_check_has_the_problems_of_its_status() -> None:
    problems = [{"reason": "ItemsMissing", "message": f"ConfigMap shop/{name} is missing"} for name in ("a", "b")]
    text = explained({"metadata": {"name": "own"}, "status": {"last": {**LAST, "problems": problems}}}, {})
    assert text.endswith("  ItemsMissing: ConfigMap shop/a is missing\n  ItemsMissing: ConfigMap shop/b is missing")


def test_an_explanation_without_evidence_has_the_message() -> None:
    assert explained(CHECK, {}).endswith("Problems:\n  ItemsRefused: ConfigMap shop/a: refused")


def test_a_failed_check_is_an_error_with_its_reason() -> None:
    assert report_result(Key("velero", "nightly"), {"result": "Pass", "message": "all"}) == 0
    with pytest.raises(CommandError, match="velero/nightly failed: ItemsRefused: ConfigMap shop/a: refused"):
        report_result(Key("velero", "nightly"), LAST)


def requested(reason: str, *, handled: str = "", run: str = "") -> dict[str, Any]:
    ready = {"type": "Ready", "reason": reason, "message": f"it is {reason}"}
    return {"status": {"handledRequest": handled, "run": run and {"id": run}, "conditions": [ready]}}


@pytest.mark.parametrize("reason", ["NoBackup", "DataDisabled", "Suspended", "NotAllowed", "QuotaExceeded"])
def test_waiting_for_a_check_that_cannot_start_ends_with_the_reason(reason: str) -> None:
    key, check = Key("velero", "nightly"), requested(reason)
    assert progress(key, check, "now", timedelta(seconds=2)) == Progress(), "the condition may be older"
    with pytest.raises(CommandError, match=f"velero/nightly does not start: it is {reason}"):
        progress(key, check, "now", timedelta(seconds=5))


def test_waiting_for_a_check_says_why_it_has_not_begun() -> None:
    key, late = Key("velero", "nightly"), timedelta(minutes=1)
    assert progress(key, requested("TooSoon"), "now", late).text == "it is TooSoon."
    assert progress(key, requested("Running", handled="before", run="a"), "now", late) == Progress()
    assert progress(key, requested("Running", handled="now", run="b"), "now", late) == Progress(has_begun=True)
    ended = requested("Waiting", handled="now")
    assert progress(key, ended, "now", late) == Progress(has_ended=True, has_begun=True)


@pytest.mark.parametrize("check", [{}, requested("Waiting")], ids=["no status", "not handled"])
def test_a_check_that_no_operator_sees_is_an_error_after_a_minute(check: dict[str, Any]) -> None:
    key = Key("velero", "nightly")
    assert progress(key, check, "now", timedelta(seconds=59)) == Progress()
    with pytest.raises(CommandError, match=r"no operator has seen the request[^$]*foresail-checks"):
        progress(key, check, "now", timedelta(minutes=1))


def test_a_result_of_an_earlier_run_is_not_that_of_the_request(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    status: dict[str, Any] = {"last": {"result": "Pass", "message": "all", "id": "a"}}

    def answer(_: str, sent: Any) -> dict[str, Any]:  # noqa: ANN401
        if sent:  # the operator begins at once, and gives up because the Backup is deleted
            status["handledRequest"] = sent["metadata"]["annotations"]["foresail.dev/check-now"]
        return {**CHECK, "spec": {}, "status": status}

    path = "/apis/foresail.dev/v1alpha1/namespaces/velero/restorechecks/nightly"
    with canned(tmp_path, {path: answer}) as server:
        assert main(["check", "run", "nightly", "--wait", "--kubeconfig", str(server.kubeconfig)]) == 1
    assert "NoResult: its Backup was deleted" in capsys.readouterr().err


SOON, EARLIER = "2999-01-01T00:00:00Z", "2026-11-16T06:00:00Z"
HANDLED: dict[str, Any] = {"handledRequest": "REQUEST"}


def ended(run: str, result: str = "Pass", started: str = EARLIER) -> dict[str, Any]:
    return {"last": {"id": run, "result": result, "reason": "ItemsMissing", "message": "all", "started": started}}


@pytest.mark.parametrize(
    ("polls", "expected"),
    [
        pytest.param(
            [{"run": {"id": "a"}}, {**HANDLED, **ended("a")}], "NoResult", id="an earlier run ends between two polls"
        ),
        pytest.param([{**HANDLED, **ended("a")}], "NoResult", id="an earlier run is never seen"),
        pytest.param([{**HANDLED, **ended("b", started=SOON)}], "passed: all", id="it ends before the first poll"),
        pytest.param(
            [{"run": {"id": "a"}}, {**ended("a"), **HANDLED, "run": {"id": "b"}}, {**HANDLED, **ended("b")}],
            "passed: all",
            id="an earlier run ends first",
        ),
        pytest.param(
            [{**HANDLED, "run": {"id": "b"}}, {**HANDLED, **ended("b", "Fail"), "run": {"id": "c"}}],
            "ItemsMissing: all",
            id="another run begins at once",
        ),
        pytest.param(
            [{**HANDLED, "run": {"id": "b"}}, {"handledRequest": "another", **ended("b")}],
            "passed: all",
            id="another request comes",
        ),
        pytest.param(
            [{**HANDLED, "run": {"id": "b"}}, {**HANDLED, **ended("c", started=SOON)}],
            "NoResult",
            id="another run ends after it was abandoned",
        ),
    ],
)
def test_only_the_result_of_the_run_that_serves_the_request_counts(
    polls: list[dict[str, Any]],
    expected: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("foresail.cli.check.checks._PAUSE", 0.0)
    requests: list[str] = []
    rest = iter(polls)

    def answer(_: str, sent: Any) -> dict[str, Any]:  # noqa: ANN401
        if sent:
            requests.append(sent["metadata"]["annotations"]["foresail.dev/check-now"])
        status = next(rest) if requests and not sent else {}
        if status.get("handledRequest") == "REQUEST":
            status = {**status, "handledRequest": requests[0]}
        return {**CHECK, "spec": {}, "status": status}

    path = "/apis/foresail.dev/v1alpha1/namespaces/velero/restorechecks/nightly"
    with canned(tmp_path, {path: answer}) as server:
        code = main(["check", "run", "nightly", "--wait", "--timeout=20s", "--kubeconfig", str(server.kubeconfig)])
    assert expected in capsys.readouterr().err
    assert code == (0 if "passed" in expected else 1)


def test_waiting_for_a_check_ends_after_the_timeout(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = "/apis/foresail.dev/v1alpha1/namespaces/velero/restorechecks/nightly"
    words = ["check", "run", "nightly", "--wait", "--timeout=1ms"]
    with canned(tmp_path, {path: {**CHECK, "spec": {}}}) as server:
        assert main([*words, "--kubeconfig", str(server.kubeconfig)]) == 1
    assert "check velero/nightly: timed out; it is not started" in capsys.readouterr().err


def test_a_namespace_without_checks_says_so(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    none = {"kind": "List", "apiVersion": "v1", "metadata": {"resourceVersion": "1"}, "items": []}
    with canned(tmp_path, {"/apis/foresail.dev/v1alpha1/namespaces/velero/restorechecks": none}) as server:
        assert main(["check", "get", "--kubeconfig", str(server.kubeconfig)]) == 0
    assert capsys.readouterr().err == "No RestoreChecks found in namespace velero\n"


def test_all_namespaces_are_listed_with_their_names(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    own = {**CHECK, "metadata": {"name": "own", "namespace": "shop"}}
    found = {"kind": "List", "apiVersion": "v1", "metadata": {"resourceVersion": "1"}, "items": [own]}
    with canned(tmp_path, {"/apis/foresail.dev/v1alpha1/restorechecks": found}) as server:
        assert main(["check", "get", "-A", "--kubeconfig", str(server.kubeconfig)]) == 0
        assert main(["check", "get", "own", "-A", "--kubeconfig", str(server.kubeconfig)]) == 2
    header, row = capsys.readouterr().out.splitlines()
    assert (header.split()[:2], row.split()[:2]) == (["NAMESPACE", "NAME"], ["shop", "own"])


def test_an_explanation_of_data_says_loudly_that_the_network_was_open() -> None:
    data = {
        "fence": "NotEnforced",
        "reached": ["API server"],
        "podsReady": 2,
        "readySeconds": 9,
        "assertionExitCode": 3,
    }
    text = explained({**CHECK, "status": {"last": {**LAST, **data}}}, {})
    lines = {line.partition(":")[0]: line.partition(":")[2].strip() for line in text.splitlines()}
    assert lines["Fence"] == "NOT ENFORCED: a pod reached API server"
    assert (lines["Pods"], lines["Assertion"]) == ("2 ready after 9 s", "exit code 3")


OWN_CHECKS = "/apis/foresail.dev/v1alpha1/namespaces/shop/restorechecks"
REVIEWS = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
CREATE = ["check", "create", "own", "-n", "shop", "--from-schedule", "nightly"]


def of_namespace(*checks: dict[str, Any], maximum: int | None, may_read: bool = True) -> dict[str, Any]:
    """Return a namespace with a policy that allows so many RestoreChecks; None: no policy applies."""
    listed: dict[str, Any] = {"metadata": {"resourceVersion": "1"}}
    rules = {"namespaceSelector": {}, "restoreChecks": {"maximum": maximum}}
    policies = [] if maximum is None else [{"metadata": {"name": "web"}, "spec": rules}]
    return {
        REVIEWS: {"status": {"allowed": may_read}},
        "/apis/foresail.dev/v1alpha1/selfservicepolicies": {**listed, "items": policies},
        "/api/v1/namespaces/shop": {"metadata": {"name": "shop", "uid": "u"}},
        "/apis/apps/v1/deployments": {**listed, "items": []},
        OWN_CHECKS: {**listed, "items": list(checks)},
    }


@pytest.mark.parametrize(
    ("maximum", "checks", "says"),
    [
        (None, 0, "NotAllowed: RestoreChecks are not enabled in namespace shop"),
        (0, 0, "NotAllowed: RestoreChecks are not enabled in namespace shop"),
        (1, 1, "QuotaExceeded: The policy serves 1 RestoreChecks of namespace shop"),
    ],
    ids=["no policy", "a policy without checks", "a full one"],
)
def test_a_check_that_the_policy_does_not_allow_is_not_created(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], maximum: int | None, checks: int, says: str
) -> None:
    found = [{"metadata": {"name": f"c{number}", "namespace": "shop"}} for number in range(checks)]
    with canned(tmp_path, of_namespace(*found, maximum=maximum)) as server:
        assert main([*CREATE, "--kubeconfig", str(server.kubeconfig)]) == 1
        assert f"POST {OWN_CHECKS}" not in server.asked
    error, advice = capsys.readouterr().err.splitlines()
    assert error.startswith(f"error: RestoreCheck shop/own is not created: {says}")
    assert "foresail policy usage -n shop" in advice


@pytest.mark.parametrize(
    ("reason", "code", "says"),
    [
        ("NotAllowed", 1, "was created, but does not run: NotAllowed: it is so"),
        ("NoBackup", 0, "RestoreCheck shop/own created. it is so."),
    ],
)
def test_a_tenant_who_may_not_read_the_policy_is_told_the_operators_answer_at_once(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], reason: str, code: int, says: str
) -> None:
    ready = {"type": "Ready", "status": "False", "reason": reason, "message": "it is so"}
    made = {"metadata": {"name": "own", "namespace": "shop"}, "status": {"conditions": [ready]}}
    answers = of_namespace(maximum=0, may_read=False) | {f"{OWN_CHECKS}/own": made}
    with canned(tmp_path, answers) as server:
        assert main([*CREATE, "--kubeconfig", str(server.kubeconfig)]) == code
        assert server.bodies[f"POST {OWN_CHECKS}"]["spec"] == {"backups": {"nonAdminSchedule": "nightly"}}
    assert says in capsys.readouterr().err


@pytest.mark.parametrize("is_own", [True, False])
def test_a_team_that_asks_for_the_checks_of_velero_is_told_where_its_own_are(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], *, is_own: bool
) -> None:
    forbidden = {"kind": "Status", "reason": "Forbidden", "message": "not for you", "code": 403}
    path = OWN_CHECKS if is_own else OWN_CHECKS.replace("shop", "velero")
    words = ["check", "get", *(("-n", "shop") if is_own else ())]
    with canned(tmp_path, {path: forbidden}) as server:
        assert main([*words, "--kubeconfig", str(server.kubeconfig)]) == 1
    assert ("add -n NAMESPACE" in capsys.readouterr().err) != is_own


def test_a_manifest_of_a_check_needs_no_cluster(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", "create", "own", "-n", "shop", "-o", "json"]) == 0
    assert '"nonAdminBackups": {}' in capsys.readouterr().out
    assert (
        main(["check", "create", "nightly", "--from-schedule", "nightly", "--schedule", "0 6 * * *", "-o", "yaml"]) == 0
    )
    shown = capsys.readouterr().out
    assert "schedule: nightly" in shown
    assert "schedule: 0 6 * * *" in shown


@pytest.mark.parametrize(
    "words", [["nightly"], ["Nightly", "-n", "shop"], ["own", "-n", "shop", "--schedule", "never"]]
)
def test_a_check_that_cannot_be_meant_is_refused(words: list[str]) -> None:
    assert main(["check", "create", *words, "-o", "yaml"]) == 2
