"""Whether placeholders pull images ahead, and what becomes of it where image volumes are refused."""

import pytest

from foresail.api import pods
from foresail.plan import Create, Key
from foresail.primers.bookkeeping import ImageVolumes
from foresail.primers.controller import Primers
from foresail.primers.rows import NodeRow, pulls_images
from foresail.primers.view import Settings
from tests.unit.primers.rows import primer

HERE = "reports"
ABOUT_VOLUMES = 'violates PodSecurity: volume "image-0" uses restricted volume type "unknown"'


@pytest.mark.parametrize(
    ("version", "pulls"),
    [
        ("v1.35.0", True),
        ("v1.36.3-eks-1234567", True),
        ("v1.34.9+k3s1", False),
        ("v1.9.1", False),
        ("v2.0.0", True),
        ("kwok-v0.7.0", False),
        ("", False),
    ],
)
def test_a_kubelet_pulls_from_the_release_on_in_which_image_volumes_are_on(version: str, pulls: bool) -> None:
    assert pulls_images(version) is pulls


def node(**fields: bool) -> NodeRow:
    return NodeRow(
        is_terminating=False, is_unwarmable=fields.get("windows", False), pulls_images=fields.get("pulls", True)
    )


@pytest.mark.parametrize(
    ("setting", "nodes", "pulls"),
    [
        (None, [], False),
        (None, [node()], True),
        (None, [node(), node(pulls=False)], False),
        (None, [node(), node(pulls=False, windows=True)], True),
        (False, [node()], False),
        (True, [node(pulls=False)], True),
    ],
)
def test_images_are_pulled_where_every_node_can_or_as_it_is_set(
    setting: bool | None, nodes: list[NodeRow], pulls: bool
) -> None:
    primers = Primers(Settings(image_volumes=setting))
    for number, row in enumerate(nodes):
        primers.state.nodes.put(Key("", f"node-{number}"), row)
    key = Key(HERE, "warm")
    primers.state.primers.put(key, primer())
    primer_view = primers.observe(key, primer().created)
    assert primer_view is not None
    assert primer_view.settings.image_volumes is pulls


def creation(*, images: bool) -> Create:
    volumes = {"volumes": [{"name": "image-0", "image": {"reference": "work:1"}}]} if images else {}
    return Create(pods.POD, Key(HERE, "place"), {"spec": volumes}, {})


def test_where_image_volumes_are_refused_placeholders_omit_them_and_that_is_reported_until_one_is_accepted() -> None:
    volumes = ImageVolumes()
    assert volumes.learn_refusal(creation(images=True), ABOUT_VOLUMES)
    assert not volumes.are_accepted(HERE)
    assert volumes.are_accepted("elsewhere")
    assert volumes.unreported_refusal(HERE) == ABOUT_VOLUMES
    volumes.learn_creations(HERE, (creation(images=False),))
    assert volumes.unreported_refusal(HERE) == ""
    assert not volumes.are_accepted(HERE)


def test_a_refusal_for_another_reason_is_not_put_down_to_the_images() -> None:
    volumes = ImageVolumes()
    assert not volumes.learn_refusal(creation(images=True), "exceeded quota: small, requested: requests.cpu=2")
    assert volumes.are_accepted(HERE)
    assert volumes.learn_refusal(creation(images=True), ABOUT_VOLUMES)
    assert not volumes.learn_refusal(creation(images=False), "host volumes are not allowed either")
    assert volumes.are_accepted(HERE), "without the images it is refused as well"
