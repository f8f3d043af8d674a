"""The zones that a shift may name."""

import re
from datetime import UTC, datetime

import pytest

from foresail.cron.shift.candidate_zones import PARALLEL_DST_ZONES, WHOLE_HOUR_ZONES, OffsetZone, fixed_offset_zone
from foresail.cron.zones import zone_names

NAMES = [*(zone.name for zone in WHOLE_HOUR_ZONES), *PARALLEL_DST_ZONES]


@pytest.mark.parametrize("name", NAMES)
def test_kubernetes_accepts_the_name_and_the_zone_data_has_it(name: str) -> None:
    assert all(re.fullmatch(r"[A-Za-z.\-_0-9+]{1,14}", part) for part in name.split("/"))
    assert name in zone_names()


@pytest.mark.parametrize("zone", WHOLE_HOUR_ZONES, ids=lambda zone: zone.name)
def test_a_whole_hour_zone_has_the_offset_that_it_is_listed_with(zone: OffsetZone) -> None:
    assert fixed_offset_zone(zone.name, datetime(2026, 1, 1, tzinfo=UTC)) == zone


def test_a_minus_in_the_name_is_east_of_greenwich() -> None:
    assert OffsetZone("Etc/GMT-14", 840) in WHOLE_HOUR_ZONES
    assert OffsetZone("Etc/GMT+12", -720) in WHOLE_HOUR_ZONES
    assert len(WHOLE_HOUR_ZONES) == 27
