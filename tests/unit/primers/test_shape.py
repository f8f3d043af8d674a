"""What the scheduler counts of a pod, and whether quotas have room for it."""

import gc
import tracemalloc
from collections import deque
from collections.abc import Iterator
from fractions import Fraction
from typing import Any

import msgspec
import pytest

from foresail.api.quantities import quantity
from foresail.plan import Key
from foresail.primers.affinity import with_node_affinity, with_volume_affinity
from foresail.primers.quotas import first_exceeded
from foresail.primers.rows import QuotaRow
from foresail.primers.shape import Share, shares, with_requests
from tests.unit.primers.rows import shape

MEGABYTE = 1_000_000


def asks(cpu: str, **others: Any) -> dict[str, Any]:  # noqa: ANN401 - JSON
    return {"name": "c", "image": "c:1", "resources": {"requests": {"cpu": cpu}}, **others}


def limited(**limits: str) -> dict[str, Any]:
    return {"name": "c", "image": "c:1", "resources": {"limits": limits}}


GPU, HUGE = "example.com/gpu", "hugepages-2Mi"


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
    one = limited(cpu="1")
    assert dict(shape(containers=[one, one]).limits) == {"cpu": "2"}
    assert shape(containers=[one, asks("1")]).limits == ()


@pytest.mark.parametrize(
    ("spec", "limits"),
    [
        ({"containers": [limited(cpu="2", memory="1Gi"), limited(cpu="2")]}, {"cpu": "4"}),
        ({"containers": [limited(memory="1Gi"), limited(cpu="2")]}, {}),
        ({"containers": [limited(cpu="1")], "initContainers": [asks("4")]}, {}),
        ({"containers": [limited(cpu="1")], "initContainers": [limited(cpu="4")]}, {"cpu": "4"}),
        ({"containers": [limited(**{GPU: "1"}), asks("1")]}, {GPU: "1"}),
        ({"containers": [limited(**{HUGE: "4Mi", "cpu": "1"}), asks("1")]}, {HUGE: "4194304"}),
        ({"containers": [asks("1")], "whole": {"requests": {"cpu": "7"}, "limits": {"cpu": "8"}}}, {"cpu": "8"}),
    ],
    ids=["one each", "not the same", "init without", "init larger", "device", "huge pages", "pod level"],
)
def test_a_resource_has_a_limit_only_if_every_container_limits_it(spec: dict[str, Any], limits: dict[str, str]) -> None:
    assert dict(shape(**spec).limits) == limits


def total(shares: list[Share], part: int) -> dict[str, Fraction]:
    found: dict[str, Fraction] = {}
    for each in shares:
        for name, text in each[part].items():
            found[name] = found.get(name, Fraction(0)) + quantity(text)
    return found


def test_a_shape_is_split_into_as_many_containers_as_run_at_once() -> None:
    sidecar = asks("1", restartPolicy="Always")
    found = shape(containers=[asks("2"), asks("1001m")], initContainers=[sidecar, asks("9")])
    parts = shares(found)
    assert [each[0]["cpu"] for each in parts] == ["3334m", "3333m", "3333m"]
    assert total(parts, 0) == {"cpu": 10}


def test_each_share_keeps_to_what_a_limit_range_allows_a_container() -> None:
    both = {"requests": {"cpu": "101m"}, "limits": {"cpu": "202m"}}
    small = {"requests": {"cpu": "100m"}, "limits": {"cpu": "200m"}}
    parts = shares(shape(containers=[{"name": "a", "resources": both}, {"name": "b", "resources": small}]))
    for requests, limits in parts:
        assert Fraction(1, 10) <= quantity(requests["cpu"]) <= quantity(limits["cpu"]) <= Fraction(202, 1000)
        assert quantity(limits["cpu"]) <= 2 * quantity(requests["cpu"])


def test_a_device_is_not_divided() -> None:
    parts = shares(shape(containers=[limited(**{GPU: "1"}, cpu="1"), asks("1")]))
    assert [each[0][GPU] for each in parts] == ["1", "0"]
    assert [each[1][GPU] for each in parts] == ["1", "0"]


def test_a_limit_without_a_request_is_not_taken_for_one() -> None:
    (share,) = shares(shape(containers=[{"name": "c", "resources": {"requests": {"cpu": "0"}, "limits": {"cpu": 1}}}]))
    assert share == ({"cpu": "0"}, {"cpu": "1"})


def test_what_is_requested_as_nothing_is_passed_on_for_a_quota_that_wants_it_named() -> None:
    found = shape(resources={"requests": {"cpu": "0"}})
    assert shares(found) == [({"cpu": "0"}, {})]
    assert found.is_best_effort


def test_other_requests_have_limits_that_allow_them() -> None:
    found = with_requests(shape(containers=[limited(cpu="1", memory="1Gi")]), (("cpu", "4"), (GPU, "2")))
    assert dict(found.limits) == {"cpu": "4", GPU: "2"}


def test_what_admission_gives_every_pod_makes_no_other_shape() -> None:
    own = [{"key": "batch", "operator": "Exists"}]
    added = [
        {"key": f"node.kubernetes.io/{each}", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300}
        for each in ("not-ready", "unreachable")
    ]
    assert shape(tolerations=added, schedulerName="default-scheduler") == shape()
    assert shape(tolerations=[*own, *added]) == shape(tolerations=own)


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


def kept_after(versions: Iterator[object]) -> int:
    """Return how many bytes stay in memory after so many versions of something, of which nobody keeps one."""
    gc.collect()
    tracemalloc.start()
    try:
        deque(versions, maxlen=0)
        gc.collect()
        return tracemalloc.get_traced_memory()[0]
    finally:
        tracemalloc.stop()


def required(text: str) -> bytes:
    terms = {"nodeSelectorTerms": [{"matchExpressions": [{"key": text, "operator": "Exists"}]}]}
    return msgspec.json.encode({"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}})


def test_of_a_cron_job_that_gets_another_large_affinity_each_time_no_version_stays() -> None:
    assert kept_after(shape(affinity={"n": f"{n}" * MEGABYTE}) for n in range(9)) < 3 * MEGABYTE


def test_of_very_many_small_shapes_only_those_in_use_stay() -> None:
    assert kept_after(shape(nodeSelector={"n": f"{n:01000}"}) for n in range(2_000)) < MEGABYTE


def test_large_tolerations_and_affinities_are_not_cached() -> None:
    key = "node.kubernetes.io/not-ready"
    assert kept_after(shape(tolerations=[{"key": key}, {"key": f"{n}" * MEGABYTE}]) for n in range(9)) < 3 * MEGABYTE
    assert kept_after(with_volume_affinity(required(f"{n}" * MEGABYTE), ()) for n in range(9)) < 3 * MEGABYTE
    assert kept_after(with_node_affinity(required(f"{n}" * MEGABYTE), required("a")) for n in range(9)) < 3 * MEGABYTE


def test_of_equal_shapes_in_use_there_is_one() -> None:
    one = shape(affinity={"n": "x" * MEGABYTE})
    assert shape(affinity={"n": "x" * MEGABYTE}) is one
    assert shape(affinity={"n": "y"}) is not one
