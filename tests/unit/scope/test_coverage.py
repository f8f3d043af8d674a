from typing import Any

import msgspec
import pytest

from foresail.api.specs import BackupSpec
from foresail.scope.covered import Namespaces, covered, scope_of
from foresail.scope.discovery import Discovery, ResourceKind
from foresail.scope.releases import Release, release_of, unknown_release
from foresail.scope.resource_policies import PolicyError, config_map_of, policies_of
from foresail.scope.world import World, world_of

KINDS = Discovery(
    (
        ResourceKind("", "configmaps", "ConfigMap", namespaced=True, singular="configmap", short_names=("cm",)),
        ResourceKind("", "events", "Event", namespaced=True, singular="event"),
        ResourceKind("", "namespaces", "Namespace", namespaced=False, singular="namespace", short_names=("ns",)),
        ResourceKind("", "persistentvolumeclaims", "PersistentVolumeClaim", namespaced=True, short_names=("pvc",)),
        ResourceKind("", "persistentvolumes", "PersistentVolume", namespaced=False, short_names=("pv",)),
        ResourceKind("", "pods", "Pod", namespaced=True, singular="pod", short_names=("po",)),
        ResourceKind("", "serviceaccounts", "ServiceAccount", namespaced=True, short_names=("sa",)),
        ResourceKind("apps", "deployments", "Deployment", namespaced=True, short_names=("deploy",)),
        ResourceKind("events.k8s.io", "events", "Event", namespaced=True, singular="event"),
        ResourceKind("rbac.authorization.k8s.io", "clusterrolebindings", "ClusterRoleBinding", namespaced=False),
        ResourceKind("rbac.authorization.k8s.io", "clusterroles", "ClusterRole", namespaced=False),
        ResourceKind("scheduling.k8s.io", "priorityclasses", "PriorityClass", namespaced=False),
        ResourceKind("apiextensions.k8s.io", "customresourcedefinitions", "CRD", namespaced=False),
        ResourceKind("shop.example", "orders", "Order", namespaced=True, singular="order"),
    )
)


def body(name: str, namespace: str = "", labels: dict[str, str] | None = None, **rest: object) -> dict[str, Any]:
    metadata: dict[str, Any] = {"name": name, "labels": labels or {}}
    return {"metadata": metadata | ({"namespace": namespace} if namespace else {}), **rest}


def namespace(name: str, **labels: str) -> tuple[str, dict[str, Any]]:
    return "namespaces", body(name, labels=labels, status={"phase": "Active"})


def world(*extra: tuple[str, dict[str, Any]]) -> World:
    pod_spec = {"volumes": [{"name": "d", "persistentVolumeClaim": {"claimName": "data"}}], "priorityClassName": "vip"}
    subject = {"kind": "ServiceAccount", "namespace": "shop", "name": "clerk"}
    return world_of(
        KINDS,
        [
            namespace("shop", tier="gold"),
            namespace("bank"),
            ("configmaps", body("settings", "shop", {"app": "web"})),
            ("configmaps", body("settings", "bank")),
            ("events", body("e1", "shop")),
            ("events.events.k8s.io", body("e1", "shop")),
            ("pods", body("web-0", "shop", {"app": "web"}, spec=pod_spec)),
            (
                "persistentvolumeclaims",
                body("data", "shop", spec={"volumeName": "pv-1"}, status={"phase": "Bound"}),
            ),
            ("persistentvolumes", body("pv-1")),
            ("persistentvolumes", body("pv-2")),
            ("priorityclasses.scheduling.k8s.io", body("vip")),
            ("serviceaccounts", body("clerk", "shop", {"app": "web"})),
            (
                "clusterrolebindings.rbac.authorization.k8s.io",
                body("clerks", subjects=[subject], roleRef={"name": "clerk-role"}),
            ),
            ("clusterroles.rbac.authorization.k8s.io", body("clerk-role")),
            ("clusterroles.rbac.authorization.k8s.io", body("other-role")),
            ("orders.shop.example", body("order-1", "shop")),
            ("customresourcedefinitions.apiextensions.k8s.io", body("orders.shop.example")),
            ("customresourcedefinitions.apiextensions.k8s.io", body("bills.shop.example")),
            *extra,
        ],
    )


def names(spec: dict[str, Any], *extra: tuple[str, dict[str, Any]], policy: str = "") -> set[str]:
    policies = policies_of({"policy": policy}) if policy else None
    found = covered(msgspec.convert(spec, BackupSpec), world(*extra), policies)
    return {f"{each.kind.partition('.')[0]}:{each.namespace}/{each.name}" for each in found}


SHOP = {
    "namespaces:/shop",
    "configmaps:shop/settings",
    "events:shop/e1",
    "pods:shop/web-0",
    "persistentvolumeclaims:shop/data",
    "persistentvolumes:/pv-1",
    "priorityclasses:/vip",
    "serviceaccounts:shop/clerk",
    "clusterrolebindings:/clerks",
    "clusterroles:/clerk-role",
    "orders:shop/order-1",
    "customresourcedefinitions:/orders.shop.example",
}


def test_a_namespace_brings_the_cluster_objects_that_its_own_refer_to_and_no_others() -> None:
    assert names({"includedNamespaces": ["shop"]}) == SHOP


def test_a_pattern_covers_the_namespaces_that_it_matches() -> None:
    assert names({"includedNamespaces": ["sh*"]}) == SHOP
    assert names({"includedNamespaces": ["x*"]}) == set()


def test_cluster_resources_true_brings_all_of_them_and_false_none() -> None:
    assert "persistentvolumes:/pv-2" in names({"includedNamespaces": ["shop"], "includeClusterResources": True})
    assert names({"includedNamespaces": ["bank"], "includeClusterResources": False}) == {"configmaps:bank/settings"}


def test_only_named_kinds_are_covered_and_short_names_are_understood() -> None:
    assert names({"includedNamespaces": ["shop"], "includedResources": ["cm"]}) == {"configmaps:shop/settings"}


def test_a_short_name_stands_for_a_name_in_any_group() -> None:
    shipping = ResourceKind("shop.example", "deployments", "Deployment", namespaced=True, short_names=("shipping",))
    found = Discovery((*KINDS.kinds, shipping))
    assert found.resolve("shipping") == KINDS.resolve("deployments.apps")
    assert found.resolve("shipping.shop.example") == shipping
    assert found.resolve("shipping.shop") == shipping


def test_a_pod_brings_only_related_kinds_that_the_old_list_includes() -> None:
    assert names({"includedNamespaces": ["shop"], "includedResources": ["pods", "pvc"]}) == {
        "pods:shop/web-0",
        "persistentvolumeclaims:shop/data",
    }


def test_the_new_lists_let_related_cluster_objects_through_unless_excluded() -> None:
    spec = {"includedNamespaces": ["shop"], "includedNamespaceScopedResources": ["pods", "pvc"]}
    pods = {"namespaces:/shop", "pods:shop/web-0", "persistentvolumeclaims:shop/data"}
    assert names(spec) == pods | {"persistentvolumes:/pv-1", "priorityclasses:/vip"}
    assert names({**spec, "excludedClusterScopedResources": ["*"]}) == {"pods:shop/web-0", *pods} - {"namespaces:/shop"}


def test_a_label_selector_covers_what_it_selects_and_what_that_refers_to() -> None:
    selected = names({"labelSelector": {"matchLabels": {"app": "web"}}})
    assert selected == SHOP - {
        "events:shop/e1",
        "orders:shop/order-1",
        "customresourcedefinitions:/orders.shop.example",
    }


def test_a_selected_namespace_is_covered_even_if_the_list_leaves_it_out() -> None:
    assert names({"includedNamespaces": ["bank"], "labelSelector": {"matchLabels": {"tier": "gold"}}}) == {
        "namespaces:/bank",
        "namespaces:/shop",
    }


def test_an_empty_label_selector_covers_no_object() -> None:
    assert names({"includedNamespaces": ["shop"], "labelSelector": {}}) == {"namespaces:/shop", "namespaces:/bank"}


def test_one_of_several_selectors_is_enough() -> None:
    spec = {"orLabelSelectors": [{"matchLabels": {"app": "no"}}, {"matchLabels": {"app": "web"}}]}
    assert "configmaps:shop/settings" in names(spec)


def test_the_exclusion_label_leaves_an_object_out() -> None:
    left_out = ("configmaps", body("secret", "bank", {"velero.io/exclude-from-backup": "true"}))
    assert names({"includedNamespaces": ["bank"]}, left_out) == {"namespaces:/bank", "configmaps:bank/settings"}


def test_a_namespace_with_the_exclusion_label_cannot_be_named() -> None:
    vault = namespace("vault", **{"velero.io/exclude-from-backup": "true"})
    inside = ("configmaps", body("settings", "vault"))
    assert names({"includedNamespaces": ["vault"]}, vault, inside) == set()
    assert "configmaps:vault/settings" not in names({}, vault, inside)


@pytest.mark.parametrize(
    "spec",
    [
        {"includedResources": ["pods"], "includedNamespaceScopedResources": ["pods"]},
        {"includedNamespaces": ["shop"], "excludedNamespaces": ["shop"]},
        {"includedNamespaces": ["shop", "*"]},
        {"includedNamespaces": ["a**"]},
        {"includedNamespaces": ["Shop"]},
        {"labelSelector": {}, "orLabelSelectors": [{}]},
        {"excludedResources": ["*"]},
    ],
)
def test_a_spec_that_velero_refuses_covers_nothing(spec: dict[str, Any]) -> None:
    assert names(spec) == set()


def test_a_policy_can_leave_kinds_and_names_out() -> None:
    policy = "version: v1\nincludeExcludePolicy: {excludedNamespaceScopedResources: [cm]}"
    assert "configmaps:shop/settings" not in names({}, policy=policy)
    named = """
version: v1
namespacedFilterPolicies:
- namespaces: [shop]
  resourceFilters: [{kinds: [configmaps], excludedNames: [set*]}, {kinds: ["*"]}]
"""
    left = names({"includedNamespaces": ["shop", "bank"]}, policy=named)
    assert "configmaps:shop/settings" not in left
    assert {"configmaps:bank/settings", "pods:shop/web-0"} <= left


_SKIP = "action: {type: skip}"
_REPLICAS = "{csi: {driver: a, volumeAttributes: {replicas: 3}}}"


@pytest.mark.parametrize(
    "policy",
    [
        f"{{version: v1, volumePolicies: [{{{_SKIP}, conditions: {{pvcLabels: {{backup: true}}}}}}]}}",
        f"{{version: v1, volumePolicies: [{{{_SKIP}, conditions: {_REPLICAS}}}]}}",
        f"{{version: v1, volumePolicies: [{{{_SKIP}, conditions: }}]}}",
        f"{{version: v1, volumePolicies: [{{{_SKIP}, conditions: {{storageClass: , nfs: }}}}]}}",
        "version: v1\nvolumePolicies:\nincludeExcludePolicy:\nnamespacedFilterPolicies:\n",
        "{version: v1, namespacedFilterPolicies: [{namespaces: [Team-*], resourceFilters: [{kinds: [Pod]}]}]}",
        "{version: v1, clusterScopedFilterPolicy: {resourceFilters: [{kinds: [Node], names: [1, null]}]}}",
        "version: v1\n---\nversion: v2",
    ],
)
def test_a_policy_is_read_as_go_reads_yaml(policy: str) -> None:
    assert policies_of({"policy": policy}).version == "v1"


@pytest.mark.parametrize(
    "conditions",
    [
        "{pvcLabels: }",
        "{pvcLabels: {1: a}}",
        "{pvcLabels: [a]}",
        "{pvcVolumeMode: true}",
        "{pvcVolumeMode: }",
        "{pvcAccessModes: [1]}",
        "{pvcAccessModes: }",
        "{storageClass: fast}",
        "{unknown: }",
        "{csi: {volumeAttributes: {}}}",
    ],
)
def test_conditions_of_a_wrong_type_are_refused(conditions: str) -> None:
    policy = f"{{version: v1, volumePolicies: [{{{_SKIP}, conditions: {conditions}}}]}}"
    with pytest.raises(PolicyError):
        policies_of({"policy": policy})


@pytest.mark.parametrize(("kind", "name"), [("configmap", "rules"), ("ConfigMap", "rules"), ("secret", ""), ("", "")])
def test_velero_ignores_a_resource_policy_that_is_no_config_map(kind: str, name: str) -> None:
    spec = msgspec.convert({"resourcePolicy": {"kind": kind, "name": "rules"}}, BackupSpec)
    assert config_map_of(spec) == name


@pytest.mark.parametrize("text", ["version: v2", "version: v1\nextra: 1", "[", "version: v1\nvolumePolicies: [{}]"])
def test_a_policy_that_velero_refuses_is_an_error(text: str) -> None:
    with pytest.raises(PolicyError):
        policies_of({"policy": text})


_IN_A = "{version: v1, namespacedFilterPolicies: [{namespaces: [a], resourceFilters:"
_LABELS = "{matchLabels: {a: b}}"
_OF_CLUSTER = "ClusterScopedResources"


@pytest.mark.parametrize(
    "policy",
    [
        "{version: v1, includeExcludePolicy: {includedClusterScopedResources: ['*']}}",
        f"{{version: v1, includeExcludePolicy: {{included{_OF_CLUSTER}: [a], excluded{_OF_CLUSTER}: [a]}}}}",
        "{version: v1, volumePolicies: [{action: {type: skip}, conditions: {csi: {volumeAttributes: {a: b}}}}]}",
        "{version: v1, clusterScopedFilterPolicy: {resourceFilters: []}}",
        "{version: v1, clusterScopedFilterPolicy: {resourceFilters: [{names: [a]}]}}",
        "{version: v1, clusterScopedFilterPolicy: {resourceFilters: [{kinds: [Node]}, {kinds: [Node]}]}}",
        "{version: v1, clusterScopedFilterPolicy: {resourceFilters: [{kinds: [Node], names: ['[']}]}}",
        "{version: v1, namespacedFilterPolicies: [{namespaces: [], resourceFilters: [{kinds: [Pod]}]}]}",
        "{version: v1, namespacedFilterPolicies: [{namespaces: [a, a], resourceFilters: [{kinds: [Pod]}]}]}",
        "{version: v1, namespacedFilterPolicies: [{namespaces: ['a**'], resourceFilters: [{kinds: [Pod]}]}]}",
        "{version: v1, namespacedFilterPolicies: [{namespaces: [a], resourceFilters: [{}, {kinds: ['*']}]}]}",
        "{version: v1, namespacedFilterPolicies: [{namespaces: [a], resourceFilters: [{names: [b]}]}]}",
        f"{_IN_A} [{{kinds: [Pod], labelSelector: {_LABELS}, orLabelSelectors: [{_LABELS}]}}]}}]}}",
        f"{_IN_A} [{{kinds: [Pod], labelSelector: {{matchLabels: {{'no key': b}}}}}}]}}]}}",
        f"{_IN_A} [{{kinds: [Pod], labelSelector: {{matchLabels: {{key: 'no value'}}}}}}]}}]}}",
    ],
)
def test_a_policy_that_velero_can_read_may_have_mistakes(policy: str) -> None:
    with pytest.raises(PolicyError):
        policies_of({"policy": policy})


@pytest.mark.parametrize(
    "policy",
    [
        "{version: v1, volumePolicies: [{action: {type: custom}}]}",
        "{version: v1, volumePolicies: [{action: {type: skip}, conditions: {pvcPhase: [Bound]}}]}",
        "{version: v1, namespacedFilterPolicies: [{namespaces: [a], resourceFilters: [{kinds: [Pod]}]}]}",
    ],
)
def test_velero_1_17_refuses_what_it_does_not_know(policy: str) -> None:
    assert policies_of({"policy": policy}).version == "v1"
    with pytest.raises(PolicyError):
        policies_of({"policy": policy}, Release.V1_17)


def test_velero_1_17_lists_no_objects_by_a_pattern() -> None:
    spec = msgspec.convert({"includedNamespaces": ["sh*"]}, BackupSpec)
    assert {each.kind for each in covered(spec, world(), release=Release.V1_17)} == {"namespaces"}
    refused = msgspec.convert({"includedNamespaces": ["sho?"]}, BackupSpec)
    assert scope_of(refused, KINDS, Namespaces.of(world().namespaces), release=Release.V1_17).refused
    assert not scope_of(refused, KINDS, Namespaces.of(world().namespaces)).refused


@pytest.mark.parametrize(
    ("lists", "is_refused"),
    [({}, True), ({"excludedResources": ["namespaces"]}, False), ({"includedNamespaces": ["shop"]}, True)],
)
def test_velero_crashes_on_a_malformed_alternative_if_it_collects_namespaces(
    lists: dict[str, Any], *, is_refused: bool
) -> None:
    selectors = [{"matchLabels": {"app": "web"}}, {"matchLabels": {"not a key": "x"}}]
    spec = msgspec.convert({**lists, "orLabelSelectors": selectors}, BackupSpec)
    found = scope_of(spec, KINDS, Namespaces.of(world().namespaces)).refused
    assert bool(found) is is_refused
    assert not covered(spec, world())
    single = msgspec.convert({**lists, "labelSelector": selectors[1]}, BackupSpec)
    assert not scope_of(single, KINDS, Namespaces.of(world().namespaces)).refused


def test_velero_1_17_takes_excluded_namespaces_without_their_objects() -> None:
    spec = msgspec.convert({"excludedNamespaces": ["shop"], "includedNamespaceScopedResources": ["cm"]}, BackupSpec)
    found = {each[1:] for each in covered(spec, world(), release=Release.V1_17)}
    assert found == {("", "shop"), ("", "bank"), ("bank", "settings")}
    assert ("", "shop") not in {each[1:] for each in covered(spec, world())}


@pytest.mark.parametrize(
    ("version", "release"),
    [("v1.17.2", 17), ("v1.18.0", 18), ("1.16.1", 17), ("v1.30.0", 18), ("", 18), ("main", 18), ("v1.x", 18)],
)
def test_a_version_is_judged_by_the_rules_of_the_nearest_release(version: str, release: int) -> None:
    assert release_of(version) == release


@pytest.mark.parametrize("version", ["v1.17.2", "v1.18.0", "1.18.3", "", "main"])
def test_what_is_no_version_is_not_called_an_unknown_one(version: str) -> None:
    assert unknown_release(version) == ""


@pytest.mark.parametrize("version", ["v1.19.0", "v1.19.0-rc.1", "1.16.1", "v1.30"])
def test_the_rules_of_a_newer_or_older_release_are_not_guessed(version: str) -> None:
    assert unknown_release(version) == f"Velero {version} is unknown: Foresail has the rules of 1.17 and 1.18"


def test_a_policy_makes_velero_fail_on_pods_whose_claims_have_no_volume() -> None:
    mounting = {"volumes": [{"name": "d", "persistentVolumeClaim": {"claimName": "none"}}]}
    extra = (
        ("pods", body("lonely", "shop", spec=mounting)),
        ("persistentvolumeclaims", body("none", "shop", spec={}, status={"phase": "Pending"})),
    )
    spec = {"includedNamespaces": ["shop"]}
    policy = "{version: v1, volumePolicies: [{action: {type: skip}, conditions: {pvcPhase: [Pending]}}]}"
    assert "pods:shop/lonely" in names(spec, *extra)
    assert "pods:shop/lonely" in names(spec, *extra, policy=policy)
    found = names(spec, *extra, policy="{version: v1}")
    assert "pods:shop/lonely" not in found
    assert "persistentvolumeclaims:shop/none" in found
    old = covered(msgspec.convert(spec, BackupSpec), world(*extra), policies_of({"p": "{version: v1}"}), Release.V1_17)
    assert not {each for each in old if each.name in ("none", "lonely")}
    without_claims = {**spec, "excludedNamespaceScopedResources": ["pvc"]}
    assert "pods:shop/lonely" in names(without_claims, *extra, policy="{version: v1}")
