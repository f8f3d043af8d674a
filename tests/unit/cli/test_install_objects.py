"""What counts as a change of an installed object."""

import msgspec
import pytest

from foresail.cli.install.objects import content


def deployment(*, version: str = "1", image: str = "a", ready: int = 0, label: str = "x") -> msgspec.Raw:
    metadata = {"name": "foresail", "resourceVersion": version, "generation": 1, "labels": {"app": label}}
    body = {"metadata": metadata, "spec": {"image": image}, "status": {"readyReplicas": ready}}
    return msgspec.Raw(msgspec.json.encode(body))


def test_a_status_that_a_controller_writes_meanwhile_is_no_change() -> None:
    assert content(deployment()) == content(deployment(version="2", ready=1))


@pytest.mark.parametrize("after", [deployment(image="b"), deployment(label="y")])
def test_a_spec_or_a_label_is_a_change(after: msgspec.Raw) -> None:
    assert content(deployment()) != content(after)
