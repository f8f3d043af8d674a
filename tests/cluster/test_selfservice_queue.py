"""The queue on a real Velero, which works on one backup at a time: the number that a tenant sees only ever falls."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from testbed import Cluster
from tests.cluster.schedules import FULL
from tests.cluster.tenants import Eventually, Tenant, arrive, create, install, operator, quotas, recorded

TENANTS, EACH = (5, 4) if FULL else (4, 2)
NAMES = [f"queue-{number}" for number in range(TENANTS)]
SECONDS = 30 * TENANTS * EACH
SHOWN = r'{.metadata.namespace}/{.metadata.name} {.status.queueInfo.estimatedQueuePosition}{"\n"}'


@pytest.fixture(scope="module")
def served(own_velero_cluster: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """Velero with both charts, and the operator at work."""
    install(own_velero_cluster)
    for name in NAMES:
        quotas(name, own_velero_cluster, active=EACH)
    with operator(own_velero_cluster, tmp_path_factory.mktemp("operator") / "log"):
        yield own_velero_cluster


def numbers(file: Path) -> dict[str, list[int]]:
    """Return the numbers that each request has shown, each as often as it changed."""
    found: dict[str, list[int]] = {}
    for line in file.read_text().splitlines():
        name, _, number = line.partition(" ")
        shown = found.setdefault(name, [])
        if number and (not shown or shown[-1] != int(number)):
            shown.append(int(number))
    return found


def test_the_number_in_the_queue_only_falls_to_one_and_then_to_zero(
    served: Cluster, tmp_path: Path, eventually: Eventually, figure: Callable[[str], None]
) -> None:
    tenants = [arrive(served, name, eventually) for name in NAMES]
    file = tmp_path / "numbers"
    backups = [f"b{number}" for number in range(EACH)]

    def wait(tenant: Tenant, *words: str) -> None:
        tenant.kubectl("wait", "nonadminbackups", "--all", f"--timeout={SECONDS}s", *words)

    with recorded(served, file, SHOWN, "nonadminbackups", "--all-namespaces"):
        served.fault.stop("velero")
        try:
            for tenant in tenants:
                create(tenant, backups, {})
                wait(tenant, "--for=jsonpath={.status.phase}=Created")
        finally:
            served.fault.cont("velero")
        for tenant in tenants:
            wait(tenant, "--for=condition=Succeeded")
            wait(tenant, "--for=jsonpath={.status.queueInfo.estimatedQueuePosition}=0")
    found = numbers(file)
    mine = {name: found[name] for name in found if name.split("/")[0] in NAMES}
    assert len(mine) == TENANTS * EACH
    for name, shown in mine.items():
        assert shown == sorted(set(shown), reverse=True), f"{name} showed {shown}"
        assert shown[-2:] == [1, 0], f"{name} showed {shown}"
    highest = max(shown[0] for shown in mine.values())
    assert highest == TENANTS * EACH, "the last to come has all others before it"
    figure(f"self-service: {len(mine)} backups of {TENANTS} tenants in Velero's queue, numbers from {highest} to 0")
