"""The queue on a real Velero, which works on one backup at a time: the number that a tenant sees only ever falls."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from testbed import Cluster
from tests.cluster.history import recorded
from tests.cluster.schedules import FULL
from tests.cluster.tenants import API, Eventually, Tenant, arrive, create, install, operator, quotas

TENANTS, EACH = (5, 4) if FULL else (4, 2)
NAMES = [f"queue-{number}" for number in range(TENANTS)]
SECONDS = 60 * TENANTS * EACH


@pytest.fixture(scope="module")
def served(own_velero_cluster: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """Velero with both charts, and the operator at work."""
    install(own_velero_cluster)
    for name in NAMES:
        quotas(name, own_velero_cluster, active=EACH)
    with operator(own_velero_cluster, tmp_path_factory.mktemp("operator") / "log"):
        yield own_velero_cluster


def numbers(states: list[dict[str, Any]]) -> dict[str, list[int]]:
    """Return the numbers that each request of ours has shown, each as often as it changed."""
    found: dict[str, list[int]] = {}
    for each in states:
        meta, number = each["metadata"], each.get("status", {}).get("queueInfo", {}).get("estimatedQueuePosition")
        if meta["namespace"] not in NAMES:
            continue
        shown = found.setdefault(f"{meta['namespace']}/{meta['name']}", [])
        if number is not None and (not shown or shown[-1] != number):
            shown.append(number)
    return found


def test_the_number_in_the_queue_only_falls_to_one_and_then_to_zero(
    served: Cluster, eventually: Eventually, figure: Callable[[str], None]
) -> None:
    tenants = [arrive(served, name, eventually) for name in NAMES]
    backups = [f"b{number}" for number in range(EACH)]

    def wait(tenant: Tenant, *words: str) -> None:
        tenant.kubectl("wait", "nonadminbackups", "--all", f"--timeout={SECONDS}s", *words)

    with recorded(served, f"/apis/{API}/nonadminbackups") as states:
        served.fault.stop("velero")
        try:
            for tenant in tenants:
                create(tenant, backups, {})
                wait(tenant, "--for=condition=Accepted")
        finally:
            served.fault.cont("velero")
        for tenant in tenants:
            wait(tenant, "--for=condition=Succeeded")
            wait(tenant, "--for=jsonpath={.status.queueInfo.estimatedQueuePosition}=0")
    mine = numbers(states)
    assert len(mine) == TENANTS * EACH
    for name, shown in mine.items():
        assert shown == sorted(set(shown), reverse=True), f"{name} showed {shown}"
        assert shown[-2:] == [1, 0], f"{name} showed {shown}"
    highest = max(shown[0] for shown in mine.values())
    assert highest == TENANTS * EACH, "the last to come has all others before it"
    figure(f"self-service: {len(mine)} backups of {TENANTS} tenants in the queue, numbers from {highest} to 0")
