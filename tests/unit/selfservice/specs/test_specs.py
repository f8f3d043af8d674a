"""What a tenant's spec comes to when it is in order, and what is said when it is not."""

from typing import Any

import msgspec
import pytest

from foresail.api.specs import BackupSpec
from foresail.proof.tiers import COMPLETE, part_of
from foresail.proof.view import BackupRow
from foresail.selfservice.reasons import Refused
from foresail.selfservice.specs.build import backup_spec, restore_spec
from tests.unit.selfservice.policies import policy

ALWAYS = {
    "includedNamespaces": ["shop"],
    "excludedNamespaceScopedResources": ["*.oadp.openshift.io", "rollbacks.foresail.dev"],
    "excludedClusterScopedResources": ["*.*", "componentstatuses", "nodes"],
    "defaultVolumesToFsBackup": False,
    "resourcePolicy": {"kind": "configmap", "name": "foresail-snapshot-volumes"},
}


def test_the_smallest_manifest_works_unchanged() -> None:
    assert backup_spec({}, "shop", policy()) == ALWAYS
    made = restore_spec({"backupName": "daily"}, "shop", "shop-daily-1", policy())
    assert isinstance(made, dict)
    assert set(made) == {"backupName", "includedNamespaces", "excludedResources"}


def test_coverage_counts_a_backup_without_options_as_one_of_everything() -> None:
    spec = msgspec.convert(backup_spec({}, "shop", policy()), BackupSpec)
    assert part_of(BackupRow("b", "Completed", spec), None) == COMPLETE


def test_what_means_nothing_may_stand() -> None:
    nothing: dict[str, Any] = {
        "includedNamespaces": [],
        "excludedNamespaces": [],
        "includedResources": None,
        "includedClusterScopedResources": [],
        "orLabelSelectors": [],
        "hooks": {},
        "metadata": {},
        "storageLocation": "",
        "volumeSnapshotLocations": [],
        "ttl": "0s",
        "defaultVolumesToRestic": False,
        "orderedResources": {},
    }
    assert backup_spec(nothing, "shop", policy()) == ALWAYS


@pytest.mark.parametrize(
    ("older", "newer"),
    [
        ({"includedResources": ["Deployments", "pods"]}, {"includedNamespaceScopedResources": ["deployments", "pods"]}),
        ({"includedResources": ["*"]}, {"includedNamespaceScopedResources": ["*"]}),
        ({"includedResources": ["pvc", "pv", "namespaces"]}, {"includedNamespaceScopedResources": ["pvc"]}),
        (
            {"excludedResources": ["secrets"]},
            {
                "excludedNamespaceScopedResources": ["secrets", "*.oadp.openshift.io", "rollbacks.foresail.dev"],
                "excludedClusterScopedResources": ["secrets", "*.*", "componentstatuses", "nodes"],
            },
        ),
        ({"includeClusterResources": False}, {"excludedClusterScopedResources": ["*"]}),
    ],
)
def test_veleros_older_lists_are_said_in_the_newer_ones(older: dict[str, Any], newer: dict[str, Any]) -> None:
    assert backup_spec(older, "shop", policy()) == {**ALWAYS, **newer}


@pytest.mark.parametrize(
    ("spec", "said"),
    [
        ({"includedResources": ["pods"], "excludedNamespaceScopedResources": ["secrets"]}, "accepts only one style"),
        ({"includeClusterResources": False, "includedNamespaceScopedResources": ["pods"]}, "accepts only one style"),
        ({"includedResources": ["*", "pods"]}, "contains * and names"),
        ({"excludedResources": ["*"]}, "excludes everything"),
        ({"excludedNamespaceScopedResources": ["*"]}, "excludes everything"),
        ({"excludedClusterScopedResources": ["*", "nodes"]}, "contains * and names"),
        ({"includedResources": ["pods"], "excludedResources": ["Pods"]}, "both includes and excludes pods"),
        ({"includedResources": ["pv", "namespaces"]}, "includes no namespaced kind"),
        ({"includedResources": ["pods"] * 257}, "has 257 entries; shorten it to at most 256"),
        ({"labelSelector": {}, "orLabelSelectors": [{}]}, "cannot be combined"),
        ({"labelSelector": {"matchExpressions": [{"key": "a", "operator": "Gt"}]}}, "Invalid enum value 'Gt'"),
        ({"labelSelector": {"matchExpressions": [{"key": "a", "operator": "In"}]}}, "has no values"),
        ({"labelSelector": {"matchLabels": {"a b": "c"}}}, "not a valid label key"),
        ({"labelSelector": {"matchLabels": {"a": "c d"}}}, "not a valid label value"),
        ({"metadata": {"labels": {"velero.io/schedule-name": "x"}}}, "is reserved"),
        ({"metadata": {"labels": {"foresail.dev/slot": "x"}}}, "is reserved"),
        ({"orderedResources": {"pods": "other/a"}}, "write objects as shop/NAME"),
        ({"orderedResources": {"pods": "shop/a,b"}}, "write objects as shop/NAME"),
        ({"orderedResources": {"*": "shop/a"}}, "which is not a kind"),
        ({"ttl": "1d"}, "is invalid; correct it"),
        ({"ttl": "1h\n"}, "is not a duration"),
        ({"snapshotVolumes": "yes"}, "is invalid; correct it"),
        ({"defaultVolumesToRestic": True}, "set defaultVolumesToFsBackup instead"),
        ({"volumeGroupSnapshotLabelKey": "app"}, "is not allowed by SelfServicePolicy team"),
    ],
)
def test_a_backup_that_is_not_in_order_is_refused_in_a_sentence(spec: dict[str, Any], said: str) -> None:
    made = backup_spec(spec, "shop", policy())
    assert isinstance(made, Refused)
    assert said in made.message


def test_what_a_tenant_may_set_is_passed_on() -> None:
    spec = {
        "metadata": {"labels": {"app": "web"}},
        "labelSelector": {"matchExpressions": [{"key": "app", "operator": "In", "values": ["web"]}]},
        "orderedResources": {"pods": "shop/db-0,shop/db-1"},
        "ttl": "72h",
        "snapshotVolumes": True,
        "snapshotMoveData": False,
        "defaultVolumesToFsBackup": False,
        "csiSnapshotTimeout": "10m",
        "uploaderConfig": {"parallelFilesUpload": 4},
    }
    assert backup_spec(spec, "shop", policy()) == {**ALWAYS, **spec}


def test_a_default_is_for_who_wrote_nothing_and_a_required_value_for_everyone() -> None:
    rules = policy(backup={"defaults": {"snapshotVolumes": False}, "required": {"ttl": "24h", "datamover": "kopia"}})
    made = backup_spec({"snapshotVolumes": True, "ttl": "24h0m0s"}, "shop", rules)
    assert made == {**ALWAYS, "snapshotVolumes": True, "ttl": "24h", "datamover": "kopia"}
    made = backup_spec({}, "shop", rules)
    skipped = {"kind": "configmap", "name": "foresail-skip-volumes"}
    rest = {"snapshotVolumes": False, "resourcePolicy": skipped, "ttl": "24h", "datamover": "kopia"}
    assert made == {**ALWAYS, **rest}
    made = backup_spec({"ttl": "25h"}, "shop", rules)
    assert isinstance(made, Refused)
    assert made.message == "the administrator has restricted spec.backupSpec.ttl field value to 24h"


def test_a_restore_of_allowed_kinds_is_of_no_others() -> None:
    rules = policy(restore={"kinds": {"allowed": ["deployments.apps", "persistentvolumeclaims", "configmaps"]}})
    made = restore_spec({"backupName": "daily"}, "shop", "b", rules)
    assert isinstance(made, dict)
    assert made["includedResources"] == [
        "deployments.apps",
        "persistentvolumeclaims",
        "configmaps",
        "persistentvolumes",
        "volumesnapshots.snapshot.storage.k8s.io",
        "volumesnapshotcontents.snapshot.storage.k8s.io",
    ]
    made = restore_spec({"backupName": "daily", "includedResources": ["deployments"]}, "shop", "b", rules)
    assert isinstance(made, dict)
    assert made["includedResources"] == ["deployments.apps"]


@pytest.mark.parametrize(
    ("kinds", "spec", "said"),
    [
        ({"allowed": []}, {}, "allows no kind to be restored"),
        ({"allowed": ["nonadminbackups.oadp.openshift.io"]}, {}, "allows no kind to be restored"),
        ({"allowed": ["pods"], "refused": ["pods"]}, {}, "allows no kind to be restored"),
        ({"allowed": ["pods"]}, {"includedResources": ["secrets"]}, "choose from pods"),
        ({"allowed": ["pods"]}, {"excludedResources": ["pods"]}, "nothing is left to restore"),
        ({"refused": ["["]}, {}, "ask a cluster administrator to correct it"),
    ],
)
def test_a_list_that_comes_to_nothing_is_refused_for_to_velero_nothing_means_everything(
    kinds: dict[str, Any], spec: dict[str, Any], said: str
) -> None:
    made = restore_spec({"backupName": "daily", **spec}, "shop", "b", policy(restore={"kinds": kinds}))
    assert isinstance(made, Refused)
    assert said in made.message


def test_a_kind_that_is_refused_by_default_comes_back_where_the_policy_names_it() -> None:
    rules = policy(restore={"kinds": {"allowed": ["roles.rbac.authorization.k8s.io"]}})
    made = restore_spec({"backupName": "daily"}, "shop", "b", rules)
    assert isinstance(made, dict)
    assert made["includedResources"] == ["roles.rbac.authorization.k8s.io"]
    assert "roles.rbac.authorization.k8s.io" not in made["excludedResources"]
    assert "rolebindings.rbac.authorization.k8s.io" in made["excludedResources"]


def test_a_list_of_refused_kinds_keeps_the_other_names_of_the_same_rights_refused() -> None:
    made = restore_spec({"backupName": "daily"}, "shop", "b", policy(restore={"kinds": {"refused": ["secrets"]}}))
    assert isinstance(made, dict)
    aliases = {"rolebindings.authorization.openshift.io", "endpoints", "endpointslices.discovery.k8s.io"}
    assert {"secrets", *aliases} <= set(made["excludedResources"])
    assert "roles.rbac.authorization.k8s.io" not in made["excludedResources"]


def test_the_spec_that_is_made_shares_nothing_with_the_tenants() -> None:
    tenant = {"orderedResources": {"pods": "shop/a"}, "labelSelector": {"matchLabels": {"a": "b"}}}
    made = backup_spec(tenant, "shop", policy())
    assert isinstance(made, dict)
    made["orderedResources"]["pods"] = made["labelSelector"]["matchLabels"]["a"] = "changed"
    assert tenant == {"orderedResources": {"pods": "shop/a"}, "labelSelector": {"matchLabels": {"a": "b"}}}


def test_a_message_is_never_longer_than_a_few_lines() -> None:
    made = backup_spec({"storageLocation": "x" * 100_000, "ttl": "1h"}, "shop", policy())
    assert isinstance(made, Refused)
    assert len(made.message) < 250


def test_a_choice_is_named_once() -> None:
    rules = policy(restore={"allowed": {"existingResourcePolicies": ["none"]}})
    refused = restore_spec({"backupName": "daily", "existingResourcePolicy": "update"}, "shop", "shop-daily-1", rules)
    assert isinstance(refused, Refused)
    assert refused.message.endswith("choose one of none")
