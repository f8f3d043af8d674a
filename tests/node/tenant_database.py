"""A tenant's PostgreSQL on a volume of its own, and the command line with which the tenant backs it up."""

import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from foresail.api.policy import OPT_IN_LABEL, OPT_IN_VALUE
from testbed import Cluster
from testbed.node import programs
from testbed.node.images import POSTGRES
from tests.cluster.tenants import Tenant, allow_file_system
from tests.node.nodes import claim, eventually, namespace

OWNER = "owner"
_MINUTES = "10m"
_SECONDS = 600
_MAY_BACK_UP = ("auth", "can-i", "create", "nonadminbackups.oadp.openshift.io")
_RUN = """
export PATH=/usr/lib/postgresql/15/bin:$PATH PGDATA=/data/postgres
as="setpriv --reuid=postgres --regid=postgres --clear-groups"
test -e $PGDATA/PG_VERSION || {
  install -d -m 0700 -o postgres -g postgres $PGDATA
  $as initdb --no-sync --auth=trust --username=postgres
}
exec $as postgres -c listen_addresses= -c unix_socket_directories=/tmp -c jit=off
"""
_PSQL = ("psql", "--host=/tmp", "--username=postgres", "--no-psqlrc", "--tuples-only", "--no-align", "--command")
_FILL = """create table orders as
select id, md5(id::text || random()) as customer, repeat(md5(random()::text), 5) as goods, clock_timestamp() as at
from generate_series(1, 200000) as id; checkpoint"""  # about 50 MiB
_CHECKSUM = "select count(*), md5(string_agg(md5(orders::text), '' order by id)) from orders"


@dataclass(frozen=True)
class Ended:
    """How a command ended."""

    code: int
    reported: str


@dataclass(frozen=True)
class Database:
    """A namespace with a PostgreSQL, and the ServiceAccount that has the role `edit` there and nothing else."""

    cluster: Cluster
    tenant: Tenant

    @property
    def namespace(self) -> str:
        """The namespace."""
        return self.tenant.namespace

    def foresail(self, *words: str) -> Ended:
        """Run the command line as the tenant."""
        return finish(self.begin(*words))

    def begin(self, *words: str) -> "subprocess.Popen[str]":
        """Start the command line as the tenant, and do not wait for it."""
        command = [sys.executable, "-m", "foresail", *words, f"--namespace={self.namespace}"]
        environment = {**os.environ, "KUBECONFIG": str(self.tenant.kubeconfig)}
        return subprocess.Popen(
            command,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    def begin_backup(self, name: str) -> "subprocess.Popen[str]":
        """Start a backup of the namespace with the data of its volume, and wait for its end in another process."""
        words = ("--default-volumes-to-fs-backup", "--wait", f"--timeout={_MINUTES}")
        return self.begin("backup", "create", name, *words)

    def back_up(self, name: str) -> Ended:
        """Back up the namespace with the data of its volume, and wait for the end."""
        return finish(self.begin_backup(name))

    def restore(self, backup: str) -> Ended:
        """Restore all of a backup, and wait for the end."""
        return self.foresail("restore", "create", f"of-{backup}", f"--from-backup={backup}", "--wait", "--timeout=10m")

    def sql(self, text: str) -> str:
        """Run SQL in the database's pod, as the administrator, and return what it printed."""
        where = ("deployment/db", f"--namespace={self.namespace}", "--container=postgres")
        return self.cluster.kubectl("exec", *where, "--", *_PSQL, text).strip()

    def checksum(self) -> str:
        """Return the number of rows and a checksum over every column of all of them."""
        return self.sql(_CHECKSUM)

    def wait_ready(self) -> None:
        """Wait until the database answers."""
        where = ("deployment/db", f"--namespace={self.namespace}")
        self.cluster.kubectl("wait", "--for=condition=Available", *where, f"--timeout={_SECONDS}s")

    def destroy_contents(self) -> None:
        """Delete the database and its volume as the tenant; nothing of the data is left on the node."""
        assert self.volumes(), "there is a volume to lose"
        self.tenant.kubectl("delete", "deployment/db", "persistentvolumeclaim/data", f"--timeout={_SECONDS}s")
        self._wait_for_loss()

    def destroy_namespace(self) -> None:
        """Delete the namespace as the administrator; nothing of the data is left on the node."""
        assert self.volumes(), "there is a volume to lose"
        self.cluster.kubectl("delete", "namespace", self.namespace, f"--timeout={_SECONDS}s")
        self._wait_for_loss()

    def _wait_for_loss(self) -> None:
        eventually(lambda: not self.volumes(), 180, "the provisioner has removed the volume")

    def volumes(self) -> list[Path]:
        """Return the folders of the node that hold this namespace's volumes."""
        return list((programs.folder(self.cluster.site) / "volumes").glob(f"*_{self.namespace}_*"))


def finish(process: "subprocess.Popen[str]") -> Ended:
    """Wait until a command ends."""
    try:
        reported, _ = process.communicate(timeout=_SECONDS + 60)
    except subprocess.TimeoutExpired:
        process.kill()
        raise
    return Ended(process.returncode, reported)


def create_database(cluster: Cluster, name: str) -> Database:
    """Create a namespace that is open to self-service, its tenant, and a database with rows that answers."""
    where = namespace(name)
    where["metadata"]["labels"] = {OPT_IN_LABEL: OPT_IN_VALUE}
    account = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": OWNER, "namespace": name}}
    cluster.apply(where, account)
    cluster.kubectl(
        "create", "rolebinding", OWNER, "--clusterrole=edit", f"--serviceaccount={name}:{OWNER}", f"--namespace={name}"
    )
    allow_file_system(name, cluster)
    tenant = Tenant(cluster.service_account_kubeconfig(name, OWNER), name)
    eventually(lambda: _answer(tenant) == "yes", 120, "the built-in role has the rules of self-service")
    for each in (claim("data", name), _deployment()):
        tenant.kubectl("create", "--filename=-", body=each)
    database = Database(cluster, tenant)
    database.wait_ready()
    database.sql(_FILL)
    return database


def _answer(tenant: Tenant) -> str:
    try:
        return tenant.kubectl(*_MAY_BACK_UP).strip()
    except AssertionError:
        return "no"


def _deployment() -> dict[str, Any]:
    labels = {"app": "db"}
    container = {
        "name": "postgres",
        "image": POSTGRES,
        "command": ["sh", "-ec", _RUN],
        "volumeMounts": [{"name": "data", "mountPath": "/data"}],
        "readinessProbe": {"exec": {"command": [*_PSQL, "select 1"]}, "periodSeconds": 1},
    }
    pod = {
        "containers": [container],
        "volumes": [{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}],
        "terminationGracePeriodSeconds": 10,
    }
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "db"},
        "spec": {
            "replicas": 1,
            "strategy": {"type": "Recreate"},
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": pod},
        },
    }
