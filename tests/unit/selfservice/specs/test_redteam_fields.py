"""Every field that a tenant can write has an attack, and the checks of the attacks see what they look for."""

import re
from pathlib import Path
from typing import Any

import pytest

from foresail.api import marks
from foresail.api.nonadmin import NEVER_BACKED_UP
from tests.redteam.attack import ATTACKS
from tests.redteam.fields import HOSTILE_VALUES, REQUESTS, Attempt, fields_of, outcome, spec_with
from tests.redteam.load_watch import BATCHES, CONTROLS
from tests.redteam.modules import FIELDS_AND_OBJECTS, LOAD, PARTS
from tests.redteam.world import NAB, NADR, NAR, changes, given


@pytest.mark.parametrize("plural", REQUESTS)
def test_every_field_of_the_schema_has_an_attack(plural: str) -> None:
    """A new field of our kinds fails here until HOSTILE_VALUES has hostile values for it."""
    missing = fields_of(plural) - HOSTILE_VALUES[plural].keys()
    assert not missing, f"add hostile values for {sorted(missing)} to tests/redteam/fields.py"
    assert not HOSTILE_VALUES[plural].keys() - fields_of(plural), "these fields are gone"
    assert all(HOSTILE_VALUES[plural].values())


def test_there_are_at_least_forty_attacks_beside_the_fields_and_each_says_what_it_tries() -> None:
    parts = {part.name: part.attacks() for part in PARTS}
    assert sum(map(len, parts.values())) == len(ATTACKS), "each attack is in one part"
    assert len(parts[FIELDS_AND_OBJECTS]) >= 110
    assert len(parts[LOAD]) >= 30
    assert {"metadata", "pods", "numbers", "specs"} <= CONTROLS.keys() <= BATCHES.keys()
    assert len({each.name for each in ATTACKS}) == len(ATTACKS)
    assert all(each.tries.endswith(".") and "\n" not in each.tries for each in ATTACKS)
    assert sum(each.control is not None for each in ATTACKS) >= 40, "so many checks are known to see a success"


def test_a_hostile_value_is_at_its_path_in_an_otherwise_valid_spec() -> None:
    at = "backupSpec.hooks.resources[].pre[].exec.timeout"
    exec_hook = {"command": ["x"], "timeout": "9999h"}
    hooks = {"resources": [{"name": "x", "pre": [{"exec": exec_hook}]}]}
    assert spec_with(NAB, at, "9999h") == {"backupSpec": {"hooks": hooks}}
    assert spec_with(NAR, "restoreSpec.namespaceMapping{}", "victim") == {
        "restoreSpec": {"backupName": "own", "namespaceMapping": {"x": "victim"}}
    }
    assert spec_with(NADR, "target.kind", "BackupContents") == {"target": {"kind": "BackupContents", "name": "own"}}


def test_the_tests_and_attacks_that_the_threat_model_names_exist() -> None:
    root = Path(__file__).parents[4]
    page = (root / "docs/contributing/self-service-findings.md").read_text()
    rows = page.partition("## Findings and their tests")[2].partition("\n## ")[0]
    named = set(re.findall(r"`(test_\w+)`", rows))
    text = "".join(each.read_text() for each in sorted((root / "tests/cluster").glob("test_*.py")))
    assert named
    assert not {each for each in named if f"def {each}(" not in text}
    attacks = set(re.findall(r"`([a-z]+_[a-z_]+)`", rows)) - named
    assert attacks
    assert not attacks - {each.name for each in ATTACKS}


class OneBackup:
    """As much of a world as the check of a field needs."""

    def made_for(self, plural: str, namespace: str, name: str = "") -> list[dict[str, Any]]:
        assert (plural, namespace, name) == ("backups", "fields", "")
        return [{"metadata": {"name": "fields-own-1"}}]

    def policy(self, namespace: str) -> dict[str, Any]:
        assert namespace == "fields"
        return {}


def velero(spec: dict[str, Any], **labels: str) -> dict[str, dict[str, Any]]:
    ours = [{"manager": "foresail", "fieldsV1": {"f:spec": {f"f:{key}": {} for key in spec}}}]
    meta = {"annotations": {marks.REQUEST_UID: "uid"}, "labels": labels, "managedFields": ours}
    return {"uid": {"metadata": meta, "spec": spec}}


BACKUP = {
    "includedNamespaces": ["fields"],
    "excludedNamespaceScopedResources": [*NEVER_BACKED_UP],
    "excludedClusterScopedResources": ["*.*", "componentstatuses", "nodes"],
    "defaultVolumesToFsBackup": False,
    "resourcePolicy": {"kind": "configmap", "name": "foresail-snapshot-volumes"},
}
RESTORE = {
    "backupName": "fields-own-1",
    "includedNamespaces": ["fields"],
    "includedResources": ["configmaps"],
    "excludedResources": [*NEVER_BACKED_UP],
}
LOG = {"target": {"kind": "BackupLog", "name": "fields-own-1"}}


@pytest.mark.parametrize(
    ("plural", "good", "worse"),
    [
        (NAB, BACKUP, {"includedNamespaces": ["fields", "victim"]}),
        (NAB, BACKUP, {"storageLocation": "default"}),
        (NAB, BACKUP, {"defaultVolumesToFsBackup": True}),
        (NAB, BACKUP, {"hooks": {"resources": []}}),
        (NAB, BACKUP, {"orLabelSelectors": [{"matchLabels": {"x": "x" * 60_000}}]}),
        (NAR, RESTORE, {"backupName": "nightly"}),
        (NAR, RESTORE, {"namespaceMapping": {"fields": "victim"}}),
        (NAR, RESTORE, {"includedResources": ["rolebindings.rbac.authorization.k8s.io"]}),
        (NADR, LOG, {"target": {"kind": "BackupContents", "name": "fields-own-1"}}),
        (NADR, LOG, {"target": {"kind": "BackupLog", "name": "nightly"}}),
    ],
)
def test_the_check_of_a_field_sees_a_velero_object_that_must_not_exist(
    plural: str, good: dict[str, Any], worse: dict[str, Any]
) -> None:
    attempt = Attempt(plural, "any", "value", "name", uid="uid")
    world: Any = OneBackup()
    assert outcome(attempt, velero(good), world) == []
    assert outcome(attempt, velero({**good, **worse}), world)


def test_the_check_of_a_field_sees_a_label_of_velero() -> None:
    attempt = Attempt(NAB, "any", "value", "name", uid="uid")
    world: Any = OneBackup()
    assert outcome(attempt, velero(BACKUP, **{"velero.io/schedule-name": "nightly"}), world)


def test_what_velero_filled_in_is_not_blamed_on_the_operator() -> None:
    found = velero({"includedNamespaces": ["fields"]})["uid"]
    found["spec"]["storageLocation"] = "default"
    assert given(found) == {"includedNamespaces": ["fields"]}


def test_a_change_of_what_belongs_to_others_is_seen() -> None:
    before = {"a": "1", "b": "1"}
    assert changes(before, before) == []
    assert changes(before, {"b": "2", "c": "1"}) == ["a is gone", "b was changed", "c is new"]
