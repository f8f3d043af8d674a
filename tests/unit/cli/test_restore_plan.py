"""The texts and requests of `foresail plan` and `foresail restore plan`."""

import argparse
import asyncio
import io
import json
import tarfile
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, TypeVar

import pytest

from foresail.api.policy import REFUSED_KINDS
from foresail.api.specs import RestoreSpec
from foresail.cli.access.cluster import Cluster, on_cluster
from foresail.cli.errors import CommandError
from foresail.cli.main import main, parser
from foresail.cli.restore_plan.dry_runs import DryRuns, is_terminating
from foresail.cli.restore_plan.plan import settings_of, spec_fields
from foresail.cli.restore_plan.planning import (
    MARK,
    Inputs,
    RestorePlan,
    backup_of,
    report,
    restore_spec_of,
    scratch_body,
    scratch_limits,
    scratch_namespaces,
    together,
    warnings_of,
)
from foresail.cli.restore_plan.report import as_data, as_text
from foresail.cli.tenant.restore_plan import ignored_fields, restore_of, tenant_fields
from foresail.cli.tenant.tenant_request import TenantRequest, decode_request
from foresail.plan import Key, Kind
from foresail.proof.restore_plan.actions import Settings
from foresail.proof.restore_plan.compare import Change
from foresail.proof.restore_plan.decide import SAME_FIELDS, Observed, Outcome, Verdict, World
from foresail.proof.restore_plan.items import Document, Item, ItemKey, Served, ServedKind
from foresail.proof.restore_plan.modifiers import Modifiers
from foresail.proof.restore_plan.prepare import Backup, Preparation, Step
from foresail.proof.restore_plan.refusals import Answer, By
from foresail.proof.restore_plan.volumes import read_volumes
from foresail.selfservice.families import RESTORES
from tests.unit.cli.canned import canned

T = TypeVar("T")


def verdict(name: str, outcome: Outcome, **fields: Any) -> Verdict:  # noqa: ANN401
    return Verdict(ItemKey("configmaps", "shop", name), outcome, **fields)


VERDICTS = [
    verdict("a", Outcome.CREATE, warning="StorageClass fast does not exist: the claim stays pending"),
    verdict("b", Outcome.REFUSED, reason="no room", by=By.QUOTA),
    verdict("c", Outcome.UPDATE, changes=(Change("data.x", "1", None),)),
]


def test_people_get_a_summary_and_the_first_reasons() -> None:
    text = as_text("nightly", VERDICTS, [(ItemKey("nodes", "", "n"), "Velero never restores nodes")])
    assert text.splitlines()[0] == "Restore of backup nightly: 3 items"
    assert "left out   1" in text
    assert "LEFT OUT   REASON\n1          Velero never restores nodes" in text
    assert "configmaps/shop/b   quota: no room" in text
    assert "configmaps/shop/c   data.x: (absent) -> 1" in text
    assert "configmaps/shop/a   StorageClass fast does not exist: the claim stays pending" in text


def test_what_a_plan_ignores_is_a_warning() -> None:
    text = as_text("nightly", VERDICTS, [], ["the plan ignores resourceModifier"])
    assert text.splitlines()[1] == "Warning: the plan ignores resourceModifier"
    assert as_data("nightly", VERDICTS, [], ["a"])["warnings"] == ["a"]


@pytest.mark.parametrize("field", ["resourceModifier", "resourcePolicy"])
def test_a_tenants_plan_names_the_config_map_that_it_ignores(field: str) -> None:
    spec = restore_spec_of({field: {"kind": "configmap", "name": "rules"}})
    expected = f"the plan ignores {field}: you may not read ConfigMap rules in Velero's namespace"
    assert ignored_fields(spec) == (expected,)
    assert ignored_fields(restore_spec_of({})) == ()


def test_items_that_only_seem_to_differ_are_one_line() -> None:
    same = [verdict(f"same-{number}", Outcome.UPDATE, reason=SAME_FIELDS) for number in range(7)]
    text = as_text("nightly", [*same, verdict("settings", Outcome.UPDATE)], [])
    assert text.count(SAME_FIELDS) == 1
    assert "7 items" in text
    assert "settings" in text
    assert "same-" not in text


def test_pods_that_cannot_be_changed_are_one_line_without_the_answer_of_the_api_server() -> None:
    answer = 'Pod "web" is invalid: spec: Forbidden: pod updates may not change fields\n  core.PodSpec{...'
    fields: dict[str, Any] = {"reason": answer, "by": By.SCHEMA, "changes": (Change("spec.nodeName", None, "a"),)}
    pods = [Verdict(ItemKey("pods", "shop", f"web-{number}"), Outcome.REFUSED, **fields) for number in range(3)]
    text = as_text("nightly", [*pods, verdict("sealed", Outcome.REFUSED, reason="no\nbecause", by=By.SCHEMA)], [])
    assert "3 pods that exist Kubernetes lets nobody change these fields of a pod" in " ".join(text.split())
    assert "Forbidden" not in text
    assert "configmaps/shop/sealed schema: no 3 pods" in " ".join(text.split())
    alone = Verdict(ItemKey("pods", "shop", "new"), Outcome.REFUSED, reason="no room", by=By.QUOTA)
    assert "pods/shop/new   quota: no room" in as_text("nightly", [alone], [])


def test_people_get_ten_reasons_of_each_outcome() -> None:
    text = as_text("nightly", [verdict(str(n), Outcome.REFUSED, reason="no", by=By.RBAC) for n in range(14)], [])
    assert text.count("RBAC: no") == 10
    assert "4 more; see -o json" in text


def test_programs_get_every_item() -> None:
    data = as_data("nightly", VERDICTS, [])
    assert data["counts"]["refused"] == 1
    assert data["items"][1] == {
        "resource": "configmaps",
        "namespace": "shop",
        "name": "b",
        "outcome": "refused",
        "refusedBy": "quota",
        "reason": "no room",
    }


def planned(*words: str) -> argparse.Namespace:
    return parser().parse_args(["plan", "nightly", *words])


@pytest.mark.parametrize("words", [["plan", "nightly"], ["restore", "plan", "undo"]])
def test_both_forms_wait_for_ten_minutes(words: list[str]) -> None:
    assert parser().parse_args(words).timeout == "10m"
    assert parser().parse_args([*words, "--timeout", "1h"]).timeout == "1h"


def test_to_maps_the_one_namespace_of_the_backup() -> None:
    assert spec_fields(planned("--to", "copy"), ["shop"]) == {
        "backupName": "nightly",
        "namespaceMapping": {"shop": "copy"},
    }


@pytest.mark.parametrize("backed_up", [[], ["a", "b"], ["*"]])
def test_to_needs_one_namespace(backed_up: list[str]) -> None:
    with pytest.raises(CommandError, match="exactly one namespace"):
        spec_fields(planned("--to", "copy"), backed_up)


def test_a_mapping_needs_two_names() -> None:
    with pytest.raises(CommandError, match="not OLD:NEW"):
        spec_fields(planned("--namespace-mappings", "shop"), [])


def test_an_action_has_one_config_map_or_is_ambiguous() -> None:
    one = settings_of(RestoreSpec(), {"change-storage-class": [{"old": "new"}], "change-image-name": []})
    assert (one.storage_classes, one.image_names, one.ambiguous) == ({"old": "new"}, (), frozenset())
    two = settings_of(RestoreSpec(), {"change-storage-class": [{}], "change-image-name": [{"a": "b,c"}, {}]})
    assert (dict(two.storage_classes), two.image_names, set(two.ambiguous)) == ({}, (), {"change-image-name"})


def test_a_tenants_plan_follows_the_objects_into_another_namespace() -> None:
    found = tenant_fields({"backupName": "b", "namespaceMapping": {"shop": "staging"}}, "shop")
    assert found["includedNamespaces"] == ["shop"]
    assert found["namespaceMapping"] == {"shop": "staging"}


@pytest.mark.parametrize("mapping", [{"other": "shop"}, {"*": "kube-system"}, {"shop": "a", "other": "b"}])
def test_a_tenants_restore_takes_nothing_from_another_namespace(mapping: dict[str, str]) -> None:
    asked = {"backupName": "b", "includedNamespaces": ["kube-system"], "namespaceMapping": mapping}
    found = tenant_fields(asked, "shop")
    assert found["includedNamespaces"] == ["shop"]
    assert "namespaceMapping" not in found


def test_a_tenants_plan_leaves_out_the_kinds_that_self_service_refuses_unless_they_are_named() -> None:
    roles = "roles.rbac.authorization.k8s.io"
    excluded = tenant_fields({"backupName": "b", "excludedResources": ["secrets"]}, "shop")["excludedResources"]
    assert {"secrets", "endpoints", "*.velero.io", *REFUSED_KINDS} <= set(excluded)
    named = tenant_fields({"backupName": "b", "includedResources": [roles, "pods"]}, "shop")
    assert named["includedResources"] == [roles, "pods"]
    assert roles not in named["excludedResources"]
    assert set(REFUSED_KINDS) - {roles} <= set(named["excludedResources"])


def test_a_tenants_plan_reports_a_kind_that_no_policy_allows() -> None:
    with pytest.raises(CommandError, match=r"contains backups\.velero\.io"):
        tenant_fields({"backupName": "b", "includedResources": ["backups.velero.io"]}, "shop")


def non_admin_restore(**spec: Any) -> TenantRequest:  # noqa: ANN401
    about = {"name": "undo", "namespace": "shop", "uid": "u"}
    made = {"name": "shop-undo-1", "namespace": "velero", "spec": {"backupName": "shop-db-1"}}
    wire = {"metadata": about, "spec": {"restoreSpec": spec}, "status": {"veleroRestore": made}}
    return decode_request(RESTORES, json.dumps(wire).encode())


def test_the_plan_of_a_restore_is_that_of_its_own_spec() -> None:
    assert restore_of(non_admin_restore(backupName="db")) == {"backupName": "db"}
    with pytest.raises(CommandError, match="NonAdminRestore shop/undo names no backup"):
        restore_of(non_admin_restore())


@pytest.mark.parametrize("words", [[], ["undo", "--from-backup", "db"]])
def test_a_tenant_names_a_restore_or_a_backup(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["restore", "plan", *words, "-n", "shop"]) == 2
    assert "--from-backup" in capsys.readouterr().err


def test_files_that_are_read_together_are_all_ended_in_order_when_one_cannot_be_read() -> None:
    ended = []

    async def reading() -> None:
        try:
            await asyncio.sleep(60)
        finally:
            await asyncio.sleep(0)  # the request is deleted
            ended.append("in order")

    async def failing() -> None:
        await asyncio.sleep(0)
        raise CommandError("no file")

    with pytest.raises(CommandError, match="no file"):
        asyncio.run(together(reading(), failing(), reading()))
    assert ended == ["in order", "in order"]


def test_a_scratch_namespace_has_the_labels_of_its_target_but_those_that_others_act_on() -> None:
    labels = {"kubernetes.io/metadata.name": "shop", "velero.io/exclude-from-backup": "true", "team": "a"}
    target = {"metadata": {"name": "shop", "labels": labels}}
    assert scratch_body("foresail-plan-1", target)["metadata"] == {
        "name": "foresail-plan-1",
        "labels": {"team": "a", MARK: "scratch"},
    }


def test_the_limits_of_a_scratch_namespace_have_other_names_than_the_items() -> None:
    keys = [ItemKey("limitranges", "shop", "few"), ItemKey("configmaps", "shop", "a"), ItemKey("limitranges", "b", "x")]
    steps = tuple(Step(key, key, {"metadata": {"name": key.name}, "spec": {"limits": []}}) for key in keys)
    [found] = scratch_limits(Preparation(steps, (), {}), "shop", "foresail-plan-1")
    assert found == {"metadata": {"name": "foresail-plan-1-0", "namespace": "foresail-plan-1"}, "spec": {"limits": []}}


REVIEWS = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"


def on_canned(kubeconfig: Path, work: Callable[[Cluster], Awaitable[T]]) -> T:
    return on_cluster(argparse.Namespace(kubeconfig=str(kubeconfig), context=None), work)


def test_a_pod_that_is_asked_for_again_names_what_its_answer_assumes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def dry_run(_: DryRuns, __: Kind, ___: Key, body: Document) -> Answer:
        is_missing = "serviceAccountName" in body.get("spec", {})
        return Answer(403, "Forbidden", "error looking up service account shop/web: x") if is_missing else Answer()

    monkeypatch.setattr(DryRuns, "_dry_run", dry_run)
    served = Served([ServedKind("", name, name, is_namespaced=True) for name in ("pods", "serviceaccounts")])
    account, pod = ItemKey("serviceaccounts", "shop", "web"), ItemKey("pods", "shop", "a")
    body = {"apiVersion": "v1", "spec": {"serviceAccountName": "web"}}
    preparation = Preparation((Step(account, account, {"apiVersion": "v1"}), Step(pod, pod, body)), (), {})
    world = World(served, frozenset())
    with canned(tmp_path, {}) as server:
        found = on_canned(
            server.kubeconfig, lambda each: DryRuns(each.client, served, "").observed(preparation, world, {})
        )
    assert found[pod] == Observed(None, Answer(), frozenset({account}))


def test_quotas_that_nobody_listed_are_a_warning(tmp_path: Path) -> None:
    with canned(tmp_path, {REVIEWS: {"status": {"allowed": False}}}) as server:
        world = on_canned(server.kubeconfig, lambda each: DryRuns(each.client, Served([]), "").world(["shop", "b"]))
    assert warnings_of(Backup("nightly", []), world) == [
        "ResourceQuotas cannot be listed, so what the items take of them is not added up: b, shop"
    ]


def test_a_warning_names_ten_namespaces() -> None:
    world = World(Served([]), frozenset(), unlisted_quotas=frozenset(f"ns-{n:02}" for n in range(12)))
    [text] = warnings_of(Backup("nightly", []), world)
    assert text.endswith("ns-09 and 2 more")


@pytest.mark.parametrize("resource", ["pods", "persistentvolumeclaims", "configmaps"])
@pytest.mark.parametrize("has_volumes", [True, False])
def test_a_backup_without_the_file_about_its_volumes_is_a_warning(resource: str, *, has_volumes: bool) -> None:
    backup = Backup("nightly", [Item(ItemKey(resource, "shop", "a"))], has_volumes=has_volumes)
    text = "Backup nightly has no readable list of its volumes: which of them have data is not known"
    is_warned = not has_volumes and resource != "configmaps"
    assert warnings_of(backup, World(Served([]), frozenset())) == ([text] if is_warned else [])


@pytest.mark.parametrize("volumes", [None, b"{"])
def test_a_file_about_volumes_that_is_missing_or_unreadable_is_noticed(volumes: bytes | None) -> None:
    buffer = io.BytesIO()
    tarfile.open(fileobj=buffer, mode="w").close()
    inputs = Inputs("nightly", buffer.getvalue(), volumes, Settings(RestoreSpec()), Modifiers())
    assert not backup_of(inputs).has_volumes


@pytest.mark.parametrize(
    ("fail_on", "found", "code"),
    [
        ("refused", verdict("a", Outcome.REFUSED), 1),
        ("refused", verdict("a", Outcome.UNPREDICTABLE, is_unanswered=True), 1),
        ("refused", verdict("a", Outcome.UNPREDICTABLE), 0),
        (None, verdict("a", Outcome.UNPREDICTABLE, is_unanswered=True), 0),
    ],
)
def test_a_dry_run_without_an_answer_counts_for_fail_on(
    fail_on: str | None, found: Verdict, code: int, capsys: pytest.CaptureFixture[str]
) -> None:
    args = argparse.Namespace(output="json", fail_on=fail_on)
    assert report(args, RestorePlan("nightly", (found,))) == code
    text = "hint: --fail-on refused: dry runs that the API server did not answer count too: 1; try again\n"
    assert capsys.readouterr().err == (text if fail_on and found.is_unanswered else "")


def test_limits_that_a_scratch_namespace_lacks_are_a_warning(tmp_path: Path) -> None:
    key = ItemKey("limitranges", "shop", "few")
    preparation = Preparation((Step(key, key, {"metadata": {"name": "few"}}),), (), {"shop": {}})

    async def create(cluster: Cluster) -> list[str]:
        async with scratch_namespaces(cluster, preparation, ["shop"]) as scratch:
            return scratch.warnings

    with canned(tmp_path, {"/api/v1/namespaces": {}}) as server:
        warnings = on_canned(server.kubeconfig, create)
    expected = "a LimitRange of namespace shop cannot be tried, so it is ignored: NotFound: not here (404)"
    assert warnings == [expected]


def test_a_plan_creates_no_more_than_250_namespaces(tmp_path: Path) -> None:
    async def create(cluster: Cluster) -> None:
        async with scratch_namespaces(cluster, Preparation((), (), {}), map(str, range(251))):
            pass

    with canned(tmp_path, {}) as server, pytest.raises(CommandError, match="251 namespaces do not exist"):
        on_canned(server.kubeconfig, create)
    assert server.writes == []


@pytest.mark.parametrize(
    ("namespace", "expected"),
    [
        ({}, False),
        ({"status": {"phase": "Active"}}, False),
        ({"status": {"phase": "Terminating"}}, True),
        ({"metadata": {"deletionTimestamp": "2026-11-17T10:00:00Z"}}, True),
    ],
)
def test_a_namespace_that_is_being_deleted_is_recognized(namespace: dict[str, Any], *, expected: bool) -> None:
    assert is_terminating(namespace) is expected


def test_volumes_are_read_by_their_method() -> None:
    found = read_volumes(
        b'[{"pvName":"pv","backupMethod":"PodVolumeBackup","pvbInfo":{"podName":"db","podNamespace":"shop"}},'
        b'{"pvName":"pw","pvcName":"c","pvcNamespace":"shop","backupMethod":"CSISnapshot"}]'
    )
    assert found is not None
    assert found.methods == {"pv": "PodVolumeBackup", "pw": "CSISnapshot"}
    assert found.pods == {("shop", "db")}
    assert found.claims == {("shop", "c")}
    assert read_volumes(b"{") is None
