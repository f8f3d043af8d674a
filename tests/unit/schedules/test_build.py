"""The Backup of a slot: its name, and what it gets from its Schedule."""

from datetime import timedelta, timezone
from typing import Any

import msgspec
import pytest

from foresail.api import velero
from foresail.api.marks import NAMESPACE_UIDS, PROTECTION_CLASS, SCHEDULE_UID, SLOT
from foresail.plan import Key
from foresail.schedules.build import backup_body, create_backup
from foresail.schedules.decide import decide
from foresail.schedules.observe import ScheduleRow
from foresail.schedules.reasons import Reason
from foresail.schedules.rules import judge
from foresail.schedules.settings import Settings
from foresail.schedules.slots import attempt_number, backup_name
from tests.unit.schedules.rows import HOUR, NOON, UID, schedule, view, watched

NAME = {velero.SCHEDULE_LABEL: "daily"}


def built(row: ScheduleRow, settings: Settings | None = None) -> dict[str, Any]:
    body: dict[str, Any] = backup_body(row, settings or Settings())
    return body


def template(**parts: object) -> bytes:
    return msgspec.json.encode(parts)


def test_the_name_is_of_the_slot_in_utc_with_the_beginning_of_the_uid() -> None:
    berlin = NOON.astimezone(timezone(timedelta(hours=1)))
    assert backup_name(schedule(), NOON) == backup_name(schedule(), berlin) == "daily-20260310120000-0f8fad5b"


@pytest.mark.parametrize("attempt", [0, 1, 9, 10])
def test_number_of_an_attempt_is_read_from_the_name_that_it_was_given(attempt: int) -> None:
    assert attempt_number(backup_name(schedule(), NOON, attempt), schedule(), NOON) == attempt


@pytest.mark.parametrize("end", ["-r", "-r0", "-r01", "-r1x", "-r-1", "-r\u0663", "-r1\n", "-r1000", "x", "-x"])
def test_other_names_of_a_slot_are_no_attempts(end: str) -> None:
    assert attempt_number(f"{backup_name(schedule(), NOON)}{end}", schedule(), NOON) is None
    assert attempt_number(backup_name(schedule(), NOON), schedule(), NOON + HOUR) is None


def test_the_longest_name_that_fits_a_label_makes_a_valid_backup_and_one_more_is_refused() -> None:
    fits, too_long = schedule(key=Key("velero", "n" * 63)), schedule(key=Key("velero", "n" * 64))
    assert len(backup_name(fits, NOON)) <= 253
    assert judge(view(fits), NOON).refused is None
    for length in (64, 200, 253):
        verdict = judge(view(schedule(key=Key("velero", "n" * length))), NOON)
        assert verdict.refused is not None
        assert (verdict.refused.reason, verdict.fires) == (Reason.NAME_TOO_LONG, None)
        assert f"{length} characters" in verdict.changes.errors[0]
    assert built(too_long)["metadata"]["labels"][velero.SCHEDULE_LABEL] == "n" * 64


@pytest.mark.parametrize(
    ("own", "of_template", "expected"),
    [
        ({}, {}, NAME),
        ({"team": "a"}, {}, {"team": "a", **NAME}),
        ({"team": "a"}, {"metadata": {}}, {"team": "a", **NAME}),
        ({"team": "a"}, {"metadata": {"labels": {}}}, NAME),
        ({"team": "a"}, {"metadata": {"labels": {"tier": "b"}}}, {"tier": "b", **NAME}),
        ({velero.SCHEDULE_LABEL: "another"}, {}, NAME),
        ({}, {"metadata": {"labels": {velero.SCHEDULE_LABEL: "another"}}}, NAME),
        (
            {"app.kubernetes.io/instance": "argo", "app.kubernetes.io/name": "x"},
            {},
            {"app.kubernetes.io/name": "x", **NAME},
        ),
        (
            {},
            {"metadata": {"labels": {"app.kubernetes.io/instance": "meant"}}},
            {"app.kubernetes.io/instance": "meant", **NAME},
        ),
        (
            {
                "argocd.argoproj.io/instance": "x",
                "kustomize.toolkit.fluxcd.io/name": "x",
                "helm.toolkit.fluxcd.io/name": "x",
            },
            {},
            NAME,
        ),
        ({}, {"metadata": {"labels": {"argocd.argoproj.io/instance": "x"}}}, NAME),
        ({"argocd.argoproj.io": "no family", "xargocd.argoproj.io/a": "b"}, {}, None),
    ],
)
def test_labels_come_from_the_template_or_else_from_the_schedule(
    own: dict[str, str], of_template: dict[str, object], expected: dict[str, str] | None
) -> None:
    body = built(schedule(labels=own, template=template(**of_template)))
    assert body["metadata"]["labels"] == (expected or {**own, **NAME})


def test_annotations_are_copied_but_for_those_by_which_other_tools_would_claim_a_backup() -> None:
    annotations = {
        "kubectl.kubernetes.io/last-applied-configuration": "{}",
        "argocd.argoproj.io/tracking-id": "x",
        "foresail.dev/observed": "{}",
        "helm.toolkit.fluxcd.io/name": "x",
        "example.com/owner": "a",
    }
    assert built(schedule(annotations=annotations))["metadata"]["annotations"] == {"example.com/owner": "a"}
    assert "annotations" not in built(schedule(annotations={"foresail.dev/observed": "{}"}))["metadata"]


def test_the_list_is_a_setting_but_our_own_marks_are_never_copied() -> None:
    annotations = {"foresail.dev/observed": "{}", "foresail.dev/slot": "x", "example.com/a": "1", "other.com/b": "2"}
    body = built(schedule(annotations=annotations), Settings(not_copied=("example.com/*",)))
    assert body["metadata"]["annotations"] == {"other.com/b": "2"}


def test_a_backup_belongs_to_its_schedule_only_if_that_says_so() -> None:
    assert "ownerReferences" not in built(schedule())["metadata"]
    assert built(schedule(owns_backups=True))["metadata"]["ownerReferences"] == [
        {"apiVersion": "velero.io/v1", "kind": "Schedule", "name": "daily", "uid": UID, "controller": True}
    ]


@pytest.mark.parametrize(
    ("policy", "expected"),
    [
        ({"apiGroup": "v1", "kind": "ConfigMap", "name": "p"}, {"kind": "configmap", "name": "p"}),
        ({"kind": "configmap"}, {"kind": "configmap", "name": ""}),
    ],
)
def test_a_resource_policy_is_rewritten_as_velero_does(policy: dict[str, str], expected: dict[str, str]) -> None:
    body = built(schedule(template=template(resourcePolicy=policy, ttl="720h")))
    assert body["spec"] == {"resourcePolicy": expected, "ttl": "720h"}


def test_the_rest_of_the_template_is_passed_on_as_it_is() -> None:
    spec = {"ttl": "24h0m0s", "hooks": {"resources": []}, "includedNamespaces": ["a", "*"], "of the future": [1, None]}
    assert built(schedule(template=template(**spec)))["spec"] == spec
    assert built(schedule(template=template(resourcePolicy=None)))["spec"] == {"resourcePolicy": None}


def test_a_backup_is_recognised_by_the_schedules_uid_and_its_slot() -> None:
    create = create_backup(schedule(), NOON, Settings())
    assert (create.kind, create.key) == (velero.BACKUP, Key("velero", "daily-20260310120000-0f8fad5b"))
    assert create.mark == {"foresail.dev/schedule-uid": UID, "foresail.dev/slot": "2026-03-10T12:00:00Z"}


@pytest.mark.parametrize(
    ("template", "field"),
    [
        (b'{"ttl": "2635200h0m0s"}', "ttl"),
        (b'{"ttl": ""}', "ttl"),
        (b'{"csiSnapshotTimeout": "ten minutes"}', "csiSnapshotTimeout"),
        (b'{"itemOperationTimeout": "4 h"}', "itemOperationTimeout"),
        (b'{"hooks": {"resources": [{"pre": [{"exec": {"timeout": "1d"}}]}]}}', "hooks.resources.exec.timeout"),
        (b'{"hooks": {"resources": [{"post": [{"exec": {"timeout": "1d"}}]}]}}', "hooks.resources.exec.timeout"),
    ],
)
def test_no_backup_gets_a_duration_that_go_cannot_read(template: bytes, field: str) -> None:
    plan = decide(view(watched(schedule(template=template, last_backup=NOON - HOUR))), NOON)
    assert plan.actions == ()
    (note,) = plan.notes
    assert note.reason == "InvalidSchedule"
    assert f"spec.template.{field} " in note.message
    assert len(note.message.split()) <= 30


@pytest.mark.parametrize(
    "selector",
    [
        b'{"matchLabels": {"not a key": "x"}}',
        b'{"matchLabels": {"app": "not a value"}}',
        b'{"matchExpressions": [{"key": "app", "operator": "In"}]}',
        b'{"matchExpressions": [{"key": "app", "operator": "Near", "values": ["x"]}]}',
    ],
)
def test_no_backup_gets_a_selector_on_which_velero_crashes(selector: bytes) -> None:
    template = b'{"orLabelSelectors": [{"matchLabels": {"app": "web"}}, %s]}' % selector
    plan = decide(view(watched(schedule(template=template, last_backup=NOON - HOUR))), NOON)
    assert plan.actions == ()
    (note,) = plan.notes
    assert note.reason == "InvalidSchedule"
    assert "a selector of spec.template.orLabelSelectors is malformed" in note.message
    assert len(note.message.split()) <= 30


def test_a_template_with_alternatives_is_used() -> None:
    template = b'{"orLabelSelectors": [{"matchLabels": {"app": "web"}}, {}]}'
    assert decide(view(watched(schedule(template=template, last_backup=NOON - HOUR))), NOON).actions


def test_template_with_durations_of_go_is_used() -> None:
    template = b'{"ttl": "720h0m0s", "hooks": {"resources": [{"pre": [{"exec": {"timeout": "90s"}}, {}]}]}}'
    assert decide(view(watched(schedule(template=template, last_backup=NOON - HOUR))), NOON).actions


def test_the_backup_of_a_class_records_the_uids_of_its_namespaces_and_is_recognised_without_them() -> None:
    """A namespace that is created again between a crash and the next life changes the record, not the name."""
    row = schedule(annotations={PROTECTION_CLASS: "gold"}, template=template(includedNamespaces=["shop", "gone"]))
    assert (row.protection_class, row.included) == ("gold", ("shop", "gone"))
    made = create_backup(row, NOON, Settings(), namespaces={"shop": "u1"})
    metadata: Any = made.body["metadata"]
    assert metadata["annotations"] == {PROTECTION_CLASS: "gold", NAMESPACE_UIDS: '{"shop":"u1"}'}
    assert set(made.mark) == {SCHEDULE_UID, SLOT}
    plain: Any = create_backup(row, NOON, Settings()).body["metadata"]
    assert "annotations" not in plain
