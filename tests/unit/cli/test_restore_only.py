"""`foresail restore create --only`: exactly the named objects, by Velero or as the caller, and nothing else."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from foresail.cli.main import main
from foresail.cli.tenant.held import HeldKind
from foresail.cli.tenant.only import is_exact, read_only
from foresail.proof.restore_plan.decide import written_as
from foresail.proof.restore_plan.items import ItemKey
from foresail.proof.restore_plan.modifiers import merged
from foresail.proof.restore_plan.prepare import Step
from tests.unit.cli.canned import Canned
from tests.unit.cli.test_tenant_diff import NAMESPACE, NOW_SETTINGS, SETTINGS, body_of, cluster, listed, live
from tests.unit.console.test_report import TENANTS

RESTORES = f"{TENANTS}/nonadminrestores"
MAPS = f"{NAMESPACE}/configmaps"
UPDATE = ("--existing-resource-policy", "update")


def create(server: Canned, *words: str) -> int:
    where = ["-n", "shop", "--kubeconfig", str(server.kubeconfig)]
    return main(["restore", "create", "undo", "--from-backup", "first", *where, *words])


def maps(_: str, sent: dict[str, Any]) -> dict[str, Any]:
    return sent or listed(NOW_SETTINGS)


def settings(_: str, sent: dict[str, Any]) -> dict[str, Any]:
    body: dict[str, Any] = merged(NOW_SETTINGS, sent)
    return body


def answers() -> dict[str, Any]:
    return {MAPS: maps, f"{MAPS}/settings": settings, RESTORES: {"metadata": {"name": "undo", "namespace": "shop"}}}


def sent(server: Canned, *, kinds: tuple[str, ...] = ("configmaps", "secrets", "nonadminrestores")) -> list[str]:
    """Return the writes of objects that stay, without dry runs."""
    pairs = zip(server.asked, server.queries, strict=True)
    kept = [asked for asked, query in pairs if not asked.startswith("GET ") and "dryRun" not in query]
    return [each for each in kept if any(f"/{kind}" in each for kind in kinds)]


def test_objects_that_are_all_of_their_kinds_come_back_by_velero(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with cluster(tmp_path, denied="TargetNotServed", **answers()) as server:
        assert create(server, "--only", "secret/key") == 0
    assert sent(server) == [f"POST {RESTORES}"]
    spec = server.bodies[f"POST {RESTORES}"]["spec"]["restoreSpec"]
    assert spec == {"backupName": "first", "includedResources": ["secrets"]}
    told = capsys.readouterr().err
    assert (
        "secret/key is all that the backup has of secrets, so Velero restores it as NonAdminRestore shop/undo" in told
    )


def test_an_object_among_others_is_changed_back_as_the_caller_after_the_plan_is_shown(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with cluster(tmp_path, **answers()) as server:
        assert create(server, "--only", "cm/settings", *UPDATE, "--confirm") == 0
    assert sent(server) == [f"PATCH {MAPS}/settings"]
    patch = server.bodies[f"PATCH {MAPS}/settings"]
    assert patch == {"data": {"tea": "3", "old": "1", "new": None}, "metadata": {"resourceVersion": "7"}}
    told = capsys.readouterr()
    assert "data.tea: 999 -> 3" in told.out
    assert "The backup has more of configmaps, and Velero has no filter by name" in told.err
    assert "configmaps/shop/settings changed back." in told.err


def test_a_lost_object_is_created_without_marks_of_a_restore(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with cluster(tmp_path, **answers()) as server:
        assert create(server, "--only", "configmaps/lost", "--confirm") == 0
    assert sent(server) == [f"POST {MAPS}"]
    expected = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "lost", "namespace": "shop"}}
    assert server.bodies[f"POST {MAPS}"] == expected
    assert "configmaps/shop/lost created." in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "named"),
    [
        ([], ""),
        (["--wait", "--labels", "a=b"], "--labels, --wait"),
        (["--annotations", "a=b"], "--annotations"),
        (["--parallel-files-download", "4", "--item-operation-timeout", "1h"], "--item-operation-timeout, --parallel"),
    ],
)
def test_options_of_a_request_that_is_not_made_are_named(
    words: list[str], named: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with cluster(tmp_path, **answers()) as server:
        assert create(server, "--only", "configmaps/lost", "--confirm", *words) == 0
    told = capsys.readouterr().err
    assert ("no NonAdminRestore is made" in told) is bool(named)
    assert f"so these have no effect: {named}" in told or not named


def test_without_update_an_object_that_exists_stays_as_it_is(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with cluster(tmp_path, **answers()) as server:
        assert create(server, "--only", "configmap/settings", "--confirm") == 0
    assert sent(server) == []
    told = capsys.readouterr().err
    assert "Nothing to restore" in told
    assert "hint: 1 object exists and differs; to change it back: --existing-resource-policy update" in told


@pytest.mark.parametrize("words", [[], ["--dry-run", "server"]])
def test_without_a_yes_nothing_is_written(
    words: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stdin.isatty", lambda: False)
    with cluster(tmp_path, **answers()) as server:
        assert create(server, "--only", "configmap/settings", *UPDATE, *words) == (0 if words else 2)
    assert sent(server) == []
    told = capsys.readouterr()
    assert "data.tea" in told.out
    assert ("would be restored (server dry run)" if words else "add --confirm") in told.err


def test_a_refused_object_keeps_the_others_from_being_written(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def refusing(_: str, given: dict[str, Any]) -> dict[str, Any]:
        if not given:
            return listed(NOW_SETTINGS)
        return {"kind": "Status", "code": 403, "reason": "Forbidden", "message": "no configmaps for you"}

    with cluster(tmp_path, **{**answers(), MAPS: refusing}) as server:
        assert create(server, "--only", "configmap/lost,configmap/settings", *UPDATE, "--confirm") == 1
    assert sent(server) == []
    told = capsys.readouterr().err
    assert "configmaps/shop/lost: no configmaps for you" in told
    assert "nothing was restored" in told


def test_an_object_that_changed_since_the_plan_is_left_alone(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    times: list[dict[str, Any]] = []

    def changing(_: str, given: dict[str, Any]) -> dict[str, Any]:
        if not given:
            return NOW_SETTINGS
        times.append(given)
        if len(times) == 1:  # the dry run
            return given
        return {"kind": "Status", "code": 409, "reason": "Conflict", "message": "it has been modified"}

    with cluster(tmp_path, **{**answers(), f"{MAPS}/settings": changing}) as server:
        assert create(server, "--only", "configmap/lost,configmap/settings", *UPDATE, "--confirm") == 1
    told = capsys.readouterr().err
    assert "configmaps/shop/settings has changed since the plan was made" in told
    assert "restored before that: configmaps/shop/lost" in told


@pytest.mark.parametrize(
    ("only", "problem"),
    [
        ("pvc/data", "volumes cannot be restored by name"),
        ("configmap/nobody", "backup shop/first has no configmap/nobody"),
        ("gadget/a", "the cluster does not serve gadget"),
        ("namespace/shop", "namespace/shop has no namespace"),
        ("nonadminbackups.oadp.openshift.io/a", "the cluster does not serve"),
        ("configmap", "'configmap' is not KIND/NAME"),
        ("configmap/a/b", "'configmap/a/b' is not KIND/NAME"),
    ],
)
def test_what_cannot_be_restored_by_name_is_refused(
    only: str, problem: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with cluster(tmp_path, **answers()) as server:
        assert create(server, "--only", only, "--confirm") != 0
    assert sent(server) == []
    assert problem in capsys.readouterr().err


@pytest.mark.parametrize("words", [["-l", "a=b"], ["--include-resources", "secrets"], ["-o", "yaml"], ["--wait"]])
def test_options_that_say_something_else_are_refused(
    words: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with cluster(tmp_path, **answers()) as server:
        code = create(server, "--only", "configmap/settings", "--confirm", *words)
    is_wait = words == ["--wait"]
    assert code == (0 if is_wait else 2)
    assert is_wait or "--only cannot be combined with" in capsys.readouterr().err


def test_without_the_contents_one_of_many_cannot_be_restored_and_the_hint_says_what_can(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with cluster(tmp_path, denied="ContentsDenied", **answers()) as server:
        assert create(server, "--only", "configmap/settings", "--confirm") == 1
    assert sent(server) == []
    assert "--include-resources configmaps restores all of the kind" in capsys.readouterr().err


def test_pods_never_come_by_velero_because_they_bring_their_claims() -> None:
    held = [HeldKind("Pod", "", "v1", ("a",)), HeldKind("Secret", "", "v1", ("a", "b"))]
    assert not is_exact({("", "Pod"): {"a"}}, held)
    assert is_exact({("", "Secret"): {"a", "b"}}, held)
    assert not is_exact({("", "Secret"): {"a"}}, held)


def test_a_body_with_another_name_is_written_under_the_name_that_was_asked_for() -> None:
    """A bucket may hold anything: the plan shows the name of the file."""
    key = ItemKey("configmaps", "shop", "settings")
    made = written_as(Step(key, key, body_of("ConfigMap", "other")), None, "")
    assert made is not None
    assert made.body["metadata"]["name"] == "settings"


def test_an_object_that_may_not_be_read_is_never_written_over(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def existing(_: str, given: dict[str, Any]) -> dict[str, Any]:
        return {"kind": "Status", "code": 409, "reason": "AlreadyExists", "message": "it exists"} if given else listed()

    hidden = {f"{MAPS}/settings": {"kind": "Status", "code": 404, "reason": "NotFound", "message": "hidden"}}
    with cluster(tmp_path, **{**answers(), MAPS: existing, **hidden}) as server:
        assert create(server, "--only", "configmap/settings", *UPDATE, "--confirm") == 0
    assert sent(server) == []
    assert "Nothing to restore" in capsys.readouterr().err


def test_names_are_read_from_several_options() -> None:
    assert read_only(["cm/a,secret/b", "deploy/c"]) == [("cm", "a"), ("secret", "b"), ("deploy", "c")]


def test_what_is_written_has_nothing_that_the_cluster_sets() -> None:
    key = ItemKey("configmaps", "shop", "settings")
    marks = {"velero.io/backup-name": "b", "velero.io/restore-name": "r", "own": "x"}
    body = body_of("ConfigMap", "settings", data={"a": "b"})
    body["metadata"] |= {"labels": marks, "managedFields": [{"manager": "x"}]}
    made = written_as(Step(key, key, body), None, "update")
    assert made is not None
    assert made.body["metadata"] == {"name": "settings", "namespace": "shop", "labels": {"own": "x"}}
    same = live({**SETTINGS.body, "metadata": {**SETTINGS.body["metadata"], "labels": {"velero.io/restore-name": "r"}}})
    assert written_as(Step(SETTINGS.key, SETTINGS.key, SETTINGS.body), same, "update") is None
    text = json.dumps(made.body)
    assert not re.search("uid|resourceVersion|managedFields|velero.io", text)
