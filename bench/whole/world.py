"""One cluster with everything in it: what tenants, administrators and owners of CronJobs have, each at full size."""

from collections.abc import Iterator
from contextlib import contextmanager

import msgspec

from bench.nonadmin_schedules import schedules as tenant_schedules
from bench.primers import crowd
from bench.schedules import under_policies
from bench.selfservice.scale import check, first, multiply
from bench.selfservice.world import create_namespaces, install_policy, tenant, world
from bench.writing import create_all
from foresail.api.nonadmin import NON_ADMIN_SCHEDULE
from foresail.api.restore_check import RESTORE_CHECK
from foresail.plan import Body, Key
from testbed import Cluster
from testbed.velero import switch_off
from tests.cluster import primers, tenants

_QUICK = 2  # seconds that runs of CronJobs waited


class Numbers(msgspec.Struct, frozen=True):
    """How many there are of everything; ten NonAdminBackups are in a namespace."""

    backups: int
    schedules: int
    tenant_schedules: int
    cron_jobs: int
    checks: int


FULL = Numbers(backups=100_000, schedules=10_000, tenant_schedules=1_000, cron_jobs=10_000, checks=1_000)


def numbers(size: float) -> Numbers:
    """Return how many there are at a part of the full size."""
    return Numbers(**{name: round(count * size) for name, count in msgspec.structs.asdict(FULL).items()})


@contextmanager
def filled(wanted: Numbers) -> Iterator[Cluster]:
    """Bring up a cluster with so much of everything; nothing is due, and Velero is down."""
    # Otherwise the API server alone would take 20 GiB at full size.
    with world(saves_memory=True) as cluster:
        tenants.install(cluster, schedules=True, checks=True, primers=True)
        install_policy(
            cluster,
            schedules={"minimumInterval": "1s", "maximum": 1_000_000},
            restoreChecks={"maximum": 1_000, "minimumInterval": "1m"},
        )
        switch_off(cluster.site, ("schedule",))  # so that the operator serves the Schedules
        model = first(cluster)
        create_namespaces(cluster, sorted({tenant(number) for number in range(wanted.tenant_schedules)}))
        create_all(
            cluster,
            NON_ADMIN_SCHEDULE,
            tenant_schedules(wanted.tenant_schedules, under_policies.NEVER, "idle"),
        )
        create_all(cluster, RESTORE_CHECK, map(_check, range(wanted.checks)))
        under_policies.create_schedules(cluster, wanted.schedules)
        under_policies.create_policies(cluster)
        crowd.prepare(cluster)
        crowd.fill(cluster, crowd.Crowd(wanted.cron_jobs, (_QUICK,), primed=True), *primers.FLAGS)
        multiply(cluster, model, wanted.backups)
        check(cluster, wanted.backups)
        yield cluster


def _check(number: int) -> tuple[Key, Body]:
    key = Key(tenant(number), f"check-{number:05}")
    kind = {"apiVersion": RESTORE_CHECK.api_version, "kind": RESTORE_CHECK.name}
    spec = {"backups": {"nonAdminBackups": {}}, "schedule": under_policies.NEVER}
    return key, {**kind, "metadata": {"name": key.name, "namespace": key.namespace}, "spec": spec}
