"""Which claims a report about left-out volumes names: coverage reads it again."""

import pytest

from foresail.selfservice.requests.data_incomplete import claims_left_out


@pytest.mark.parametrize(
    ("message", "claims"),
    [
        ("Completed, but 1 of 1 volume was not backed up: data", {"data"}),
        ("Completed, but 2 of 3 volumes were not backed up: data, logs.old-1", {"data", "logs.old-1"}),
        ("Completed, but 1 of 2 volumes was not backed up: data; 1 kind is not served: widgets", {"data"}),
        ("Completed, but 6 of 6 volumes were not backed up: a, b, c, d, e and 1 more", None),
        ("Completed, but 1 of 2 volumes was not backed up", None),
    ],
)
def test_the_claims_of_a_report_are_read_again_if_it_names_all(message: str, claims: set[str] | None) -> None:
    assert claims_left_out(message) == (None if claims is None else frozenset(claims))
