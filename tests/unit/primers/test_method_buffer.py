"""Method CapacityBuffer: what is made, when it is let go, and which version of the kind is used."""

from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
import pytest

from foresail.api.authorization import Discovery
from foresail.api.capacity_buffers import CapacityBuffer, capacity_buffer, served_kind
from foresail.api.primer import Primed, PrimerStatus
from foresail.kube.reflector import Change
from foresail.plan import Delete, Key, Patch
from foresail.primers.annotated import read_record
from foresail.primers.buffer_rows import BUFFER_RETRY, BufferSupport, TemplateRow, buffer_row
from foresail.primers.build import create_buffer
from foresail.primers.decide import MAX_CRON_JOBS, decide
from foresail.primers.method_auto import choose_method
from foresail.primers.method_buffer import ANSWERED_WITHIN, RELEASED_WITHIN, plan, release_buffers
from foresail.primers.metrics import PrimerMetrics
from foresail.primers.quotas import first_exceeded
from foresail.primers.rows import PrimerRow, QuotaRow
from foresail.primers.rules import Verdict, judge
from foresail.primers.view import Target
from tests.unit.primers.rows import buffer as row
from tests.unit.primers.rows import cron_job, placeholder, primer, primer_view, shape

FIRE = datetime(2026, 1, 2, 3, tzinfo=UTC)
NOW = FIRE + timedelta(seconds=1)
KEY = Key("reports", "daily-warm-11111111-29455380")


def discovery(*versions: str, group: str = "autoscaling.x-k8s.io") -> Discovery:
    served = [{"version": each, "resources": [{"resource": "capacitybuffers"}]} for each in versions]
    return msgspec.convert({"items": [{"metadata": {"name": group}, "versions": served}]}, Discovery)


@pytest.mark.parametrize(
    ("versions", "expected"),
    [(("v1alpha1", "v1beta1"), "v1beta1"), (("v1alpha1",), "v1alpha1"), (("v1",), "v1"), (("v2",), None), ((), None)],
)
def test_the_version_that_is_served_is_used(versions: tuple[str, ...], expected: str | None) -> None:
    kind = served_kind(discovery(*versions))
    assert (kind.version if kind else None) == expected
    assert served_kind(discovery(*versions, group="example.dev")) is None


def test_a_buffer_has_the_shape_of_a_pod_of_the_run_and_nothing_that_admission_would_ask_about() -> None:
    place = {"nodeSelector": {"pool": "night"}, "tolerations": [{"key": "only"}], "priorityClassName": "high"}
    found = primer_view(buffers=BufferSupport(kind=capacity_buffer("v1alpha1"), is_served=True))
    template, buffer = create_buffer(found, cron_job(), shape(**place), FIRE, 3)
    assert buffer.key == template.key == KEY
    assert buffer.kind.api_version == "autoscaling.x-k8s.io/v1alpha1"
    assert buffer.body["spec"] == {"podTemplateRef": {"name": KEY.name}, "replicas": 3}
    body: Any = template.body
    spec = body["template"]["spec"]
    assert spec["containers"][0]["resources"] == {"requests": {"cpu": "2"}}
    assert (spec["nodeSelector"], spec["tolerations"]) == ({"pool": "night"}, [{"key": "only"}])
    assert "priorityClassName" not in spec
    for each in (template, buffer):
        metadata: Any = each.body["metadata"]
        assert metadata["ownerReferences"][0]["uid"] == primer().uid
        assert metadata["labels"]["velero.io/exclude-from-backup"] == "true"
        assert each.mark["foresail.dev/fire"] == "2026-01-02T03:00:00Z"


def test_the_name_of_a_buffer_is_never_too_long() -> None:
    cron = cron_job(key=Key("reports", "n" * 52))
    template, _ = create_buffer(primer_view(), cron, shape(), FIRE, 1)
    assert len(template.key.name) == 63


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({}, Patch),
        ({"ready": ""}, Delete),
        ({"replicas": 0, "released": FIRE}, None),
        ({"replicas": 0, "released": FIRE, "is_released": True}, Delete),
        ({"replicas": 0, "released": NOW - RELEASED_WITHIN}, Delete),
        ({"is_terminating": True}, None),
    ],
    ids=["live", "unanswered", "released", "taken-in", "too-long", "going"],
)
def test_a_buffer_is_scaled_to_0_and_deleted_once_the_autoscaler_has_taken_that_in(
    fields: dict[str, Any], expected: type[Patch | Delete] | None
) -> None:
    steps = release_buffers(primer_view(), [row(**fields)], [], NOW)
    assert [type(each) for each in steps.actions] == ([expected] if expected else [])
    waits = fields.get("released") == FIRE and not fields.get("is_released")
    assert steps.wakes == ((FIRE + RELEASED_WITHIN,) if waits else ())


def test_only_the_buffer_that_was_observed_is_scaled_to_0() -> None:
    (patch,) = release_buffers(primer_view(), [row()], [], NOW).actions
    assert isinstance(patch, Patch)
    metadata: Any = patch.body["metadata"]
    assert metadata["uid"] == row().uid, "not another one of that name"


def test_a_pod_template_stays_as_long_as_its_buffer() -> None:
    template = TemplateRow(KEY, "55555555-eeee", "22222222-bbbb", "11111111-aaaa", is_terminating=False, requests=())
    assert release_buffers(primer_view(), [row(is_terminating=True)], [template], NOW).actions == ()
    assert [each.key for each in release_buffers(primer_view(), [], [template], NOW).actions] == [KEY]


def test_what_is_held_for_cronjobs_beyond_the_most_of_a_primer_is_released() -> None:
    at = FIRE - timedelta(minutes=5)
    others = (Target(cron_job(uid=f"u{number}", suspend=True)) for number in range(MAX_CRON_JOBS))
    released = row(key=Key("reports", "released"), replicas=0, released=at)
    last = Target(cron_job(), buffers=(row(), released), placeholders=(placeholder(FIRE),))
    plan = decide(primer_view(targets=(*others, last)), at)
    assert [(type(each), each.key) for each in plan.actions] == [(Delete, placeholder(FIRE).key), (Patch, KEY)]
    assert plan.wake_at == at + RELEASED_WITHIN, "when the other one can be deleted"


def test_auto_keeps_to_what_holds_capacity_already() -> None:
    auto, served = primer(method="Auto"), BufferSupport(is_served=True)
    target = Target(cron_job())
    held = msgspec.structs.replace(target, placeholders=(placeholder(FIRE),))
    buffered = msgspec.structs.replace(target, buffers=(row(),))
    unanswered = BufferSupport(is_served=True, unanswered=NOW)
    assert choose_method(primer_view(primer=auto, buffers=served), target, NOW)[0] == "CapacityBuffer"
    assert choose_method(primer_view(primer=auto, buffers=served), held, NOW)[0] == "Placeholder"
    assert choose_method(primer_view(primer=auto, buffers=unanswered), buffered, NOW)[0] == "CapacityBuffer"
    assert choose_method(primer_view(primer=auto, buffers=unanswered), target, NOW)[0] == "Placeholder"
    assert (
        choose_method(primer_view(primer=auto, buffers=unanswered), target, NOW + BUFFER_RETRY)[0] == "CapacityBuffer"
    )
    assert choose_method(primer_view(primer=primer(method="CronJob"), buffers=served), target, NOW) == ("CronJob", None)


@pytest.mark.parametrize("year", [1, 2100, 9999])
def test_an_instant_that_cannot_be_counts_for_nothing(year: int) -> None:
    support = BufferSupport(is_served=True, unanswered=datetime(year, 12, 31, 23, tzinfo=UTC))
    assert not support.is_unanswered(NOW)


@pytest.mark.parametrize("field", ["bufferUnanswered", "nextFire", "nextWarmUp"])
@pytest.mark.parametrize(
    ("instant", "counts"), [("9999-12-31T23:59:59Z", 0), ("0001-01-01T00:00:00Z", 0), ("2026-01-02T03:00:00Z", 1)]
)
def test_a_record_with_an_instant_that_cannot_be_is_ignored(field: str, instant: str, counts: int) -> None:
    text = f'{{"name":"daily","uid":"1","{field}":"{instant}"}}'
    assert len(read_record(text, "1").cron_jobs) == counts


def test_a_buffer_that_cannot_be_used_tells_nothing_about_those_of_others() -> None:
    auto = primer(method="Auto")
    refused = row(ready="False", message="Wrong: no such class", created=FIRE - timedelta(minutes=9), provisioned=None)
    target = Target(cron_job(), buffers=(refused,))
    served = BufferSupport(is_served=True)
    steps = plan(
        primer_view(target, primer=auto, buffers=served), judged(target, auto, served), FIRE - timedelta(minutes=5)
    )
    assert (steps.unanswered, steps.refused) == (None, refused.created + ANSWERED_WITHIN)
    known = PrimerStatus(cron_jobs=(Primed(name="daily", uid="11111111-aaaa", buffer_refused=FIRE),))
    own, other = Target(cron_job()), Target(cron_job(uid="other"))
    view = primer_view(own, primer=primer(method="Auto", status=known), buffers=served)
    assert choose_method(view, own, NOW)[0] == "Placeholder"
    assert choose_method(view, own, NOW + BUFFER_RETRY)[0] == "CapacityBuffer"
    assert choose_method(view, other, NOW)[0] == "CapacityBuffer"


def judged(target: Target, auto: PrimerRow, served: BufferSupport) -> Verdict:
    return judge(primer_view(target, primer=auto, buffers=served), target, FIRE - timedelta(minutes=5))


def test_a_later_answer_ends_the_time_without_one() -> None:
    support = BufferSupport(is_served=True, answered=NOW, unanswered=NOW - timedelta(hours=1))
    assert not support.is_unanswered(NOW)


def test_a_row_tells_whether_the_autoscaler_has_answered_and_has_room() -> None:
    since = "2026-01-02T02:51:00Z"
    conditions = [
        {"type": "ReadyForProvisioning", "status": "True", "lastTransitionTime": since},
        {"type": "Provisioning", "status": "False", "lastTransitionTime": since},
    ]
    body: dict[str, Any] = {
        "metadata": {"name": KEY.name, "namespace": "reports", "creationTimestamp": "2026-01-02T02:50:00Z"},
        "spec": {"replicas": 2},
        "status": {"replicas": 2, "conditions": conditions},
    }
    found = buffer_row(msgspec.convert(body, CapacityBuffer, strict=False))
    assert (found.ready, found.needs_nodes, found.provisioned) == ("True", True, None)
    conditions[1]["status"] = "True"
    found = buffer_row(msgspec.convert(body, CapacityBuffer, strict=False))
    assert (found.needs_nodes, found.provisioned) == (False, FIRE - timedelta(minutes=9))


def test_what_buffers_hold_is_counted_from_when_there_is_room(monkeypatch: pytest.MonkeyPatch) -> None:
    metrics = PrimerMetrics()
    monkeypatch.setattr("foresail.primers.metrics.now", lambda: FIRE)
    metrics.learn_buffer(Change(KEY, None, row(replicas=3), initial=False), (("cpu", "2"),), is_owned=True)
    metrics.learn_buffer(Change(KEY, row(replicas=3), row(replicas=0), initial=False), (("cpu", "2"),), is_owned=True)
    held = next(each for each in metrics.collect() if each.name == "foresail_primer_held_seconds")
    assert [(each.labels, each.value) for each in held.samples] == [
        ({"namespace": "reports", "resource": "cpu"}, 9 * 60 * 2 * 3)
    ]


def test_a_quota_that_only_others_exceed_does_not_block_a_run() -> None:
    full = QuotaRow(Key("reports", "gpu"), scopes=(), hard=(("requests.gpu/a", "1"),), used=(("requests.gpu/a", "1"),))
    gpus = shape(resources={"requests": {"gpu/a": "1"}, "limits": {"gpu/a": "1"}})
    assert first_exceeded([full], [(shape(), 1)], [(gpus, 2)]) is None
    assert first_exceeded([full], [(gpus, 1)], []) is not None


def test_what_a_buffer_held_is_forgotten_a_while_after_its_namespace_has_none(monkeypatch: pytest.MonkeyPatch) -> None:
    instant = FIRE
    monkeypatch.setattr("foresail.primers.metrics.now", lambda: instant)
    metrics = PrimerMetrics()

    def series() -> list[str]:
        return [
            each.name for family in metrics.collect() for each in family.samples if "reports" in each.labels.values()
        ]

    metrics.learn_buffer(Change(KEY, None, row(), initial=False), (("cpu", "2"),), is_owned=True)
    metrics.learn_buffer(Change(KEY, row(), None, initial=False), (("cpu", "2"),), is_owned=True)
    instant += timedelta(minutes=14)
    assert series() == ["foresail_primer_held_seconds_total"]
    instant += timedelta(minutes=1)
    assert series() == []
