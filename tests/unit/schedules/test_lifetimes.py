"""Whether Backups live until the next run, so that a run that fails leaves one."""

import json
from datetime import timedelta
from typing import Any

import pytest

from foresail.cron import Dialect
from foresail.schedules.lifetimes import ShortLife, short_life
from foresail.slots.expression import Unusable, read_expression
from foresail.slots.policy_timing import timing_under
from tests.unit.schedules.rows import DAY, HOUR, NOON
from tests.unit.schedules.test_policies import policy

DEFAULT = 30 * DAY
NIGHTS = {"windows": {"allowed": [{"schedule": "0 22 * * 1-5", "duration": "2h"}], "outside": "Skip"}}


@pytest.mark.parametrize(
    ("text", "template", "default", "spec", "expected"),
    [
        ("0 3 * * *", {"ttl": "24h0m0s"}, DEFAULT, {}, ShortLife(DAY, DAY)),
        ("0 3 * * *", {"ttl": "25h"}, DEFAULT, {}, None),
        ("0 3 * * 1-5", {"ttl": "48h"}, DEFAULT, {}, ShortLife(2 * DAY, 3 * DAY)),
        ("@every 36h", {"ttl": "24h"}, DEFAULT, {}, ShortLife(DAY, 36 * HOUR)),
        ("0 3 1 * *", {}, DEFAULT, {}, ShortLife(DEFAULT, 31 * DAY)),
        ("0 3 1 * *", {"ttl": "0s"}, DEFAULT, {}, ShortLife(DEFAULT, 31 * DAY)),
        ("0 3 1 * *", {}, 60 * DAY, {}, None),
        ("0 3 1 * *", {}, None, {}, None),
        ("0 3 * * *", {"ttl": "a day"}, None, {}, None),
        ("0 3 * * *", {"ttl": 24}, None, {}, None),
        ("0 22 * * *", {"ttl": "48h"}, DEFAULT, NIGHTS, ShortLife(2 * DAY, 3 * DAY)),
        ("0 3 * * *", {"ttl": "24h"}, DEFAULT, {"retention": {"keepLast": 3}}, None),
    ],
)
def test_backups_that_do_not_live_until_the_next_run_are_found(
    text: str, template: dict[str, Any], default: timedelta | None, spec: dict[str, Any], expected: ShortLife | None
) -> None:
    applied = policy(**spec)
    cron = read_expression(text, "UTC", Dialect.ROBFIG)
    timing = timing_under(applied, "velero/daily", "UTC")
    assert not isinstance(cron, Unusable)
    assert short_life(json.dumps(template).encode(), default, cron, NOON, timing, applied) == expected
