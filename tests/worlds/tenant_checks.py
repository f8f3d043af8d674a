"""RestoreChecks of tenants in a world: namespaces, a policy, NonAdminBackups with their records, and hostile edits."""

from typing import Any

from foresail.api import nonadmin, velero
from foresail.api.instants import stamp
from foresail.api.marks import NAMESPACE_UID, REQUEST_UID, SCHEDULE_UID
from foresail.api.nonadmin import NON_ADMIN_BACKUP, NON_ADMIN_SCHEDULE
from foresail.api.policy import SELF_SERVICE_POLICY
from foresail.api.restore_check import RESTORE_CHECK
from foresail.plan import Key
from foresail.tenancy.records import nacuuid_of, origin_name, origin_namespace
from tests.worlds.check_scene import CheckScene
from tests.worlds.garbage import NAMESPACE
from tests.worlds.roles import TENANT_CHECKS, VELERO
from tests.worlds.world import Definition, done

RED, BLUE = "red", "blue"
OWN = Key(RED, "own")
ALLOWED = {"maximum": 2, "minimumInterval": "1h"}


class TenantScene(CheckScene):
    """One world with tenants whose policy allows RestoreChecks."""

    capability = TENANT_CHECKS
    more = (
        Definition(NON_ADMIN_BACKUP),
        Definition(NON_ADMIN_SCHEDULE),
        Definition(SELF_SERVICE_POLICY, status=False),
    )
    never: tuple[str, ...] | None = ("foresail",)

    def __init__(self, **rules: Any) -> None:  # noqa: ANN401 - JSON
        super().__init__()
        spec = {"namespaceSelector": {}, "restoreChecks": {**ALLOWED, **rules}}
        done(self.world.create(SELF_SERVICE_POLICY, {"metadata": {"name": "default"}, "spec": spec}, "admin"))
        for each in (RED, BLUE):
            done(self.world.create(NAMESPACE, {"metadata": {"name": each}}, "admin"))

    def set_policy(self, **rules: Any) -> None:  # noqa: ANN401 - JSON
        done(self.world.merge(SELF_SERVICE_POLICY, Key("", "default"), {"spec": {"restoreChecks": rules}}, "admin"))

    def ask(self, key: Key = OWN, **spec: Any) -> None:  # noqa: ANN401 - JSON
        """Create a RestoreCheck of a tenant."""
        body = {"metadata": {"name": key.name}, "spec": {"backups": {"nonAdminBackups": {}}, **spec}}
        done(self.world.create(RESTORE_CHECK, body, "tenant", key.namespace))

    def uid(self, namespace: str) -> str:
        found: str = self.world.history.present(NAMESPACE)[Key("", namespace)]["metadata"]["uid"]
        return found

    def back_up_own(
        self,
        name: str,
        namespace: str = RED,
        *,
        schedule: str = "",
        location: str = "",
        lists: dict[str, list[str]] | None = None,
        claims: dict[str, str] | None = None,
    ) -> str:
        """Complete a backup of a tenant and return the name of its Velero Backup; `claims` replace its record."""
        annotations = {}
        if schedule:
            row = self.world.history.present(NON_ADMIN_SCHEDULE).get(Key(namespace, schedule))
            annotations = {SCHEDULE_UID: row["metadata"]["uid"] if row is not None else schedule}
        request = {"metadata": {"name": name, "annotations": annotations}, "spec": {}}
        done(self.world.create(NON_ADMIN_BACKUP, request, "tenant", namespace))
        uid = self.world.history.present(NON_ADMIN_BACKUP)[Key(namespace, name)]["metadata"]["uid"]
        backup = nacuuid_of(namespace, name, uid)
        self.lists[backup] = lists or {"v1/ConfigMap": [f"{namespace}/settings"]}
        record = {
            origin_name("nab"): name,
            origin_namespace("nab"): namespace,
            REQUEST_UID: uid,
            NAMESPACE_UID: self.uid(namespace),
            **(claims or {}),
        }
        status = {"phase": velero.COMPLETED, "completionTimestamp": stamp(self.clock())}
        metadata = {"name": backup, "labels": nonadmin.LABELS, "annotations": record}
        body = {"metadata": metadata, "spec": {"storageLocation": location}, "status": status}
        done(self.world.create(velero.BACKUP, body, "velero", VELERO))
        return backup

    def schedule(self, name: str, namespace: str = RED) -> None:
        body = {"metadata": {"name": name}, "spec": {"schedule": "0 3 * * *"}}
        done(self.world.create(NON_ADMIN_SCHEDULE, body, "tenant", namespace))

    def ready(self, key: Key = OWN) -> str:
        """Return the reason of the condition Ready."""
        return self.condition("Ready", key)[1]
