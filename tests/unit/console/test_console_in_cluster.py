"""The console behind a proxy: every request has the token of its viewer, and nothing else is ever used."""

import asyncio
import json
import ssl
import sys
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Generator, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from http.cookies import SimpleCookie
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlencode

import pytest

from docs.external_assets import external_assets
from foresail.cli.errors import UsageError
from foresail.cli.main import main
from foresail.console import guard, in_cluster
from foresail.console.in_cluster import ACCESS_TOKEN, AUTHORIZATION, MOUNT, NAMESPACE, SESSION, Gate, Setup, Viewers
from foresail.console.report.snapshot import Wanted
from foresail.console.turns import MOST_STREAMS
from foresail.kube.connect import Anonymous, ConnectError
from testbed.pki import make_authority
from tests.unit.cli.test_coverage import listed
from tests.unit.console.test_console import FORGERIES, PAGES, POSTS, SERVED, Answer, everything
from tests.unit.console.test_console_live import RESTORE, a_restore, seen
from tests.unit.console.test_report import REVIEWS, TENANTS
from tests.unit.served import served

HOST = "console.example.com"
ANN, BOB, POD = "token-of-ann", "token-of-bob", "token-of-the-pod"
BACKUPS = f"{TENANTS}/nonadminbackups"


@dataclass
class ApiServer:
    """An API server that knows viewers by their tokens, and keeps what it was asked by whom."""

    url: str
    authority: bytes
    known: dict[str, dict[str, Any]]  # answers by path, by token
    asked: list[tuple[str, str]] = field(default_factory=list)  # the header Authorization, verb and path
    headers: list[dict[str, str]] = field(default_factory=list)

    @property
    def tokens(self) -> set[str]:
        return {each.removeprefix("Bearer ") for each, _ in self.asked}

    @property
    def changes(self) -> list[str]:
        return [each for _, each in self.asked if not each.startswith("GET ") and not each.endswith("reviews")]


@pytest.fixture(scope="module")
def pki(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("pki") / "made"
    make_authority(folder)
    return folder


@contextmanager
def api_server(pki: Path, known: dict[str, dict[str, Any]]) -> Iterator[ApiServer]:
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(pki / "server.crt", pki / "server.key")
    found = ApiServer("", (pki / "ca.crt").read_bytes(), known)

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            path, _, query = self.path.partition("?")
            length = int(self.headers.get("Content-Length", "0"))
            sent = json.loads(self.rfile.read(length)) if length else dict(parse_qsl(query))
            given = self.headers.get("Authorization", "")
            found.asked.append((given, f"{self.command} {path}"))
            found.headers.append({name.lower(): value for name, value in self.headers.items()})
            answers = found.known.get(given.removeprefix("Bearer "))
            code, answer = 200, answers.get(path) if answers is not None else None
            if answer is None:
                code = 401 if answers is None else 404
                answer = {"kind": "Status", "reason": "Unauthorized" if answers is None else "NotFound", "code": code}
            content = answer(sent) if callable(answer) else answer
            if isinstance(content, Generator):  # the lines of a watch
                self.send_response(code)
                self.send_header("Connection", "close")
                self.end_headers()
                self.wfile.writelines(content)
                return
            body = json.dumps(content).encode()
            self.send_response(code)
            self.send_header("Set-Cookie", f"route={given[-3:]}; Path=/")
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        do_POST = do_PATCH = do_DELETE = do_GET  # noqa: N815 - as the library calls them

        def log_message(self, *_: object) -> None:
            pass

    with served(Handler) as server:
        server.daemon_threads = True
        server.block_on_close = False
        server.socket = context.wrap_socket(server.socket, server_side=True)
        found.url = f"https://127.0.0.1:{server.server_port}"
        yield found


@dataclass
class Proxy:
    """Sends what an authenticating proxy would pass, or what somebody sends who reaches the console without it."""

    port: int
    api: ApiServer
    token: str = ANN
    session: str = ""
    namespace: str = ""

    async def raw(self, content: bytes) -> Answer:
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
        try:
            writer.write(content)
            received = await asyncio.wait_for(reader.read(), 60)
        except ConnectionResetError:  # the console has closed the connection before it has read everything
            return Answer(400, {}, "")
        finally:
            writer.close()
        head, _, body = received.partition(b"\r\n\r\n")
        first, *lines = head.decode("latin-1").split("\r\n")
        headers = {name.lower(): value.strip() for name, _, value in (each.partition(":") for each in lines)}
        return Answer(int(first.split()[1]), headers, body.decode(errors="replace"))

    def head(self, method: str, path: str, headers: Mapping[str, str], length: int) -> bytes:
        cookies = {SESSION: self.session, NAMESPACE: self.namespace}
        given = {
            "Host": HOST,
            "Connection": "close",
            "Content-Length": str(length),
            "Authorization": f"Bearer {self.token}" if self.token else "",
            "Cookie": "; ".join(f"{name}={value}" for name, value in cookies.items() if value),
            **{name.replace("_", "-"): value for name, value in headers.items()},
        }
        lines = [f"{name}: {value}" for name, value in given.items() if value and value != "-"]
        return ("\r\n".join([f"{method} {path} HTTP/1.1", *lines]) + "\r\n\r\n").encode()

    async def get(self, path: str, **headers: str) -> Answer:
        return await self.raw(self.head("GET", f"/{MOUNT}{path}", headers, 0))

    async def post(self, path: str, fields: Mapping[str, str], **headers: str) -> Answer:
        body = urlencode(fields).encode()
        given = {"Origin": f"https://{HOST}", "Content-Type": guard.FORM, **headers}
        return await self.raw(self.head("POST", f"/{MOUNT}{path}", given, len(body)) + body)

    async def sign_in(self) -> Answer:
        """Open a page, as a browser does that has no cookie yet."""
        answer = await self.get("/ns/shop")
        self.session = SimpleCookie(answer.headers["set-cookie"])[SESSION].value
        return answer

    @property
    def own(self) -> dict[str, str]:
        return {"csrf": guard.csrf_of(self.session)}


@asynccontextmanager
async def proxied(pki: Path, known: dict[str, dict[str, Any]], header: str = AUTHORIZATION) -> AsyncIterator[Proxy]:
    with api_server(pki, known) as api:
        setup = Setup(guard.Place(HOST, f"https://{HOST}"), header, Wanted("velero"), "foresail")
        viewers = Viewers(Anonymous(api.authority, api.url), setup)
        gate = Gate(viewers, setup, ssl.create_default_context())
        runner = await gate.serve("127.0.0.1", 0)
        try:
            yield Proxy(runner.addresses[0][1], api)
        finally:
            await runner.cleanup()
            await viewers.close()


def tenant(word: str = "shop") -> dict[str, Any]:
    """Return the answers to somebody who may do everything in the namespace shop, and nothing elsewhere."""

    def review(sent: Mapping[str, Any]) -> dict[str, Any]:
        return {"status": {"allowed": sent["spec"]["resourceAttributes"]["namespace"] == "shop"}}

    core = "/api/v1/namespaces/shop"
    served_namespace = {"metadata": {"name": "shop", "creationTimestamp": "2026-01-01T00:00:00Z", "labels": SERVED}}
    own = {core: served_namespace, f"{core}/persistentvolumeclaims": listed(), f"{core}/pods": listed()}
    return {**everything(word), **own, RESTORE: a_restore(3), REVIEWS: review}


def walk(
    pki: Path,
    steps: Callable[[Proxy], Any],
    known: dict[str, dict[str, Any]] | None = None,
    header: str = AUTHORIZATION,
) -> Any:  # noqa: ANN401
    async def walked() -> Any:  # noqa: ANN401
        async with proxied(pki, {ANN: everything(), POD: everything()} if known is None else known, header) as proxy:
            return await steps(proxy)

    return asyncio.run(walked())


def test_every_request_has_the_token_of_its_viewer(pki: Path) -> None:
    async def steps(proxy: Proxy) -> None:
        for path in PAGES:
            answer = await proxy.get(path)
            assert answer.status == 200, (path, answer.text)
            assert external_assets("page.html", answer.text) == []
            assert {name.lower(): value for name, value in guard.HEADERS.items()}.items() <= answer.headers.items()
            assert ANN not in answer.text + str(answer.headers)
        assert proxy.api.tokens == {ANN}

    walk(pki, steps)


def test_a_change_is_made_with_the_token_of_its_viewer(pki: Path) -> None:
    async def steps(proxy: Proxy) -> None:
        await proxy.sign_in()
        proxy.token = BOB
        assert (await proxy.post("/ns/shop/backup", proxy.own)).status == 303
        assert ("Bearer token-of-bob", f"POST {BACKUPS}") in proxy.api.asked
        assert proxy.api.changes == [f"POST {BACKUPS}"]

    walk(pki, steps, {ANN: tenant(), BOB: tenant()})


WITHOUT_TOKEN: dict[str, dict[str, str]] = {
    "no header": {"Authorization": "-"},
    "an empty header": {"Authorization": " "},
    "an empty token": {"Authorization": "Bearer "},
    "a password": {"Authorization": "Basic YTpi"},
    "two tokens": {"Authorization": f"Bearer {ANN}, Bearer {BOB}"},
    "a second header in the token": {"Authorization": f"Bearer {ANN} X-Remote-User: admin"},
    "another header": {"Authorization": "-", "X-Forwarded-Access-Token": ANN},
    "names of the proxy": {
        "Authorization": "-",
        "X-Forwarded-User": "ann",
        "X-Forwarded-Groups": "system:masters",
        "X-Remote-User": "admin",
        "X-Auth-Request-User": "ann",
        "Impersonate-User": "admin",
    },
    "the cookie of somebody": {"Authorization": "-", "Cookie": f"{SESSION}={'a' * 43}; _oauth2_proxy=x"},
}


@pytest.mark.parametrize("what", WITHOUT_TOKEN)
def test_without_a_token_there_is_only_the_page_that_says_how_to_set_it_up(pki: Path, what: str) -> None:
    async def steps(proxy: Proxy) -> None:
        for path in (*PAGES, "/style.css", "/live.js", "/live", "/nothing", "/?namespace=shop"):
            answer = await proxy.get(path, **WITHOUT_TOKEN[what])
            assert (answer.status, "needs your token" in answer.text) == (401, True), (path, answer)
            assert "set-cookie" not in answer.headers
            assert external_assets("page.html", answer.text) == []
        for path in POSTS:
            assert (await proxy.post(path, {"csrf": guard.csrf_of("")}, **WITHOUT_TOKEN[what])).status == 401
        assert proxy.api.asked == []

    walk(pki, steps)


def test_two_headers_with_tokens_are_no_token(pki: Path) -> None:
    async def steps(proxy: Proxy) -> None:
        lines = (f"GET /{MOUNT}/ HTTP/1.1", f"Host: {HOST}", "Connection: close")
        tokens = (f"Authorization: Bearer {ANN}", f"Authorization: Bearer {BOB}")
        answer = await proxy.raw(("\r\n".join((*lines, *tokens)) + "\r\n\r\n").encode())
        assert 400 <= answer.status < 500
        assert proxy.api.asked == []

    walk(pki, steps, {ANN: everything(), BOB: everything()})


def test_a_header_of_a_megabyte_reaches_nothing_and_is_in_no_log(
    pki: Path, capfd: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    async def steps(proxy: Proxy) -> None:
        for name in ("Authorization", "X-Forwarded-Groups", "Cookie"):
            answer = await proxy.get("/", **{name: "Bearer " + "x" * (1 << 20)})
            assert answer.status == 400
        assert proxy.api.asked == []
        proxy.token = "y" * 20_000  # a token with many groups is longer than usual
        assert (await proxy.get("/")).status == 401
        assert proxy.api.tokens == {proxy.token}

    walk(pki, steps)
    printed = capfd.readouterr()
    assert not any(each in printed.out + printed.err + caplog.text for each in ("xxx", "yyy"))


def test_the_other_header_is_read_only_if_it_was_chosen(pki: Path) -> None:
    async def steps(proxy: Proxy) -> None:
        assert (await proxy.get("/")).status == 401
        assert (await proxy.get("/", **{ACCESS_TOKEN: BOB})).status == 200
        assert proxy.api.tokens == {BOB}

    walk(pki, steps, {ANN: everything(), BOB: everything()}, header=ACCESS_TOKEN)


def test_no_header_of_the_request_but_the_token_reaches_the_api_server(pki: Path) -> None:
    async def steps(proxy: Proxy) -> None:
        sent = {"Impersonate-User": "admin", "X-Remote-User": "admin", "X-Forwarded-Groups": "system:masters"}
        assert (await proxy.get("/", **sent)).status == 200
        names = {name for each in proxy.api.headers for name in each}
        usual = {"host", "authorization", "accept", "accept-encoding", "user-agent", "content-type", "content-length"}
        assert names <= usual, names - usual

    walk(pki, steps)


def test_neither_the_environment_nor_a_mounted_token_is_used(
    pki: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The pod's token is where a kubelet mounts it, and a kubeconfig with it is where the environment names it."""
    mounted = tmp_path / "serviceaccount"
    mounted.mkdir()
    for name, text in (("token", POD), ("namespace", "velero"), ("ca.crt", (pki / "ca.crt").read_text())):
        (mounted / name).write_text(text)
    monkeypatch.setattr("foresail.kube.connect._SERVICE_ACCOUNT", mounted)

    async def steps(proxy: Proxy) -> None:
        cluster = {"server": proxy.api.url, "certificate-authority": str(pki / "ca.crt")}
        config = {
            "clusters": [{"name": "c", "cluster": cluster}],
            "users": [{"name": "u", "user": {"token": POD}}],
            "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u"}}],
            "current-context": "x",
        }
        (tmp_path / "kubeconfig").write_text(json.dumps(config))
        (tmp_path / ".kube").mkdir()
        (tmp_path / ".kube" / "config").write_text(json.dumps(config))
        monkeypatch.setenv("KUBECONFIG", str(tmp_path / "kubeconfig"))
        monkeypatch.setenv("HOME", str(tmp_path))
        for token, status in ((ANN, 200), ("", 401), ("unknown", 401)):
            proxy.token = token
            assert (await proxy.get("/")).status == status
            assert (await proxy.get("/ns/shop/restore/r")).status == status
        assert proxy.api.tokens == {ANN, "unknown"}

    walk(pki, steps, {ANN: tenant() | {REVIEWS: {"status": {"allowed": True}}}, POD: everything()})


def test_a_token_that_the_api_server_does_not_accept_shows_nothing_and_is_forgotten(pki: Path) -> None:
    known = {ANN: everything()}

    async def steps(proxy: Proxy) -> None:
        assert (await proxy.get("/")).status == 200
        del known[ANN]  # it has expired
        answer = await proxy.get("/")
        assert (answer.status, "does not accept your token" in answer.text) == (401, True)
        assert "nightly" not in answer.text
        known[ANN] = everything()
        assert (await proxy.get("/")).status == 200

    walk(pki, steps, known)


def test_viewers_share_nothing(pki: Path) -> None:
    """The administrator's pages are read first; the tenant's show nothing of them, however soon they are asked for."""

    async def steps(proxy: Proxy) -> None:
        first = await asyncio.gather(*(proxy.get(each) for each in ("/ns/shop", "/policies", "/", "/namespaces")))
        assert [each.status for each in first] == [200] * 4
        assert all("secret-of-ann" in each.text for each in first[:2])
        other = Proxy(proxy.port, proxy.api, BOB, namespace="shop")
        answers = [await other.get(each) for each in ("/", "/ns/shop", "/namespaces", "/queue", "/doctor", "/policies")]
        assert [each.status for each in answers[:2]] == [200, 200]
        assert not any("secret-of-ann" in each.text for each in answers)
        assert all("word-of-bob" in each.text for each in answers[:2])
        assert [each.status for each in answers[3:]] == [403, 403, 403]
        both = await asyncio.gather(proxy.get("/ns/shop"), other.get("/ns/shop"))
        assert ["secret-of-ann" in each.text for each in both] == [True, False]

    walk(pki, steps, {ANN: everything("secret-of-ann"), BOB: tenant("word-of-bob")})


def test_a_cookie_of_the_api_server_is_not_kept(pki: Path) -> None:
    async def steps(proxy: Proxy) -> None:
        for token in (ANN, BOB):
            proxy.token = token
            await proxy.get("/ns/shop")
        assert not any("cookie" in each for each in proxy.api.headers)

    walk(pki, steps, {ANN: tenant(), BOB: tenant()})


def test_the_cookie_of_another_user_gives_no_rights(pki: Path) -> None:
    async def steps(proxy: Proxy) -> None:
        await proxy.sign_in()
        thief = Proxy(proxy.port, proxy.api, BOB, proxy.session, "shop")
        asked = len(proxy.api.asked)
        answer = await thief.get("/ns/shop")
        assert (answer.status, "Choose your namespace" in answer.text) == (403, True)
        assert (await thief.post("/ns/shop/backup", proxy.own)).status == 403
        assert {token for token, _ in proxy.api.asked[asked:]} == {"Bearer token-of-bob"}
        assert proxy.api.changes == []

    nobody = {REVIEWS: {"status": {"allowed": False}}}
    walk(pki, steps, {ANN: tenant(), BOB: nobody})


def test_the_cookies_are_secure_and_the_forms_are_the_browsers_own(pki: Path) -> None:
    async def steps(proxy: Proxy) -> None:
        answer = await proxy.sign_in()
        cookie = answer.headers["set-cookie"]
        assert all(each in cookie for each in ("__Host-", "HttpOnly", "SameSite=Strict", "; Secure", "Path=/"))
        assert "Domain" not in cookie
        assert guard.csrf_of(proxy.session) in answer.text
        assert proxy.session not in answer.text
        assert "set-cookie" not in (await proxy.get("/ns/shop")).headers
        for session in ("", "short", "a" * 44):  # what a browser or an attacker could send instead
            forged = Proxy(proxy.port, proxy.api, ANN, session)
            assert (await forged.post("/ns/shop/backup", {"csrf": guard.csrf_of(session)})).status == 403
        assert proxy.api.changes == []

    walk(pki, steps, {ANN: tenant()})


@pytest.mark.parametrize("path", POSTS)
def test_a_forged_form_changes_nothing(pki: Path, path: str) -> None:
    async def steps(proxy: Proxy) -> None:
        await proxy.sign_in()
        for what, headers, fields in FORGERIES:
            answer = await proxy.post(path, {**proxy.own, "backup": "copy", "policy": "none", **fields}, **headers)
            assert 400 <= answer.status < 500, (what, answer)
        for origin in (f"http://{HOST}", f"https://{HOST}:8443", f"https://{HOST}.evil.example"):
            assert (await proxy.post(path, proxy.own, Origin=origin)).status == 403
        assert proxy.api.changes == []

    walk(pki, steps)


def test_another_host_another_method_and_another_site_are_refused(pki: Path) -> None:
    async def steps(proxy: Proxy) -> None:
        for headers, status in (
            ({"Host": "evil.example"}, 421),
            ({"Host": f"{HOST}:8080"}, 421),
            ({"Host": "127.0.0.1"}, 421),
            ({"X-Forwarded-Host": HOST, "Host": "10.0.0.1"}, 421),
            ({"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "no-cors", "Sec-Fetch-Dest": "image"}, 403),
            ({"Sec-Fetch-Site": "same-site", "Sec-Fetch-Mode": "cors", "Sec-Fetch-Dest": "empty"}, 403),
            ({"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "iframe"}, 403),
            ({"Origin": "https://evil.example"}, 403),
        ):
            assert (await proxy.get("/ns/shop", **headers)).status == status, headers
        assert (await proxy.raw(proxy.head("PUT", f"/{MOUNT}/", {}, 0))).status == 405
        assert proxy.api.asked == []

    walk(pki, steps)


def test_a_link_of_another_site_is_led_on_before_anything_is_read(pki: Path) -> None:
    foreign = {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "document"}

    async def steps(proxy: Proxy) -> None:
        answer = await proxy.get("/ns/shop?q=%22%3E%3Cscript%3E", **foreign)
        assert (answer.status, proxy.api.asked) == (200, [])
        assert 'content="0; url=/foresail/ns/shop?q=' in answer.text
        assert "<script" not in answer.text
        assert "set-cookie" not in answer.headers
        for path in ("//evil.example/", f"//evil.example/{MOUNT}/", "/\\evil.example"):
            answer = await proxy.raw(proxy.head("GET", path, foreign, 0))
            assert "refresh" not in answer.text
            assert "evil" not in answer.headers.get("location", "")

    walk(pki, steps)


@pytest.mark.parametrize("path", in_cluster.PROBES)
def test_a_probe_needs_no_token_and_tells_nothing(pki: Path, path: str) -> None:
    async def steps(proxy: Proxy) -> None:
        bare = f"GET {path} HTTP/1.1\r\nHost: 10.0.0.1:8080\r\nConnection: close\r\n\r\n".encode()
        answer = await proxy.raw(bare)
        assert (answer.status, answer.text) == (200, "ok\n")
        assert proxy.api.asked == []

    walk(pki, steps)


def test_a_tenant_chooses_their_namespace_and_is_told_which_they_may_not_read(pki: Path) -> None:
    async def steps(proxy: Proxy) -> None:
        for path in ("/", "/calendar", "/?namespace=other", "/?namespace=..%2f..%2fsecrets", "/ns/other"):
            answer = await proxy.get(path)
            assert (answer.status, "Choose your namespace" in answer.text) == (403, True), path
        answer = await proxy.get("/?namespace=shop")
        assert (answer.status, answer.headers["location"]) == (303, f"/{MOUNT}/")
        proxy.namespace = SimpleCookie(answer.headers["set-cookie"])[NAMESPACE].value
        assert "Namespace shop" in (await proxy.get("/")).text
        proxy.namespace = "x\r\ny"
        assert not any("/secrets" in each or "%" in each for _, each in proxy.api.asked)

    walk(pki, steps, {ANN: tenant()})


def test_an_administrator_switches_to_the_page_of_a_namespace_and_sees_as_whom(pki: Path) -> None:
    who = {"/apis/authentication.k8s.io/v1/selfsubjectreviews": {"status": {"userInfo": {"username": "ann@corp"}}}}

    async def steps(proxy: Proxy) -> None:
        page = (await proxy.get("/")).text
        server = proxy.api.url.removeprefix("https://")
        for each in (f"<dd><strong>{server}</strong></dd>", "<dd>ann@corp</dd>", '<option value="bank">bank</option>'):
            assert each in page
        answer = await proxy.get("/?namespace=bank")
        assert (answer.status, answer.headers["location"]) == (303, f"/{MOUNT}/ns/bank")
        assert SimpleCookie(answer.headers["set-cookie"])[NAMESPACE].value == "bank"

    walk(pki, steps, {ANN: everything() | who})


@asynccontextmanager
async def following(proxy: Proxy, path: str) -> AsyncIterator[asyncio.StreamReader]:
    reader, writer = await asyncio.open_connection("127.0.0.1", proxy.port)
    writer.write(proxy.head("GET", f"/{MOUNT}{path}", {"Connection": "keep-alive"}, 0))
    try:
        yield reader
    finally:
        writer.close()


async def until(reader: asyncio.StreamReader, text: bytes) -> bytes:
    return await asyncio.wait_for(reader.readuntil(text), 30)


def test_a_stream_ends_with_its_token_and_is_never_continued_with_another(pki: Path) -> None:
    known = {ANN: tenant(), BOB: tenant(), POD: everything()}

    async def steps(proxy: Proxy) -> None:
        async with following(proxy, f"/live/ns/shop/restore/r?seen={seen(3)}") as reader:
            await until(reader, b": alive")
            other = Proxy(proxy.port, proxy.api, BOB)
            assert (await other.get("/ns/shop")).status == 200
            known[ANN][RESTORE] = a_restore(4)
            await until(reader, b"event: changed")
            del known[ANN]  # it has expired; others have not
            asked = len(proxy.api.asked)
            rest = await until(reader, b"\r\n0\r\n\r\n")
            assert b"changed" not in rest
            assert {token for token, _ in proxy.api.asked[asked:]} == {f"Bearer {ANN}"}
        assert (await proxy.get(f"/live/ns/shop/restore/r?seen={seen(3)}")).status == 401

    walk(pki, steps, known)


def test_a_stream_ends_in_time_for_the_proxy_to_check_the_session_again(
    pki: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(in_cluster, "LONGEST_STREAM", 1.0)

    async def steps(proxy: Proxy) -> None:
        async with following(proxy, f"/live/ns/shop/restore/r?seen={seen(3)}") as reader:
            await until(reader, b"\r\n0\r\n\r\n")

    walk(pki, steps, {ANN: tenant()})


def test_streams_of_one_viewer_leave_room_for_another(pki: Path) -> None:
    async def steps(proxy: Proxy) -> None:
        path = f"/live/ns/shop/restore/r?seen={seen(3)}"
        followers = [following(proxy, path) for _ in range(MOST_STREAMS)]
        for each in followers:
            await until(await each.__aenter__(), b": alive")
        assert (await proxy.get(path)).status == 503
        async with following(Proxy(proxy.port, proxy.api, BOB), path) as reader:
            await until(reader, b": alive")
        for each in followers:
            await each.__aexit__(None, None, None)

    walk(pki, steps, {ANN: tenant(), BOB: tenant()})


class Slow:
    """An answer that the API server holds back until `goes_on` is set."""

    def __init__(self, answer: Any) -> None:  # noqa: ANN401
        self._answer, self._begun, self.goes_on = answer, threading.Semaphore(0), threading.Event()

    def __call__(self, _: object) -> Any:  # noqa: ANN401
        self._begun.release()
        self.goes_on.wait(60)
        return self._answer

    async def asked_by(self, proxy: Proxy, content: bytes) -> asyncio.StreamWriter:
        """Send a request, and return when it waits for this answer."""
        _, writer = await asyncio.open_connection("127.0.0.1", proxy.port)
        writer.write(content)
        assert await asyncio.to_thread(self._begun.acquire, timeout=30)
        return writer


async def comes_true(fact: Callable[[], Awaitable[bool]]) -> None:
    for _ in range(600):
        if await fact():
            return
        await asyncio.sleep(0.05)
    pytest.fail("it does not come true")


def test_pages_of_one_viewer_are_bounded_and_those_that_are_left_end(pki: Path) -> None:
    known = {ANN: tenant(), BOB: tenant()}
    slow = known[ANN][f"{BACKUPS}/copy"] = Slow(known[ANN][f"{BACKUPS}/copy"])

    async def steps(proxy: Proxy) -> None:
        page = proxy.head("GET", f"/{MOUNT}/ns/shop/backup/copy", {}, 0)

        async def is_answered() -> bool:
            return (await proxy.get("/ns/shop")).status == 200

        try:
            pages = [await slow.asked_by(proxy, page) for _ in range(4)]
            answer = await proxy.get("/ns/shop")
            assert (answer.status, answer.headers["retry-after"]) == (429, "30")
            assert (await Proxy(proxy.port, proxy.api, BOB).get("/ns/shop")).status == 200
            for each in pages:
                each.close()
            await comes_true(is_answered)
        finally:
            slow.goes_on.set()

    walk(pki, steps, known)


def test_a_change_is_made_to_its_end_though_the_browser_leaves(pki: Path) -> None:
    slow = Slow({})
    known = {ANN: {**tenant(), "/apis/authentication.k8s.io/v1/selfsubjectreviews": slow}}

    async def steps(proxy: Proxy) -> None:
        async def is_made() -> bool:
            return proxy.api.changes == [f"POST {BACKUPS}"]

        await proxy.sign_in()
        body = urlencode(proxy.own).encode()
        headers = {"Origin": f"https://{HOST}", "Content-Type": guard.FORM}
        head = proxy.head("POST", f"/{MOUNT}/ns/shop/backup", headers, len(body))
        (await slow.asked_by(proxy, head + body)).close()
        await asyncio.sleep(0.3)  # the console learns that the browser has left
        slow.goes_on.set()
        await comes_true(is_made)

    walk(pki, steps, known)


@pytest.mark.parametrize("path", ["/", "/doctor"])
def test_a_page_waits_for_its_turn_for_a_while_only(pki: Path, monkeypatch: pytest.MonkeyPatch, path: str) -> None:
    monkeypatch.setattr("foresail.console.turns.LONGEST_WAIT", 0.2)
    known, schedules = {ANN: everything(), BOB: everything()}, "/apis/velero.io/v1/namespaces/velero/schedules"
    slow = known[ANN][schedules] = Slow(known[ANN][schedules])

    async def steps(proxy: Proxy) -> None:
        try:
            page = await slow.asked_by(proxy, proxy.head("GET", f"/{MOUNT}/", {}, 0))
            answer = await Proxy(proxy.port, proxy.api, BOB).get(path)
            assert (answer.status, "retry-after" in answer.headers) == (503, True)
            page.close()
        finally:
            slow.goes_on.set()

    walk(pki, steps, known)


def test_a_link_of_another_site_chooses_no_namespace(pki: Path) -> None:
    foreign = {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "document"}

    async def steps(proxy: Proxy) -> None:
        answer = await proxy.get("/?namespace=shop", **foreign)
        assert f'content="0; url=/{MOUNT}/"' in answer.text
        assert "set-cookie" not in answer.headers

    walk(pki, steps, {ANN: tenant()})


def test_tokens_are_dropped_also_if_nobody_asks_any_more(pki: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(in_cluster, "_IDLE_SECONDS", 0.1)

    async def steps() -> None:
        setup = Setup(guard.Place(HOST, f"https://{HOST}"), AUTHORIZATION, Wanted("velero"), "foresail")
        viewers = Viewers(Anonymous((pki / "ca.crt").read_bytes(), "https://127.0.0.1:1"), setup)

        async def is_empty() -> bool:
            return not len(viewers)

        for token in ("a", "b"):
            viewers.reader(token, "shop")
            await comes_true(is_empty)
        await viewers.close()

    asyncio.run(steps())


def test_tokens_are_kept_for_a_while_only_and_never_without_bound(pki: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def steps() -> None:
        setup = Setup(guard.Place(HOST, f"https://{HOST}"), AUTHORIZATION, Wanted("velero"), "foresail")
        viewers = Viewers(Anonymous((pki / "ca.crt").read_bytes(), "https://127.0.0.1:1"), setup)
        clock = [0.0]
        monkeypatch.setattr(in_cluster, "steady", lambda: clock[0])
        first = viewers.reader("a", "shop")
        assert viewers.reader("a", "shop") is first
        assert viewers.reader("a", "other") is not first
        assert viewers.reader("b", "shop") is not first
        clock[0] = 660.0
        assert viewers.reader("a", "shop") is not first
        for number in range(2000):
            viewers.reader(f"token-{number}", "shop")
        assert len(viewers) <= 501
        await viewers.close()

    asyncio.run(steps())


@pytest.mark.parametrize(
    ("url", "host"),
    [
        ("https://Console.example.com", "console.example.com"),
        ("https://console.example.com:8443/", "console.example.com:8443"),
        ("https://console.example.com:443", "console.example.com"),
    ],
)
def test_a_public_url_is_the_host_and_the_origin_of_a_browser(url: str, host: str) -> None:
    assert in_cluster.place_of(url) == guard.Place(host, f"https://{host}")


@pytest.mark.parametrize(
    "url",
    [
        "http://a.example",
        "a.example",
        "https://",
        "https://a.example/path",
        "https://u:p@a.example",
        "https://a:x",
        "*",
    ],
)
def test_a_public_url_without_tls_or_with_a_path_is_refused(url: str) -> None:
    with pytest.raises(UsageError, match="public-url"):
        in_cluster.place_of(url)


def test_tokens_go_over_no_connection_that_is_not_encrypted_or_not_verified(pki: Path) -> None:
    authority = (pki / "ca.crt").read_bytes()
    with pytest.raises(ConnectError, match="https"):
        Anonymous(authority, "http://127.0.0.1:1")
    with pytest.raises(ConnectError, match="empty"):
        Anonymous(b" \n", "https://127.0.0.1:1")
    with pytest.raises(ConnectError, match="token"):
        Anonymous(authority, "https://127.0.0.1:1").with_token("")


@pytest.mark.parametrize(
    ("words", "named"),
    [
        (["--in-cluster"], "--public-url"),
        (["--in-cluster", "--kubeconfig", "x"], "--kubeconfig"),
        (["--in-cluster", "--context", "x"], "--context"),
        (["--public-url", "https://a.example"], "--in-cluster"),
        (["--in-cluster", "--public-url", "http://a", "--certificate-authority", "x"], "--public-url"),
        (["--in-cluster", "--public-url", "https://a", "--certificate-authority", "/nowhere"], "/nowhere"),
    ],
)
def test_options_that_do_not_fit_are_refused(words: list[str], named: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["console", *words]) == 2
    assert named in capsys.readouterr().err


def test_the_command_serves_until_it_is_ended(pki: Path, tmp_path: Path) -> None:
    """As in a pod: the API server comes from the environment, and nothing else is there."""

    async def steps() -> None:
        with api_server(pki, {ANN: everything()}) as api:
            port = api.url.rpartition(":")[2]
            environment = {
                "KUBERNETES_SERVICE_HOST": "127.0.0.1",
                "KUBERNETES_SERVICE_PORT": port,
                "HOME": str(tmp_path),
            }
            words = ["--in-cluster", f"--public-url=https://{HOST}", f"--certificate-authority={pki / 'ca.crt'}"]
            free = await asyncio.start_server(lambda *_: None, "127.0.0.1", 0)
            own = free.sockets[0].getsockname()[1]
            free.close()
            process = await asyncio.create_subprocess_exec(
                sys.executable, "-m", "foresail", "console", *words, "--address=127.0.0.1", f"--port={own}",
                env={**environment, "PYTHONPATH": ":".join(sys.path)}, stderr=asyncio.subprocess.PIPE,
            )  # fmt: skip
            assert process.stderr is not None
            line = await asyncio.wait_for(process.stderr.readline(), 60)
            assert f"https://{HOST}/{MOUNT}/".encode() in line
            assert (await Proxy(own, api).get("/")).status == 200
            process.terminate()
            assert await asyncio.wait_for(process.wait(), 60) == 0
            assert api.tokens == {ANN}

    asyncio.run(steps())
