"""What is decided about a Primer at one instant."""

from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
import pytest

from foresail.api.primer import Primed, PrimerStatus, Warming
from foresail.api.specs import LabelRequirement, LabelSelector
from foresail.plan import Create, Delete, Key, Plan
from foresail.primers.buffer_rows import BufferSupport
from foresail.primers.decide import decide, is_dry_run_due
from foresail.primers.rows import NodeRow, PriorityRow, QuotaRow
from foresail.primers.rules import primers_of
from foresail.primers.view import PrimerView, Target
from tests.unit.primers.rows import CREATED, OURS, SETTINGS, cron_job, placeholder, primer, primer_view, run, shape

FIRE = datetime(2026, 1, 2, 3, tzinfo=UTC)
MINUTE = timedelta(minutes=1)


def made(plan: Plan) -> list[Create]:
    return [each for each in plan.actions if isinstance(each, Create)]


def gone(plan: Plan) -> list[Delete]:
    return [each for each in plan.actions if isinstance(each, Delete)]


def remembers(**fields: Any) -> PrimerStatus:  # noqa: ANN401 - a field of what is remembered
    warming = msgspec.structs.replace(Warming(fire=FIRE, made=1, nodes=("node-1",)), **fields)
    return PrimerStatus(cron_jobs=(Primed(name="daily", uid="11111111-aaaa", warming=warming),))


def test_before_the_warm_up_nothing_is_created_and_the_key_is_requeued_for_its_start() -> None:
    plan = decide(primer_view(Target(cron_job(), is_dry_run_done=True)), FIRE - 11 * MINUTE)
    assert plan.actions == ()
    assert plan.wake_at == FIRE - 10 * MINUTE


def test_without_a_known_size_of_a_run_admission_is_dry_run_half_a_minute_before() -> None:
    plan = decide(primer_view(is_dry_run_done=False), FIRE - 11 * MINUTE)
    assert plan.wake_at == FIRE - 10 * MINUTE - timedelta(seconds=30)

    def wants(target: Target, before: timedelta, **fields: Any) -> bool:  # noqa: ANN401 - a field of the Primer
        found = primer_view(target, primer=primer(**fields))
        return is_dry_run_due(found, target, FIRE - before)

    assert not wants(Target(cron_job()), 11 * MINUTE)
    assert wants(Target(cron_job()), 10.5 * MINUTE)
    assert not wants(Target(cron_job(), is_dry_run_done=True), 10.5 * MINUTE)
    assert wants(Target(cron_job()), timedelta(hours=9), method="CronJob")
    assert wants(Target(cron_job(shape=shape(resources={}))), timedelta(hours=9))
    job, pod = run(FIRE - timedelta(days=1), phase="Succeeded")
    ran = Target(cron_job(last=job.fire), (msgspec.structs.replace(job, is_over=True),), (pod,))
    assert not wants(ran, 10.5 * MINUTE)


def test_the_size_is_what_the_api_server_would_make_of_a_pod_before_any_run() -> None:
    admitted = shape(resources={"requests": {"cpu": "2", "memory": "1Gi"}})
    (pod,) = made(decide(primer_view(Target(cron_job(), admitted=admitted, is_dry_run_done=True)), FIRE - MINUTE))
    resources = pod.body["spec"]["containers"][0]["resources"]  # type: ignore[index]
    assert resources == {"requests": {"cpu": "2", "memory": "1073741824"}}


@pytest.mark.parametrize("method", ["Placeholder", "CronJob", "CapacityBuffer"])
def test_nothing_is_created_before_the_admission_dry_run_shows_where_a_pod_goes(method: str) -> None:
    asks, served = primer(method=method), BufferSupport(is_served=True)
    assert made(decide(primer_view(primer=asks, buffers=served, is_dry_run_done=False), FIRE - MINUTE)) == []
    assert made(decide(primer_view(primer=asks, buffers=served), FIRE - MINUTE))


def test_a_placeholder_goes_where_admission_sends_the_pod() -> None:
    injected: dict[str, Any] = {
        "nodeSelector": {"pool": "gold"},
        "tolerations": [{"key": "gold", "operator": "Exists"}],
        "affinity": {"nodeAffinity": {"a": []}},
    }
    admitted = Target(cron_job(), admitted=shape(**injected), is_dry_run_done=True)
    job, pod = run(FIRE - timedelta(days=1), phase="Succeeded", shape=shape(**injected))
    ran = Target(cron_job(last=job.fire), (msgspec.structs.replace(job, is_over=True),), (pod,))
    for target in (admitted, ran):
        (made_one,) = made(decide(primer_view(target), FIRE - MINUTE))
        spec: Any = made_one.body["spec"]
        assert {name: spec[name] for name in injected} == injected


def test_a_term_that_names_the_last_job_is_not_copied_from_its_pod() -> None:
    def near(expressions: list[dict[str, Any]]) -> dict[str, Any]:
        term = {"labelSelector": {"matchExpressions": expressions}, "topologyKey": "zone"}
        return {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}

    template = near([{"key": "app", "operator": "Exists"}])
    merged = near([{"key": "batch.kubernetes.io/controller-uid", "operator": "In", "values": ["the-last"]}])
    admitted = shape(affinity={**merged, "nodeAffinity": {"a": []}})
    target = Target(cron_job(shape=shape(affinity=template)), admitted=admitted, is_dry_run_done=True)
    (pod,) = made(decide(primer_view(target), FIRE - MINUTE))
    assert pod.body["spec"]["affinity"] == {**template, "nodeAffinity": {"a": []}}  # type: ignore[index]


def test_at_the_warm_up_there_is_a_placeholder_that_a_restricted_namespace_would_take() -> None:
    (pod,) = made(decide(primer_view(), FIRE - 10 * MINUTE))
    assert pod.key.name == "daily-warm-11111111-29455380-0-1"
    spec: Any = pod.body["spec"]
    (container,) = spec["containers"]
    assert container["image"] == "pause@sha256:1"
    assert container["resources"] == {"requests": {"cpu": "2"}}
    assert container["securityContext"]["allowPrivilegeEscalation"] is False
    assert container["securityContext"]["capabilities"] == {"drop": ["ALL"]}
    assert spec["securityContext"] == {"runAsNonRoot": True, "seccompProfile": {"type": "RuntimeDefault"}}
    assert spec["automountServiceAccountToken"] is False
    assert spec["priorityClassName"] == "foresail-placeholder"
    assert spec["terminationGracePeriodSeconds"] == 0
    assert spec["activeDeadlineSeconds"] == 16 * 60
    metadata: Any = pod.body["metadata"]
    assert metadata["annotations"]["karpenter.sh/do-not-disrupt"] == "true"
    assert metadata["annotations"]["cluster-autoscaler.kubernetes.io/safe-to-evict"] == "false"
    assert metadata["ownerReferences"][0]["uid"] == primer().uid
    assert metadata["labels"]["velero.io/exclude-from-backup"] == "true"


def test_images_of_the_run_are_pulled_by_volumes_that_nothing_mounts_where_the_administrator_says_so() -> None:
    settings = msgspec.structs.replace(SETTINGS, image_volumes=True)
    (pod,) = made(decide(primer_view(settings=settings), FIRE - MINUTE))
    spec: Any = pod.body["spec"]
    assert spec["volumes"] == [{"name": "image-0", "image": {"reference": "work:1", "pullPolicy": "IfNotPresent"}}]
    assert "volumeMounts" not in spec["containers"][0]
    (plain,) = made(decide(primer_view(), FIRE - MINUTE))
    assert "volumes" not in plain.body["spec"]  # type: ignore[operator]


def test_a_placeholder_goes_where_the_target_may_go() -> None:
    tolerations = [{"key": "batch", "operator": "Exists"}]
    there = shape(nodeSelector={"pool": "batch"}, tolerations=tolerations, schedulerName="other", affinity={"a": {}})
    (pod,) = made(decide(primer_view(cron_job(shape=there)), FIRE - MINUTE))
    spec: Any = pod.body["spec"]
    assert spec["nodeSelector"] == {"pool": "batch"}
    assert spec["tolerations"] == tolerations
    assert spec["schedulerName"] == "other"
    assert spec["affinity"] == {"a": {}}


def test_the_size_is_that_of_the_last_pod_after_admission_if_it_is_of_this_template() -> None:
    job, pod = run(FIRE - timedelta(days=1), phase="Succeeded", shape=shape(resources={"requests": {"cpu": "3"}}))
    over = msgspec.structs.replace(job, is_over=True)
    target = Target(cron_job(last=job.fire), jobs=(over,), pods=(pod,))
    (held,) = made(decide(primer_view(target), FIRE - MINUTE))
    assert held.body["spec"]["containers"][0]["resources"] == {"requests": {"cpu": "3"}}  # type: ignore[index]
    other = msgspec.structs.replace(target, cron=cron_job(last=job.fire, shape=shape(containers=[_other_image()])))
    (held,) = made(decide(primer_view(other), FIRE - MINUTE))
    assert held.body["spec"]["containers"][0]["resources"] == {"requests": {"cpu": "1"}}  # type: ignore[index]


def _other_image() -> dict[str, Any]:
    return {"name": "work", "image": "work:2", "resources": {"requests": {"cpu": "1"}}}


def test_what_the_primer_itself_says_counts_before_the_pods() -> None:
    row = primer(requests=(("memory", "1Gi"),), replicas=2)
    pods = made(decide(primer_view(primer=row), FIRE - MINUTE))
    resources = [each.body["spec"]["containers"][0]["resources"] for each in pods]  # type: ignore[index]
    assert resources == [{"requests": {"memory": "1073741824"}}] * 2


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"target": cron_job(shape=shape(resources={}))}, "NothingToReserve"),
        ({"target": cron_job(shape=shape(nodeSelector={"kubernetes.io/os": "windows"}))}, "NotWarmable"),
        ({"target": cron_job(suspend=True)}, "Suspended"),
        ({"target": cron_job("61 * * * *")}, "InvalidSchedule"),
        ({"target": cron_job("0 0 31 2 *")}, "NeverFires"),
        ({"target": cron_job("@every 1h", deadline=timedelta(seconds=2400))}, "NeverFires"),
        ({"target": cron_job("*/15 * * * *")}, "NeedsAllowStanding"),
        ({"target": Target(cron_job(), taken_by="older")}, "PrimedByAnother"),
        ({"primer": primer(suspend=True)}, "Suspended"),
        ({"primer": primer(warm_up=timedelta(hours=7))}, "WarmUpTooLong"),
        ({"held_in_namespace": 50}, "TooManyPlaceholders"),
        ({"held_in_cluster": 2_000}, "TooManyPlaceholders"),
        ({"refused": {"daily-warm-11111111-29455380-0-1": "pods is forbidden: no"}}, "Refused"),
    ],
)
def test_what_cannot_be_primed_reports_its_reason_once(fields: dict[str, Any], reason: str) -> None:
    first = primer_view(**fields)
    plan = decide(first, FIRE - MINUTE)
    assert made(plan) == []
    assert [each.reason for each in plan.notes] == [reason]
    assert plan.status is not None
    status: Any = plan.status.body["status"]
    assert status["cronJobs"][0]["reason"] == reason
    known = msgspec.convert({**status, "observedGeneration": 1}, PrimerStatus)
    later = msgspec.structs.replace(first, primer=msgspec.structs.replace(first.primer, status=known))
    assert decide(later, FIRE - MINUTE).notes == ()
    assert decide(later, FIRE - MINUTE).status is None


def test_an_interval_fires_if_the_deadline_is_as_long() -> None:
    cron = cron_job("@every 1h", deadline=timedelta(hours=1), last=FIRE - timedelta(hours=1))
    assert len(made(decide(primer_view(cron), FIRE - MINUTE))) == 1


def test_a_pod_on_a_node_without_a_machine_cannot_be_primed() -> None:
    job, pod = run(FIRE - timedelta(days=1), phase="Succeeded", node="fargate-1")
    target = Target(cron_job(last=job.fire), jobs=(msgspec.structs.replace(job, is_over=True),), pods=(pod,))
    plan = decide(
        primer_view(target, nodes={"fargate-1": NodeRow(is_terminating=False, is_unwarmable=True)}), FIRE - MINUTE
    )
    assert [each.reason for each in plan.notes] == ["NotWarmable"]


def after_the_fire(*, seconds: float, runs: tuple[Any, ...] = (), **held: Any) -> Plan:  # noqa: ANN401 - a field of the row
    jobs, pods = [each[0] for each in runs], [each[1] for each in runs]
    target = Target(cron_job(last=FIRE), tuple(jobs), tuple(pods), (placeholder(FIRE, **held),))
    return decide(primer_view(target, primer=primer(status=remembers())), FIRE + timedelta(seconds=seconds))


def test_after_the_fire_it_stays_until_the_run_has_come() -> None:
    assert gone(after_the_fire(seconds=1)) == []
    assert gone(after_the_fire(seconds=1, runs=(run(FIRE),))) == []
    assert len(gone(after_the_fire(seconds=1, runs=(run(FIRE, node="node-2"),)))) == 1
    assert len(gone(after_the_fire(seconds=301))) == 1


def test_one_that_has_no_node_by_then_does_not_compete_with_the_run() -> None:
    assert len(gone(after_the_fire(seconds=1, runs=(run(FIRE),), node="", scheduled=None))) == 1


def test_a_placeholder_that_the_scheduler_does_not_preempt_is_deleted() -> None:
    plan = after_the_fire(seconds=1, runs=(run(FIRE),))
    assert plan.wake_at == FIRE + timedelta(seconds=2)
    assert len(gone(after_the_fire(seconds=2, runs=(run(FIRE),)))) == 1


def test_a_fire_that_did_not_come_is_reported() -> None:
    assert [each.reason for each in after_the_fire(seconds=301).notes] == ["NoFire"]


def test_a_run_elsewhere_than_on_the_warm_node_is_recorded_with_the_difference() -> None:
    began = FIRE + timedelta(seconds=42)
    plan = after_the_fire(seconds=43, runs=(run(FIRE, node="node-2", phase="Running", began=began),))
    assert plan.status is not None
    (delay,) = plan.status.body["status"]["cronJobs"][0]["startDelays"]  # type: ignore[index]
    assert (delay["seconds"], delay["warm"]) == (42, False)
    assert delay["note"] == "the pod ran on node-2, and capacity was held on node-1"


@pytest.mark.parametrize(
    ("priorities", "fields", "early"),
    [
        ((OURS,), {}, False),
        ((OURS, PriorityRow("low", -1000, is_default=False, preemption="")), {"priorityClassName": "low"}, True),
        ((OURS, PriorityRow("meek", 10, is_default=False, preemption="Never")), {"priorityClassName": "meek"}, True),
        ((OURS,), {"priority": -5}, True),
        ((OURS, PriorityRow("floor", -100, is_default=True, preemption="")), {}, True),
    ],
)
def test_a_placeholder_that_a_run_may_not_preempt_is_deleted_two_seconds_before(
    priorities: tuple[PriorityRow, ...], fields: dict[str, Any], early: bool
) -> None:
    target = Target(cron_job(shape=shape(**fields)), placeholders=(placeholder(FIRE),))
    found = primer_view(target, priorities=priorities)
    assert gone(decide(found, FIRE - timedelta(seconds=3))) == []
    assert (len(gone(decide(found, FIRE - timedelta(seconds=2)))) == 1) == early


def test_a_loss_is_made_good_three_times_at_most() -> None:
    def look(attempt: int) -> Plan:
        row = primer(status=remembers(attempt=attempt, provisioned=30))
        return decide(primer_view(primer=row, losses={"11111111-aaaa": "Preempted"}), FIRE - 5 * MINUTE)

    assert [each.key.name[-2:] for each in made(look(1))] == ["-2"]
    assert [each.key.name[-2:] for each in made(look(2))] == ["-3"]
    assert made(look(3)) == []
    assert "Preempted" in look(3).notes[0].message


def test_a_loss_is_not_made_good_if_a_node_would_come_too_late() -> None:
    row = primer(status=remembers(provisioned=90))
    assert made(decide(primer_view(primer=row), FIRE - MINUTE)) == []


def test_a_moment_before_the_fire_nothing_is_begun() -> None:
    assert made(decide(primer_view(), FIRE - timedelta(seconds=4))) == []


@pytest.mark.parametrize(("took", "covered"), [(MINUTE, True), (timedelta(hours=23), False)])
def test_a_run_that_is_still_on_holds_the_place_itself_if_it_ends_in_time(took: timedelta, covered: bool) -> None:
    now, yesterday = FIRE - MINUTE, FIRE - timedelta(days=1)
    job, pod = run(yesterday, node="node-1", phase="Running")
    old = msgspec.structs.replace(
        run(yesterday - timedelta(days=1))[0], is_over=True, ended=yesterday - timedelta(days=1) + took
    )
    begun = msgspec.structs.replace(job, started=FIRE - timedelta(hours=2))
    target = Target(cron_job(last=yesterday), (old, begun), (pod,))
    assert (made(decide(primer_view(target), now)) == []) == covered


@pytest.mark.parametrize(("left", "covered"), [(0, False), (1, False), (3, True)])
def test_only_a_run_with_all_its_pods_holds_the_place_of_the_next(left: int, covered: bool) -> None:
    yesterday = FIRE - timedelta(days=1)
    job, pod = run(yesterday, node="node-1", phase="Running")
    pods = [
        msgspec.structs.replace(pod, key=Key("reports", f"p{index}"), phase="Running" if index < left else "Succeeded")
        for index in range(3)
    ]
    target = Target(cron_job(last=yesterday, parallelism=3), (job,), tuple(pods) if left else ())
    assert len(made(decide(primer_view(target), FIRE - MINUTE))) == (0 if covered else 3)


def test_of_two_primers_the_older_one_primes() -> None:
    young = primer(uid="young", created=CREATED + MINUTE)
    assert [each.uid for each in primers_of("daily", {}, [young, primer()])] == [primer().uid, "young"]


@pytest.mark.parametrize(
    ("requirement", "chosen"),
    [
        (LabelRequirement("tier", "In", ("batch",)), True),
        (LabelRequirement("tier", "NotIn", ("batch",)), False),
        (LabelRequirement("tier", "Exists"), True),
        (LabelRequirement("tier", "DoesNotExist"), False),
    ],
)
def test_a_selector_chooses_by_labels(requirement: LabelRequirement, chosen: bool) -> None:
    row = primer(selector=LabelSelector(match_expressions=(requirement,)), cron_job="")
    assert row.matches("daily", {"tier": "batch"}) == chosen
    assert not primer(selector=LabelSelector({"tier": "web"}), cron_job="").matches("daily", {"tier": "batch"})


def test_more_cronjobs_than_one_primer_is_for_are_said() -> None:
    many = tuple(Target(cron_job(uid=f"u{number}")) for number in range(101))
    plan = decide(msgspec.structs.replace(primer_view(), targets=many), FIRE - timedelta(hours=1))
    assert plan.status is not None
    status: Any = plan.status.body["status"]
    assert (status["matched"], status["conditions"][0]["reason"]) == (100, "TooManyCronJobs")


def test_one_that_the_run_cannot_push_aside_ends_by_itself_before_the_fire() -> None:
    (pod,) = made(decide(primer_view(cron_job(shape=shape(priority=-5))), FIRE - 10 * MINUTE))
    assert pod.body["spec"]["activeDeadlineSeconds"] == 10 * 60 - 2  # type: ignore[index]


@pytest.mark.parametrize(
    ("ran", "after", "holds"),
    [
        (False, timedelta(seconds=59), False),
        (False, MINUTE, True),
        (True, timedelta(seconds=9), False),
        (True, MINUTE / 2, True),
    ],
    ids=["it may still come", "it comes no more", "its Job may still be shown", "its Job is gone"],
)
def test_in_a_standing_reservation_what_a_run_cannot_push_aside_waits_for_it(
    ran: bool, after: timedelta, holds: bool
) -> None:
    cron = cron_job("*/5 * * * *", shape=shape(priority=-5), last=FIRE if ran else FIRE - 5 * MINUTE)
    row = primer(warm_up=20 * MINUTE, allow_standing=True, release_after=MINUTE)
    assert bool(made(decide(primer_view(cron, primer=row), FIRE + after))) == holds


def test_a_quota_that_the_run_itself_fills_up_says_nothing_about_the_next_fire() -> None:
    full = QuotaRow(Key("reports", "small"), (), (("requests.cpu", "2"),), (("requests.cpu", "2"),))
    assert decide(primer_view(quotas=(full,)), FIRE - 11 * MINUTE).notes == ()
    assert [each.reason for each in decide(primer_view(quotas=(full,)), FIRE - 9 * MINUTE).notes] == ["QuotaTooSmall"]


def test_without_a_cronjob_the_primer_is_not_ready() -> None:
    plan = decide(PrimerView(primer=primer()), FIRE)
    assert plan.status is not None
    ready = plan.status.body["status"]["conditions"][0]  # type: ignore[index]
    assert (ready["type"], ready["status"], ready["reason"]) == ("Ready", "False", "NoCronJob")


def test_what_is_left_of_a_cronjob_that_is_no_longer_selected_is_deleted() -> None:
    stray = placeholder(FIRE, target_uid="gone")
    plan = decide(
        primer_view(stray_placeholders=(stray,), stray_primer_cron_jobs=(cron_job(uid="x"),)), FIRE - timedelta(hours=1)
    )
    assert [each.uid for each in gone(plan)] == [stray.uid, "x"]


def test_capacity_is_released_if_its_values_cannot_be_read() -> None:
    held = placeholder(FIRE)
    unreadable = primer(requests=(("cpu", "1x"),))
    plan = decide(primer_view(Target(cron_job(), placeholders=(held,)), primer=unreadable), FIRE - MINUTE)
    assert [each.key for each in gone(plan)] == [held.key]
    assert made(plan) == []
    (note,) = plan.notes
    assert (note.reason, "'1x' is no quantity" in note.message) == ("Unreadable", True)


def test_of_several_cron_jobs_one_that_cannot_be_read_keeps_no_other_from_being_primed() -> None:
    unreadable = msgspec.structs.replace(shape(), requests=(("memory", "1x"),))
    targets = [Target(cron_job(key=Key("reports", "wrong"), uid="wrong", shape=unreadable), is_dry_run_done=True)]
    targets.append(Target(cron_job(), is_dry_run_done=True))
    assert len(made(decide(primer_view(targets=tuple(targets)), FIRE - MINUTE))) == 1


def test_a_request_of_an_exabyte_is_decided_like_any_other() -> None:
    huge = cron_job(shape=shape(resources={"requests": {"memory": "1E"}}))
    (pod,) = made(decide(primer_view(huge), FIRE - MINUTE))
    assert pod.body["spec"]["containers"][0]["resources"]["requests"] == {"memory": str(10**18)}  # type: ignore[index]
