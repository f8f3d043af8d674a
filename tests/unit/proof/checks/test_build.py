"""How objects of a backup are made harmless before Velero creates them."""

import json
from datetime import UTC, datetime
from hashlib import sha256
from typing import Any

import pytest

from foresail.api.restore_check import CheckedBackups, RestoreCheckSpec, RestoreCheckStatus
from foresail.plan import Key
from foresail.proof.checks.build import evidence, modifiers
from foresail.proof.checks.data_build import ClaimRule, claim_rules
from foresail.proof.checks.rows import EXCLUDED, CheckRow

NOW = datetime(2026, 11, 17, 9, tzinfo=UTC)
SPEC = RestoreCheckSpec(CheckedBackups("nightly"))
CHECK = CheckRow(Key("velero", "nightly"), "a", "1", 1, NOW, SPEC, RestoreCheckStatus(), "velero")
NEW_VOLUME = {"volumeName": None, "dataSource": None, "dataSourceRef": None}
TOKEN = "kubernetes.io/service-account-token"  # noqa: S105 - a type of Secret


def merged(rules: list[dict[str, Any]], kind: str) -> dict[str, Any]:
    """Return what is written into a Secret of a type, by the rules that match it."""
    found: dict[str, Any] = {"metadata": {}, "type": kind}
    for rule in rules:
        conditions = rule["conditions"]
        wanted = {each["path"]: each["value"] for each in conditions.get("matches", ())}
        if conditions["groupResource"] not in ("**", "secrets") or wanted.get("/type", kind) != kind:
            continue
        patch = json.loads(rule["mergePatches"][0]["patchData"])
        found |= {**patch, "metadata": found["metadata"] | patch.get("metadata", {})}
    return found


@pytest.mark.parametrize("has_data", [False, True])
@pytest.mark.parametrize("kind", ["Opaque", "kubernetes.io/tls", "example.com/other", TOKEN])
def test_no_secret_keeps_an_annotation_or_gets_a_token(kind: str, has_data: bool) -> None:
    data: Any = modifiers(CHECK, "0123456789", [] if has_data else None).body["data"]
    secret = merged(json.loads(data["modifiers.yaml"])["resourceModifierRules"], kind)
    assert secret["metadata"] == {"annotations": None, "finalizers": None, "ownerReferences": None, "labels": EXCLUDED}
    assert secret["type"] == ("Opaque" if kind == TOKEN else kind), "the API server refuses tokens without annotations"


@pytest.mark.parametrize("has_data", [False, True])
@pytest.mark.parametrize(
    "resource",
    ["deployments.apps", "statefulsets.apps", "replicasets.apps", "replicationcontrollers", "daemonsets.apps"],
)
def test_what_controllers_create_from_a_template_is_in_no_other_backup(resource: str, has_data: bool) -> None:
    data: Any = modifiers(CHECK, "0123456789", [] if has_data else None).body["data"]
    rules = json.loads(data["modifiers.yaml"])["resourceModifierRules"]
    patches = [json.loads(each["mergePatches"][0]["patchData"]) for each in rules if resource in str(each)]
    (template,) = [each["spec"]["template"] for each in patches if "template" in each.get("spec", {})]
    assert template["metadata"]["labels"] == {"velero.io/exclude-from-backup": "true"}


def test_a_claim_with_moved_data_keeps_the_selector_by_which_it_finds_its_volume() -> None:
    claims = [("red", "data"), ("red", "a.b"), ("red", "logs"), ("blue", "data")]
    assert claim_rules(claims, ()) == [ClaimRule({"spec": {**NEW_VOLUME, "selector": None}})]
    everything, blue, red = claim_rules(claims, (("red", "data"),))
    assert everything == ClaimRule({"spec": NEW_VOLUME})
    assert blue.conditions == {"namespaces": ["blue"], "resourceNameRegex": "^(data)$"}
    assert red.conditions == {"namespaces": ["red"], "resourceNameRegex": r"^(a\.b|logs)$"}
    assert blue.patch == red.patch == {"spec": {"selector": None}}


def test_evidence_cannot_be_changed_and_has_the_digest_of_its_record() -> None:
    record = {"result": "Pass", "backup": "nightly-1", "message": "über 3 objects"}
    made = evidence(CHECK, "0123456789", record)
    body: Any = made.body
    assert made.key == Key("velero", "check-0123456789-evidence")
    assert body["immutable"] is True, "the API server then refuses every change of its data"
    assert set(body["data"]) == {"record.json", "sha256"}
    text = body["data"]["record.json"]
    assert json.loads(text) == record
    assert body["data"]["sha256"] == sha256(text.encode()).hexdigest()


def test_the_digest_of_evidence_does_not_depend_on_the_order_of_fields() -> None:
    one: Any = evidence(CHECK, "0123456789", {"a": 1, "b": 2}).body
    other: Any = evidence(CHECK, "0123456789", {"b": 2, "a": 1}).body
    assert one["data"]["sha256"] == other["data"]["sha256"]
