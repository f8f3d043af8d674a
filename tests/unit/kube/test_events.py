"""Events: what they look like, and that a thing is said once."""

import asyncio
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, cast

import msgspec

from foresail.kube.events import Events, event
from foresail.kube.failures import failure, refusal_note
from foresail.plan import Delete, Key, Kind, Level, Note
from tests.unit.kube.nowhere import nowhere

NOON = datetime(2026, 11, 15, 12, tzinfo=UTC)
THING = Kind("runtime.foresail.dev", "v1", "things", "Thing")
NOTE = Note(THING, Key("ns", "a"), "uid-1", "NameTaken", "ConfigMap ns/a is someone else's.", Level.WARNING)


def name(note: Note, at: datetime = NOON) -> str:
    return str(cast("Any", event(note, at, "foresail", "pod-1"))["metadata"]["name"])


def test_an_event_names_the_object_the_reason_and_who_says_it() -> None:
    assert event(NOTE, NOON, "foresail", "pod-1") == {
        "apiVersion": "events.k8s.io/v1",
        "kind": "Event",
        "metadata": {"name": name(NOTE), "namespace": "ns"},
        "eventTime": "2026-11-15T12:00:00.000000Z",
        "reportingController": "foresail",
        "reportingInstance": "pod-1",
        "action": "NameTaken",
        "reason": "NameTaken",
        "type": "Warning",
        "note": "ConfigMap ns/a is someone else's.",
        "regarding": {
            "apiVersion": "runtime.foresail.dev/v1",
            "kind": "Thing",
            "namespace": "ns",
            "name": "a",
            "uid": "uid-1",
        },
    }


def test_the_same_note_has_the_same_name_for_ten_minutes_so_that_a_restart_does_not_repeat_it() -> None:
    assert name(NOTE, NOON + timedelta(minutes=9)) == name(NOTE)
    assert name(NOTE, NOON + timedelta(minutes=10)) != name(NOTE)
    assert name(msgspec.structs.replace(NOTE, uid="uid-2")) != name(NOTE)
    assert name(msgspec.structs.replace(NOTE, message="Another one.")) != name(NOTE)


def test_whatever_is_too_long_for_the_api_server_is_cut() -> None:
    long = msgspec.structs.replace(NOTE, key=Key("ns", "a" * 235 + "-" + "b" * 17), message="ä" * 1000)
    body = cast("Any", event(long, NOON, "foresail", "x" * 200))
    assert body["note"] == "ä" * 512
    assert body["metadata"]["name"].startswith("a" * 235 + ".")
    assert len(body["metadata"]["name"]) <= 253
    assert len(body["reportingInstance"]) == 128


def test_an_object_without_a_namespace_has_its_events_in_default() -> None:
    body = cast("Any", event(msgspec.structs.replace(NOTE, key=Key("", "a")), NOON, "foresail", "pod-1"))
    assert body["metadata"]["namespace"] == "default"
    assert "namespace" not in body["regarding"]


def outcomes(folder: Path, emit: Callable[[Events], None]) -> dict[str, int]:
    async def run() -> dict[str, int]:
        async with nowhere(folder) as client:
            events = Events(client, "foresail", "pod-1", lambda: NOON, queue_size=2)
            emit(events)
            return dict(events.outcomes)

    return asyncio.run(run())


def test_what_was_reported_is_not_reported_again(tmp_path: Path) -> None:
    def emit(events: Events) -> None:
        for _ in range(3):
            events.emit(NOTE)

    assert outcomes(tmp_path, emit) == {"repeated": 2}


def refused(request_id: str, problem: str = "the image has no signature") -> Note:
    text = f"admission webhook w denied it: {problem} (request {request_id}, 2026-11-15T12:00:{request_id[:2]}Z)"
    found = refusal_note(None, Delete(THING, Key("ns", "a"), "uid-1"), failure(403, "Forbidden", text))
    assert found is not None
    return found


def test_a_refusal_whose_text_varies_is_reported_once(tmp_path: Path) -> None:
    def emit(events: Events) -> None:
        for number in range(10, 13):
            events.emit(refused(f"{number}f0c-a9"))

    assert outcomes(tmp_path, emit) == {"repeated": 2}
    assert name(refused("10f0c-a9")) == name(refused("11f0c-a9"))
    assert name(refused("10f0c-a9", "the label team is missing")) != name(refused("10f0c-a9"))
    assert "request 10f0c-a9" in refused("10f0c-a9").message


def test_beyond_the_bound_events_are_dropped_and_no_one_waits(tmp_path: Path) -> None:
    def emit(events: Events) -> None:
        for number in range(5):
            events.emit(msgspec.structs.replace(NOTE, uid=str(number)))

    assert outcomes(tmp_path, emit) == {"dropped": 3}
