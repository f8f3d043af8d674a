"""The restore wizard of the console: a time line of copies, the plan of one, and the restore."""

import asyncio
import gzip
import io
import json
import re
import ssl
import tarfile
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from functools import partial
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any

import msgspec
import pytest

from foresail.api.policy import SelfServicePolicy
from foresail.cli.access.cluster import connected
from foresail.cli.errors import CommandError
from foresail.cli.main import parser
from foresail.cli.policy.get import existing_resource_policies
from foresail.cli.restore_plan.planning import RestorePlan
from foresail.cli.tenant.files import Access
from foresail.cli.tenant.since import Since
from foresail.cli.tenant.tenant_request import TenantRequest, decode_request, restorable
from foresail.console import read, server
from foresail.console.layout import ROWS, Search, Site
from foresail.console.pages import own_overview
from foresail.console.plan_pages import MOST_PICKED, Wish, planned
from foresail.console.read import OwnNamespace, Reader
from foresail.console.report.snapshot import Wanted
from foresail.console.restore_pages import Copies, choose
from foresail.console.timeline import window_of
from foresail.console.turns import Turns
from foresail.kube.clock import now
from foresail.plan import Key
from foresail.proof.restore_plan.compare import Change
from foresail.proof.restore_plan.decide import Outcome, Verdict
from foresail.proof.restore_plan.items import ItemKey
from foresail.selfservice.families import BACKUPS
from tests.unit.cli.test_coverage import listed
from tests.unit.console.test_console import SERVED, XSS, Browser, browse, copy_of, everything
from tests.unit.console.test_console_acts import hidden, keeping
from tests.unit.console.test_report import NOW, REVIEWS, TENANTS, Outline, figures
from tests.unit.served import served

SITE = Site("mount", "secret", "shop", is_administrator=False)
FILES = f"{TENANTS}/nonadmindownloadrequests"
MAPS = "/api/v1/namespaces/shop/configmaps"


class Answers(dict[str, Any]):
    """Answers to paths, also to those of download requests, whose names are random."""

    def __contains__(self, path: object) -> bool:
        return super().__contains__(self._known(str(path)))

    def get(self, path: str, default: Any = None) -> Any:  # noqa: ANN401
        return super().get(self._known(path), default)

    def _known(self, path: str) -> str:
        return FILES if path.startswith(f"{FILES}/") else path


def archive(*names: str) -> bytes:
    """Return the contents of a backup: ConfigMaps."""
    file = io.BytesIO()
    with tarfile.open(fileobj=file, mode="w:gz") as content:
        for name in names:
            metadata = {"name": name, "namespace": "shop"}
            body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"a": "old"}}
            data = json.dumps(body).encode()
            entry = tarfile.TarInfo(f"resources/configmaps/namespaces/shop/{name}.json")
            entry.size = len(data)
            content.addfile(entry, io.BytesIO(data))
    return file.getvalue()


@contextmanager
def bucket(*given: bytes, **named: bytes) -> Iterator[str]:
    """Serve files one after the other, or by their kinds; by default the contents of a backup and its volumes."""
    files = list(given)
    by_kind = named or {"BackupContents": archive("kept", "lost"), "BackupVolumeInfos": gzip.compress(b"[]")}

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            body = files.pop(0) if given else by_kind[self.path.rpartition("/")[2]]
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            pass

    with served(Handler) as server:
        yield f"http://127.0.0.1:{server.server_port}"


def with_bucket(url: str) -> Answers:
    """Return a namespace with one of the two ConfigMaps, and a bucket with both."""
    kinds: dict[str, str] = {}  # of the requests, by their names: both files are read at once

    def signed(path: str, sent: dict[str, Any]) -> dict[str, Any]:
        if "spec" in sent:
            kinds[sent["metadata"]["name"]] = sent["spec"]["target"]["kind"]
        name = sent["metadata"]["name"] if "spec" in sent else path.rpartition("/")[2]
        metadata = {"name": name, "namespace": "shop", "uid": "d", "creationTimestamp": "2026-11-16T00:00:00Z"}
        return {
            "metadata": metadata,
            "spec": {"target": {"kind": kinds[name], "name": "copy"}},
            "status": {"velero": {"status": {"phase": "Processed", "downloadURL": f"{url}/{kinds[name]}"}}},
        }

    kept = {"metadata": {"name": "kept", "namespace": "shop"}, "data": {"a": "new"}}
    return Answers(
        {
            **everything(),
            FILES: signed,
            "/apis": {"items": []},
            MAPS: listed(),
            f"{MAPS}/kept": {"apiVersion": "v1", "kind": "ConfigMap", **kept},
            "/api/v1/namespaces/shop/resourcequotas": listed(),
            "/apis/storage.k8s.io/v1/storageclasses": listed(),
            "/api/v1/namespaces/shop": {"metadata": {"name": "shop", "labels": SERVED}},
            f"{TENANTS}/nonadminrestores": {"metadata": {"name": "r"}},
        }
    )


def decoded(body: dict[str, Any]) -> TenantRequest:
    return decode_request(BACKUPS, json.dumps(body).encode())


def copies(*days: int) -> list[TenantRequest]:
    return [decoded(copy_of(f"copy-{day}", day=day)) for day in days]


def test_the_copies_are_on_a_time_line_with_the_newest_first_and_chosen() -> None:
    found = restorable(copies(3, 9, 5), NOW)
    page = choose(SITE, "shop", Copies(found, may_restore=True, may_plan=True), "", Search(), NOW)
    places = [page.index(f'value="copy-{day}"') for day in (9, 5, 3)]
    assert places == sorted(places)
    assert 'value="copy-9" checked' in page
    assert "Show the plan" in page


def test_what_a_rollback_took_back_is_named_and_chosen_for_nobody() -> None:
    before = copy_of("before", day=9)
    before["metadata"]["annotations"] = {"foresail.dev/rollback-uid": "of-a-rollback"}
    found = restorable([decoded(before), *copies(5)], NOW)
    page = choose(SITE, "shop", Copies(found, may_restore=True, may_plan=True), "", Search(), NOW)
    assert 'value="copy-5" checked' in page
    assert "taken before a rollback, with what that took back" in page
    chosen = choose(SITE, "shop", Copies(found, may_restore=True, may_plan=True), "before", Search(), NOW)
    assert 'value="before" checked' in chosen, "by its link"


def test_a_tenant_finds_the_newest_backups_on_the_first_page() -> None:
    found = tuple(copies(*range(12, 0, -1)))
    window = window_of("day", "-300", NOW)  # the time line shows none of them
    page = own_overview(SITE, OwnNamespace(figures(), found, (), (), may_back_up=True, may_pause=True), [], window)
    assert "/mount/ns/shop/backup/copy-12" in page
    assert "/mount/ns/shop/backup/copy-2" not in page  # ten of them
    empty = OwnNamespace(figures(), (), (), (), may_back_up=True, may_pause=True)
    assert "Newest" not in own_overview(SITE, empty, [], window)


def test_every_page_links_the_namespace_of_a_tenant() -> None:
    assert ("/mount/ns/shop", "Namespace shop") in SITE.pages
    everything = Site("mount", "secret", "shop", is_administrator=True)
    assert ("/mount/namespaces", "Namespaces") in everything.pages


def test_a_copy_of_the_link_is_chosen_on_its_page() -> None:
    many = [decoded(copy_of(f"copy-{number:03}")) for number in range(ROWS + 5)]
    found = Copies(restorable(many, NOW), may_restore=True, may_plan=True)
    page = choose(SITE, "shop", found, "copy-001", Search(), NOW)
    assert 'value="copy-001" checked' in page
    assert "page 2 of 2" in page
    assert "page 1 of 2" in choose(SITE, "shop", found, "unknown", Search(), NOW)
    assert "page 2 of 2" in choose(SITE, "shop", found, "", Search(page=9), NOW)


@pytest.mark.parametrize(
    ("status", "is_offered"),
    [
        ({"phase": "Completed"}, True),
        ({"phase": "PartiallyFailed"}, True),
        ({"phase": "InProgress"}, False),
        ({"phase": "Failed"}, False),
        ({"phase": "Completed", "expiration": "2026-11-16T11:59:59Z"}, False),
    ],
)
def test_only_finished_copies_that_have_not_expired_are_offered(status: dict[str, str], *, is_offered: bool) -> None:
    body = copy_of("copy")
    body["status"]["veleroBackup"]["status"] = status
    assert bool(restorable([decoded(body)], NOW)) is is_offered


def test_a_copy_that_is_being_deleted_is_not_offered() -> None:
    body = copy_of("copy")
    body["spec"]["deleteBackup"] = True
    assert restorable([decoded(body)], NOW) == []


def test_what_an_access_review_refuses_is_not_offered() -> None:
    found = restorable(copies(3), NOW)
    page = choose(SITE, "shop", Copies(found, may_restore=False, may_plan=True), "", Search(), NOW)
    assert 'method="post"' not in page
    assert "You may not create NonAdminRestores" in page
    page = choose(SITE, "shop", Copies(found, may_restore=True, may_plan=False), "", Search(), NOW)
    assert "Show the plan" not in page
    assert "Continue without a plan" in page
    assert 'action="/mount/ns/shop/plan"' in page  # which names the copy that is confirmed by its UID
    assert 'action="/mount/ns/shop/restore"' not in page


@pytest.mark.parametrize(
    ("choices", "offered", "told"),
    [
        (("none", "update"), ["none", "update"], ""),
        (("none",), ["none"], "allows nothing else"),
        (("update",), ["update"], "allows nothing else"),
        ((), [], "Self-service is not enabled"),
        (None, ["none", "update"], "You may not read the policy"),
    ],
)
def test_what_the_policy_refuses_is_not_offered(choices: tuple[str, ...] | None, offered: list[str], told: str) -> None:
    found = Copies(restorable(copies(3), NOW), may_restore=True, may_plan=True, choices=choices)
    page = choose(SITE, "shop", found, "", Search(), NOW)
    assert [value for value in ("none", "update") if f'name="policy" value="{value}"' in page] == offered
    assert told in page
    assert ('method="post"' in page) is bool(offered)


@pytest.mark.parametrize(
    ("restore", "allowed"),
    [
        ({}, ("none",)),
        ({"allowed": {"existingResourcePolicies": ["update"]}}, ("none", "update")),
        ({"required": {"existingResourcePolicy": "update"}}, ("update",)),
    ],
)
def test_choices_follow_the_rule_of_the_operator(restore: dict[str, Any], allowed: tuple[str, ...]) -> None:
    body = {"metadata": {"name": "default"}, "spec": {"namespaceSelector": {}, "restore": restore}}
    assert existing_resource_policies(msgspec.convert(body, SelfServicePolicy)) == allowed


def test_a_viewer_without_rights_is_offered_no_restore(tmp_path: Path) -> None:
    async def walk(browser: Browser) -> None:
        await browser.sign_in()
        found = [await browser.get(path) for path in ("/ns/shop", "/ns/shop/backup/first", "/ns/shop/restore")]
        assert not any('method="post"' in each.text or 'shop/restore"' in each.text for each in found)

    browse(tmp_path, walk, {**everything(), REVIEWS: {"status": {"allowed": False}}})


def verdict(name: str, outcome: Outcome, **fields: Any) -> Verdict:  # noqa: ANN401
    return Verdict(ItemKey("configmaps", "shop", name), outcome, **fields)


def plan_page(word: str = "word", policy: str = "none", size: int = 1) -> str:
    changed = (Change(word, word, word),)
    verdicts = (
        *(verdict(f"{word}{number}", Outcome.CREATE) for number in range(size)),
        verdict(word, Outcome.UPDATE, changes=changed),
        verdict(word, Outcome.REFUSED, reason=word, warning=word),
    )
    wish = Wish(copies(3)[0], policy)
    return planned(SITE, wish, RestorePlan("copy-3", verdicts, [(ItemKey("nodes", "", word), word)]), NOW)


def test_a_plan_names_every_item_in_groups_and_is_confirmed_by_a_form() -> None:
    page = plan_page()
    outcomes = [page.rindex(f">{word}<") for word in ("differs", "create", "refused")]
    assert outcomes == sorted(outcomes)
    for each in ("configmaps/shop/word", 'name="uid" value="uid-of-copy-3"', 'name="csrf" value="secret"'):
        assert each in page
    assert "foresail restore plan --from-backup copy-3 -n shop<" in page
    assert "--existing-resource-policy update" in plan_page(policy="update")


def test_a_plan_of_very_many_items_and_long_reasons_is_cut() -> None:
    page = plan_page("x" * 100_000, size=5000)
    assert len(page.encode()) < 4 << 20
    assert "4002 more items" in page


def test_a_hostile_plan_changes_no_element() -> None:
    assert Outline(plan_page(XSS)).tags == Outline(plan_page()).tags


def test_a_tenant_plans_a_restore_and_confirms_it(tmp_path: Path) -> None:
    async def walk(browser: Browser) -> None:
        await browser.sign_in()
        answer = await browser.post("/ns/shop/plan", {**browser.own, "backup": "copy", "policy": "none"})
        assert answer.status == 200, answer.text
        assert "Nothing is restored yet" in answer.text
        shown = Outline(answer.text).texts
        assert "configmaps/shop/lost" in shown, answer.text
        place = shown.index("data.a")
        assert shown[place + 1 : place + 3] == ["new", "old"], shown  # side by side
        assert not any("nonadminrestores" in each for each in browser.changes)
        deleted = [each for each in browser.changes if each.startswith("DELETE")]
        assert len(deleted) == 2  # both files have their request, and both are deleted

        wish = {**browser.own, "backup": "copy", "uid": "uid-of-copy", "policy": "update"}
        answer = await browser.post("/ns/shop/confirm", wish)
        assert "OVERWRITTEN" in answer.text
        assert "Type shop to confirm" in answer.text
        for typed in ({}, {"typed": ""}, {"typed": "Shop"}, {"typed": "bank"}):
            assert (await browser.post("/ns/shop/restore", {**wish, **typed})).status == 400
        assert not any("nonadminrestores" in each for each in browser.changes)
        answer = await browser.post("/ns/shop/restore", {**wish, "typed": "shop"})
        assert answer.status == 303
        assert answer.headers["location"].startswith(f"{browser.base}/ns/shop/restore/copy-2")
        body = browser.server.bodies[f"POST {TENANTS}/nonadminrestores"]
        assert body["spec"] == {"restoreSpec": {"backupName": "copy", "existingResourcePolicy": "update"}}

    with bucket() as url:
        browse(tmp_path, walk, with_bucket(url))


def test_a_plan_reads_nothing_that_the_viewer_may_not_read(tmp_path: Path) -> None:
    secret = {"/apis/storage.k8s.io/v1/storageclasses", MAPS, f"{MAPS}/kept", "/api/v1/namespaces/shop"}

    def review(_: str, sent: dict[str, Any]) -> dict[str, Any]:
        refused = ("storageclasses", "configmaps", "namespaces")
        return {"status": {"allowed": sent["spec"]["resourceAttributes"]["resource"] not in refused}}

    async def walk(browser: Browser) -> None:
        await browser.sign_in()
        asked = len(browser.server.asked)
        answer = await browser.post("/ns/shop/plan", {**browser.own, "backup": "copy", "policy": "none"})
        assert "configmaps/shop/lost" in Outline(answer.text).texts, answer.text
        assert not secret & {each.removeprefix("GET ") for each in browser.server.asked[asked:]}

    with bucket() as url:
        browse(tmp_path, walk, Answers({**with_bucket(url), REVIEWS: review}))


def test_the_time_of_a_plan_counts_from_its_turn(tmp_path: Path) -> None:
    begun = list[int]()

    async def walk(browser: Browser) -> None:
        args = parser().parse_args(["console", "--kubeconfig", str(browser.server.kubeconfig)])
        async with connected(args) as cluster:
            reader = Reader(cluster, Wanted("velero", "shop"), "foresail", Turns().share())
            copy = Key("shop", "copy")

            def access(number: int) -> Access:
                begun.append(number)
                return Access(ssl.create_default_context(), now())

            plans = [asyncio.create_task(reader.plan(copy, "none", partial(access, each))) for each in (1, 2)]
            await asyncio.sleep(0)
            assert begun == [1]
            found = await asyncio.gather(*plans, return_exceptions=True)
            assert all(isinstance(each, CommandError) for each in found)  # there is no bucket
            assert begun == [1, 2]

    browse(tmp_path, walk)


def test_a_plan_that_takes_too_long_is_given_up_with_its_reason(tmp_path: Path) -> None:
    async def walk(browser: Browser) -> None:
        args = parser().parse_args(["console", "--kubeconfig", str(browser.server.kubeconfig)])
        async with connected(args) as cluster:
            reader = Reader(cluster, Wanted("velero", "shop"), "foresail", Turns().share())
            access = Access(ssl.create_default_context(), now())
            with pytest.raises(CommandError, match="the plan of NonAdminBackup shop/copy takes longer than"):
                await reader.plan(Key("shop", "copy"), "none", lambda: access, timedelta())

    browse(tmp_path, walk)


def test_without_a_plan_the_reason_is_shown_and_the_restore_still_needs_a_confirmation(tmp_path: Path) -> None:
    async def walk(browser: Browser) -> None:
        await browser.sign_in()
        answer = await browser.post("/ns/shop/plan", {**browser.own, "backup": "copy", "policy": "none"})
        assert "There is no plan" in answer.text
        assert "Restore without a plan" in answer.text
        assert not any("nonadminrestores" in each for each in browser.changes)

    browse(tmp_path, walk)


@pytest.mark.parametrize(("limit", "problem"), [("LARGEST_PLAN", "larger than"), ("MOST_VALUES", "more than 3 values")])
def test_a_backup_that_is_too_large_for_the_console_is_planned_by_the_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, limit: str, problem: str
) -> None:
    monkeypatch.setattr(read, limit, 3)

    async def walk(browser: Browser) -> None:
        await browser.sign_in()
        answer = await browser.post("/ns/shop/plan", {**browser.own, "backup": "copy", "policy": "none"})
        assert "There is no plan" in answer.text
        assert problem in answer.text
        assert "run foresail restore plan --from-backup copy -n shop" in answer.text
        assert "Restore without a plan" in answer.text

    with bucket() as url:
        browse(tmp_path, walk, with_bucket(url))


def test_a_restore_that_is_confirmed_twice_runs_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    answers = everything()
    names = keeping(answers, f"{TENANTS}/nonadminrestores")

    async def walk(browser: Browser) -> None:
        await browser.sign_in()
        wish = {**browser.own, "backup": "copy", "policy": "update", "uid": "uid-of-copy"}
        fields = {**hidden((await browser.post("/ns/shop/confirm", wish)).text), "typed": "shop"}
        first = await browser.post("/ns/shop/restore", fields)
        monkeypatch.setattr(server, "now", lambda: now() + timedelta(seconds=2))
        second = await browser.post("/ns/shop/restore", fields)
        assert (first.status, second.status, len(names)) == (303, 303, 1), second.text
        assert first.headers["location"] == second.headers["location"]

    browse(tmp_path, walk, answers)


def test_a_backup_that_was_replaced_meanwhile_is_not_restored(tmp_path: Path) -> None:
    async def walk(browser: Browser) -> None:
        await browser.sign_in()
        for uid in ({"uid": "of an earlier one"}, {"uid": ""}, {}):
            wish = {**browser.own, "backup": "copy", "policy": "none", "typed": "shop", **uid}
            answer = await browser.post("/ns/shop/restore", wish)
            assert answer.status == 502
            assert "is another one than you have seen" in answer.text
        assert browser.changes == []

    browse(tmp_path, walk)


@pytest.mark.parametrize(
    "fields",
    [
        {"backup": "", "policy": "none"},
        {"backup": "../../secrets/a", "policy": "none"},
        {"backup": "copy?x=y", "policy": "none"},
        {"backup": "copy\r\nX: y", "policy": "none"},
        {"backup": "copy", "policy": "everything"},
        {"backup": "copy"},
    ],
)
def test_a_form_with_other_values_than_it_offers_reaches_nothing(tmp_path: Path, fields: dict[str, str]) -> None:
    async def walk(browser: Browser) -> None:
        await browser.sign_in()
        asked = len(browser.server.asked)
        for path in ("/ns/shop/plan", "/ns/shop/restore"):
            assert (await browser.post(path, {**browser.own, **fields})).status == 400
        assert browser.server.asked[asked:] == []

    browse(tmp_path, walk)


def test_a_restore_shows_its_progress(tmp_path: Path) -> None:
    answers = everything()
    velero = {"phase": "InProgress", "progress": {"totalItems": 8, "itemsRestored": 3}}
    kind = {"apiVersion": "oadp.openshift.io/v1alpha1", "kind": "NonAdminRestore"}
    status = {"phase": "Created", "veleroRestore": {"name": "v", "status": velero}}
    body = {**kind, "metadata": {"name": "r", "namespace": "shop", "uid": "u"}, "spec": {"restoreSpec": {}}}
    answers[f"{TENANTS}/nonadminrestores/r"] = {**body, "status": status}

    async def walk(browser: Browser) -> None:
        await browser.sign_in()
        page = (await browser.get("/ns/shop/restore/r")).text
        assert '<progress max="8" value="3"' in page
        assert "3 of 8" in page

    browse(tmp_path, walk, answers)


def test_what_follows_by_itself_and_what_is_new_are_groups_of_their_own() -> None:
    pod = verdict("web-1", Outcome.REFUSED, reason="a field is immutable")
    gone = verdict("gone", Outcome.CREATE)
    since = Since([("ConfigMap", "rogue")], frozenset({pod.target}), "2 kinds could not be listed")
    plan = RestorePlan("copy-3", (pod, gone))
    page = planned(SITE, Wish(copies(3)[0], "none"), plan, NOW, since)
    texts = " ".join(Outline(page).texts)
    assert "Follows by itself (1)" in texts
    assert "Refused" not in texts
    assert "New since then (1)" in texts
    assert "ConfigMap/rogue" in texts
    assert "Not known in full: 2 kinds could not be listed." in texts
    found = planned(SITE, Wish(copies(3)[0], "none", search="WEB"), plan, NOW, since)
    assert "configmaps/shop/web-1" in found
    assert "configmaps/shop/gone" not in found
    assert "ConfigMap/rogue" not in found


def test_volumes_and_very_many_objects_cannot_be_ticked() -> None:
    claim = Verdict(ItemKey("persistentvolumeclaims", "shop", "data"), Outcome.CREATE)
    wish = Wish(copies(3)[0], "none")
    page = planned(SITE, wish, RestorePlan("copy-3", (claim, verdict("a", Outcome.CREATE))), NOW)
    assert re.findall(r'name="pick" value="([^"]*)"', page) == ["configmaps/a"]
    many = tuple(verdict(f"a-{number}", Outcome.CREATE) for number in range(MOST_PICKED + 1))
    page = planned(SITE, wish, RestorePlan("copy-3", many), NOW)
    assert 'name="pick"' not in page
    assert "Single objects can be ticked where there are at most 200" in page


TICKED = {"backup": "copy", "uid": "uid-of-copy", "policy": "update"}


def ticking(url: str) -> Answers:
    """Return a namespace that takes ConfigMaps, which a plan compares with the backup."""
    kept = with_bucket(url)[f"{MAPS}/kept"]
    kept["metadata"]["resourceVersion"] = "7"
    return Answers({**with_bucket(url), f"{MAPS}/kept": kept, MAPS: lambda _, sent: sent or listed(kept)})


def written(browser: Browser) -> list[str]:
    """Return the objects that were written and stay."""
    pairs = zip(browser.server.asked, browser.server.queries, strict=True)
    return [asked for asked, query in pairs if MAPS in asked and not asked.startswith("GET") and "dryRun" not in query]


def test_ticked_objects_are_written_as_the_viewer_and_nothing_else(tmp_path: Path) -> None:
    async def walk(browser: Browser) -> None:
        await browser.sign_in()
        wish = {**browser.own, **TICKED, "what": "ticked", "pick": "configmaps/kept"}
        answer = await browser.post("/ns/shop/confirm", wish)
        assert "Overwrite 1 object in" in answer.text
        assert "--existing-resource-policy update --only configmaps/kept" in answer.text
        fields = dict(re.findall(r'type="hidden" name="(\w+)" value="([^"]*)"', answer.text))
        assert written(browser) == []
        assert (await browser.post("/ns/shop/restore", {**fields, "typed": "bank"})).status == 400
        for seen in ("", "0" * 64):
            refused = await browser.post("/ns/shop/restore", {**fields, "seen": seen, "typed": "shop"})
            assert "the objects have changed since you saw the plan, so nothing was restored" in refused.text
        other = await browser.post("/ns/shop/restore", {**fields, "only": "configmaps/lost", "typed": "shop"})
        assert "have changed since you saw the plan" in other.text  # the digest is of another object
        assert written(browser) == []
        answer = await browser.post("/ns/shop/restore", {**fields, "typed": "shop"})
        assert "configmaps/shop/kept changed back." in Outline(answer.text).texts, answer.text
        assert written(browser) == [f"PATCH {MAPS}/kept"]
        patch = browser.server.bodies[f"PATCH {MAPS}/kept"]
        assert patch == {"data": {"a": "old"}, "metadata": {"resourceVersion": "7"}}

    with bucket() as url:
        browse(tmp_path, walk, ticking(url))


@pytest.mark.parametrize(
    "fields",
    [
        {"what": "ticked"},
        {"only": ""},
        {"only": "configmaps"},
        {"only": "configmaps/../../secrets"},
        {"only": "configmaps/bank/settings"},
        {"only": "persistentvolumeclaims/data"},
        {"only": "a\r\nX: y/b"},
        {"only": "configmaps/kept,../x"},
        {"what": "ticked", "pick": "configmaps/kept?x=y"},
    ],
)
def test_what_cannot_be_ticked_reaches_nothing(tmp_path: Path, fields: dict[str, str]) -> None:
    async def walk(browser: Browser) -> None:
        await browser.sign_in()
        asked = len(browser.server.asked)
        for path in ("/ns/shop/confirm", "/ns/shop/restore"):
            answer = await browser.post(path, {**browser.own, **TICKED, "typed": "shop", **fields})
            assert answer.status in (400, 502)
        assert not any("/configmaps" in each or "bank" in each for each in browser.server.asked[asked:])
        assert browser.changes == []

    browse(tmp_path, walk)
