"""What counts as a change of an installed object."""

import msgspec
import pytest

from foresail.cli.install.objects import changed_fields


def deployment(*, version: str = "1", image: str = "a", ready: int = 0, label: str = "x") -> msgspec.Raw:
    metadata = {"name": "foresail", "resourceVersion": version, "generation": 1, "labels": {"app": label}}
    body = {"metadata": metadata, "spec": {"image": image}, "status": {"readyReplicas": ready}}
    return msgspec.Raw(msgspec.json.encode(body))


def test_a_status_that_a_controller_writes_meanwhile_is_no_change() -> None:
    assert changed_fields(deployment(), deployment(version="2", ready=1)) == ""


@pytest.mark.parametrize(
    ("after", "fields"),
    [
        (deployment(image="b"), "spec.image"),
        (deployment(label="y"), "metadata.labels.app"),
        (deployment(image="b", label="y"), "metadata.labels.app, spec.image"),
    ],
)
def test_a_changed_spec_or_label_is_named(after: msgspec.Raw, fields: str) -> None:
    assert changed_fields(deployment(), after) == fields


def test_of_many_changed_fields_three_are_named() -> None:
    one, other = (
        msgspec.Raw(msgspec.json.encode({"metadata": {}, "spec": dict.fromkeys("abcde", value)})) for value in (1, 2)
    )
    assert changed_fields(one, other) == "spec.a, spec.b, spec.c and 2 more"
