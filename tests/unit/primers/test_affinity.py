"""Placeholders of pods whose affinity selects pods like themselves."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from foresail.plan import Create
from foresail.primers.decide import decide
from foresail.primers.view import Target
from tests.unit.primers.rows import cron_job, primer_view, shape

FIRE = datetime(2026, 1, 2, 3, tzinfo=UTC)
LABELS = {"app": "report", "tier": "batch", "team": "shop"}


def affinity(kind: str, selector: dict[str, Any], *, preferred: bool = False) -> dict[str, Any]:
    term = {"labelSelector": selector, "topologyKey": "kubernetes.io/hostname"}
    if preferred:
        return {kind: {"preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 1, "podAffinityTerm": term}]}}
    return {kind: {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}


def placeholder(wanted: dict[str, Any], **target: Any) -> Any:  # noqa: ANN401 - JSON
    cron = cron_job(shape=shape(affinity=wanted, labels=LABELS))
    plan = decide(primer_view(Target(cron, **target)), FIRE - timedelta(minutes=1))
    (create,) = [each for each in plan.actions if isinstance(each, Create)]
    return create.body


def labels_of(body: Any) -> dict[str, str]:  # noqa: ANN401 - JSON
    return {name: value for name, value in body["metadata"]["labels"].items() if name in LABELS}


@pytest.mark.parametrize("kind", ["podAffinity", "podAntiAffinity"])
@pytest.mark.parametrize("preferred", [False, True], ids=["required", "preferred"])
def test_a_placeholder_counts_as_the_pod_in_terms_that_select_the_pod_itself(kind: str, preferred: bool) -> None:
    expression = {"key": "tier", "operator": "In", "values": ["batch"]}
    wanted = affinity(kind, {"matchLabels": {"app": "report"}, "matchExpressions": [expression]}, preferred=preferred)
    body = placeholder(wanted)
    assert labels_of(body) == {"app": "report", "tier": "batch"}, "no other label of the target's"
    assert body["spec"]["affinity"] == wanted
    assert body["spec"]["readinessGates"], "no Service sends it traffic"


def test_the_labels_stay_where_admission_was_asked() -> None:
    wanted = affinity("podAntiAffinity", {"matchLabels": {"app": "report"}})
    body = placeholder(wanted, admitted=shape(affinity=wanted), is_dry_run_done=True)
    assert labels_of(body) == {"app": "report"}


@pytest.mark.parametrize(
    "wanted",
    [
        affinity("podAffinity", {"matchLabels": {"app": "database"}}),
        affinity("podAntiAffinity", {"matchLabels": {"app": "report", "tier": "web"}}),
        {"nodeAffinity": {}},
    ],
    ids=["another's", "only in part", "of nodes"],
)
def test_a_placeholder_has_no_label_of_the_target_for_terms_about_others(wanted: dict[str, Any]) -> None:
    body = placeholder(wanted)
    assert labels_of(body) == {}
    assert "readinessGates" not in body["spec"]


def spread(selector: dict[str, Any], **fields: Any) -> dict[str, Any]:  # noqa: ANN401 - JSON
    where = {"maxSkew": 1, "topologyKey": "kubernetes.io/hostname", "whenUnsatisfiable": "DoNotSchedule"}
    return {**where, "labelSelector": selector, **fields}


@pytest.mark.parametrize(
    ("constraint", "labels"),
    [
        (spread({"matchLabels": {"app": "report"}}), {"app": "report"}),
        (spread({"matchLabels": {"app": "report"}}, matchLabelKeys=["team"]), {"app": "report", "team": "shop"}),
        (spread({"matchLabels": {"app": "database"}}), {}),
    ],
    ids=["itself", "by more labels", "another's"],
)
def test_a_placeholder_is_spread_like_the_pod(constraint: dict[str, Any], labels: dict[str, str]) -> None:
    cron = cron_job(shape=shape(topologySpreadConstraints=[constraint], labels=LABELS))
    merged = spread({"matchLabels": {"app": "report", "batch.kubernetes.io/job-name": "last"}})
    for target in (
        Target(cron),
        Target(cron, admitted=shape(topologySpreadConstraints=[merged]), is_dry_run_done=True),
    ):
        plan = decide(primer_view(target), FIRE - timedelta(minutes=1))
        (create,) = [each for each in plan.actions if isinstance(each, Create)]
        body: Any = create.body
        assert body["spec"]["topologySpreadConstraints"] == [constraint], "not one that names the last Job"
        assert labels_of(body) == labels
