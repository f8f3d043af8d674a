"""The labels of namespaces by which admission policies select them: which values, when written, and when not."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from foresail.api.core import Namespace
from foresail.api.metadata import Metadata
from foresail.plan import Patch
from foresail.selfservice.policy.admission import (
    FORGOTTEN,
    PAUSES,
    AdmissionView,
    LabelWrite,
    decide,
    missing_label,
    times_undone,
)
from foresail.tenancy.namespaces import NOT_LABELLED, AdmissionLabels, NamespaceRow, namespace_row
from foresail.tenancy.policies import PolicyRow, admission_labels, at_least
from tests.unit.selfservice.policies import policy

NOW = datetime(2026, 11, 18, tzinfo=UTC)
REFUSED = AdmissionLabels("refused", "refused")
KEYS = ("foresail.dev/velero-annotations", "foresail.dev/file-system-backup")


def row(labels: AdmissionLabels = NOT_LABELLED, *, is_terminating: bool = False) -> NamespaceRow:
    return NamespaceRow("uid", {"team": "red"}, is_terminating, labels)


def view(
    labels: AdmissionLabels, actual: AdmissionLabels = NOT_LABELLED, last: LabelWrite | None = None
) -> AdmissionView:
    return AdmissionView("red", row(actual), labels, last)


def written(found: AdmissionView, now: datetime = NOW) -> Any:  # noqa: ANN401 - JSON
    (action,) = decide(found, now).actions
    assert isinstance(action, Patch)
    return action.body


def allowing(name: str, **spec: Any) -> PolicyRow:  # noqa: ANN401 - a manifest
    return policy(name, veleroAnnotations="Allowed", backup={"fileSystem": "Allowed"}, **spec)


@pytest.mark.parametrize(
    ("policies", "labels"),
    [
        ([], NOT_LABELLED),
        ([policy(namespaceSelector={"matchLabels": {"team": "blue"}})], NOT_LABELLED),
        ([policy()], REFUSED),
        ([allowing("a")], AdmissionLabels("allowed", "allowed")),
        ([allowing("a", priority=9), policy("b", priority=-9)], AdmissionLabels("allowed", "allowed")),
        ([allowing("a", priority=-9), policy("b", priority=9)], REFUSED),
        ([policy(veleroAnnotations="Allowed")], AdmissionLabels("allowed", "refused")),
        ([policy(backup={"fileSystem": "Allowed"})], AdmissionLabels("refused", "allowed")),
    ],
)
def test_labels_are_those_of_the_policy_that_applies(policies: list[PolicyRow], labels: AdmissionLabels) -> None:
    assert admission_labels("red", {"team": "red"}, policies, ()) == labels


@pytest.mark.parametrize("name", ["kube-system", "velero"])
def test_a_namespace_that_never_has_self_service_gets_no_label(name: str) -> None:
    assert admission_labels(name, {}, [policy()], {"velero"}) == NOT_LABELLED


def test_while_a_policy_is_unreadable_nothing_becomes_allowed_and_no_label_is_removed() -> None:
    assert at_least(NOT_LABELLED, REFUSED) == REFUSED
    assert at_least(AdmissionLabels("allowed", "allowed"), REFUSED) == REFUSED
    assert at_least(REFUSED, NOT_LABELLED) == REFUSED
    assert at_least(NOT_LABELLED, AdmissionLabels("allowed", "refused")) == AdmissionLabels("allowed", "refused")


def test_a_policy_does_not_see_the_labels_so_it_cannot_select_by_them() -> None:
    labels = {"team": "red", KEYS[0]: "refused", KEYS[1]: "allowed"}
    found = namespace_row(Namespace(Metadata("red", uid="uid", labels=labels)))
    assert found == NamespaceRow(
        "uid", {"team": "red"}, is_terminating=False, admission=AdmissionLabels("refused", "allowed")
    )


def test_labels_are_set_changed_and_removed_and_nothing_is_written_if_they_are_right() -> None:
    assert written(view(REFUSED)) == {"metadata": {"uid": "uid", "labels": dict.fromkeys(KEYS, "refused")}}
    assert written(view(NOT_LABELLED, REFUSED))["metadata"]["labels"] == dict.fromkeys(KEYS)
    assert written(view(REFUSED, AdmissionLabels("allowed", "refused")))["metadata"]["labels"][KEYS[0]] == "refused"
    assert decide(view(REFUSED, REFUSED), NOW).writes == ()
    assert decide(AdmissionView("red", row(is_terminating=True), REFUSED), NOW).writes == ()


def test_who_removes_a_label_again_and_again_is_not_fought_in_a_loop() -> None:
    last, now = LabelWrite(REFUSED, NOW), NOW + timedelta(seconds=1)
    for pause in (*PAUSES, PAUSES[-1]):
        found = view(REFUSED, last=last)
        plan = decide(found, now)
        assert plan.writes == ()
        assert plan.wake_at == last.at + pause
        assert [note.reason for note in plan.notes] == ["NamespaceUnlabelled"]
        assert written(found, last.at + pause)
        last = LabelWrite(REFUSED, last.at + pause, times_undone(found, last.at + pause))
        now = last.at + timedelta(seconds=1)


def test_another_decision_and_a_removal_much_later_are_written_at_once() -> None:
    assert written(view(NOT_LABELLED, REFUSED, LabelWrite(REFUSED, NOW)))
    assert written(view(REFUSED, last=LabelWrite(REFUSED, NOW - FORGOTTEN - timedelta(seconds=1), undone=5)))


def test_the_label_that_is_missing_is_named() -> None:
    assert missing_label(row(), REFUSED) == "foresail.dev/velero-annotations=refused"
    assert (
        missing_label(row(AdmissionLabels("refused", "allowed")), REFUSED) == "foresail.dev/file-system-backup=refused"
    )
    assert missing_label(row(REFUSED), REFUSED) == ""
