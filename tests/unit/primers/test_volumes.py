"""Where a placeholder may be if the run has volumes: asked for each fire, and joined with what the run says itself."""

import asyncio
from datetime import UTC, datetime, timedelta
from typing import Any, TypeVar

import msgspec
import pytest

from foresail.api.core import CLAIM, VOLUME
from foresail.kube.failures import Cause, Failure
from foresail.plan import Body, Create, Key, Kind
from foresail.primers.affinity import with_volume_affinity
from foresail.primers.decide import decide, is_volume_lookup_due
from foresail.primers.reads import Volumes, locate_volumes_with
from foresail.primers.rules import judge
from foresail.primers.view import PrimerView, Target, VolumeLocations, VolumeLookup
from tests.unit.primers.rows import cron_job, primer, primer_view, shape

T = TypeVar("T")
FIRE = datetime(2026, 1, 2, 3, tzinfo=UTC)
MINUTE = timedelta(minutes=1)
MOUNTS = shape(volumes=[{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}, {"name": "tmp"}])
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"


def where(key: str, *values: str) -> dict[str, Any]:
    return {"key": key, "operator": "In", "values": list(values)}


def selector(*terms: dict[str, Any]) -> dict[str, Any]:
    return {"nodeSelectorTerms": list(terms)}


def term(*expressions: dict[str, Any]) -> dict[str, Any]:
    return {"matchExpressions": list(expressions)}


A, B, ARM, FAST = where("zone", "a"), where("zone", "b"), where("arch", "arm"), where("disk", "fast")


@pytest.mark.parametrize(
    ("own", "volumes", "joined"),
    [
        (None, [], None),
        (None, [[term(A)]], [term(A)]),
        ([term(ARM)], [], [term(ARM)]),
        ([term(ARM)], [[term(A)]], [term(ARM, A)]),
        ([term(ARM), term(FAST)], [[term(A), term(B)]], [term(ARM, A), term(ARM, B), term(FAST, A), term(FAST, B)]),
        (None, [[term(A)], [term(A)]], [term(A)]),
        (None, [[term(A)], [term(B)]], [term(A, B)]),
        ([{"matchFields": [FAST]}], [[term(A)]], [{"matchExpressions": [A], "matchFields": [FAST]}]),
        ([{}, term(ARM)], [[term(A)]], [term(ARM, A)]),
        ([{}], [[term(A)]], [{}]),
        (None, [[{}]], None),
        (None, [[term(where("zone", str(number))) for number in range(101)]], None),
    ],
)
def test_the_terms_of_both_sides_hold_together(
    own: list[Any] | None, volumes: list[list[Any]], joined: list[Any] | None
) -> None:
    affinity = b"" if own is None else msgspec.json.encode({"nodeAffinity": {REQUIRED: selector(*own)}})
    found = with_volume_affinity(affinity, tuple(msgspec.json.encode(selector(*each)) for each in volumes))
    expected = None if joined is None else {"nodeAffinity": {REQUIRED: selector(*joined)}}
    assert (msgspec.json.decode(found) if found else None) == expected


def test_everything_else_that_a_run_says_of_its_place_stays() -> None:
    said: dict[str, dict[str, Any]] = {
        "nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [1]},
        "podAffinity": {"x": 2},
    }
    found = msgspec.json.decode(
        with_volume_affinity(msgspec.json.encode(said), (msgspec.json.encode(selector(term(A))),))
    )
    assert found == {**said, "nodeAffinity": {**said["nodeAffinity"], REQUIRED: selector(term(A))}}


# When it is asked, and what is made of the answer


def target(fire: datetime | None = None, *claims: str) -> Target:
    volumes = (msgspec.json.encode(selector(term(A))),)
    volume_locations = VolumeLocations(claims or ("data",), fire, volumes) if fire else None
    return Target(cron_job(shape=MOUNTS), is_dry_run_done=True, volume_locations=volume_locations)


def made(found: PrimerView, at: datetime) -> list[Any]:
    return [each.body["spec"] for each in decide(found, at).actions if isinstance(each, Create)]


def test_a_placeholder_goes_where_the_volumes_of_the_run_are_and_mounts_none() -> None:
    (spec,) = made(primer_view(target(FIRE)), FIRE - MINUTE)
    assert spec["affinity"] == {"nodeAffinity": {REQUIRED: selector(term(A))}}
    assert "volumes" not in spec


@pytest.mark.parametrize("known", [target(), target(FIRE - timedelta(days=1)), target(FIRE, "another")])
def test_before_it_is_known_where_the_volumes_are_no_placeholder_is_made(known: Target) -> None:
    assert made(primer_view(known), FIRE - MINUTE) == []


def test_it_is_asked_for_each_fire_half_a_minute_before_the_warm_up() -> None:
    def wants(known: Target, before: timedelta, **fields: Any) -> bool:  # noqa: ANN401 - a field of the Primer
        found = primer_view(known, primer=primer(**fields))
        return is_volume_lookup_due(found, judge(found, known, FIRE - before), FIRE - before)

    early = 11 * MINUTE
    assert decide(primer_view(target()), FIRE - early).wake_at == FIRE - 10.5 * MINUTE
    assert decide(primer_view(target(FIRE)), FIRE - early).wake_at == FIRE - 10 * MINUTE
    assert not wants(target(), early)
    assert wants(target(), 10.5 * MINUTE)
    assert wants(target(FIRE - timedelta(days=1)), 10.5 * MINUTE)
    assert not wants(target(FIRE), 10.5 * MINUTE)
    assert wants(target(), early, method="CronJob")
    assert not wants(target(), 10.5 * MINUTE, suspend=True)
    assert not wants(Target(cron_job(), is_dry_run_done=True), 10.5 * MINUTE), "it has no claims"


def test_primer_cronjobs_wait_for_the_first_answer_and_keep_the_last_one_until_there_is_another() -> None:
    row, before = primer(method="CronJob"), FIRE - timedelta(hours=2)
    assert made(primer_view(target(), primer=row), before) == []
    for asked in (FIRE, FIRE - timedelta(days=1)):
        (spec,) = made(primer_view(target(asked), primer=row), before)
        pod = spec["jobTemplate"]["spec"]["template"]["spec"]
        assert pod["affinity"] == {"nodeAffinity": {REQUIRED: selector(term(A))}}


# The search itself


class Objects:
    """An API server that has some claims and volumes."""

    def __init__(self, found: dict[tuple[str, str], dict[str, Any] | Failure]) -> None:
        self._found = found

    async def get(self, kind: Kind, key: Key, of: type[T]) -> T | Failure:
        one = self._found.get((kind.plural, key.name), Failure(Cause.NOT_FOUND, "it is not there"))
        if isinstance(one, Failure):
            return one
        return msgspec.json.decode(
            msgspec.json.encode({"metadata": {"name": key.name, **one.pop("is", {})}, **one}), type=of
        )

    async def create_dry_run(self, kind: Kind, key: Key, body: Body, of: type[T]) -> T | Failure:
        raise NotImplementedError


@pytest.mark.parametrize(
    ("claim", "volume", "volumes"),
    [
        ({"is": {"uid": "1"}, "spec": {"volumeName": "v"}}, {"uid": "1"}, (selector(term(A)),)),
        ({"is": {"uid": "1"}, "spec": {"volumeName": "v"}}, {"uid": "of somebody else"}, ()),
        ({"is": {"uid": "1"}, "spec": {"volumeName": "v"}}, None, ()),
        ({"is": {"uid": "1"}, "spec": {"volumeName": "gone"}}, {"uid": "1"}, ()),
        ({"is": {"uid": "1"}, "spec": {}}, {"uid": "1"}, ()),
        (Failure(Cause.NOT_FOUND, "no such claim"), {"uid": "1"}, ()),
        (Failure(Cause.SERVER, "not now"), {"uid": "1"}, None),
    ],
    ids=["bound", "another claim's", "of nobody", "gone", "not bound", "no claim", "not told"],
)
def test_a_volume_counts_if_claim_and_volume_name_each_other(
    claim: dict[str, Any] | Failure, volume: dict[str, str] | None, volumes: tuple[dict[str, Any], ...] | None
) -> None:
    spec = {"claimRef": volume, "nodeAffinity": {"required": selector(term(A))}}
    server = Objects({(CLAIM.plural, "data"): claim, (VOLUME.plural, "v"): {"spec": spec}})

    async def lookup() -> Volumes | None:
        return await locate_volumes_with(server)(VolumeLookup("reports", "1", ("data",), FIRE))

    found = asyncio.run(lookup())
    assert (None if found is None else tuple(map(msgspec.json.decode, found))) == volumes
