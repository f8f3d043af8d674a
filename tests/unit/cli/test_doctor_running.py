"""The doctor looks at what runs: pods with their reason, rollouts that failed, and a Velero that does not run."""

from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import msgspec
import pytest

from foresail.api import velero
from foresail.api.apps import DaemonSet, ObservedDeployment
from foresail.api.metadata import Metadata
from foresail.api.nonadmin import NON_ADMIN_BACKUP, NON_ADMIN_RESTORE
from foresail.api.pod_problems import ObservedPod
from foresail.cli.access.operators import Lease, LeaseSpec
from foresail.cli.doctor.finding import Finding, Grade
from foresail.cli.doctor.installation import findings
from foresail.cli.doctor.requests import Request, unprocessed
from foresail.cli.doctor.running import server_state
from foresail.cli.doctor.workloads import Workload, agent_workload, deployment_workload, trouble
from foresail.plan import Key
from foresail.safety.velero_pods import ServerPods, last_validation, velero_state
from tests.unit.cli.test_doctor import HEALTHY, LOCATION, NOW, OPERATOR, SERVER, wrong

MINUTE = timedelta(minutes=1)
LONG_AGO = NOW - timedelta(days=9)
PULL = {"waiting": {"reason": "ImagePullBackOff", "message": 'Back-off pulling image "velero/velero:v9"'}}
CRASH = {"waiting": {"reason": "CrashLoopBackOff"}}
EXIT = {"terminated": {"exitCode": 2, "reason": "Error", "message": "no key"}}


def pod(
    name: str, state: dict[str, Any] | None = None, template: str = "new", age: timedelta = 9 * MINUTE, **more: object
) -> ObservedPod:
    """Return a pod that is ready without a state."""
    conditions = [{"type": "Ready", "status": "False" if state else "True"}]
    container = {"state": state or {"running": {}}, "image": "velero/velero:v9", **more}
    status = {"phase": "Running", "conditions": conditions, "containerStatuses": [container]}
    metadata = {
        "name": name,
        "labels": {"pod-template-hash": template},
        "creationTimestamp": (NOW - age).isoformat(),
    }
    return msgspec.convert({"metadata": metadata, "status": status}, ObservedPod)


def deployment(
    key: Key, *pods: ObservedPod, replicas: int = 1, scaled: datetime | None = LONG_AGO, **status: object
) -> Workload:
    fields = [{"time": scaled.isoformat(), "fieldsV1": {"f:spec": {"f:replicas": {}}}}] if scaled else []
    metadata = {
        "name": key.name,
        "namespace": key.namespace,
        "generation": 3,
        "creationTimestamp": LONG_AGO.isoformat(),
        "managedFields": [*fields, {"time": NOW.isoformat(), "fieldsV1": {"f:spec": {"f:template": {}}}}],
    }
    spec = {"replicas": replicas, "selector": {"matchLabels": {"app": key.name}}, "template": {}}
    wire = {"metadata": metadata, "spec": spec, "status": {"observedGeneration": 3, **status}}
    return deployment_workload(msgspec.json.decode(msgspec.json.encode(wire), type=ObservedDeployment), pods)


def said(*works: Workload, lease: Lease | None = HEALTHY.lease) -> list[Finding]:
    return [each for each in wrong(replace(HEALTHY, workloads=works, lease=lease)) if each.about in ("velero", "pods")]


@pytest.mark.parametrize(
    ("work", "grade", "says", "fix"),
    [
        pytest.param(
            deployment(SERVER.key, pod("velero-1", PULL)),
            Grade.PROBLEM,
            '0 of 1 pods are ready: pod velero-1: ImagePullBackOff: Back-off pulling image "velero/velero:v9"',
            "kubectl rollout undo deployment/velero -n velero",
            id="an image that cannot be pulled",
        ),
        pytest.param(
            deployment(SERVER.key, pod("velero-1", CRASH, lastState=EXIT)),
            Grade.PROBLEM,
            "0 of 1 pods are ready: pod velero-1: CrashLoopBackOff, last exit code 2: no key",
            "kubectl logs deployment/velero -n velero --all-pods --previous",
            id="a server that crashes",
        ),
        pytest.param(
            deployment(SERVER.key, pod("velero-2", PULL), pod("velero-1", template="old")),
            Grade.PROBLEM,
            "; the rollout failed, and the previous pods still run",
            "rollout undo",
            id="a rollout that failed while the previous pods run",
        ),
        pytest.param(
            deployment(
                SERVER.key,
                pod("velero-1"),
                conditions=[{"type": "Progressing", "status": "False", "reason": "ProgressDeadlineExceeded"}],
                readyReplicas=1,
            ),
            Grade.PROBLEM,
            "1 of 1 pods are ready: its rollout has exceeded its deadline",
            "kubectl describe pods -n velero -l app=velero",
            id="a rollout that is late",
        ),
        pytest.param(
            deployment(
                SERVER.key,
                conditions=[{"type": "ReplicaFailure", "status": "True", "message": "exceeded quota: pods=1"}],
            ),
            Grade.PROBLEM,
            "0 of 1 pods are ready: exceeded quota: pods=1",
            "kubectl describe pods",
            id="a quota that lets it have no pod",
        ),
        pytest.param(
            deployment(SERVER.key),
            Grade.PROBLEM,
            "0 of 1 pods are ready: it has no pods",
            "describe",
            id="no pod at all",
        ),
        pytest.param(
            deployment(SERVER.key, observedGeneration=2),
            Grade.WARNING,
            "no controller has processed its last change",
            "kube-controller-manager",
            id="nobody's controller acts on it",
        ),
        pytest.param(
            deployment(SERVER.key, pod("velero-1", {"waiting": {"reason": "ContainerCreating"}}, age=MINUTE)),
            Grade.WARNING,
            "0 of 1 pods are ready: its pods start",
            "describe",
            id="it starts",
        ),
        pytest.param(
            deployment(SERVER.key, replicas=0),
            Grade.PROBLEM,
            "Deployment velero/velero: it is scaled to 0 replicas",
            "kubectl scale deployment velero -n velero --replicas=1",
            id="scaled to zero",
        ),
    ],
)
def test_a_velero_that_does_not_run_is_named_with_its_reason(work: Workload, grade: Grade, says: str, fix: str) -> None:
    (finding,) = said(work)
    assert (finding.grade, finding.about) == (grade, "velero")
    assert says in finding.says
    assert fix in finding.fix


def test_a_velero_that_does_not_run_is_called_good_nowhere() -> None:
    seen = replace(HEALTHY, workloads=(deployment(SERVER.key, pod("velero-1", PULL)),))
    assert [each.grade for each in findings(seen) if each.about == "velero"] == [Grade.PROBLEM]


def test_a_pod_that_crashes_now_and_then_is_a_warning_beside_the_version() -> None:
    last = {"terminated": {"exitCode": 1, "finishedAt": (NOW - MINUTE).isoformat()}}
    seen = replace(HEALTHY, workloads=(deployment(SERVER.key, pod("velero-1", lastState=last, restartCount=4)),))
    found = [each for each in findings(seen) if each.about == "velero"]
    assert [each.grade for each in found] == [Grade.WARNING, Grade.GOOD]
    assert "pod velero-1 has restarted 4 times: last exit code 1" in found[0].says


def located(validated: timedelta | None, every: str = "") -> tuple[velero.Location, ...]:
    at = None if validated is None else NOW - validated
    spec = velero.LocationSpec(default=True, validation_frequency=every)
    return (velero.Location(LOCATION.metadata, spec, velero.LocationStatus("Available", "", at)),)


SECONDS = timedelta(seconds=1)


@pytest.mark.parametrize(
    ("scaled", "created", "validated", "expected"),
    [
        pytest.param(30 * SECONDS, LONG_AGO, 40 * SECONDS, Grade.PROBLEM, id="scaled down a moment ago"),
        pytest.param(40 * SECONDS, LONG_AGO, 35 * SECONDS, Grade.PROBLEM, id="validated by a pod that ends"),
        pytest.param(LONG_AGO, LONG_AGO, 40 * SECONDS, Grade.GOOD, id="a server outside it works"),
        pytest.param(LONG_AGO, LONG_AGO, 4 * MINUTE, Grade.PROBLEM, id="nothing works any more"),
        pytest.param(LONG_AGO, LONG_AGO, 9 * MINUTE, Grade.PROBLEM, id="nothing works"),
        pytest.param(LONG_AGO, LONG_AGO, -9 * MINUTE, Grade.PROBLEM, id="no clock is so far ahead"),
        pytest.param(LONG_AGO, LONG_AGO, None, Grade.PROBLEM, id="nothing has ever worked"),
        pytest.param(30 * SECONDS, 32 * SECONDS, 29 * SECONDS, Grade.WARNING, id="created so a moment ago"),
        pytest.param(None, LONG_AGO, 29 * SECONDS, Grade.WARNING, id="nobody tells when it was scaled"),
    ],
)
def test_the_doctor_and_coverage_know_a_server_outside_its_deployment_by_what_it_does(
    scaled: datetime | timedelta | None,
    created: datetime | timedelta,
    validated: timedelta | None,
    expected: Grade,
) -> None:
    def at(value: datetime | timedelta | None) -> datetime | None:
        return NOW - value if isinstance(value, timedelta) else value

    work = replace(deployment(SERVER.key, replicas=0), scaled=at(scaled), created=at(created))
    seen = replace(HEALTHY, workloads=(work,), locations=located(validated))
    assert [each.grade for each in findings(seen) if each.about == "velero"] == [expected]
    pods = ServerPods("velero", 0, 0, created=work.created, scaled=work.scaled)
    state = velero_state([pods], last_validation(seen.locations, MINUTE), NOW)
    assert state == server_state(seen, NOW), "coverage asks the same rule"
    assert (bool(state.problem), bool(state.unknown)) == (expected is Grade.PROBLEM, expected is Grade.WARNING)


def test_a_deployment_was_scaled_when_its_replicas_or_its_status_were_written_last() -> None:
    def scaled(*writes: dict[str, Any]) -> datetime | None:
        wire = {"metadata": {"name": "velero", "managedFields": writes}}
        return msgspec.json.decode(msgspec.json.encode(wire), type=ObservedDeployment).metadata.scaled

    created = {"time": LONG_AGO, "fieldsV1": {"f:spec": {"f:template": {}}}}
    by_controller = {"time": NOW, "subresource": "status", "fieldsV1": {"f:status": {}}}
    owned = {"time": LONG_AGO, "fieldsV1": {"f:spec": {"f:replicas": {}}}}
    assert scaled(created, by_controller) == NOW
    assert scaled(owned, by_controller) == NOW
    assert scaled(owned, created) == LONG_AGO
    assert scaled(created) is None


@pytest.mark.parametrize(
    ("validated", "every", "server", "warned"),
    [
        (2 * MINUTE, "", MINUTE, False),
        (9 * MINUTE, "", MINUTE, True),
        (9 * MINUTE, "1h", MINUTE, False),
        (9 * MINUTE, "", timedelta(hours=1), False),
        (9 * MINUTE, "0s", MINUTE, False),
        (9 * MINUTE, "", timedelta(), False),
    ],
)
def test_a_location_that_velero_validates_no_more_is_not_called_available(
    validated: timedelta, every: str, server: timedelta, warned: bool
) -> None:
    seen = replace(HEALTHY, locations=located(validated, every), validates_every=server)
    (finding,) = [each for each in findings(seen) if each.about == "locations"]
    assert (finding.grade is Grade.WARNING) == warned
    if warned:
        assert finding.says == "default was available 9 min ago, and Velero has not validated it since"


def test_a_location_is_not_called_available_while_velero_does_not_run() -> None:
    work = deployment(SERVER.key, pod("velero-1", CRASH))
    seen = replace(HEALTHY, workloads=(work,), locations=located(MINUTE, ""), validates_every=MINUTE)
    (finding,) = [each for each in findings(seen) if each.about == "locations"]
    assert finding.grade is Grade.WARNING
    assert finding.says == "default was available when Velero ran, and nothing validates it now"


def test_an_operator_that_cannot_be_pulled_is_named_where_its_work_is_missing() -> None:
    work = deployment(OPERATOR.key, pod("foresail-1", PULL))
    seen = replace(HEALTHY, workloads=(work,), lease=None)
    found = {each.about: each for each in wrong(seen)}
    assert "0 of 1 pods are ready: pod foresail-1: ImagePullBackOff" in found["pods"].says
    assert found["pods"].grade is Grade.PROBLEM
    assert "(0 of 1 pods are ready: pod foresail-1: ImagePullBackOff" in found["schedules"].says


def test_an_operator_outside_its_deployment_leaves_a_warning() -> None:
    pending = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "no nodes"}
    status = {"phase": "Pending", "conditions": [pending]}
    waiting = msgspec.convert({"metadata": {"name": "foresail-1"}, "status": status}, ObservedPod)
    (finding,) = said(deployment(OPERATOR.key, waiting), lease=Lease(LeaseSpec("laptop", NOW)))
    assert finding.grade is Grade.WARNING
    assert finding.says.endswith(
        "0 of 1 pods are ready: pod foresail-1: Unschedulable: no nodes; laptop works in its place"
    )


def test_a_standby_that_is_missing_is_a_warning() -> None:
    work = deployment(OPERATOR.key, pod("pod-1"), pod("pod-2", CRASH, lastState=EXIT), replicas=2)
    (finding,) = said(work)
    assert (finding.grade, "1 of 2 pods are ready" in finding.says) == (Grade.WARNING, True)


def agents(desired: int, ready: int, *pods: ObservedPod) -> Workload:
    wire = {
        "metadata": {"name": "node-agent", "namespace": "velero"},
        "spec": {"selector": {"matchLabels": {"name": "node-agent"}}},
        "status": {"desiredNumberScheduled": desired, "numberReady": ready},
    }
    return agent_workload(msgspec.convert(wire, DaemonSet), pods)


def test_node_agents_that_do_not_run_are_counted_with_the_reason_of_one() -> None:
    (finding,) = said(agents(3, 1, pod("node-agent-1", PULL)))
    assert (finding.grade, finding.about) == (Grade.WARNING, "pods")
    assert "DaemonSet velero/node-agent: 1 of 3 pods are ready: pod node-agent-1: ImagePullBackOff" in finding.says
    assert said(agents(3, 3)) == []
    assert said(agents(0, 0)) == [], "no node for it, as for Windows in most clusters"
    (finding,) = said(agents(1, 0))
    assert finding.grade is Grade.PROBLEM


def test_pods_that_are_ready_are_one_line() -> None:
    works = (deployment(SERVER.key, pod("velero-1")), deployment(OPERATOR.key, pod("pod-1")), agents(2, 2))
    assert said(*works) == []
    (line,) = [each.says for each in findings(replace(HEALTHY, workloads=works)) if each.about == "pods"]
    assert line == "all are ready: 1 of velero, 1 of foresail-schedules, 2 of node-agent"


def test_the_pods_that_are_being_deleted_or_have_ended_do_not_count() -> None:
    gone = msgspec.structs.replace(pod("a", PULL), metadata=Metadata("a", deletion_timestamp=NOW))
    evicted = msgspec.convert(
        {"metadata": {"name": "b"}, "status": {"phase": "Failed", "reason": "Evicted"}}, ObservedPod
    )
    work = deployment(SERVER.key, gone, evicted, pod("c"))
    assert (work.ready, trouble(work, NOW)) == (1, None)


def test_requests_that_nobody_processes_are_a_problem_after_two_minutes() -> None:
    def request(name: str, age: timedelta, phase: str = "") -> Request:
        return Request(NON_ADMIN_BACKUP, Key("shop", name), name, phase, NOW - age)

    requests = {
        NON_ADMIN_BACKUP: (request("b", 3 * MINUTE), request("a", 5 * MINUTE), request("done", 9 * MINUTE, "Created")),
        NON_ADMIN_RESTORE: (request("young", MINUTE),),
    }
    late = unprocessed(requests, NOW)
    assert [each.key.name for each in late] == ["a", "b"]
    (finding,) = wrong(replace(HEALTHY, unprocessed=late))
    assert (finding.grade, finding.about) == (Grade.PROBLEM, "requests")
    names = "NonAdminBackup shop/a, NonAdminBackup shop/b"
    assert finding.says == f"2 requests have had no status for up to 5 min: no operator processes {names}"
    counted = replace(HEALTHY, unprocessed=late, unserved={NON_ADMIN_BACKUP: 2})
    assert [each for each in wrong(counted) if each.about == "requests"] == [], "finding kinds has them"
