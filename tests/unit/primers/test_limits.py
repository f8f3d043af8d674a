"""The administrator's limits of what is held at a time."""

from datetime import UTC, datetime, timedelta
from itertools import product
from typing import Any

import msgspec
import pytest

from foresail.api.primer import BY_BUFFER, PLACEHOLDER
from foresail.api.specs import LabelSelector
from foresail.plan import Create, Key
from foresail.primers.buffer_rows import BufferSupport
from foresail.primers.decide import decide
from foresail.primers.view import Target
from tests.unit.primers.rows import SETTINGS, cron_job, primer, primer_view

NOW = datetime(2026, 1, 2, 2, 59, tzinfo=UTC)
LIMITS = ("max_per_namespace", "max_in_cluster")


@pytest.mark.parametrize(("limit", "method"), [*product(LIMITS, (PLACEHOLDER, BY_BUFFER))])
def test_the_cron_jobs_of_one_primer_keep_within_a_limit_together(limit: str, method: str) -> None:
    targets = [
        Target(cron_job(key=Key("reports", name), uid=f"{name}-uid", parallelism=2), is_dry_run_done=True)
        for name in ("one", "two", "three")
    ]
    view = primer_view(
        targets=tuple(targets),
        primer=primer(method=method, cron_job="", selector=LabelSelector()),
        buffers=BufferSupport(is_served=True),
        settings=msgspec.structs.replace(SETTINGS, **{limit: 5}),
        held_in_namespace=1,
        held_in_cluster=1,
    )
    plan = decide(view, NOW + timedelta(seconds=1))
    specs: list[Any] = [each.body["spec"] for each in plan.actions if isinstance(each, Create) and "spec" in each.body]
    assert sum(each.get("replicas", 1) for each in specs) == 4
    assert [each.reason for each in plan.notes] == ["TooManyPlaceholders"]
    assert "three" in plan.notes[0].message
