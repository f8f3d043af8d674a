"""What the operator publishes for teams: what decides, and nothing that only administrators should read."""

from datetime import UTC, datetime, timedelta

import msgspec
import pytest

from foresail.api import velero
from foresail.api.apps import DaemonSet, Deployment
from foresail.api.marks import FACTS
from foresail.plan import Key
from foresail.proof.facts import MOST_LOCATIONS, Facts, LocationFact, decode, encode, facts_of
from foresail.proof.facts_watch import PublishedFacts

NOW = datetime(2026, 3, 4, 12, tzinfo=UTC)


def deployment(*flags: str, ready: int = 1) -> Deployment:
    container = {"name": "velero", "image": "velero/velero:v1.18.3", "args": ["server", *flags]}
    spec = {"replicas": 1, "template": {"spec": {"containers": [container]}}}
    return msgspec.convert(
        {"metadata": {"name": "velero"}, "spec": spec, "status": {"readyReplicas": ready}}, Deployment
    )


def agent(ready: int = 1) -> DaemonSet:
    pods = {"template": {"spec": {"containers": [{"args": ["node-agent", "server"]}]}}}
    status = {"desiredNumberScheduled": 3, "numberReady": ready}
    return msgspec.convert({"metadata": {"name": "node-agent"}, "spec": pods, "status": status}, DaemonSet)


AGENTS = [agent()]
NONE = "no DaemonSet runs Velero's node agent"


def location(name: str, phase: str = "Available", **more: object) -> velero.Location:
    body = {"metadata": {"name": name, "annotations": more.pop("annotations", {})}, "spec": more}
    status = {"phase": phase, "message": "s3://secret-bucket refused key AKIA1"}
    return msgspec.convert({**body, "status": status}, velero.Location)


def test_the_facts_are_those_that_decide_whether_a_namespace_is_safe() -> None:
    flags = (
        "--features=EnableCSI",
        "--default-volumes-to-fs-backup",
        "--global-backup-volume-policies-configmap=rules",
    )
    places = [location("b", accessMode="ReadOnly"), location("a", "Unavailable"), location("z", default=True)]
    found = facts_of([deployment(*flags)], places, ["gcp", "aws", "aws"], AGENTS, NOW)
    assert found == Facts(
        locations=(
            LocationFact("z", "Available", is_default=True),
            LocationFact("a", "Unavailable"),
            LocationFact("b", "Available", is_read_only=True),
        ),
        files_by_default=True,
        has_csi=True,
        global_policies="rules",
        snapshot_providers=("aws", "gcp"),
        is_recognised=True,
    )
    assert decode(encode(found)) == found
    assert found.flags.default_volumes_to_fs_backup
    down = facts_of([deployment(ready=0)], places, [], AGENTS, NOW)
    assert down.velero_problem == "0 of 1 pods of Velero's Deployment velero are ready"
    assert not down.has_csi
    dead = facts_of([deployment()], places, [], [agent(ready=0)], NOW)
    assert dead.agents_problem == "0 of 3 pods of Velero's node agent, DaemonSet node-agent, are ready"
    assert facts_of([deployment()], places, [], [], NOW).agents_problem == NONE
    unseen = facts_of([], places, [], AGENTS, NOW)
    assert unseen.velero_unknown.startswith("whether Velero runs")
    assert not unseen.is_recognised


def test_nothing_is_published_that_only_administrators_should_read() -> None:
    of_tenant = location("nac-shop-1", annotations={"openshift.io/oadp-nabsl-origin-namespace": "shop"})
    text = encode(
        facts_of(
            [deployment("--backup-sync-period=secret")], [location("a", "Unavailable"), of_tenant], [], AGENTS, NOW
        )
    )
    assert "secret" not in text
    assert "AKIA1" not in text
    assert "nac-shop-1" not in text


def test_the_annotation_is_bounded() -> None:
    many = [location(f"{number:0>250}") for number in range(3 * MOST_LOCATIONS)]
    found = facts_of([deployment()], [*many, location("z", default=True)], [], AGENTS, NOW)
    assert len(found.locations) == MOST_LOCATIONS
    assert found.locations[0].name == "z"
    assert len(encode(found)) < 20_000  # all annotations of an object together may have 256 KiB


@pytest.mark.parametrize("text", ["", "{", "[]", '{"locations": 3}'])
def test_facts_of_another_version_are_none(text: str) -> None:
    assert decode(text) is None
    assert decode('{"newer": 1}') == Facts()


def test_what_the_lease_tells_follows_the_stores_the_clock_and_the_replica() -> None:
    published = PublishedFacts("velero", lambda: timedelta(hours=1))
    assert {informer.spec.namespace for informer in published.informers} == {"velero"}
    validated = msgspec.convert(
        {"phase": "Available", "lastValidationTime": NOW - timedelta(hours=1)}, velero.LocationStatus
    )
    published.locations.put(Key("velero", "a"), msgspec.structs.replace(location("a"), status=validated))
    published.providers.put(Key("velero", "a"), "aws")

    def told(*problems: str, after: int = 0) -> Facts:
        found = decode(published.annotations(NOW + timedelta(seconds=after), problems)[FACTS])
        assert found is not None
        return found

    published.agents.put(Key("velero", "node-agent"), agent())
    assert told() == Facts(locations=(LocationFact("a", "Available"),), snapshot_providers=("aws",)), "a skewed clock"
    published.deployments.put(Key("velero", "velero"), deployment(ready=0))
    assert not told(after=2).velero_problem
    assert told(after=3).velero_problem
    assert told("facts: Deployment is stale") == Facts(stale="facts: Deployment is stale")
