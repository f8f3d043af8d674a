"""The operator is killed again and again amid the tenants' requests: one Velero Backup each, and none that is nobody's.

Velero is frozen meanwhile: what is tried here is what the operator writes, not what Velero makes of it.
"""

import json
import random
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from testbed import Cluster
from tests.cluster.history import recorded
from tests.cluster.operators import Operator, running
from tests.cluster.schedules import FULL
from tests.cluster.tenants import VELERO, Eventually, Tenant, arrive, create, install, of_namespace, quotas

KILLS = 200 if FULL else 10
EACH = 3  # requests before each kill
AIM_SECONDS = 20.0  # by then a process that was to kill itself at a write has come to it, or never will
WRITES = 12  # of so many that are due after each start, one is aimed at
MADE = f"/apis/velero.io/v1/namespaces/{VELERO}/backups"
REQUEST = "foresail.dev/request-uid"
WITH_WINDOW = ("--schedules=false", "--self-service")
FLAGS = (*WITH_WINDOW, "--self-service-window=0")  # Velero is frozen, and would get no more than a window


@contextmanager
def frozen(cluster: Cluster) -> Iterator[None]:
    """Let Velero do nothing for a while, and take away what was made for it to do."""
    cluster.fault.stop("velero")
    try:
        yield
    finally:
        cluster.kubectl("delete", "namespace", "killed", "--timeout=240s", "--ignore-not-found")
        left = [each["metadata"]["name"] for each in of_namespace(cluster, "backups", "killed")]
        if left:
            cluster.kubectl("delete", "backups.velero.io", *left, f"--namespace={VELERO}")
        cluster.fault.cont("velero")


def kill(operator: Operator, chance: random.Random, *, aimed: bool) -> str:
    """Start the operator and let it die: at one of its writes, or at any instant."""
    if not aimed:
        operator.start()
        time.sleep(chance.uniform(0, 1))
        operator.kill()
        return "at random"
    side = chance.choice(("before", "after"))
    process = operator.begin(FORESAIL_TEST_KILL=f"{side}:{chance.randint(1, WRITES)}")
    deadline = time.monotonic() + AIM_SECONDS
    while process.poll() is None and time.monotonic() < deadline:
        time.sleep(0.05)
    met = process.poll() is not None
    operator.kill()
    return f"{side} a write" if met else "at random"


def test_however_often_it_is_killed_each_request_has_one_velero_backup_and_none_is_an_orphan(
    own_velero_cluster: Cluster, tmp_path: Path, eventually: Eventually, figure: Callable[[str], None]
) -> None:
    cluster = own_velero_cluster
    install(cluster)
    quotas("killed", cluster, stored=EACH * KILLS)
    chance = random.Random(7)  # noqa: S311 - chance, not secrecy
    hal = arrive(cluster, "killed", eventually)
    kinds: Counter[str] = Counter()
    kept: list[str] = []
    with (
        running(cluster, tmp_path, *FLAGS) as operator,
        frozen(cluster),
        recorded(cluster, MADE) as states,
    ):
        operator.kill()
        for number in range(KILLS):
            fresh = [f"n{number}-{one}" for one in range(EACH)]
            create(hal, fresh, {})
            if kept:
                hal.wants(kept.pop(chance.randrange(len(kept))), forceDeleteBackup=True)
            kept += fresh
            kinds[kill(operator, chance, aimed=bool(number % 2))] += 1
        operator.start()
        eventually(lambda: phases_by_name(hal) == dict.fromkeys(kept, "Created"), 240)
        found = of_namespace(cluster, "backups", "killed")
        names = sorted(each["metadata"]["annotations"]["openshift.io/oadp-nab-origin-name"] for each in found)
        assert names == sorted(kept), "one for each request that is left, and none for those that are gone"
    made = {(each["metadata"]["annotations"][REQUEST], each["metadata"]["uid"]) for each in states}
    requests = Counter(request for request, _ in made)
    assert set(requests.values()) == {1}, "no request ever had a second one"
    assert len(requests) >= len(kept)
    how = ", ".join(f"{count} {kind}" for kind, count in sorted(kinds.items()))
    figure(f"self-service: {KILLS} kills ({how}): {len(made)} Velero Backups for {EACH * KILLS} requests, none twice")


@pytest.mark.full
def test_however_often_it_is_killed_each_request_is_handed_over_once_and_velero_gets_a_window(
    own_velero_cluster: Cluster, tmp_path: Path, eventually: Eventually, figure: Callable[[str], None]
) -> None:
    cluster = own_velero_cluster
    install(cluster)
    quotas("queued", cluster, stored=EACH * KILLS)
    chance = random.Random(8)  # noqa: S311 - chance, not secrecy
    hal = arrive(cluster, "queued", eventually)
    asked: list[str] = []
    with running(cluster, tmp_path, *WITH_WINDOW) as operator, recorded(cluster, MADE) as states:
        operator.kill()
        for number in range(KILLS):
            fresh = [f"q{number}-{one}" for one in range(EACH)]
            create(hal, fresh, {})
            asked += fresh
            kill(operator, chance, aimed=bool(number % 2))
        operator.start()
        hal.kubectl("wait", "nonadminbackups", "--all", "--for=condition=Succeeded", f"--timeout={20 * len(asked)}s")
    ours = [each for each in states if REQUEST in each["metadata"].get("annotations", {})]
    made = {(each["metadata"]["annotations"][REQUEST], each["metadata"]["uid"]) for each in ours}
    assert len(made) == len({request for request, _ in made}) == len(asked), "each once, and none lost"
    unfinished: set[str] = set()
    most = 0
    for each in ours:
        is_busy = each.get("status", {}).get("phase", "") in ("", "New", "Queued", "ReadyToStart", "InProgress")
        (unfinished.add if is_busy else unfinished.discard)(each["metadata"]["name"])
        most = max(most, len(unfinished))
    assert most <= 2, "Velero never gets more than its window"
    figure(f"self-service: {KILLS} kills with a window: {len(made)} Velero Backups for {len(asked)}, {most} at a time")


def phases_by_name(tenant: Tenant) -> dict[str, str]:
    """Return the phase of each request."""
    items = json.loads(tenant.kubectl("get", "nonadminbackups", "--output=json"))["items"]
    return {each["metadata"]["name"]: each.get("status", {}).get("phase", "") for each in items}
