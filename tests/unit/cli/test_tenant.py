"""`foresail backup` and `foresail restore`: what is sent, what is shown, and when a wait is over."""

import argparse
import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import msgspec
import pytest

from foresail.cli.access.cluster import refusal
from foresail.cli.access.refused_writes import RefusedWrite
from foresail.cli.errors import CommandError
from foresail.cli.main import main, parser
from foresail.cli.output.messages import confirm_deletion
from foresail.cli.output.objects import as_text
from foresail.cli.output.progress import bar
from foresail.cli.output.words import short
from foresail.cli.tenant.delete import request_for
from foresail.cli.tenant.describe import described
from foresail.cli.tenant.explain import as_data, explained, with_refusal
from foresail.cli.tenant.get import request_table
from foresail.cli.tenant.spec import request_object
from foresail.cli.tenant.tenant_request import TenantRequest, decode_request
from foresail.cli.tenant.wait import progress_of, remark, verdict
from foresail.kube.connect import ConnectError, namespace_of_context
from foresail.kube.failures import Cause, Failure
from foresail.plan import Key
from foresail.selfservice.families import BACKUPS, RESTORES, Family
from foresail.selfservice.reasons import Reason
from foresail.selfservice.requests.outcome import outcome

NOW = datetime(2026, 11, 15, 12, 0, 30, tzinfo=UTC)
SOON = timedelta(seconds=1)
EXPIRES = "2026-11-16 12:00:30 UTC (in 24h)"


def parsed(*words: str) -> argparse.Namespace:
    return parser().parse_args([*words, "-n", "shop"])


def wire(family: Family = BACKUPS, **given: Any) -> dict[str, Any]:  # noqa: ANN401 - JSON
    metadata = {"name": "daily", "namespace": "shop", "uid": "7b7c", "generation": 1}
    metadata["creationTimestamp"] = "2026-11-15T11:00:30Z"
    return {
        "apiVersion": family.kind.api_version,
        "kind": family.kind.name,
        "metadata": {**metadata, **given.get("metadata", {})},
        "spec": {f"{family.word}Spec": {"ttl": "24h"} if family is BACKUPS else {"backupName": "first"}},
        **{name: given[name] for name in ("spec", "status") if name in given},
    }


def seen(family: Family = BACKUPS, **given: Any) -> TenantRequest:  # noqa: ANN401
    return decode_request(family, json.dumps(wire(family, **given)).encode())


def condition(kind: str, status: str, reason: str, message: str = "because") -> dict[str, Any]:
    since = "2026-11-15T11:00:31Z"
    said = {"type": kind, "status": status, "reason": reason, "message": message}
    return {**said, "lastTransitionTime": since, "observedGeneration": 1}


ACCEPTED = condition("Accepted", "True", "BackupAccepted", "backup accepted")
QUEUED = condition("Queued", "True", "BackupScheduled", "Created Velero Backup object")


def with_velero(phase: str, *more: dict[str, Any], position: int = 0, **status: Any) -> TenantRequest:  # noqa: ANN401
    """Return a backup of which Velero says this, with the condition that the operator makes of it."""
    mirror = {"phase": phase, **status}
    said = outcome(BACKUPS, json.dumps(mirror))
    assert said is not None
    ended = condition(said.type, said.status, said.reason.value, said.message)
    return seen(
        status={
            "phase": "Created",
            "conditions": [ACCEPTED, QUEUED, ended, *more],
            "queueInfo": {"estimatedQueuePosition": position},
            "veleroBackup": {"nacuuid": "n", "name": "shop-daily-1", "namespace": "velero", "status": mirror},
        }
    )


def refused(reason: str, phase: str) -> TenantRequest:
    return seen(status={"phase": phase, "conditions": [condition("Accepted", "False", reason)]})


# What is sent


def test_a_backup_without_options_asks_for_the_whole_namespace_and_leaves_the_rest_to_the_policy() -> None:
    assert request_object(BACKUPS, parsed("backup", "create", "daily")) == {
        "apiVersion": "oadp.openshift.io/v1alpha1",
        "kind": "NonAdminBackup",
        "metadata": {"name": "daily", "namespace": "shop"},
        "spec": {"backupSpec": {}},
    }


@pytest.mark.parametrize(
    ("words", "spec"),
    [
        (["--include-resources", "pods,secrets"], {"includedResources": ["pods", "secrets"]}),
        (["--exclude-resources", "pods", "--exclude-resources", "jobs"], {"excludedResources": ["pods", "jobs"]}),
        (["--exclude-cluster-scoped-resources", "*"], {"excludedClusterScopedResources": ["*"]}),
        (["--include-namespace-scoped-resources", "pods"], {"includedNamespaceScopedResources": ["pods"]}),
        (["--exclude-namespace-scoped-resources", "pods"], {"excludedNamespaceScopedResources": ["pods"]}),
        (["--volume-snapshot-locations", "here"], {"volumeSnapshotLocations": ["here"]}),
        (["-l", "app=web"], {"labelSelector": {"matchLabels": {"app": "web"}}}),
        (
            ["--or-selector", "app=web or app=shop"],
            {"orLabelSelectors": [{"matchLabels": {"app": "web"}}, {"matchLabels": {"app": "shop"}}]},
        ),
        (["--ordered-resources", "pods=shop/a,shop/b"], {"orderedResources": {"pods": "shop/a,shop/b"}}),
        (["--resource-policies-configmap", "r"], {"resourcePolicy": {"kind": "configmap", "name": "r"}}),
        (["--include-cluster-resources=false"], {"includeClusterResources": False}),
        (["--snapshot-volumes"], {"snapshotVolumes": True}),
        (["--snapshot-move-data=false"], {"snapshotMoveData": False}),
        (["--default-volumes-to-fs-backup", "true"], {"defaultVolumesToFsBackup": True}),
        (["--storage-location", "here"], {"storageLocation": "here"}),
        (["--data-mover", "velero"], {"datamover": "velero"}),
        (["--ttl", "72h"], {"ttl": "72h0m0s"}),
        (["--csi-snapshot-timeout", "90s"], {"csiSnapshotTimeout": "1m30s"}),
        (["--item-operation-timeout", "4h"], {"itemOperationTimeout": "4h0m0s"}),
        (["--parallel-files-upload", "4"], {"uploaderConfig": {"parallelFilesUpload": 4}}),
    ],
)
def test_each_option_of_a_backup_fills_its_field(words: list[str], spec: dict[str, Any]) -> None:
    made = request_object(BACKUPS, parsed("backup", "create", "daily", *words))
    assert made["spec"] == {"backupSpec": spec}


@pytest.mark.parametrize(
    ("words", "spec"),
    [
        (["--include-resources", "pods"], {"includedResources": ["pods"]}),
        (["--exclude-resources", "pods"], {"excludedResources": ["pods"]}),
        (["--selector", "!old"], {"labelSelector": {"matchExpressions": [{"key": "old", "operator": "DoesNotExist"}]}}),
        (["--include-cluster-resources=false"], {"includeClusterResources": False}),
        (["--restore-volumes"], {"restorePVs": True}),
        (["--preserve-nodeports"], {"preserveNodePorts": True}),
        (["--existing-resource-policy", "update"], {"existingResourcePolicy": "update"}),
        (["--item-operation-timeout", "1h"], {"itemOperationTimeout": "1h0m0s"}),
        (["--parallel-files-download", "2"], {"uploaderConfig": {"parallelFilesDownload": 2}}),
        (["--write-sparse-files"], {"uploaderConfig": {"writeSparseFiles": True}}),
    ],
)
def test_each_option_of_a_restore_fills_its_field(words: list[str], spec: dict[str, Any]) -> None:
    made = request_object(RESTORES, parsed("restore", "create", "back", "--from-backup", "daily", *words))
    assert made["spec"] == {"restoreSpec": {"backupName": "daily", **spec}}


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        (["--ttl", "long"], "--ttl: 'long' is not a duration"),
        (["--selector", "a=b", "--or-selector", "c=d"], "cannot be combined"),
        (["--labels", "plain"], "--labels: 'plain' has no name and value"),
    ],
)
def test_what_cannot_be_meant_is_not_sent(words: list[str], problem: str) -> None:
    with pytest.raises(CommandError, match=problem):
        request_object(BACKUPS, parsed("backup", "create", "daily", *words))


def test_deleting_a_backup_says_in_its_spec_what_becomes_of_the_data_and_a_restore_just_goes() -> None:
    plain, forced = (request_for(seen(), force=force) for force in (False, True))
    assert plain.body == {"metadata": {"uid": "7b7c"}, "spec": {"deleteBackup": True}}
    assert forced.body == {"metadata": {"uid": "7b7c"}, "spec": {"forceDeleteBackup": True}}
    assert (plain.method, plain.key) == ("PATCH", Key("shop", "daily"))
    assert request_for(seen(RESTORES), force=False).method == "DELETE"


def test_nothing_is_deleted_that_nobody_confirms() -> None:
    with pytest.raises(CommandError, match="refusing to delete without confirmation"):
        confirm_deletion(["NonAdminBackup shop/daily"])


# When a wait is over


@pytest.mark.parametrize(
    ("each", "text"),
    [
        (with_velero("Completed", warnings=2), "Backup completed: 2 warnings"),
        (with_velero("Queued", position=3), None),
        (with_velero("InProgress", position=1), None),
        (refused("QuotaExceeded", "New"), None),
        (refused("BackupNotReady", "New"), None),
        (refused("QuotaExceeded", "BackingOff"), None),
        (refused("LocationUnavailable", "BackingOff"), None),
        (seen(), None),
    ],
)
def test_a_wait_succeeds_or_continues(each: TenantRequest, text: str | None) -> None:
    assert verdict(each) == text


@pytest.mark.parametrize(
    ("each", "said"),
    [
        (refused("InvalidBackupSpec", "BackingOff"), "daily was refused: because\nhint: correct the field"),
        (refused("PolicyViolation", "BackingOff"), "daily was refused: because\nhint: correct the field"),
        (refused("RestoredFromBackup", "New"), "daily does not start: because\nhint: run it with"),
        (refused("VeleroBackupNotFound", "Created"), "daily was refused: because\nhint: create another"),
        (refused("NoPolicy", "New"), "daily does not start: because\nhint: ask a cluster administrator"),
        (with_velero("Failed", failureReason="no bucket"), "daily: Backup failed: no bucket\nhint: remove the cause"),
        (
            with_velero("Completed", condition("DataIncomplete", "True", "NothingBackedUp")),
            "daily: because\nhint: create another backup with a --selector",
        ),
        (with_velero("PartiallyFailed", errors=1), "daily: Backup partially failed: 1 error"),
        (seen(spec={"backupSpec": {}, "deleteBackup": True}), "daily is being deleted\nhint: delete its data"),
        (
            seen(status={"conditions": [condition("Succeeded", "False", "VeleroBackupNotFound")], "phase": "Created"}),
            "daily: because",
        ),
    ],
)
def test_a_wait_fails_with_the_cause_and_the_next_step(each: TenantRequest, said: str) -> None:
    error = verdict(each)
    assert isinstance(error, CommandError)
    assert str(error).startswith(f"error: NonAdminBackup shop/{said}")
    assert error.hint


def test_a_spec_that_was_edited_after_it_was_refused_is_waited_for() -> None:
    status = {"phase": "BackingOff", "conditions": [condition("Accepted", "False", "InvalidBackupSpec")]}
    assert verdict(seen(metadata={"generation": 2}, status=status)) is None


@pytest.mark.parametrize(
    ("each", "text"),
    [
        (seen(), "New"),
        (refused("QuotaExceeded", "New"), "New, quota exceeded"),
        (with_velero("Queued", position=7), "Queued, position 7 in the queue"),
        (with_velero("New", position=2), "Queued, position 2 in the queue"),
        (with_velero("New", position=1), "Queued, next to run"),
        (with_velero("Queued", position=1), "Queued, next to run"),
        (with_velero("InProgress", position=1), "InProgress"),
        (
            with_velero("InProgress", position=1, progress={"totalItems": 4, "itemsBackedUp": 1}),
            "███████░░░░░░░░░░░░░░░░░░░░░░░  25 %  1 of 4 items  InProgress",
        ),
        (with_velero("Failed"), "Failed"),
    ],
)
def test_the_bar_shows_the_place_in_the_queue_and_then_the_items(each: TenantRequest, text: str) -> None:
    assert bar(progress_of(each)) == text


def test_nothing_is_before_a_request_that_is_the_next_to_run() -> None:
    text = explained(with_velero("New", position=1))
    assert "→ waits        Velero has started it          position 1 in the queue" in text
    assert "Next: Velero has not started it yet. Wait for it with foresail backup wait daily -n shop" in text
    assert "If nothing starts for minutes, ask a cluster administrator whether Velero is running" in text


def test_a_tenant_without_an_operator_sees_the_option_that_enables_it() -> None:
    assert "whether Foresail's operator runs with --self-service" in remark(seen(), timedelta(seconds=30))


def test_the_bar_counts_the_items_of_a_restore_too() -> None:
    mirror = {"phase": "InProgress", "progress": {"totalItems": 2, "itemsRestored": 1}}
    each = seen(RESTORES, status={"phase": "Created", "veleroRestore": {"name": "r", "status": mirror}})
    assert "1 of 2 items" in bar(progress_of(each))


def test_a_waiting_tenant_sees_why_progress_is_slow() -> None:
    assert remark(seen(), SOON) == ""
    assert remark(seen(), timedelta(seconds=30)).startswith("The operator has not processed it yet. ")
    assert remark(refused("QuotaExceeded", "New"), SOON) == "because"
    assert remark(with_velero("Queued", position=3), SOON) == ""


def test_nobody_waits_for_a_request_that_no_operator_sees_unless_they_said_how_long() -> None:
    with pytest.raises(CommandError, match=r"NonAdminRestore shop/daily: no operator has seen it for 1m\n") as stopped:
        remark(seen(RESTORES), timedelta(minutes=1))
    assert "unless you withdraw it: foresail restore delete daily -n shop" in str(stopped.value)
    assert remark(seen(RESTORES), timedelta(minutes=1), is_bounded=True).startswith("The operator has not processed it")


def test_warnings_of_a_complete_restore_are_named_with_the_command_that_shows_them() -> None:
    def completed(warnings: int) -> TenantRequest:
        made = {"name": "r", "status": {"phase": "Completed", "warnings": warnings}}
        done = [condition("Succeeded", "True", "Completed", "Restore completed")]
        return seen(RESTORES, status={"phase": "Created", "veleroRestore": made, "conditions": done})

    assert explained(completed(3)).endswith("See the warnings with foresail restore logs daily -n shop --results")
    assert "warnings" not in explained(completed(0))


# What is shown


def test_the_table_has_how_far_each_is_and_why() -> None:
    rows = [with_velero("Completed", expiration="2026-11-16T12:00:30Z"), refused("QuotaExceeded", "New")]
    header, done, held = request_table(rows, NOW, wide=False).splitlines()
    assert header.split() == ["NAME", "STATUS", "QUEUE", "EXPIRES", "AGE", "WHY"]
    assert done.split() == ["daily", "Completed", "in", "24h", "60m"], "what has ended is in no queue"
    assert held.split() == ["daily", "New", "n/a", "60m", "quota", "exceeded"]
    wide = request_table(rows, NOW, wide=True)
    header, done, _ = wide.splitlines()
    assert header.split()[:6] == ["NAME", "REQUEST", "VELERO", "QUEUE", "EXPIRES", "AGE"]
    assert header.split()[6:] == ["ERRORS", "WARNINGS", "STARTED", "ENDED", "VELERO", "NAME", "WHY"]
    assert done.split()[:3] == ["daily", "Created", "Completed"]
    assert done[header.index("QUEUE") :].startswith(" " * len("QUEUE"))
    assert EXPIRES in done
    assert "shop-daily-1" in wide
    assert wide.endswith("QuotaExceeded: because")
    assert "first" in request_table([seen(RESTORES)], NOW, wide=False)
    _, waits = request_table([with_velero("Queued", position=3)], NOW, wide=False).splitlines()
    assert waits.split()[:3] == ["daily", "Queued", "3"]


def test_the_table_names_the_field_that_is_refused() -> None:
    text = "NonAdminRestore nonAdminRestore.spec.restoreSpec.namespaceMapping is restricted: namespace b: Allowed"
    conditions = [condition("Accepted", "False", "InvalidRestoreSpec", text)]
    _, row = request_table([seen(RESTORES, status={"conditions": conditions})], NOW, wide=False).splitlines()
    assert row.endswith("   namespaceMapping is restricted")


def test_a_request_that_is_being_deleted_shows_it_instead_of_what_velero_reports() -> None:
    status = {"phase": "Deleting", "veleroBackup": {"name": "b", "status": {"phase": "Completed"}}}
    _, row = request_table([seen(status=status)], NOW, wide=False).splitlines()
    assert row.split()[:2] == ["daily", "Deleting"]


@pytest.mark.parametrize("family", [BACKUPS, RESTORES], ids=lambda family: family.word)
@pytest.mark.parametrize("with_namespace", [False, True])
def test_the_table_of_requests_fits_80_columns_and_never_loses_why(family: Family, *, with_namespace: bool) -> None:
    long = "before-the-upgrade-of-the-whole-shop-and-its-databases"
    metadata = {"name": long, "namespace": long}
    spec = {f"{family.word}Spec": {"backupName": long}}
    reason = condition("Accepted", "False", "VeleroRestoreNotFound")  # the longest reason of all
    mirror = {"phase": "WaitingForPluginOperationsPartiallyFailed", "expiration": "2026-12-16T12:00:30Z"}
    made = {f"velero{family.word.capitalize()}": {"name": "v", "status": mirror}}
    row = seen(family, metadata=metadata, spec=spec, status={"phase": "Created", "conditions": [reason], **made})
    lines = request_table([row], NOW, wide=False, with_namespace=with_namespace, width=80).splitlines()
    assert max(map(len, lines)) <= 80
    assert lines[1].endswith("   restore not found")
    assert lines[1].startswith("before-")
    assert long in request_table([row], NOW, wide=False, with_namespace=with_namespace)


def test_explain_points_at_the_first_step_that_blocks_it() -> None:
    assert explained(refused("QuotaExceeded", "New")).splitlines() == [
        "NonAdminBackup shop/daily: waits: quota exceeded",
        "  ok           it is not being deleted",
        "  ok           the operator has processed it",
        "→ blocks       it is accepted                 because",
        "  not checked  the Velero Backup is created",
        "  not checked  Velero has started it",
        "  not checked  it is complete",
        (
            "Next: Namespace shop has reached the limit of backups that its policy sets. Wait until one finishes, or "
            "delete one with foresail backup delete; this one then starts automatically"
        ),
    ]


def test_explain_names_a_write_that_the_api_server_refused_until_the_request_goes_on() -> None:
    later, earlier = (datetime(2026, 11, 15, 11, 0, second, tzinfo=UTC) for second in (32, 30))
    waiting = seen(status={"phase": "BackingOff", "conditions": [ACCEPTED]})
    refused = with_refusal(waiting, RefusedWrite(later, "admission policy p denied it"))
    text = explained(refused)
    assert text.startswith("NonAdminBackup shop/daily: blocked: write refused\n")
    assert "→ blocks       the API server accepts its writes" in text
    assert "admission policy p denied it (2026-11-15" in text
    assert text.endswith("correct what the message names; the backup then continues automatically")
    assert as_data(refused)["message"] == "admission policy p denied it"
    assert with_refusal(waiting, RefusedWrite(earlier, "no")).refused is None
    assert with_refusal(with_velero("Completed"), RefusedWrite(later, "no")).refused is None


def test_explain_says_that_velero_starts_nothing_instead_of_a_position() -> None:
    text = explained(msgspec.structs.replace(with_velero("New"), stalled="Deployment velero has 0 of 1 pods ready"))
    assert text.startswith("NonAdminBackup shop/daily: blocked: Velero starts nothing now\n")
    assert "→ blocks       Velero has started it          Deployment velero has 0 of 1 pods ready" in text
    assert "position" not in text
    assert text.endswith("Ask a cluster administrator to run foresail doctor; the backup then starts automatically")


@pytest.mark.parametrize(
    ("each", "step", "reason"),
    [
        (seen(), "→ waits        the operator has processed it", None),
        (with_velero("Queued", position=3), "→ waits        Velero has started it", "Waiting"),
        (with_velero("InProgress", position=1), "→ waits        it is complete", "Running"),
        (with_velero("Failed"), "→ failed       it is complete", "Failed"),
        (with_velero("Completed"), "  ok           it is complete", "Completed"),
        (
            with_velero("Completed", expiration="2020-01-01T00:00:00Z"),
            "→ blocks       it has not expired",
            "BackupExpired",
        ),
        (
            with_velero("Completed", condition("DataIncomplete", "True", "NothingBackedUp")),
            "→ blocks       it contains objects",
            "NothingBackedUp",
        ),
        (
            with_velero("Completed", condition("Deleting", "True", "DeletionFailed")),
            "→ blocks       it is not being deleted",
            "DeletionFailed",
        ),
        (seen(metadata={"deletionTimestamp": "2026-11-15T12:00:00Z"}), "→ blocks       it is not", "DeletionPending"),
    ],
)
def test_explain_knows_every_step(each: TenantRequest, step: str, reason: str | None) -> None:
    assert step in explained(each)
    data = as_data(each)
    assert data["reason"] == reason
    assert reason is None or reason in list(Reason)
    assert ". " in data["next"]


def test_describe_has_the_spec_the_conditions_and_what_to_do() -> None:
    text = described(with_velero("PartiallyFailed", errors=2, validationErrors=["odd"]), NOW)
    said = [" ".join(line.split()) for line in text.splitlines()]
    for line in ("Namespace: shop", "Errors: 2", "Cause: odd", "ttl: 24h", "Velero Backup: shop-daily-1"):
        assert line in said
    assert said[-1].startswith("Next: The backup partially failed. ")
    assert "Accepted True BackupAccepted 2026-11-15T11:00:31Z backup accepted" in said
    assert "Conditions:  <none>" in described(seen(RESTORES), NOW)


def test_names_have_the_group_of_their_kind() -> None:
    assert as_text([wire()], "name") == "nonadminbackup.oadp.openshift.io/daily"


def test_an_object_of_another_shape_is_named() -> None:
    with pytest.raises(CommandError, match="NonAdminBackup shop/daily cannot be decoded"):
        seen(status={"phase": 3})


def test_a_cluster_without_self_service_is_recognised() -> None:
    error = refusal(Failure(Cause.NOT_FOUND, "404"), "list", BACKUPS.kind, Key("shop", ""))
    assert error.hint == "install Foresail with self-service: foresail install --self-service"


# Where it works


KUBECONFIG = {
    "current-context": "a",
    "clusters": [{"name": "c", "cluster": {"server": "http://127.0.0.1:1"}}],
    "users": [{"name": "u", "user": {}}],
    "contexts": [
        {"name": "a", "context": {"cluster": "c", "user": "u", "namespace": "shop"}},
        {"name": "b", "context": {"cluster": "c", "user": "u"}},
    ],
}


def test_the_namespace_is_that_of_the_context(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "config"
    file.write_text(json.dumps(KUBECONFIG))
    assert namespace_of_context(str(file)) == "shop"
    assert namespace_of_context(str(file), "b") == "default"
    with pytest.raises(ConnectError, match="there is no kubeconfig at"):
        namespace_of_context(str(tmp_path / "none"))
    assert main(["backup", "create", "x", "--kubeconfig", str(file), "-o", "json"]) == 0
    assert json.loads(capsys.readouterr().out)["metadata"] == {"name": "x", "namespace": "shop"}
    assert main(["backup", "get", "--kubeconfig", str(tmp_path / "none")]) == 3
    assert "hint: specify a kubeconfig" in capsys.readouterr().err


# Words


@pytest.mark.parametrize(
    ("each", "words"),
    [
        (seen(), "not processed by the operator yet"),
        (refused("LocationUnavailable", "New"), "waits: location unavailable"),
        (refused("PolicyViolation", "BackingOff"), "refused: policy violation"),
        (with_velero("Queued"), "waits for Velero"),
        (with_velero("InProgress"), "running"),
        (with_velero("Failed"), "failed"),
        (with_velero("PartiallyFailed"), "partially failed"),
        (with_velero("Completed"), "complete"),
        (
            with_velero("Completed", condition("DataIncomplete", "True", "VolumesLeftOut")),
            "complete, but volumes left out",
        ),
        (seen(spec={"backupSpec": {}, "deleteBackup": True}), "is being deleted: deletion pending"),
    ],
)
def test_the_first_line_of_explain_has_words_and_no_reason(each: TenantRequest, words: str) -> None:
    assert explained(each).splitlines()[0] == f"NonAdminBackup shop/daily: {words}"


def test_the_age_of_a_backup_is_that_of_its_data() -> None:
    adopted = with_velero("Completed", startTimestamp="2026-11-13T11:00:30Z")
    assert request_table([adopted], NOW, wide=False).splitlines()[1].split()[-1] == "2d1h"
    assert request_table([with_velero("Completed")], NOW, wide=False).splitlines()[1].split()[-1] == "60m"


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("0s", -5), ("119s", 119), ("2m", 120), ("9m59s", 599), ("10m", 600), ("107m", 6420), ("3h", 10800),
        ("3h5m", 11100), ("8h", 28800), ("25h", 90000), ("47h", 172799), ("2d", 172800), ("2d1h", 176400),
        ("8d", 691200), ("365d", 31536000), ("2y", 63072000), ("9y", 300000000),
    ],
)  # fmt: skip
def test_a_length_of_time_is_written_as_kubectl_does(text: str, seconds: int) -> None:
    assert short(timedelta(seconds=seconds)) == text


def test_a_restore_into_another_namespace_maps_its_own_and_no_other() -> None:
    made = request_object(RESTORES, parsed("restore", "create", "clone", "--from-backup", "first", "--to", "staging"))
    assert made["spec"]["restoreSpec"] == {"backupName": "first", "namespaceMapping": {"shop": "staging"}}
    assert made["metadata"]["namespace"] == "shop", "it is requested where the backup is"
    with pytest.raises(CommandError, match="--to shop is the namespace of the backup"):
        request_object(RESTORES, parsed("restore", "create", "clone", "--from-backup", "first", "--to", "shop"))
