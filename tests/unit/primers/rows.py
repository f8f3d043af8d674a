"""Rows of Primers and CronJobs for the tests of decisions."""

from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec

from foresail.api.instants import stamp
from foresail.api.primer import PrimerStatus
from foresail.plan import Key
from foresail.primers.buffer_rows import BufferRow
from foresail.primers.rows import CronJobRow, JobRow, PlaceholderRow, PodRow, PrimerRow, PriorityRow
from foresail.primers.shape import Shape, shape_of_template
from foresail.primers.view import PrimerView, Settings, Target

CREATED = datetime(2026, 1, 1, tzinfo=UTC)
SETTINGS = Settings(pause_image="pause@sha256:1", hold_image="foresail:1")
OURS = PriorityRow("foresail-placeholder", -5, is_default=False, preemption="Never")


def template(**container: Any) -> bytes:  # noqa: ANN401 - JSON
    resources = container.pop("resources", {"requests": {"cpu": "2"}})
    whole = {"resources": container.pop("whole")} if "whole" in container else {}
    labels = container.pop("labels", None)
    metadata = {"metadata": {"labels": labels}} if labels else {}
    spec = {"containers": [{"name": "work", "image": "work:1", "resources": resources}], **container, **whole}
    return msgspec.json.encode({**metadata, "spec": spec})


def shape(**container: Any) -> Shape:  # noqa: ANN401 - JSON
    return shape_of_template(template(**container))


def cron_job(schedule: str = "0 3 * * *", **fields: Any) -> CronJobRow:  # noqa: ANN401 - a field of the row
    row = CronJobRow(
        key=Key("reports", "daily"),
        uid="11111111-aaaa",
        created=CREATED,
        is_terminating=False,
        labels={},
        text=schedule,
        zone="",
        suspend=False,
        policy="Allow",
        deadline=None,
        last=None,
        parallelism=1,
        shape=shape(),
    )
    return msgspec.structs.replace(row, **fields)


def primer(**fields: Any) -> PrimerRow:  # noqa: ANN401 - a field of the row
    row = PrimerRow(
        key=Key("reports", "warm"),
        uid="22222222-bbbb",
        version="7",
        generation=1,
        created=CREATED,
        is_terminating=False,
        cron_job="daily",
        selector=None,
        warm_up=timedelta(minutes=10),
        method="Placeholder",
        requests=(),
        replicas=None,
        release_after=timedelta(minutes=5),
        suspend=False,
        allow_standing=False,
        status=PrimerStatus(),
    )
    return msgspec.structs.replace(row, **fields)


def primer_view(
    target: Target | CronJobRow | None = None,
    *,
    is_dry_run_done: bool = True,
    **fields: Any,  # noqa: ANN401 - a field of the value
) -> PrimerView:
    one = target if isinstance(target, Target) else Target(target or cron_job())
    one = msgspec.structs.replace(one, is_dry_run_done=is_dry_run_done or one.is_dry_run_done)
    found = PrimerView(primer=primer(), targets=(one,), priorities=(OURS,), settings=SETTINGS)
    return msgspec.structs.replace(found, **fields)


def placeholder(fire: datetime, **fields: Any) -> PlaceholderRow:  # noqa: ANN401 - a field of the row
    row = PlaceholderRow(
        key=Key("reports", f"daily-warm-11111111-{int(fire.timestamp()) // 60}-0-1"),
        uid="33333333-cccc",
        primer_uid="22222222-bbbb",
        target_uid="11111111-aaaa",
        fire=fire,
        created=fire - timedelta(minutes=10),
        scheduled=fire - timedelta(minutes=9),
        node="node-1",
        phase="Running",
        is_terminating=False,
        disrupted="",
        requests=(("cpu", "2"),),
    )
    return msgspec.structs.replace(row, **fields)


def buffer(fire: datetime = CREATED + timedelta(days=1, hours=3), **fields: Any) -> BufferRow:  # noqa: ANN401 - a field of the row
    row = BufferRow(
        key=Key("reports", "daily-warm-11111111-29455380"),
        uid="44444444-dddd",
        primer_uid="22222222-bbbb",
        target_uid="11111111-aaaa",
        fire=fire,
        created=fire - timedelta(minutes=10),
        is_terminating=False,
        replicas=1,
        released=None,
        is_released=False,
        ready="True",
        message="",
        provisioned=fire - timedelta(minutes=9),
    )
    return msgspec.structs.replace(row, **fields)


def run(fire: datetime, **fields: Any) -> tuple[JobRow, PodRow]:  # noqa: ANN401 - a field of the pod
    job = JobRow(
        key=Key("reports", f"daily-{stamp(fire)}"),
        uid=f"job-{stamp(fire)}",
        cron_job_uid="11111111-aaaa",
        fire=fire,
        started=fire,
        ended=None,
        is_over=False,
    )
    pod = PodRow(
        key=Key("reports", f"daily-{stamp(fire)}-x"),
        job_uid=job.uid,
        created=fire,
        node="",
        phase="Pending",
        is_terminating=False,
        began=None,
        shape=shape(),
    )
    return job, msgspec.structs.replace(pod, **fields)
