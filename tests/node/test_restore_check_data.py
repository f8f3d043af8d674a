"""RestoreChecks with depth Data and a real PostgreSQL: its rows are counted behind a fence, and damage is found.

The node's network enforces no NetworkPolicy, so a check refuses to start pods unless the spec allows it.
"""

import time
from collections.abc import Iterator
from typing import Any

import pytest

from bench.restore_drill import Drill, install
from testbed import Cluster
from testbed.node.csi import CLASS
from testbed.node.images import POSTGRES
from tests.node.closed_network import closed_sandboxes
from tests.node.nodes import IMAGE, claim, eventually, namespace, pod

ROWS = 20_000
SHOP = "bookshop"
_PSQL = "psql --username=postgres --no-psqlrc --tuples-only --no-align"
_RUN = """
export PATH=/usr/lib/postgresql/15/bin:$PATH PGDATA=/data/postgres
test -e $PGDATA/PG_VERSION || {
  initdb --no-sync --data-checksums --auth=trust --username=postgres
  echo 'host all all 0.0.0.0/0 trust' >> $PGDATA/pg_hba.conf
}
exec postgres -c listen_addresses='*' -c unix_socket_directories=/tmp -c jit=off
"""
_FILL = "create table books as select id, md5(id::text) as title from generate_series(1, ROWS) as id; checkpoint"
_COUNT = """
found=$(PSQL --host=$DB_SERVICE_HOST --command='select count(title) from books') || exit 4
echo "$found rows"
test "$found" = ROWS
"""
_DAMAGE = f"""
{_PSQL} --host=/tmp --command='vacuum (freeze, analyze) books' --command=checkpoint
file=/data/postgres/$({_PSQL} --host=/tmp --command="select pg_relation_filepath('books')")
dd if=/dev/urandom of=$file bs=8192 seek=3 count=2 conv=notrunc
"""


@pytest.fixture(scope="module")
def drill(served: Cluster) -> Drill:
    """A node with Foresail's chart, depth Data on, and a database that may run under the restricted standard."""
    repository, _, tag = IMAGE.rpartition(":")
    image = (f"image.repository={repository}", f"image.tag={tag}", "replicas=1")
    install(served, "proof.data.enabled=true", *image)
    served.kubectl("rollout", "status", "deployment/foresail-checks", "--namespace=velero", "--timeout=180s")
    found = Drill(served)
    create_database(found)
    return found


@pytest.fixture(scope="module")
def good(drill: Drill) -> str:
    """A backup of the database as it should be."""
    return back_up(drill, "books-good")


@pytest.fixture(autouse=True)
def nothing_is_left(drill: Drill) -> Iterator[None]:
    """After each test, the sandbox and its volumes are gone."""
    yield
    eventually(lambda: not drill.leftovers(), 180, "everything of the check is removed")
    eventually(lambda: not volumes(drill), 180, "the volumes of its sandbox are removed")


def volumes(drill: Drill) -> list[str]:
    """Return the volumes of sandboxes."""
    found = drill.cluster.get("persistentvolumes")["items"]
    whose = {each["metadata"]["name"]: each["spec"].get("claimRef", {}).get("namespace", "") for each in found}
    return [name for name, owner in whose.items() if owner.startswith("foresail-check-")]


def create_database(drill: Drill, shop: str = SHOP, storage_class: str | None = None) -> None:
    """Create a namespace with a PostgreSQL that has rows, a Service, and a NetworkPolicy that allows everything."""
    cluster = drill.cluster
    user = user_of_postgres(cluster)
    labels = {"app": "db"}
    restricted = {
        "allowPrivilegeEscalation": False,
        "capabilities": {"drop": ["ALL"]},
        "runAsNonRoot": True,
        "runAsUser": user,
        "seccompProfile": {"type": "RuntimeDefault"},
    }
    ready = ["psql", "--host=/tmp", "--username=postgres", "--command=select 1"]
    container = {
        "name": "postgres",
        "image": POSTGRES,
        "command": ["sh", "-ec", _RUN],
        "securityContext": restricted,
        "volumeMounts": [{"name": "data", "mountPath": "/data"}],
        "readinessProbe": {"exec": {"command": ready}, "periodSeconds": 1},
    }
    spec = {
        "securityContext": {"fsGroup": user},
        "containers": [container],
        "volumes": [{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}],
        "terminationGracePeriodSeconds": 10,
    }
    template = {"metadata": {"labels": labels}, "spec": spec}
    meta = {"namespace": shop}
    deployment = {"strategy": {"type": "Recreate"}, "selector": {"matchLabels": labels}, "template": template}
    policy = {"podSelector": {}, "ingress": [{}], "egress": [{}], "policyTypes": ["Ingress", "Egress"]}
    cluster.apply(
        namespace(shop),
        claim("data", shop, storage_class),
        {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "db", **meta},
         "spec": {"selector": labels, "ports": [{"port": 5432}]}},
        {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "db", **meta}, "spec": deployment},
        {"apiVersion": "networking.k8s.io/v1", "kind": "NetworkPolicy", "metadata": {"name": "open", **meta},
         "spec": policy},
    )  # fmt: skip
    cluster.kubectl("wait", "--for=condition=Available", "deployment/db", f"--namespace={shop}", "--timeout=300s")
    in_database(drill, f'{_PSQL} --host=/tmp --command="{_FILL.replace("ROWS", str(ROWS))}"', shop)


def user_of_postgres(cluster: Cluster) -> int:
    """Return the ID of the user postgres in the image."""
    asked = pod("whoami", "default", "id -u postgres", container={"image": POSTGRES}, restartPolicy="Never")
    cluster.apply(asked)
    cluster.kubectl("wait", "--for=jsonpath={.status.phase}=Succeeded", "pod/whoami", "--timeout=180s")
    found = int(cluster.kubectl("logs", "whoami"))
    cluster.kubectl("delete", "pod", "whoami", "--wait=false")
    return found


def in_database(drill: Drill, script: str, shop: str = SHOP) -> str:
    """Run a script in the pod of the database."""
    return drill.cluster.kubectl("exec", "deployment/db", f"--namespace={shop}", "--", "sh", "-ec", script)


def back_up(drill: Drill, name: str) -> str:
    """Back up the namespace with the files of its volume."""
    drill.back_up(name, f"--include-namespaces={SHOP}", "--default-volumes-to-fs-backup")
    return name


def check(drill: Drill, name: str, backup: str, **spec: Any) -> dict[str, Any]:  # noqa: ANN401 - JSON
    """Check a backup with depth Data and return the result."""
    drill.ask(name, backup, depth="Data", **spec)
    eventually(lambda: drill.result(name) is not None, 400, f"the check {name}")
    return drill.result(name) or {}


def counting(rows: int = ROWS) -> dict[str, Any]:
    """Return an assertion that the table has so many rows."""
    script = _COUNT.replace("PSQL", _PSQL).replace("ROWS", str(rows))
    return {"image": POSTGRES, "command": ["sh", "-c", script], "runAsUser": 65532}


def test_no_pod_of_a_backup_starts_where_the_network_enforces_no_policies(drill: Drill, good: str) -> None:
    result = check(drill, "closed", good, assertion=counting(), keepFailed="20s")
    assert (result["result"], result["reason"], result["fence"]) == ("Fail", "NotFenced", "NotEnforced"), result
    assert "API server" in result["message"]
    assert "bucket" in result["message"]
    (sandbox,) = drill.sandboxes()
    pods = [each["metadata"]["name"] for each in drill.cluster.get("pods", f"--namespace={sandbox}")["items"]]
    assert [each.rpartition("-")[0] for each in pods] == ["foresail-canary"]


def test_the_rows_of_a_restored_database_are_counted(drill: Drill, good: str) -> None:
    result = check(drill, "counted", good, assertion=counting(), allowUnfenced=True)
    assert (result["result"], result["reason"]) == ("Pass", "Complete"), result["message"]
    assert result["message"].startswith("NOT FENCED: ")
    assert (result["podsReady"], result["assertionExitCode"], result["fence"]) == (1, 0, "NotEnforced")
    assert result["readySeconds"] >= result["restoreSeconds"] > 0
    events = drill.cluster.get("events.events.k8s.io", "--namespace=velero")["items"]
    assert [each["type"] for each in events if each["reason"] == "NotFenced" and each["regarding"]["name"] == "counted"]


def test_rows_are_counted_in_a_closed_sandbox(drill: Drill, good: str) -> None:
    with closed_sandboxes(drill.cluster):
        result = check(drill, "enclosed", good, assertion=counting())
    assert (result["result"], result["reason"], result["fence"]) == ("Pass", "Complete", "Enforced"), result["message"]
    assert "NOT FENCED" not in result["message"]


def test_a_backup_whose_rows_are_not_all_there_fails(drill: Drill, good: str) -> None:
    result = check(drill, "fewer", good, assertion=counting(ROWS + 1), allowUnfenced=True)
    assert (result["result"], result["reason"], result.get("assertionExitCode")) == ("Fail", "AssertionFailed", 1), (
        result
    )
    assert f"{ROWS} rows" in result["message"]


def test_a_backup_of_a_damaged_database_fails(drill: Drill) -> None:
    in_database(drill, _DAMAGE)
    result = check(drill, "damaged", back_up(drill, "books-damaged"), assertion=counting(), allowUnfenced=True)
    assert (result["result"], result["reason"], result.get("assertionExitCode")) == ("Fail", "AssertionFailed", 4), (
        result
    )
    assert "invalid page" in result["message"]


def test_a_backup_whose_files_in_the_bucket_are_damaged_fails(drill: Drill, good: str) -> None:
    packs = [each for each in (drill.cluster.site.bucket / "kopia" / SHOP).iterdir() if each.name.startswith("p")]
    assert packs
    kept = {each: each.read_bytes() for each in packs}
    for each, data in kept.items():
        each.write_bytes(data[: len(data) // 4] + bytes(len(data) // 2) + data[len(data) // 4 + len(data) // 2 :])
    try:
        result = check(drill, "rotten", good, assertion=counting(), allowUnfenced=True, deadline="4m")
    finally:
        for each, data in kept.items():
            each.write_bytes(data)
    assert (result["result"], result["reason"]) == ("Fail", "RestorePartiallyFailed"), result


@pytest.fixture(scope="module")
def snapshots(drill: Drill) -> str:
    """A namespace with a database on a volume with snapshots."""
    create_database(drill, "snapshop", CLASS)
    return "snapshop"


def test_rows_that_were_moved_from_a_snapshot_are_counted(drill: Drill, snapshots: str) -> None:
    drill.back_up("books-moved", f"--include-namespaces={snapshots}", "--snapshot-move-data", snapshots=True)
    result = check(drill, "moved", "books-moved", assertion=counting(), allowUnfenced=True)
    assert (result["result"], result["reason"]) == ("Pass", "Complete"), result["message"]
    assert (result["podsReady"], result["assertionExitCode"]) == (1, 0)


def test_a_snapshot_that_was_not_moved_is_no_data_in_the_bucket(drill: Drill, snapshots: str) -> None:
    drill.back_up("books-plain", f"--include-namespaces={snapshots}", snapshots=True)
    result = check(drill, "plain", "books-plain", allowUnfenced=True)
    assert (result["result"], result["reason"]) == ("Fail", "DataMissing"), result["message"]
    assert "claim snapshop/data" in result["message"]


def test_a_check_that_is_deleted_while_pods_run_leaves_nothing(drill: Drill, good: str) -> None:
    sleeps = {**counting(), "command": ["sleep", "600"]}
    drill.ask("abandoned", good, depth="Data", allowUnfenced=True, assertion=sleeps)
    eventually(lambda: assertions(drill), 300, "the assertion runs")
    drill.forget("abandoned")
    started = time.monotonic()
    eventually(lambda: not drill.sandboxes(), 180, "the sandbox is removed")
    assert time.monotonic() - started < 180


def assertions(drill: Drill) -> list[str]:
    """Return the assertions that run."""
    found = drill.cluster.get("pods", "--all-namespaces", "--field-selector=status.phase=Running")["items"]
    return [each["metadata"]["name"] for each in found if each["metadata"]["name"].startswith("foresail-assertion-")]
