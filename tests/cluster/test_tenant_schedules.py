"""NonAdminSchedules on a real cluster: runs in the tenant's name, what is refused, a SchedulePolicy, and kills."""

import json
import os
import random
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from foresail.api.instants import stamp
from foresail.api.marks import REQUESTER, SCHEDULE_UID, SLOT
from foresail.kube.clock import now
from testbed import Cluster
from tests.cluster.operators import running
from tests.cluster.tenants import API, Eventually, Tenant, arrive, condition, in_bucket, install, of_namespace, operator
from tests.cluster.test_selfservice_kills import FLAGS, frozen, kill

KILLS = int(os.environ.get("FORESAIL_KILLS", "10"))
EACH = 3  # schedules before each kill
UPSTREAM = """
apiVersion: oadp.openshift.io/v1alpha1
kind: NonAdminSchedule
metadata:
  name: upstream
spec:
  schedule: "0 2 * * *"
  paused: false
  skipImmediately: true
  template:
    backupSpec:
      includedResources: ["*"]
      snapshotVolumes: false
      ttl: 72h0m0s
"""


@pytest.fixture(scope="module")
def served(velero_cluster: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """Both charts with self-service on, and the operator."""
    install(velero_cluster)
    policy(velero_cluster, "timed", stored=1000)
    with operator(velero_cluster, tmp_path_factory.mktemp("operator") / "log"):
        yield velero_cluster


@pytest.fixture(scope="module")
def tim(served: Cluster, eventually: Eventually) -> Tenant:
    """A tenant whose policy allows runs every few seconds."""
    return arrive(served, "timed", eventually)


@pytest.fixture(scope="module")
def eve(served: Cluster, tim: Tenant) -> Tenant:
    """Somebody else with `edit` in the same namespace."""
    served.kubectl("create", "rolebinding", "eve", "--clusterrole=edit", "--user=eve", f"--namespace={tim.namespace}")
    return Tenant(served.user_kubeconfig("eve"), tim.namespace)


def policy(cluster: Cluster, namespace: str, stored: int, **schedules: Any) -> None:  # noqa: ANN401 - JSON
    selector = {"matchLabels": {"kubernetes.io/metadata.name": namespace}}
    limits = {"minimumInterval": "1s", "maximum": 100_000, **schedules}
    spec = {"namespaceSelector": selector, "quotas": {"stored": stored}, "schedules": limits}
    meta = {"name": f"schedules-of-{namespace}"}
    cluster.apply({"apiVersion": "foresail.dev/v1alpha1", "kind": "SelfServicePolicy", "metadata": meta, "spec": spec})


def schedule(name: str, text: str, **spec: Any) -> dict[str, Any]:  # noqa: ANN401 - JSON
    body = {"schedule": text, "template": {"backupSpec": {}}, **spec}
    return {"apiVersion": API, "kind": "NonAdminSchedule", "metadata": {"name": name}, "spec": body}


def runs(tenant: Tenant) -> list[dict[str, Any]]:
    found = json.loads(tenant.kubectl("get", "nonadminbackups", "--output=json"))["items"]
    return [each for each in found if SLOT in each["metadata"].get("annotations", {})]


def refusal(tenant: Tenant, *words: str, body: object = None) -> str:
    try:
        tenant.kubectl(*words, *(() if body is None else ("--filename=-",)), body=body)
    except AssertionError as error:
        return str(error)
    return ""


def test_each_run_completes_in_the_name_of_who_last_changed_the_schedule(
    tim: Tenant, eve: Tenant, eventually: Eventually
) -> None:
    tim.kubectl("create", "--filename=-", body=schedule("often", "@every 5s", skipImmediately=True))
    eventually(lambda: "Completed" in [each["phase"] for each in tim.status("nas/often").get("recentBackups", [])], 120)
    assert {each["metadata"]["annotations"][REQUESTER] for each in runs(tim)} == {"tenant-of-timed"}
    found = json.loads(tim.kubectl("get", "nas", "often", "--output=json"))
    assert "skipImmediately" not in found["spec"], "it was applied, and the operator has removed it"
    assert found["metadata"]["annotations"][REQUESTER] == "tenant-of-timed", "the operator asks for nothing itself"
    assert condition(found["status"], "Accepted")[:2] == ("True", "ScheduleAccepted")
    eve.kubectl("patch", "nas", "often", "--type=merge", '--patch={"spec":{"schedule":"@every 6s"}}')
    eventually(lambda: "eve" in {each["metadata"]["annotations"][REQUESTER] for each in runs(tim)}, 120)
    tim.kubectl("delete", "nas", "often")
    assert runs(tim), "its backups stay"


def test_nobody_but_the_operator_marks_a_backup_as_a_run(tim: Tenant) -> None:
    for field in ("annotations", "labels"):
        for key in (SCHEDULE_UID, SLOT):
            body = {"apiVersion": API, "kind": "NonAdminBackup", "spec": {"backupSpec": {}}}
            forged = {**body, "metadata": {"name": "forged", field: {key: "x"}}}
            assert "are written by Foresail alone" in refusal(tim, "create", body=forged)
    marked = {**schedule("forged", "@every 1h"), "metadata": {"name": "forged", "annotations": {SLOT: "x"}}}
    assert "are written by Foresail alone" in refusal(tim, "create", body=marked)
    lie = {**schedule("lie", "0 0 1 1 *", paused=True)}
    lie["metadata"] = {"name": "lie", "annotations": {REQUESTER: "system:admin"}}
    tim.kubectl("create", "--filename=-", body=lie)
    stored = json.loads(tim.kubectl("get", "nas", "lie", "--output=json"))
    assert stored["metadata"]["annotations"][REQUESTER] == "tenant-of-timed"
    assert "forbidden" in refusal(tim, "patch", "nas", "lie", "--subresource=status", "--type=merge", "--patch={}")


def test_expressions_that_are_too_long_are_refused_by_the_api_server_and_wrong_ones_by_the_operator(
    tim: Tenant, eventually: Eventually
) -> None:
    assert "1024" in refusal(tim, "create", body=schedule("long", "0," * 5000 + "0 * * * *"))
    tim.kubectl("create", "--filename=-", body=schedule("wrong", "61 * * * *"))
    eventually(lambda: condition(tim.status("nas/wrong"), "Accepted")[1] == "InvalidScheduleSpec", 60)
    assert tim.status("nas/wrong")["phase"] == "BackingOff"


def test_a_manifest_in_the_form_of_the_existing_controller_is_accepted_and_shown(
    tim: Tenant, eventually: Eventually
) -> None:
    import yaml  # noqa: PLC0415 - one test reads it

    tim.kubectl("create", "--filename=-", body=yaml.safe_load(UPSTREAM))
    eventually(lambda: tim.status("nas/upstream").get("nextRun", "").endswith("T02:00:00Z"), 60)
    shown = tim.kubectl("get", "nas", "upstream").splitlines()
    assert shown[0].split() == ["NAME", "REQUEST-PHASE", "VELERO-PHASE", "NEXT-RUN", "PAUSED", "AGE"]
    assert "Created" in shown[1]


def times(cluster: Cluster, **spec: Any) -> None:  # noqa: ANN401 - JSON
    """Create or change a SchedulePolicy for tenants alone: it selects no Schedule of Velero's."""
    body = {"apiVersion": "foresail.dev/v1alpha1", "kind": "SchedulePolicy", "metadata": {"name": "tides"}}
    cluster.apply({**body, "spec": {"selector": {"names": []}, **spec}})


def completed(tenant: Tenant) -> set[str]:
    phases = {each["metadata"]["name"]: each.get("status", {}).get("veleroBackup", {}) for each in runs(tenant)}
    return {name for name, found in phases.items() if found.get("status", {}).get("phase") == "Completed"}


def test_schedule_policy_of_the_administrator_sets_the_times_and_keep_last_the_number_of_a_tenants_runs(
    served: Cluster, eventually: Eventually
) -> None:
    kolkata = ZoneInfo("Asia/Kolkata")
    times(served, timeZone=kolkata.key)
    policy(served, "tidal", stored=1000, schedulePolicy="tides", keepLast=2, gracePeriod="0s")
    ned = arrive(served, "tidal", eventually)
    night = (now().astimezone(kolkata) + timedelta(hours=18)).replace(minute=0, second=0, microsecond=0)
    both = [schedule("nightly", f"0 {night.hour} * * *"), schedule("often", "@every 30s")]
    ned.kubectl("create", "--filename=-", body={"apiVersion": "v1", "kind": "List", "items": both})
    eventually(lambda: ned.status("nas/nightly").get("nextRun") == stamp(night.astimezone(UTC)), 60)

    eventually(lambda: completed(ned), 120)
    (first, *_) = sorted(completed(ned))
    eventually(lambda: first not in {each["metadata"]["name"] for each in runs(ned)}, 180)

    opening = (now().astimezone(kolkata) + timedelta(hours=6)).replace(second=0, microsecond=0)
    window = {"schedule": f"{opening.minute} {opening.hour} * * *", "duration": "1h"}
    times(served, timeZone=kolkata.key, windows={"allowed": [window], "outside": "Skip"})
    eventually(lambda: ned.kubectl("get", "events", "--field-selector=reason=OutsideWindow", "--output=name"), 60)
    told = json.loads(ned.kubectl("get", "events", "--field-selector=reason=OutsideWindow", "--output=json"))["items"]
    assert {each["involvedObject"]["name"] for each in told} == {"often"}
    upcoming = datetime.fromisoformat(ned.status("nas/often")["nextRun"])
    assert opening <= upcoming <= opening + timedelta(seconds=30)
    assert re.search(r"often .* in [56]h", foresail_as(ned, "backup", "schedule", "get"))
    refused = condition(ned.status("nas/nightly"), "Accepted")
    assert refused[:2] == ("False", "NeverInWindow"), "its hour is outside, day after day"
    assert "SchedulePolicy tides" in refused[2]

    def left() -> set[str]:
        return {each["metadata"]["name"] for each in of_namespace(served, "backups", "tidal")}

    eventually(lambda: len(left()) == 2 and len(runs(ned)) == len(completed(ned)) == 2, 180)
    eventually(lambda: all(in_bucket(served, each) for each in left()), 60)
    assert condition(ned.status("nas/often"), "Ready")[:2] == ("True", "Scheduled")


def foresail_as(tenant: Tenant, *words: str) -> str:
    """Run the command line as a tenant, and return what it prints."""
    where = (f"--kubeconfig={tenant.kubeconfig}", f"--namespace={tenant.namespace}")
    done = subprocess.run(
        [sys.executable, "-m", "foresail", *words, *where], capture_output=True, text=True, check=False, timeout=120
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.full
def test_however_often_the_operator_is_killed_each_schedule_has_one_run(
    own_velero_cluster: Cluster, tmp_path: Path, eventually: Eventually, figure: Callable[[str], None]
) -> None:
    """Velero is frozen, so the first run of each schedule never ends and blocks the others: one each, or it is lost."""
    cluster = own_velero_cluster
    install(cluster)
    policy(cluster, "killed", stored=EACH * KILLS * 2)
    chance = random.Random(11)  # noqa: S311 - chance, not secrecy
    hal = arrive(cluster, "killed", eventually)
    how: Counter[str] = Counter()
    with running(cluster, tmp_path, *FLAGS) as process, frozen(cluster):
        process.kill()
        for number in range(KILLS):
            items = [schedule(f"s{number}-{one}", f"@every {chance.randint(1, 3)}s") for one in range(EACH)]
            hal.kubectl("create", "--filename=-", body={"apiVersion": "v1", "kind": "List", "items": items})
            how[kill(process, chance, aimed=bool(number % 2))] += 1
        process.start()
        eventually(lambda: len(runs(hal)) >= EACH * KILLS, 240)
        found = Counter(each["metadata"]["annotations"][SCHEDULE_UID] for each in runs(hal))
    assert len(found) == EACH * KILLS, "none is lost"
    assert set(found.values()) == {1}, "none has two"
    kinds = ", ".join(f"{count} {kind}" for kind, count in sorted(how.items()))
    figure(f"NonAdminSchedules: {KILLS} kills ({kinds}): {len(found)} runs of {EACH * KILLS} schedules, none twice")
    print(json.dumps({"kills": KILLS, "schedules": EACH * KILLS, "lost": 0, "twice": 0}))
