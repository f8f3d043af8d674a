"""Rollbacks of objects on a real cluster with Velero: as a team uses them, who is refused, and what fails midway."""

import json
import time
from collections.abc import Iterator
from typing import Any

import pytest

from foresail.api.core import NAMESPACE
from foresail.plan import Key
from testbed import Cluster
from tests.cluster.rollbacks import ENDED, Home, config, serving
from tests.cluster.tenants import API, Eventually, Tenant, arrive, person, written_by_operator
from tests.cluster.test_tenant_cli import Foresail

BACKUP = "before"
_OUTAGE = 40.0


@pytest.fixture(scope="module")
def served(own_velero_cluster: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """Velero with self-service and rollbacks."""
    with serving(own_velero_cluster, tmp_path_factory.mktemp("operators")):
        yield own_velero_cluster


def spoilt(cluster: Cluster, namespace: str, eventually: Eventually) -> Home:
    """Return a namespace that was backed up and spoilt since."""
    home = Home(cluster, arrive(cluster, namespace, eventually))
    home.team.kubectl("config", "set-context", "--current", f"--namespace={namespace}")
    home.furnish()
    home.back_up(BACKUP)
    return home


def reaches(home: Home, name: str, eventually: Eventually, *phases: str, seconds: float = 240) -> None:
    def there() -> bool:
        phase = home.phase(name)
        assert phase in phases or phase not in ENDED, home.condition(name)
        return phase in phases

    eventually(there, seconds)


def is_at_rest(home: Home, name: str) -> None:
    """See that nothing of a Rollback is left that would keep it, or that nobody needs."""
    meta = home.cluster.get("rollback", name, f"--namespace={home.name}")["metadata"]
    assert not meta.get("finalizers")
    assert "foresail.dev/rollback-in-progress" not in meta.get("labels", {})
    assert home.team.names("nonadmindownloadrequests") == []


def refused_writes(cluster: Cluster) -> list[str]:
    """Return what the API server has refused the operators."""
    events = cluster.get("events", "--all-namespaces")["items"]
    return [each["message"] for each in events if each["reason"] == "WriteRefused"]


def test_a_team_rolls_back_with_one_command_and_takes_it_back_with_another(
    served: Cluster, eventually: Eventually
) -> None:
    home = spoilt(served, "shop", eventually)
    dora = Foresail(home.team)
    good = home.state()
    home.spoil()
    spoiled = home.state()
    assert good != spoiled

    shown = dora.done("rollback", "create", "--to", BACKUP, "--prune", "--dry-run").out
    for row in ("configmaps/added", "deployments.apps/canary", "services/web"):
        assert row in shown, shown
    assert home.state() == spoiled
    assert home.team.names("rollbacks") == []

    done = dora.done("rollback", "create", "back", "--to", BACKUP, "--prune", "--confirm", "--wait")
    assert "The namespace is as in NonAdminBackup before" in done.err, done.err
    assert home.state() == good
    is_at_rest(home, "back")

    undone = dora.done("rollback", "undo", "back", "--confirm", "--wait")
    assert "Undone" in home.phase("back"), undone.err
    assert home.state() == spoiled
    is_at_rest(home, "back")
    home.team.kubectl("delete", "rollback", "back", "--timeout=60s")
    assert refused_writes(served) == []


def test_without_prune_what_was_added_stays(served: Cluster, eventually: Eventually) -> None:
    home = spoilt(served, "keeper", eventually)
    good = home.state()
    home.spoil()
    home.ask("back", to=BACKUP, only=["configmaps"])
    reaches(home, "back", eventually, "Completed")
    now = home.state()
    assert now["configmaps/limits"] == good["configmaps/limits"]
    assert "configmaps/added" in now
    assert "services/web" not in now, "only ConfigMaps were asked for"


def test_who_may_not_update_is_refused_before_anything_is_changed(served: Cluster, eventually: Eventually) -> None:
    home = spoilt(served, "museum", eventually)
    home.spoil()
    before = home.state()
    rules = [
        {"apiGroups": ["oadp.openshift.io", "foresail.dev"], "resources": ["*"], "verbs": ["*"]},
        {"apiGroups": ["", "apps"], "resources": ["configmaps", "services", "deployments"], "verbs": ["get", "create"]},
    ]
    role = {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role", "metadata": {"name": "adds"}, "rules": rules}
    served.kubectl("apply", "--namespace=museum", "--filename=-", text=json.dumps(role))
    served.kubectl("create", "rolebinding", "adds", "--role=adds", "--user=eve", "--namespace=museum")
    eve = Home(served, person(served, "eve", "museum"))
    eventually(lambda: eve.team.kubectl("auth", "can-i", "create", "rollbacks.foresail.dev").strip() == "yes", 60)
    eve.ask("grab", to=BACKUP)
    reaches(home, "grab", eventually, "Refused")
    _, reason, message = home.condition("grab")
    assert (reason, "may not update or patch them" in message) == ("InTheWay", True), message
    assert home.state() == before


def test_permissions_that_are_revoked_midway_leave_everything_as_it_was(
    served: Cluster, eventually: Eventually
) -> None:
    home = spoilt(served, "office", eventually)
    home.spoil()
    before = home.state()
    home.ask("back", to=BACKUP, prune=True)
    reaches(home, "back", eventually, "SafetyBackup", "Suspending", "Restoring")
    served.kubectl("delete", "rolebinding", "tenant-of-office", "--namespace=office")
    reaches(home, "back", eventually, "Undoing", "Undone", "Refused")
    binding = ("rolebinding", "tenant-of-office", "--clusterrole=edit", "--user=tenant-of-office")
    served.kubectl("create", *binding, "--namespace=office")
    reaches(home, "back", eventually, "Undone", "Refused", seconds=400)
    assert home.state() == before
    is_at_rest(home, "back")


def test_a_second_rollback_waits_for_the_first(served: Cluster, eventually: Eventually) -> None:
    home = spoilt(served, "twice", eventually)
    good = home.state()
    home.spoil()
    home.ask("first", to=BACKUP, prune=True)
    home.ask("second", to=BACKUP, prune=True)
    eventually(lambda: home.condition("second")[1] == "Waiting", 60)
    reaches(home, "second", eventually, "Completed", seconds=400)
    assert home.phase("first") == "Completed"
    assert home.state() == good
    eventually(lambda: "undoUntil" not in home.status("first"), 30)


def test_a_namespace_that_is_deleted_midway_is_gone(served: Cluster, eventually: Eventually) -> None:
    home = spoilt(served, "doomed", eventually)
    home.spoil()
    home.ask("back", to=BACKUP, prune=True)
    reaches(home, "back", eventually, "Suspending", "Restoring", "Comparing", "Pruning")
    served.kubectl("delete", "namespace", "doomed", "--timeout=180s")


@pytest.mark.parametrize("phase", ["SafetyBackup", "Restoring"])
def test_while_the_bucket_is_away_nothing_is_worse(served: Cluster, eventually: Eventually, phase: str) -> None:
    home = spoilt(served, f"harbour-{phase.lower()}", eventually)
    good = home.state()
    home.spoil()
    before = home.state()
    home.ask("back", to=BACKUP, prune=True)
    reaches(home, "back", eventually, phase)
    served.fault.kill("s3")
    try:
        time.sleep(_OUTAGE)
        assert home.phase("back") != "Completed"
    finally:
        served.fault.start("s3")
    available = ("backupstoragelocations.velero.io", "default", "--namespace=velero")
    eventually(lambda: served.get(*available)["status"]["phase"] == "Available", 120)
    reaches(home, "back", eventually, "Refused", "Undone", "Completed", seconds=400)
    assert home.state() == (good if home.phase("back") == "Completed" else before)
    is_at_rest(home, "back")


def forged(team: Tenant, *words: str, body: dict[str, Any] | None = None) -> str:
    """Return what the API server says to a write that it must refuse."""
    with pytest.raises(AssertionError) as caught:
        team.kubectl(*words, body=body)
    return str(caught.value)


def test_nobody_but_the_operator_writes_what_admission_trusts(served: Cluster, eventually: Eventually) -> None:
    home = spoilt(served, "forge", eventually)
    home.ask("back", to=BACKUP, dryRun=True)
    reaches(home, "back", eventually, "Planned")
    label = ("label", "rollback", "back", "foresail.dev/rollback-in-progress=true")
    assert "written by Foresail alone" in forged(home.team, *label)
    status = ("patch", "rollback", "back", "--subresource=status", "--type=merge", "--patch={}")
    assert "forbidden" in forged(home.team, *status).lower()
    spec = {"backupSpec": {"snapshotVolumes": False}}
    meta = {"name": "mine-before-00000000", "annotations": {"foresail.dev/rollback-uid": "0"}}
    body = {"apiVersion": API, "kind": "NonAdminBackup", "metadata": meta, "spec": spec}
    assert "written by Foresail alone" in forged(home.team, "create", "--filename=-", body=body)


def test_the_token_of_rollbacks_can_do_nothing_where_none_is_in_progress(
    served: Cluster, eventually: Eventually
) -> None:
    arrive(served, "quiet", eventually)
    token = served.service_account_kubeconfig("velero", "foresail-rollback")
    thief = Tenant(token, "quiet")
    no = "no Rollback is in progress"
    assert no in forged(thief, "delete", "configmap", "settings")
    notes = {
        "foresail.dev/requester": "tenant-of-quiet",
        "foresail.dev/rollback-uid": "00000000-0000-4000-8000-000000000000",
    }
    meta = {"name": "back-before-00000000", "annotations": notes}
    spec = {"backupSpec": {"snapshotVolumes": False}}
    body = {"apiVersion": API, "kind": "NonAdminBackup", "metadata": meta, "spec": spec}
    assert no in forged(thief, "create", "--filename=-", body=body)
    label = {"metadata": {"labels": {"foresail.dev/rollback-in-progress": "true"}}}
    assert "no params found" in str(written_by_operator(token, NAMESPACE, Key("", "quiet"), label))
    assert "cannot create resource" in forged(thief, "create", "--filename=-", body=config("mine", by="thief"))
