"""Attacks on a console by kinds: on its paths, on what it reflects, on its headers, with too much, and as a deputy.

Each is a pair of a name and whether it succeeded. They run against a canned API server and against a real cluster.
"""

from collections.abc import AsyncIterator, Awaitable, Iterable
from urllib.parse import quote, urlencode

from foresail.console import guard
from tests.unit.console.test_console import XSS, Answer, Browser

Found = tuple[str, bool]

TRICKS = (
    "..%2f..%2fvelero", "%2e%2e", "..%252f..%252fvelero", "shop%00", "shop%0d%0aX-Evil:%20a", "SHOP", "shop%2fsecrets",
    "shop%5c..%5csecrets", "%c0%ae%c0%ae", "shop;a=b", "shop%3fx=y", "shop%23a", "-shop", "shop-", "a" * 254, "*",
    "shop,velero", "%f0%9f%98%80", "shop%20", "%E2%80%AEpohs",
)  # fmt: skip
"""Names of namespaces and objects that are none."""

_NAMED = (
    "/ns/{}", "/ns/{}/restore", "/ns/{}/protect", "/ns/{}/back-up", "/ns/{}/new-rollback", "/ns/shop/backup/{}",
    "/ns/shop/rollback/{}/undo", "/ns/shop/schedule/{}/edit", "/ns/shop/change-schedule/{}", "/ns/shop/run/{}",
    "/approvals/deletion/{}/approve", "/protection/class/{}", "/ns/shop/cancel/backup/{}",
)  # fmt: skip

FIELDS = (
    ("/ns/shop/back-up", "name"), ("/ns/shop/back-up", "kinds"), ("/ns/shop/back-up", "keep"),
    ("/ns/shop/back-up", "volumes"), ("/ns/shop/schedule", "name"), ("/ns/shop/schedule", "schedule"),
    ("/ns/shop/schedule", "kinds"), ("/ns/shop/schedule/nightly/edit", "schedule"),
    ("/ns/shop/schedule/nightly/edit", "uid"), ("/ns/shop/new-schedule", "name"), ("/ns/shop/new-schedule", "schedule"),
    ("/ns/shop/new-schedule", "namespaces"), ("/ns/shop/new-rollback", "to"), ("/ns/shop/new-rollback", "kinds"),
    ("/ns/shop/new-rollback", "prune"), ("/ns/shop/protect", "class"), ("/ns/shop/restore", "backup"),
    ("/ns/shop/restore", "page"), ("/protection/new-class", "name"), ("/protection/new-class", "schedule"),
    ("/protection/new-class", "policy"), ("/protection/new-class", "together"), ("/protection/new-class", "default"),
    ("/protection/new-class", "kinds"), ("/ns/shop", "span"), ("/ns/shop", "days"), ("/namespaces", "q"), ("/", "q"),
)  # fmt: skip
"""What a page shows again of its query."""

_POSTED = (
    ("/ns/shop/back-up", "name"), ("/ns/shop/back-up", "keep"), ("/ns/shop/schedule", "name"),
    ("/ns/shop/schedule", "schedule"), ("/ns/shop/new-rollback", "to"), ("/ns/shop/plan", "backup"),
    ("/ns/shop/confirm", "only"), ("/ns/shop/restore", "typed"), ("/ns/shop/restore", "seen"),
    ("/calendar/preview", "manifest"), ("/protection/new-class", "name"), ("/protection/new-class", "policy"),
)  # fmt: skip
_RAW = ("<script>alert", "<img src=x", "<svg onload", 'href="javascript')
_INJECTED = "x\r\nSet-Cookie: a=b\r\nX-Evil: a"

_DEPUTY: tuple[tuple[str, dict[str, str]], ...] = (
    ("/backup", {}), ("/back-up", {"name": "stolen"}), ("/schedule", {"name": "stolen"}), ("/protect", {}),
    ("/new-schedule", {"name": "stolen"}), ("/new-rollback", {"to": "unserved"}),
    ("/restore", {"backup": "unserved", "policy": "none", "uid": "u"}),
    ("/restore", {"backup": "unserved", "policy": "update", "uid": "u", "only": "secrets/key", "seen": "0"}),
    ("/schedule/nightly/pause", {"uid": "u"}), ("/schedule/nightly/edit", {"schedule": "1 1 * * *"}),
    ("/schedule/nightly/approve", {}), ("/run/velero-nightly", {}), ("/change-schedule/velero-nightly", {}),
    ("/check/proven/run", {}), ("/rollback/back/undo", {}), ("/rollback/back/run", {}),
    ("/cancel/backup/unserved", {}), ("/cancel/restore/unserved", {}),
    ("/plan", {"backup": "unserved"}), ("/backup/unserved/log", {}), ("/backup/unserved/contents", {}),
)  # fmt: skip
"""Writes and reads in another namespace, with the fields that the form of it would have."""

_WHOLE_CLUSTER: tuple[tuple[str, dict[str, str]], ...] = (
    ("/protection/new-class", {"name": "stolen", "default": "yes", "restores": "yes"}),
    ("/protection/class/gold", {"default": "yes"}), ("/approvals/deletion/nightly/approve", {}),
)  # fmt: skip
"""The same of the whole cluster."""


async def _answer(asked: Awaitable[Answer]) -> Answer:
    """Return an answer; a connection that is closed without one is a refusal."""
    try:
        return await asked
    except (IndexError, ConnectionError, TimeoutError):
        return Answer(400, {}, "")


def _tells(answer: Answer, browser: Browser) -> bool:
    """Whether an answer has a secret that its reader did not send."""
    return browser.secrets.session in answer.text or browser.secrets.token in answer.text


def _is_open(answer: Answer) -> bool:
    return not 400 <= answer.status < 500


async def on_paths(browser: Browser) -> AsyncIterator[Found]:
    """Names with slashes, dots, line ends and encodings of them, read and written."""
    for path in _NAMED:
        for trick in TRICKS:
            answer = await _answer(browser.get(path.format(trick)))
            yield f"path {path.format(trick[:30])}", _is_open(answer) or _tells(answer, browser)
    for trick in TRICKS:
        answer = await _answer(browser.post(f"/ns/{trick}/back-up", browser.own))
        yield f"form to /ns/{trick[:30]}/back-up", _is_open(answer)


async def on_reflection(browser: Browser) -> AsyncIterator[Found]:
    """Markup in each field that a page shows again."""
    for path, name in FIELDS:
        for markup in (XSS, '"><svg onload=alert(1)>', "javascript:alert(1)//'"):
            answer = await _answer(browser.get(f"{path}?{urlencode({name: markup})}"))
            raw = any(
                each in answer.text for each in ("<script>alert", "<img src=x", "<svg onload", 'href="javascript')
            )
            yield f"reflected {path} {name} {markup[:12]}", raw or _tells(answer, browser)


async def on_headers(browser: Browser) -> AsyncIterator[Found]:
    """Line ends in fields, paths, and headers of a proxy that is not there."""
    for path, name in _POSTED:
        answer = await _answer(browser.post(path, {**browser.own, name: _INJECTED}))
        yield f"injected {path} {name}", bool({"set-cookie", "x-evil"} & answer.headers.keys())
    for name in ("X-Forwarded-Host", "X-Forwarded-For", "X-Original-URL", "X-HTTP-Method-Override", "Forwarded"):
        answer = await _answer(browser.ask("GET", f"{browser.base}/", {name: "evil.example"}))
        yield f"header {name}", "evil.example" in answer.text
    for namespace in (quote(_INJECTED), "a%0d%0aLocation:%20http://evil.example"):
        answer = await _answer(browser.get(f"/?namespace={namespace}"))
        where = answer.headers.get("location", "")
        yield f"switch to {namespace[:20]}", "evil" in where or "x-evil" in answer.headers


async def on_size(browser: Browser) -> AsyncIterator[Found]:
    """Queries, headers, bodies and numbers of fields beyond what is read."""
    for path in ("/ns/shop/back-up?name=", "/ns/shop/schedule?schedule=", "/namespaces?q=", "/ns/shop?span="):
        for size in (10_000, 200_000):
            answer = await _answer(browser.get(path + "a" * size))
            yield f"{size} characters in {path}", _is_open(answer)
    answer = await _answer(browser.get("/", X_Large="a" * 100_000))
    yield "a large header", _is_open(answer)
    answer = await _answer(browser.get("/", **{f"X_{number}": "a" * 1000 for number in range(200)}))
    yield "many headers", _is_open(answer)
    for path in ("/ns/shop/back-up", "/ns/shop/confirm", "/ns/shop/new-rollback"):
        fields = {**browser.own, **{f"f{number}": "a" for number in range(3_000)}}
        yield f"many fields to {path}", _is_open(await _answer(browser.post(path, fields)))
        answer = await _answer(browser.post(path, {**browser.own, "pick": "a" * 2 * guard.MOST_BODY}))
        yield f"a large field to {path}", _is_open(answer)


async def as_deputy(browser: Browser, others: Iterable[str]) -> AsyncIterator[Found]:
    """Every form with the viewer's own secret, in namespaces where the viewer may do nothing, and of the cluster."""
    forms = [(f"/ns/{other}{path}", {"typed": other, **fields}) for other in others for path, fields in _DEPUTY]
    for path, fields in (*forms, *_WHOLE_CLUSTER):
        answer = await _answer(browser.post(path, {**browser.own, **fields}))
        yield f"deputy {path}", answer.status in (200, 303) and "There is no plan" not in answer.text


KINDS = (on_paths, on_reflection, on_headers, on_size)
