"""A team rolls its PostgreSQL back with one command, rows and objects, and undoes that."""

import json
import time
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from bench.restore_drill import install
from foresail.api.instants import instant
from testbed import Cluster
from testbed.node.csi import WAITING_CLASS
from testbed.node.images import POSTGRES
from tests.cluster.tenants import allow_file_system, condition
from tests.node.data_paths import FILES, SNAPSHOTS
from tests.node.nodes import IMAGE, eventually, ignore_delayed_binding, mind_delayed_binding
from tests.node.tenant_database import OWNER, Database, create_database

_STATE = ("deployments", "configmaps", "persistentvolumeclaims")
_CHANGING = ("uid", "resourceVersion", "generation", "managedFields", "creationTimestamp", "annotations", "labels")
_MORE = "create table customers as select id, md5(id::text) as name from generate_series(1, 1000) as id; checkpoint"


@pytest.fixture(scope="module")
def rolling(served: Cluster) -> Cluster:
    """The cluster, with a chart that has Rollbacks with volumes."""
    repository, _, tag = IMAGE.rpartition(":")
    image = (f"image.repository={repository}", f"image.tag={tag}", "replicas=1")
    tenants = ("selfService.enabled=true", "selfService.updateExisting=true")
    install(served, "rollback.enabled=true", "rollback.volumes=true", *tenants, *image)
    for name in ("foresail-self-service", "foresail-rollback"):
        served.kubectl("rollout", "status", f"deployment/{name}", "--namespace=velero", "--timeout=180s")
    return served


@pytest.fixture(scope="module")
def rolled(rolling: Cluster) -> Iterator[Database]:
    """A database with rows and a good backup."""
    database = create_database(rolling, "rolled", SNAPSHOTS)
    allow(rolling, database.namespace)
    database.tenant.kubectl("create", "configmap", "settings", "--from-literal=colour=red")
    database.sql(_MORE)
    backup = database.back_up("before-upgrade")
    assert backup.code == 0, backup.reported
    yield database
    rolling.kubectl("delete", "namespace", database.namespace, "--ignore-not-found", "--timeout=300s")


_RULES: dict[str, Any] = {
    "restore": {"allowed": {"existingResourcePolicies": ["update"]}},
    "rollback": {"enabled": True, "volumes": "All", "prune": True},
}


def allow(cluster: Cluster, namespace: str) -> None:
    """Let the tenants of a namespace roll it back with its volumes."""
    selector = {"matchLabels": {"kubernetes.io/metadata.name": namespace}}
    spec = {"namespaceSelector": selector, **_RULES}
    meta = {"name": f"rollbacks-of-{namespace}"}
    cluster.apply({"apiVersion": "foresail.dev/v1alpha1", "kind": "SelfServicePolicy", "metadata": meta, "spec": spec})


def upgrade(database: Database) -> None:
    """Make a bad upgrade: rows and a table are gone, a ConfigMap is edited, a Deployment added, an image broken."""
    database.sql("delete from orders where id % 2 = 0")
    database.sql("drop table customers")
    database.sql("checkpoint")
    tenant = database.tenant
    tenant.kubectl("patch", "configmap", "settings", "--type=merge", '--patch={"data":{"colour":"blue","more":"yes"}}')
    canary = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "canary"},
        "spec": {
            "replicas": 0,
            "selector": {"matchLabels": {"app": "canary"}},
            "template": {
                "metadata": {"labels": {"app": "canary"}},
                "spec": {"containers": [{"name": "main", "image": "canary:1"}]},
            },
        },
    }
    tenant.kubectl("create", "--filename=-", body=canary)


def contents(database: Database) -> tuple[str, str]:
    """Return the checksum over every row of both tables."""
    tables = database.sql("select count(*) from pg_tables where schemaname = 'public'")
    return database.checksum(), tables


def objects(database: Database) -> dict[tuple[str, str], Any]:
    """Return the objects of the team, without what the API server writes."""
    found = json.loads(database.tenant.kubectl("get", ",".join(_STATE), "--output=json"))["items"]
    kept = {}
    for each in found:
        if each["metadata"]["name"] != "kube-root-ca.crt" and each["kind"] != "PersistentVolumeClaim":
            kept[each["kind"], each["metadata"]["name"]] = {part: each.get(part) for part in ("spec", "data")}
    return kept


def volume(database: Database) -> str:
    """Return the volume of the claim."""
    return str(json.loads(database.tenant.kubectl("get", "pvc", "data", "--output=json"))["spec"]["volumeName"])


def roll_back(database: Database, name: str) -> dict[str, Any]:
    """Ask for a Rollback as the team, and wait until it is complete."""
    ask(database, name)
    return ended(database, name, "Completed")


def ask(database: Database, name: str) -> None:
    """Ask for a Rollback as the team."""
    spec = {"to": "before-upgrade", "volumes": "All", "prune": True}
    who = f"system:serviceaccount:{database.namespace}:{OWNER}"
    groups = ("system:serviceaccounts", f"system:serviceaccounts:{database.namespace}", "system:authenticated")
    record = {"foresail.dev/requester": who, "foresail.dev/requester-groups": "\n".join(groups)}
    meta = {"name": name, "annotations": record}
    body = {"apiVersion": "foresail.dev/v1alpha1", "kind": "Rollback", "metadata": meta, "spec": spec}
    database.tenant.kubectl("create", "--filename=-", body=body)


def refused(database: Database, name: str) -> str:
    """Ask for a Rollback that is refused, see that nothing has begun, and return why."""
    claimed, contents_before, backups = volume(database), database.checksum(), database.tenant.names("nonadminbackups")
    ask(database, name)
    status = ended(database, name, "Refused")
    database.wait_ready()
    assert [each["name"] for each in status["steps"]] == ["Planning"], "not even a safety backup"
    assert database.tenant.names("nonadminbackups") == backups
    assert (volume(database), database.checksum()) == (claimed, contents_before)
    return str(condition(status, "Succeeded")[2])


def ended(database: Database, name: str, *phases: str) -> dict[str, Any]:
    """Wait until a Rollback has ended so, and return its status."""
    until = time.monotonic() + 900
    before = {"Completed"} if "Undone" in phases else set()
    others = {"Refused", "Undone", "Completed"} - before - {*phases}
    while True:
        status = json.loads(database.tenant.kubectl("get", "rollback", name, "--output=json")).get("status", {})
        phase = status.get("phase", "New")
        if phase in phases:
            return dict(status)
        assert phase not in others, json.dumps(status, indent=1)
        assert time.monotonic() < until, json.dumps(status, indent=1)
        time.sleep(2)


def times(status: dict[str, Any]) -> dict[str, int]:
    """Return the seconds that each step took."""
    return {
        each["name"]: int((instant(each["finished"]) - instant(each["started"])).total_seconds())  # type: ignore[operator]
        for each in status["steps"]
        if "finished" in each
    }


def test_a_team_rolls_a_database_back_with_its_rows_and_undoes_it(
    rolled: Database, measured: dict[str, float | bool | None]
) -> None:
    good, good_objects, first = contents(rolled), objects(rolled), volume(rolled)
    upgrade(rolled)
    bad = contents(rolled)
    assert bad != good
    rolled.tenant.kubectl("set", "image", "deployment/db", "postgres=missing:1")
    bad_objects = objects(rolled)
    status = roll_back(rolled, "back")
    rolled.wait_ready()
    measured |= {f"rollback_{name}_s": length for name, length in times(status).items()}
    assert contents(rolled) == good
    assert objects(rolled) == good_objects
    assert volume(rolled) != first
    rolled.tenant.kubectl("patch", "rollback", "back", "--type=merge", '--patch={"spec":{"undo":true}}')
    undone = ended(rolled, "back", "Undone")
    measured["rollback_Undoing_s"] = times(undone)["Undoing"]
    assert objects(rolled) == bad_objects
    assert volume(rolled) == first
    rolled.tenant.kubectl("set", "image", "deployment/db", f"postgres={POSTGRES}")
    rolled.wait_ready()
    assert contents(rolled) == bad
    policy = rolled.cluster.get("persistentvolume", first)
    assert policy["spec"]["persistentVolumeReclaimPolicy"] == "Delete"
    eventually(lambda: _released(rolled) == [], 120, "no volume is left but that of the claim")


def _released(database: Database) -> list[str]:
    found = database.cluster.get("persistentvolumes")["items"]
    mine = [each for each in found if each["spec"].get("claimRef", {}).get("namespace") == database.namespace]
    return [each["metadata"]["name"] for each in mine if each["status"]["phase"] != "Bound"]


def test_claims_of_a_class_that_waits_for_pods_are_replaced_only_where_velero_binds_them_itself(
    rolling: Cluster,
) -> None:
    database = create_database(rolling, "rolled-late", replace(SNAPSHOTS, storage_class=WAITING_CLASS))
    allow(rolling, database.namespace)
    backup = database.back_up("before-upgrade")
    assert backup.code == 0, backup.reported
    good = database.checksum()
    database.sql("delete from orders where id % 2 = 0; checkpoint")
    bad, first = database.checksum(), volume(database)
    assert "whose volumes wait for a pod" in refused(database, "too-early")
    ignore_delayed_binding(rolling)
    try:
        roll_back(database, "back")
        database.wait_ready()
        assert (database.checksum(), volume(database) != first) == (good, True)
        database.tenant.kubectl("patch", "rollback", "back", "--type=merge", '--patch={"spec":{"undo":true}}')
        ended(database, "back", "Undone")
        database.wait_ready()
        assert (database.checksum(), volume(database)) == (bad, first)
    finally:
        mind_delayed_binding(rolling)
    rolling.kubectl("delete", "namespace", database.namespace, "--timeout=300s")


def test_volumes_whose_files_were_copied_are_refused_before_anything_begins(rolling: Cluster) -> None:
    database = create_database(rolling, "rolled-files", FILES)
    allow_file_system(database.namespace, rolling, **_RULES)
    backup = database.back_up("before-upgrade")
    assert backup.code == 0, backup.reported
    assert "the backup has the files of 1 volumes" in refused(database, "back")
    rolling.kubectl("delete", "namespace", database.namespace, "--timeout=300s")
