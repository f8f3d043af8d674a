"""What the controller of Primers counts before its stores show it."""

from datetime import UTC, datetime, timedelta
from itertools import permutations
from typing import Any

import msgspec
import pytest

from foresail.api.batch import CRON_JOB
from foresail.api.capacity_buffers import POD_TEMPLATE, capacity_buffer
from foresail.api.marks import TARGET_UID
from foresail.api.pods import POD
from foresail.api.primer import PRIMER
from foresail.kube.execute import Outcome, Result
from foresail.kube.failures import Cause, Failure
from foresail.kube.reflector import Change
from foresail.plan import Create, Key, Keyed, Kind, Plan
from foresail.primers.bookkeeping import Refusals
from foresail.primers.buffer_rows import TemplateRow
from foresail.primers.controller import Primers
from foresail.primers.decide import decide
from foresail.primers.view import Target
from tests.unit.primers.rows import SETTINGS, buffer, cron_job, placeholder, primer, primer_view

BUFFER = capacity_buffer()
NOW = datetime(2026, 1, 2, 2, 59, tzinfo=UTC)


def held(primers: Primers, key: Key) -> tuple[int, int]:
    found = primers.observe(key, NOW)
    assert found is not None
    return found.held_in_namespace, found.held_in_cluster


def test_what_another_primer_is_about_to_make_counts_in_its_namespace_and_in_all() -> None:
    primers = Primers(SETTINGS)
    first, here, elsewhere = Key("reports", "warm"), Key("reports", "other"), Key("elsewhere", "other")
    for key in (first, here, elsewhere):
        primers.state.primers.put(key, primer(key=key, uid=str(key)))
    found = primer_view()
    primers.begin(first, found, decide(found, NOW), NOW)
    assert [held(primers, key) for key in (first, here, elsewhere)] == [(0, 0), (1, 1), (0, 1)]
    primers.begin(first, found, Plan(), NOW)
    assert held(primers, here) == (0, 0)


FIRE = NOW + timedelta(minutes=1)


def bring(primers: Primers, kind: Kind, row: Keyed, *, is_gone: bool = False, initial: bool = False) -> None:
    """Put a row into its store, or remove it, and let the controller learn of it."""
    informer = [each for each in primers.informers if each.spec.kind == kind][-1]  # of pods, the placeholders
    store: Any = informer.store
    old = store.remove(row.key) if is_gone else store.put(row.key, row)
    informer.learn(Change(row.key, old, None if is_gone else row, initial=initial))


def pods(count: int, namespace: str, **fields: object) -> list[Keyed]:
    row = msgspec.structs.replace(placeholder(FIRE), **fields)
    return [msgspec.structs.replace(row, key=Key(namespace, f"pod-{each}"), uid=f"{each}") for each in range(count)]


OF_NOBODY: list[dict[str, Any]] = [
    {"primer_uid": ""},
    {"primer_uid": "of nobody"},
    {"primer_uid": "22222222-bbbb"},
    {"target_uid": ""},
    {"fire": None},
]


@pytest.mark.parametrize("fields", [{"phase": "Succeeded"}, {"phase": "Failed"}, {"is_terminating": True}, *OF_NOBODY])
def test_a_pod_that_is_only_labelled_does_not_count(fields: dict[str, Any]) -> None:
    primers, mine, theirs = Primers(SETTINGS), primer(), primer(key=Key("evil", "warm"), uid="theirs")
    for row in (mine, theirs):
        bring(primers, PRIMER, row)
    for pod in pods(3, "evil", **{"primer_uid": "theirs", **fields}):
        bring(primers, POD, pod)
    assert held(primers, theirs.key) == (0, 0)


def test_a_namespace_counts_in_all_with_its_own_limit_at_most() -> None:
    primers = Primers(msgspec.structs.replace(SETTINGS, max_per_namespace=5))
    mine, theirs = primer(), cron_job(key=Key("evil", "daily"))
    bring(primers, PRIMER, mine)
    bring(primers, CRON_JOB, theirs)
    forged, own = pods(9, "evil", primer_uid=theirs.uid), pods(2, "reports")
    for pod in (*forged, *own):
        bring(primers, POD, pod)
    assert held(primers, mine.key) == (2, 7)
    for pod in forged[:6]:
        bring(primers, POD, pod, is_gone=True)
    assert held(primers, mine.key) == (2, 5)


@pytest.mark.parametrize("fields", [{"replicas": 0}, {"is_terminating": True}, *OF_NOBODY])
def test_a_buffer_that_is_only_labelled_does_not_count(fields: dict[str, Any]) -> None:
    primers, mine, theirs = Primers(SETTINGS), primer(), primer(key=Key("evil", "warm"), uid="theirs")
    for row in (mine, theirs):
        bring(primers, PRIMER, row)
    values = {"primer_uid": "theirs", "replicas": 900, **fields}
    bring(primers, BUFFER, msgspec.structs.replace(buffer(FIRE, key=Key("evil", "forged")), **values))
    assert held(primers, mine.key) == (0, 0)
    assert held(primers, theirs.key) == (0, 0)
    assert not [each for family in primers.metrics.collect() for each in family.samples if "evil" in str(each)]


def test_the_buffers_of_a_namespace_count_in_all_with_its_own_limit_at_most_beside_its_placeholders() -> None:
    primers = Primers(msgspec.structs.replace(SETTINGS, max_per_namespace=5))
    mine, theirs = primer(), primer(key=Key("evil", "warm"), uid="theirs")
    forged = buffer(FIRE, key=Key("evil", "forged"), primer_uid="theirs", replicas=900)
    bring(primers, BUFFER, forged)
    for row in (mine, theirs):
        bring(primers, PRIMER, row)
    bring(primers, BUFFER, buffer(FIRE, replicas=2))
    for pod in pods(1, "evil", primer_uid="theirs"):
        bring(primers, POD, pod)
    assert (held(primers, mine.key), held(primers, theirs.key)) == ((2, 7), (901, 7))
    bring(primers, BUFFER, forged, is_gone=True)
    assert held(primers, mine.key) == (2, 3)


@pytest.mark.parametrize("initial", [False, True])
@pytest.mark.parametrize("order", [*permutations(("primer", "buffer", "template"))], ids="-".join)
def test_what_a_buffer_holds_is_measured_in_whatever_order_it_its_template_and_its_owner_are_listed(
    order: tuple[str, ...], initial: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    instant = FIRE
    monkeypatch.setattr("foresail.primers.metrics.now", lambda: instant)
    primers, row = Primers(SETTINGS), buffer(FIRE, provisioned=FIRE - timedelta(seconds=60))
    template = TemplateRow(row.key, "5", row.primer_uid, row.target_uid, is_terminating=False, requests=(("cpu", "2"),))
    rows: dict[str, tuple[Kind, Keyed]] = {
        "primer": (PRIMER, primer()),
        "buffer": (BUFFER, row),
        "template": (POD_TEMPLATE, template),
    }
    for each in order:
        bring(primers, *rows[each], initial=initial)
    instant += timedelta(seconds=30)
    held = next(each for each in primers.metrics.collect() if each.name == "foresail_primer_held_seconds")
    assert [each.value for each in held.samples] == [2 * (30 if initial else 90)]


def test_placeholders_count_whether_they_or_their_owner_are_seen_first() -> None:
    primers, owner, rival = Primers(SETTINGS), primer(), primer(key=Key("reports", "rival"), uid="rival")
    bring(primers, PRIMER, rival)
    for pod in pods(3, "reports"):
        bring(primers, POD, pod)
    assert held(primers, rival.key) == (0, 0)
    bring(primers, PRIMER, owner)
    assert held(primers, rival.key) == (3, 3)
    bring(primers, PRIMER, owner, is_gone=True)
    assert held(primers, rival.key) == (0, 0)


def test_of_what_is_refused_at_every_fire_only_the_last_stays_and_no_more_of_its_message_than_is_read() -> None:
    primers, owner = Primers(SETTINGS), primer()
    both = [cron_job(uid="one"), cron_job(uid="two")]
    found = primer_view(targets=tuple(map(Target, both)))
    bring(primers, PRIMER, owner)
    for fire in range(20):
        for row in both:
            make = Create(POD, Key("reports", f"{row.uid}-{fire}"), {}, {TARGET_UID: row.uid})
            result = Result(Outcome.FAILED, make, Failure(Cause.FORBIDDEN, "no" * 100_000))
            primers.settled(owner.key, found, Plan(), result, NOW)
    view = primers.observe(owner.key, NOW)
    assert view is not None
    assert {name: len(message) for name, message in view.refused.items()} == {"one-19": 2_048, "two-19": 2_048}


def test_of_a_cron_job_that_a_primer_is_not_for_any_more_no_refusal_stays() -> None:
    refusals, owner = Refusals(), primer().key
    for uid in ("gone", "there"):
        refusals.add(owner, Create(POD, Key("reports", uid), {}, {TARGET_UID: uid}), "no", {uid})
    assert refusals.of(owner) == {"there": "no"}
