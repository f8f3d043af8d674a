"""Findings 1.4 and 1.6 on a real Velero: tenants' backups and restores wait in our queue, and delay nobody by much."""

from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Any

import pytest

from foresail.api.instants import instant
from foresail.api.velero import AFTER_THE_QUEUE, SCHEDULE_LABEL, TERMINAL
from foresail.kube.clock import now
from testbed import Cluster
from tests.cluster.operators import SELF_SERVICE, running
from tests.cluster.schedules import FULL, schedule
from tests.cluster.tenants import API, VELERO, Eventually, Tenant, arrive, condition, create, install, of_namespace

pytestmark = pytest.mark.full

CROWD, OTHERS, RESTORING = "turns-crowd", "turns-others", "turns-restoring"
MANY = 60 if FULL else 25
LATEST = datetime.max.replace(tzinfo=now().tzinfo)


@pytest.fixture(scope="module")
def served(own_velero_cluster: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """Velero with both charts, its schedule controller off, and the operators of Schedules and self-service."""
    cluster = own_velero_cluster
    cluster.restart_velero("schedule")
    install(cluster, schedules=True)
    for name in (CROWD, OTHERS):
        set_quotas(cluster, name, {"active": MANY})
    folder = tmp_path_factory.mktemp("operator")
    with running(cluster, folder), running(cluster, folder, *SELF_SERVICE):
        yield cluster


def set_quotas(cluster: Cluster, namespace: str, quotas: dict[str, Any]) -> None:
    selector = {"matchLabels": {"kubernetes.io/metadata.name": namespace}}
    spec = {"namespaceSelector": selector, "quotas": quotas}
    meta = {"name": f"quotas-of-{namespace}"}
    cluster.apply({"apiVersion": "foresail.dev/v1alpha1", "kind": "SelfServicePolicy", "metadata": meta, "spec": spec})


def at(item: dict[str, Any], field: str) -> datetime:
    text = item.get("status", {}).get(field)
    return (instant(text) if text else None) or LATEST


def busy(cluster: Cluster, kind: str, namespace: str) -> int:
    """Return how many objects of a namespace wait in Velero's queue or occupy one of its workers."""
    phases = [each.get("status", {}).get("phase", "") for each in of_namespace(cluster, kind, namespace)]
    return sum(phase not in TERMINAL | AFTER_THE_QUEUE for phase in phases)


def restore_all(tenant: Tenant, names: list[str]) -> None:
    spec = {"restoreSpec": {"backupName": "before"}}
    items = [{"apiVersion": API, "kind": "NonAdminRestore", "metadata": {"name": name}, "spec": spec} for name in names]
    tenant.kubectl("create", "--filename=-", body={"apiVersion": "v1", "kind": "List", "items": items})


def test_finding_1_6_a_crowd_of_backups_delays_a_scheduled_run_by_one_at_most_and_others_get_their_share(
    served: Cluster, eventually: Eventually
) -> None:
    crowd, others = arrive(served, CROWD, eventually), arrive(served, OTHERS, eventually)
    for tenant in (crowd, others):
        tenant.back_up("before")
        tenant.wait("nonadminbackup/before", "--for=condition=Succeeded")
    slot = (now() + timedelta(seconds=75)).replace(second=0, microsecond=0)
    served.apply(schedule("nightly", f"{slot.minute} {slot.hour} * * *", {"includedNamespaces": ["*"]}))
    create(crowd, [f"b{number:02}" for number in range(MANY - 1)], {})
    create(others, ["late"], {})

    def nights() -> list[dict[str, Any]]:
        query = ("backups.velero.io", f"--namespace={VELERO}", f"--selector={SCHEDULE_LABEL}=nightly")
        found: list[dict[str, Any]] = served.get(*query)["items"]
        return [each for each in found if at(each, "startTimestamp") < LATEST]

    most = 0

    def has_run() -> bool:
        nonlocal most
        most = max(most, busy(served, "backups", CROWD))
        return bool(nights())

    eventually(has_run, 240)
    assert most <= 2, "Velero gets its concurrency and one more"
    start = at(nights()[0], "startTimestamp")
    tenants = [*of_namespace(served, "backups", CROWD), *of_namespace(served, "backups", OTHERS)]
    between = [
        each for each in tenants if at(each, "startTimestamp") < start and at(each, "completionTimestamp") > slot
    ]
    assert len(between) <= 1
    others.wait("nonadminbackup/late", "--for=condition=Succeeded")
    crowd.wait(f"nonadminbackup/b{MANY - 2:02}", "--for=condition=Succeeded", seconds=600)
    served.kubectl("delete", "schedules.velero.io", "nightly", f"--namespace={VELERO}")


def test_finding_1_4_restores_have_quotas_a_queue_and_a_history(served: Cluster, eventually: Eventually) -> None:
    crowd = arrive(served, RESTORING, eventually)
    set_quotas(served, RESTORING, {"restores": {"active": 0}})
    crowd.back_up("before")
    crowd.wait("nonadminbackup/before", "--for=condition=Succeeded")
    crowd.restore("none", "before")
    crowd.wait("nonadminrestore/none", "--for=condition=Accepted=False")
    assert condition(crowd.status("nonadminrestore/none"), "Accepted")[1] == "QuotaExceeded"
    set_quotas(served, RESTORING, {"restores": {"active": 20, "history": 2}})
    restore_all(crowd, [f"r{number:02}" for number in range(10)])
    eventually(lambda: len(of_namespace(served, "restores", RESTORING)) >= 2, 120)
    (backup,) = of_namespace(served, "backups", RESTORING)
    served.velero("restore", "create", "admins", f"--from-backup={backup['metadata']['name']}")
    assert busy(served, "restores", RESTORING) <= 1, "Velero gets one restore of tenants at a time"

    def admins() -> dict[str, Any]:
        found: dict[str, Any] = served.get("restores.velero.io", "admins", f"--namespace={VELERO}")
        return found

    eventually(lambda: at(admins(), "startTimestamp") < LATEST, 120)
    came, start = instant(admins()["metadata"]["creationTimestamp"]), at(admins(), "startTimestamp")
    assert came is not None
    crowds = of_namespace(served, "restores", RESTORING)
    before = [each for each in crowds if at(each, "startTimestamp") < start and at(each, "completionTimestamp") > came]
    assert len(before) <= 2, "it starts within two restores' time"
    eventually(lambda: len(crowd.names("nonadminrestores")) == 2, 240)
    eventually(lambda: len(of_namespace(served, "restores", RESTORING)) == 2, 60)
