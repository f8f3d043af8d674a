"""What the doctor says about each thing that can be wrong, and that it says nothing about what is right."""

from argparse import Namespace
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import msgspec
import pytest

from foresail.api import mirrored, velero
from foresail.api.crds import DEFINITIONS, definition
from foresail.api.metadata import Metadata, Write, Written
from foresail.api.pod_problems import ObservedPod
from foresail.api.policy import PolicyMetadata, SelfServicePolicy
from foresail.api.schedule_policy import Objective, SchedulePolicy, SchedulePolicySpec, ScheduleSelector
from foresail.cli.access.cluster import on_cluster
from foresail.cli.access.operators import Lease, LeaseSpec, Operator
from foresail.cli.access.refused_writes import RefusedWrite
from foresail.cli.doctor.evidence import Backup, DeleteRequest, Evidence, Restore, gather
from foresail.cli.doctor.finding import Finding, Grade
from foresail.cli.doctor.installation import data_path, findings, requesters
from foresail.cli.doctor.permissions import needed
from foresail.cli.doctor.visit import shown, summary
from foresail.cli.doctor.workloads import Workload
from foresail.cli.errors import CommandError
from foresail.cli.install.install import schedule_lines
from foresail.kube.clock import now
from foresail.plan import Key
from foresail.schedules.observe import ScheduleRow, Unread
from foresail.schedules.velero_server import DeploymentRow
from foresail.slots.policy_timing import PolicyRow
from tests.unit.cli.canned import canned
from tests.unit.schedules.rows import schedule
from tests.unit.schedules.test_policies import policy

NOW = datetime(2026, 11, 15, 12, tzinfo=UTC)
OURS = {f"{each.kind.plural}.{each.kind.group}": definition(each)["spec"] for each in DEFINITIONS}
SERVER = DeploymentRow(Key("velero", "velero"), "u", 1, "v1.18.3", has_schedule_controller=False, is_rolled_out=True)
OPERATOR = Operator(
    Key("velero", "foresail-schedules"),
    schedules=True,
    self_service=True,
    primers=False,
    service_account="velero/foresail-schedules",
)
SERVING = Operator(
    Key("velero", "foresail-self-service"),
    schedules=False,
    self_service=False,
    primers=False,
    service_account="velero/foresail-self-service",
    lease="foresail-self-service",
)
APART = Operator(
    Key("velero", "foresail-primers"),
    schedules=False,
    self_service=False,
    primers=True,
    service_account="velero/foresail-primers",
    lease="foresail-primers",
)
LOCATION = velero.Location(Metadata("default"), velero.LocationSpec(default=True), velero.LocationStatus("Available"))
HEALTHY = Evidence(
    namespace="velero",
    instant=NOW,
    server_time=NOW,
    tzdata="2026.3",
    definitions={"backups.velero.io": {}, **OURS},
    servers=(SERVER,),
    lease=Lease(LeaseSpec("pod-1", NOW - timedelta(seconds=3))),
    primers_lease=Lease(LeaseSpec("pod-2", NOW - timedelta(seconds=3))),
    operators=(OPERATOR, APART),
    others=(),
    locations=(LOCATION,),
    schedules={"daily": schedule()},
    backups=(),
    deletions=(),
    permissions=dict.fromkeys(needed(schedules=True, self_service=True, primers=True), True),
    is_requester_set=True,
    is_requester_checked=True,
    signs_records=True,
)


def backup(
    phase: str,
    age: timedelta,
    schedule: str = "daily",
    *,
    written: timedelta | None = None,
    ended: timedelta | None = None,
) -> Backup:
    metadata = Written(
        "b",
        creation_timestamp=NOW - age,
        labels={velero.SCHEDULE_LABEL: schedule},
        managed_fields=() if written is None else (Write(NOW - age), Write(NOW - written), Write()),
    )
    completed = None if ended is None else NOW - ended
    return Backup(metadata, mirrored.Stored("default"), velero.BackupStatus(phase, completion_timestamp=completed))


def restore(name: str, phase: str, written: timedelta) -> Restore:
    metadata = Written(name, creation_timestamp=NOW - LONG, managed_fields=(Write(NOW - written),))
    return Restore(metadata, velero.RestoreStatus(phase))


def refused(name: str, why: str = "backup deletion failed: backup is still in progress") -> DeleteRequest:
    return msgspec.json.decode(
        msgspec.json.encode({"spec": {"backupName": name}, "status": {"phase": "Processed", "errors": [why]}}),
        type=DeleteRequest,
    )


def wrong(seen: Evidence) -> list[Finding]:
    return [each for each in findings(seen) if each.grade is not Grade.GOOD]


def test_nothing_is_wrong_with_what_is_as_it_should_be() -> None:
    assert wrong(HEALTHY) == []
    assert summary(findings(HEALTHY)) == "No problems found."
    assert {each.about for each in findings(HEALTHY)} == {
        "kinds", "clock", "zones", "velero", "schedules", "primers", "locations", "permissions", "requester",
        "recovery",
    }  # fmt: skip


def test_a_server_that_may_not_be_read_is_not_called_missing() -> None:
    unread = replace(HEALTHY, servers=(), operators=(), has_read_deployments=False)
    assert [each.says for each in wrong(unread)] == ["not checked: you may not list Deployments"]


def test_someone_who_may_not_list_deployments_is_told_of_no_missing_server(tmp_path: Path) -> None:
    with canned(tmp_path, {"/version": {}}) as server:  # every list is refused
        seen = on_cluster(
            Namespace(kubeconfig=str(server.kubeconfig), context=None), lambda cluster: gather(cluster, "velero", None)
        )
    assert not seen.has_read_deployments
    assert [each.says for each in findings(seen) if each.about == "velero"] == [
        "not checked: you may not list Deployments"
    ]


def test_kinds_are_one_line_if_nothing_is_wrong_with_them() -> None:
    def said(seen: Evidence) -> list[str]:
        return [each.says for each in findings(seen) if each.about == "kinds"]

    assert said(HEALTHY) == [f"all {len(OURS)} kinds have every field"]
    assert said(replace(HEALTHY, definitions={"backups.velero.io": {}})) == [
        f"none of Foresail's {len(OURS)} kinds is installed"
    ]


def test_a_cluster_without_schedules_is_not_told_of_zero_schedules() -> None:
    idle = replace(HEALTHY, operators=(), lease=None, primers_lease=None, schedules={})
    assert [each.says for each in wrong(idle) if each.about == "schedules"] == [
        "nothing runs new Schedules: Velero's controller and the operator are off"
    ]


def test_objective_that_a_schedule_cannot_meet_is_a_warning() -> None:
    def under(rpo: str) -> Evidence:
        spec = SchedulePolicySpec(ScheduleSelector(), objective=Objective(rpo))
        rows = {"daily": schedule(text="0 3 * * 1-5"), "often": schedule(text="0 * * * *")}
        return replace(HEALTHY, schedules=rows, schedule_policies=(SchedulePolicy(PolicyMetadata("gold"), spec),))

    assert wrong(under("80h")) == []
    (finding,) = wrong(under("25h"))
    assert (finding.grade, finding.about) == (Grade.WARNING, "objectives")
    assert "daily cannot meet the objective: runs are up to 3d apart, and the objective is 1d1h" in finding.says


@pytest.mark.parametrize("ttl", ["24h0m0s", "25h0m0s"])
def test_backups_that_do_not_live_until_the_next_run_are_a_warning(ttl: str) -> None:
    row = schedule(text="0 3 * * *", template=msgspec.json.encode({"ttl": ttl}))
    assert wrong(replace(HEALTHY, schedules={"daily": msgspec.structs.replace(row, paused=True)})) == []
    said = [f"{finding.about}: {finding.says}" for finding in wrong(replace(HEALTHY, schedules={"daily": row}))]
    text = "Velero deletes each Backup after 1d, and runs are up to 1d apart, so after a run that fails none is left"
    assert said == ([f"lifetimes: daily: {text}"] if ttl.startswith("24") else [])


ELSEWHERE = velero.Location(
    Metadata("elsewhere"), velero.LocationSpec(access_mode="ReadOnly"), velero.LocationStatus("Available")
)


@pytest.mark.parametrize(
    ("row", "says"),
    [
        (schedule(text="61 * * * *"), "daily can never run (InvalidSchedule): invalid schedule"),
        (schedule(text="0 0 30 2 *"), "daily can never run (NeverFires): '0 0 30 2 *' never fires"),
        (schedule(key=Key("velero", "n" * 64)), "can never run (NameTooLong): the name has 64 characters"),
        (schedule(location="far"), "daily can never run (LocationUnavailable): BackupStorageLocation far does not"),
        (schedule(location="elsewhere"), "daily can never run (LocationUnavailable): BackupStorageLocation elsewhere"),
        (Unread(Key("velero", "daily"), "Expected `str`"), "daily cannot be read: Expected `str`"),
    ],
)
def test_a_schedule_that_can_never_run_is_a_problem(row: ScheduleRow | Unread, says: str) -> None:
    seen = replace(HEALTHY, schedules={row.key.name: row}, locations=(LOCATION, ELSEWHERE))
    (found,) = wrong(seen)
    assert (found.grade, found.about) == (Grade.PROBLEM, "schedules")
    assert says in found.says
    assert found.fix


def test_a_thousand_schedules_that_can_never_run_are_one_problem() -> None:
    rows = {name: schedule(key=Key("velero", name), text="61 * * * *") for name in map("s{:03}".format, range(1000))}
    (found,) = wrong(replace(HEALTHY, schedules=rows))
    assert "s000, s001, s002, s003, s004 and 995 more can never run (InvalidSchedule)" in found.says


def test_a_paused_schedule_is_not_meant_to_run() -> None:
    assert wrong(replace(HEALTHY, schedules={"daily": schedule(location="far", paused=True)})) == []


def without(name: str) -> Callable[[Evidence], Evidence]:
    assert HEALTHY.definitions is not None
    kept = {each: spec for each, spec in HEALTHY.definitions.items() if each != name}
    return lambda seen: replace(seen, definitions=kept)


def on(row: DeploymentRow) -> DeploymentRow:
    return DeploymentRow(row.key, row.uid, row.generation, row.tag, has_schedule_controller=True, is_rolled_out=True)


OLD: dict[str, Any] = {
    "versions": [{"schema": {"openAPIV3Schema": {"properties": {"spec": {"properties": {}}, "status": {}}}}}]
}
UNAVAILABLE = velero.Location(LOCATION.metadata, LOCATION.spec, velero.LocationStatus("Unavailable", "no such bucket"))
LONG, MOMENT = timedelta(hours=2), timedelta(seconds=1)
CASES: list[tuple[Callable[[Evidence], Evidence], Grade, str, str, str]] = [
    (without("backups.velero.io"), Grade.PROBLEM, "kinds", "Velero's kinds are not installed", "install Velero"),
    (
        without("nonadminbackups.oadp.openshift.io"),
        Grade.WARNING, "kinds", "not installed: nonadminbackups", "charts/foresail-crds",
    ),
    (
        lambda seen: replace(seen, definitions={**(seen.definitions or {}), "nonadminbackups.oadp.openshift.io": OLD}),
        Grade.WARNING, "kinds", "lacks", "helm upgrade foresail-crds",
    ),
    (lambda seen: replace(seen, server_time=NOW - LONG), Grade.WARNING, "clock", "7200 s ahead of", "timedatectl"),
    (lambda seen: replace(seen, server_time=NOW + LONG), Grade.WARNING, "clock", "7200 s behind", "timedatectl"),
    (
        lambda seen: replace(seen, lease=Lease(LeaseSpec("pod-1", NOW + timedelta(minutes=1)))),
        Grade.PROBLEM, "clock", "the operator's clock is 60 s ahead of", "its node",
    ),
    (lambda seen: replace(seen, tzdata="2024.1"), Grade.WARNING, "zones", "tzdata 2024.1", "newer"),
    (lambda seen: replace(seen, servers=()), Grade.PROBLEM, "velero", "no Deployment", "--velero-namespace"),
    (
        lambda seen: replace(seen, servers=(DeploymentRow(SERVER.key, "u", 1, "main", False, True),)),  # noqa: FBT003
        Grade.WARNING, "velero", "its image tag (main) is not a version", "--velero-dialect",
    ),
    (
        lambda seen: replace(seen, servers=(on(SERVER),)),
        Grade.PROBLEM, "schedules", "schedule controller is on", "--disable-controllers=schedule",
    ),
    (
        lambda seen: replace(seen, lease=None, operators=()),
        Grade.PROBLEM, "schedules", "nothing runs the only Schedule:", "install the operator (foresail install), or",
    ),
    (
        lambda seen: replace(seen, lease=Lease(LeaseSpec("pod-1", NOW - LONG))),
        Grade.PROBLEM, "schedules", "nothing runs the only Schedule:", "start the operator",
    ),
    (
        lambda seen: replace(seen, operators=(replace(OPERATOR, schedules=False),)),
        Grade.PROBLEM, "schedules", "both Velero's controller and the operator's are off", "--schedules=true",
    ),
    (lambda seen: replace(seen, locations=()), Grade.PROBLEM, "locations", "there is no", "backup-location create"),
    (
        lambda seen: replace(seen, locations=(UNAVAILABLE,)),
        Grade.PROBLEM, "locations", "default is Unavailable: no such bucket", "kubectl describe",
    ),
    (
        lambda seen: replace(seen, locations=(velero.Location(LOCATION.metadata, status=LOCATION.status),)),
        Grade.WARNING, "locations", "none is the default", "--default",
    ),
    (
        lambda seen: replace(seen, backups=(backup("Completed", LONG, "theirs"),)),
        Grade.WARNING, "strangers", "not in this cluster: theirs", "prefix",
    ),
    (
        lambda seen: replace(seen, others=(Key("oadp", "non-admin-controller"),)),
        Grade.PROBLEM, "rivals", "oadp/non-admin-controller works on the same", "stop one",
    ),
    (
        lambda seen: replace(seen, operators=(OPERATOR, replace(OPERATOR, key=Key("other", "foresail-schedules")))),
        Grade.PROBLEM, "rivals", "several operators are installed: velero/foresail-schedules, other/f", "all but one",
    ),
    (
        lambda seen: replace(seen, operators=(replace(OPERATOR, primers=True), APART)),
        Grade.PROBLEM, "rivals", "installed: velero/foresail-schedules, velero/foresail-primers", "all but",
    ),
    (
        lambda seen: replace(seen, operators=(OPERATOR, replace(APART, lease="foresail-schedules"))),
        Grade.PROBLEM, "rivals", "both use Lease foresail-schedules", "--lease-name",
    ),
    (
        lambda seen: replace(seen, operators=(OPERATOR, SERVING)),
        Grade.PROBLEM, "self-service", "foresail-self-service: no replica holds the Lease", "kubectl describe pods",
    ),
    (
        lambda seen: replace(seen, primers_lease=None),
        Grade.PROBLEM, "primers", "velero/foresail-primers: no replica holds the Lease", "kubectl describe pods",
    ),
    (
        lambda seen: replace(seen, backups=(backup("ReadyToStart", LONG),)),
        Grade.PROBLEM, "stuck", "Backup b has been ReadyToStart for 2 h", "kubectl annotate backup b",
    ),
    (
        lambda seen: replace(seen, backups=(backup("Queued", LONG),)),
        Grade.PROBLEM, "stuck", "1 Backups are Queued and none has run for 2 h",
        "rollout restart deployment velero -n velero",
    ),
    (
        lambda seen: replace(seen, backups=(backup("New", LONG), backup("", LONG))),
        Grade.PROBLEM, "stuck", "2 Backups are New, and Velero has begun none for 2 h",
        "kubectl logs deployment/velero -n velero",
    ),
    (
        lambda seen: replace(seen, backups=(backup("InProgress", timedelta(hours=30)),)),
        Grade.WARNING, "stuck", "Backup b has been running for 30 h", "velero backup describe b",
    ),
    (
        lambda seen: replace(seen, restores=(
            restore("r", "Finalizing", timedelta(minutes=30)),
            restore("s", "FinalizingPartiallyFailed", timedelta(minutes=25)),
            restore("t", "Completed", LONG),
        )),
        Grade.WARNING, "stuck", "Restores have been Finalizing for up to 30 min: r, s",
        "kubectl logs deployment/velero -n velero",
    ),
    (
        lambda seen: replace(seen, backups=(backup("Completed", LONG),), deletions=(refused("b"), refused("other"))),
        Grade.PROBLEM, "stuck", "treats finished Backups as running and refuses to delete them: b",
        "rollout restart deployment velero -n velero, then delete them again",
    ),
    (
        lambda seen: replace(seen, permissions={needed(schedules=True, self_service=False)[0]: False}),
        Grade.PROBLEM, "permissions", "may not list pods in Velero's namespace", "helm upgrade",
    ),
    (
        lambda seen: replace(seen, unread=(CommandError("you may not list it", "ask for a Role"),)),
        Grade.WARNING, "access", "you may not list it", "ask for a Role",
    ),
]  # fmt: skip


@pytest.mark.parametrize(
    ("change", "grade", "about", "says", "fix"), CASES, ids=[f"{case[3]}: {case[4]}" for case in CASES]
)
def test_each_problem_is_reported_with_what_to_do(
    change: Callable[[Evidence], Evidence], grade: Grade, about: str, says: str, fix: str
) -> None:
    found = wrong(change(HEALTHY))
    mine = [each for each in found if each.about == about and says in each.says]
    assert [each.grade for each in mine] == [grade], found
    assert fix in mine[0].fix
    assert f"fix: {mine[0].fix}" in shown(found)


@pytest.mark.parametrize(
    ("backups"),
    [
        (backup("ReadyToStart", timedelta(minutes=1)),),
        (backup("ReadyToStart", LONG, written=MOMENT),),
        (backup("Queued", LONG), backup("InProgress", LONG)),
        (backup("New", timedelta(minutes=1)),),
        (backup("New", LONG), backup("InProgress", LONG)),
        (backup("New", LONG), backup("Completed", LONG, ended=MOMENT)),
        (backup("Queued", LONG), backup("Completed", LONG, ended=MOMENT)),
        (backup("Queued", LONG), backup("WaitingForPluginOperations", LONG, written=MOMENT)),
        (backup("Queued", LONG, written=MOMENT), backup("Queued", LONG)),
        (backup("Completed", LONG),),
    ],
)
def test_a_backup_that_is_only_slow_or_waits_for_its_turn_is_not_called_stuck(backups: tuple[Backup, ...]) -> None:
    assert wrong(replace(HEALTHY, backups=backups)) == []


@pytest.mark.parametrize(
    ("phase", "minutes"), [("Finalizing", 9), ("InProgress", 300), ("WaitingForPluginOperations", 300), ("", 300)]
)
def test_a_restore_that_ends_or_works_is_not_called_stuck(phase: str, minutes: int) -> None:
    seen = replace(HEALTHY, restores=(restore("r", phase, timedelta(minutes=minutes)),))
    assert wrong(seen) == []


@pytest.mark.parametrize(
    ("phase", "deletion"),
    [("InProgress", refused("b")), ("Completed", refused("b", "no such bucket")), ("Completed", DeleteRequest())],
)
def test_a_backup_that_is_not_deleted_for_another_reason_is_not_called_stuck(
    phase: str, deletion: DeleteRequest
) -> None:
    assert wrong(replace(HEALTHY, backups=(backup(phase, timedelta(minutes=1)),), deletions=(deletion,))) == []


@pytest.mark.parametrize(
    "other",
    [
        pytest.param(backup("Queued", MOMENT), id="one has just come"),
        pytest.param(backup("Completed", MOMENT, ended=2 * MOMENT), id="one has ended in another cluster"),
        pytest.param(backup("Completed", 2 * LONG, ended=LONG), id="one has ended long ago"),
    ],
)
def test_a_queue_is_called_stuck_though_something_has_happened_beside_it(other: Backup) -> None:
    (said,) = wrong(replace(HEALTHY, backups=(backup("Queued", LONG), other)))
    assert "1 Backups are Queued and none has run for 2 h" in said.says


@pytest.mark.parametrize("off", [timedelta(seconds=8), timedelta(seconds=-8)])
def test_an_answer_that_took_its_time_is_no_clock_that_is_wrong(off: timedelta) -> None:
    seen = replace(HEALTHY, server_time=NOW - off, lease=Lease(LeaseSpec("pod-1", NOW - off)))
    assert wrong(replace(seen, doubt=timedelta(seconds=4))) == []
    assert [each.about for each in wrong(replace(seen, doubt=timedelta(seconds=2)))] == ["clock"]


def test_the_time_is_taken_around_the_request_that_asks_for_it(tmp_path: Path) -> None:
    with canned(tmp_path, {"/version": {}}, {"/version": 1.5}) as server:
        args = Namespace(kubeconfig=str(server.kubeconfig), context=None)
        seen = on_cluster(args, lambda cluster: gather(cluster, "velero", None))
    assert seen.server_time is not None
    assert seen.doubt >= timedelta(seconds=0.75)
    second = timedelta(seconds=1)  # in which the API server tells the time
    assert -seen.doubt <= seen.instant - seen.server_time <= seen.doubt + second
    assert server.asked[0] == "GET /version"


def pod(name: str, ready: str, since: timedelta, phase: str = "Running") -> dict[str, Any]:
    changed = (NOW - since).isoformat()
    return {
        "metadata": {"name": name, "namespace": "velero"},
        "spec": {"containers": []},
        "status": {
            "phase": phase,
            "conditions": [{"type": "Ready", "status": ready, "lastTransitionTime": changed}],
        },
    }


def operator_pods(*pods: dict[str, Any]) -> Workload:
    running = tuple(msgspec.convert(each, ObservedPod) for each in pods)
    return Workload("Deployment", OPERATOR.key, len(running), sum(each.is_ready for each in running), running)


def test_a_replica_with_a_stale_store_is_a_problem() -> None:
    stale = operator_pods(pod("foresail-1", "False", timedelta(minutes=7)), pod("foresail-2", "True", LONG))
    (found,) = wrong(replace(HEALTHY, workloads=(stale,)))
    assert (found.grade, found.about) == (Grade.PROBLEM, "stores")
    assert found.says == (
        "Pod velero/foresail-1 has not been ready for 7 min: it has not read a kind, or its data of one is stale"
    )
    assert found.fix == "kubectl logs -n velero foresail-1 | grep 'cannot watch' names the kind and the cause"


@pytest.mark.parametrize(
    "young",
    [
        pytest.param(pod("foresail-1", "False", timedelta(seconds=40)), id="it starts"),
        pytest.param(pod("foresail-1", "True", LONG), id="it is ready"),
        pytest.param(pod("foresail-1", "False", LONG, "Succeeded"), id="it has ended"),
    ],
)
def test_a_replica_that_is_ready_or_has_just_started_has_no_stale_store(young: dict[str, Any]) -> None:
    assert [each for each in wrong(replace(HEALTHY, workloads=(operator_pods(young),))) if each.about == "stores"] == []


def test_writes_that_the_api_server_refuses_are_named_by_the_object_that_they_are_for() -> None:
    words = "The API server refused to create Backup velero/daily-1: webhook w denied it."
    many = {("Schedule", Key("velero", f"s{number}")): RefusedWrite(NOW, words) for number in range(7)}
    (found,) = wrong(replace(HEALTHY, refused_writes=many))
    assert (found.grade, found.about) == (Grade.WARNING, "refused")
    names = ", ".join(f"Schedule velero/s{number}" for number in range(5))
    assert found.says == f"{names} and 2 more: {words} (2026-11-15T12:00:00Z)"
    assert "kubectl get events -A --field-selector reason=WriteRefused" in found.fix


def test_refused_writes_and_pods_are_read_from_the_cluster(tmp_path: Path) -> None:
    name = "foresail-schedules"
    deployment = {
        "metadata": {"name": name, "namespace": "velero", "labels": {"app.kubernetes.io/name": name}},
        "spec": {"template": {"spec": {"containers": []}}, "selector": {"matchLabels": {"app": "f"}}},
    }
    event = {
        "involvedObject": {"kind": "Schedule", "namespace": "velero", "name": "daily", "uid": "u"},
        "eventTime": now().isoformat(),
        "message": "webhook w denied it.",
    }
    past = {**event, "involvedObject": {"kind": "Schedule", "name": "past"}, "eventTime": NOW.isoformat()}
    answers = {
        "/version": {},
        "/apis/apps/v1/deployments": {"metadata": {}, "items": [deployment]},
        "/api/v1/events": {"metadata": {}, "items": [event, past]},
        "/api/v1/namespaces/velero/pods": {"metadata": {}, "items": [pod("foresail-1", "False", LONG)]},
    }
    with canned(tmp_path, answers) as server:
        args = Namespace(kubeconfig=str(server.kubeconfig), context=None)
        seen = on_cluster(args, lambda cluster: gather(cluster, "velero", None))
    assert [(each.key.name, [one.metadata.name for one in each.pods]) for each in seen.workloads] == [
        (name, ["foresail-1"])
    ]
    assert {"labelSelector": ["app=f"], "limit": ["100"]} in server.queries
    ((kind, key), refused_write), *others = seen.refused_writes.items()
    assert (kind, key, refused_write.message, others) == ("Schedule", Key("velero", "daily"), event["message"], [])


def test_velero_with_its_own_schedule_controller_and_no_operator_is_well() -> None:
    seen = replace(HEALTHY, servers=(on(SERVER),), lease=None, operators=(), permissions={})
    assert wrong(seen) == []


def test_an_alert_that_velero_needs_no_more_is_named_where_there_is_no_operator() -> None:
    seen = replace(HEALTHY, servers=(on(SERVER),), lease=None, operators=(), permissions={}, has_alert=True)
    (said,) = wrong(seen)
    assert (said.grade, said.about) == (Grade.WARNING, "schedules")
    assert said.fix == "kubectl delete prometheusrule foresail-unattended -n velero"


def test_before_there_is_an_operator_one_learns_whether_one_could_install_it() -> None:
    wanted = needed(schedules=True, self_service=False)
    bare = replace(HEALTHY, servers=(on(SERVER),), lease=None, operators=(), permissions={})
    seen = replace(bare, own_permissions=dict.fromkeys(wanted, True))
    assert wrong(seen) == []
    assert [each.says for each in findings(seen) if each.about == "permissions"] == [
        "no operator was found, and you have all the permissions that one needs"
    ]
    (said,) = wrong(replace(bare, own_permissions={wanted[0]: False}))
    assert (said.grade, said.about) == (Grade.WARNING, "permissions")
    assert "you may not list pods in Velero's namespace" in said.says


def test_the_other_controller_alone_is_well() -> None:
    seen = replace(HEALTHY, others=(Key("oadp", "c"),), operators=(replace(OPERATOR, self_service=False),))
    assert wrong(seen) == []


@pytest.mark.parametrize(
    ("is_set", "is_checked", "said"),
    [
        (True, True, "the API server sets the requester"),
        (False, True, "only the command line sets the requester"),
        (True, False, "nothing validates the requester"),
        (False, False, "nothing validates the requester"),
    ],
)
def test_the_doctor_says_who_sets_and_who_checks_the_requester(is_set: bool, is_checked: bool, said: str) -> None:
    seen = replace(HEALTHY, is_requester_set=is_set, is_requester_checked=is_checked)
    (found,) = requesters(seen)
    assert said in found.says
    assert ("from Kubernetes 1.36 on" in (found.fix or "")) == ("only the command line" in said)


def test_the_doctor_names_the_policies_that_let_velero_copy_files() -> None:
    specs = {"a": {}, "b": {"fileSystem": "Allowed"}}
    policies = [
        msgspec.convert(
            {"metadata": {"name": name}, "spec": {"namespaceSelector": {}, "backup": spec}}, SelfServicePolicy
        )
        for name, spec in specs.items()
    ]
    (found,) = data_path(replace(HEALTHY, policies=tuple(policies)))
    assert (found.grade, found.about) == (Grade.WARNING, "data path")
    assert "SelfServicePolicy b has fileSystem: Allowed" in found.says
    (found,) = data_path(replace(HEALTHY, policies=tuple(policies[:1])))
    assert found.grade is Grade.GOOD
    assert list(data_path(HEALTHY)) == []


def test_the_doctor_says_how_each_policy_authorizes_restores() -> None:
    spec = {"namespaceSelector": {}, "restore": {"authorization": "Policy"}}
    policies = [
        {"metadata": {"name": "b"}, "spec": {"namespaceSelector": {}}},
        {"metadata": {"name": "a"}, "spec": spec},
    ]
    seen = replace(HEALTHY, policies=tuple(msgspec.convert(each, SelfServicePolicy) for each in policies))
    said = [each.says for each in requesters(seen)][1:]
    assert [each.split(",")[0] for each in said] == [
        "SelfServicePolicy a: authorization Policy",
        "SelfServicePolicy b: authorization Requester",
    ]


def test_a_dry_run_of_install_counts_the_schedules_that_need_attention() -> None:
    assert schedule_lines(replace(HEALTHY, schedules={})) == ["0 Schedules"]
    (name, row) = next(iter(HEALTHY.schedules.items()))
    assert schedule_lines(replace(HEALTHY, schedules={name: row})) == [
        "1 Schedule: each can run, and none changes meaning"
    ]
    others: dict[str, ScheduleRow | Unread] = {
        "bad": schedule(text="61 * * * *"),
        "february": schedule(text="0 0 30 2 *"),
        "april": schedule(text="0 0 31 4 *"),
        "far": schedule(location="far"),
        "friday": schedule(text="0 0 13 * 5"),
        "x": Unread(Key("velero", "x"), "no text"),
    }
    unknown = replace(HEALTHY, servers=(msgspec.structs.replace(SERVER, tag="main"),))
    first, *lines = schedule_lines(replace(unknown, schedules={name: row, **others}))
    counts = "1 cannot be read, 1 invalid, 2 never fire, 1 names a missing location, 1 changes meaning"
    assert first == f"7 Schedules: {counts}"
    assert "Schedule x cannot be read: no text; correct that field" in lines[0]
    assert lines[-1].startswith("  friday: Velero up to 1.18.2 and from 1.18.3 on read this differently")
    assert "tag (main) is not a version" in lines[-1]
    known = schedule_lines(replace(HEALTHY, schedules={"friday": others["friday"]}))
    assert known == ["1 Schedule: each can run, and none changes meaning"]


def test_without_a_recovery_key_nothing_can_be_verified_after_a_disaster() -> None:
    [found] = wrong(replace(HEALTHY, signs_records=False))
    assert found.says == "no recovery key: after a disaster no tenant's backup can be verified"
    assert found.fix.startswith("foresail recovery-key create")
    assert wrong(replace(HEALTHY, signs_records=None)) == [], "self-service is off"


def test_windows_in_which_a_schedule_can_never_run_are_a_problem() -> None:
    night = policy(windows={"allowed": [{"schedule": "0 22 * * *", "duration": "2h"}], "outside": "Skip"})
    (found,) = wrong(
        replace(HEALTHY, schedules={"daily": schedule(text="0 12 * * *")}, schedule_policies=(_wire(night),))
    )
    assert found.grade is Grade.PROBLEM
    assert "daily can never run (NeverInWindow)" in found.says


def test_many_schedules_in_one_minute_are_a_warning_that_spread_solves() -> None:
    rows = {f"s{number:03}": schedule(key=Key("velero", f"s{number:03}"), text="0 0 * * *") for number in range(266)}
    (found,) = wrong(replace(HEALTHY, schedules=rows))
    assert found.grade is Grade.WARNING
    assert "266 Schedules start in the same minute" in found.says
    assert "spread" in found.fix
    assert wrong(replace(HEALTHY, schedules=rows, schedule_policies=(_wire(policy(spread={"within": "2h"})),))) == []


def _wire(row: PolicyRow) -> SchedulePolicy:
    return SchedulePolicy(PolicyMetadata(row.name), row.spec)
