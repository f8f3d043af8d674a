"""What a restore did, where its tenant looks: after the wait, in the list, and in `describe`."""

from pathlib import Path
from typing import Any

import pytest

from foresail.api.instants import stamp
from foresail.api.nonadmin import RestoredGroup
from foresail.cli.main import main
from foresail.cli.tenant.describe import described
from foresail.cli.tenant.explain import explained
from foresail.cli.tenant.get import request_table
from foresail.cli.tenant.held import GONE, NEW, Change, HeldKind
from foresail.cli.tenant.restored import follow_up, new_among, restored_text
from foresail.cli.tenant.wait import is_explained
from foresail.kube.clock import now
from foresail.selfservice.families import RESTORES
from tests.unit.cli.canned import canned
from tests.unit.cli.test_tenant import NOW, condition, seen, wire

ITEMS = {
    "created": {"count": 1, "names": ["Secret db"]},
    "left": {"count": 7, "names": ["ConfigMap settings", "Deployment web", "Service a", "Service b", "Service c"]},
    "unchanged": 2,
    "following": 3,
}
TABLE = """\
  created                     1  Secret db
  changed back                0
  left as they are            7  ConfigMap settings, Deployment web, Service a, Service b, Service c and 2 more
  failed                      0
  unchanged since the backup  2"""
LAST = "  follow automatically        3  Pods, ReplicaSets and the like"
CHANGE_BACK = (
    "7 objects exist and differ from the backup. To change them back, if the policy allows it: "
    "foresail restore create NAME --from-backup first --existing-resource-policy update -n shop"
)


def status(items: dict[str, Any] | None = None, message: str = "Restore completed", **velero: Any) -> dict[str, Any]:  # noqa: ANN401
    return {
        "phase": "Created",
        "conditions": [condition("Succeeded", "True", "Completed", message)],
        "veleroRestore": {"name": "r", "status": {"phase": "Completed", "warnings": 7, **velero}},
        **({"restoredItems": items} if items is not None else {}),
    }


def test_the_wait_ends_with_what_the_restore_did_and_how_to_change_more(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    answers = {
        "/apis/oadp.openshift.io/v1alpha1/namespaces/shop/nonadminrestores/daily": wire(RESTORES, status=status(ITEMS))
    }
    with canned(tmp_path, answers) as server:
        assert main(["restore", "wait", "daily", "-n", "shop", "--kubeconfig", str(server.kubeconfig)]) == 0
    assert capsys.readouterr().err.splitlines()[-9:] == [
        "NonAdminRestore shop/daily: Restore completed",
        *TABLE.splitlines(),
        LAST,
        f"hint: {CHANGE_BACK}",
        "hint: see what is not in the backup with foresail backup contents first --diff -n shop",
    ]


def test_what_is_new_is_looked_for_where_the_restore_went() -> None:
    own = seen(RESTORES, spec={"restoreSpec": {"backupName": "first"}})
    mapped = seen(RESTORES, spec={"restoreSpec": {"backupName": "first", "namespaceMapping": {"shop": "staging"}}})
    assert (own.target, mapped.target) == ("shop", "staging")


def test_after_a_restore_into_another_namespace_no_advice_names_the_one_that_was_copied_from(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    spec = {"restoreSpec": {"backupName": "first", "namespaceMapping": {"shop": "staging"}}}
    restore = wire(RESTORES, spec=spec, status=status({"created": {"count": 1, "names": ["Secret db"]}}))
    with canned(tmp_path, {"/apis/oadp.openshift.io/v1alpha1/namespaces/shop/nonadminrestores/daily": restore}) as api:
        assert main(["restore", "wait", "daily", "-n", "shop", f"--kubeconfig={api.kubeconfig}"]) == 0
    told = capsys.readouterr().err
    assert "backup contents first --diff" not in told, "that compares with the namespace of the backup"
    copied = seen(RESTORES, spec=spec, status=restore["status"])
    assert explained(copied).endswith("check the restored objects with kubectl get all -n staging".capitalize())
    assert "--diff" not in described(copied, NOW)


def test_a_refused_restore_into_another_namespace_can_be_asked_for_again() -> None:
    refused = [condition("Accepted", "False", "InvalidRestoreSpec", "Nothing may be restored into namespace staging")]
    text = explained(seen(RESTORES, status={"phase": "BackingOff", "conditions": refused}))
    assert "Next: The restore is not allowed as it was asked for. " in text
    assert text.endswith("then run foresail restore retry daily -n shop")


def test_the_wait_is_not_over_before_the_operator_has_read_what_a_restore_did() -> None:
    just_now, long_ago = stamp(now()), "2026-11-15T11:00:31Z"
    assert not is_explained(seen(RESTORES, status=status(completionTimestamp=just_now)))
    assert is_explained(seen(RESTORES, status=status(completionTimestamp=long_ago)))
    told = "Restore completed. Nothing was changed"
    assert is_explained(seen(RESTORES, status=status(ITEMS, told, completionTimestamp=just_now)))


def test_the_list_says_what_a_restore_left() -> None:
    restore = seen(RESTORES, status=status(ITEMS))
    assert request_table([restore], NOW, wide=False).endswith("7 left as they are")
    assert "Created 1 (Secret db); left 7 as they are (ConfigMap settings, " in request_table([restore], NOW, wide=True)
    whole = seen(RESTORES, status=status({"created": {"count": 1}}))
    assert request_table([whole], NOW, wide=False).endswith("60m")


def test_describe_has_the_same_rows_and_ends_with_the_option() -> None:
    text = described(seen(RESTORES, status=status(ITEMS)), NOW)
    new = "  not in the backup: see foresail backup contents first --diff -n shop"
    assert f"Objects:\n{TABLE}\n{LAST}\n{new}" in text
    assert text.endswith(f"Next: {CHANGE_BACK}")
    assert explained(seen(RESTORES, status=status(ITEMS))).endswith(CHANGE_BACK)


def test_a_restore_that_changes_back_is_not_told_to_change_back() -> None:
    spec = {"restoreSpec": {"backupName": "first", "existingResourcePolicy": "update"}}
    assert follow_up(seen(RESTORES, spec=spec, status=status(ITEMS))) == ""
    assert follow_up(seen(RESTORES, status=status({"created": {"count": 1}}))) == ""


def test_the_command_that_changes_back_changes_nothing_that_was_not_restored() -> None:
    """A copy in another namespace must not be a reason to overwrite the one that it was copied from."""

    def told(**spec: object) -> str:
        return follow_up(seen(RESTORES, spec={"restoreSpec": {"backupName": "first", **spec}}, status=status(ITEMS)))

    assert told().endswith("--from-backup first --existing-resource-policy update -n shop")
    assert "--from-backup first --to staging --existing" in told(namespaceMapping={"shop": "staging"})
    partial = told(includedResources=["configmaps"])
    assert partial.endswith("another restore with the same options and --existing-resource-policy update")
    assert "restore create" not in partial


def test_what_is_not_in_the_backup_leaves_out_requests_and_what_follows_by_itself() -> None:
    held = [HeldKind("Deployment", "apps", "v1", ("web",)), HeldKind("ReplicaSet", "apps", "v1", ("web-5d4",))]
    changes = [
        Change(NEW, "ConfigMap", "rogue"),
        Change(GONE, "ConfigMap", "gone"),
        Change(NEW, "Pod", "web-5d4-x"),
        Change(NEW, "ReplicaSet.apps", "web-7f9"),
        Change(NEW, "NonAdminRestore.oadp.openshift.io", "undo"),
        Change(NEW, "ConfigMap", "kube-root-ca.crt"),
    ]
    new = new_among(changes, held)
    assert new == RestoredGroup(1, ("ConfigMap rogue",))
    restore = seen(RESTORES, status=status(ITEMS))
    assert restore.restored is not None
    assert "\n  not in the backup           1  ConfigMap rogue\n" in restored_text(restore.restored, new)
