"""Which condition of a storage location `foresail location get` shows as the cause."""

import msgspec
import pytest

from foresail.api.nonadmin import Location
from foresail.cli.location.get import problem
from tests.gitops.recorded import recorded


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("location-available", None),
        ("location-pending", "BslSpecApprovalPending"),
        ("location-rejected", "BslSpecRejected"),
        ("location-refused-while-pending", "BslSpecValidation"),
        ("location-without-credentials", "SecretSyncFailed"),
    ],
)
def test_the_cause_is_the_first_in_the_order_of_decisions(name: str, reason: str | None) -> None:
    found = problem(msgspec.json.decode(msgspec.json.encode(recorded(name)), type=Location))
    assert (found.reason if found is not None else None) == reason
