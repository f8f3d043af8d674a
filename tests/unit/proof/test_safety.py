"""One verdict about a namespace: safe only with evidence, unknown where something could not be seen."""

from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import msgspec
import pytest

from foresail.api.apps import (
    Container,
    Deployment,
    DeploymentMetadata,
    DeploymentSpec,
    DeploymentStatus,
    FieldsWrite,
    OwnedFields,
    OwnedSpec,
    PodSpec,
    PodTemplate,
)
from foresail.origin import Origin
from foresail.proof.coverage import NamespaceCoverage, judge
from foresail.proof.reasons import Gap, Reason
from foresail.proof.safety import safety_of
from foresail.proof.view import BackupRow, ClaimRow, CoverageView, NamespaceRow, ScheduleRow
from foresail.safety.velero_pods import RUNS, Validation, VeleroState, server_pods, velero_state
from foresail.safety.verdict import Safety, Verdict
from tests.unit.proof.test_coverage import NOW, OLD, claim, namespaces, run, schedule

DAY = timedelta(hours=26)
HOUR = timedelta(hours=1)
NIGHTLY = schedule("nightly")


def verdict(
    *backups: BackupRow,
    by: ScheduleRow | None = NIGHTLY,
    claims: tuple[ClaimRow, ...] = (),
    objective: timedelta | None = DAY,
    created: datetime = OLD,
    unknown: tuple[str, ...] = (),
) -> Safety:
    """Return the verdict about a namespace that one schedule covers."""
    rows = (NamespaceRow("shop", created),)
    view = CoverageView(rows, claims, (by,) if by else (), backups, objective, unknown=unknown)
    (found,) = judge(view, NOW)
    return safety_of(found)


def test_a_namespace_with_a_good_backup_of_everything_is_safe_with_its_evidence() -> None:
    found = verdict(run(NIGHTLY, 3), claims=(claim("shop"),))
    assert found.verdict is Verdict.SAFE
    assert found.message == (
        "the newest good backup, nightly-3, started 2026-11-16T09:00:00Z, and good backups have the data of 1 of 1"
        " volumes"
    )


@pytest.mark.parametrize(
    ("change", "word"),
    [
        ({"paused": True}, "is paused"),
        ({"not_running": "it never fires"}, "it never fires"),
        ({"nobody_runs": "both are off"}, "both are off"),
        ({"velero_down": "0 of 1 pods are ready"}, "0 of 1 pods are ready"),
        ({"policy_problem": "ConfigMap rules does not exist"}, "ConfigMap rules does not exist"),
    ],
)
def test_a_good_backup_without_a_next_one_is_at_risk(change: dict[str, Any], word: str) -> None:
    found = verdict(run(NIGHTLY, 3), by=replace(NIGHTLY, **change))
    assert found.verdict is Verdict.AT_RISK
    assert word in found.message


@pytest.mark.parametrize(
    "outage", [{"velero_down": "it is down"}, {"nobody_runs": "it is down"}, {"location_problem": "it is down"}]
)
def test_the_outage_comes_before_what_is_wrong_with_one_schedule(outage: dict[str, Any]) -> None:
    refused = replace(NIGHTLY, name="a-refused", not_running="the policy refuses it")
    stopped = replace(NIGHTLY, **outage)
    view = CoverageView((NamespaceRow("shop", OLD),), (), (refused, stopped), (run(NIGHTLY, 3),), DAY)
    (found,) = judge(view, NOW)
    assert safety_of(found).message.startswith("nightly: it is down")


@pytest.mark.parametrize(
    "last", [run(NIGHTLY, 1, "Failed"), run(NIGHTLY, 1, "PartiallyFailed"), run(NIGHTLY, 1, items=0)]
)
def test_a_last_run_that_is_not_good_is_at_risk_while_an_earlier_one_is_within_the_objective(last: BackupRow) -> None:
    assert verdict(run(NIGHTLY, 25), last).verdict is Verdict.AT_RISK
    assert verdict(run(NIGHTLY, 27), last).verdict is Verdict.UNSAFE
    assert verdict(last).verdict is Verdict.UNSAFE


def test_what_cannot_be_restored_within_the_objective_is_unsafe() -> None:
    assert verdict(run(NIGHTLY, 27)).verdict is Verdict.UNSAFE
    assert verdict().verdict is Verdict.UNSAFE
    assert verdict(run(NIGHTLY, 3), by=None).verdict is Verdict.UNSAFE
    gone = replace(NIGHTLY, location_problem="BackupStorageLocation default is Unavailable")
    assert verdict(run(NIGHTLY, 3), by=gone).verdict is Verdict.UNSAFE
    lost = replace(run(NIGHTLY, 3), location_problem="BackupStorageLocation old does not exist")
    assert verdict(lost).verdict is Verdict.UNSAFE


def test_a_volume_without_its_data_is_unsafe_however_good_the_rest_is() -> None:
    objects = schedule("objects", snapshotVolumes=False)
    assert verdict(run(objects, 1), by=objects, claims=(claim("shop"),)).verdict is Verdict.UNSAFE
    named = replace(run(NIGHTLY, 1), left_out=frozenset({"data"}))
    assert verdict(named, claims=(claim("shop"),)).verdict is Verdict.UNSAFE
    assert verdict(replace(named, left_out=None), claims=(claim("shop"),)).verdict is Verdict.UNSAFE


@pytest.mark.parametrize("objective", [DAY, None])
def test_what_is_new_and_still_waits_for_its_first_run_is_at_risk(objective: timedelta | None) -> None:
    found = verdict(created=NOW - HOUR, objective=objective)
    assert found == Safety(Verdict.AT_RISK, "namespace shop has no good backup yet; nightly has made none")
    young = replace(claim("shop"), created=NOW - HOUR)
    found = verdict(run(NIGHTLY, 3), claims=(young,), objective=objective)
    assert found == Safety(Verdict.AT_RISK, "no good backup has the data of claim data yet")
    assert verdict(objective=objective).verdict is Verdict.UNSAFE, "an old namespace has waited long enough"


def test_without_an_objective_the_last_runs_of_the_schedule_are_one() -> None:
    due = replace(NIGHTLY, expected=NOW - timedelta(days=3))
    assert verdict(run(NIGHTLY, 60), by=due, objective=None).verdict is Verdict.SAFE
    found = verdict(run(NIGHTLY, 80), by=due, objective=None)
    assert found.verdict is Verdict.UNSAFE
    assert "nightly-80, is older than the last three runs of nightly" in found.message
    objects = replace(schedule("objects", snapshotVolumes=False), expected=due.expected)
    view = CoverageView(namespaces("shop"), (claim("shop"),), (objects, due), (run(objects, 1), run(NIGHTLY, 80)))
    (shop,) = judge(view, NOW)
    assert [gap.reason for gap in shop.claims[0].gaps] == [Reason.RUNS_MISSED]


def test_what_could_not_be_seen_is_unknown_and_never_safe() -> None:
    found = verdict(run(NIGHTLY, 3), unknown=("whether Velero runs: you may not list pods",))
    assert found == Safety(Verdict.UNKNOWN, "unknown is whether Velero runs: you may not list pods")
    unseen = replace(NIGHTLY, runner_unknown="no Deployment is recognised")
    assert verdict(run(NIGHTLY, 3), by=unseen).verdict is Verdict.UNKNOWN
    foreign = replace(run(NIGHTLY, 3), origin=Origin.UNKNOWN)
    assert verdict(foreign, objective=None, created=NOW - HOUR * 10).verdict is Verdict.UNKNOWN
    unread = replace(NIGHTLY, policy_unread="ConfigMap rules cannot be read")
    assert verdict(run(NIGHTLY, 3), by=unread, claims=(claim("shop"),)).verdict is Verdict.UNKNOWN


def test_a_team_without_a_schedule_of_its_own_may_be_covered_by_administrators() -> None:
    rows = (NamespaceRow("shop", OLD),)
    (found,) = judge(CoverageView(rows, (claim("shop"),), objective=DAY, is_own=True), NOW)
    assert [gap.reason for gap in found.all_gaps()] == [Reason.NO_OWN_SCHEDULE]
    assert safety_of(found).verdict is Verdict.UNKNOWN


def test_a_backup_from_the_future_proves_nothing_about_its_age() -> None:
    assert verdict(run(NIGHTLY, -0.05)).verdict is Verdict.SAFE, "clocks differ by minutes"
    found = verdict(run(NIGHTLY, -2))
    assert found.verdict is Verdict.UNKNOWN
    assert found.message.startswith("unknown is how old nightly--2 is")


def test_what_is_known_to_be_wrong_comes_before_what_is_unknown() -> None:
    assert verdict(run(NIGHTLY, 27), unknown=("something",)).verdict is Verdict.UNSAFE
    assert verdict(run(NIGHTLY, 3), by=replace(NIGHTLY, paused=True), unknown=("x",)).verdict is Verdict.AT_RISK


def test_nobody_misses_a_backup_of_an_excluded_namespace() -> None:
    found = safety_of(NamespaceCoverage("shop", is_excluded=True))
    assert found.verdict is Verdict.EXCLUDED
    assert found.verdict.is_fine


def test_without_any_backup_nothing_is_safe_even_if_nothing_is_reported() -> None:
    assert safety_of(NamespaceCoverage("shop", ("nightly",))).verdict is Verdict.UNSAFE


@pytest.mark.parametrize("reason", Reason)
def test_no_reason_is_green(reason: Reason) -> None:
    found = NamespaceCoverage("shop", ("nightly",), run(NIGHTLY, 1), gaps=(Gap(reason, "m"),))
    assert not safety_of(found).verdict.is_fine


def deployment(
    ready: int = 0, wanted: int = 1, written: datetime = OLD, image: str = "velero/velero:v1.18.3"
) -> Deployment:
    container, scale = Container("velero", image, args=["server"]), OwnedFields(OwnedSpec({}))
    return Deployment(
        DeploymentMetadata("velero", "velero", managed_fields=(FieldsWrite(written, scale), FieldsWrite(NOW))),
        DeploymentSpec(PodTemplate(PodSpec([container])), wanted),
        DeploymentStatus(ready_replicas=ready, replicas=wanted),
    )


MINUTE, SECOND = timedelta(minutes=1), timedelta(seconds=1)


def state(deployments: list[Deployment], validated: datetime | None, every: timedelta = MINUTE) -> VeleroState:
    validation = Validation(validated, every) if validated is not None else None
    return velero_state(server_pods(deployments), validation, NOW)


def test_a_ready_pod_of_velero_is_enough() -> None:
    assert state([deployment(1, 2)], None) == RUNS
    assert state([deployment(0), deployment(1)], None) == RUNS, "one of two servers works"
    assert state([deployment(0, 0, NOW), deployment(1)], None) == RUNS, "the other one is scaled away"


def test_pods_that_are_not_ready_are_a_problem_although_a_location_was_validated_a_moment_ago() -> None:
    found = state([deployment()], NOW - MINUTE)
    assert found.problem == "0 of 1 pods of Velero's Deployment velero are ready"


@pytest.mark.parametrize(
    ("written", "validated", "is_down"),
    [
        (NOW - MINUTE, NOW - 2 * MINUTE, True),  # validated by the server that was stopped
        (NOW - 60 * SECOND, NOW - 55 * SECOND, True),  # while it was stopped
        (NOW - 9 * MINUTE, NOW - MINUTE, False),  # a server beside the cluster works
        (NOW - 90 * MINUTE, NOW - 60 * MINUTE, True),
        (OLD, NOW - 4 * MINUTE, True),  # it validates each minute
        (OLD, None, True),
        (OLD, NOW + 10 * MINUTE, True),  # no clock is so far ahead
    ],
)
def test_a_deployment_without_pods_is_down_unless_a_server_has_worked_since(
    written: datetime, validated: datetime | None, is_down: bool
) -> None:
    found = state([deployment(0, 0, written)], validated)
    assert bool(found.problem) is is_down
    assert found.unknown == ""


def test_what_a_validation_does_not_prove_is_unknown() -> None:
    stopped = deployment(0, 0)
    rarely = state([stopped], NOW - 9 * MINUTE, timedelta(hours=1))
    untold = msgspec.structs.replace(stopped, metadata=DeploymentMetadata("velero", "velero"))
    pending = msgspec.structs.replace(
        stopped, metadata=msgspec.structs.replace(stopped.metadata, generation=2), status=DeploymentStatus(1)
    )
    for found in (rarely, state([untold], NOW - MINUTE), state([pending], NOW - MINUTE)):
        assert found.problem == ""
        assert found.unknown.startswith("whether Velero runs: its Deployment velero has 0 replicas")


def test_a_second_scaling_by_the_same_hand_shows_in_the_status_alone() -> None:
    stopped = deployment(0, 0, NOW - 9 * MINUTE)
    writes = (*stopped.metadata.managed_fields, FieldsWrite(NOW - MINUTE, subresource="status"))
    metadata = msgspec.structs.replace(stopped.metadata, managed_fields=writes)
    found = state([msgspec.structs.replace(stopped, metadata=metadata)], NOW - 2 * MINUTE)
    assert found.problem == "Velero's Deployment velero is scaled to 0 pods"


def test_a_server_that_is_not_recognised_runs_if_it_validates_locations() -> None:
    other = deployment(1, image="registry.example/backup:1")
    assert state([other], NOW - MINUTE) == RUNS
    assert state([], None).unknown.startswith("whether Velero runs")
    assert state([], NOW - 4 * MINUTE).unknown.startswith("whether Velero runs")


@pytest.mark.parametrize(
    ("template", "needs"),
    [({"snapshotMoveData": True}, True), ({"defaultVolumesToFsBackup": True}, True), ({}, False)],
)
def test_data_that_needs_node_agents_is_at_risk_without_one(template: dict[str, Any], needs: bool) -> None:
    files = schedule("files", **template)
    pod = {
        "metadata": {"name": "web", "namespace": "shop"},
        "spec": {
            "nodeName": "node-1",
            "volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": "data"}}],
            "containers": [{"volumeMounts": [{"name": "v"}]}],
        },
        "status": {"phase": "Running"},
    }
    mounted = replace(claim("shop"), pods=(pod,))
    view = CoverageView(namespaces("shop"), (mounted,), (files,), (run(files, 3),), DAY)

    def said(view: CoverageView) -> tuple[Verdict, str]:
        (found,) = judge(view, NOW)
        return safety_of(found).verdict, safety_of(found).message

    assert said(view)[0] is Verdict.SAFE
    verdict, message = said(replace(view, agents_down="no DaemonSet runs Velero's node agent"))
    assert verdict is (Verdict.AT_RISK if needs else Verdict.SAFE)
    assert ("needs Velero's node agents: no DaemonSet" in message) is needs
    unknown = said(replace(view, agents_unknown="whether Velero's node agents run: you may not list daemonsets"))
    assert unknown[0] is (Verdict.UNKNOWN if needs else Verdict.SAFE)
