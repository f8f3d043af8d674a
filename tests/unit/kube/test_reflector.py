"""The watch without a network: each line and each ending, one after the other."""

import json
from dataclasses import replace
from typing import Any

import msgspec
import pytest

from foresail.kube.failures import Cause, Failure, failure
from foresail.kube.pages import ListMetadata, Page
from foresail.kube.reflector import Change, Phase, Reflector, WatchSpec
from foresail.kube.store import Store, Unreadable
from foresail.plan import Key, Keyed, Kind


class Spec(msgspec.Struct, frozen=True):
    size: int = 0


class Wire(msgspec.Struct):
    spec: Spec


def thing(name: str, version: int, size: object = 1) -> dict[str, Any]:
    metadata = {"name": name, "namespace": "ns", "uid": f"uid-{name}", "resourceVersion": str(version)}
    return {"metadata": metadata, "spec": {"size": size}}


def event(kind: str, content: dict[str, Any]) -> bytes:
    return json.dumps({"type": kind, "object": content}).encode()


def bookmark(version: int, *, initial_end: bool = False) -> bytes:
    notes = {"k8s.io/initial-events-end": "true"} if initial_end else None
    return event("BOOKMARK", {"metadata": {"resourceVersion": str(version), "annotations": notes}})


class Recorder:
    def __init__(self) -> None:
        self.changes: list[tuple[str, int | None, int | None, bool]] = []
        self.unreadable: list[Unreadable] = []
        kind = Kind("example.dev", "v1", "things", "Thing")
        self.machine = Reflector(
            WatchSpec(kind, Wire, lambda wire: wire.spec.size), Store[int](), self.note, self.unreadable.append
        )

    def note(self, change: Change[int]) -> None:
        self.changes.append((change.key.name, change.old, change.new, change.initial))

    def feed(self, *lines: bytes) -> None:
        for line in lines:
            assert self.machine.feed_line(line) is None

    def start_watching(self) -> None:
        _ = self.machine.parameters
        self.feed(event("ADDED", thing("a", 1)), event("ADDED", thing("b", 2)), bookmark(5, initial_end=True))
        self.changes.clear()


@pytest.fixture
def recorder() -> Recorder:
    return Recorder()


def test_it_first_asks_for_the_present_state_as_a_stream(recorder: Recorder) -> None:
    assert recorder.machine.parameters == {
        "watch": "true",
        "allowWatchBookmarks": "true",
        "sendInitialEvents": "true",
        "resourceVersionMatch": "NotOlderThan",
    }


def test_initial_objects_are_marked_as_such_and_the_last_bookmark_completes_them(recorder: Recorder) -> None:
    recorder.feed(event("ADDED", thing("a", 3)))
    assert not recorder.machine.synced
    recorder.feed(bookmark(7, initial_end=True))
    assert recorder.machine.synced
    assert recorder.changes == [("a", None, 1, True)]
    assert recorder.machine.parameters["resourceVersion"] == "7"


def test_a_change_comes_with_old_and_new_and_one_that_changes_no_row_does_not_come(recorder: Recorder) -> None:
    recorder.start_watching()
    recorder.feed(
        event("MODIFIED", thing("a", 8, 2)), event("MODIFIED", thing("a", 9, 2)), event("DELETED", thing("b", 10))
    )
    assert recorder.changes == [("a", 1, 2, False), ("b", 1, None, False)]
    assert recorder.machine.parameters["resourceVersion"] == "10"


def test_a_stream_that_ends_is_opened_where_it_stopped(recorder: Recorder) -> None:
    recorder.start_watching()
    recorder.feed(bookmark(20))
    assert recorder.machine.end_request(None) is False
    assert recorder.machine.parameters["resourceVersion"] == "20"
    assert recorder.machine.end_request(Failure(Cause.UNREACHABLE, "reset")) is True
    assert recorder.machine.parameters["resourceVersion"] == "20"


@pytest.mark.parametrize("how", ["as an event", "as an answer"])
def test_an_object_deleted_between_watches_is_reported_as_deleted(recorder: Recorder, how: str) -> None:
    recorder.start_watching()
    gone: Failure | None = failure(410, "Expired", "too old resource version")
    if how == "as an event":
        gone = recorder.machine.feed_line(event("ERROR", {"code": 410, "reason": "Expired", "message": "too old"}))
    assert recorder.machine.end_request(gone) is True
    assert recorder.machine.phase is Phase.INITIAL
    _ = recorder.machine.parameters
    recorder.feed(event("ADDED", thing("a", 1)), event("ADDED", thing("c", 30)), bookmark(31, initial_end=True))
    assert recorder.changes == [("c", None, 1, True), ("b", 1, None, False)]


def test_after_a_relist_unchanged_objects_keep_their_rows_without_events() -> None:
    changes: list[Change[Spec]] = []
    kind = Kind("example.dev", "v1", "things", "Thing")
    store = Store[Spec]()
    machine = Reflector(WatchSpec(kind, Wire, lambda wire: wire.spec), store, changes.append, lambda _: None)
    for content in (thing("a", 1), thing("b", 2)):
        machine.feed_line(event("ADDED", content))
    machine.feed_line(bookmark(5, initial_end=True))
    a, b = store.get(Key("ns", "a")), store.get(Key("ns", "b"))
    changes.clear()
    machine.end_request(failure(410, "Expired", "too old"))
    for content in (thing("a", 1), thing("b", 7, 2)):
        machine.feed_line(event("ADDED", content))
    machine.feed_line(bookmark(8, initial_end=True))
    assert store.get(Key("ns", "a")) is a
    assert changes == [Change(Key("ns", "b"), b, Spec(2), initial=True)]


class Identified(msgspec.Struct, frozen=True):
    uid: str
    size: int


class IdentifiedWire(msgspec.Struct):
    metadata: dict[str, Any]
    spec: Spec


def test_an_object_that_was_deleted_and_created_again_unseen_comes_out_as_both() -> None:
    changes: list[Change[Identified]] = []
    kind = Kind("example.dev", "v1", "things", "Thing")
    store = Store[Identified]({"size": lambda row: [row.size]})
    spec = WatchSpec(kind, IdentifiedWire, lambda wire: Identified(wire.metadata["uid"], wire.spec.size))
    machine = Reflector(spec, store, changes.append, lambda _: None)
    machine.feed_line(event("ADDED", thing("a", 1)))
    machine.feed_line(bookmark(5, initial_end=True))
    changes.clear()
    machine.end_request(failure(410, "Expired", "too old"))
    again = thing("a", 9, 2)
    again["metadata"]["uid"] = "another"
    machine.feed_line(event("ADDED", again))
    machine.feed_line(bookmark(10, initial_end=True))
    key, old, new = Key("ns", "a"), Identified("uid-a", 1), Identified("another", 2)
    assert changes == [Change(key, old, None, initial=False), Change(key, None, new, initial=True)]
    assert list(store.rows()) == [new]
    assert store.count("size", 1) == 0


def test_what_the_server_shows_otherwise_at_the_same_version_is_taken_in(recorder: Recorder) -> None:
    recorder.start_watching()
    recorder.machine.end_request(failure(410, "Expired", "too old"))
    # As after an edit of the kind: a default that it has now stands in objects that nobody has written since.
    recorder.feed(event("ADDED", thing("a", 1, 5)), event("ADDED", thing("b", 2)), bookmark(9, initial_end=True))
    assert recorder.changes == [("a", 1, 5, True)]


def test_an_initial_stream_that_breaks_off_deletes_nothing(recorder: Recorder) -> None:
    recorder.start_watching()
    recorder.machine.end_request(failure(410, "Expired", "too old"))
    _ = recorder.machine.parameters
    recorder.feed(event("ADDED", thing("c", 30)))
    assert recorder.machine.end_request(Failure(Cause.UNREACHABLE, "reset")) is True
    items = [msgspec.Raw(json.dumps(thing(name, 1)).encode()) for name in ("a", "b")]
    recorder.machine.feed_page(Page(ListMetadata("40", ""), items))
    assert recorder.changes == [("c", None, 1, True), ("c", 1, None, False)]


@pytest.mark.parametrize(
    "why",
    [
        None,
        failure(400, "BadRequest", "no"),
        failure(404, "NotFound", "no"),
        failure(410, "Expired", "no"),
        failure(429, "TooManyRequests", "no"),
        failure(500, "InternalError", "no"),
        failure(504, "Timeout", "no"),
        Failure(Cause.UNREACHABLE, "reset"),
        Failure(Cause.UNREADABLE, "no event"),
    ],
    ids=str,
)
def test_a_streamed_list_that_fails_is_asked_for_in_pages_and_a_page_that_fails_from_the_first(
    recorder: Recorder, why: Failure | None
) -> None:
    machine = recorder.machine
    machine.end_request(why)
    assert machine.parameters == {"limit": "500"}
    machine.feed_page(Page(ListMetadata("9", "more"), [msgspec.Raw(json.dumps(thing("a", 1)).encode())]))
    assert machine.end_request(why) is True
    assert machine.parameters == {"limit": "500"}


@pytest.mark.parametrize("why", [failure(401, "Unauthorized", "no"), failure(403, "Forbidden", "no")], ids=str)
def test_who_may_not_watch_gets_no_pages_that_would_never_be_brought_up_to_date(
    recorder: Recorder, why: Failure
) -> None:
    machine = recorder.machine
    assert machine.end_request(why) is True
    assert machine.parameters["watch"] == "true"
    assert not machine.synced


def test_a_server_that_does_not_stream_is_asked_for_pages(recorder: Recorder) -> None:
    machine = recorder.machine
    assert machine.end_request(failure(422, "Invalid", "sendInitialEvents is forbidden")) is False
    assert machine.parameters == {"limit": "500"}
    machine.feed_page(Page(ListMetadata("9", "more"), [msgspec.Raw(json.dumps(thing("a", 1)).encode())]))
    assert machine.parameters == {"limit": "500", "continue": "more"}
    assert not machine.synced
    machine.feed_page(Page(ListMetadata("9", ""), [msgspec.Raw(json.dumps(thing("b", 2)).encode())]))
    assert machine.synced
    assert machine.parameters["resourceVersion"] == "9"
    assert recorder.changes == [("a", None, 1, True), ("b", None, 1, True)]


def test_an_expired_continue_token_restarts_the_list(recorder: Recorder) -> None:
    machine = recorder.machine
    machine.end_request(failure(400, "BadRequest", "no such parameter"))
    machine.feed_page(Page(ListMetadata("9", "more"), [msgspec.Raw(json.dumps(thing("a", 1)).encode())]))
    assert machine.end_request(failure(410, "Expired", "the continue token is too old")) is True
    assert machine.parameters == {"limit": "500"}
    machine.feed_page(Page(ListMetadata("12", ""), [msgspec.Raw(json.dumps(thing("b", 2)).encode())]))
    assert recorder.changes == [("a", None, 1, True), ("b", None, 1, True), ("a", 1, None, False)]


@pytest.mark.parametrize("size", ["large", None, {"deep": []}, 1.5, [1], True])
def test_an_object_of_the_wrong_shape_is_named_and_the_stream_goes_on(recorder: Recorder, size: object) -> None:
    recorder.start_watching()
    recorder.feed(event("MODIFIED", thing("a", 8, size)), event("MODIFIED", thing("b", 9, 7)))
    (found,) = recorder.unreadable
    assert (found.key, found.uid) == (Key("ns", "a"), "uid-a")
    assert "$.spec.size" in found.problem
    assert recorder.changes == [("a", 1, None, False), ("b", 1, 7, False)]


def test_an_object_that_can_no_longer_be_read_loses_its_row_and_is_not_taken_for_deleted(recorder: Recorder) -> None:
    recorder.start_watching()
    key, store = Key("ns", "a"), recorder.machine.store
    recorder.feed(event("MODIFIED", thing("a", 8, "large")))
    assert store.get(key) is None, "the old row would be taken for the present"
    assert key in store.unread
    recorder.machine.end_request(failure(410, "Gone", "too old"))
    _ = recorder.machine.parameters
    recorder.feed(event("ADDED", thing("a", 8, "large")), event("ADDED", thing("b", 2)), bookmark(9, initial_end=True))
    assert key in store.unread
    recorder.feed(event("MODIFIED", thing("a", 10, 3)))
    assert (store.get(key), store.unread) == (3, {})
    recorder.feed(event("DELETED", thing("a", 11, "large")))
    assert (store.get(key), store.unread) == (None, {})
    assert recorder.changes == [("a", 1, None, False), ("a", None, 3, False), ("a", 3, None, False)]


@pytest.mark.parametrize("how", ["deleted", "missed"])
def test_an_unreadable_object_that_is_deleted_is_reported_though_it_had_no_row(recorder: Recorder, how: str) -> None:
    recorder.start_watching()
    recorder.feed(event("MODIFIED", thing("a", 8, "large")), event("MODIFIED", thing("a", 9, "larger")))
    assert recorder.changes == [("a", 1, None, False)]
    if how == "deleted":
        recorder.feed(event("DELETED", thing("a", 10, "larger")))
    else:
        recorder.machine.end_request(failure(410, "Gone", "too old"))
        _ = recorder.machine.parameters
        recorder.feed(event("ADDED", thing("b", 2)), bookmark(11, initial_end=True))
    assert recorder.changes == [("a", 1, None, False), ("a", None, None, False)]


def test_a_line_that_is_no_event_ends_the_stream_with_a_reason(recorder: Recorder) -> None:
    for line in (b"<html>", b'{"type": 5}', event("GREETING", {})):
        answer = recorder.machine.feed_line(line)
        assert answer is not None
        assert answer.cause is Cause.UNREADABLE


def test_an_error_that_is_no_status_ends_the_stream_and_not_the_watch(recorder: Recorder) -> None:
    for content in ({"code": "gone"}, {"reason": None}):
        answer = recorder.machine.feed_line(event("ERROR", content))
        assert answer is not None
        assert answer.cause is Cause.UNREADABLE


@pytest.mark.parametrize("levels", [900, 990, 2_000, 9_999])
def test_an_object_that_is_nested_deeper_than_a_decoder_goes_does_not_end_the_watch(
    recorder: Recorder, levels: int
) -> None:
    recorder.start_watching()
    deep = b"[" * levels + b"]" * levels
    line = event("MODIFIED", thing("a", 8, 5)).replace(b'"size"', b'"init": ' + deep + b', "size"')
    recorder.feed(line, event("MODIFIED", thing("b", 9, 7)))
    assert recorder.changes == [("a", 1, 5, False), ("b", 1, 7, False)]


def test_a_deleted_kind_is_listed_again_when_it_comes_back(recorder: Recorder) -> None:
    recorder.start_watching()
    assert (
        recorder.machine.end_request(failure(404, "NotFound", "the server could not find the requested resource"))
        is True
    )
    assert recorder.machine.phase is Phase.INITIAL


def test_selectors_are_sent_with_every_request() -> None:
    kind = Kind("", "v1", "pods", "Pod")
    spec = WatchSpec(kind, Wire, lambda wire: wire.spec.size, labels="app=x", fields="spec.nodeName=n")
    machine = Reflector(spec, Store[int](), lambda _: None, lambda _: None)
    assert {"labelSelector": "app=x", "fieldSelector": "spec.nodeName=n"}.items() <= machine.parameters.items()


def test_what_cannot_be_read_is_remembered_until_it_can_be_or_is_gone(recorder: Recorder) -> None:
    recorder.start_watching()
    machine = recorder.machine
    recorder.feed(*(event("ADDED", thing(name, 6, "large")) for name in ("mended", "deleted", "missed")))
    recorder.feed(event("MODIFIED", thing("mended", 7, 2)), event("DELETED", thing("deleted", 8, "large")))
    assert {key.name for key in machine.store.unread} == {"missed"}
    machine.end_request(failure(410, "Expired", "too old"))
    _ = machine.parameters
    recorder.feed(event("ADDED", thing("a", 1)), bookmark(9, initial_end=True))
    assert machine.store.unread == {}


class Sheet(msgspec.Struct, frozen=True):
    key: str  # of a door


class Card(Keyed, frozen=True):
    size: int


def test_only_a_keyed_row_brings_its_own_key_into_the_store() -> None:
    kind = Kind("example.dev", "v1", "things", "Thing")
    sheets, cards = Store[Sheet](), Store[Card]()
    plain = Reflector(WatchSpec(kind, Wire, lambda _: Sheet("brass")), sheets, lambda _: None, lambda _: None)
    own = Key("ns", "a")
    keyed = Reflector(WatchSpec(kind, Wire, lambda _: Card(own, 1)), cards, lambda _: None, lambda _: None)
    for machine in (plain, keyed):
        _ = machine.parameters
        assert machine.feed_line(event("ADDED", thing("a", 1))) is None
    assert list(sheets) == [own]
    assert next(iter(cards)) is own


# Streams that bring more than is wanted


@pytest.mark.parametrize(
    ("selector", "labels", "expected"),
    [
        ("", {}, True),
        ("a", {"a": ""}, True),
        ("a", {"b": ""}, False),
        ("!a", {"b": ""}, True),
        ("a,!b", {"a": "", "b": ""}, False),
        ("a=x", {"a": "x"}, True),
        ("a==x, b", {"a": "x"}, False),
        ("a!=x", {}, True),
        ("a!=x", {"a": "x"}, False),
    ],
)
def test_a_watch_selects_as_the_server_does(selector: str, labels: dict[str, str], expected: bool) -> None:
    kind = Kind("example.dev", "v1", "things", "Thing")
    assert WatchSpec(kind, Wire, lambda wire: wire, labels=selector).selects(labels) is expected


def labelled(name: str, version: int, **labels: str) -> dict[str, Any]:
    content = thing(name, version)
    content["metadata"]["labels"] = labels
    return content


def test_of_a_shared_stream_a_reflector_keeps_what_it_selects() -> None:
    recorder = Recorder()
    recorder.machine.spec = replace(recorder.machine.spec, labels="ours")
    recorder.machine.filters = True
    assert "labelSelector" not in recorder.machine.parameters
    recorder.feed(event("ADDED", labelled("a", 1, ours="yes")), event("ADDED", labelled("b", 2)))
    recorder.feed(bookmark(3, initial_end=True))
    assert list(recorder.machine.store) == [Key("ns", "a")]
    recorder.feed(event("MODIFIED", labelled("b", 4, ours="yes")), event("MODIFIED", labelled("a", 5)))
    assert list(recorder.machine.store) == [Key("ns", "b")]
    assert recorder.changes[-2:] == [("b", None, 1, False), ("a", 1, None, False)]
    assert recorder.machine.version == "5"


def test_a_list_whose_items_are_null_is_empty() -> None:
    """As API servers answer if they list the metadata of nothing, and do not stream lists, such as 1.33."""
    recorder = Recorder()
    page = msgspec.json.decode(b'{"metadata": {"resourceVersion": "7"}, "items": null}', type=Page)
    recorder.machine.feed_page(page)
    assert recorder.machine.synced
    assert recorder.machine.version == "7"
