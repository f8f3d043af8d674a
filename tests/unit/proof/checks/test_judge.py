"""What a backup must bring into the sandbox, and how a check is judged: values in, a verdict out."""

import json
from importlib.resources import files
from time import process_time

import pytest

from foresail.api.authorization import (
    DiscoveredGroup,
    DiscoveredMetadata,
    DiscoveredResource,
    DiscoveredVersion,
    Discovery,
    ResponseKind,
)
from foresail.proof.checks.contents import Contents, Item, contents_of
from foresail.proof.checks.judge import MOST_IN_EVIDENCE, Verdict, judge, verdict_without_restore
from foresail.proof.checks.kinds import LEFT_OUT, NETWORK_GROUPS, Served, Wanted, included_resources, served_kinds
from foresail.proof.checks.reasons import Reason

SERVED = Served(
    {
        "apps/v1/Deployment": "deployments.apps",
        "batch/v1/Job": "jobs.batch",
        "example.com/v1/Widget": "widgets.example.com",
        "networking.k8s.io/v1/Ingress": "ingresses.networking.k8s.io",
        "networking.k8s.io/v1/NetworkPolicy": "networkpolicies.networking.k8s.io",
    }
)
BOX = {"red": "foresail-check-0123456789-abcdef"}
SANDBOX = BOX["red"]


def backup(**lists: list[str]) -> bytes:
    return json.dumps({name.replace("__", ".").replace("_", "/"): names for name, names in lists.items()}).encode()


def contents(file: bytes, wanted: Wanted | None = None) -> Contents:
    found = contents_of(file, wanted or Wanted(), SERVED)
    assert found is not None
    return found


def test_every_listed_object_of_a_harmless_kind_is_expected() -> None:
    found = contents(backup(v1_ConfigMap=["red/a", "red/b"], apps_v1_Deployment=["red/web"]))
    assert {str(each) for each in found.expected} == {"ConfigMap red/a", "ConfigMap red/b", "Deployment red/web"}
    assert found.namespaces == ("red",)


def test_sandboxes_of_checks_during_the_backup_are_not_checked() -> None:
    found = contents(backup(v1_ConfigMap=["red/a", f"{SANDBOX}/kube-root-ca.crt", f"{SANDBOX}/b"]))
    assert (found.namespaces, found.not_checked) == (("red",), 2)


@pytest.mark.parametrize(
    ("claims", "wanted", "classes", "missing"),
    [
        (["red/data"], Wanted(), ["new"], ["fast, slow"]),
        (["red/data"], Wanted(), ["slow"], []),  # the claim may be of that class
        (["red/data"], Wanted(), ["fast", "slow"], []),
        (["red/data"], Wanted(("red",)), [], ["fast, slow"]),
        (["red/data"], Wanted(("blue",)), [], []),
        ([], Wanted(), [], []),
    ],
)
def test_claims_without_any_storage_class_that_the_backup_lists_are_a_problem(
    claims: list[str], wanted: Wanted, classes: list[str], missing: list[str]
) -> None:
    lists = {"v1/PersistentVolumeClaim": claims, "storage.k8s.io/v1/StorageClass": ["fast", "slow"]}
    both = {**lists, "v1/ConfigMap": ["red/a", "blue/a"]}
    found = contents_of(json.dumps(both).encode(), wanted, SERVED, classes)
    assert found is not None
    assert [(each.reason, each.message) for each in found.problems] == [
        (Reason.STORAGE_CLASS_MISSING, f"this cluster has no StorageClass {each}, which the backup lists")
        for each in missing
    ]


def test_what_would_start_or_open_something_is_not_checked() -> None:
    found = contents(
        backup(
            v1_Pod=["red/p"],
            v1_PersistentVolumeClaim=["red/c"],
            networking__k8s__io_v1_Ingress=["red/i"],
            networking__k8s__io_v1_NetworkPolicy=["red/n"],
            v1_PersistentVolume=["pv-1"],
        )
    )
    assert (found.expected, found.not_checked, found.problems) == ((), 5, ())


def test_a_custom_resource_is_restored_only_if_it_is_listed() -> None:
    file = backup(example__com_v1_Widget=["red/w"])
    assert contents(file).not_checked == 1
    listed = contents(file, Wanted(custom=("widgets.example.com",)))
    assert [str(each) for each in listed.expected] == ["Widget red/w"]
    assert listed.custom == ("widgets.example.com",)


@pytest.mark.parametrize(
    ("group", "listed", "other"),
    [
        ("cert-manager.io", "CertificateRequest", "Certificate"),
        ("kafka.strimzi.io", "KafkaTopic", "Kafka"),
        ("argoproj.io", "ApplicationSet", "Application"),
    ],
)
@pytest.mark.parametrize("is_discovered", [True, False])
def test_a_kind_whose_name_begins_like_a_listed_one_is_not_restored(
    group: str, listed: str, other: str, is_discovered: bool
) -> None:
    """An operator would act on copies that nobody listed."""
    names = {f"{group}/v1/{each}": f"{each.lower()}s.{group}" for each in (listed, other)}
    served = Served(names) if is_discovered else Served({}, frozenset({group}))
    wanted = Wanted(custom=(names[f"{group}/v1/{listed}"],))
    found = contents_of(json.dumps({each: ["red/a"] for each in names}).encode(), wanted, served)
    assert found is not None
    assert (found.custom, found.expected) == (wanted.custom, (Item(f"{group}/v1/{listed}", "red", "a"),))
    assert (found.not_checked, found.problems) == (1, ())
    alone = contents_of(json.dumps({f"{group}/v1/{other}": ["red/a"]}).encode(), wanted, served)
    assert alone is not None
    assert (alone.custom, alone.expected, alone.not_checked) == ((), (), 1)


def test_an_old_version_of_a_served_kind_is_listed_by_the_plural_of_the_served_one() -> None:
    definitions = ["children.example.com", "childrenofold.example.com"]
    lists = {"example.com/v1beta1/Child": ["red/a"], "apiextensions.k8s.io/v1/CustomResourceDefinition": definitions}
    served = Served({"example.com/v1/Child": "children.example.com"})
    found = contents_of(json.dumps(lists).encode(), Wanted(custom=("children.example.com",)), served)
    assert found is not None
    assert ([each.reason for each in found.problems], found.custom) == ([Reason.KIND_NOT_SERVED], ())


def test_a_kind_that_a_check_leaves_out_stays_out_even_if_it_is_listed() -> None:
    assert not set(included_resources([*LEFT_OUT, "widgets.example.com"], has_data=False)) & set(LEFT_OUT)
    with_data = set(included_resources([*LEFT_OUT], has_data=True))
    assert with_data & set(LEFT_OUT) == {"pods", "persistentvolumeclaims"}


def test_an_api_that_this_cluster_does_not_serve_is_a_problem() -> None:
    found = contents(backup(extensions_v1beta1_Ingress=["red/a", "red/b", "red/c", "red/d"]))
    (problem,) = found.problems
    assert problem.reason is Reason.KIND_NOT_SERVED
    assert problem.message.endswith("extensions/v1beta1/Ingress, which the backup has: red/a, red/b, red/c and 1 more")
    assert found.not_served == 4


def test_of_an_object_in_several_versions_one_that_is_served_is_enough() -> None:
    """With EnableAPIGroupVersions, Velero lists an object in every version, and restores it in one."""
    file = backup(apps_v1_Deployment=["red/web"], apps_v1beta1_Deployment=["red/web", "red/old"])
    found = contents(file)
    assert found.expected == (Item("apps/v1/Deployment", "red", "web"),)
    (problem,) = found.problems
    assert problem.message == "this cluster does not serve apps/v1beta1/Deployment, which the backup has: red/old"
    assert (found.not_served, found.not_checked) == (1, 0)


@pytest.mark.parametrize("version", ["v1", "v2"])
def test_an_object_that_arrived_in_another_version_is_found(version: str) -> None:
    served = Served({f"autoscaling/{each}/HorizontalPodAutoscaler": "" for each in ("v1", "v2")})
    file = backup(autoscaling_v1_HorizontalPodAutoscaler=["red/a"], autoscaling_v2_HorizontalPodAutoscaler=["red/a"])
    found = contents_of(file, Wanted(), served)
    assert found is not None
    arrived = backup(**{f"autoscaling_{version}_HorizontalPodAutoscaler": [f"{SANDBOX}/a(created)"]})
    verdict = judge(found, BOX, "Completed", arrived, None)
    assert verdict is not None
    assert (verdict.problems, verdict.expected, verdict.found) == ((), 1, 1)


def test_a_removed_version_of_a_kind_that_is_restored_is_a_problem() -> None:
    found = contents(backup(batch_v1beta1_CronJob=["red/a"]))
    assert [each.reason for each in found.problems] == [Reason.KIND_NOT_SERVED]


def test_a_backup_that_has_the_definition_itself_needs_no_served_kind() -> None:
    file = backup(
        other__org_v1_Gadget=["red/g"], apiextensions__k8s__io_v1_CustomResourceDefinition=["gadgets.other.org"]
    )
    assert contents(file).problems == ()
    listed = contents(file, Wanted(custom=("gadgets.other.org",)))
    assert [each.reason for each in listed.problems] == [Reason.KIND_NOT_SERVED], "the sandbox cannot take it"
    assert listed.custom == (), "Velero would wait for it for ever"


@pytest.mark.parametrize(
    ("kind", "definition", "is_defined"),
    [
        ("Gadget", "gadgets", True),
        ("Policy", "policies", True),
        ("Prometheus", "prometheuses", True),
        ("NetworkAttachmentDefinition", "network-attachment-definitions", True),
        ("Gadget", "widgets", False),
        ("Certificate", "certificaterequests", False),
        ("CertificateRequest", "certificates", False),
    ],
)
def test_the_definition_of_another_kind_of_the_group_does_not_count(
    kind: str, definition: str, is_defined: bool
) -> None:
    definitions = {"apiextensions.k8s.io/v1/CustomResourceDefinition": [f"{definition}.other.org"]}
    found = contents(json.dumps({f"other.org/v1/{kind}": ["red/g"], **definitions}).encode())
    assert [each.reason for each in found.problems] == ([] if is_defined else [Reason.KIND_NOT_SERVED])


def test_a_namespace_that_is_wanted_and_not_in_the_backup_is_a_problem() -> None:
    found = contents(backup(v1_ConfigMap=["red/a", "blue/b"]), Wanted(("red", "green")))
    assert [str(each) for each in found.expected] == ["ConfigMap red/a"]
    assert [each.reason for each in found.problems] == [Reason.NAMESPACE_MISSING]


@pytest.mark.parametrize(
    "file",
    [
        b"",
        b"[]",
        b'{"v1/ConfigMap": "red/a"}',
        b"\xff",
        b'{"v1/ConfigMap": ["' + b"a" * 600 + b'/b"]}',
        b"{" + b"[" * 10_000,
        b'{"v1/ConfigMap": [' + b'"a/b",' * 1_000_001 + b'"a/b"]}',
    ],
)
def test_a_list_that_is_not_of_veleros_shape_is_refused(file: bytes) -> None:
    assert contents_of(file, Wanted(), SERVED) is None


def test_a_backup_without_objects_fails_without_a_restore() -> None:
    verdict = verdict_without_restore(contents(b"{}"))
    assert verdict is not None
    assert (verdict.reason, verdict.expected) == (Reason.BACKUP_EMPTY, 0)
    assert verdict_without_restore(contents(backup(v1_ConfigMap=["red/a"]))) is None


# How a check is judged


def judged(
    items: Contents, restored: dict[str, list[str]], errors: list[str] | None = None, phase: str = "Completed"
) -> Verdict:
    lists = {gvk: [each.replace("red/", f"{SANDBOX}/") for each in names] for gvk, names in restored.items()}
    results = {"errors": {"namespaces": {SANDBOX: errors or []}}, "warnings": {}}
    verdict = judge(items, BOX, phase, json.dumps(lists).encode(), json.dumps(results).encode())
    assert verdict is not None
    return verdict


TWO = contents(backup(v1_ConfigMap=["red/a", "red/b"]))


def test_a_check_passes_if_everything_arrived() -> None:
    verdict = judged(TWO, {"v1/ConfigMap": ["red/a(created)", "red/b(updated)"]})
    assert (verdict.reason, verdict.expected, verdict.found, verdict.problems) == (Reason.COMPLETE, 2, 2, ())


def test_an_object_that_velero_lists_nowhere_is_missing() -> None:
    verdict = judged(TWO, {"v1/ConfigMap": ["red/a(created)"]})
    assert (verdict.reason, verdict.expected, verdict.found) == (Reason.ITEMS_MISSING, 2, 1)
    assert "ConfigMap red/b" in verdict.message


@pytest.mark.parametrize(
    ("said", "by"),
    [
        ('admission webhook "x" denied the request', "webhook"),
        ("ValidatingAdmissionPolicy 'p' with binding 'b' denied request", "admission policy"),
        ("is forbidden: exceeded quota: small", "quota"),
    ],
)
def test_a_refused_object_is_reported_with_who_refused_it(said: str, by: str) -> None:
    line = f"error restoring configmaps/{SANDBOX}/b: {said}"
    verdict = judged(TWO, {"v1/ConfigMap": ["red/a(created)", "red/b(failed)"]}, [line], "PartiallyFailed")
    (problem,) = verdict.problems
    assert (problem.reason, problem.refused_by) == (Reason.ITEMS_REFUSED, by)
    assert said in problem.message


def test_partially_failed_is_a_failure_even_if_every_object_arrived() -> None:
    arrived = {"v1/ConfigMap": ["red/a(created)", "red/b(created)"]}
    verdict = judged(TWO, arrived, ["a plugin crashed"], "PartiallyFailed")
    assert verdict.reason is Reason.RESTORE_PARTIALLY_FAILED
    assert "a plugin crashed" in verdict.message
    assert judged(TWO, arrived, [], "PartiallyFailed").reason is Reason.RESTORE_PARTIALLY_FAILED


@pytest.mark.parametrize("namespace", ["*", "kube-*", "", "..", "Red", "a b", "red\n", "r" * 64])
def test_a_list_with_a_namespace_that_cannot_exist_is_not_read(namespace: str) -> None:
    file = backup(v1_ConfigMap=["red/a", f"{namespace}/b"])
    assert contents_of(file, Wanted(), SERVED) is None
    assert contents_of(backup(v1_ConfigMap=["red/a"]), Wanted(), SERVED) is not None


def test_a_backup_of_what_every_new_namespace_has_is_empty() -> None:
    found = judge(contents(backup(v1_ConfigMap=["red/kube-root-ca.crt"])), BOX, "Completed", b"{}", b"{}")
    assert found is not None
    assert (found.reason, found.expected) == (Reason.BACKUP_EMPTY, 0)


def test_a_verdict_without_a_restore_shows_the_first_problems_only() -> None:
    found = verdict_without_restore(contents(backup(**{f"old_v1_Kind{number}": ["red/a"] for number in range(500)})))
    assert found is not None
    assert (len(found.problems), found.count) == (MOST_IN_EVIDENCE, 500)


@pytest.mark.timed
def test_many_definitions_and_many_kinds_cost_little() -> None:
    kinds = {f"old.org/v1/Kind{number}": ["red/a"] for number in range(20_000)}
    definitions = [f"kind{number}s.old.org" for number in range(20_000)]
    file = json.dumps({**kinds, "apiextensions.k8s.io/v1/CustomResourceDefinition": definitions}).encode()
    began = process_time()
    assert contents(file).problems == ()
    assert process_time() - began < 5


@pytest.mark.timed
def test_many_warnings_about_many_objects_cost_little() -> None:
    file = backup(v1_ConfigMap=[f"red/c{number}" for number in range(20_000)])
    warnings = [f'configmaps "other{number}" ' + "x" * 900 for number in range(2_000)]
    results = json.dumps({"warnings": {"namespaces": {"red": warnings}}}).encode()
    seen = contents(file)
    began = process_time()
    found = judge(seen, BOX, "Completed", b"{}", results)
    assert process_time() - began < 5
    assert found is not None
    assert found.count == 20_000


def test_what_every_new_namespace_has_is_no_failure() -> None:
    items = contents(backup(v1_ConfigMap=["red/kube-root-ca.crt", "red/a"], v1_ServiceAccount=["red/default"]))
    restored = {
        "v1/ConfigMap": ["red/kube-root-ca.crt(failed)", "red/a(created)"],
        "v1/ServiceAccount": ["red/default(skipped)"],
    }
    verdict = judged(items, restored)
    assert (verdict.reason, verdict.expected, verdict.not_checked) == (Reason.COMPLETE, 1, 2)


def test_a_completed_job_is_not_restored_and_no_failure() -> None:
    items = contents(backup(batch_v1_Job=["red/done", "red/waiting"], v1_ConfigMap=["red/a"]))
    verdict = judged(items, {"batch/v1/Job": ["red/waiting(created)"], "v1/ConfigMap": ["red/a(created)"]})
    assert (verdict.reason, verdict.expected, verdict.found, verdict.not_checked) == (Reason.COMPLETE, 2, 2, 1)


def test_an_object_of_the_same_name_outside_the_sandbox_proves_nothing() -> None:
    verdict = judge(TWO, BOX, "Completed", b'{"v1/ConfigMap": ["red/a(created)", "red/b(created)"]}', None)
    assert verdict is not None
    assert (verdict.found, verdict.reason) == (0, Reason.ITEMS_MISSING)


def test_files_that_are_not_of_veleros_shape_give_no_verdict() -> None:
    assert judge(TWO, BOX, "Completed", b"[]", None) is None
    assert judge(TWO, BOX, "Completed", b"{}", b"[]") is None


def test_many_problems_are_counted_and_the_first_are_shown() -> None:
    items = Contents(tuple(Item("v1/ConfigMap", "red", f"c{number}") for number in range(250)))
    verdict = judge(items, BOX, "Completed", b"{}", None)
    assert verdict is not None
    assert (verdict.count, len(verdict.problems), verdict.expected) == (250, 100, 250)
    assert verdict.message.endswith("; and 247 more")


def test_a_group_whose_server_does_not_answer_counts_as_served() -> None:
    version = DiscoveredVersion("v1", (DiscoveredResource("widgets", ResponseKind("Widget")),), "Current")
    stale = DiscoveredVersion("v1", (), "Stale")
    groups = (
        DiscoveredGroup(DiscoveredMetadata("example.com"), (version,)),
        DiscoveredGroup(DiscoveredMetadata("metrics.k8s.io"), (stale,)),
    )
    served = served_kinds(Discovery(items=groups))
    assert served.resources == {"example.com/v1/Widget": "widgets.example.com"}
    assert [served.has(each) for each in ("example.com/v1/Widget", "metrics.k8s.io/v1/Pod", "v1/Pod", "a.b/v1/C")] == [
        True,
        True,
        True,
        False,
    ]


@pytest.mark.parametrize(("has_data", "expected"), [(True, ()), (False, ("ciliumnetworkpolicies.cilium.io",))])
def test_depth_data_restores_no_policies_of_network_plugins(has_data: bool, expected: tuple[str, ...]) -> None:
    served = Served({"cilium.io/v2/CiliumNetworkPolicy": "ciliumnetworkpolicies.cilium.io"})
    wanted = Wanted(custom=("ciliumnetworkpolicies.cilium.io",), has_data=has_data)
    file = json.dumps({"cilium.io/v2/CiliumNetworkPolicy": ["red/open"], "v1/Pod": ["red/a"]}).encode()
    found = contents_of(file, wanted, served)
    assert found is not None
    assert (found.custom, found.problems) == (expected, ())
    restored = included_resources(found.custom, has_data=has_data)
    assert ("ciliumnetworkpolicies.cilium.io" in restored) is not has_data


def test_the_chart_refuses_checks_that_list_policies_of_network_plugins() -> None:
    rendered = (files("foresail") / "manifests" / "foresail.yaml").read_text()
    assert all(f'"{each}"' in rendered for each in NETWORK_GROUPS)
