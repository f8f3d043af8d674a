"""The rule of the chart that a claim comes with a class: where it holds, and that nothing turns it off.

`tests/cluster/test_selfservice_admission.py` tries it on an API server.
"""

from importlib.resources import files
from typing import Any

import yaml

OBJECTS = {
    (each["object"]["kind"], each["object"]["metadata"]["name"]): each["object"]["spec"]
    for each in yaml.load_all((files("foresail") / "manifests" / "foresail.yaml").read_text(), yaml.CSafeLoader)
    if each["object"]["kind"].startswith("ValidatingAdmissionPolicy")
}
POLICY, BINDING = "ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding"
CLASS = '"storageClassName" in object.spec'
LEGACY = '"volume.beta.kubernetes.io/storage-class" in object.metadata.?annotations.orValue({})'


def validations(name: str) -> list[Any]:
    found: list[Any] = OBJECTS[POLICY, name]["validations"]
    return found


def test_it_holds_where_annotations_for_velero_are_refused() -> None:
    for suffix in ("", "-new"):
        ours, known = (OBJECTS[BINDING, name + suffix] for name in ("foresail-claims", "foresail-velero-annotations"))
        assert ours["validationActions"] == ["Deny"]
        assert ours["matchResources"] == known["matchResources"]


def test_it_fails_closed_and_is_of_claims_that_are_created() -> None:
    spec = OBJECTS[POLICY, "foresail-claims"]
    assert spec["failurePolicy"] == "Fail"
    assert "paramKind" not in spec
    (rule,) = spec["matchConstraints"]["resourceRules"]
    assert rule["operations"] == ["CREATE"]
    assert rule["resources"] == ["persistentvolumeclaims"]


def test_the_class_and_the_annotation_are_checked_as_in_a_sandbox() -> None:
    with_class, without_annotation = (each["expression"] for each in validations("foresail-claims"))
    assert CLASS in with_class
    assert LEGACY in without_annotation
    assert any(LEGACY in each["expression"] for each in validations("foresail-sandbox"))


def test_the_message_names_the_claim_and_what_to_set() -> None:
    for each in validations("foresail-claims"):
        assert "object.metadata.name" in each["messageExpression"]
        assert "spec.storageClassName" in each["messageExpression"]
