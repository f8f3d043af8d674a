"""The doctor about annotations that Velero acts on: refused or not, labels that are missing, pods that are older."""

import pytest

from foresail.cli.doctor.admission import Admission, annotations


@pytest.mark.parametrize(
    ("seen", "grades"),
    [
        (None, []),
        (Admission(is_enforced=True), ["good"]),
        (Admission(is_enforced=True, is_complete=False), ["good"]),
        (Admission(is_enforced=False), ["problem"]),
        (Admission(is_enforced=True, refuses_claims=False), ["problem", "good"]),
        (Admission(is_enforced=True, unlabelled=("red",)), ["warning"]),
        (Admission(is_enforced=True, hooked=("red/web (pre.hook.backup.velero.io/command)",)), ["warning"]),
    ],
)
def test_what_is_wrong_is_reported_with_what_to_do(seen: Admission | None, grades: list[str]) -> None:
    found = list(annotations(seen))
    assert [each.grade.value for each in found] == grades
    assert all(each.fix for each in found if each.grade.value != "good")
    if seen is not None:
        assert all(name in found[0].says for name in (*seen.unlabelled, *seen.hooked))
