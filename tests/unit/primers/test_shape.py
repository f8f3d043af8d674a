"""What the scheduler counts of a pod, and whether quotas have room for it."""

from typing import Any

import pytest

from foresail.plan import Key
from foresail.primers.observe import QuotaRow
from foresail.primers.quota import first_exceeded
from tests.unit.primers.rows import shape


def asks(cpu: str, **others: Any) -> dict[str, Any]:  # noqa: ANN401 - JSON
    return {"name": "c", "image": "c:1", "resources": {"requests": {"cpu": cpu}}, **others}


@pytest.mark.parametrize(
    ("spec", "cpu"),
    [
        ({"containers": [asks("1"), asks("500m")]}, "1500m"),
        ({"containers": [asks("1")], "initContainers": [asks("3")]}, "3"),
        ({"containers": [asks("1")], "initContainers": [asks("1", restartPolicy="Always")]}, "2"),
        ({"containers": [asks("1")], "initContainers": [asks("2", restartPolicy="Always"), asks("3")]}, "5"),
        ({"containers": [asks("1")], "initContainers": [asks("3"), asks("2", restartPolicy="Always")]}, "3"),
        ({"containers": [asks("1")], "whole": {"requests": {"cpu": "7"}}}, "7"),
        ({"containers": [{"name": "c", "resources": {"limits": {"cpu": "4"}}}]}, "4"),
    ],
)
def test_the_effective_request_is_what_the_scheduler_counts(spec: dict[str, Any], cpu: str) -> None:
    assert dict(shape(**spec).requests) == {"cpu": cpu}


def test_limits_count_only_if_all_that_run_have_them() -> None:
    limited = {"name": "c", "resources": {"limits": {"cpu": "1"}}}
    assert dict(shape(containers=[limited, limited]).limits) == {"cpu": "2"}
    assert shape(containers=[limited, asks("1")]).limits == ()


def test_equal_shapes_are_one() -> None:
    assert shape() is shape()


Scope = tuple[str, str, tuple[str, ...]]


def quota(hard: dict[str, str], used: dict[str, str] | None = None, *scopes: Scope) -> QuotaRow:
    return QuotaRow(Key("reports", "small"), scopes, tuple(hard.items()), tuple((used or {}).items()))


@pytest.mark.parametrize(
    ("hard", "used", "fits"),
    [
        ({"requests.cpu": "4"}, {"requests.cpu": "2"}, True),
        ({"requests.cpu": "3999m"}, {"requests.cpu": "2"}, False),
        ({"cpu": "3"}, {"cpu": "2"}, False),
        ({"pods": "1"}, {"pods": "1"}, False),
        ({"count/pods": "2"}, {"count/pods": "1"}, True),
        ({"memory": "1"}, {"memory": "1"}, True),
        ({"limits.cpu": "1"}, {"limits.cpu": "1"}, True),
        ({"services": "1"}, {"services": "1"}, True),
    ],
)
def test_a_quota_has_room_or_not(hard: dict[str, str], used: dict[str, str], fits: bool) -> None:
    assert (first_exceeded([quota(hard, used)], [(shape(), 1)]) is None) == fits


@pytest.mark.parametrize(
    ("scope", "counts"),
    [
        (("Terminating", "Exists", ()), False),
        (("NotTerminating", "Exists", ()), True),
        (("BestEffort", "Exists", ()), False),
        (("NotBestEffort", "Exists", ()), True),
        (("PriorityClass", "In", ("high",)), True),
        (("PriorityClass", "In", ("low",)), False),
        (("PriorityClass", "NotIn", ("low",)), True),
        (("PriorityClass", "Exists", ()), True),
        (("PriorityClass", "DoesNotExist", ()), False),
    ],
)
def test_a_scoped_quota_counts_only_what_is_in_its_scope(scope: Scope, counts: bool) -> None:
    full = quota({"requests.cpu": "1"}, {}, scope)
    assert (first_exceeded([full], [(shape(priorityClassName="high"), 1)]) is not None) == counts
