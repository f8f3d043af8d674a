"""A team's verdict by what the operator publishes: as an administrator's, and Unknown once nobody renews the facts."""

from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from foresail.api.marks import FACTS
from foresail.kube.clock import now
from foresail.proof.facts import Facts, LocationFact, encode
from tests.unit.cli.test_coverage import LEFT_OUT, REVIEWS, SELF_SERVICE_LEASE, listed, named, own_cluster, verdicts

POLICIES = "/apis/foresail.dev/v1alpha1/selfservicepolicies"
CALM = Facts(
    locations=(LocationFact("default", "Available", is_default=True),),
    snapshot_providers=("aws",),
    is_recognised=True,
)


def lease(facts: Facts | None = CALM, *, age: float = 2, holder: str = "foresail-1") -> dict[str, Any]:
    """Return the operator's Lease as it was renewed so many seconds ago."""
    renewed = (now() - timedelta(seconds=age)).isoformat()
    found = named("foresail-self-service", "velero", spec={"holderIdentity": holder, "renewTime": renewed})
    found["metadata"]["annotations"] = {FACTS: encode(facts)} if facts is not None else {}
    return found


def team(facts: Facts | None = CALM, *conditions: dict[str, str], **backup: object) -> dict[str, Any]:
    """Return what a team sees that may read policies and the Lease."""
    cluster = own_cluster(*conditions)
    own = {("persistentvolumeclaims", "lab"), ("pods", "lab"), ("selfservicepolicies", "")}

    def review(_: str, sent: dict[str, Any]) -> dict[str, Any]:
        asked = sent["spec"]["resourceAttributes"]
        return {"status": {"allowed": (asked["resource"], asked.get("namespace", "")) in own}}

    policy = named("tenants", spec={"namespaceSelector": {}, "backup": backup})
    return cluster | {REVIEWS: review, SELF_SERVICE_LEASE: lease(facts), POLICIES: listed(policy)}


def lab(folder: Path, capsys: pytest.CaptureFixture[str], found: dict[str, Any]) -> tuple[str, str]:
    """Return the verdict about the team's namespace, and why."""
    about = verdicts(folder, capsys, found, "-n", "lab")["lab"]
    return about["verdict"], about["message"]


def test_a_team_hears_that_it_is_safe_by_what_the_operator_publishes(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    verdict, message = lab(tmp_path, capsys, team())
    assert verdict == "Safe"
    assert "good backups have the data of 1 of 1 volumes" in message


@pytest.mark.parametrize(
    ("facts", "verdict", "message"),
    [
        ({"velero_problem": "0 of 1 pods are ready"}, "AtRisk", "lab/mine: 0 of 1 pods are ready"),
        ({"velero_unknown": "whether Velero runs"}, "Unknown", "unknown is whether Velero runs"),
        ({"locations": ()}, "Unsafe", "lab/mine: there is no default storage location"),
        (
            {"locations": (LocationFact("default", "Unavailable", is_default=True),)},
            "Unsafe",
            "lab/mine: BackupStorageLocation default is Unavailable",
        ),
        ({"stale": "the operator is not ready"}, "Unknown", "unknown is whether Velero and its storage location"),
        ({"is_recognised": False}, "Unknown", "unknown is how Velero saves volumes"),
        ({"global_policies": "rules"}, "Unknown", "whether lab/mine saves the data of claim data is unknown: the poli"),
        (
            {"snapshot_providers": ()},
            "Unknown",
            "unknown is whether Velero can still make the snapshots of the last run",
        ),
    ],
)
def test_a_team_hears_what_is_wrong_with_the_cluster(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], facts: dict[str, Any], verdict: str, message: str
) -> None:
    published = {name: getattr(CALM, name) for name in CALM.__struct_fields__} | facts
    found = lab(tmp_path, capsys, team(Facts(**published)))
    assert (found[0], found[1][: len(message)]) == (verdict, message)


@pytest.mark.parametrize(
    ("seen", "verdict"),
    [
        (lambda: lease(age=120), "AtRisk"),
        (lambda: lease(holder=""), "AtRisk"),
        (lambda: {"kind": "Status", "reason": "NotFound", "message": "none", "code": 404}, "AtRisk"),
        (lambda: lease(None), "Unknown"),
    ],
    ids=["old", "released", "none", "without facts"],
)
def test_facts_that_nobody_renews_are_no_facts(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], seen: Callable[[], dict[str, Any]], verdict: str
) -> None:
    found, message = lab(tmp_path, capsys, team() | {SELF_SERVICE_LEASE: seen()})
    assert found == verdict
    is_nobody = message == "lab/mine: no replica of Foresail's operator runs"
    assert is_nobody == (verdict == "AtRisk")


def test_a_namespace_without_volumes_is_not_safe_by_a_policy_that_nobody_could_read(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    published = {name: getattr(CALM, name) for name in CALM.__struct_fields__} | {"global_policies": "rules"}
    found = team(Facts(**published))
    found["/api/v1/namespaces/lab/persistentvolumeclaims"] = {"metadata": {}, "items": []}
    verdict, message = lab(tmp_path, capsys, found)
    assert (verdict, message[:68]) == (
        "Unknown",
        "unknown is whether Velero can use the volume policies in ConfigMap r",
    )


def test_a_team_hears_of_volumes_that_the_policy_leaves_out_and_that_a_run_left_out(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert lab(tmp_path, capsys, team(CALM, LEFT_OUT))[0] == "Unsafe"
    verdict, message = lab(tmp_path, capsys, team(defaults={"snapshotVolumes": False}))
    assert (verdict, message[:48]) == ("Unsafe", "no schedule saves the data of claim data: lab/mi")


def test_volumes_are_unknown_until_a_run_of_the_schedule_shows_what_it_saves(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    found = team()
    (request,) = found["/apis/oadp.openshift.io/v1alpha1/namespaces/lab/nonadminbackups"]["items"]
    request["metadata"]["annotations"] = {}  # by hand
    verdict, message = lab(tmp_path, capsys, found)
    assert verdict == "Unknown"
    assert message.startswith("unknown is whether scheduled runs save its volumes")
    hidden = team()
    del hidden[POLICIES]
    hidden[REVIEWS] = own_cluster()[REVIEWS]
    assert lab(tmp_path, capsys, hidden) == (
        "Unknown",
        "unknown is which defaults SelfServicePolicies set for volumes: you may not list them",
    )


@pytest.mark.parametrize(("place", "verdict"), [("default", "Safe"), ("old", "Unsafe")])
def test_a_backup_in_a_location_that_velero_cannot_read_is_none(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], place: str, verdict: str
) -> None:
    broken = LocationFact("old", "Unavailable")
    found = team(Facts(locations=(*CALM.locations, broken), snapshot_providers=("aws",), is_recognised=True))
    (request,) = found["/apis/oadp.openshift.io/v1alpha1/namespaces/lab/nonadminbackups"]["items"]
    request["status"]["veleroBackup"]["spec"] = {"includedNamespaces": ["lab"], "storageLocation": place}
    assert lab(tmp_path, capsys, found)[0] == verdict


def test_a_location_of_the_teams_own_is_unknown(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = team()
    (mine,) = found["/apis/oadp.openshift.io/v1alpha1/namespaces/lab/nonadminschedules"]["items"]
    mine["spec"]["template"]["backupSpec"]["storageLocation"] = "ours"
    assert lab(tmp_path, capsys, found) == ("Unknown", "unknown is whether storage location ours works now")
