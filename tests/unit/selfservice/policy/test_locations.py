"""Which storage location a backup means, and whether Velero would take it there."""

import pytest

from foresail.selfservice.policy.locations import closed
from foresail.selfservice.reasons import Reason
from foresail.selfservice.rows.locations import LocationRow

GOOD = LocationRow("good", "")
AWAY = LocationRow("away", "", is_available=False)
READ_ONLY = LocationRow("still", "", is_read_only=True)
DEFAULT_AWAY = LocationRow("main", "", is_default=True, is_available=False)
BY_NAME_AWAY = LocationRow("default", "", is_available=False)


@pytest.mark.parametrize(
    ("name", "locations", "said"),
    [
        ("good", (GOOD, AWAY, DEFAULT_AWAY), None),
        ("away", (GOOD, AWAY), "Storage location away is not available"),
        ("still", (GOOD, READ_ONLY), "Storage location still is read-only"),
        ("", (GOOD, DEFAULT_AWAY, BY_NAME_AWAY), "Storage location main is not available"),
        ("", (GOOD, BY_NAME_AWAY), "Storage location default is not available"),
        ("", (GOOD, AWAY), None),
        ("typo", (AWAY,), None),
        ("", (), None),
    ],
)
def test_a_backup_is_blocked_while_velero_would_refuse_it(
    name: str, locations: tuple[LocationRow, ...], said: str | None
) -> None:
    found = closed(name, locations)
    if said is None:
        assert found is None
    else:
        assert found is not None
        assert found.reason is Reason.LOCATION_UNAVAILABLE
        assert found.message.startswith(f"{said}; the backup starts automatically")
