"""Long lists that the console keeps for a viewer: current, of that viewer only, and never after the token expired."""

import asyncio
import json
import queue
from collections.abc import Generator, Mapping
from pathlib import Path
from typing import Any

import msgspec
import pytest

from foresail.console import in_cluster, kept, recent
from foresail.console.kept import KeptList
from foresail.console.read import MOST_NAMESPACES
from foresail.kube.pages import ListMetadata, Page
from tests.unit.cli.test_coverage import listed, named
from tests.unit.console.test_console import everything
from tests.unit.console.test_console_in_cluster import ANN, BOB, Proxy, comes_true, pki, walk
from tests.unit.console.test_report import REVIEWS

__all__ = ["pki"]
NAMESPACES = "/api/v1/namespaces"


@pytest.fixture(autouse=True)
def _share_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let no page share what another one has just read, so that each list is seen."""
    monkeypatch.setattr(recent, "SECONDS", 0.0)


class Long:
    """A list of namespaces in pages of two, and its watch."""

    def __init__(self, *names: str) -> None:
        self.names, self.reads, self.watches = list(names), 0, list[Mapping[str, str]]()
        self._events: queue.Queue[bytes | None] = queue.Queue()

    def __call__(self, sent: Mapping[str, str]) -> Any:  # noqa: ANN401
        if "watch" in sent:
            self.watches.append(sent)
            return self._watched()
        at = int(sent.get("continue", "0"))
        is_choice = sent.get("limit") == str(MOST_NAMESPACES + 1)  # that of the header: one page, once a minute
        self.reads += not at and not is_choice
        further = str(at + 2) if at + 2 < len(self.names) else ""
        metadata = {"resourceVersion": "7", "continue": further}
        return {**listed(*map(named, self.names[at : at + 2])), "metadata": metadata}

    def report(self, kind: str, name: str) -> None:
        self._events.put(json.dumps({"type": kind, "object": named(name)}).encode() + b"\n")

    def end(self) -> None:
        self._events.put(None)

    def _watched(self) -> Generator[bytes]:
        while (line := self._events.get()) is not None:
            yield line

    async def is_watched(self) -> bool:
        return bool(self.watches)


def viewer(found: Long, **more: Any) -> dict[str, Any]:  # noqa: ANN401
    return {**everything(), NAMESPACES: found, **more}


def test_a_long_list_is_read_once_and_its_changes_are_seen(pki: Path) -> None:
    found = Long("shop", "team-a", "team-b")

    async def steps(proxy: Proxy) -> None:
        async def has_new() -> bool:
            return "team-new" in (await proxy.get("/namespaces")).text

        async def has_lost() -> bool:
            return "team-b" not in (await proxy.get("/namespaces")).text

        assert "team-b" in (await proxy.get("/namespaces")).text
        await comes_true(found.is_watched)
        assert found.watches[0]["resourceVersion"] == "7"
        found.report("ADDED", "team-new")
        await comes_true(has_new)
        found.report("DELETED", "team-b")
        await comes_true(has_lost)
        assert (found.reads, proxy.api.tokens) == (1, {ANN})
        found.end()

    walk(pki, steps, {ANN: viewer(found)})


def test_nothing_that_is_kept_is_shown_after_the_token_expired(pki: Path) -> None:
    found = Long("shop", "team-a", "team-b")
    known = {ANN: viewer(found)}

    async def steps(proxy: Proxy) -> None:
        await proxy.get("/namespaces")
        await comes_true(found.is_watched)
        answers = known.pop(ANN)
        answer = await proxy.get("/namespaces")
        assert (answer.status, "team-a" in answer.text) == (401, False)
        known[ANN] = answers
        assert "team-a" in (await proxy.get("/namespaces")).text
        assert found.reads == 2
        found.end()

    walk(pki, steps, known)


def test_a_list_that_the_viewer_may_no_longer_read_is_not_taken_from_what_is_kept(pki: Path) -> None:
    found, refused = Long("shop", "team-a", "team-b"), set[str]()

    def review(sent: Mapping[str, Any]) -> dict[str, Any]:
        return {"status": {"allowed": sent["spec"]["resourceAttributes"]["resource"] not in refused}}

    async def steps(proxy: Proxy) -> None:
        await proxy.get("/namespaces")
        await comes_true(found.is_watched)
        refused.add("namespaces")
        await proxy.get("/namespaces")
        assert found.reads == 2  # the API server decides
        found.end()

    walk(pki, steps, {ANN: viewer(found, **{REVIEWS: review})})


def test_who_may_not_watch_reads_each_time_and_asks_for_no_watch(pki: Path) -> None:
    found = Long("shop", "team-a", "team-b")

    def review(sent: Mapping[str, Any]) -> dict[str, Any]:
        return {"status": {"allowed": sent["spec"]["resourceAttributes"]["verb"] != "watch"}}

    async def steps(proxy: Proxy) -> None:
        for _ in range(3):
            assert "team-a" in (await proxy.get("/namespaces")).text
        assert (found.reads, found.watches) == (3, [])

    walk(pki, steps, {ANN: viewer(found, **{REVIEWS: review})})


def test_after_a_change_of_the_viewer_everything_is_read_again(pki: Path) -> None:
    found = Long("shop", "team-a", "team-b")

    async def steps(proxy: Proxy) -> None:
        await proxy.sign_in()
        await comes_true(found.is_watched)
        found.names.append("team-own")  # no watch has reported it yet
        assert (await proxy.post("/ns/shop/backup", proxy.own)).status == 303
        assert "team-own" in (await proxy.get("/namespaces")).text
        found.end()
        found.end()

    walk(pki, steps, {ANN: viewer(found)})


def test_viewers_keep_nothing_for_each_other(pki: Path) -> None:
    of_ann, of_bob = Long("shop", "team-a", "team-b"), Long("shop", "team-c", "team-d")

    async def steps(proxy: Proxy) -> None:
        await proxy.get("/namespaces")
        await comes_true(of_ann.is_watched)
        text = (await Proxy(proxy.port, proxy.api, BOB).get("/namespaces")).text
        assert ("team-a" in text, "team-c" in text, of_bob.reads) == (False, True, 1)
        await comes_true(of_bob.is_watched)
        of_ann.end()
        of_bob.end()

    walk(pki, steps, {ANN: viewer(of_ann), BOB: viewer(of_bob)})


def test_a_list_whose_watch_fails_is_read_again(pki: Path) -> None:
    found = Long("shop", "team-a", "team-b")

    async def steps(proxy: Proxy) -> None:
        async def is_read_again() -> bool:
            await proxy.get("/namespaces")
            return found.reads > 1

        await proxy.get("/namespaces")
        await comes_true(found.is_watched)
        found.report("ERROR", "expired")
        await comes_true(is_read_again)
        found.end()
        found.end()

    walk(pki, steps, {ANN: viewer(found)})


def test_short_lists_and_lists_beyond_the_bound_are_not_kept(pki: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kept, "MOST_BYTES", 10)
    short, long = Long("shop"), Long("shop", "team-a", "team-b")

    async def steps(proxy: Proxy) -> None:
        for token, found in ((ANN, short), (BOB, long)):
            proxy.token = token
            for _ in range(2):
                assert (await proxy.get("/namespaces")).status == 200
            assert (found.reads, found.watches) == (2, [])

    walk(pki, steps, {ANN: viewer(short), BOB: viewer(long)})


@pytest.mark.parametrize("bound", ["MOST_LISTS", "MOST_LISTS_EACH", "MOST_BYTES_EACH"])
def test_neither_one_viewer_nor_all_keep_more_than_the_bounds(
    pki: Path, monkeypatch: pytest.MonkeyPatch, bound: str
) -> None:
    monkeypatch.setattr(kept, bound, 0)
    found = Long("shop", "team-a", "team-b")

    async def steps(proxy: Proxy) -> None:
        for _ in range(2):
            assert "team-b" in (await proxy.get("/namespaces")).text
        assert (found.reads, found.watches) == (2, [])

    walk(pki, steps, {ANN: viewer(found)})


def test_a_token_that_is_refused_drops_nothing_of_others(pki: Path) -> None:
    found = Long("shop", "team-a", "team-b")

    async def steps(proxy: Proxy) -> None:
        stranger = Proxy(proxy.port, proxy.api, "expired")
        slow = asyncio.create_task(proxy.get("/namespaces"))
        while not slow.done():
            assert (await stranger.get("/namespaces")).status == 401
        await comes_true(found.is_watched)
        found.end()

    walk(pki, steps, {ANN: viewer(found)})


@pytest.mark.parametrize(("where", "bound"), [(in_cluster, "MOST_ANSWER"), (kept, "MOST_READ")])
def test_a_list_that_would_fill_the_memory_is_refused(
    pki: Path, monkeypatch: pytest.MonkeyPatch, where: object, bound: str
) -> None:
    monkeypatch.setattr(where, bound, 1 << 20)
    found, large = Long("shop", "team-a", "team-b"), named("team-c")
    large["metadata"]["annotations"] = {"a": "x" * (1 << 20)}

    async def steps(proxy: Proxy) -> None:
        assert (await proxy.get("/namespaces")).status == 200
        answer = await Proxy(proxy.port, proxy.api, BOB).get("/namespaces")
        assert "the list of namespaces is too large" in answer.text
        assert "use the command line" in answer.text
        await comes_true(found.is_watched)
        found.end()

    walk(pki, steps, {ANN: viewer(found), BOB: {**everything(), NAMESPACES: listed(large)}})


def test_what_no_page_shows_does_not_fill_the_memory(pki: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kept, "MOST_READ", 64 << 10)
    found, fat = Long("shop", "team-a", "team-b"), named("team-c")
    fat["metadata"] |= {
        "finalizers": [f"a.b/{number}" for number in range(9_000)],
        "managedFields": [{"x": "y" * 9_000}],
    }

    async def steps(proxy: Proxy) -> None:
        answer = await Proxy(proxy.port, proxy.api, BOB).get("/namespaces")
        assert "team-c" in answer.text

    walk(pki, steps, {ANN: viewer(found), BOB: {**everything(), NAMESPACES: listed(fat)}})
    page = kept.slimmed(Page(ListMetadata("7"), [msgspec.Raw(json.dumps(fat).encode())]))
    assert [len(bytes(item)) < 1_000 for item in page.items or ()] == [True]


def test_five_thousand_backups_of_a_namespace_are_shown() -> None:
    write = {"apiVersion": "oadp.openshift.io/v1alpha1", "fieldsType": "FieldsV1", "manager": "foresail"}
    write |= {"operation": "Update", "time": "2026-11-19T15:05:17Z"}
    states: dict[str, Any] = {
        "f:expiration": {},
        "f:phase": {},
        "f:progress": {"f:itemsBackedUp": {}},
        "f:startTimestamp": {},
    }
    backup = named("run-00059", "team-0000", spec={"backupSpec": {}}, status={"phase": "Created"})
    velero = {"phase": "Completed", "progress": {"itemsBackedUp": 40, "totalItems": 40}}
    velero |= {"expiration": "2026-12-19T13:04:40Z", "startTimestamp": "2026-11-19T13:04:40Z"}
    backup["status"]["veleroBackup"] = {"name": "v", "status": velero}
    groups = {"foresail.dev/requester": "admin", "foresail.dev/requester-groups": "system:masters"}
    backup["metadata"] |= {"uid": "6639a139-1f31-4d62-8c7a-aa8b0a393a43", "annotations": groups, "managedFields": [
        {**write, "fieldsV1": {"f:spec": {".": {}, "f:backupSpec": {}}}},
        {**write, "fieldsV1": {"f:status": {".": {}, "f:veleroBackup": {"f:status": states}}}, "subresource": "status"},
    ]}  # fmt: skip
    page = kept.slimmed(Page(ListMetadata("7"), [msgspec.Raw(json.dumps(backup).encode())]))
    assert 5_000 * sum(len(bytes(item)) for item in page.items or ()) < kept.MOST_READ_OF_NAMESPACE


def line(kind: str, name: str, version: str = "9", **labels: str) -> bytes:
    body = {"metadata": {"name": name, "resourceVersion": version, "labels": labels}}
    return json.dumps({"type": kind, "object": body}).encode()


def names(found: KeptList, label: str = "") -> list[str]:
    return [json.loads(bytes(each))["metadata"]["name"] for each in found.items(label)]


def a_list(*found: str) -> KeptList:
    items = [msgspec.Raw(json.dumps(named(each)).encode()) for each in found]
    return KeptList([Page(ListMetadata("7"), items[:2]), Page(ListMetadata("8"), items[2:])])


def test_a_kept_list_is_in_order_and_selects_by_label() -> None:
    found = a_list("b", "d", "e")
    assert (names(found), found.version) == (["b", "d", "e"], "8")
    for each in (line("ADDED", "c", x="1"), line("DELETED", "d"), line("MODIFIED", "a"), line("BOOKMARK", "", "12")):
        assert found.feed(each)
    assert (names(found), names(found, "x"), found.version) == (["a", "b", "c", "e"], ["c"], "12")
    assert found.feed(line("ADDED", "d"))
    assert names(found) == ["a", "b", "c", "d", "e"]
    assert not found.feed(line("ERROR", ""))


def test_a_list_that_has_changed_much_is_not_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kept, "MOST_CHANGES", 2)
    found = a_list("a")
    assert [found.feed(line("ADDED", name)) for name in ("b", "b", "c", "d")] == [True, True, True, False]
