"""What is held follows the parallelism of a CronJob during its warm-up."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from foresail.api.primer import BY_BUFFER, PLACEHOLDER
from foresail.kube.reflector import Change
from foresail.plan import Create, Delete, Key, Patch, Plan
from foresail.primers.buffer_rows import BufferSupport, TemplateRow
from foresail.primers.decide import decide
from foresail.primers.metrics import PrimerMetrics
from foresail.primers.rows import QuotaRow
from foresail.primers.view import Target
from tests.unit.primers.rows import buffer, cron_job, placeholder, primer, primer_view

FIRE = datetime(2026, 1, 2, 3, tzinfo=UTC)
NOW = FIRE - timedelta(minutes=5)
ROW = buffer(FIRE, replicas=2)


def decided(parallelism: int, **fields: Any) -> Plan:  # noqa: ANN401 - a field of the view
    template = TemplateRow(ROW.key, "55555555-eeee", ROW.primer_uid, ROW.target_uid, is_terminating=False, requests=())
    target = Target(cron_job(parallelism=parallelism), buffers=(ROW,), templates=(template,))
    support = BufferSupport(is_served=True)
    return decide(primer_view(target, primer=primer(method=BY_BUFFER), buffers=support, **fields), NOW)


@pytest.mark.parametrize(("parallelism", "replicas"), [(1, 1), (2, None), (4, 4)])
def test_a_buffer_is_scaled_to_another_parallelism(parallelism: int, replicas: int | None) -> None:
    plan = decided(parallelism)
    if replicas is None:
        assert plan.actions == ()
        return
    (patch,) = plan.actions
    assert isinstance(patch, Patch)
    assert patch.body == {"metadata": {"uid": ROW.uid}, "spec": {"replicas": replicas}}


def test_a_buffer_is_not_scaled_beyond_the_limits_and_stays() -> None:
    plan = decided(4, held_in_namespace=49)
    assert plan.actions == ()
    assert [each.reason for each in plan.notes] == ["TooManyPlaceholders"]


def test_a_buffer_is_not_scaled_beyond_a_quota() -> None:
    quota = QuotaRow(ROW.key, scopes=(), hard=(("cpu", "6"),), used=(("cpu", "0"),))
    assert [type(each) for each in decided(3, quotas=(quota,)).actions] == [Patch]
    assert [each.reason for each in decided(4, quotas=(quota,)).notes] == ["QuotaTooSmall"]


def test_placeholders_follow_another_parallelism() -> None:
    own = placeholder(FIRE)

    def actions(parallelism: int) -> list[type]:
        target = Target(cron_job(parallelism=parallelism), placeholders=(own,))
        return [type(each) for each in decide(primer_view(target, primer=primer(method=PLACEHOLDER)), NOW).actions]

    assert actions(1) == []
    assert actions(3) == [Create, Create]
    names = [f"{own.key.name.removesuffix('0-1')}{each}-1" for each in range(3)]
    more = [placeholder(FIRE, key=Key("reports", each), uid=each) for each in names]
    fewer = Target(cron_job(parallelism=1), placeholders=tuple(more))
    assert [type(each) for each in decide(primer_view(fewer), NOW).actions] == [Delete, Delete]


def test_what_a_buffer_holds_is_counted_by_its_size_at_each_time(monkeypatch: pytest.MonkeyPatch) -> None:
    metrics, instant = PrimerMetrics(), FIRE
    monkeypatch.setattr("foresail.primers.metrics.now", lambda: instant)
    provisioned = FIRE - timedelta(seconds=10)
    sizes = [buffer(FIRE, replicas=each, provisioned=provisioned) for each in (1, 3, 0)]
    for old, new in zip([None, *sizes], sizes, strict=False):
        metrics.learn_buffer(Change(ROW.key, old, new, initial=False), (("cpu", "2"),), is_owned=True)
        instant += timedelta(seconds=10)
    held = next(each for each in metrics.collect() if each.name == "foresail_primer_held_seconds")
    assert [each.value for each in held.samples] == [20 * 2 + 10 * 3 * 2]
