"""The cases about many objects: lists in pages, and watches."""

import base64
import json

import msgspec

from foresail.kube.failures import Cause
from foresail.kube.pages import ListMetadata
from tests.cluster.things import THING
from tests.worlds.conformance import Cases, Seen, Stage, cause, seen

case = Cases()


class Listed(msgspec.Struct):
    metadata: ListMetadata
    items: list[Seen]

    @property
    def names(self) -> list[str]:
        return [item.metadata.name for item in self.items]


async def _page(stage: Stage, **parameters: str) -> Listed:
    page = await stage.server.page(THING, stage.namespace, parameters, Listed)
    assert isinstance(page, Listed), page
    return page


@case
async def a_list_comes_in_pages_of_one_and_the_same_state(stage: Stage) -> None:
    for name in "abcde":
        await stage.made(name)
    first = await _page(stage, limit="2")
    assert first.names == ["a", "b"]
    changed = seen(await stage.server.merge(THING, stage.key("d"), {"spec": {"size": 9}}, Seen))
    await stage.made("c1")
    gone = seen(await stage.server.get(THING, stage.key("e"), Seen))
    assert await stage.server.delete(THING, stage.key("e"), gone.metadata.uid) is None
    rest = await _page(stage, **{"limit": "2", "continue": first.metadata.next_page})
    last = await _page(stage, **{"limit": "2", "continue": rest.metadata.next_page})
    assert (rest.names, last.names, last.metadata.next_page) == (["c", "d"], ["e"], "")
    assert rest.items[1].spec == {}
    versions = {page.metadata.resource_version for page in (first, rest, last)}
    assert len(versions) == 1
    assert int(versions.pop()) < int(changed.metadata.version)
    assert (await _page(stage)).names == ["a", "b", "c", "c1", "d"]


@case
async def a_list_is_limited_by_its_selectors(stage: Stage) -> None:
    await stage.made("a", metadata={"labels": {"x": "1", "team": "red"}})
    await stage.made("b", metadata={"labels": {"x": "2"}})
    await stage.made("c")
    found = {
        labels: (await _page(stage, labelSelector=labels)).names
        for labels in ("x", "!x", "x=1", "x==2", "x!=1", "x,team=red")
    }
    assert found == {
        "x": ["a", "b"],
        "!x": ["c"],
        "x=1": ["a"],
        "x==2": ["b"],
        "x!=1": ["b", "c"],
        "x,team=red": ["a"],
    }
    assert (await _page(stage, fieldSelector="metadata.name=b")).names == ["b"]


@case
async def metadata_alone_is_listed_and_watched_without_the_rest(stage: Stage) -> None:
    made = await stage.made("a", metadata={"labels": {"x": "1"}}, spec={"size": 7})
    page = await stage.server.page(THING, stage.namespace, {"limit": "2"}, Listed, metadata_only=True)
    assert isinstance(page, Listed), page
    assert [(item.metadata, item.spec) for item in page.items] == [(made.metadata, {})]
    async with stage.watching(metadata_only=True) as watch:
        first = await watch.next()
        assert first is not None
        assert (first.shown, first.seen.metadata, first.seen.spec) == (("ADDED", "a"), made.metadata, {})
        bookmark = await watch.next(bookmarks=True)
        assert bookmark is not None
        assert bookmark.type == "BOOKMARK"
        changed = seen(await stage.server.merge(THING, stage.key("a"), {"spec": {"size": 8}}, Seen))
        second = await watch.next()
        assert second is not None
        assert (second.shown, second.seen.metadata, second.seen.spec) == (("MODIFIED", "a"), changed.metadata, {})


@case
async def a_watch_begins_with_the_present_and_says_when_it_is_whole(stage: Stage) -> None:
    made = [await stage.made(name) for name in "ba"]
    async with stage.watching() as watch:
        first, second = await watch.some(2)
        assert [first.shown, second.shown] == [("ADDED", "a"), ("ADDED", "b")]
        assert [second.seen, first.seen] == made
        bookmark = await watch.next(bookmarks=True)
        assert bookmark is not None
        assert bookmark.type == "BOOKMARK"
        assert bookmark.seen.metadata.annotations == {"k8s.io/initial-events-end": "true"}
        assert int(bookmark.seen.metadata.version) >= int(made[-1].metadata.version)


@case
async def an_empty_present_is_whole_at_once(stage: Stage) -> None:
    async with stage.watching() as watch:
        bookmark = await watch.next(bookmarks=True)
        assert bookmark is not None
        assert bookmark.seen.metadata.annotations == {"k8s.io/initial-events-end": "true"}


@case
async def a_watch_shows_each_change_once_and_in_order(stage: Stage) -> None:
    async with stage.watching() as watch:
        made = await stage.made("a")
        changed = seen(await stage.server.merge(THING, stage.key("a"), {"spec": {"size": 2}}, Seen))
        seen(await stage.server.merge(THING, stage.key("a"), {"spec": {"size": 2}}, Seen))
        ready = seen(await stage.server.merge(THING, stage.key("a"), {"status": {"x": 1}}, Seen, "status"))
        assert await stage.server.delete(THING, stage.key("a"), made.metadata.uid) is None
        await stage.made("b")
        events = await watch.some(5)
        shown = [event.shown for event in events]
        assert shown == [("ADDED", "a"), ("MODIFIED", "a"), ("MODIFIED", "a"), ("DELETED", "a"), ("ADDED", "b")]
        assert [event.seen for event in events[:3]] == [made, changed, ready]
        versions = [int(event.seen.metadata.version) for event in events]
        assert versions == sorted(set(versions)), "a deletion has a version of its own"
        assert events[3].seen.status == {"x": 1}


@case
async def a_watch_goes_on_after_a_version(stage: Stage) -> None:
    made = await stage.made("a")
    seen(await stage.server.merge(THING, stage.key("a"), {"spec": {"size": 2}}, Seen))
    await stage.made("b")
    async with stage.watching(resourceVersion=made.metadata.version) as watch:
        assert [event.shown for event in await watch.some(2)] == [("MODIFIED", "a"), ("ADDED", "b")]
        await stage.made("c")
        assert [event.shown for event in await watch.some(1)] == [("ADDED", "c")]


@case
async def a_held_object_changes_when_it_is_deleted_and_goes_when_it_is_free(stage: Stage) -> None:
    made = await stage.made("a", metadata={"finalizers": ["foresail.dev/hold"]})
    async with stage.watching(resourceVersion=made.metadata.version) as watch:
        assert await stage.server.delete(THING, stage.key("a"), made.metadata.uid) is None
        await stage.server.merge(THING, stage.key("a"), {"metadata": {"finalizers": None}}, Seen)
        going, gone = await watch.some(2)
        assert (going.type, bool(going.seen.metadata.going)) == ("MODIFIED", True)
        assert (gone.type, gone.seen.metadata.finalizers) == ("DELETED", ["foresail.dev/hold"])


@case
async def through_a_selector_an_object_comes_and_goes_with_its_label(stage: Stage) -> None:
    made = await stage.made("a", metadata={"labels": {"x": "1"}})
    async with stage.watching(resourceVersion=made.metadata.version, labelSelector="x") as watch:
        steps: list[dict[str, str | None]] = [{"x": "2"}, {"x": None}, {"y": "1"}, {"x": "3"}]
        for labels in steps:
            seen(await stage.server.merge(THING, stage.key("a"), {"metadata": {"labels": labels}}, Seen))
        await stage.made("stranger")
        now = seen(await stage.server.get(THING, stage.key("a"), Seen))
        assert await stage.server.delete(THING, stage.key("a"), now.metadata.uid) is None
        events = await watch.some(4)
        shown = [(event.type, event.seen.metadata.labels) for event in events]
        assert shown == [
            ("MODIFIED", {"x": "2"}),
            ("DELETED", {"x": "2"}),
            ("ADDED", {"x": "3", "y": "1"}),
            ("DELETED", {"x": "3", "y": "1"}),
        ]


@case
async def a_watch_of_one_name_shows_nothing_else(stage: Stage) -> None:
    await stage.made("other")
    async with stage.watching(fieldSelector="metadata.name=a") as watch:
        await stage.made("another")
        await stage.made("a")
        assert [event.shown for event in await watch.some(1)] == [("ADDED", "a")]


@case
async def a_watch_of_a_past_that_is_forgotten_says_so_and_ends(stage: Stage) -> None:
    async with stage.watching(resourceVersion="1") as watch:
        error = await watch.next()
        assert error is not None
        assert (error.type, error.object["code"], error.object["reason"]) == ("ERROR", 410, "Expired")
        assert await watch.next() is None


@case
async def a_page_of_a_past_that_is_forgotten_is_expired(stage: Stage) -> None:
    for name in "abc":
        await stage.made(name)
    token = (await _page(stage, limit="1")).metadata.next_page
    await stage.forget()
    # A real server has recent states in memory also after a compaction: a token is aged to be too old for sure.
    place = json.loads(base64.urlsafe_b64decode(token + "=="))
    aged = base64.urlsafe_b64encode(json.dumps({**place, "rv": 1}).encode()).decode().rstrip("=")
    parameters = {"limit": "1", "continue": aged}
    assert cause(await stage.server.page(THING, stage.namespace, parameters, Listed)) == (Cause.EXPIRED, 410)
