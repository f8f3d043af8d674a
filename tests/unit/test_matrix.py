"""`make matrix` names tests: one that was renamed would be left out, or run where it cannot pass, without a word."""

from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from testbed.components import COMPONENTS
from tests.matrix import KUBERNETES, LEFT_OUT, NEEDS_MUTATION, SELECTION, VELERO, Result, count

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("name", [*SELECTION, *LEFT_OUT, *NEEDS_MUTATION])
def test_every_test_of_the_matrix_exists(name: str) -> None:
    file, _, function = name.partition("::")
    assert f"def {function}" in (ROOT / file).read_text()


def test_every_version_of_the_matrix_can_be_built() -> None:
    assert {each.kubernetes for each in KUBERNETES.values()} <= COMPONENTS.keys()
    assert set(VELERO.values()) <= COMPONENTS.keys()


def test_a_skipped_test_counts_as_a_failed_one() -> None:
    report = '<s><testcase name="a"/><testcase name="b"><skipped/></testcase><testcase name="c"><error/></testcase></s>'
    result = Result("1.36", "1.18")
    count(ET.fromstring(report).iter("testcase"), result)  # noqa: S314 - written above
    assert (result.passed, result.failed) == (1, ["b", "c"])
