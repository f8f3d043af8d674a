"""The one manifest of `foresail install`: how it is merged from Helm's renderings, and where its blanks are.

`tests/cluster/test_chart.py` compares what is composed from it with Helm's rendering, for each set of capabilities.
"""

import re
from collections.abc import Iterator
from importlib.resources import files
from typing import Any

import pytest
import yaml

from foresail.cli.install.manifests import CAPABILITIES, InstallOptions, operators
from testbed import TestbedError
from testbed.charts import SWITCHES, merged

BLANK = re.compile("[A-Z]+-(NAMESPACE|SERVICE-ACCOUNT|IMAGE)")
A, B, ALERTS = "schedules", "primers", "monitoring.yaml"


def document(name: str, template: str = "any.yaml") -> str:
    return f"# Source: foresail/templates/{template}\nname: {name}"


def marks(text: str) -> list[tuple[str, list[str], list[str]]]:
    found = yaml.safe_load_all(text)
    return [(each["object"]["name"], each["for"], each.get("without", [])) for each in found]


def test_each_object_is_marked_with_the_capabilities_it_is_for_and_stays_in_the_order_of_helm() -> None:
    both = [document(name) for name in ("role of a", "common", "b with a", "end")]
    renderings = {
        (A,): [document("role of a"), document("common"), document("end")],
        (B,): [document("common"), document("b alone"), document("end")],
        (A, B): [*both, document("alert", ALERTS)],
    }
    assert marks(merged(renderings)) == [
        ("role of a", [A], []),
        ("common", [], []),
        ("b alone", [B], [A]),
        ("b with a", [A, B], []),
        ("end", [], []),
        ("alert", [A, B, "monitoring"], []),
    ]


def test_an_object_that_no_capabilities_describe_is_refused() -> None:
    with pytest.raises(TestbedError, match="either"):
        merged({(A,): [document("either")], (B,): [document("either")], (A, B): []})


def test_the_manifest_knows_the_capabilities_of_the_command() -> None:
    assert tuple(SWITCHES) == CAPABILITIES


def expressions(value: Any) -> Iterator[str]:  # noqa: ANN401 - whatever YAML has
    """Yield the expressions in CEL."""
    below = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    for each in below:
        yield from expressions(each)
    if isinstance(value, dict) and isinstance(value.get("expression"), str):
        yield value["expression"]


def test_a_name_in_a_policy_is_only_ever_part_of_a_string() -> None:
    """So a name, which has no quotes, cannot change what an expression means."""
    text = (files("foresail") / "manifests" / "foresail.yaml").read_text()
    named = [each for each in expressions([*yaml.load_all(text, yaml.CSafeLoader)]) if BLANK.search(each)]
    assert len(named) > 10
    assert not [each for each in named if BLANK.search(re.sub(r'"([^"\\]|\\.)*"', "", each))]


def test_an_installation_cannot_change_the_next_one() -> None:
    options = InstallOptions(CAPABILITIES, "velero", "velero", "foresail:1", schedules_with_hooks=("db",))
    before = repr(operators(options))
    for piece in operators(options):
        piece.body["metadata"].clear()
    assert repr(operators(options)) == before
