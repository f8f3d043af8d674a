"""When the comparison of plans with restores fails: by its audit, and by its figures."""

from datetime import UTC, datetime

import pytest

from bench.plan_oracle import is_failed, is_own_write
from testbed.audit import Request


@pytest.mark.parametrize(
    ("resource", "namespace", "name", "expected"),
    [
        ("namespaces", "", "foresail-plan-1", True),
        ("namespaces", "foresail-plan-1", "foresail-plan-1", True),
        ("namespaces", "", "shop", False),
        ("namespaces", "shop", "shop", False),
        ("namespaces", "", "", False),
        ("limitranges", "foresail-plan-1", "few", True),
        ("limitranges", "shop", "foresail-plan-1", False),
        ("downloadrequests.velero.io", "velero", "a", True),
        ("configmaps", "foresail-plan-1", "a", False),
    ],
)
def test_a_plan_writes_scratch_namespaces_and_download_requests_only(
    resource: str, namespace: str, name: str, *, expected: bool
) -> None:
    moment = datetime(2026, 11, 17, tzinfo=UTC)
    request = Request("planner", "create", "/", resource, namespace, name, 201, moment, ended=True)
    assert is_own_write(request) is expected


@pytest.mark.parametrize(
    ("figure", "value", "expected"),
    [
        ("mispredicted", 0, False),
        ("mispredicted", 1, True),
        ("foreign_writes", 1, True),
        ("scratch_namespaces_left", 1, True),
        ("seconds_for_1000_items", 10.0, False),
        ("seconds_for_1000_items", 10.01, True),
    ],
)
def test_a_figure_over_its_bound_fails(figure: str, value: float, *, expected: bool) -> None:
    figures = {"mispredicted": 0, "foreign_writes": 0, "scratch_namespaces_left": 0, "seconds_for_1000_items": 4.0}
    assert is_failed({**figures, figure: value}) is expected
